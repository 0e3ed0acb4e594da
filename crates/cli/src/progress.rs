//! How far a long command is: a bar or a counter on standard error where a person looks, nothing
//! elsewhere.
//!
//! Keeps: it is gone when the command goes on to say what came of it, also after an error.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar or a counter, taken away when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar of bytes.
    pub(crate) fn bytes() -> Progress {
        let template = "{wide_bar} {bytes} of {total_bytes} ({bytes_per_sec}), {eta} left";
        Progress::styled(ProgressBar::new(0), template)
    }
    /// A counter of bytes of which an unknown number will come.
    pub(crate) fn bytes_without_end() -> Progress {
        Progress::styled(ProgressBar::new_spinner(), "{spinner} {bytes} ({bytes_per_sec})")
    }
    /// A counter of entries.
    pub(crate) fn entries() -> Progress {
        let template = "{spinner} {human_pos} entries, {per_sec}";
        Progress::styled(ProgressBar::new_spinner(), template)
    }
    /// A bar of stages, each with a name and a count of its own.
    pub(crate) fn stages() -> Progress {
        let template = "{msg:9} {wide_bar} {human_pos} of {human_len}, {eta} left";
        Progress::styled(ProgressBar::new(0), template)
    }
    /// One that is not shown.
    #[cfg(test)]
    pub(crate) fn hidden() -> Progress {
        Progress(ProgressBar::hidden())
    }

    fn styled(bar: ProgressBar, template: &str) -> Progress {
        Progress(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Names the stage.
    pub(crate) fn stage(&self, name: &'static str) {
        self.0.set_message(name);
    }
    /// `done` of `total`; more than that may come.
    pub(crate) fn show(&self, done: u64, total: u64) {
        self.0.set_length(total.max(done));
        self.0.set_position(done);
    }
    /// `done` so far.
    pub(crate) fn count(&self, done: u64) {
        self.0.set_position(done);
    }
    /// So much more.
    pub(crate) fn add(&self, more: u64) {
        self.0.inc(more);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
