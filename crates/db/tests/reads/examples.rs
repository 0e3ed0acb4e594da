//! The programs of `examples/`: each checks what it finds, and prints what its head says.

use std::error::Error;
use std::io::Write;
use std::path::Path;

#[path = "../../examples/bulk_load.rs"]
mod bulk_load;
#[path = "../../examples/cache.rs"]
mod cache;
#[path = "../../examples/counters.rs"]
mod counters;
#[path = "../../examples/event_log.rs"]
mod event_log;
#[path = "../../examples/secondary_index.rs"]
mod secondary_index;

/// The lines that the head of a program promises.
fn promised(program: &str) -> String {
    let lines = program.lines().skip_while(|line| *line != "//! ```text").skip(1);
    let lines = lines.take_while(|line| *line != "//! ```");
    lines.map(|line| format!("{}\n", line.trim_start_matches("//! "))).collect()
}

fn prints(program: &str, run: impl FnOnce(&Path, &mut dyn Write) -> Result<(), Box<dyn Error>>) {
    let dir = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    run(dir.path(), &mut out).unwrap();
    let promised = promised(program);
    assert!(promised.lines().count() > 2, "{promised}");
    assert_eq!(String::from_utf8(out).unwrap(), promised);
}

#[test]
fn an_event_log() {
    prints(include_str!("../../examples/event_log.rs"), event_log::run);
}

#[test]
fn a_cache_with_expiry() {
    prints(include_str!("../../examples/cache.rs"), cache::run);
}

#[test]
fn counters_with_merge_and_transactions() {
    prints(include_str!("../../examples/counters.rs"), counters::run);
}

#[test]
fn an_index_beside_the_data() {
    prints(include_str!("../../examples/secondary_index.rs"), secondary_index::run);
}

#[test]
fn a_bulk_load() {
    prints(include_str!("../../examples/bulk_load.rs"), bulk_load::run);
}
