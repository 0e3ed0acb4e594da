//! A directory that RocksDB made, and RocksDB's own view of it, in one compact file.
//!
//! ```text
//!   codec's number, then compressed:
//!   count of families   each: its line, count of its entries, each: key, value
//!   count of files      each: name, bytes
//! ```
//! Counts and lengths are 32 bits, least byte first; every text and byte string has its length before it.

use std::collections::BTreeMap;

use lithify_format::compress::{Codec, Compressor, decompress};

use super::twin::{Content, Family};

/// Most bytes of an archive once it is unpacked.
const MOST: usize = 4 << 20;

/// A directory of RocksDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub families: Vec<Family>,
    /// What RocksDB shows of each family.
    pub content: Vec<Content>,
    /// Files by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    pub fn pack(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        count(self.families.len(), &mut plain);
        for (family, content) in self.families.iter().zip(&self.content) {
            put(family.written().as_bytes(), &mut plain);
            count(content.len(), &mut plain);
            for (key, value) in content {
                put(key, &mut plain);
                put(value, &mut plain);
            }
        }
        count(self.files.len(), &mut plain);
        for (name, bytes) in &self.files {
            put(name.as_bytes(), &mut plain);
            put(bytes, &mut plain);
        }
        let mut packed = Vec::new();
        let codec = Compressor::new(Codec::Bzip2, 9).unwrap().append(&plain, &mut packed);
        [&[codec], &packed[..]].concat()
    }

    pub fn unpack(bytes: &[u8]) -> Archive {
        let plain = decompress(bytes[0], &bytes[1..], MOST).unwrap();
        let mut rest = &plain[..];
        let mut all = Archive { families: vec![], content: vec![], files: BTreeMap::new() };
        for _ in 0..counted(&mut rest) {
            all.families.push(Family::read(&text(&mut rest)));
            let entries = (0..counted(&mut rest)).map(|_| (taken(&mut rest), taken(&mut rest)));
            all.content.push(entries.collect());
        }
        for _ in 0..counted(&mut rest) {
            let name = text(&mut rest);
            all.files.insert(name, taken(&mut rest));
        }
        assert!(rest.is_empty(), "{} bytes too many", rest.len());
        all
    }
}

fn count(n: usize, out: &mut Vec<u8>) {
    out.extend(u32::try_from(n).unwrap().to_le_bytes());
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    count(bytes.len(), out);
    out.extend(bytes);
}

fn counted(rest: &mut &[u8]) -> usize {
    let (head, tail) = rest.split_first_chunk().unwrap();
    *rest = tail;
    u32::from_le_bytes(*head) as usize
}

fn taken(rest: &mut &[u8]) -> Vec<u8> {
    let len = counted(rest);
    let (head, tail) = rest.split_at(len);
    *rest = tail;
    head.to_vec()
}

fn text(rest: &mut &[u8]) -> String {
    String::from_utf8(taken(rest)).unwrap()
}
