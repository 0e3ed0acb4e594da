//! What a failure looks like: one sentence, a hint, an exit code.

use std::fmt;
use std::process::ExitCode;

use lithify::ErrorKind;

use crate::output;

/// The error number of a refused permission, the same on every Unix.
const PERMISSION_DENIED: i32 = 13;

/// The command was not understood: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error as a result.
pub(crate) fn usage<T>(what: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(what.into()).into())
}

/// Prints `error` and says how the program ends.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader of our output has seen enough.
        return ExitCode::SUCCESS;
    }
    output::error_line(&format!("error: {}", sentence(error)), false);
    if let Some(hint) = hint(error) {
        output::error_line(&format!("hint: {hint}"), false);
    }
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The chain of causes, down to the store's error, which tells its own.
fn sentence(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        parts.push(cause.to_string());
        if cause.is::<lithify::Error>() {
            break;
        }
    }
    parts.join(": ")
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What the user can do, where the sentence does not say it already.
fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let store = error.chain().find_map(|cause| cause.downcast_ref::<lithify::Error>())?;
    let permission = store.errno() == Some(PERMISSION_DENIED);
    match store.kind() {
        ErrorKind::Corruption => Some(
            "`lithify verify DIR` lists all damage; restore the files it names from a copy, or take out \
             what is good with `lithify salvage`",
        ),
        ErrorKind::Io if permission => Some("look at the owner and permissions of that path"),
        ErrorKind::NoSpace => Some("free some space and try again; nothing acknowledged is lost"),
        ErrorKind::Locked => Some("`lithify picture DIR` works while another process has it open"),
        ErrorKind::NotFound => {
            Some("is it the right directory? `put` and `load` make a new database")
        }
        ErrorKind::InvalidArgument if store.to_string().contains("create_among_files") => {
            Some("on the command line, --create-among-files allows it")
        }
        ErrorKind::Internal => Some("this is a bug in Lithify; please report it with this message"),
        _ => None,
    }
}
