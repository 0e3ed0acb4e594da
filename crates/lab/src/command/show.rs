//! What is printed of lives: a row for each, the details of one, and every tenth of a second.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use lithify_base::MAX_LEVELS;
use lithify_bench::fold::to_columns;
use lithify_plan::Kind;

use crate::setup::Setup;
use crate::tally::{KindTally, Span};
use crate::world::Life;

pub(crate) fn table(head: Vec<String>) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule)).set_header(head);
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}

const MB: f64 = 1e6;

pub(super) fn summary(lives: &[(String, Setup, Life)], columns: Option<usize>) -> String {
    let head = [
        "policy",
        "T",
        "load s",
        "drain s",
        "MB/s",
        "quiesced",
        "active",
        ">half",
        "drain act",
        "delay s",
        "stop s",
        "WA",
        "WA end",
        "debt MB",
        "worst",
        "extra MB",
        "L0",
        "depth",
        "L0->L0",
    ];
    let mut t = table(head.map(str::to_owned).to_vec());
    for (name, setup, life) in lives {
        let (delay, stop) = life.load.all_waits();
        let rate = |seconds: f64| life.user_bytes / MB / seconds.max(1e-9);
        let written = life.load.all_written() as f64;
        let all = written + life.drain.all_written() as f64;
        t.add_row([
            name.clone(),
            setup.threads.to_string(),
            format!("{:.2}", life.load.seconds),
            format!("{:.2}", life.drain.seconds),
            format!("{:.1}", rate(life.load.seconds)),
            format!("{:.1}", rate(life.load.seconds + life.drain.seconds)),
            format!("{:.2}", life.load.mean_active()),
            format!("{:.0}%", 100.0 * life.load.more_than_half(setup.threads as usize)),
            format!("{:.2}", life.drain.mean_active()),
            format!("{delay:.2}"),
            format!("{stop:.2}"),
            format!("{:.2}", written / life.user_bytes),
            format!("{:.2}", all / life.user_bytes),
            format!("{:.0}", life.at_load_end.debt as f64 / MB),
            format!("{:.0}", life.worst_debt as f64 / MB),
            format!("{:.0}", life.at_load_end.extra as f64 / MB),
            life.at_load_end.l0_depth.to_string(),
            life.at_load_end.depth.to_string(),
            format!("{:.0}%", 100.0 * share(life, Kind::IntraL0)),
        ]);
    }
    to_columns(&t.to_string(), 2, columns)
}

/// Bytes that jobs of `kind` wrote during the load, of those of all compactions.
fn share(life: &Life, kind: Kind) -> f64 {
    let all: u64 = life.load.kinds.values().map(|k| k.written).sum();
    let of = life.load.kinds.get(&kind).map_or(0, |k| k.written);
    of as f64 / all.max(1) as f64
}

pub(super) fn details(name: &str, setup: &Setup, life: &Life, columns: Option<usize>) -> String {
    let mut out = format!(
        "{name}, {} threads: {:.1} core s of {:.1}; disk {:.0} MB/s, {} operations; {} trees; {} buckets\n",
        setup.threads,
        life.cpu_seconds,
        (life.load.seconds + life.drain.seconds) * setup.cores,
        life.disk_bytes as f64 / MB / life.load.seconds.max(1e-9),
        life.operations,
        life.installs,
        life.at_end.buckets,
    );
    for (what, span) in [("load", &life.load), ("drain", &life.drain)] {
        span_details(&mut out, what, span, life);
    }
    let mut t =
        table(["MB at", "L0", "L1", "L2", "L3", "L4", "L5", "L6"].map(str::to_owned).into());
    for (when, shape) in [("load end", &life.at_load_end), ("end", &life.at_end)] {
        let bytes = shape.bytes.iter().map(|&b| format!("{:.0}", b as f64 / MB));
        t.add_row(std::iter::once(when.to_owned()).chain(bytes));
    }
    out + &to_columns(&t.to_string(), 1, columns) + "\n"
}

fn span_details(out: &mut String, what: &str, span: &Span, life: &Life) {
    let seconds = span.seconds.max(1e-9);
    let _ = write!(out, "  {what} {seconds:.2} s; flushes {:.2} active;", span.flushing / seconds);
    for ((from, to), area) in &span.active {
        let _ = write!(out, " L{from}->L{to} {:.2}", area / seconds);
    }
    out.push('\n');
    let written = (0..MAX_LEVELS).filter(|&l| span.written[l] > 0);
    let by_level: Vec<String> =
        written.map(|l| format!("L{l} {:.2}", span.written[l] as f64 / life.user_bytes)).collect();
    let _ = writeln!(out, "  {what} written / user: {}", by_level.join("  "));
    for (cause, (delay, stop)) in &span.waited {
        let _ =
            writeln!(out, "  {what} waits {}: delay {delay:.2} s, stop {stop:.2} s", cause.name());
    }
    for (kind, KindTally { jobs, read, written, seconds }) in &span.kinds {
        let _ = writeln!(
            out,
            "  {what} {kind:?}: {jobs} jobs, read {:.0} MB ({:.1} each), wrote {:.0} MB, {:.2} s each",
            *read as f64 / MB,
            *read as f64 / MB / (*jobs).max(1) as f64,
            *written as f64 / MB,
            seconds / (*jobs).max(1) as f64,
        );
    }
}

pub(super) fn csv(lives: &[(String, Setup, Life)]) -> String {
    let mut out = String::from("policy,threads,second,series,value\n");
    for (name, setup, life) in lives {
        for (i, step) in life.steps.iter().enumerate() {
            let mut row = |series: String, value: f64| {
                let second = i as f64 / 10.0;
                let _ = writeln!(out, "{name},{},{second:.1},{series},{value:.4}", setup.threads);
            };
            for ((from, to), active) in &step.active {
                row(format!("L{from}->L{to}"), *active);
            }
            row("flush".into(), step.flushes);
            row("l0_depth".into(), f64::from(step.l0_depth));
            row("debt_mb".into(), step.debt as f64 / MB);
            row("mb_per_s".into(), step.bytes / MB * 10.0);
            row("stalled".into(), step.stalled);
        }
    }
    out
}
