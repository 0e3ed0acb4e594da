//! `lsm::Edit` and the wire form of edits, in both directions.
//!
//! Level 0: the stratum *is* the epoch number, as RocksDB orders its level 0. Below, the stratum
//! has a tag of its own, so that RocksDB refuses a directory it would misread.
//!
//! Keeps: `file_meta(&wire_file(m)) == m` for every description we write.
//! Leaves to others: bytes (`lithify_journal::manifest`), invariants of the tree (`lithify_lsm`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lithify_base::{Comparator, End, Error, FileId, InternalKey, KeyRange, MAX_SEQ, Result, Tag};
use lithify_format::varint::{self, Reader};
use lithify_journal::manifest::file::FileCounts;
use lithify_journal::manifest::{FamilyState, JobTag, WireEdit, WireFile};
use lithify_lsm::{BucketMap, BucketStat, Edit, FileMeta};

/// Smallest epoch that a flush of ours gets: 0 means unknown, 1 is RocksDB's for files that were
/// ingested behind everything else.
pub const FIRST_EPOCH: u32 = 2;
/// Largest stratum that an opened tree has. It leaves 2^28 flushes to the open handle: 300 days of ten
/// a second.
pub const STRATUM_MAX: u32 = u32::MAX - (1 << 28);
/// Version of the bucket map's encoding.
const HINT_VERSION: u64 = 1;

/// The wire form of an edit, without the counters of the database.
pub fn wire_edit(edit: &Edit) -> WireEdit {
    let cursor = |key: &[u8]| InternalKey { user: key, tag: Tag(MAX_SEQ << 8) }.to_vec();
    WireEdit {
        cf: edit.cf,
        log_number: edit.log_number,
        cursors: edit.cursors.iter().map(|(level, key)| (*level, cursor(key))).collect(),
        deleted: edit.deletes.iter().map(|(pos, id)| (pos.level, id.0)).collect(),
        added: edit.adds.iter().map(wire_file).collect(),
        job: edit.job.map(|job| JobTag { job: job.0, attempt: 0 }),
        bucket_hint: edit.bucket_hint.as_ref().map(|map| encode_hint(map)),
        ..WireEdit::default()
    }
}

/// The wire form of a file description.
pub fn wire_file(m: &FileMeta) -> WireFile {
    let (lo, hi) = (&m.range.lo, &m.range.hi.key);
    let level0 = m.pos.level == 0;
    WireFile {
        level: m.pos.level,
        number: m.id.0,
        size: m.bytes,
        smallest: InternalKey { user: lo, tag: m.lo_tag }.to_vec(),
        largest: InternalKey { user: hi, tag: m.hi_tag }.to_vec(),
        smallest_seq: m.seqs.0,
        largest_seq: m.seqs.1,
        epoch: if level0 { u64::from(m.pos.stratum.0) } else { m.epoch },
        stratum: if level0 { 0 } else { m.pos.stratum.0 },
        backing: m.backing.map(|b| b.0),
        base_context: m.base_context,
        oldest_ancestor_time: m.oldest_ancestor,
        creation_time: m.created,
        tail_size: m.tail_bytes,
        place: m.place,
        need_compaction: m.marked,
        counts: Some(FileCounts {
            entries: m.entries,
            deletes: m.deletes,
            range_deletes: m.range_deletes,
            raw_key_bytes: m.raw_key_bytes,
            raw_value_bytes: m.raw_value_bytes,
        }),
        ..WireFile::default()
    }
}

/// The description of a file in wire form. Foreign files have no counts: they are 0 then, and
/// [`WireFile::counts`] says so.
///
/// # Errors
/// Corruption if its bounds are no internal keys or out of order.
pub fn file_meta(w: &WireFile, order: &dyn Comparator) -> Result<FileMeta> {
    let bad = |what: &str| Error::corruption(format!("file {:06}: {what}", w.number));
    let bound = |bytes| InternalKey::decode(bytes).ok_or_else(|| bad("bound is no internal key"));
    let (smallest, largest) = (bound(&w.smallest)?, bound(&w.largest)?);
    if smallest.cmp(largest, order).is_gt() {
        return Err(bad("its smallest key is above its largest"));
    }
    let hi = match largest.tag == FileMeta::EXCLUSIVE_END {
        true => End::excl(largest.user),
        false => End::incl(largest.user),
    };
    let range = KeyRange { lo: smallest.user.into(), hi };
    let mut m = FileMeta::new(FileId(w.number), w.pos()?, range);
    m.lo_tag = smallest.tag;
    m.hi_tag = largest.tag;
    m.bytes = w.size;
    m.seqs = (w.smallest_seq, w.largest_seq);
    m.epoch = w.epoch;
    m.base_context = w.base_context;
    m.tail_bytes = w.tail_size;
    m.created = w.creation_time;
    m.oldest_ancestor = w.oldest_ancestor_time;
    m.place = w.place;
    m.marked = w.need_compaction;
    m.backing = w.backing.map(FileId);
    let counts = w.counts.unwrap_or_default();
    m.entries = counts.entries;
    m.deletes = counts.deletes;
    m.range_deletes = counts.range_deletes;
    m.raw_key_bytes = counts.raw_key_bytes;
    m.raw_value_bytes = counts.raw_value_bytes;
    Ok(m)
}

/// Gives the files of a foreign family places that fit our tree: strata to those of level 0, and
/// to those deeper down that share a user key with a neighbour.
pub fn order_foreign(family: &mut FamilyState) {
    renumber(family);
    part_neighbours(family);
    let sound = 0..=u64::from(STRATUM_MAX);
    for file in family.files.values_mut().filter(|f| f.level > 0 && !sound.contains(&f.epoch)) {
        // Below level 0 it only says that what comes is newer.
        file.epoch = 1;
    }
}

/// Another engine may cut its files between two versions of one user key: the newer ones end one
/// file, the older ones begin the next of the level. In our tree no user key is in two files of a run
/// (V4), so a file goes as many strata up as files follow it in such a chain:
///
/// ```text
///   L2  a---k@9 k@7---m n--z      L2.1  a---k@9
///                                 L2.0          k@7---m n--z
/// ```
///
/// Keys are compared as bytes; where an order of keys takes different bytes for equal, V4 will tell.
fn part_neighbours(family: &mut FamilyState) {
    fn key(bytes: &[u8]) -> Option<InternalKey<'_>> {
        InternalKey::decode(bytes)
    }
    let deep = || family.files.values().filter(|f| f.level > 0);
    // By level and first key, the newest version of it first.
    let mut heads: Vec<_> = deep()
        .filter_map(|f| key(&f.smallest).map(|k| ((f.level, k.user), Reverse(k.tag), f.number)))
        .collect();
    heads.sort_unstable();
    // The file whose first key is the next older version of the key that `f` ends on.
    let next = |f: &WireFile| {
        let end = key(&f.largest).filter(|k| k.tag != FileMeta::EXCLUSIVE_END)?;
        let place = (f.level, end.user);
        let from = heads.partition_point(|&(at, tag, _)| (at, tag) <= (place, Reverse(end.tag)));
        heads.get(from).filter(|head| head.0 == place).map(|head| head.2)
    };
    let next: BTreeMap<u64, u64> = deep().filter_map(|f| Some((f.number, next(f)?))).collect();
    if next.is_empty() {
        return;
    }
    // Walked along the chains, as only the comparator knows which of two files comes first.
    let mut strata: BTreeMap<u64, u32> = BTreeMap::new();
    for &start in next.keys() {
        let mut chain = vec![start];
        // Tags fall along a chain of one key, and keys rise: bounds that go in circles are damage.
        while let Some(&after) = next.get(chain.last().expect("never empty"))
            && chain.len() <= next.len()
            && !strata.contains_key(chain.last().expect("never empty"))
        {
            chain.push(after);
        }
        let mut stratum = 0;
        for number in chain.into_iter().rev() {
            stratum = *strata.entry(number).or_insert(stratum) + 1;
        }
    }
    for (number, stratum) in strata {
        if let Some(file) = family.files.get_mut(&number) {
            file.stratum = stratum;
        }
    }
}

/// Gives the files of a family strata that leave room for later ones, in the order they have: those of
/// level 0 by their epochs, or, where a release too old to write any left them 0, by their largest
/// sequence numbers and then file numbers (LevelDB's order). Files of one age keep sharing one.
pub fn renumber(family: &mut FamilyState) {
    let last = u64::from(STRATUM_MAX);
    let is_sound = |f: &WireFile| match f.level {
        0 => (1..=last).contains(&f.epoch),
        _ => u64::from(f.stratum) <= last,
    };
    if family.files.values().all(is_sound) {
        return;
    }
    let age = |f: &WireFile| match (f.level, f.epoch) {
        (0, 0) => Some((0, f.largest_seq, f.number)),
        (0, epoch) => Some((epoch, 0, 0)),
        _ => (f.stratum > 0).then_some((u64::from(f.stratum), 0, 0)),
    };
    let mut ages: Vec<_> = family.files.values().filter_map(age).collect();
    ages.sort_unstable();
    ages.dedup();
    let strata: BTreeMap<_, u32> = ages.into_iter().zip(FIRST_EPOCH..).collect();
    for file in family.files.values_mut() {
        match age(file).and_then(|age| strata.get(&age)) {
            Some(&stratum) if file.level == 0 => file.epoch = u64::from(stratum),
            Some(&stratum) => file.stratum = stratum,
            None => {}
        }
    }
}

/// The bucket map as a hint: version, epoch, bounds, and per bucket its age and recent flushes.
pub fn encode_hint(map: &BucketMap) -> Vec<u8> {
    let mut out = Vec::new();
    for v in [HINT_VERSION, map.epoch, map.bounds.len() as u64] {
        varint::put_u64(&mut out, v);
    }
    for bound in &map.bounds {
        varint::put_length_prefixed(&mut out, bound);
    }
    varint::put_u64(&mut out, map.stats.len() as u64);
    for stat in &map.stats {
        varint::put_u64(&mut out, u64::from(stat.age));
        varint::put_u64(&mut out, stat.flushed.len() as u64);
        stat.flushed.iter().for_each(|&bytes| varint::put_u64(&mut out, bytes));
    }
    out
}

/// The bucket map of a hint; `None` if it is of another version or damaged, which costs speed
/// only.
pub fn decode_hint(hint: &[u8]) -> Option<BucketMap> {
    let mut r = Reader::new(hint);
    if r.var64().ok()? != HINT_VERSION {
        return None;
    }
    let mut map = BucketMap { epoch: r.var64().ok()?, ..BucketMap::default() };
    for _ in 0..r.var64().ok()? {
        map.bounds.push(r.length_prefixed().ok()?.into());
    }
    for _ in 0..r.var64().ok()? {
        let mut stat = BucketStat { age: r.var32().ok()?, ..BucketStat::default() };
        for _ in 0..r.var64().ok()? {
            stat.flushed.push(r.var64().ok()?);
        }
        map.stats.push(stat);
    }
    (r.is_empty() && map.stats.len() == map.bounds.len() + 1).then_some(map)
}
