use std::path::Path;

use lithify_base::Kind;
use lithify_env::{Fault, FaultFs, MemFs, PosixFs};
use lithify_files::testing::{bytes_of, dir_on, mem_dir};
use lithify_format::compress::Codec;
use lithify_format::table::naive::NaiveTableWriter;

use super::*;
use crate::sst::verify::verify;
use crate::testing::{Make, entries, in_background, open};

fn tombstone(lo: &str, hi: &str, seq: u64) -> RangeTombstone {
    RangeTombstone { lo: lo.as_bytes().into(), hi: hi.as_bytes().into(), seq, run: 0 }
}

/// The same table by the naive writer.
fn naive(make: &Make, number: u64, entries: &[crate::testing::Entry]) -> Vec<u8> {
    let mut writer = NaiveTableWriter::new(make.spec(number), u64::from(make.block_bytes));
    for (key, tag, value) in entries {
        writer.add(InternalKey { user: key, tag: *tag }, value);
    }
    writer.finish(&lithify_base::Bytewise).unwrap().0
}

#[test]
fn bytes_are_those_of_the_naive_writer_however_they_are_written() {
    let entries = entries(300, 1);
    for version in [5, 6] {
        for (mode, buffer) in [(WriteMode::Sync, 4096), (in_background(), 8192)] {
            for reserve in [0, 1 << 20] {
                let make = Make { version, mode: mode.clone(), buffer, reserve, ..Make::default() };
                let dir = mem_dir();
                let done = make.write(&dir, 9, &entries, &[]).unwrap();
                let bytes = bytes_of(&dir, FileName::Table(9));
                assert_eq!(bytes.len() as u64, done.meta.bytes);
                assert!(bytes == naive(&make, 9, &entries), "version {version}");
            }
        }
    }
}

/// Blocks that are written from where they lie, between others that are copied.
#[test]
fn memory_that_is_given_away_makes_the_same_bytes() {
    let entries = entries(800, 12);
    let scratch = tempfile::tempdir().unwrap();
    for (i, (lent, buffer)) in [(1, 4096), (2, 8192), (100, 4096), (100, 16384)].iter().enumerate()
    {
        for direct in [false, true] {
            let folder = scratch.path().join(format!("{i}{direct}"));
            std::fs::create_dir(&folder).unwrap();
            let on_disk = Dir::new(std::sync::Arc::new(PosixFs::new()), &folder);
            let dir = if direct { on_disk } else { mem_dir() };
            for mode in [WriteMode::Sync, in_background()] {
                let number = if matches!(mode, WriteMode::Sync) { 8 } else { 9 };
                let make = Make { mode, buffer: *buffer, lent: *lent, direct, ..Make::default() };
                make.write(&dir, number, &entries, &[]).unwrap();
                let bytes = bytes_of(&dir, FileName::Table(number));
                assert!(bytes == naive(&make, number, &entries), "{lent} {buffer} {direct}");
            }
        }
    }
}

/// Of what lies in its pages as in those of the file only the ends are copied, and else all of it.
#[test]
fn whole_pages_are_written_from_where_they_lie() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = Dir::new(std::sync::Arc::new(PosixFs::new()), scratch.path());
    for direct in [false, true] {
        let make = Make { mode: in_background(), direct, ..Make::default() };
        let mut table = make.begin(&dir, u64::from(direct)).unwrap();
        let alignment = table.file.alignment();
        table.append(&[1; 100]).unwrap();
        let head = 100usize.next_multiple_of(alignment) - 100;
        let mut lent = IoBuf::with_capacity(40_000);
        lent.set_len(30_000);
        let at = head + (30_000 - 100 - head) / alignment * alignment;
        assert_eq!(table.in_place(&lent[100..]), head..at, "alignment {alignment}");
        let other = if alignment == 1 { 0..29_900 } else { 0..0 };
        assert_eq!(table.in_place(&lent[99..29_999]), other, "alignment {alignment}");
        assert_eq!(table.in_place(&lent[100..800]), 0..0, "too short");
    }
}

/// A block of one entry.
fn parts(stored: &[u8]) -> BlockParts<'_> {
    let key = InternalKey { user: b"k", tag: Tag::new(1, Kind::Value) };
    BlockParts {
        stored,
        first: key,
        last: key,
        entries: 1,
        raw_key_bytes: 9,
        raw_value_bytes: 0,
        weight: 0,
        deletes: 0,
        merges: 0,
        seqs: (1, 1),
        hashes: &[],
    }
}

/// A write of such memory that fails fails the table, and so does a block that is none.
#[test]
fn memory_that_is_given_away_fails_as_buffers_do() {
    let fs = FaultFs::new(std::sync::Arc::new(MemFs::new()), |op| {
        (op.name == "write_at" && op.offset > 8192)
            .then(|| Fault::from(std::io::Error::from(std::io::ErrorKind::StorageFull)))
    });
    let make = Make { mode: in_background(), lent: 100, ..Make::default() };
    let failed = make.write(&dir_on(std::sync::Arc::new(fs)), 3, &entries(400, 7), &[]);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::NoSpace);
    let mut table = make.begin(&mem_dir(), 1).unwrap();
    let mut arena = vec![0; 100];
    for place in [0..0, 0..4, 90..101] {
        let error = table.adopt(&mut arena, place, parts(b"")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
    assert!(arena == [0; 100]);
}

#[test]
fn a_direct_file_on_a_real_disk_is_cut_to_its_length() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = Dir::new(std::sync::Arc::new(PosixFs::new()), scratch.path());
    let entries = entries(400, 2);
    for (number, mode) in [(1, WriteMode::Sync), (2, in_background())] {
        let make = Make { mode, direct: true, reserve: 1 << 20, ..Make::default() };
        let done = make.write(&dir, number, &entries, &[]).unwrap();
        assert_eq!(dir.len_of(FileName::Table(number)).unwrap(), Some(done.meta.bytes));
        let table = open(&dir, number, None).unwrap();
        assert_eq!(verify(&table).unwrap().entries, entries.len() as u64);
    }
}

#[test]
fn the_description_matches_the_table() {
    let dir = mem_dir();
    let entries = entries(100, 3);
    let done = Make::default()
        .write(&dir, 7, &entries, &[tombstone("a", "key00050", 9000), tombstone("q", "z", 9001)])
        .unwrap();
    let m = done.at(Pos::new(0, 4), 4);
    assert_eq!((m.id, m.pos, m.epoch), (FileId(7), Pos::new(0, 4), 4));
    assert_eq!(m.range, KeyRange::excl(&b"a"[..], &b"z"[..]));
    assert_eq!((m.lo_tag, m.hi_tag), (Tag::new(9000, Kind::RangeDelete), FileMeta::EXCLUSIVE_END));
    assert_eq!((m.entries, m.range_deletes), (entries.len() as u64, 2));
    let sum = |f: fn(&crate::testing::Entry) -> usize| entries.iter().map(f).sum::<usize>() as u64;
    assert_eq!(m.raw_key_bytes, sum(|e| e.0.len()));
    assert_eq!(m.raw_value_bytes, sum(|e| e.2.len()));
    let deletes = entries.iter().filter(|e| e.1.kind() == Some(Kind::Delete)).count() as u64;
    assert_eq!(m.deletes, deletes);
    assert_eq!(m.seqs, (1, 9001));
    assert_eq!(m.bytes, dir.len_of(FileName::Table(7)).unwrap().unwrap());
    let table = open(&dir, 7, None).unwrap();
    assert_eq!(m.tail_bytes, m.bytes - table.data_bytes());
    assert_eq!(table.stored_tombstones().len(), 2);
    assert_eq!(m.base_context, table.check().base);
}

#[test]
fn bounds_without_tombstones_are_those_of_the_points() {
    let dir = mem_dir();
    let entries = entries(50, 4);
    let (first, last) = (&entries[0], &entries[entries.len() - 1]);
    let m = Make::default().write(&dir, 1, &entries, &[]).unwrap().meta;
    assert_eq!(m.range, KeyRange::incl(&first.0[..], &last.0[..]));
    assert_eq!((m.lo_tag, m.hi_tag), (first.1, last.1));
    let only = Make::default().write(&dir, 2, &[], &[tombstone("b", "c", 5)]).unwrap().meta;
    assert_eq!(only.range, KeyRange::excl(&b"b"[..], &b"c"[..]));
    assert_eq!((only.entries, only.range_deletes, only.raw_value_bytes), (0, 1, 0));
}

#[test]
fn compressed_tables_read_back() {
    let mut entries = entries(300, 5);
    entries.iter_mut().for_each(|e| e.2 = vec![b'v'; 40]);
    for codec in [Codec::Lz4, Codec::Snappy] {
        let dir = mem_dir();
        let make = Make { codec, ..Make::default() };
        make.write(&dir, 3, &entries, &[]).unwrap();
        let table = open(&dir, 3, None).unwrap();
        assert_eq!(verify(&table).unwrap().entries, entries.len() as u64);
        let raw: u64 = entries.iter().map(|e| (e.0.len() + e.2.len()) as u64).sum();
        assert!(table.data_bytes() < raw, "{codec:?} saves something");
    }
}

/// Every IO call of writing a table fails once: the writer reports it, at the latest at the end.
#[test]
fn every_failed_call_fails_the_table() {
    let entries = entries(200, 6);
    let make = Make { reserve: 1 << 16, ..Make::default() };
    let run = |fail: u64| {
        let fs = FaultFs::new(std::sync::Arc::new(MemFs::new()), move |op| {
            let hit = op.index == fail + 1 && op.path != Path::new("/db");
            hit.then(|| Fault::from(std::io::Error::from_raw_os_error(5)))
        });
        let fs = std::sync::Arc::new(fs);
        let result = make.write(&dir_on(fs.clone()), 3, &entries, &[]);
        (result, fs.count())
    };
    let (result, calls) = run(u64::MAX - 1);
    assert!(result.is_ok() && calls > 7, "{calls} calls");
    for fail in 0..calls - 1 {
        let (result, _) = run(fail);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Io, "call {fail}");
    }
}

#[test]
fn a_failed_background_write_surfaces() {
    let fs = FaultFs::new(std::sync::Arc::new(MemFs::new()), |op| {
        (op.name == "write_at" && op.offset == 8192)
            .then(|| Fault::from(std::io::Error::from(std::io::ErrorKind::StorageFull)))
    });
    let make = Make { mode: in_background(), ..Make::default() };
    let failed = make.write(&dir_on(std::sync::Arc::new(fs)), 3, &entries(400, 7), &[]);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::NoSpace);
}

#[test]
fn an_engine_cannot_hand_over_half_a_block() {
    let dir = mem_dir();
    let mut table = Make::default().begin(&dir, 1).unwrap();
    for stored in [&b""[..], b"sum4"] {
        assert_eq!(table.push_block(parts(stored)).unwrap_err().kind(), ErrorKind::Internal);
    }
    assert_eq!(table.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
}
