//! One error type for the whole store. Its kind says what the caller should do; its message
//! says what happened, where, and what helps.

use std::fmt::{self, Write as _};

use crate::foreign::Sieve;

/// Result of every fallible operation of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what the caller should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored bytes fail their check. Restore the named file or salvage; nothing was changed.
    Corruption,
    /// The operating system refused an operation. Fix the cause it names and try again.
    Io,
    /// The disk is full. Free space; writes resume by themselves.
    NoSpace,
    /// A key, value, batch or budget is over its limit. Nothing was written.
    LimitExceeded,
    /// The store is stopping writes until compaction catches up, and the caller asked not to wait.
    Stalled,
    /// Another handle or process has this database open.
    Locked,
    /// This handle lost its right to write (another owner took over, or the process forked).
    Fenced,
    /// The write failed and can never become visible. Safe to retry.
    NotCommitted,
    /// The write failed and may be visible after the next open. Read before retrying.
    OutcomeUnknown,
    /// The database serves reads only; the message names the cause.
    ReadOnly,
    /// The file or request needs a feature this version lacks. Nothing was changed.
    Unsupported,
    /// The database is closing.
    ShuttingDown,
    /// Another write came in between a transaction's reads and its commit. Roll back and run
    /// the transaction again.
    Busy,
    /// Transactions wait for each other's locks. Roll back, so that the others go on, and run the
    /// transaction again.
    Deadlock,
    /// Another transaction held a lock for too long. Ask again, or roll back and run the transaction
    /// again.
    TimedOut,
    /// The caller called it off. Nothing of it is left.
    Cancelled,
    /// The request makes no sense as given; the message names the fix. Nothing was changed.
    InvalidArgument,
    /// What was asked for does not exist.
    NotFound,
    /// The merge operator can't combine the operands of a key, which stay as they are. Put or delete
    /// the key, or mend the operator.
    MergeFailed,
    /// A broken invariant inside the store (our bug). The database serves reads only.
    Internal,
}

/// An error with its kind, place and cause.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    what: String,
    file: Option<String>,
    offset: Option<u64>,
    errno: Option<i32>,
    /// What was to be made is not finished, and the sentence says what to do.
    unfinished: bool,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind`; `what` is a sentence for the user.
    #[cold]
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error {
            inner: Box::new(Inner {
                kind,
                what: what.into(),
                file: None,
                offset: None,
                errno: None,
                unfinished: false,
                source: None,
            }),
        }
    }
    /// Stored bytes that fail their check.
    #[cold]
    pub fn corruption(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corruption, what)
    }
    /// A feature this version lacks.
    #[cold]
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, what)
    }
    /// A request that makes no sense.
    #[cold]
    pub fn invalid(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, what)
    }
    /// An operating system error met by operation `op`. A full disk becomes
    /// [`ErrorKind::NoSpace`].
    #[cold]
    pub fn io(op: &str, path: impl fmt::Display, source: std::io::Error) -> Error {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                ErrorKind::NoSpace
            }
            _ => ErrorKind::Io,
        };
        let mut e = Error::new(kind, format!("{op} failed: {source}"));
        e.inner.file = Some(path.to_string());
        e.inner.errno = source.raw_os_error();
        // What is no error of the system says all in its words, which stand above.
        e.inner.source = e.inner.errno.is_some().then(|| std::sync::Arc::new(source) as _);
        e
    }
    /// Adds the file's name, unless one is known.
    pub fn in_file(mut self, file: impl fmt::Display) -> Error {
        self.inner.file.get_or_insert_with(|| file.to_string());
        self
    }
    /// Adds the byte offset in the file, unless one is known.
    pub fn at(mut self, offset: u64) -> Error {
        self.inner.offset.get_or_insert(offset);
        self
    }
    /// Adds what caused this error.
    pub fn caused_by(mut self, cause: Error) -> Error {
        self.inner.source = Some(std::sync::Arc::new(cause));
        self
    }
    /// The same of what was to be made in `place` and is not finished: why it ended, and how to try again. What
    /// an error in between advises is for those who write to a database, and left out.
    #[cold]
    #[must_use]
    pub fn left_unfinished(self, place: impl fmt::Display) -> Error {
        let mut first = self;
        while let Some(cause) = first.inner.source.as_ref().and_then(|s| s.downcast_ref::<Error>())
        {
            first = cause.clone();
        }
        let space = if first.kind() == ErrorKind::NoSpace { "free some space, " } else { "" };
        let advice = format!(
            "; {space}remove {place}, which is not finished and opens as no database, and try again"
        );
        first.inner.what.push_str(&advice);
        first.unfinished()
    }
    /// Marks an error that says that something is not finished, and what to do about it.
    #[must_use]
    pub fn unfinished(mut self) -> Error {
        self.inner.unfinished = true;
        self
    }
    /// Whether it says that something is not finished, and what to do about it.
    pub fn is_unfinished(&self) -> bool {
        self.inner.unfinished
    }
    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }
    /// The file it concerns, if any.
    pub fn file(&self) -> Option<&str> {
        self.inner.file.as_deref()
    }
    /// The byte offset in that file, if known.
    pub fn offset(&self) -> Option<u64> {
        self.inner.offset
    }
    /// The operating system's error number, if it was one.
    pub fn errno(&self) -> Option<i32> {
        self.inner.errno
    }
    /// True if stored bytes fail their check.
    pub fn is_corruption(&self) -> bool {
        self.kind() == ErrorKind::Corruption
    }
}

/// Names and keys are part of messages, so each part is shown as a [`sentence`](crate::foreign::sentence)
/// of at most this many bytes.
const PART_MAX: usize = 4096;

/// Safe to print whatever the parts are: nothing in it acts on a terminal, and its length is bounded.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &*self.inner;
        if let Some(file) = &i.file {
            part(file, f)?;
            match i.offset {
                Some(at) => write!(f, " at byte {at}: ")?,
                None => f.write_str(": ")?,
            }
        }
        part(&i.what, f)?;
        if let (Some(cause), None) = (&i.source, i.errno) {
            f.write_str(" (")?;
            part(cause, f)?;
            f.write_str(")")?;
        }
        Ok(())
    }
}

fn part(part: &dyn fmt::Display, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut sieve = Sieve::new(f, PART_MAX);
    write!(sieve, "{part}")?;
    sieve.end()
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.inner.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_ref().map(|s| s.as_ref() as _)
    }
}
