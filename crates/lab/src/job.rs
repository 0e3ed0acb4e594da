//! A flush or compaction at work, in the steps of the real ones: open the inputs, read sets
//! ahead of the merge, write behind it, close files while the next is filled, sync the directory.
//!
//! Keeps: what a job waits for is read off its own counters, so [`Job::want`] may be asked after
//! anything happened to it.

use std::ops::Range;
use std::sync::Arc;

use lithify_base::{JobId, Pos};
use lithify_control::{Flow, MemId};
use lithify_plan::Kind;

use crate::merge::Recipe;

/// Tables being opened at once.
const OPENING_MAX: u32 = 8;
/// Sets asked for and not handed to the engine, and their bytes in writes.
const SETS_AHEAD: usize = 3;
const WRITES_AHEAD: f64 = 6.0;
/// Sets handed over and not merged: two that an engine takes, and one it had no room for.
const SETS_HELD: usize = 3;
/// Writes under way for a file, and files being closed at once.
const BEHIND: (usize, usize) = (3, 4);
/// The same of what is written to level 0: writers wait for it.
const BEHIND_L0: (usize, usize) = (12, 20);
/// Input bytes merged between two looks around, as the CPU engine has it.
const SLICE_BYTES: f64 = (256 << 10) as f64;

/// What ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Done {
    /// A read of this set.
    Read(u32),
    /// A write of this file.
    Write(u32),
    /// The sync of this file.
    Close(u32),
    /// The read of a table's tail.
    Open,
    /// An operation that the job waits for itself.
    Own,
}

/// What a job wants next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// Nothing before something ends.
    Wait,
    /// An operation without bytes, and to wait for it.
    Own,
    /// A transfer.
    Io(Done, u64),
    /// To merge so many entries.
    Compute(f64),
    /// Nothing any more: all files are synced.
    Over,
}

/// Where a job comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A memtable.
    Flush(MemId),
    /// Files: why they are compacted, and the highest level among them.
    Compaction(Kind, u8),
}

#[derive(Clone, Debug, Default)]
struct File {
    writes: usize,
    cut: bool,
    closed: bool,
}

/// A job at work.
#[derive(Debug)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Where it comes from.
    pub source: Source,
    /// Where its files go.
    pub out: Pos,
    /// What it makes.
    pub recipe: Recipe,
    /// What a flush learnt.
    pub flow: Option<Box<Flow>>,
    /// Sequence numbers and the smallest epoch of its inputs.
    pub seqs: (u64, u64),
    /// The smallest epoch of its inputs.
    pub epoch: u64,
    /// When it began.
    pub began: u64,
    /// Bytes of its inputs.
    pub bytes_in: u64,
    disk: f64,
    write: f64,
    /// Bytes of the tails that are still to be read before the first set, and reads of some under way.
    opens: Vec<u64>,
    opening: u32,
    /// Transfers asked for since it computed last.
    asked: u64,
    own: bool,
    computing: bool,
    next_read: usize,
    /// Reads under way, by set.
    pending: Vec<usize>,
    at_set: usize,
    in_set: f64,
    /// Bytes of output so far, of it written, and the ends of its files.
    made: f64,
    written: f64,
    ends: Arc<[f64]>,
    files: Vec<File>,
    /// The file being filled.
    at_file: usize,
    queue: std::collections::VecDeque<(Done, u64)>,
    synced: bool,
}

/// What a job is made of.
pub struct Parts {
    /// Its number.
    pub id: JobId,
    /// Where it comes from.
    pub source: Source,
    /// Where its files go.
    pub out: Pos,
    /// What it makes.
    pub recipe: Recipe,
    /// What a flush learnt.
    pub flow: Option<Box<Flow>>,
    /// Sequence numbers of its inputs.
    pub seqs: (u64, u64),
    /// Their smallest epoch.
    pub epoch: u64,
    /// Now.
    pub began: u64,
    /// Bytes of its inputs.
    pub bytes_in: u64,
    /// Bytes per entry on disk.
    pub disk: f64,
    /// Bytes of a write.
    pub write: f64,
    /// Bytes of the tail of each input.
    pub opens: Vec<u64>,
}

impl Job {
    /// A job that begins now.
    pub fn new(p: Parts) -> Job {
        let mut end = 0.0;
        let ends: Vec<f64> = p
            .recipe
            .files
            .iter()
            .map(|f| {
                end += f.entries() * p.disk;
                end
            })
            .collect();
        Job {
            pending: vec![0; p.recipe.sets.len()],
            files: vec![File::default(); p.recipe.files.len()],
            id: p.id,
            source: p.source,
            out: p.out,
            recipe: p.recipe,
            flow: p.flow,
            seqs: p.seqs,
            epoch: p.epoch,
            began: p.began,
            bytes_in: p.bytes_in,
            disk: p.disk,
            write: p.write,
            opens: p.opens,
            opening: 0,
            asked: 0,
            own: false,
            computing: false,
            next_read: 0,
            at_set: 0,
            in_set: 0.0,
            made: 0.0,
            written: 0.0,
            ends: ends.into(),
            at_file: 0,
            queue: Default::default(),
            synced: false,
        }
    }

    /// True if it writes a memtable.
    pub fn is_flush(&self) -> bool {
        matches!(self.source, Source::Flush(_))
    }

    /// True while it computes or waits for an operation of its own.
    pub fn is_busy(&self) -> bool {
        self.own || self.computing
    }

    /// Something of this job ended.
    pub fn done(&mut self, what: Done) {
        match what {
            Done::Own => self.own = false,
            Done::Read(set) => self.pending[set as usize] -= 1,
            Done::Write(file) => {
                self.files[file as usize].writes -= 1;
                self.close_on(file);
            }
            Done::Close(file) => self.files[file as usize].closed = true,
            Done::Open => self.opening -= 1,
        }
    }

    /// A file whose last write ended is synced. Its name and its length cost nothing before.
    fn close_on(&mut self, file: u32) {
        let f = &self.files[file as usize];
        if f.cut && f.writes == 0 {
            self.queue.push_back((Done::Close(file), 0));
        }
    }

    /// Entries that come out of the present set for each that goes in.
    pub fn kept(&self) -> f64 {
        let set = self.recipe.sets.get(self.at_set);
        set.map_or(1.0, |set| set.entries_out / set.entries_in.max(f64::MIN_POSITIVE))
    }

    /// A slice of merging ended.
    pub fn computed(&mut self, entries: f64) {
        self.computing = false;
        let set = &self.recipe.sets[self.at_set];
        let part = entries / set.entries_in.max(f64::MIN_POSITIVE);
        self.made += part * set.entries_out * self.disk;
        self.in_set += entries;
        if self.in_set >= set.entries_in * (1.0 - 1e-9) {
            self.at_set += 1;
            self.in_set = 0.0;
        }
        if self.at_set == self.recipe.sets.len() {
            self.made = self.ends.last().copied().unwrap_or(0.0);
        }
    }

    /// Transfers it asked for since this was asked last.
    pub fn take_asked(&mut self) -> u64 {
        std::mem::take(&mut self.asked)
    }

    /// What the job wants now. Asked again until it waits or computes.
    pub fn want(&mut self) -> Want {
        let want = self.wants();
        self.asked += u64::from(matches!(want, Want::Io(..)));
        want
    }

    fn wants(&mut self) -> Want {
        if let Some((what, bytes)) = self.queue.pop_front() {
            return Want::Io(what, bytes);
        }
        if self.own || self.computing {
            return Want::Wait;
        }
        if self.opening < OPENING_MAX
            && let Some(tail) = self.opens.pop()
        {
            self.opening += 1;
            return Want::Io(Done::Open, tail);
        }
        if self.opening > 0 {
            return Want::Wait;
        }
        if let Some(want) = self.write_behind() {
            return want;
        }
        let closing = self.files[..self.at_file].iter().filter(|f| !f.closed).count();
        if self.at_file == self.files.len() && self.at_set == self.recipe.sets.len() {
            return self.finish(closing);
        }
        let most = if self.out.level == 0 { BEHIND_L0 } else { BEHIND };
        let behind = self.files.get(self.at_file).map_or(0, |f| f.writes);
        if closing >= most.1 || behind >= most.0 {
            return Want::Wait;
        }
        self.read_ahead();
        if let Some((what, bytes)) = self.queue.pop_front() {
            return Want::Io(what, bytes);
        }
        if self.pending.get(self.at_set).is_some_and(|&p| p > 0) {
            return Want::Wait;
        }
        let set = &self.recipe.sets[self.at_set];
        let slice = (SLICE_BYTES / self.disk).max(1.0).min(set.entries_in - self.in_set);
        self.computing = true;
        Want::Compute(slice)
    }

    fn own(&mut self) -> Want {
        self.own = true;
        Want::Own
    }

    /// Output that is due: a full buffer, or the rest of a file.
    fn write_behind(&mut self) -> Option<Want> {
        let end = *self.ends.get(self.at_file)?;
        if self.made <= self.written && self.made < end {
            return None;
        }
        let ready = self.made.min(end) - self.written;
        let full = self.made >= end;
        if ready < self.write && !full {
            return None;
        }
        let bytes = ready.min(self.write);
        let no = self.at_file as u32;
        self.written += bytes;
        let file = &mut self.files[self.at_file];
        file.writes += 1;
        if full && self.written >= end - 0.5 {
            file.cut = true;
            self.written = end;
            self.at_file += 1;
        }
        Some(Want::Io(Done::Write(no), bytes.ceil() as u64))
    }

    fn read_ahead(&mut self) {
        let ahead = self.next_ahead();
        for set in ahead {
            for &bytes in &self.recipe.sets[set].reads {
                self.pending[set] += 1;
                self.queue.push_back((Done::Read(set as u32), bytes));
            }
            self.next_read = set + 1;
        }
    }

    /// The sets to ask for. Only those that are here are handed over, in order.
    fn next_ahead(&self) -> Range<usize> {
        let here = self.pending[self.at_set..self.next_read].iter().take_while(|p| **p == 0);
        let handed = self.at_set + here.count().min(SETS_HELD);
        let most = (handed + SETS_AHEAD).min(self.recipe.sets.len());
        let bytes = |set: usize| self.recipe.sets[set].reads.iter().sum::<u64>() as f64;
        let mut ahead: f64 = (handed..self.next_read).map(bytes).sum();
        let mut end = self.next_read;
        while end < most && (end == handed || ahead < WRITES_AHEAD * self.write) {
            ahead += bytes(end);
            end += 1;
        }
        self.next_read..end
    }

    fn finish(&mut self, closing: usize) -> Want {
        match closing {
            0 if self.synced => Want::Over,
            0 => {
                self.synced = true;
                self.own()
            }
            _ => Want::Wait,
        }
    }
}
