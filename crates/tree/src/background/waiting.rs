//! What callers wait for: a flush, a manual compaction, silence. They wait without the core's lock
//! and look again at every progress; the core knows that they do, so that work they wait for is not
//! done one job at a time.

use std::time::Duration;

use lithify_base::{KeyRange, Result};
use lithify_control::{Event, MemId};
use lithify_env::Wake;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_plan::ManualRequest;

use crate::options::CompactOptions;
use crate::shell::{Shell, WeakShell};
use crate::write::Held;
use crate::write::log::Log;
use lithify_reports::cancel::{CancelToken, Cancels};

impl Shell {
    /// Waits until `done` says so, asking again at every progress.
    pub(crate) fn wait_until<T>(
        &self,
        limit: Option<Duration>,
        mut done: impl FnMut(&Shell) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let deadline = limit.map(|l| self.shared.resources.env.rt.now() + l);
        loop {
            let ticket = self.shared.background.progress.next();
            if let Some(answer) = done(self)? {
                return Ok(Some(answer));
            }
            if self.shared.resources.env.rt.park(&ticket, deadline) == Wake::TimedOut {
                return done(self);
            }
        }
    }

    /// Freezes the memtable and waits until it is in the tree.
    pub fn flush(&self) -> Result<()> {
        let mut held = Held::new(self, self.take_turn()?);
        let frozen = self.freeze_for_flush(held.log());
        drop(held);
        self.wait_flushed(frozen?)
    }

    /// Freezes the memtable unless it is empty; what to wait for.
    pub(crate) fn freeze_for_flush(&self, log: &mut Log) -> Result<Option<MemId>> {
        if let Some(error) = self.family.gate.refused() {
            return Err(error);
        }
        let at = log.at(self.family.cf).ok_or_else(|| self.shared.stranger(self.family.cf))?;
        if !log.families[at].table.is_empty() {
            self.freeze(log, &[at])?;
        }
        // Older frozen memtables are part of what the caller wants on disk.
        Ok(log.families[at].id.0.checked_sub(1).filter(|n| *n > 0).map(MemId))
    }

    pub(crate) fn wait_flushed(&self, last: Option<MemId>) -> Result<()> {
        last.map_or(Ok(()), |last| self.wait_all_flushed(&[(self.clone(), last)]))
    }

    /// The same for several families.
    pub(crate) fn wait_all_flushed(&self, all: &[(Shell, MemId)]) -> Result<()> {
        let everyone: Vec<(Shell, u64)> = self
            .families()
            .into_iter()
            .map(|family| {
                let troubles = family.core().failed_flushes().0;
                (family, troubles)
            })
            .collect();
        self.wait_until(None, |_| {
            let mut done = true;
            for (family, last) in all {
                if family.is_flushed(*last)? {
                    continue;
                }
                done = false;
                let others = family.waits_in_group();
                let waited_for = |f: &Shell| others || f.family.cf == family.family.cf;
                let mut waited_for = everyone.iter().filter(|(f, _)| waited_for(f));
                waited_for.try_for_each(|(f, troubles)| f.check_flushes_since(*troubles))?;
                family.family.gate.refused().map_or(Ok(()), Err)?;
            }
            Ok(done.then_some(()))
        })?;
        Ok(())
    }

    /// Whether the memtables up to `last` are in the tree.
    ///
    /// # Errors
    /// If the family was dropped.
    fn is_flushed(&self, last: MemId) -> Result<bool> {
        // What counts is what readers see: the core knows a little earlier.
        if self.family.views.current.load().mems.iter().all(|m| m.id > last) {
            return Ok(true);
        }
        if self.is_dropped() {
            return Err(self.family.dropped_error());
        }
        Ok(false)
    }

    /// Why a flush failed, if flushes did more often than `troubles` times. It will be tried again, but
    /// those who wait shall know.
    fn check_flushes_since(&self, troubles: u64) -> Result<()> {
        match self.core().failed_flushes() {
            (now, Some(error)) if now > troubles => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Compacts `range` (all keys if `None`) and waits for it, unless it is called off.
    pub fn compact(&self, range: Option<KeyRange>, options: &CompactOptions) -> Result<()> {
        let request = ManualRequest {
            up_to: Some(self.shared.writes.published.load(Ordering::Acquire)),
            rewrite_before: options.rewrite.then(|| self.shared.next_file()),
            ..ManualRequest::new(range)
        };
        self.serve(request, options.cancel.as_ref())
    }

    /// Has a request served, and waits for it, unless it is called off.
    pub(crate) fn serve(&self, request: ManualRequest, cancel: Option<&CancelToken>) -> Result<()> {
        if let Some(error) = self.family.gate.refused() {
            return Err(error);
        }
        let id = self.family.work.next_manual.fetch_add(1, Ordering::Relaxed);
        self.drive(Event::Manual { id, request });
        let cancel = cancel.map(|cancel| (cancel, Arc::new(self.weak()) as Arc<dyn Cancels>));
        if let Some((cancel, me)) = &cancel {
            cancel.covers(me, id);
        }
        let result = self.wait_manual(id);
        if let Some((cancel, me)) = &cancel {
            cancel.forget(me, id);
        }
        result
    }

    /// Waits for the answer to request `id`.
    pub(crate) fn wait_manual(&self, id: u64) -> Result<()> {
        self.wait_until(None, |shell| Ok(shell.family.work.manual_results.lock().remove(&id)))?
            .unwrap_or(Ok(()))
    }

    /// Waits until all families have nothing left to do, at most `limit`; true if that is so.
    pub fn wait_all_idle(&self, limit: Option<Duration>) -> Result<bool> {
        let deadline = limit.map(|limit| self.shared.resources.env.rt.now() + limit);
        for family in self.families() {
            let left = deadline.map(|at| at.since(self.shared.resources.env.rt.now()));
            if !family.wait_idle(left)? && !family.is_dropped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn wait_idle(&self, limit: Option<Duration>) -> Result<bool> {
        self.check_caller()?;
        // What kept compactions from starting a moment ago may be over.
        self.shared.look_at_disk();
        let failed = self.core().failed_compactions();
        let _awaited = Awaiting::new(self);
        let idle = self.wait_until(limit, |shell| {
            let (idle, installs) = {
                let core = shell.core();
                // It will be tried again, but those who wait shall know.
                if let Some(error) = core.compaction_failure()
                    && (core.is_idle() || core.failed_compactions() > failed)
                {
                    return Err(error.clone());
                }
                (core.is_idle(), core.installs())
            };
            if idle && shell.family.views.current.load().no >= installs {
                return Ok(Some(()));
            }
            match shell.family.gate.refused() {
                Some(error) => Err(error),
                None => Ok(None),
            }
        })?;
        Ok(idle.is_some())
    }

    /// Switches automatic compaction of this family on or off.
    pub fn set_auto_compaction(&self, on: bool) {
        if self.shared.life.read_only_handle || self.check_caller().is_err() {
            return; // its tree is as it was left, whatever is due
        }
        self.alter_auto_compaction(on);
    }
}

/// While it lives, the core knows of one caller more that waits.
struct Awaiting<'a>(&'a Shell);

impl Awaiting<'_> {
    fn new(shell: &Shell) -> Awaiting<'_> {
        shell.family.work.awaited.fetch_add(1, Ordering::Relaxed);
        shell.tell_awaited();
        Awaiting(shell)
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        self.0.family.work.awaited.fetch_sub(1, Ordering::Relaxed);
        self.0.tell_awaited();
    }
}

impl Shell {
    fn tell_awaited(&self) {
        if !self.shared.life.read_only_handle {
            self.drive_by(|| Event::Awaited {
                by: self.family.work.awaited.load(Ordering::Relaxed),
            });
        }
    }
}

impl Cancels for WeakShell {
    fn cancel(&self, id: u64) {
        if let Some(shell) = self.upgrade() {
            shell.tell_from_anywhere(move |shell| shell.drive(Event::CancelManual { id }));
        }
    }
}
