//! Record once, crash everywhere.
//!
//! A run is recorded as a log of disk changes; then, at every position of the log, images of what
//! a crash there may leave are opened and checked. Some are worked on, recorded in their turn,
//! and crashed again, inside the recovery as well as after it.
//!
//! Keeps: what is checked follows from the seed alone. A violation comes with the plan that
//! repeats it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lithify::Policy;
use lithify_env::panic_message;
use lithify_env::random::derive_seed;

use crate::choices::{Dice, Stream};
use crate::crash::{Kind, fingerprint, image};
use crate::disk::{Disk, Entry};
use crate::marks::Marks;
use crate::model::{Expected, Journal};
use crate::plan::{Crash, Level, Plan};
use crate::world::{Shape, Violation, World};

/// One run in so many is long.
const LONG_LIVES: u32 = 10;
/// Positions of a log of which each is crashed; of a longer log, about so many are.
const POSITIONS: usize = 1500;

/// How far a seed is explored.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The policy of all runs; any, if `None`.
    pub policy: Option<Policy>,
    /// Images of each position of a log; 0 if nothing is crashed.
    pub variants: u32,
    /// One image in so many is worked on and crashed again.
    pub deeper: u32,
    /// Most crashes in a row.
    pub depth: u32,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach { policy: None, variants: 2, deeper: 12, depth: 3 }
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs that were recorded.
    pub runs: u64,
    /// Operations of clients.
    pub operations: u64,
    /// Positions of logs that were crashed.
    pub positions: u64,
    /// Images that were opened and fully checked.
    pub recoveries: u64,
    /// Images that were the same as one before, with the same to be expected of it.
    pub twins: u64,
    /// Recoveries by kind of crash.
    pub by_kind: [u64; Kind::ALL.len()],
    /// Recoveries by number of crashes before.
    pub by_depth: [u64; 4],
    /// What was reached.
    pub marks: Marks,
    /// Policy of the last run.
    pub last_policy: Option<Policy>,
    /// Sum over all images of the last run, in order: equal seeds have equal sums.
    pub sum: u64,
    /// The same over the logs of all first lives.
    pub lives: u64,
}

/// A violation and how to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What happened.
    pub violation: Violation,
    /// What was done.
    pub plan: Plan,
}

/// A life that was recorded.
pub struct Recorded {
    log: Vec<Entry>,
    journal: Journal,
    level: Level,
    /// Position at which each operation began.
    begins: Vec<usize>,
}

impl Recorded {
    /// The life that ends with a crash at position `at`: what came later did not happen.
    fn ended(&self, at: usize, kind: Kind, choices: Vec<u32>) -> Level {
        let happened = self.begins.partition_point(|begin| *begin <= at).max(1);
        let ops = self.level.ops[..happened].to_vec();
        let at = at - self.begins[happened - 1];
        Level { ops, crash: Some(Crash { at, kind, choices }) }
    }
}

/// Explores one seed.
///
/// # Errors
/// The first violation.
pub fn explore(seed: u64, reach: &Reach, tally: &mut Tally) -> Result<(), Box<Failure>> {
    let dice = Dice::new(first_choices(seed, reach));
    let shape = Shape::choose(&dice);
    let settings = dice.taken();
    let mut run = Explorer { seed, reach, tally, shape, settings, dice };
    run.run()
}

fn first_choices(seed: u64, reach: &Reach) -> Stream {
    let stream = Stream::seeded(seed, "settings");
    match reach.policy.and_then(|p| Policy::EVERY.iter().position(|q| *q == p)) {
        Some(at) => stream.beginning_with(at as u32),
        None => stream,
    }
}

struct Explorer<'a> {
    seed: u64,
    reach: &'a Reach,
    tally: &'a mut Tally,
    shape: Shape,
    settings: Vec<u32>,
    dice: Dice,
}

type Outcome<T> = Result<T, Box<Failure>>;

impl Explorer<'_> {
    fn run(&mut self) -> Outcome<()> {
        self.tally.runs += 1;
        self.tally.sum = 0;
        self.tally.last_policy = self.shape.settings.policy;
        self.dice.swap(Stream::seeded(self.seed, "length"));
        // A long life grows a tree that a short one never has, and is crashed at some places only.
        let count = match self.dice.one_in(LONG_LIVES, "long life") {
            true => 500 + self.dice.choose(1000, "operations"),
            false => 20 + self.dice.choose(160, "operations"),
        };
        let recorded = self.record(Disk::default(), &[], count)?;
        self.tally.lives = self.tally.lives.rotate_left(5) ^ sum_of(&recorded.log);
        self.tally.marks.read(&recorded.log);
        self.crash_everywhere(&recorded)
    }

    fn stream(&self, path: &str, part: &str) -> Stream {
        Stream::seeded(derive_seed(self.seed, path), part)
    }

    fn failure(&self, violation: Violation, before: &[Level], last: Level) -> Box<Failure> {
        let mut levels = before.to_vec();
        levels.push(last);
        let about = vec![violation.to_string().lines().next().unwrap_or_default().to_owned()];
        let plan = Plan { about, settings: self.settings.clone(), levels };
        Box::new(Failure { violation, plan })
    }

    /// Runs a life from `disk` on: its opening and `count` operations.
    fn record(&mut self, disk: Disk, before: &[Level], count: u32) -> Outcome<Recorded> {
        let path = format!("life {}", before.len());
        let mut world = World::new(disk, self.shape.clone(), self.dice.clone(), self.seed);
        world.expose();
        let mut level = Level::default();
        let mut begins = Vec::new();
        for i in 0..=count {
            begins.push(world.fs.position());
            self.dice.swap(self.stream(&path, &format!("op {i}")));
            let result = caught(|| one_step(&mut world, i == 0));
            level.ops.push(self.dice.taken());
            if let Err(violation) = result {
                end(world);
                return Err(self.failure(violation, before, level));
            }
        }
        self.tally.operations += u64::from(count);
        self.tally.marks.add(&world.marks());
        let journal = world.journal.clone();
        Ok(Recorded { log: world.fs.take_log(), journal, level, begins })
    }

    fn crash_everywhere(&mut self, recorded: &Recorded) -> Outcome<()> {
        if self.reach.variants == 0 {
            return Ok(());
        }
        let mut disk = Disk::default();
        let mut seen = BTreeSet::new();
        let all = Kind::ALL.len();
        let stride = recorded.log.len().div_ceil(POSITIONS).max(1);
        self.dice.swap(self.stream("everywhere", "offset"));
        let offset = self.dice.choose(stride as u32, "offset") as usize;
        for at in 0..=recorded.log.len() {
            let crashed = at % stride == offset;
            self.tally.positions += u64::from(crashed);
            let variants = if crashed { self.reach.variants } else { 0 };
            for variant in 0..variants {
                // Neighbouring positions get different kinds, every position all of them in the
                // course of a few seeds.
                let spread = derive_seed(self.seed, "kinds") as usize;
                let kind = Kind::ALL[(at * 5 + variant as usize * 3 + spread) % all];
                let path = match variant as usize / all {
                    0 => format!("crash {at} {}", kind.name()),
                    // The kinds come round again, with other choices.
                    round => format!("crash {at} {} {round}", kind.name()),
                };
                self.crash_at(&disk, recorded, (at, kind), &path, &mut seen)?;
            }
            if let Some(entry) = recorded.log.get(at) {
                disk.apply(entry);
            }
        }
        Ok(())
    }

    fn crash_at(
        &mut self,
        disk: &Disk,
        recorded: &Recorded,
        (at, kind): (usize, Kind),
        path: &str,
        seen: &mut BTreeSet<(u64, Expected)>,
    ) -> Outcome<()> {
        self.dice.swap(self.stream(path, "image"));
        let image = image(disk, kind, &self.dice);
        let choices = self.dice.taken();
        let expected = recorded.journal.expected(at, is_kill(kind, &self.shape));
        let print = fingerprint(&image);
        self.tally.sum = self.tally.sum.rotate_left(5) ^ print;
        if !seen.insert((print, expected)) {
            self.tally.twins += 1;
            return Ok(());
        }
        let level = recorded.ended(at, kind, choices);
        self.check(image, vec![level], &recorded.journal, at, path)
    }

    /// Opens an image and checks it; then perhaps works on, and crashes again.
    fn check(
        &mut self,
        image: Disk,
        levels: Vec<Level>,
        journal: &Journal,
        at: usize,
        path: &str,
    ) -> Outcome<()> {
        let crashes = levels.len();
        let kind = levels[crashes - 1].crash.as_ref().expect("a crash led here").kind;
        let mut world = World::new(image, self.shape.clone(), self.dice.clone(), self.seed + 1);
        let mut level = Level { ops: vec![Vec::new()], crash: None };
        if let Err(violation) = caught(|| judge(&mut world, journal, at, kind)) {
            end(world);
            return Err(self.failure(violation, &levels, level));
        }
        self.tally.recoveries += 1;
        self.tally.by_kind[kind as usize] += 1;
        self.tally.by_depth[crashes.min(3)] += 1;

        self.dice.swap(self.stream(path, "deeper"));
        let deeper =
            crashes < self.reach.depth as usize && self.dice.one_in(self.reach.deeper, "deeper");
        if !deeper {
            let ended = caught(|| {
                world.kill();
                Ok(())
            });
            return ended.map_err(|violation| self.failure(violation, &levels, level));
        }
        let count = self.dice.choose(14, "operations");
        world.stir();
        let mut begins = vec![0];
        for i in 1..=count {
            begins.push(world.fs.position());
            self.dice.swap(self.stream(path, &format!("op {i}")));
            let result = caught(|| world.step());
            level.ops.push(self.dice.taken());
            if let Err(violation) = result {
                end(world);
                return Err(self.failure(violation, &levels, level));
            }
        }
        self.tally.operations += u64::from(count);
        let log = world.fs.take_log();
        let first = world.first_disk();
        let journal = world.journal.clone();
        drop(world);
        let recorded = Recorded { log, journal, level, begins };
        self.crash_again(first, &recorded, &levels, path)
    }

    /// A few crashes of a life that began with a crash.
    fn crash_again(
        &mut self,
        mut disk: Disk,
        recorded: &Recorded,
        levels: &[Level],
        path: &str,
    ) -> Outcome<()> {
        self.dice.swap(self.stream(path, "again"));
        let mut places: Vec<usize> = (0..6)
            .map(|_| self.dice.choose(recorded.log.len() as u32 + 1, "place") as usize)
            .collect();
        places.sort_unstable();
        for (n, at) in places.into_iter().enumerate() {
            recorded.log[disk.position..at].iter().for_each(|entry| disk.apply(entry));
            let path = format!("{path} again {n}");
            self.dice.swap(self.stream(&path, "image"));
            let kind = *self.dice.pick(&Kind::ALL, "kind");
            // The choice of the kind is not the image's.
            self.dice.swap(self.stream(&path, "bytes"));
            let image = image(&disk, kind, &self.dice);
            let choices = self.dice.taken();
            let mut levels = levels.to_vec();
            levels.push(recorded.ended(at, kind, choices));
            self.check(image, levels, &recorded.journal, at, &path)?;
        }
        Ok(())
    }
}

/// A number that two logs share only if they are the same, to the byte.
fn sum_of(log: &[Entry]) -> u64 {
    let mut sum = xxhash_rust::xxh3::Xxh3::new();
    for entry in log {
        sum.update(entry.to_string().as_bytes());
        if let Entry::Write(_, _, bytes) = entry {
            sum.update(bytes);
        }
    }
    sum.digest()
}

/// The opening of a first life, or an operation.
fn one_step(world: &mut World, opening: bool) -> Result<(), Violation> {
    world.stir();
    if opening {
        return world.open();
    }
    world.step()
}

/// Whether what was handed to the system survives: if nothing but the program ended, and storage
/// kept what it was given.
fn is_kill(kind: Kind, shape: &Shape) -> bool {
    kind == Kind::Everything && !shape.faults
}

/// Opens what a crash of `kind` at position `at` left, and says whether it may look like that.
pub(crate) fn judge(
    world: &mut World,
    journal: &Journal,
    at: usize,
    kind: Kind,
) -> Result<(), Violation> {
    let kill = is_kill(kind, world.shape());
    world.wake_at(journal.second_of(at), at);
    world.open()?;
    let seen = world.adopt()?;
    if journal.find(at, kill, seen).is_some() {
        return Ok(());
    }
    let found = match journal.find_anywhere(seen) {
        Some(state) => format!("it holds the state after write {state}"),
        None => format!("its {} entries are no state it ever had", world.model.entries()),
    };
    let (least, most) = journal.bounds(at, kill);
    Err(Violation(format!(
        "after the crash, {found}, where writes {least} to {most} of {} may be the last",
        journal.writes()
    )))
}

/// A panic is a violation like any other.
pub(crate) fn caught(story: impl FnOnce() -> Result<(), Violation>) -> Result<(), Violation> {
    catch_unwind(AssertUnwindSafe(story))
        .unwrap_or_else(|payload| Err(Violation(format!("a panic: {}", panic_message(&*payload)))))
}

/// Ends a world in which something went wrong. One that cannot even end is left where it is.
pub(crate) fn end(mut world: World) {
    let ended = caught(|| {
        world.kill();
        Ok(())
    });
    if ended.is_err() {
        std::mem::forget(world);
    }
}

/// Repeats a plan.
///
/// # Errors
/// What it shows.
pub fn replay(plan: &Plan) -> Result<(), Violation> {
    replay_told(plan, &mut |_| {})
}

/// Repeats a plan and tells each line of what happens.
///
/// # Errors
/// What it shows.
pub fn replay_told(plan: &Plan, tell: &mut dyn FnMut(String)) -> Result<(), Violation> {
    let dice = Dice::new(Stream::listed(plan.settings.clone()));
    let shape = Shape::choose(&dice);
    let mut disk = Disk::default();
    let mut promised: Option<(Journal, usize, Kind)> = None;
    for level in &plan.levels {
        let seed = u64::from(promised.is_some());
        let mut world = World::new(disk.clone(), shape.clone(), dice.clone(), seed);
        if promised.is_none() {
            world.expose();
        }
        let mut begin = 0;
        for (i, op) in level.ops.iter().enumerate() {
            begin = world.fs.position();
            dice.swap(Stream::listed(op.clone()));
            let result = caught(|| match &promised {
                Some((journal, at, kind)) if i == 0 => judge(&mut world, journal, *at, *kind),
                _ => one_step(&mut world, i == 0),
            });
            tell(format!("line {i}, {} writes so far", world.journal.writes()));
            for entry in world.fs.log_from(begin) {
                tell(format!("  {entry}"));
            }
            if let Err(violation) = result {
                end(world);
                return Err(violation);
            }
        }
        let log = world.fs.take_log();
        let journal = world.journal.clone();
        let ended = caught(|| {
            world.kill();
            Ok(())
        });
        if ended.is_err() {
            std::mem::forget(world);
            return ended;
        }
        if let Some(crash) = &level.crash {
            let at = begin.saturating_add(crash.at).min(log.len());
            disk.position = 0;
            log[..at].iter().for_each(|entry| disk.apply(entry));
            dice.swap(Stream::listed(crash.choices.clone()));
            disk = image(&disk, crash.kind, &dice);
            let bounds = journal.bounds(at, is_kill(crash.kind, &shape));
            tell(format!(
                "crash {} after entry {at}, bounds {bounds:?}; it leaves",
                crash.kind.name()
            ));
            for (name, node) in disk.dirs.values().flat_map(|dir| &dir.visible) {
                if let crate::disk::Node::File(ino) = node {
                    tell(format!("  {name} (#{ino}), {} bytes", disk.inodes[ino].visible.len()));
                }
            }
            promised = Some((journal, at, crash.kind));
        }
    }
    Ok(())
}
