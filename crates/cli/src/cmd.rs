//! The commands, one file each.

pub(crate) mod backup;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod dump;
pub(crate) mod explain;
pub(crate) mod family;
pub(crate) mod import;
pub(crate) mod manual;
pub(crate) mod picture;
pub(crate) mod point;
pub(crate) mod prepared;
pub(crate) mod salvage;
pub(crate) mod scan;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod verify;
