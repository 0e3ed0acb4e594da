//! Blocks of tables: entries, indexes, filters, everything behind the data, compression.

use lithify_base::{InternalKey, Tag, bytewise};
use lithify_format::block::{BlockIter, IndexForm, IndexIter, IndexKeys};
use lithify_format::compress::Decoder;
use lithify_format::filter::{Filter, key_hash};
use lithify_format::table::blocks_meta;
use lithify_format::table::footer::Footer;
use lithify_format::table::metaindex::MetaIndex;
use lithify_format::table::props::TableProps;
use lithify_format::table::range_del;

pub(super) fn block(bytes: &[u8]) {
    let Some((&[len], rest)) = bytes.split_first_chunk() else { return };
    let (key, block) = rest.split_at(rest.len().min(usize::from(len)));
    let Ok(mut entries) = BlockIter::new(block) else { return };
    // What one walk holds is bounded by the block; entries may repeat long prefixes, so the walk
    // back is compared by count and bytes alone.
    let forward = walk(&mut entries, true);
    let backward = walk(&mut entries, false);
    if let (Ok(forward), Ok(backward)) = (forward, backward) {
        assert_eq!(forward, backward, "both ways show the same");
    }
    let target = InternalKey { user: key, tag: Tag::seek(5) };
    if let Ok(true) = entries.seek(target, &*bytewise()) {
        assert!(entries.valid());
        let _ = entries.prev();
    }
    if let Ok(mut names) = BlockIter::named(block) {
        let _ = names.seek_name(key);
    }
}

/// Count and bytes of all entries.
fn walk(entries: &mut BlockIter<&[u8]>, forward: bool) -> lithify_base::Result<(u64, u64)> {
    let (mut count, mut bytes) = (0, 0);
    let mut more = match forward {
        true => entries.seek_to_first(),
        false => entries.seek_to_last(),
    };
    while more? {
        count += 1;
        bytes += (entries.key().len() + entries.value().len()) as u64;
        more = if forward { entries.next() } else { entries.prev() };
    }
    Ok((count, bytes))
}

pub(super) fn index(bytes: &[u8]) {
    let Some((&[form, len], rest)) = bytes.split_first_chunk() else { return };
    let (key, block) = rest.split_at(rest.len().min(usize::from(len)));
    let keys = if form & 1 == 0 { IndexKeys::User } else { IndexKeys::Internal };
    let form = IndexForm { keys, delta_handles: form & 2 != 0, first_keys: form & 4 != 0 };
    let Ok(mut index) = IndexIter::new(block, form) else { return };
    let (mut handles, mut more) = (0u64, index.seek_to_first());
    while let Ok(true) = more {
        handles += 1;
        let _ = (index.handle(), index.separator_user_key(), index.first_key());
        more = index.next();
    }
    let sound = more.is_ok();
    let (mut back, mut more) = (0u64, index.seek_to_last());
    while let Ok(true) = more {
        back += 1;
        more = index.prev();
    }
    assert!(!sound || more.is_err() || back == handles, "both ways show the same");
    let _ = index.seek(InternalKey { user: key, tag: Tag::seek(5) }, &*bytewise());
}

pub(super) fn filter(bytes: &[u8]) {
    let Some((key, block)) = bytes.split_first_chunk::<8>() else { return };
    let filter = Filter::new(block);
    let _ = filter.may_contain(key_hash(key));
    let _ = filter.may_contain(u64::from_le_bytes(*key));
    let _ = filter.shape().is_known();
}

pub(super) fn meta(bytes: &[u8]) {
    let _ = Footer::read(bytes, bytes.len() as u64);
    let _ = TableProps::decode(bytes).map(|props| {
        let again = TableProps::decode(&props.encode()).expect("what is encoded decodes");
        assert_eq!(again, props);
    });
    let _ = MetaIndex::decode(bytes).map(|names| {
        let again = MetaIndex::decode(&names.encode()).expect("what is encoded decodes");
        assert_eq!(again, names);
    });
    let _ = range_del::decode(bytes);
    if let Some((&[blocks, points], rest)) = bytes.split_first_chunk() {
        let _ = blocks_meta::decode(rest, u64::from(blocks), u64::from(points)).map(|counts| {
            assert_eq!(counts.len(), usize::from(blocks));
        });
    }
}

pub(super) fn compressed(bytes: &[u8]) {
    let Some((&[kind], payload)) = bytes.split_first_chunk() else { return };
    // A legal ratio may be far above the 64 bytes per byte of input, so the cap is the caller's.
    let max = 16 * payload.len() + 1024;
    for decoder in [Decoder::rocksdb(), Decoder::leveldb()] {
        let _ = decoder.decode(kind, payload, max).map(|plain| assert!(plain.len() <= max));
    }
    let (dictionary, payload) = payload.split_at(payload.len() / 2);
    let decoder = Decoder::rocksdb().with_dictionary(dictionary);
    let _ = decoder.decode(kind, payload, max).map(|plain| assert!(plain.len() <= max));
}
