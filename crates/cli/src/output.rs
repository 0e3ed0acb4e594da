//! Standard output and standard error, the only way to either, and figures for people.
//!
//! Keeps: what is hidden in foreign text acts on no terminal. Text and JSON are made fit for one here; only
//! what [`out`] takes goes out as it is, in a form its caller has chosen ([`Form`](crate::text::Form)).

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::time::Duration;

use anyhow::Result;
use lithify_base::foreign;
use lithify_bench::StandardOutput;
use serde_json::Value;

/// Standard output.
pub(crate) type Out = BufWriter<StandardOutput>;

/// Standard output, buffered; flush it at the end, or an error is lost.
pub(crate) fn out() -> Out {
    BufWriter::with_capacity(64 << 10, StandardOutput::lock())
}

/// Whether a person reads standard output.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Columns of the terminal, 80 where there is none.
pub(crate) fn columns() -> usize {
    console::Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns).max(40))
}

/// Prints one line on standard error, over what a progress bar left there.
pub(crate) fn error_line(text: &str, over_bar: bool) {
    let mut err = io::stderr().lock();
    let clear = if over_bar && err.is_terminal() { "\r\x1b[2K" } else { "" };
    // Nothing can be done about a closed standard error.
    let _ = writeln!(err, "{clear}{}", foreign::lines(text));
}

/// Prints text of one line or several.
pub(crate) fn line(text: &str) -> Result<()> {
    Ok(StandardOutput::tell(&format!("{}\n", foreign::lines(text)))?)
}

/// Prints a JSON value, indented.
pub(crate) fn json(value: &Value) -> Result<()> {
    line(&foreign::json(serde_json::to_string_pretty(value)?))
}

/// A JSON value on one line, without the line's end.
pub(crate) fn json_line(value: &Value) -> String {
    foreign::json(value.to_string())
}

/// Bytes per second for people.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    format!("{:.1} MB/s", bytes as f64 / time.as_secs_f64().max(1e-9) / 1e6)
}

/// `1,234`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(d);
    }
    grouped
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let plural = match (n, noun) {
        (1, _) => noun.to_owned(),
        (_, "entry") => "entries".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_plural() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(1_234_567, "row"), "1,234,567 rows");
        assert_eq!(count(0, "entry"), "0 entries");
        assert_eq!(rate(5_000_000, Duration::from_secs(2)), "2.5 MB/s");
    }
}
