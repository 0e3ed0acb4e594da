//! Memory for what a user or a file decides the size of: asked for, and an error if there is none.
//!
//! Elsewhere an allocation that fails ends the process, as is usual in Rust, and which is no worse
//! for the data than a kill. A value, a batch or a block may be so large that this would be the
//! user's doing; so these are asked for here, before anything was written.
//!
//! And memory for what jobs build and drop by the hundred KiB: output of a merge, a table's index and filter,
//! lists of its blocks. An allocator keeps pieces of such sizes in the arena of the thread that asked, in holes
//! between what lives longer; with an arena for each thread a
//! database with a budget of 64 MiB held 20 MiB of such holes. So large
//! bytes are mappings of their own ([`LargeBytes`]), which go back to the system when they are dropped, and long lists
//! lie in pieces of one size ([`Pieces`]), whose holes fit the next piece.

mod large;
mod pieces;

pub use large::LargeBytes;
pub use pieces::Pieces;

use crate::error::{Error, ErrorKind, Result};

/// Fewer bytes are not asked for: the question would cost half as much as the memory.
const SMALL: usize = 4 << 10;
/// Lists of this many bytes and more do not come from the allocator.
const LARGE: usize = 64 << 10;
/// From this size on memory is worth a look.
const PROBED: usize = 64 << 10;

/// Makes room for `more` bytes in `buf`; `what` it is for goes into the error.
///
/// # Errors
/// `LimitExceeded` if the system has no memory; `buf` is as it was.
#[inline]
pub fn reserve(buf: &mut Vec<u8>, more: usize, what: &str) -> Result<()> {
    buf.try_reserve(more).map_err(|e| refused(what, more, &e))
}

/// `len` zeros; `what` they are for goes into the error.
///
/// # Errors
/// `LimitExceeded` if the system has no memory.
pub fn zeroed(len: usize, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|e| refused(what, len, &e))?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// A copy of `bytes`; `what` it is goes into the error. Where there is no memory for a few bytes, the process ends as
/// it would wherever else a few are needed.
///
/// # Errors
/// `LimitExceeded` if the system has no memory.
#[inline]
pub fn copied(bytes: &[u8], what: &str) -> Result<Vec<u8>> {
    if bytes.len() < SMALL {
        return Ok(bytes.to_vec());
    }
    copied_large(bytes, what)
}

fn copied_large(bytes: &[u8], what: &str) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|e| refused(what, bytes.len(), &e))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Whether `len` bytes can be had right now, for memory that can't be asked for where it is taken.
/// Small pieces are not looked for.
///
/// # Errors
/// `LimitExceeded` if not.
pub fn probe(len: usize, what: &str) -> Result<()> {
    if len < PROBED {
        return Ok(());
    }
    Vec::<u8>::new().try_reserve_exact(len).map_err(|e| refused(what, len, &e))
}

/// The error of who asked for `bytes` of memory and got none.
#[cold]
pub fn refused(what: &str, bytes: usize, why: &dyn std::fmt::Display) -> Error {
    let what = format!("no memory for {bytes} bytes of {what} ({why}); nothing was changed");
    Error::new(ErrorKind::LimitExceeded, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_an_error() {
        let mut buf = b"abc".to_vec();
        let e = reserve(&mut buf, isize::MAX as usize - 8, "a test").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        assert!(e.to_string().contains("a test"), "{e}");
        assert_eq!(buf, b"abc");
        assert_eq!(zeroed(usize::MAX, "a test").unwrap_err().kind(), ErrorKind::LimitExceeded);
        assert_eq!(zeroed(3, "a test").unwrap(), [0; 3]);
        assert_eq!(probe(usize::MAX, "a test").unwrap_err().kind(), ErrorKind::LimitExceeded);
        probe(1 << 20, "a test").unwrap();
        assert_eq!(copied(b"xyz", "a test").unwrap(), b"xyz");
    }
}
