//! What comes back of a set, checked before anything of it is used.
//!
//! Keeps: counts are held against what the input can come to before memory is taken for them, and places
//! against the arrays that they point into.
//! Leaves to others: whether the output is right: K8 on the device, then `Offload`, the ledger and the
//! certifier.

use std::ops::Range;

use lithify_base::{Error, ErrorKind};
use lithify_merge::ledger::Rule;
use lithify_merge::offload::{Drops, Made, OpenState};
use lithify_merge::products::BlockMeta;
use lithify_merge::{Lent, Recipe};

use crate::layout::{BlockOut, Params, Status, UNSUITABLE, faults};
use crate::stage::Staged;
use crate::unit::Trouble;

/// Where in an arena lie the parts of the output that are no blocks.
pub(crate) struct Places {
    pub(crate) blocks: Range<usize>,
    pub(crate) keys: Range<usize>,
    pub(crate) hashes: Range<usize>,
    /// Entries of the block that stays open.
    pub(crate) open: Range<usize>,
    /// Bytes of the finished blocks, in another arena.
    pub(crate) finished: usize,
}

impl Places {
    /// What a status announces of a set with so many entries.
    pub(crate) fn of(status: &Status, told: &Params) -> Result<Places, Trouble> {
        check(status)?;
        let n = told.n_records;
        let counts =
            [status.entries_in, status.total, status.survivors, status.hashes, status.zeroed];
        if counts.iter().any(|&count| count > n)
            || status.segments > told.blocks_room
            || status.out_bytes > told.arena_room
            || status.key_bytes > told.keys_room
            || status.open_bytes > status.out_bytes
        {
            return Err(Trouble::Device(lied("more output than its input can come to")));
        }
        let blocks = 0..status.segments as usize * BlockOut::BYTES;
        let keys = blocks.end..blocks.end + status.key_bytes as usize;
        let from = keys.end.next_multiple_of(8);
        let hashes = from..from + 8 * status.hashes as usize;
        let open = hashes.end..hashes.end + status.open_bytes as usize;
        let finished = (status.out_bytes - status.open_bytes) as usize;
        Ok(Places { blocks, keys, hashes, open, finished })
    }
}

/// The counts that came back, behind a status.
pub(crate) fn counts(bytes: &[u8], staged: &Staged) -> Result<Vec<u64>, Trouble> {
    let (status, counts) = bytes.split_at(Status::BYTES.min(bytes.len()));
    check(&Status::read(status))?;
    let counts: Vec<u64> = words(counts).collect();
    let sound = staged
        .blocks
        .iter()
        .zip(counts.chunks_exact(2))
        .all(|(block, n)| 3 * u128::from(n[0]) <= u128::from(block.len) && n[1] <= KEYS_MOST);
    if counts.len() != 2 * staged.blocks.len() || !sound {
        let what = "a block has more entries or key bytes than it can have";
        return Err(Trouble::Set(Error::corruption(what)));
    }
    Ok(counts)
}

/// Most bytes of keys that a block is believed to have: readers have the same cap.
const KEYS_MOST: u64 = lithify_format::limits::MAX_BLOCK as u64;

fn check(status: &Status) -> Result<(), Trouble> {
    if status.faults == 0 {
        return Ok(());
    }
    let what = format!("the device did not take a set: {}", faults(status.faults));
    let kind = match status.faults & !UNSUITABLE {
        0 => ErrorKind::Unsupported,
        _ => ErrorKind::Internal,
    };
    Err(Trouble::Set(Error::new(kind, what)))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let word = |chunk: &[u8]| chunk.first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
    bytes.chunks_exact(8).map(word)
}

/// What became of the entries.
fn drops(status: &Status) -> Drops {
    let mut drops = Drops {
        entries_in: status.entries_in,
        bytes_in: status.bytes_in,
        sum_in: status.sum_in,
        sum_dropped: status.sum_dropped,
        zeroed: status.zeroed,
        sum_zeroed: status.sum_zeroed,
        ..Drops::default()
    };
    drops.dropped[Rule::Hidden as usize] = status.hidden;
    drops.dropped[Rule::Covered as usize] = status.covered;
    drops.dropped[Rule::Elided as usize] = status.elided;
    drops
}

/// What is known of a set's output before its blocks are here.
pub(crate) struct Announced {
    pub(crate) status: Status,
    pub(crate) places: Places,
    /// The parts that are no finished blocks.
    pub(crate) tables: Box<dyn Lent>,
}

impl Announced {
    /// Finished blocks that are compressed.
    pub(crate) fn compressed(&self) -> u64 {
        let blocks = self.tables.bytes().get(self.places.blocks.clone()).unwrap_or_default();
        let rows = blocks.chunks_exact(BlockOut::BYTES).map(BlockOut::read);
        rows.filter(|block| block.codec != 0).count() as u64
    }
}

/// The output of set `no` as `Offload` takes it, but for the arena, and the entries of the block that stays open.
pub(crate) fn made(
    recipe: &Recipe,
    open: &OpenState<'_>,
    no: u32,
    announced: &Announced,
) -> Result<(Made, Vec<u8>), Trouble> {
    let Announced { status, places, tables } = announced;
    let tables = tables.bytes();
    let mut made = Made {
        set: no,
        arena: Box::new(Vec::new()),
        blocks: Vec::new(),
        open: 0..0,
        keys: Vec::new(),
        hashes: if recipe.filter { open.hashes.to_vec() } else { Vec::new() },
        last_prefix: None,
        drops: drops(status),
    };
    let part = |range: &Range<usize>| tables.get(range.clone()).unwrap_or_default();
    let mut blocks = part(&places.blocks).chunks_exact(BlockOut::BYTES).map(BlockOut::read);
    let keys = part(&places.keys);
    let shift = made.hashes.len();
    made.hashes.reserve_exact(places.hashes.len() / 8);
    made.hashes.extend(words(part(&places.hashes)));
    // The last one is open; without any nothing joined the output, and what was open still is.
    if blocks.next_back().is_none() {
        return Ok((made, open.entries.to_vec()));
    }
    made.blocks.reserve_exact(blocks.len());
    made.keys.reserve_exact(keys.len() + open.first_key.len() + open.last_key.len());
    for (i, block) in blocks.enumerate() {
        let resumed = i == 0 && !open.entries.is_empty();
        let meta = block_meta(&block, open, resumed, keys, shift, &mut made.keys);
        made.blocks.push(meta.ok_or_else(|| Trouble::Device(no_place()))?);
    }
    // Behind all finished blocks, in memory that is not fetched with them.
    made.open = places.finished..places.finished + places.open.len();
    Ok((made, part(&places.open).to_vec()))
}

/// The metadata of a finished block, by what K8 read in it. `None` if a figure cannot be.
fn block_meta(
    block: &BlockOut,
    open: &OpenState<'_>,
    resumed: bool,
    keys: &[u8],
    shift: usize,
    out: &mut Vec<u8>,
) -> Option<BlockMeta> {
    let first = range(block.keys_at, block.first_len)?;
    let last = range(first.end as u64, block.last_len)?;
    let mut put = |place: Range<usize>, known: &[u8]| {
        let key = if place.is_empty() && resumed { known } else { keys.get(place)? };
        let at = out.len();
        out.extend_from_slice(key);
        Some(at..out.len())
    };
    let (first, last) = (put(first, open.first_key)?, put(last, open.last_key)?);
    let hash = |at: u64| usize::try_from(at).ok()?.checked_add(shift);
    let hash_from = if resumed { 0 } else { hash(block.hash_from)? };
    let small = |n: u64| u32::try_from(n).ok();
    Some(BlockMeta {
        at: range(block.at, block.stored)?,
        first,
        last,
        hashes: hash_from..hash(block.hash_to)?,
        entries: small(block.seen_entries)?,
        raw_key_bytes: block.raw_key,
        raw_value_bytes: block.raw_value,
        weight: block.weight,
        min_seq: block.min_seq,
        max_seq: block.max_seq,
        values: small(block.values)?,
        deletes: small(block.deletes)?,
        ..BlockMeta::default()
    })
}

fn range(at: u64, len: u64) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(usize::try_from(len).ok()?)?)
}

fn no_place() -> Error {
    lied("a place lies outside of its array")
}

#[cold]
fn lied(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("what the device returned cannot be: {what}"))
}
