//! Workloads about compactions: each kind of job, jobs that overtake each other or fail, and buckets.

use lithify::Durability::{Buffered, Os};

#[cfg(feature = "zstd")]
use super::settings::dictionaries;
use super::settings::{
    bucket, bucket_df, df_leveled, df_tiered, hybrid, in_parts, leveled, tiered,
};
use super::{Workload, rounds};
use crate::pump::Order;
use crate::world::World;
use crate::world::script::Told;

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

/// All of them.
pub(super) const ALL: &[Workload] = &[
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
        shape: dictionaries,
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
];
