use lithify_base::{Bytewise, ErrorKind, InternalKey, Kind, Tag};

use super::*;
use crate::block::BlockBuilder;
use crate::table::naive::NaiveTableReader;

fn footer(version: u32) -> (Footer, u64) {
    let metaindex = BlockHandle::new(1000, 60);
    let base = if version >= 6 { 99 } else { 0 };
    let index = (version < 6).then_some(BlockHandle::new(900, 95));
    let check = BlockCheck { kind: ChecksumKind::Xxh3, base };
    (Footer { version, check, metaindex, index }, metaindex.end())
}

#[test]
fn footers_round_trip_and_every_flipped_bit_is_noticed() {
    for version in [5, 6] {
        let (footer, at) = footer(version);
        let bytes = footer.encode(at);
        let size = at + bytes.len() as u64;
        assert_eq!(Footer::read(&bytes, size).unwrap(), footer);
        let longer = [&b"file bytes before"[..], &bytes].concat();
        assert_eq!(Footer::read(&longer, size).unwrap(), footer);
        assert!(version < 6 || Footer::read(&bytes, size + 1).is_err(), "at another offset");
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            match Footer::read(&bad, size) {
                // Version 5 has no sum of its own; 6 leaves 16 zero bytes out of its checks only
                // in name: the sum covers them. Turning the checks off is a legal footer.
                Ok(read) => assert!(version == 5 || read.check.kind == ChecksumKind::None, "{bit}"),
                Err(e) => assert!(
                    matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Unsupported),
                    "{e}"
                ),
            }
        }
    }
}

#[test]
fn other_files_and_versions_are_refused_by_name() {
    let error = |tail: &[u8]| Footer::read(tail, tail.len() as u64).unwrap_err();
    assert!(error(b"").is_corruption() && error(b"short").is_corruption());
    let text = error(&[b'x'; 100]).to_string();
    assert!(text.contains("not a block-based table"), "{text}");
    let (footer, at) = footer(5);
    for version in [0u32, 1, 8, 77] {
        let mut bytes = footer.encode(at);
        bytes[41..45].copy_from_slice(&version.to_le_bytes());
        let e = Footer::read(&bytes, at + 53).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains(&format!("format_version {version}")), "{e}");
    }
    let bytes = footer.encode(at);
    let e = Footer::read(&bytes, 500).unwrap_err();
    assert!(e.is_corruption(), "handles behind the end: {e}");
}

/// A LevelDB table made by hand: CRC32c, internal keys and whole handles in the index.
#[test]
fn leveldb_tables_are_read() {
    let check = BlockCheck { kind: ChecksumKind::Crc32c, base: 0 };
    let mut file = Vec::new();
    let push = |file: &mut Vec<u8>, block: &[u8]| {
        let handle = BlockHandle::new(file.len() as u64, block.len() as u64);
        check.append(file, block, 0, handle.offset);
        handle
    };
    let mut index = BlockBuilder::new(1);
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let mut data = BlockBuilder::new(16);
        for i in 0..5 {
            let user = format!("{name}{i}");
            let tag = Tag::new(7, Kind::Value);
            let key = InternalKey { user: user.as_bytes(), tag }.to_vec();
            data.add(&key, b"value");
            all.push((key, b"value".to_vec()));
        }
        let handle = push(&mut file, data.finish());
        let mut value = Vec::new();
        handle.encode_into(&mut value);
        index.add(data.last_key(), &value);
    }
    let metaindex = push(&mut file, BlockBuilder::new(1).finish());
    let index = push(&mut file, index.finish());
    let mut tail = Vec::new();
    metaindex.encode_into(&mut tail);
    index.encode_into(&mut tail);
    tail.resize(40, 0);
    tail.extend_from_slice(&LEVELDB_MAGIC.to_le_bytes());
    file.extend_from_slice(&tail);

    let table = NaiveTableReader::open(&file).unwrap();
    assert_eq!((table.footer().version, table.footer().len()), (LEVELDB_VERSION, 48));
    assert_eq!(table.entries().unwrap(), all);
    let target = InternalKey { user: b"b3", tag: Tag::seek(9) };
    assert_eq!(table.get(target, &Bytewise).unwrap().unwrap().0, all[8].0);
    file[3] ^= 1;
    let table = NaiveTableReader::open(&file).unwrap();
    assert!(table.entries().unwrap_err().is_corruption());
}
