//! Calling off a manual compaction.

use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};

/// Calls off what it was given to. Clones are the same token; once cancelled it stays so.
///
/// ```
/// # fn main() -> lithify::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("lithify-cancel-{}", std::process::id()));
/// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
/// use lithify::{CancelToken, CompactOptions, ErrorKind};
///
/// let token = CancelToken::new();
/// let options = CompactOptions { cancel: Some(token.clone()), ..CompactOptions::default() };
/// token.cancel(); // from another thread, while the compaction is at work
/// db.put(b"a", b"1")?;
/// let error = db.compact_range_opt(None, None, &options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Cancelled);
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

/// A database that serves a request, without keeping it open.
pub trait Cancels: Send + Sync {
    /// Calls request `id` off.
    fn cancel(&self, id: u64);
}

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    /// Whom to tell.
    waiting: Mutex<Vec<(Arc<dyn Cancels>, u64)>>,
}

impl CancelToken {
    /// A token that was not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }
    /// Calls off whatever has this token. Returns at once.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        for (served_by, id) in waiting {
            served_by.cancel(id);
        }
    }
    /// True once it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Request `id`, which is known to `served_by` already, is called off with this token.
    pub fn covers(&self, served_by: &Arc<dyn Cancels>, id: u64) {
        self.0.waiting.lock().push((served_by.clone(), id));
        // A cancel before that line did not see it.
        if self.is_cancelled() {
            self.cancel();
        }
    }
    /// Request `id` is over.
    pub fn forget(&self, served_by: &Arc<dyn Cancels>, id: u64) {
        let is_this = |(by, of): &(Arc<dyn Cancels>, u64)| *of == id && Arc::ptr_eq(by, served_by);
        self.0.waiting.lock().retain(|waiting| !is_this(waiting));
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CancelToken(cancelled: {})", self.is_cancelled())
    }
}
