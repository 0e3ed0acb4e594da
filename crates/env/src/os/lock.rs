//! The lock file that keeps a database to one owner.
//!
//! Three fences, because each alone has a hole:
//! - `flock` keeps out other processes, and dies with its holder;
//! - a registry of (device, inode) keeps out a second handle of this process where the file
//!   system emulates `flock` with per-process record locks (NFS);
//! - the inode is compared with the path's after locking, because the file may have been unlinked
//!   and made again between open and lock, which would leave two owners of two inodes.
//!
//! A forked child inherits the descriptor and, with it, the lock. The guard remembers its process,
//! so the child sees that it is not the owner, and dropping the child's copy only closes a
//! descriptor: the parent keeps the lock. The owner unlocks before it closes, because closing alone
//! leaves the lock to a child that is just being started and has not yet closed its copy.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::fork;
use super::posix::FILE_MODE;
use crate::fs::{IoError, IoResult, LockGuard};
use crate::sync::{LazyLock, Mutex};

/// How often a lock file may be replaced under us before we give up.
const REPLACED_MAX: u32 = 16;

/// Device and inode: what a file is, whatever it is called.
type Identity = (u64, u64);

/// What this process holds.
static HELD: LazyLock<Mutex<BTreeSet<Identity>>> = LazyLock::new(Mutex::default);

/// A held lock.
pub(super) struct FileLock {
    /// Keeps the `flock`.
    fd: OwnedFd,
    claim: Claim,
    path: PathBuf,
    process: u32,
}

/// An entry of the registry, removed on drop.
struct Claim(Identity);

impl Claim {
    fn stake(identity: Identity) -> Option<Self> {
        // Lazily: a claim made and dropped here would release the holder's.
        HELD.lock().insert(identity).then(|| Self(identity))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        HELD.lock().remove(&self.0);
    }
}

impl FileLock {
    /// Takes the lock of `path`, or fails with `WouldBlock` if anyone holds it.
    pub(super) fn take(path: &Path) -> IoResult<Self> {
        let attempt = || {
            for _ in 0..REPLACED_MAX {
                if let Some(lock) = Self::try_take(path)? {
                    return Ok(lock);
                }
            }
            Err(Errno::WOULDBLOCK)
        };
        attempt().map_err(|errno| IoError::new("lock", path, errno))
    }

    /// `None` if the file was replaced between open and lock.
    fn try_take(path: &Path) -> rustix::io::Result<Option<Self>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| fs::open(path, flags, FILE_MODE))?;
        let identity = identity_of(&fs::fstat(&fd)?);
        let claim = Claim::stake(identity).ok_or(Errno::WOULDBLOCK)?;
        fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        match fs::stat(path) {
            Ok(stat) if identity_of(&stat) == identity => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        let process = fork::id();
        Ok(Some(Self { fd, claim, path: path.to_path_buf(), process }))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.process == fork::id() {
            // Cannot fail on a locked descriptor; if it did, closing still releases.
            let _ = fs::flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

impl LockGuard for FileLock {
    fn is_owner(&self) -> bool {
        self.process == fork::id()
            && match retry_on_intr(|| fs::stat(&self.path)) {
                Ok(stat) => identity_of(&stat) == self.claim.0,
                // A disk in trouble says nothing about owners.
                Err(errno) => !matches!(errno, Errno::NOENT | Errno::NOTDIR),
            }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[allow(clippy::unnecessary_cast, reason = "the field widths differ between systems")]
fn identity_of(stat: &fs::Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_is_not_the_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let mut lock = FileLock::take(&scratch.path().join("LOCK")).unwrap();
        assert!(lock.is_owner());
        // What a child sees: the same guard under another process id.
        lock.process += 1;
        assert!(!lock.is_owner());
    }

    #[test]
    fn a_lock_is_free_at_once_although_a_starting_child_has_a_copy() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let mut lock = FileLock::take(&path).unwrap();
        let copy = lock.fd.try_clone().unwrap();
        // A child's guard must not unlock what is its parent's.
        lock.process += 1;
        drop(lock);
        assert_eq!(FileLock::take(&path).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
        drop(copy);
        let lock = FileLock::take(&path).unwrap();
        let copy = lock.fd.try_clone().unwrap();
        drop(lock);
        assert!(FileLock::take(&path).is_ok());
        drop(copy);
    }

    #[test]
    fn a_failed_attempt_leaves_no_claim() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let rival = fs::open(&path, OFlags::RDWR | OFlags::CREATE, FILE_MODE).unwrap();
        fs::flock(&rival, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(FileLock::take(&path).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
        drop(rival);
        assert!(FileLock::take(&path).is_ok());
    }
}
