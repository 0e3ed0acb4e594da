//! Lengths of any size, as only a mistake or an attacker states them: memory is refused, never handed
//! out twice. In a release build sums wrap around; so run this with `--release`, too.

use std::sync::Arc;

use lithify_base::{Kind, MAX_SEQ, bytewise};
use lithify_env::{OutOfMemory, RegionPool};
use lithify_memtable::{ArenaChunk, ArenaPool, HeapPool, MemTable, MemTableOptions, MemWriter};

const MIB: usize = 1 << 20;

/// Heap memory in chunks of at most a MiB.
struct Small;

impl ArenaPool for Small {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        if bytes > MIB { Err(OutOfMemory { bytes }) } else { HeapPool.chunk(bytes) }
    }
    fn granule(&self) -> usize {
        64
    }
}

fn table(pool: Arc<dyn ArenaPool>) -> (Arc<MemTable>, MemWriter) {
    MemTable::new(MemTableOptions { order: bytewise(), arena_bytes: 0, bloom: true }, pool)
}

/// Lengths at which some sum or product of sizes wraps around, and their neighbours.
fn lengths() -> Vec<usize> {
    let half = isize::MAX as usize;
    let edges = [usize::MAX, half, half + 1, usize::MAX / 16, usize::MAX / 23, usize::MAX / 128];
    let near =
        |edge: usize| (0..40).flat_map(move |d| [edge.saturating_sub(d), edge.saturating_add(d)]);
    let mut all: Vec<usize> = edges.into_iter().flat_map(near).collect();
    all.extend([0, 1, 7, 8, 63, 64, 4096, MIB, usize::BITS as usize]);
    all.sort_unstable();
    all.dedup();
    if cfg!(miri) { all.into_iter().step_by(31).collect() } else { all }
}

/// Adds an entry and finds it and `key` again.
fn check(table: &Arc<MemTable>, writer: &mut MemWriter, seq: u64) {
    let key = seq.to_be_bytes();
    writer.add(seq, Kind::Value, &key, &[7; 40]);
    for seq in [1, seq] {
        let (tag, value) = table.get_newest(&seq.to_be_bytes(), MAX_SEQ).unwrap();
        assert_eq!((tag.seq(), value), (seq, &[7; 40][..]));
    }
}

#[test]
fn a_share_of_any_length_is_refused_or_real() {
    let pools: [Arc<dyn ArenaPool>; 2] = [Arc::new(Small), Arc::new(HeapPool)];
    // Miri's allocator ends the program where there is no memory.
    for pool in pools.into_iter().take(if cfg!(miri) { 1 } else { 2 }) {
        let (table, mut writer) = table(pool);
        let mut seq = 1;
        check(&table, &mut writer, seq);
        let all = lengths();
        for (entries, bytes) in all.iter().flat_map(|&n| [(0, n), (n, 0), (n, n), (1, n), (n, 1)]) {
            // What a share of these says it holds is there, so it is asked for where it is little.
            if entries.max(bytes) <= MIB && entries > 4096 {
                continue;
            }
            seq += 1;
            let before = table.reserved_bytes();
            match writer.share(entries, bytes) {
                Err(_) => assert_eq!(table.reserved_bytes(), before, "({entries}, {bytes})"),
                Ok(mut share) => {
                    assert!(entries <= 4096 && bytes <= 1 << 40, "({entries}, {bytes})");
                    if entries > 0 && bytes >= 48 {
                        share.add(seq, Kind::Value, &seq.to_be_bytes(), &[7; 40]);
                        assert!(table.get_newest(&seq.to_be_bytes(), MAX_SEQ).is_some());
                        seq += 1;
                    }
                    writer.take_back(share);
                }
            }
            check(&table, &mut writer, seq);
        }
        let entries = table.walk().count() as u64;
        assert_eq!(entries, table.entry_count());
    }
}

#[test]
fn a_reservation_of_any_length_is_refused_or_real() {
    let (table, mut writer) = table(Arc::new(Small));
    check(&table, &mut writer, 1);
    let (mut seq, mut refused) = (1, 0);
    for n in lengths() {
        for (entries, bytes) in [(0, n), (n, 0), (n, n), (1, n)] {
            refused += u32::from(writer.try_reserve(entries, bytes).is_err());
            seq += 1;
            check(&table, &mut writer, seq);
        }
    }
    assert!(refused > 20);
}

#[test]
fn a_table_of_any_size_is_refused_or_real() {
    for pool in [Arc::new(Small) as Arc<dyn ArenaPool>, Arc::new(RegionPool::new(0))] {
        // Miri knows no mappings.
        let skipped = cfg!(miri) && pool.granule() > 64;
        for arena_bytes in lengths().into_iter().filter(|_| !skipped) {
            for bloom in [false, true] {
                // A filter of some GiB may be had.
                if bloom && (64 * MIB..1 << 44).contains(&arena_bytes) {
                    continue;
                }
                let options = MemTableOptions { order: bytewise(), arena_bytes, bloom };
                let Ok((table, mut writer)) = MemTable::try_new(options, pool.clone()) else {
                    continue;
                };
                // Memory of the pool is taken with the first entry.
                if writer.try_reserve(1, 100).is_ok() {
                    check(&table, &mut writer, 1);
                }
            }
        }
    }
}

/// More than a share is for does not fit, wherever its piece ends.
#[test]
fn a_share_takes_no_more_than_it_is_for() {
    for spare in 0..24 {
        let (_table, mut writer) = table(Arc::new(Small));
        let mut share = writer.share(1, spare).unwrap();
        share.add(1, Kind::Value, b"", &vec![1; spare]);
        let more = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            share.add(2, Kind::Value, b"key", &[2; 40]);
        }));
        assert!(more.is_err(), "{spare}");
    }
}
