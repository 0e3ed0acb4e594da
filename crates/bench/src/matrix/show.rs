//! The matrix for people (tables by load, as text and as markdown) and for programs (CSV).

use std::fmt::Write as _;
use std::io::Write;

use super::{Figures, Matrix, Row};
use crate::fold::to_terminal;
use crate::report::{align_right, table};
use crate::units::three_digits;

/// A figure's heading in tables, its name in CSV, and where it is.
type Column = (&'static str, &'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 7] = [
    ("WA", "write_amplification", |f| f.write_amplification),
    ("kops/s", "kops_per_second", |f| f.kops_per_second),
    ("MB/s", "write_mb_per_second", |f| f.write_mb_per_second),
    ("MB/s to quiet", "quiesced_mb_per_second", |f| f.quiesced_mb_per_second),
    ("p99 us", "p99_us", |f| f.p99_us),
    ("read MB/s", "read_mb_per_second", |f| f.read_mb_per_second),
    ("space", "space_amplification", |f| f.space_amplification),
];

/// The rows of each load together, in order.
fn by_load(matrix: &Matrix) -> impl Iterator<Item = &[Row]> {
    matrix.rows.chunk_by(|a, b| a.load == b.load)
}

fn heading(matrix: &Matrix, load: &str) -> Vec<String> {
    let engines = matrix.engines.iter();
    let figures = engines.flat_map(|e| COLUMNS.iter().map(move |c| format!("{e} {}", c.0)));
    [load.to_owned(), "variant".to_owned()].into_iter().chain(figures).collect()
}

fn cells(row: &Row) -> Vec<String> {
    let figures = row.figures.iter().flat_map(|engine| {
        COLUMNS.iter().map(move |column| match engine {
            Some(figures) => three_digits(column.2(figures)),
            None => "-".to_owned(),
        })
    });
    [row.shape.clone(), row.variant.clone()].into_iter().chain(figures).collect()
}

/// Prints a table for each load, and what went wrong.
pub(super) fn print(matrix: &Matrix, out: &mut dyn Write) -> std::io::Result<()> {
    for rows in by_load(matrix) {
        let mut table = table(heading(matrix, rows[0].load));
        for row in rows {
            table.add_row(cells(row));
        }
        align_right(&mut table);
        writeln!(out, "{}\n", to_terminal(&table.to_string(), 2))?;
    }
    for error in &matrix.errors {
        writeln!(out, "INVALID RUN, left out: {error}")?;
    }
    Ok(())
}

/// The same as markdown.
pub(super) fn markdown(matrix: &Matrix) -> String {
    let mut text = String::new();
    for rows in by_load(matrix) {
        let heading = heading(matrix, rows[0].load);
        let _ = writeln!(text, "| {} |", heading.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "---:|".repeat(heading.len() - 2));
        for row in rows {
            let _ = writeln!(text, "| {} |", cells(row).join(" | "));
        }
        text.push('\n');
    }
    for error in &matrix.errors {
        let _ = writeln!(text, "INVALID RUN, left out: {error}\n");
    }
    text
}

/// A line for each case and engine, unrounded.
pub(super) fn csv(matrix: &Matrix) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|c| c.1).collect();
    let mut text = format!("load,shape,variant,engine,{}\n", names.join(","));
    for row in &matrix.rows {
        for (engine, figures) in matrix.engines.iter().zip(&row.figures) {
            let Some(figures) = figures else { continue };
            let _ = write!(text, "{},{},{},{engine}", row.load, row.shape, row.variant);
            for column in COLUMNS {
                let _ = write!(text, ",{}", column.2(figures));
            }
            text.push('\n');
        }
    }
    text
}
