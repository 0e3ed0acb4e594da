//! How a close went, for all that ask for one.

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::Ticket;
use lithify_env::sync::Mutex;

/// How the close went, for all who ask for one.
pub(crate) struct Ending {
    pub(crate) over: Ticket,
    pub(crate) result: Mutex<Result<()>>,
}

impl Default for Ending {
    fn default() -> Ending {
        let cut_short = Error::new(ErrorKind::Internal, "a panic cut the close short");
        Ending { over: Ticket::new(), result: Mutex::new(Err(cut_short)) }
    }
}
