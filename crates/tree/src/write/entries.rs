//! What a group is made of: the caller's own write, borrowed, and batches that others queued.

use lithify_base::Result;
use lithify_env::sync::Arc;
use lithify_writes::mems::Reservation;
use lithify_writes::own::measure;
use lithify_writes::turn::Waiter;

use super::log::Log;

/// The caller's own write, borrowed.
pub(crate) type Own<'a> = lithify_writes::own::Own<'a, Log>;

/// Sees to it that a group finds memory, before anything of it exists.
///
/// # Errors
/// `LimitExceeded` if there is none.
#[inline(always)]
pub(super) fn reserve(log: &mut Log, own: Own<'_>, peers: &[Arc<Waiter<Log>>]) -> Result<()> {
    let (entries, bytes) = measure(own, peers);
    log.group.clear();
    log.group.try_reserve(entries, bytes)?;
    if log.is_alone() {
        return log.families[0].mem.reserve(entries, bytes);
    }
    let mut reservation = Reservation::default();
    for batch in peers.iter().map(|peer| &peer.batch).chain(own.batch()) {
        reservation.add_batch(&batch.view());
    }
    if let Some(cf) = own.cf() {
        reservation.add(cf, own.entries(), own.byte_len());
    }
    reservation.reserve(log)
}
