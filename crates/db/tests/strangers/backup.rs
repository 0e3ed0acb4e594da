//! Backups against the databases they were made of: incremental, restored, thinned out, damaged, and cut
//! short by every failing call. Power losses are in the simulation's tests.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io;
use std::sync::Arc;

use lithify::{Backups, Builder, Db, ErrorKind, Settings};
use lithify_env::{Env, Fault, FaultFs, OpenOpts, RtOptions, write_all_at};
use lithify_store::backup::Backup;

use crate::common::{scan, tiny};

fn world() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() })
}

fn open(env: &Env, path: &str) -> Db {
    Builder::new(tiny()).env(env.clone()).open(path).unwrap()
}

fn write(db: &Db, round: u64) {
    for n in 0..300u64 {
        db.put((round * 1000 + n).to_be_bytes(), [round as u8; 300]).unwrap();
    }
    db.delete((round * 1000 + 7).to_be_bytes()).unwrap();
}

fn quiet() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    (s.l0_slowdown, s.l0_stop) = (1000, 1000);
    s
}

/// Two handles that were opened before there was a backup: the one that makes it has the directory.
#[test]
fn a_handle_from_before_the_first_backup_deletes_nothing() {
    let env = world();
    let db = open(&env, "db");
    write(&db, 0);
    let [first, second] = [(); 2].map(|()| Backups::open_in("backups", env.clone()).unwrap());
    first.create(&db, &mut |_| {}).unwrap();
    for refused in [second.delete(1).unwrap_err(), second.purge(0).unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Locked, "{refused:?}");
    }
    assert_eq!(second.create(&db, &mut |_| {}).unwrap_err().kind(), ErrorKind::Locked);
    assert!(first.verify(1, &mut |_| {}).unwrap().is_empty());
    drop(first);
    assert_eq!(second.purge(0).unwrap(), [1]);
    db.close().unwrap();
}

/// What a backup in the making needs is on no list yet that a deletion would heed.
#[test]
fn a_handle_makes_one_change_at_a_time() {
    let env = world();
    let db = open(&env, "db");
    write(&db, 0);
    let backups = Backups::open_in("backups", env).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    let mut refused = Vec::new();
    backups
        .create(&db, &mut |_| {
            refused.push(backups.delete(1).unwrap_err().kind());
            refused.push(backups.purge(0).unwrap_err().kind());
            refused.push(backups.create(&db, &mut |_| {}).unwrap_err().kind());
        })
        .unwrap();
    assert!(refused.len() >= 3 && refused.iter().all(|kind| *kind == ErrorKind::Locked));
    assert!(backups.verify(2, &mut |_| {}).unwrap().is_empty());
    // Also after a change that failed.
    assert_eq!(backups.delete(7).unwrap_err().kind(), ErrorKind::NotFound);
    backups.delete(1).unwrap();
    assert!(backups.verify(2, &mut |_| {}).unwrap().is_empty());
    db.close().unwrap();
}

#[test]
fn what_is_there_is_not_copied_again_and_each_backup_is_whole() {
    let env = world();
    let db = Builder::new(quiet()).env(env.clone()).open("db").unwrap();
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    let mut made = Vec::new();
    for round in 0..4 {
        write(&db, round);
        let mut last = 0;
        let one = backups.create(&db, &mut |p| last = p.done).unwrap();
        assert!(one.id == round + 1 && last > 0 && one.bytes > last, "{one:?}");
        // Only the tables of this round.
        assert!(one.copied > 0 && (round == 0 || one.copied < one.bytes / 2 + 20_000), "{one:?}");
        made.push(scan(&db).unwrap());
    }
    let again = backups.create(&db, &mut |_| {}).unwrap();
    assert_eq!(again.copied, 0, "nothing is new");
    made.push(scan(&db).unwrap());
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    for (n, was) in made.iter().enumerate() {
        let (id, to) = (n as u64 + 1, format!("restored-{n}"));
        assert!(backups.verify(id, &mut |_| {}).unwrap().is_empty());
        backups.restore(id, &to, &mut |_| {}).unwrap();
        let restored = open(&env, &to);
        assert!(scan(&restored).unwrap() == *was, "backup {id}");
        // It is a database of its own, and can be backed up here as well.
        write(&restored, 50 + id);
        restored.close().unwrap();
    }
    let taken = backups.restore(1, "restored-0", &mut |_| {}).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::InvalidArgument);
    assert_eq!(backups.purge(2).unwrap(), [1, 2, 3]);
    assert_eq!(backups.list().unwrap().iter().map(|b| b.id).collect::<Vec<_>>(), [4, 5]);
    backups.delete(4).unwrap();
    assert_eq!(backups.delete(4).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(backups.verify(5, &mut |_| {}).unwrap().is_empty());
    backups.delete(5).unwrap();
    let left = env.fs.list("backups/shared".as_ref()).unwrap();
    assert!(left.is_empty(), "{left:?}");
    let locked = Backups::open_in("backups", env).unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Locked);
}

/// The same number and length need not be the same table: two lives of one restored database.
#[test]
fn tables_of_another_life_are_not_taken_for_those_of_this_one() {
    let env = world();
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    let db = Builder::new(quiet()).env(env.clone()).open("db").unwrap();
    write(&db, 1);
    backups.create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    let mut lives = Vec::new();
    for life in [b"one", b"two"] {
        let to = format!("life-{}", life.escape_ascii());
        backups.restore(1, &to, &mut |_| {}).unwrap();
        let db = Builder::new(quiet()).env(env.clone()).open(&to).unwrap();
        db.put(b"who", life).unwrap();
        backups.create(&db, &mut |_| {}).unwrap();
        lives.push(scan(&db).unwrap());
        db.close().unwrap();
    }
    for (id, life) in [(2, &lives[0]), (3, &lives[1])] {
        backups.restore(id, format!("again-{id}"), &mut |_| {}).unwrap();
        let db = open(&env, &format!("again-{id}"));
        assert!(scan(&db).unwrap() == *life, "backup {id}");
        db.close().unwrap();
    }
}

#[test]
fn every_failing_call_leaves_the_backups_from_before() {
    let env = world();
    let db = Builder::new(quiet()).env(env.clone()).open("db").unwrap();
    write(&db, 1);
    let first = scan(&db).unwrap();
    Backups::open_in("backups", env.clone()).unwrap().create(&db, &mut |_| {}).unwrap();
    write(&db, 2);
    db.flush().unwrap();
    let second = scan(&db).unwrap();
    let (mut fails, mut passed) = (0, 0);
    for at in 0u64.. {
        let faulty = FaultFs::new(env.fs.clone(), move |op| {
            (op.index == at).then(|| Fault::from(io::Error::from(io::ErrorKind::StorageFull)))
        });
        let in_faulty = Env { fs: Arc::new(faulty), rt: env.rt.clone() };
        let made = Backups::open_in("backups", in_faulty)
            .and_then(|backups| backups.create(&db, &mut |_| {}));
        let backups = Backups::open_in("backups", env.clone()).unwrap();
        let ids: Vec<u64> = backups.list().unwrap().iter().map(|b| b.id).collect();
        match &made {
            Ok(one) => assert_eq!(ids, [1, one.id]),
            // It may exist all the same if only its last sync failed.
            Err(e) => assert!(e.kind() == ErrorKind::NoSpace && ids[0] == 1, "call {at}: {e}"),
        }
        for (id, was) in ids.iter().zip([&first, &second]) {
            assert!(backups.verify(*id, &mut |_| {}).unwrap().is_empty(), "call {at}, {ids:?}");
            if at % 8 == 0 {
                let to = format!("at-{at}-{id}");
                backups.restore(*id, &to, &mut |_| {}).unwrap();
                let restored = open(&env, &to);
                assert!(scan(&restored).unwrap() == *was, "call {at}, {ids:?}");
                restored.close().unwrap();
            }
        }
        ids[1..].iter().for_each(|id| backups.delete(*id).unwrap());
        match made {
            Ok(_) if passed == 3 => break, // beyond the last call
            Ok(_) => passed += 1,
            Err(_) => (fails, passed) = (fails + 1, 0),
        }
    }
    assert!(fails > 20, "{fails} calls");
    db.close().unwrap();
}

#[test]
fn damage_is_named_and_never_restored() {
    let env = world();
    let db = Builder::new(quiet()).env(env.clone()).open("db").unwrap();
    write(&db, 1);
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    let table = env.fs.list("backups/shared".as_ref()).unwrap().remove(0).name;
    let path = format!("backups/shared/{table}");
    let file = env.fs.open(path.as_ref(), OpenOpts::write()).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 100).unwrap();
    write_all_at(&*file, &[byte[0] ^ 1], 100).unwrap();
    let damage = backups.verify(1, &mut |_| {}).unwrap();
    assert!(damage.len() == 1 && damage[0].to_string().contains(&table), "{damage:?}");
    let refused = backups.restore(1, "restored", &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corruption);
    assert!(Builder::new(tiny()).env(env.clone()).open_read_only("restored").is_err());
    // A list that is damaged is told, and keeps whatever it may name.
    let meta = env.fs.open("backups/meta/1".as_ref(), OpenOpts::write()).unwrap();
    write_all_at(&*meta, b"x", 30).unwrap();
    assert_eq!(backups.list().unwrap_err().kind(), ErrorKind::Corruption);
    let db = open(&env, "other");
    db.put(b"a", b"1").unwrap();
    assert_eq!(backups.create(&db, &mut |_| {}).unwrap().id, 2);
    assert!(env.fs.len(path.as_ref()).unwrap().is_some());
    db.close().unwrap();
}

/// A database gives way to a backup that is whole, and to nothing else.
#[test]
fn what_is_there_gives_way_to_a_whole_backup_only() {
    let env = world();
    let db = open(&env, "db");
    db.put(b"a", b"1").unwrap();
    let backups = Backups::open_in("backups", env.clone()).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    db.put(b"a", b"2").unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    db.put(b"a", b"3").unwrap();
    let over = |id| backups.restore_over(id, "db", &mut |_| {});
    assert_eq!(over(1).unwrap_err().kind(), ErrorKind::Locked);
    db.close().unwrap();
    assert_eq!(over(9).unwrap_err().kind(), ErrorKind::NotFound);
    let stray = env.fs.create("db/notes.txt".as_ref(), OpenOpts::write()).unwrap();
    assert!(over(1).unwrap_err().to_string().contains("`notes.txt`"));
    drop(stray);
    env.fs.unlink("db/notes.txt".as_ref()).unwrap();
    let meta = env.fs.open("backups/meta/1".as_ref(), OpenOpts::write()).unwrap();
    write_all_at(&*meta, b"x", 30).unwrap();
    assert_eq!(over(1).unwrap_err().kind(), ErrorKind::Corruption);
    let ids: Vec<u64> = backups.list_readable().unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [2]);
    for (file, offset) in [("shared", 20), ("private/2", 0)] {
        let name = env.fs.list(format!("backups/{file}").as_ref()).unwrap().remove(0).name;
        let path = format!("backups/{file}/{name}");
        let file = env.fs.open(path.as_ref(), OpenOpts::write()).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, offset).unwrap();
        write_all_at(&*file, &[byte[0] ^ 1], offset).unwrap();
        assert_eq!(over(2).unwrap_err().kind(), ErrorKind::Corruption);
        write_all_at(&*file, &byte, offset).unwrap();
    }
    let db = open(&env, "db");
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"3"[..]));
    db.close().unwrap();
    assert_eq!(over(2).unwrap().id, 2);
    assert_eq!(backups.restore_over(2, "new", &mut |_| {}).unwrap().id, 2);
    for place in ["db", "new"] {
        let db = open(&env, place);
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
        db.close().unwrap();
    }
}

/// A list of any bytes is an error or a list, and one that was changed by hand an error.
#[test]
fn hostile_lists_are_refused() {
    let env = world();
    let db = open(&env, "db");
    write(&db, 1);
    Backups::open_in("backups", env.clone()).unwrap().create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    let file = env.fs.open("backups/meta/1".as_ref(), OpenOpts::read()).unwrap();
    let mut good = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut good, 0).unwrap();
    Backup::parse(&good).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << rng.u8(0..8);
        assert!(Backup::parse(&bad).is_err(), "byte {at}");
        assert!(Backup::parse(&good[..at]).is_err(), "cut at {at}");
    }
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..rng.usize(0..200)).map(|_| rng.u8(..)).collect();
        assert!(Backup::parse(&bytes).is_err());
    }
}
