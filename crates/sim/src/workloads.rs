//! The canonical workloads: short lives, each about one thing that the engine does, the same each
//! time. The sweeps (`sweep`) crash and disturb every step of them.
//!
//! Keeps: each says which marks it must reach, so that it stays about what its name says.
//! Not there, because there is no such thing yet: an upgrade of an older format, a call that destroys a
//! database.

mod settings;

use lithify::Durability::{Buffered, NoWal, Os, Sync};
use lithify::engine::mock::FaultPlan;

use self::settings::{
    bucket, bucket_df, df_leveled, df_tiered, expiring, hybrid, in_parts, leveled, side_by_side,
    tiered, with_engine,
};
use crate::disk::Forgets;
use crate::model::DEFAULT;
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
        ALL.iter().find(|w| w.name == name)
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

/// Overwrites that keep several levels busy, with jobs held back between them. The order of jobs
/// follows from `seed`.
fn pile(w: &mut World, seed: u64) -> Told {
    w.shuffle(seed);
    for round in 0..6 {
        // Full memtables are flushed by themselves; this workload does not wait for them.
        w.puts(0..70, 1000, Os)?;
        w.run(40 + round * 10);
    }
    w.settle()
}

/// Almost all writes go to one end of the keys, then to the other.
fn lopsided(w: &mut World) -> Told {
    for round in 0..10 {
        let hot = if round < 5 { 0..25 } else { 35..60 };
        w.puts(0..60, 40, Buffered)?;
        w.puts(hot.clone(), 600, Os)?;
        w.puts(hot, 600, Os)?;
        w.flush_now()?;
        w.run(30);
    }
    w.settle()
}

/// Compactions of which the first few are given to an engine other than the CPU.
fn on_an_engine(w: &mut World) -> Told {
    w.shuffle(6);
    w.puts(0..40, 900, Os)?;
    w.flush_now()?;
    w.puts(20..60, 900, Os)?;
    w.flush_now()?;
    w.settle()
}

/// Families of the workloads about them.
const BOTH: [&str; 2] = [DEFAULT, "small"];
const ALL_THREE: [&str; 3] = [DEFAULT, "small", "other"];

/// All of them.
pub const ALL: &[Workload] = &[
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
        name: "l0-to-l1",
        shape: leveled,
        play: |w| {
            rounds(w, 2, 400)?;
            w.settle()
        },
        must: &["compaction_end"],
    },
    Workload {
        name: "l1-to-l2",
        shape: hybrid,
        play: |w| {
            rounds(w, 5, 1500)?;
            w.settle()?;
            w.deletes(0..20)?;
            w.flush_now()?;
            w.compact_all()
        },
        must: &["started Down", "compaction_end"],
    },
    #[cfg(feature = "zstd")]
    Workload {
        name: "dictionaries",
        shape: settings::dictionaries,
        play: |w| {
            rounds(w, 2, 900)?;
            w.settle()?;
            w.puts(10..40, 900, Os)?;
            w.compact_all()?;
            w.again()
        },
        must: &["dictionary"; 2],
    },
    Workload {
        name: "parts",
        shape: in_parts,
        play: |w| {
            w.shuffle(4);
            w.puts(0..60, 900, Os)?;
            w.flush_now()?;
            w.delete_range(5..45)?;
            w.puts(20..60, 900, Os)?;
            w.flush_now()?;
            w.settle()
        },
        must: &["part_end", "compaction_end"],
    },
    Workload {
        name: "one-part-fails",
        shape: in_parts,
        play: |w| {
            w.shuffle(5);
            w.pause(true);
            rounds(w, 3, 900)?;
            w.pause(false);
            // Only compactions have something to sync now; the third is in the middle of the parts.
            w.one_sync_fails(2);
            w.settle()
        },
        must: &["job_failed", "part_end", "compaction_end"],
    },
    Workload {
        name: "engine-breaks",
        shape: || with_engine(FaultPlan::Breaks(1)),
        play: on_an_engine,
        must: &["engine_chosen", "engine_replaced", "compaction_end"],
    },
    Workload {
        name: "engine-found-out-late",
        shape: || with_engine(FaultPlan::WrongLedger(1)),
        play: on_an_engine,
        must: &["engine_chosen", "engine_replaced", "compaction_end"],
    },
    Workload {
        name: "trivial-move",
        shape: hybrid,
        play: |w| {
            for part in 0..6 {
                w.puts(part * 20..part * 20 + 20, 900, Os)?;
                w.flush_now()?;
            }
            w.settle()
        },
        must: &["moved"],
    },
    Workload {
        name: "tiered-merge",
        shape: tiered,
        play: |w| {
            rounds(w, 5, 500)?;
            w.settle()
        },
        must: &["started Tier"],
    },
    Workload {
        name: "df-in-order",
        shape: df_leveled,
        play: |w| pile(w, 1),
        must: &["compaction_end"],
    },
    Workload {
        name: "df-reversed",
        shape: df_leveled,
        play: |w| pile(w, 2),
        must: &["compaction_end"],
    },
    Workload {
        name: "df-tiered-reversed",
        shape: df_tiered,
        play: |w| pile(w, 3),
        must: &["compaction_end"],
    },
    Workload {
        name: "df-one-fails",
        shape: df_leveled,
        play: |w| {
            w.in_order(Order::Latest);
            w.pause(true);
            rounds(w, 4, 700)?;
            w.pause(false);
            // Only compactions have something to sync now.
            w.one_sync_fails(0);
            w.run(400);
            rounds(w, 3, 700)?;
            w.settle()
        },
        must: &["job_failed"],
    },
    Workload {
        name: "df-cancelled",
        shape: df_leveled,
        play: |w| {
            w.in_order(Order::Latest);
            rounds(w, 5, 700)?;
            w.run(15);
            // A close stops what is under way.
            w.again()?;
            w.settle()
        },
        must: &["job_stopped"],
    },
    Workload {
        name: "merge-of-extras",
        shape: df_tiered,
        play: |w| {
            w.in_order(Order::Latest);
            for round in 0..8 {
                w.puts(0..30, 900, Os)?;
                w.flush_now()?;
                w.run(8 + round);
            }
            w.settle()?;
            w.compact_all()
        },
        must: &["compaction_end"],
    },
    Workload { name: "bucket-split", shape: bucket, play: lopsided, must: &["bucket split"] },
    Workload { name: "bucket-merge", shape: bucket_df, play: lopsided, must: &["buckets merged"] },
    Workload {
        name: "split-during-flush",
        shape: bucket_df,
        play: |w| {
            w.in_order(Order::Latest);
            lopsided(w)
        },
        must: &["bucket split"],
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
        name: "family-create",
        shape: hybrid,
        play: |w| {
            w.puts(0..4, 300, Buffered)?;
            w.create("small")?;
            w.puts_over(&BOTH, 0..4, 300, Os)?;
            w.create("other")?;
            w.puts_over(&ALL_THREE, 2..6, 300, Sync)?;
            w.again()?;
            w.create("plain")?;
            w.puts_over(&["plain"], 0..2, 300, Os)
        },
        must: &["family_created"; 3],
    },
    Workload {
        name: "family-drop",
        shape: hybrid,
        play: |w| {
            w.create("small")?;
            w.create("other")?;
            w.puts_over(&ALL_THREE, 0..8, 300, Os)?;
            w.flush_family("other")?;
            w.puts_over(&ALL_THREE, 4..12, 300, Os)?;
            // One with a table, one whose entries are in the log only; and again by the same name.
            w.drop("other")?;
            w.drop("small")?;
            w.create("small")?;
            w.puts_over(&BOTH, 0..2, 300, Os)?;
            w.again()?;
            w.drop("small")?;
            w.flush_now()
        },
        must: &["family_dropped"; 3],
    },
    Workload {
        name: "batch-over-families",
        shape: hybrid,
        play: |w| {
            w.create("small")?;
            w.create("other")?;
            for durability in [Buffered, Os, Sync, Buffered] {
                w.puts_over(&ALL_THREE, 0..6, 300, durability)?;
                w.puts_over(&BOTH, 3..8, 300, durability)?;
                w.flush_family("small")?;
            }
            w.in_order(Order::Latest);
            w.puts_over(&ALL_THREE, 0..30, 1500, Buffered)?;
            w.settle()
        },
        must: &["flush_end", "flush_end", "log begun"],
    },
    Workload {
        name: "family-keeps-log",
        shape: hybrid,
        play: |w| {
            w.create("small")?;
            w.puts_over(&BOTH, 0..3, 300, Os)?;
            // The log of these is needed until the family is flushed, too.
            rounds(w, 3, 400)?;
            w.settle()?;
            w.run(50);
            w.puts_over(&["small"], 5..6, 300, Sync)?;
            rounds(w, 1, 400)?;
            w.flush_family("small")?;
            w.run(50);
            w.puts(0..2, 300, Os)
        },
        must: &["log begun", "log begun", "log begun", "log begun"],
    },
    Workload {
        name: "lost-log-of-families",
        shape: hybrid,
        play: |w| {
            w.create("small")?;
            w.create("other")?;
            w.puts_over(&BOTH, 0..8, 300, Os)?;
            w.one_sync_fails(0);
            w.puts_over(&ALL_THREE, 6..8, 300, Sync)?;
            w.puts_over(&ALL_THREE, 0..4, 300, Sync)?;
            w.one_sync_fails(0);
            w.sync_now()?;
            w.puts_over(&["other"], 3..6, 300, Os)
        },
        must: &["log_lost", "log_replaced", "log_replaced"],
    },
    Workload {
        name: "values-expire",
        shape: expiring,
        play: |w| {
            w.create("small")?;
            w.create("plain")?;
            for round in 0..4 {
                w.puts_over(&[DEFAULT, "small", "plain"], 0..12, 400, Os)?;
                w.merges(&[DEFAULT, "small"], 12 * round..12 * round + 4)?;
                w.wait(3)?;
                w.puts(8..16, 400, Buffered)?;
                w.flush_family("small")?;
                w.flush_now()?;
                w.look_beneath()?;
            }
            w.again()?;
            w.merges(&[DEFAULT, "small"], 0..4)?;
            w.wait(2)?;
            w.compact_all()?;
            w.look_beneath()?;
            w.puts_over(&[DEFAULT, "small", "plain"], 4..8, 400, Sync)?;
            w.wait(5)
        },
        must: &["expired, and there", "expired, and dropped"],
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
