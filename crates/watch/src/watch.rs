//! One database under observation: a look at it, and what is kept of the looks before.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use lithify_env::{OpenOpts, lock_holders};
use lithify_files::Dir;
use lithify_journal::files::FileName;
use lithify_store::manifest::Recovered;

use crate::events::{EventLog, Session};
use crate::growth::{Amount, Growth};
use crate::history::{History, Sample};
use crate::tree::{self, Drawn, TREES_MAX, Trees, dir_of, draw};

/// How often a manifest that its writer replaces while we read it is tried again.
const TRIES: usize = 5;

/// A database that is looked at now and then.
pub struct Watch {
    path: PathBuf,
    dir: Dir,
    log: EventLog,
    growth: Growth,
    tree: Option<Tree>,
    /// What the last look found.
    pub(crate) last: Look,
    history: History,
}

/// The trees as the manifest last said.
struct Tree {
    /// The manifest's number and length: as long as they stand, it says the same.
    stamp: (u64, u64),
    found: Recovered,
    drawn: Vec<Drawn>,
    /// The tables of all of them, wherever they are.
    tables: Amount,
}

/// What a look found.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When it was, from the first one on.
    pub at: Duration,
    /// The process that has the database open; 0 if the system hides which.
    pub owner: Option<u32>,
    /// What its event log says of the last opening; `None` without a log. Of a process that is gone nothing goes on.
    pub session: Option<Session>,
    /// The event log's clock.
    pub now: u64,
    /// Microseconds that writes were stopped and slowed since that opening.
    pub(crate) held: [u64; 2],
    /// Where the process that wrote this event log is gone, the log's clock when it was last seen.
    gone: Option<u64>,
}

impl Look {
    /// What is found after `self`, `at` after the first look, while the world's clock says `unix`.
    fn next(
        &self,
        at: Duration,
        owner: Option<u32>,
        session: Option<Session>,
        unix: Duration,
    ) -> Look {
        let mut look = Look { at, owner, session, ..Look::default() };
        let Some(session) = &mut look.session else { return look };
        let before = self.session.as_ref().filter(|b| b.is_of_the_opening_of(session));
        // One that opens the database reads its logs before it writes of itself.
        let is_silent = before.is_some_and(|before| before.last == session.last);
        let is_gone = owner.is_none() || is_silent && (self.gone.is_some() || owner != self.owner);
        let (seen, held) =
            before.map_or((0, [0; 2]), |_| (self.gone.unwrap_or(self.now), self.held));
        look.now = session.now(unix);
        if is_gone {
            session.end(*look.gone.insert(seen.max(session.last)));
        }
        // The world's clock may have been set, or have gone on while the machine slept.
        let counted = session.held_back(look.now);
        look.held = [0, 1].map(|kind| counted[kind].max(held[kind]));
        look
    }

    /// Microseconds that writes were stopped and slowed since the look `before`.
    fn held_since(&self, before: &Look) -> [u64; 2] {
        let (Some(now), Some(then)) = (&self.session, &before.session) else { return [0; 2] };
        let held = if now.is_of_the_opening_of(then) { before.held } else { [0; 2] };
        [0, 1].map(|kind| self.held[kind] - held[kind])
    }
}

impl Watch {
    /// The database in `path`.
    ///
    /// # Errors
    /// If the directory can't be opened.
    pub fn new(path: &Path) -> Result<Watch> {
        Ok(Watch {
            path: path.to_owned(),
            dir: dir_of(path)?,
            log: EventLog::default(),
            growth: Growth::default(),
            tree: None,
            last: Look::default(),
            history: History::default(),
        })
    }

    /// A look, `at` after the first one.
    ///
    /// # Errors
    /// If there is no database, or its manifest is damaged. The next look may go well.
    pub fn look(&mut self, at: Duration) -> Result<&Look> {
        if let Err(error) = self.look_once(at) {
            // Another directory may have taken the place of the one that is held.
            self.dir = dir_of(&self.path)?;
            return Err(error);
        }
        Ok(&self.last)
    }

    fn look_once(&mut self, at: Duration) -> Result<()> {
        // A page that asks what is new since a look names that look in milliseconds.
        let at = Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let written = self.last.session.as_ref().map(Session::written);
        let session = self.log.catch_up(&self.dir)?.cloned();
        let look = self.last.next(at, owner(&self.dir), session, unix_now());
        let held = look.held_since(&self.last);
        self.last = look;
        let now_written = self.last.session.as_ref().map_or([0; 2], Session::written);
        // A database that was opened anew counts from there.
        let before_written = written.unwrap_or(now_written);
        let told = [0, 1].map(|kind| now_written[kind].saturating_sub(before_written[kind]));
        self.growth.look(&self.dir, told, at)?;
        self.read_trees()?;
        if self.growth.span() > Duration::ZERO {
            let jobs = self.last.session.as_ref().map_or(0, |session| session.jobs.len());
            self.history.add(Sample {
                at,
                span: self.growth.span(),
                grown: self.growth.added(),
                held,
                l0: self.drawn().iter().map(|tree| tree.l0).max().unwrap_or(0),
                jobs: jobs as u32,
                disk: self.tables().bytes,
            });
        }
        Ok(())
    }

    fn read_trees(&mut self) -> Result<()> {
        let mut tries = 1;
        loop {
            match self.read_trees_once() {
                Err(_) if tries < TRIES => tries += 1,
                ended => return ended,
            }
        }
    }

    fn read_trees_once(&mut self) -> Result<()> {
        // Before the manifest: an edit that comes in between is read again at the next look.
        let number = self.dir.read_current()?;
        let len = number.map(|n| self.dir.len_of(FileName::Manifest(n))).transpose()?.flatten();
        let stamp = (number.unwrap_or(0), len.unwrap_or(0));
        if self.tree.as_ref().is_some_and(|tree| tree.stamp == stamp) {
            return Ok(());
        }
        let found = tree::read_in(&self.dir, &self.path)?;
        let (mut drawn, mut tables) = (Vec::new(), Amount::default());
        Trees(&found.state).each(|_, name, version| {
            tables.files += version.file_count() as u64;
            tables.bytes = tables.bytes.saturating_add(version.all_bytes());
            if drawn.len() < TREES_MAX {
                drawn.push(draw(name, version));
            }
            Ok(())
        })?;
        self.tree = Some(Tree { stamp, found, drawn, tables });
        Ok(())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// How its files grow.
    pub fn growth(&self) -> &Growth {
        &self.growth
    }
    /// Its trees, after a look.
    pub fn trees(&self) -> Option<Trees<'_>> {
        self.tree.as_ref().map(|tree| Trees(&tree.found.state))
    }
    /// The first of its trees as bars.
    pub fn drawn(&self) -> &[Drawn] {
        self.tree.as_ref().map_or(&[], |tree| &tree.drawn)
    }
    /// The tables of all trees, after a look.
    pub fn tables(&self) -> Amount {
        self.tree.as_ref().map(|tree| tree.tables).unwrap_or_default()
    }
    /// The last write that the manifest knows.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.tree.as_ref().map_or(0, |tree| tree.found.state.last_seq)
    }
    /// How many column families there are.
    pub(crate) fn families(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.found.state.families.len())
    }
    /// What looks after `after` found.
    pub fn since(&self, after: Duration) -> &[Sample] {
        self.history.since(after)
    }
    /// Bytes written to tables for each byte that came in: by the event log since the database was opened, or without one
    /// by the sizes of logs and tables since the first look.
    pub fn write_amplification(&self) -> Option<f64> {
        let by_events = self.last.session.as_ref().and_then(Session::write_amplification);
        by_events.or_else(|| self.growth.write_amplification())
    }
}

/// The process that has the database in `dir` open; 0 if the system hides which.
pub fn owner(dir: &Dir) -> Option<u32> {
    let lock = dir.open_file(FileName::Lock, OpenOpts::read()).ok()?;
    let holders = lock_holders(lock.identity()?);
    // Readers of the file hold it shared.
    holders.into_iter().find(|holder| !holder.shared).map(|holder| holder.process)
}

/// The time since 1970.
pub fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
