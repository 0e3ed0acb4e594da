//! Which table directory each level gets.

use lithify_base::{CfId, FileId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_plan::{
    JobSpec, Kind, Limits, MemState, PlanOptions, PolicyKind, View, places, plan, policies,
};

/// A line for each case: base, multiplier, targets, and the directory of each level.
#[test]
fn levels_fill_directories_in_order() {
    let cases = "
        10 10 []             0000000  none: the database's own
        10 10 [0]            0000000  one takes all, whatever its target
        10 10 [25,150,0]     0012222  as in the picture above
        10 10 [20,100,1000]  0012222  to the byte
        10 10 [19,110,0]     0112222  level 1 no longer fits, and is first in the next
        10 10 [9,5,0]        2222222  too small for anything
        10 10 [9,10,0]       1222222  the first is too small for level 0
        10 10 [120,0]        0001111  two
        10 10 [15,15,150,0]  0123333  four
        10  1 [35,0]         0001111  levels of one size
         0 10 [1,1]          0000000  levels without a size fit anywhere
    ";
    for line in cases.trim().lines() {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap();
        let (base, multiplier) = (word().parse().unwrap(), word().parse().unwrap());
        let targets = word().trim_matches(['[', ']']);
        let targets: Vec<u64> =
            targets.split(',').filter_map(|target| target.parse().ok()).collect();
        let got: String = places(&targets, base, multiplier).iter().map(u8::to_string).collect();
        assert_eq!(got, word(), "{line}");
    }
}

#[test]
fn no_size_is_too_large_to_count() {
    let all = places(&[u64::MAX, u64::MAX], u64::MAX / 2, u32::MAX);
    assert_eq!(all, [0, 0, 1, 1, 1, 1, 1]);
}

/// The job for one file of level 1 that is over its target, where level 2 has directory `below`.
fn job(policy: PolicyKind, place: u8, below: u8) -> JobSpec {
    let range = KeyRange::incl(&b"a"[..], &b"m"[..]);
    let file = FileMeta { bytes: 1000, place, ..FileMeta::new(FileId(1), Pos::base(1), range) };
    let edit = Edit { adds: vec![file], ..Edit::new(CfId(0)) };
    let version = Version::empty(bytewise()).apply(&edit).unwrap();
    let mut options = PlanOptions::preset(policy);
    options.dynamic_levels = false;
    options.level_base_bytes = 100;
    options.places = [0, 0, below, below, below, below, below];
    let mem = MemState::default();
    let limits = Limits { slots_free: 1, ..Limits::default() };
    let view = View::new(&version, &[], &mem, &options, limits);
    plan(&view, &policies(policy)).swap_remove(0)
}

#[test]
fn a_file_moves_only_within_its_directory() {
    for policy in [PolicyKind::Leveled, PolicyKind::Hybrid, PolicyKind::Adaptive] {
        let out = Pos::base(2);
        let kind = |place, below| {
            let job = job(policy, place, below);
            assert_eq!((job.out, job.inputs), (out, vec![FileId(1)]));
            (job.kind, job.est.write)
        };
        assert_eq!(kind(0, 0), (Kind::Move, 0), "{policy:?}");
        assert_eq!(kind(0, 1), (Kind::Down, 1000), "{policy:?}: the level below is elsewhere");
        assert_eq!(kind(1, 1), (Kind::Move, 0), "{policy:?}: it is there already");
        assert_eq!(kind(1, 0), (Kind::Down, 1000), "{policy:?}");
    }
}
