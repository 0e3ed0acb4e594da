//! Counters: visits, which are added without being read, by a merge operator; and money, which must not be made or
//! lost, by transactions.
//!
//! `cargo run -p lithify --example counters -- DIR` makes them in the empty directory DIR and prints:
//!
//! ```text
//! visits: about 1000, home 3000
//! after 400 tries to pay by 4 threads, ann, bob and eve have 300 together
//! what is not there can't be paid: ann keeps what she has
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lithify::merge::Add;
use lithify::{Builder, Db, Settings, TransactionOptions, Value};

const THREADS: u64 = 4;
const VISITS: u64 = 1000;
const TRANSFERS: u64 = 100;
const PEOPLE: [&str; 3] = ["money/ann", "money/bob", "money/eve"];

fn number(value: Option<Value>) -> u64 {
    value.and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?))).unwrap_or(0)
}

/// Moves `sum` from one to the other; false if the one has not as much.
fn pay(db: &Db, from: &str, to: &str, sum: u64) -> lithify::Result<bool> {
    // Others hold a lock for microseconds; a machine may be that busy all the same.
    let patient = TransactionOptions::pessimistic().with_lock_timeout(Duration::from_secs(60));
    let mut txn = db.begin_transaction(patient);
    // Claimed in one order by every payer, so that no two wait for each other.
    for person in PEOPLE {
        txn.get_for_update(person)?;
    }
    let (one, other) = (number(txn.get(from)?), number(txn.get(to)?));
    if one < sum {
        return Ok(false); // dropped, the transaction has done nothing
    }
    txn.put(from, (one - sum).to_le_bytes())?;
    txn.put(to, (other + sum).to_le_bytes())?;
    txn.commit()?;
    Ok(true)
}

#[allow(dead_code, reason = "the tests have one of their own")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: counters DIR")?;
    run(Path::new(&dir), &mut std::io::stdout())
}

/// Makes the counters in `dir` and tells `out` what they come to.
pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let settings = Settings { memory_budget: 32 << 20, ..Settings::default() };
    let db = Builder::new(settings).merge_operator(Arc::new(Add)).open(dir)?;
    for person in PEOPLE {
        db.put(person, 100u64.to_le_bytes())?;
    }

    let work = |thread: u64| -> lithify::Result<()> {
        for visit in 0..VISITS {
            let page = if visit % 4 == 0 { "visits/about" } else { "visits/home" };
            db.merge(page, 1u64.to_le_bytes())?;
        }
        for round in 0..TRANSFERS {
            let from = (thread + round) as usize % PEOPLE.len();
            pay(&db, PEOPLE[from], PEOPLE[(from + 1) % PEOPLE.len()], round % 7)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| -> lithify::Result<()> {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;

    let mut visits = Vec::new();
    for entry in db.prefix("visits/") {
        let (key, count) = entry?;
        let name = String::from_utf8_lossy(&key["visits/".len()..]).into_owned();
        visits.push(format!("{name} {}", number(Some(count))));
    }
    writeln!(out, "visits: {}", visits.join(", "))?;

    let mut together = 0;
    for person in PEOPLE {
        together += number(db.get(person)?);
    }
    let tries = THREADS * TRANSFERS;
    writeln!(
        out,
        "after {tries} tries to pay by {THREADS} threads, ann, bob and eve have {together} together"
    )?;

    let before = number(db.get("money/ann")?);
    assert!(!pay(&db, "money/ann", "money/bob", before + 1)?);
    assert_eq!(number(db.get("money/ann")?), before);
    writeln!(out, "what is not there can't be paid: ann keeps what she has")?;
    db.close()?;
    Ok(())
}
