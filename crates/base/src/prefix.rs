//! Prefixes of keys: what a filter holds besides whole keys, so that a look at all keys of one prefix
//! need not open tables that have none.
//!
//! Keeps: a table says by name which extractor its filter was made with; a filter is asked by that one
//! or not at all. Names of the built-in ones are RocksDB's.
//! Leaves to others: filters, and who asks them.
//!
//! Worked example: with `FixedPrefix(4)` the filter of a table with `user17` and `use` holds `user`;
//! `use` has no prefix, as it is too short.

use std::sync::Arc;

/// Takes the prefix of a key.
///
/// Keys of one prefix must be neighbours in the order of the database: nothing but them lies between
/// two of them. An extractor that changes what it takes must change its name with it, since tables
/// remember the name only.
pub trait PrefixExtractor: Send + Sync + 'static {
    /// A name of its own for each way to take prefixes, as it is written into tables.
    fn name(&self) -> &str;
    /// The prefix of `key`, its first bytes; `None` if it has none. Must depend on `key` alone.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]>;
    /// The prefix that every key beginning with `start` has, if all have one and the same. `None`,
    /// the default, is always right: a scan of keys that begin with `start` asks no filter then.
    fn prefix_of_all<'a>(&self, start: &'a [u8]) -> Option<&'a [u8]> {
        let _ = start;
        None
    }
}

/// A shared extractor.
pub type PrefixExtractorRef = Arc<dyn PrefixExtractor>;

/// An extractor, or none. Equal if the names are.
#[derive(Clone, Default)]
pub struct Prefixes(Option<PrefixExtractorRef>);

impl Prefixes {
    /// By `extractor`.
    pub fn by(extractor: PrefixExtractorRef) -> Prefixes {
        Prefixes(Some(extractor))
    }
    /// The extractor, if there is one.
    pub fn get(&self) -> Option<&dyn PrefixExtractor> {
        self.0.as_deref()
    }
    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.get().map(PrefixExtractor::name)
    }
    /// The prefix of `key`; `None` without an extractor.
    #[inline]
    pub fn of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        self.0.as_ref()?.prefix(key)
    }
    /// What a table that names its extractor was written with: this one if it has that name, or the
    /// built-in one of that name; none if it is not known.
    #[must_use]
    pub fn named(&self, name: &str) -> Prefixes {
        match self.name() == Some(name) {
            true => self.clone(),
            false => Prefixes(built_in(name)),
        }
    }
}

impl std::fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prefixes({})", self.name().unwrap_or("none"))
    }
}

impl PartialEq for Prefixes {
    fn eq(&self, other: &Prefixes) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Prefixes {}

/// The first bytes of a key, so many; shorter keys have no prefix.
#[derive(Clone, Debug)]
pub struct FixedPrefix {
    len: usize,
    name: String,
}

impl FixedPrefix {
    /// Of `len` bytes.
    pub fn new(len: usize) -> FixedPrefix {
        FixedPrefix { len, name: format!("{FIXED}{len}") }
    }
}

impl PrefixExtractor for FixedPrefix {
    fn name(&self) -> &str {
        &self.name
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.get(..self.len)
    }
    fn prefix_of_all<'a>(&self, start: &'a [u8]) -> Option<&'a [u8]> {
        start.get(..self.len)
    }
}

/// The first bytes of a key, so many or as many as it has.
#[derive(Clone, Debug)]
pub struct CappedPrefix {
    most: usize,
    name: String,
}

impl CappedPrefix {
    /// Of at most `most` bytes.
    pub fn new(most: usize) -> CappedPrefix {
        CappedPrefix { most, name: format!("{CAPPED}{most}") }
    }
}

impl PrefixExtractor for CappedPrefix {
    fn name(&self) -> &str {
        &self.name
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        Some(key.get(..self.most).unwrap_or(key))
    }
    fn prefix_of_all<'a>(&self, start: &'a [u8]) -> Option<&'a [u8]> {
        start.get(..self.most)
    }
}

const FIXED: &str = "rocksdb.FixedPrefix.";
const CAPPED: &str = "rocksdb.CappedPrefix.";

/// The built-in extractor of that name, if it is one.
pub fn built_in(name: &str) -> Option<PrefixExtractorRef> {
    let number = |text: &str| text.parse().ok();
    if let Some(len) = name.strip_prefix(FIXED).and_then(number) {
        return Some(Arc::new(FixedPrefix::new(len)));
    }
    let most = name.strip_prefix(CAPPED).and_then(number)?;
    Some(Arc::new(CappedPrefix::new(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_names() {
        let (fixed, capped) = (FixedPrefix::new(3), CappedPrefix::new(3));
        for (key, of_fixed, of_capped) in [
            (&b"abcd"[..], Some(&b"abc"[..]), &b"abc"[..]),
            (b"abc", Some(b"abc"), b"abc"),
            (b"ab", None, b"ab"),
            (b"", None, b""),
        ] {
            assert_eq!((fixed.prefix(key), capped.prefix(key)), (of_fixed, Some(of_capped)));
            // `ab` begins keys of many prefixes.
            assert_eq!((fixed.prefix_of_all(key), capped.prefix_of_all(key)), (of_fixed, of_fixed));
        }
        for e in [built_in("rocksdb.FixedPrefix.3"), built_in("rocksdb.CappedPrefix.12")] {
            let e = e.unwrap();
            assert_eq!(built_in(e.name()).unwrap().name(), e.name());
        }
        for other in ["rocksdb.FixedPrefix.", "rocksdb.Noop", "nullptr", "rocksdb.FixedPrefix.-1"] {
            assert!(built_in(other).is_none(), "{other}");
        }
    }
}
