use lithify_files::dir::{Dir, FileName};
use lithify_files::testing::{bytes_of, mem_dir, overwrite};
use lithify_format::filter::key_hash;
use lithify_format::table::footer::Footer;
use lithify_format::table::metaindex::{self, MetaIndex};

use super::*;
use crate::testing::{Make, edit_props, entries, open};

const TABLE: u64 = 1;

/// What RocksDB puts at the end of a filter: old Bloom of 6 probes and 9 lines, the new one (as it is
/// written), Ribbon of 3 blocks, and one that holds everything.
const OLD_BLOOM: Option<[u8; 5]> = Some([6, 9, 0, 0, 0]);
const NEW_BLOOM: Option<[u8; 5]> = None;
const RIBBON: Option<[u8; 5]> = Some([0xfe, 17, 3, 0, 0]);
const EVERYTHING: Option<[u8; 5]> = Some([0; 5]);

/// A table of any version before 6, with this end of its filter, whose properties name a version.
fn made(version: u32, filter: Option<[u8; 5]>, stated: u32) -> Dir {
    let dir = mem_dir();
    Make { version: 5, ..Make::default() }.write(&dir, TABLE, &entries(200, 3), &[]).unwrap();
    edit_props(&dir, TABLE, |props| props.format_version = u64::from(stated));
    let mut bytes = bytes_of(&dir, FileName::Table(TABLE));
    let footer = Footer::read(&bytes, bytes.len() as u64).unwrap();
    let payload = |h: BlockHandle| h.offset as usize..(h.offset + h.size) as usize;
    let names = MetaIndex::decode(&bytes[payload(footer.metaindex)]).unwrap();
    if let Some(end) = filter {
        let at = names.get(metaindex::FULL_FILTER).unwrap();
        let mut filter = bytes[payload(at)].to_vec();
        let start = filter.len() - end.len();
        filter[start..].copy_from_slice(&end);
        let mut block = Vec::new();
        footer.check.append(&mut block, &filter, 0, at.offset);
        bytes[at.offset as usize..][..block.len()].copy_from_slice(&block);
    }
    // The version lies before the magic number at the end.
    let at = bytes.len() - 12;
    bytes[at..at + 4].copy_from_slice(&version.to_le_bytes());
    overwrite(&dir, FileName::Table(TABLE), &bytes);
    dir
}

fn found(dir: &Dir) -> Vec<String> {
    let table = open(dir, TABLE, None).unwrap();
    inspect(&table, None, &mut |_| {}).1.iter().map(ToString::to_string).collect()
}

/// RocksDB's Ribbon policy writes Ribbon, and the new Bloom filter for flushes, whatever the version.
/// Newer versions of RocksDB name it in the properties, older ones wrote 0.
#[test]
fn every_filter_is_sound_at_every_version_that_has_it() {
    for version in 2..=5 {
        for stated in [0, version] {
            for filter in [OLD_BLOOM, NEW_BLOOM, RIBBON, EVERYTHING] {
                if filter == OLD_BLOOM && (version, stated) == (5, 0) {
                    continue;
                }
                let dir = made(version, filter, stated);
                let story = format!("{filter:?} at {version}, properties {stated}");
                assert_eq!(found(&dir), [""; 0], "{story}");
                let table = open(&dir, TABLE, None).unwrap();
                assert_eq!(table.format_version(), version);
                for (key, tag, value) in entries(200, 3) {
                    let got = table.get(&key, key_hash(&key), tag.seq()).unwrap().unwrap();
                    assert_eq!((got.0, &*got.1), (tag, &value[..]), "{story}");
                }
                let passed = (0..100)
                    .filter(|n| {
                        let absent = format!("absent{n}");
                        table.may_contain(absent.as_bytes(), key_hash(absent.as_bytes())).unwrap()
                    })
                    .count();
                let denies = filter == NEW_BLOOM;
                assert!(if denies { passed < 10 } else { passed == 100 }, "{story}: {passed}");
            }
        }
    }
}

#[test]
fn a_damaged_version_is_found() {
    let wrong = [
        (4, NEW_BLOOM, 5, "is 4 here and 5 in the properties"),
        (4, RIBBON, 5, "is 4 here and 5 in the properties"),
        (3, OLD_BLOOM, 2, "is 3 here and 2 in the properties"),
        (5, OLD_BLOOM, 4, "is 5 here and 4 in the properties"),
        (5, OLD_BLOOM, 0, "format_version 5 has no such filter"),
    ];
    for (version, filter, stated, what) in wrong {
        let found = found(&made(version, filter, stated));
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
}

/// Bytes of a value that are others under a right checksum show in nothing but the weight.
#[test]
fn a_table_that_weighs_something_else_than_its_property_says_is_named_with_both_numbers() {
    let dir = mem_dir();
    Make { version: 5, ..Make::default() }.write(&dir, TABLE, &entries(200, 3), &[]).unwrap();
    let weight = open(&dir, TABLE, None).unwrap().weight().unwrap();
    assert_eq!(found(&dir), [""; 0]);
    edit_props(&dir, TABLE, |props| {
        let stated = (weight ^ 1).to_le_bytes().to_vec();
        assert!(props.other.insert(WEIGHT.into(), stated).is_some());
    });
    let found = found(&dir);
    assert_eq!(found.len(), 1, "{found:?}");
    for part in
        [FileName::Table(TABLE).to_string(), format!("{weight:#x}"), format!("{:#x}", weight ^ 1)]
    {
        assert!(found[0].contains(&part), "{part}: {found:?}");
    }
}
