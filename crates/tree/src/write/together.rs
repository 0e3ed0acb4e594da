//! Large batches of one group go into the memtable side by side: the holder of the turn asks each
//! waiter that brought one to insert it itself, with a share of the memtable's writer.
//!
//! A waiter must wake up to do so, which takes longer than inserting a few entries. So small batches
//! are the holder's, who does its own work first and then whatever no waiter has begun: it never
//! waits for a thread that is not running yet.
//!
//! Keeps: the numbers of a group are those of its record in the log, whichever thread inserts; nothing of it is
//! published before all of it is in. When [`Shell::insert_group`] ends, however it ends, no thread
//! inserts any more.
//! Leaves to others: batches of other families, which the holder inserts by itself.

use lithify_base::{Error, Result, Seq};
use lithify_env::sync::Arc;

use super::entries::Own;
use super::log::Log;
use crate::shell::Shell;
use lithify_reports::metrics::Counter;
use lithify_writes::errors;
use lithify_writes::parts::Handed;
use lithify_writes::turn::Waiter;

impl Shell {
    /// Inserts a group that is in the log, its first entry as number `first`; the number after, and
    /// the bytes of it all.
    ///
    /// # Errors
    /// `OutcomeUnknown` if a comparator panicked in another thread, or memory that was reserved for the
    /// group is not there.
    #[inline(never)]
    pub(super) fn insert_group(
        &self,
        log: &mut Log,
        own: Own<'_>,
        peers: &[Arc<Waiter<Log>>],
        first: Seq,
    ) -> Result<(Seq, usize)> {
        let all = || std::iter::once(own).chain(peers.iter().map(|peer| Own::Queued(peer)));
        let bytes = all().map(|write| write.byte_len()).sum();
        let together = self.family.settings.load().concurrent_memtable_writes
            && all().filter(Own::is_large).nth(1).is_some();
        let next = match together {
            true => self.insert_together(log, own, peers, first)?,
            false => all().fold(first, |next, write| write.insert(log, next)),
        };
        Ok((next, bytes))
    }

    /// The same, the large batches side by side.
    fn insert_together(
        &self,
        log: &mut Log,
        own: Own<'_>,
        peers: &[Arc<Waiter<Log>>],
        first: Seq,
    ) -> Result<Seq> {
        let all = std::iter::once(own).chain(peers.iter().map(|peer| Own::Queued(peer)));
        let mem = log.families[0].mem.get();
        let mut handed = Handed::new(&*self.shared.resources.env.rt, self.shared.mark());
        // What the holder inserts while others are at theirs, and what it inserts after that.
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let (mut entries, mut bytes) = (0, 0);
        let mut next = first;
        for (at, write) in all.enumerate() {
            let (count, len) = (write.entries(), write.byte_len());
            if at > 0 && write.is_large() {
                let Ok(writer) = mem.share(count, len) else {
                    drop(handed);
                    return Err(self.torn(Some(log)));
                };
                handed.ask(&peers[at - 1], writer, next);
            } else if write.is_of_default() {
                (entries, bytes) = (entries + count, bytes + len);
                now.push((write, next));
            } else {
                later.push((write, next));
            }
            next += count as Seq;
        }
        let Ok(mut writer) = mem.share(entries, bytes) else {
            drop(handed);
            return Err(self.torn(Some(log)));
        };
        self.shared.resources.env.rt.breathe();
        for (write, first) in now {
            write.insert(&mut writer, first);
        }
        self.shared.metrics.add(Counter::OwnInserts, handed.insert_the_rest() as u64);
        let Some(writers) = handed.gather() else { return Err(self.torn(Some(log))) };
        writers.into_iter().chain([writer]).for_each(|writer| mem.take_back(writer));
        for (write, first) in later {
            write.insert(log, first);
        }
        Ok(next)
    }

    /// A group is in the memtable in part, because a comparator panicked. It is not known how far it got,
    /// so nothing is written behind it; what the log holds shows at the next open.
    pub(super) fn torn(&self, log: Option<&mut Log>) -> Error {
        let error = errors::torn();
        self.shared.go_read_only(error.clone());
        if let Some(log) = log {
            log.wal = None;
        }
        error
    }
}
