//! Workloads about compactions on engines that refuse, break, lie or never answer. Each database has one engine
//! for each thing that goes wrong, which come to their turn one after the other (`world::engines`).

use lithify::Durability::Os;
use lithify::engine::mock::{FaultPlan, Lie};

use super::Workload;
use super::settings::with_engines;
use crate::model::DEFAULT;
use crate::world::World;
use crate::world::script::Told;

/// So many compactions, over values, deletes, operands and range deletes, under a snapshot of before.
fn compactions(w: &mut World, count: u32) -> Told {
    for round in 0..count {
        w.puts(0..12, 700, Os)?;
        // The last two of these have nothing but operands.
        w.merges(&[DEFAULT], 10..14)?;
        w.hold_both()?;
        w.deletes(8..12)?;
        w.delete_range(5..8)?;
        w.flush_now()?;
        w.puts(round % 12..round % 12 + 1, 700, Os)?;
        w.merges(&[DEFAULT], 2..6)?;
        w.compact_all()?;
        w.look_at_all()?;
        w.let_go();
    }
    w.settle()
}

/// All of them.
pub(super) const ALL: &[Workload] = &[
    Workload {
        name: "engine-refuses",
        shape: || with_engines(&[FaultPlan::Refuses]),
        play: |w| compactions(w, 1),
        must: &["engine: Refuses"],
    },
    Workload {
        name: "engine-breaks",
        shape: || with_engines(&[0, 1, 2, 3].map(FaultPlan::Breaks)),
        play: |w| compactions(w, 4),
        must: &["engine: Breaks"; 4],
    },
    // It does not rest: of two compactions both are tried on it, and the third passes it by.
    Workload {
        name: "engine-that-it-does-not-suit",
        shape: || with_engines(&[FaultPlan::Unsuitable(1)]),
        play: |w| compactions(w, 3),
        must: &["engine: Unsuitable"],
    },
    Workload {
        name: "engine-never-answers",
        shape: || with_engines(&[FaultPlan::Hangs]),
        play: |w| compactions(w, 1),
        must: &["engine: Hangs"],
    },
    Workload {
        name: "engine-wrong-bytes",
        shape: || with_engines(&[0, 1, 2].map(FaultPlan::WrongByte)),
        play: |w| compactions(w, 4),
        must: &["engine: WrongByte"; 3],
    },
    Workload {
        name: "engine-found-out-late",
        shape: || with_engines(&[FaultPlan::WrongLedger(1), FaultPlan::LostSetDone(1)]),
        play: |w| compactions(w, 2),
        must: &["engine: WrongLedger", "engine: LostSetDone"],
    },
    Workload {
        name: "engine-falsifies-the-recipe",
        shape: || {
            let lies = [
                Lie::OlderSnapshots,
                Lie::TombstonesForgotten,
                Lie::OtherOperator,
                Lie::OtherValue(2),
            ];
            with_engines(&lies.map(FaultPlan::Falsified))
        },
        play: |w| compactions(w, 4),
        must: &[
            "engine: OlderSnapshots",
            "engine: TombstonesForgotten",
            "engine: OtherOperator",
            "engine: OtherValue",
        ],
    },
];
