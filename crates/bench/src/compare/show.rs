//! A comparison as a table for people.

use std::io::Write;

use super::{Comparison, Ratio};
use crate::fold::to_terminal;
use crate::report::{align_right, table};
use crate::units::three_digits;

/// Prints medians, extremes and ratios as a table to `out`.
pub(super) fn print(comparison: &Comparison, out: &mut dyn Write) -> std::io::Result<()> {
    let mut heading = vec!["workload".to_owned(), "figure".to_owned()];
    for engine in &comparison.engines {
        heading.push(format!("{} {}", engine.name, engine.version));
        if comparison.rounds > 1 {
            heading.push("min..max".to_owned());
        }
    }
    for engine in comparison.engines.iter().skip(1) {
        heading.push(match comparison.ratio {
            Ratio::FirstOverOther => format!("ratio to {}", engine.name),
            Ratio::OtherOverFirst => format!("{} / {}", engine.name, comparison.engines[0].name),
        });
    }
    let mut table = table(heading);
    let mut last = "";
    for figure in &comparison.figures {
        let name = if figure.workload == last { "" } else { &figure.workload };
        last = &figure.workload;
        let mut row = vec![name.to_owned(), figure.figure.clone()];
        for s in &figure.spreads {
            row.push(three_digits(s.median));
            if comparison.rounds > 1 {
                row.push(format!("{}..{}", three_digits(s.min), three_digits(s.max)));
            }
        }
        for ratio in figure.ratios.iter().skip(1) {
            row.push(ratio.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}")));
        }
        table.add_row(row);
    }
    align_right(&mut table);
    match comparison.rounds {
        1 => writeln!(out, "one round, equal settings; more --rounds show how far to trust it")?,
        n => writeln!(out, "medians of {n} alternating rounds, equal settings")?,
    }
    writeln!(out, "{}", to_terminal(&table.to_string(), 2))?;
    if comparison.engines.len() > 2 {
        writeln!(out, "{}", brief(comparison))?;
    }
    for error in &comparison.errors {
        writeln!(out, "INVALID RUN, left out: {error}")?;
    }
    Ok(())
}

/// Operations in a second by workload, a column for each engine, in Markdown: the first engine's median, of each
/// other one its median and in brackets how many times that the first one makes; in bold where it makes fewer.
pub(super) fn brief(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.engines.iter().map(|engine| engine.name.as_str()).collect();
    let mut text = format!("| thousand operations/s | {} |\n", names.join(" | "));
    text += &format!("|---|{}\n", "---:|".repeat(names.len()));
    for figure in comparison.figures.iter().filter(|figure| figure.figure == "kops/s") {
        text += &format!("| {} |", figure.workload);
        for (spread, ratio) in figure.spreads.iter().zip(&figure.ratios) {
            let median = three_digits(spread.median);
            text += &match ratio.filter(|_| spread != &figure.spreads[0]) {
                None => format!(" {median} |"),
                Some(ratio) if ratio < 1.0 => format!(" {median} (**{ratio:.2}**) |"),
                Some(ratio) => format!(" {median} ({ratio:.1}) |"),
            };
        }
        text.push('\n');
    }
    text
}
