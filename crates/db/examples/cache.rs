//! A cache whose entries expire: what is dear to compute is kept for a while, and space comes back by itself.
//!
//! `cargo run -p lithify --example cache -- DIR` makes it in the empty directory DIR, takes four seconds, and
//! prints:
//!
//! ```text
//! 20 pages: 20 made, 0 from the cache
//! the same once more: 0 made, 20 from the cache
//! four seconds later: 20 made, 0 from the cache
//! 20 pages are in the cache
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use lithify::{Builder, Durability, Settings, TtlDb};

const PAGES: u32 = 20;
/// A value lives this long; times are kept to the second.
const LIFE: Duration = Duration::from_secs(2);

/// What is dear.
fn page(number: u32) -> String {
    format!("page {number}: {}", "word ".repeat(200))
}

/// Asks for all pages; how many were made, and how many came from the cache.
fn ask(cache: &TtlDb) -> lithify::Result<(u32, u32)> {
    let (mut made, mut held) = (0, 0);
    for number in 0..PAGES {
        let key = number.to_be_bytes();
        match cache.get(key)? {
            Some(found) => {
                assert_eq!(found, page(number));
                held += 1;
            }
            None => {
                cache.put(key, page(number))?;
                made += 1;
            }
        }
    }
    Ok((made, held))
}

#[allow(dead_code, reason = "the tests have one of their own")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: cache DIR")?;
    run(Path::new(&dir), &mut std::io::stdout())
}

/// Makes the cache in `dir` and tells `out` what becomes of it.
#[allow(clippy::disallowed_methods, reason = "a program waits by its own clock")]
pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // A cache may forget what it heard last when the power goes, so it needs no log at all. What compactions
    // meet after a day goes from the disk, too.
    let settings = Settings::default()
        .memory_budget(32 << 20)
        .durability(Durability::NoWal)
        .periodic_compaction_seconds(24 * 3600);
    let cache = Builder::new(settings).open_ttl(dir, LIFE)?;

    let (made, held) = ask(&cache)?;
    writeln!(out, "{PAGES} pages: {made} made, {held} from the cache")?;
    let (made, held) = ask(&cache)?;
    writeln!(out, "the same once more: {made} made, {held} from the cache")?;
    std::thread::sleep(LIFE * 2);
    let (made, held) = ask(&cache)?;
    writeln!(out, "four seconds later: {made} made, {held} from the cache")?;
    writeln!(out, "{} pages are in the cache", cache.range(..).count())?;
    cache.close()?;
    Ok(())
}
