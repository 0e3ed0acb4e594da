//! Who holds a lock, as far as the system tells: Linux lists all file locks in `/proc/locks`.
//!
//! ```text
//!   2: FLOCK  ADVISORY  READ  4711 fd:01:1573120 0 EOF      a number, the kind, whether it is enforced, shared or
//!   5: POSIX  ADVISORY  WRITE 4711 fd:01:1573120 0 EOF      exclusive, the process, device and number of the file
//! ```
//!
//! Leaves to others: what to do about it. A list that is missing or reads otherwise names none.

use rustix::fs::{Stat, major, minor};

/// The processes that hold a lock of the file, each with its number, its program and how it holds it.
pub(super) fn of(stat: &Stat) -> Vec<String> {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let file = format!("{:02x}:{:02x}:{}", major(stat.st_dev), minor(stat.st_dev), stat.st_ino);
    let mut holders: Vec<String> = holders(&locks, &file).map(described).collect();
    holders.dedup();
    holders
}

/// The processes that hold a lock of `file`, and whether others may hold it beside them.
fn holders<'a>(locks: &'a str, file: &'a str) -> impl Iterator<Item = (u32, bool)> + 'a {
    locks.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // One that waits has an arrow in front, and holds nothing.
        let [_, _, _, how, process, of, ..] = words[..] else { return None };
        (of == file).then_some((process.parse().ok()?, how == "READ"))
    })
}

fn described((process, shared): (u32, bool)) -> String {
    let program = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let program = match program.trim_end() {
        "" => String::new(),
        name => format!(" (`{}`)", name.escape_debug()),
    };
    let how = match shared {
        true => ", which holds it shared: a reader, maybe a program that locks what it copies",
        false => "",
    };
    format!("process {process}{program}{how}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn holders_of_one_file_are_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 12 fd:01:77 0 EOF\n2: FLOCK  ADVISORY  READ  34 fd:01:7 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 56 fd:01:7 0 EOF\nodd\n3: FLOCK ADVISORY WRITE x fd:01:7 0 EOF\n";
        let found: Vec<_> = super::holders(locks, "fd:01:7").collect();
        assert_eq!(found, [(34, true)]);
    }
}
