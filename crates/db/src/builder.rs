//! Opening a database with components of one's own: another comparator, another world.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lithify_base::{
    CompactionFilterRef, ComparatorRef, MergeOperatorRef, PrefixExtractorRef, Prefixes, Result,
};
use lithify_engine::Engine;
use lithify_env::Env;
use lithify_env::sync::Arc;
use lithify_files::dir::Dir;
use lithify_layers::open_with_times;
use lithify_rescue::import::{self, ImportOptions, ImportProgress, ImportReport};
use lithify_rescue::salvage::{self, SalvageReport};
use lithify_rescue::verify;
use lithify_tree::{
    ColumnFamilyOptions, EventListener, Handle, Making, OpenOptions, Settings, SharedCache,
    SharedMemtables, machine, open, open_reading, recovered,
};

use crate::db::Db;
use crate::follower::Follower;
use crate::ttl::TtlDb;

/// Opens a database: [`Settings`] plus components.
#[derive(Clone)]
pub struct Builder {
    pub(crate) with: OpenOptions,
    /// Families that are named and not there are made.
    make_families: bool,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let families: Vec<&String> = self.with.families.keys().collect();
        f.debug_struct("Builder")
            .field("settings", &self.with.settings)
            .field("comparator", &self.with.order.name())
            .field("families", &families)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// With default components: byte order and this machine.
    pub fn new(settings: Settings) -> Builder {
        Builder { with: OpenOptions::new(settings), make_families: false }
    }
    /// Orders keys by `order`. A database remembers its comparator's name and refuses another.
    #[must_use]
    pub fn comparator(mut self, order: ComparatorRef) -> Builder {
        self.with.order = order;
        self
    }
    /// Gives [`Db::merge`] its meaning. A database that holds operands opens with the operator that they
    /// were written for, and no other; where there are none any more, any will do.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-merge-{}", std::process::id()));
    /// use std::sync::Arc;
    /// let builder = lithify::Builder::new(lithify::Settings::default());
    /// let db = builder.merge_operator(Arc::new(lithify::merge::Add)).open(&dir)?;
    /// db.merge(b"visitors", 3u64.to_le_bytes())?;
    /// db.merge(b"visitors", 2u64.to_le_bytes())?;
    /// assert_eq!(db.get(b"visitors")?.as_deref(), Some(&5u64.to_le_bytes()[..]));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, operator: MergeOperatorRef) -> Builder {
        self.with.operator = Some(operator);
        self
    }
    /// Lets `filter` decide what compactions keep. It is not remembered: a database opened without it
    /// keeps everything.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use lithify::{CompactionFilter, Decision, FilterContext};
    ///
    /// /// Values begin with the second since 1970 at which they expire.
    /// struct Sessions;
    ///
    /// impl CompactionFilter for Sessions {
    ///     fn name(&self) -> &str {
    ///         "sessions"
    ///     }
    ///     fn filter<'a>(&self, context: &FilterContext, _key: &[u8], value: &'a [u8]) -> Decision<'a> {
    ///         match value.first_chunk() {
    ///             Some(until) if u64::from_le_bytes(*until) < context.now => Decision::Remove,
    ///             _ => Decision::Keep,
    ///         }
    ///     }
    /// }
    ///
    /// let builder = lithify::Builder::new(lithify::Settings::default());
    /// let builder = builder.compaction_filter(Arc::new(Sessions));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn compaction_filter(mut self, filter: CompactionFilterRef) -> Builder {
        self.with.filter = Some(filter);
        self
    }
    /// Puts prefixes of keys into the filters of new tables, so that a scan of the keys of one prefix
    /// need not open tables that have none: [`Db::prefix_iter`], iterators with bounds that only keys
    /// of one prefix fit, and those with [`prefix_same_as_start`](crate::ReadOptions::prefix_same_as_start).
    /// Each table tells by name with what it was written, so the extractor may change from open to
    /// open; filters made with one that is not known any more are not asked for prefixes.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-prefix-{}", std::process::id()));
    /// use std::sync::Arc;
    /// use lithify::prefix::FixedPrefix;
    ///
    /// let builder = lithify::Builder::new(lithify::Settings::default());
    /// let db = builder.prefix_extractor(Arc::new(FixedPrefix::new(5))).open(&dir)?;
    /// for key in ["user1/name", "user1/town", "user2/name"] {
    ///     db.put(key, "...")?;
    /// }
    /// let mut of_one = db.prefix_iter("user1")?;
    /// of_one.seek_to_last();
    /// assert_eq!(of_one.key(), b"user1/town");
    /// # drop(of_one);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn prefix_extractor(mut self, extractor: PrefixExtractorRef) -> Builder {
        self.with.prefixes = Prefixes::by(extractor);
        self
    }
    /// Runs on `env` instead of this machine's files and threads: for tests and simulation.
    #[must_use]
    pub fn env(mut self, env: Env) -> Builder {
        self.with.env = Some(env);
        self
    }
    /// Tells `listener` what happens; may be given several times. A handle that only reads tells
    /// nothing.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Builder {
        self.with.listeners.push(listener);
        self
    }
    /// Tells the `tracing` crate what happens, as events of target `lithify` with the names of the event log: failures as
    /// warnings, flushes, compactions and stalls as information, the rest as detail. Needs the cargo feature `tracing`.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn tracing(self) -> Builder {
        self.listener(Arc::new(crate::traced::Traced))
    }
    /// Lets compactions use `engine` besides the CPU; may be given several times. Each part of a compaction
    /// goes to the engine that is expected to be through with it first, by what the engines say of themselves.
    /// Where an engine refuses, fails, hangs, or returns wrong output, the CPU takes over, and no compaction
    /// fails. The event log says which engine merged what and why, and
    /// [`Stats::engines`](crate::Stats::engines) counts it.
    ///
    /// Each set of blocks that an engine returns is merged again on the CPU and compared before it counts, so
    /// the tables are the CPU's to the byte. An engine may ask for less: of `Caps::prove` = n only one set in
    /// n is merged again, chosen once the output is here, and a wrong set goes unnoticed with probability
    /// 1 - 1/n. Name such an engine only if its machine is trusted.
    ///
    /// Sets are as large as an engine wants them, as far as `buffer_bytes` has memory for them beside the
    /// buffers of all jobs; `engine_small_sets` in the event log says where it has not. Compactions with a
    /// filter are merged by the CPU.
    ///
    /// Each engine has a name of its own ([`Caps::name`](crate::engine::Caps)): `open` gives `InvalidArgument` if
    /// two have the same, or one that of the CPU.
    ///
    /// Whether an engine is right can be known before: see [`engine`](crate::engine#judging-an-engine-of-your-own).
    /// That, and the engine of this example, need the cargo feature `testing`.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-engine-{}", std::process::id()));
    /// use std::sync::Arc;
    /// use lithify::engine::mock::{FaultPlan, MockEngine};
    ///
    /// // An engine for tests, which breaks down at its first piece of work.
    /// let engine = Arc::new(MockEngine { plan: FaultPlan::Breaks(0) });
    /// let db = lithify::Builder::new(lithify::Settings::default()).engine(engine).open(&dir)?;
    /// db.put("apple", "red")?;
    /// db.flush()?;
    /// db.put("apple", "green")?;
    /// db.compact_range(None, None)?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// assert_eq!(db.stats().engines[0].failures, 1);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Builder {
        self.with.engines.push(engine);
        self
    }
    /// Keeps blocks, indexes and filters in `cache`, which other databases have as well: together they stay within its
    /// capacity. [`memory_budget`](Settings::memory_budget) is then for memtables, buffers and what is not counted, and
    /// what it has for a cache is not used. Hits and misses of [`stats`](Db::stats) are those of the cache.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-cache-{}", std::process::id()));
    /// use lithify::{Builder, Settings, SharedCache};
    /// let cache = SharedCache::new(64 << 20);
    /// let builder = Builder::new(Settings::default().memory_budget(64 << 20)).shared_cache(&cache);
    /// let users = builder.clone().open(dir.join("users"))?;
    /// let orders = builder.open(dir.join("orders"))?;
    /// users.put("ada", "1815")?;
    /// users.flush()?;
    /// users.get("ada")?;
    /// assert!(cache.usage() > 0);
    /// # users.close()?;
    /// # orders.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shared_cache(mut self, cache: &SharedCache) -> Builder {
        self.with.shared_cache = Some(cache.clone());
        self
    }
    /// Bounds what the memtables take, together with those of the other databases that have `memtables`. Once those that
    /// are being filled take seven eighths of the bound, or half of it while all take all of it, the largest of all
    /// databases is flushed. What else bounds memtables goes on to do so for each database.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-memtables-{}", std::process::id()));
    /// use lithify::{Builder, Settings, SharedMemtables};
    /// let memtables = SharedMemtables::new(32 << 20, false);
    /// let builder = Builder::new(Settings::default()).shared_memtables(&memtables);
    /// let users = builder.clone().open(dir.join("users"))?;
    /// let orders = builder.open(dir.join("orders"))?;
    /// users.put("ada", "1815")?;
    /// assert!(memtables.usage() > 0);
    /// # users.close()?;
    /// # orders.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shared_memtables(mut self, memtables: &SharedMemtables) -> Builder {
        self.with.shared_memtables = Some(memtables.clone());
        self
    }
    /// Lets [`open`](Builder::open) make a new database in a directory that has other files in it, which
    /// stay as they are. Without this such a directory is refused and nothing is written, for it is
    /// rarely the one that was meant. `lost+found` is no such file, and what an interrupted creation
    /// left is gone on with.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-among-{}", std::process::id()));
    /// use lithify::{Builder, Db, ErrorKind, Settings};
    ///
    /// std::fs::create_dir_all(&dir).unwrap();
    /// std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    /// let refused = Db::open(&dir, Settings::default()).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    /// let db = Builder::new(Settings::default()).create_among_files().open(&dir)?;
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn create_among_files(mut self) -> Builder {
        self.with.making = Making::AmongFiles;
        self
    }
    /// Opens, and creates if need be, the database in `path`.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        let families = self.families_to_make();
        let db = open(self.with, path.as_ref()).map(Db::from)?;
        for (name, options) in families {
            db.open_column_family(&name, options)?;
        }
        Ok(db)
    }

    /// Those that [`create_missing_column_families`](Builder::create_missing_column_families) is about.
    fn families_to_make(&self) -> BTreeMap<String, ColumnFamilyOptions> {
        if self.make_families { self.with.families.clone() } else { BTreeMap::new() }
    }
    /// Opens the database in `path` for reading only.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Db> {
        open_reading(self.with, path.as_ref(), Handle::Reads).map(Db::from)
    }

    /// Opens a reader of the database in `path` that keeps up with its writer, in another
    /// process or in this one. Nothing in the directory is changed, and no lock is taken.
    ///
    /// # Errors
    /// As [`Db::open_read_only`]; `Stalled` if files change faster than they can be looked at.
    pub fn open_follower(self, path: impl AsRef<Path>) -> Result<Follower> {
        Follower::open(self.with, path.as_ref())
    }

    /// Takes out what is readable of the damaged database in `from` into a new one in `to`, which
    /// must be absent or empty, all column families included. The new one has these settings; an order
    /// of keys other than byte order must be given if it is not one of ours, here or, for another
    /// column family, with [`column_family`](Builder::column_family). [Directories of
    /// tables](fn@Settings::table_dirs) are those of `from`; in `to` all are in one. `from` is only read, and must
    /// not be open for writing. `watch` is told how many entries were read.
    ///
    /// # Errors
    /// Locked if `from` is open for writing; NotFound if it holds no file of a database; InvalidArgument, before
    /// anything is read, if `to` has something in it or one directory lies in the other;
    /// Unsupported if the order of keys is not known; what writing the new database gives, and then `to` opens as no
    /// database and is to be removed. What can't be read in `from` is in the report and no error.
    pub fn salvage(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<SalvageReport> {
        salvage::salvage(self.with, from.as_ref(), to.as_ref(), watch)
    }

    /// Makes a database in `to`, which must be absent or empty, of the directory that RocksDB or
    /// LevelDB left in `from`. Tables are hard-linked where the file system can, and not rewritten; what
    /// is in the logs is taken over. `from` is only read, and stays what it is. The new database
    /// has these settings; an order of keys other than byte order must be given if it is not one of
    /// ours, as must be a merge operator that is not: here, or for another column family with
    /// [`column_family`](Builder::column_family). `watch` is told of the progress.
    ///
    /// [Directories of tables](fn@Settings::table_dirs) are those of `from`, its `db_paths` and `cf_paths`; in `to`
    /// all tables are in one.
    ///
    /// A crash before the end leaves either a directory that opens as no database, which may be
    /// removed, or the whole database.
    ///
    /// ```no_run
    /// # fn main() -> lithify::Result<()> {
    /// use lithify::import::ImportOptions;
    /// use lithify::{Builder, Settings};
    ///
    /// let options = ImportOptions { verify: true, ..ImportOptions::default() };
    /// let report = Builder::new(Settings::default()).import("rocks", "fruit", options, &mut |_| {})?;
    /// println!("{} tables of {}, {:?} keys", report.tables, report.maker, report.keys);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing was written: NotFound if `from` holds no database; Locked if a program has it open;
    /// InvalidArgument if it is one of ours, `to` has something in it, or one of the two directories lies
    /// in the other; Unsupported, naming
    /// the feature, for what cannot be taken over (blobs, user-defined timestamps, wide columns,
    /// unknown comparators, operands of unknown merge operators); Corruption.
    /// Later: Io, `NoSpace`, and Corruption if a comparison finds a difference.
    pub fn import(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: ImportOptions,
        watch: &mut dyn FnMut(ImportProgress),
    ) -> Result<ImportReport> {
        import::import(self.with, from.as_ref(), to.as_ref(), options, watch)
    }
    /// Makes the directory that RocksDB or LevelDB left in `path` a database of ours. LevelDB cannot
    /// open it afterwards, RocksDB only once it is [settled](Db::settle); so there is a way back if
    /// `kept` is given, a directory (absent or empty, on the same file system) that becomes
    /// what `path` was, sharing its tables.
    ///
    /// # Errors
    /// As [`import`](Builder::import).
    pub fn import_in_place(
        self,
        path: impl AsRef<Path>,
        kept: Option<&Path>,
        options: ImportOptions,
        watch: &mut dyn FnMut(ImportProgress),
    ) -> Result<ImportReport> {
        import::in_place(self.with, path.as_ref(), kept, options, watch)
    }

    /// This machine, with as many threads as `settings` ask for: the world of a database that is
    /// given no other. For those who put something in front of a part of it.
    pub fn machine(settings: &Settings) -> Env {
        machine(settings)
    }

    /// The names of the column families of the database in `path`, `default` first, the others by age.
    /// Nothing is opened, changed or locked.
    ///
    /// # Errors
    /// `NotFound` if there is no database; as an open if its manifest can't be read.
    pub fn list_column_families(&self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        let found = recovered(&Dir::new(self.with.fs(), path.as_ref()).hold_if_there()?)?;
        Ok(found.state.families.into_values().map(|family| family.name).collect())
    }
    /// Opens the column family `name` with `options`, if there is one. Every family of a directory is
    /// opened; those that are not named here have the database's settings, no merge operator and no
    /// compaction filter, and need a comparator of ours. With [`Policy::Fifo`](crate::Policy::Fifo) for
    /// the database, name those that must not forget. [`Settings::stored_families_in`] has what each was
    /// opened with last.
    #[must_use]
    pub fn column_family(mut self, name: &str, options: ColumnFamilyOptions) -> Builder {
        self.with.families.insert(name.to_owned(), options);
        self
    }

    /// Lets an open make the column families that are [named](Builder::column_family) and not there yet, so
    /// that a program says once what its families are, whether the database is new or not. Each is made by
    /// itself, in the order of names: after a crash the next open makes those that are missing.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-missing-{}", std::process::id()));
    /// use lithify::{Builder, ColumnFamilyOptions, Settings};
    ///
    /// for _ in ["the first time", "and later"] {
    ///     let db = Builder::new(Settings::default())
    ///         .column_family("by-name", ColumnFamilyOptions::new())
    ///         .create_missing_column_families()
    ///         .open(&dir)?;
    ///     db.column_family("by-name")?.put("pear", "8")?;
    ///     db.close()?;
    /// }
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn create_missing_column_families(mut self) -> Builder {
        self.make_families = true;
        self
    }

    /// Opens, and creates if need be, a database whose values expire `ttl` after they were written,
    /// to the second; zero means never. Each value takes four bytes more, the time of its writing.
    /// The form is that of RocksDB's `DBWithTTL`: either opens the directory of the other.
    ///
    /// No read shows a value that has expired, and compactions drop it; to have that done in time, set
    /// [`periodic_compaction_seconds`](crate::Settings::periodic_compaction_seconds). The time to
    /// live is not stored: it may be another one at each open, and be changed by
    /// [`TtlDb::set_ttl`]. A database must be opened this way each time or never: opened by
    /// [`open`](Builder::open), it shows values with the times at their ends. Values of another column
    /// family have times if it is given a [time to live](crate::ColumnFamilyOptions::ttl) of its own.
    ///
    /// A key has no time to live of its own: the form keeps when a value was written, and not how long it lives.
    /// Where that differs, make a column family for each time to live.
    ///
    /// A merge is a write: the value that it results in is as old as its newest operand, and what
    /// had expired when an operand was written takes no part. Do not rely on what a value adds to an
    /// operand that comes shortly before it expires: a compaction may meet the value first.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-ttl-{}", std::process::id()));
    /// use std::time::Duration;
    /// let builder = lithify::Builder::new(lithify::Settings::default());
    /// let sessions = builder.open_ttl(&dir, Duration::from_secs(3600))?;
    /// sessions.put(b"session 17", b"ann")?;
    /// assert_eq!(sessions.get(b"session 17")?.as_deref(), Some(&b"ann"[..]));
    /// // An hour later it is not there any more.
    /// # sessions.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_ttl(self, path: impl AsRef<Path>, ttl: Duration) -> Result<TtlDb> {
        let families = self.families_to_make();
        let path = path.as_ref();
        let db =
            open_with_times(self.with, ttl, |with| open(with, path).map(Db::from)).map(TtlDb)?;
        for (name, options) in families {
            match options.clone().take_ttl() {
                Some(_) => drop(db.open_column_family(&name, options)?),
                None => drop(db.db().open_column_family(&name, options)?),
            }
        }
        Ok(db)
    }
    /// The same for reading only.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    pub fn open_ttl_read_only(self, path: impl AsRef<Path>, ttl: Duration) -> Result<TtlDb> {
        let open = |with| open_reading(with, path.as_ref(), Handle::Reads).map(Db::from);
        open_with_times(self.with, ttl, open).map(TtlDb)
    }

    /// Checks every byte and every invariant of the database in `path`. Nothing is changed and no lock is
    /// taken, so the database may be open meanwhile. Each column family is checked in the order that it
    /// records by name: one of ours, the builder's, or that of a family given with
    /// [`column_family`](Builder::column_family). `watch` is told of the progress.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-verify-{}", std::process::id()));
    /// use lithify::{Builder, Db, Settings};
    ///
    /// Db::open(&dir, Settings::default())?.close()?;
    /// let report = Builder::new(Settings::default()).verify(&dir, &mut |_| {})?;
    /// report.findings.iter().for_each(|finding| eprintln!("{finding}"));
    /// assert!(report.is_clean());
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no database; `Io` if the directory can't be listed. All else is in the
    /// report, with the name of the column family; a family whose order is not known is in it as
    /// [`verify::Grade::Unchecked`].
    pub fn verify(
        &self,
        path: impl AsRef<Path>,
        watch: &mut dyn FnMut(verify::Progress),
    ) -> Result<verify::Report> {
        let dir = self.with.hold(&self.with.fs(), path.as_ref())?;
        lithify_store::verify::verify(&dir, &self.with.orders(), watch)
    }
}
