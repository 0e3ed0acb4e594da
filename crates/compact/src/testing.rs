//! What the tests of this room share: a directory in memory with tables that flushes wrote, and jobs
//! stepped by the test or by threads.

use std::ops::Range;
use std::path::Path;

use lithify_base::{CfId, End, FileId, JobId, KeyRange, Kind, Pos, Prefixes, Tag, bytewise};
use lithify_env::sync::Arc;
use lithify_env::{
    BufPool, Class, Env, Fs, Job, Mapped, MemFs, OpenOpts, OsRt, PosixFs, RtOptions, Step, oneshot,
    read_full_at,
};
use lithify_files::dir::Dir;
use lithify_format::compress::Codec;
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_memtable::{HeapPool, MemTable, MemTableOptions};
use lithify_merge::workload::Choices;
use lithify_plan::{Cost, CutPolicy, JobSpec, Kind as JobKind, Prio, Reason};
use lithify_tables::cache::{TableCache, TableOptions};
use lithify_tables::sst::{DeletionTrigger, FullIndex, TableIter, Verify};

use crate::context::{FileNumbers, JobContext, LevelFormat, Maker, OutputOptions};
use crate::recipe::{InputRun, input_runs};
use crate::survey::Cut;
use crate::{CompactionSpec, FlushJob, FlushSpec, JobControl, Outcome};

/// Bytes of a write: small, so that small tables are many sets.
pub(crate) const WRITE: usize = 4 << 10;

/// A directory in memory with tables.
pub(crate) struct World {
    pub(crate) context: Arc<JobContext>,
    pub(crate) fs: MemFs,
    numbers: FileNumbers,
    /// Newest position first, each in key order.
    pub(crate) inputs: Vec<FileRef>,
    seq: u64,
}

/// An entry: user key, tag, value.
pub(crate) type Entry = (Vec<u8>, Tag, Vec<u8>);

pub(crate) fn key(n: u32) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

fn output(version: u32) -> OutputOptions {
    OutputOptions {
        format_version: version,
        block_bytes: 512,
        restart_interval: 4,
        millibits: 10_000,
        partition_bytes: Some(0),
        dict_bytes: 0,
        whole_keys: true,
        prefixes: Prefixes::default(),
        levels: [LevelFormat { codec: Codec::None, effort: 0 }; lithify_base::MAX_LEVELS],
        deletions: DeletionTrigger::default(),
        direct_io: false,
        write_bytes: WRITE,
        unchecked: false,
        as_rocksdb: false,
        cf_name: "default".into(),
        cf: CfId(0),
    }
}

impl World {
    /// Without tables; those it gets have format version `version`, so from 6 on counts of their blocks.
    pub(crate) fn new(version: u32) -> World {
        let fs = MemFs::new();
        fs.create_dir_all(Path::new("/db")).unwrap();
        let numbers = FileNumbers::new(FileId(1));
        let context = context(&fs, numbers.clone(), output(version));
        World { context, fs, numbers, inputs: Vec::new(), seq: 0 }
    }

    /// A world with runs that overlap: each of the first has some keys of all, and the last, older, has
    /// several files.
    pub(crate) fn filled(seed: u64) -> World {
        let mut world = World::new(6);
        for file in 0..4 {
            world.flush(file * 250..file * 250 + 250, seed + u64::from(file), Pos::base(1));
        }
        for run in 1..4 {
            let dice = &mut Choices::new(seed + u64::from(run));
            let from = dice.below(400) as u32;
            world.flush(from..from + 500, seed + 10 + u64::from(run), Pos::new(0, run));
        }
        world
    }

    /// Another place with the same files: tables are opened anew, and files numbered on.
    pub(crate) fn elsewhere(&self) -> Arc<JobContext> {
        context(&self.fs, self.numbers.clone(), OutputOptions::clone(&self.context.output))
    }

    /// Adds a table at `pos` with some versions and deletions of `keys`; newer than all so far.
    pub(crate) fn flush(&mut self, keys: Range<u32>, seed: u64, pos: Pos) {
        let options = MemTableOptions { order: bytewise(), arena_bytes: 1 << 20, bloom: false };
        let (mem, mut writer) = MemTable::new(options, Arc::new(HeapPool));
        let dice = &mut Choices::new(seed);
        for n in keys {
            self.seq += 1;
            let len = dice.below(200);
            match dice.below(8) {
                0 => writer.add(self.seq, Kind::Delete, &key(n), b""),
                1 => continue,
                _ => writer.add(self.seq, Kind::Value, &key(n), &dice.bytes(len)),
            };
        }
        let control = Arc::new(JobControl::flush(0));
        let spec = FlushSpec { mem, out: pos, snapshots: Vec::new(), cut: Cut::Whole, control };
        let (sender, told) = oneshot();
        let report = Box::new(move |outcome: Outcome| sender.send(outcome));
        let mut job = FlushJob::new(self.context.clone(), spec, report);
        drive(&self.context, || job.step());
        let files = told.take().unwrap().result.unwrap();
        self.inputs.extend(files.into_iter().map(Arc::new));
        let order = |f: &FileRef| (std::cmp::Reverse(f.pos.stratum), f.pos.level);
        self.inputs.sort_by(|a, b| {
            (a.pos.level, order(a)).cmp(&(b.pos.level, order(b))).then(a.range.lo.cmp(&b.range.lo))
        });
    }

    /// Takes over the tables of a LevelDB directory under `db/tests/foreign`, as files of one run of level 1.
    pub(crate) fn take_over(&mut self, directory: &str) {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../db/tests/foreign");
        let (folder, disk) = (tests.join(directory), PosixFs::new());
        for entry in disk.list(&folder).unwrap() {
            let Some(number) = entry.name.strip_suffix(".ldb") else { continue };
            let table = disk.open(&folder.join(&entry.name), OpenOpts::read()).unwrap();
            let mut bytes = vec![0; table.len().unwrap() as usize];
            read_full_at(&*table, &mut bytes, 0).unwrap();
            // Beyond what jobs make here.
            let id = 1000 + number.parse::<u64>().unwrap();
            let to = Path::new("/db").join(format!("{id:06}.ldb"));
            self.fs.open(&to, OpenOpts::write().or_create()).unwrap().write_at(&bytes, 0).unwrap();
            let unknown = End { key: key(0)[..].into(), inclusive: true };
            let range = KeyRange { lo: key(0)[..].into(), hi: unknown };
            let mut file = FileMeta::new(FileId(id), Pos::base(1), range);
            file.bytes = bytes.len() as u64;
            let entries = self.entries(&[Arc::new(file.clone())]);
            let (first, last) = (&entries[0].0, &entries[entries.len() - 1].0);
            file.range = KeyRange::incl(&first[..], &last[..]);
            self.inputs.push(Arc::new(file));
        }
        self.inputs.sort_by(|a, b| a.range.lo.cmp(&b.range.lo));
    }

    pub(crate) fn runs(&self) -> Vec<InputRun> {
        let open = |f: &FileRef| {
            let full = FullIndex::of(self.context.tables.open(f).unwrap()).unwrap();
            (f.clone(), Arc::new(full))
        };
        input_runs(self.inputs.iter().map(open).collect())
    }

    /// A compaction of all tables into level 2, in at most `parts` parts.
    pub(crate) fn spec(&self, parts: u32) -> CompactionSpec {
        let adds = self.inputs.iter().map(|f| (**f).clone()).collect();
        let edit = Edit { adds, ..Edit::new(CfId(0)) };
        let version = Version::empty(bytewise()).apply(&edit).unwrap();
        let cuts = CutPolicy {
            target_bytes: 16 << 10,
            soft_min_bytes: 2 << 10,
            soft: Vec::new(),
            hard: Vec::new(),
            parts,
        };
        let hi = End { key: key(999_999)[..].into(), inclusive: true };
        let plan = JobSpec {
            kind: JobKind::Down,
            inputs: self.inputs.iter().map(|f| f.id).collect(),
            out: Pos::base(2),
            hull: KeyRange { lo: key(0)[..].into(), hi },
            cuts,
            after: Vec::new(),
            prio: Prio::Normal,
            est: Cost::default(),
            reason: Reason::Said("a test".into()),
        };
        CompactionSpec {
            job: JobId(1),
            plan: Arc::new(plan),
            inputs: self.inputs.clone(),
            version,
            snapshots: vec![self.seq / 2],
            control: Arc::new(JobControl::compaction(Prio::Normal, 1 << 20)),
            on_part: Box::new(|_| {}),
        }
    }

    /// All entries of some tables, one after the other.
    pub(crate) fn entries(&self, files: &[FileRef]) -> Vec<Entry> {
        let mut all = Vec::new();
        for file in files {
            let mut iter = TableIter::new(self.context.tables.open(file).unwrap());
            let mut more = iter.seek_to_first();
            while more {
                all.push((iter.user_key().to_vec(), iter.tag(), iter.value().to_vec()));
                more = iter.next();
            }
            iter.status().unwrap();
        }
        all
    }

    /// Numbers of the tables in the directory.
    pub(crate) fn tables(&self) -> Vec<u64> {
        let names = self.fs.list(Path::new("/db")).unwrap();
        let number = |name: &str| name.strip_suffix(".sst").map(|n| n.parse().unwrap());
        let mut all: Vec<u64> = names.iter().filter_map(|e| number(&e.name)).collect();
        all.sort_unstable();
        all
    }
}

fn context(fs: &MemFs, numbers: FileNumbers, output: OutputOptions) -> Arc<JobContext> {
    let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 2, ..RtOptions::default() }));
    let dir = Dir::new(Arc::new(fs.clone()), "/db");
    let options = TableOptions {
        order: bytewise(),
        prefixes: Prefixes::default(),
        blocks: None,
        verify: Verify::Always,
        direct: false,
        mapped: Mapped::No,
    };
    let tables = TableCache::new(dir.clone(), options, 100);
    let maker = Maker { db_id: "test".into(), session: "S".repeat(20) };
    let env = Env { fs: Arc::new(fs.clone()), rt };
    let pool = BufPool::new(1 << 20);
    Arc::new(JobContext::new(env, dir, tables, pool, maker, bytewise(), output, numbers))
}

/// Steps a job to its end, waiting as it asks.
pub(crate) fn drive(context: &JobContext, mut step: impl FnMut() -> Step) {
    loop {
        match step() {
            Step::More => {}
            Step::Wait(ticket) => {
                context.env.rt.park(&ticket, None);
            }
            Step::WaitUntil(ticket, at) => {
                context.env.rt.park(&ticket, Some(at));
            }
            Step::Done => return,
        }
    }
}

/// Has the threads of `context` do a job, and waits for its report.
pub(crate) fn spawned<J: Job + 'static>(
    context: &JobContext,
    job: impl FnOnce(crate::Report) -> J,
) -> Outcome {
    let (sender, told) = oneshot();
    let job = job(Box::new(move |outcome| sender.send(outcome)));
    context.env.rt.spawn(Class::Compact, Box::new(job));
    context.env.rt.park(told.ticket(), None);
    told.take().unwrap()
}
