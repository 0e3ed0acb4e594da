//! Replaying logs after a stop: which batches survive, and where the truth ends.
//!
//! Logs form a chain: each begins with how the one before it ended. Replay follows the chain back
//! from the newest log, so logs that an earlier recovery gave up are passed over, and then reads
//! it forward. A log is *whole* if it reaches the last number that its follower names, and its length but for a
//! closing seal. One that
//! is not was torn by a crash, unless something vouches for it: its own seals, the manifest, or a
//! seal of any later log (a writer promises nothing until all earlier logs are durable). Behind
//! a torn log nothing counts, so that what remains is a prefix of the writes (P2).
//!
//! ```text
//!   7.log  ----------x.....        damage at x, the writes before it end at 40
//!   9.log  [7 ends at 40] ----     7 is whole: only its closing seal was lost
//!   9.log  [7 ends at 55] ----     41..55 were never promised: the truth ends at 40
//!   9.log  [7 ends at 55] --S--    a seal of 9 promises: x is rot -> Corruption
//! ```
//!
//! The logs may be written meanwhile, by another process. What a log says of the one before it is read
//! first, newest log first, so each log that had begun by then follows logs that had ended. One that had
//! not begun, as it was made ahead, counts as empty, whatever is in it once it is read: what it holds
//! by then may follow writes that came into the log before it behind the reader's back.
//!
//! ```text
//!   heads read    5.log 1..40          7.log (made ahead)
//!   5 read        5.log 1..40
//!   meanwhile     5.log 1..55, ended   7.log [5 ends at 55] 56
//!   7 read        passed over: 56 without 41..55 is no moment that there was
//! ```
//!
//! Keeps: batches are visited in sequence order without holes, except where a log says that
//! writes skipped it. A crash alone is never called corruption (P5). Logs are never changed here.
//! Leaves to others: what is done with a batch; which logs are obsolete.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, FileId, Result, Seq};
use lithify_env::read_full_at;
use lithify_journal::wal::record::{HEADER_SIZE, TYPE_PREDECESSOR, TYPE_SEAL};
use lithify_journal::wal::tail::{Findings, LoggedBatch};
use lithify_journal::wal::{
    Found, Predecessor, Promise, RecordKind, RecordReader, RecordWriter, Seal, SeqRule, WalWalk,
};

use super::content::{end_of_log, read_log};
use super::writer::SEAL_BYTES;
use crate::dir::{Dir, FileName, OrTyped, Sparse};

/// Largest log that is read, by what it takes on disk: logs are read whole, and one is about as large
/// as a memtable.
pub(super) const LOG_MAX: u64 = 8 << 30;
/// Bytes at which a log ends, whatever else lets it go on: with the largest batch behind them it can still be read.
pub const LOG_END: u64 = 4 << 30;
/// Bytes that hold the first records of any log: its predecessor and its opening seal.
const HEAD_BYTES: usize = 128;

/// What to do when promised bytes are bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRot {
    /// Refuse with Corruption: nothing is lost that a backup may still have.
    #[default]
    Refuse,
    /// Keep what lies before, and report what was left out.
    Salvage,
}

/// Where replay stopped before the end of the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The log it stopped in.
    pub log: u64,
    /// End of its good part, in bytes.
    pub at: u64,
    /// Bytes behind that were left out, those of later logs included, and not the zeros at their ends.
    pub dropped_bytes: u64,
    /// Later logs that were left out whole.
    pub dropped_logs: Vec<u64>,
    /// True if promised bytes were among them (only with [`OnRot::Salvage`]).
    pub rot: bool,
}

/// A log that was replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedLog {
    /// Its number.
    pub number: u64,
    /// Bytes of its good part.
    pub len: u64,
    /// Batches visited.
    pub batches: u64,
    /// Whether it was closed in order.
    pub closed: bool,
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Logs in order.
    pub logs: Vec<ReplayedLog>,
    /// Last sequence number the logs know of; 0 if they know of none.
    pub last_seq: Seq,
    /// Where it stopped early, if it did.
    pub cut: Option<Cut>,
    /// Logs that an earlier recovery gave up: their followers continue an older log.
    pub passed: Vec<u64>,
}

impl Replay {
    /// How the last log ended: what the next log's first record says. `None` if no log has
    /// anything in it.
    pub fn end(&self) -> Option<Predecessor> {
        let last = self.logs.iter().rfind(|log| log.len > 0)?;
        Some(Predecessor { log_number: last.number, size: last.len, last_seq: self.last_seq })
    }
}

/// Replays the logs of `dir` whose numbers are in `wanted`: from the first one that is needed up to the
/// next file number, as a file with a larger number is not ours. `known` are the logs the manifest names,
/// with the size it knows to be synced. `visit` gets each batch with the number of its log, and says which
/// sequence number the next write has: a mark that commits a prepared transaction brings more into effect
/// than its record holds.
///
/// # Errors
/// Corruption if promised bytes are bad or missing (unless salvaging) or a log is absent,
/// `Unsupported` for records this version lacks, Io, and whatever `visit` returns.
pub fn replay(
    dir: &Dir,
    wanted: Range<u64>,
    known: &BTreeMap<u64, Option<u64>>,
    on_rot: OnRot,
    mut visit: impl FnMut(u64, &LoggedBatch<'_>) -> Result<Seq>,
) -> Result<Replay> {
    let from = wanted.start;
    let numbers = log_numbers(dir, wanted)?;
    let promised = |(_, synced): &(&u64, &Option<u64>)| synced.is_some_and(|n| n > 0);
    let absent = known.range(from..).filter(promised).find(|(n, _)| !numbers.contains(n));
    if let (Some((&number, _)), OnRot::Refuse) = (absent, on_rot) {
        return Err(missing(dir, number, "the manifest"));
    }
    let Chain { logs: chain, passed, lost } = chain(dir, from, &numbers, on_rot)?;
    let logs = Logs { dir, known, chain: &chain, lost: &lost };
    let mut out = Replay { passed, ..Replay::default() };
    for i in 0..chain.len() {
        let rot = match logs.replay_one(i, &mut out, &mut visit) {
            Ok(true) if i + 1 == chain.len() && !lost.is_empty() => true,
            Ok(true) => continue,
            Ok(false) if zoo::on(Bug::ReplayPastHole) => continue,
            Ok(false) => false,
            Err(e) if e.is_corruption() && on_rot == OnRot::Salvage => true,
            Err(e) => return Err(e.in_file(dir.path_of(FileName::Wal(chain[i].number)).display())),
        };
        out.cut = Some(logs.cut(i, &out, rot)?);
        break;
    }
    Ok(out)
}

/// A log and what its first records say.
#[derive(Clone, Copy)]
struct Linked {
    number: u64,
    before: Option<Predecessor>,
    /// A seal of this very log stands behind `before`.
    sealed: bool,
    /// It had not begun when this was read, and no later log had.
    ahead: bool,
    rule: SeqRule,
}

/// Which logs count.
struct Chain {
    /// Oldest first.
    logs: Vec<Linked>,
    /// Given up by an earlier recovery.
    passed: Vec<u64>,
    /// Behind a missing one; empty unless salvaging.
    lost: Vec<u64>,
}

/// Numbers of the logs that are there, of those in `wanted`, ascending.
///
/// # Errors
/// Corruption if one of them is no regular file; Io.
pub fn log_numbers(dir: &Dir, wanted: Range<u64>) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in dir.list()? {
        match FileName::parse(&entry.name) {
            Some(FileName::Wal(n)) if wanted.contains(&n) => numbers.push(n),
            _ => continue,
        }
        if entry.file.is_none() {
            // What it stands for may be acknowledged writes: passing it over would lose them.
            let what = "a log that may be needed is no regular file, but a link, directory, FIFO or \
                        device; put the file itself here, or take this name away";
            return Err(Error::corruption(what).in_file(dir.path().join(&entry.name).display()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// What the logs of `dir` whose numbers are in `wanted` take of the disk, in bytes.
///
/// # Errors
/// Io.
pub fn bytes_logged(dir: &Dir, wanted: Range<u64>) -> Result<u64> {
    let numbers = log_numbers(dir, wanted)?;
    numbers.into_iter().try_fold(0, |sum, n| Ok(sum + dir.bytes_on_disk(FileName::Wal(n))?))
}

/// The logs that count, oldest first, and those passed over. Goes back from the newest log, each
/// time to the one it names. A log that names none (empty, torn at its start, or foreign) leads
/// to the next lower number. So does one that would have logs passed over without a seal behind what
/// it says: a recovery that gives logs up seals it, other stores give none up, and a log that was never
/// synced may hold anything. Names of logs are durable before a follower exists, so a missing one
/// was removed by another hand. Only the newest may be gone since they were listed, where older ones are
/// left: a close takes away the one that was made ahead, and logs that are not needed go oldest first.
fn chain(dir: &Dir, from: u64, numbers: &[u64], on_rot: OnRot) -> Result<Chain> {
    let (mut chain, mut passed, mut lost) = (Vec::<Linked>::new(), Vec::new(), Vec::new());
    let mut rest = numbers;
    while let Some((&number, older)) = rest.split_last() {
        let none_begun = chain.iter().all(|later| later.ahead);
        let Some(mut log) = read_head(dir, number)? else {
            if none_begun && !older.is_empty() {
                rest = older;
                continue;
            }
            return Err(missing(dir, number, "the directory"));
        };
        log.ahead &= none_begun;
        let passes = |p: &Predecessor| match older.binary_search(&p.log_number) {
            Ok(at) => at + 1 < older.len(),
            Err(_) => p.log_number < from && !older.is_empty(),
        };
        log.before = log.before.filter(|p| log.sealed || !passes(p));
        rest = match log.before.map(|p| p.log_number) {
            None => older,
            Some(named) if named < from => &[],
            Some(named) => match (older.binary_search(&named), on_rot) {
                (Ok(at), _) => &older[..=at],
                (Err(_), OnRot::Refuse) => {
                    return Err(missing(dir, named, &FileName::Wal(number).to_string()));
                }
                // Nothing from here on continues what is left.
                (Err(at), OnRot::Salvage) => {
                    lost.extend(chain.drain(..).map(|l| l.number).chain([number]));
                    rest = &older[..at];
                    continue;
                }
            },
        };
        passed.extend_from_slice(&older[rest.len()..]);
        chain.push(log);
    }
    chain.reverse();
    passed.sort_unstable();
    lost.sort_unstable();
    Ok(Chain { logs: chain, passed, lost })
}

/// The first records of a log; `None` if it is gone. Logs of ours open with a seal; its numbers are
/// contiguous then.
///
/// What a log says of the one before it counts only with that seal, which repeats the checksum of the
/// record that says it: the first block of a log that was never synced may hold, whole or in part, what a
/// deleted log left there. Foreign logs have no seals, and records of data come next.
fn read_head(dir: &Dir, number: u64) -> Result<Option<Linked>> {
    let Some(file) = dir.open_if_there(FileName::Wal(number))? else { return Ok(None) };
    let mut head = [0; HEAD_BYTES];
    let count = read_full_at(&*file, &mut head, 0).or_typed()?;
    let head = &head[..count];
    let mut log =
        Linked { number, before: None, sealed: false, ahead: true, rule: SeqRule::Rising };
    let mut reader = RecordReader::new(head, Some(number));
    let (mut named, mut end) = (None, 0);
    loop {
        match reader.next_record() {
            Found::Record(record) if record.kind == RecordKind::Predecessor && end == 0 => {
                // One that names itself or a later log is damage, as the walk will find.
                named = Predecessor::decode(&record.payload).ok();
                named = named.filter(|p| p.log_number < number);
                end = record.end as usize;
            }
            Found::Record(record) if record.kind == RecordKind::Seal => {
                (log.rule, log.ahead) = (SeqRule::Contiguous, false);
                let seal = Seal::decode(&record.payload);
                if seal.is_ok_and(|seal| seal.is_of(number, record.offset, head)) {
                    (log.before, log.sealed) = (named, true);
                }
                break;
            }
            // Data may go on behind what was read here, so its type has to do.
            _ => {
                let kind = head.get(end + HEADER_SIZE - 1);
                if kind.is_some_and(|kind| !matches!(*kind, 0 | TYPE_SEAL)) {
                    log.before = named;
                    // Half of a first record may be there while it is written.
                    log.ahead = kind == Some(&TYPE_PREDECESSOR);
                }
                break;
            }
        }
    }
    Ok(Some(log))
}

fn missing(dir: &Dir, number: u64, named_by: &str) -> Error {
    Error::corruption(format!("this log is missing, and {named_by} names it"))
        .in_file(dir.path_of(FileName::Wal(number)).display())
}

/// The last batch of a log.
#[derive(Clone, Copy, Default)]
struct Last {
    /// Its first number.
    first: Seq,
    /// The number behind what it brought into effect.
    behind: Seq,
}

/// What the logs of a replay share.
struct Logs<'a> {
    dir: &'a Dir,
    known: &'a BTreeMap<u64, Option<u64>>,
    chain: &'a [Linked],
    lost: &'a [u64],
}

impl Logs<'_> {
    /// Replays log `i` of the chain; false if the truth ends in it.
    fn replay_one(
        &self,
        i: usize,
        out: &mut Replay,
        visit: &mut impl FnMut(u64, &LoggedBatch<'_>) -> Result<Seq>,
    ) -> Result<bool> {
        let log = self.chain[i];
        let follower = self.chain.get(i + 1);
        let end = follower.and_then(|f| f.before);
        let mut replayed = ReplayedLog { number: log.number, len: 0, batches: 0, closed: false };
        let Some(bytes) = self.read(log)? else {
            out.logs.push(replayed);
            return Ok(true);
        };
        let part = end.map_or(u64::MAX, |p| p.size).min(bytes.len());
        let mut walk = WalWalk::over(bytes.bytes().up_to(part), log.number, log.rule);
        let (before, mut last) = (out.last_seq, Last::default());
        let mut next = walk.next_batch()?;
        if log.ahead && walk.next_seq().is_some() {
            // It began since the heads were read.
            out.logs.push(replayed);
            return Ok(true);
        }
        while let Some(batch) = next {
            if batch.first_seq <= before && replayed.batches == 0 {
                let what = "the log repeats sequence numbers of the one before it";
                return Err(Error::corruption(what).at(batch.record.offset));
            }
            last = Last { first: batch.first_seq, behind: visit(log.number, &batch)? };
            replayed.batches += 1;
            next = walk.next_batch()?;
        }
        let found = walk.findings();
        replayed.len = found.good_end;
        replayed.closed = walk.was_closed();
        out.last_seq = before.max(found.last_seq).max(last.behind.saturating_sub(1));
        out.logs.push(replayed);

        let promise = Promise { synced: self.promised(log.number), end: None };
        walk.verdict(&promise).into_result(part)?;
        let torn = found.damage.is_some();
        match (end, follower) {
            (Some(end), _) => self.reaches(i, (&found, last), end),
            (None, _) if !torn => Ok(true),
            // Only the numbers can show that nothing is missing in between.
            (None, _) => Ok(match self.first_seq(&self.chain[i + 1..])? {
                Some(first) => first == out.last_seq + 1,
                None => found.ends_in_zeros,
            }),
        }
    }

    /// Whether log `i`, in which `found` was found, is whole: its follower says how it ended. The
    /// closing seal may still have been under way when the follower began, so what counts is
    /// whether every write is there.
    fn reaches(
        &self,
        i: usize,
        (found, last): (&Findings, Last),
        end: Predecessor,
    ) -> Result<bool> {
        let named = end.last_seq;
        // Of what takes no number, as marks of two-phase commit, the length alone tells.
        let fill = RecordWriter::at(found.good_end).fill_before_special(Seal::ENCODED_LEN) as u64;
        let is_long = found.good_end + fill + SEAL_BYTES >= end.size;
        let is_ours = self.chain[i].rule == SeqRule::Contiguous;
        // RocksDB names the first number of the last record, which for a mark is the one behind it.
        let all_there = found.last_seq >= named || found.good_end >= end.size;
        if !is_ours && last.first == named && all_there {
            return Ok(true);
        }
        match found.last_seq.cmp(&named) {
            Ordering::Equal if is_long || !is_ours => Ok(true),
            Ordering::Greater => Err(Error::corruption(format!(
                "the log ends with write {}, and the one after it says with {named}",
                found.last_seq
            ))
            .at(found.good_end)),
            Ordering::Less | Ordering::Equal => {
                for later in &self.chain[i + 1..] {
                    if self.vouches(*later)? {
                        let at = found.damage.map_or(found.good_end, |damage| damage.offset);
                        let name = FileName::Wal(later.number);
                        return Err(Error::corruption(format!(
                            "writes from here to number {named} are bad or missing, and {name} \
                             promises that they were synced"
                        ))
                        .at(at));
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether a log promises anything, which proves that all logs before it are durable.
    fn vouches(&self, log: Linked) -> Result<bool> {
        if self.promised(log.number) > 0 {
            return Ok(true);
        }
        let Some(bytes) = self.read(log)? else { return Ok(false) };
        let mut walk = WalWalk::over(bytes.bytes(), log.number, log.rule);
        while walk.findings().sealed == 0 && walk.next_batch()?.is_some() {}
        Ok(walk.findings().sealed > 0)
    }

    /// Number of the first write in `logs`, of those that had begun.
    fn first_seq(&self, logs: &[Linked]) -> Result<Option<Seq>> {
        for log in logs.iter().filter(|log| !log.ahead) {
            let Some(bytes) = self.read(*log)? else { continue };
            let first = WalWalk::over(bytes.bytes(), log.number, log.rule).next_batch()?;
            if let Some(batch) = first {
                return Ok(Some(batch.first_seq));
            }
        }
        Ok(None)
    }

    fn promised(&self, number: u64) -> u64 {
        self.known.get(&number).copied().flatten().unwrap_or(0)
    }

    /// The content of a log; `None` if it was made ahead and is gone.
    fn read(&self, log: Linked) -> Result<Option<Sparse>> {
        match read_log(self.dir, FileId(log.number))? {
            None if !log.ahead => Err(missing(self.dir, log.number, "the directory")),
            bytes => Ok(bytes),
        }
    }

    /// What is left out when replay stops in log `i`.
    fn cut(&self, i: usize, out: &Replay, rot: bool) -> Result<Cut> {
        let log = self.chain[i].number;
        // A log that could not even be begun was not replayed.
        let at = out.logs.last().filter(|l| l.number == log).map_or(0, |l| l.len);
        let later = self.chain[i + 1..].iter().map(|l| l.number);
        let dropped_logs: Vec<u64> = later.chain(self.lost.iter().copied()).collect();
        let mut bytes = 0;
        for &number in std::iter::once(&log).chain(&dropped_logs) {
            bytes += end_of_log(self.dir, FileId(number))?;
        }
        Ok(Cut { log, at, dropped_bytes: bytes.saturating_sub(at), dropped_logs, rot })
    }
}
