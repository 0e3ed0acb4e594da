//! A follower: a reader in another process that keeps up with the one that writes.
//!
//! It never writes and takes no lock. Each time it catches up it reads the manifest and the logs that
//! count anew, opens every table, and shows the result at once. Readers of the view before go on
//! undisturbed: a table that is open outlives its deletion, and the tables of a view stay open as long as
//! the view is held ([`lithify_env::SharedFs`]). Views share what they have in common.
//!
//! The primary goes on meanwhile. It deletes a table, or a log that was written to, only after an edit of the
//! manifest that makes it obsolete, so a look during which the manifest has not grown has met all files of
//! one moment. Otherwise it is taken again. Logs grow without an edit, and a new one may begin: what
//! a look takes of them ends where the logs that had begun ended ([`lithify_files::wal::replay`]).
//!
//! Keeps: a view is what the primary's log and manifest held at one moment: each write is in it
//! whole, with all before it.
//! Leaves to others: reading manifest and logs (`open`).

use std::path::{Path, PathBuf};

use arc_swap::ArcSwap;
use lithify_base::{Error, ErrorKind, FileId, Result, shown_path};
use lithify_env::Env;
use lithify_env::sync::Arc;
use lithify_files::dir::Dir;
use lithify_files::wal::end_of_log;
use lithify_journal::files::FileName;

use lithify_tree::{Handle, OpenOptions, follower_fs, open_reading};

use crate::db::Db;

/// How often a primary that commits meanwhile is looked at anew. It commits a few times a second, and
/// a look takes milliseconds.
const TRIES: usize = 20;

/// Follows a database that another process, or another handle of this one, writes.
///
/// A view, its iterators and its snapshots stay readable as long as they are held, whatever the
/// primary deletes. For that, every table of a view stays open: one descriptor for each table that any
/// view has which is still held, however many views have it. [`max_open_files`](crate::Settings::max_open_files) does not
/// count here; three quarters of what the process may open (`ulimit -n`) do, when the follower is opened. Where the
/// tables are more, [`catch_up`](Follower::catch_up) fails and the view stays as it was.
///
/// ```
/// # fn main() -> lithify::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("lithify-follower-{}", std::process::id()));
/// use lithify::{Builder, Db, Settings};
///
/// let primary = Db::open(&dir, Settings::default())?;
/// let follower = Builder::new(Settings::default()).open_follower(&dir)?;
/// primary.put(b"a", b"1")?;
/// assert!(follower.view().get(b"a")?.is_none());
/// assert!(follower.catch_up()?);
/// assert_eq!(follower.view().get(b"a")?.as_deref(), Some(&b"1"[..]));
/// # primary.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
pub struct Follower {
    source: Source,
    now: ArcSwap<View>,
}

/// What is looked at, and how.
struct Source {
    path: PathBuf,
    with: OpenOptions,
    /// Of the builder.
    env: Env,
}

/// What was there at one look.
struct View {
    db: Db,
    seen: Seen,
}

/// What changes when the primary writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    manifest: u64,
    manifest_bytes: u64,
    /// Numbers, and where they end.
    logs: Vec<(u64, u64)>,
}

impl Seen {
    fn log_numbers(&self) -> Vec<u64> {
        self.logs.iter().map(|log| log.0).collect()
    }
}

impl Follower {
    pub(crate) fn open(mut with: OpenOptions, path: &Path) -> Result<Follower> {
        let mut env = with.world();
        env.fs = Arc::new(follower_fs(env.fs));
        with.env = Some(env.clone());
        let source = Source { path: path.to_owned(), with, env };
        let now = ArcSwap::from_pointee(source.look()?);
        Ok(Follower { source, now })
    }

    /// The database as it was at the last look; a handle that only reads. It stays as it is for as long
    /// as the handle, or an iterator of it, is held.
    pub fn view(&self) -> Db {
        self.now.load().db.clone()
    }

    /// Looks at what the primary has written since; true if there was something. Writes that it keeps
    /// in its own memory ([`Durability::Buffered`](crate::Durability::Buffered), `NoWal`) show once
    /// they are written out or flushed. It costs a read of the logs that are not flushed yet, and of the
    /// end of every table.
    ///
    /// # Errors
    /// The view stays as it was. As [`Db::open_read_only`]; `Io` if the tables are more than may be open:
    /// raise the limit of the process (`ulimit -n`), let go of older views, or wait until the primary has
    /// compacted. `Stalled` if the primary changes files faster than they can be looked at: try again.
    pub fn catch_up(&self) -> Result<bool> {
        let before = self.now.load_full();
        if seen(&self.source.dir()?)?.as_ref() == Some(&before.seen) {
            return Ok(false);
        }
        let new = Arc::new(self.source.look()?);
        // Of two that look at the same time, the one that saw less may come second.
        self.now.rcu(|now| match Arc::ptr_eq(now, &before) || now.moment() < new.moment() {
            true => new.clone(),
            false => now.clone(),
        });
        Ok(true)
    }
}

impl View {
    /// Rises as the primary writes.
    fn moment(&self) -> (u64, u64, u64) {
        (self.seen.manifest, self.seen.manifest_bytes, self.db.shell.published())
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Follower({})", shown_path(&self.source.path))
    }
}

/// What the directory has now; `None` if it holds no database.
fn seen(dir: &Dir) -> Result<Option<Seen>> {
    let Some(manifest) = dir.read_current()? else { return Ok(None) };
    let manifest_bytes = dir.len_of(FileName::Manifest(manifest))?.unwrap_or(0);
    let logs = dir.list()?.into_iter().filter_map(|entry| match entry.file {
        Some(FileName::Wal(number)) => Some(number),
        _ => None,
    });
    let logs = logs.map(|number| Ok((number, end_of_log(dir, FileId(number))?)));
    Ok(Some(Seen { manifest, manifest_bytes, logs: logs.collect::<Result<_>>()? }))
}

impl Source {
    fn dir(&self) -> Result<Dir> {
        Dir::new(self.env.fs.clone(), &self.path).hold_if_there()
    }

    fn open(&self) -> Result<Db> {
        let db = open_reading(self.with.clone(), &self.path, Handle::Follows).map(Db::from)?;
        db.shell.families().iter().try_for_each(|family| family.open_tables())?;
        Ok(db)
    }

    /// Looks until the manifest stays as it is meanwhile.
    fn look(&self) -> Result<View> {
        let dir = self.dir()?;
        let mut last = None;
        for _ in 0..TRIES {
            let before = seen(&dir)?;
            let opened = self.open();
            let after = seen(&dir)?;
            let manifest =
                |seen: &Option<Seen>| seen.as_ref().map(|s| (s.manifest, s.manifest_bytes));
            // A close takes away the log that was made ahead.
            let logs = |seen: &Option<Seen>| seen.as_ref().map(Seen::log_numbers);
            let same = manifest(&before) == manifest(&after);
            match (opened, before) {
                (Ok(db), Some(seen)) if same => return Ok(View { db, seen }),
                // Nothing changed under it: that is how it is.
                (Err(e), before) if same && logs(&before) == logs(&after) => return Err(e),
                (result, _) => last = result.err(),
            }
        }
        let what = "the primary changed its files during every look; try again";
        let error = Error::new(ErrorKind::Stalled, what).in_file(shown_path(&self.path));
        Err(match last {
            Some(cause) => error.caused_by(cause),
            None => error,
        })
    }
}
