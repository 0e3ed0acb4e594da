//! Frozen memtables, oldest first: which stratum each one's files get (reserved when it was
//! frozen, so that age is freeze order however long a flush takes), and which commits next.

use std::collections::VecDeque;

use lithify_base::JobId;
use lithify_base::zoo::{self, Bug};
use lithify_plan::MemState;

use crate::event::MemId;
use crate::throttle::Room;

#[derive(Clone, Debug)]
struct Frozen {
    mem: MemId,
    bytes: u64,
    /// Bytes of the writes in it.
    written: u64,
    stratum: u32,
    log_number: u64,
    /// Its flush, and when that began.
    job: Option<(JobId, u64)>,
    /// Not flushed before this instant.
    not_before: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    frozen: VecDeque<Frozen>,
    next_stratum: u32,
    /// How long a flush takes, of late; 0 before the first.
    took: u64,
    /// By how much flushes took more or less than that, of late.
    spread: u64,
}

impl Memory {
    pub(crate) fn new(next_stratum: u32) -> Memory {
        Memory { frozen: VecDeque::new(), next_stratum, took: 0, spread: 0 }
    }
    pub(crate) fn freeze(&mut self, mem: MemId, (bytes, written): (u64, u64), log_number: u64) {
        assert!(self.frozen.back().is_none_or(|f| f.mem < mem), "memtables freeze in order");
        let stratum = self.reserve_stratum();
        let (job, not_before) = (None, 0);
        let frozen = Frozen { mem, bytes, written, stratum, log_number, job, not_before };
        self.frozen.push_back(frozen);
    }
    pub(crate) fn len(&self) -> usize {
        self.frozen.len()
    }
    pub(crate) fn state(&self) -> MemState {
        MemState {
            frozen: self.frozen.len() as u32,
            frozen_bytes: self.frozen.iter().map(|f| f.bytes).sum(),
        }
    }
    /// A stratum above that of every memtable frozen so far, and below that of the next.
    pub(crate) fn reserve_stratum(&mut self) -> u32 {
        let stratum = self.next_stratum;
        // Every open leaves room for years of flushes; to begin anew would put new data below old.
        self.next_stratum = stratum.checked_add(1).expect("the strata of an open tree suffice");
        stratum
    }
    /// The oldest memtable that no job is flushing.
    pub(crate) fn next_to_flush(&self, now: u64) -> Option<(MemId, u32)> {
        let f = self.frozen.iter().find(|f| f.job.is_none())?;
        (f.not_before <= now).then_some((f.mem, f.stratum))
    }
    pub(crate) fn start(&mut self, mem: MemId, job: JobId, now: u64) {
        self.of(mem).job = Some((job, now));
    }
    pub(crate) fn retry(&mut self, mem: MemId, not_before: u64) {
        let newest = self.next_stratum;
        let f = self.of(mem);
        f.job = None;
        f.not_before = not_before;
        if zoo::on(Bug::RetryIsNewer) {
            f.stratum = newest;
            self.next_stratum += 1;
        }
    }
    /// The job that must commit before any other flush may, once the `taken` oldest have.
    pub(crate) fn job_of(&self, taken: usize) -> Option<JobId> {
        Some(self.frozen.get(taken)?.job?.0)
    }
    pub(crate) fn log_number(&self, mem: MemId) -> Option<u64> {
        let newest = zoo::on(Bug::LowMarkTooHigh);
        self.frozen.iter().rfind(|f| f.mem == mem || newest).map(|f| f.log_number)
    }
    /// The oldest memtable is in the tree now; its bytes, and those of the writes in it.
    pub(crate) fn flushed(&mut self, mem: MemId, now: u64) -> (u64, u64) {
        let oldest = self.frozen.pop_front().filter(|f| f.mem == mem);
        let oldest = oldest.expect("flushes commit in freeze order");
        let began = oldest.job.map_or(now, |(_, began)| began);
        let took = now.saturating_sub(began);
        // One that waited for room on the disk says nothing of the next.
        let mean = self.took;
        let took = if mean == 0 { took } else { took.min(4 * mean) };
        let follow = |mean: u64, seen: u64| mean - mean / 4 + seen / 4;
        self.spread = if mean == 0 { 0 } else { follow(self.spread, took.abs_diff(mean)) };
        self.took = if mean == 0 { took } else { follow(mean, took) };
        (oldest.bytes, oldest.written)
    }

    /// What is left of memtables, at most `most`, until the oldest is flushed, where that may take longer than
    /// of late by as much as is usual; `None` while none is being flushed. Each of them has `full` bytes of memory, and is
    /// full after so many bytes of `writes`; if that is not known, what the oldest holds tells, which may have been frozen early.
    pub(crate) fn room(&self, most: u32, full: u64, writes: Option<u64>) -> Option<Room> {
        let oldest = self.frozen.front()?;
        let (_, began) = oldest.job?;
        let free = u64::from(most).saturating_sub(self.frozen.len() as u64);
        let share =
            || u128::from(full) * u128::from(oldest.written) / u128::from(oldest.bytes.max(1));
        let each = writes.unwrap_or_else(|| u64::try_from(share()).unwrap_or(full));
        let until = began + self.took + self.spread;
        Some(Room { bytes: free.saturating_mul(each), began, until, least: 0 })
    }
    fn of(&mut self, mem: MemId) -> &mut Frozen {
        let at = self.frozen.iter().position(|f| f.mem == mem);
        &mut self.frozen[at.expect("the memtable is frozen and not flushed")]
    }
}
