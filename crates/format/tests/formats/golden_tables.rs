//! Golden tables: small files of every shape we write, byte for byte.
//!
//! `REWRITE=1 cargo test -p lithify-format --test formats golden_tables::` writes them anew; a changed
//! golden file is a format change and lands with its reason.
// Golden files are real files; nothing here reaches the library.
#![allow(clippy::disallowed_methods, reason = "the test reads files")]

use lithify_base::{Bytewise, InternalKey, Kind, Tag};
use lithify_format::compress::{Codec, Compressor};
use lithify_format::table::index::IndexShape;
use lithify_format::table::naive::{NaiveTableReader, NaiveTableWriter};
use lithify_format::table::range_del::RangeTombstone;
use lithify_format::table::tail::{TableIdentity, TableSpec};

struct Shape {
    name: &'static str,
    version: u32,
    codec: Codec,
    index: IndexShape,
    versions: u64,
    ranges: bool,
}

fn shapes() -> Vec<Shape> {
    let index = IndexShape::default();
    let plain =
        Shape { name: "", version: 6, codec: Codec::None, index, versions: 1, ranges: false };
    let two = IndexShape { restart_interval: 4, cap: 64, partition: 48 };
    vec![
        Shape { name: "v5", version: 5, ..plain },
        Shape { name: "v6", ..plain },
        Shape { name: "v6-lz4", codec: Codec::Lz4, ..plain },
        Shape { name: "v6-snappy", codec: Codec::Snappy, ..plain },
        Shape { name: "v6-versions", versions: 30, ..plain },
        Shape { name: "v6-two-level", index: two, ..plain },
        Shape { name: "v5-two-level-versions", version: 5, index: two, versions: 30, ..plain },
        Shape { name: "v6-ranges", ranges: true, ..plain },
    ]
}

fn write(shape: &Shape) -> Vec<u8> {
    let spec = TableSpec {
        version: shape.version,
        index: shape.index,
        identity: TableIdentity {
            db_id: "e1d0c2b4-0000-4000-8000-00000000601d".to_owned(),
            session: "G0LDENSESS10N0000001".to_owned(),
            file_number: 42,
            cf_id: 0,
            cf_name: "default".to_owned(),
            creation_time: 1_600_000_000,
            oldest_key_time: 1_500_000_000,
            newest_key_time: 1_600_000_000,
            file_creation_time: 1_600_000_001,
        },
        ..TableSpec::default()
    };
    let mut w =
        NaiveTableWriter::new(spec, 512).with_codec(Compressor::new(shape.codec, 0).unwrap());
    for i in 0..120u64 {
        let user = format!("key{:04}", i / shape.versions * 5);
        let kind = match i % 10 {
            3 => Kind::Delete,
            7 => Kind::SingleDelete,
            _ => Kind::Value,
        };
        let tag = Tag::new(1000 - i, kind);
        let value = if kind == Kind::Value { "golden ".repeat(i as usize % 7) } else { "".into() };
        w.add(InternalKey { user: user.as_bytes(), tag }, value.as_bytes());
    }
    if shape.ranges {
        for (start, end, seq) in [("key0010", "key0020", 900), ("key0010", "key0020", 20)] {
            w.add_tombstone(RangeTombstone { start: start.into(), end: end.into(), seq });
        }
    }
    w.finish(&Bytewise).unwrap().0
}

#[test]
fn tables_are_byte_for_byte_as_before() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for shape in shapes() {
        let path = dir.join(format!("table-{}.sst", shape.name));
        let now = write(&shape);
        if std::env::var_os("REWRITE").is_some() {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&path, &now).unwrap();
        }
        let before = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let same = now.iter().zip(&before).take_while(|(a, b)| a == b).count();
        assert!(now == before, "{} differs from byte {same} on", shape.name);
        let table = NaiveTableReader::open(&before).unwrap();
        assert_eq!(table.entries().unwrap().len(), 120, "{}", shape.name);
        if let Some(counts) = table.counts().unwrap() {
            assert_eq!(counts.len() as u64, table.props().num_data_blocks);
        }
        // Parts decode and encode to the same bytes.
        let props = table.props().encode();
        assert!(before.windows(props.len()).any(|w| w == props), "{} properties", shape.name);
        let names = table.names().encode();
        assert!(before.windows(names.len()).any(|w| w == names), "{} meta-index", shape.name);
    }
}
