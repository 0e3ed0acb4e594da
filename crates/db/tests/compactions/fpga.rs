//! A real database whose compactions run on the model of an FPGA has the files of one that the CPU compacts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::clock::NOW;
use crate::common::{Content, scan, tiny};
use lithify::engine::Engine;
use lithify::verify::verify;
use lithify::{Builder, Db, EngineReport, Policy, Settings};
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
use lithify_env::{
    Class, Env, Fs, Job, MemFs, Mono, OpenOpts, OsRt, Rt, RtOptions, Ticket, Wake, read_full_at,
};

fn settings() -> Settings {
    let mut s = tiny();
    s.policy = Some(Policy::Leveled);
    s.auto_compaction = false;
    s.file_bytes = 64 << 10;
    s.memtable_bytes = 2 << 20;
    s.compaction_threads = 1;
    s.max_subcompactions = 1;
    s
}

/// A machine whose seeds depend on nothing but what asks for them, and whose wall clock stands.
struct Fixed(OsRt);

impl Rt for Fixed {
    fn now(&self) -> Mono {
        self.0.now()
    }
    fn wall_seconds(&self) -> u64 {
        NOW
    }
    fn seed(&self, who: &str) -> u64 {
        who.bytes().filter(u8::is_ascii_lowercase).fold(7, |seed, b| seed * 31 % 997 + u64::from(b))
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.0.spawn(class, job);
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.0.park(ticket, deadline)
    }
    fn thread_cpu(&self) -> Duration {
        self.0.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.0.threads(class)
    }
}

fn open(fs: &MemFs, engine: Option<Arc<dyn Engine>>) -> Db {
    let options = RtOptions { compact_threads: 1, seed: Some(7), ..RtOptions::default() };
    // Time and seeds are what tables have besides their entries.
    let rt = Arc::new(Fixed(OsRt::new(options)));
    let env = Env { fs: Arc::new(fs.clone()), rt };
    let builder = Builder::new(settings()).env(env);
    let builder = engine.into_iter().fold(builder, Builder::engine);
    builder.open("/db").unwrap()
}

/// Names and bytes of all tables.
fn tables(fs: &MemFs) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs.list(Path::new("/db")).unwrap() {
        let name = entry.name;
        if name.ends_with(".sst") {
            let file = fs.open(&Path::new("/db").join(&name), OpenOpts::read()).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            read_full_at(&*file, &mut bytes, 0).unwrap();
            all.push((name, bytes));
        }
    }
    all.sort();
    all
}

/// Writes, overwrites and deletes with snapshots between, and compacts twice.
fn live(fs: &MemFs, engine: Option<Arc<dyn Engine>>) -> (Content, Vec<EngineReport>) {
    let db = open(fs, engine);
    let mut rng = fastrand::Rng::with_seed(11);
    let mut model = Content::new();
    let mut held = Vec::new();
    for round in 0..6 {
        for _ in 0..900 {
            let key = format!("key{:05}", rng.u32(0..2000)).into_bytes();
            match rng.u8(0..10) {
                0 | 1 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                _ => {
                    let value: Vec<u8> = (0..rng.usize(0..500)).map(|_| rng.u8(..)).collect();
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
        }
        db.flush().unwrap();
        held.push(db.snapshot());
        if round == 3 {
            held.clear();
            db.compact_range(None, None).unwrap();
        }
    }
    db.compact_range(None, None).unwrap();
    drop(held);
    assert_eq!(scan(&db).unwrap(), model);
    let stats = db.stats();
    assert_eq!(stats.counts.job_failures, 0);
    db.close().unwrap();
    (model, stats.engines)
}

#[test]
fn a_database_has_the_same_files_by_units_and_by_the_cpu() {
    let options = FpgaOptions { set_bytes: 32 << 10, prove: 1, ..FpgaOptions::default() };
    let card = ModelOptions { memory: options.card_bytes(2), ..ModelOptions::default() };
    let engine = FpgaEngine::new(Box::new(ModelCard::new(card)), options).unwrap();
    let (by_units, by_cpu) = (MemFs::new(), MemFs::new());
    let (content, reports) = live(&by_units, Some(Arc::new(engine)));
    assert_eq!(live(&by_cpu, None).0, content);

    let (units, cpu) = (tables(&by_units), tables(&by_cpu));
    let names = |tables: &[(String, Vec<u8>)]| -> Vec<String> {
        tables.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&units), names(&cpu));
    for ((name, a), (_, b)) in units.iter().zip(&cpu) {
        assert!(a == b, "{name} differs");
    }
    assert!(units.len() > 3, "{} tables", units.len());

    let [report] = &reports[..] else { panic!("{reports:?}") };
    let figure = |name| report.machine.iter().find(|(of, _)| *of == name).unwrap().1;
    let (on_units, on_cpu) = (figure("unit_sets"), figure("cpu_sets"));
    assert!(on_units > 20.0 && on_units >= 9.0 * on_cpu, "{report:?}");
    assert_eq!(
        report.failures + report.disproved + report.hangs + report.refusals,
        0,
        "{report:?}"
    );
    let found = verify(Arc::new(by_units), "/db", None, &mut |_| {}).unwrap();
    assert!(found.is_clean(), "{:?}", found.findings);
}
