//! The difference between two versions, as one job leaves it. `store` writes edits to the MANIFEST;
//! [`Version::apply`](crate::Version::apply) folds them.

use std::sync::Arc;

use lithify_base::{CfId, FileId, JobId, Key, Level, Pos};

use crate::bucket::BucketMap;
use crate::file::FileMeta;

/// What one commit changes in one column family. All of it becomes visible, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// The column family.
    pub cf: CfId,
    /// The job that made the edit; `None` for edits that recovery or an import makes up.
    pub job: Option<JobId>,
    /// Files that appear. A moved file is deleted at its old position and added at the new one.
    pub adds: Vec<FileMeta>,
    /// Files that disappear, with the position they must be found at.
    pub deletes: Vec<(Pos, FileId)>,
    /// Write-ahead logs with smaller numbers hold nothing this column family still needs.
    pub log_number: Option<u64>,
    /// A new bucket map. A hint: losing it costs speed only.
    pub bucket_hint: Option<Arc<BucketMap>>,
    /// Per level, the user key where the round-robin priority goes on.
    pub cursors: Vec<(Level, Key)>,
}

impl Edit {
    /// An edit that changes nothing yet.
    pub fn new(cf: CfId) -> Edit {
        Edit { cf, ..Edit::default() }
    }
    /// True if the edit comes from a flush or an ingestion: its data is the newest there is.
    pub fn is_flush(&self) -> bool {
        self.job.is_some() && self.deletes.is_empty() && !self.adds.is_empty()
    }
}
