//! Taking in a table from outside: a file of the directory that no edit names yet, checked from its
//! first byte to its last.
//!
//! ```text
//!   elsewhere/t.sst --link or copy--> 000012.dbtmp   synced, then checked    crash: a leftover, collected
//!   000012.dbtmp    --rename--> 000012.sst           directory synced        crash: an orphan, kept
//!   MANIFEST        +000012.sst under one number                             crash: it is there
//! ```
//!
//! An orphan of the second kind is kept because it names another maker; janitors delete only what
//! this database made. So the rename comes as late as it can.
//!
//! Keeps: what was checked is what is taken in, since the checks read the file in the directory. A
//! table that was not taken in goes with its [`StagedTable`].
//! Leaves to others: its place in the tree, its sequence number, the original.

use std::path::Path;

use lithify_base::{
    Comparator, ComparatorRef, Error, FileId, InternalKey, KeyRange, Kind, Pos, Result, Seq, Tag,
};
use lithify_env::OpenOpts;
use lithify_files::dir::{Dir, FileName, OrTyped, denied_by, typed};
use lithify_lsm::FileMeta;
use lithify_tables::sst::{OpenTable, TableIter, TableReader, verify};

use crate::copy::{cannot_link, copy_bytes};

/// How a file comes into the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    /// Its bytes are copied.
    Copy,
    /// It gets a second name, or is copied where that is not possible.
    Link,
}

/// A checked table of the directory that nothing names yet.
pub struct StagedTable {
    dir: Dir,
    meta: FileMeta,
    operands_for: Option<String>,
    /// What it is called now.
    name: FileName,
    /// It is on its way into the manifest: only the next open may say that it is not wanted.
    keep: bool,
}

impl StagedTable {
    /// Brings the table `path` into `dir` under `number` and checks every byte of it.
    ///
    /// # Errors
    /// Io if it can't be read, NoSpace; Unsupported if it is not in the external form, or its keys
    /// are in another order; Corruption where it is damaged.
    pub fn bring(
        dir: &Dir,
        path: &Path,
        number: FileId,
        how: Bring,
        order: &ComparatorRef,
    ) -> Result<StagedTable> {
        let range = KeyRange::incl(&b""[..], &b""[..]);
        let temp = FileName::Temp(number.0);
        let mut new = StagedTable {
            dir: dir.clone(),
            meta: FileMeta::new(number, Pos::new(0, 0), range),
            operands_for: None,
            name: temp,
            keep: false,
        };
        let opened = dir.fs().open(path, OpenOpts::read()).or_typed()?;
        let linked = match how {
            Bring::Copy => false,
            // A link's second name would be one more link.
            Bring::Link => match dir.fs().link(&dir.fs().resolve(path), &dir.path_of(temp)) {
                Ok(()) => true,
                Err(e) if cannot_link(e.kind()) => false,
                Err(e) => return Err(typed(e)),
            },
        };
        match linked {
            // Its writer need not have synced it.
            true => opened.sync_all().or_typed()?,
            false => {
                // No more readable than the original.
                let dir = dir.hold(denied_by(0o777, dir.fs().permissions(path).or_typed()?))?;
                copy_bytes(&opened, &*dir.create_file(temp, OpenOpts::write())?, None)?;
            }
        }
        drop(opened);
        let file = dir.open_file(temp, OpenOpts::read())?;
        let name = path.display().to_string();
        let table = TableReader::open(OpenTable::new(file, name.clone(), order.clone()))?;
        let properties = table.properties();
        new.operands_for =
            (properties.merge_operands > 0).then(|| properties.merge_operator.clone());
        new.meta = examine(&table, number, &**order).map_err(|e| e.in_file(name))?;
        Ok(new)
    }

    /// The name of the merge operator for its operands, if it has any.
    pub fn operands_for(&self) -> Option<&str> {
        self.operands_for.as_deref()
    }

    /// The keys it is about, range deletions included.
    pub fn range(&self) -> &KeyRange {
        &self.meta.range
    }

    /// Gives it the name of a table. The directory must be synced before anything refers to it.
    ///
    /// # Errors
    /// Io.
    pub fn settle(&mut self) -> Result<()> {
        let to = FileName::Table(self.meta.id.0);
        self.dir.fs().rename(&self.dir.path_of(self.name), &self.dir.path_of(to)).or_typed()?;
        self.name = to;
        Ok(())
    }

    /// Its description under `seq`, for an edit. From now on nothing but an edit decides whether it
    /// is wanted.
    pub fn numbered(mut self, seq: Seq) -> FileMeta {
        self.keep = true;
        let mut meta = self.meta.clone();
        meta.lo_tag = meta.lo_tag.with_seq(seq);
        if meta.hi_tag != FileMeta::EXCLUSIVE_END {
            meta.hi_tag = meta.hi_tag.with_seq(seq);
        }
        meta.seqs = (seq, seq);
        meta
    }
}

impl Drop for StagedTable {
    fn drop(&mut self) {
        if !self.keep {
            // What stays is collected by the next open, unless it has the name of a table already.
            let _ = self.dir.remove(self.name);
        }
    }
}

/// Checks `table` and describes it, with the number 0 for every entry.
fn examine(
    table: &std::sync::Arc<TableReader>,
    number: FileId,
    order: &dyn Comparator,
) -> Result<FileMeta> {
    let props = table.properties();
    if !props.is_external() {
        return Err(Error::unsupported(
            "the table was not made to be taken in by a database: its entries have numbers of their \
             own; write one with `TableBuilder` or RocksDB's `SstFileWriter`",
        ));
    }
    if table.global_seq() != Some(0) {
        return Err(Error::unsupported(
            "another database has written its number into the table; write the table anew",
        ));
    }
    let seen = verify::verify(table)?;
    let bounds = bounds(table, order)?;
    let (range, lo_tag, hi_tag) =
        bounds.ok_or_else(|| Error::corruption("a table without entries"))?;
    let mut meta = FileMeta::new(number, Pos::new(0, 0), range);
    meta.lo_tag = lo_tag;
    meta.hi_tag = hi_tag;
    meta.bytes = table.file_bytes();
    meta.entries = seen.entries;
    meta.deletes = seen.deletes;
    meta.range_deletes = table.stored_tombstones().tombs();
    meta.raw_key_bytes = seen.raw_key_bytes - 8 * seen.entries;
    meta.raw_value_bytes = seen.raw_value_bytes;
    meta.base_context = table.check().base;
    meta.tail_bytes = table.file_bytes() - table.data_bytes();
    meta.created = props.file_creation_time;
    meta.oldest_ancestor = props.creation_time;
    Ok(meta)
}

/// Bounds of points and range deletions together, with the tags of the outermost internal keys.
fn bounds(
    table: &std::sync::Arc<TableReader>,
    order: &dyn Comparator,
) -> Result<Option<(KeyRange, Tag, Tag)>> {
    let mut ends = Vec::new();
    let mut iter = TableIter::new(table.clone());
    iter.set_fill_cache(false);
    if iter.seek_to_first() {
        ends.push((KeyRange::incl(iter.user_key(), iter.user_key()), iter.tag(), iter.tag()));
        iter.seek_to_last();
        iter.status()?;
        ends.push((KeyRange::incl(iter.user_key(), iter.user_key()), iter.tag(), iter.tag()));
    }
    iter.status()?;
    let ranges = table.stored_tombstones().as_slice();
    if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
        let range = KeyRange { lo: first.lo.key.clone(), hi: last.hi.clone() };
        ends.push((range, Tag::new(0, Kind::RangeDelete), FileMeta::EXCLUSIVE_END));
    }
    Ok(ends.into_iter().reduce(|a, b| {
        let low = |e: &(KeyRange, Tag, Tag)| (e.0.lo.clone(), e.1);
        let ((a_lo, a_tag), (b_lo, b_tag)) = (low(&a), low(&b));
        let a_key = InternalKey { user: &a_lo, tag: a_tag };
        let b_key = InternalKey { user: &b_lo, tag: b_tag };
        let (lo, lo_tag) =
            if a_key.cmp(b_key, order).is_le() { (a_lo, a_tag) } else { (b_lo, b_tag) };
        let (hi, hi_tag) =
            if a.0.hi.cmp(&b.0.hi, order).is_ge() { (a.0.hi, a.2) } else { (b.0.hi, b.2) };
        (KeyRange { lo, hi }, lo_tag, hi_tag)
    }))
}
