//! `cargo xtask plot`: the picture on the first page, `docs/rocksdb.svg`, drawn from the table of figures below it.
//!
//! Keeps: the picture says what the table says, and nothing is measured here: the command behind each figure is in
//! `docs/papers.md`. `cargo xtask tidy` notices a table that was changed without its picture.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::repo;
use crate::tidy::Finding;

/// Where the picture is.
const PICTURE: &str = "docs/rocksdb.svg";
const TABLE_IN: &str = "README.md";
/// The last column of its heading.
const MARK: &str = "| ratio |";

const WIDTH: f64 = 970.0;
const LEFT: f64 = 420.0;
const RIGHT: f64 = 890.0;
const ROW: f64 = 58.0;
const BAR: f64 = 17.0;

/// A row of the table.
#[derive(Debug, PartialEq)]
struct Row {
    what: String,
    figures: [f64; 2],
}

/// Draws it anew.
pub(crate) fn run() -> Result<()> {
    std::fs::write(repo::root().join(PICTURE), drawn()?)?;
    println!("wrote {PICTURE}");
    Ok(())
}

/// A finding if the picture is not the table's.
pub(crate) fn check() -> Result<Option<Finding>> {
    let there = std::fs::read_to_string(repo::root().join(PICTURE)).unwrap_or_default();
    let what = "it is not what the table in README.md says; `cargo xtask plot` draws it anew";
    Ok((there != drawn()?).then(|| Finding::new(PICTURE, 0, "plot", what.to_owned())))
}

fn drawn() -> Result<String> {
    let text = std::fs::read_to_string(repo::root().join(TABLE_IN))?;
    let (title, rows) = table(&text).with_context(|| format!("the first table of {TABLE_IN}"))?;
    Ok(draw(&title, &rows))
}

/// The heading of the first table that ends in ratios, and its rows.
fn table(text: &str) -> Result<([String; 3], Vec<Row>)> {
    let mut lines = text.lines().skip_while(|line| !line.ends_with(MARK));
    let heading = cells(lines.next().context("there is no table with ratios")?);
    let title = [0, 1, 2].map(|i| heading.get(i).cloned().unwrap_or_default());
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let cells = cells(line);
        ensure!(cells.len() == 4, "a row has {} cells: {line}", cells.len());
        let figure = |i: usize| -> Result<f64> {
            cells[i].replace(',', "").parse().with_context(|| format!("a figure in: {line}"))
        };
        Ok(Row { what: cells[0].clone(), figures: [figure(1)?, figure(2)?] })
    });
    Ok((title, rows.collect::<Result<_>>()?))
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_matches('|');
    inner.split('|').map(|cell| cell.trim().replace("**", "")).collect()
}

fn draw(title: &[String; 3], rows: &[Row]) -> String {
    let height = 92.0 + ROW * rows.len() as f64;
    let [how, ours, theirs] = title;
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"'Helvetica Neue',Arial,'DejaVu Sans',sans-serif\" font-size=\"14\" \
         fill=\"#1f2933\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut say = |x: f64, y: f64, style: &str, text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(page, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>");
    };
    say(
        20.0,
        30.0,
        "font-size=\"18\" font-weight=\"600\"",
        &format!("{ours} beside {theirs}: more is better"),
    );
    say(20.0, 52.0, "fill=\"#7b8794\" font-size=\"12.5\"", how);
    // Each row has a scale of its own: its larger figure fills it.
    for (i, row) in rows.iter().enumerate() {
        let top = 76.0 + ROW * i as f64;
        let (name, load) = row.what.split_once(", ").unwrap_or((&row.what, ""));
        say(20.0, top + 15.0, "font-weight=\"600\"", name);
        say(20.0, top + 33.0, "fill=\"#7b8794\" font-size=\"12.5\"", load);
        let [a, b] = row.figures;
        say(
            RIGHT + 14.0,
            top + 24.0,
            "font-weight=\"600\" font-size=\"17\"",
            &format!("{:.1}x", a / b),
        );
    }
    for (i, row) in rows.iter().enumerate() {
        let most = row.figures[0].max(row.figures[1]);
        for (n, (figure, colour)) in row.figures.iter().zip(["#2f6fde", "#aab4be"]).enumerate() {
            let (y, width) =
                (76.0 + ROW * i as f64 + n as f64 * (BAR + 2.0), figure / most * (RIGHT - LEFT));
            let _ = writeln!(
                page,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>"
            );
            let (x, anchor, ink) = match width > 120.0 {
                true => (LEFT + width - 8.0, "end", if n == 0 { "#ffffff" } else { "#1f2933" }),
                false => (LEFT + width + 8.0, "start", "#1f2933"),
            };
            let name = if n == 0 { ours } else { theirs };
            let _ = writeln!(
                page,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" font-size=\"12\" fill=\"{ink}\">{name} \
                 {figure}</text>",
                y + 13.0
            );
        }
    }
    page + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_bars() {
        let text = "# A\n| x | y |\n|---|---|\n| medians & more | Ours | Theirs | ratio |\n|---|---|---|---|\n\
                    | fill, of <all>, kops/s | 1,200 | 300 | **4.0** |\n\nmore\n";
        let (title, rows) = table(text).unwrap();
        assert_eq!(title, ["medians & more", "Ours", "Theirs"]);
        let want = Row { what: "fill, of <all>, kops/s".into(), figures: [1200.0, 300.0] };
        assert_eq!(rows, [want]);
        let svg = draw(&title, &rows);
        assert!(
            svg.contains("4.0x") && svg.contains("of &lt;all>") && svg.contains("width=\"117.5\""),
            "{svg}"
        );
        assert!(table("no table").is_err());
        assert!(table("| a | b | c | ratio |\n|---|\n| x | many | 2 | 3 |\n").is_err());
    }
}
