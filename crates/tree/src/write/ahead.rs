//! The next log, made before it is needed: a new file's name is durable once the directory is synced, which may take
//! tens of milliseconds, and the writer whose memtable is full would wait for that.
//!
//! When a log has ended, a job makes the log that follows the one that is written now. The next freeze takes it, if
//! it is there by then; else it is made when the first write wants it, as the first two of all are. A database that closes deletes
//! it. A crash leaves it empty, which replay passes over.
//!
//! Its number is kept for it when the log before it begins, so that which numbers files have does not depend on who is faster.
//!
//! Keeps: logs have rising numbers; none is made once the database has closed.

use lithify_base::FileId;
use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Step, Ticket};
use lithify_files::FileName;
use lithify_files::wal::NewLog;

use super::log::Log;
use crate::shared::Shared;

/// The log after the one that is written.
#[derive(Default)]
pub(crate) enum Ahead {
    /// There is nothing to make: no number is kept for it yet, or making it failed.
    #[default]
    None,
    /// It is to have this number.
    Wanted(FileId),
    /// It is being made, which completes this.
    Making(Ticket),
    /// It is there.
    Made(NewLog),
    /// None is made any more.
    Over,
}

/// The making of a log. When it goes, in a panic as well, it leaves what was made and wakes those that wait.
struct Making<'a> {
    shared: &'a Shared,
    done: Ticket,
    made: Option<NewLog>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        *self.shared.writes.ahead.lock() = self.made.take().map_or(Ahead::None, Ahead::Made);
        self.done.complete();
    }
}

struct MakeLog(Arc<Shared>);

impl Job for MakeLog {
    fn step(&mut self) -> Step {
        self.0.make_log_ahead();
        Step::Done
    }
    /// A writer that needs it before makes it.
    fn panicked(&mut self, _: String) {}
}

impl Shared {
    /// Has it made in the background.
    pub(super) fn spawn_log_ahead(self: &Arc<Shared>) {
        let job = self.resources.alive.counted(Box::new(MakeLog(self.clone())));
        self.resources.env.rt.spawn(Class::Io, job);
    }

    /// Makes it, unless it is there. Where that fails, who needs a log makes it, and learns why.
    fn make_log_ahead(self: &Arc<Shared>) {
        let done = Ticket::new();
        let number = {
            let mut ahead = self.writes.ahead.lock();
            let Ahead::Wanted(number) = *ahead else { return };
            *ahead = Ahead::Making(done.clone());
            number
        };
        let mut making = Making { shared: self, done, made: None };
        if self.check_owner().is_ok() {
            making.made = self.resources.new_log(number).ok();
        }
    }

    /// Goes on to the next log: the number that was kept for it, with the log if it was made, and keeps a number for the
    /// one after it.
    pub(super) fn next_log(self: &Arc<Shared>, log: &mut Log) {
        self.drop_log(log.made.take());
        log.wal_number = log.next_wal.take().unwrap_or_else(|| self.next_file());
        let next = self.next_file();
        log.next_wal = Some(next);
        let made = self.replace_ahead(Ahead::Wanted(next));
        match made.as_ref().is_some_and(|made| made.number() == log.wal_number) {
            true => log.made = made,
            // Made under a number that is not used any more.
            false => self.drop_log(made),
        }
    }

    /// Deletes it, and none is made from now on. Nor does one stay that `log` took and wrote nothing to.
    pub(crate) fn end_logs_ahead(self: &Arc<Shared>, log: &mut Log) {
        self.drop_log(log.made.take());
        self.drop_log(self.replace_ahead(Ahead::Over));
    }

    /// The log that was made ahead, once none is being made any more, with `next` in its place.
    fn replace_ahead(self: &Arc<Shared>, next: Ahead) -> Option<NewLog> {
        loop {
            let making = {
                let mut ahead = self.writes.ahead.lock();
                match &*ahead {
                    Ahead::Making(making) => making.clone(),
                    Ahead::Over => return None,
                    _ => match std::mem::replace(&mut *ahead, next) {
                        Ahead::Made(made) => return Some(made),
                        _ => return None,
                    },
                }
            };
            self.resources.env.rt.park(&making, None);
        }
    }

    /// Deletes a log, if there is one, that nothing was written to; one that stays is empty and says nothing.
    fn drop_log(self: &Arc<Shared>, made: Option<NewLog>) {
        if let Some(made) = made
            && self.check_owner().is_ok()
        {
            let _ = self.resources.dir.remove(FileName::Wal(made.number().0));
        }
    }
}
