//! What is made of a database and is cut short at any call, by a full disk or by a crash: it opens as no database,
//! and what the error says to do helps.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lithify::{Backups, Builder, ErrorKind, Result};
use lithify_env::{Env, Fault, FaultFs, Fs, MemFs, OsRt, RtOptions};

use crate::common::{Content, scan, tiny};

const DB: &str = "/db";
const BACKUPS: &str = "/backups";
const TO: &str = "/new";
/// The error number of a full disk, the same on every Unix.
const NO_SPACE: i32 = 28;
const KEYS: u32 = 120;

/// Makes something of `DB`, or of the backup of it, in `TO`.
type Deed = fn(Env) -> Result<()>;

fn salvage(env: Env) -> Result<()> {
    Builder::new(tiny()).env(env).salvage(DB, TO, &mut |_| {}).map(drop)
}

fn restore(env: Env) -> Result<()> {
    Backups::open_in(BACKUPS, env)?.restore(1, TO, &mut |_| {}).map(drop)
}

fn checkpoint(env: Env) -> Result<()> {
    let db = Builder::new(tiny()).env(env).open(DB)?;
    let made = db.checkpoint(TO);
    db.close()?;
    made
}

/// A database with tables and a log, and a backup of it.
fn world() -> (MemFs, Env) {
    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(tiny()).env(env.clone()).open(DB).unwrap();
    for n in 0..KEYS {
        db.put(n.to_be_bytes(), [n as u8; 50]).unwrap();
        if n % 50 == 49 {
            db.flush().unwrap();
        }
    }
    Backups::open_in(BACKUPS, env.clone()).unwrap().create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    (fs, env)
}

/// What the database in `TO` holds, without changing anything.
fn content(env: &Env) -> Result<Content> {
    let db = Builder::new(tiny()).env(env.clone()).open_read_only(TO)?;
    let content = scan(&db)?;
    db.close()?;
    Ok(content)
}

/// Nothing takes what is in `TO` for a database, nor for something to go on with; with that gone, `deed` can be done.
fn is_none(story: &str, fs: &MemFs, env: &Env, deed: Deed) {
    let opened = Builder::new(tiny()).env(env.clone()).open(TO).map(drop);
    let other = |env: Env| Builder::new(tiny()).env(env).salvage(TO, "/other", &mut |_| {});
    let refusals = [
        content(env).map(drop),
        opened,
        lithify::verify::verify(env.fs.clone(), TO, None, &mut |_| {}).map(drop),
        other(env.clone()).map(drop),
    ];
    for refused in refusals {
        let e = refused.expect_err(story);
        assert_eq!(e.kind(), ErrorKind::NotFound, "{story}: {e}");
        assert!(e.to_string().contains("not finished; if none is being made, remove /new"), "{e}");
    }
    let e = deed(env.clone()).expect_err(story);
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{story}: {e}");
    assert!(e.to_string().contains("remove /new and try again"), "{story}: {e}");
    for entry in fs.list(Path::new(TO)).unwrap() {
        fs.unlink(&Path::new(TO).join(entry.name)).unwrap();
    }
}

#[track_caller]
fn is_whole_or_none(deed: Deed) {
    let mut cut = 0;
    for at in (0u64..).step_by(2) {
        let (fs, env) = world();
        let calls = AtomicU64::new(0);
        let full = FaultFs::new(env.fs.clone(), move |op| {
            let late = op.path.starts_with(TO) && calls.fetch_add(1, Ordering::Relaxed) >= at;
            late.then(|| Fault::from(io::Error::from_raw_os_error(NO_SPACE)))
        });
        let Err(e) = deed(Env { fs: Arc::new(full), rt: env.rt.clone() }) else { break };
        let story = format!("call {at} fails with {e}");
        let left = fs.list(Path::new(TO)).unwrap_or_default();
        match left.iter().any(|entry| entry.name == "CURRENT") {
            // Only the sync of its name failed.
            true => assert_eq!(content(&env).expect(&story).len(), KEYS as usize, "{story}"),
            false if left.is_empty() => {}
            false => {
                cut += 1;
                assert_eq!(e.kind(), ErrorKind::NoSpace, "{story}");
                let told = "free some space, remove /new, which is not finished";
                let misled = "nothing was written";
                assert!(e.to_string().contains(told) && !e.to_string().contains(misled), "{story}");
                is_none(&story, &fs, &env, deed);
            }
        }
        if !left.iter().any(|entry| entry.name == "CURRENT") {
            deed(env.clone()).expect(&story);
            assert_eq!(content(&env).expect(&story).len(), KEYS as usize, "{story}");
        }
    }
    assert!(cut > 5, "{cut} were cut short");
}

#[test]
fn a_salvage_is_whole_or_no_database() {
    is_whole_or_none(salvage);
}

#[test]
fn a_restored_backup_is_whole_or_no_database() {
    is_whole_or_none(restore);
}

#[test]
fn a_checkpoint_is_whole_or_no_database() {
    is_whole_or_none(checkpoint);
}
