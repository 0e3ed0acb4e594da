//! Opening a database with components of one's own: another comparator, another world.

use std::path::Path;

use lithify_base::{
    CompactionFilterRef, ComparatorRef, MergeOperatorRef, PrefixExtractorRef, Prefixes, Result,
    bytewise,
};
use lithify_engine::Engine;
use lithify_env::sync::Arc;
use lithify_env::{Env, FsRef, OsRt, PosixFs, RtOptions};

use crate::db::Db;
use crate::families::Named;
use crate::follower::Follower;
use crate::import::{self, ImportOptions, ImportProgress, ImportReport};
use crate::listener::EventListener;
use crate::open;
use crate::salvage::{self, SalvageReport};
use crate::settings::Settings;

/// The permission bits of the group and of others.
const PRIVATE: u32 = 0o077;

/// Opens a database: [`Settings`] plus components.
#[derive(Clone)]
pub struct Builder {
    pub(crate) settings: Settings,
    pub(crate) order: ComparatorRef,
    pub(crate) operator: Option<MergeOperatorRef>,
    pub(crate) filter: Option<CompactionFilterRef>,
    pub(crate) prefixes: Prefixes,
    pub(crate) env: Option<Env>,
    pub(crate) listeners: Vec<Arc<dyn EventListener>>,
    /// Engines that compactions may use besides the CPU.
    pub(crate) engines: Vec<Arc<dyn Engine>>,
    /// A LevelDB directory may become ours.
    pub(crate) upgrade: bool,
    /// A new database may be made among files of others.
    pub(crate) among_files: bool,
    /// Permission bits that no new file gets, for what is made of a directory that does not give them.
    pub(crate) denied: u32,
    pub(crate) families: Named,
}

impl Builder {
    /// With default components: byte order and this machine.
    pub fn new(settings: Settings) -> Builder {
        Builder {
            settings,
            order: bytewise(),
            operator: None,
            filter: None,
            prefixes: Prefixes::default(),
            env: None,
            listeners: Vec::new(),
            engines: Vec::new(),
            upgrade: false,
            among_files: false,
            denied: 0,
            families: Named::new(),
        }
    }
    /// Orders keys by `order`. A database remembers its comparator's name and refuses another.
    #[must_use]
    pub fn comparator(mut self, order: ComparatorRef) -> Builder {
        self.order = order;
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
        self.operator = Some(operator);
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
        self.filter = Some(filter);
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
        self.prefixes = Prefixes::by(extractor);
        self
    }
    /// Runs on `env` instead of this machine's files and threads: for tests and simulation.
    #[must_use]
    pub fn env(mut self, env: Env) -> Builder {
        self.env = Some(env);
        self
    }
    /// Tells `listener` what happens; may be given several times. A handle that only reads tells
    /// nothing.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Builder {
        self.listeners.push(listener);
        self
    }
    /// Lets compactions use `engine` besides the CPU; may be given several times. Each part of a compaction
    /// goes to the engine that is expected to be through with it first, by what the engines say of themselves.
    /// Where an engine refuses, fails, hangs, or returns what does not hold, the CPU takes over: the tables
    /// are the same to the byte, and no compaction fails. The event log says who merged what and why, and
    /// [`Stats::engines`](crate::Stats::engines) counts it.
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
        self.engines.push(engine);
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
        self.among_files = true;
        self
    }
    /// Opens, and creates if need be, the database in `path`.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        open::open(self, path.as_ref())
    }
    /// Opens the database in `path` for reading only.
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Db> {
        open::open_read_only(self, path.as_ref())
    }

    /// Opens a reader of the database in `path` that keeps up with whoever writes it, in another
    /// process or in this one. Nothing in the directory is changed, and no lock is taken.
    ///
    /// # Errors
    /// As [`Db::open_read_only`]; `Stalled` if files change faster than they can be looked at.
    pub fn open_follower(self, path: impl AsRef<Path>) -> Result<Follower> {
        Follower::open(self, path.as_ref())
    }

    /// Takes out what is readable of the damaged database in `from` into a new one in `to`, which
    /// must be absent or empty, all column families included. The new one has these settings; an order
    /// of keys other than byte order must be given if it is not one of ours, here or, for another
    /// column family, with [`column_family`](Builder::column_family). `from` is only read, and must
    /// not be open. `watch` is told how many entries were read.
    ///
    /// # Errors
    /// NotFound if `from` holds no file of a database; InvalidArgument, before anything is read, if `to`
    /// has something in it or one directory lies in the other;
    /// Unsupported if the order of keys is not known; what writing the new database gives. What
    /// can't be read in `from` is in the report and no error.
    pub fn salvage(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<SalvageReport> {
        salvage::salvage(self, from.as_ref(), to.as_ref(), watch)
    }

    /// Makes a database in `to`, which must be absent or empty, of the directory that RocksDB or
    /// LevelDB left in `from`. Tables are hard-linked where the file system can, and not rewritten; what
    /// is in the logs is taken over. `from` is only read, and stays what it is. The new database
    /// has these settings; an order of keys other than byte order must be given if it is not one of
    /// ours, as must be a merge operator that is not: here, or for another column family with
    /// [`column_family`](Builder::column_family). `watch` is told of the progress.
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
    /// two-phase commit, unknown comparators, operands of unknown merge operators); Corruption.
    /// Later: Io, `NoSpace`, and Corruption if a comparison finds a difference.
    pub fn import(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: ImportOptions,
        watch: &mut dyn FnMut(ImportProgress),
    ) -> Result<ImportReport> {
        import::import(self, from.as_ref(), to.as_ref(), options, watch)
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
        import::in_place(self, path.as_ref(), kept, options, watch)
    }

    /// This machine, with as many threads as `settings` ask for: the world of a database that is
    /// given no other. For those who put something in front of a part of it.
    pub fn machine(settings: &Settings) -> Env {
        let compaction = settings.compaction_threads as usize;
        Env {
            fs: Arc::new(PosixFs::new()),
            rt: Arc::new(OsRt::new(RtOptions {
                flush_threads: settings.flush_threads as usize,
                compact_threads: compaction,
                // Each job keeps several transfers under way, and a flush's writes must not
                // queue behind a compaction's reads. These threads wait, they do not work.
                io_threads: (16 * compaction).clamp(16, 256),
                // One may be in a commit, and one in the upkeep proper.
                upkeep_threads: 2,
                background_priority: 0,
                seed: None,
            })),
        }
    }

    /// The files, where nothing runs.
    pub(crate) fn fs(&self) -> FsRef {
        match &self.env {
            Some(env) => env.fs.clone(),
            None => Arc::new(PosixFs::new()),
        }
    }

    /// Permission bits that no new file of the database gets.
    pub(crate) fn denied(&self) -> u32 {
        self.denied | if self.settings.private_files { PRIVATE } else { 0 }
    }

    /// The world to run in.
    pub(crate) fn world(&self) -> Env {
        self.env.clone().unwrap_or_else(|| Builder::machine(&self.settings))
    }
}
