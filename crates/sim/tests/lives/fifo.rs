//! A store that forgets, and loses power at every step: what is left is the end of what was written,
//! without a gap, up to the last write that was durable or beyond; and nothing was dropped earlier
//! than it had to be.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::sync::Arc;
use std::time::Duration;

use lithify::{Builder, Db, Durability, ErrorKind, Policy, Settings, WriteOptions};
use lithify_env::{Env, Rt};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::Disk;
use lithify_sim::pump::{Order, Pump};
use lithify_sim::simfs::SimFs;
use lithify_sim::world::whole;

const VALUE: usize = 600;
const WRITES: u32 = 900;

fn settings(merges: bool) -> Settings {
    let mut s = Settings::default();
    s.policy = Some(Policy::Fifo);
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 4 << 20;
    s.fifo_max_bytes = 200 << 10;
    s.fifo_allow_compaction = merges;
    s.l0_trigger = 2;
    s.event_log = false;
    s
}

fn env(fs: &SimFs, order: Order) -> Env {
    let dice = Dice::new(Stream::seeded(3, "order"));
    let rt: Arc<dyn Rt> = Arc::new(Pump::new(dice, 3, order));
    Env { fs: Arc::new(fs.clone()), rt }
}

fn value(n: u32) -> Vec<u8> {
    n.to_be_bytes().into_iter().cycle().take(VALUE).collect()
}

/// The first key and the one behind the last; both 0 if there are none.
fn left(db: &Db, what: &str) -> (u32, u32) {
    let (mut first, mut next) = (None, 0);
    for (key, shown) in whole(db).unwrap() {
        let n = u32::from_be_bytes(key[..].try_into().unwrap());
        assert!(first.is_none() || n == next, "{what}: {n} comes where {next} should");
        assert!(*shown == *value(n), "{what}: {n} has another value");
        first.get_or_insert(n);
        next = n + 1;
    }
    (first.unwrap_or(0), next)
}

/// What was known at a position of the disk's log.
struct Known {
    position: usize,
    /// Writes begun, and writes that are durable.
    begun: u32,
    durable: u32,
    /// The first key that was still there, if the life looked.
    first: Option<u32>,
}

fn crashed_everywhere(merges: bool, order: Order) {
    let fs = SimFs::new(Disk::default());
    let db = Builder::new(settings(merges)).env(env(&fs, order)).open("db").unwrap();
    let mut known = vec![Known { position: 0, begun: 0, durable: 0, first: None }];
    let mut durable = 0;
    for n in 0..WRITES {
        // It may be on the disk from now on.
        known.push(Known { position: fs.position(), begun: n + 1, durable, first: None });
        let level = if n % 40 == 39 { Durability::Sync } else { Durability::Buffered };
        let mut batch = lithify::WriteBatch::new();
        batch.put(n.to_be_bytes(), value(n)).unwrap();
        db.write_opt(&batch, &WriteOptions::at(level)).unwrap();
        if level == Durability::Sync {
            durable = n + 1;
            let (first, next) = left(&db, "alive");
            assert_eq!(next, n + 1);
            let position = fs.position();
            known.push(Known { position, begun: n + 1, durable, first: Some(first) });
        }
    }
    assert!(db.wait_idle(Some(Duration::from_secs(60))).unwrap());
    let (first, _) = left(&db, "at rest");
    assert!(first > 300, "next to nothing was dropped: all from {first} on is there");
    known.push(Known { position: fs.position(), begun: WRITES, durable, first: Some(first) });
    drop(db);
    let log = fs.take_log();
    let dice = Dice::new(Stream::seeded(5, "fifo"));
    let kinds = [Kind::Synced, Kind::Everything, Kind::FilePrefix, Kind::Names, Kind::Pages];
    let mut disk = Disk::default();
    for at in 0..=log.len().min(known[known.len() - 1].position) {
        let before = known.iter().rfind(|k| k.position <= at).unwrap();
        let later = known.iter().filter(|k| k.position >= at);
        let dropped = later.filter_map(|k| k.first).next().unwrap();
        for kind in [kinds[at % kinds.len()], kinds[(at + 2) % kinds.len()]] {
            let what = format!("merges {merges}, position {at}, {}", kind.name());
            let fs = SimFs::new(image(&disk, kind, &dice));
            let open = || Builder::new(settings(merges)).env(env(&fs, Order::Calm));
            // Nothing is dropped while it is only read.
            let db = match open().open_read_only("db") {
                Ok(db) => db,
                Err(e) => {
                    assert!(before.durable == 0 && e.kind() == ErrorKind::NotFound, "{what}: {e}");
                    continue;
                }
            };
            let (first, next) = left(&db, &what);
            drop(db);
            assert!(before.durable <= next && next <= before.begun, "{what}: ends at {next}");
            assert!(first <= dropped, "{what}: {first} is the first, not {dropped}");
            let db = open().open("db").unwrap();
            assert_eq!(left(&db, &what).1, next, "{what}");
        }
        log.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
}

#[test]
fn a_power_loss_leaves_the_end_of_what_was_written() {
    crashed_everywhere(false, Order::Chosen);
}

#[test]
fn a_power_loss_amid_merges_leaves_the_end_of_what_was_written() {
    crashed_everywhere(true, Order::Latest);
}
