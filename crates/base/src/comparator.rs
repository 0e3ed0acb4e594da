//! The order of user keys. Bytewise is the default and has a fast path everywhere; any other
//! order goes through the trait.

use std::cmp::Ordering;
use std::sync::Arc;

/// A total order on user keys. Must never change for a database once it holds data: its
/// [`name`](Comparator::name) is stored and checked at every open.
///
/// Different bytes may be equal, as in an order that ignores case; they are one key then. Each write
/// replaces what was written to the key before, however that was spelled; reads, deletions, merges, locks
/// and the look for conflicts of transactions find it in any spelling. Iterators and filters of compactions
/// show the key as the write spelled it whose value they show: of merged operands that is the newest.
/// Filters are made of bytes, so such an order has none: see
/// [`equal_is_identical`](Comparator::equal_is_identical).
///
/// It is called under locks of the database, too. From within, the database can be read; what writes to it,
/// waits for it or closes it is refused as `InvalidArgument`, and its statistics (`stats`, `explain`,
/// `picture`, `property`) panic where a decision about the tree is what compares. A panic that leaves a
/// comparator there, this one or its own, ends all writes and background work until the database is opened
/// again; what was written before stays. Other databases can be called.
pub trait Comparator: Send + Sync + 'static {
    /// Name written to the database, for example `leveldb.BytewiseComparator`.
    fn name(&self) -> &str;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
    /// A short key `k` with `a <= k < b`, used in indexes. Returning `a`, as by default, is always
    /// right; a shorter key makes indexes smaller.
    fn separator(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let _ = b;
        a.to_vec()
    }
    /// A short key `k >= a`. Returning `a`, as by default, is always right.
    fn successor(&self, a: &[u8]) -> Vec<u8> {
        a.to_vec()
    }
    /// True if no two keys that differ in a byte are equal. Only then are tables of the order written
    /// with bloom and prefix filters, and those that they have asked: in any other order a filter would hide
    /// keys. Saying true of an order for which it is not loses keys to reads. RocksDB's
    /// `CanKeysWithDifferentByteContentsBeEqual`, the other way round; RocksDB asks filters all the
    /// same. Default: false, unless it is plain byte order.
    fn equal_is_identical(&self) -> bool {
        self.is_bytewise()
    }
    /// True if [`compare`](Comparator::compare) is plain byte order, which allows comparing
    /// eight-byte key heads as integers.
    fn is_bytewise(&self) -> bool {
        false
    }
}

/// A shared comparator.
pub type ComparatorRef = Arc<dyn Comparator>;

/// Plain byte order: RocksDB's and LevelDB's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytewise;

/// Reverse byte order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReverseBytewise;

/// The default comparator.
pub fn bytewise() -> ComparatorRef {
    Arc::new(Bytewise)
}

impl Comparator for Bytewise {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator"
    }
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
    fn separator(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        if let (Some(&x), Some(&y)) = (a.get(common), b.get(common)) {
            // `a[..common] ++ x+1` is above `a`, and below `b` if there is room between x and y
            // or if `b` goes on.
            if x < y && (x + 1 < y || common + 1 < b.len()) {
                let mut k = a[..=common].to_vec();
                k[common] = x + 1;
                return if k.len() < a.len() { k } else { a.to_vec() };
            }
        }
        a.to_vec()
    }
    fn successor(&self, a: &[u8]) -> Vec<u8> {
        match a.iter().position(|&x| x != 0xff) {
            Some(i) => {
                let mut k = a[..=i].to_vec();
                k[i] += 1;
                k
            }
            None => a.to_vec(),
        }
    }
    #[inline]
    fn is_bytewise(&self) -> bool {
        true
    }
}

impl Comparator for ReverseBytewise {
    fn name(&self) -> &str {
        "rocksdb.ReverseBytewiseComparator"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
    fn equal_is_identical(&self) -> bool {
        true
    }
}
