//! What these tests compact: tables in memory, and no database around them.

use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::{
    CfId, ComparatorRef, End, FileId, JobId, Key, KeyRange, Kind, Pos, Prefixes, Stratum, bytewise,
};
use lithify_compact::{
    CompactionJob, CompactionSpec, Cut, EngineReport, Engines, FileNumbers, FlushJob, FlushSpec,
    JobContext, JobControl, LevelFormat, Maker, Outcome, OutputOptions, PartEvent,
};
use lithify_engine::Engine;
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{BufPool, Env, Fs, Mapped, MemFs, OpenOpts, read_full_at};
use lithify_files::dir::Dir;
use lithify_format::compress::Codec;
use lithify_lsm::{Edit, FileRef, Version};
use lithify_memtable::{HeapPool, MemTable, MemTableOptions, MemWriter};
use lithify_plan::{Cost as PlanCost, CutPolicy, JobSpec, Kind as JobKind, Prio, Reason};
use lithify_tables::cache::{TableCache, TableOptions};
use lithify_tables::sst::{DeletionTrigger, Verify};

use crate::stepped::Stepped;

/// Files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What a compaction came to.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// All files there are afterwards.
    pub(crate) files: Files,
    pub(crate) events: Vec<PartEvent>,
    pub(crate) reports: Vec<EngineReport>,
    /// Of the job's progress: done, of how many.
    pub(crate) progress: (u64, u64),
}

impl Ended {
    /// The reasons for which the CPU took over.
    pub(crate) fn replaced(&self) -> Vec<&str> {
        let why = self.events.iter().filter_map(|event| match event {
            PartEvent::Replaced { why, .. } => Some(&**why),
            _ => None,
        });
        why.collect()
    }
}

/// A small database without a database: two flushed tables, one over the other, and a directory.
pub(crate) struct World {
    pub(crate) fs: MemFs,
    pub(crate) rt: Arc<Stepped>,
    pub(crate) context: Arc<JobContext>,
    pub(crate) version: Version,
    /// Bytes of a file of the output.
    pub(crate) file_bytes: u64,
}

impl World {
    pub(crate) fn new() -> World {
        World::filled(bytewise())
    }

    /// With two tables in this order of keys.
    pub(crate) fn filled(order: ComparatorRef) -> World {
        let mut world = World::empty(order, output());
        world.flush(1, 0);
        world.flush(2, 2000);
        world
    }

    /// Without tables.
    pub(crate) fn empty(order: ComparatorRef, output: OutputOptions) -> World {
        let (fs, rt) = (MemFs::new(), Arc::new(Stepped::default()));
        fs.create_dir_all(Path::new("/db")).unwrap();
        let env = Env { fs: Arc::new(fs.clone()), rt: rt.clone() };
        let dir = Dir::new(env.fs.clone(), "/db");
        let options = TableOptions {
            order: order.clone(),
            prefixes: Prefixes::default(),
            blocks: None,
            verify: Verify::Always,
            direct: false,
            mapped: Mapped::No,
        };
        let maker = Maker { db_id: "test".into(), session: "ABCDEFGHIJKLMNOPQRST".into() };
        let context = JobContext::new(
            env,
            dir.clone(),
            TableCache::new(dir, options, 16),
            BufPool::new(1 << 20),
            maker,
            order.clone(),
            output,
            FileNumbers::new(FileId(10)),
        );
        let version = Version::empty(order);
        World { fs, rt, context: Arc::new(context), version, file_bytes: 60_000 }
    }

    /// A table of level 0 whose writes have the numbers from `seq` on.
    fn flush(&mut self, stratum: u32, seq: u64) {
        let mut rng = fastrand::Rng::with_seed(u64::from(stratum));
        self.flush_with(stratum, |writer| {
            for i in 1..1500 {
                let key = format!("key{:05}", rng.u32(0..3000));
                match rng.u8(0..8) {
                    0 => writer.add(seq + i, Kind::Delete, key.as_bytes(), b""),
                    _ => writer.add(seq + i, Kind::Value, key.as_bytes(), &[i as u8; 90]),
                }
            }
            writer.add_range_delete(seq + 1500, b"key00700", b"key00900");
        });
    }

    /// A table of level 0 with what `fill` writes.
    pub(crate) fn flush_with(&mut self, stratum: u32, fill: impl FnOnce(&mut MemWriter)) {
        let order = self.context.order.clone();
        let options = MemTableOptions { order, arena_bytes: 1 << 20, bloom: false };
        let (_, mut writer) = MemTable::new(options, Arc::new(HeapPool));
        fill(&mut writer);
        let spec = FlushSpec {
            mem: writer.freeze(),
            out: Pos { level: 0, stratum: Stratum(stratum) },
            snapshots: Vec::new(),
            cut: Cut::Whole,
            control: Arc::new(JobControl::flush(1)),
        };
        let ended = Arc::new(Mutex::new(None));
        let report = {
            let ended = ended.clone();
            Box::new(move |outcome: Outcome| *ended.lock() = Some(outcome))
        };
        self.rt.run(Box::new(FlushJob::new(self.context.clone(), spec, report)));
        let outcome = ended.lock().take().unwrap();
        let edit = Edit { adds: outcome.result.unwrap(), ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    /// Compacts all of it into level 1 with these engines.
    pub(crate) fn compact(&self, engines: Vec<Arc<dyn Engine>>, parts: u32) -> Ended {
        self.compact_by(&Arc::new(Engines::new(engines, 0)), parts)
    }

    /// The same with engines that may have done something before.
    pub(crate) fn compact_by(&self, engines: &Arc<Engines>, parts: u32) -> Ended {
        let inputs: Vec<FileRef> = self.version.files().cloned().collect();
        let bytes = inputs.iter().map(|f| f.bytes).sum();
        let plan = JobSpec {
            kind: JobKind::Manual,
            inputs: inputs.iter().map(|f| f.id).collect(),
            out: Pos::base(1),
            hull: KeyRange {
                lo: Key::from(&b"key00000"[..]),
                hi: End { key: Key::from(&b"key99999"[..]), inclusive: true },
            },
            cuts: CutPolicy { target_bytes: self.file_bytes, parts, ..CutPolicy::default() },
            after: Vec::new(),
            prio: Prio::Normal,
            est: PlanCost { read: bytes, write: bytes, entries: 0 },
            reason: Reason::Said("a test".into()),
        };
        let control = Arc::new(JobControl::compaction(Prio::Normal, bytes));
        let (ended, events) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
        let on_part = {
            let events = events.clone();
            Box::new(move |event| events.lock().push(event))
        };
        let report = {
            let ended = ended.clone();
            Box::new(move |outcome: Outcome| *ended.lock() = Some(outcome))
        };
        let spec = CompactionSpec {
            job: JobId(7),
            plan: Arc::new(plan),
            inputs,
            version: self.version.clone(),
            snapshots: vec![1700],
            control: control.clone(),
            on_part,
        };
        let job = CompactionJob::new(self.context.clone(), engines.clone(), spec, report);
        self.rt.run(Box::new(job));
        let outcome = ended.lock().take().expect("a job reports");
        let events = std::mem::take(&mut *events.lock());
        let (reports, progress) = (engines.reports(), control.progress());
        Ended { outcome, files: self.files(), events, reports, progress }
    }

    pub(crate) fn files(&self) -> Files {
        let list = self.fs.list(Path::new("/db")).unwrap();
        let read = |name: &str| {
            let file = self.fs.open(&Path::new("/db").join(name), OpenOpts::read()).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            read_full_at(&*file, &mut bytes, 0).unwrap();
            bytes
        };
        list.into_iter().map(|e| (e.name.clone(), read(&e.name))).collect()
    }
}

pub(crate) fn output() -> OutputOptions {
    OutputOptions {
        format_version: 6,
        block_bytes: 1 << 10,
        restart_interval: 4,
        millibits: 10_000,
        partition_bytes: Some(0),
        dict_bytes: 0,
        whole_keys: true,
        prefixes: Prefixes::default(),
        levels: [LevelFormat { codec: Codec::None, effort: 0 }; lithify_base::MAX_LEVELS],
        deletions: DeletionTrigger { window: 0, deletes: 1, ratio_percent: 0 },
        direct_io: false,
        write_bytes: 8 << 10,
        unchecked: false,
        as_rocksdb: false,
        cf_name: "default".into(),
        cf: CfId(0),
    }
}
