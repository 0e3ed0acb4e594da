use lithify_engine::mock::{FaultPlan, MockEngine};
use lithify_engine::{Refusal, Session};
use lithify_format::compress::Codec;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A line for each part: the engines as `name fixed_us ns_per_byte backlog_ms[/backlog_bytes] health`, the bytes, and who
/// gets it. The CPU takes 20 us and 0.8 ns a byte, and it is second 100.
const TABLE: &str = "
    bytes 10000000    -> cpu
    gpu 200 0.1 0     well        bytes 10000000    -> gpu 1.2
    gpu 200 0.1 6     well        bytes 10000000    -> gpu 7.2
    gpu 200 0.1 8     well        bytes 10000000    -> gpu 9.2
    gpu 200 0.1 10    well        bytes 10000000    -> cpu
    gpu 200 0.1 0     well        bytes 1000        -> cpu
    gpu 20  0.8 0     well        bytes 1000        -> gpu 0.0
    gpu 200 0.1 0     disproved   bytes 10000000    -> cpu
    gpu 200 0.1 0     well owes   bytes 10000000    -> cpu
    gpu 200 0.1 0     well passes bytes 10000000    -> cpu
    gpu 200 0.1 0     until=101   bytes 10000000    -> cpu
    gpu 200 0.1 0     until=100   bytes 10000000    -> gpu 1.2
    gpu 200 0.1 3 well | fpga 100 0.3 0 well   bytes 10000000 -> fpga 3.1
    gpu 200 0.1 1 well | fpga 100 0.3 0 well   bytes 10000000 -> gpu 2.2
    gpu 200 0.1 0 disproved | fpga 100 0.3 0 well   bytes 10000000 -> fpga 3.1
    a   100 0.1 0 well | b    100 0.1 0 well   bytes 10000000 -> a 1.1
    a   0   0   0/9 well | b  0   0   0/8 well | c 0 0 0/8 well   bytes 10000000 -> b 0.0
    a   100 0.1 1/9 well | b  100 0.1 2/8 well   bytes 10000000 -> a 2.1
    a   0   0   0 disproved | b 0 0 0/9 well   bytes 10000000 -> b 0.0
    a   0   0   0 disproved | b 0 0 0 until=101   bytes 10000000 -> cpu
    gpu NaN 0.1 0     well        bytes 10000000    -> cpu
    gpu inf 0.1 0     well        bytes 10000000    -> cpu
    gpu 0   -1  0     well        bytes 10000000    -> cpu
";

fn health(word: &str) -> Health {
    match word.split_once('=') {
        None if word == "well" => Health::Well,
        None => Health::Disproved,
        Some((_, second)) => {
            let until = Mono(second.parse::<u64>().unwrap() * SECOND);
            Health::Rests { failed: Mono(0), until, failures: 1 }
        }
    }
}

fn candidate(words: &str) -> (&str, Candidate) {
    let w: Vec<&str> = words.split_whitespace().collect();
    let number = |at: usize| w[at].parse::<f64>().unwrap();
    let cost = Cost { fixed_ns: number(1) * 1e3, ns_per_byte: number(2) };
    let (ms, left) = w[3].split_once('/').unwrap_or((w[3], "0"));
    let nanos = (ms.parse::<f64>().unwrap() * 1e6) as u64;
    let backlog = Load { nanos, bytes: left.parse().unwrap() };
    let [owes, passes] = ["owes", "passes"].map(|word| w.get(5) == Some(&word));
    (w[0], Candidate { cost, backlog, health: health(w[4]), owes, passes })
}

#[test]
fn the_earliest_engine_gets_the_part() {
    for line in TABLE.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (engines, rest) = line.split_once("bytes").unwrap();
        let (bytes, expected) = rest.split_once("->").unwrap();
        let named: Vec<(&str, Candidate)> =
            engines.split('|').filter(|e| !e.trim().is_empty()).map(candidate).collect();
        let candidates: Vec<Candidate> = named.iter().map(|(_, c)| *c).collect();
        let cpu = CpuEngine.caps().cost;
        let chosen = choose(&candidates, cpu, bytes.trim().parse().unwrap(), Mono(100 * SECOND));
        let chosen = match chosen {
            None => "cpu".to_owned(),
            Some((no, end)) => format!("{} {:.1}", named[no].0, end as f64 / 1e6),
        };
        assert_eq!(chosen, expected.trim(), "{line}");
    }
}

/// Each failure doubles the rest, up to an hour; each part that goes well takes one back.
#[test]
fn an_engine_that_fails_rests_longer_each_time() {
    let at = |health| match health {
        Health::Rests { until, .. } => until.0 / SECOND,
        other => panic!("{other:?}"),
    };
    let mut health = Health::Well;
    let mut rests = Vec::new();
    for _ in 0..9 {
        health = health.failed(Mono(0));
        rests.push(at(health));
    }
    assert_eq!(rests, [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
    for _ in 0..100 {
        health = health.failed(Mono(0));
    }
    assert_eq!(at(health), 3600);
    let later = Mono(SECOND);
    assert_eq!(at(health.succeeded(later).succeeded(later).failed(Mono(0))), 1920);
    for _ in 0..7 {
        health = health.succeeded(later);
    }
    assert_eq!(health, Health::Well);
    assert_eq!(at(health.failed(Mono(0))), 60);
}

/// The parts that it had when it failed may well end well: that is no reason to give it more.
#[test]
fn a_part_that_began_before_a_failure_does_not_end_the_rest() {
    let rests = Health::Well.failed(Mono(5 * SECOND));
    assert_eq!(rests.succeeded(Mono(5 * SECOND)), rests);
    assert!(!rests.succeeded(Mono(4 * SECOND)).is_fit(Mono(6 * SECOND)));
    assert_eq!(rests.succeeded(Mono(66 * SECOND)), Health::Well);
}

/// An engine that fails every other part rests each time, and one that fails more often rests longer.
#[test]
fn now_and_then_a_part_that_goes_well_does_not_stop_rests_from_growing() {
    let mut health = Health::Well;
    for at in 0..40 {
        health = match at % 3 {
            2 => health.succeeded(Mono(at * SECOND)),
            _ => health.failed(Mono(at * SECOND)),
        };
    }
    assert!(matches!(health, Health::Rests { failures: 6..=7, .. }), "{health:?}");
}

#[test]
fn a_disproved_engine_never_comes_back() {
    let health = Health::Disproved;
    assert!(!health.is_fit(Mono::MAX));
    assert_eq!(health.succeeded(Mono::MAX), health);
    assert_eq!(health.failed(Mono(0)), health);
}

/// A part counts in the backlog for as long as the engine has it, however it ends.
#[test]
fn a_backlog_is_what_is_at_work() {
    let engines = Arc::new(Engines::new(vec![Arc::new(MockEngine { plan: FaultPlan::None })], 0));
    let recipe = Recipe::new(1);
    let backlog = || engines.standings.lock()[0].backlog;
    let nothing = Load::default();
    let mut one = engines.route(&recipe, 1 << 20, Mono(0)).unwrap();
    let cost = one.caps().cost;
    assert_eq!(backlog(), Load::of(cost, 1 << 20));
    // The mock is as fast as the CPU, so behind another part of equal size it is too late.
    assert!(engines.route(&recipe, 1 << 20, Mono(0)).is_none());
    // What it is through with does not count.
    one.took(1 << 18);
    assert_eq!(backlog(), Load::of(cost, 3 << 18));
    one.took(2 << 20);
    assert_eq!(backlog(), Load::of(cost, 0));
    let other = engines.route(&recipe, 1 << 20, Mono(0)).unwrap();
    drop(one);
    assert_eq!(backlog(), Load::of(cost, 1 << 20));
    drop(other);
    assert_eq!(backlog(), nothing);
    let mut two = engines.route(&recipe, 1 << 20, Mono(0)).unwrap();
    two.took(1 << 19);
    two.lost(Why::Hung, &Error::unsupported("test"), Mono(0));
    assert_eq!(backlog(), nothing);
    drop(two);
    assert_eq!(backlog(), nothing);
    assert!(engines.route(&recipe, 1 << 20, Mono(0)).is_none(), "it rests");
    assert!(engines.route(&recipe, 1 << 20, Mono(60 * SECOND)).is_some());
}

/// A database whose every part does not suit an engine has it try one in 64 in the end, and the other engine gets
/// what it lets pass; a part that suits it ends that.
#[test]
fn an_engine_that_nothing_suits_lets_parts_pass() {
    let mock = || Arc::new(MockEngine { plan: FaultPlan::None });
    let engines = Arc::new(Engines::new(vec![mock()], 0));
    let recipe = Recipe::new(1);
    let route = || engines.route(&recipe, 1 << 20, Mono(0));
    let error = Error::unsupported("test");
    let mut passed = Vec::new();
    let mut in_a_row = 0;
    while passed.len() < 10 {
        let Some(mut place) = route() else {
            in_a_row += 1;
            continue;
        };
        passed.push(std::mem::take(&mut in_a_row));
        // Half of a part is too little.
        place.took(1 << 19);
        place.lost(Why::Unsuitable, &error, Mono(0));
    }
    assert_eq!(passed, [0, 0, 1, 3, 7, 15, 31, 63, 63, 63]);
    let report = &engines.reports()[0];
    assert_eq!((report.parts, report.unsuitable, report.failures), (10, 10, 0), "{report:?}");
    assert_eq!((report.passed, report.passing), (passed.iter().sum(), 63));
    // The one that suits it more than by half, and the one that it merges whole.
    for is_whole in [false, true] {
        let place = (0..100).find_map(|_| route());
        let mut place = place.expect("it is tried again");
        place.took(1 << 20);
        if is_whole {
            place.succeeded()
        } else {
            place.lost(Why::Unsuitable, &error, Mono(0))
        }
        drop(place);
        assert_eq!(engines.reports()[0].passing, 0);
        for _ in 0..2 {
            route().expect("it has nothing to let pass").lost(Why::Unsuitable, &error, Mono(0));
        }
        assert_eq!(engines.reports()[0].passing, 1);
    }
    let second: Arc<dyn Engine> = Arc::new(SlowAtLz4);
    let engines = Arc::new(Engines::new(vec![second, mock()], 0));
    let route = || engines.route(&recipe, 1 << 20, Mono(0)).expect("one of them has it");
    for _ in 0..3 {
        let mut place = route();
        while place.caps().name != "slow" {
            place = route();
        }
        place.lost(Why::Unsuitable, &error, Mono(0));
    }
    let names: Vec<&str> = (0..4).map(|_| route().caps().name).collect();
    assert_eq!(names, ["mock", "mock", "mock", "slow"]);
}

/// An engine that is fast, but slow at one recipe.
struct SlowAtLz4;

impl Engine for SlowAtLz4 {
    fn caps(&self) -> Caps {
        Caps { cost: Cost { fixed_ns: 0.0, ns_per_byte: 0.1 }, name: "slow", ..CpuEngine.caps() }
    }
    fn caps_for(&self, recipe: &Recipe) -> Caps {
        let ns_per_byte = if recipe.codec == Codec::Lz4 { 10.0 } else { 0.1 };
        Caps { cost: Cost { fixed_ns: 0.0, ns_per_byte }, ..self.caps() }
    }
    fn open(&self, _: Arc<Recipe>) -> std::result::Result<Box<dyn Session>, Refusal> {
        Err("this one is not asked to merge".to_owned().into())
    }
}

/// What counts is what the engine says of this recipe.
#[test]
fn a_part_is_routed_by_what_its_recipe_costs() {
    let engines = Arc::new(Engines::new(vec![Arc::new(SlowAtLz4)], 0));
    let plain = Recipe::new(1);
    let lz4 = Recipe { codec: Codec::Lz4, ..Recipe::new(1) };
    assert!(engines.route(&plain, 1 << 20, Mono(0)).is_some());
    assert!(engines.route(&lz4, 1 << 20, Mono(0)).is_none());
}
