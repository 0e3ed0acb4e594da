//! Entry areas, walked by the host: how many entries are in them, how many bytes these have, and the keys at
//! either end. What a unit says of a set is held against this.
//!
//! Keeps: a walk costs no more than the area's own bytes, and copies at most one key at a time. An area that does
//! not parse has no answer.
//! Leaves to others: order and content of the entries (`Made::decode`).

use lithify_format::varint;

use crate::stream::KEY_MAX;

/// Bytes of an internal key behind the user key.
const TAG: usize = 8;

/// The three numbers before an entry's key, and what follows them.
fn lengths(area: &[u8]) -> Option<([usize; 3], &[u8])> {
    let (shared, rest) = varint::get_u32(area)?;
    let (unshared, rest) = varint::get_u32(rest)?;
    let (value, rest) = varint::get_u32(rest)?;
    Some(([shared as usize, unshared as usize, value as usize], rest))
}

/// What the host counts in an area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Entries of the area.
    pub(crate) all: u32,
    /// Those of them that are taken.
    pub(crate) taken: u32,
    /// User key, tag and value bytes of these.
    pub(crate) bytes: u64,
}

/// Counts the entries of an area, of which `take` behind the first `skip` are taken. None if it does not parse,
/// or has fewer.
pub(crate) fn count(area: &[u8], skip: u32, take: Option<u32>) -> Option<Counts> {
    let (mut rest, mut key, mut counts) = (area, 0, Counts::default());
    while !rest.is_empty() {
        let ([shared, unshared, value], after) = lengths(rest)?;
        if shared > key || shared + unshared < TAG {
            return None;
        }
        key = shared + unshared;
        rest = after.get(unshared.checked_add(value)?..)?;
        if counts.all >= skip && take.is_none_or(|take| counts.taken < take) {
            counts.taken += 1;
            counts.bytes += (key + value) as u64;
        }
        counts.all += 1;
    }
    let missing = counts.all < skip || take.is_some_and(|take| counts.taken < take);
    (!missing).then_some(counts)
}

/// The user key of the first entry of `area`, whose entry before it has the internal key `before`.
pub(crate) fn first_key(area: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let ([shared, unshared, _], after) = lengths(area)?;
    let key = [before.get(..shared)?, after.get(..unshared)?].concat();
    user_key(key)
}

/// The internal key of an area's last entry, and user key, tag and value bytes of all entries. None if it does
/// not parse, has no entry, or a key is longer than units take.
pub(crate) fn last_entry(area: &[u8]) -> Option<(Vec<u8>, Counts)> {
    let (mut rest, mut key, mut counts) = (area, Vec::new(), Counts::default());
    while !rest.is_empty() {
        let ([shared, unshared, value], after) = lengths(rest)?;
        if shared > key.len() || unshared > KEY_MAX + TAG - shared || shared + unshared < TAG {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(after.get(..unshared)?);
        counts.all += 1;
        counts.taken += 1;
        counts.bytes += (key.len() + value) as u64;
        rest = after.get(unshared + value..)?;
    }
    (counts.all > 0).then_some((key, counts))
}

/// An internal key without its tag.
pub(crate) fn user_key(mut key: Vec<u8>) -> Option<Vec<u8>> {
    key.truncate(key.len().checked_sub(TAG)?);
    Some(key)
}
