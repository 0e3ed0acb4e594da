//! From what a machine can spare to every other setting.
//!
//! A user states up to three budgets: memory, threads, disk. [`Settings::for_budget`] derives the
//! rest, by the rules in the table. What is set besides stays as it is; a setting counts as set if it is
//! not what the budgets give.
//!
//! Keeps: the default settings are those of the default budget.

use crate::Policy;
use crate::row::Scope;
use crate::table::{ROWS, Settings, defaults};

/// The part of memory that one memtable gets, in 32nds: half of all for four of them.
const MEMTABLE_SHARE: u64 = 4;
/// The same of less than [`SMALL`], of which code, stacks and what jobs hold take a larger part.
const MEMTABLE_SHARE_SMALL: u64 = 3;
const SMALL: u64 = 256 << 20;
/// Larger memtables gain little: a flush of this size has the disk's full rate.
const MEMTABLE_MAX: u64 = 256 << 20;
/// Files larger than this make a compaction hold more than it needs to.
const FILE_MAX: u64 = 64 << 20;
const FILE_MIN: u64 = 2 << 20;
/// Threads for each that flushes.
const THREADS_PER_FLUSH: u32 = 8;

/// What a database may take of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory for everything: memtables, buffers of flushes and compactions, cached
    /// blocks, and the metadata of tables. Default: 512 MiB.
    pub memory: u64,
    /// Compactions that may run at once, each on a thread of its own. Default: the processor's
    /// parallelism.
    pub threads: u32,
    /// Bytes on disk, `None` for what the disk has. Default: `None`.
    pub disk: Option<u64>,
}

impl Default for Budget {
    fn default() -> Budget {
        let threads = lithify_env::processors().map_or(2, |n| n.min(256) as u32);
        Budget { memory: 512 << 20, threads, disk: None }
    }
}

/// Half of the memory in four memtables, three eighths where that is little, in whole stretches of 2 MiB where
/// they are that large.
pub(crate) fn memtable_bytes(memory: u64) -> u64 {
    let part = if memory < SMALL { MEMTABLE_SHARE_SMALL } else { MEMTABLE_SHARE };
    let share = (memory / 32 * part).clamp(64 << 10, MEMTABLE_MAX);
    share - share % if share >= 2 << 20 { 2 << 20 } else { 4 << 10 }
}

/// A table for each memtable, within bounds.
pub(crate) fn file_bytes(memory: u64) -> u64 {
    memtable_bytes(memory).clamp(FILE_MIN, FILE_MAX)
}

pub(crate) fn flush_threads(threads: u32) -> u32 {
    (threads / THREADS_PER_FLUSH).clamp(1, 4)
}

/// One part in `share` of the disk budget, at most `most`.
pub(crate) fn debt_bytes(budget: &Budget, most: u64, share: u64) -> u64 {
    budget.disk.map_or(most, |disk| (disk / share).min(most))
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::for_budget(Budget::default())
    }
}

impl Settings {
    /// Settings for what a machine can spare; everything follows from it. Any field may be changed
    /// afterwards; [`explain`](Settings::explain) tells which were.
    ///
    /// ```
    /// # use lithify_settings as lithify;
    /// use lithify::{Budget, Settings};
    ///
    /// let small = Settings::for_budget(Budget { memory: 64 << 20, ..Budget::default() });
    /// assert_eq!(small.memtable_bytes, 6 << 20);
    /// small.check().unwrap();
    /// ```
    pub fn for_budget(budget: Budget) -> Settings {
        defaults(&budget)
    }

    /// The budgets that these settings state.
    pub fn budget(&self) -> Budget {
        Budget {
            memory: self.memory_budget,
            threads: self.compaction_threads,
            disk: self.disk_budget,
        }
    }

    /// These settings under another budget: what followed from the old one follows from the new one,
    /// and what was set stays.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Settings {
        let Some(from) = self.derived_from else {
            let Budget { memory, threads, disk } = budget;
            return Settings {
                memory_budget: memory,
                compaction_threads: threads,
                disk_budget: disk,
                ..self
            };
        };
        let (old, mut new) = (Settings::for_budget(from), Settings::for_budget(budget));
        for row in ROWS.iter().filter(|row| !row.is_budget()) {
            if (row.show)(&self) != (row.show)(&old) {
                (row.field.copy)(&self, &mut new);
            }
        }
        let Settings { table_dirs, plan, unchecked, as_rocksdb, .. } = self;
        Settings { table_dirs, plan, unchecked, as_rocksdb, ..new }
    }

    /// These settings with what follows from the budgets that they state now: where a field of a budget was
    /// changed, the others follow it, but for those that were set. An open does this by itself.
    #[must_use]
    pub fn settled(self) -> Settings {
        match self.budget() {
            budget if self.derived_from.is_none_or(|from| from == budget) => self,
            budget => self.with_budget(budget),
        }
    }

    /// The compaction rules in force: those that were set, else the default ones.
    pub fn effective_policy(&self) -> Policy {
        self.policy.unwrap_or_default()
    }

    /// These settings for a column family of a database with settings `db`: what concerns the
    /// database as a whole is the database's, and what follows from the budgets follows from those.
    #[doc(hidden)]
    #[must_use]
    pub fn in_database(mut self, db: &Settings) -> Settings {
        self = self.with_budget(db.budget());
        for row in ROWS.iter().filter(|row| row.scope == Scope::Database) {
            (row.field.copy)(db, &mut self);
        }
        (self.unchecked, self.as_rocksdb) = (db.unchecked, db.as_rocksdb);
        if self.table_dirs.is_empty() {
            self.table_dirs.clone_from(&db.table_dirs);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_budget_gives_sound_settings() {
        for memory in [2 << 20, 3 << 20, 16 << 20, 1 << 30, 1 << 40] {
            for threads in [1, 2, 8, 64, 256] {
                for disk in [None, Some(64 << 30)] {
                    let s = Settings::for_budget(Budget { memory, threads, disk });
                    s.check().unwrap();
                }
            }
        }
    }

    #[test]
    fn the_budget_moves_what_was_not_set() {
        let mut s = Settings::default();
        s.set("l0-trigger", "8").unwrap();
        s.set("file_bytes", "3MiB").unwrap();
        s.set("memory_budget", "64 MiB").unwrap();
        assert_eq!((s.memtable_bytes, s.file_bytes, s.l0_trigger), (6 << 20, 3 << 20, 8));
    }

    /// A field of a budget does what `set` does, whichever order things are said in.
    #[test]
    fn fields_of_budgets_move_what_was_not_set_as_their_names_do() {
        for (memory, threads) in [(64 << 20, 2), (2 << 20, 16), (8 << 30, 64)] {
            let mut named = Settings::default();
            for (name, value) in [
                ("l0_trigger", "8".to_owned()),
                ("memory_budget", memory.to_string()),
                ("compaction_threads", threads.to_string()),
            ] {
                named.set(name, &value).unwrap();
            }
            let fields = Settings {
                memory_budget: memory,
                compaction_threads: threads,
                l0_trigger: 8,
                ..Settings::default()
            };
            fields.check().unwrap();
            assert_eq!(fields.explain(), named.explain());
            assert_eq!(fields.settled(), named);
            let methods =
                Settings::default().memory_budget(memory).l0_trigger(8).compaction_threads(threads);
            assert_eq!(methods, named);
        }
        let kept = Settings::default().memory_budget(1 << 30).memtable_bytes(3 << 20);
        assert_eq!(kept.memory_budget(64 << 20).memtable_bytes, 3 << 20, "what was set stays");
    }

    #[test]
    fn the_policy_is_adaptive_unless_it_is_set() {
        let with = |policy| Settings { policy, ..Settings::default() }.effective_policy();
        assert_eq!(with(None), Policy::Adaptive);
        assert_eq!(with(Some(Policy::Leveled)), Policy::Leveled);
    }

    /// Of two databases' settings a family takes those of the database from the one, all others from the other.
    #[test]
    fn a_family_has_what_is_the_databases_from_its_database() {
        let mut own = Settings::default();
        own.set("l0_trigger", "7").unwrap();
        own.set("durability", "no-wal").unwrap();
        let mut db = Settings::default();
        db.set("bloom_bits", "3").unwrap();
        db.set("event_log", "off").unwrap();
        db.unchecked = true;
        let s = own.in_database(&db);
        assert_eq!((s.l0_trigger, s.bloom_bits), (7, 10));
        assert_eq!((s.durability, s.event_log, s.unchecked), (db.durability, false, true));
    }
}
