//! How old something is, by the clock that the view was told.

/// True if something from `since` has lived for `seconds`; never with 0 for either: a
/// time that is not known, or no limit.
pub(crate) fn is_older(since: u64, seconds: u64, now: u64) -> bool {
    since > 0 && seconds > 0 && since.saturating_add(seconds) <= now
}
