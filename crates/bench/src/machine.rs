//! The machine under the bench: memory made warm, peak memory, disk space, and a note of what
//! it is. Sources are `/proc` texts; where they are missing a figure is zero, never a failure.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::report::MachineNote;

/// Touches one byte of every page of `bytes` of memory and frees it, so that the first engine
/// does not pay for pages that a virtual machine's host has taken back (1.5 to 6 us each).
/// Stays below 80% of what is available now.
///
/// A process of its own does it, this program once more with [`TOUCH`] set: in this one the touched memory would count as
/// memory of the store, as long as its allocator keeps it or the kernel remembers the peak.
///
/// # Errors
/// If that process does not start, or fails.
pub(crate) fn touch_memory(bytes: u64) -> Result<()> {
    if std::env::var_os(TOUCH).is_some() {
        touch(bytes);
        std::process::exit(0);
    }
    if bytes == 0 {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe().context("finding this program")?);
    again.args(std::env::args_os().skip(1)).env(TOUCH, "1");
    let ended = again.stdin(Stdio::null()).stdout(Stdio::null()).status();
    match ended.context("touching memory in a process of its own")? {
        ended if ended.success() => Ok(()),
        ended => bail!("the process that touches memory ended with {ended}; --touch-memory 0"),
    }
}

/// Set for the process that touches memory.
const TOUCH: &str = "LITHIFY_BENCH_TOUCH";

fn touch(bytes: u64) {
    const PIECE: usize = 256 << 20;
    const PAGE: usize = 4096;
    let available = proc_kib("/proc/meminfo", "MemAvailable:").unwrap_or(0) * 1024;
    let pieces = bytes.min(available / 10 * 8) / PIECE as u64;
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..pieces {
        let mut piece = vec![0u8; PIECE];
        for page in piece.chunks_mut(PAGE) {
            page[0] = 1;
        }
        held.push(std::hint::black_box(piece));
    }
}

/// Greatest resident memory of this process, in bytes.
pub(crate) fn rss_peak_bytes() -> u64 {
    proc_kib("/proc/self/status", "VmHWM:").unwrap_or(0) * 1024
}

/// Disk space of all files under `dir`, in bytes (allocated blocks, not lengths).
pub(crate) fn space_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => space_bytes(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0, // The file went away meanwhile: it takes no space.
    });
    sizes.sum()
}

/// What this machine is.
pub(crate) fn note() -> MachineNote {
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    MachineNote {
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get()),
        cpu_model: model.map_or_else(String::new, |(_, name)| name.to_owned()),
        memory_bytes: proc_kib("/proc/meminfo", "MemTotal:").unwrap_or(0) * 1024,
        load_average: load.split(' ').next().and_then(|x| x.parse().ok()).unwrap_or(0.0),
    }
}

/// The number after `label` in a `/proc` text such as `MemAvailable:   123 kB`.
fn proc_kib(path: &str, label: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}
