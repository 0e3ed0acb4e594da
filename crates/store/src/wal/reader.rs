//! Replaying logs after a stop: which batches survive, and where the truth ends.
//!
//! Logs are read in order of their numbers. Each begins with a record of how the one before it
//! ended, and only bytes up to that size are part of the one before. A log that ends early is
//! corrupt if something promised that its bytes were synced: one of its own seals, the manifest,
//! or a seal with a synced offset in the log after it (a writer syncs the log before first).
//! Otherwise it is the torn tail of a crash: everything from there on, later logs included, was
//! never promised and is left out, so that what remains is a prefix of the writes (P2).
//!
//! ```text
//!   7.log  ----------x.....      torn at x; bytes behind x were never synced
//!   9.log  [7: size 15] ----     no seal with a synced offset: ignored, the prefix ends at x
//!   9.log  [7: size 15] --S--    sealed: 7.log was synced, so x is rot -> Corruption
//! ```
//!
//! Keeps: batches are visited in sequence order without holes, except where a log says that
//! writes skipped it. Logs are never changed here: the caller starts a new one.
//! Leaves to others: what is done with a batch; which logs are obsolete.

use std::collections::BTreeMap;

use lithify_base::{Error, Result, Seq};
use lithify_format::wal::tail::{LoggedBatch, judge};
use lithify_format::wal::{
    Found, Predecessor, Promise, RecordKind, RecordReader, SeqRule, Verdict, WalWalk,
};

use crate::dir::{Dir, FileName};

/// Largest log that is read: logs are read whole, and one is about as large as a memtable.
const LOG_MAX: u64 = 8 << 30;

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
    /// Bytes behind that were left out, those of later logs included.
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
    /// Last sequence number; 0 if there was no batch.
    pub last_seq: Seq,
    /// Where it stopped early, if it did.
    pub cut: Option<Cut>,
}

impl Replay {
    /// How the last log ended: what the next log's first record says.
    pub fn end(&self) -> Option<Predecessor> {
        let last = self.logs.last()?;
        Some(Predecessor { log_number: last.number, size: last.len, last_seq: self.last_seq })
    }
}

/// A log in memory.
struct Log {
    number: u64,
    bytes: Vec<u8>,
    head: Head,
}

/// What the first records of a log say about it.
struct Head {
    predecessor: Option<Predecessor>,
    rule: SeqRule,
}

/// Replays all logs of `dir` numbered `from` or higher. `known` are the logs the manifest names,
/// with the size it knows to be synced. `visit` gets each batch with the number of its log.
///
/// # Errors
/// Corruption if promised bytes are bad or missing (unless salvaging), `Unsupported` for records
/// this version lacks, Io, and whatever `visit` returns.
pub fn replay(
    dir: &Dir,
    from: u64,
    known: &BTreeMap<u64, Option<u64>>,
    on_rot: OnRot,
    mut visit: impl FnMut(u64, &LoggedBatch<'_>) -> Result<()>,
) -> Result<Replay> {
    let numbers = log_numbers(dir, from)?;
    for (&number, synced) in known.range(from..) {
        if synced.is_some_and(|n| n > 0) && !numbers.contains(&number) && on_rot == OnRot::Refuse {
            let path = dir.path_of(FileName::Wal(number));
            return Err(Error::corruption("the log is missing").in_file(path.display()));
        }
    }
    let mut out = Replay::default();
    let mut next = numbers.first().map(|&n| Log::read(dir, n)).transpose()?;
    let mut i = 0;
    while let Some(log) = next.take() {
        i += 1;
        next = numbers.get(i).map(|&n| Log::read(dir, n)).transpose()?;
        let follower = next.as_ref();
        let step = follow(&out, &log, from).and_then(|fits| {
            if fits { read_log(&log, follower, known, &mut out, &mut visit) } else { Ok(None) }
        });
        let stop = match step {
            Ok(Some(())) => continue,
            Ok(None) => None,
            Err(e) if e.is_corruption() && on_rot == OnRot::Salvage => Some(e),
            Err(e) => return Err(e.in_file(dir.path_of(FileName::Wal(log.number)).display())),
        };
        out.cut = Some(cut(dir, &out, &log, &numbers[i..], stop.is_some())?);
        break;
    }
    Ok(out)
}

fn log_numbers(dir: &Dir, from: u64) -> Result<Vec<u64>> {
    let listed = dir.list()?;
    let numbers = listed.iter().filter_map(|entry| match entry.file {
        Some(FileName::Wal(n)) if n >= from => Some(n),
        _ => None,
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Log {
    fn read(dir: &Dir, number: u64) -> Result<Log> {
        let path = dir.path_of(FileName::Wal(number));
        let Some(bytes) = dir.read_whole(FileName::Wal(number), LOG_MAX)? else {
            return Err(Error::corruption("the log vanished").in_file(path.display()));
        };
        let head = Head::read(&bytes, number);
        Ok(Log { number, bytes, head })
    }

    /// Whether a seal of this log promises anything, which proves that the log before was synced.
    fn promises(&self) -> Result<bool> {
        let mut walk = WalWalk::new(&self.bytes, self.number, self.head.rule);
        while walk.next_batch()?.is_some() {}
        Ok(walk.findings().sealed > 0)
    }
}

impl Head {
    fn read(bytes: &[u8], number: u64) -> Head {
        let mut head = Head { predecessor: None, rule: SeqRule::Rising };
        let mut reader = RecordReader::new(bytes, Some(number));
        while let Found::Record(record) = reader.next_record() {
            match record.kind {
                RecordKind::Predecessor if head.predecessor.is_none() => {
                    head.predecessor = Predecessor::decode(&record.payload).ok();
                }
                RecordKind::Seal => {
                    // Ours: numbers follow each other without gaps, or a seal says why not.
                    head.rule = SeqRule::Contiguous;
                    break;
                }
                _ => break,
            }
        }
        head
    }
}

/// Whether `log` follows what was replayed so far. `Ok(false)`: it follows something that is
/// gone and was never promised.
fn follow(out: &Replay, log: &Log, from: u64) -> Result<bool> {
    let Some(before) = log.head.predecessor else { return Ok(true) };
    let expected = out.logs.last().map(|l| l.number);
    match expected {
        Some(number) if number == before.log_number => Ok(true),
        Some(number) => Err(Error::corruption(format!(
            "the log follows log {:06}, but {number:06} was found before it",
            before.log_number
        ))
        .at(0)),
        None if before.log_number < from => Ok(true),
        None if log.promises()? => Err(Error::corruption(format!(
            "the log follows log {:06}, which is missing",
            before.log_number
        ))
        .at(0)),
        None => Ok(false),
    }
}

/// Replays one log. `None`: its tail is torn, and nothing after it counts.
fn read_log(
    log: &Log,
    follower: Option<&Log>,
    known: &BTreeMap<u64, Option<u64>>,
    out: &mut Replay,
    visit: &mut impl FnMut(u64, &LoggedBatch<'_>) -> Result<()>,
) -> Result<Option<()>> {
    // How the follower says this log ends.
    let end = follower.and_then(|f| f.head.predecessor).filter(|p| p.log_number == log.number);
    let whole = end.map_or(log.bytes.len(), |p| log.bytes.len().min(p.size as usize));
    let mut walk = WalWalk::new(&log.bytes[..whole], log.number, log.head.rule);
    let mut replayed = ReplayedLog { number: log.number, len: 0, batches: 0, closed: false };
    while let Some(batch) = walk.next_batch()? {
        if batch.first_seq <= out.last_seq && log.head.rule == SeqRule::Contiguous {
            let what = "a batch repeats sequence numbers of the log before";
            return Err(Error::corruption(what).at(batch.record.offset));
        }
        visit(log.number, &batch)?;
        replayed.batches += 1;
    }
    let found = walk.findings();
    replayed.len = found.good_end;
    replayed.closed = walk.was_closed();
    out.last_seq = out.last_seq.max(found.last_seq);
    out.logs.push(replayed);

    let mut promise =
        Promise { synced: known.get(&log.number).copied().flatten().unwrap_or(0), end: None };
    if let Some(p) = end
        && found.good_end < p.size
        && follower.is_some_and(|f| f.promises().unwrap_or(true))
    {
        promise.synced = promise.synced.max(p.size);
    }
    match judge(&found, &promise) {
        Verdict::Corruption { offset, what } => Err(Error::corruption(format!(
            "{what}, and the bytes there were promised to be synced"
        ))
        .at(offset)),
        Verdict::TornTail { .. } => Ok(None),
        Verdict::Clean => match end {
            Some(p) if found.good_end < p.size => Ok(None),
            Some(p) if p.last_seq != found.last_seq && found.last_seq != 0 => {
                let what = format!(
                    "the log ends with sequence number {}, the one after it says {}",
                    found.last_seq, p.last_seq
                );
                Err(Error::corruption(what).at(found.good_end))
            }
            _ => Ok(Some(())),
        },
    }
}

fn cut(dir: &Dir, out: &Replay, log: &Log, later: &[u64], rot: bool) -> Result<Cut> {
    // A log that could not even be begun was not replayed.
    let at = out.logs.last().filter(|l| l.number == log.number).map_or(0, |l| l.len);
    let mut dropped_bytes = (log.bytes.len() as u64).saturating_sub(at);
    for &number in later {
        dropped_bytes += dir.len_of(FileName::Wal(number))?.unwrap_or(0);
    }
    Ok(Cut { log: log.number, at, dropped_bytes, dropped_logs: later.to_vec(), rot })
}
