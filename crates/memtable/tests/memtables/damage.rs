//! Bits that flip in memory (reliability F21): a caller that takes all entries out of a table learns that
//! they are not the ones that went in.

use std::sync::Arc;

use lithify_base::{Kind, bytewise};
use lithify_env::OutOfMemory;
use lithify_env::sync::Mutex;
use lithify_memtable::{
    ArenaChunk, ArenaPool, Audit, HeapPool, MemTable, MemTableOptions, MemWriter,
};

/// Heap memory whose places are known.
#[derive(Default)]
struct Marked {
    places: Mutex<Vec<(usize, usize)>>,
}

impl ArenaPool for Marked {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        let chunk = HeapPool.chunk(bytes)?;
        let base = chunk.base().as_ptr();
        // SAFETY: fresh memory of the chunk's; filled, so that all of it may be looked at.
        unsafe { base.write_bytes(0, chunk.bytes()) };
        self.places.lock().push((base.expose_provenance(), chunk.bytes()));
        Ok(chunk)
    }
    fn granule(&self) -> usize {
        HeapPool.granule()
    }
}

impl Marked {
    /// All memory of a chunk.
    ///
    /// # Safety
    /// The table is frozen and alive, and no other thread looks at it while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "memory of the table, not of this value")]
    unsafe fn memory(&self, chunk: usize) -> Option<&mut [u8]> {
        let (base, len) = *self.places.lock().get(chunk)?;
        let base = std::ptr::with_exposed_provenance_mut::<u8>(base);
        // SAFETY: as promised by the caller; the chunk was filled when it was made.
        Some(unsafe { std::slice::from_raw_parts_mut(base, len) })
    }
    /// Where `bytes` lie: chunk and offset.
    fn find(&self, bytes: &[u8]) -> (usize, usize) {
        for chunk in 0.. {
            // SAFETY: the tests freeze their only table and hold it, on one thread.
            let Some(memory) = (unsafe { self.memory(chunk) }) else { break };
            if let Some(at) = memory.windows(bytes.len()).position(|w| w == bytes) {
                return (chunk, at);
            }
        }
        panic!("{} is nowhere in memory", bytes.escape_ascii());
    }
    fn flip(&self, (chunk, at): (usize, usize), bit: u32) {
        // SAFETY: as in `find`.
        unsafe { self.memory(chunk).unwrap()[at] ^= 1 << bit }
    }
    /// Flips each bit of `len` bytes from `from` on, and back: each is noticed.
    fn try_each(&self, table: &MemTable, from: (usize, usize), len: usize) {
        for at in from.1..from.1 + len {
            for bit in 0..8 {
                self.flip((from.0, at), bit);
                let said = audit(table).unwrap_err();
                assert!(said.contains("damaged in memory"), "byte {at}, bit {bit}: {said}");
                self.flip((from.0, at), bit);
                audit(table).unwrap();
            }
        }
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("a key of the table {n:05}").into_bytes()
}

fn filled(pool: &Arc<Marked>) -> Arc<MemTable> {
    let options = MemTableOptions { order: bytewise(), arena_bytes: 64 << 10, bloom: true };
    let (_, mut writer) = MemTable::new(options, pool.clone());
    for n in 0..300u32 {
        let kind = if n % 7 == 0 { Kind::Delete } else { Kind::Value };
        let value: &[u8] = if n % 7 == 0 { b"" } else { b"its value" };
        writer.add(u64::from(n) + 1, kind, &key(n), value);
    }
    MemWriter::freeze(writer)
}

fn audit(table: &MemTable) -> Result<(), String> {
    let mut audit = Audit::default();
    for (key, tag, value) in table.walk() {
        audit.take(key, tag, value.len());
    }
    audit.settle(table)
}

#[test]
fn what_is_whole_passes() {
    let pool = Arc::new(Marked::default());
    audit(&filled(&pool)).unwrap();
}

#[test]
fn every_bit_of_a_key_counts() {
    let pool = Arc::new(Marked::default());
    let table = filled(&pool);
    let victim = key(123);
    // The index keeps prefixes of its own; a record's key behind them is what is flushed.
    let (chunk, at) = pool.find(&victim);
    pool.try_each(&table, (chunk, at + 8), victim.len() - 8);
}

#[test]
fn every_bit_of_a_number_and_a_kind_counts() {
    let pool = Arc::new(Marked::default());
    let table = filled(&pool);
    // tag, key length, value length, key: as records lie in memory.
    let (tag, found) = table.walk().map(|(k, tag, _)| (tag, k.to_vec())).nth(45).unwrap();
    let mut record = tag.0.to_ne_bytes().to_vec();
    record.extend((found.len() as u32).to_ne_bytes());
    pool.try_each(&table, pool.find(&record), 8);
}
