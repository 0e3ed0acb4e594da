//! What a machine made of one set, and how it is taken from payloads.
//!
//! Keeps: every place that is used lies inside of its array, and no count is so large that sums over it
//! could overflow, whatever the machine states.
//! Leaves to others: whether blocks start where they must and follow each other (`encode`).

use std::ops::Range;

use lithify_base::{InternalKey, MAX_SEQ, Result};
use lithify_format::limits::plain_max;

use super::Offload;
use crate::encode::refused;
use crate::ledger::{Ledger, RULES};
use crate::products::{BlockMeta, Item, Lent, TRAILER};
use crate::recipe::Recipe;

/// Most entries and logical bytes that a whole output is believed to have: an exbibyte, so that no
/// later sum overflows.
const MOST: u64 = 1 << 60;

/// One set's output, as flat arrays. A machine fills them, or [`Made::decode`] does.
///
/// The output of a set begins with the entries of the block that was open before it
/// ([`OpenState::entries`](super::OpenState::entries)), as the first part of its first block, whether
/// or not entries joined that block, and whether it is finished or still open.
pub struct Made {
    /// Number of the set.
    pub set: u32,
    /// Memory that all blocks lie in, in order. It is given back when the products that hold it are
    /// cleared, or when the set is refused.
    pub arena: Box<dyn Lent>,
    /// Finished blocks, each as payload, type byte and raw sum. Of
    /// [`continues_key`](BlockMeta::continues_key) no notice is taken.
    pub blocks: Vec<BlockMeta>,
    /// Where the encoded entries of the open block lie in the arena, behind all finished blocks.
    /// Without restart points: they are found. Empty only if the output has no entry yet.
    pub open: Range<usize>,
    /// First and last internal keys of finished blocks, which name their places in it.
    pub keys: Vec<u8>,
    /// Filter hashes of the finished blocks and then of the open one, without gaps: XXPH3 of each user
    /// key unless the key before it in the file has the same; and before it that of its prefix,
    /// unless the last prefix in the file has the same. Empty unless the recipe asks for them.
    pub hashes: Vec<u64>,
    /// Hash of the last prefix in the file of the last finished block, up to that block; `None` if the
    /// recipe takes no prefixes.
    pub last_prefix: Option<u64>,
    /// What came in and what became of it.
    pub drops: Drops,
}

/// The machine's own counts and sums of one set: what the ledger of the output grows by, except for
/// the entries written. Fields are those of [`Ledger`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Point entries read, inside the set's and the job's range.
    pub entries_in: u64,
    /// Their key, tag and value bytes.
    pub bytes_in: u64,
    /// Sum of their weights.
    pub sum_in: u64,
    /// Entries dropped, by [`Rule`](crate::ledger::Rule).
    pub dropped: [u64; RULES],
    /// Sum of their weights.
    pub sum_dropped: u64,
    /// Entries made of others (D6, D8).
    pub made: u64,
    /// Sum of their weights.
    pub sum_made: u64,
    /// Entries whose sequence number was set to 0 (D4).
    pub zeroed: u64,
    /// Sum over those of the weight after minus the weight before.
    pub sum_zeroed: u64,
}

impl Drops {
    /// Adds the set to the ledger of all sets before it.
    pub(super) fn add_to(&self, all: &mut Ledger, entries_out: u64, sum_out: u64) -> Result<()> {
        let Drops { entries_in, bytes_in, sum_in, dropped, sum_dropped, .. } = self;
        let Drops { made, sum_made, zeroed, sum_zeroed, .. } = self;
        let count = |all: &mut u64, n: u64| {
            *all = all.checked_add(n).filter(|&sum| sum <= MOST).ok_or_else(too_many)?;
            Ok(())
        };
        count(&mut all.entries_in, *entries_in)?;
        count(&mut all.bytes_in, *bytes_in)?;
        count(&mut all.entries_out, entries_out)?;
        all.dropped.iter_mut().zip(dropped).try_for_each(|(all, n)| count(all, *n))?;
        count(&mut all.made, *made)?;
        count(&mut all.zeroed, *zeroed)?;
        let sum = |all: &mut u64, n: u64| *all = all.wrapping_add(n);
        sum(&mut all.sum_in, *sum_in);
        sum(&mut all.sum_out, sum_out);
        sum(&mut all.sum_dropped, *sum_dropped);
        sum(&mut all.sum_made, *sum_made);
        sum(&mut all.sum_zeroed, *sum_zeroed);
        Ok(())
    }
}

impl Made {
    /// Takes a set from encoded blocks: of a machine that returns payloads and knows nothing of tables.
    ///
    /// `payloads` are the finished blocks in order, each with its restart points and their number;
    /// `open` are the entries of the block after them, without. They begin with the entries of the
    /// block that was open before the set, unless [`is_ended`](super::OpenState::is_ended): then the
    /// machine starts a block, or returns nothing if the set leaves no entry.
    ///
    /// Each entry is read once, written by the output stage of the kernel, and the bytes are
    /// compared. So what comes out is ordered, inside the job's range, cut and encoded as the kernel
    /// does it, and compressed and summed by the same code. `offload` stands where it stood.
    ///
    /// # Errors
    /// Internal if any byte differs from what the format says; Unsupported for range tombstones that no
    /// file can store; InvalidArgument after [`Offload::finish`].
    pub fn decode(
        offload: &mut Offload,
        set: u32,
        payloads: &[&[u8]],
        open: &[u8],
        drops: Drops,
    ) -> Result<Made> {
        offload.check_unfinished()?;
        let made = decode(offload, set, payloads, open, drops);
        offload.writer.restart(&offload.carry);
        made
    }

    /// Whether all that it states lies inside of its arrays and can be. `placed` logical bytes are in
    /// the output already; `plain_most` says how many bytes a block may have without its codec, if it has a
    /// place.
    pub(super) fn check(
        &self,
        recipe: &Recipe,
        placed: u64,
        plain_most: &dyn Fn(&BlockMeta) -> Option<usize>,
    ) -> Result<()> {
        let (mut end, mut hashed, mut logical) = (0, 0, placed);
        for b in &self.blocks {
            if b.at.start < end || b.hashes.start != hashed || b.hashes.end < hashed {
                return Err(no_place());
            }
            let plain = plain_most(b).ok_or_else(no_place)?;
            self.hashes.get(b.hashes.clone()).ok_or_else(no_place)?;
            self.check_block(recipe, b, plain as u64)?;
            (end, hashed) = (b.at.end, b.hashes.end);
            logical = logical.saturating_add(b.logical_bytes());
        }
        if self.open.start < end {
            return Err(no_place());
        }
        if logical > MOST || self.open.len() > u32::MAX as usize {
            return Err(too_many());
        }
        Ok(())
    }

    /// Whether the metadata of a block can be that of one with up to `plain` bytes without its codec.
    fn check_block(&self, recipe: &Recipe, b: &BlockMeta, plain: u64) -> Result<()> {
        let order = &*recipe.order;
        let key = |at: &Range<usize>| self.keys.get(at.clone()).and_then(InternalKey::decode);
        let (first, last) = (key(&b.first), key(&b.last));
        let (Some(first), Some(last)) = (first, last) else { return Err(no_place()) };
        if !recipe.range.contains(first.user, order) || !recipe.range.contains(last.user, order) {
            return Err(refused("a block lies outside of the job's range"));
        }
        let kinds = [b.values, b.deletes, b.single_deletes, b.merges].map(u64::from);
        let entries = u64::from(b.entries);
        // An entry takes three bytes at least, a block one restart point and their number.
        let fits = b.at.len() <= u32::MAX as usize
            && 3 * entries + 8 <= plain
            && kinds.iter().sum::<u64>() == entries
            && b.raw_value_bytes <= plain
            && b.raw_key_bytes >= 8 * entries
            && (b.min_seq..=MAX_SEQ).contains(&b.max_seq);
        if entries == 0 || !fits || first.cmp(last, order).is_gt() {
            return Err(refused("the metadata of a block cannot be"));
        }
        Ok(())
    }
}

fn decode(
    offload: &mut Offload,
    set: u32,
    payloads: &[&[u8]],
    open: &[u8],
    drops: Drops,
) -> Result<Made> {
    let before = offload.carry.open(&offload.recipe);
    let writer = &mut offload.writer;
    let encoded = payloads.iter().map(|p| p.len() + TRAILER).sum::<usize>() + open.len();
    writer.reserve(encoded + before.entries.len());
    // What of the open block comes back first.
    let mut replayed = if before.is_ended { &[][..] } else { before.entries };
    let mut read = |writer: &mut crate::encode::Writer, entries: &[u8]| {
        let from = std::mem::take(&mut replayed);
        if !entries.starts_with(from) {
            return Err(refused("the block that was open is not where the output goes on"));
        }
        writer.read(entries, from.len())
    };
    for payload in payloads {
        let (entries, tail) = payload.split_at(entries_end(payload)?);
        if entries.is_empty() {
            return Err(refused("a block has no entries"));
        }
        read(writer, entries)?;
        if !writer.ends_with(tail) {
            return Err(refused("the restart points of a block are wrong"));
        }
    }
    let last_prefix = writer.last_prefix();
    if open.is_empty() && !(payloads.is_empty() && (before.is_ended || before.entries.is_empty())) {
        return Err(refused("no block is open after the last one"));
    }
    read(writer, open)?;
    let (products, open) = writer.take_all();
    let blocks = products.items.into_iter().filter_map(|item| match item {
        Item::Block(b) => Some(b),
        Item::FileCut(_) | Item::SetDone(_) => None,
    });
    Ok(Made {
        set,
        blocks: blocks.collect(),
        open,
        arena: Box::new(products.arena),
        keys: products.keys,
        hashes: products.hashes,
        last_prefix,
        drops,
    })
}

/// Where the entries of a plain block end and its restart points begin.
fn entries_end(payload: &[u8]) -> Result<usize> {
    let Some((rest, count)) = payload.split_last_chunk::<4>() else {
        return Err(refused("a block is shorter than its footer"));
    };
    let points = (u32::from_le_bytes(*count) as usize).checked_mul(4);
    points
        .and_then(|n| rest.len().checked_sub(n))
        .ok_or_else(|| refused("a block has fewer bytes than restart points"))
}

/// The most bytes that a stored block may have without its codec.
pub(super) fn plain_most(stored: &[u8]) -> usize {
    let payload = stored.len().saturating_sub(TRAILER);
    if type_byte(stored) == 0 { payload } else { plain_max(payload) }
}

/// The type byte of a stored block: 0 if it is not compressed.
pub(super) fn type_byte(stored: &[u8]) -> u8 {
    stored.len().checked_sub(TRAILER).and_then(|at| stored.get(at)).copied().unwrap_or_default()
}

#[cold]
pub(super) fn no_place() -> lithify_base::Error {
    refused("a place lies outside of its array, or before the one before it")
}

#[cold]
fn too_many() -> lithify_base::Error {
    refused("counts or bytes are too many to be")
}
