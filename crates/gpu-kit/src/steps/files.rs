//! Step 8: a compaction of a database on memory-backed files, by the GPU and by the CPU engine in turns: in one part,
//! certified by sums and in full, and in as many parts as there are processors.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Result, bail};
use lithify::engine::Engine;
use lithify::{Builder, ColumnFamilyOptions, Compression, Db, Policy, Settings};

use lithify_engine_gpu::GpuOptions;
use lithify_merge::certify::Mode;

use super::Found;
use crate::machine::Machine;

/// What a compaction took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compacted {
    /// Seconds by the clock, of processor time of the threads of parts, and of all threads.
    pub(crate) seconds: f64,
    pub(crate) cpu: f64,
    pub(crate) all_cpu: f64,
    /// Entries that were read, and a sum over what the database holds after it.
    pub(crate) entries: f64,
    pub(crate) holds: u64,
}

/// Settings of all databases here: plain blocks, compacted in so many parts at once.
pub(crate) fn settings(parts: u32) -> Settings {
    let none = Compression::None;
    Settings {
        policy: Some(Policy::Leveled),
        auto_compaction: false,
        compression_upper: none,
        compression_lower: none,
        max_subcompactions: parts,
        compaction_threads: parts.max(2),
        // Room for sets of a GPU beside the buffers of jobs.
        memory_budget: 2 << 30,
        buffer_bytes: Some(512 << 20),
        ..Settings::default()
    }
}

/// A place for files in memory, if the system has one.
pub(crate) fn place() -> Result<tempfile::TempDir> {
    let shared = Path::new("/dev/shm");
    Ok(match shared.is_dir() {
        true => tempfile::tempdir_in(shared)?,
        false => tempfile::tempdir()?,
    })
}

/// A file system in memory with huge pages, mounted for as long as this is there. With ordinary ones the system takes each
/// page of 4 KiB for a file under a lock of the file's: about 2 GB/s, whatever writes to it.
struct Huge(tempfile::TempDir);

impl Huge {
    /// None where this process may not mount one.
    fn new() -> Result<Option<Huge>> {
        let dir = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "huge=always", "tmpfs"]).arg(dir.path());
        let is_mounted = mount.output().is_ok_and(|out| out.status.success());
        Ok(is_mounted.then_some(Huge(dir)))
    }
}

impl Drop for Huge {
    fn drop(&mut self) {
        // What stays mounted is said by the folder that can't be removed.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// A family that is compacted before the measured one, as buffers of a store at work are not fresh from the system.
const WARM: &str = "warm";

/// A database with two families, of eight runs each with values of `value` bytes; a family comes to about `bytes`.
pub(crate) fn fill(dir: &Path, value: usize, bytes: u64) -> Result<()> {
    let db = Builder::new(settings(1)).open(dir)?;
    load(&*db.create_column_family(WARM, ColumnFamilyOptions::new())?, value, bytes)?;
    load(&db, value, bytes)?;
    db.close()?;
    Ok(())
}

fn load(db: &Db, value: usize, bytes: u64) -> Result<()> {
    let entries = bytes / (value as u64 + 24);
    let mut state = 1u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    for run in 0..8 {
        for n in (run..entries).step_by(8) {
            let key = format!("{:016}", if n % 10 == 0 { n / 2 } else { n });
            if n % 20 == 7 {
                db.delete(key.as_bytes())?;
                continue;
            }
            let bytes: Vec<u8> =
                (0..value.div_ceil(8)).flat_map(|_| draw().to_le_bytes()).take(value).collect();
            db.put(key.as_bytes(), &bytes)?;
        }
        db.flush()?;
    }
    Ok(())
}

/// Compacts a copy of `from` by `engine`, or by the CPU, in one part.
#[cfg(feature = "emu")]
pub(crate) fn compact(
    machine: &Machine,
    from: &Path,
    to: &Path,
    engine: Option<Arc<dyn Engine>>,
) -> Result<Compacted> {
    compact_in(1, machine, from, to, engine)
}

/// Compacts a copy of `from` by `engine`, or by the CPU, in so many parts.
fn compact_in(
    parts: u32,
    machine: &Machine,
    from: &Path,
    to: &Path,
    engine: Option<Arc<dyn Engine>>,
) -> Result<Compacted> {
    std::fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    let builder = Builder::new(settings(parts));
    let is_device = engine.is_some();
    let db = match engine {
        Some(engine) => builder.engine(engine).open(to)?,
        None => builder.open(to)?,
    };
    db.column_family(WARM)?.compact_range(None, None)?;
    let before = db.stats().counts;
    let (start, spent) = (machine.seconds(), spent());
    db.compact_range(None, None)?;
    let (seconds, all_cpu) = (machine.seconds() - start, self::spent() - spent);
    let stats = db.stats();
    if is_device && !stats.engines.iter().any(|of| of.sets > 0 && of.last_lost.is_none()) {
        bail!("the compaction was not the device's: {:?}", stats.engines);
    }
    let cpu = (stats.counts.compaction_cpu_nanos - before.compaction_cpu_nanos) as f64 / 1e9;
    let entries = (stats.counts.compaction_entries - before.compaction_entries) as f64;
    let holds = sum(&db)?;
    db.close()?;
    std::fs::remove_dir_all(to)?;
    Ok(Compacted { seconds, cpu, all_cpu, entries, holds })
}

/// Seconds of processor time of this process.
fn spent() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A sum over all that a database shows, in order.
pub(crate) fn sum(db: &Db) -> Result<u64> {
    let mut sum = 0u64;
    let mut iter = db.iter()?;
    iter.seek_to_first();
    while iter.valid() {
        for byte in iter.key().iter().chain(iter.value()) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        iter.next();
    }
    iter.status()?;
    Ok(sum)
}

/// The middle one.
pub(crate) fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How a row is compacted.
#[derive(Clone, Copy)]
struct How {
    parts: u32,
    certify: Mode,
    /// MiB of a set.
    set: u64,
    /// Sets are as large as the engine finds best, as in the product.
    is_tuned: bool,
}

/// Nanoseconds an entry by the clock, of processor time of the threads of parts, and of all threads: by the CPU engine, and
/// by the GPU. Medians of rounds in turns.
fn costs(machine: &Machine, at: &Path, how: How) -> Result<[[f64; 2]; 3]> {
    let mut took = [const { [const { vec![] }; 2] }; 3];
    let units = how.parts.clamp(3, 64) as u8;
    let mut options = machine.options(units, machine.size(how.set << 20, 256 << 10));
    if how.is_tuned {
        options.tuned = Some((4 << 20, 256 << 20));
    }
    for _ in 0..machine.size(3, 1) {
        let engine = machine.engine(GpuOptions { certify: how.certify, ..options })?;
        let compact =
            |to, engine| compact_in(how.parts, machine, &at.join("from"), &at.join(to), engine);
        let by = [compact("cpu", None)?, compact("gpu", Some(Arc::new(engine)))?];
        if by[0].holds != by[1].holds {
            bail!("the database holds other entries than after the CPU's compaction");
        }
        for (i, one) in by.iter().enumerate() {
            for (took, seconds) in took.iter_mut().zip([one.seconds, one.cpu, one.all_cpu]) {
                took[i].push(1e9 * seconds / one.entries);
            }
        }
    }
    Ok(took.map(|of| of.map(median)))
}

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let mut found = Found::default();
    let (place, huge) = (place()?, if machine.is_real() { Huge::new()? } else { None });
    let at = huge.as_ref().map_or(place.path(), |huge| huge.0.path());
    found.note(match huge {
        Some(_) => "files lie on a tmpfs with huge pages; those of rows called small_pages do not",
        None => "no tmpfs with huge pages could be mounted: files have ordinary ones",
    });
    let mut row = |name: String, at: &Path, how| -> Result<()> {
        let [wall, cpu, all] = costs(machine, at, how)?;
        found.figure(format!("{name}_ratio"), wall[0] / wall[1]);
        found.figure(format!("{name}_cpu_ratio"), cpu[0] / cpu[1]);
        found.figure(format!("{name}_all_cpu_ratio"), all[0] / all[1]);
        found.figure(format!("{name}_ns"), wall[1]);
        found.figure(format!("{name}_cpu_ns"), cpu[1]);
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get().min(64) as u32);
    for value in machine.asked.values(&[32, 64, 128, 256]) {
        fill(&at.join("from"), value, machine.size(256 << 20, 2 << 20))?;
        let one = How { parts: 1, certify: Mode::Sums, set: 8, is_tuned: false };
        row(format!("v{value}"), at, one)?;
        if value == 128 {
            // Sizes of small sets are not to be tuned.
            if !machine.asked.quick {
                row("v128_16mib".to_owned(), at, How { set: 16, ..one })?;
                row("v128_32mib".to_owned(), at, How { set: 32, ..one })?;
                row("v128_tuned".to_owned(), at, How { is_tuned: true, ..one })?;
            }
            row("v128_full".to_owned(), at, How { certify: Mode::Full, ..one })?;
            row("v128_all_cores".to_owned(), at, How { parts: cores, ..one })?;
        }
        std::fs::remove_dir_all(at.join("from"))?;
        if value == 128 && huge.is_some() {
            fill(&place.path().join("from"), value, machine.size(256 << 20, 2 << 20))?;
            row("v128_small_pages".to_owned(), place.path(), one)?;
        }
    }
    found.figure("cores", f64::from(cores));
    found.note(
        "ratio: by the clock; cpu_ratio: processor time of the threads of parts; all_cpu_ratio: of all threads; ns: an \
         entry, by the GPU",
    );
    Ok(found)
}
