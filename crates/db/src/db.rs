//! The handle: what users call.

use std::path::Path;
use std::time::Duration;

use lithify_base::{Result, shown_path};
use lithify_env::sync::Arc;

use lithify_layers::Locks;
use lithify_tree::{
    BackgroundPause, CheckpointOptions, Closer, CompactOptions, DbIter, Entries, Explanation,
    KeptFiles, KeyBounds, LiveFile, Opened, ReadOptions, Settings, Shell, Snapshot, Stats, Value,
    WriteOptions, in_memory_only,
};

use crate::batch::WriteBatch;
use crate::builder::Builder;
use crate::follower::Follower;

/// An open database. Clones are the same database; it is closed by [`close`](Db::close) or when
/// the last handle is dropped.
#[derive(Clone)]
pub struct Db {
    pub(crate) shell: Shell,
    pub(crate) owned: Arc<Owned>,
}

/// What the handles of one open database own together.
pub(crate) struct Owned {
    /// Of all transactions.
    pub(crate) locks: Locks,
    /// Closes the database when the last handle goes.
    _closer: Closer,
}

#[doc(hidden)] // how the parts of this crate meet
impl From<Opened> for Db {
    fn from(opened: Opened) -> Db {
        let owned = Owned { locks: Locks::of(&opened.shell), _closer: opened.closer };
        Db { shell: opened.shell, owned: Arc::new(owned) }
    }
}

impl Db {
    /// Opens, and creates if need be, the database in directory `path`.
    ///
    /// # Errors
    /// `InvalidArgument` for settings that contradict each other, and for a directory of other files
    /// ([`Builder::create_among_files`](crate::Builder::create_among_files)), `Locked` if another handle or
    /// process has it open, `Corruption` or `Unsupported` for a directory that can't be read,
    /// `Io` if the operating system refuses.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Db> {
        Builder::new(settings).open(path)
    }
    /// Opens the database in `path` for reading only, as it was left. Nothing in the directory
    /// is changed, and no lock is taken.
    ///
    /// # Errors
    /// As [`open`](Db::open); `NotFound` if there is none.
    pub fn open_read_only(path: impl AsRef<Path>, settings: Settings) -> Result<Db> {
        Builder::new(settings).open_read_only(path)
    }

    /// Opens a reader of the database in `path` that keeps up with its writer.
    ///
    /// # Errors
    /// As [`Builder::open_follower`].
    pub fn open_follower(path: impl AsRef<Path>, settings: Settings) -> Result<Follower> {
        Builder::new(settings).open_follower(path)
    }

    /// Sets `key` to `value` at the database's durability. A key may be empty: in byte order it is the
    /// first one.
    ///
    /// # Errors
    /// `LimitExceeded` for a key or a value that is too long: nothing was written. `NotCommitted`, `NoSpace`: the write failed and never becomes
    /// visible. `OutcomeUnknown`: it may be visible after the next open. `ReadOnly`: an earlier
    /// error stopped writes; the message names it. `Fenced`: this process was forked off from the
    /// one that opened the database, or its lock file was removed. `InvalidArgument`: called from
    /// within a [`Comparator`](crate::Comparator), merge operator or compaction filter that this database
    /// waits for.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_opt(key, value, &WriteOptions::default())
    }
    /// [`put`](Db::put) with options.
    ///
    /// # Errors
    /// As [`put`](Db::put); `Stalled` if asked not to wait.
    #[inline]
    pub fn put_opt(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.shell.put(key.as_ref(), value.as_ref(), options)
    }
    /// Deletes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Db::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_opt(key, &WriteOptions::default())
    }
    /// [`delete`](Db::delete) with options.
    ///
    /// # Errors
    /// As [`put_opt`](Db::put_opt).
    pub fn delete_opt(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.shell.delete(key.as_ref(), options)
    }
    /// Deletes `key`, which was put at most once since it was last deleted. A compaction that meets
    /// the deletion and the value drops both, wherever they are; a deletion by
    /// [`delete`](Db::delete) has to go down to the oldest data first.
    ///
    /// That is right only for keys that are not put twice in a row, deleted with `delete` or merged
    /// into, or an older value may come back: a queue's entries, say, or the keys of an index. A range
    /// deletion may take them.
    ///
    /// # Errors
    /// As [`put`](Db::put).
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-single-{}", std::process::id()));
    /// let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.put(b"job 17", b"to do")?;
    /// db.single_delete(b"job 17")?;
    /// assert!(db.get(b"job 17")?.is_none());
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_opt(key, &WriteOptions::default())
    }
    /// [`single_delete`](Db::single_delete) with options.
    ///
    /// # Errors
    /// As [`put_opt`](Db::put_opt).
    pub fn single_delete_opt(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.shell.single_delete(key.as_ref(), options)
    }
    /// Merges `operand` into the value of `key` by the database's
    /// [merge operator](Builder::merge_operator), without reading it: reads, flushes and compactions do
    /// that. Each read of a key combines the operands that no flush or compaction has combined yet.
    ///
    /// # Errors
    /// As [`put`](Db::put); `InvalidArgument` if the database was opened without an operator. An operand
    /// that the operator does not take makes reads of the key fail with `MergeFailed` until it is put or
    /// deleted.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_opt(key, operand, &WriteOptions::default())
    }
    /// [`merge`](Db::merge) with options.
    ///
    /// # Errors
    /// As [`merge`](Db::merge); `Stalled` if asked not to wait.
    pub fn merge_opt(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.shell.merge(key.as_ref(), operand.as_ref(), options)
    }
    /// Deletes every key from `from` on that is below `to`, at once and however many there are.
    ///
    /// # Errors
    /// As [`put`](Db::put); `InvalidArgument` if `from` is above `to`. An empty range is no
    /// error and deletes nothing.
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_opt(from, to, &WriteOptions::default())
    }
    /// [`delete_range`](Db::delete_range) with options.
    ///
    /// # Errors
    /// As [`delete_range`](Db::delete_range); `Stalled` if asked not to wait.
    pub fn delete_range_opt(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.shell.delete_range(from.as_ref(), to.as_ref(), options)
    }
    /// Applies a batch atomically.
    ///
    /// # Errors
    /// As [`put`](Db::put). The handle of a column family refuses what was added without a family's
    /// name as `InvalidArgument`: that is for the default family.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_opt(batch, &WriteOptions::default())
    }
    /// [`write`](Db::write) with options.
    ///
    /// # Errors
    /// As [`put_opt`](Db::put_opt).
    pub fn write_opt(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.shell.write_batch(&batch.inner, options)
    }
    /// Makes every write acknowledged so far durable against power loss, but for those that skipped
    /// the log ([`Durability::NoWal`](crate::Durability::NoWal)): they are once they are
    /// [flushed](Db::flush).
    ///
    /// # Errors
    /// `OutcomeUnknown` if the operating system reports a failure; the database is read-only
    /// from then on.
    pub fn sync(&self) -> Result<()> {
        self.shell.sync_log()
    }

    /// The value of `key`, if it has one.
    ///
    /// # Errors
    /// `Corruption` or `Io` naming the file and place; never a wrong or missing value instead.
    /// `MergeFailed` if the merge operator can't combine what was [merged](Db::merge) into the key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.shell.get(key.as_ref(), None)
    }
    /// [`get`](Db::get) with options.
    ///
    /// # Errors
    /// As [`get`](Db::get); `InvalidArgument` for a snapshot of another database.
    pub fn get_opt(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Value>> {
        in_memory_only(options.cache_only, || {
            self.shell.get(key.as_ref(), options.snapshot.as_ref())
        })
    }
    /// Shows the value of `key` to `take`, if it has one, and gives what that makes of it. The value is shown where
    /// it lies, where [`get`](Db::get) copies one that is in a memtable. With `cache_only`, reads that `take` makes look at
    /// memory alone, too.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-doc-with-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.put("visits", 17_u64.to_le_bytes())?;
    /// let visits = db.get_with("visits", &Default::default(), |value| value.first().copied())?;
    /// assert_eq!(visits, Some(Some(17)));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get_opt`](Db::get_opt).
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        in_memory_only(options.cache_only, || {
            self.shell.get_with(key.as_ref(), options.snapshot.as_ref(), take)
        })
    }
    /// The values of several keys, all as of one moment, in the order asked for.
    ///
    /// # Errors
    /// As [`get`](Db::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.multi_get_opt(keys, &ReadOptions::default())
    }
    /// [`multi_get`](Db::multi_get) with options.
    ///
    /// # Errors
    /// As [`get_opt`](Db::get_opt).
    pub fn multi_get_opt<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Option<Value>>> {
        in_memory_only(options.cache_only, || {
            self.shell.multi_get(&mut keys.iter().map(AsRef::as_ref), options.snapshot.as_ref())
        })
    }
    /// A cursor over the database as it is now. It starts at no entry: seek first. Where a loop from one
    /// key to another is all that is wanted, see [`range`](Db::range) and [`prefix`](Db::prefix).
    ///
    /// # Errors
    /// As [`get`](Db::get).
    pub fn iter(&self) -> Result<DbIter> {
        self.iter_opt(&ReadOptions::default())
    }
    /// [`iter`](Db::iter) with options: snapshot, bounds, prefix.
    ///
    /// # Errors
    /// As [`get_opt`](Db::get_opt).
    pub fn iter_opt(&self, options: &ReadOptions) -> Result<DbIter> {
        self.shell.iter(options)
    }
    /// An iterator over the keys that begin with `prefix`, in byte order. With a
    /// [prefix extractor](crate::Builder::prefix_extractor) that takes one prefix of all of them, tables
    /// whose filters have none such are not read. It starts at the first of them.
    ///
    /// # Errors
    /// As [`iter`](Db::iter).
    pub fn prefix_iter(&self, prefix: impl AsRef<[u8]>) -> Result<DbIter> {
        let mut iter = self.iter_opt(&ReadOptions::default().with_prefix(prefix))?;
        iter.seek_to_first();
        Ok(iter)
    }
    /// The entries whose keys are in `range`, in order, as one of std's iterators: each a key and its value, or
    /// the error that ends it. [`rev`](Iterator::rev) gives them from the last one on.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-range-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// for fruit in ["apple", "banana", "cherry"] {
    ///     db.put(fruit, fruit.len().to_string())?;
    /// }
    /// for entry in db.range("b"..) {
    ///     let (key, value) = entry?;
    ///     println!("{} {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// let last = db.range(..).rev().next().transpose()?;
    /// assert_eq!(last.unwrap().0, "cherry");
    /// let all = db.range("apple"..="banana").collect::<lithify::Result<Vec<_>>>()?;
    /// assert_eq!(all.len(), 2);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyBounds) -> Entries {
        self.range_opt(range, &ReadOptions::default())
    }
    /// [`range`](Db::range) with options. Where the range has an end, that is in force and not the bound in the
    /// options; `prefix_same_as_start` does not count.
    pub fn range_opt(&self, range: impl KeyBounds, options: &ReadOptions) -> Entries {
        Entries::new(&range, options, |options| self.shell.iter(options))
    }
    /// The entries whose keys begin with `prefix`, as [`range`](Db::range) gives them.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        self.range_opt(.., &ReadOptions::default().with_prefix(prefix))
    }
    /// A view of the database as it is now, for any number of later reads.
    pub fn snapshot(&self) -> Snapshot {
        self.shell.snapshot()
    }

    /// Writes the memtable to tables and waits until it is on disk.
    ///
    /// # Errors
    /// What made the flush fail, or `ReadOnly`.
    pub fn flush(&self) -> Result<()> {
        self.shell.flush()
    }
    /// Compacts the keys from `from` on below `to` (all keys without bounds) until one run
    /// holds them, and waits for it. The memtable is flushed first. Tables that are one run already
    /// stay as they are, unless [`CompactOptions::rewrite`] says otherwise.
    ///
    /// # Errors
    /// What made a compaction fail.
    pub fn compact_range(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<()> {
        self.compact_range_opt(from, to, &CompactOptions::default())
    }
    /// [`compact_range`](Db::compact_range) with options.
    ///
    /// # Errors
    /// As [`compact_range`](Db::compact_range); `Cancelled` if it was called off: no file of what
    /// was at work is left, and what had been finished stays.
    pub fn compact_range_opt(
        &self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        options: &CompactOptions,
    ) -> Result<()> {
        self.shell.flush()?;
        let range = self.shell.clip(from, to)?;
        // Without bounds it is about all keys, whatever comes meanwhile.
        let bounded = from.is_some() || to.is_some();
        if bounded && range.is_none() {
            return Ok(());
        }
        self.shell.compact(range.filter(|_| bounded), options)
    }
    /// [`compact_range_opt`](Db::compact_range_opt) for the keys from `from` on up to `to`, which is one of them.
    ///
    /// # Errors
    /// As [`compact_range_opt`](Db::compact_range_opt).
    pub fn compact_range_through(
        &self,
        from: Option<&[u8]>,
        to: &[u8],
        options: &CompactOptions,
    ) -> Result<()> {
        self.shell.flush()?;
        let range = self.through(from, to)?;
        self.shell.compact(Some(range), options)
    }
    /// Lets no flush and no compaction start, and no table or log be deleted, until what this returns is
    /// dropped; waits for those at work. Writes go on until the memtables are full, and then wait;
    /// so do callers that wait for background work. Pauses nest. A close ends them.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-pause-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// let pause = db.pause_background()?;
    /// db.put(b"a", b"1")?;
    /// // No table is made or deleted here.
    /// drop(pause);
    /// db.flush()?;
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ShuttingDown` if the database is closed; `Fenced` in a forked child.
    pub fn pause_background(&self) -> Result<BackgroundPause> {
        self.shell.pause()
    }
    /// Waits until every flush and compaction that is due has finished, in all column families, at
    /// most `limit`; true if that is so.
    ///
    /// # Errors
    /// What stopped the background work.
    pub fn wait_idle(&self, limit: Option<Duration>) -> Result<bool> {
        self.shell.wait_all_idle(limit)
    }
    /// Switches automatic compaction on or off. Running compactions finish. Does nothing from within a
    /// comparator, merge operator or compaction filter that the database waits for.
    pub fn set_auto_compaction(&self, on: bool) {
        self.shell.set_auto_compaction(on);
    }
    /// Changes settings while the database is open, all of them or none, by name and value as
    /// [`Settings::set`] takes them. They are in force for what begins from now on, and the OPTIONS
    /// file has them ([`Settings::stored_in`]). Those that can change say so in
    /// [`Settings::explain`].
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-alter-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.set_settings(&[("background_rate", "20MiB"), ("l0_trigger", "8")])?;
    /// assert_eq!(db.settings().l0_trigger, 8);
    /// assert!(db.set_settings(&[("block_bytes", "8KiB")]).is_err()); // only at an open
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a name that there is none of, a value that it does not take or that
    /// contradicts others, and a setting that can't change; `ReadOnly` for a handle that only reads;
    /// what writing the OPTIONS file gives. Nothing is changed then.
    pub fn set_settings(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.shell.alter(changes)
    }
    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.shell.settings()
    }
    /// The name of the order of this family's keys, as its comparator says it.
    pub fn comparator_name(&self) -> &str {
        self.shell.order().name()
    }
    /// A figure or report by the name that RocksDB gives it, such as `rocksdb.estimate-num-keys`,
    /// `rocksdb.num-files-at-level0` or `rocksdb.stats`; `None` where there is no such thing here.
    /// [`stats`](Db::stats) has the same and more, typed.
    pub fn property(&self, name: &str) -> Option<String> {
        self.shell.property(name)
    }
    /// [`property`](Db::property) for those that are numbers.
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.shell.int_property(name)
    }
    /// Makes a second, independent database of the present state in `path`, which must be absent or
    /// empty, and outside of this database's directory. Tables are hard-linked where the file system can, so this is quick and costs no
    /// space until the two diverge.
    ///
    /// # Errors
    /// `InvalidArgument`, before anything is written, if `path` has something in it or lies in the
    /// database; `Io`, `NoSpace`.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.shell.checkpoint(path.as_ref())
    }
    /// A [`checkpoint`](Db::checkpoint) that may copy small logs instead of flushing memtables, and that has
    /// a log in any case, if only an empty one.
    ///
    /// # Errors
    /// As [`checkpoint`](Db::checkpoint).
    pub fn checkpoint_opt(
        &self,
        path: impl AsRef<Path>,
        options: &CheckpointOptions,
    ) -> Result<()> {
        self.shell.checkpoint_with_log(path.as_ref(), options)
    }
    /// Keeps every table, log and manifest of the database from being deleted until the guard is dropped, so
    /// that another program can copy files that [`live_files`](Db::live_files) names. Guards nest. What has
    /// become obsolete meanwhile takes space until then.
    ///
    /// # Errors
    /// `ShuttingDown` if the database is closed.
    pub fn keep_files(&self) -> Result<KeptFiles> {
        self.shell.keep_files()
    }
    /// Deletes files that nothing reads any more now, rather than a moment later: those that compactions
    /// replaced, and those of dropped families. Files that iterators or snapshots need stay.
    ///
    /// # Errors
    /// `ShuttingDown` if the database is closed; `InvalidArgument` from within a callback.
    pub fn delete_obsolete_files(&self) -> Result<()> {
        self.shell.delete_obsolete_files()
    }
    /// The tables of this family, one by one.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-live-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// db.put(b"apple", b"red")?;
    /// db.put(b"plum", b"blue")?;
    /// db.flush()?;
    /// let files = db.live_files();
    /// assert_eq!((files.len(), files[0].entries, files[0].deletions), (1, 2, 0));
    /// assert_eq!((&files[0].smallest[..], &files[0].largest[..]), (&b"apple"[..], &b"plum"[..]));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.shell.live_files()
    }
    /// The id that the database got when it was made. Checkpoints, backups and what is restored from them
    /// have the same.
    pub fn identity(&self) -> &str {
        self.shell.db_id()
    }
    /// Statistics.
    pub fn stats(&self) -> Stats {
        self.shell.stats()
    }
    /// What limits writing now: the verdict on writes with its cause and figures, the jobs at work
    /// with how far they are and when they will end, what is wanted and waits for them, and what
    /// waits for a slot. Printed, it reads as a report. A handle that only reads explains the tree
    /// as it lies.
    pub fn explain(&self) -> Explanation {
        self.shell.explain()
    }
    /// The tree as the text picture of the documentation.
    pub fn picture(&self) -> String {
        self.shell.picture()
    }
    #[doc(hidden)] // for programs that look for RocksDB's file of that name
    pub fn write_info_log(&self, text: &str) -> Result<()> {
        self.shell.write_info_log(text)
    }
    #[doc(hidden)] // for other languages, whose calls have no place for it
    pub fn note(&self, event: &str, text: &str) {
        self.shell.note(event, &[("text", text.into())]);
    }
    /// Flushes what no log holds, ends background work and closes. Other handles fail from
    /// now on; closing one of them waits for this, and tells the same.
    ///
    /// # Errors
    /// What kept the last writes from being made safe. The database is closed all the same.
    /// `InvalidArgument`, and it stays open, from within a comparator, merge operator, compaction filter
    /// or listener of its own: it would wait for its caller. The last handle may be dropped there;
    /// another thread closes the database then.
    pub fn close(self) -> Result<()> {
        self.shell.close()
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Db({})", shown_path(self.shell.path()))
    }
}
