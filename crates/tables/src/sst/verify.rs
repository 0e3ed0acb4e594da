//! Checking one whole table: every byte and every promise a reader relies on.
//!
//! Keeps: finds any damaged byte (blocks by their sums, and every byte outside all blocks), any
//! entry out of order, any index entry that would lead a search astray, any key that its filter
//! denies, any count that differs from the properties, and, given what the manifest says of the
//! table, any entry outside the bounds, numbers or counts stated there. Goes on after damage.
//! Leaves to others: opening the table, comparing it with other tables.

use std::sync::Arc;

use lithify_base::key::unknown_kind;
use lithify_base::{Error, InternalKey, Kind, Result, Seq};
use lithify_format::block::{BlockIter, TRAILER_LEN};
use lithify_format::filter::key_hash;
use lithify_format::table::handle::BlockHandle;
use lithify_format::weight::{WEIGHT, content, weigh};
use lithify_lsm::FileMeta;

use super::filter::Scope;
use super::index::FullIndex;
use super::reader::TableReader;

mod layout;

/// Errors listed of one table; what is beyond is counted.
const LISTED_MAX: usize = 64;

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Data blocks that are good.
    pub blocks: u64,
    /// Point entries.
    pub entries: u64,
    /// Point deletions among them.
    pub deletes: u64,
    /// Merge operands among them.
    pub merges: u64,
    /// Sum of the lengths of internal keys.
    pub raw_key_bytes: u64,
    /// Sum of the lengths of values.
    pub raw_value_bytes: u64,
    /// Their content weight ([`lithify_format::weight`]), with the tags they are stored with.
    pub weight: u64,
    /// Smallest and largest sequence number, if there is an entry.
    pub seqs: Option<(Seq, Seq)>,
}

/// What the manifest says of a table.
pub struct Stated<'a> {
    /// Its description.
    pub meta: &'a FileMeta,
    /// Whether that has counts: foreign manifests have none.
    pub counted: bool,
}

/// Reads every data block of `table` from its file and checks it.
///
/// # Errors
/// The first of the errors that [`inspect`] finds.
pub fn verify(table: &Arc<TableReader>) -> Result<Checked> {
    let (checked, errors) = inspect(table, None, &mut |_| {});
    errors.into_iter().next().map_or(Ok(checked), Err)
}

/// Checks all of `table`, and that it is what `stated`, the manifest's description, says. `watch`
/// is told of the bytes of each block that was read. The errors name the table, most of them an
/// offset and the promise that is broken there.
pub fn inspect(
    table: &Arc<TableReader>,
    stated: Option<&Stated<'_>>,
    watch: &mut dyn FnMut(u64),
) -> (Checked, Vec<Error>) {
    let full = match FullIndex::of(table.clone()) {
        Ok(full) => full,
        Err(e) => return (Checked::default(), vec![e.in_file(table.name())]),
    };
    let mut walk = Walk {
        table,
        full: &full,
        stated: stated.map(|s| s.meta),
        counted: stated.is_some_and(|s| s.counted),
        seen: Checked::default(),
        last: Vec::new(),
        errors: Vec::new(),
        unlisted: 0,
    };
    for i in 0..full.fences().len() {
        let at = full.block(i);
        let handle = BlockHandle::new(at.offset, u64::from(at.size));
        if let Err(e) = walk.block(i, handle) {
            walk.note(table.blame(at, e));
        }
        watch(handle.size + TRAILER_LEN as u64);
    }
    if let Err(e) = layout::check(&full) {
        walk.note(e);
    }
    // Counts of a table with unreadable blocks say nothing new.
    if walk.errors.is_empty() {
        walk.counts();
        walk.tombstones();
    }
    let Walk { seen, mut errors, unlisted, .. } = walk;
    if unlisted > 0 {
        let what = format!("{unlisted} more faults are not listed");
        errors.push(Error::corruption(what).in_file(table.name()));
    }
    (seen, errors)
}

struct Walk<'a> {
    table: &'a TableReader,
    full: &'a FullIndex,
    stated: Option<&'a FileMeta>,
    counted: bool,
    seen: Checked,
    /// The internal key before; empty before the first.
    last: Vec<u8>,
    errors: Vec<Error>,
    /// Errors beyond those listed.
    unlisted: u64,
}

impl Walk<'_> {
    fn note(&mut self, e: Error) {
        match self.errors.len() < LISTED_MAX {
            true => self.errors.push(e.in_file(self.table.name())),
            false => self.unlisted += 1,
        }
    }

    fn block(&mut self, i: usize, handle: BlockHandle) -> Result<()> {
        let table = self.table;
        let before = (self.seen.entries, self.seen.raw_key_bytes);
        // Past the cache, and checked even where readers do not check.
        let stored = table.blocks.stored_len(handle)?;
        let bytes = table.blocks.source.read(handle.offset, stored)?;
        table.check().verify(&bytes, handle.offset)?;
        let mut entries = BlockIter::new(table.blocks.decode(bytes, 0, handle)?)?;
        let mut more = entries.seek_to_first()?;
        if !more {
            return Err(Error::corruption("data block without entries"));
        }
        while more {
            let stored = entries.internal_key();
            if table.global_seq.is_some() && stored.tag.seq() != 0 {
                let what = format!("entry {stored:?} has a number of its own in an external table");
                return Err(Error::corruption(what));
            }
            let key = InternalKey { tag: table.numbered(stored.tag), ..stored };
            self.entry(i, key, entries.value())?;
            let weight = weigh(content(key_hash(key.user), entries.value()), stored.tag);
            self.seen.weight = self.seen.weight.wrapping_add(weight);
            more = entries.next()?;
        }
        entries.check_restarts()?;
        self.seen.blocks += 1;
        let counted = (self.seen.entries - before.0, self.seen.raw_key_bytes - before.1);
        if let Some(counts) = self.full.counts().list.as_ref().map(|c| c[i])
            && counted != (counts.entries, counts.raw_key_bytes)
        {
            return Err(Error::corruption(format!(
                "block has {} entries of {} key bytes, lithify.blocks says {} of {}",
                counted.0, counted.1, counts.entries, counts.raw_key_bytes
            )));
        }
        Ok(())
    }

    fn entry(&mut self, i: usize, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let table = self.table;
        let order = &*table.order;
        let Some(kind) = key.tag.kind() else {
            return Err(unknown_kind(key.tag.kind_byte()));
        };
        if kind == Kind::RangeDelete {
            return Err(Error::corruption(format!("range deletion {key:?} among point entries")));
        }
        let last = InternalKey::decode(&self.last);
        if last.is_some_and(|last| last.cmp(key, order).is_ge()) {
            return Err(Error::corruption(format!("entry {key:?} is out of order")));
        }
        if last.is_none_or(|last| order.compare(last.user, key.user).is_ne()) {
            if !table.may_contain(key.user, key_hash(key.user))? {
                let what = format!("the filter denies the key of entry {key:?}");
                return Err(Error::corruption(what));
            }
            // For every key: those with one prefix may lie in several parts, each with a filter.
            if let Some(prefix) = table.prefixes.of(key.user) {
                let (start, by) = (prefix.into(), table.prefixes.clone());
                if !table.may_have(&Scope { start, by, exact: true })? {
                    let what = format!("the filter denies the prefix of entry {key:?}");
                    return Err(Error::corruption(what));
                }
            }
        }
        if self.full.fences().find(key.user, key.tag, order) != i {
            return Err(Error::corruption(format!("the index leads past the block of {key:?}")));
        }
        if self.stated.is_some_and(|m| !inside(m, key, order)) {
            let what = format!("entry {key:?} lies outside the bounds that the manifest gives");
            return Err(Error::corruption(what));
        }
        if self.stated.is_some_and(|m| !numbered(m, key.tag.seq())) {
            let what = format!("entry {key:?} has a number outside those the manifest gives");
            return Err(Error::corruption(what));
        }
        self.last.clear();
        key.encode_into(&mut self.last);
        self.seen.entries += 1;
        let seq = key.tag.seq();
        self.seen.seqs =
            self.seen.seqs.map_or(Some((seq, seq)), |(a, b)| Some((a.min(seq), b.max(seq))));
        self.seen.deletes += u64::from(kind.is_delete());
        self.seen.merges += u64::from(kind == Kind::Merge);
        self.seen.raw_key_bytes += key.user.len() as u64 + 8;
        self.seen.raw_value_bytes += value.len() as u64;
        Ok(())
    }

    /// Compares what was seen with what the properties and the manifest say.
    fn counts(&mut self) {
        if let Some(e) = &self.full.counts().fault {
            self.note(e.clone());
        }
        let p = self.table.properties();
        let seen = self.seen;
        if self.table.format_version() > 0 {
            // RocksDB does not count the blocks that it held back to train a dictionary; opening
            // found that it counts no more than there are.
            let blocks = match self.full.counts().list {
                Some(_) => p.num_data_blocks,
                None => seen.blocks,
            };
            if let Some(stated) = p.weight().filter(|&stated| stated != seen.weight) {
                let text = format!(
                    "the entries of the table weigh {:#x}, and its property {WEIGHT} says {stated:#x}",
                    seen.weight
                );
                self.note(Error::corruption(text));
            }
            let deletes = p.deleted_keys.saturating_sub(p.num_range_deletions);
            self.equal(
                "its properties say",
                &[
                    ("data blocks", seen.blocks, blocks),
                    ("entries", seen.entries, p.points()),
                    ("deletions", seen.deletes, deletes),
                    ("merge operands", seen.merges, p.merge_operands),
                ],
            );
        }
        if let Some(m) = self.stated.filter(|_| self.counted) {
            let user_key_bytes = seen.raw_key_bytes - 8 * seen.entries;
            let ranges = self.table.stored_tombstones().tombs();
            self.equal(
                "the manifest says",
                &[
                    ("entries", seen.entries, m.entries),
                    ("deletions", seen.deletes, m.deletes),
                    ("range deletions", ranges, m.range_deletes),
                ],
            );
            // The properties of foreign tables count the bytes of range deletions, too.
            if self.full.has_counts() {
                self.equal(
                    "the manifest says",
                    &[
                        ("bytes of keys", user_key_bytes, m.raw_key_bytes),
                        ("bytes of values", seen.raw_value_bytes, m.raw_value_bytes),
                    ],
                );
            }
        }
    }

    fn equal(&mut self, who: &str, counts: &[(&str, u64, u64)]) {
        for (what, counted, stated) in counts.iter().filter(|(_, a, b)| a != b) {
            let text = format!("the table has {counted} {what}, {who} {stated}");
            self.note(Error::corruption(text));
        }
    }

    /// Range deletions lie inside the bounds and numbers that the manifest gives.
    fn tombstones(&mut self) {
        // Foreign tables may hold more than their bounds show.
        let Some(m) = self.stated.filter(|_| self.full.has_counts()) else { return };
        let order = &*self.table.order;
        for f in self.table.stored_tombstones().iter() {
            let starts = order.compare(&m.range.lo, &f.lo.key).is_le();
            let ends = order.compare(&f.hi.key, &m.range.hi.key).is_le();
            if !starts || !ends {
                let (lo, hi) = (f.lo.key.escape_ascii(), f.hi.key.escape_ascii());
                self.note(Error::corruption(format!(
                    "the range deletion {lo}..{hi} leaves the bounds that the manifest gives"
                )));
            }
            for tomb in f.tombs.iter().filter(|t| !numbered(m, t.seq)) {
                let what = format!("a range deletion has number {}, outside those of", tomb.seq);
                self.note(Error::corruption(format!("{what} the manifest")));
            }
        }
    }
}

fn inside(m: &FileMeta, key: InternalKey<'_>, order: &dyn lithify_base::Comparator) -> bool {
    let (lo, hi) = (&m.range.lo, &m.range.hi.key);
    let smallest = InternalKey { user: lo, tag: m.lo_tag };
    let largest = InternalKey { user: hi, tag: m.hi_tag };
    smallest.cmp(key, order).is_le() && key.cmp(largest, order).is_le()
}

/// Whether a number is one of the file's.
fn numbered(m: &FileMeta, seq: Seq) -> bool {
    (m.seqs.0..=m.seqs.1).contains(&seq)
}

#[cfg(test)]
mod tests;
