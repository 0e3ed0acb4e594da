//! Calling off a manual compaction.

use lithify_control::Event;
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};

use crate::shell::{Shell, WeakShell};

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

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    /// Whom to tell.
    waiting: Mutex<Vec<(WeakShell, u64)>>,
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
        for (shell, id) in waiting {
            if let Some(shell) = shell.upgrade() {
                shell.tell_from_anywhere(move |shell| shell.drive(Event::CancelManual { id }));
            }
        }
    }
    /// True once it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Manual compaction `id` of `shell`, which the mind knows already, is called off with it.
    pub(crate) fn covers(&self, shell: &Shell, id: u64) {
        self.0.waiting.lock().push((shell.weak(), id));
        // Whoever cancelled before that line did not see it.
        if self.is_cancelled() {
            self.cancel();
        }
    }
    /// It is over. Another database may know another compaction by the same number.
    pub(crate) fn forget(&self, shell: &Shell, id: u64) {
        let this = (shell.weak(), id);
        let is_this = |(shell, id): &(WeakShell, u64)| *id == this.1 && shell.ptr_eq(&this.0);
        self.0.waiting.lock().retain(|waiting| !is_this(waiting));
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CancelToken(cancelled: {})", self.is_cancelled())
    }
}
