//! When writers wait for room, and that what is looked for then comes to an end: from any tree, with any
//! room for the largest file, narrow jobs alone lead to a tree in which nothing lies over anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_plan::{
    InFlight, JobSpec, JobState, Layers, Limits, Load, MemState, PlanOptions, PolicyKind, Reason,
    View, is_short, plan, policies, validate_commit,
};

const MIB: u64 = 1 << 20;
/// Bytes of an entry.
const ENTRY: u64 = 2000;

fn options(policy: PolicyKind) -> PlanOptions {
    PlanOptions { policy, memtable_bytes: MIB, file_bytes: 2 * MIB, ..PlanOptions::default() }
}

fn file(id: u64, pos: Pos, lo: u64, hi: u64, bytes: u64) -> FileMeta {
    let key = |n: u64| format!("{n:04}").into_bytes();
    let mut f = FileMeta::new(FileId(id), pos, KeyRange::incl(key(lo), key(hi)));
    (f.bytes, f.entries, f.epoch) = (bytes, hi - lo + 1, u64::from(pos.stratum.0));
    f.seqs = (1, 1);
    f
}

fn layers(largest: u64, all: u64, overlap: bool) -> Layers {
    Layers { largest, all, overlap }
}

#[test]
fn room_for_flushes_and_a_narrow_job_is_kept() {
    let o = options(PolicyKind::Tiered);
    let mem = MemState { frozen: 1, frozen_bytes: MIB };
    let deep = || layers(2 * MIB, 100 * MIB, true);
    let short = |left, disk| is_short(&o, &mem, left, disk, deep);
    // A memtable that is frozen, one that fills, and two files.
    assert!(!short(6 * MIB, u64::MAX) && short(6 * MIB - 1, u64::MAX));
    // On the disk the log of the second as well.
    assert!(!short(7 * MIB, 7 * MIB) && short(7 * MIB - 1, 7 * MIB - 1));
    // Files are small next to all there is, or an eighth of that is enough.
    let small = |left| is_short(&o, &mem, left, u64::MAX, || layers(2 * MIB, 12 * MIB, true));
    assert!(!small(4 * MIB) && small(3 * MIB));
}

/// What is not worth its bytes is begun all the same once writers wait for room.
#[test]
fn no_job_is_held_back_for_its_price_while_room_is_short() {
    let o = PlanOptions { dynamic_levels: false, ..options(PolicyKind::Adaptive) };
    let mut edit = Edit::new(CfId(0));
    edit.adds = (1..=5).map(|n| file(n, Pos::new(0, n as u32), 0, 999, MIB)).collect();
    edit.adds.push(file(9, Pos::base(1), 0, 999, 90 * MIB));
    let version = Version::empty(bytewise()).apply(&edit).unwrap();
    let load = Load { price: Load::FULL_PRICE, useful: 1, written: true };
    let mem = MemState::default();
    let jobs = |short: bool| {
        let limits = Limits { short, ..Limits::default() };
        let view = View::new(&version, &[], &mem, &o, limits).under(load);
        plan(&view, &policies(PolicyKind::Adaptive)).len()
    };
    assert_eq!((jobs(false), jobs(true)), (0, 1));
}

#[test]
fn a_full_disk_without_garbage_is_filled_and_a_budget_holds() {
    let o = options(PolicyKind::Tiered);
    let mem = MemState::default();
    let flat = |left, disk| is_short(&o, &mem, left, disk, || layers(MIB, 9 * MIB, false));
    assert!(!flat(0, 0) && flat(MIB - 1, u64::MAX) && !flat(MIB, u64::MAX));
}

#[test]
fn little_room_is_no_matter_for_who_forgets_or_may_free_nothing() {
    let mem = MemState::default();
    let deep = || layers(MIB, 9 * MIB, true);
    assert!(is_short(&options(PolicyKind::Leveled), &mem, 0, 0, deep));
    assert!(!is_short(&options(PolicyKind::Fifo), &mem, 0, 0, deep));
    let off = PlanOptions { disable_auto: true, ..options(PolicyKind::Leveled) };
    assert!(!is_short(&off, &mem, 0, 0, deep));
}

#[test]
fn much_room_is_known_without_a_look_at_the_tree() {
    let o = options(PolicyKind::Leveled);
    let never = || unreachable!("the ordinary case costs two comparisons");
    assert!(!is_short(&o, &MemState::default(), 7 * MIB, 7 * MIB, never));
}

/// A tree with runs of files at random places.
fn any_tree(random: &mut fastrand::Rng, policy: PolicyKind) -> Version {
    let mut edit = Edit::new(CfId(0));
    let mut id = 1;
    let spots: Vec<Pos> = match policy.is_tiered() {
        true => (1..7).map(|s| Pos::new(0, s)).chain((1..4).map(|s| Pos::new(2, s))).collect(),
        false => (1..7).map(|s| Pos::new(0, s)).chain((1..4).map(Pos::base)).collect(),
    };
    for pos in spots {
        let mut at = random.u64(0..200);
        while at < 1000 && random.u32(0..8) > 0 {
            let hi = at + random.u64(0..500);
            edit.adds.push(file(id, pos, at, hi, ENTRY * (hi - at + 1)));
            id += 1;
            at = hi + 1 + random.u64(0..100);
        }
    }
    Version::empty(bytewise()).apply(&edit).unwrap()
}

/// What a job leaves: files of the size it was told, and nothing is dropped; a cut may come out whole.
fn outputs(version: &Version, spec: &JobSpec, next: &mut u64, stubborn: bool) -> Vec<FileMeta> {
    let inputs: Vec<_> = spec.inputs.iter().map(|id| version.file(*id).unwrap()).collect();
    let number = |key: &[u8]| std::str::from_utf8(key).unwrap().parse::<u64>().unwrap();
    let lo = inputs.iter().map(|f| number(&f.range.lo)).min().unwrap();
    let hi = inputs.iter().map(|f| number(&f.range.hi.key)).max().unwrap();
    let bytes: u64 = inputs.iter().map(|f| f.bytes).sum();
    let least = bytes.div_ceil(spec.cuts.target_bytes).max(1).min(hi - lo + 1);
    let mut begins: BTreeSet<u64> = (0..least).map(|i| lo + (hi - lo + 1) * i / least).collect();
    begins.extend(spec.cuts.hard.iter().map(|k| number(k)).filter(|k| lo < *k && *k <= hi));
    if stubborn && inputs.len() == 1 {
        begins = [lo].into();
    }
    let begins: Vec<u64> = begins.into_iter().collect();
    let made = begins.iter().enumerate().map(|(i, from)| {
        let to = begins.get(i + 1).map_or(hi, |next| next - 1);
        *next += 1;
        file(*next, spec.out, *from, to, bytes * (to + 1 - from) / (hi + 1 - lo))
    });
    made.collect()
}

/// Narrow jobs until there are none; how many there were.
fn to_the_end(random: &mut fastrand::Rng, policy: PolicyKind, stubborn: bool) -> u32 {
    let options = options(policy);
    let mut version = any_tree(random, policy);
    let rules = policies(policy);
    let (mut uncut, mut next, mut jobs) = (BTreeSet::new(), 10_000, 0);
    let mem = MemState::default();
    while Layers::of(&version).overlap {
        // One file anew, or two that are too small to be cut.
        let room = Layers::of(&version).largest.max(32 << 10);
        let limits = Limits { disk_free: room, disk: room, short: true, ..Limits::default() };
        let view = View::new(&version, &[], &mem, &options, limits).with_uncut(&uncut);
        let Some(spec) = plan(&view, &rules).pop() else {
            assert!(stubborn, "{}: {room} bytes of room are not enough", policy.name());
            return jobs;
        };
        validate_commit(&version, &spec).unwrap();
        let job = InFlight { id: JobId(1), spec: Arc::new(spec.clone()), state: JobState::Running };
        lithify_plan::check::jobs(&version, &[job]).unwrap();
        let mut edit = Edit::new(CfId(0));
        edit.adds = match spec.kind.is_instant() {
            true => {
                spec.inputs.iter().map(|id| version.file(*id).unwrap().moved(spec.out)).collect()
            }
            false => outputs(&version, &spec, &mut next, stubborn),
        };
        let gone = spec.inputs.iter().map(|id| version.file(*id).unwrap());
        edit.deletes = gone.map(|f| (f.pos, f.id)).collect();
        if matches!(spec.reason, Reason::ShortOfRoom { .. })
            && (spec.inputs.len(), edit.adds.len()) == (1, 1)
        {
            uncut.insert(edit.adds[0].id);
        }
        version = version.apply(&edit).unwrap();
        jobs += 1;
        assert!(jobs < 20_000, "{}: no end", policy.name());
    }
    jobs
}

#[test]
fn narrow_jobs_come_to_an_end() {
    for policy in PolicyKind::ALL.into_iter().filter(|p| *p != PolicyKind::Fifo) {
        let mut most = 0;
        for seed in 0..12 {
            let mut random = fastrand::Rng::with_seed(seed);
            most = most.max(to_the_end(&mut random, policy, false));
            to_the_end(&mut fastrand::Rng::with_seed(seed), policy, true);
        }
        println!("{}: at most {most} jobs", policy.name());
    }
}
