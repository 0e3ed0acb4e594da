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
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut last = Vec::new();
    for step in 0..400 {
        let bytes = tuner.set_bytes();
        let late = if step % 9 == 8 { 10.0 } else { 1.0 };
        tuner.learn(bytes, ns(bytes, GPU).map(|ns| late * ns * (0.97 + 0.06 * draw())));
        last.push(tuner.set_bytes());
    }
    let worst = last[200..].iter().map(|&size| size as f64 / due(GPU));
    let (least, most) = worst.fold((f64::MAX, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
    println!("between {least:.2} and {most:.2} of what is wanted");
    assert!(least > 0.2 && most < 5.0, "{least} {most}");
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

/// What a session costs is known once both figures of each stage are.
#[test]
fn cost_is_what_was_learnt() {
    let tuner = &mut Tuner::new(BOUNDS, 32 * MIB, Exactness::CLOCKED);
    assert_eq!(tuner.cost(), None);
    sizes(tuner, 1, GPU);
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
