//! Bounds of foreign files at which a range deletion can be cut, in orders of keys other than byte
//! order.
//!
//! RocksDB may cut the versions of one key over two tables, and stores a range deletion over both in
//! each of them. So the first one includes its last key, and its deletion counts up to just after that
//! key and no further. In byte order the next key has a name, and a compaction writes it as the end of the
//! deletion. In other orders it has none; so the end of the file moves to the next key that there is in
//! any table. No key lies between the two places, so every read finds the same.
//!
//! ```text
//!   reverse order   000007  z-------k]   deletion [z, b)   counts up to k
//!                   000008        k------c
//!                   000009     x----------h------a         the next key after k is h
//!                   000007  z-------k--h)                  deletion [z, h)
//! ```
//!
//! Keeps: no user key that any table holds enters or leaves a file's bounds.
//! Leaves to others: byte order, where `Fragments::clamp` names the end itself.

use lithify_base::{Comparator, ComparatorRef, InternalKey, Key, Result, Tag};
use lithify_files::dir::Dir;
use lithify_journal::manifest::{FamilyState, WireFile};
use lithify_lsm::FileMeta;
use lithify_tables::sst::TableIter;

use super::count;
use super::translate;

/// Moves the end of each file whose range deletions it cuts just after a key, as above.
///
/// # Errors
/// What opening or reading a table gives.
pub(crate) fn name_ends(dir: &Dir, family: &mut FamilyState, order: &ComparatorRef) -> Result<()> {
    if order.is_bytewise() {
        return Ok(());
    }
    let mut moved = Vec::new();
    for file in family.files.values() {
        if let Some(reach) = cut_after(dir, file, order)? {
            let next = next_key(dir, family, &reach.last, order)?;
            let end = next.into_iter().chain([reach.end]).min_by(|a, b| order.compare(a, b));
            moved.extend(end.map(|end| (file.number, end)));
        }
    }
    for (number, end) in moved {
        if let Some(file) = family.files.get_mut(&number) {
            file.largest = InternalKey { user: &end, tag: FileMeta::EXCLUSIVE_END }.to_vec();
        }
    }
    Ok(())
}

/// Range deletions that go on behind the last key of their file.
struct Reach {
    /// The last key.
    last: Key,
    /// Where the first of them ends.
    end: Key,
}

/// The range deletions of `file` that its inclusive end cuts, if there are any.
fn cut_after(dir: &Dir, file: &WireFile, order: &ComparatorRef) -> Result<Option<Reach>> {
    let may = file.counts.is_some_and(|c| c.range_deletes > 0);
    let meta = translate::file_meta(file, &**order)?;
    if !may || !meta.range.hi.inclusive {
        return Ok(None);
    }
    let table = count::open(dir, file, order)?;
    let last = &meta.range.hi.key;
    // Where those that count end, if not before the last key.
    let over = table.stored_tombstones().find(last, &**order);
    let over = over.filter(|f| f.tombs.iter().any(|t| t.seq > meta.hi_tag.seq()));
    Ok(over.map(|f| Reach { last: last.clone(), end: f.hi.key.clone() }))
}

/// The smallest key above `last` in any table of the family.
fn next_key(
    dir: &Dir,
    family: &FamilyState,
    last: &Key,
    order: &ComparatorRef,
) -> Result<Option<Key>> {
    let mut least: Option<Key> = None;
    let mut offer = |key: &[u8], order: &dyn Comparator| {
        if least.as_ref().is_none_or(|l| order.compare(key, l).is_lt()) {
            least = Some(key.into());
        }
    };
    for file in family.files.values() {
        let range = translate::file_meta(file, &**order)?.range;
        if order.compare(&range.lo, last).is_gt() {
            offer(&range.lo, &**order);
            continue;
        }
        if range.hi.is_before(last, &**order) {
            continue;
        }
        let mut iter = TableIter::new(count::open(dir, file, order)?);
        iter.set_fill_cache(false);
        let mut more = iter.seek(last, Tag::new(0, lithify_base::Kind::Value));
        while more && order.compare(iter.user_key(), last).is_le() {
            more = iter.next();
        }
        iter.status()?;
        if more {
            offer(iter.user_key(), &**order);
        }
    }
    Ok(least)
}
