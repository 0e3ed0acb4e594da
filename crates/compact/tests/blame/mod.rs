//! Who is to blame: an engine whose carry lies, a table that is damaged, or the user's own code. And what an engine
//! that does not let go of its sets gets next.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;

use lithify_base::{CompactionFilter, Comparator, ComparatorRef, Decision, FilterContext};
use lithify_compact::{EngineReport, Engines};
use lithify_env::sync::atomic::{AtomicU32, Ordering::SeqCst};
use lithify_env::{Fs, OpenOpts, Ticket};

use super::*;

/// An engine that breaks after three sets; the carry of the last one is that of the set behind it.
struct FarCarry(Arc<Device>);
struct FarCarrySession {
    inner: Box<dyn Session>,
    /// Is a set further on.
    ahead: Box<dyn Session>,
    sets: u32,
    polls: u32,
}

impl Engine for FarCarry {
    fn caps(&self) -> Caps {
        self.0.caps()
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let sound = MockEngine { plan: FaultPlan::None };
        let (inner, ahead) = (self.0.open(recipe.clone())?, sound.open(recipe)?);
        Ok(Box::new(FarCarrySession { inner, ahead, sets: 0, polls: 0 }))
    }
    fn disown(&self, error: &Error) {
        self.0.disown(error);
    }
}

impl Session for FarCarrySession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        let copy = set.clone();
        let offer = self.inner.offer(set);
        if matches!(offer, Offer::Taken) {
            assert!(matches!(self.ahead.offer(copy), Offer::Taken));
            self.sets += 1;
        }
        offer
    }
    fn seal(&mut self) {
        self.inner.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        // Until it lies, the other one is to have a set more than it gives.
        if self.polls < 3 && self.sets < self.polls + 2 {
            return Progress::Pending(Ticket::completed());
        }
        let mut far = Products::default();
        if self.polls == 0 {
            self.ahead.poll(&mut far);
        }
        self.polls += 1;
        self.ahead.poll(&mut far);
        let progress = self.inner.poll(out);
        let carry = |out: &Products| {
            out.items().iter().find_map(|item| match item {
                Item::SetDone(done) => Some(done.carry.clone()),
                _ => None,
            })
        };
        if self.polls == 3
            && let Some(carry) = carry(&far)
        {
            let mut items = out.items().to_vec();
            for item in &mut items {
                if let Item::SetDone(done) = item {
                    done.carry = carry.clone();
                }
            }
            out.set_items(items);
        }
        progress
    }
    fn cancel(self: Box<Self>) {
        self.inner.cancel();
    }
}

/// From a carry that lies the CPU finds keys in disorder, which looks like a damaged table. It is not: the CPU
/// does the part from its beginning, and then the engine is disowned.
#[test]
fn a_lying_carry_is_not_blamed_on_the_tables() {
    let device = Device::proven(FaultPlan::Breaks(3), u32::MAX);
    let ended = with(Arc::new(FarCarry(device.clone())), &by_cpu(1), "a far carry");
    let [broke, doubt, disproved] = ended.replaced()[..] else { panic!("{:?}", ended.replaced()) };
    assert!(broke.starts_with("failed: the mock broke down"), "{broke}");
    assert!(doubt.starts_with("in doubt: "), "{doubt}");
    assert!(disproved.starts_with("disproved: "), "{disproved}");
    assert_eq!((ended.reports[0].disproved, device.disowned.lock().len()), (1, 1));
}

/// If the CPU fails from the beginning as well, the table is damaged, and the engine did nothing wrong.
#[test]
fn a_damaged_table_is_not_blamed_on_the_engine() {
    for plan in [FaultPlan::Breaks(3), FaultPlan::None] {
        let world = World::new();
        let table = world.version.files().next().unwrap().id.0;
        let file = world.fs.open(Path::new(&format!("/db/{table:06}.sst")), OpenOpts::write());
        file.unwrap().write_at(&[0xaa; 16], 60_000).unwrap();
        let device = Device::proven(plan, u32::MAX);
        let ended = world.compact(vec![device.clone()], 1);
        let error = ended.outcome.result.unwrap_err();
        assert!(error.is_corruption(), "{error}");
        assert_eq!(*device.disowned.lock(), [""; 0]);
        assert_eq!((ended.reports[0].disproved, ended.reports[0].failures), (0, 1));
    }
}

/// Byte order that panics so many times once it is told to.
#[derive(Default)]
struct Armed(AtomicU32);

impl Comparator for Armed {
    fn name(&self) -> &'static str {
        "test.armed"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let left = self.0.load(SeqCst);
        if left > 0 {
            self.0.store(left - 1, SeqCst);
            resume_unwind(Box::new("in the user's comparator"));
        }
        a.cmp(b)
    }
    fn equal_is_identical(&self) -> bool {
        true
    }
}

/// A sound engine that arms the comparator when it hands out its fourth set.
struct Arms {
    device: Arc<Device>,
    order: Arc<Armed>,
    times: u32,
}
struct ArmsSession(Box<dyn Session>, Arc<Armed>, u32, u32);

impl Engine for Arms {
    fn caps(&self) -> Caps {
        self.device.caps()
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let inner = self.device.open(recipe)?;
        Ok(Box::new(ArmsSession(inner, self.order.clone(), self.times, 0)))
    }
    fn disown(&self, error: &Error) {
        self.device.disown(error);
    }
}

impl Session for ArmsSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.0.offer(set)
    }
    fn seal(&mut self) {
        self.0.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        let progress = self.0.poll(out);
        self.3 += 1;
        if self.3 == 5 {
            self.1.0.store(self.2, SeqCst);
        }
        progress
    }
    fn cancel(self: Box<Self>) {
        self.0.cancel();
    }
}

/// A compaction by a sound engine, over an order of keys that panics so many times: whether the job came to
/// an end, what the engine did, how many times it was disowned.
fn armed(times: u32, prove: u32) -> (Option<Ended>, EngineReport, usize) {
    let order = Arc::new(Armed::default());
    let world = World::filled(order.clone() as ComparatorRef);
    let device = Device::proven(FaultPlan::None, prove);
    let engine = Arms { device: device.clone(), order: order.clone(), times };
    let engines = Arc::new(Engines::new(vec![Arc::new(engine)], 0));
    let ended = catch_unwind(AssertUnwindSafe(|| world.compact_by(&engines, 1))).ok();
    order.0.store(0, SeqCst);
    let disowned = device.disowned.lock().len();
    (ended, engines.reports().remove(0), disowned)
}

/// The user's code panics for good: the job fails as it does without an engine, which is not called a liar.
#[test]
fn a_panic_of_the_users_code_fails_the_job() {
    for prove in [1, 2, u32::MAX] {
        let (ended, report, disowned) = armed(u32::MAX, prove);
        assert!(ended.is_none(), "the panic is the job's, 1 in {prove}");
        assert_eq!((report.disproved, report.failures, disowned), (0, 1, 0), "1 in {prove}");
    }
}

/// It panics once: the CPU makes the same files, and the engine is not called a liar.
#[test]
fn a_passing_panic_of_the_users_code_is_no_lie() {
    for prove in [1, 2, u32::MAX] {
        let (ended, report, disowned) = armed(1, prove);
        let ended = ended.expect("the job goes on");
        let made = ended.outcome.result.unwrap();
        let twin = World::filled(Arc::new(Armed::default()));
        while twin.context.peek_next_file() < made[0].id {
            twin.context.next_file();
        }
        let expected = twin.compact(Vec::new(), 1);
        assert_eq!(made, expected.outcome.result.unwrap());
        assert!(ended.files == expected.files);
        assert_eq!((report.disproved, report.failures, disowned), (0, 1, 0), "1 in {prove}");
    }
}

/// Keeps every other value it is asked about: not by its arguments, as it should.
#[derive(Default)]
struct Fickle(AtomicU32);

impl CompactionFilter for Fickle {
    fn name(&self) -> &str {
        "fickle"
    }
    fn filter<'a>(&self, _: &FilterContext, _: &[u8], _: &'a [u8]) -> Decision<'a> {
        match self.0.fetch_add(1, SeqCst) % 2 {
            0 => Decision::Keep,
            _ => Decision::Remove,
        }
    }
}

/// Nothing that another engine makes of a filter's answers could be proven, so only the CPU asks it.
#[test]
fn a_compaction_filter_is_asked_by_the_cpu_alone() {
    let fickle = || {
        let mut world = World::new();
        let context = Arc::get_mut(&mut world.context).expect("its own");
        context.filter = Some(Arc::new(Fickle::default()));
        world
    };
    let device = Device::new(FaultPlan::None);
    let ended = fickle().compact(vec![device.clone()], 1);
    let expected = fickle().compact(Vec::new(), 1);
    assert_eq!(ended.outcome.result.unwrap(), expected.outcome.result.unwrap());
    assert!(ended.files == expected.files);
    assert_eq!((ended.reports[0].parts, device.disowned.lock().len()), (0, 0));
}

/// A machine that never answers, and leaves its sets in memory that it may still read, until it is told.
struct Clings {
    kept: Arc<Mutex<Vec<BlockSet>>>,
    ticket: Ticket,
}
struct ClingsSession {
    kept: Arc<Mutex<Vec<BlockSet>>>,
    ticket: Ticket,
}

impl Engine for Clings {
    fn caps(&self) -> Caps {
        Device::new(FaultPlan::None).caps()
    }
    fn open(&self, _: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let (kept, ticket) = (self.kept.clone(), self.ticket.clone());
        Ok(Box::new(ClingsSession { kept, ticket }))
    }
}

impl Session for ClingsSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.kept.lock().push(set);
        Offer::Taken
    }
    fn seal(&mut self) {}
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        match self.ticket.is_done() {
            true => Progress::More,
            false => Progress::Pending(self.ticket.clone()),
        }
    }
    fn cancel(self: Box<Self>) {}
}

/// However long ago it hung, an engine gets no other part before it has answered and released its sets: so what
/// it holds is what it held once.
#[test]
fn an_engine_that_hangs_gets_nothing_before_it_lets_go() {
    let (kept, ticket) = (Arc::default(), Ticket::new());
    let engine = Clings { kept: Arc::clone(&kept), ticket: ticket.clone() };
    let engines = Arc::new(Engines::new(vec![Arc::new(engine)], 1 << 20));
    let world = World::new();
    let compact = || {
        world.rt.pass(Duration::from_secs(24 * 3600));
        assert!(world.compact_by(&engines, 1).outcome.result.is_ok());
        engines.reports().remove(0)
    };
    let report = compact();
    assert_eq!((report.parts, report.hangs, report.unanswered), (1, 1, 1));
    let (held, in_use) = (report.held_bytes, world.context.buffers.in_use() as u64);
    assert!(held > SET && held == in_use, "{held} held, {in_use} in use");
    for _ in 0..3 {
        let report = compact();
        assert_eq!((report.parts, report.unanswered, report.held_bytes), (1, 1, held));
    }
    ticket.complete();
    assert_eq!(compact().parts, 1, "it answered, and still holds its sets");
    kept.lock().clear();
    let report = engines.reports().remove(0);
    assert_eq!((report.unanswered, report.held_bytes), (0, 0));
    assert_eq!(compact().parts, 2);
}

/// One that released everything, and never answered, may still be at it.
#[test]
fn an_engine_that_never_answers_gets_one_part() {
    let engines = Arc::new(Engines::new(vec![Device::new(FaultPlan::Hangs)], 0));
    let world = World::new();
    for _ in 0..3 {
        world.rt.pass(Duration::from_secs(24 * 3600));
        assert!(world.compact_by(&engines, 1).outcome.result.is_ok());
        let report = engines.reports().remove(0);
        assert_eq!((report.parts, report.hangs, report.unanswered), (1, 1, 1));
        assert_eq!(report.held_bytes, 0);
    }
}
