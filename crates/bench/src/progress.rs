//! The live display: one line on standard error, if that is a terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::units::show_count;

/// A progress line, or none.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A line for `name` with `total` operations (0 when unknown).
    pub(crate) fn start(name: &str, total: u64, quiet: bool) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { bar: None };
        }
        let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::no_length() };
        let template = if total > 0 {
            "{prefix:>17} [{elapsed}] {wide_bar} {human_pos} of {human_len} {rate} {msg}"
        } else {
            "{prefix:>17} [{elapsed}] {spinner} {human_pos} {rate} {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("rate", |state: &ProgressState, line: &mut dyn Write| {
                // A line that can't be drawn is not drawn.
                let _ = write!(line, "{}/s", show_count(state.per_sec()));
            }));
        }
        bar.set_prefix(name.to_owned());
        Progress { bar: Some(bar) }
    }

    /// Shows that `done` operations are done.
    pub(crate) fn set(&self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.tick();
        }
    }

    /// Shows `message` behind the numbers.
    pub(crate) fn say(&self, message: &'static str) {
        if let Some(bar) = &self.bar {
            bar.set_message(message);
            bar.tick();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
