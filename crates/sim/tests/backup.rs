//! A backup that a power loss cuts short, at every step of it: the backups from before restore, and one
//! that is listed is whole.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::sync::Arc;

use lithify::{Backups, Builder, Settings};
use lithify_env::{Env, OsRt, Rt, RtOptions};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::Disk;
use lithify_sim::model::Map;
use lithify_sim::simfs::SimFs;
use lithify_sim::world::whole;

fn settings() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 4 << 20;
    s.compaction_threads = 1;
    s.event_log = false;
    s
}

fn world(disk: Disk, rt: &Arc<dyn Rt>) -> (SimFs, Env) {
    let fs = SimFs::new(disk);
    (fs.clone(), Env { fs: Arc::new(fs), rt: rt.clone() })
}

/// Writes, closes, and says what is there.
fn live(env: &Env, round: u8) -> Map {
    let db = Builder::new(settings()).env(env.clone()).open("db").unwrap();
    for n in 0..60u8 {
        db.put([n], [round; 200]).unwrap();
    }
    db.delete([round]).unwrap();
    db.flush().unwrap();
    let content = whole(&db).unwrap();
    db.close().unwrap();
    content
}

fn back_up(env: &Env) {
    let db = Builder::new(settings()).env(env.clone()).open_read_only("db").unwrap();
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
}

/// Every backup of the image restores to what it was made of; the oldest is number `first`.
fn check(disk: Disk, rt: &Arc<dyn Rt>, first: u64, made: &[Map], what: &str) {
    let (_, env) = world(disk, rt);
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    let list = backups.list().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(list.first().map(|b| b.id), Some(first), "{what}");
    for backup in list {
        assert!(backups.verify(backup.id, &mut |_| {}).unwrap().is_empty(), "{what}");
        let to = format!("restored-{}", backup.id);
        backups.restore(backup.id, &to, &mut |_| {}).unwrap_or_else(|e| panic!("{what}: {e}"));
        let db = Builder::new(settings()).env(env.clone()).open_read_only(&to).unwrap();
        assert!(
            whole(&db).unwrap() == made[backup.id as usize - 1],
            "{what}: backup {}",
            backup.id
        );
    }
}

#[test]
fn a_power_loss_leaves_whole_backups_at_every_step() {
    let rt: Arc<dyn Rt> = Arc::new(OsRt::new(RtOptions::default()));
    let (fs, env) = world(Disk::default(), &rt);
    let mut made = vec![live(&env, 1)];
    back_up(&env);
    made.push(live(&env, 2));
    let before = fs.disk();
    let from = fs.position();
    back_up(&env);
    let (second, backed_up) = (fs.log_from(from), fs.disk());
    let purged = fs.position();
    Backups::open_in("backups", env.clone()).unwrap().purge(1).unwrap();
    let purge = fs.log_from(purged);
    let dice = Dice::new(Stream::seeded(5, "backup"));
    let kinds = [Kind::Synced, Kind::Everything, Kind::FilePrefix, Kind::Names, Kind::Pages];
    let mut disk = before;
    for at in 0..=second.len() {
        for kind in kinds {
            let what = format!("step {at} of {}, {}", second.len(), kind.name());
            check(image(&disk, kind, &dice), &rt, 1, &made, &what);
        }
        second.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
    // A purge takes the first away at one moment, and never a file that the second needs.
    let mut disk = backed_up;
    for at in 0..=purge.len() {
        for kind in kinds {
            let crashed = image(&disk, kind, &dice);
            let (_, env) = world(crashed.clone(), &rt);
            let ids: Vec<u64> = {
                let backups = Backups::open_in("backups", env).unwrap();
                backups.list().unwrap().iter().map(|b| b.id).collect()
            };
            assert!(ids == [1, 2] || ids == [2], "{ids:?}");
            check(crashed, &rt, ids[0], &made, &format!("purge step {at}, {}", kind.name()));
        }
        purge.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
}
