use lithify_base::{End, Key, Pos};
use lithify_engine::{CpuEngine, Engine};
use lithify_merge::workload::Choices;
use lithify_merge::{JobRange, Recipe};

use super::*;
use crate::context::Times;
use crate::order::{OpenTables, OutputOrder, RunOrder};
use crate::recipe;
use crate::testing::{WRITE, World, key};

/// A set as it arrived: its keys, and of each run the bytes of its blocks.
type Seen = (Option<Key>, Vec<(u16, Vec<Vec<u8>>)>);

fn feed(world: &World, runs: &[InputRun], range: JobRange, memory: u64) -> Feed {
    let mut recipe = Recipe::new(runs.len() as u16);
    recipe.range = range;
    let order = PartOrder {
        runs: runs.iter().map(|run| RunOrder::of(run, &recipe.range, &*recipe.order)).collect(),
        counted: recipe::counted(runs),
        recipe: Arc::new(recipe),
        output: OutputOrder {
            pos: Pos::base(2),
            place: 0,
            epoch: 1,
            times: Times::default(),
            shape: world.context.output.clone(),
        },
        memory,
        urgency: SharedUrgency::default(),
    };
    order.begin(&world.context, &OpenTables::of(runs)).unwrap().0
}

/// Everything that a feed over `runs` gives, fed as `caps` say, and the most bytes that were ahead.
fn fed(
    world: &World,
    runs: &[InputRun],
    memory: u64,
    mut caps: impl FnMut() -> Caps,
) -> (Vec<Seen>, u64) {
    let mut feed = feed(world, runs, JobRange::default(), memory);
    let (mut sets, mut most) = (Vec::new(), 0);
    loop {
        let now = caps();
        feed.read_ahead(|| Wants { caps: now, share: None, engine: None }).unwrap();
        most = most.max(feed.ahead.iter().map(|r| r.bytes() as u64).sum());
        if feed.is_spent() {
            return (sets, most);
        }
        match feed.next_set().unwrap() {
            Ok(set) => sets.push(seen(&set)),
            Err(ticket) => {
                world.context.env.rt.park(&ticket, None);
            }
        }
    }
}

fn seen(set: &BlockSet) -> Seen {
    let blocks =
        |run: &RunSlice| run.blocks.iter().map(|block| block.bytes.as_slice().to_vec()).collect();
    (set.keys.hi.clone(), set.runs.iter().map(|run| (run.run, blocks(run))).collect())
}

fn bytes(set: &Seen) -> usize {
    set.1.iter().flat_map(|(_, blocks)| blocks).map(Vec::len).sum()
}

fn cpu() -> Caps {
    CpuEngine.caps()
}

#[test]
fn sets_cut_one_at_a_time_are_those_cut_at_once() {
    for seed in 0..10 {
        let world = World::filled(seed);
        let runs = world.runs();
        for memory in [1, 20_000, 100_000, 10 << 20] {
            let (sets, _) = fed(&world, &runs, memory, cpu);
            let mut cut = feed(&world, &runs, JobRange::default(), memory).cut;
            let portion = portion(&cpu(), memory, runs.len(), WRITE as u64);
            let cuts = std::iter::from_fn(|| cut.next_set(portion.set, portion.ways));
            let at_once: Vec<CutSet> = cuts.collect();
            assert!(memory > 20_000 || at_once.len() > 3, "{} sets", at_once.len());
            let sizes = |s: &Seen| (s.0.clone(), bytes(s) as u64);
            let expected: Vec<_> = at_once.iter().map(|c| (c.keys.hi.clone(), c.bytes)).collect();
            assert_eq!(sets.iter().map(sizes).collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}

/// Each set by itself is as large as the engine wants it by then.
#[test]
fn the_engine_is_asked_before_each_set() {
    let world = World::filled(1);
    let runs = world.runs();
    let dice = &mut Choices::new(1);
    let wanted = std::cell::RefCell::new(Vec::new());
    let (sets, _) = fed(&world, &runs, 10 << 20, || {
        let caps = Caps { set_bytes: 4000 << dice.below(3), sets_in_flight: 0, ..cpu() };
        wanted.borrow_mut().push(caps.set_bytes);
        caps
    });
    let largest = *wanted.borrow().iter().max().unwrap() as usize;
    assert!(sets.len() > 10, "{} sets", sets.len());
    assert!(sets.iter().any(|set| bytes(set) > largest / 2), "some are large");
    assert!(sets.iter().all(|set| bytes(set) <= largest), "none is larger than any wish");
    assert!(sets.iter().any(|set| bytes(set) <= 4000), "some are small");
}

/// An engine may want smaller sets at the end of a part; that is no want of memory.
#[test]
fn the_last_sets_are_smaller_if_the_engine_wants_that() {
    let world = World::filled(1);
    let runs = world.runs();
    let sizes = |last_bytes| {
        let caps = Caps { set_bytes: 20_000, last_bytes, ..cpu() };
        let (sets, _) = fed(&world, &runs, 10 << 20, || caps);
        sets.iter().map(bytes).collect::<Vec<_>>()
    };
    let (alike, smaller) = (sizes(u64::MAX), sizes(10_000));
    assert!(alike.len() > 8 && alike[..alike.len() - 2].iter().all(|&n| n > 15_000), "{alike:?}");
    let first = alike.len() - 4;
    assert_eq!(smaller[..first], alike[..first], "only those with little behind them are smaller");
    let last = &smaller[smaller.len() - 3..];
    assert!(last.iter().all(|&n| n <= 10_000), "{smaller:?}");
}

#[test]
fn what_is_ahead_keeps_to_the_memory_of_the_part() {
    let world = World::filled(2);
    let runs = world.runs();
    for memory in [30_000, 60_000, 200_000] {
        for sets in [1, 2, 6] {
            let caps = Caps { sets_in_flight: sets, set_bytes: 1 << 30, ..cpu() };
            let portion = portion(&caps, memory, runs.len(), WRITE as u64);
            let (all, most) = fed(&world, &runs, memory, || caps);
            let least = runs.len() as u64 * WRITE as u64 / 4;
            assert_eq!(portion.set, (memory / 2 / (sets as u64 + 1)).max(least));
            // Where the blocks that straddle bounds are a set by themselves, sets are larger.
            let set = portion.set.max(2 * runs.len() as u64 * 800);
            assert!(all.iter().all(|s| bytes(s) as u64 <= set), "no set is larger");
            assert!(most < memory / 2 + set, "{most} bytes ahead of {memory}");
            assert!(most > portion.set, "{most} bytes: more than a set is ahead of {memory}");
        }
    }
}

/// What parts had before engines were asked: two writes a set, three sets ahead, six writes at most.
#[test]
fn the_cpu_gets_what_it_got() {
    let write = 2 << 20;
    let cpu = portion(&cpu(), 12 * write, 4, write);
    assert_eq!(cpu, Portion { set: 2 * write, ways: u16::MAX, ahead: (3, 6 * write) });
    let many = portion(&CpuEngine.caps(), 12 * (64 << 10), 100, 64 << 10);
    assert_eq!(many.set, 100 * (16 << 10), "none of many runs is read in crumbs");
    let small = Caps { max_set_bytes: 1000, ..CpuEngine.caps() };
    assert_eq!(portion(&small, 12 * write, 4, write).set, 1000, "no more than it takes");
}

#[test]
fn blocks_say_what_their_index_counts() {
    for version in [5, 6] {
        let mut world = World::new(version);
        world.flush(0..200, 3, Pos::new(0, 1));
        let runs = world.runs();
        let mut feed = feed(&world, &runs, JobRange::default(), 1);
        let (mut entries, mut key_bytes) = (0, 0);
        loop {
            feed.read_ahead(|| Wants { caps: cpu(), share: None, engine: None }).unwrap();
            if feed.is_spent() {
                break;
            }
            match feed.next_set().unwrap() {
                Ok(set) => {
                    for block in set.runs.iter().flat_map(|run| &*run.blocks) {
                        let seen = set.keys.lo.is_none();
                        entries += if seen { u64::from(block.entries) } else { 0 };
                        key_bytes += if seen { block.key_bytes } else { 0 };
                        assert_eq!(block.entries > 0, version == 6);
                        assert_eq!(
                            block.key_bytes,
                            u64::from(block.entries) * (key(0).len() as u64 + 8)
                        );
                    }
                }
                Err(ticket) => {
                    world.context.env.rt.park(&ticket, None);
                }
            }
        }
        assert_eq!(entries > 0, version == 6);
        assert_eq!(key_bytes > 0, version == 6);
    }
}

/// An engine with one way gets the tables of a level one after the other, and those of several levels
/// together only where they overlap.
#[test]
fn ways_are_kept_where_files_lie_side_by_side() {
    let mut world = World::new(6);
    for run in 0..4 {
        world.flush(run * 200..run * 200 + 200, 5, Pos::new(0, run + 1));
    }
    let runs = world.runs();
    let (sets, _) = fed(&world, &runs, 10 << 20, || Caps { ways: 1, ..cpu() });
    assert!(sets.iter().all(|(_, runs)| runs.len() == 1), "each set is of one run");
    let (free, _) = fed(&world, &runs, 10 << 20, cpu);
    assert_eq!((sets.len(), free.len()), (4, 1));
}

#[test]
fn a_part_reads_the_blocks_that_may_hold_its_keys() {
    let world = World::filled(4);
    let runs = world.runs();
    let (lo, hi) = (Key::from(&key(300)[..]), Key::from(&key(420)[..]));
    let range = JobRange { lo: Some(lo), hi: Some(End { key: hi.clone(), inclusive: false }) };
    let feed = feed(&world, &runs, range, 1);
    let all: usize = runs.iter().flat_map(|r| &r.files).map(|f| f.1.block_fences().len()).sum();
    let part: usize = (0..runs.len()).map(|no| feed.cut.index().blocks(no)).sum();
    assert!(part < all);
}
