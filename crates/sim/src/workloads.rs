//! The canonical workloads: short lives, each about one thing that the engine does, the same each
//! time. The sweeps (`sweep`) crash and disturb every step of them.
//!
//! Keeps: each says which marks it must reach, so that it stays about what its name says.
//! Not there, because there is no such thing yet: an upgrade of an older format, a call that destroys a
//! database.

mod engines;
mod families;
mod jobs;
mod settings;

use lithify::Durability::{Buffered, NoWal, Os, Sync};

use self::settings::{bucket, bucket_df, hybrid, side_by_side, tiered};
use crate::disk::Forgets;
use crate::pump::Order;
use crate::world::script::Told;
use crate::world::{Shape, World};

/// A life written down.
pub struct Workload {
    /// What it is about.
    pub name: &'static str,
    /// Policy, changes to the small settings that all share, and whether values expire.
    pub shape: fn() -> Shape,
    /// What is done after the first opening.
    pub play: fn(&mut World) -> Told,
    /// Marks that it must reach when nothing else fails, as often as they are named.
    pub must: &'static [&'static str],
}

impl Workload {
    /// What its run is like.
    pub fn shape(&self, faults: bool) -> Shape {
        Shape { faults, ..(self.shape)() }
    }

    /// The workload of that name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        all().find(|w| w.name == name)
    }
}

/// `count` rounds over the same keys, each flushed.
fn rounds(w: &mut World, count: u32, len: usize) -> Told {
    for _ in 0..count {
        w.puts(0..40, len, Os)?;
        w.flush_now()?;
    }
    Ok(())
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    [ONE_TREE, jobs::ALL, engines::ALL, families::ALL].into_iter().flatten()
}

/// Those about opening, writing, flushing and what is asked of one tree.
const ONE_TREE: &[Workload] = &[
    Workload { name: "create-empty", shape: hybrid, play: |_| Ok(()), must: &[] },
    Workload { name: "open-close", shape: hybrid, play: |w| w.again(), must: &[] },
    Workload {
        name: "put-sync",
        shape: hybrid,
        play: |w| w.puts(0..12, 300, Sync),
        must: &["log begun"],
    },
    Workload {
        name: "put-then-sync",
        shape: hybrid,
        play: |w| {
            w.puts(0..6, 300, Buffered)?;
            w.puts(6..12, 300, Os)?;
            w.sync_now()?;
            w.puts(12..15, 300, Buffered)?;
            w.puts(15..16, 300, Sync)
        },
        must: &["log begun"],
    },
    Workload {
        name: "big-batch",
        shape: hybrid,
        play: |w| {
            w.batch(0..60, 6000, Os)?;
            w.batch(0..60, 6000, Sync)?;
            w.settle()
        },
        must: &["flush_end"],
    },
    Workload {
        name: "transactions",
        shape: hybrid,
        play: |w| {
            w.transactions(0..20, 1500, Os)?;
            w.flush_now()?;
            w.transactions(5..20, 400, Sync)?;
            w.transactions(10..40, 2000, Buffered)?;
            w.settle()
        },
        must: &["flush_end", "log begun"],
    },
    Workload {
        name: "log-roll",
        shape: hybrid,
        play: |w| {
            w.puts(0..80, 1000, Os)?;
            w.puts(0..3, 100, Sync)?;
            w.puts(0..80, 1000, Buffered)?;
            w.puts(0..3, 100, Sync)
        },
        must: &["flush_end", "log begun"],
    },
    Workload {
        name: "group",
        shape: hybrid,
        play: |w| {
            w.crowd_of(4, 5, 300)?;
            w.crowd_of(3, 4, 60)
        },
        must: &["log begun"],
    },
    Workload {
        name: "log-roll-in-group",
        shape: hybrid,
        play: |w| {
            w.crowd_of(4, 10, 4000)?;
            w.in_order(Order::Latest);
            w.crowd_of(4, 10, 4000)
        },
        must: &["log begun"; 2],
    },
    Workload {
        name: "group-side-by-side",
        shape: side_by_side,
        play: |w| {
            w.large_crowd(4, 3, 100)?;
            w.shuffle(6);
            w.large_crowd(4, 3, 100)?;
            w.flush_now()
        },
        must: &["inserted beside others"; 2],
    },
    Workload {
        name: "writes-without-log",
        shape: hybrid,
        play: |w| {
            w.puts(0..20, 400, NoWal)?;
            w.flush_now()?;
            w.puts(10..30, 400, NoWal)?;
            w.again()?;
            w.puts(0..5, 400, NoWal)?;
            w.flush_now()
        },
        must: &["flush_end"],
    },
    Workload {
        name: "flush",
        shape: hybrid,
        play: |w| {
            w.puts(0..30, 500, Os)?;
            w.flush_now()?;
            w.puts(10..20, 500, Sync)
        },
        must: &["flush_end"],
    },
    Workload {
        name: "flushes-race",
        shape: hybrid,
        play: |w| {
            // The newer memtable is written first.
            w.in_order(Order::Latest);
            w.pause(true);
            w.puts(0..70, 1000, Os)?;
            w.puts(0..70, 1000, Os)?;
            w.settle()?;
            w.puts(0..3, 10, Sync)
        },
        must: &["flush_end"],
    },
    Workload {
        name: "flush-again",
        shape: hybrid,
        play: |w| {
            w.pause(true);
            // Without a log only flushes have something to sync. The first fails while the memtable
            // behind it, with newer values of the same keys, is frozen already.
            w.puts(0..70, 1000, NoWal)?;
            w.puts(0..70, 1000, NoWal)?;
            w.one_sync_fails(0);
            w.run(100);
            w.flush_now()?;
            w.read_all()?;
            w.pause(false);
            w.settle()
        },
        must: &["job_failed", "flush_end"],
    },
    Workload {
        name: "flush-range-delete",
        shape: hybrid,
        play: |w| {
            w.puts(0..40, 300, Os)?;
            w.flush_now()?;
            w.delete_range(10..30)?;
            w.puts(15..18, 300, Os)?;
            w.flush_now()?;
            w.delete_range(0..12)?;
            w.compact_all()
        },
        must: &["flush_end", "started Manual"],
    },
    Workload {
        name: "manifest-roll",
        shape: hybrid,
        play: |w| {
            for n in 0..3 {
                w.puts(0..20, 200, Os)?;
                // An edit in doubt is settled by a new manifest.
                w.one_sync_fails(n);
                w.flush_now()?;
                w.puts(0..20, 200, Sync)?;
            }
            w.again()
        },
        must: &["manifest begun"; 3],
    },
    Workload {
        name: "views-held",
        shape: hybrid,
        play: |w| {
            w.puts(0..40, 500, Os)?;
            w.hold_both()?;
            w.delete_range(5..25)?;
            w.flush_now()?;
            w.hold_both()?;
            rounds(w, 4, 500)?;
            w.settle()?;
            w.look_at_all()?;
            w.let_go();
            w.compact_all()?;
            w.run(50);
            w.read_all()
        },
        must: &["table deleted"],
    },
    Workload {
        name: "ingest",
        shape: hybrid,
        play: |w| {
            rounds(w, 2, 400)?;
            w.puts(0..10, 100, Buffered)?;
            // Over what is in the memtable, then beside it.
            w.take_in_table(5..30, 300)?;
            w.puts(0..10, 100, Os)?;
            w.take_in_table(50..60, 300)?;
            w.puts(5..15, 200, Buffered)?;
            w.again()?;
            w.compact_all()
        },
        must: &["taken in", "taken in", "table deleted"],
    },
    Workload {
        name: "checkpoint",
        shape: bucket,
        play: |w| {
            rounds(w, 2, 400)?;
            w.puts(0..10, 100, Buffered)?;
            w.copy()?;
            w.puts(0..10, 100, Sync)
        },
        must: &["flush_end"],
    },
    Workload {
        name: "pauses",
        shape: bucket_df,
        play: |w| {
            w.pause(true);
            rounds(w, 4, 500)?;
            w.pause(false);
            w.run(20);
            w.pause(true);
            rounds(w, 2, 500)?;
            w.pause(false);
            w.settle()
        },
        must: &["compaction_end"],
    },
    Workload {
        name: "full-disk",
        shape: hybrid,
        play: |w| {
            w.puts(0..30, 500, Os)?;
            w.full_for_a_while()?;
            w.puts(0..10, 500, Sync)
        },
        must: &["log begun"],
    },
    Workload {
        name: "lost-log",
        shape: hybrid,
        play: |w| {
            w.puts(0..10, 300, Os)?;
            w.one_sync_fails(0);
            w.puts(10..12, 300, Sync)?;
            w.puts(0..12, 300, Sync)?;
            w.one_sync_fails(0);
            w.sync_now()?;
            w.puts(3..6, 300, Os)
        },
        must: &["log_lost", "log_replaced"],
    },
    Workload {
        name: "lost-log-full-disk",
        shape: hybrid,
        play: |w| {
            for forgets in [Forgets::Keeps, Forgets::Reverts, Forgets::Delays] {
                w.puts(0..6, 300, Os)?;
                w.log_lost_on_a_full_disk(forgets)?;
                w.puts(6..8, 300, Sync)?;
            }
            w.puts(8..9, 300, Buffered)
        },
        must: &["log_lost", "log_replaced"],
    },
    Workload {
        name: "clean-close",
        shape: tiered,
        play: |w| {
            rounds(w, 2, 300)?;
            w.puts(0..20, 300, Buffered)?;
            w.again()?;
            w.puts(0..5, 300, Os)?;
            w.again()
        },
        must: &["flush_end"],
    },
];
