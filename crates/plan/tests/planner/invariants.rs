//! Each check of jobs and bucket maps must be able to fail, and the map's arithmetic must add up.

use std::sync::Arc;

use lithify_base::{CfId, FileId, JobId, Key, KeyRange, Pos, bytewise};
use lithify_lsm::{BucketMap, BucketStat, Edit, FileMeta, Version, picture};
use lithify_plan::adapt::{adapt, create, flush_is_cut, keeps_flow, temperature};
use lithify_plan::check::jobs;
use lithify_plan::{
    BucketFlow, BucketOptions, Cost, CutPolicy, FlushReport, InFlight, JobSpec, JobState, Kind,
    MemState, PlanOptions, PolicyKind, Prio, Reason, on_flush, slots_wanted,
};

fn tree(text: &str) -> Version {
    let lines: Vec<&str> = text.lines().collect();
    let drawn = picture::parse(&lines, 64 << 20).unwrap();
    Version::empty(bytewise()).apply(&drawn.edit()).unwrap()
}

fn job(version: &Version, id: u64, kind: Kind, inputs: &[u64], out: Pos) -> InFlight {
    let files = inputs.iter().map(|&n| version.file(FileId(n)).unwrap().range.clone());
    let hull = files.reduce(|a, b| a.hull(&b, version.order())).unwrap();
    let spec = JobSpec {
        kind,
        inputs: inputs.iter().map(|&n| FileId(n)).collect(),
        out,
        hull,
        cuts: CutPolicy::default(),
        after: Vec::new(),
        prio: Prio::Normal,
        est: Cost::default(),
        reason: Reason::Said(String::new()),
    };
    InFlight { id: JobId(id), spec: spec.into(), state: JobState::Running }
}

fn changed(job: &InFlight, change: impl FnOnce(&mut JobSpec)) -> InFlight {
    let mut spec = (*job.spec).clone();
    change(&mut spec);
    InFlight { spec: Arc::new(spec), ..job.clone() }
}

#[test]
fn broken_jobs_are_named() {
    let v = tree("L0.2  a---f\nL0.1  a---f g---m\nL1.0  a---m");
    let broken =
        |jobs_in_flight: &[InFlight]| jobs(&v, jobs_in_flight).err().map_or("none", |e| e.name);
    let one = job(&v, 1, Kind::Down, &[2, 3, 4], Pos::base(1));
    let two = job(&v, 2, Kind::Df, &[1], Pos::new(1, 1));
    assert_eq!(broken(&[one.clone(), two.clone()]), "none");
    let shares = job(&v, 3, Kind::Df, &[1, 2], Pos::new(1, 2));
    assert_eq!(broken(&[two.clone(), shares]), "V5");
    assert_eq!(broken(&[job(&v, 1, Kind::Down, &[4], Pos::new(0, 9))]), "V6");
    let meets = job(&v, 2, Kind::Down, &[1], Pos::base(1));
    assert_eq!(broken(&[one.clone(), meets]), "V7");
    let buckets =
        [(1, 2), (2, 1)].map(|(id, file)| job(&v, id, Kind::L0Bucket, &[file], Pos::base(1)));
    assert_eq!(broken(&buckets), "B3");
    let forward = changed(&one, |s| s.after = vec![JobId(2)]);
    assert_eq!(broken(&[forward, two.clone()]), "V8");
    let level = job(&v, 1, Kind::Df, &[2], Pos::new(1, 3));
    let after = changed(&two, |s| s.after = vec![JobId(1)]);
    assert_eq!(broken(&[level, after]), "V8");
    let gone = changed(&two, |s| s.inputs = vec![FileId(99)]);
    assert_eq!(broken(&[gone]), "V12");
    let narrow = changed(&two, |s| s.hull = KeyRange::incl(&b"a"[..], &b"b"[..]));
    assert_eq!(broken(&[narrow]), "V12");
}

fn map(bounds: &[&str]) -> BucketMap {
    let bounds: Vec<Key> = bounds.iter().map(|b| b.as_bytes().into()).collect();
    BucketMap { epoch: 0, stats: vec![BucketStat::default(); bounds.len() + 1], bounds }
}

fn flushed(ranges: &[KeyRange]) -> Vec<FileMeta> {
    let file =
        |(i, r): (usize, &KeyRange)| FileMeta::new(FileId(i as u64 + 1), Pos::new(0, 1), r.clone());
    ranges.iter().enumerate().map(file).collect()
}

#[test]
fn a_flush_is_cut_at_bounds_only() {
    let (m, order) = (map(&["g", "p"]), bytewise());
    let incl = |a: &str, b: &str| KeyRange::incl(a.as_bytes(), b.as_bytes());
    let cut = |files: &[KeyRange]| flush_is_cut(&m, &flushed(files), &*order).map_err(|v| v.name);
    assert_eq!(cut(&[incl("a", "f"), incl("g", "o"), incl("p", "z")]), Ok(()));
    // A short piece may join its neighbour; a range tombstone may end at the bound.
    assert_eq!(cut(&[incl("a", "k"), incl("p", "z")]), Ok(()));
    let to_bound = KeyRange::excl(&b"a"[..], &b"g"[..]);
    assert_eq!(cut(&[to_bound, incl("g", "o")]), Ok(()));
    assert_eq!(cut(&[incl("a", "g"), incl("h", "o")]), Err("B1"));
    assert_eq!(cut(&[incl("a", "c"), incl("d", "f")]), Err("B1"));
}

#[test]
fn flows_add_up_in_their_window() {
    let options = PlanOptions {
        buckets: BucketOptions { window: 2, ..BucketOptions::default() },
        ..PlanOptions::preset(PolicyKind::Bucket)
    };
    let order = bytewise();
    let flow = |bytes, keys: &[&str]| BucketFlow {
        bytes,
        keys: keys.iter().map(|k| k.as_bytes().into()).collect(),
    };
    let first = FlushReport { epoch: 0, buckets: vec![flow(30, &["b"]), flow(10, &["h"])] };
    let mut m = map(&["g"]);
    assert_eq!(temperature(&m, 0), 1000, "nothing flowed");
    for _ in 0..3 {
        m = on_flush(&m, &first, &options, &*order);
    }
    assert_eq!((m.flow(0), m.flow(1), m.flow_of_all()), (60, 20, 80), "two flushes count");
    assert_eq!((temperature(&m, 0), temperature(&m, 1)), (1500, 500));
    // By an older map: shares by keys, and not a byte is lost.
    let old = FlushReport { epoch: 7, buckets: vec![flow(10, &["b", "h", "x"])] };
    m = on_flush(&m, &old, &options, &*order);
    assert_eq!((m.stats[0].flushed[1], m.stats[1].flushed[1]), (3, 7));
    let lossy = BucketMap { stats: vec![m.stats[0].clone(); 2], ..m.clone() };
    assert_eq!(keeps_flow(&m, &lossy).map_err(|v| v.name), Err("B2"));
    assert_eq!(keeps_flow(&m, &m), Ok(()));
}

/// Appending leaves all buckets but the last one cold. They may not all be merged: of two buckets
/// none is ever more than twice as hot as their average, so none would be split again.
#[test]
fn merging_ends_while_one_can_still_be_split() {
    let mut options = PlanOptions::preset(PolicyKind::Bucket);
    options.buckets.window = 3;
    let (order, empty) = (bytewise(), Version::empty(bytewise()));
    let done = JobSpec {
        hull: KeyRange::incl(&b"a"[..], &b"z"[..]),
        ..(*job(&tree("L0.1  a-b"), 1, Kind::L0Bucket, &[1], Pos::base(1)).spec).clone()
    };
    let mut m = map(&["c", "e", "g", "i", "k"]);
    let write = |m: &mut BucketMap, keys: &dyn Fn(usize) -> [String; 3]| {
        for i in 0..30 {
            let keys = keys(i).iter().map(|k| k.as_bytes().into()).collect();
            let mut buckets = vec![BucketFlow::default(); m.len()];
            *buckets.last_mut().unwrap() = BucketFlow { bytes: 900, keys };
            *m = on_flush(m, &FlushReport { epoch: m.epoch, buckets }, &options, &*order);
            if let Some(next) = adapt(m, &empty, Some(&done), &options) {
                *m = next;
            }
        }
    };
    let appended = |i: usize| [1, 2, 3].map(|n| format!("l{:03}", 3 * i + n));
    write(&mut m, &appended);
    assert_eq!(m.len(), 3, "{m:?}");
    write(&mut m, &|_| ["m", "p", "t"].map(str::to_owned));
    assert!(m.bounds.iter().any(|b| b[..] == b"p"[..]), "it was cut: {m:?}");
}

#[test]
fn a_first_map_divides_the_base_level() {
    let mut options = PlanOptions::preset(PolicyKind::Bucket);
    options.buckets.initial = 3;
    let v = tree("L1.0  a-b:10M c-d:10M e-f:40M g-h:20M i-j:40M");
    let bounds = |m: BucketMap| -> Vec<String> {
        m.bounds.iter().map(|b| b.escape_ascii().to_string()).collect()
    };
    assert_eq!(bounds(create(&v, &options, &[])), ["g", "i"]);
    // No bucket so small that a memtable cannot fill it.
    options.memtable_bytes = 2 << 20;
    assert_eq!(bounds(create(&v, &options, &[])), ["g"]);
    let empty = Version::empty(bytewise());
    assert_eq!(create(&empty, &options, &[]).len(), 1);
}

#[test]
fn more_threads_come_with_pressure() {
    let options = PlanOptions { dynamic_levels: false, ..PlanOptions::default() };
    let calm = MemState::default();
    let small = tree("L0.1  a---f:1M\nL1.0  a---f:1M");
    assert_eq!(slots_wanted(&small, &calm, &options, 8), 1);
    let backlog = MemState { frozen: 2, ..calm };
    assert_eq!(slots_wanted(&small, &backlog, &options, 8), 8);
    let deep: String = (0..8).map(|i| format!("L0.{}  a---f:1M\n", 9 - i)).collect();
    assert_eq!(slots_wanted(&tree(&deep), &calm, &options, 8), 8);
    let owing = tree("L1.0  a---f:2G\nL2.0  a---f:8G");
    assert_eq!(slots_wanted(&owing, &calm, &options, 8), 8);
    let edit = Edit::new(CfId(0));
    assert_eq!(slots_wanted(&owing.apply(&edit).unwrap(), &calm, &options, 0), 0);
}
