//! The world of the stress test: a disk that is late and fails now and then.

use std::hash::{Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify::{Builder, CompactionPri, Compression, Db, Policy, Settings};
use lithify_env::{Env, Fault, FaultFs, Fs, MemFs, OpenOpts, OsRt, RtOptions, read_full_at};

use crate::common::deeds::Deeds;
use crate::common::eager;

const DIRECTORY: &str = "/db";

/// What no policy depends on changes with the seed.
pub fn settings(policy: Policy, seed: u64) -> Settings {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut s = eager(policy, &mut rng);
    s.flush_threads = rng.u32(1..3);
    s.dynamic_levels = rng.bool();
    s.compression_upper = if rng.bool() { Compression::Lz4 } else { Compression::None };
    s.format_version = 5 + u32::from(rng.bool());
    s.l0_trigger = rng.u32(2..5);
    s.max_subcompactions = [1, 2, 4][rng.usize(0..3)];
    s.concurrent_memtable_writes = rng.bool() ^ policy.takes_runs();
    if !policy.takes_runs() {
        s.compaction_pri = CompactionPri::ALL[rng.usize(0..5)];
    }
    s
}

/// A machine in memory whose disk can be told to misbehave.
pub struct World {
    files: Arc<MemFs>,
    env: Env,
    settings: Settings,
    troubled: Arc<AtomicBool>,
}

impl World {
    pub fn new(settings: Settings, seed: u64) -> World {
        let troubled = Arc::new(AtomicBool::new(false));
        let (files, on) = (Arc::new(MemFs::new()), troubled.clone());
        let fs = FaultFs::new(files.clone(), move |op| {
            if on.load(Ordering::Relaxed) { trouble(seed, op) } else { None }
        });
        let rt = OsRt::new(RtOptions {
            flush_threads: settings.flush_threads as usize,
            compact_threads: settings.compaction_threads as usize,
            ..RtOptions::default()
        });
        World { files, env: Env { fs: Arc::new(fs), rt: Arc::new(rt) }, settings, troubled }
    }

    /// The disk behaves while the database opens.
    pub fn open(&self) -> Result<Db, String> {
        let builder = Builder::new(self.settings.clone()).env(self.env.clone());
        let db = builder.open(DIRECTORY).map_err(|e| format!("the open failed: {e}"))?;
        self.troubled.store(true, Ordering::Relaxed);
        Ok(db)
    }

    /// Has the disk behave, or misbehave again. A disk that fails every large job for long is one
    /// whose writes are refused for as long, by right.
    pub fn misbehave(&self, yes: bool) {
        self.troubled.store(yes, Ordering::Relaxed);
    }

    /// And while it closes. A flush that met a fault before may fail now, and a close would tell.
    pub fn close(&self, db: Db) -> Result<(), String> {
        self.troubled.store(false, Ordering::Relaxed);
        if db.flush().is_err() {
            db.flush().map_err(|e| format!("the second flush failed: {e}"))?;
        }
        db.close().map_err(|e| format!("the close failed: {e}"))
    }

    /// Adds up what the closed database's event log says, and removes the log.
    pub fn harvest(&self, deeds: &mut Deeds) {
        for name in ["EVENTS.old", "EVENTS"] {
            let path = Path::new(DIRECTORY).join(name);
            let Ok(file) = self.files.open(&path, OpenOpts::read()) else { continue };
            let mut text = vec![0; file.len().unwrap() as usize];
            read_full_at(&*file, &mut text, 0).unwrap();
            deeds.note(&String::from_utf8(text).unwrap());
            self.files.unlink(&path).unwrap();
        }
    }
}

/// One file in eight is written slowly, so that older flushes and jobs end after newer ones; one
/// in seventy fails while it is written or synced; edits take their time to become durable.
fn trouble(seed: u64, op: &lithify_env::Op<'_>) -> Option<Fault> {
    let mut hasher = std::hash::DefaultHasher::new();
    (seed, op.path).hash(&mut hasher);
    let fate = hasher.finish();
    let mut rng = fastrand::Rng::with_seed(fate ^ op.index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let pause = |most: u64, rng: &mut fastrand::Rng| {
        std::thread::sleep(Duration::from_micros(rng.u64(0..most)));
    };
    let table = op.path.extension().is_some_and(|e| e == "sst");
    match op.name {
        "write_at" if table => {
            if fate.is_multiple_of(8) {
                pause(8000, &mut rng);
            }
            if fate % 100 == 1 && rng.bool() {
                return Some(io::Error::other("a table that can't be written").into());
            }
        }
        "sync_data" | "sync_all" if table && fate % 200 == 2 => {
            return Some(io::Error::other("a table that can't be synced").into());
        }
        "sync_data" | "sync_all" if rng.u8(0..4) == 0 => pause(4000, &mut rng),
        "read_at" if table && rng.u16(0..500) == 0 => pause(2000, &mut rng),
        _ => {}
    }
    None
}
