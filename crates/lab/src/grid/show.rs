//! What is printed of a grid: its summary, who is best where, the worst cells, where more was less.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::Table;
use lithify_bench::fold::to_columns;

use super::cells::{Cell, DEVICES, LOADS, MORE, PROCESSORS, THREADS};
use super::{Judged, Verdict};
use crate::command::show::table;

/// Worst cells that are listed.
const WORST: usize = 20;
/// What more threads, a faster disk or more memory may cost.
const SLACK: f64 = 0.97;

/// The whole report, its tables folded where they take more than so many columns.
pub(super) fn report(v: &Verdict, columns: Option<usize>) -> String {
    let fold = |table: Table, labels| to_columns(&table.to_string(), labels, columns);
    let mut out = summary(v);
    let _ = writeln!(out, "\nregret of every cell by threads\n{}", fold(every(v), 5));
    let _ = writeln!(out, "\nbest of the others, by disk: cells\n{}", fold(best(v), 1));
    let _ = writeln!(out, "\nworst {WORST} cells of {}\n{}", v.name, fold(worst(v), 1));
    let (broken, pairs) = slower(v);
    let _ = writeln!(out, "\nwhere more is less by over 3%: {} of {pairs} pairs", broken.len());
    if !broken.is_empty() {
        let _ = writeln!(out, "{}", fold(monotone(&broken), 2));
    }
    let rough = rough(v);
    let _ = writeln!(out, "\nmore seconds in stops over 10 ms than hybrid: {} cells", rough.len());
    for (name, own, hybrid) in rough.iter().take(WORST / 2) {
        let _ = writeln!(out, "  {name}: {own:.2} s, hybrid {hybrid:.2} s");
    }
    out
}

/// True if no regret is below `least`, and all but a twentieth of them are not below `most`.
pub(super) fn holds(v: &Verdict, least: Option<f64>, most: Option<f64>) -> bool {
    let mut regrets: Vec<f64> = v.cells.iter().map(|c| c.regret(&v.opponents)).collect();
    let mut reaches =
        |q, goal: Option<f64>| goal.is_none_or(|goal| quantile(&mut regrets, q) >= goal);
    reaches(0.0, least) && reaches(0.05, most)
}

fn quantile(of: &mut [f64], q: f64) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(((of.len().max(1) - 1) as f64 * q) as usize).copied().unwrap_or(f64::NAN)
}

fn summary(v: &Verdict) -> String {
    let mut regrets: Vec<f64> = v.cells.iter().map(|c| c.regret(&v.opponents)).collect();
    let mut gains: Vec<f64> = v.cells.iter().map(|c| c.gain(&v.opponents)).collect();
    let mut leveled: Vec<f64> = v.cells.iter().map(|c| c.among_leveled(&v.opponents)).collect();
    let below = regrets.iter().filter(|r| **r < 0.95).count();
    let names: Vec<String> = v.opponents.iter().map(|o| o.name()).collect();
    format!(
        "\n{} beside {}\nof the best: worst {:.3}, a twentieth below {:.3}, median {:.3}; {below} of {} \
         cells below 0.95\nof the best that leaves one run on each level: worst {:.3}, median {:.3}\nof the best with the default shape: worst {:.3}, median {:.3}\n",
        v.name,
        names.join(", "),
        quantile(&mut regrets, 0.0),
        quantile(&mut regrets, 0.05),
        quantile(&mut regrets, 0.5),
        v.cells.len(),
        quantile(&mut leveled, 0.0),
        quantile(&mut leveled, 0.5),
        quantile(&mut gains, 0.0),
        quantile(&mut gains, 0.5),
    )
}

/// A row of cells that differ in threads only.
pub(super) fn row_name(cell: &Cell) -> [String; 5] {
    [
        PROCESSORS[cell.processor].0.to_owned(),
        format!("{} B", cell.value()),
        cell.memtable().0.to_owned(),
        LOADS[cell.load].to_owned(),
        DEVICES[cell.device].0.to_owned(),
    ]
}

fn every(v: &Verdict) -> Table {
    let head = ["cpu", "value", "memtable", "load", "disk"].map(str::to_owned).into_iter();
    let mut t = table(head.chain(THREADS.map(|n| n.to_string())).collect());
    let mut rows: BTreeMap<Cell, BTreeMap<usize, f64>> = BTreeMap::new();
    for c in &v.cells {
        let row = rows.entry(Cell { threads: 0, ..c.cell }).or_default();
        row.insert(c.cell.threads, c.regret(&v.opponents));
    }
    for (cell, regrets) in rows {
        let of = |n| regrets.get(&n).map_or(String::new(), |r| format!("{r:.2}"));
        t.add_row(row_name(&cell).into_iter().chain((0..THREADS.len()).map(of)));
    }
    t
}

/// How often each opponent is the best, by disk; and its worst regret anywhere.
fn best(v: &Verdict) -> Table {
    let head = std::iter::once("policy").chain(DEVICES.iter().map(|d| d.0));
    let mut t = table(head.chain(["all", "its worst"]).map(str::to_owned).collect());
    for (i, o) in v.opponents.iter().enumerate() {
        let wins = |c: &&Judged| c.best(&v.opponents, |_| true).0 == i;
        let on = |d: usize| v.cells.iter().filter(|c| c.cell.device == d).filter(wins).count();
        let of_best = |c: &Judged| c.others[i].rate / c.best(&v.opponents, |_| true).1.rate;
        let least = v.cells.iter().map(of_best).fold(f64::INFINITY, f64::min);
        let cells = (0..DEVICES.len()).map(|d| on(d).to_string());
        let all = v.cells.iter().filter(wins).count().to_string();
        t.add_row(std::iter::once(o.name()).chain(cells).chain([all, format!("{least:.2}")]));
    }
    t
}

fn worst(v: &Verdict) -> Table {
    let head = ["cell", "regret", "MB/s", "WA", "active", "best", "MB/s", "WA", "active"];
    let mut t = table(head.map(str::to_owned).into());
    let mut cells: Vec<&Judged> = v.cells.iter().collect();
    cells.sort_by(|a, b| a.regret(&v.opponents).total_cmp(&b.regret(&v.opponents)));
    for c in cells.into_iter().take(WORST) {
        let (i, best) = c.best(&v.opponents, |_| true);
        let score = |s: super::Score| {
            [
                format!("{:.1}", s.rate / 1e6),
                format!("{:.2}", s.amplification),
                format!("{:.1}", s.active),
            ]
        };
        let own = [c.cell.name(), format!("{:.3}", c.regret(&v.opponents))];
        let other = [v.opponents[i].name()].into_iter().chain(score(best));
        t.add_row(own.into_iter().chain(score(c.own)).chain(other));
    }
    t
}

/// More of something that made it slower.
struct Slower {
    what: &'static str,
    from: String,
    rate: f64,
    more: f64,
}

/// Of each cell and the next one of the grid with more of something those that got slower, the worst first, and how many such
/// pairs there are.
fn slower(v: &Verdict) -> (Vec<Slower>, usize) {
    let rates: BTreeMap<Cell, f64> = v.cells.iter().map(|c| (c.cell, c.own.rate)).collect();
    let (mut all, mut pairs) = (Vec::new(), 0);
    for (cell, &rate) in &rates {
        for (what, with) in MORE {
            let next = (1..THREADS.len()).find_map(|steps| rates.get(&with(*cell, steps)));
            let Some(&more) = next else { continue };
            pairs += 1;
            if more < SLACK * rate {
                all.push(Slower { what, from: cell.name(), rate, more });
            }
        }
    }
    all.sort_by(|a, b| (a.more / a.rate).total_cmp(&(b.more / b.rate)));
    (all, pairs)
}

fn monotone(broken: &[Slower]) -> Table {
    let mut t = table(["more", "than", "MB/s", "then MB/s", "ratio"].map(str::to_owned).into());
    for s in broken.iter().take(WORST) {
        let (rate, more) = (format!("{:.1}", s.rate / 1e6), format!("{:.1}", s.more / 1e6));
        t.add_row([s.what.into(), s.from.clone(), rate, more, format!("{:.2}", s.more / s.rate)]);
    }
    t
}

/// Cells with more seconds in long stops than hybrid has with the default shape, the worst first.
fn rough(v: &Verdict) -> Vec<(String, f64, f64)> {
    let hybrid = v.opponents.iter().position(|o| o.name() == "hybrid");
    let Some(hybrid) = hybrid else { return Vec::new() };
    let waits = |c: &Judged| (c.cell.name(), c.own.long_waits, c.others[hybrid].long_waits);
    // A hundredth of a second is one stop that was just long enough to count.
    let more = |w: &(String, f64, f64)| w.1 > 1.03 * w.2 + 0.01;
    let mut all: Vec<_> = v.cells.iter().map(waits).filter(more).collect();
    all.sort_by(|a, b| (b.1 - b.2).total_cmp(&(a.1 - a.2)));
    all
}

/// A line for each cell and contestant; without opponents there is no regret.
pub(super) fn csv(v: &Verdict) -> String {
    let mut out = String::from(
        "cpu,value,memtable,load,disk,threads,policy,mb_per_s,regret,write_amplification,\
         long_wait_s,active\n",
    );
    for c in &v.cells {
        let best = c.best(&v.opponents, |_| true).1.rate;
        let regret = |s: &super::Score| match v.opponents.is_empty() {
            true => String::new(),
            false => format!("{:.4}", s.rate / best),
        };
        let names = std::iter::once(format!("judged: {}", v.name));
        let names = names.chain(v.opponents.iter().map(|o| o.name()));
        for (name, s) in names.zip(std::iter::once(&c.own).chain(&c.others)) {
            let _ = writeln!(
                out,
                "{},{},{name},{:.3},{},{:.3},{:.3},{:.2}",
                row_name(&c.cell).join(","),
                c.cell.threads(),
                s.rate / 1e6,
                regret(s),
                s.amplification,
                s.long_waits,
                s.active,
            );
        }
    }
    out
}
