//! The rule and the closure next to their naive twins: the same answers, found by looking at every
//! file and every pair, in the words of the design.

use fastrand::Rng;
use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_plan::closure::close;
use lithify_plan::{
    Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Limits, MemState, PlanOptions,
    Prio, Reason, View, admit, validate_commit,
};

fn overlap(a: &KeyRange, b: &KeyRange) -> bool {
    a.overlaps(b, &*bytewise())
}

/// Whether data going from `from` to `to` travels over `p`.
fn travels(p: Pos, from: Pos, to: Pos) -> bool {
    p.is_older_than(from) && (p == to || p.is_newer_than(to))
}

fn hull(files: &[FileRef]) -> KeyRange {
    let ranges = files.iter().map(|f| f.range.clone());
    ranges.reduce(|a, b| a.hull(&b, &*bytewise())).unwrap()
}

/// A0, A1 and A2 word by word; the jobs to follow, or none.
fn naive_admit(
    version: &Version,
    flight: &[InFlight],
    inputs: &[FileRef],
    out: Pos,
) -> Option<Vec<JobId>> {
    let is_input = |f: &FileRef| inputs.iter().any(|i| i.id == f.id);
    let holder = |f: &FileRef| flight.iter().find(|k| k.spec.inputs.contains(&f.id));
    let range = hull(inputs);
    let mut after = Vec::new();
    if inputs.iter().any(|f| holder(f).is_some() || out.is_newer_than(f.pos)) {
        return None;
    }
    for f in version.files().filter(|f| !is_input(f)) {
        let path = |g: &FileRef| travels(f.pos, g.pos, out) && overlap(&f.range, &g.range);
        if inputs.iter().any(path) || (f.pos == out && overlap(&f.range, &range)) {
            match holder(f) {
                Some(k) if k.spec.out.is_older_than(out) => after.push(k.id),
                _ => return None,
            }
        }
    }
    for k in flight.iter().filter(|k| overlap(&k.spec.hull, &range)) {
        let path = |g: &FileRef| travels(k.spec.out, g.pos, out) && overlap(&k.spec.hull, &g.range);
        if k.spec.out == out || inputs.iter().any(path) {
            return None;
        }
        let theirs = k.spec.inputs.iter().map(|&id| version.file(id).unwrap());
        let crosses = |h: &FileRef| travels(out, h.pos, k.spec.out) && overlap(&h.range, &range);
        if theirs.into_iter().any(crosses) {
            if !k.spec.out.is_older_than(out) {
                return None;
            }
            after.push(k.id);
        }
    }
    after.sort();
    after.dedup();
    Some(after)
}

/// The least set with the seeds that holds every file in the way of a member.
fn naive_close(version: &Version, seeds: &[FileRef], out: Pos) -> Vec<FileId> {
    let mut inputs = seeds.to_vec();
    loop {
        let range = hull(&inputs);
        let missing = version.files().find(|f| {
            let path = |g: &FileRef| travels(f.pos, g.pos, out) && overlap(&f.range, &g.range);
            let in_the_way = inputs.iter().any(path) || (f.pos == out && overlap(&f.range, &range));
            in_the_way && inputs.iter().all(|i| i.id != f.id)
        });
        match missing {
            Some(f) => inputs.push(f.clone()),
            None => break,
        }
    }
    let mut ids: Vec<FileId> = inputs.iter().map(|f| f.id).collect();
    ids.sort();
    ids
}

/// Up to four runs at each of four levels, over a hundred keys, with both kinds of ends.
fn random_tree(random: &mut Rng) -> Version {
    let mut adds: Vec<FileMeta> = Vec::new();
    for level in 0..4 {
        for stratum in 0..random.u32(1..=4) {
            let mut at = random.u8(..30);
            while at < 100 {
                let end = at + random.u8(..20);
                let exclusive = end > at && random.bool();
                let range = match exclusive {
                    true => KeyRange::excl(&[at][..], &[end][..]),
                    false => KeyRange::incl(&[at][..], &[end][..]),
                };
                let id = FileId(adds.len() as u64 + 1);
                adds.push(FileMeta::new(id, Pos::new(level, stratum), range));
                at = end + u8::from(!exclusive) + random.u8(..2) * random.u8(..30);
            }
        }
    }
    Version::empty(bytewise()).apply(&Edit { adds, ..Edit::new(CfId(0)) }).unwrap()
}

fn random_wish(random: &mut Rng, version: &Version) -> (Vec<FileRef>, Pos) {
    let files: Vec<FileRef> = version.files().cloned().collect();
    let mut inputs = files.clone();
    random.shuffle(&mut inputs);
    inputs.truncate(random.usize(1..=3));
    let deepest = inputs.iter().map(|f| f.pos).max().unwrap();
    let out = match random.u8(..3) {
        0 => Pos::base((deepest.level + 1).min(3)),
        1 => Pos::new((deepest.level + 1).min(3), random.u32(..6)),
        _ => deepest,
    };
    if random.bool() && !inputs.iter().any(|f| out.is_newer_than(f.pos)) {
        inputs = close(version, &inputs, out);
    }
    (inputs, out)
}

#[test]
fn admission_is_the_rule_word_by_word() {
    let options = PlanOptions { levels: 4, ..PlanOptions::default() };
    let mem = MemState::default();
    let (mut admitted, mut with_edges, mut refused) = (0, 0, 0);
    for seed in 0..800 {
        let mut random = Rng::with_seed(seed);
        let version = random_tree(&mut random);
        let mut flight: Vec<InFlight> = Vec::new();
        for n in 1..60 {
            let (inputs, out) = random_wish(&mut random, &version);
            let limits = Limits { next_job: JobId(n), ..Limits::default() };
            let view = View::new(&version, &flight, &mem, &options, limits);
            let said = Reason::Said("at random".into());
            let wish = Candidate::merge(Kind::Manual, inputs.clone(), out, said.clone());
            let real = admit(&view, &wish);
            let naive = naive_admit(&version, &flight, &inputs, out);
            let real_after = real.as_ref().ok().map(|a| a.after.clone());
            assert_eq!(real_after, naive, "seed {seed}, wish {n} to {out}: {real:?}");
            let Some(after) = naive else {
                refused += 1;
                continue;
            };
            let spec = JobSpec {
                kind: Kind::Manual,
                inputs: inputs.iter().map(|f| f.id).collect(),
                out,
                hull: hull(&inputs),
                cuts: CutPolicy::default(),
                after,
                prio: Prio::Normal,
                est: Cost::default(),
                reason: said,
            };
            // Validation is the rule in a tree without locks.
            let alone = naive_admit(&version, &[], &inputs, out).is_some();
            assert_eq!(validate_commit(&version, &spec).is_ok(), alone);
            admitted += 1;
            with_edges += u32::from(!spec.after.is_empty());
            flight.push(InFlight { id: JobId(n), spec: spec.into(), state: JobState::Running });
        }
    }
    let counts = (admitted, with_edges, refused);
    assert!(admitted > 2000 && with_edges > 200 && refused > 2000, "{counts:?}");
}

#[test]
fn closures_are_the_least_fixpoint() {
    let mut grown = 0;
    for seed in 0..1500 {
        let mut random = Rng::with_seed(seed);
        let version = random_tree(&mut random);
        let files: Vec<FileRef> = version.files().cloned().collect();
        let mut seeds = files.clone();
        random.shuffle(&mut seeds);
        seeds.truncate(random.usize(1..=3));
        let deepest = seeds.iter().map(|f| f.pos).max().unwrap();
        let out = *random
            .choice(&[deepest, Pos::base(3), Pos::base((deepest.level + 1).min(3))])
            .unwrap();
        if out.is_newer_than(deepest) {
            continue;
        }
        let inputs = close(&version, &seeds, out);
        grown += u32::from(inputs.len() > seeds.len());
        let order = bytewise();
        let sorted = inputs.windows(2).all(|w| {
            w[0].pos < w[1].pos
                || w[0].pos == w[1].pos && order.compare(&w[0].range.lo, &w[1].range.lo).is_lt()
        });
        assert!(sorted, "seed {seed}");
        let mut ids: Vec<FileId> = inputs.iter().map(|f| f.id).collect();
        ids.sort();
        assert_eq!(ids, naive_close(&version, &seeds, out), "seed {seed}");
    }
    assert!(grown > 500);
}
