//! Every call of a workload fails once, in every way: what was acknowledged is there after a
//! kill, what was refused never appears, and the rest is a prefix.

use std::io;

use lithify_env::Fault;
use lithify_env::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// How far a group was brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Buffered,
    Os,
    Sync,
}

/// A way to fail.
#[derive(Clone, Copy, Debug)]
enum Way {
    Eio,
    NoSpace,
    /// A write moves half; the call after it fails.
    Short,
    /// The call fails, and so does every cut after it.
    NoCut,
}

/// What a run learned.
#[derive(Debug, Default)]
struct Told {
    /// Attempts acknowledged, in order.
    acked: Vec<(u64, Level)>,
    refused: Vec<u64>,
    /// The attempt whose outcome is not known; the run ended there.
    unknown: Option<u64>,
}

const LEVELS: [Level; 9] = [
    Level::Os,
    Level::Buffered,
    Level::Buffered,
    Level::Os,
    Level::Sync,
    Level::Sync,
    Level::Buffered,
    Level::Sync,
    Level::Buffered,
];

/// The writer's side of a database: three logs, each closed while the next is written.
fn run(dir: &Dir) -> Told {
    let mut told = Told::default();
    let (mut before, mut closing): (Option<WalEnd>, Option<WalWriter>) = (None, None);
    let (mut seq, mut attempt) = (1, 0);
    for number in [5, 8, 11] {
        let made = (0..2).find_map(|_| NewLog::make(dir, FileId(number), true).ok());
        let Some(made) = made else { return told };
        let mut wal = WalWriter::begin(made, before.as_ref(), seq - 1);
        for level in LEVELS {
            attempt += 1;
            let batch = group(seq, attempt);
            let mut result = wal.append(batch.as_bytes(), seq);
            if result.is_ok() {
                result = match level {
                    Level::Buffered => {
                        wal.keep();
                        Ok(())
                    }
                    Level::Os => wal.write_out(),
                    Level::Sync => wal.sync(),
                };
            }
            if level == Level::Sync
                && result.is_ok()
                && let Some(old) = closing.take()
            {
                result = old.close().map(drop);
                if let Err(e) = result {
                    assert_ne!(e.kind(), ErrorKind::Internal);
                    told.unknown = Some(attempt);
                    return told;
                }
            }
            match result {
                Ok(()) => {
                    told.acked.push((attempt, level));
                    seq += 1;
                }
                Err(e) if matches!(e.kind(), ErrorKind::NoSpace | ErrorKind::NotCommitted) => {
                    assert!(!wal.poisoned());
                    told.refused.push(attempt);
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::OutcomeUnknown, "{e}");
                    assert!(wal.poisoned());
                    for _ in 0..2 {
                        assert!(put(&mut wal, seq).is_err() && wal.write_out().is_err());
                        assert!(wal.sync().is_err() && wal.end().is_err());
                    }
                    told.unknown = Some(attempt);
                    return told;
                }
            }
        }
        let ended = (0..2).find_map(|_| wal.end().ok());
        let Some(end) = ended else { return told };
        before = Some(end);
        closing = Some(wal);
    }
    if let Some(last) = closing {
        let _ = last.close();
    }
    told
}

/// After a kill, everything that was written is there, whatever was synced.
fn check(fs: &MemFs, told: &Told, what: &str) {
    let dir = Dir::new(Arc::new(fs.clone()), "/db");
    let (seen, replay) = attempts(&dir).unwrap_or_else(|e| panic!("{what}: {e}\n{told:?}"));
    let acked: Vec<u64> = told.acked.iter().map(|a| a.0).collect();
    let promised = told.acked.iter().rposition(|a| a.1 >= Level::Os).map_or(0, |i| i + 1);
    let (known, unknown) = match told.unknown {
        Some(u) if seen.last() == Some(&u) => (&seen[..seen.len() - 1], true),
        _ => (&seen[..], false),
    };
    assert!(acked.starts_with(known), "{what}: saw {seen:?}, acknowledged {acked:?}");
    assert!(known.len() >= promised, "{what}: saw {seen:?} of {:?}", told.acked);
    assert!(!unknown || known.len() == acked.len(), "{what}: a hole before the unknown one");
    assert!(told.refused.iter().all(|r| !seen.contains(r)), "{what}: a refused write is there");
    assert!(replay.cut.is_none_or(|cut| !cut.rot));
}

#[test]
fn every_call_fails_once() {
    let counted = MemFs::new();
    let fs = Arc::new(FaultFs::new(Arc::new(counted.clone()), |_| None));
    let all = run(&dir_on(fs.clone()));
    assert_eq!((all.acked.len(), all.refused.len()), (27, 0));
    check(&counted, &all, "no fault");
    let calls = fs.count();
    assert!(calls > 40);
    let (mut refused, mut unknown) = (0, 0);
    for way in [Way::Eio, Way::NoSpace, Way::Short, Way::NoCut] {
        for at in 1..calls {
            let mem = MemFs::new();
            let told = run(&dir_on(Arc::new(failing(&mem, way, at))));
            check(&mem, &told, &format!("{way:?} at call {at} of {calls}"));
            refused += told.refused.len();
            unknown += usize::from(told.unknown.is_some());
        }
    }
    assert!(refused > 20 && unknown > 20, "{refused} refused, {unknown} unknown");
}

fn failing(mem: &MemFs, way: Way, at: u64) -> FaultFs {
    let halved = AtomicU64::new(u64::MAX);
    FaultFs::new(Arc::new(mem.clone()), move |op| {
        let eio = || Some(Fault::Fail(io::Error::from_raw_os_error(5)));
        match way {
            Way::Eio if op.index == at => eio(),
            Way::NoSpace if op.index == at => {
                Some(Fault::Fail(io::Error::from(io::ErrorKind::StorageFull)))
            }
            Way::Short if op.index == at && op.name == "write_at" => {
                halved.store(at + 1, Ordering::Relaxed);
                Some(Fault::Short(op.len as usize / 2))
            }
            Way::Short if op.index == halved.load(Ordering::Relaxed) => eio(),
            Way::NoCut if op.index == at && op.name == "write_at" => {
                halved.store(at, Ordering::Relaxed);
                Some(Fault::Short(op.len as usize * 2 / 3))
            }
            Way::NoCut if halved.load(Ordering::Relaxed) != u64::MAX => {
                matches!(op.name, "write_at" | "set_len").then(eio).flatten()
            }
            _ => None,
        }
    })
}

/// A sync that failed is never repeated: the second answer would prove nothing.
#[test]
fn a_failed_sync_is_final() {
    let calls = Arc::new(Calls::default());
    let noted = Arc::clone(&calls);
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        noted.0.lock().push(op.name);
        (op.name == "sync_data").then(|| io::Error::from_raw_os_error(5).into())
    });
    let dir = dir_on(Arc::new(fs));
    let mut wal = create(&dir, 5, None, 0);
    put(&mut wal, 1).unwrap();
    let first = wal.sync().unwrap_err();
    assert_eq!((first.kind(), wal.synced()), (ErrorKind::OutcomeUnknown, 0));
    assert_eq!(wal.sync().unwrap_err().to_string(), first.to_string());
    assert!(wal.close().is_err());
    assert_eq!(calls.take().iter().filter(|&&name| name == "sync_data").count(), 1);
}
