//! What a failure looks like: one sentence, a hint, an exit code.

use std::fmt;
use std::process::ExitCode;

use lithify::ErrorKind;
use lithify_bench::{Usage, is_closed_pipe};

use crate::output;

/// The error number of a refused permission, the same on every Unix.
const PERMISSION_DENIED: i32 = 13;
/// That of a file where a directory is needed.
const NOT_A_DIRECTORY: i32 = 20;
/// That of a name that nothing has.
const NOTHING_THERE: i32 = 2;

/// A usage error as a result.
pub(crate) fn usage<T>(what: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(what.into()).into())
}

/// The command was understood and could not be done; what can be done instead is known.
#[derive(Debug)]
struct Stuck {
    what: String,
    way: String,
    code: u8,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Stuck {}

/// An error of `what` went wrong, and the `way` out of it, as a result.
pub(crate) fn stuck<T>(what: impl Into<String>, way: impl Into<String>) -> anyhow::Result<T> {
    Err(Stuck { what: what.into(), way: way.into(), code: 1 }.into())
}

/// A usage error that says the `way` out, too.
pub(crate) fn usage_with<T>(what: impl Into<String>, way: impl Into<String>) -> anyhow::Result<T> {
    Err(Stuck { what: what.into(), way: way.into(), code: 2 }.into())
}

/// The error as one of usage, for what only arguments can be at fault for.
pub(crate) fn of_usage(error: anyhow::Error) -> anyhow::Error {
    match error.is::<Stuck>() {
        true => error,
        false => Usage::of(error),
    }
}

/// Prints `error` and says how the program ends.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader of our output has seen enough.
        return ExitCode::SUCCESS;
    }
    let sentence = sentence(error);
    let (what, way) = match hint(error) {
        Some(hint) => (&*sentence, Some(hint)),
        // Most sentences say both.
        None => match sentence.split_once("; ") {
            Some((what, way)) => (what, Some(way)),
            None => (&*sentence, none_there(error)),
        },
    };
    output::error_line(&format!("error: {what}"), false);
    if let Some(way) = way {
        output::error_line(&format!("hint: {way}"), false);
    }
    match error.downcast_ref::<Stuck>() {
        Some(stuck) => ExitCode::from(stuck.code),
        None if error.is::<Usage>() => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
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

/// The way out where something is not there and the sentence does not say what to do.
fn none_there(error: &anyhow::Error) -> Option<&'static str> {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let store = cause.downcast_ref::<lithify::Error>().map(lithify::Error::kind);
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        (store, io)
    };
    error.chain().find_map(|cause| match kind(cause) {
        (Some(ErrorKind::NotFound), _) => {
            Some("is it the right directory? `put` and `load` make a new database")
        }
        (_, Some(std::io::ErrorKind::NotFound)) => Some("is the name right? nothing is there"),
        _ => None,
    })
}

/// What the user can do, where the sentence does not say it already.
fn hint(error: &anyhow::Error) -> Option<&str> {
    if let Some(stuck) = error.downcast_ref::<Stuck>() {
        return Some(&stuck.way);
    }
    let store = error.chain().find_map(|cause| cause.downcast_ref::<lithify::Error>())?;
    if store.is_unfinished() {
        return None; // it says what to do
    }
    let permission = store.errno() == Some(PERMISSION_DENIED);
    match store.kind() {
        ErrorKind::Corruption => Some(
            "`lithify verify DIR` lists all damage; restore the files it names from a copy, or take out \
             what is good with `lithify salvage`",
        ),
        ErrorKind::Io if permission => Some("look at the owner and permissions of that path"),
        ErrorKind::Io if store.errno() == Some(NOTHING_THERE) => {
            Some("is the name right? nothing is there")
        }
        ErrorKind::Io if store.errno() == Some(NOT_A_DIRECTORY) => {
            Some("a directory is needed there, and this is a file")
        }
        ErrorKind::NoSpace => Some("free some space and try again; nothing acknowledged is lost"),
        ErrorKind::Locked => Some("`lithify picture DIR` works while another process has it open"),
        ErrorKind::InvalidArgument if store.to_string().contains("create_among_files") => {
            Some("on the command line, --create-among-files allows it")
        }
        ErrorKind::Internal => Some("this is a bug in Lithify; please report it with this message"),
        _ => None,
    }
}
