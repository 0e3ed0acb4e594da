//! How much memory this process may have, and how much of it mapped files may take.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::sync::LazyLock;

static FOUND: LazyLock<Option<u64>> = LazyLock::new(|| {
    let text = |path: &str| fs::read_to_string(path).ok();
    let machine = text("/proc/meminfo").and_then(|text| of_machine(&text));
    let groups = text("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(limits(&groups, text)).min()
});

/// Most bytes of files that are mapped because they fit: half of the machine's memory, or of the least limit of a control
/// group that this process is in. None where nothing says how much there is, or where the address space is limited, of
/// which a mapping takes its whole length. The memory is asked at the first call and kept.
pub(super) fn mapped_most() -> u64 {
    match getrlimit(Resource::As).current {
        Some(_) => 0,
        None => FOUND.unwrap_or(0) / 2,
    }
}

/// What `/proc/meminfo` says.
fn of_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limits of the groups of `/proc/self/cgroup` and of those that they are in, of both versions: from `memory.high` on the
/// system takes pages of files away, too. In a container its own
/// group may be at the top of what it sees, whatever path the file gives; then it is among those above.
fn limits(groups: &str, text: impl Fn(&str) -> Option<String>) -> Vec<u64> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(of), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (root, files): (_, &[&str]) = match of {
            "" => ("/sys/fs/cgroup", &["memory.max", "memory.high"]),
            _ if of.split(',').any(|of| of == "memory") => {
                ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
            }
            _ => continue,
        };
        for group in Path::new(path).ancestors().filter_map(Path::to_str) {
            for file in files {
                let limit = text(&format!("{root}{}/{file}", group.trim_end_matches('/')));
                // A group without a limit has a word there, or a number beyond all memory.
                found.extend(limit.and_then(|limit| limit.trim().parse::<u64>().ok()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        assert_eq!(
            of_machine("MemTotal:       24683520 kB\nMemFree: 1 kB\n"),
            Some(24_683_520 << 10)
        );
        assert_eq!(of_machine("MemFree: 1 kB\n"), None);
        assert_eq!(of_machine("MemTotal: much\n"), None);
        assert_eq!(FOUND.is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn nothing_is_mapped_by_itself_where_addresses_are_few() {
        use rustix::process::{Rlimit, setrlimit};
        let before = getrlimit(Resource::As);
        if before.current.is_none() {
            assert_eq!(mapped_most(), FOUND.unwrap_or(0) / 2);
        }
        // A limit in name only, as other tests run beside this one.
        setrlimit(Resource::As, Rlimit { current: Some(i64::MAX as u64), ..before }).unwrap();
        assert_eq!(mapped_most(), 0);
        setrlimit(Resource::As, before).unwrap();
    }

    #[test]
    fn limits_are_those_of_all_groups_above() {
        let files = |path: &str| {
            let limit = match path {
                "/sys/fs/cgroup/a/memory.max" => "max",
                "/sys/fs/cgroup/a/b/memory.max" => "4096",
                "/sys/fs/cgroup/a/b/memory.high" => "2048",
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => "9223372036854771712",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "8192",
                _ => return None,
            };
            Some(format!("{limit}\n"))
        };
        assert_eq!(limits("0::/a/b/c\n", files), [4096, 2048]);
        assert_eq!(
            limits("5:cpu:/a\n4:memory,x:/c\n0::/\n", files),
            [9_223_372_036_854_771_712, 8192]
        );
        assert_eq!(limits("0::/\n1\n", |_| None), [0; 0]);
    }
}
