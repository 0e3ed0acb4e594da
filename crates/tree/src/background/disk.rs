//! The disk, or its budget, as the families share it: what the compactions of one were promised is not promised to
//! another.
//!
//! ```text
//!   10G are left. A family has a compaction at work that may write 7G, so the others have 3G, whatever the
//!   disk still shows as free.
//! ```
//!
//! Keeps: the sum of what all cores took, which each brings up to date after every event. Where room may be too
//! little for what they could begin, one core at a time thinks, so that no two see the same room.
//! Leaves to others: what a core may begin with the room there is (`control`), and looking it up (`upkeep`).

use lithify_control::{Core, Taken};
use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicBool, Ordering};

/// What is left of the disk is little if it is less than this many times the tables of all families.
const TIGHT_TIMES: u64 = 2;

/// What the cores of all families took of the disk.
#[derive(Default)]
pub(crate) struct SharedDisk {
    taken: Mutex<Taken>,
    /// What the families could begin all together might not fit.
    tight: AtomicBool,
}

impl SharedDisk {
    /// So many bytes are left beside `tables`; `low` says that they are few even against memtables. Compactions write at
    /// most what there is in tables, and both change until the next look.
    pub(crate) fn look(&self, left: u64, tables: u64, low: bool) {
        let tight = low || left / TIGHT_TIMES < tables;
        self.tight.store(tight, Ordering::Relaxed);
    }

    /// What all took together.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> Taken {
        *self.taken.lock()
    }

    /// Has a core think, and remembers what it took.
    pub(crate) fn over<R>(&self, core: &mut Core, think: impl FnOnce(&mut Core) -> R) -> R {
        let all = self.taken.lock();
        core.know_taken(&all);
        // Where all fits, families do not wait for each other.
        let alone = self.tight.load(Ordering::Relaxed).then_some(all);
        let told = think(core);
        core.tell_taken(&mut alone.unwrap_or_else(|| self.taken.lock()));
        told
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

    use std::sync::mpsc::channel;
    use std::time::Duration;

    use lithify_base::bytewise;
    use lithify_control::Options;
    use lithify_env::sync::Arc;
    use lithify_lsm::Version;
    use lithify_plan::PlanOptions;

    use super::*;

    /// True if another core may think meanwhile.
    fn lets_in(disk: &Arc<SharedDisk>) -> bool {
        let plan = PlanOptions::default();
        let options =
            Options { plan, compaction_slots: 1, flush_slots: 1, delayed_write_rate: 1 << 20 };
        let mut core = Core::new(options, Version::empty(bytewise()), 1);
        let (other, (in_it, came_in)) = (disk.clone(), channel());
        let mut second = core.clone();
        let (other, lets) = disk.over(&mut core, |_| {
            let other = std::thread::spawn(move || {
                other.over(&mut second, |_| in_it.send(()).unwrap());
            });
            (other, came_in.recv_timeout(Duration::from_millis(300)).is_ok())
        });
        other.join().unwrap();
        lets
    }

    #[test]
    fn cores_think_one_by_one_where_room_is_little() {
        let disk = Arc::new(SharedDisk::default());
        assert!(lets_in(&disk), "nothing is known");
        let looks = [
            (100, 50, false, true),
            (99, 50, false, false),
            (100, 50, true, false),
            (9, 0, false, true),
        ];
        for (left, tables, low, lets) in looks {
            disk.look(left, tables, low);
            assert_eq!(lets_in(&disk), lets, "{left} beside {tables}");
        }
    }
}
