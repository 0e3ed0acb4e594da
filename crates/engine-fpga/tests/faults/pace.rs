//! How large sets are, and how long a card takes: decisions over small tables, and predictions beside the
//! engine.

use lithify_engine::{Engine, Offer, Progress};
use lithify_engine_fpga::control::{Controller, Sample};
use lithify_engine_fpga::model::Cost;
use lithify_engine_fpga::pipeline::{self, Pipeline, Predicted};
use lithify_engine_fpga::{Buffer, FpgaOptions, Link, ModelOptions};
use lithify_merge::Products;
use lithify_merge::workload::Case;

use crate::common::*;

const MIB: u64 = 1 << 20;

/// A set of so many bytes through stages of `(fixed ns, bytes a ns)`.
fn sample(bytes: u64, stages: [(f64, f64); 3], cut_ns: f64) -> Sample {
    let [to_card_ns, unit_ns, from_card_ns] = stages.map(|(a, r)| a + bytes as f64 / r);
    Sample { bytes, cut_ns, to_card_ns, unit_ns, from_card_ns, parts: 1 }
}

/// Links of 9.5 and 12 bytes a nanosecond, and a unit of 5.2 behind 80 us.
const SLOW_UNIT: [(f64, f64); 3] = [(30e3, 9.5), (80e3, 5.2), (30e3, 12.0)];

/// The sizes that a controller wants, each learnt from a set of the size before.
fn sizes(control: &mut Controller, steps: usize, stages: [(f64, f64); 3], cut_ns: f64) -> Vec<u64> {
    let mut sizes = vec![control.set_bytes()];
    for _ in 0..steps {
        let bytes = control.set_bytes();
        control.offered(bytes);
        control.learn(&sample(bytes, stages, cut_ns));
        sizes.push(control.set_bytes());
    }
    sizes
}

#[test]
fn static_sets_stay_as_they_are() {
    let control = &mut Controller::new(Buffer::Static, 6, 2, 3 * MIB, 16 * MIB);
    assert_eq!(sizes(control, 5, SLOW_UNIT, 50e3), [3 * MIB; 6]);
}

#[test]
fn adaptive_finds_the_smallest_set_that_is_worth_it() {
    let control = &mut Controller::new(Buffer::Adaptive, 6, 2, 4 * MIB, 64 * MIB);
    let found = sizes(control, 12, SLOW_UNIT, 50e3);
    assert_eq!(found[..3], [MIB, 2 * MIB, 8 * MIB]);
    // 80 us x 5.044 bytes a ns / (1 - 0.97).
    let last = found[12] as f64;
    assert!((last / 13.451e6 - 1.0).abs() < 0.01, "{found:?}");
    assert!(found.windows(2).all(|w| w[1] <= 4 * w[0]), "{found:?}");
    let rate = |bytes: f64| bytes / (80e3 + bytes / 5.2);
    assert!((rate(last) / 5.2 - 0.97).abs() < 0.001);

    // A link that is the slowest with little to pay for an operation needs no large sets; they shrink.
    let slow_link = [(30e3, 0.5), (110e3, 5.2), (30e3, 12.0)];
    let found = sizes(control, 60, slow_link, 50e3);
    assert_eq!(found[60], MIB, "{found:?}");
}

/// Sets are cut ahead: five before the first has come back, and one for each that has. Few are smaller than what is wanted.
#[test]
fn adaptive_grows_while_sets_are_cut_ahead() {
    let control = &mut Controller::new(Buffer::Adaptive, 3, 1, 4 * MIB, 64 * MIB);
    let mut ahead = std::collections::VecDeque::new();
    let mut found = Vec::new();
    for _ in 0..12 {
        while ahead.len() < 5 {
            found.push(control.set_bytes());
            ahead.push_back(control.set_bytes());
            control.offered(control.set_bytes());
        }
        control.learn(&sample(ahead.pop_front().unwrap(), SLOW_UNIT, 50e3));
    }
    let mib: Vec<u64> = found.iter().map(|bytes| bytes / MIB).collect();
    // The sixth is cut after the first is back, the seventh after that of 2 MiB is: two sizes are a line.
    assert_eq!(mib[..8], [1, 2, 4, 4, 4, 4, 8, 12], "{found:?}");
    assert!(mib[8..].iter().all(|&size| size == 12), "{found:?}");
}

/// All parts share the links, so with two of them these are the slowest stage: what was learnt with one part counts.
#[test]
fn adaptive_knows_that_parts_share_the_links() {
    let control = &mut Controller::new(Buffer::Adaptive, 6, 2, 4 * MIB, 64 * MIB);
    let stages = [(60e3, 8.0), (20e3, 5.2), (30e3, 12.0)];
    let alone = *sizes(control, 12, stages, 50e3).last().unwrap() as f64;
    assert!((alone / 3.363e6 - 1.0).abs() < 0.01, "{alone}: the unit is the slowest");
    for _ in 0..3 {
        let size = control.set_bytes();
        control.learn(&Sample { parts: 2, ..sample(size, stages, 50e3) });
    }
    // Two at 60 us and 8 bytes a ns are one at 120 us and 4: x 3.88 / (1 - 0.97).
    let both = control.set_bytes() as f64;
    assert!((both / 15.52e6 - 1.0).abs() < 0.01, "{both} after {alone}");
}

/// A unit that has become slower than its line says is learnt anew, though all sets are alike.
#[test]
fn adaptive_learns_anew_what_has_changed() {
    let control = &mut Controller::new(Buffer::Adaptive, 6, 2, 4 * MIB, 64 * MIB);
    sizes(control, 12, SLOW_UNIT, 50e3);
    let slower = [(30e3, 9.5), (80e3, 2.6), (30e3, 12.0)];
    let found = *sizes(control, 30, slower, 50e3).last().unwrap() as f64;
    // 80 us x 2.522 bytes a ns / (1 - 0.97).
    assert!((found / 6.725e6 - 1.0).abs() < 0.02, "{found}");
}

#[test]
fn adaptive_keeps_within_the_slot_and_its_own_limits() {
    let large = [(30e3, 9.5), (1e6, 5.2), (30e3, 12.0)];
    for (most, due) in [(64 * MIB, 16 * MIB), (5 * MIB, 5 * MIB), (MIB / 2, MIB / 2), (1, 1)] {
        let control = &mut Controller::new(Buffer::Adaptive, 6, 2, MIB, most);
        assert_eq!(*sizes(control, 12, large, 50e3).last().unwrap(), due);
    }
}

/// Sets of another size than the present one are no reason to change it: those still under way, and the rest of a
/// part.
#[test]
fn adaptive_is_not_misled_by_odd_sets() {
    let control = &mut Controller::new(Buffer::Adaptive, 6, 2, MIB, 16 * MIB);
    sizes(control, 12, SLOW_UNIT, 50e3);
    let before = control.set_bytes();
    // They lie on the same lines, so what is wanted stays, but for a last bit.
    for bytes in [1, 1000, 3 * MIB, 2 * MIB, 16 * MIB, 0] {
        control.learn(&sample(bytes, SLOW_UNIT, 50e3));
        assert!(control.set_bytes().abs_diff(before) <= 1, "after a set of {bytes}");
    }
    let after = sizes(control, 4, SLOW_UNIT, 50e3);
    assert!(after.iter().all(|size| size.abs_diff(before) <= 1), "{after:?}");
}

/// Links of the paper's rate; the cut takes a fixed time, so it is the pacemaker.
const STEMS: [(f64, f64); 3] = [(60e3, 1.29), (113e3, 5.2), (90e3, 1.29)];

#[test]
fn stem_as_printed_shrinks_and_damped_stays() {
    let raw = &mut Controller::new(Buffer::StemRaw, 3, 1, 16 * MIB, 512 * MIB);
    let found = sizes(raw, 40, STEMS, 50e3);
    assert_eq!(*found.last().unwrap(), 4096, "{found:?}");
    // Algorithm 2, by hand: the smaller of three buffers over all stages, and of one unit.
    let bytes = 16.0 * MIB as f64;
    let (read, unit, write) = (60e3 + bytes / 1.29, 113e3 + bytes / 5.2, 90e3 + bytes / 1.29);
    let due = (3.0 * 50e3 * bytes / (read + unit + write)).min(50e3 * bytes / unit);
    assert!((found[1] as f64 - due).abs() < 2.0, "{} for {due}", found[1]);

    let damped = &mut Controller::new(Buffer::Stem, 3, 1, 16 * MIB, 512 * MIB);
    let found = sizes(damped, 40, STEMS, 50e3);
    assert_eq!((found[0], *found.last().unwrap()), (16 * MIB, 8 * MIB));
    assert!((found[1] as f64 - (bytes + due) / 2.0).abs() < 2.0, "half of the way: {found:?}");
}

#[test]
fn stem_as_printed_runs_away_if_cuts_take_longer_for_larger_sets() {
    let raw = &mut Controller::new(Buffer::StemRaw, 3, 1, 16 * MIB, 512 * MIB);
    for _ in 0..30 {
        // A nanosecond a byte: longer than any stage.
        let bytes = raw.set_bytes();
        raw.learn(&sample(bytes, STEMS, bytes as f64));
    }
    assert_eq!(raw.set_bytes(), 512 * MIB);
}

#[test]
fn links_have_names_and_figures() {
    assert_eq!(Link::parse("gen3x16"), Ok(Link::GEN3_X16));
    let link = Link::parse("9.5,12,30,15").unwrap();
    assert_eq!((link.to_card, link.from_card, link.operation_ns), (9.5, 12.0, 30_000.0));
    assert_eq!(link.duplex_loss, 0.15);
    assert_eq!(Link::parse("1.29,1.29").unwrap(), Link::STEM);
    for wrong in ["", "gen9", "1", "1,2,3,4,5", "0,1", "1,nan", "1,2,-1", "1,2,3,95", "1,inf"] {
        let why = Link::parse(wrong).unwrap_err();
        assert!(why.contains("gen3x8, gen3x16, gen4x16, stem"), "{wrong}: {why}");
    }
}

/// One unit at 167 MHz as the page of the design has it: the clock, then what one part reaches.
#[test]
fn a_clock_is_estimated_from_levels() {
    assert!((pipeline::estimated_mhz(12) - 166.9).abs() < 0.1);
    assert!((pipeline::estimated_mhz(14) - 144.3).abs() < 0.1);
}

fn rate(of: &Predicted, bytes: u64) -> f64 {
    bytes as f64 / of.ns
}

/// What entries cost a unit of 32 bytes a beat, by hand.
#[test]
fn entries_cost_the_cycles_of_their_rows() {
    let cost = Cost::new(32);
    // Lengths of 1 + 1 + 2 bytes and an internal key of 24 fit one row.
    assert_eq!(cost.kept(4, 0, 24, 1024), 33);
    // 28 bytes go with the lengths, 4 more of that row follow, then the next row.
    assert_eq!(cost.kept(4, 0, 40, 0), 1 + 2);
    // Shared up to near the row's end: with the lengths goes what is left of the row, and no more.
    assert_eq!(cost.kept(3, 30, 10, 0), 1 + 1);
    assert_eq!((cost.key_decoded(30, 10), cost.rows(64)), (2 + 2, 2));
    assert_eq!(cost.key_decoded(32, 0), 3);
    assert_eq!((cost.rounds(1024), cost.engines()), (34, 1));
    assert_eq!([8, 16, 32, 128, 240].map(|key| cost.hashed(key)), [12, 2, 3, 9, 26]);
}

/// By hand: how long the words of a block hold up those of the next one.
#[test]
fn a_block_that_ends_in_half_a_beat_holds_up_the_next() {
    let cost = Cost::new(32);
    // 130 words are 65 beats: one cycle, in which the next word is put together from two pieces.
    assert_eq!(cost.turned(4132, 4, 24, 4096), 0);
    // 133 words are not: two cycles, and lengths and key fill the next word at once.
    assert_eq!(cost.turned(4245, 5, 136, 4096), 2);
    // Of the footer two bytes are in the next word.
    assert_eq!(cost.turned(4130, 4, 24, 4096), 1);
    // Three pieces or more: it waits for them, not for the block before.
    assert_eq!(cost.turned(4245, 3, 12, 9), 0);
    // A beat a word.
    assert_eq!(Cost::new(64).turned(4245, 5, 136, 4096), 1);
}

/// By hand: one set, nothing beside it.
#[test]
fn a_single_set_takes_one_thing_after_the_other() {
    let bytes = MIB;
    let of = Pipeline { units: 1, parts: 1, set_bytes: bytes, ..Pipeline::default() };
    let link = Link::GEN3_X16;
    let records = (bytes / 4096 * 64) as f64 + 2048.0;
    // The head has a channel of its own, and is there before the areas.
    let due = 30e3
        + (bytes + bytes / 4096 * 32) as f64 / link.to_card
        + 2_300.0
        + bytes as f64 * 5.0 / 31.0
        + 3.0 * 30e3
        + (320.0 + records + bytes as f64) / link.from_card;
    let ran = of.stream(bytes);
    assert!((ran.ns - due).abs() < 1.0, "{} for {due}", ran.ns);
    assert_eq!(ran.sets, 1);
}

#[test]
fn nothing_is_reserved_twice() {
    for units in [1, 2, 4] {
        for in_flight in [1, 2, 3] {
            for parts in [1, 2, 5] {
                let of = Pipeline { units, parts, in_flight, ..Pipeline::default() };
                let ran = of.stream(600 * MIB);
                let most = [1.0, units as f64, 1.0].map(|n| n * ran.ns);
                assert!(ran.busy.iter().zip(most).all(|(busy, most)| *busy <= most), "{ran:?}");
                assert!(ran.sets >= 150, "{ran:?}");
            }
        }
    }
}

/// The pipeline is worth something, more units and a better link are, and a loss is one.
#[test]
fn predictions_are_in_order() {
    let gb = 2_000_000_000;
    let of = |change: fn(&mut Pipeline)| {
        let mut pipeline = Pipeline::default();
        change(&mut pipeline);
        rate(&pipeline.stream(gb), gb)
    };
    let default = of(|_| {});
    let worse = [
        of(|p| p.in_flight = 1),
        of(|p| p.parts = 1),
        of(|p| p.units = 1),
        of(|p| p.link = Link::STEM),
        of(|p| p.link.duplex_loss = 0.15),
        of(|p| p.set_bytes = 64 << 10),
    ];
    assert!(worse.iter().all(|rate| *rate < 0.98 * default), "{worse:?} below {default}");
    let link = Link::STEM;
    let bound = of(|p| p.link = Link::STEM);
    assert!(bound <= link.to_card && bound > 0.93 * link.to_card, "{bound}");
}

/// A unit of 8 ways and 32 bytes at its estimated clock, 16 B + 1 KiB, on a card with as much memory as the command gives it.
fn estimated(units: usize, link: Link) -> Pipeline {
    let cycle_ns = 1000.0 / pipeline::estimated_mhz(pipeline::LEVELS);
    Pipeline {
        link,
        units,
        parts: units,
        unit_fixed_ns: pipeline::FIXED_CYCLES * cycle_ns,
        // 30.6 bytes a cycle.
        unit_ns_per_byte: cycle_ns / 30.6,
        buffer: Buffer::Adaptive,
        set_max: FpgaOptions::set_within(110 << 20, units, 3),
        ..Pipeline::default()
    }
}

/// What the page on papers promises of the rates of jobs of any size.
#[test]
fn jobs_of_any_size_stream_at_one_rate() {
    let sizes = [512, 1_200, 2_400, 4_800, 30_000].map(|mb| mb * 1_000_000);
    let rates = |units, link| sizes.map(|bytes| rate(&estimated(units, link).stream(bytes), bytes));
    let one = rates(1, Link::GEN3_X16);
    assert!(one.iter().all(|&rate| rate > 4.82), "{one:?}");
    assert!(one[1] > 0.98 * one[4], "{one:?}");
    let two = rates(2, Link::GEN3_X16);
    assert!(two.iter().all(|&rate| rate > 8.6), "{two:?}");
    let lossy = rates(2, Link { duplex_loss: 0.15, ..Link::GEN3_X16 });
    assert!(lossy.iter().all(|&rate| rate > 7.55), "{lossy:?}");
}

/// The sets that `adaptive` wants are nearly as good as the best of some fixed sizes, whatever room these take.
#[test]
fn adaptive_sets_are_nearly_the_best() {
    let bytes = 4_800_000_000;
    for units in [1, 2] {
        for link in [Link::GEN3_X16, Link::STEM] {
            let of = estimated(units, link);
            let fixed = [1, 4, 16].map(|mib| {
                let set = mib * MIB;
                let of = Pipeline { buffer: Buffer::Static, set_bytes: set, set_max: set, ..of };
                rate(&of.stream(bytes), bytes)
            });
            let best = fixed.into_iter().fold(0.0, f64::max);
            let found = rate(&of.stream(bytes), bytes);
            assert!(found > 0.97 * best, "{units} {link:?}: {found} beside {fixed:?}");
        }
    }
}

/// The formula is the engine's own time, within 3%.
#[test]
fn predictions_are_what_the_engine_says() {
    let set = MIB;
    let case = Case::uniform(11, 8, 16_000, 16, 1024).unwrap();
    let sets = case.sets(set);
    let stored: u64 = sets.iter().map(|set| set.bytes()).sum();
    for (in_flight, link) in [(3, Link::GEN3_X16), (1, Link::GEN3_X16), (3, Link::STEM)] {
        let options = FpgaOptions {
            in_flight,
            link,
            set_bytes: set,
            buffer: Buffer::Static,
            ..FpgaOptions::default()
        };
        let card =
            ModelOptions { units: 1, memory: options.card_bytes(1), ..ModelOptions::default() };
        let engine = engine(card, options);
        let mut session = engine.open(case.recipe.clone()).unwrap();
        let (mut products, mut left) = (Products::default(), sets.clone().into_iter());
        let mut next = left.next();
        loop {
            match next.take() {
                Some(set) => match session.offer(set) {
                    Offer::Taken => next = left.next(),
                    Offer::Full(set) => next = Some(set),
                },
                None => session.seal(),
            }
            if let Progress::Done(_) = session.poll(&mut products) {
                break;
            }
        }
        assert_eq!(figure(&engine, "unit_sets"), sets.len() as u64);
        let cycles = figure(&engine, "cycles") as f64 - sets.len() as f64 * pipeline::FIXED_CYCLES;
        let predicted = Pipeline {
            link,
            units: 1,
            parts: 1,
            in_flight,
            unit_fixed_ns: 5.0 * pipeline::FIXED_CYCLES,
            unit_ns_per_byte: 5.0 * cycles / stored as f64,
            set_bytes: stored / sets.len() as u64 + 1,
            ..Pipeline::default()
        }
        .stream(stored);
        let off = predicted.ns / engine.card_ns() - 1.0;
        assert!(off.abs() < 0.03, "{in_flight} in flight: {off:+.3} off; {predicted:?}");
    }
}

/// Whatever passes through, the buffers of the host keep within the memory of the slots, and the counter sees
/// them: at least what lies in one slot.
#[test]
fn buffers_have_a_bound_however_much_passes() {
    let set = 64 << 10;
    let options = FpgaOptions { set_bytes: set, buffer: Buffer::Static, ..FpgaOptions::default() };
    let card = ModelOptions { units: 1, memory: options.card_bytes(1), ..ModelOptions::default() };
    let engine = engine(card, options);
    let mut after = Vec::new();
    for entries in [500, 4_000, 30_000] {
        let case = Case::uniform(entries, 4, entries as usize, 16, 500).unwrap();
        let mut session = engine.open(case.recipe.clone()).unwrap();
        let mut products = Products::default();
        let mut sets = case.sets(set).into_iter();
        let mut next = sets.next();
        loop {
            match next.take() {
                Some(set) => match session.offer(set) {
                    Offer::Taken => next = sets.next(),
                    Offer::Full(set) => next = Some(set),
                },
                None => session.seal(),
            }
            if let Progress::Done(_) = session.poll(&mut products) {
                break;
            }
        }
        after.push(figure(&engine, "host_bytes_most"));
    }
    let bound = figure(&engine, "card_bytes");
    assert_eq!(bound, options.card_bytes(1) as u64);
    assert!(after.iter().all(|most| *most <= bound), "{after:?} within {bound}");
    // The longest job is 16 MB through 1 MB; it needs what a job of 2 MB does, and a little.
    assert!(after[1] > 4 * set && after[2] < after[1] + after[1] / 4, "{after:?}");
    assert!(figure(&engine, "bytes_to_card") > 10 * bound);
}
