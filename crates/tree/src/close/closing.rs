//! The end of a database: what no log holds is flushed, jobs end, the log is sealed, the lock goes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lithify_base::{FileId, Result};
use lithify_control::Event;
use lithify_env::sync::atomic::Ordering;
use lithify_env::sync::{Arc, Weak};
use lithify_env::{Ticket, Tuning};
use lithify_files::wal::WalEnd;
use lithify_journal::files::FileName;
use lithify_journal::manifest::{WalAddition, WireEdit};

use crate::shell::Shell;
use crate::shell::calls::CloseLater;
use crate::write::log::{Filling, Log};
use lithify_reports::reentry::refusal_of_listener;
use lithify_writes::errors;

impl Shell {
    /// Ends the database: what no log holds is flushed, jobs end, the log is closed. Only the
    /// first call does it; a later call waits for that and returns the same.
    pub fn close(&self) -> Result<()> {
        self.check_caller()?;
        if self.shared.mark().listeners().is_on() {
            return Err(refusal_of_listener());
        }
        if self.shared.background.progress.closed.swap(true, Ordering::SeqCst) {
            self.shared.resources.env.rt.park(&self.shared.life.ending.over, None);
            return self.shared.life.ending.result.lock().clone();
        }
        let _over = Over(&self.shared.life.ending.over);
        self.families().iter().for_each(|family| family.set_over());
        let result = if self.shared.life.read_only_handle { self.let_go() } else { self.end() };
        if let Some(member) = &self.shared.resources.arenas.shared {
            member.leave();
        }
        self.shared.life.ending.result.lock().clone_from(&result);
        result
    }

    /// The end of a handle that only reads.
    fn let_go(&self) -> Result<()> {
        let log = self.take_turn()?;
        self.shared.writes.turn.close(self.shared.closed_error());
        drop(log);
        self.shared.families.lock().clear();
        Ok(())
    }

    fn end(&self) -> Result<()> {
        self.families()
            .iter()
            .for_each(|family| family.family.gate.hurry(self.shared.closed_error()));
        // What is left is not held back any more, and as fast as it goes.
        self.tell_paused();
        self.shared.resources.limiter.set(0, Tuning::Fixed);
        let mut log = self.take_turn()?;
        // No family comes or goes from now on.
        let families = self.families();
        families.iter().for_each(|family| family.set_over());
        let flushed = match log.refused() {
            None => self.flush_unlogged(&mut log),
            Some(_) => Ok(()),
        };
        // While flushes still work: they take over what a lost log held.
        let synced = self.sync_closing(&mut log);
        let ended = self.end_log(&mut log);
        // Where writes are refused nothing is flushed any more, and what no log holds is lost.
        let lost = log.given_up.is_some() || log.families.iter().any(Filling::lacks_log);
        let kept = log.refused().filter(|_| lost).map_or(Ok(()), Err);
        self.shared.end_logs_ahead(&mut log);
        self.shared.writes.turn.close(self.shared.closed_error());
        self.shared.refuse(&self.shared.closed_error());
        families.iter().for_each(Shell::end_stalls);
        families.iter().for_each(|family| family.drive(Event::Closing));
        self.end_group();
        self.shared.progressed();
        let dropped = self.shared.dropped_families();
        dropped.iter().for_each(Shell::end_reads_of_dropped);
        self.wait_until(None, |shell| {
            let idle = families.iter().chain(&dropped).all(|family| family.is_at_rest());
            let alone = !shell.shared.background.progress.is_under_way();
            Ok((idle && alone).then_some(()))
        })?;
        let told = match self.shared.life.settled.load(Ordering::SeqCst) {
            true => self.forget_history(),
            false => Ok(()),
        };
        // To record the last log is to promise all before it, and one of those may be lost.
        if let Ok(Some((end, bytes))) = &ended
            && end.is_durable()
        {
            self.record_log(end.number(), *bytes);
        }
        drop(log);
        self.shared.background.stop.complete();
        self.shared.resources.env.rt.park(&self.shared.background.stopped, None);
        let heard = self.shared.deliver_rest();
        self.hold_what_is_pinned(families.iter().chain(&dropped));
        self.shared.families.lock().clear();
        self.shared.dropped.lock().clear();
        if heard {
            self.shared.wait_for_jobs();
        }
        // What changes settings writes a file, which is another owner's once the lock is gone.
        drop(self.alone());
        *self.shared.life.lock.lock() = None;
        flushed.and(synced).and(ended.map(drop)).and(kept).and(told)
    }

    /// Starts a new manifest: RocksDB refuses one whose earlier edits tell of stacked runs, too.
    fn forget_history(&self) -> Result<()> {
        self.shared.check_owner()?;
        let Some(mut manifest) = self.shared.queue.lock().manifest.take() else { return Ok(()) };
        self.shared.check_epoch(&manifest)?;
        self.shared.roll(&mut manifest)?;
        self.shared.queue.lock().manifest = Some(manifest);
        Ok(())
    }

    /// No job works for this family, and no edit waits.
    fn is_at_rest(&self) -> bool {
        let core = self.core();
        (core.jobs() == 0 || core.is_halted()) && self.family.work.at_work.lock().is_empty()
    }

    /// Opens the tables of every tree that an iterator still shows: from now on another handle may
    /// delete the files, and only what is open outlives that. One that can't be opened, or is beyond half
    /// the cap of open files, shows as the iterator's error.
    fn hold_what_is_pinned<'a>(&self, families: impl Iterator<Item = &'a Shell>) {
        let pinned: Vec<FileName> = families.flat_map(|f| f.open_what_is_pinned()).collect();
        if let Some(files) = &self.shared.resources.files.capped {
            let dir = &self.shared.resources.dir;
            let pinned: BTreeSet<PathBuf> = pinned.iter().flat_map(|n| dir.paths_of(*n)).collect();
            files.hold(|path| pinned.contains(path));
        }
    }

    /// Opens the tables of this family that an iterator still shows; their names.
    fn open_what_is_pinned(&self) -> Vec<FileName> {
        let now = self.family.views.current.load_full();
        let trees = std::mem::take(&mut *self.family.views.trees.lock());
        let mut pinned = Vec::new();
        for tree in trees.iter().filter_map(Weak::upgrade) {
            // Held by `current` (once more by `now`) and by the line above, if by nothing else.
            let is_current = Arc::ptr_eq(&tree, &now.tree);
            if is_current && Arc::strong_count(&now) <= 2 && Arc::strong_count(&tree) <= 2 {
                continue;
            }
            for slot in tree.runs.iter().flat_map(|run| run.slots.iter()) {
                let _ = slot.reader(&self.family.tables);
                let number = slot.file.backing.unwrap_or(slot.file.id).0;
                pinned.extend([FileName::Table(number), FileName::LevelDbTable(number)]);
            }
        }
        pinned
    }

    /// Waits until no memtable holds writes that no log holds.
    fn flush_unlogged(&self, log: &mut Log) -> Result<()> {
        let which: Vec<usize> =
            (0..log.families.len()).filter(|at| log.families[*at].unlogged).collect();
        if !which.is_empty() {
            self.freeze(log, &which)?;
        }
        for family in &log.families {
            self.shared.shell(family.family.clone()).wait_flushed(family.unlogged_before)?;
        }
        Ok(())
    }

    /// Seals and syncs the last log; how it ended, and with how many bytes, if there is one and it still counts.
    fn end_log(&self, log: &mut Log) -> Result<Option<(WalEnd, u64)>> {
        let Some(mut wal) = log.wal.take() else { return Ok(None) };
        let ended = wal.end().and_then(|end| wal.close().map(|bytes| (end, bytes)));
        match ended {
            Ok(end) => Ok(Some(end)),
            Err(e) if errors::is_lost(&e) && log.refused().is_none() => {
                self.replace_log(log, e).map(|()| None)
            }
            Err(e) => Err(e),
        }
    }

    /// Notes in the manifest that the last log is whole, so that the next open misses what
    /// someone removes or cuts off meanwhile. The log is as safe without.
    fn record_log(&self, number: FileId, bytes: u64) {
        if self.shared.check_owner().is_err() {
            return;
        }
        let Some(mut manifest) = self.shared.queue.lock().manifest.take() else { return };
        if self.shared.check_epoch(&manifest).is_err() {
            return;
        }
        let addition = WalAddition { number: number.0, synced: Some(bytes) };
        let edit = WireEdit { wal_additions: vec![addition], ..WireEdit::default() };
        if manifest.uncertain().is_none()
            && let Err(e) = manifest.commit(&[edit])
        {
            self.note("log_not_recorded", &[("cause", e.to_string().into())]);
        }
    }
}

/// Completes its ticket, whatever happens.
struct Over<'a>(&'a Ticket);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.complete();
    }
}

/// Closes the database when the last handle goes.
pub struct Closer(pub(crate) Shell);

impl Drop for Closer {
    fn drop(&mut self) {
        if self.0.shared.check_home().is_err() {
            // A copy in a forked child: what would be dropped with it is the parent's.
            std::mem::forget(self.0.clone());
            return;
        }
        if self.0.shared.mark().is_on() || self.0.shared.mark().listeners().is_on() {
            self.0.shared.resources.env.rt.spawn_apart(Box::new(CloseLater(self.0.clone())));
            return;
        }
        // No handle is left to tell of an error; `Db::close` is there for those who want to know.
        let _ = self.0.close();
    }
}
