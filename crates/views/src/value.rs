//! A value that was read, and what the entry that was met says it is.

use std::ops::Deref;

use lithify_base::key::unknown_kind;
use lithify_base::{Kind, Result, Seq, Tag, memory};
use lithify_tables::cache::PinnedSlice;

/// Bytes that were read, of a value or a key: a part of a cached block, or a copy. Dereferences to the bytes.
#[derive(Clone)]
pub struct Value(pub(crate) Repr);

/// A value as a search meets it.
pub enum Found<'a> {
    /// In a memtable, of which this is a part.
    Lies(&'a [u8]),
    /// Apart from memtables.
    Apart(Value),
}

impl Deref for Found<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Found::Lies(bytes) => bytes,
            Found::Apart(value) => value,
        }
    }
}

impl From<Value> for Found<'_> {
    fn from(value: Value) -> Self {
        Found::Apart(value)
    }
}

impl Found<'_> {
    /// The value to keep: what lies in a memtable is copied.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    #[inline]
    pub fn keep(self) -> Result<Value> {
        match self {
            Found::Lies(bytes) => {
                memory::copied(bytes, "a value").map(|copy| Value(Repr::Copied(copy)))
            }
            Found::Apart(value) => Ok(value),
        }
    }
}

/// Fewer than 16 bytes, as the low ones of a number.
#[inline]
fn up_to_16(bytes: &[u8]) -> u128 {
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let beyond = u64::from_le_bytes(*last).checked_shr(8 * (16 - bytes.len() as u32));
            u128::from(u64::from_le_bytes(*first)) | u128::from(beyond.unwrap_or(0)) << 64
        }
        _ => bytes.iter().rev().fold(0, |n, &byte| n << 8 | u128::from(byte)),
    }
}

/// At most [`SMALL`] bytes, and zeros. They are put together in registers: a processor waits where it loads at once
/// what was stored in pieces just before, and values are moved as soon as they are made.
#[inline]
fn small(bytes: &[u8]) -> Repr {
    let (low, high) = match (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
        (Some(first), Some(last)) => {
            let beyond = u128::from_le_bytes(*last).checked_shr(8 * (32 - bytes.len() as u32));
            (u128::from_le_bytes(*first), beyond.unwrap_or(0) as u64)
        }
        _ => (up_to_16(bytes), 0),
    };
    let mut small = [0; SMALL];
    small[..16].copy_from_slice(&low.to_le_bytes());
    small[16..].copy_from_slice(&high.to_le_bytes()[..SMALL - 16]);
    Repr::Small(small, bytes.len() as u8)
}

/// As many bytes as fit beside the other forms: keys, mostly, for which an allocation is much.
const SMALL: usize = 23;

/// The form is told by a whole word: a value that is moved is moved by words then. With a byte for it the bytes behind
/// are moved in pieces that lie otherwise than what they were stored in, and a processor waits for that.
#[derive(Clone)]
#[repr(u64)]
pub(crate) enum Repr {
    Copied(Vec<u8>),
    Pinned(PinnedSlice),
    /// So many of the first of these.
    Small([u8; SMALL], u8),
}

const _: () = assert!(size_of::<Repr>() == 32, "a word and three");

impl Value {
    /// A copy of `bytes`; `what` they are, for the error.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    #[inline]
    pub(crate) fn copy(bytes: &[u8], what: &'static str) -> Result<Value> {
        if bytes.len() > SMALL {
            return memory::copied(bytes, what).map(|copy| Value(Repr::Copied(copy)));
        }
        Ok(Value(small(bytes)))
    }
    /// No bytes.
    pub(crate) const EMPTY: Value = Value(Repr::Small([0; SMALL], 0));

    /// Makes it a copy of `bytes`, in its own memory if they fit there.
    #[inline]
    pub(crate) fn assign(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Repr::Copied(own) => {
                own.clear();
                own.extend_from_slice(bytes);
            }
            _ if bytes.len() > SMALL => self.0 = Repr::Copied(bytes.to_vec()),
            _ => self.0 = small(bytes),
        }
    }
    /// Whether it takes no more than twice the memory that it needs.
    #[inline]
    pub(crate) fn is_snug(&self) -> bool {
        match &self.0 {
            Repr::Copied(own) => own.len() > SMALL && own.len() * 2 > own.capacity(),
            Repr::Pinned(_) | Repr::Small(..) => true,
        }
    }
    /// Cuts it to its first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Repr::Copied(v) => v.truncate(len),
            Repr::Pinned(p) => p.truncate(len),
            Repr::Small(_, n) => *n = len.min(usize::from(*n)) as u8,
        }
    }
}

impl Deref for Value {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Copied(v) => v,
            Repr::Pinned(p) => p.as_ref(),
            Repr::Small(bytes, n) => &bytes[..usize::from(*n)],
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Value> for Vec<u8> {
    fn from(v: Value) -> Vec<u8> {
        match v.0 {
            Repr::Copied(copy) => copy,
            Repr::Pinned(_) | Repr::Small(..) => v.to_vec(),
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By bytes, whatever the order of the database is.
impl Ord for Value {
    fn cmp(&self, other: &Value) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

/// As the bytes hash: a map by values can be asked for bytes.
impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl std::borrow::Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        self
    }
}

/// What the newest visible entry means, given the newest range deletion over its key. `merged` combines
/// operands.
pub(crate) fn decide<V: From<Value>>(
    tag: Tag,
    hidden: Option<Seq>,
    value: impl FnOnce() -> Result<V>,
    merged: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Option<V>> {
    if hidden.is_some_and(|h| h > tag.seq()) {
        return Ok(None);
    }
    match tag.kind() {
        Some(Kind::Value) => value().map(Some),
        Some(Kind::Delete | Kind::SingleDelete) => Ok(None),
        Some(Kind::Merge) => Ok(Some(V::from(Value(Repr::Copied(merged()?))))),
        Some(Kind::RangeDelete) | None => Err(unknown_kind(tag.kind_byte())),
    }
}

/// What a transaction's own newest entry of a key means, whatever the database has. `merged` combines its
/// operands.
///
/// # Errors
/// `LimitExceeded` if there is no memory for the value; what `merged` gives; `Corruption` for what is no
/// entry of a key.
pub fn own(
    tag: Tag,
    value: &[u8],
    merged: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Option<Value>> {
    decide(tag, None, || Found::Lies(value).keep(), merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every length, those that fit beside the other forms and those that do not.
    #[test]
    fn copies_have_the_bytes_of_what_they_copy() {
        let bytes: Vec<u8> = (1..=64).collect();
        let mut reused = Value::EMPTY;
        for len in (0..=64).chain((0..=64).rev()) {
            let bytes = &bytes[64 - len..];
            let copy = Value::copy(bytes, "a test").unwrap();
            assert_eq!(copy, bytes);
            reused.assign(bytes);
            assert_eq!(reused, bytes);
            assert!(copy.is_snug());
        }
        assert!(!reused.is_snug(), "memory for 64 bytes and none in it");
    }
}
