//! Which process this is.
//!
//! Keeps: a forked child never takes itself for its parent. Asking costs one load: the answer lies in
//! a page that the kernel wipes in a child, where it is found out anew.

use std::sync::atomic::{AtomicU32, Ordering};

use super::pages::wiped_by_fork;
use crate::sync::LazyLock;

static KNOWN: LazyLock<Option<&'static AtomicU32>> = LazyLock::new(wiped_by_fork);

/// The number of this process.
pub(super) fn id() -> u32 {
    let Some(known) = *KNOWN else { return std::process::id() };
    match known.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            known.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_what_the_system_says() {
        assert_eq!(super::id(), std::process::id());
        assert_eq!(super::id(), std::process::id());
    }
}
