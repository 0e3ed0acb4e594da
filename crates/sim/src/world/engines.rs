//! The engines that compactions use besides the CPU: one for each thing that is to go wrong.
//!
//! An engine that was caught at a lie gets nothing more while the database is open, and one that broke rests,
//! so the next one has its turn: one database meets all of them, one compaction each.
//!
//! Keeps: sets are so small that a compaction has several, and each is proven. What really happened is a mark,
//! by the database's own count of how the engine's parts ended.

use lithify::engine::mock::{FaultPlan, Lie, MockEngine};
use lithify::engine::{Caps, Carry, Cost, Engine, Recipe, Refusal, Session};
use lithify::{Builder, Db, EngineReport};
use lithify_env::sync::Arc;

use super::World;
use crate::choices::Dice;
use crate::marks::Marks;

/// Input bytes of a set: some blocks.
const SET_BYTES: u64 = 4 << 10;
/// Of blocks, polls and sets the first few.
const PLACES: u32 = 12;

/// What the engines of one database are called.
const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

/// An engine that takes each part, as its prediction is the lowest, and has something go wrong.
struct Machine {
    name: &'static str,
    mock: MockEngine,
}

impl Engine for Machine {
    fn caps(&self) -> Caps {
        let cost = Cost { fixed_ns: 0.0, ns_per_byte: 0.01 };
        Caps { name: self.name, set_bytes: SET_BYTES, prove: 1, cost, ..self.mock.caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.mock.open(recipe)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.mock.resume(recipe, carry)
    }
}

/// Something that goes wrong, at one of the first places where it can.
pub(super) fn any_plan(dice: &Dice) -> FaultPlan {
    let n = dice.choose(PLACES, "where");
    let block = u64::from(n);
    let plans = [
        FaultPlan::None,
        FaultPlan::Late(n),
        FaultPlan::Breaks(n),
        FaultPlan::Hangs,
        FaultPlan::Refuses,
        FaultPlan::WrongByte(block),
        FaultPlan::LostBlock(block),
        FaultPlan::TwiceBlock(block),
        FaultPlan::LostFileCut,
        FaultPlan::LostSetDone(n),
        FaultPlan::SmallSets(block << 8),
        FaultPlan::WrongLedger(1 + block),
        FaultPlan::WrongInput(1 + block),
        FaultPlan::Blames(n),
        FaultPlan::Unsuitable(n),
        FaultPlan::Falsified(*dice.pick(&Lie::RECIPES, "lie")),
        FaultPlan::Falsified(Lie::OtherValue(block)),
    ];
    *dice.pick(&plans, "engine plan")
}

/// Whether what `plan` says happened to an engine that ended so.
fn happened(plan: FaultPlan, report: &EngineReport) -> bool {
    let times = match plan {
        FaultPlan::None | FaultPlan::Late(_) => report.sets,
        FaultPlan::Refuses => report.refusals,
        FaultPlan::SmallSets(_) => report.too_large,
        FaultPlan::Unsuitable(_) => report.unsuitable,
        FaultPlan::Breaks(_) | FaultPlan::Blames(_) => report.failures,
        FaultPlan::Hangs => report.hangs,
        FaultPlan::WrongByte(_)
        | FaultPlan::LostBlock(_)
        | FaultPlan::TwiceBlock(_)
        | FaultPlan::LostFileCut
        | FaultPlan::LostSetDone(_)
        | FaultPlan::WrongLedger(_)
        | FaultPlan::WrongInput(_)
        | FaultPlan::Falsified(_) => report.disproved,
    };
    times > 0
}

/// The mark of a plan that really happened: its name, for a lie the lie's; and that of all lies.
fn note(plan: FaultPlan, marks: &mut Marks) {
    let said = match plan {
        FaultPlan::Falsified(lie) => {
            marks.hit("engine: Falsified");
            format!("{lie:?}")
        }
        other => format!("{other:?}"),
    };
    let name = said.split('(').next().unwrap_or_default();
    marks.hit(&format!("engine: {name}"));
}

impl World {
    /// Names the engines of this life.
    pub(super) fn with_engines(&self, builder: Builder) -> Builder {
        assert!(self.shape.engines.len() <= NAMES.len(), "a name for each engine");
        let machines = self.shape.engines.iter().zip(NAMES);
        machines.fold(builder, |builder, (&plan, name)| {
            builder.engine(Arc::new(Machine { name, mock: MockEngine { plan } }))
        })
    }

    /// Notes which plans happened since the database was opened, at its end.
    pub(super) fn note_engines(&self, db: &Db, marks: &mut Marks) {
        if self.shape.engines.is_empty() {
            return;
        }
        let reports = db.stats().engines;
        let plans = self.shape.engines.iter().zip(&reports);
        plans.filter(|(plan, report)| happened(**plan, report)).for_each(|(p, _)| note(*p, marks));
    }

    /// What this life reached that no log tells, so far.
    pub fn marks(&self) -> Marks {
        let mut marks = self.marks.clone();
        if let Some(opened) = &self.db {
            self.note_engines(opened.db(), &mut marks);
        }
        marks
    }
}
