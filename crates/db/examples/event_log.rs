//! An event log: events of several sources, under keys that sort by source and then by time. Read by range, the
//! newest first where that is wanted, and trimmed without reading what goes.
//!
//! `cargo run -p lithify --example event_log -- DIR` makes it in the empty directory DIR and prints:
//!
//! ```text
//! 6000 events of 3 sources
//! pump-2 from 10:00:00 to 10:01:59: 120 events
//! pump-2, the last two: 10:33:19 pressure 99, 10:33:18 pressure 98
//! after all before 10:30:00 went: 600 events, the first of them door at 10:30:00
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;

use lithify::{Db, Settings, WriteBatch};

const SOURCES: [&str; 3] = ["door", "pump-1", "pump-2"];
/// One event a second of each source.
const EVENTS: u64 = 2000;
/// The second of the day of the first event.
const TEN: u64 = 10 * 3600;
const HALF_PAST: u64 = TEN + 1800;

/// Numbers sort as their bytes do if the largest byte comes first.
fn key(source: &str, second: u64) -> Vec<u8> {
    [source.as_bytes(), b"/", &second.to_be_bytes()].concat()
}

/// The source and the second of a key.
fn parts(key: &[u8]) -> Option<(String, u64)> {
    let (source, second) = key.split_last_chunk::<8>()?;
    let source = source.strip_suffix(b"/")?;
    Some((String::from_utf8_lossy(source).into_owned(), u64::from_be_bytes(*second)))
}

fn clock(second: u64) -> String {
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[allow(dead_code, reason = "the tests have one of their own")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: event_log DIR")?;
    run(Path::new(&dir), &mut std::io::stdout())
}

/// Makes the log in `dir` and tells `out` what it finds.
pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let db = Db::open(dir, Settings { memory_budget: 64 << 20, ..Settings::default() })?;

    // Each second's events in one batch: all of them are there, or none.
    let mut batch = WriteBatch::new();
    for second in TEN..TEN + EVENTS {
        batch.clear();
        for source in SOURCES {
            batch.put(key(source, second), format!("pressure {}", second % 100))?;
        }
        db.write(&batch)?;
    }
    let all = db.range(..).count();
    writeln!(out, "{all} events of {} sources", SOURCES.len())?;

    let mut found = 0;
    for entry in db.range(key("pump-2", TEN)..key("pump-2", TEN + 120)) {
        let (key, _) = entry?;
        assert_eq!(parts(&key), Some(("pump-2".to_owned(), TEN + found)), "no event is missing");
        found += 1;
    }
    let last = clock(TEN + found - 1);
    writeln!(out, "pump-2 from {} to {last}: {found} events", clock(TEN))?;

    let mut last = Vec::new();
    for entry in db.prefix("pump-2/").rev().take(2) {
        let (key, value) = entry?;
        let (_, second) = parts(&key).ok_or("a strange key")?;
        last.push(format!("{} {}", clock(second), String::from_utf8_lossy(&value)));
    }
    writeln!(out, "pump-2, the last two: {}", last.join(", "))?;

    // One small write for each source, however many events go.
    for source in SOURCES {
        db.delete_range(key(source, 0), key(source, HALF_PAST))?;
    }
    let left = db.range(..).collect::<lithify::Result<Vec<_>>>()?;
    let (source, second) = parts(&left[0].0).ok_or("a strange key")?;
    writeln!(
        out,
        "after all before {} went: {} events, the first of them {source} at {}",
        clock(HALF_PAST),
        left.len(),
        clock(second)
    )?;
    db.close()?;
    Ok(())
}
