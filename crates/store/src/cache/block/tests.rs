use super::*;

fn block(bytes: usize) -> Block {
    Block::owned(vec![7; bytes])
}

#[test]
fn weight_stays_below_the_capacity() {
    let cache = BlockCache::new(100 << 10, 2);
    let file = FileTag::next();
    for i in 0..1000 {
        cache.insert(file, i * 4096, block(4096));
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
    let (a, b) = (FileTag::next(), FileTag::next());
    cache.insert(a, 0, block(10));
    cache.insert(a, 4096, block(20));
    cache.insert(b, 0, block(30));
    assert_eq!(cache.get(b, 0).unwrap().as_ref().len(), 30);
    assert!(cache.get(b, 4096).is_none());
    cache.forget(a);
    assert!(cache.get(a, 0).is_none() && cache.get(b, 0).is_some());
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.blocks), (2, 2, 1));
}

#[test]
fn an_evicted_block_lives_as_long_as_its_holder() {
    let cache = BlockCache::new(10 << 10, 1);
    let file = FileTag::next();
    cache.insert(file, 0, block(4096));
    let held = cache.get(file, 0).unwrap();
    for i in 1..100 {
        cache.insert(file, i * 4096, block(4096));
    }
    assert_eq!(held.as_ref(), [7; 4096]);
}

#[test]
fn a_cache_of_nothing_holds_nothing() {
    let cache = BlockCache::new(0, 4);
    let file = FileTag::next();
    cache.insert(file, 0, block(1));
    assert!(cache.get(file, 0).is_none());
}
