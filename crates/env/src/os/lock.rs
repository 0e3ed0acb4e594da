//! The lock file that keeps a database to one owner.
//!
//! Four fences, because each alone has a hole:
//! - `flock` keeps out other processes, and dies with its holder;
//! - a record lock keeps out, and is kept out by, the engines that take no other (RocksDB, LevelDB);
//!   closing any descriptor of the file in this process drops it, so it comes only on top, and a descriptor that this
//!   process opened in vain is closed with the holder's;
//! - a registry of (device, inode) keeps out a second handle of this process where the file
//!   system emulates `flock` with per-process record locks (NFS);
//! - the inode is compared with the path's after locking, because the file may have been unlinked
//!   and made again between open and lock, which would leave two owners of two inodes.
//!
//! A forked child inherits the descriptor and, with it, the lock. The guard remembers its process,
//! so the child sees that it is not the owner, and dropping the child's copy only closes a
//! descriptor: the parent keeps the lock. The owner unlocks before it closes, because closing alone
//! leaves the lock to a child that is just being started and has not yet closed its copy.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use arc_swap::ArcSwapOption;
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::fork;
use super::holders::{LockHolder, lock_holders};
use super::posix::PosixFs;
use crate::fs::{IoError, IoResult, LockGuard};
use crate::sync::{Arc, Mutex};

/// How often a lock file may be replaced under us before we give up.
const REPLACED_MAX: u32 = 16;

/// Device and inode: what a file is, whatever it is called.
type Identity = (u64, u64);

/// The locks that a process holds.
struct Held {
    process: u32,
    /// With the descriptors of those who came too late, and were opened before that was known: to close one would drop the
    /// holder's record lock.
    locks: Mutex<BTreeMap<Identity, Vec<OwnedFd>>>,
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
        HELD.load_full().expect("set above, and never taken away")
    }
}

/// A held lock.
pub(super) struct FileLock {
    claim: Claim,
    /// By which the file is found again.
    fs: PosixFs,
    path: PathBuf,
}

/// An entry of the registry, removed when its process drops it.
struct Claim {
    held: Arc<Held>,
    identity: Identity,
    /// Keeps the `flock`. Closed by the drop alone.
    file: Option<OwnedFd>,
}

impl Claim {
    fn stake(identity: Identity, file: OwnedFd) -> Option<Self> {
        let held = Held::here();
        let claimed = {
            let mut locks = held.locks.lock();
            match locks.get_mut(&identity) {
                Some(late) => {
                    late.push(file);
                    None
                }
                None => {
                    locks.insert(identity, Vec::new());
                    Some(file)
                }
            }
        };
        claimed.map(|file| Self { held, identity, file: Some(file) })
    }

    fn file(&self) -> &OwnedFd {
        self.file.as_ref().expect("closed by the drop alone")
    }

    fn is_of_this_process(&self) -> bool {
        self.held.process == fork::id()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            let mut locks = self.held.locks.lock();
            // Closed inside the lock: the inode of a file that is deleted is given to the next one at
            // once, which must not find itself claimed.
            self.file = None;
            locks.remove(&self.identity);
        }
    }
}

impl FileLock {
    /// Takes the lock of `path`, or fails with `WouldBlock`, naming the holder where the system tells.
    pub(super) fn take(fs: &PosixFs, path: &Path) -> IoResult<Self> {
        for _ in 0..REPLACED_MAX {
            if let Some(lock) = Self::try_take(fs, path)? {
                return Ok(lock);
            }
        }
        Err(IoError::new("lock", path, Errno::WOULDBLOCK))
    }

    /// `None` if the file was replaced between open and lock.
    fn try_take(fs: &PosixFs, path: &Path) -> IoResult<Option<Self>> {
        let failed = |errno: Errno| IoError::new("lock", path, errno);
        // Not even opened where this process holds it: closing again would drop its record lock.
        if let Some(stat) = fs.stat(path).map_err(failed)?
            && Held::here().locks.lock().contains_key(&identity_of(&stat))
        {
            return Err(held_by(path, &[]));
        }
        let fd = fs.open_regular("lock", path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)?;
        let stat = fs::fstat(&fd).map_err(failed)?;
        let identity = identity_of(&stat);
        let Some(claim) = Claim::stake(identity, fd) else { return Err(held_by(path, &[])) };
        let fd = claim.file();
        match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(held_by(path, &lock_holders(identity))),
            other => other.map_err(failed)?,
        }
        let record = retry_on_intr(|| fs::fcntl_lock(fd, FlockOperation::NonBlockingLockExclusive));
        // The system has two words for it. Any other failure is that of a file system without record
        // locks: engines that take no other don't run on it.
        if let Err(Errno::ACCESS | Errno::AGAIN) = record {
            // The lock that this process just took is not in its own way.
            let _ = fs::flock(fd, FlockOperation::Unlock);
            return Err(held_by(path, &lock_holders(identity)));
        }
        match fs.stat(path).map_err(failed)? {
            Some(stat) if identity_of(&stat) == identity => {
                Ok(Some(Self { claim, fs: fs.clone(), path: path.to_path_buf() }))
            }
            _ => Ok(None),
        }
    }
}

/// The error of a lock that is held: in this process if `holders` is empty.
fn held_by(path: &Path, holders: &[LockHolder]) -> IoError {
    let who = match holders {
        [] => "this process, or one that the system does not name, holds it".to_owned(),
        some => {
            let named: Vec<_> = some.iter().map(LockHolder::to_string).collect();
            format!("held by {}", named.join(" and "))
        }
    };
    IoError::new("lock", path, io::Error::new(io::ErrorKind::WouldBlock, who))
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.claim.is_of_this_process() {
            // Cannot fail on a locked descriptor; if it did, closing still releases.
            let _ = fs::flock(self.claim.file(), FlockOperation::Unlock);
        }
    }
}

impl LockGuard for FileLock {
    fn is_owner(&self) -> bool {
        self.claim.is_of_this_process()
            && match self.fs.stat(&self.path) {
                Ok(stat) => stat.is_some_and(|stat| identity_of(&stat) == self.claim.identity),
                // A disk in trouble says nothing about owners.
                Err(errno) => errno != Errno::NOTDIR,
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
    use crate::sync::LazyLock;

    fn take(path: &Path) -> IoResult<FileLock> {
        FileLock::take(&PosixFs::new(), path)
    }

    /// The path whose record lock a child of these tests asks for.
    const RIVAL: &str = "LITHIFY_LOCK_RIVAL";

    /// Held while a child starts, and by tests that leave a lock to the closing of its file: until it has
    /// become its program, a child has a copy of every file.
    static STARTS: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

    /// What RocksDB and LevelDB do before they open a directory, in a process of its own, since a
    /// record lock is its process's: says whether it was kept out, and holds the lock to its end.
    fn rival(path: &Path) -> (Child, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "os::lock::tests::the_rival", "--nocapture", "--quiet"])
            .env(RIVAL, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its test report is of no interest.
            .stderr(Stdio::null());
        let starts = STARTS.lock();
        let mut child = command.spawn().unwrap();
        drop(starts);
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
        let fd = fs::open(path, OFlags::RDWR | OFlags::CREATE, 0o666.into()).unwrap();
        let lock = fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive);
        println!("\nrival: {}", if lock.is_ok() { "held" } else { "kept out" });
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn engines_with_record_locks_are_kept_out_and_keep_out() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let lock = take(&path).unwrap();
        // A second try must not drop the lock.
        assert!(take(&path).is_err());
        let (late, said) = rival(&path);
        assert_eq!(said, "kept out");
        end(late);
        drop(lock);
        let (first, said) = rival(&path);
        assert_eq!(said, "held");
        assert_eq!(take(&path).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
        end(first);
        assert!(take(&path).is_ok());
    }

    /// Two threads may open the file before either has it: the one that is late must not drop the other's lock.
    #[test]
    fn who_comes_too_late_leaves_the_record_lock() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let lock = take(&path).unwrap();
        let late = fs::open(&path, OFlags::RDWR, 0.into()).unwrap();
        assert!(Claim::stake(lock.claim.identity, late).is_none());
        let (other, said) = rival(&path);
        assert_eq!(said, "kept out");
        end(other);
        drop(lock);
        let (next, said) = rival(&path);
        assert_eq!(said, "held", "the late descriptor is closed with the holder's");
        end(next);
    }

    /// What a child sees: the same guard under another process id. The claim stays its parent's.
    fn inherited(mut lock: FileLock) -> (FileLock, Claim) {
        let process = lock.claim.held.process + 1;
        let identity = lock.claim.identity;
        let held = Arc::new(Held { process, locks: Mutex::default() });
        let file = Some(lock.claim.file().try_clone().unwrap());
        let parents = std::mem::replace(&mut lock.claim, Claim { held, identity, file });
        (lock, parents)
    }

    #[test]
    fn a_forked_child_is_not_the_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let lock = take(&scratch.path().join("LOCK")).unwrap();
        assert!(lock.is_owner());
        let (lock, _parents) = inherited(lock);
        assert!(!lock.is_owner());
    }

    #[test]
    fn a_lock_is_free_at_once_although_a_starting_child_has_a_copy() {
        let _none_starts = STARTS.lock();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let refused = |path| take(path).err().map(|e| e.kind());
        let lock = take(&path).unwrap();
        let copy = lock.claim.file().try_clone().unwrap();
        // A child's guard must not unlock what is its parent's.
        let (lock, parents) = inherited(lock);
        drop(lock);
        assert_eq!(refused(&path), Some(std::io::ErrorKind::WouldBlock), "the claim stands");
        drop(parents);
        assert_eq!(refused(&path), Some(std::io::ErrorKind::WouldBlock), "and so does the lock");
        drop(copy);
        let lock = take(&path).unwrap();
        let copy = lock.claim.file().try_clone().unwrap();
        drop(lock);
        assert!(take(&path).is_ok());
        drop(copy);
    }

    #[test]
    fn a_file_that_gets_the_inode_of_a_deleted_one_is_not_claimed() {
        let scratch = tempfile::tempdir().unwrap();
        let lock_and_delete = |name: &str| {
            let path = scratch.path().join(name);
            for _ in 0..20_000 {
                // No other thread uses this name: refused, it would be for another file's sake.
                let lock = take(&path).unwrap();
                std::fs::remove_file(&path).unwrap();
                drop(lock);
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| lock_and_delete("one"));
            s.spawn(|| lock_and_delete("other"));
        });
    }

    #[test]
    fn a_failed_attempt_leaves_no_claim() {
        let _none_starts = STARTS.lock();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let rival = fs::open(&path, OFlags::RDWR | OFlags::CREATE, 0o666.into()).unwrap();
        fs::flock(&rival, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(take(&path).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
        drop(rival);
        assert!(take(&path).is_ok());
    }

    #[test]
    fn a_reader_that_holds_the_lock_shared_is_named() {
        let _none_starts = STARTS.lock();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        drop(take(&path).unwrap());
        let reader = fs::open(&path, OFlags::RDONLY, 0.into()).unwrap();
        fs::flock(&reader, FlockOperation::NonBlockingLockShared).unwrap();
        let refused = take(&path).err().unwrap();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
        let text = refused.to_string();
        assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
        assert!(text.contains("shared"), "{text}");
        drop(reader);
        assert!(take(&path).is_ok());
    }
}
