//! The bucket map while the database runs: flushes are cut by it, each flush that commits is
//! told to it, and each commit may split or merge one of its buckets. The map of
//! the moment lies in the version and is persisted with the edit that changes it; it is a hint,
//! so nothing depends on its being there.

use std::collections::BTreeMap;
use std::sync::Arc;

use lithify_base::JobId;
use lithify_lsm::{BucketMap, Version};
use lithify_plan::adapt::{FlushReport, adapt, on_flush};
use lithify_plan::{JobSpec, PlanOptions, PolicyKind};

/// How a flush is cut into files.
#[derive(Clone, Debug)]
pub enum Cutting {
    /// Not at all.
    Whole,
    /// At the bounds of this map, pinned for the whole flush.
    By(Arc<BucketMap>),
    /// At the bounds of the first map, which the flush makes from its own keys.
    First,
}

/// What a flush learnt: the map it was cut by, and what went where.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The map.
    pub map: Arc<BucketMap>,
    /// Bytes and keys by its buckets.
    pub report: FlushReport,
}

/// Flows of flushes that are built and not committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    flows: BTreeMap<JobId, Flow>,
}

impl Buckets {
    /// How the next flush is cut.
    pub(crate) fn cutting(version: &Version, options: &PlanOptions, slots: usize) -> Cutting {
        match version.buckets() {
            _ if !options.policy.has_buckets() => Cutting::Whole,
            // One job at a time takes all keys down: narrow files would only be many.
            _ if slots == 1 && options.policy == PolicyKind::Adaptive => Cutting::Whole,
            Some(map) => Cutting::By(map.clone()),
            None => Cutting::First,
        }
    }

    /// A flush was built.
    pub(crate) fn built(&mut self, job: JobId, flow: Flow) {
        self.flows.insert(job, flow);
    }
    /// A job is gone.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.flows.remove(&job);
    }

    /// The map after the edit of `job` (`done` if it is a compaction) made `next` of `version`, if
    /// that changes it.
    pub(crate) fn after(
        &self,
        version: &Version,
        next: &Version,
        job: JobId,
        done: Option<&JobSpec>,
        options: &PlanOptions,
    ) -> Option<Arc<BucketMap>> {
        if !options.policy.has_buckets() {
            return None;
        }
        if let Some(flow) = self.flows.get(&job) {
            let map = version.buckets().unwrap_or(&flow.map);
            let told = on_flush(map, &flow.report, options, version.order());
            return Some(Arc::new(adapt(&told, next, None, options).unwrap_or(told)));
        }
        let map = version.buckets()?;
        adapt(map, next, Some(done?), options).map(Arc::new)
    }
}
