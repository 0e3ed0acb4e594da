//! How many processors this process may use.

use std::num::NonZero;

use crate::sync::LazyLock;

static FOUND: LazyLock<Option<usize>> =
    LazyLock::new(|| std::thread::available_parallelism().ok().map(NonZero::get));

/// Processors that the system and its limits grant this process; `None` where neither says. Asked at the
/// first call and kept: the answer lies in several files of the system, and every opening wants it.
pub fn processors() -> Option<usize> {
    *FOUND
}
