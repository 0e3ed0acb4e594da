//! A database whose checkpoints lose power at every step of their making: one that was made is whole, and one that was not
//! is none.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::sync::Arc;

use lithify::{Builder, CheckpointOptions, Durability, Settings, WriteOptions};
use lithify_env::{Env, Rt};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::Disk;
use lithify_sim::pump::{Order, Pump};
use lithify_sim::simfs::SimFs;

use crate::numbered::{value, written};

fn builder(fs: &SimFs, order: Order) -> Builder {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 4 << 20;
    s.l0_trigger = 2;
    s.level_base_bytes = 64 << 10;
    s.file_bytes = 32 << 10;
    s.event_log = false;
    let dice = Dice::new(Stream::seeded(7, "order"));
    let rt: Arc<dyn Rt> = Arc::new(Pump::new(dice, 7, order));
    Builder::new(s).env(Env { fs: Arc::new(fs.clone()), rt })
}

/// A checkpoint: where it is, from where to where in the disk's log it was made, and how many writes it has.
struct Made {
    path: &'static str,
    from: usize,
    to: usize,
    writes: u32,
}

#[test]
fn a_checkpoint_survives_a_power_loss_or_is_none() {
    let fs = SimFs::new(Disk::default());
    let db = builder(&fs, Order::Chosen).open("db").unwrap();
    let mut made = Vec::new();
    let mut n = 0u32;
    let ways: [(&'static str, Option<u64>); 4] =
        [("one", None), ("two", Some(1 << 20)), ("far/away/three", None), ("four", Some(0))];
    for (path, logs) in ways {
        for _ in 0..150 {
            let at = WriteOptions::at(Durability::Buffered);
            db.put_opt(n.to_be_bytes(), value(n), &at).unwrap();
            n += 1;
        }
        let from = fs.position();
        match logs {
            None => db.checkpoint(path).unwrap(),
            Some(most) => {
                let options = CheckpointOptions { copy_logs_below: most };
                db.checkpoint_opt(path, &options).unwrap();
            }
        }
        made.push(Made { path, from, to: fs.position(), writes: n });
    }
    db.delete_range(0u32.to_be_bytes(), u32::MAX.to_be_bytes()).unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    let end = fs.position();
    drop(db);
    let log = fs.take_log();
    let dice = Dice::new(Stream::seeded(9, "checkpoints"));
    let mut disk = Disk::default();
    let mut whole_ones = 0;
    for at in 0..=log.len().min(end) {
        let begun = made.iter().filter(|c| c.from <= at);
        for Made { path, to, writes, .. } in begun {
            // While it is made, and for a while behind; then at every seventh step.
            let near = at < to + 40;
            let kinds = Kind::ALL.into_iter().cycle().skip(at);
            for kind in kinds.take(if near { 3 } else { usize::from(at % 7 == 0) }) {
                let what = format!("{path}, position {at}, made at {to}, {}", kind.name());
                let fs = SimFs::new(image(&disk, kind, &dice));
                let opened = builder(&fs, Order::Calm).open_read_only(path);
                let opened = match opened {
                    Ok(db) => db,
                    Err(e) => {
                        assert!(at < *to, "{what}: {e}");
                        continue;
                    }
                };
                assert_eq!(written(&opened, &what), *writes, "{what}");
                drop(opened);
                let db = builder(&fs, Order::Calm).open(path).unwrap();
                assert_eq!(written(&db, &what), *writes, "{what}");
                whole_ones += 1;
            }
        }
        log.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
    assert!(whole_ones > 200, "{whole_ones}");
}
