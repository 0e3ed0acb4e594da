//! How a log ended, and whether it is durable together with all logs before it.
//!
//! A log is closed in the background while its successor is already written. The successor may
//! vouch for it (by a seal) only once it is durable, and the flag here is how it knows.

use lithify_base::FileId;
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_journal::wal::Predecessor;

/// How a log ended: what its successor writes down about it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WalEnd {
    /// Number, size and last sequence number, as recorded at the start of the next log.
    pub record: Predecessor,
    pub(super) link: Arc<Link>,
}

impl WalEnd {
    /// The end of a log found on disk. Whether it is durable is unknown, so no later log of this
    /// session vouches for it.
    pub fn found(record: Predecessor) -> WalEnd {
        WalEnd { record, link: Arc::new(Link::default()) }
    }
    /// The log's number.
    pub fn number(&self) -> FileId {
        FileId(self.record.log_number)
    }
    /// Says that this log and those before it count no more, because all they held is in tables:
    /// later logs need not wait for them to vouch for themselves.
    pub fn set_superseded(&self) {
        self.link.set_superseded();
    }
    /// True if every byte of this log and of those before it is on stable storage.
    pub fn is_durable(&self) -> bool {
        self.link.is_durable()
    }
}

/// One log's place in the chain of durability.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// This log was closed and synced.
    done: AtomicBool,
    /// The log before, until it is known to be durable.
    before: Mutex<Option<Arc<Link>>>,
}

impl Link {
    /// The place after `before`.
    pub(super) fn after(before: Option<&WalEnd>) -> Arc<Link> {
        let before = before.filter(|end| !end.is_durable()).map(|end| end.link.clone());
        Arc::new(Link { done: AtomicBool::new(false), before: Mutex::new(before) })
    }
    pub(super) fn set_durable(&self) {
        self.done.store(true, Ordering::Release);
    }
    /// Neither this log nor those before it count any more.
    pub(super) fn set_superseded(&self) {
        let before = self.before.lock().take();
        self.set_durable();
        drop(before);
    }
    /// This log and all before it. Looks at those before in any case: what is durable leaves the chain.
    pub(super) fn is_durable(&self) -> bool {
        self.before_is_durable() && self.done.load(Ordering::Acquire)
    }
    /// All logs before this one. The chain is as long as there are logs still being closed.
    pub(super) fn before_is_durable(&self) -> bool {
        let mut before = self.before.lock();
        match &*before {
            None => true,
            Some(link) if link.is_durable() => {
                *before = None;
                true
            }
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(link: &Arc<Link>) -> WalEnd {
        WalEnd { record: Predecessor { log_number: 1, size: 0, last_seq: 0 }, link: link.clone() }
    }

    /// Each log ends while the one before is still being closed, and no write is synced.
    #[test]
    fn logs_that_are_durable_leave_the_chain() {
        for settle in [Link::set_durable, Link::set_superseded] {
            let mut last = Link::after(None);
            for _ in 0..1_000_000 {
                let next = Link::after(Some(&end(&last)));
                settle(&last);
                last = next;
            }
            assert!(last.before_is_durable());
            settle(&last);
            assert!(last.is_durable());
        }
    }

    #[test]
    fn what_is_superseded_waits_for_none_before() {
        let first = Link::after(None);
        let second = Link::after(Some(&end(&first)));
        let third = Link::after(Some(&end(&second)));
        second.set_durable();
        assert!(!third.before_is_durable() && !end(&second).is_durable());
        end(&second).set_superseded();
        assert!(third.before_is_durable() && !first.is_durable());
    }
}
