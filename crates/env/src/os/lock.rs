//! The lock file that keeps a database to one owner.
//!
//! Four fences, because each alone has a hole:
//! - `flock` keeps out other processes, and dies with its holder;
//! - a record lock keeps out, and is kept out by, the engines that take no other (RocksDB, LevelDB);
//!   closing any descriptor of the file in this process drops it, so it comes only on top;
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

use arc_swap::ArcSwapOption;
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::fork;
use super::posix::FILE_MODE;
use crate::fs::{IoError, IoResult, LockGuard};
use crate::sync::{Arc, Mutex};

/// How often a lock file may be replaced under us before we give up.
const REPLACED_MAX: u32 = 16;

/// Device and inode: what a file is, whatever it is called.
type Identity = (u64, u64);

/// The locks that a process holds.
struct Held {
    process: u32,
    locks: Mutex<BTreeSet<Identity>>,
}

/// Those of this process. A child begins with a registry of its own: a thread of its parent may have
/// been in the other one when it was forked off, and is not there to leave it.
static HELD: ArcSwapOption<Held> = ArcSwapOption::const_empty();

impl Held {
    fn here() -> Arc<Held> {
        HELD.rcu(|held| match held {
            Some(held) if held.process == fork::id() => Arc::clone(held),
            _ => Arc::new(Held { process: fork::id(), locks: Mutex::default() }),
        });
        HELD.load_full().expect("nobody takes it away")
    }
}

/// A held lock.
pub(super) struct FileLock {
    /// Keeps the `flock`.
    fd: OwnedFd,
    claim: Claim,
    path: PathBuf,
}

/// An entry of the registry, removed when its process drops it.
struct Claim {
    held: Arc<Held>,
    identity: Identity,
}

impl Claim {
    fn stake(identity: Identity) -> Option<Self> {
        let held = Held::here();
        let free = held.locks.lock().insert(identity);
        // Lazily: a claim made and dropped here would release the holder's.
        free.then(|| Self { held, identity })
    }

    fn is_of_this_process(&self) -> bool {
        self.held.process == fork::id()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            self.held.locks.lock().remove(&self.identity);
        }
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
        // Not even opened where this process holds it: closing again would drop its record lock.
        let held = |stat| Held::here().locks.lock().contains(&identity_of(&stat));
        if fs::stat(path).is_ok_and(held) {
            return Err(Errno::WOULDBLOCK);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| fs::open(path, flags, FILE_MODE))?;
        let identity = identity_of(&fs::fstat(&fd)?);
        let claim = Claim::stake(identity).ok_or(Errno::WOULDBLOCK)?;
        fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        let record = fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive);
        // The system has two words for it. Any other failure is that of a file system without record
        // locks: engines that take no other don't run on it.
        if let Err(Errno::ACCESS | Errno::AGAIN) = record {
            return Err(Errno::WOULDBLOCK);
        }
        match fs::stat(path) {
            Ok(stat) if identity_of(&stat) == identity => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        Ok(Some(Self { fd, claim, path: path.to_path_buf() }))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.claim.is_of_this_process() {
            // Cannot fail on a locked descriptor; if it did, closing still releases.
            let _ = fs::flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

impl LockGuard for FileLock {
    fn is_owner(&self) -> bool {
        self.claim.is_of_this_process()
            && match retry_on_intr(|| fs::stat(&self.path)) {
                Ok(stat) => identity_of(&stat) == self.claim.identity,
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
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// The path whose record lock a child of these tests asks for.
    const RIVAL: &str = "LITHIFY_LOCK_RIVAL";

    /// What RocksDB and LevelDB do before they open a directory, in a process of its own, since a
    /// record lock is its process's: says whether it was kept out, and holds the lock to its end.
    fn rival(path: &Path) -> (Child, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "os::lock::tests::the_rival", "--nocapture", "--quiet"])
            .env(RIVAL, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Nobody reads its test report.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find_map(|line| line.strip_prefix("rival: ").map(str::to_owned));
        (child, said.expect("it says what it got"))
    }

    fn end(mut rival: Child) {
        drop(rival.stdin.take());
        rival.wait().unwrap();
    }

    #[test]
    fn the_rival() {
        let Some(path) = std::env::var_os(RIVAL) else { return };
        let fd = fs::open(path, OFlags::RDWR | OFlags::CREATE, FILE_MODE).unwrap();
        let lock = fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive);
        println!("\nrival: {}", if lock.is_ok() { "held" } else { "kept out" });
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn engines_with_record_locks_are_kept_out_and_keep_out() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let lock = FileLock::take(&path).unwrap();
        // A second try must not drop the lock.
        assert!(FileLock::take(&path).is_err());
        let (late, said) = rival(&path);
        assert_eq!(said, "kept out");
        end(late);
        drop(lock);
        let (first, said) = rival(&path);
        assert_eq!(said, "held");
        assert_eq!(FileLock::take(&path).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
        end(first);
        assert!(FileLock::take(&path).is_ok());
    }

    /// What a child sees: the same guard under another process id. The claim stays its parent's.
    fn inherited(mut lock: FileLock) -> (FileLock, Claim) {
        let process = lock.claim.held.process + 1;
        let identity = lock.claim.identity;
        let held = Arc::new(Held { process, locks: Mutex::default() });
        let parents = std::mem::replace(&mut lock.claim, Claim { held, identity });
        (lock, parents)
    }

    #[test]
    fn a_forked_child_is_not_the_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let lock = FileLock::take(&scratch.path().join("LOCK")).unwrap();
        assert!(lock.is_owner());
        let (lock, _parents) = inherited(lock);
        assert!(!lock.is_owner());
    }

    #[test]
    fn a_lock_is_free_at_once_although_a_starting_child_has_a_copy() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let refused = |path| FileLock::take(path).err().map(|e| e.kind());
        let lock = FileLock::take(&path).unwrap();
        let copy = lock.fd.try_clone().unwrap();
        // A child's guard must not unlock what is its parent's.
        let (lock, parents) = inherited(lock);
        drop(lock);
        assert_eq!(refused(&path), Some(std::io::ErrorKind::WouldBlock), "the claim stands");
        drop(parents);
        assert_eq!(refused(&path), Some(std::io::ErrorKind::WouldBlock), "and so does the lock");
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
