//! How large sets become, by what stages are said to take: decisions over small tables.

use lithify_engine::tune::{Exactness, Tuner};

const MIB: u64 = 1 << 20;
/// Least and most bytes of a set.
const BOUNDS: (u64, u64) = (4 * MIB, 256 * MIB);

/// A link up, kernels and a link down, as `(fixed ns, bytes a ns)`.
type Stages = [(f64, f64); 3];
/// PCIe 5 and an H200, as they are expected.
const GPU: Stages = [(14e3, 45.0), (105e3, 100.0), (21e3, 45.0)];

fn ns(bytes: u64, stages: Stages) -> [f64; 3] {
    stages.map(|(fixed, rate)| fixed + bytes as f64 / rate)
}

/// The sizes that are wanted, each after a set of the size before.
fn sizes(tuner: &mut Tuner, steps: usize, stages: Stages) -> Vec<u64> {
    let mut sizes = vec![tuner.set_bytes()];
    for _ in 0..steps {
        tuner.sent(tuner.set_bytes());
        tuner.learn(tuner.set_bytes(), ns(tuner.set_bytes(), stages));
        sizes.push(tuner.set_bytes());
    }
    sizes
}

/// The smallest set with which each stage reaches 95% of what the slowest one does.
fn due(stages: Stages) -> f64 {
    let slowest = stages.iter().map(|of| of.1).fold(f64::MAX, f64::min);
    let of_stage = |(fixed, rate): (f64, f64)| fixed / (1.0 / (0.95 * slowest) - 1.0 / rate);
    stages.map(of_stage).into_iter().fold(0.0, f64::max)
}

#[test]
fn it_settles_within_twenty_sets_wherever_it_begins() {
    for first in [4 * MIB, 32 * MIB, 256 * MIB] {
        let tuner = &mut Tuner::new(BOUNDS, first, Exactness::CLOCKED);
        let found = sizes(tuner, 20, GPU);
        assert_eq!(found[0], first);
        assert!((found[20] as f64 / due(GPU) - 1.0).abs() < 0.12, "{found:?} for {}", due(GPU));
        assert!(found.windows(2).all(|w| w[1] <= 2 * w[0] && w[1] >= w[0] / 2), "{found:?}");
        assert_eq!(found[15], found[20], "it has settled: {found:?}");
    }
}

/// Links that take long for an operation want large sets, slow ones that do not want small ones, within the bounds.
#[test]
fn it_follows_the_stages_within_its_bounds() {
    for (stages, wanted) in [
        ([(14e3, 4.0), (105e3, 100.0), (21e3, 45.0)], 4 * MIB),
        ([(14e6, 45.0), (105e3, 100.0), (21e3, 45.0)], 256 * MIB),
    ] {
        let tuner = &mut Tuner::new(BOUNDS, 32 * MIB, Exactness::CLOCKED);
        assert_eq!(*sizes(tuner, 20, stages).last().unwrap(), wanted);
        // And back.
        let found = *sizes(tuner, 40, GPU).last().unwrap() as f64;
        assert!((found / due(GPU) - 1.0).abs() < 0.12, "{found}");
    }
    for (bounds, first, now) in [((9, 5), 7, 5), ((0, 0), 0, 1), ((8, 8), 3, 8)] {
        assert_eq!(Tuner::new(bounds, first, Exactness::CLOCKED).set_bytes(), now);
    }
}

/// With one size there is nothing to decide, whatever is learnt.
#[test]
fn one_size_stays() {
    let tuner = &mut Tuner::new((MIB, MIB), MIB, Exactness::CLOCKED);
    assert_eq!(sizes(tuner, 20, GPU), [MIB; 21]);
}

/// A set that takes ten times as long now and then, and all that take a tenth more or less, change little.
#[test]
fn chance_is_no_change() {
    let tuner = &mut Tuner::new(BOUNDS, 32 * MIB, Exactness::CLOCKED);
    let draws = &mut Draws(7);
    let mut last = Vec::new();
    for step in 0..400 {
        let bytes = tuner.set_bytes();
        let late = if step % 9 == 8 { 10.0 } else { 1.0 };
        tuner.sent(bytes);
        tuner.learn(bytes, ns(bytes, GPU).map(|ns| late * ns * (0.97 + 0.06 * draws.next())));
        last.push(tuner.set_bytes());
    }
    let worst = last[200..].iter().map(|&size| size as f64 / due(GPU));
    let (least, most) = worst.fold((f64::MAX, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
    println!("between {least:.2} and {most:.2} of what is wanted");
    assert!(least > 0.5 && most < 2.5, "{least} {most}");
}

/// A change that stays is learnt.
#[test]
fn a_change_is_no_chance() {
    let tuner = &mut Tuner::new(BOUNDS, 32 * MIB, Exactness::CLOCKED);
    sizes(tuner, 20, GPU);
    let slow = GPU.map(|(fixed, rate)| (8.0 * fixed, rate / 2.0));
    let found = *sizes(tuner, 40, slow).last().unwrap() as f64;
    assert!((found / due(slow) - 1.0).abs() < 0.12, "{found} for {}", due(slow));
}

/// Where there are few sizes, a change is learnt as well.
#[test]
fn a_change_is_learnt_within_narrow_bounds() {
    let tuner = &mut Tuner::new((4 * MIB, 12 * MIB), 12 * MIB, Exactness::CLOCKED);
    assert_eq!(*sizes(tuner, 20, GPU).last().unwrap(), 12 * MIB);
    let slow = GPU.map(|(fixed, rate)| (fixed, rate / 20.0));
    assert_eq!(*sizes(tuner, 20, slow).last().unwrap(), 4 * MIB);
}

/// What a session costs is known once both figures of each stage are.
#[test]
fn cost_is_what_was_learnt() {
    let tuner = &mut Tuner::new(BOUNDS, 32 * MIB, Exactness::CLOCKED);
    assert_eq!(tuner.cost(), None);
    (0..9).for_each(|_| tuner.learn(MIB, ns(MIB, GPU)));
    assert_eq!(tuner.cost(), None, "of one size only");
    sizes(tuner, 20, GPU);
    let cost = tuner.cost().unwrap();
    assert!((cost.fixed_ns / 140e3 - 1.0).abs() < 0.05, "{cost:?}");
    // 95% of the slowest stage.
    assert!((cost.ns_per_byte * 0.95 * 45.0 - 1.0).abs() < 0.02, "{cost:?}");
}

#[test]
fn times_that_are_none_are_not_learnt() {
    let told = |odd: &[[f64; 3]]| {
        let tuner = &mut Tuner::new(BOUNDS, 4 * MIB, Exactness::CLOCKED);
        odd.iter().zip([3, 5, 4]).for_each(|(odd, mib)| tuner.learn(mib * MIB, *odd));
        sizes(tuner, 20, GPU)
    };
    let none = [f64::NAN, -1.0, f64::INFINITY].map(|odd| [1e5, odd, 1e5]);
    assert_eq!(told(&none), told(&[]));
}

/// Numbers from 0 to 1 that look drawn.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Sets that a session holds.
const HELD: usize = 4;

/// Sizes of 120 sets, of which a session holds [`HELD`] at a time, and `ahead` more were cut before; each stage takes up
/// to `noise` more or less than it should.
fn in_flight(first: u64, ahead: usize, noise: f64, stages: Stages, seed: u64) -> Vec<u64> {
    const SETS: usize = 120;
    let tuner = &mut Tuner::new(BOUNDS, first, Exactness::CLOCKED);
    let (mut sizes, mut draws) = (Vec::new(), Draws(7919 * seed + 13));
    let mut noisy = |ns: f64| ns * (1.0 + noise * (2.0 * draws.next() - 1.0));
    for no in 0..SETS {
        sizes.push(tuner.set_bytes());
        if let Some(taken) = no.checked_sub(ahead) {
            tuner.sent(sizes[taken]);
        }
        if let Some(back) = no.checked_sub(ahead + HELD) {
            tuner.learn(sizes[back], ns(sizes[back], stages).map(&mut noisy));
        }
    }
    sizes
}

/// How many sets came before the first of those that all have the last one's size.
fn settled(sizes: &[u64]) -> usize {
    let last = sizes.last();
    sizes.len() - sizes.iter().rev().take_while(|size| Some(*size) == last).count()
}

/// Bytes a nanosecond of the slowest stage with sets of so many bytes, over what it has with sets without end.
fn share(bytes: u64, stages: Stages) -> f64 {
    let slowest = stages.iter().map(|of| of.1).fold(f64::MAX, f64::min);
    let of_stage = |(fixed, rate): (f64, f64)| bytes as f64 / (fixed + bytes as f64 / rate);
    stages.map(of_stage).into_iter().fold(f64::MAX, f64::min) / slowest
}

const PROFILES: [Stages; 5] = [
    GPU,
    // Links of PCIe 4, and calls that take longer.
    [(40e3, 22.0), (300e3, 80.0), (60e3, 22.0)],
    // Kernels that are the slowest, as with LZ4.
    [(14e3, 45.0), (140e3, 20.0), (21e3, 45.0)],
    // As the paced device has it.
    [(14e3, 45.0), (98e3, 100.0), (28e3, 47.5)],
    // Slow down.
    [(14e3, 45.0), (105e3, 100.0), (35e3, 12.0)],
];
const FIRST: [u64; 3] = [4 * MIB, 32 * MIB, 256 * MIB];

/// Where times are exact it settles within twenty sets, those that were cut too early to be told aside, at what is wanted.
#[test]
fn it_settles_with_sets_in_flight() {
    for (stages, first) in PROFILES.into_iter().flat_map(|of| FIRST.map(|first| (of, first))) {
        for ahead in 0..=5 {
            let sizes = in_flight(first, ahead, 0.0, stages, 0);
            let (sets, last) = (settled(&sizes), *sizes.last().unwrap());
            assert!(sets <= 20 + ahead, "{ahead} ahead: {sets} sets, {sizes:?}");
            assert!(ahead > 2 || sets <= 20, "{ahead} ahead: {sets} sets, {sizes:?}");
            let off = (last as f64 / due(stages) - 1.0).abs();
            assert!(off < 0.02, "{last} for {}", due(stages));
        }
    }
}

/// Where they are not, it does nearly always, and wherever it settles the slowest stage has about what is wanted.
#[test]
fn it_settles_though_times_are_off() {
    const SEEDS: u64 = 200;
    for (noise, in_time, least) in [(0.01, 0.97, 0.93), (0.03, 0.9, 0.91), (0.1, 0.2, 0.86)] {
        for (stages, first) in PROFILES.into_iter().flat_map(|of| FIRST.map(|first| (of, first))) {
            let runs: Vec<_> =
                (0..SEEDS).map(|seed| in_flight(first, 0, noise, stages, seed)).collect();
            let soon = runs.iter().filter(|sizes| settled(sizes) <= 20).count();
            let mean = runs.iter().map(|sizes| settled(sizes)).sum::<usize>() as f64 / SEEDS as f64;
            let shares = runs.iter().map(|sizes| share(*sizes.last().unwrap(), stages));
            let worst = shares.fold(f64::MAX, f64::min);
            println!(
                "{:.0}% off, {stages:?}, {} MiB first: {soon} of {SEEDS} within 20 sets, {mean:.1} in the mean, at worst \
                 {:.1}%",
                100.0 * noise,
                first / MIB,
                100.0 * worst
            );
            assert!(soon as f64 >= in_time * SEEDS as f64 && worst > least);
        }
    }
}
