//! Calls that user code makes from within the database, which must not wait for themselves: those that
//! are refused, and those that another thread makes instead.

use lithify_base::Result;
use lithify_env::{Class, Job, Step};

use super::Shell;
use lithify_reports::reentry::{At, refusal};

/// Closes a database whose last handle went away in user code that it waits for. A close waits for jobs of
/// every class, so this one runs apart from them.
pub(crate) struct CloseLater(pub(crate) Shell);

impl Job for CloseLater {
    fn step(&mut self) -> Step {
        // No handle is left to tell of an error.
        let _ = self.0.close();
        Step::Done
    }
}

/// Tells minds what user code did that they wait for.
struct TellLater<F> {
    shell: Shell,
    tell: F,
}

impl<F: Fn(&Shell) + Send> Job for TellLater<F> {
    fn step(&mut self) -> Step {
        (self.tell)(&self.shell);
        Step::Done
    }
}

impl Shell {
    /// Has `tell` tell the cores what happened, for calls that have no error to give: at once, but in a job
    /// where this thread is in user code that the database waits for, as a core may have called that.
    pub(crate) fn tell_from_anywhere(&self, tell: impl Fn(&Shell) + Send + 'static) {
        if !self.shared.mark().is_on() {
            return tell(self);
        }
        let job = Box::new(TellLater { shell: self.clone(), tell });
        let job = self.shared.resources.alive.counted(job);
        self.shared.resources.env.rt.spawn(Class::Upkeep, job);
    }

    /// [`check_caller`](Shell::check_caller) for a call that is at work for the database from then on.
    ///
    /// # Errors
    /// Those.
    #[inline]
    pub(crate) fn begin_write(&self) -> Result<At> {
        self.shared.check_home()?;
        self.shared.mark().set_unless_on().ok_or_else(refusal)
    }

    /// Whether the caller may write, wait or close: it is of the process that opened the database, and no
    /// user code that the database waits for.
    ///
    /// # Errors
    /// `Fenced` in a forked child, `InvalidArgument` from within.
    #[inline]
    pub(crate) fn check_caller(&self) -> Result<()> {
        self.shared.check_home()?;
        if self.shared.mark().is_on() { Err(refusal()) } else { Ok(()) }
    }
}
