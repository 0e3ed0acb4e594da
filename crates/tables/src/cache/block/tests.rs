use lithify_env::SharedBytes;

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
