//! A backup, a deletion or a purge that a power loss cuts short, at every step of it: the backups from
//! before restore, one that is listed is whole, and the next change leaves the files of whole backups and
//! those of others, and nothing else.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lithify::{Backups, Builder, Settings};
use lithify_env::{Env, OpenOpts, OsRt, Rt, RtOptions, read_full_at, write_all_at};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::{Disk, Entry};
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

/// Files that no list of ours names.
const OF_OTHERS: [&str; 4] =
    ["shared/000004_00000000000000ff_9.sst", "shared/000004_tmp", "private/9/notes", "meta/tmp"];

fn add_others(env: &Env) {
    for name in OF_OTHERS {
        let path = Path::new("backups").join(name);
        let dir = path.parent().unwrap();
        env.fs.create_dir_all(dir).unwrap();
        let file = env.fs.create(&path, OpenOpts::write()).unwrap();
        write_all_at(&*file, b"notes", 0).unwrap();
        file.sync_all().unwrap();
        env.fs.sync_dir(dir).unwrap();
        env.fs.sync_dir(dir.parent().unwrap()).unwrap();
    }
}

/// Paths of all files below `backups`, and the folders of single backups.
fn there(env: &Env) -> BTreeSet<String> {
    let names = |dir: &str| env.fs.list(Path::new("backups").join(dir).as_ref()).unwrap();
    let mut found = BTreeSet::new();
    for part in ["shared", "meta"] {
        found.extend(names(part).iter().map(|entry| format!("{part}/{}", entry.name)));
    }
    for backup in names("private") {
        let dir = format!("private/{}", backup.name);
        found.extend(names(&dir).iter().map(|entry| format!("{dir}/{}", entry.name)));
        found.insert(dir);
    }
    found
}

/// Takes out a list that the crash has made into garbage while it was written: nothing tells that it is
/// ours, so it stays. Only C6 does that.
fn without_garbage(mut paths: BTreeSet<String>, what: &str) -> BTreeSet<String> {
    paths.retain(|path| {
        !(what.contains("C6") && path.starts_with("meta/") && path.ends_with(".tmp"))
    });
    paths
}

/// What the lists name, and what is of others.
fn named(env: &Env) -> BTreeSet<String> {
    let mut named: BTreeSet<String> = OF_OTHERS.map(str::to_owned).into();
    named.insert("private/9".to_owned());
    for entry in env.fs.list("backups/meta".as_ref()).unwrap() {
        let Ok(id) = entry.name.parse::<u64>() else { continue };
        let path = format!("backups/meta/{id}");
        let file = env.fs.open(path.as_ref(), OpenOpts::read()).unwrap();
        let mut bytes = vec![0; entry.len as usize];
        read_full_at(&*file, &mut bytes, 0).unwrap();
        for line in String::from_utf8(bytes).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["table", name, bytes, sum] => {
                    let number = name.split('.').next().unwrap();
                    named.insert(format!("shared/{number}_{sum}_{bytes}.sst"));
                }
                ["small", name, ..] => drop(named.insert(format!("private/{id}/{name}"))),
                _ => {}
            }
        }
        named.extend([format!("meta/{id}"), format!("private/{id}")]);
    }
    named
}

/// The next change after a crash works, and leaves nothing that is not named: a purge that keeps all, or a
/// backup.
fn goes_on(disk: &Disk, rt: &Arc<dyn Rt>, what: &str) {
    let (_, env) = world(disk.clone(), rt);
    let before: BTreeSet<String> = named(&env);
    let lost: Vec<_> = before.difference(&there(&env)).cloned().collect();
    assert!(lost.is_empty(), "{what}: {lost:?}");
    Backups::open_in("backups", env.clone()).unwrap().purge(usize::MAX).unwrap();
    assert_eq!(without_garbage(there(&env), what), before, "{what}, then a purge");
    let (_, env) = world(disk.clone(), rt);
    back_up(&env);
    let all = named(&env);
    assert_eq!(without_garbage(there(&env), what), all, "{what}, then a backup");
    assert!(all.is_superset(&before) && all.len() > before.len(), "{what}: {all:?}");
}

/// All but those that leave garbage in place of old sectors.
const KINDS: &[Kind] = Kind::ALL.split_at(9).0;

/// Crashes `disk` before and after each entry of `log`, in each way.
fn each_crash(mut disk: Disk, log: &[Entry], seen: &mut dyn FnMut(Disk, &str)) {
    let dice = Dice::new(Stream::seeded(5, "backup"));
    for at in 0..=log.len() {
        for &kind in KINDS {
            let what = format!("step {at} of {}, {}", log.len(), kind.name());
            seen(image(&disk, kind, &dice), &what);
        }
        log.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
}

#[test]
fn a_power_loss_leaves_whole_backups_at_every_step() {
    let rt: Arc<dyn Rt> = Arc::new(OsRt::new(RtOptions::default()));
    let (fs, env) = world(Disk::default(), &rt);
    let mut made = vec![live(&env, 1)];
    back_up(&env);
    add_others(&env);
    made.push(live(&env, 2));
    let before = fs.disk();
    let from = fs.position();
    back_up(&env);
    let (second, backed_up) = (fs.log_from(from), fs.disk());
    each_crash(before, &second, &mut |crashed, what| {
        goes_on(&crashed, &rt, what);
        check(crashed, &rt, 1, &made, what);
    });
    // What ends a backup takes it away at one moment, and never a file that another needs.
    type End<'a> = (&'a str, &'a dyn Fn(&Backups), [&'a [u64]; 3]);
    let ends: [End<'_>; 3] = [
        ("purge", &|backups| drop(backups.purge(1).unwrap()), [&[1, 2], &[2], &[2]]),
        ("delete", &|backups| backups.delete(2).unwrap(), [&[1, 2], &[1], &[1]]),
        ("purge of all", &|backups| drop(backups.purge(0).unwrap()), [&[1, 2], &[2], &[]]),
    ];
    for (name, end, left) in ends {
        let (fs, env) = world(backed_up.clone(), &rt);
        end(&Backups::open_in("backups", env).unwrap());
        let mut seen = BTreeSet::new();
        each_crash(backed_up.clone(), &fs.take_log(), &mut |crashed, what| {
            let what = format!("{name}: {what}");
            goes_on(&crashed, &rt, &what);
            let (_, env) = world(crashed.clone(), &rt);
            let ids: Vec<u64> = {
                let backups = Backups::open_in("backups", env).unwrap();
                backups.list().unwrap().iter().map(|b| b.id).collect()
            };
            // The two renames of a purge of all may arrive in any order.
            let either = left.contains(&&*ids) || (name == "purge of all" && ids == [1]);
            assert!(either, "{what}: {ids:?}");
            if let Some(first) = ids.first() {
                check(crashed, &rt, *first, &made, &what);
            }
            seen.insert(ids);
        });
        assert!(left.iter().all(|ids| seen.contains(*ids)), "{name}: {seen:?}");
    }
}

/// The first backup of a directory: whatever a crash leaves of it, the next one is made there.
#[test]
fn a_first_backup_that_was_cut_short_is_no_hindrance() {
    let rt: Arc<dyn Rt> = Arc::new(OsRt::new(RtOptions::default()));
    let (fs, env) = world(Disk::default(), &rt);
    live(&env, 1);
    let before = fs.disk();
    let from = fs.position();
    back_up(&env);
    each_crash(before, &fs.log_from(from), &mut |crashed, what| {
        let (_, env) = world(crashed, &rt);
        back_up(&env);
        let mut left = without_garbage(there(&env), what);
        let whole = named(&env);
        left.retain(|path| !whole.contains(path));
        assert!(left.is_empty(), "{what}: {left:?}");
    });
}
