use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, ReverseBytewise, bytewise};

use crate::index::Interval;
use crate::{BucketMap, BucketStat, Edit, FileMeta, Version, check, index, picture};

fn tree(text: &str) -> Version {
    let lines: Vec<&str> = text.lines().collect();
    let picture = picture::parse(&lines, 1 << 20).unwrap();
    Version::empty(bytewise()).apply(&picture.edit()).unwrap()
}

fn range(lo: &str, hi: &str) -> KeyRange {
    KeyRange::incl(lo.as_bytes(), hi.as_bytes())
}

fn adds(files: Vec<FileMeta>) -> Edit {
    Edit { adds: files, ..Edit::new(CfId(0)) }
}

const TREE: &str = "L0.8  a-----------------m
L0.7  a-------k
L1.1  c-----f
L1.0  a---d e---------m n---z
L2.0  a-b   f---------------z";

#[test]
fn reads_go_from_new_to_old_one_file_per_run() {
    let v = tree(TREE);
    let at = |k: &[u8]| v.runs_covering(k).map(|f| f.pos.to_string()).collect::<Vec<_>>();
    assert_eq!(at(b"d"), ["L0.8", "L0.7", "L1.1", "L1.0"]);
    assert_eq!(at(b"dd"), ["L0.8", "L0.7", "L1.1"], "between two files of the base run");
    assert_eq!(at(b"z"), ["L1.0", "L2.0"]);
    assert_eq!((v.depth(1, b"c"), v.max_depth(1), v.max_depth(0), v.max_depth(3)), (2, 2, 2, 0));
    assert_eq!(v.overlapping(1, &range("d", "e")).count(), 3);
    assert_eq!(v.overlapping_bytes(2, &range("c", "e")), 0);
    assert_eq!(v.overlap_below(1, 1), [1 << 20, 1 << 20, 1 << 20]);
    check::all(&v).unwrap();
}

#[test]
fn edits_fold_and_share_what_they_do_not_touch() {
    let v = tree(TREE);
    let f = v.file(FileId(1)).unwrap();
    let mut edit = adds(vec![f.moved(Pos::new(1, 2))]);
    edit.deletes.push((f.pos, f.id));
    edit.log_number = Some(7);
    let w = v.apply(&edit).unwrap();
    assert_eq!(w.file(FileId(1)).unwrap().pos, Pos::new(1, 2));
    assert_eq!((w.file_count(), w.log_number(), w.max_depth(1)), (v.file_count(), 7, 3));
    assert!(w.level(2).same(v.level(2)) && !w.level(1).same(v.level(1)));
    assert_eq!(v.file(FileId(1)).unwrap().pos, Pos::new(0, 8), "the old version is as it was");
    check::all(&w).unwrap();
}

#[test]
fn buckets_may_come_with_an_edit_or_after_it() {
    let v = tree(TREE);
    let map = |bounds: &[&str]| {
        let bounds = bounds.iter().map(|b| b.as_bytes().into()).collect::<Vec<_>>();
        let stats = vec![BucketStat::default(); bounds.len() + 1];
        std::sync::Arc::new(BucketMap { epoch: 1, bounds, stats })
    };
    let mut edit = adds(vec![v.file(FileId(1)).unwrap().moved(Pos::new(1, 2))]);
    edit.deletes.push((Pos::new(0, 8), FileId(1)));
    let after = v.apply(&edit).unwrap().with_buckets(map(&["g"])).unwrap();
    edit.bucket_hint = Some(map(&["g"]));
    let with = v.apply(&edit).unwrap();
    assert_eq!(after.buckets(), with.buckets());
    assert!(after.files().eq(with.files()) && v.buckets().is_none());
    assert_eq!(v.with_buckets(map(&["m", "g"])).unwrap_err().name, "V14");
}

#[test]
fn broken_edits_are_named() {
    let v = tree(TREE);
    let file = |id, pos, lo: &str, hi: &str| FileMeta::new(FileId(id), pos, range(lo, hi));
    let base = Pos::base(1);
    let name = |e: &Edit| v.apply(e).err().map(|x| x.name);
    assert_eq!(name(&adds(vec![file(50, base, "b", "c")])), Some("V1"));
    assert_eq!(name(&adds(vec![file(50, base, "m", "mm")])), Some("V4"));
    assert_eq!(name(&adds(vec![file(50, base, "mz", "ma")])), Some("V3"));
    assert_eq!(name(&adds(vec![file(1, Pos::base(3), "a", "b")])), Some("V5"));
    let twice = vec![file(50, Pos::base(3), "a", "b"), file(50, Pos::base(4), "a", "b")];
    assert_eq!(name(&adds(twice)), Some("V5"));
    assert_eq!(name(&adds(vec![file(50, Pos::base(7), "a", "b")])), Some("V5"));
    let gone = Edit { deletes: vec![(Pos::base(2), FileId(1))], ..Edit::default() };
    assert_eq!(name(&gone), Some("V5"), "it is there, but not at that position");
    let halves = vec![file(50, Pos::new(0, 9), "a", "b"), file(51, Pos::new(0, 10), "c", "d")];
    let flush = Edit { job: Some(JobId(1)), ..adds(halves) };
    assert_eq!(name(&flush), Some("V13"));
    let late = Edit { job: Some(JobId(1)), ..adds(vec![file(50, Pos::new(0, 8), "x", "y")]) };
    assert_eq!(name(&late), Some("V13"));
    let map = BucketMap {
        epoch: 1,
        bounds: vec![b"m"[..].into(), b"m"[..].into()],
        stats: vec![BucketStat::default(); 3],
    };
    let hint = Edit { bucket_hint: Some(map.into()), ..Edit::default() };
    assert_eq!(name(&hint), Some("V14"));
    assert_eq!(
        check::moves_down(Pos::new(1, 1), &[v.file(FileId(6)).unwrap().clone()]).unwrap_err().name,
        "V6"
    );
    let twice = [&[FileId(1)][..], &[FileId(2), FileId(1)][..]];
    assert_eq!(check::inputs_are_disjoint(twice.into_iter()).unwrap_err().name, "V5");
}

#[test]
fn exclusive_ends_do_not_touch() {
    let v = tree("L0.2  c-----f)\nL0.1  f---k\nL1.0  a---c) c---f) f---z");
    assert_eq!(v.max_depth(0), 1);
    assert_eq!(v.runs_covering(b"f").map(|f| f.id.0).collect::<Vec<_>>(), [2, 5]);
    let whole = index::intervals(v.level(0).runs(), v.order(), |id| id == FileId(1));
    let short = |i: &Interval| (i.lo[0] as char, i.from_lo, i.depth, i.idle_depth);
    let seen: Vec<_> = whole.iter().map(short).collect();
    assert_eq!(seen, [('c', true, 1, 0), ('f', true, 1, 1), ('k', false, 0, 0)]);
}

#[test]
fn intervals_follow_one_lock_after_the_other() {
    let v = tree("L0.4  a-----f)\nL0.3  c--f g--k\nL0.2  a-------h\nL0.1  f---k) k--p");
    let of = |locked: &[FileId]| {
        index::intervals(v.level(0).runs(), v.order(), |id| locked.contains(&id))
    };
    let mut followed = of(&[]);
    let mut locked = Vec::new();
    for file in v.level(0).files() {
        locked.push(file.id);
        index::lock(&mut followed, file, v.order());
        assert_eq!(followed, of(&locked), "with {file:?} locked");
    }
    assert!(locked.len() == 6 && followed.iter().all(|i| i.idle_depth == 0));
}

#[test]
fn searches_agree_with_a_walk() {
    let mut random = fastrand::Rng::with_seed(7);
    for order in [bytewise(), std::sync::Arc::new(ReverseBytewise)] {
        for _ in 0..60 {
            let mut keys: Vec<Vec<u8>> = (0..40)
                .map(|_| {
                    let n = random.usize(0..12);
                    (0..n).map(|_| if random.bool() { 0 } else { random.u8(..3) }).collect()
                })
                .collect();
            keys.sort_by(|a, b| order.compare(a, b));
            keys.dedup();
            let mut files = Vec::new();
            for pair in keys.chunks_exact(2) {
                let r = match random.bool() {
                    true => KeyRange::incl(&pair[0][..], &pair[1][..]),
                    false => KeyRange::excl(&pair[0][..], &pair[1][..]),
                };
                files.push(FileMeta::new(FileId(files.len() as u64 + 1), Pos::base(1), r));
            }
            let v = Version::empty(order.clone()).apply(&adds(files.clone())).unwrap();
            let run = &v.level(1).runs()[0];
            for k in &keys {
                let walk = files.iter().find(|f| f.range.contains(k, &*order)).map(|f| f.id);
                assert_eq!(run.find(k, &*order).map(|f| f.id), walk);
                for j in keys.iter().filter(|j| order.compare(k, j).is_le()) {
                    let r = KeyRange::incl(&k[..], &j[..]);
                    let walk: Vec<_> = files
                        .iter()
                        .filter(|f| f.range.overlaps(&r, &*order))
                        .map(|f| f.id)
                        .collect();
                    let found: Vec<_> = run.overlapping(&r, &*order).iter().map(|f| f.id).collect();
                    assert_eq!(found, walk);
                }
            }
        }
    }
}

#[test]
fn pictures_read_what_they_write() {
    let v = tree(
        "L0.8  a---------m\nL1.0  \\-----b) b==e m-m n---z:64M | words\nL2.0  \\x00\\xff---zz",
    );
    let locked = |id| id == FileId(3);
    let drawn = picture::print_bare(&v, locked);
    let lines: Vec<&str> = drawn.lines().collect();
    let again = picture::parse(&lines, 1 << 20).unwrap();
    assert_eq!(again.locked, [FileId(3)]);
    let key = |f: &FileMeta| (f.pos, f.range.clone());
    assert_eq!(
        again.files.iter().map(key).collect::<Vec<_>>(),
        v.files().map(|f| key(f)).collect::<Vec<_>>()
    );
    assert!(picture::print(&v, locked).contains("| 4 files, 67.0 MiB"));
    for bad in ["L1  a-b", "x", "L1.0 ab", "L1.0 a-b:q", "L1.0 \\zz-b", "L1.0 -b", "L1.0 é-\\é"] {
        assert!(picture::parse(&[bad], 1).is_err(), "{bad}");
    }
}

#[test]
fn large_trees_are_drawn_to_scale() {
    let files = (0..5000u64).map(|i| {
        let lo = [&i.to_be_bytes()[..], b"\xff\x00 binary tail"].concat();
        let hi = [&i.to_be_bytes()[..], b"\xff\x01 binary tail"].concat();
        let mut f = FileMeta::new(FileId(i + 1), Pos::base(6), KeyRange::incl(lo, hi));
        f.bytes = 64 << 20;
        f
    });
    let v = Version::empty(bytewise()).apply(&adds(files.collect())).unwrap();
    let drawn = picture::print(&v, |id| id.0 <= 2500);
    let lines: Vec<&str> = drawn.lines().collect();
    assert_eq!(lines.len(), 3);
    let first =
        "first key  \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xff\\x00\\x20 (first 11 of 22 bytes)";
    assert_eq!(lines[0], first);
    assert!(lines[1].starts_with("last key   \\x00") && lines[1].is_ascii());
    assert!(lines[2].ends_with("| 5000 files, 312.5 GiB") && lines[2].len() < 120, "{drawn}");
    assert_eq!(lines[2].matches('=').count(), 36);
    assert_eq!(lines[2].matches('-').count(), 36);
    for columns in [60, 80, 200] {
        let drawn = picture::print_within(&v, columns, |_| false);
        let widest = drawn.lines().filter(|l| l.starts_with('L')).map(str::len).max();
        assert_eq!(widest, Some(columns), "{drawn}");
    }
    assert!(picture::print_within(&v, 1, |_| false).contains("----"), "something is always shown");
}

/// A picture that is small enough has its keys; in fewer columns it is drawn to scale.
#[test]
fn pictures_fit_the_columns_that_there_are() {
    let v = tree("L0.8  a---m\nL1.0  a-----b e---m n---z");
    let whole = picture::print(&v, |_| false);
    assert_eq!(picture::print_within(&v, 200, |_| false), whole);
    let widest = whole.lines().map(str::len).max().unwrap();
    assert_eq!(picture::print_within(&v, widest, |_| false), whole);
    let narrow = picture::print_within(&v, widest - 1, |_| false);
    assert!(narrow.starts_with("first key  a\nlast key   z\n"), "{narrow}");
    assert!(narrow.lines().all(|l| l.len() < widest), "{narrow}");
}
