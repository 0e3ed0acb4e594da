//! The grid's own arithmetic, and a few cells lived through.

use super::cells::{coarse, full, held_out, long};
use super::*;

fn contestants() -> Vec<Contestant> {
    [1, 4].map(|shape| Contestant { policy: PolicyKind::Hybrid, shape }).to_vec()
}

fn judged(cell: Cell, own: f64, others: [f64; 2]) -> Judged {
    let score = |rate: f64| Score { rate: rate * 1e6, ..Score::default() };
    Judged { cell, own: score(own), others: others.map(score).to_vec() }
}

#[test]
fn regret_is_against_the_best_shape_and_gain_against_the_default_one() {
    let c = judged(coarse()[0], 90.0, [60.0, 100.0]);
    assert!((c.regret(&contestants()) - 0.9).abs() < 1e-9);
    assert!((c.gain(&contestants()) - 1.5).abs() < 1e-9);
    let (best, _) = c.best(&contestants(), |_| true);
    assert_eq!(contestants()[best].name(), "hybrid 4x");
}

#[test]
fn the_coarse_grid_is_a_sample_of_the_full_one_and_has_each_value_of_each_axis() {
    let (some, all) = (coarse(), full());
    assert!(some.len() <= 300, "{} cells", some.len());
    assert_eq!(all.len(), 6 * 5 * 3 * 4 * 6 * 3);
    assert!(some.iter().all(|c| all.contains(c)));
    assert_eq!(long().len(), 40);
    let of = |axis: fn(&Cell) -> usize| {
        let values =
            |cells: &[Cell]| cells.iter().map(axis).collect::<std::collections::BTreeSet<_>>();
        (values(&some), values(&all))
    };
    for (here, there) in [
        of(|c| c.threads),
        of(|c| c.device),
        of(|c| c.processor),
        of(|c| c.value),
        of(|c| c.load),
        of(|c| c.memtable),
    ] {
        assert_eq!(here, there);
    }
}

#[test]
fn a_report_names_the_worst_cell_and_where_more_threads_are_slower() {
    let at = |threads| Cell { threads, ..coarse()[0] };
    // Nothing lives with one step more, and two steps are the next.
    let cells = vec![judged(at(0), 100.0, [100.0, 90.0]), judged(at(2), 80.0, [100.0, 120.0])];
    let v = Verdict { name: "bucket".into(), opponents: contestants(), cells };
    let text = show::report(&v, None);
    assert!(text.contains("worst 0.667"), "{text}");
    assert!(text.contains("1 of 2 cells below 0.95"), "{text}");
    assert!(text.contains("where more is less by over 3%: 1 of 1 pairs"), "{text}");
    assert!(text.contains("threads"), "{text}");
    assert!(!show::holds(&v, Some(0.7), None) && show::holds(&v, Some(0.6), None));
    assert!(!show::holds(&v, None, Some(0.7)) && show::holds(&v, Some(0.6), Some(0.6)));
    let picture = map::draw(&v);
    assert_eq!(picture.matches("<title>").count(), 2);
    assert_eq!(show::csv(&v).lines().count(), 1 + 2 * 3);
}

#[test]
fn without_opponents_there_is_no_regret() {
    let c = Judged { others: vec![], ..judged(coarse()[0], 90.0, [60.0, 100.0]) };
    let v = Verdict { name: "bucket".into(), opponents: vec![], cells: vec![c] };
    let told = show::csv(&v);
    assert!(told.lines().nth(1).unwrap().contains(",judged: bucket,90.000,,"), "{told}");
}

#[test]
fn a_block_is_compressed_as_its_entries_are() {
    for processor in 0..cells::PROCESSORS.len() {
        let bytes = |cell: Cell| cell.setup(PolicyKind::Hybrid, 1, 120, 16.0).bytes;
        let plain = Cell { processor: 0, ..coarse()[0] };
        let (plain, less) = (bytes(plain), bytes(Cell { processor, ..plain }));
        assert!((less.block / less.disk - plain.block / plain.disk).abs() < 1e-9, "{less:?}");
    }
}

#[test]
fn tables_fit_the_terminal() {
    let at = |threads| Cell { threads, ..coarse()[0] };
    let cells = vec![judged(at(0), 100.0, [100.0, 90.0]), judged(at(1), 80.0, [100.0, 120.0])];
    let v = Verdict { name: "bucket".into(), opponents: contestants(), cells };
    let widest = |columns| {
        let text = show::report(&v, columns);
        let rules = text.lines().filter(|line| line.starts_with('─'));
        (rules.clone().map(|rule| rule.chars().count()).max().unwrap(), rules.count())
    };
    let ((whole, tables), (width, parts)) = (widest(None), widest(Some(80)));
    assert!(whole > 80 && width <= 80 && parts > tables, "{}", show::report(&v, Some(80)));
}

#[test]
fn every_load_of_the_grid_lives_with_invariants_checked() {
    for load in 0..cells::LOADS.len() {
        let cell = Cell { load, ..coarse()[0] };
        let mut setup = cell.setup(PolicyKind::Hybrid, 1, 30, 4.0);
        setup.check = true;
        setup.cells = 128;
        let life = live(&setup).unwrap_or_else(|e| panic!("{}: {e:#}", cell.name()));
        assert!(life.rate() > 0.0 && life.amplification() > 0.9, "{}", cell.name());
    }
}

#[test]
fn what_is_held_out_is_on_every_disk_and_shares_no_size_and_no_keys_with_the_rest() {
    let (held, all) = (held_out(), full());
    assert!(held.len() >= 60 && held.iter().all(|c| c.held_out && !all.contains(c)));
    let devices: std::collections::BTreeSet<_> = held.iter().map(|c| c.device).collect();
    assert_eq!(devices.len(), cells::DEVICES.len());
    let setups = |of: &[Cell]| -> Vec<_> {
        of.iter().map(|c| c.setup(PolicyKind::Hybrid, 1, 120, 16.0)).collect()
    };
    let (held, all) = (setups(&held), setups(&all));
    for a in &held {
        let same = all.iter().any(|b| {
            a.bytes.user == b.bytes.user
                || a.plan.memtable_bytes == b.plan.memtable_bytes
                || a.seed == b.seed
        });
        assert!(!same);
    }
}
