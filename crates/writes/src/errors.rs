//! What a write is told that was not made, or of which nothing is known.

use lithify_base::{Error, ErrorKind};

/// True if `error` says that it is not known what a log holds.
pub fn is_lost(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::NotCommitted | ErrorKind::NoSpace | ErrorKind::LimitExceeded)
}

/// For a write whose log was lost and replaced.
pub fn not_committed(cause: Error) -> Error {
    let what = "the log could not be made durable and was given up; what was acknowledged before is \
                safe in tables, and nothing of this write will appear; try again";
    Error::new(ErrorKind::NotCommitted, what).caused_by(cause)
}

/// For a write whose log could not be made.
pub fn not_begun(cause: Error) -> Error {
    match cause.kind() {
        ErrorKind::NoSpace => cause,
        _ => {
            let what = "no log could be begun, and nothing was written; try again";
            Error::new(ErrorKind::NotCommitted, what).caused_by(cause)
        }
    }
}

/// For a write whose log was lost and not replaced. It only takes space if `full`, else it is the end of
/// writing.
pub fn not_replaced(lost: Error, full: Full) -> Error {
    let rest = match full {
        Full::Yes => {
            "it will not appear once there is space again, and writes go on by themselves; \
             without, whether it survives shows at the next open"
        }
        Full::No => {
            "whether this write survives shows at the next open, until which the database is \
             read-only"
        }
    };
    let what = format!("the log could not be written; {rest}");
    Error::new(ErrorKind::OutcomeUnknown, what).caused_by(lost)
}

/// Whether space is all that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Why a lost log is not replaced where there are several families.
pub fn several() -> Error {
    let what = "with several column families a log that is lost while it is closed is not replaced";
    Error::new(ErrorKind::Unsupported, what)
}

/// Why a lost log is not replaced while transactions are prepared.
pub fn prepared() -> Error {
    let what = "what transactions prepared is in logs and in no table, so a log that is lost is not replaced";
    Error::new(ErrorKind::Unsupported, what)
}

/// For the group of a write that panicked, and the one behind it.
pub fn torn() -> Error {
    let what = "a write panicked; whether it and those with it survive shows at the next \
                open, until which the database is read-only";
    Error::new(ErrorKind::OutcomeUnknown, what)
}

/// Why no memtable becomes active any more.
pub fn numbers_used_up() -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        "the numbers of writes are used up; take the database into a new one with `lithify salvage`, \
         which begins at 1",
    )
}

/// For a batch with entries of the default family that is written by the handle of family `name`.
pub fn wrong_handle(name: &str) -> Error {
    Error::invalid(format!(
        "the batch has entries of the default column family and is written by the handle of \
         `{name}`; add them with put_cf and its like, or write the batch by the database; nothing \
         was written"
    ))
}

/// For an operand where there is no operator.
pub fn no_operator() -> Error {
    Error::invalid(
        "the database was opened without a merge operator; give it one with \
         Builder::merge_operator; nothing was written",
    )
}
