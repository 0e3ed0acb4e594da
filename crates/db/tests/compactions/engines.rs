//! Databases whose compactions run on an engine that refuses, breaks, hangs or lies: they hold what a model
//! holds, no job fails, and the event log says what happened (reliability F17).

use std::path::Path;
use std::sync::Arc;

use crate::common::{Content, scan, tiny};
use lithify::engine::mock::{FaultPlan, Lie, MockEngine};
use lithify::engine::{Caps, Carry, Engine, Recipe, Refusal, Session};
use lithify::verify::verify;
use lithify::{Builder, Db, EngineReport, Policy, Settings};
use lithify_env::{Env, Fs, MemFs, OpenOpts, OsRt, RtOptions, read_full_at};

fn settings() -> Settings {
    let mut s = tiny();
    s.policy = Some(Policy::Hybrid);
    s.file_bytes = 16 << 10;
    s.max_subcompactions = 2;
    s.compaction_threads = 2;
    s
}

/// The mock with small sets, so that jobs of a small database have several.
struct SmallSets(MockEngine);

impl Engine for SmallSets {
    fn caps(&self) -> Caps {
        Caps { set_bytes: 8 << 10, ..self.0.caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.0.open(recipe)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.0.resume(recipe, carry)
    }
}

/// A database that lives for a while.
struct Life {
    fs: MemFs,
    plan: FaultPlan,
    model: Content,
    rng: fastrand::Rng,
}

impl Life {
    fn new(plan: FaultPlan) -> Life {
        Life { fs: MemFs::new(), plan, model: Content::new(), rng: fastrand::Rng::with_seed(7) }
    }

    fn open(&self) -> Db {
        let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 2, ..RtOptions::default() }));
        let env = Env { fs: Arc::new(self.fs.clone()), rt };
        let engine = Arc::new(SmallSets(MockEngine { plan: self.plan }));
        Builder::new(settings()).env(env).engine(engine).open("/db").unwrap()
    }

    fn write(&mut self, db: &Db) {
        for _ in 0..500 {
            let n = self.rng.u32(0..900);
            let key = format!("key{n:05}").into_bytes();
            match self.rng.u8(0..40) {
                0..30 => {
                    let value = vec![self.rng.u8(..); self.rng.usize(0..400)];
                    db.put(&key, &value).unwrap();
                    self.model.insert(key, value);
                }
                30..39 => {
                    db.delete(&key).unwrap();
                    self.model.remove(&key);
                }
                _ => {
                    let end = format!("key{:05}", n + 40).into_bytes();
                    db.delete_range(&key, &end).unwrap();
                    self.model.retain(|k, _| *k < key || *k >= end);
                }
            }
        }
        db.flush().unwrap();
    }

    /// Writes, compacts and reads over two opens; what the engine did in the first.
    fn run(&mut self) -> EngineReport {
        let plan = self.plan;
        let db = self.open();
        for _ in 0..4 {
            self.write(&db);
            assert_eq!(scan(&db).unwrap(), self.model, "{plan:?}");
        }
        // Each of the two takes something down, whenever threads run.
        db.compact_range(None, None).unwrap();
        let (held, then) = (db.snapshot(), self.model.clone());
        self.write(&db);
        db.compact_range(None, None).unwrap();
        assert_eq!(scan(&db).unwrap(), self.model, "{plan:?}");
        let mut iter = db.iter_opt(&lithify::ReadOptions::at(&held)).unwrap();
        assert_eq!(crate::common::shown(&mut iter).unwrap(), then, "{plan:?}");
        drop((iter, held));
        let stats = db.stats();
        assert_eq!(stats.counts.job_failures, 0, "{plan:?}");
        assert!(stats.counts.compactions > 0);
        let [report] = &stats.engines[..] else { panic!("{:?}", stats.engines) };
        let report = report.clone();
        assert!(stats.to_string().contains("engine mock: "), "{stats}");
        db.close().unwrap();

        let db = self.open();
        assert_eq!(scan(&db).unwrap(), self.model, "{plan:?}: after an open");
        db.close().unwrap();
        let found = verify(Arc::new(self.fs.clone()), "/db", None, &mut |_| {}).unwrap();
        assert!(found.is_clean(), "{plan:?}: {:?}", found.findings);
        report
    }

    fn events(&self) -> String {
        let file = self.fs.open(Path::new("/db/EVENTS"), OpenOpts::read()).unwrap();
        let mut text = vec![0; file.len().unwrap() as usize];
        read_full_at(&*file, &mut text, 0).unwrap();
        String::from_utf8(text).unwrap()
    }
}

#[test]
fn a_sound_engine_does_all_the_work() {
    let mut life = Life::new(FaultPlan::None);
    let report = life.run();
    assert!(report.parts > 1 && report.sets > 2 * report.parts, "{report:?}");
    assert!(report.bytes > 100_000, "{report:?}");
    let lost = report.refusals + report.failures + report.hangs + report.disproved;
    assert_eq!(lost + report.too_large, 0, "{report:?}");
    let log = life.events();
    assert!(log.contains("\"event\":\"engine_chosen\""), "{log}");
    assert!(log.contains("\"engine\":\"mock\",\"why\":\""), "{log}");
    assert!(!log.contains("engine_replaced"), "{log}");
}

/// A plan, and what the log says of it.
#[test]
fn a_database_over_a_failing_engine_loses_nothing() {
    let breaks = (0..6).map(|n| (FaultPlan::Breaks(n), "failed: the mock broke down"));
    let lies = (0..40).step_by(7).map(|n| (FaultPlan::WrongByte(n), "disproved: "));
    let others = [
        (FaultPlan::Refuses, "refused: engine mock refused: the mock refuses"),
        (FaultPlan::Blames(1), "failed: "),
        (FaultPlan::SmallSets(100), "set too large: "),
        (FaultPlan::Unsuitable(2), "unsuitable: the mock does not merge such entries"),
        (FaultPlan::LostBlock(1), "disproved: "),
        (FaultPlan::TwiceBlock(2), "disproved: "),
        (FaultPlan::LostFileCut, "disproved: "),
        (FaultPlan::LostSetDone(0), "disproved: "),
        (FaultPlan::WrongLedger(3), "disproved: "),
        (FaultPlan::Falsified(Lie::OtherValue(0)), "disproved: "),
        (FaultPlan::Falsified(Lie::TombstonesForgotten), "disproved: "),
    ];
    for (plan, why) in breaks.chain(lies).chain(others) {
        let mut life = Life::new(plan);
        let report = life.run();
        let log = life.events();
        let line = log.lines().find(|l| l.contains("\"event\":\"engine_replaced\""));
        let line = line.unwrap_or_else(|| panic!("{plan:?}: {report:?}"));
        assert!(line.contains(&format!("\"engine\":\"mock\",\"why\":\"{why}")), "{plan:?}: {line}");
        assert!(!log.contains("job_failed"), "{plan:?}");
    }
}

/// An engine that was disproved gets nothing more, while one that only refuses is asked each time.
#[test]
fn a_lie_ends_an_engine_for_the_life_of_the_database() {
    assert_eq!(Life::new(FaultPlan::WrongByte(0)).run().parts, 1);
    let report = Life::new(FaultPlan::Refuses).run();
    assert!(report.parts > 1 && report.refusals == report.parts, "{report:?}");
}

/// In logs and statistics an engine is known by its name, so two can't have the same. Nothing is made.
#[test]
fn engines_of_one_name_are_refused_by_that_name() {
    let env = || Env { fs: Arc::new(MemFs::new()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let mock = || Arc::new(MockEngine { plan: FaultPlan::None });
    let env = env();
    let builder = Builder::new(settings()).env(env.clone());
    let error = builder.engine(mock()).engine(mock()).open("/db").expect_err("refused");
    assert_eq!(error.kind(), lithify::ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("two engines are named \"mock\""), "{error}");
    assert!(env.fs.list(Path::new("/db")).is_err(), "nothing was made");
    let builder = Builder::new(settings()).env(env.clone());
    let error = builder.engine(Arc::new(NamedCpu)).open("/db").expect_err("refused");
    assert!(error.to_string().contains("two engines are named \"cpu\""), "{error}");
}

/// The mock under the name of the engine that each database has.
struct NamedCpu;

impl Engine for NamedCpu {
    fn caps(&self) -> Caps {
        Caps { name: "cpu", ..MockEngine { plan: FaultPlan::None }.caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        MockEngine { plan: FaultPlan::None }.open(recipe)
    }
}

/// An engine whose machine gets no work is in what the database says of itself, and the CPU compacts.
#[test]
fn an_engine_without_a_machine_says_so() {
    struct Broken;

    impl Engine for Broken {
        fn caps(&self) -> Caps {
            Caps { name: "broken", ..MockEngine { plan: FaultPlan::None }.caps() }
        }
        fn open(&self, _: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
            Err("its fan stands still".to_owned().into())
        }
        fn trouble(&self) -> Option<String> {
            Some("its fan stands still; turn it".to_owned())
        }
    }

    let rt = Arc::new(OsRt::new(RtOptions::default()));
    let env = Env { fs: Arc::new(MemFs::new()), rt };
    let db = Builder::new(settings()).env(env).engine(Arc::new(Broken)).open("/db").unwrap();
    db.put(b"a", b"1").unwrap();
    db.compact_range(None, None).unwrap();
    let told = db.explain();
    assert_eq!(told.engine_trouble, ["broken: its fan stands still; turn it"]);
    assert!(told.to_string().contains("Engine broken: its fan stands still; turn it.\n"), "{told}");
}

/// Its one part is waited for by the clock; then it gets no other, as it never answers. Two parts may be with it
/// by then.
#[test]
fn a_database_over_an_engine_that_never_answers_loses_nothing() {
    let mut life = Life::new(FaultPlan::Hangs);
    let report = life.run();
    assert!((1..=2).contains(&report.hangs), "{report:?}");
    assert_eq!((report.parts, report.unanswered), (report.hangs, report.hangs));
    assert_eq!(report.sets, 0);
    assert!(life.events().contains("\"why\":\"hangs: silent for"));
}

#[test]
fn a_late_engine_is_waited_for() {
    let report = Life::new(FaultPlan::Late(30)).run();
    assert!(report.sets > 0 && report.hangs == 0, "{report:?}");
}
