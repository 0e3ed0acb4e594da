//! Errors as RocksDB's callers know them: a status by its prefix, and then our sentence.

use lithify::{Error, ErrorKind};

/// The text of an error. Programs look at its beginning, which is RocksDB's.
pub(crate) fn status(error: &Error) -> String {
    format!("{}{error}", prefix(error.kind()))
}

fn prefix(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Corruption | ErrorKind::MergeFailed => "Corruption: ",
        ErrorKind::Internal => "Corruption: internal error: ",
        ErrorKind::NoSpace => "IO error: No space left on device: ",
        ErrorKind::Io | ErrorKind::Locked | ErrorKind::Fenced => "IO error: ",
        ErrorKind::NotCommitted | ErrorKind::OutcomeUnknown | ErrorKind::ReadOnly => "IO error: ",
        ErrorKind::LimitExceeded | ErrorKind::InvalidArgument => "Invalid argument: ",
        ErrorKind::Stalled => "Result incomplete: ",
        ErrorKind::Unsupported => "Not implemented: ",
        ErrorKind::ShuttingDown => "Shutdown in progress: ",
        ErrorKind::Busy => "Resource busy: ",
        ErrorKind::Deadlock => "Resource busy: Deadlock: ",
        ErrorKind::TimedOut => "Operation timed out: ",
        ErrorKind::Cancelled => "Operation aborted: ",
        ErrorKind::NotFound => "NotFound: ",
        _ => "Corruption: internal error: ",
    }
}
