use lithify_env::{Random, SharedBytes};

use super::*;

fn block(bytes: usize) -> Block {
    let mut owned = SharedBytes::zeroed(bytes).unwrap();
    owned.get_mut().unwrap().fill(7);
    Block::new(owned, 0, bytes)
}

#[test]
fn weight_stays_below_the_capacity() {
    let cache = BlockCache::new(100 << 10, 2);
    let file = cache.open_file();
    for i in 0..1000 {
        file.insert(i * 4096, block(4096));
    }
    let counts = cache.counts();
    assert!(counts.bytes <= 100 << 10 && counts.blocks >= 10, "{counts:?}");
    cache.set_capacity(20 << 10);
    assert!(cache.counts().bytes <= 20 << 10, "{:?}", cache.counts());
    assert!(cache.capacity() >= 20 << 10);
}

#[test]
fn files_do_not_see_each_others_blocks() {
    let cache = BlockCache::new(1 << 20, 1);
    let (a, b) = (cache.open_file(), cache.open_file());
    a.insert(0, block(10));
    a.insert(4096, block(20));
    b.insert(0, block(30));
    assert_eq!(b.get(0).unwrap().as_ref().len(), 30);
    assert!(b.get(4096).is_none());
    a.forget();
    assert!(a.get(0).is_none() && b.get(0).is_some());
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.blocks), (2, 2, 1));
}

#[test]
fn an_evicted_block_lives_as_long_as_its_holder() {
    let cache = BlockCache::new(10 << 10, 1);
    let file = cache.open_file();
    file.insert(0, block(4096));
    let held = file.get(0).unwrap();
    for i in 1..100 {
        file.insert(i * 4096, block(4096));
    }
    assert_eq!(held.as_ref(), [7; 4096]);
}

#[test]
fn a_cache_of_nothing_holds_nothing() {
    let cache = BlockCache::new(0, 4);
    let file = cache.open_file();
    file.insert(0, block(1));
    assert!(file.get(0).is_none());
}

#[test]
fn equal_lives_evict_the_same() {
    let held = || {
        let cache = BlockCache::new(100 << 10, 4);
        let files: Vec<CachedFile> = (0..8).map(|_| cache.open_file()).collect();
        let places = |i: u64| (&files[i as usize % 8], i / 8 * 4096);
        for i in 0..400 {
            let (file, offset) = places(i);
            file.insert(offset, block(2000));
            files[0].get(0);
        }
        (0..400).map(|i| places(i).0.get(places(i).1).is_some()).collect::<Vec<bool>>()
    };
    assert_eq!(held(), held());
}

/// What was used long ago lies between what was used just now; the cache gives its memory back all the same, and
/// what it keeps is in full slabs.
#[test]
fn a_cache_that_loses_much_gives_its_memory_back() {
    let cache = BlockCache::new(32 << 20, 4);
    let file = cache.open_file();
    let made = |number: u64| {
        let mut owned = cache.memory().get(4200).unwrap();
        owned.get_mut().unwrap().fill(number as u8);
        Block::new(owned, 0, 4200)
    };
    (0..6000).for_each(|i| file.insert(i * 4200, made(i)));
    // Every third one is in use.
    for _ in 0..3 {
        (0..2000).for_each(|i| drop(file.get(3 * i * 4200)));
    }
    let held = cache.counts().bytes;
    assert!(held > 25 << 20, "{held}");
    for (capacity, most) in [(8_u64 << 20, 9_usize << 20), (2 << 20, 5 << 19)] {
        cache.set_capacity(capacity);
        let (left, resident) = (cache.counts().bytes, cache.memory().resident());
        assert!(left <= capacity && left > capacity / 4 * 3, "{left} of {capacity}");
        assert!(resident <= most, "{resident} bytes for {left}");
    }
    for i in 0..6000 {
        let found = file.get(i * 4200);
        assert!(found.is_none_or(|block| block.as_ref().iter().all(|byte| *byte == i as u8)));
    }
}

/// Hits of reads that follow `next`, the last half of 400,000, and how many blocks went in, with a full cache that takes
/// what is read for the second time, or all.
fn hits(every: bool, mut next: impl FnMut(u64) -> u64) -> (u64, u64) {
    let cache = BlockCache::new(4 << 20, 1);
    let file = cache.open_file();
    let (mut hits, mut taken) = (0, 0);
    for i in 0..400_000 {
        let offset = next(i) * 3700;
        if file.get(offset).is_some() {
            hits += u64::from(i >= 200_000);
            continue;
        }
        let key = BlockKey { file: file.number, offset };
        if every || cache.takes(&key, 3712) {
            cache.blocks.insert(key, Held::Block(block(3600)));
            taken += u64::from(i >= 200_000);
        }
    }
    (hits, taken)
}

/// A cache of about 1,100 blocks: what is read at random, more often or less, what moves on, and what is read once.
#[test]
fn blocks_that_are_taken_when_read_twice_are_hit_as_often() {
    /// Below 11,000, a number the less often the larger it is.
    fn seldom(rng: &mut Random) -> u64 {
        (11_000f64.powf(rng.below(1 << 30) as f64 / (1u64 << 30) as f64) - 1.0) as u64
    }
    type Reads = fn(&mut Random, u64) -> u64;
    let reads: [(&str, Reads); 6] = [
        ("ten times the cache", |rng, _| rng.below(11_000)),
        ("a little more than the cache", |rng, _| rng.below(1300)),
        ("less than the cache, moving on", |rng, i| i / 20_000 * 50_000 + rng.below(900)),
        ("few often, many seldom", |rng, _| seldom(rng)),
        ("few often, moving on", |rng, i| i / 10 + seldom(rng)),
        ("scans between", |rng, i| if i % 2 == 0 { i + 20_000 } else { rng.below(1000) }),
    ];
    for (name, next) in reads {
        let run = |every| {
            let mut rng = Random::from_seed(7);
            hits(every, |i| next(&mut rng, i))
        };
        let (all, twice) = (run(true), run(false));
        // A block of a new set is missed once more.
        assert!(twice.0 * 100 >= all.0 * 95, "{name}: {} hits, {} before", twice.0, all.0);
        assert!(twice.1 <= all.1, "{name}: {} blocks went in, {} before", twice.1, all.1);
    }
}
