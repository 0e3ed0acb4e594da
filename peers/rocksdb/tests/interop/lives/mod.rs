//! Lives that begin in RocksDB and go on here: from a seed, RocksDB makes a directory by a long life;
//! it is taken over, lives on under a policy, is compared key by key after each step, settled, and given
//! back to RocksDB, which must show the same.
//!
//! `LITHIFY_LIVES=17` replays the life of seed 17, `LITHIFY_LIVES=300..900` looks at others. Threads
//! interleave differently each time, so a failure that is not there at once may need a few tries.

#[path = "../../../../../crates/db/tests/lives/archive.rs"]
mod archive;
mod directed;
mod golden;
#[path = "../../../../../crates/db/tests/lives/here.rs"]
mod here;
#[path = "../../../../../crates/db/tests/common/small.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod small;
#[path = "../../../../../crates/db/tests/lives/steps.rs"]
mod steps;
mod theirs;
#[path = "../../../../../crates/db/tests/lives/twin.rs"]
mod twin;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use lithify::import::ImportOptions;
use tempfile::TempDir;

use crate::c_api;
use here::{Here, PARALLEL};
use theirs::Kind;
use twin::{Family, Twin};

/// Seeds of the lives in a run.
const SEEDS: Range<u64> = 0..300;
/// Seeds beyond those whose lives found a mistake.
const FOUND: [u64; 2] = [1153, 1773];
/// Lives at the same time.
const WORKERS: usize = 2;
/// A life takes a second or less; one that takes this long hangs.
const HANGS: Duration = Duration::from_secs(180);
/// After so many failures there is enough to look at.
const ENOUGH: usize = 20;

#[test]
fn lives_begun_in_rocksdb_go_on_here() {
    let seeds = chosen().unwrap_or_else(|| SEEDS.chain(FOUND).collect());
    let next = AtomicUsize::new(0);
    let working: Mutex<BTreeMap<u64, Instant>> = Mutex::default();
    let (failures, comparisons) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let work = || {
            while failures.lock().unwrap().len() < ENOUGH {
                let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                working.lock().unwrap().insert(seed, Instant::now());
                match run(seed) {
                    Ok(count) => _ = comparisons.fetch_add(count as u64, Ordering::SeqCst),
                    Err(told) => failures.lock().unwrap().push(told),
                }
                working.lock().unwrap().remove(&seed);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            let all = working.lock().unwrap();
            if let Some((seed, _)) = all.iter().find(|(_, since)| since.elapsed() > HANGS) {
                eprintln!("the life of seed {seed} is not over after {HANGS:?}");
                std::process::exit(101);
            }
        }
    });
    let lived = &seeds[..next.into_inner().min(seeds.len())];
    let parallel = lived.iter().filter(|seed| PARALLEL.contains(&here::policy(**seed))).count();
    let failures = failures.into_inner().unwrap();
    eprintln!(
        "{} directories of RocksDB lived on here, {parallel} of them under parallel policies: {} \
         comparisons in {:.0} s, {} failures",
        lived.len(),
        comparisons.into_inner(),
        start.elapsed().as_secs_f64(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The seeds that the environment asks for.
fn chosen() -> Option<Vec<u64>> {
    let text = std::env::var("LITHIFY_LIVES").ok()?;
    let number = |text: &str| text.parse::<u64>().expect("LITHIFY_LIVES=17, or 300..900");
    Some(match text.split_once("..") {
        Some((from, to)) => (number(from)..number(to)).collect(),
        None => vec![number(&text)],
    })
}

/// A place for one life, in memory where there is such a place: nothing is to survive the machine.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// One life; how often it was compared, or what went wrong.
fn run(seed: u64) -> Result<usize, String> {
    let dir = place();
    let mut rng = Rng::with_seed(seed);
    let path = dir.path().join("here");
    let mut here = Here::new(&path, true, here::policy(seed), None, rng.fork());
    let lived = catch_unwind(AssertUnwindSafe(|| life(dir.path(), &path, &mut here, &mut rng)));
    lived.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        let kept = dir.keep().join("theirs");
        let (story, kept) = (here.story.join("\n  "), kept.display());
        format!(
            "seed {seed}: {text}\n  {story}\nRocksDB's directory is {kept}; \
             LITHIFY_LIVES={seed} lives this life again"
        )
    })
}

/// The families of a life, and what it is like in RocksDB.
fn begin(golden: bool, rng: &mut Rng) -> (Twin, Kind) {
    let kind = Kind::random(golden, rng);
    let most = if golden { 300 } else { 900 };
    let names = ["default", "one", "two"];
    let count = [1, 1, 2, 3][rng.usize(0..4)];
    let families = names[..count].iter().map(|name| Family::random(name, most / count, rng));
    (Twin::new(families.collect()), kind)
}

fn life(dir: &Path, path: &Path, here: &mut Here, rng: &mut Rng) -> usize {
    let (mut twin, kind) = begin(false, rng);
    let theirs = dir.join("theirs");
    for _ in 0..rng.usize(1..5) {
        theirs::session(&theirs, &mut twin, &kind, rng);
    }
    take_over(&theirs, path, here, &twin.families, rng);
    let mut comparisons = here.live(&mut twin, rng.usize(10..40));
    back(path, &twin);
    if rng.u8(0..4) == 0 {
        here.story.push("RocksDB goes on, and so does this life after it".into());
        theirs::session(path, &mut twin, &Kind::LEVELED, rng);
        comparisons += here.live(&mut twin, rng.usize(5..20));
        back(path, &twin);
    }
    comparisons
}

/// By links, in place, or by opening a copy as it is.
fn take_over(theirs: &Path, path: &Path, here: &mut Here, families: &[Family], rng: &mut Rng) {
    let options = ImportOptions { quick: rng.bool(), verify: true };
    let way = rng.u8(0..4);
    here.story.push(format!("take over, way {way}, {options:?}"));
    match way {
        0 | 1 => {
            here.builder(families).import(theirs, path, options, &mut |_| {}).unwrap();
        }
        2 => {
            copy(theirs, path);
            let kept: PathBuf = path.with_extension("kept");
            let builder = here.builder(families);
            builder.import_in_place(path, Some(&kept), options, &mut |_| {}).unwrap();
        }
        _ => copy(theirs, path),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// RocksDB opens what was settled, finds nothing wrong, shows the same, and does so after it compacted
/// everything.
fn back(path: &Path, twin: &Twin) {
    let of = |family: &Family| theirs::plain(family, "paranoid_file_checks=true;");
    let more = "paranoid_checks=true;track_and_verify_wals_in_manifest=true;";
    let db = theirs::open(path, &twin.families, of, more);
    c_api::verify_checksum(&db).unwrap();
    theirs::agrees(&db, twin);
    for family in &twin.families {
        let handle = db.cf_handle(&family.name).unwrap();
        db.compact_range_cf(handle, None::<&[u8]>, None::<&[u8]>);
    }
    theirs::agrees(&db, twin);
}
