//! The default column family: the one that the database itself shows.

use lithify_base::CfId;

/// Number of the default column family.
pub const DEFAULT_CF: CfId = CfId(0);
/// Name of the default column family.
pub const DEFAULT_NAME: &str = "default";
