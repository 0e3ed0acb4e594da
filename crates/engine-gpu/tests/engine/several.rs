//! A database with several devices, each behind an engine of its own: parts of compactions go to the one with the
//! least to do, all make what the CPU makes, and one that dies takes no work with it but its own.

use std::collections::BTreeMap;

use lithify::{Builder, Compression, Db, EngineReport, Policy, Settings};
use lithify_engine_gpu::device::Device;
use lithify_engine_gpu::paced::{Paced, Rates};
use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Env, MemFs, OsRt, Rt, RtOptions};

use crate::common::*;
use crate::faulty::{Asked, Call, Faulty, Mishap};

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

const NAMES: [&str; 3] = ["gpu0", "gpu1", "gpu2"];

/// Small tables, so that compactions have many parts, three of which are merged at once.
fn settings() -> Settings {
    Settings {
        policy: Some(Policy::Leveled),
        auto_compaction: false,
        compression_upper: Compression::None,
        compression_lower: Compression::None,
        file_bytes: 16 << 10,
        max_subcompactions: 12,
        compaction_threads: 3,
        ..Settings::default()
    }
}

/// Engines over these devices, with small sets, each of which is proven by the CPU.
fn engines(devices: Vec<Box<dyn Device>>) -> Vec<Arc<GpuEngine>> {
    let engine = |(device, name)| {
        let set_bytes = 8 << 10;
        let options = GpuOptions {
            name,
            set_bytes,
            inputs: 4 << 20,
            prove: 1,
            always: true,
            ..GpuOptions::default()
        };
        Arc::new(GpuEngine::new(device, options).expect("the options make sense"))
    };
    devices.into_iter().zip(NAMES).map(engine).collect()
}

fn open(fs: &MemFs, engines: &[Arc<GpuEngine>]) -> Db {
    let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 3, ..RtOptions::default() }));
    let env = Env { fs: Arc::new(fs.clone()), rt };
    let builder = Builder::new(settings()).env(env);
    let builder = engines.iter().fold(builder, |builder, engine| builder.engine(engine.clone()));
    builder.open("/db").unwrap()
}

/// Four runs over the same keys, with deletes.
fn fill(db: &Db) -> Content {
    let mut content = Content::new();
    for run in 0..4usize {
        for n in (run..1600).step_by(3) {
            let key = format!("key{n:05}").into_bytes();
            if n % 13 == run {
                db.delete(&key).unwrap();
                content.remove(&key);
            } else {
                let value = format!("run {run} of {n}, ").repeat(1 + n % 9).into_bytes();
                db.put(&key, &value).unwrap();
                content.insert(key, value);
            }
        }
        db.flush().unwrap();
    }
    content
}

/// Compacts a database on these engines; what they say they did. It holds what it should.
fn compacted(engines: &[Arc<GpuEngine>]) -> Vec<EngineReport> {
    compacted_of(engines, 1, |db, _| fill(db))
}

/// The same, filled and compacted so many times.
fn compacted_of(
    engines: &[Arc<GpuEngine>],
    rounds: usize,
    fill: impl Fn(&Db, usize) -> Content,
) -> Vec<EngineReport> {
    let fs = MemFs::new();
    let db = open(&fs, engines);
    let mut content = Content::new();
    for round in 0..rounds {
        content.append(&mut fill(&db, round));
        db.compact_range(None, None).unwrap();
    }
    let reports = db.stats().engines;
    let (figures, explained) = (db.stats().to_string(), db.explain().to_string());
    for report in &reports {
        assert!(figures.contains(report.name), "{figures}");
        let is_told = report.trouble.is_some() || report.passing > 0;
        assert_eq!(explained.contains(report.name), is_told, "{explained}");
        println!("{}: {} parts, {} sets", report.name, report.parts, report.sets);
    }
    let (mut held, mut iter) = (Content::new(), db.iter().unwrap());
    iter.seek_to_first();
    while iter.valid() {
        held.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    assert!(held == content, "{} entries, and there should be {}", held.len(), content.len());
    drop(iter);
    db.close().unwrap();
    reports
}

/// Four runs with a single delete for each twentieth of the keys.
fn fill_with_single_deletes(db: &Db, round: usize) -> Content {
    let mut content = Content::new();
    for run in 0..4usize {
        for n in (run..1600).step_by(4) {
            let key = format!("key{n:05}-{round}").into_bytes();
            db.put(&key, [n as u8; 60]).unwrap();
            content.insert(key, vec![n as u8; 60]);
        }
        // Of the run before: in one memtable the two would end each other.
        for n in (run.wrapping_sub(1)..1600).step_by(80) {
            let key = format!("key{n:05}-{round}").into_bytes();
            db.single_delete(&key).unwrap();
            content.remove(&key);
        }
        db.flush().unwrap();
    }
    content
}

/// Nothing of it suits a device, which is no failure of it: it rests by no clock, and lets most parts pass. The database
/// says so, and holds what it should.
#[test]
fn what_does_not_suit_is_no_failure() {
    let engines = engines(emulators(1));
    let reports = compacted_of(&engines, 4, fill_with_single_deletes);
    let [of] = &reports[..] else { panic!("{reports:?}") };
    assert!(of.unsuitable > 0 && of.unsuitable == of.parts, "{of:?}");
    assert!(of.passed > 0, "{of:?}");
    assert_eq!((of.failures, of.refusals, of.disproved, of.hangs), (0, 0, 0, 0), "{of:?}");
    assert!(of.last_lost.as_ref().is_some_and(|why| why.starts_with("unsuitable: ")), "{of:?}");
    assert_eq!(figure(&*engines[0], "unsuitable_sets"), of.unsuitable);
    assert_eq!((of.unanswered, of.held_bytes), (0, 0), "{of:?}");
}

fn emulators(n: u64) -> Vec<Box<dyn Device>> {
    (1..=n).map(|seed| Box::new(Emu::new(seed)) as Box<dyn Device>).collect()
}

#[test]
fn all_of_several_do_work_and_make_the_bytes_of_the_cpu() {
    for n in [2, 3] {
        let engines = engines(emulators(n));
        let reports = compacted(&engines);
        assert_eq!(reports.len() as u64, n);
        let parts: u64 = reports.iter().map(|of| of.parts).sum();
        assert!(parts >= 6, "{parts}");
        let in_place: u64 = engines.iter().map(|of| figure(&**of, "inputs_in_place")).sum();
        assert!(in_place > 0, "what was read was copied");
        for (report, engine) in reports.iter().zip(&engines) {
            let lost = (report.refusals, report.failures, report.hangs, report.disproved);
            assert_eq!(lost, (0, 0, 0, 0), "{report:?}");
            // The device's own figure, too.
            assert_eq!(figure(&**engine, "device_sets"), report.sets);
        }
        assert!(reports.iter().all(|of| of.sets > 0), "{reports:?}");
    }
}

/// Its parts, three at most, go on with the CPU, all that follow go to the others.
#[test]
fn one_that_dies_leaves_the_others_at_work() {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let plan = Some((Call::Launch, 30, Mishap::Gone));
    let dies = Box::new(Faulty { emu: Emu::new(5), plan, asked: asked.clone() });
    let mut devices = emulators(1);
    devices.insert(0, dies);
    let engines = engines(devices);
    let reports = compacted(&engines);
    let [dead, alive] = &reports[..] else { panic!("{reports:?}") };
    assert!((1..=3).contains(&dead.failures) && alive.failures == 0, "{reports:?}");
    assert_eq!(asked.lock().late, 0, "a call of a device that is gone");
    assert_eq!((figure(&*engines[0], "device_lost"), figure(&*engines[1], "device_lost")), (1, 0));
    assert!(dead.trouble.is_some() && alive.trouble.is_none(), "{reports:?}");
    assert!(dead.parts <= 3 && alive.parts >= 5, "{reports:?}");
    assert_eq!(alive.sets, figure(&*engines[1], "device_sets"));
}

/// Both take every part whatever it costs: what each has left to do decides. Over eight jobs, as who is first in one of
/// eleven parts is up to the threads.
#[test]
fn a_slower_one_gets_fewer_sets() {
    let (mut slow_sets, mut quick_sets) = (0, 0);
    for _ in 0..8 {
        let rt = OsRt::new(RtOptions::default());
        let rates =
            Rates { up: 1e3, down: 1e3, kernels: 1e3, call_ns: 2e6, with_commands: 64 << 10 };
        let slow = Paced::new(Emu::new(1), rates, Box::new(move || rt.now().nanos()));
        let mut devices = emulators(1);
        devices.insert(0, Box::new(slow));
        let reports = compacted(&engines(devices));
        let [slow, quick] = &reports[..] else { panic!("{reports:?}") };
        assert!(slow.failures + quick.failures == 0, "{reports:?}");
        (slow_sets, quick_sets) = (slow_sets + slow.sets, quick_sets + quick.sets);
    }
    assert!(slow_sets > 0 && quick_sets > slow_sets, "{slow_sets} and {quick_sets}");
}
