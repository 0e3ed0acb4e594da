//! Who holds a lock, as far as the system tells: Linux lists all file locks in `/proc/locks`.
//!
//! ```text
//!   2: FLOCK  ADVISORY  READ  4711 fd:01:1573120 0 EOF      a number, the kind, whether it is enforced, shared or
//!   5: POSIX  ADVISORY  WRITE 4711 fd:01:1573120 0 EOF      exclusive, the process, device and number of the file
//! ```
//!
//! Leaves to others: what to do about it. A list that is missing or reads otherwise names none.

use std::fmt;

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
    holders(&std::fs::read_to_string("/proc/locks").unwrap_or_default(), identity)
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
    use super::*;

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
