//! Ctrl-C while a bench runs: the workload at hand ends, and what was measured until then is reported.
//!
//! Keeps: a second Ctrl-C ends the program at once, because a compaction that is waited for can't be hurried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code that shells give a program which Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Whether the run is to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ctrl-C is heard from here on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn heard() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // The second one finds what the first one has set.
            let end = i32::from(INTERRUPTED);
            flag::register_conditional_shutdown(signal, end, interrupt.0.clone())
                .and_then(|_| flag::register(signal, interrupt.0.clone()))
                .context("listening for Ctrl-C")?;
        }
        Ok(interrupt)
    }

    /// Whether Ctrl-C was pressed.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn press(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
