use lithify_files::dir::FileName;
use lithify_files::testing::{mem_dir, overwrite};
use lithify_format::block::BlockCheck;
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::{Codec, Compressor};

use super::*;

/// Reads a block of `len` equal bytes, compressed, as one of an index.
fn read_meta_of(len: usize) -> Result<usize> {
    let check = BlockCheck { kind: ChecksumKind::Xxh3, base: 0 };
    let mut payload = Vec::new();
    let kind = Compressor::new(Codec::Lz4, 0).unwrap().append(&vec![7; len], &mut payload);
    assert!(payload.len() * 64 < len, "it grows more than 64 times");
    let handle = BlockHandle::new(0, payload.len() as u64);
    let mut file = Vec::new();
    check.append(&mut file, &payload, kind, 0);
    let dir = mem_dir();
    overwrite(&dir, FileName::Table(1), &file);
    let file = dir.open_file(FileName::Table(1), OpenOpts::read())?;
    let blocks = Blocks {
        source: Source::new(file, "a table".into(), None)?,
        footer: Footer { version: 5, check, metaindex: BlockHandle::default(), index: None },
        decoder: Arc::new(Decoder::rocksdb()),
        verify: Verify::Always,
    };
    blocks.read_meta(handle).map(|block| block.as_ref().len())
}

/// An index of RocksDB's without restart intervals, with long keys that share much, shrinks so much.
#[test]
fn blocks_of_an_index_may_grow_to_32_mib_and_no_more() {
    for len in [10 << 20, 31 << 20] {
        assert_eq!(read_meta_of(len).unwrap(), len);
    }
    let e = read_meta_of(33 << 20).unwrap_err();
    assert!(e.file() == Some("a table"), "{e}");
}
