//! The lab against real runs: what it says of a life beside what `lithify bench` did with the same
//! settings. `calibration/real.tsv` has the runs and the commands that made them.
//!
//! A tree under load is sensitive: a put that costs a hundredth more may change which job comes first,
//! and a fifth of the bytes. So the lab's word is the median of three lives whose puts cost a little
//! less and a little more, as a real figure is the median of runs.

use std::fmt::Write as _;

use crate::command::setups_of;
use crate::live;

/// What the lab may be off, as shares of the real figure: in throughput, and in bytes written.
const LIMITS: (f64, f64) = (0.15, 0.10);
/// Costs of a put, of what it is.
const TRIES: [f64; 3] = [0.96, 1.0, 1.04];

struct Cell {
    held: bool,
    /// Medians: user MB/s to quiescence, bytes written per byte.
    real: (f64, f64),
    flags: &'static str,
}

fn cells() -> Vec<Cell> {
    let lines = include_str!("calibration/real.tsv").lines().filter(|l| !l.starts_with('#'));
    let cell = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let of = |text: &str| median(text.split(',').map(|x| x.parse().unwrap()).collect());
        let real = (of(fields[1]), of(fields[2]));
        Cell { held: fields[0] == "held", real, flags: fields[3] }
    };
    lines.map(cell).collect()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    let (low, high) = (of[(of.len() - 1) / 2], of[of.len() / 2]);
    (low + high) / 2.0
}

/// What the lab says: user MB/s to quiescence, bytes written per byte.
fn said(cell: &Cell) -> (f64, f64) {
    let mut setup = setups_of(cell.flags).unwrap().remove(0);
    (setup.cells, setup.check) = (1024, false);
    let cost = setup.client_ns;
    let lives = TRIES.map(|part| {
        setup.client_ns = cost * part;
        live(&setup).unwrap_or_else(|e| panic!("{}: {e:#}", cell.flags))
    });
    let rates = lives.iter().map(|l| l.rate() / 1e6).collect();
    (median(rates), median(lives.iter().map(|l| l.amplification()).collect()))
}

#[test]
fn the_lab_says_what_real_runs_do() {
    let cells = cells();
    let (first, second) = cells.split_at(cells.len() / 2);
    let words: Vec<(f64, f64)> = std::thread::scope(|scope| {
        let both = [first, second]
            .map(|part| scope.spawn(move || part.iter().map(said).collect::<Vec<_>>()));
        both.into_iter().flat_map(|b| b.join().unwrap()).collect()
    });
    let mut table = String::new();
    let (mut good, mut all, mut far) = (0, 0, Vec::new());
    for (cell, said) in cells.iter().zip(words) {
        let off = (said.0 / cell.real.0 - 1.0, said.1 / cell.real.1 - 1.0);
        let within = off.0.abs() <= LIMITS.0 && off.1.abs() <= LIMITS.1;
        good += usize::from(cell.held && within);
        all += usize::from(within);
        if off.0.abs() > 0.5 || off.1.abs() > 0.5 {
            far.push(cell.flags);
        }
        let _ = writeln!(
            table,
            "{} {} real {:6.1} MB/s, lab {:6.1} ({:+3.0}%); bytes {:.2}, lab {:.2} ({:+3.0}%): {}",
            if within { "  " } else { "!!" },
            if cell.held { "held " } else { "model" },
            cell.real.0,
            said.0,
            100.0 * off.0,
            cell.real.1,
            said.1,
            100.0 * off.1,
            cell.flags
        );
    }
    println!("{table}");
    let held = cells.iter().filter(|c| c.held).count();
    assert!(good >= 8, "{good} of {held} cells that were held out are within the limits\n{table}");
    assert!(all >= 36, "{all} of {} cells are within the limits\n{table}", cells.len());
    assert!(far.is_empty(), "far off: {far:?}\n{table}");
}
