//! What stands between a database whose values carry times and the user's own operator and filter.
//!
//! Keeps: both follow from their arguments alone, but for the time to live, which users may change. What
//! has no time where one should be is kept as it is, and reads tell of it.

use std::borrow::Cow;

use lithify_base::operator::partial_merge;
use lithify_base::zoo::{self, Bug};
use lithify_base::{
    CompactionFilter, CompactionFilterRef, Decision, FilterContext, FilterJob, MergeOperator,
    MergeOperatorRef, Result,
};
use lithify_env::sync::Arc;

use super::{Lifetime, TIME, split, stamp};

/// Merges values without their times. The result is as old as the newest operand.
pub(super) struct Stamped {
    inner: MergeOperatorRef,
    lifetime: Lifetime,
}

impl Stamped {
    pub(super) fn new(inner: MergeOperatorRef, lifetime: &Lifetime) -> Stamped {
        Stamped { inner, lifetime: lifetime.clone() }
    }
}

impl MergeOperator for Stamped {
    /// RocksDB's name for the same, whatever is inside.
    fn name(&self) -> &str {
        "TtlMergeOperator"
    }
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let mut existing = existing.map(split).transpose()?;
        let mut live = Vec::with_capacity(operands.len());
        let mut last = existing.map(|(_, time)| time);
        for operand in operands {
            let (operand, time) = split(operand)?;
            if last.is_some_and(|last| self.lifetime.is_over(last, time.into())) {
                // Nothing was there any more when it was written.
                existing = None;
                live.clear();
            }
            // A clock may go back; what is merged does not get older by that.
            last =
                if zoo::on(Bug::MergedIsOld) { last.or(Some(time)) } else { last.max(Some(time)) };
            live.push(operand);
        }
        let merged = self.inner.full_merge(key, existing.map(|(value, _)| value), &live)?;
        stamp(&merged, last.unwrap_or_default())
    }
    /// Operands of one second only: between others something may have expired.
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let ((older, time), (newer, same)) = (split(older).ok()?, split(newer).ok()?);
        if time != same {
            return None;
        }
        stamp(&partial_merge(&*self.inner, key, older, newer)?, time).ok()
    }
}

/// Drops what has expired, and asks the user's filter about the rest.
pub(super) struct Expiring {
    inner: Option<CompactionFilterRef>,
    lifetime: Lifetime,
}

impl Expiring {
    pub(super) fn new(inner: Option<CompactionFilterRef>, lifetime: &Lifetime) -> Expiring {
        Expiring { inner, lifetime: lifetime.clone() }
    }
}

impl CompactionFilter for Expiring {
    fn name(&self) -> &str {
        "TtlCompactionFilter"
    }
    fn for_compaction(&self, job: &FilterJob) -> Option<CompactionFilterRef> {
        let own = self.inner.as_ref()?.for_compaction(job)?;
        Some(Arc::new(Expiring::new(Some(own), &self.lifetime)))
    }
    fn filter<'a>(&self, context: &FilterContext, key: &[u8], stamped: &'a [u8]) -> Decision<'a> {
        let Ok((value, time)) = split(stamped) else { return Decision::Keep };
        if self.lifetime.is_over(time, context.now + u64::from(zoo::on(Bug::DroppedEarly))) {
            return Decision::Remove;
        }
        match self.inner.as_ref().map(|inner| inner.filter(context, key, value)) {
            None | Some(Decision::Keep) => Decision::Keep,
            Some(Decision::Remove) => Decision::Remove,
            Some(Decision::Change(value)) => {
                // It keeps its age.
                let mut changed = value.into_owned();
                changed.extend_from_slice(&stamped[stamped.len() - TIME..]);
                Decision::Change(Cow::Owned(changed))
            }
        }
    }
}
