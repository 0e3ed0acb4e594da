//! The tail of a block: where entries end, restarts lie, and which extras it carries.

use lithify_base::{Error, Result};

/// Flag: a hash index of user keys lies between restarts and footer word.
const HASH_INDEX: u32 = 1 << 31;
/// Flag: keys are evenly spread; a hint for interpolating readers, without meaning here.
const UNIFORM: u32 = 1 << 29;
/// Flag: values lie in a section of their own after the keys.
const SEPARATED: u32 = 1 << 28;
/// Low bits of the footer word: restart count.
const COUNT: u32 = SEPARATED - 1;
/// RocksDB writes hash indexes only into blocks up to this size.
const HASH_INDEX_MAX_BLOCK: usize = 64 << 10;

/// Parsed tail of a block. All offsets are within the block and in order:
/// `keys_end <= restarts_at`, and `restarts_at + 4 * restarts` lies inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) keys_end: usize,
    pub(super) restarts_at: usize,
    pub(super) restarts: u32,
    pub(super) separated: bool,
}

impl Layout {
    /// Parses the tail of an uncompressed block.
    ///
    /// # Errors
    /// Corruption if the tail does not fit the block, uses the one flag that no writer sets, its first
    /// restart point is not the first entry, or values lie apart and restart points do not ascend.
    pub fn parse(block: &[u8]) -> Result<Layout> {
        let (rest, word) = pop_u32(block)?;
        if word & (HASH_INDEX | UNIFORM | SEPARATED | COUNT) != word {
            return Err(Error::corruption("block footer has an unknown flag"));
        }
        let (rest, values_at) = match word & SEPARATED {
            0 => (rest, None),
            _ => pop_u32(rest).map(|(rest, at)| (rest, Some(at as usize)))?,
        };
        let rest = match word & HASH_INDEX {
            0 => rest,
            _ => skip_hash_index(rest)?,
        };
        let restarts = word & COUNT;
        let restarts_at = (restarts as usize)
            .checked_mul(4)
            .and_then(|n| rest.len().checked_sub(n))
            .ok_or_else(|| Error::corruption("block is shorter than its restart array"))?;
        let keys_end = values_at.unwrap_or(restarts_at);
        if keys_end > restarts_at {
            return Err(Error::corruption("values of a block start behind its restarts"));
        }
        if restarts == 0 && keys_end > 0 {
            return Err(Error::corruption("block has entries but no restart point"));
        }
        let layout = Layout { keys_end, restarts_at, restarts, separated: values_at.is_some() };
        // Else a walk from the front would begin elsewhere than one from the back ends.
        if keys_end > 0 && layout.restart(block, 0) != Some(0) {
            return Err(Error::corruption("first restart point of a block is not its start"));
        }
        // Where values lie apart, an entry at a restart point has another form, so that all moves must
        // agree on which those are.
        let offset = |i| layout.restart(block, i);
        if layout.separated
            && (1..restarts).any(|i| offset(i).is_none() || offset(i) <= offset(i - 1))
        {
            return Err(Error::corruption("restart points of a block do not ascend"));
        }
        Ok(layout)
    }

    /// Number of restart points.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }
    /// True if values lie apart from keys, a form that device decoders are never given.
    pub fn has_separated_values(&self) -> bool {
        self.separated
    }
    /// End of the entries (of the keys, if values lie apart), in bytes from the block's start.
    pub fn keys_end(&self) -> usize {
        self.keys_end
    }
    /// Offset of restart point `i`; `None` if there is no such point or it points nowhere.
    #[inline]
    pub(super) fn restart(&self, block: &[u8], i: u32) -> Option<usize> {
        let at = self.restarts_at + 4 * i as usize;
        let word = block.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*word) as usize)
            .filter(|&o| i < self.restarts && o <= self.keys_end)
    }
}

fn pop_u32(bytes: &[u8]) -> Result<(&[u8], u32)> {
    let (rest, word) = bytes
        .split_last_chunk::<4>()
        .ok_or_else(|| Error::corruption("block is shorter than its footer"))?;
    Ok((rest, u32::from_le_bytes(*word)))
}

/// Cuts off `u8 bucket[n], u16 n`. Seeks do not use the buckets: a binary search over at most
/// 253 restarts costs about as much as the hash of the key.
fn skip_hash_index(bytes: &[u8]) -> Result<&[u8]> {
    let bad = || Error::corruption("hash index of a block does not fit it");
    let (rest, n) = bytes.split_last_chunk::<2>().ok_or_else(bad)?;
    let n = usize::from(u16::from_le_bytes(*n));
    let keep = rest.len().checked_sub(n).ok_or_else(bad)?;
    if n == 0 || bytes.len() >= HASH_INDEX_MAX_BLOCK {
        return Err(bad());
    }
    rest.get(..keep).ok_or_else(bad)
}
