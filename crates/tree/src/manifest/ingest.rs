//! Taking in tables from outside: ingestion.
//!
//! The files are brought into the directory and checked before anything else happens. Then the write turn is taken, so that
//! no write is under way, and under it: the memtable is frozen, and flushed if it has keys of theirs; the files get the
//! next sequence number, one for all; the core places each on top of what it overlaps and commits them in one edit; another
//! empty memtable takes the place of the active one; the number is published.
//!
//! ```text
//!   writes ..., 41   freeze   files at 42: placed, committed, installed   renew   publish 42   writes 43, ...
//! ```
//!
//! - Why the memtable is renewed behind the install: a reader that holds a tree of before must not find write 43 in a
//!   memtable it knows while it does not see 42.
//! - Why a snapshot of 41 is held meanwhile: between install and publication the files are in the tree, and a compaction
//!   must not take 42 for visible to all.
//! - Why the logs are synced first: the files are durable at once, and what is durable is a first part of all writes.
//!
//! Keeps: after a crash all files of one call are there or none, and every write before them.
//! Leaves to others: bringing and checking (`lithify_store::ingest`), the place (`lithify_plan::place`).

use std::path::PathBuf;

use lithify_base::{Error, KeyRange, Result, shown_path};
use lithify_control::{Event, Outside};
use lithify_env::sync::atomic::Ordering;
use lithify_lsm::FileMeta;
use lithify_store::ingest::{Bring, StagedTable};

use crate::shell::Shell;
use crate::write::Held;
use crate::write::log::{Filling, Log};
use lithify_reports::progress::UnderWay;
use lithify_views::operands;

/// How tables from outside come into the database's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// Copied. The originals stay as they are.
    #[default]
    Copy,
    /// By a second name for the same file (a hard link), or copied where the file system has none.
    /// The originals stay and must not be written to any more.
    Link,
    /// Linked or copied, and the originals removed once the database has them for good.
    Move,
}

/// Options of an ingestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestOptions {
    /// How the files come into the directory. Default: [`Transfer::Copy`].
    pub transfer: Transfer,
}

impl Shell {
    /// Takes in tables that were written outside, all at once.
    ///
    /// # Errors
    /// Nothing was taken in: `InvalidArgument` if there is no file, or two overlap; `Unsupported` for a
    /// table that does not fit; `Corruption`, `Io`, `NoSpace`; `ReadOnly`. `OutcomeUnknown` if the
    /// manifest could not be written.
    pub fn ingest(&self, paths: &[PathBuf], options: &IngestOptions) -> Result<()> {
        self.check_caller()?;
        // The names of its files are those of the next owner once the database is closed.
        let _under_way = UnderWay::new(&self.shared.background.progress);
        self.check_open()?;
        if let Some(error) = self.family.gate.refused() {
            return Err(error);
        }
        let files = self.bring(paths, options)?;
        let mut held = Held::new(self, self.take_turn()?);
        self.take_in(held.log(), files)?;
        drop(held);
        if options.transfer == Transfer::Move {
            for path in paths {
                if let Err(e) = self.shared.resources.env.fs.unlink(path) {
                    self.note("original_not_removed", &[("cause", e.to_string().into())]);
                }
            }
        }
        Ok(())
    }

    /// Brings the files into the directory, checks them, and puts them in order.
    fn bring(&self, paths: &[PathBuf], options: &IngestOptions) -> Result<Vec<StagedTable>> {
        let how = match options.transfer {
            Transfer::Copy => Bring::Copy,
            Transfer::Link | Transfer::Move => Bring::Link,
        };
        let order = self.super_version().tree.version.comparator().clone();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let new = StagedTable::bring(
                self.context().table_dirs.first(),
                path,
                self.shared.next_file(),
                how,
                &order,
            )?;
            operands::check_staged(new.operands_for(), self.context().operator.as_ref())
                .map_err(|e| e.in_file(shown_path(path)))?;
            files.push((new, path));
        }
        files.sort_by(|(a, _), (b, _)| order.compare(&a.range().lo, &b.range().lo));
        if files.is_empty() {
            return Err(Error::invalid("no table was named; name at least one"));
        }
        if let Some(w) =
            files.windows(2).find(|w| !w[0].0.range().is_before(w[1].0.range(), &*order))
        {
            return Err(Error::invalid(format!(
                "{} and {} overlap; ingest them one after the other, the newer one last",
                shown_path(&w[0].1),
                shown_path(&w[1].1)
            )));
        }
        Ok(files.into_iter().map(|(new, _)| new).collect())
    }

    /// Under the write turn: gives the files the next number and a place.
    fn take_in(&self, log: &mut Log, mut files: Vec<StagedTable>) -> Result<()> {
        if let Some(error) = self.family.gate.refused() {
            return Err(error);
        }
        let ranges: Vec<KeyRange> = files.iter().map(|f| f.range().clone()).collect();
        self.make_way(log, &ranges)?;
        self.shared.check_owner()?;
        files.iter_mut().try_for_each(StagedTable::settle)?;
        self.context().table_dirs.first().sync()?;
        self.recall(log)?;
        let fresh = self.family.new_memtable(&self.shared.resources.arenas)?;
        // Whatever comes of it, the number is used up: the manifest may name it.
        let seq = log.next_seq;
        let _before = self.shared.snapshots.take(|| seq - 1);
        log.next_seq += 1;
        log.gap = true;
        let files: Vec<FileMeta> = files.into_iter().map(|f| f.numbered(seq)).collect();
        let (count, bytes) = (files.len() as u64, files.iter().map(|f| f.bytes).sum::<u64>());
        let done = self.outside(Outside::Ingest { files });
        log.renew(self.family.cf, fresh);
        self.shared.writes.published.store(seq, Ordering::Release);
        done?;
        let fields = [("files", count.into()), ("bytes", bytes.into()), ("sequence", seq.into())];
        self.note("ingested", &fields);
        Ok(())
    }

    /// Sees to it that everything written so far is durable, and that no memtable has keys of
    /// `ranges`.
    fn make_way(&self, log: &mut Log, ranges: &[KeyRange]) -> Result<()> {
        let order = self.order();
        let overlap = self.super_version().mems.iter().any(|m| {
            let keys = m.table.range();
            keys.is_some_and(|keys| ranges.iter().any(|r| r.overlaps(&keys, order)))
        });
        // What no log holds, or only a lost one, is durable once it is in tables.
        let own = log.at(self.family.cf).map(|at| &log.families[at]);
        let unlogged = own.is_some_and(Filling::lacks_log) || log.given_up.is_some();
        let last = self.freeze_for_flush(log)?;
        if !log.is_alone() || self.shared.needs_sections() {
            // The log of now may hold what other families wrote before, and what is in no memtable.
            self.sync_held(log)?;
        }
        // A copy under way takes no log along: what was written before has to be in tables.
        let copied = self.shared.writes.copies.load(Ordering::SeqCst) > 0;
        match overlap || unlogged || copied {
            true => self.wait_flushed(last),
            false => self.sync_closing(log),
        }
    }

    /// Has a change from outside made, and waits until it is in the tree that readers see.
    pub(crate) fn outside(&self, request: Outside) -> Result<()> {
        let id = self.family.work.next_manual.fetch_add(1, Ordering::Relaxed);
        self.drive(Event::Outside { id, request });
        self.wait_manual(id)
    }
}
