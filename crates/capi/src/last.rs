//! The error that a thread was told last, for those who ask for its parts.

use std::cell::RefCell;

use lithify::Error;

thread_local! {
    static LAST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Keeps what goes out as text.
pub(crate) fn keep(error: &Error) {
    LAST.with(|last| *last.borrow_mut() = Some(error.clone()));
}

/// A part of it; `None` as well before the first error.
pub(crate) fn last<T>(part: impl FnOnce(&Error) -> Option<T>) -> Option<T> {
    LAST.with(|last| last.borrow().as_ref().and_then(part))
}
