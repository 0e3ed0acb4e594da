//! Batches in their encoded form, with notes and savepoints; orders whose names the program makes up.

use std::cmp::Ordering;
use std::sync::Arc;

use lithify::BatchEntry::{Delete, DeleteRange, LogData, Merge, Put, SingleDelete};
use lithify::env::{Env, RtOptions};
use lithify::merge::Append;
use lithify::{
    Builder, ColumnFamilyOptions, Comparator, ErrorKind, MAX_KEY_BYTES, Settings, WriteBatch,
};

/// What RocksDB's `WriteBatch::Data` is for the same calls.
const ENCODED: &[u8] = b"\0\0\0\0\0\0\0\0\x06\0\0\0\
    \x01\x01a\x011\x03\x04note\x00\x01b\x07\x01c\x02\x01a\x012\x0f\x01d\x01e\x05\x01\x00\x013";

#[test]
fn the_encoded_form_is_rocksdbs_and_comes_back() {
    let env = Env::in_memory(RtOptions::default());
    let builder = Builder::new(Settings::default()).merge_operator(Arc::new(Append::default()));
    let db = builder.clone().env(env.clone()).open("db").unwrap();
    let other = db.create_column_family("other", ColumnFamilyOptions::new()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.log_data("note").unwrap();
    batch.delete("b").unwrap();
    batch.single_delete("c").unwrap();
    batch.merge("a", "2").unwrap();
    batch.delete_range("d", "e").unwrap();
    batch.put_cf(&other, "", "3").unwrap();
    assert_eq!(batch.encoded(), ENCODED);

    let copy = WriteBatch::from_encoded(ENCODED).unwrap();
    assert_eq!((copy.len(), copy.encoded()), (6, ENCODED));
    let entries: Vec<_> = copy.entries().collect();
    let expected = [
        Put(0, b"a", b"1"),
        LogData(b"note"),
        Delete(0, b"b"),
        SingleDelete(0, b"c"),
        Merge(0, b"a", b"2"),
        DeleteRange(0, b"d", b"e"),
        Put(1, b"", b"3"),
    ];
    assert_eq!(entries, expected);
    for key in ["b", "c", "d"] {
        db.put(key, "gone").unwrap();
    }
    db.write(&copy).unwrap();
    // Once more from the log, note and all.
    db.close().unwrap();
    let db = builder.env(env).open("db").unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1,2"[..]));
    for key in ["b", "c", "d"] {
        assert!(db.get(key).unwrap().is_none());
    }
    let other = db.column_family("other").unwrap();
    assert_eq!(other.get("").unwrap().as_deref(), Some(&b"3"[..]));
}

#[test]
fn bytes_that_are_no_batch_are_refused() {
    for cut in 0..ENCODED.len() {
        // Whatever is left, the count is wrong.
        let kind = WriteBatch::from_encoded(&ENCODED[..cut]).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Corruption, "cut at {cut}");
    }
    let unknown = [&ENCODED[..12], b"\x6b"].concat();
    assert_eq!(WriteBatch::from_encoded(unknown).unwrap_err().kind(), ErrorKind::Corruption);
    // The end of a prepared transaction, as the log has it.
    let prepared = [&[0; 12][..], b"\x0c\x01x"].concat();
    assert_eq!(WriteBatch::from_encoded(prepared).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut long = vec![0; 12];
    long[8] = 1;
    long.extend(b"\x00\x81\x80\x80\x08");
    long.resize(long.len() + MAX_KEY_BYTES + 1, b'k');
    assert_eq!(WriteBatch::from_encoded(long).unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_family_that_is_not_there_is_refused_at_the_write() {
    let db = Builder::new(Settings::default())
        .env(Env::in_memory(RtOptions::default()))
        .open("db")
        .unwrap();
    let stray = [&[0; 8][..], b"\x01\0\0\0\x05\x09\x01k\x01v"].concat();
    let batch = WriteBatch::from_encoded(stray).unwrap();
    assert!(db.write(&batch).is_err());
    assert!(db.get("k").unwrap().is_none());
}

#[test]
fn savepoints_come_back() {
    let mut batch = WriteBatch::new();
    assert_eq!(batch.rollback_to_savepoint().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(batch.pop_savepoint().unwrap_err().kind(), ErrorKind::NotFound);
    batch.put("a", "1").unwrap();
    batch.set_savepoint();
    batch.delete_range("b", "c").unwrap();
    batch.set_savepoint();
    batch.put("d", "2").unwrap();
    batch.pop_savepoint().unwrap();
    assert_eq!(batch.len(), 3);
    batch.rollback_to_savepoint().unwrap();
    assert!(batch.entries().eq([Put(0, b"a", b"1")]));
    batch.set_savepoint();
    batch.clear();
    assert!(batch.rollback_to_savepoint().is_err(), "cleared savepoints are none");
}

/// Byte order from the end, called what it is told.
struct FromTheEnd(String);

impl Comparator for FromTheEnd {
    fn name(&self) -> &str {
        &self.0
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
}

#[test]
fn the_name_of_an_order_lives_as_long_as_the_order() {
    let env = Env::in_memory(RtOptions::default());
    let open = |name: &str| {
        let order = Arc::new(FromTheEnd(name.to_owned()));
        Builder::new(Settings::default()).comparator(order).env(env.clone()).open("db")
    };
    let db = open(&format!("from-the-end-{}", 1)).unwrap();
    assert_eq!(db.comparator_name(), "from-the-end-1");
    db.put("ab", "2").unwrap();
    db.put("ba", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert_eq!(open("from-the-end-2").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let db = open("from-the-end-1").unwrap();
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"ba");
}
