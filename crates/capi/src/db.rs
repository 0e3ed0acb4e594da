//! Databases and their families: open, close, list, destroy, and what is about all of a database.

use std::borrow::Cow;
use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Db, Durability, Error, ErrorKind, Follower,
    KeptReads, ReadOptions, Settings, SizeOptions, Snapshot, WriteOptions,
};

use crate::face::{DEFAULT, Face, Seen};
use crate::options::{Caching, Options};
use crate::places::TableDirs;
use crate::raw::{Many, Outs, Res, SnapshotHandle, c_bytes, c_text, c_texts, export, give};
use crate::small::{Compacts, Flushes, Waits, WriteOpts};
use crate::users::{Keeping, Telling, Turn};

/// `rocksdb_t`.
#[derive(Clone)]
pub(crate) struct Database {
    /// What it is read and written through.
    pub(crate) face: Face,
    /// Says to the program's logger what happens.
    telling: Option<Arc<Telling>>,
    /// Files that the program asked to keep.
    pub(crate) keeping: Keeping,
    /// Set by the close, for what is still about then.
    pub(crate) closed: Arc<AtomicBool>,
    reads_only: bool,
    pub(crate) path: Arc<Path>,
    /// Where its families have their tables.
    table_dirs: TableDirs,
    /// The default family has a compaction filter.
    has_filter: bool,
    /// All families end at one moment after a crash.
    is_atomic: bool,
    /// What writes wait for locks, where transactions take them.
    pub(crate) locks: Option<LockWaits>,
    /// Families are dropped one after the other.
    drops: Arc<Turn>,
}

/// How long transactions and single writes wait for a lock, milliseconds; below 0 as long as it takes.
#[derive(Clone, Copy)]
pub(crate) struct LockWaits {
    pub(crate) transactions: i64,
    pub(crate) writes: i64,
    /// Most keys of a transaction; 0 and below for as many as the store takes.
    pub(crate) max_keys: i64,
}

/// `rocksdb_column_family_handle_t`.
pub(crate) struct Family {
    of: Of,
    pub(crate) face: Face,
    has_filter: bool,
    /// That of its database.
    closed: Arc<AtomicBool>,
}

/// What a handle of a family holds.
enum Of {
    Own {
        family: ColumnFamily,
        /// The handle reads on after a drop of the family. None of one that was gone before.
        reads: Option<KeptReads>,
        /// Of the default family, which is always there.
        db: Db,
    },
    /// Nothing of a database that follows: what it saw when the handle was made would stay open with it.
    Seen { follower: Arc<Follower>, name: Arc<str>, id: u32 },
}

impl Family {
    fn new(database: &Database, family: ColumnFamily, face: Face, has_filter: bool) -> Family {
        let closed = database.closed.clone();
        let of = match &face {
            Face::Follows(follower, name) => {
                Of::Seen { follower: follower.clone(), name: name.clone(), id: family.id() }
            }
            Face::Plain(_) | Face::Timed(_) => {
                Of::Own { reads: family.keep_reads().ok(), family, db: database.db().clone() }
            }
        };
        Family { of, face, has_filter, closed }
    }
    pub(crate) fn name(&self) -> &str {
        match &self.of {
            Of::Own { family, .. } => family.name(),
            Of::Seen { name, .. } => name,
        }
    }
    pub(crate) fn id(&self) -> u32 {
        match &self.of {
            Of::Own { family, .. } => family.id(),
            Of::Seen { id, .. } => *id,
        }
    }
    /// The family as it is seen now.
    ///
    /// # Errors
    /// `NotFound` if it is gone from a database that is followed.
    #[inline]
    pub(crate) fn inner(&self) -> Res<Cow<'_, ColumnFamily>> {
        match &self.of {
            Of::Own { family, .. } => Ok(Cow::Borrowed(family)),
            Of::Seen { follower, name, .. } => follower.view().column_family(name).map(Cow::Owned),
        }
    }
    /// Ends it. Of a family that was dropped this is where its files go.
    fn end(self) -> Res<()> {
        let Of::Own { reads, db, .. } = self.of else { return Ok(()) };
        let was_dropped = reads.as_ref().is_some_and(KeptReads::is_dropped);
        drop(reads);
        // Once the database is closed, the next open deletes them.
        if was_dropped { db.delete_obsolete_files() } else { Ok(()) }
    }
}

/// What a database is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opens<'a> {
    ToWrite,
    ToRead,
    /// To read, and to catch up with the one that writes.
    ToFollow,
    /// To write, with times to live of the families that are named.
    ForATime(&'a [Duration]),
}

impl Opens<'_> {
    /// Families that are not named may stay closed where nothing is written.
    fn writes(self) -> bool {
        matches!(self, Opens::ToWrite | Opens::ForATime(_))
    }
    /// The time to live of family `i` of those that are named.
    fn time(self, i: usize) -> Option<Duration> {
        match self {
            Opens::ForATime(times) => times.get(i).copied(),
            _ => None,
        }
    }
    fn open(self, builder: Builder, path: &Path, ttl: Duration) -> Res<Face> {
        Ok(match self {
            Opens::ToWrite => Face::Plain(builder.open(path)?),
            Opens::ToRead => Face::Plain(builder.open_read_only(path)?),
            Opens::ToFollow => {
                Face::Follows(Arc::new(builder.open_follower(path)?), DEFAULT.into())
            }
            Opens::ForATime(_) => Face::Timed(builder.open_ttl(path, ttl)?),
        })
    }
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
        opens: Opens<'_>,
    ) -> Res<Opened> {
        named.iter().try_for_each(|(_, options)| options.places.check(path))?;
        let there = match options.builder_at(path)?.list_column_families(path) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        check_names(options, path, &there, named, opens)?;
        let table_dirs = table_dirs_of(options, path, named);
        let (mut builder, mut notes) = builder_of(options, named, (&there, &table_dirs))?;
        let mut made: Vec<(&str, ColumnFamilyOptions)> = Vec::new();
        let mut ttl = Duration::ZERO;
        for (i, (name, options)) in named.iter().enumerate() {
            let time = opens.time(i);
            if *name == DEFAULT {
                ttl = time.unwrap_or(ttl);
                continue;
            }
            let (family, more) = options.family(&table_dirs)?;
            let family = time.into_iter().fold(family, ColumnFamilyOptions::ttl);
            notes = format!("{notes} {more}").trim().to_owned();
            match there.iter().any(|there| there == name) {
                true => builder = builder.column_family(name, family),
                false => made.push((name, family)),
            }
        }
        let telling = options.logger.clone().map(|logger| Arc::new(Telling::new(logger)));
        if let Some(telling) = &telling {
            builder = builder.listener(telling.clone());
        }
        let face = opens.open(builder, path, ttl)?;
        let database = Database {
            face,
            telling: telling.clone(),
            keeping: Keeping::default(),
            closed: Arc::new(AtomicBool::new(false)),
            reads_only: !opens.writes(),
            path: path.into(),
            table_dirs,
            has_filter: options.parts.filters(),
            is_atomic: options.atomic_flush,
            locks: None,
            drops: Arc::default(),
        };
        database.tell_opened(path, &notes);
        let families = database.named(named, made)?;
        if opens.writes() {
            database.write_info_log(&options.log_text(named, &notes));
        }
        // Last, since what joined is held: an open that fails leaves nothing open.
        for (_, options) in named.iter().chain([&(DEFAULT, options)]) {
            options.statistics.iter().for_each(|users| users.join(&database));
        }
        Ok(Opened { database, families })
    }

    /// The families that were named, once those that are missing are made.
    fn named(
        &self,
        named: &[(&str, &Options)],
        made: Vec<(&str, ColumnFamilyOptions)>,
    ) -> Res<Vec<ColumnFamily>> {
        made.into_iter().try_for_each(|(name, family)| self.make_family(name, family).map(drop))?;
        named.iter().map(|(name, _)| self.db().column_family(name)).collect()
    }
    fn write_info_log(&self, text: &str) {
        if let Err(error) = self.db().write_info_log(text) {
            self.db().note("info_log_failed", &error.to_string());
        }
    }
    fn tell_opened(&self, path: &Path, notes: &str) {
        self.say(&format!("opened {path:?}"));
        if !notes.is_empty() {
            self.db().note("options_noted", notes);
            self.say(&format!("options noted: {notes}"));
        }
    }
    fn say(&self, text: &str) {
        if let Some(telling) = &self.telling {
            telling.say(text);
        }
    }
    /// What a new family with `options` is made with.
    pub(crate) fn family_options(&self, options: &Options) -> Res<(ColumnFamilyOptions, String)> {
        options.places.check(&self.path)?;
        options.family(&self.table_dirs)
    }
    /// Makes a family.
    pub(crate) fn make_family(
        &self,
        name: &str,
        options: ColumnFamilyOptions,
    ) -> Res<ColumnFamily> {
        match &self.face {
            Face::Timed(timed) => {
                timed.create_column_family(name, options)?;
                self.db().column_family(name)
            }
            _ => self.db().create_column_family(name, options),
        }
    }
    /// The families that are there.
    pub(crate) fn families(&self) -> Vec<ColumnFamily> {
        let names = self.db().column_families();
        // One that was dropped meanwhile is none.
        names.iter().filter_map(|name| self.db().column_family(name).ok()).collect()
    }
    /// Drops the family that a handle is of, and not another one that has its name by now.
    fn drop_family(&self, family: &Family) -> Res<()> {
        if !Arc::ptr_eq(&self.closed, &family.closed) {
            return Err(Error::invalid("the column family is one of another database"));
        }
        let (name, id) = (family.name(), family.id());
        self.drops.take(|| match self.db().column_family(name) {
            Ok(there) if there.id() == id => self.db().drop_column_family(name),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Err(Error::invalid("Column family already dropped!")),
        })
    }
    /// What a write asks for. One without the log gets it where all families are to end at one moment: a flush of one
    /// of them would leave the others' parts of a batch behind.
    ///
    /// # Errors
    /// As [`WriteOpts::checked`].
    #[inline]
    pub(crate) fn level(&self, options: &WriteOpts) -> Res<WriteOptions> {
        let mut options = *options.checked()?;
        if self.is_atomic && options.durability == Some(Durability::NoWal) {
            options.durability = Some(Durability::Buffered);
        }
        Ok(options)
    }
    /// Changes a setting.
    ///
    /// # Errors
    /// As `lithify::Db::set_settings`; `Unsupported` for what would take the log from writes that need it.
    pub(crate) fn set_setting(&self, name: &str, value: &str) -> Res<()> {
        let mut asked = Settings::default();
        if self.is_atomic && asked.set(name, value).is_ok() && asked.durability == Durability::NoWal
        {
            return Err(Error::unsupported("durability=no-wal: atomic_flush=1 needs the log"));
        }
        self.db().set_settings(&[(name, value)])
    }
    /// Reads with these options are of one moment in all families: of now, unless they are of another one.
    pub(crate) fn at_one_moment(&self, options: &mut ReadOptions) {
        // One that follows stands still until it is told to catch up.
        if !matches!(self.face, Face::Follows(..)) {
            options.snapshot.get_or_insert_with(|| self.db().snapshot());
        }
    }
    /// The database to ask for what is not about values; of one that follows as it was seen last, which does not stay
    /// open with the handle.
    #[inline]
    pub(crate) fn db(&self) -> Seen<'_> {
        match &self.face {
            Face::Plain(db) => Seen::Own(db),
            Face::Timed(timed) => Seen::Own(timed.db()),
            Face::Follows(follower, _) => Seen::View(follower.view()),
        }
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
        self.keeping.end();
        self.say("closing");
        let kept = self.db().clone();
        if let Err(error) = kept.clone().close() {
            kept.note("close_failed", &error.to_string());
        }
        if let Some(telling) = &self.telling {
            telling.end();
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
pub(crate) fn family_handle(
    database: &Database,
    inner: ColumnFamily,
    options: Option<&Options>,
) -> Res<*mut Family> {
    let has_filter = options.is_some_and(|options| options.parts.filters());
    let face = database.face.family(inner.name(), &inner)?;
    Ok(give(Family::new(database, inner, face, has_filter)))
}

/// RocksDB's rules for the families that an open names.
fn check_names(
    options: &Options,
    path: &Path,
    there: &[String],
    named: &[(&str, &Options)],
    opens: Opens<'_>,
) -> Res<()> {
    let is_new = there.is_empty();
    if is_new && (!opens.writes() || !options.settings.create_if_missing) {
        let what = format!("{path:?}: does not exist (create_if_missing is false)");
        return Err(Error::invalid(what));
    }
    if !is_new && opens.writes() && options.settings.error_if_exists {
        return Err(Error::invalid(format!("{path:?}: exists (error_if_exists is true)")));
    }
    if !named.iter().any(|(name, _)| *name == DEFAULT) {
        return Err(Error::invalid("Default column family not specified"));
    }
    let known = |name: &str| name == DEFAULT || there.iter().any(|there| there == name);
    if let Some((name, _)) = named.iter().find(|(name, _)| !known(name))
        && !(options.create_families && opens.writes())
    {
        return Err(Error::invalid(format!("Column family not found: {name}")));
    }
    let left: Vec<&str> = there.iter().map(String::as_str).collect();
    let left: Vec<&str> =
        left.into_iter().filter(|n| !named.iter().any(|(name, _)| name == n)).collect();
    match left.is_empty() || !opens.writes() {
        true => Ok(()),
        false => Err(Error::invalid(format!("Column families not opened: {}", left.join(", ")))),
    }
}

fn table_dirs_of(options: &Options, path: &Path, named: &[(&str, &Options)]) -> TableDirs {
    let default = named.iter().find(|(name, _)| *name == DEFAULT);
    TableDirs::new(path, &options.places, default.map(|(_, options)| &options.places))
}

/// What a database with these families is opened with: all have one memory budget, with room for the largest memtables,
/// and one cache and one bound of memtables, those of the database's options or the first that a family is given.
fn builder_of(
    options: &Options,
    named: &[(&str, &Options)],
    (there, table_dirs): (&[String], &TableDirs),
) -> Res<(Builder, String)> {
    let mut budget = 0;
    for (_, options) in named {
        budget = budget.max(options.resolved()?.0.memory_budget);
    }
    let (mut builder, notes) = options.builder_for(budget, table_dirs.of_default.clone())?;
    // Families that are not named are opened, too, to be read.
    for name in there.iter().filter(|there| !named.iter().any(|(name, _)| there == name)) {
        if !table_dirs.are_for_all() {
            let mut settings = options.resolved()?.0;
            settings.table_dirs = table_dirs.of(None);
            builder = builder.column_family(name, ColumnFamilyOptions::new().settings(settings));
        }
    }
    let all = || [options].into_iter().chain(named.iter().map(|(_, options)| *options));
    let cache = all().map(|options| &options.cache).find_map(Caching::shared);
    let builder = cache.into_iter().fold(builder, Builder::shared_cache);
    let memtables = all().find_map(Options::memtable_bound);
    Ok((memtables.iter().fold(builder, Builder::shared_memtables), notes))
}

/// Opens several families, and puts their handles out.
pub(crate) fn open_families(
    options: &Options,
    path: &Path,
    names: &[&str],
    of: &[&Options],
    handles: &Outs<*mut Family>,
    opens: Opens<'_>,
) -> Res<Database> {
    if handles.is_null() {
        return Err(Error::invalid("the argument `column_family_handles` is NULL"));
    }
    let named: Vec<(&str, &Options)> = names.iter().copied().zip(of.iter().copied()).collect();
    let Opened { database, families } = Database::open(options, path, &named, opens)?;
    for (i, (family, options)) in families.into_iter().zip(of).enumerate() {
        handles.set_at(i, family_handle(&database, family, Some(options))?);
    }
    Ok(database)
}

/// A time to live; values live for ever with one that is not above 0.
fn time_of(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

pub(crate) fn count(n: i32, what: &str) -> Res<usize> {
    usize::try_from(n).map_err(|_| Error::invalid(format!("`{what}` is {n}")))
}

/// Flushes families one after the other.
fn flush_all(families: &[&Family]) -> Res<()> {
    families.iter().try_for_each(|family| family.inner()?.flush())
}

/// Compacts the keys up to `to`, which is one of them, and notes what there is no place to tell. As in RocksDB, a family
/// with a filter has its last level rewritten, too, unless the options say otherwise.
fn compact(
    db: &Db,
    has_filter: bool,
    from: Option<&[u8]>,
    to: Option<&[u8]>,
    options: Option<&Compacts>,
) -> Res<()> {
    let options = options.unwrap_or(&Compacts::default()).checked(has_filter);
    let compacted = options.and_then(|options| {
        match to {
            Some(to) => db.compact_range_through(from, to, &options)?,
            None => db.compact_range_opt(from, None, &options)?,
        }
        // As in RocksDB, what was compacted is gone from the disk when the call returns.
        db.delete_obsolete_files()
    });
    compacted.inspect_err(|error| db.note("compact_range_failed", &error.to_string()))
}

/// The text of a property, with RocksDB's headlines where programs look for them; NULL if there is no such
/// thing. Writes are counted by their entries.
pub(crate) fn property(db: &Db, name: &str) -> *mut c_char {
    let Some(text) = db.property(name) else { return std::ptr::null_mut() };
    if name != "rocksdb.stats" {
        return c_text(&text);
    }
    let counts = db.stats().counts;
    c_text(&format!(
        "** Compaction Stats **\n{text}\n** DB Stats **\nCumulative writes: {} writes, {} commit groups, \
         ingest: {} bytes\nCumulative WAL: {} syncs, written: {} bytes\n",
        counts.writes, counts.commit_groups, counts.write_bytes, counts.wal_syncs, counts.wal_bytes
    ))
}

/// RocksDB's range ends with its last key.
fn delete_files(db: &Db, from: Option<&[u8]>, to: Option<&[u8]>) -> Res<()> {
    match to {
        Some(to) => db.delete_files_through(from, to),
        None => db.delete_files_in_range(from, None),
    }
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
    fn rocksdb_open_with_ttl(options: &Options, name: path, ttl: i32, errptr) -> *mut Database {
        let opens = Opens::ForATime(&[time_of(ttl)]);
        Ok(give(Database::open(options, name, &[(DEFAULT, options)], opens)?.database))
    }
    fn rocksdb_open_column_families_with_ttl(
        options: &Options, name: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, ttls: many i32, errptr
    ) -> *mut Database {
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        let times: Vec<Duration> = ttls.first(n, "ttls")?.into_iter().map(time_of).collect();
        open_families(options, name, &names, &of, &handles, Opens::ForATime(&times)).map(give)
    }
    fn rocksdb_open_as_secondary(options: &Options, name: path, own_dir: path, errptr) -> *mut Database {
        // Nothing is written, so there is no need of a directory.
        let _ = own_dir;
        Ok(give(Database::open(options, name, &[(DEFAULT, options)], Opens::ToFollow)?.database))
    }
    fn rocksdb_open_as_secondary_column_families(
        options: &Options, name: path, own_dir: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, errptr
    ) -> *mut Database {
        let _ = own_dir;
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        open_families(options, name, &names, &of, &handles, Opens::ToFollow).map(give)
    }
    fn rocksdb_try_catch_up_with_primary(db: &Database, errptr) {
        db.face.catch_up()
    }
    fn rocksdb_disable_file_deletions(db: &Database, errptr) {
        db.keeping.more(db.db().keep_files()?);
        Ok(())
    }
    fn rocksdb_enable_file_deletions(db: &Database, errptr) {
        db.keeping.less();
        Ok(())
    }
    fn rocksdb_close(db: own Database) {
        if let Some(db) = db {
            db.close();
        }
        Ok(())
    }
    fn rocksdb_destroy_db(options: &Options, name: path, errptr) {
        options.builder_at(name)?.destroy(name)
    }
    fn rocksdb_repair_db(options: &Options, name: path, errptr) {
        let report = options.builder_at(name)?.verify(name, &mut |_| {})?;
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
        let names = options.builder_at(name)?.list_column_families(name).map_err(|error| {
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
        let (mut family, notes) = db.family_options(options)?;
        if matches!(db.face, Face::Timed(_)) {
            family = family.ttl(Duration::ZERO);
        }
        let inner = db.told(db.make_family(name, family))?;
        if !notes.is_empty() {
            db.db().note("options_noted", &notes);
        }
        family_handle(db, inner, Some(options))
    }
    fn rocksdb_drop_column_family(db: &Database, family: &Family, errptr) {
        db.told(db.drop_family(family))?;
        db.db().delete_obsolete_files()
    }
    fn rocksdb_column_family_handle_destroy(family: own Family) {
        family.map_or(Ok(()), |family| family.end())
    }
    fn rocksdb_column_family_handle_get_id(family: &Family) -> u32 {
        Ok(family.id())
    }
    fn rocksdb_column_family_handle_get_name(family: &Family, len: out usize) -> *mut c_char {
        let name = family.name();
        len.set(name.len());
        Ok(c_bytes(name.as_bytes()))
    }
    fn rocksdb_get_default_column_family_handle(db: &Database) -> *mut Family {
        let inner = db.db().column_family(DEFAULT)?;
        Ok(give(Family::new(db, inner, db.face.clone(), db.has_filter)))
    }
    fn rocksdb_create_snapshot(db: &Database) -> *mut SnapshotHandle {
        Ok(SnapshotHandle::owned(db.face.seen()?.snapshot()))
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
        Ok(db.face.seen()?.snapshot().sequence())
    }
    fn rocksdb_property_value(db: &Database, name: text) -> *mut c_char {
        Ok(property(&*db.face.seen()?, name))
    }
    fn rocksdb_property_value_cf(db: &Database, family: &Family, name: text) -> *mut c_char {
        let _ = db;
        Ok(property(&*family.face.seen()?, name))
    }
    fn rocksdb_property_int(db: &Database, name: text, value: out u64) -> i32 {
        Ok(db.face.seen()?.int_property(name).map_or(-1, |n| { value.set(n); 0 }))
    }
    fn rocksdb_property_int_cf(db: &Database, family: &Family, name: text, value: out u64) -> i32 {
        let _ = db;
        Ok(family.face.seen()?.int_property(name).map_or(-1, |n| { value.set(n); 0 }))
    }
    fn rocksdb_flush(db: &Database, options: maybe Flushes, errptr) {
        let _ = options;
        db.told(db.db().flush())
    }
    fn rocksdb_flush_cf(db: &Database, options: maybe Flushes, family: &Family, errptr) {
        let _ = options;
        db.told(family.inner()?.flush())
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
        db.told(db.db().sync())
    }
    fn rocksdb_compact_range(db: &Database, (from, flen): bound, (to, tlen): bound) {
        compact(&db.db(), db.has_filter, from, to, None)
    }
    fn rocksdb_compact_range_cf(db: &Database, family: &Family, (from, flen): bound, (to, tlen): bound) {
        let _ = db;
        compact(&*family.inner()?, family.has_filter, from, to, None)
    }
    fn rocksdb_compact_range_opt(
        db: &Database, options: maybe Compacts, (from, flen): bound, (to, tlen): bound
    ) {
        compact(&db.db(), db.has_filter, from, to, options)
    }
    fn rocksdb_compact_range_cf_opt(
        db: &Database, family: &Family, options: maybe Compacts, (from, flen): bound, (to, tlen): bound
    ) {
        let _ = db;
        compact(&*family.inner()?, family.has_filter, from, to, options)
    }
    fn rocksdb_delete_file_in_range(db: &Database, (from, flen): bound, (to, tlen): bound, errptr) {
        db.told(delete_files(&db.db(), from, to))
    }
    fn rocksdb_delete_file_in_range_cf(
        db: &Database, family: &Family, (from, flen): bound, (to, tlen): bound, errptr
    ) {
        db.told(delete_files(&*family.inner()?, from, to))
    }
    fn rocksdb_approximate_sizes(
        db: &Database, n: i32, starts: many *const c_char, start_lens: many usize,
        limits: many *const c_char, limit_lens: many usize, out: outs u64, errptr
    ) {
        sizes(&*db.face.seen()?, n, (starts, start_lens), (limits, limit_lens), &out)
    }
    fn rocksdb_approximate_sizes_cf(
        db: &Database, family: &Family, n: i32, starts: many *const c_char, start_lens: many usize,
        limits: many *const c_char, limit_lens: many usize, out: outs u64, errptr
    ) {
        let _ = db;
        sizes(&*family.face.seen()?, n, (starts, start_lens), (limits, limit_lens), &out)
    }
    fn rocksdb_wait_for_compact(db: &Database, options: &Waits, errptr) {
        if options.flush {
            // One that is dropped meanwhile has nothing left to flush.
            let flushed = |family: &ColumnFamily| family.flush().or_else(|e| match e.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(e),
            });
            db.families().iter().try_for_each(flushed)?;
        }
        let limit = (options.micros > 0).then(|| Duration::from_micros(options.micros));
        match db.db().wait_idle(limit)? {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::TimedOut, "compactions are still at work; wait longer")),
        }
    }
    fn rocksdb_cancel_all_background_work(db: &Database, wait: u8) {
        db.families().iter().for_each(|family| family.set_auto_compaction(false));
        if wait != 0 {
            db.db().wait_idle(None)?;
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
