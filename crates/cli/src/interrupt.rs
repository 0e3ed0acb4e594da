//! Ctrl-C while rows are being loaded: says how many are in, and ends.
//!
//! Keeps: the count is exact, because no batch begins after it was taken. What was counted survives
//! the end of the program: it is in the log.
//!
//! A thread waits for signals, because the one that loads may be waiting for input. The order of the
//! two flags makes it exact: the loader says that it writes and then looks whether to stop, the thread
//! says stop and then looks whether a batch is being written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output;

/// How long a batch that is being written is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// Tells, when the program is interrupted, how many rows are in.
pub(crate) struct Tell(Arc<State>);

#[derive(Default)]
struct State {
    /// Rows that were written.
    rows: AtomicU64,
    writing: AtomicBool,
    stop: AtomicBool,
}

impl Tell {
    /// From here on an interruption is told.
    pub(crate) fn new() -> Result<Tell> {
        let state = Arc::new(State::default());
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("listening for Ctrl-C")?;
        let shared = state.clone();
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                shared.end(signal);
            }
        });
        Ok(Tell(state))
    }

    /// Writes `rows` rows by `write`.
    pub(crate) fn writing<E>(
        &self,
        rows: u64,
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let state = &self.0;
        state.writing.store(true, Ordering::SeqCst);
        while state.stop.load(Ordering::SeqCst) {
            // The other thread ends the program.
            state.writing.store(false, Ordering::SeqCst);
            thread::park_timeout(PATIENCE);
        }
        let written = write();
        if written.is_ok() {
            state.rows.fetch_add(rows, Ordering::SeqCst);
        }
        state.writing.store(false, Ordering::SeqCst);
        written
    }
}

impl State {
    /// Says how many rows are in and ends the program, with the exit code that shells give a program
    /// which `signal` ended.
    fn end(&self, signal: i32) -> ! {
        self.stop.store(true, Ordering::SeqCst);
        let mut waited = Duration::ZERO;
        while self.writing.load(Ordering::SeqCst) && waited < PATIENCE {
            thread::sleep(LOOK);
            waited += LOOK;
        }
        let exact = if self.writing.load(Ordering::SeqCst) { "at least " } else { "" };
        let rows = output::count(self.rows.load(Ordering::SeqCst), "row");
        let error = format!("error: interrupted: {exact}{rows} loaded before this");
        output::error_line(&error, true);
        let hint = "hint: load the file again for the rest; the same keys are written anew";
        output::error_line(hint, false);
        std::process::exit(128 + signal)
    }
}
