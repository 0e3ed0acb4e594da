//! Lies that are consistent in themselves: the kernel merges by another recipe, or other values, and
//! all that it says of its output is true of that.
//!
//! Keeps: an output with such a lie passes `merge::certify`, whose subject is the output and not what it
//! was made from; `merge::prove` finds it.

use std::sync::Arc;

use lithify_base::{MergeOperator, Result};
use lithify_format::block::BlockIter;
use lithify_format::checksum::raw_sum;
use lithify_format::limits::plain_max;
use lithify_merge::products::TRAILER;
use lithify_merge::tombstone::Fragments;
use lithify_merge::{BlockSet, BlockSlice, InUse, Recipe};

/// What is not as the host said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// An older list of snapshots: the newest one is not in it.
    OlderSnapshots,
    /// No older data anywhere: everything may be dropped.
    NothingInUse,
    /// The inputs' range tombstones are left out.
    TombstonesForgotten,
    /// Numbers become zero where they should stay.
    ZeroedSeqs,
    /// Deletes that hide nothing are dropped where they should stay.
    DroppedDeletes,
    /// Merge operands are combined by another operator.
    OtherOperator,
    /// The user's filter is not asked.
    FilterForgotten,
    /// A byte of the first value in this block of the input (from 0, as the session gets them) is
    /// another one, and the block's checksum fits it.
    OtherValue(u64),
}

impl Lie {
    /// All that are about the recipe.
    pub const RECIPES: [Lie; 7] = [
        Lie::OlderSnapshots,
        Lie::NothingInUse,
        Lie::TombstonesForgotten,
        Lie::ZeroedSeqs,
        Lie::DroppedDeletes,
        Lie::OtherOperator,
        Lie::FilterForgotten,
    ];

    /// The recipe that is followed in place of `truth`.
    pub(super) fn falsify(self, truth: &Arc<Recipe>) -> Arc<Recipe> {
        let mut recipe = (**truth).clone();
        match self {
            Lie::OlderSnapshots => drop(recipe.snapshots.pop()),
            Lie::NothingInUse => recipe.in_use.fill(InUse::none()),
            Lie::TombstonesForgotten => recipe.tombstones = Fragments::default(),
            Lie::ZeroedSeqs => (recipe.zero_seqs, recipe.drop_tombstones) = (true, true),
            Lie::DroppedDeletes => recipe.drop_tombstones = true,
            Lie::OtherOperator => recipe.operator = Some(Arc::new(Newest)),
            Lie::FilterForgotten => recipe.user_filter = None,
            Lie::OtherValue(_) => {}
        }
        Arc::new(recipe)
    }

    /// Changes what a session is offered, of which it had `before` blocks already; how many it has then.
    pub(super) fn spoil(self, set: &mut BlockSet, before: u64) -> u64 {
        let mut no = before;
        for slice in &mut set.runs {
            let forge = |block: &BlockSlice| {
                let wrong = self == Lie::OtherValue(no);
                no += 1;
                if wrong { other_value(block) } else { None }.unwrap_or_else(|| block.clone())
            };
            slice.blocks = slice.blocks.iter().map(forge).collect();
        }
        no
    }
}

/// The block with another first value, uncompressed; none if it has only empty ones.
fn other_value(block: &BlockSlice) -> Option<BlockSlice> {
    let (stored, trailer) = block.bytes.as_slice().split_last_chunk::<TRAILER>()?;
    let mut payload = match trailer[0] {
        0 => stored.to_vec(),
        codec => block.decoder.decode(codec, stored, plain_max(stored.len())).ok()?,
    };
    let at = {
        let mut entries = BlockIter::new(&payload).ok()?;
        let mut more = entries.seek_to_first().ok()?;
        while more && entries.value_range().is_empty() {
            more = entries.next().ok()?;
        }
        more.then(|| entries.value_range().start)?
    };
    payload[at] ^= 0x10;
    let sum = raw_sum(block.checksum, &payload, 0).wrapping_add(block.modifier);
    payload.push(0);
    payload.extend_from_slice(&sum.to_le_bytes());
    Some(BlockSlice { bytes: payload.into(), ..block.clone() })
}

/// Keeps the newest operand alone.
struct Newest;

impl MergeOperator for Newest {
    fn name(&self) -> &str {
        "newest"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(operands.last().map(|o| o.to_vec()).unwrap_or_default())
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(newer.to_vec())
    }
}
