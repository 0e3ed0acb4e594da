//! What the tests of faults share: small settings, whole scans, a load whose outcome after a
//! crash can be judged, and a watchdog.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses its own part")]
#![allow(
    clippy::disallowed_methods,
    reason = "a watchdog has a thread of its own, and a child process is watched from the outside"
)]

pub mod budget;
pub mod child;
pub mod clock;
pub mod deeds;
pub mod image;
pub mod load;
pub mod small;
pub mod users;
pub mod verdict;

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use lithify::{Db, DbIter};

pub use small::{eager, tiny};

/// How often watchdogs look.
pub const TICK: Duration = Duration::from_millis(100);

/// A whole database in memory.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything that an iterator shows, from its first entry on.
pub fn shown(iter: &mut DbIter) -> lithify::Result<Content> {
    let mut content = Content::new();
    iter.seek_to_first();
    while iter.valid() {
        let twice = content.insert(iter.key().to_vec(), iter.value().to_vec());
        assert!(twice.is_none(), "{} appears twice", iter.key().escape_ascii());
        iter.next();
    }
    iter.status()?;
    Ok(content)
}

/// Everything in the database, read forward and compared with a backward scan.
pub fn scan(db: &Db) -> lithify::Result<Content> {
    let mut iter = db.iter()?;
    let content = shown(&mut iter)?;
    let mut count = 0;
    iter.seek_to_last();
    while iter.valid() {
        assert_eq!(content.get(iter.key()).map(Vec::as_slice), Some(iter.value()));
        count += 1;
        iter.prev();
    }
    iter.status()?;
    assert_eq!(count, content.len(), "a backward scan shows as much as a forward one");
    Ok(content)
}

/// Runs `story` and fails if it takes longer than `limit`: a hang is an answer, too.
pub fn within<T: Send + 'static>(
    limit: Duration,
    what: &str,
    story: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (told, heard) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = story();
        // The listener has given up if this fails.
        let _ = told.send(());
        result
    });
    // In ticks: while the whole process is stopped, one of them passes and not the limit.
    for _ in 0..limit.as_millis().div_ceil(TICK.as_millis()) {
        match heard.recv_timeout(TICK) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
                Ok(result) => return result,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
    panic!("{what}: still not over after {limit:?}");
}
