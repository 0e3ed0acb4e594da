//! Room, where several families share one log and one memory: which memtables are frozen to keep
//! both within their bounds.
//!
//! A log can go when every family has flushed past it, so one that is rarely written holds back the
//! logs of all. Once the logs that are kept pass a bound, the memtables that need the oldest of them
//! are frozen. And once the active memtables take most of what memtables may take together, the
//! largest is.

use lithify_base::{FileId, Seq};
use lithify_env::sync::atomic::Ordering;

use super::{Filling, Log};
use crate::shell::Shell;

impl Log {
    /// The families, by their places, whose memtables make room. One that is stopped keeps its own.
    pub(super) fn too_full(&self, max_logs: u64, memory: u64) -> Vec<usize> {
        let all = 0..self.families.len();
        let mut out: Vec<usize> = all.filter(|at| self.families[*at].is_full()).collect();
        out.extend(self.holding_back(max_logs));
        if out.is_empty() {
            out.extend(self.largest_of_too_many(memory));
        }
        out.sort_unstable();
        out.dedup();
        out.retain(|at| !self.families[*at].shell.gate.is_stopped());
        out
    }

    /// Families whose active memtables need the oldest log, if the logs take more than `most` bytes.
    fn holding_back(&self, most: u64) -> impl Iterator<Item = usize> + '_ {
        let now = self.wal.as_ref().map_or(0, |wal| wal.size());
        let all = self.kept.iter().map(|(_, bytes)| bytes).sum::<u64>() + now;
        let oldest = self.kept.front().map(|(number, _)| *number).filter(|_| all > most);
        oldest.into_iter().flat_map(move |oldest| {
            let needs = move |at: &usize| {
                let family = &self.families[*at];
                !family.mem.table().is_empty() && family.log.load(Ordering::Relaxed) <= oldest
            };
            (0..self.families.len()).filter(needs)
        })
    }

    /// The family with the largest active memtable, if all of them take too much of `memory` bytes:
    /// seven eighths of it, or half of it while those being flushed take the rest.
    fn largest_of_too_many(&self, memory: u64) -> Option<usize> {
        let bytes = |at: &usize| self.families[*at].mem.table().bytes() as u64;
        let active: u64 = (0..self.families.len()).map(|at| bytes(&at)).sum();
        let frozen = || {
            let of = |f: &Filling| {
                let sv = f.shell.super_version();
                sv.mems.iter().skip(1).map(|m| m.table.bytes() as u64).sum::<u64>()
            };
            self.families.iter().map(of).sum::<u64>()
        };
        let too_many = active > memory / 8 * 7
            || (active > memory / 2 && active.saturating_add(frozen()) > memory);
        (0..self.families.len()).max_by_key(bytes).filter(|_| too_many)
    }

    /// Memtables without a write need no log before `log`.
    pub(super) fn pass_over_empty(&mut self, log: FileId) {
        for family in self.families.iter().filter(|f| f.mem.table().is_empty()) {
            family.log.store(log.0, Ordering::Release);
        }
    }

    /// Writes from number `first` on are in no log.
    pub(super) fn note_unlogged(&mut self, first: Seq) {
        for family in &mut self.families {
            let newest = family.mem.table().last_seq();
            family.unlogged |= newest.is_some_and(|newest| newest >= first);
        }
    }
}

impl Shell {
    /// Most bytes of logs that are kept before memtables are flushed to let them go.
    pub(super) fn max_wal_bytes(&self, log: &Log) -> u64 {
        let of = |f: &Filling| {
            f.shell.memtable_bytes * u64::from(f.shell.settings.load().memtable_count)
        };
        match self.db_settings.load().max_wal_bytes {
            0 => 4 * log.families.iter().map(of).sum::<u64>(),
            most => most,
        }
    }

    /// Bytes that the memtables of all families may take.
    pub(super) fn memtable_budget(&self) -> u64 {
        let s = self.db_settings.load();
        s.memtable_bytes * u64::from(s.memtable_count)
    }
}
