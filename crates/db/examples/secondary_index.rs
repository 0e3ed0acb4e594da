//! A second index: people by number, and found by their town. The index is a column family of its own, and one
//! batch or transaction writes both, so that neither can be without the other.
//!
//! `cargo run -p lithify --example secondary_index -- DIR` makes it in the empty directory DIR and prints:
//!
//! ```text
//! 300 people in 3 towns
//! in Lyon: 100, the first of them person 1
//! person 1 moved from Lyon to Oslo
//! in Lyon: 99, the first of them person 4
//! every person is in the index, and nothing else is
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;

use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Db, Settings, TransactionOptions, WriteBatch,
};

const TOWNS: [&str; 3] = ["Bern", "Lyon", "Oslo"];
const PEOPLE: u32 = 300;

/// The index has all in its keys: the town, an end that no town's name has, and the number.
fn in_town(town: &[u8], person: u32) -> Vec<u8> {
    [town, b"\0", &person.to_be_bytes()].concat()
}

/// How many live in `town`, and the number of the first.
fn of_town(by_town: &ColumnFamily, town: &str) -> lithify::Result<(usize, Option<u32>)> {
    let (mut count, mut first) = (0, None);
    for entry in by_town.prefix(format!("{town}\0")) {
        let (key, _) = entry?;
        first = first.or_else(|| key.last_chunk().map(|n| u32::from_be_bytes(*n)));
        count += 1;
    }
    Ok((count, first))
}

/// Moves a person; where from.
fn move_to(db: &Db, by_town: &ColumnFamily, person: u32, town: &str) -> lithify::Result<Vec<u8>> {
    let mut txn = db.begin_transaction(TransactionOptions::pessimistic());
    let before = txn.get_for_update(person.to_be_bytes())?.map(Vec::from).unwrap_or_default();
    txn.put(person.to_be_bytes(), town)?;
    txn.delete_cf(by_town, in_town(&before, person))?;
    txn.put_cf(by_town, in_town(town.as_bytes(), person), [])?;
    txn.commit()?;
    Ok(before)
}

#[allow(dead_code, reason = "the tests have one of their own")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: secondary_index DIR")?;
    run(Path::new(&dir), &mut std::io::stdout())
}

/// Makes both in `dir` and tells `out` what it finds.
pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let db = Builder::new(Settings { memory_budget: 64 << 20, ..Settings::default() })
        .column_family("by-town", ColumnFamilyOptions::new())
        .create_missing_column_families()
        .open(dir)?;
    let by_town = db.column_family("by-town")?;

    let mut batch = WriteBatch::new();
    for person in 0..PEOPLE {
        let town = TOWNS[person as usize % TOWNS.len()];
        batch.put(person.to_be_bytes(), town)?;
        batch.put_cf(&by_town, in_town(town.as_bytes(), person), [])?;
    }
    db.write(&batch)?;
    writeln!(out, "{} people in {} towns", db.range(..).count(), TOWNS.len())?;

    let tell = |out: &mut dyn Write| -> Result<(), Box<dyn Error>> {
        let (count, first) = of_town(&by_town, "Lyon")?;
        let first = first.ok_or("no one lives in Lyon")?;
        Ok(writeln!(out, "in Lyon: {count}, the first of them person {first}")?)
    };
    tell(out)?;
    let from = move_to(&db, &by_town, 1, "Oslo")?;
    writeln!(out, "person 1 moved from {} to Oslo", String::from_utf8_lossy(&from))?;
    tell(out)?;

    // Both ways: what the index has is so, and there is as much of it.
    for entry in db.range(..) {
        let (person, town) = entry?;
        let person = person.first_chunk().map(|n| u32::from_be_bytes(*n)).ok_or("a strange key")?;
        assert!(
            by_town.get(in_town(&town, person))?.is_some(),
            "person {person} is not in the index"
        );
    }
    assert_eq!(by_town.range(..).count(), db.range(..).count());
    writeln!(out, "every person is in the index, and nothing else is")?;
    db.close()?;
    Ok(())
}
