//! The wall around the codecs: what panics inside one of their libraries goes no further.
//!
//! Keeps: every call into a codec's library goes through [`walled`], so no bug there ends an open, a read or
//! a table builder.
//! Leaves to others: what stands for the result (an error when reading, a block that is stored as it
//! is when writing), and not using again what panicked.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `call` returns, or the message of its panic. What it has changed by then is of no use.
pub(super) fn walled<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let called = || {
        #[cfg(test)]
        trap::spring();
        call()
    };
    catch_unwind(AssertUnwindSafe(called)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "no message".to_owned())
    })
}

/// Makes codecs panic.
#[cfg(test)]
pub(super) mod trap {
    use std::cell::Cell;

    thread_local! {
        static SET: Cell<bool> = const { Cell::new(false) };
    }

    /// Lets the next call of this thread panic.
    pub(in crate::compress) fn set() {
        SET.set(true);
    }
    pub(super) fn spring() {
        assert!(!SET.take(), "the trap");
    }
}
