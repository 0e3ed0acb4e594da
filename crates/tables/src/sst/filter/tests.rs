//! Filters of prefixes against a look at every key.

use std::sync::Arc;

use lithify_base::prefix::{CappedPrefix, FixedPrefix};
use lithify_base::{Kind, PrefixExtractor, bytewise};
use lithify_env::OpenOpts;
use lithify_files::dir::Dir;
use lithify_files::testing::mem_dir;

use super::*;
use crate::cache::BlockCache;
use crate::sst::OpenTable;
use crate::sst::verify::verify;
use crate::testing::{Entry, Make};

/// Up to the first `/`.
struct Path;

impl PrefixExtractor for Path {
    fn name(&self) -> &str {
        "path"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.iter().position(|&b| b == b'/').map(|end| &key[..=end])
    }
    fn prefix_of_all<'a>(&self, start: &'a [u8]) -> Option<&'a [u8]> {
        self.prefix(start)
    }
}

/// Up to the last `/`, without it: a prefix has another one itself, or none.
struct Parent;

impl PrefixExtractor for Parent {
    fn name(&self) -> &str {
        "parent"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.iter().rposition(|&b| b == b'/').map(|end| &key[..end])
    }
}

/// Some have many versions, some prefixes many keys, others none.
fn entries() -> Vec<Entry> {
    let mut seq = 3000;
    let mut out = Vec::new();
    for n in 0..300u32 {
        let key = match n % 50 {
            0 => format!("{n:03}"),
            _ => format!("{:03}/{n:04}", n / 7 * 7),
        };
        let versions = if n % 20 == 0 { 30 } else { 1 };
        for _ in 0..versions {
            seq -= 1;
            out.push((key.clone().into_bytes(), Tag::new(seq, Kind::Value), vec![7; 20]));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    out
}

fn open_as(dir: &Dir, prefixes: &Prefixes, cache: bool) -> Arc<TableReader> {
    let (name, file) = dir.open_table(1, OpenOpts::read()).unwrap();
    let mut spec = OpenTable::new(file, name.to_string(), bytewise());
    spec.cache = cache.then(|| BlockCache::new(1 << 20, 1));
    spec.prefixes = prefixes.clone();
    TableReader::open(spec).unwrap()
}

fn extractors() -> Vec<Prefixes> {
    let all: [lithify_base::PrefixExtractorRef; 5] = [
        Arc::new(FixedPrefix::new(4)),
        Arc::new(CappedPrefix::new(3)),
        Arc::new(CappedPrefix::new(6)),
        Arc::new(Path),
        Arc::new(Parent),
    ];
    all.into_iter().map(Prefixes::by).collect()
}

#[test]
fn no_prefix_that_is_there_is_denied_and_most_others_are() {
    let entries = entries();
    let starts: Vec<Vec<u8>> = (0..400u32)
        .flat_map(|n| {
            [format!("{n:03}"), format!("{n:03}/"), format!("{n:03}/0"), format!("{n:02}")]
        })
        .chain(entries.iter().map(|e| String::from_utf8(e.0.clone()).unwrap()))
        .map(String::into_bytes)
        .collect();
    for by in extractors() {
        for (index_cap, whole_keys) in [(0, true), (0, false), (1 << 20, true), (1 << 20, false)] {
            let dir = mem_dir();
            let prefixes = by.clone();
            let make =
                Make { index_cap, whole_keys, prefixes, block_bytes: 128, ..Make::default() };
            make.write(&dir, 1, &entries, &[]).unwrap();
            for cache in [false, true] {
                let table = open_as(&dir, &by, cache);
                let parts = matches!(table.filter, TableFilter::Parts { .. });
                // Prefixes alone may be too few for parts.
                assert!(parts == (index_cap == 0) || !whole_keys, "{by:?}");
                verify(&table).unwrap();
                let (mut asked, mut denied) = (0, 0);
                for start in &starts {
                    for exact in [false, true] {
                        let begins = |e: &Entry| match exact {
                            false => e.0.starts_with(start),
                            true => by.of(&e.0) == Some(start),
                        };
                        let there = entries.iter().any(begins);
                        let scope = Scope { start: (&start[..]).into(), by: by.clone(), exact };
                        let may = table.may_have(&scope).unwrap();
                        assert!(may || !there, "{by:?} {} {exact}", start.escape_ascii());
                        let prefix = match exact {
                            true => Some(&start[..]),
                            false => by.get().unwrap().prefix_of_all(start),
                        };
                        // A filter of whole keys knows them, too.
                        let whole = exact && whole_keys && entries.iter().any(|e| e.0 == *start);
                        let others = || entries.iter().all(|e| by.of(&e.0) != prefix);
                        let none = prefix.is_some() && others() && !whole;
                        asked += u32::from(none);
                        denied += u32::from(!may);
                    }
                }
                assert!(asked > 100 && denied <= asked, "{by:?}: {denied} of {asked}");
                assert!(denied * 10 > asked * 9, "{by:?}: {denied} of {asked}");
                // Whole keys are found; those that are not there are seldom let through.
                for (key, ..) in &entries {
                    assert!(table.may_contain(key, key_hash(key)).unwrap());
                }
                let absent = (0..300).map(|n| format!("{n:03}+{n}").into_bytes());
                let passed = absent.filter(|k| table.may_contain(k, key_hash(k)).unwrap()).count();
                assert!(passed < 30 || !whole_keys, "{by:?}: {passed}");
            }
        }
    }
}

/// What a table was written with decides, by its name, and not what the database has now.
#[test]
fn the_extractor_may_change() {
    let entries = entries();
    let dir = mem_dir();
    let all = extractors();
    let scope = |start: &str, by: &Prefixes, exact| Scope {
        start: start.as_bytes().into(),
        by: by.clone(),
        exact,
    };
    let make = Make { prefixes: all[0].clone(), ..Make::default() };
    make.write(&dir, 1, &entries, &[]).unwrap();
    for now in all.iter().chain([&Prefixes::default()]) {
        let table = open_as(&dir, now, false);
        // The table's own one is built in: four bytes, of `0013` there are none.
        assert!(!table.may_have(&scope("0013x", now, false)).unwrap(), "{now:?}");
        assert!(table.may_have(&scope("014/", now, false)).unwrap(), "{now:?}");
        // Of three bytes it knows nothing, whatever the one of now makes of them.
        assert!(table.may_have(&scope("999", now, *now != all[0])).unwrap(), "{now:?}");
    }
    let make = Make { prefixes: all[3].clone(), ..Make::default() };
    let dir = mem_dir();
    make.write(&dir, 1, &entries, &[]).unwrap();
    assert!(!open_as(&dir, &all[3], false).may_have(&scope("999/", &all[3], true)).unwrap());
    for unknown in &all[..3] {
        let table = open_as(&dir, unknown, false);
        assert!(table.may_have(&scope("999/", unknown, true)).unwrap(), "{unknown:?}");
    }
    // A table without prefixes is not asked.
    let dir = mem_dir();
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    assert!(open_as(&dir, &all[0], false).may_have(&scope("9999", &all[0], true)).unwrap());
}
