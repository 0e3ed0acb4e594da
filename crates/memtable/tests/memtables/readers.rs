//! One writer and several readers at once: what was published is visible, order never breaks, and
//! iterators skip nothing that existed when they were positioned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lithify_base::{Kind, MAX_SEQ, Tag, bytewise};
use lithify_memtable::{HeapPool, MemTable, MemTableOptions};

const ENTRIES: u64 = if cfg!(miri) { 120 } else { 130_000 };
const READERS: u64 = if cfg!(miri) { 2 } else { 3 };
const ROUNDS: u64 = if cfg!(miri) { 3 } else { 9 };

/// A bijection, so that key and number determine each other.
fn scatter(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(31).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// The key written with sequence number `seq`; three shapes that split nodes differently.
fn key(shape: u64, seq: u64) -> Vec<u8> {
    match shape {
        0 => scatter(seq).to_be_bytes().to_vec(),
        1 => format!("a/prefix/of/some/length/{:08}", scatter(seq) % 1_000_000).into_bytes(),
        // Eight ascending sequences.
        _ => [&[b'a' + (seq % 8) as u8][..], &seq.to_be_bytes()].concat(),
    }
}

/// What the entry with sequence number `seq` carries.
fn value(seq: u64) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&seq.to_le_bytes());
    value[8..].copy_from_slice(&scatter(seq).to_le_bytes());
    value
}

struct World {
    table: Arc<MemTable>,
    shape: u64,
    published: AtomicU64,
    done: AtomicBool,
}

impl World {
    fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Point reads of published entries, each with its own content.
    fn read_points(&self, rng: &mut fastrand::Rng) {
        let seen = self.published();
        for _ in 0..50.min(seen) {
            let seq = rng.u64(1..=seen);
            let key = key(self.shape, seq);
            let (tag, found) = self.table.get_newest(&key, seq).expect("published");
            assert_eq!((tag, found), (Tag::new(seq, Kind::Value), &value(seq)[..]));
            let newest = self.table.get_newest(&key, MAX_SEQ).expect("published").0;
            assert!(newest.seq() >= seq);
        }
    }

    /// Walks a stretch from a random key; everything published before it must show up.
    fn scan(&self, rng: &mut fastrand::Rng, forward: bool) {
        let seen = self.published();
        let mut iter = self.table.iter();
        let full = rng.u8(..16) == 0;
        let limit = if full { usize::MAX } else { rng.usize(..600) };
        let start = (!full).then(|| (key(self.shape, rng.u64(..ENTRIES)), Tag::seek(MAX_SEQ)));
        match (&start, forward) {
            (None, true) => iter.seek_to_first(),
            (None, false) => iter.seek_to_last(),
            (Some((user, tag)), true) => iter.seek(user, *tag),
            (Some((user, tag)), false) => iter.seek_for_prev(user, *tag),
        }
        let mut last: Option<(Vec<u8>, Tag)> = None;
        let (mut old, mut steps) = (0, 0);
        while iter.valid() && steps < limit {
            let here = (iter.user_key().to_vec(), iter.tag());
            let seq = here.1.seq();
            assert_eq!(here.0, key(self.shape, seq));
            assert_eq!(iter.value(), value(seq));
            if let Some(last) = &last {
                let ascends = last.0.cmp(&here.0).then(here.1.cmp(&last.1)).is_lt();
                assert!(ascends == forward && *last != here, "order");
            }
            old += u64::from(seq <= seen);
            last = Some(here);
            steps += 1;
            if forward { iter.next() } else { iter.prev() }
        }
        if full {
            assert_eq!(old, seen, "a full scan meets every entry published before it");
        } else if let (Some((user, _)), Some(last)) = (start, last) {
            let expected = self.count_between(&user, &last, seen, forward);
            assert_eq!(old, expected, "a stretch meets every entry published before it");
        }
    }

    /// Counts entries up to `seen` from `user` to `last` the slow way: by their numbers.
    fn count_between(&self, user: &[u8], last: &(Vec<u8>, Tag), seen: u64, forward: bool) -> u64 {
        // Comparing all numbers is dear; a sample of the scans is enough.
        if seen > 3_000 {
            return self.count_again(user, last, seen, forward);
        }
        let inside = |seq: &u64| {
            let key = key(self.shape, *seq);
            let tag = Tag::new(*seq, Kind::Value);
            let against_last = key.cmp(&last.0).then(last.1.cmp(&tag));
            if forward {
                key.as_slice() >= user && against_last.is_le()
            } else {
                key.as_slice() < user && against_last.is_ge()
            }
        };
        (1..=seen).filter(inside).count() as u64
    }

    /// Counts the same entries by walking the other way.
    fn count_again(&self, user: &[u8], last: &(Vec<u8>, Tag), seen: u64, forward: bool) -> u64 {
        let mut iter = self.table.iter();
        let mut count = 0;
        iter.seek(&last.0, last.1);
        while iter.valid() {
            let outside = if forward { iter.user_key() < user } else { iter.user_key() >= user };
            if outside {
                break;
            }
            count += u64::from(iter.tag().seq() <= seen);
            if forward { iter.prev() } else { iter.next() }
        }
        count
    }

    fn read_until_done(&self, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut forward = true;
        while !self.done.load(Ordering::Acquire) {
            self.read_points(&mut rng);
            self.scan(&mut rng, forward);
            forward = !forward;
        }
        self.scan(&mut rng, true);
    }
}

#[test]
fn readers_see_everything_published_in_order() {
    for round in 0..ROUNDS {
        let options = MemTableOptions { order: bytewise(), arena_bytes: 1 << 16, bloom: true };
        let (table, mut writer) = MemTable::new(options, Arc::new(HeapPool));
        let shape = round % 3;
        let world =
            World { table, shape, published: AtomicU64::new(0), done: AtomicBool::new(false) };
        std::thread::scope(|scope| {
            let world = &world;
            let read = |reader| move || world.read_until_done(round * READERS + reader);
            let readers: Vec<_> = (0..READERS).map(|reader| scope.spawn(read(reader))).collect();
            for seq in 1..=ENTRIES {
                writer.add(seq, Kind::Value, &key(shape, seq), &value(seq));
                world.published.store(seq, Ordering::Release);
            }
            world.done.store(true, Ordering::Release);
            // Joined by hand, because ThreadSanitizer does not see the join of a scope.
            readers.into_iter().for_each(|reader| reader.join().expect("a reader is content"));
        });
        assert_eq!(world.table.entry_count(), ENTRIES);
    }
}
