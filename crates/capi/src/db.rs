//! Databases and their families: open, close, list, destroy, and what is about all of a database.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify::{ColumnFamily, ColumnFamilyOptions, Db, Error, ErrorKind, SizeOptions, Snapshot};

use crate::options::Options;
use crate::raw::{Many, Outs, Res, SnapshotHandle, c_bytes, c_text, c_texts, export, give};
use crate::small::{Compacts, Flushes, Waits};

/// `rocksdb_t`.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) db: Db,
    /// Set by the close, for what is still about then.
    pub(crate) closed: Arc<AtomicBool>,
    reads_only: bool,
    /// The default family has a compaction filter.
    has_filter: bool,
}

/// `rocksdb_column_family_handle_t`.
pub(crate) struct Family {
    pub(crate) inner: ColumnFamily,
    has_filter: bool,
}

/// Whether families that are not named may stay closed, as in a handle that only reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opens {
    ToWrite,
    ToRead,
}

/// A database and the handles of the families that were named.
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) families: Vec<ColumnFamily>,
}

impl Database {
    /// Opens the families `named` of the database in `path`, `default` among them.
    ///
    /// # Errors
    /// As `lithify::Builder::open`; `InvalidArgument` if there is no database and none may be made, or the
    /// names are not those of the families; `Unsupported` naming an option that is refused.
    pub(crate) fn open(
        options: &Options,
        path: &Path,
        named: &[(&str, &Options)],
        opens: Opens,
    ) -> Res<Opened> {
        let mut budget = 0;
        for (_, options) in named {
            budget = budget.max(options.resolved()?.0.memory_budget);
        }
        let (mut builder, mut notes) = options.builder_for(budget)?;
        let there = match builder.list_column_families(path) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        check_names(options, path, &there, named, opens)?;
        let mut made: Vec<(&str, ColumnFamilyOptions)> = Vec::new();
        for (name, options) in named.iter().filter(|(name, _)| *name != DEFAULT) {
            let (family, more) = options.family()?;
            notes = format!("{notes} {more}").trim().to_owned();
            match there.iter().any(|there| there == name) {
                true => builder = builder.column_family(name, family),
                false => made.push((name, family)),
            }
        }
        let db = match opens {
            Opens::ToWrite => builder.open(path)?,
            Opens::ToRead => builder.open_read_only(path)?,
        };
        let database = Database {
            db,
            closed: Arc::new(AtomicBool::new(false)),
            reads_only: opens == Opens::ToRead,
            has_filter: options.parts.filter.is_some(),
        };
        for (_, options) in named.iter().chain([&(DEFAULT, options)]) {
            for users in [&options.users.cache, &options.users.buffers].into_iter().flatten() {
                users.join(&database);
            }
        }
        if let Some(logger) = &options.logger {
            logger.say(&format!("opened {path:?}"));
        }
        if !notes.is_empty() {
            database.db.note("options_noted", &notes);
            if let Some(logger) = &options.logger {
                logger.say(&format!("options noted: {notes}"));
            }
        }
        for (name, family) in made {
            database.db.create_column_family(name, family)?;
        }
        let families = named.iter().map(|(name, _)| database.db.column_family(name));
        let families = families.collect::<Res<_>>()?;
        Ok(Opened { database, families })
    }

    /// True for handles of one open database.
    pub(crate) fn is_same(&self, other: &Database) -> bool {
        Arc::ptr_eq(&self.closed, &other.closed)
    }
    /// True until the close.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    /// Ends it for all handles. There is no place for an error, so the event log has it.
    pub(crate) fn close(self) {
        self.closed.store(true, Ordering::SeqCst);
        let kept = self.db.clone();
        if let Err(error) = self.db.close() {
            kept.note("close_failed", &error.to_string());
        }
    }

    /// A write's error as RocksDB tells it of a handle that only reads.
    pub(crate) fn told<T>(&self, written: Res<T>) -> Res<T> {
        written.map_err(|error| match self.reads_only && error.kind() == ErrorKind::ReadOnly {
            true => Error::unsupported("the database was opened for reading only").caused_by(error),
            false => error,
        })
    }
}

/// A handle of a family.
pub(crate) fn family_handle(inner: ColumnFamily, options: Option<&Options>) -> *mut Family {
    let has_filter = options.is_some_and(|options| options.parts.filter.is_some());
    give(Family { inner, has_filter })
}

/// The family that every database has.
pub(crate) const DEFAULT: &str = "default";

/// RocksDB's rules for the families that an open names.
fn check_names(
    options: &Options,
    path: &Path,
    there: &[String],
    named: &[(&str, &Options)],
    opens: Opens,
) -> Res<()> {
    let is_new = there.is_empty();
    if is_new && (opens == Opens::ToRead || !options.settings.create_if_missing) {
        let what = format!("{path:?}: does not exist (create_if_missing is false)");
        return Err(Error::invalid(what));
    }
    if !is_new && opens == Opens::ToWrite && options.settings.error_if_exists {
        return Err(Error::invalid(format!("{path:?}: exists (error_if_exists is true)")));
    }
    if !named.iter().any(|(name, _)| *name == DEFAULT) {
        return Err(Error::invalid("Default column family not specified"));
    }
    let known = |name: &str| name == DEFAULT || there.iter().any(|there| there == name);
    if let Some((name, _)) = named.iter().find(|(name, _)| !known(name))
        && !(options.create_families && opens == Opens::ToWrite)
    {
        return Err(Error::invalid(format!("Column family not found: {name}")));
    }
    let left: Vec<&str> = there.iter().map(String::as_str).collect();
    let left: Vec<&str> =
        left.into_iter().filter(|n| !named.iter().any(|(name, _)| name == n)).collect();
    match left.is_empty() || opens == Opens::ToRead {
        true => Ok(()),
        false => Err(Error::invalid(format!("Column families not opened: {}", left.join(", ")))),
    }
}

/// Opens several families, and puts their handles out.
pub(crate) fn open_families(
    options: &Options,
    path: &Path,
    names: &[&str],
    of: &[&Options],
    handles: &Outs<*mut Family>,
    opens: Opens,
) -> Res<Database> {
    if handles.is_null() {
        return Err(Error::invalid("the argument `column_family_handles` is NULL"));
    }
    let named: Vec<(&str, &Options)> = names.iter().copied().zip(of.iter().copied()).collect();
    let Opened { database, families } = Database::open(options, path, &named, opens)?;
    for (i, (family, options)) in families.into_iter().zip(of).enumerate() {
        handles.set_at(i, family_handle(family, Some(options)));
    }
    Ok(database)
}

pub(crate) fn count(n: i32, what: &str) -> Res<usize> {
    usize::try_from(n).map_err(|_| Error::invalid(format!("`{what}` is {n}")))
}

/// Flushes families one after the other.
fn flush_all(families: &[&Family]) -> Res<()> {
    families.iter().try_for_each(|family| family.inner.flush())
}

/// Compacts, and notes what there is no place to tell. As in RocksDB, a family with a filter has its last
/// level rewritten, too, unless the options say otherwise.
fn compact(
    db: &Db,
    has_filter: bool,
    from: Option<&[u8]>,
    to: Option<&[u8]>,
    options: Option<&Compacts>,
) -> Res<()> {
    let options = options.unwrap_or(&Compacts::default()).checked(has_filter);
    let compacted = options.and_then(|options| db.compact_range_opt(from, to, &options));
    compacted.inspect_err(|error| db.note("compact_range_failed", &error.to_string()))
}

/// The text of a property, with RocksDB's headline where programs look for it; NULL if there is no such thing.
pub(crate) fn property(db: &Db, name: &str) -> *mut c_char {
    let head = if name == "rocksdb.stats" { "** DB Stats **\n" } else { "" };
    db.property(name).map_or(std::ptr::null_mut(), |text| c_text(&format!("{head}{text}")))
}

fn sizes(
    db: &Db,
    n: i32,
    starts: (Many<*const c_char>, Many<usize>),
    limits: (Many<*const c_char>, Many<usize>),
    sizes: &Outs<u64>,
) -> Res<()> {
    let n = count(n, "num_ranges")?;
    let starts = starts.0.bytes(starts.1, n, "range_start_key")?;
    let limits = limits.0.bytes(limits.1, n, "range_limit_key")?;
    let ranges: Vec<_> = starts.into_iter().zip(limits).collect();
    for (i, size) in db.approximate_sizes(&ranges, &SizeOptions::default())?.into_iter().enumerate()
    {
        sizes.set_at(i, size);
    }
    Ok(())
}

export! {
    fn rocksdb_open(options: &Options, name: path, errptr) -> *mut Database {
        let opened = Database::open(options, name, &[(DEFAULT, options)], Opens::ToWrite)?;
        Ok(give(opened.database))
    }
    fn rocksdb_open_for_read_only(
        options: &Options, name: path, error_if_wal_file_exists: u8, errptr
    ) -> *mut Database {
        no_wal_check(error_if_wal_file_exists)?;
        let opened = Database::open(options, name, &[(DEFAULT, options)], Opens::ToRead)?;
        Ok(give(opened.database))
    }
    fn rocksdb_open_column_families(
        options: &Options, name: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, errptr
    ) -> *mut Database {
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        open_families(options, name, &names, &of, &handles, Opens::ToWrite).map(give)
    }
    fn rocksdb_open_for_read_only_column_families(
        options: &Options, name: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, error_if_wal_file_exists: u8, errptr
    ) -> *mut Database {
        no_wal_check(error_if_wal_file_exists)?;
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        open_families(options, name, &names, &of, &handles, Opens::ToRead).map(give)
    }
    fn rocksdb_close(db: own Database) {
        if let Some(db) = db {
            db.close();
        }
        Ok(())
    }
    fn rocksdb_destroy_db(options: &Options, name: path, errptr) {
        options.builder()?.0.destroy(name)
    }
    fn rocksdb_repair_db(options: &Options, name: path, errptr) {
        let report = options.builder()?.0.verify(name, &mut |_| {})?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "{name:?}: damaged, and not repaired in place; take out what is readable with `lithify salvage`"
            ))),
        }
    }
    fn rocksdb_list_column_families(
        options: &Options, name: path, n: out usize, errptr
    ) -> *mut *mut c_char {
        n.set(0);
        let names = options.builder()?.0.list_column_families(name).map_err(|error| {
            match error.kind() {
                ErrorKind::NotFound => Error::new(ErrorKind::Io, "there is no database").in_file(format!("{name:?}")),
                _ => error,
            }
        })?;
        n.set(names.len());
        Ok(c_texts(&names))
    }
    fn rocksdb_create_column_family(
        db: &Database, options: &Options, name: text, errptr
    ) -> *mut Family {
        let (family, notes) = options.family()?;
        let inner = db.told(db.db.create_column_family(name, family))?;
        if !notes.is_empty() {
            db.db.note("options_noted", &notes);
        }
        Ok(family_handle(inner, Some(options)))
    }
    fn rocksdb_drop_column_family(db: &Database, family: &Family, errptr) {
        db.told(db.db.drop_column_family(family.inner.name()))
    }
    fn rocksdb_column_family_handle_destroy(family: own Family) {
        drop(family);
        Ok(())
    }
    fn rocksdb_column_family_handle_get_id(family: &Family) -> u32 {
        Ok(family.inner.id())
    }
    fn rocksdb_column_family_handle_get_name(family: &Family, len: out usize) -> *mut c_char {
        let name = family.inner.name();
        len.set(name.len());
        Ok(c_bytes(name.as_bytes()))
    }
    fn rocksdb_get_default_column_family_handle(db: &Database) -> *mut Family {
        let inner = db.db.column_family(DEFAULT)?;
        Ok(give(Family { inner, has_filter: db.has_filter }))
    }
    fn rocksdb_create_snapshot(db: &Database) -> *mut SnapshotHandle {
        Ok(SnapshotHandle::owned(db.db.snapshot()))
    }
    fn rocksdb_release_snapshot(db: maybe Database, snapshot: own SnapshotHandle) {
        let _ = db;
        if let Some(snapshot) = snapshot {
            snapshot.release();
        }
        Ok(())
    }
    fn rocksdb_snapshot_get_sequence_number(snapshot: &SnapshotHandle) -> u64 {
        Ok(snapshot.get().map_or(0, Snapshot::sequence))
    }
    fn rocksdb_get_latest_sequence_number(db: &Database) -> u64 {
        Ok(db.db.snapshot().sequence())
    }
    fn rocksdb_property_value(db: &Database, name: text) -> *mut c_char {
        Ok(property(&db.db, name))
    }
    fn rocksdb_property_value_cf(db: &Database, family: &Family, name: text) -> *mut c_char {
        let _ = db;
        Ok(property(&family.inner, name))
    }
    fn rocksdb_property_int(db: &Database, name: text, value: out u64) -> i32 {
        Ok(db.db.int_property(name).map_or(-1, |n| { value.set(n); 0 }))
    }
    fn rocksdb_property_int_cf(db: &Database, family: &Family, name: text, value: out u64) -> i32 {
        let _ = db;
        Ok(family.inner.int_property(name).map_or(-1, |n| { value.set(n); 0 }))
    }
    fn rocksdb_flush(db: &Database, options: maybe Flushes, errptr) {
        let _ = options;
        db.told(db.db.flush())
    }
    fn rocksdb_flush_cf(db: &Database, options: maybe Flushes, family: &Family, errptr) {
        let _ = options;
        db.told(family.inner.flush())
    }
    fn rocksdb_flush_cfs(
        db: &Database, options: maybe Flushes, families: many *const Family, n: i32, errptr
    ) {
        let _ = options;
        let families = families.handles(count(n, "num_column_families")?, "column_family")?;
        db.told(flush_all(&families))
    }
    fn rocksdb_flush_wal(db: &Database, sync: u8, errptr) {
        let _ = sync;
        db.told(db.db.sync())
    }
    fn rocksdb_compact_range(db: &Database, (from, flen): bound, (to, tlen): bound) {
        compact(&db.db, db.has_filter, from, to, None)
    }
    fn rocksdb_compact_range_cf(db: &Database, family: &Family, (from, flen): bound, (to, tlen): bound) {
        let _ = db;
        compact(&family.inner, family.has_filter, from, to, None)
    }
    fn rocksdb_compact_range_opt(
        db: &Database, options: maybe Compacts, (from, flen): bound, (to, tlen): bound
    ) {
        compact(&db.db, db.has_filter, from, to, options)
    }
    fn rocksdb_compact_range_cf_opt(
        db: &Database, family: &Family, options: maybe Compacts, (from, flen): bound, (to, tlen): bound
    ) {
        let _ = db;
        compact(&family.inner, family.has_filter, from, to, options)
    }
    fn rocksdb_delete_file_in_range(db: &Database, (from, flen): bound, (to, tlen): bound, errptr) {
        db.told(db.db.delete_files_in_range(from, to))
    }
    fn rocksdb_delete_file_in_range_cf(
        db: &Database, family: &Family, (from, flen): bound, (to, tlen): bound, errptr
    ) {
        db.told(family.inner.delete_files_in_range(from, to))
    }
    fn rocksdb_approximate_sizes(
        db: &Database, n: i32, starts: many *const c_char, start_lens: many usize,
        limits: many *const c_char, limit_lens: many usize, out: outs u64, errptr
    ) {
        sizes(&db.db, n, (starts, start_lens), (limits, limit_lens), &out)
    }
    fn rocksdb_approximate_sizes_cf(
        db: &Database, family: &Family, n: i32, starts: many *const c_char, start_lens: many usize,
        limits: many *const c_char, limit_lens: many usize, out: outs u64, errptr
    ) {
        let _ = db;
        sizes(&family.inner, n, (starts, start_lens), (limits, limit_lens), &out)
    }
    fn rocksdb_wait_for_compact(db: &Database, options: &Waits, errptr) {
        if options.flush {
            db.db.flush()?;
        }
        let limit = (options.micros > 0).then(|| Duration::from_micros(options.micros));
        match db.db.wait_idle(limit)? {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::TimedOut, "compactions are still at work; wait longer")),
        }
    }
    fn rocksdb_cancel_all_background_work(db: &Database, wait: u8) {
        db.db.set_auto_compaction(false);
        if wait != 0 {
            db.db.wait_idle(None)?;
        }
        Ok(())
    }
}

/// A handle that reads shows what is in the logs, so there is nothing to be warned of.
fn no_wal_check(asked: u8) -> Res<()> {
    match asked {
        0 => Ok(()),
        _ => Err(Error::unsupported(
            "error_if_wal_file_exists=1: what the logs hold is read; pass 0",
        )),
    }
}

/// Changes settings of an open database by RocksDB's names of them.
fn set_options(
    db: &Db,
    n: i32,
    names: Many<*const c_char>,
    values: Many<*const c_char>,
) -> Res<()> {
    let n = count(n, "count")?;
    if n == 0 {
        return Err(Error::invalid("no option is named"));
    }
    let known = db.settings().explain();
    let mut changes = Vec::new();
    for (name, value) in names.texts(n, "keys")?.into_iter().zip(values.texts(n, "values")?) {
        let found = known.iter().find(|setting| setting.rocksdb == Some(name));
        let setting =
            found.ok_or_else(|| Error::invalid(format!("Unrecognized option: {name}")))?;
        let is_off = name == "disable_auto_compactions";
        let value = match (is_off, value) {
            (true, "true") => "false",
            (true, "false") => "true",
            (_, value) => value,
        };
        changes.push((setting.name, value));
    }
    db.set_settings(&changes)
}

export! {
    fn rocksdb_set_options(
        db: &Database, n: i32, names: many *const c_char, values: many *const c_char, errptr
    ) {
        db.told(set_options(&db.db, n, names, values))
    }
    fn rocksdb_set_options_cf(
        db: &Database, family: &Family, n: i32, names: many *const c_char, values: many *const c_char, errptr
    ) {
        db.told(set_options(&family.inner, n, names, values))
    }
}
