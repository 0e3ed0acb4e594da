//! Who holds a lock, as far as the system tells: Linux lists all file locks in `/proc/locks`.
//!
//! ```text
//!   2: FLOCK  ADVISORY  READ  4711 fd:01:1573120 0 EOF      a number, the kind, whether it is enforced, shared or
//!   5: POSIX  ADVISORY  WRITE 4711 fd:01:1573120 0 EOF      exclusive, the process, device and number of the file
//! ```
//!
//! Leaves to others: what to do about it. A list that is missing or reads otherwise names none.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{major, minor};

/// A process that holds a lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number; 0 if the system hides it.
    pub process: u32,
    /// Whether others may hold the lock beside it, as readers do.
    pub shared: bool,
}

/// The processes that hold a lock of the file with this [`identity`](crate::File::identity), in the order
/// of the system.
pub fn lock_holders(identity: (u64, u64)) -> Vec<LockHolder> {
    // A list that other processes change while it is read may lack a lock that stood all the time.
    let lists = (0..READS).map(|_| list().unwrap_or_default());
    lists.map(|list| holders(&list, identity)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// How often the list is read before it is believed that it names none.
const READS: u32 = 4;

/// More than the system hands out in one read.
const READ_BYTES: usize = 64 << 10;

/// All locks of the system. Each read goes on at an entry's number, and whatever was taken or released
/// since the read before has shifted those: so there are few reads, each of as much as there is.
fn list() -> io::Result<String> {
    let mut locks = File::open("/proc/locks")?;
    let (mut list, mut part) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        match locks.read(&mut part)? {
            0 => return Ok(String::from_utf8_lossy(&list).into_owned()),
            n => list.extend_from_slice(&part[..n]),
        }
    }
}

fn holders(locks: &str, (device, number): (u64, u64)) -> Vec<LockHolder> {
    let device = format!("{:02x}:{:02x}", major(device), minor(device));
    let found = locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // One that waits has an arrow in front, and holds nothing.
        let [_, "FLOCK" | "POSIX" | "OFDLCK", _, how, process, of, ..] = words[..] else {
            return None;
        };
        let (on, file) = of.rsplit_once(':')?;
        let holder = LockHolder { process: process.parse().unwrap_or(0), shared: how == "READ" };
        (file.parse() == Ok(number)).then_some((on == device, holder))
    });
    let found: Vec<_> = found.collect();
    // Some file systems (Btrfs, overlays) show files another device than locks.
    let sure = found.iter().any(|(same, _)| *same);
    let mut holders: Vec<_> =
        found.into_iter().filter(|(same, _)| *same || !sure).map(|(_, holder)| holder).collect();
    holders.dedup();
    holders
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = match self.process {
            0 => return f.write_str("a process that the system hides"),
            process => std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default(),
        };
        write!(f, "process {}", self.process)?;
        if !program.trim_end().is_empty() {
            write!(f, " (`{}`)", program.trim_end().escape_debug())?;
        }
        match self.shared {
            true => f.write_str(
                ", which holds it shared: a reader, maybe a program that locks what it copies",
            ),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use rustix::fs::{FlockOperation, flock, fstat};

    use super::*;

    /// A file that is locked until it is dropped: closing alone would not do while a child that another
    /// test starts, and that has not become its program yet, has a copy.
    struct Locked(File);

    impl Locked {
        fn open(path: &Path) -> Locked {
            let file = File::create(path).unwrap();
            flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
            Locked(file)
        }
    }

    impl Drop for Locked {
        fn drop(&mut self) {
            flock(&self.0, FlockOperation::Unlock).unwrap();
        }
    }

    /// Ends the others' work, also when its thread panics.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(false, Relaxed);
        }
    }

    #[test]
    fn a_holder_is_found_while_other_locks_come_and_go() {
        let scratch = tempfile::tempdir().unwrap();
        let open = |name: &str| Locked::open(&scratch.path().join(name));
        let busy = AtomicBool::new(true);
        std::thread::scope(|s| {
            let _ends = Ends(&busy);
            let churn = |name: &'static str| {
                let (open, busy) = (&open, &busy);
                s.spawn(move || {
                    while busy.load(Relaxed) {
                        drop(open(name));
                    }
                })
            };
            churn("one");
            churn("other");
            let unnamed = (0..2_000).filter(|_| {
                let held = open("LOCK");
                let stat = fstat(&held.0).unwrap();
                lock_holders((stat.st_dev, stat.st_ino)).is_empty()
            });
            assert_eq!(unnamed.count(), 0, "times that the list lacked the lock");
        });
    }

    #[test]
    fn holders_of_one_file_are_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 12 08:01:77 0 EOF\n2: FLOCK  ADVISORY  READ  34 08:01:7 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 56 08:01:7 0 EOF\nodd\n3: OFDLCK ADVISORY READ -1 08:01:7 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 78 08:02:7 0 EOF\n";
        let holder = |process, shared| LockHolder { process, shared };
        let on = |minor| (rustix::fs::makedev(8, minor), 7);
        assert_eq!(holders(locks, on(1)), [holder(34, true), holder(0, true)]);
        assert_eq!(holders(locks, on(2)), [holder(78, false)]);
        // On no device that the list has: whichever has the number.
        assert_eq!(holders(locks, on(3)).len(), 3);
        assert_eq!(holder(0, true).to_string(), "a process that the system hides");
    }
}
