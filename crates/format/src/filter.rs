//! Bloom filters over user keys: RocksDB's FastLocalBloom, whose probes of one key share a
//! 64-byte line, so that a look-up costs one cache miss.
//!
//! Keeps: no false negatives, ever: a key that was added may match. Size and bits are pure
//! functions of the key hashes and the bits per key (R6): OR is order-free, no rounding to
//! allocator sizes.
//! Leaves to others: hashing keys ([`crate::xxph3`]) and deciding which keys to add.
//!
//! ```text
//! filter = 64-byte line*, u8 0xff (new formats), u8 0 (this one), u8 probes, u16 0
//! line   = low32(hash) * lines >> 32
//! probe  : bit (x >> 23) of the line; x = high32(hash), then x *= 0x9e3779b9
//! ```

use lithify_base::memory::LargeBytes;

use crate::xxph3::xxph3_64;

/// Bytes after the lines.
const METADATA: usize = 5;
const LINE: usize = 64;
/// Most bytes of lines, so that the whole filter stays below 4 GiB.
const MAX_LINES: u64 = 0xffff_ffc0 / LINE as u64;
/// Multiplier between probes: 2^32 over the golden ratio.
const NEXT_PROBE: u32 = 0x9e37_79b9;
/// Hashes in flight while building: enough to hide a memory miss behind the next lines' loads.
const BATCH: usize = 16;

/// Name of RocksDB's built-in filters, in meta-index names and properties. The filter's own
/// metadata says which of them it is.
pub const FILTER_POLICY: &str = "rocksdb.BuiltinBloomFilter";

/// Default size: 10 bits per key, 6 probes, about 1 % false positives.
pub const DEFAULT_MILLIBITS: u32 = 10_000;

/// Hash of a user key, as filters want it.
#[inline]
pub fn key_hash(user_key: &[u8]) -> u64 {
    xxph3_64(user_key)
}

/// Probes per key for a filter of `millibits` thousandths of a bit per key: 1 to 24.
pub fn probes(millibits: u32) -> u8 {
    const STEPS: [u32; 12] =
        [2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501];
    match STEPS.iter().position(|&most| millibits <= most) {
        Some(i) => i as u8 + 1,
        None if millibits > 50_000 => 24,
        None => ((millibits - 1) / 2000 - 1) as u8,
    }
}

/// Bytes of a filter block of `keys` hashes, metadata included; 0 for no keys.
pub fn filter_bytes(keys: u64, millibits: u32) -> usize {
    match keys {
        0 => 0,
        _ => lines(keys, millibits) as usize * LINE + METADATA,
    }
}

fn lines(keys: u64, millibits: u32) -> u64 {
    let bytes = (u128::from(keys) * u128::from(millibits)).div_ceil(8000);
    (bytes.div_ceil(LINE as u128) as u64).clamp(1, MAX_LINES)
}

/// Builds the filter block of hashes that come in slices. Equal hashes count each for the size: callers leave out
/// repeats of one key. Empty for no hashes: such a table has no filter.
pub fn build_filter<'a>(
    hashes: impl Iterator<Item = &'a [u64]> + Clone,
    millibits: u32,
) -> LargeBytes {
    let mut block = LargeBytes::new();
    let count: usize = hashes.clone().map(<[u64]>::len).sum();
    if count == 0 {
        return block;
    }
    let lines = lines(count as u64, millibits);
    let probes = probes(millibits);
    block.lengthen(lines as usize * LINE + METADATA);
    let (body, metadata) = block.split_at_mut(lines as usize * LINE);
    let (table, _) = body.as_chunks_mut::<LINE>();
    for batch in hashes.flat_map(|slice| slice.chunks(BATCH)) {
        // First touch every line of the batch, so that the misses overlap; then set the bits.
        let mut touched = 0u8;
        for &hash in batch {
            touched |= table.get(line_of(hash, lines)).map_or(0, |line| line[0]);
        }
        std::hint::black_box(touched);
        for &hash in batch {
            if let Some(line) = table.get_mut(line_of(hash, lines)) {
                set_bits(line, hash, probes);
            }
        }
    }
    metadata.copy_from_slice(&[0xff, 0, probes, 0, 0]);
    block
}

#[inline(always)]
fn line_of(hash: u64, lines: u64) -> usize {
    (((hash & 0xffff_ffff) * lines) >> 32) as usize
}

#[inline(always)]
fn set_bits(line: &mut [u8; LINE], hash: u64, probes: u8) {
    let mut x = (hash >> 32) as u32;
    for _ in 0..probes {
        let bit = x >> 23;
        line[(bit >> 3) as usize] |= 1 << (bit & 7);
        x = x.wrapping_mul(NEXT_PROBE);
    }
}

/// How a filter block answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterShape {
    lines: u32,
    probes: u8,
}

impl FilterShape {
    /// Reads the metadata of a filter block. Formats that this version does not read (Ribbon,
    /// the old Bloom, or damage) give a shape that matches everything.
    pub fn parse(block: &[u8]) -> FilterShape {
        FilterShape::known(block).unwrap_or(FilterShape { lines: 0, probes: 0 })
    }

    fn known(block: &[u8]) -> Option<FilterShape> {
        let (body, metadata) = block.split_last_chunk::<METADATA>()?;
        let [0xff, 0, probes, 0, 0] = *metadata else { return None };
        let fits = !body.is_empty() && body.len().is_multiple_of(LINE);
        let lines = u32::try_from(body.len() / LINE).ok()?;
        // The high three bits of the probe byte would name another line size.
        (fits && (1..=30).contains(&probes)).then_some(FilterShape { lines, probes })
    }

    /// True if this filter can ever say no.
    pub fn is_known(self) -> bool {
        self.probes > 0
    }

    /// False only if no key with this hash was added to `block`.
    #[inline]
    pub fn may_contain(self, block: &[u8], hash: u64) -> bool {
        let at = line_of(hash, u64::from(self.lines)) * LINE;
        let Some(line) = block.get(at..).and_then(|rest| rest.first_chunk::<LINE>()) else {
            return true;
        };
        // All probes, without a branch between them: they share a line that is now in cache, and
        // a misprediction costs more than the few that an early exit would save.
        let mut x = (hash >> 32) as u32;
        let mut present = 1;
        for _ in 0..self.probes {
            let bit = x >> 23;
            present &= line[(bit >> 3) as usize] >> (bit & 7);
            x = x.wrapping_mul(NEXT_PROBE);
        }
        present & 1 != 0
    }
}

/// A filter block over any bytes.
#[derive(Clone, Debug)]
pub struct Filter<B> {
    bytes: B,
    shape: FilterShape,
}

impl<B: AsRef<[u8]>> Filter<B> {
    /// Reads a filter block; never fails, see [`FilterShape::parse`].
    pub fn new(bytes: B) -> Filter<B> {
        let shape = FilterShape::parse(bytes.as_ref());
        Filter { bytes, shape }
    }
    /// The block.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
    /// Its metadata.
    pub fn shape(&self) -> FilterShape {
        self.shape
    }
    /// False only if no key with this hash was added.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.shape.may_contain(self.bytes.as_ref(), hash)
    }
}

/// Whether a meta-index name is a filter, and of which layout. Partitioned filters are read
/// through an index block of the same form as the table's index, whose handles are filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterLayout {
    /// One block for the whole table.
    Full,
    /// One block per range of keys, below an index.
    Partitioned,
}

impl FilterLayout {
    /// The layout that a meta-index name stands for; `None` if it is no filter we can read.
    pub fn of_name(name: &[u8]) -> Option<FilterLayout> {
        let layouts: [(&[u8], _); 2] = [
            (b"fullfilter.", FilterLayout::Full),
            (b"partitionedfilter.", FilterLayout::Partitioned),
        ];
        let (rest, layout) = layouts
            .into_iter()
            .find_map(|(prefix, layout)| Some((name.strip_prefix(prefix)?, layout)))?;
        (rest == FILTER_POLICY.as_bytes()).then_some(layout)
    }
}

#[cfg(test)]
mod tests;
