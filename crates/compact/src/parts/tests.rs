use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lithify_engine::{
    BlockSet, Caps, CpuEngine, Engine, Offer, Products, Progress, Refusal, Session,
};
use lithify_env::{BufPool, Fs, OpenOpts, Receiver, oneshot, panic_message, read_full_at};
use lithify_format::block::TRAILER_LEN;
use lithify_format::table::footer::Footer;
use lithify_format::table::metaindex::{MetaIndex, PROPERTIES};
use lithify_lsm::{FileMeta, FileRef};
use lithify_merge::workload::Choices;
use lithify_tables::sst::FullIndex;

use super::*;
use crate::testing::{Entry, World, drive, spawned};
use crate::{CompactionJob, cuts};

/// A compaction of all tables of `world`, cut into parts, and where it tells how it ended.
fn parts(world: &World, most: u32, engine: Arc<dyn Engine>) -> (Arc<Parts>, Receiver<Outcome>) {
    parts_of(world, world.spec(most), most, engine)
}

fn parts_of(
    world: &World,
    spec: CompactionSpec,
    most: u32,
    engine: Arc<dyn Engine>,
) -> (Arc<Parts>, Receiver<Outcome>) {
    let (context, runs) = (world.context.clone(), world.runs());
    let snapshots = spec.snapshots.clone();
    let recipe = recipe::compaction(&context, &spec.version, &runs, &spec.plan, snapshots).unwrap();
    let list = cuts::cut(&runs, most, &*context.order);
    let (sender, told) = oneshot();
    let report: Report = Box::new(move |outcome| sender.send(outcome));
    let began = Began { at: Mono::default(), cpu_nanos: 0, report: Some(report) };
    let whole = Whole { runs, recipe: Arc::new(recipe) };
    let engines = Arc::new(Engines::in_place_of_cpu(engine));
    (Parts::new(context, engines, Arc::new(spec), whole, list, began), told)
}

fn cpu() -> Arc<dyn Engine> {
    Arc::new(CpuEngine)
}

/// What files hold and how they are cut into blocks: all but their numbers and what follows from these.
fn content(world: &World, files: &[FileMeta]) -> Content {
    let one = |file: &FileMeta| {
        let entries = world.entries(&[Arc::new(file.clone())]);
        (entries, file.bytes - file.tail_bytes)
    };
    Content(files.iter().map(one).collect())
}

#[derive(Clone, PartialEq)]
struct Content(Vec<(Vec<Entry>, u64)>);

impl std::fmt::Debug for Content {
    /// How much there is: all of it would be too much for a screen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = self.0.iter().map(|(entries, bytes)| (entries.len(), bytes));
        f.debug_list().entries(sizes).finish()
    }
}

/// Makes `steps` steps, waiting as asked; false if it is done before.
fn some_steps(world: &World, steps: usize, mut step: impl FnMut() -> Step) -> bool {
    let mut left = steps;
    let mut done = false;
    drive(&world.context, || match left.checked_sub(1) {
        None => Step::Done,
        Some(less) => {
            left = less;
            let step = step();
            done = matches!(step, Step::Done);
            step
        }
    });
    !done
}

/// What a compaction in `most` parts makes without any interruption.
fn undisturbed(world: &World, most: u32) -> Vec<FileMeta> {
    let (parts, told) = parts(world, most, cpu());
    let mut worker = Worker::main(parts);
    drive(&world.context, || worker.step());
    told.take().unwrap().result.unwrap()
}

#[test]
fn a_part_given_back_after_any_step_ends_in_the_same_files() {
    let world = World::filled(1);
    let expected = undisturbed(&world, 3);
    let contents = content(&world, &expected);
    assert!(expected.len() > 3 && contents.0.iter().map(|file| file.0.len()).sum::<usize>() > 500);
    let (mut steps, mut unfinished) = (0, 0);
    loop {
        let before: BTreeSet<u64> = world.tables().into_iter().collect();
        let (parts, told) = parts(&world, 3, cpu());
        let mut main = Worker::main(parts.clone());
        let mut other = Worker::new(parts.clone(), Hand::CoWorker);
        let at_work = some_steps(&world, steps, || other.step());
        let begun: BTreeSet<u64> =
            world.tables().into_iter().filter(|n| !before.contains(n)).collect();
        let left = match other.at {
            At::Claimed(no) | At::Merge(no, _) => Some(no),
            At::Free | At::Over => None,
        };
        if at_work && left.is_some() {
            other.give_back("a test".into());
        }
        drop(other);
        drive(&world.context, || main.step());
        let files = told.take().unwrap().result.unwrap();
        assert_eq!(content(&world, &files), contents, "given back after {steps} steps");
        let (made, all): (BTreeSet<u64>, _) =
            (files.iter().map(|f| f.id.0).collect(), world.tables());
        assert!(all.iter().all(|n| before.contains(n) || made.contains(n)), "nothing else is left");
        if left == Some(1) {
            unfinished += usize::from(!begun.is_empty());
            assert!(begun.is_disjoint(&made), "no number is used twice");
        }
        assert_eq!(parts.spec.control.parts().iter().filter(|p| p.done != p.total).count(), 0);
        if !at_work {
            break;
        }
        steps += 1;
    }
    assert!(steps > 10 && unfinished > 2, "{steps} steps, {unfinished} with a file begun");
}

#[test]
fn progress_goes_back_with_a_part() {
    let world = World::filled(2);
    let (parts, told) = parts(&world, 3, cpu());
    let mut main = Worker::main(parts.clone());
    let mut other = Worker::new(parts.clone(), Hand::CoWorker);
    while parts.spec.control.parts()[1].done == 0 {
        some_steps(&world, 1, || other.step());
    }
    let control = parts.spec.control.clone();
    assert_eq!(control.progress().0, control.parts()[1].done);
    other.give_back("a test".into());
    assert_eq!((control.progress().0, control.parts()[1].done), (0, 0));
    assert_eq!(control.parts()[1].stage, PartStage::Waits);
    drive(&world.context, || main.step());
    assert!(told.take().unwrap().result.is_ok());
    assert!(control.parts().iter().all(|part| part.stage == PartStage::Built));
}

/// The CPU, whose n-th session panics at its second poll.
struct Panics {
    at: u64,
    opened: AtomicU64,
}

struct Panicking(Box<dyn Session>, u32);

impl Engine for Panics {
    fn caps(&self) -> Caps {
        CpuEngine.caps()
    }
    fn open(&self, recipe: Arc<Recipe>) -> std::result::Result<Box<dyn Session>, Refusal> {
        let session = CpuEngine.open(recipe)?;
        match self.opened.fetch_add(1, Ordering::Relaxed) {
            n if n == self.at => Ok(Box::new(Panicking(session, 0))),
            _ => Ok(session),
        }
    }
}

impl Session for Panicking {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.0.offer(set)
    }
    fn seal(&mut self) {
        self.0.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        self.1 += 1;
        if self.1 > 1 {
            std::panic::resume_unwind(Box::new("a panic without words on the screen"));
        }
        self.0.poll(out)
    }
    fn cancel(self: Box<Self>) {}
}

/// What a runtime does with a job: steps it, tells it of a panic, and drops it.
fn run_as_the_runtime(world: &World, mut job: impl Job) {
    drive(&world.context, || match catch_unwind(AssertUnwindSafe(|| job.step())) {
        Ok(step) => step,
        Err(panic) => {
            job.panicked(panic_message(&*panic));
            Step::Done
        }
    });
}

#[test]
fn a_part_whose_co_worker_panics_is_done_again() {
    let world = World::filled(3);
    let expected = content(&world, &undisturbed(&world, 3));
    for at in 0..2 {
        let told_of = Arc::new(Mutex::new(Vec::new()));
        let events = told_of.clone();
        let on_part = Box::new(move |event: PartEvent| events.lock().push(event));
        let spec = CompactionSpec { on_part, ..world.spec(3) };
        let engine = Arc::new(Panics { at, opened: AtomicU64::new(0) });
        let (parts, told) = parts_of(&world, spec, 3, engine);
        let mut main = Worker::main(parts.clone());
        run_as_the_runtime(&world, CoWorker::new(&parts));
        drive(&world.context, || main.step());
        let files = told.take().unwrap().result.unwrap();
        assert_eq!(content(&world, &files), expected, "session {at}");
        let events = told_of.lock().clone();
        let back = events.iter().filter(|event| match event {
            PartEvent::GivenBack { why, .. } => why.contains("a panic without words"),
            _ => false,
        });
        assert_eq!(back.count(), 1, "session {at}: {events:?}");
        let began = events.iter().filter(|event| matches!(event, PartEvent::Began { .. }));
        assert_eq!(began.count(), 4, "one of three parts is begun twice: {events:?}");
    }
}

#[test]
fn a_main_worker_that_panics_is_the_end_of_all() {
    let world = World::filled(3);
    let before = world.tables();
    let engine = Arc::new(Panics { at: 0, opened: AtomicU64::new(0) });
    let (parts, told) = parts(&world, 3, engine);
    let mut main = Worker::main(parts.clone());
    let panics = || while !matches!(main.step(), Step::Done) {};
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    let mut other = Worker::new(parts, Hand::CoWorker);
    some_steps(&world, 9, || other.step());
    main.fail(Error::new(ErrorKind::Internal, "it panicked"));
    assert!(!told.is_done(), "the other is at work still");
    drive(&world.context, || other.step());
    assert_eq!(told.take().unwrap().result.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(world.tables(), before);
}

#[test]
fn a_main_worker_that_waits_is_woken_for_what_is_given_back() {
    let world = World::filled(4);
    let (parts, told) = parts(&world, 2, cpu());
    let mut main = Worker::main(parts.clone());
    let mut other = Worker::new(parts.clone(), Hand::CoWorker);
    let mut waits = None;
    while waits.is_none() {
        match main.step() {
            Step::More => {}
            Step::Wait(ticket) if matches!(main.at, At::Free) => waits = Some(ticket),
            Step::Wait(ticket) | Step::WaitUntil(ticket, _) => {
                world.context.env.rt.park(&ticket, None);
            }
            Step::Done => panic!("it waits for the co-worker"),
        }
    }
    let waits = waits.unwrap();
    assert!(!waits.is_done() && !told.is_done());
    other.give_back("a test".into());
    assert!(waits.is_done(), "the main worker is woken");
    drive(&world.context, || main.step());
    assert!(told.take().unwrap().result.is_ok());
}

#[test]
fn a_co_worker_without_a_thread_takes_nothing_along() {
    let world = World::filled(5);
    let (parts, told) = parts(&world, 3, cpu());
    let mut main = Worker::main(parts.clone());
    CoWorker::new(&parts).panicked("no thread".into());
    drive(&world.context, || main.step());
    assert!(told.take().unwrap().result.is_ok());
}

#[test]
fn a_stop_ends_all_parts_and_leaves_nothing() {
    let world = World::filled(6);
    let before = world.tables();
    for steps in 0..12 {
        let (parts, told) = parts(&world, 3, cpu());
        let mut main = Worker::main(parts.clone());
        let mut other = Worker::new(parts.clone(), Hand::CoWorker);
        some_steps(&world, steps, || other.step());
        some_steps(&world, steps / 2, || main.step());
        parts.spec.control.stop();
        if steps % 3 == 0 {
            other.give_back("a test".into());
        }
        drive(&world.context, || main.step());
        drive(&world.context, || other.step());
        drop((main, other));
        let outcome = told.take().unwrap();
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::ShuttingDown);
        assert_eq!(outcome.work.read, parts.spec.control.progress().0, "what it came to");
        assert!(steps > 0 || outcome.work.read == 0, "it read nothing");
        assert_eq!(world.tables(), before, "stopped after {steps} steps");
    }
}

/// The order of a part is all that is needed: no tree, no open tables, nothing of the compaction.
#[test]
fn an_order_makes_the_same_files_elsewhere() {
    let world = World::filled(7);
    let expected = content(&world, &undisturbed(&world, 3));
    let (parts, _told) = parts(&world, 3, cpu());
    let orders: Vec<PartOrder> = (0..parts.len()).map(|no| parts.order(no)).collect();
    let control = Arc::new(crate::JobControl::compaction(lithify_plan::Prio::Low, 0));
    drop(parts);
    let mut files = Vec::new();
    for order in orders.iter().rev() {
        let elsewhere = world.elsewhere();
        let (feed, sink) = order.begin(&elsewhere, &OpenTables::default()).unwrap();
        let recipe = order.recipe.clone();
        let engines = Arc::new(Engines::new(Vec::new(), 0));
        let copier = Copier {
            part: 1 << 10,
            rt: world.context.env.rt.clone(),
            urgency: order.urgency.clone(),
            buffers: BufPool::new(0),
        };
        let relay =
            Relay::new(engines, None, recipe, copier, false, Box::new(|_, _, _| ())).unwrap();
        let mut job = PartJob::new(relay, feed, sink, control.part(0));
        let mut made = Vec::new();
        drive(&elsewhere, || match job.advance().unwrap() {
            Advance::Anew(_) => unreachable!("the CPU is believed"),
            Advance::Step(step) => step,
            Advance::Built(sink, ..) => {
                made = sink.into_files();
                Step::Done
            }
        });
        files.splice(0..0, made);
    }
    assert_eq!(content(&world, &files), expected);
}

#[test]
fn an_order_names_only_tables_of_its_part() {
    let world = World::filled(8);
    let (parts, _told) = parts(&world, 4, cpu());
    assert!(parts.len() > 2);
    let named = |no| -> usize { parts.order(no).runs.iter().map(|run| run.tables.len()).sum() };
    assert!(named(0) < world.inputs.len() && named(parts.len() - 1) < world.inputs.len());
    assert_eq!(parts.order(0).runs.len(), parts.whole.runs.len(), "runs keep their places");
}

/// A key outside of its table's bounds may be in no set: then the job fails instead of losing it.
#[test]
fn a_key_outside_of_its_tables_bounds_is_no_loss() {
    let mut failed = 0;
    for seed in 0..4 {
        let world = World::filled(20 + seed);
        let all = undisturbed(&world, 1);
        for no in 0..world.inputs.len() {
            let mut spec = world.spec(1);
            let mut wrong = FileMeta::clone(&spec.inputs[no]);
            wrong.range.lo = wrong.range.hi.key.clone();
            spec.inputs[no] = Arc::new(wrong);
            let job = |report| {
                CompactionJob::new(
                    world.context.clone(),
                    Arc::new(Engines::new(Vec::new(), 0)),
                    spec,
                    report,
                )
            };
            match spawned(&world.context, job).result {
                Ok(files) => assert_eq!(content(&world, &files), content(&world, &all)),
                Err(error) => {
                    assert!(error.to_string().contains("entries in 1 parts"), "{error}");
                    failed += 1;
                }
            }
        }
    }
    assert!(failed > 2, "{failed} of 28 jobs would have lost keys");
}

/// An index of LevelDB ends above the last key of its file, and so above the first ones of the next file of the level:
/// `l` behind `key079`. Sets that were cut by such ends had keys in none of them.
#[test]
fn files_whose_indexes_end_above_the_next_file_lose_nothing() {
    let mut world = World::new(6);
    world.take_over("leveldb-neighbours");
    let runs = world.runs();
    let ends = |(_, index): &(FileRef, Arc<FullIndex>)| {
        (0..index.block_fences().len()).map(|i| index.separator(i).to_vec()).collect::<Vec<_>>()
    };
    assert!(runs.len() == 1 && !runs[0].files.iter().flat_map(ends).is_sorted());
    let before: Vec<Vec<u8>> = world.entries(&world.inputs).into_iter().map(|e| e.0).collect();
    assert_eq!(before.len(), 400);
    for seed in 0..40 {
        let engine = Arc::new(Fickle(Mutex::new(Choices::new(seed))));
        let engines = Arc::new(Engines::in_place_of_cpu(engine));
        let spec = world.spec(1);
        let job = |report| CompactionJob::new(world.context.clone(), engines, spec, report);
        let files = spawned(&world.context, job).result.unwrap();
        let files: Vec<FileRef> = files.into_iter().map(Arc::new).collect();
        let after: Vec<Vec<u8>> = world.entries(&files).into_iter().map(|e| e.0).collect();
        assert!(after == before, "seed {seed}: {} of {} entries", after.len(), before.len());
    }
}

/// The CPU, which wants something else each time it is asked.
struct Fickle(Mutex<Choices>);

impl Engine for Fickle {
    fn caps(&self) -> Caps {
        let dice = &mut *self.0.lock();
        Caps {
            set_bytes: 1 << dice.below(16),
            ways: 1 + dice.below(5) as u16,
            max_ways: 1 + dice.below(8) as u16,
            sets_in_flight: 1 + dice.below(4),
            ..CpuEngine.caps()
        }
    }
    fn open(&self, recipe: Arc<Recipe>) -> std::result::Result<Box<dyn Session>, Refusal> {
        CpuEngine.open(recipe)
    }
}

#[test]
fn an_engine_that_changes_its_mind_leaves_no_trace() {
    let world = World::filled(11);
    for most in [1, 3] {
        let expected = content(&world, &undisturbed(&world, most));
        for seed in 0..8 {
            let engine = Arc::new(Fickle(Mutex::new(Choices::new(seed))));
            let (parts, told) = parts(&world, most, engine);
            let mut main = Worker::main(parts);
            drive(&world.context, || main.step());
            let files = told.take().unwrap().result.unwrap();
            assert_eq!(content(&world, &files), expected, "{most} parts, seed {seed}");
        }
    }
}

#[test]
fn whole_jobs_on_threads_end_in_the_same_files() {
    let world = World::filled(10);
    let expected = content(&world, &undisturbed(&world, 3));
    for _ in 0..10 {
        let job = |report| {
            CompactionJob::new(
                world.context.clone(),
                Arc::new(Engines::new(Vec::new(), 0)),
                world.spec(3),
                report,
            )
        };
        let outcome = spawned(&world.context, job);
        assert_eq!(content(&world, &outcome.result.unwrap()), expected);
    }
}

/// Gives the table `no` a content weight that it does not have, under a right checksum.
fn misstate_weight(world: &World, no: usize) {
    let input = &world.inputs[no];
    let path = std::path::PathBuf::from(format!("/db/{:06}.sst", input.id.0));
    let file = world.fs.open(&path, OpenOpts::read()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_full_at(&*file, &mut bytes, 0).unwrap();
    let footer = Footer::read(&bytes, bytes.len() as u64).unwrap();
    let check = footer.check;
    let index = footer.metaindex;
    let index = &bytes[index.offset as usize..index.end() as usize - TRAILER_LEN];
    let handle = MetaIndex::decode(index).unwrap().get(PROPERTIES).unwrap();
    let range = handle.offset as usize..(handle.offset + handle.size) as usize;
    let weight = world.context.tables.open(input).unwrap().weight().unwrap().to_le_bytes();
    let mut payload = bytes[range.clone()].to_vec();
    let at = payload.windows(8).position(|w| w == weight).unwrap();
    payload[at] ^= 1;
    let mut block = Vec::new();
    check.append(&mut block, &payload, 0, handle.offset);
    bytes[range].copy_from_slice(&payload);
    let trailer = (handle.offset + handle.size) as usize;
    bytes[trailer..trailer + TRAILER_LEN].copy_from_slice(&block[block.len() - TRAILER_LEN..]);
    let file = world.fs.open(&path, OpenOpts::write()).unwrap();
    assert_eq!(file.write_at(&bytes, 0).unwrap(), bytes.len());
}

/// Whose fault it is cannot be told, so the compaction fails, and leaves the inputs and nothing else.
#[test]
fn a_table_that_misstates_its_weight_is_named_with_the_way_out() {
    for most in [1, 3] {
        let mut world = World::filled(12);
        misstate_weight(&world, 2);
        world.context = world.elsewhere();
        let before = world.tables();
        let (parts, told) = parts(&world, most, cpu());
        let mut main = Worker::main(parts);
        drive(&world.context, || main.step());
        let error = told.take().unwrap().result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        let text = error.to_string();
        let files: Vec<FileId> = world.inputs.iter().map(|f| f.id).collect();
        assert!(text.contains(&format!("{files:?}")), "{text}");
        assert!(text.contains(WEIGHT) && text.contains("lithify verify"), "{text}");
        assert_eq!(world.tables(), before);
    }
}
