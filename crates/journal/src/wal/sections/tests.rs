use lithify_base::{CfId, Kind};

use super::*;

const CF: CfId = CfId(0);

fn plain(keys: &[&str]) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    keys.iter().for_each(|key| batch.put(CF, key.as_bytes(), b"v"));
    batch
}

/// What takes effect with the bytes of a batch, and from which number on.
fn effect(sections: &mut Sections, bytes: &[u8]) -> (u64, Vec<String>) {
    let view = BatchView::parse(bytes).unwrap();
    let resolved = sections.take(&view).unwrap();
    let view = resolved.as_ref().map_or(view, BatchBuilder::view);
    let keys = view.iter().map(|op| String::from_utf8(op.key.to_vec()).unwrap());
    (view.sequence(), keys.collect())
}

/// The bytes as RocksDB writes them: what `mark` names takes effect between two puts.
fn rocksdb_commit(name: &[u8]) -> Vec<u8> {
    let mut batch = plain(&["before"]);
    batch.set_sequence(7);
    let mut bytes = batch.as_bytes().to_vec();
    bytes.extend([0xB, name.len() as u8]);
    bytes.extend(name);
    bytes.extend(&plain(&["behind"]).as_bytes()[12..]);
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    bytes
}

#[test]
fn a_section_is_not_visible_until_a_mark_commits_it() {
    let section = BatchBuilder::section(&plain(&["a", "b"]), b"pay").unwrap();
    assert_eq!((section.count(), section.view().count()), (0, 0));
    // The header counts what is in the section, as RocksDB's does.
    assert_eq!(section.as_bytes()[8..12], 2u32.to_le_bytes());
    let mut sections = Sections::default();
    assert_eq!(effect(&mut sections, section.as_bytes()), (0, vec![]));
    assert!(sections.names().eq([b"pay"]));
    let all = vec!["before".to_owned(), "a".into(), "b".into(), "behind".into()];
    assert_eq!(effect(&mut sections, &rocksdb_commit(b"pay")), (7, all));
    assert!(sections.into_open().is_empty());
}

#[test]
fn one_that_ends_takes_nothing_with_it_but_what_stands_there() {
    let mut sections = Sections::default();
    for name in [&b"pay"[..], b"ship"] {
        let section = BatchBuilder::section(&plain(&["a"]), name).unwrap();
        effect(&mut sections, section.as_bytes());
    }
    let mut commit = BatchBuilder::new();
    commit.end_prepared(b"pay");
    commit.append(&plain(&["a"]));
    assert_eq!(commit.count(), 1);
    assert_eq!(effect(&mut sections, commit.as_bytes()).1, ["a"]);
    let mut rollback = BatchBuilder::new();
    rollback.end_prepared(b"ship");
    assert!(!rollback.is_empty());
    assert_eq!(effect(&mut sections, rollback.as_bytes()), (0, vec![]));
    // What it was prepared with is in tables long since.
    assert_eq!(effect(&mut sections, &rocksdb_commit(b"pay")).1, ["before", "behind"]);
    assert!(sections.into_open().is_empty());
}

#[test]
fn what_is_open_is_what_was_prepared() {
    let mut of = plain(&["a"]);
    of.delete_range(CfId(3), b"k", b"m");
    of.log_data(b"note");
    let section = BatchBuilder::section(&of, b"").unwrap();
    let mut sections = Sections::default();
    effect(&mut sections, section.as_bytes());
    let open = sections.into_open().remove(&b""[..]).unwrap();
    assert_eq!(open, of);
    assert!(open.names_families() && !open.is_plain());
}

#[test]
fn a_section_that_is_not_whole_is_corrupt() {
    let whole = BatchBuilder::section(&plain(&["a"]), b"pay").unwrap();
    let whole = whole.as_bytes();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.to_vec();
        change(&mut bytes);
        BatchView::parse(&bytes).unwrap_err()
    };
    for error in [
        with(&|bytes| bytes.truncate(bytes.len() - 5)), // no end
        with(&|bytes| bytes.truncate(bytes.len() - 1)), // a name that is cut short
        with(&|bytes| drop(bytes.drain(12..13))),       // no beginning
        with(&|bytes| bytes.insert(12, 0x9)),           // one in another
        with(&|bytes| bytes[8] = 0),                    // a count without what is in it
    ] {
        assert!(error.is_corruption(), "{error}");
    }
}

#[test]
fn notes_take_effect_and_marks_do_not() {
    let mut batch = BatchBuilder::new();
    batch.end_prepared(b"pay");
    batch.merge(CF, b"k", b"+1");
    batch.log_data(b"note");
    batch.set_sequence(5);
    let effect = Sections::default().take(&batch.view()).unwrap().unwrap();
    assert_eq!((effect.sequence(), effect.count(), effect.view().is_marked()), (5, 1, false));
    assert_eq!(effect.view().iter_all().count(), 2);
    assert_eq!(effect.view().iter().next().unwrap().kind, Kind::Merge);
}
