//! Metamorphic runs: one plan of a client, carried out by a map and by databases that are run in every
//! way there is; each answer must be the same (contract P4, P6; faults F1, F5 by the way).
//!
//! The client puts, merges, deletes, singly too, reads in all ways, keeps snapshots and iterators, and has
//! transactions of both kinds that others get in the way of. What varies: the policy and the order of commits, sizes of memtables, files and blocks down to
//! one entry, buckets, codecs, filters and the prefixes in them, settings of column families, cache,
//! durability, jobs at once and their order, flushes and compactions that the plan did not ask for, and restarts,
//! kills and moves into a checkpoint anywhere. Every database is looked through by `verify` in the end.
//!
//! Everything runs on one thread per plan, on the simulation's pump, so a seed does the same
//! again. `METAMORPHIC_SEED` (1) is the first seed, `METAMORPHIC_PLANS` (32) how many there are,
//! `METAMORPHIC_OPS` (1,000) operations each, `METAMORPHIC_VARIANTS` (8) of each. What fails is
//! shortened to the operations that matter and printed.
//!
//! ```text
//! METAMORPHIC_PLANS=1000 cargo test --profile sim -p lithify-sim --test metamorphic -- --nocapture
//! ```
#![allow(unreachable_pub, reason = "the modules of a test are its own")]

mod database;
mod operator;
mod plan;
mod settings;
mod subject;
mod transaction;
mod variant;

#[path = "../../../db/tests/common/image.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod image;

use std::panic::{AssertUnwindSafe, catch_unwind};

use database::Database;
use lithify::Policy;
use lithify_env::panic_message;
use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_sim::marks::Marks;
use plan::{Change, Op, Operators, Plan};
use subject::{Answer, Map, Subject};
use variant::Variant;

/// Runs that a search for a shorter plan may take.
const SHRINK_RUNS: u32 = 600;

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} = `{text}` is not a number"))
    })
}

/// What the runs must have met, or they would prove little.
const REQUIRED: [&str; 17] = [
    "a conflict at a commit",
    "a conflict found in a table",
    "a conflict with a snapshot",
    "a lock in the way",
    "a single deletion",
    "a table left out by its filter of prefixes",
    "a transaction rolled back",
    "a transaction that wrote to a named family",
    "an operand for a user's operator",
    "an operand for add",
    "an operand for append",
    "an operand for max",
    "an optimistic transaction committed",
    "a pessimistic transaction committed",
    "operands combined in a job by a user's operator",
    "operands combined with a value by a user's operator",
    "writes taken back to a savepoint",
];

/// The answers of `subject` next to those of a map.
fn compare(operators: Operators, ops: &[Op], subject: &mut dyn Subject) -> Result<(), String> {
    let mut map = Map::new(operators);
    for (at, op) in ops.iter().enumerate() {
        let expected = map.apply(op)?;
        let found = subject.apply(op).map_err(|e| format!("operation {at}, {op:?}: {e}"))?;
        if found != expected {
            return Err(difference(at, op, &found, &expected));
        }
    }
    Ok(())
}

fn difference(at: usize, op: &Op, found: &Answer, expected: &Answer) -> String {
    let (found, expected) = (found.brief(), expected.brief());
    format!("operation {at}, {op:?}, answers {found}, and should answer {expected}")
}

/// One life of a database, and what it met; a panic is a failure like any other.
fn live(operators: Operators, ops: &[Op], variant: &Variant) -> Result<Marks, String> {
    let story = || {
        let mut database = Database::new(variant, operators)?;
        compare(operators, ops, &mut database)?;
        database.end()
    };
    let lived = catch_unwind(AssertUnwindSafe(story));
    lived.unwrap_or_else(|payload| Err(format!("panic: {}", panic_message(&*payload))))
}

/// The shortest list of operations found that still `fails`: pieces are cut out, large ones first.
fn shrink(ops: &[Op], fails: impl Fn(&[Op]) -> bool) -> Vec<Op> {
    let mut ops = ops.to_vec();
    let mut piece = ops.len().div_ceil(2);
    let mut runs = 0;
    while piece > 0 && runs < SHRINK_RUNS {
        let mut at = 0;
        let before = ops.len();
        while at < ops.len() && runs < SHRINK_RUNS {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + piece).min(ops.len()));
            runs += 1;
            if fails(&fewer) { ops = fewer } else { at += piece }
        }
        if piece > 1 || ops.len() == before {
            piece /= 2;
        }
    }
    ops
}

fn story(seed: u64, index: u64, variant: &Variant, plan: &Plan) -> String {
    let what = match live(plan.operators, &plan.ops, variant) {
        Ok(_) => return format!("seed {seed}, variant {index}: failed once and then not again"),
        Err(what) => what,
    };
    let short = shrink(&plan.ops, |ops| live(plan.operators, ops, variant).is_err());
    let after = live(plan.operators, &short, variant).err().unwrap_or_default();
    let list: String = short.iter().map(|op| format!("    {op:?}\n")).collect();
    format!(
        "METAMORPHIC_SEED={seed}, variant {index}: {what}\n  {variant}, operators {:?}\n  {} of {} \
         operations are enough:\n{list}  {after}",
        plan.operators,
        short.len(),
        plan.ops.len()
    )
}

#[test]
fn every_variant_answers_alike() {
    let first = number_from("METAMORPHIC_SEED", 1);
    let plans = number_from("METAMORPHIC_PLANS", 32);
    let count = number_from("METAMORPHIC_OPS", 1000) as usize;
    let variants = number_from("METAMORPHIC_VARIANTS", 8);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    let seen: Mutex<Marks> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + plans || !failures.lock().is_empty() {
                        return;
                    }
                    let plan = Plan::new(seed, count);
                    for index in 0..variants {
                        let variant = Variant::new(seed, index);
                        match live(plan.operators, &plan.ops, &variant) {
                            Ok(met) => seen.lock().add(&met),
                            Err(_) => failures.lock().push(story(seed, index, &variant, &plan)),
                        }
                    }
                }
            });
        }
    });
    let (failures, seen) = (failures.into_inner(), seen.into_inner());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{plans} plans of {count} operations, {variants} variants each:\n{seen}");
    let policies = Policy::EVERY.map(|policy| format!("policy {}", policy.name()));
    let restarts = ["Close", "Kill", "Copy"].map(|by| format!("restart by {by}"));
    let wanted = REQUIRED.map(str::to_owned).into_iter().chain(policies).chain(restarts);
    let missed: Vec<String> = wanted.filter(|mark| seen.count(mark) == 0).collect();
    assert!(plans * variants < 128 || count < 500 || missed.is_empty(), "never met: {missed:?}");
}

/// The same seed does the same, or a failure could not be seen again.
#[test]
fn the_same_variant_does_the_same() {
    let plan = Plan::new(3, 400);
    for index in 0..4 {
        let variant = Variant::new(3, index);
        let [a, b] = [(), ()].map(|()| {
            let mut database = Database::new(&variant, plan.operators).unwrap();
            compare(plan.operators, &plan.ops, &mut database).unwrap();
            database.trace()
        });
        assert_eq!(a, b, "{variant}");
    }
}

/// A map that is wrong in one small way.
struct Liar {
    map: Map,
    deletes: u32,
}

impl Subject for Liar {
    fn apply(&mut self, op: &Op) -> Result<Answer, String> {
        let op = match op {
            // Every third batch deletes one key too many.
            Op::Write(changes) if changes.len() > 1 => {
                self.deletes += 1;
                let mut changes = changes.clone();
                if self.deletes.is_multiple_of(3)
                    && let Some(Change::DeleteRange(_, to)) =
                        changes.iter_mut().find(|c| matches!(c, Change::DeleteRange(..)))
                {
                    *to += 1;
                }
                Op::Write(changes)
            }
            other => other.clone(),
        };
        self.map.apply(&op)
    }
}

/// The comparison finds what is wrong, and says it in few operations.
#[test]
fn a_liar_is_found_and_its_plan_is_short() {
    let plan = Plan::new(2, 1000);
    let lies = |ops: &[Op]| {
        let mut liar = Liar { map: Map::new(plan.operators), deletes: 0 };
        compare(plan.operators, ops, &mut liar).err()
    };
    assert!(lies(&plan.ops).is_some());
    let short = shrink(&plan.ops, |ops| lies(ops).is_some());
    // Three batches, something that was there, and a look.
    assert!(short.len() <= 5, "{short:#?}");
    assert!(lies(&short).is_some());
}
