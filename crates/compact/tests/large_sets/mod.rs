//! Engines that want sets much larger than the CPU's: they get them if there is memory, and smaller ones
//! if there is not. The files are the CPU's in each case.

use lithify_base::{Kind, bytewise};
use lithify_compact::{Engines, OutputOptions};
use lithify_env::sync::OnceLock;

use super::world::output;
use super::*;

const MIB: u64 = 1 << 20;
/// Bytes that a part has for its inputs on the CPU, in the world of large tables: twelve writes.
const FIXED: u64 = 12 * 2 * MIB;

/// A mock that says what sets it wants, and notes what it gets.
struct Wide {
    mock: MockEngine,
    caps: Box<dyn Fn(Caps, usize) -> Caps + Send + Sync>,
    /// Bytes of its sets.
    sets: Arc<Mutex<Vec<u64>>>,
    /// Most bytes of buffers in use when it got one.
    in_use: Arc<Mutex<usize>>,
    buffers: lithify_env::BufPool,
}

impl Wide {
    /// `caps` are the mock's, and depend on how many sets it got.
    fn new(
        world: &World,
        plan: FaultPlan,
        caps: impl Fn(Caps, usize) -> Caps + Send + Sync + 'static,
    ) -> Arc<Wide> {
        Arc::new(Wide {
            mock: MockEngine { plan },
            caps: Box::new(caps),
            sets: Arc::default(),
            in_use: Arc::default(),
            buffers: world.context.buffers.clone(),
        })
    }
}

impl Engine for Wide {
    fn caps(&self) -> Caps {
        let cost = Cost { fixed_ns: 0.0, ns_per_byte: 0.1 };
        (self.caps)(Caps { cost, ..self.mock.caps() }, self.sets.lock().len())
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let (sets, in_use) = (self.sets.clone(), self.in_use.clone());
        let inner = self.mock.open(recipe)?;
        Ok(Box::new(WideSession { inner, sets, in_use, buffers: self.buffers.clone() }))
    }
}

struct WideSession {
    inner: Box<dyn Session>,
    sets: Arc<Mutex<Vec<u64>>>,
    in_use: Arc<Mutex<usize>>,
    buffers: lithify_env::BufPool,
}

impl Session for WideSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        let bytes = set.bytes();
        let offer = self.inner.offer(set);
        if matches!(offer, Offer::Taken) {
            self.sets.lock().push(bytes);
            let mut most = self.in_use.lock();
            *most = (*most).max(self.buffers.in_use());
        }
        offer
    }
    fn seal(&mut self) {
        self.inner.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        self.inner.poll(out)
    }
    fn cancel(self: Box<Self>) {
        self.inner.cancel();
    }
}

/// Two tables of 48 MiB, one over the other.
fn large() -> World {
    let shape = OutputOptions { write_bytes: 2 << 20, block_bytes: 16 << 10, ..output() };
    let mut world = World::empty(bytewise(), shape);
    world.file_bytes = 64 * MIB;
    for stratum in 1..3u32 {
        world.flush_with(stratum, |writer| {
            for n in 0..3072 {
                let key = format!("key{:05}", 2 * n + stratum % 2);
                let seq = u64::from(stratum * 10_000 + n);
                writer.add(seq, Kind::Value, key.as_bytes(), &[n as u8; 16 << 10]);
            }
        });
    }
    world
}

/// What the CPU makes of them.
static EXPECTED: OnceLock<Ended> = OnceLock::new();

/// A compaction of large tables by an engine with `caps`, where `memory` is for its sets: its sets, what became
/// of it, and the most bytes of buffers in use.
fn compacted(
    memory: u64,
    caps: impl Fn(Caps, usize) -> Caps + Send + Sync + 'static,
) -> (Vec<u64>, Ended, u64) {
    let world = large();
    let engine = Wide::new(&world, FaultPlan::None, caps);
    let engines = Arc::new(Engines::new(vec![engine.clone()], memory));
    let ended = world.compact_by(&engines, 1);
    let expected = EXPECTED.get_or_init(|| large().compact(Vec::new(), 1));
    assert_eq!(ended.outcome.result.as_ref().unwrap(), expected.outcome.result.as_ref().unwrap());
    assert!(ended.files == expected.files, "other bytes");
    assert_eq!(world.context.buffers.in_use(), 0, "all is released");
    let (sets, in_use) = (engine.sets.lock().clone(), *engine.in_use.lock() as u64);
    (sets, ended, in_use)
}

/// Wants 32 MiB, and has one in eight of them proven.
fn wants_32(caps: Caps, _: usize) -> Caps {
    Caps { set_bytes: 32 * MIB, prove: 8, ..caps }
}

#[test]
fn an_engine_gets_the_large_sets_that_it_wants() {
    let (sets, ended, _) = compacted(512 * MIB, wants_32);
    assert_eq!(sets.len(), 4, "{sets:?}");
    assert!(sets.iter().all(|&set| set <= 32 * MIB), "{sets:?}");
    assert!(sets.iter().filter(|&&set| set > 30 * MIB).count() >= 2, "{sets:?}");
    let report = &ended.reports[0];
    assert_eq!((report.sets, report.small_sets, report.too_large), (4, 0, 0), "{report:?}");
    assert!(!ended.events.iter().any(|event| matches!(event, PartEvent::SmallSets { .. })));
}

/// With 72 MiB for everything two thirds are for inputs, and that are six sets of 8 MiB.
#[test]
fn where_memory_is_short_sets_are_the_largest_that_fit() {
    let (sets, ended, in_use) = compacted(48 * MIB, wants_32);
    assert!((12..=14).contains(&sets.len()), "{sets:?}");
    assert!(sets.iter().all(|&set| set <= 8 * MIB), "{sets:?}");
    assert!(sets.iter().filter(|&&set| set > 7 * MIB).count() >= 10, "{sets:?}");
    // Beside the inputs a job has twenty writes.
    assert!(in_use <= 48 * MIB + FIXED + 20 * 2 * MIB, "{in_use}");
    assert_eq!(ended.reports[0].small_sets, 1);
    let told: Vec<&str> = ended
        .events
        .iter()
        .filter_map(|event| match event {
            PartEvent::SmallSets { part: 1, engine: "mock", why } => Some(&**why),
            _ => None,
        })
        .collect();
    let [why] = told[..] else { panic!("{told:?}") };
    assert!(why.contains("not of 33554432: buffer_bytes leaves no more"), "{why}");
}

/// Without memory of its own an engine makes do with what the part has anyway.
#[test]
fn an_engine_without_memory_has_small_sets() {
    let (sets, ended, in_use) = compacted(0, wants_32);
    assert!(sets.iter().all(|&set| set <= FIXED * 2 / 3 / 6), "{sets:?}");
    assert!(in_use <= FIXED + 20 * 2 * MIB, "{in_use}");
    assert_eq!((ended.reports[0].small_sets, ended.reports[0].sets), (1, sets.len() as u64));
}

/// The engine changes its mind about what it takes, and sets that are cut already are larger.
#[test]
fn a_large_set_beyond_what_the_engine_takes_goes_to_the_cpu() {
    let (sets, ended, _) = compacted(512 * MIB, |caps, sets| {
        let max_set_bytes = if sets == 0 { 64 * MIB } else { 8 * MIB };
        Caps { max_set_bytes, ..wants_32(caps, sets) }
    });
    assert_eq!(sets.len(), 1, "{sets:?}");
    assert!(sets[0] > 30 * MIB);
    assert_eq!((ended.reports[0].too_large, ended.reports[0].sets), (1, 0));
    assert!(ended.replaced()[0].starts_with("set too large: "), "{:?}", ended.replaced());
}

/// Sets of four times the size that the CPU would cut are merged by the CPU, from the last carry.
#[test]
fn the_cpu_goes_on_with_large_sets_from_any_carry() {
    let expected = by_cpu(1);
    let mut breaks = 0;
    for n in 0.. {
        let world = World::new();
        let device =
            Wide::new(&world, FaultPlan::Breaks(n), |caps, _| Caps { set_bytes: 4 * SET, ..caps });
        let engines = Arc::new(Engines::new(vec![device.clone()], MIB));
        let ended = world.compact_by(&engines, 1);
        assert!(ended.outcome.result.is_ok() && ended.files == expected.files, "break {n}");
        let sets = device.sets.lock().clone();
        assert!(n == 0 || sets.iter().any(|&set| set > 3 * SET), "{sets:?}");
        assert_eq!(world.context.buffers.in_use(), 0, "all is released");
        if ended.reports[0].failures == 0 {
            break;
        }
        breaks += 1;
    }
    assert!(breaks >= 4, "{breaks}");
}
