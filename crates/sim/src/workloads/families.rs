//! Workloads about several column families: their logs, batches over them, and values that expire in some.

use lithify::Durability::{Buffered, Os, Sync};

use super::settings::{expiring, hybrid};
use super::{Workload, rounds};
use crate::model::DEFAULT;
use crate::pump::Order;

/// Families of the workloads about them.
const BOTH: [&str; 2] = [DEFAULT, "small"];
const ALL_THREE: [&str; 3] = [DEFAULT, "small", "other"];

/// All of them.
pub(super) const ALL: &[Workload] = &[
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
];
