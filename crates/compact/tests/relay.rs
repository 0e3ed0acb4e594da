//! Compactions by an engine that refuses, breaks, hangs, lies or is slow, at each point of a job: no job
//! fails, and its files are the CPU's, byte for byte (reliability F17).

mod bad_engines;
mod blame;
mod large_sets;
mod stepped;
mod world;

use lithify_base::{Error, FileId};
use lithify_compact::{Engines, PartEvent};
use lithify_engine::mock::{FaultPlan, Lie, MockEngine};
use lithify_engine::{
    BlockSet, Caps, Carry, Cost, Engine, Item, Offer, Products, Progress, Recipe, Refusal, Session,
};
use lithify_env::Rt;
use lithify_env::sync::{Arc, Mutex};

use world::{Ended, World};

/// Bytes of a set: the job has about fifteen.
const SET: u64 = 16 << 10;

/// An engine of these tests: the mock, with small sets, and a note of what it was told.
struct Device {
    mock: MockEngine,
    name: &'static str,
    cost: Cost,
    prove: u32,
    disowned: Mutex<Vec<String>>,
}

impl Device {
    /// A device of whose sets each is proven.
    fn new(plan: FaultPlan) -> Arc<Device> {
        Device::proven(plan, 1)
    }
    /// A device of whose sets one in so many is proven.
    fn proven(plan: FaultPlan, prove: u32) -> Arc<Device> {
        let cost = Cost { fixed_ns: 0.0, ns_per_byte: 0.1 };
        Arc::new(Device {
            mock: MockEngine { plan },
            name: "device",
            cost,
            prove,
            disowned: Mutex::default(),
        })
    }
}

impl Engine for Device {
    fn caps(&self) -> Caps {
        let Device { name, cost, prove, .. } = *self;
        Caps { name, set_bytes: SET, cost, prove, ..self.mock.caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.mock.open(recipe)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.mock.resume(recipe, carry)
    }
    fn disown(&self, error: &Error) {
        self.disowned.lock().push(error.to_string());
    }
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("answer", 42.0)]
    }
}

/// What the CPU makes of the same inputs.
fn by_cpu(parts: u32) -> Ended {
    let ended = World::new().compact(Vec::new(), parts);
    assert!(ended.outcome.result.is_ok(), "{:?}", ended.outcome);
    assert!(ended.reports.is_empty());
    ended
}

/// The CPU's files, where the first one made has this number: numbers are never used twice, so a part that is
/// done anew has higher ones.
fn by_cpu_from(first: FileId, parts: u32) -> Ended {
    let world = World::new();
    while world.context.peek_next_file() < first {
        world.context.next_file();
    }
    world.compact(Vec::new(), parts)
}

/// A compaction with this engine, which must end in the files `expected`, or in those with later numbers if its
/// part was done anew.
fn with(engine: Arc<dyn Engine>, expected: &Ended, what: &str) -> Ended {
    let ended = World::new().compact(vec![engine], 1);
    let made = ended.outcome.result.as_ref().unwrap_or_else(|e| panic!("{what}: {e}"));
    let twin;
    let expected = match made == expected.outcome.result.as_ref().unwrap() {
        true => expected,
        false => {
            assert_eq!(ended.reports[0].disproved, 1, "{what}: done anew without a lie");
            twin = by_cpu_from(made[0].id, 1);
            &twin
        }
    };
    assert_eq!(made, expected.outcome.result.as_ref().unwrap(), "{what}");
    assert!(ended.files == expected.files, "{what}: other bytes");
    assert_eq!(ended.outcome.work.entries_in, expected.outcome.work.entries_in);
    assert_eq!(ended.progress.0, ended.progress.1, "{what}");
    ended
}

fn under(plan: FaultPlan, expected: &Ended) -> Ended {
    with(Device::new(plan), expected, &format!("{plan:?}"))
}

/// Sets that a device merges if nothing happens to it.
fn sets(expected: &Ended) -> u32 {
    let ended = under(FaultPlan::None, expected);
    assert!(ended.replaced().is_empty());
    let report = &ended.reports[0];
    assert_eq!(
        (report.name, report.parts, &report.machine[..]),
        ("device", 1, &[("answer", 42.0)][..])
    );
    assert!(report.sets > 10 && report.bytes > 10 * SET, "{report:?}");
    report.sets as u32
}

#[test]
fn a_sound_engine_makes_the_cpus_files() {
    let expected = by_cpu(1);
    assert!(expected.outcome.result.as_ref().unwrap().len() > 2, "several files");
    assert!(expected.events.is_empty(), "the CPU alone is not worth a note");
    sets(&expected);
}

#[test]
fn a_refusal_ends_in_the_cpus_files() {
    let ended = under(FaultPlan::Refuses, &by_cpu(1));
    assert_eq!(ended.replaced(), ["refused: engine device refused: the mock refuses"]);
    assert_eq!((ended.reports[0].refusals, ended.reports[0].sets), (1, 0));
}

/// At every poll of a job the engine says that what it has does not suit it: the CPU goes on, and the engine is tried
/// again at once, unless that was so over most of two parts.
#[test]
fn what_does_not_suit_the_engine_is_the_cpus() {
    let expected = by_cpu(1);
    let all = u64::from(sets(&expected));
    let mut merged = Vec::new();
    for n in 0.. {
        let ended = under(FaultPlan::Unsuitable(n), &expected);
        let report = &ended.reports[0];
        assert_eq!((report.failures, report.disproved, report.unanswered), (0, 0, 0), "{report:?}");
        merged.push(report.sets);
        if report.unsuitable == 0 {
            break;
        }
        assert_eq!(report.unsuitable, 1);
        assert_eq!(ended.replaced(), ["unsuitable: the mock does not merge such entries"]);
    }
    merged.dedup();
    assert_eq!(merged, (0..=all).collect::<Vec<_>>());

    let device: Arc<dyn Engine> = Device::new(FaultPlan::Unsuitable(0));
    let engines = Arc::new(Engines::new(vec![device], 0));
    let mut parts = Vec::new();
    for _ in 0..7 {
        let ended = World::new().compact_by(&engines, 1);
        assert!(ended.outcome.result.is_ok() && ended.files == expected.files);
        parts.push(ended.reports[0].parts);
    }
    assert_eq!(parts, [1, 2, 2, 3, 3, 3, 3], "it rests by no clock");
}

/// The engine breaks, or says that the input is bad, at every poll of a job.
#[test]
fn a_break_at_any_poll_ends_in_the_cpus_files() {
    let expected = by_cpu(1);
    let sets = u64::from(sets(&expected));
    for plan in [FaultPlan::Breaks, FaultPlan::Blames] {
        let mut merged = Vec::new();
        for n in 0.. {
            let ended = under(plan(n), &expected);
            let report = &ended.reports[0];
            assert_eq!(report.disproved, 0);
            merged.push(report.sets);
            if report.failures == 0 {
                break;
            }
        }
        // It broke before and after each set, and after the last before the end.
        merged.dedup();
        assert_eq!(merged, (0..=sets).collect::<Vec<_>>());
    }
}

#[test]
fn a_wrong_byte_in_any_block_ends_in_the_cpus_files() {
    let expected = by_cpu(1);
    let mut found = 0;
    for n in 0.. {
        let ended = under(FaultPlan::WrongByte(n), &expected);
        if ended.replaced().is_empty() {
            break;
        }
        assert_eq!(ended.reports[0].disproved, 1);
        found += 1;
    }
    assert!(found > 100, "{found} blocks");
}

#[test]
fn lost_and_doubled_blocks_end_in_the_cpus_files() {
    let expected = by_cpu(1);
    for n in (0..100).step_by(9) {
        for plan in [FaultPlan::LostBlock(n), FaultPlan::TwiceBlock(n)] {
            let ended = under(plan, &expected);
            assert_eq!(ended.reports[0].disproved, 1, "{plan:?}");
        }
    }
    let ended = under(FaultPlan::LostFileCut, &expected);
    assert_eq!(ended.reports[0].disproved, 1);
}

/// A batch that ends in the middle of a set is a lie, whichever set it is.
#[test]
fn a_batch_without_the_end_of_its_set_is_refused() {
    let expected = by_cpu(1);
    for n in 0..sets(&expected) {
        let ended = under(FaultPlan::LostSetDone(n), &expected);
        assert_eq!(ended.reports[0].disproved, 1);
        assert_eq!(ended.reports[0].sets, u64::from(n));
    }
}

#[test]
fn a_late_engine_is_waited_for() {
    let expected = by_cpu(1);
    let ended = under(FaultPlan::Late(1000), &expected);
    assert!(ended.replaced().is_empty());
    assert_eq!(ended.reports[0].sets, u64::from(sets(&expected)));
}

/// It is waited for on its ticket, without spinning: a few looks each second, and two seconds and ten times what it
/// predicted, which is 0.1 ns a byte, later the CPU goes on.
#[test]
fn an_engine_that_never_answers_is_given_up() {
    let expected = by_cpu(1);
    let world = World::new();
    let (steps, began) = (world.rt.steps(), world.rt.now());
    let ended = world.compact(vec![Device::new(FaultPlan::Hangs)], 1);
    assert!(ended.files == expected.files);
    assert!(ended.outcome.result.is_ok());
    assert_eq!(ended.reports[0].hangs, 1);
    assert!(ended.replaced()[0].starts_with("hangs: silent for 2"), "{:?}", ended.replaced());
    let took = world.rt.now().since(began);
    assert!((2.0..4.1).contains(&took.as_secs_f64()), "{took:?}");
    assert!(world.rt.steps() - steps < 2000);
}

#[test]
fn a_set_too_large_for_the_engine_goes_to_the_cpu() {
    let expected = by_cpu(1);
    let ended = under(FaultPlan::SmallSets(1000), &expected);
    assert_eq!((ended.reports[0].too_large, ended.reports[0].failures), (1, 0));
    let ended = under(FaultPlan::SmallSets(4 * SET), &expected);
    assert!(ended.replaced().is_empty());
}

/// A ledger that does not fit comes at the end, when no carry can be believed any more: the whole part is done
/// anew, and no file of the first attempt stays.
#[test]
fn a_lie_at_the_end_has_the_part_done_anew() {
    let expected = by_cpu(1);
    let device = Device::proven(FaultPlan::WrongLedger(1), u32::MAX);
    let ended = with(device.clone(), &expected, "a wrong ledger");
    assert_eq!(device.disowned.lock().len(), 1);
    assert_eq!(ended.reports[0].disproved, 1);
    assert_ne!(ended.outcome.result.unwrap(), expected.outcome.result.unwrap(), "it was done anew");
    assert_eq!(ended.files.len(), expected.files.len());
}

/// A ledger that fits in itself, but not to what the inputs hold, by number or by weight: all parts are done
/// again, without the engine.
#[test]
fn a_lie_about_the_input_has_all_parts_done_again() {
    let plans = [FaultPlan::WrongInput(5), FaultPlan::Falsified(Lie::OtherValue(0))];
    for (parts, plan) in [1, 4].into_iter().flat_map(|parts| plans.map(|plan| (parts, plan))) {
        let device = Device::proven(plan, u32::MAX);
        let ended = World::new().compact(vec![device.clone()], parts);
        let made = ended.outcome.result.unwrap_or_else(|e| panic!("{parts} parts: {e}"));
        let expected = by_cpu_from(made[0].id, parts);
        assert!(made[0].id > by_cpu(parts).outcome.result.unwrap()[0].id, "done again");
        assert_eq!(made, expected.outcome.result.unwrap());
        assert!(ended.files == expected.files);
        assert_eq!(ended.outcome.work.entries_in, expected.outcome.work.entries_in);
        assert!(!device.disowned.lock().is_empty() && ended.reports[0].disproved > 0);
    }
}

/// Output that is consistent in itself, and of another recipe or other values: every set is merged again.
#[test]
fn a_falsified_recipe_ends_in_the_cpus_files() {
    let expected = by_cpu(1);
    let mut disproved = 0;
    for lie in Lie::RECIPES.into_iter().chain((0..20).map(Lie::OtherValue)) {
        disproved += under(FaultPlan::Falsified(lie), &expected).reports[0].disproved;
    }
    assert!(disproved >= 15, "{disproved}");
}

/// A lie that is found late says nothing good of the sets before it, which were not proven.
#[test]
fn a_lie_that_is_found_in_a_sample_has_the_part_done_anew() {
    let expected = by_cpu(1);
    let device = Device::proven(FaultPlan::Falsified(Lie::TombstonesForgotten), 4);
    let ended = with(device.clone(), &expected, "a sampled lie");
    assert_eq!((ended.reports[0].disproved, device.disowned.lock().len()), (1, 1));
}

/// Only an engine that was disproved is told so, with the reason.
#[test]
fn disproved_engines_are_disowned() {
    for (plan, times) in [
        (FaultPlan::None, 0),
        (FaultPlan::Breaks(3), 0),
        (FaultPlan::Hangs, 0),
        (FaultPlan::Refuses, 0),
        (FaultPlan::WrongByte(20), 1),
        (FaultPlan::LostSetDone(2), 1),
    ] {
        let device = Device::new(plan);
        let ended = World::new().compact(vec![device.clone()], 1);
        let told = device.disowned.lock().clone();
        assert_eq!(told.len(), times, "{plan:?}");
        assert!(told.iter().all(|e| e.contains("refused")), "{told:?}");
        assert_eq!(ended.reports[0].disproved as usize, times);
    }
}

/// Parts go to engines one by one; a disproved one gets no more of them.
#[test]
fn parts_are_routed_one_by_one() {
    let expected = by_cpu(4);
    let liar = World::new().compact(vec![Device::new(FaultPlan::WrongByte(0))], 4);
    assert!(liar.files == expected.files && liar.outcome.result.is_ok());
    assert_eq!((liar.reports[0].parts, liar.reports[0].disproved), (1, 1));

    let second = Arc::new(Device {
        mock: MockEngine { plan: FaultPlan::None },
        name: "second",
        cost: Cost { fixed_ns: 0.0, ns_per_byte: 0.2 },
        prove: 1,
        disowned: Mutex::default(),
    });
    let engines: Vec<Arc<dyn Engine>> = vec![Device::new(FaultPlan::Breaks(1)), second];
    let both = World::new().compact(engines, 4);
    assert!(both.files == expected.files && both.outcome.result.is_ok());
    let parts: Vec<u64> = both.reports.iter().map(|r| r.parts).collect();
    assert_eq!(parts, [1, 3], "the first rests, and the second has the others");
    let routed = both.events.iter().filter(|e| matches!(e, PartEvent::Routed { .. }));
    assert_eq!(routed.count(), 4);
}

/// A machine that panics is a machine that failed.
struct Panics(u32);
struct PanicSession(Box<dyn Session>, u32);

impl Engine for Panics {
    fn caps(&self) -> Caps {
        Caps { name: "panics", ..Device::new(FaultPlan::None).caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        if self.0 == 0 {
            std::panic::resume_unwind(Box::new("in open"));
        }
        let inner = MockEngine { plan: FaultPlan::None }.open(recipe)?;
        Ok(Box::new(PanicSession(inner, self.0)))
    }
}

impl Session for PanicSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.0.offer(set)
    }
    fn seal(&mut self) {
        self.0.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        let progress = self.0.poll(out);
        self.1 -= 1;
        if self.1 == 0 {
            std::panic::resume_unwind(Box::new("in poll"));
        }
        progress
    }
    fn cancel(self: Box<Self>) {
        std::panic::resume_unwind(Box::new("in cancel"));
    }
}

#[test]
fn a_panic_of_an_engine_ends_in_the_cpus_files() {
    let expected = by_cpu(1);
    for at in 0..6 {
        let ended = with(Arc::new(Panics(at)), &expected, "a panic");
        assert_eq!(ended.reports[0].failures, 1);
    }
}

/// An engine whose carry is not the one of its output: of the set before.
struct OldCarry;
struct OldCarrySession(Box<dyn Session>, Option<Box<Carry>>);

impl Engine for OldCarry {
    fn caps(&self) -> Caps {
        Caps { name: "old carry", ..Device::proven(FaultPlan::None, u32::MAX).caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let inner = MockEngine { plan: FaultPlan::Breaks(4) }.open(recipe)?;
        Ok(Box::new(OldCarrySession(inner, None)))
    }
}

impl Session for OldCarrySession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.0.offer(set)
    }
    fn seal(&mut self) {
        self.0.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        let progress = self.0.poll(out);
        let mut items = out.items().to_vec();
        for item in &mut items {
            if let Item::SetDone(done) = item {
                let carry = done.carry.clone();
                if let Some(old) = self.1.replace(carry) {
                    done.carry = old;
                }
            }
        }
        out.set_items(items);
        progress
    }
    fn cancel(self: Box<Self>) {
        self.0.cancel();
    }
}

/// What the CPU makes of a wrong carry is refused, and then nothing of the engine is believed.
#[test]
fn a_wrong_carry_has_the_part_done_anew() {
    let ended = with(Arc::new(OldCarry), &by_cpu(1), "a wrong carry");
    assert_eq!(ended.reports[0].disproved, 1);
}
