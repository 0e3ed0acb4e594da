use super::*;
use crate::kernel::{Kernel, Work};
use crate::products::{Item, Products};
use crate::set::BlockSet;
use crate::workload::{Case, Choices, Size};
use lithify_base::bytewise;
use proptest::prelude::*;

/// Blocks of ten bytes that end at `ends`; of none is it known where it begins.
fn fences(ends: &[u8]) -> Vec<BlockFence> {
    let fence = |&k: &u8| BlockFence { first_key: None, last_key: [k][..].into(), bytes: 10 };
    ends.iter().map(fence).collect()
}

/// The same, but the first is known to begin at `first`.
fn from(first: u8, ends: &[u8]) -> Vec<BlockFence> {
    let mut run = fences(ends);
    run[0].first_key = Some([first][..].into());
    run
}

fn cut(runs: &[Vec<BlockFence>]) -> CleanCut<Vec<Vec<BlockFence>>> {
    CleanCut::new(runs.to_vec(), &JobRange::default(), bytewise())
}

fn all_sets(runs: &[Vec<BlockFence>], budget: u64) -> Vec<CutSet> {
    let mut cut = cut(runs);
    std::iter::from_fn(|| cut.next_set(budget, u16::MAX)).collect()
}

fn end(set: &CutSet) -> Option<&[u8]> {
    set.keys.hi.as_deref()
}

fn ways(set: &CutSet) -> usize {
    set.blocks.iter().filter(|blocks| !blocks.is_empty()).count()
}

#[test]
fn a_straddling_block_is_sent_twice() {
    let runs = [fences(b"cfk"), fences(b"eh")];
    let sets = all_sets(&runs, 40);
    assert_eq!(sets[0].keys.hi.as_deref(), Some(&b"c"[..]));
    assert_eq!(sets[0].blocks, [0..2, 0..1]);
    assert_eq!(sets[1].blocks, [1..3, 0..2]);
    assert_eq!(sets[1].keys, CleanRange { lo: Some(b"c"[..].into()), hi: None });
}

#[test]
fn a_small_rest_is_split_evenly() {
    let runs = [fences(&(0..14).collect::<Vec<u8>>())];
    let bytes: Vec<u64> = all_sets(&runs, 100).iter().map(|s| s.bytes).collect();
    assert_eq!(bytes, [70, 80], "140 bytes are two halves and the block between them");
}

#[test]
fn one_giant_key_does_not_stop_the_cut() {
    let runs = [fences(&[5; 30]), fences(&[1, 5, 9])];
    let sets = all_sets(&runs, 20);
    assert!(sets.iter().any(|s| s.bytes > 300), "all versions of the key lie in one set");
    assert_eq!(sets.last().map(|s| s.keys.hi.clone()), Some(None));
}

#[test]
fn a_giant_block_is_not_sent_again_with_each_small_one() {
    let giant = vec![BlockFence { first_key: None, last_key: b"\xff"[..].into(), bytes: 5000 }];
    let small = fences(&(0..200).collect::<Vec<u8>>());
    let sets = all_sets(&[giant, small], 40);
    let sent: u64 = sets.iter().map(|s| s.bytes).sum();
    assert!(sent <= 2 * (5000 + 2000), "{sent} bytes in {} sets", sets.len());
}

#[test]
fn a_run_that_begins_later_is_not_in_the_set() {
    let runs = [fences(b"cfk"), from(b'd', b"eh")];
    let mut one = cut(&runs);
    let set = one.next_set(1000, 1).unwrap();
    assert_eq!((end(&set), &set.blocks[..], set.bytes), (Some(&b"c"[..]), &[0..2, 0..0][..], 20));
    let set = one.next_set(1000, 2).unwrap();
    assert_eq!((end(&set), &set.blocks[..]), (None, &[1..3, 0..2][..]));
    assert!(one.is_spent() && one.next_set(1000, 2).is_none());
}

#[test]
fn one_way_goes_through_runs_that_lie_side_by_side() {
    let runs = [from(b'a', b"bcd"), from(b'e', b"fgh"), from(b'i', b"klm")];
    let mut cut = cut(&runs);
    let sets: Vec<CutSet> = std::iter::from_fn(|| cut.next_set(1000, 1)).collect();
    assert_eq!(sets.iter().map(end).collect::<Vec<_>>(), [Some(&b"d"[..]), Some(b"h"), None]);
    assert!(sets.iter().all(|set| ways(set) == 1 && set.bytes == 30), "{sets:?}");
}

#[test]
fn too_many_runs_make_the_least_progress() {
    let runs = [fences(b"cfk"), fences(b"eh"), fences(b"z")];
    let mut cut = cut(&runs);
    let sets: Vec<CutSet> = std::iter::from_fn(|| cut.next_set(1000, 2)).collect();
    let ends: Vec<_> = sets.iter().map(end).collect();
    // Up to `k` three runs are left; then one.
    assert_eq!(ends, [Some(&b"c"[..]), Some(b"e"), Some(b"f"), Some(b"h"), None]);
    assert_eq!(sets.iter().map(ways).collect::<Vec<_>>(), [3, 3, 3, 3, 2]);
}

/// Runs of blocks, some of which are known to begin where they do: each run is sorted, and a block
/// begins above or at the end of the one before.
fn runs() -> impl Strategy<Value = Vec<Vec<BlockFence>>> {
    let block = (any::<u8>(), prop::option::of(0u8..=255), 1u64..30);
    let run = prop::collection::vec(block, 0..40).prop_map(|mut blocks| {
        blocks.sort_unstable_by_key(|block| block.0);
        let mut before = 0;
        let fence = |(end, first, bytes): (u8, Option<u8>, u64)| {
            let first_key = first.map(|by| {
                let span = u32::from(end - before) + 1;
                Key::from(&[before + (u32::from(by) * span / 256) as u8][..])
            });
            before = end;
            BlockFence { first_key, last_key: [end][..].into(), bytes }
        };
        blocks.into_iter().map(fence).collect::<Vec<_>>()
    });
    prop::collection::vec(run, 1..6)
}

/// Whether a block may hold keys of `keys`: it begins at the end of the one before, or later if that
/// is known, and ends at its own.
fn meets(run: &[BlockFence], i: usize, keys: &CleanRange) -> bool {
    let fence = &run[i];
    let starts_in = keys.hi.as_ref().is_none_or(|hi| {
        fence.first_key.as_ref().is_none_or(|first| first <= hi)
            && (i == 0 || run[i - 1].last_key <= *hi)
    });
    starts_in && keys.lo.as_ref().is_none_or(|lo| fence.last_key > *lo)
}

/// What a set up to the end `hi` would be: its bytes and ways.
fn measure(runs: &[Vec<BlockFence>], lo: Option<Key>, hi: Key) -> (u64, usize) {
    let keys = CleanRange { lo, hi: Some(hi) };
    let sent = |run: &Vec<BlockFence>| -> u64 {
        (0..run.len()).filter(|&i| meets(run, i, &keys)).map(|i| run[i].bytes).sum()
    };
    let sent: Vec<u64> = runs.iter().map(sent).collect();
    (sent.iter().sum(), sent.iter().filter(|&&bytes| bytes > 0).count())
}

/// The payloads of all blocks, and after how many of them files are cut.
fn merged(case: &Case, sets: Vec<BlockSet>) -> (Vec<Vec<u8>>, Vec<usize>) {
    let mut kernel = Kernel::new(case.recipe.clone()).unwrap();
    let (mut products, mut blocks, mut cuts) = (Products::default(), Vec::new(), Vec::new());
    let mut take = |kernel: &mut Kernel| {
        kernel.drain(&mut products);
        for item in products.items() {
            match item {
                Item::Block(block) => blocks.push(products.block(block).to_vec()),
                Item::FileCut(_) => cuts.push(blocks.len()),
                Item::SetDone(_) => {}
            }
        }
    };
    for set in sets {
        kernel.begin(set).unwrap();
        while kernel.work(1 << 20).unwrap() != Work::SetDone {}
        take(&mut kernel);
    }
    kernel.finish().unwrap();
    take(&mut kernel);
    (blocks, cuts)
}

#[test]
fn limits_that_change_between_sets_leave_no_trace_in_the_output() {
    let (mut several, mut fewer) = (0, 0);
    for seed in 0..120 {
        let case = Case::generate(seed, Size { entries: 60, value: 200 }).unwrap();
        let dice = &mut Choices::new(seed);
        let limits = || (1 << dice.below(14), 1 + dice.below(6) as u16);
        let sets = case.sets_within(limits);
        several += usize::from(sets.len() > 3);
        let runs = |set: &BlockSet| set.runs.iter().filter(|run| !run.blocks.is_empty()).count();
        fewer += usize::from(sets.iter().any(|set| runs(set) < case.runs.len()));
        assert_eq!(merged(&case, sets), merged(&case, case.sets(u64::MAX)), "seed {seed}");
    }
    assert!(several > 60 && fewer > 30, "{several} cases in several sets, {fewer} of fewer runs");
}

proptest! {
    /// Every block is sent to every set whose keys it may hold, and sets cover all keys once, though
    /// budget and ways are others each time.
    #[test]
    fn sets_cover_all_keys_in_order(
        runs in runs(),
        limits in prop::collection::vec((1u64..600, 1u16..7), 1..9),
    ) {
        let mut cut = cut(&runs);
        let mut limits = limits.into_iter().cycle();
        let sets: Vec<CutSet> = std::iter::from_fn(|| {
            let (budget, ways) = limits.next().unwrap();
            cut.next_set(budget, ways)
        }).collect();
        prop_assert_eq!(sets.is_empty(), runs.iter().all(Vec::is_empty));
        let mut lo: Option<Key> = None;
        for (no, set) in sets.iter().enumerate() {
            prop_assert_eq!(set.no as usize, no);
            prop_assert_eq!(&set.keys.lo, &lo);
            prop_assert!(set.keys.hi.is_none() || set.keys.hi > lo);
            let mut bytes = 0;
            for (run, sent) in runs.iter().zip(&set.blocks) {
                for i in 0..run.len() {
                    let meets = meets(run, i, &set.keys);
                    prop_assert_eq!(sent.contains(&i), meets, "set {} block {}", no, i);
                    bytes += if meets { run[i].bytes } else { 0 };
                }
            }
            prop_assert_eq!(set.bytes, bytes);
            lo = set.keys.hi.clone();
        }
        prop_assert!(lo.is_none(), "the last set is open");
    }

    /// A set keeps budget and ways, or there is no smaller one; and the next end of a block would
    /// exceed one of them, unless what is left was to be split evenly.
    #[test]
    fn a_set_is_the_largest_that_keeps_both(
        runs in runs(),
        budget in 1u64..600,
        limit in 1u16..7,
    ) {
        let mut cut = cut(&runs);
        let mut ends: Vec<&Key> = runs.iter().flatten().map(|fence| &fence.last_key).collect();
        ends.sort();
        ends.dedup();
        let mut lo: Option<Key> = None;
        loop {
            let budget = budget.max(2 * cut.bytes_again());
            let left = cut.bytes_left;
            let Some(set) = cut.next_set(budget, limit) else { break };
            let above = ends.partition_point(|end| lo.as_ref().is_some_and(|lo| *end <= lo));
            let Some(hi) = &set.keys.hi else {
                let kept = set.bytes <= budget && ways(&set) <= usize::from(limit);
                prop_assert!(kept || ends.len() - above <= 1, "{:?} of {}", set, left);
                break;
            };
            let kept = set.bytes <= budget && ways(&set) <= usize::from(limit);
            prop_assert!(kept || hi == ends[above], "{:?} neither keeps nor is the least", set);
            let next = ends[ends.partition_point(|end| *end <= hi)].clone();
            let (more, runs) = measure(&runs, lo.clone(), next);
            let even = left > budget && left < budget + budget / 2;
            let target = if even { left.div_ceil(2) } else { budget };
            prop_assert!(more > target || runs > usize::from(limit), "{:?} could be larger", set);
            lo = Some(hi.clone());
        }
    }
}
