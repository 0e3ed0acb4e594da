//! The grid as a picture: a square for each cell, red where the policy is behind the best one.
//!
//! ```text
//!                     uniform          sequential       ...
//!                     1 2 4 8 16 32    1 2 4 8 16 32
//! plain 1024 B 16MiB
//!        100MiB/s     # # # #  #  #
//!        300MiB/s     # # # #  #  #
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Verdict;
use super::cells::{Cell, LOADS, THREADS};
use super::show::row_name;

const SQUARE: f64 = 30.0;
const ROW: f64 = 18.0;
const LEFT: f64 = 300.0;
const TOP: f64 = 96.0;
const GAP: f64 = 14.0;
const INK: &str = "#1f2933";

/// The picture.
pub(super) fn draw(v: &Verdict) -> String {
    let row_of = |c: &Cell| Cell { load: 0, threads: 0, ..*c };
    let rows: Vec<Cell> =
        v.cells.iter().map(|c| row_of(&c.cell)).collect::<BTreeSet<_>>().into_iter().collect();
    let loads: Vec<usize> =
        v.cells.iter().map(|c| c.cell.load).collect::<BTreeSet<_>>().into_iter().collect();
    let block = SQUARE * THREADS.len() as f64 + GAP;
    let (width, height) = (LEFT + block * loads.len() as f64, TOP + ROW * rows.len() as f64 + 20.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"16\">{}: throughput to quiescence over that of the best \
         static policy with its best shape</text>\n\
         <text x=\"12\" y=\"44\">modelled machines in virtual time; red below 1, green above; columns \
         are compaction threads</text>\n",
        v.name
    );
    for (i, load) in loads.iter().enumerate() {
        let x = LEFT + block * i as f64;
        let _ =
            writeln!(out, "<text x=\"{x}\" y=\"70\" font-weight=\"bold\">{}</text>", LOADS[*load]);
        for (n, threads) in THREADS.iter().enumerate() {
            let at = x + SQUARE * (n as f64 + 0.5);
            let _ =
                writeln!(out, "<text x=\"{at}\" y=\"88\" text-anchor=\"middle\">{threads}</text>");
        }
    }
    for (i, row) in rows.iter().enumerate() {
        let [processor, value, memtable, _, disk] = row_name(row);
        let y = TOP + ROW * i as f64 + 13.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">{processor}, {value}, {memtable}, {disk}</text>",
            LEFT - 8.0
        );
    }
    for c in &v.cells {
        let row = rows.binary_search(&row_of(&c.cell)).unwrap_or_default();
        let column = loads.binary_search(&c.cell.load).unwrap_or_default();
        let x = LEFT + block * column as f64 + SQUARE * c.cell.threads as f64;
        let y = TOP + ROW * row as f64;
        square(&mut out, x, y, c.regret(&v.opponents), &c.cell.name());
    }
    out + "</svg>\n"
}

fn square(out: &mut String, x: f64, y: f64, regret: f64, name: &str) {
    let _ = writeln!(
        out,
        "<g><title>{name}: {regret:.3}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
         fill=\"{}\"/><text x=\"{}\" y=\"{}\" font-size=\"9\" text-anchor=\"middle\">{regret:.2}</text></g>",
        SQUARE - 1.0,
        ROW - 1.0,
        color(regret),
        x + SQUARE / 2.0,
        y + 12.0,
    );
}

/// White at 1; full red at half, full green at one and a half.
fn color(regret: f64) -> String {
    let far = ((regret - 1.0).abs() * 2.0).clamp(0.0, 1.0).sqrt();
    let mix = |end: f64| (255.0 + (end - 255.0) * far).round() as u8;
    let (r, g, b) = if regret < 1.0 { (193.0, 18.0, 31.0) } else { (45.0, 140.0, 90.0) };
    format!("#{:02x}{:02x}{:02x}", mix(r), mix(g), mix(b))
}
