//! A bulk load: what is there already in order of keys is written as tables, which the database takes in at once
//! and never compacts on their way down.
//!
//! `cargo run -p lithify --example bulk_load -- DIR` makes tables and a database in the directory DIR, which must
//! exist, and prints:
//!
//! ```text
//! 4 tables of 25000 entries each
//! taken in as one write: 100000 entries, no memtable flushed, nothing compacted
//! key 77777 has value 77777 squared: 6049261729
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;

use lithify::{Db, IngestOptions, Settings, TableBuilder, Transfer};

const TABLES: u64 = 4;
const EACH: u64 = 25_000;

#[allow(dead_code, reason = "the tests have one of their own")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: bulk_load DIR")?;
    run(Path::new(&dir), &mut std::io::stdout())
}

/// Makes all of it in `dir` and tells `out` what it finds.
pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let settings = Settings { memory_budget: 64 << 20, ..Settings::default() };

    // Tables can be made by several threads or machines; each has a range of keys to itself.
    let mut paths = Vec::new();
    for table in 0..TABLES {
        let path = dir.join(format!("part-{table}.sst"));
        let mut builder = TableBuilder::create(&path, &settings)?;
        for n in table * EACH..(table + 1) * EACH {
            builder.put(n.to_be_bytes(), (n * n).to_le_bytes())?;
        }
        let built = builder.finish()?;
        assert_eq!(built.entries, EACH);
        paths.push(path);
    }
    writeln!(out, "{TABLES} tables of {EACH} entries each")?;

    let db = Db::open(dir.join("db"), settings)?;
    // Moved, they cost neither space nor time; copied, they stay where they are, too.
    db.ingest(&paths, &IngestOptions { transfer: Transfer::Move })?;
    let counts = db.stats().counts;
    assert_eq!((counts.flushes, counts.compactions), (0, 0));
    let entries = db.range(..).count();
    writeln!(
        out,
        "taken in as one write: {entries} entries, no memtable flushed, nothing compacted"
    )?;

    for (n, entry) in (0u64..).zip(db.range(..)) {
        let (key, value) = entry?;
        assert!(
            key == n.to_be_bytes() && value == (n * n).to_le_bytes(),
            "entry {n} is another one"
        );
    }
    let value = db.get(77_777u64.to_be_bytes())?.ok_or("key 77777 is not there")?;
    let value = u64::from_le_bytes(*value.first_chunk().ok_or("a short value")?);
    writeln!(out, "key 77777 has value 77777 squared: {value}")?;
    db.close()?;
    Ok(())
}
