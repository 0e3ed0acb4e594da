//! The error of a command line that makes no sense, which ends a program with exit code 2 where other
//! failures end it with 1.

use std::fmt;

/// A command was not understood; a sentence that says why, and what it takes.
#[derive(Debug)]
pub struct Usage(pub String);

impl Usage {
    /// Any error of which it is known that arguments were at fault.
    #[expect(clippy::needless_pass_by_value, reason = "it takes the place of the error")]
    pub fn of(error: anyhow::Error) -> anyhow::Error {
        Usage(format!("{error:#}")).into()
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
