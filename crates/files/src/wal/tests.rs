//! Logs under test: what the writer asks of the file system, what every single fault leaves
//! behind ([`faults`]), what replay makes of damaged logs ([`damage`]) and of those that are written meanwhile ([`live`]).

use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::{CfId, ErrorKind, FileId, Result, Seq};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{FaultFs, FsRef, MemFs, OpenOpts, read_full_at, write_all_at};
use lithify_journal::wal::BatchBuilder;

use super::writer::SEAL_BYTES;
use super::*;
use crate::dir::{Dir, FileName};

mod damage;
mod faults;
mod live;

/// A batch of one put whose value tells which attempt it was.
fn group(seq: Seq, attempt: u64) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    batch.put(CfId(0), format!("key{seq}").as_bytes(), &attempt.to_le_bytes());
    batch.set_sequence(seq);
    batch
}

fn put(wal: &mut WalWriter, seq: Seq) -> Result<()> {
    wal.append(group(seq, seq).as_bytes(), seq)
}

fn dir_on(fs: FsRef) -> Dir {
    fs.create_dir_all(Path::new("/db")).unwrap();
    Dir::new(fs, "/db")
}

fn create(dir: &Dir, number: u64, before: Option<&WalEnd>, last_seq: Seq) -> WalWriter {
    WalWriter::begin(NewLog::make(dir, FileId(number), false).unwrap(), before, last_seq)
}

/// Replays everything; the attempts in order.
fn attempts_from(dir: &Dir, from: u64) -> Result<(Vec<u64>, Replay)> {
    attempts_known(dir, from, &BTreeMap::new(), OnRot::Refuse)
}

fn attempts_known(
    dir: &Dir,
    from: u64,
    known: &BTreeMap<u64, Option<u64>>,
    on_rot: OnRot,
) -> Result<(Vec<u64>, Replay)> {
    let mut seen = Vec::new();
    let replay = replay(dir, from..u64::MAX, known, on_rot, |_, batch| {
        for op in batch.view()?.iter() {
            seen.push(u64::from_le_bytes(op.value.try_into().unwrap()));
        }
        Ok(batch.first_seq + u64::from(batch.count))
    })?;
    Ok((seen, replay))
}

fn attempts(dir: &Dir) -> Result<(Vec<u64>, Replay)> {
    attempts_from(dir, 0)
}

fn bytes_of(dir: &Dir, number: u64) -> Vec<u8> {
    let file = dir.open_file(FileName::Wal(number), OpenOpts::read()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_full_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// A directory that holds exactly these logs.
fn dir_with(logs: &[(u64, &[u8])]) -> Dir {
    let dir = dir_on(Arc::new(MemFs::new()));
    for &(number, bytes) in logs {
        let file = dir.create_file(FileName::Wal(number), OpenOpts::write()).unwrap();
        write_all_at(&*file, bytes, 0).unwrap();
    }
    dir
}

/// A directory whose calls are noted by name.
fn watched() -> (Dir, Arc<Calls>) {
    let calls = Arc::new(Calls::default());
    let noted = Arc::clone(&calls);
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        noted.0.lock().push(op.name);
        None
    });
    let dir = dir_on(Arc::new(fs));
    calls.take();
    (dir, calls)
}

#[derive(Default)]
struct Calls(Mutex<Vec<&'static str>>);

impl Calls {
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[test]
fn each_group_is_one_write_and_each_sync_one_sync() {
    let (dir, calls) = watched();
    let mut wal = create(&dir, 5, None, 0);
    assert_eq!(calls.take(), ["create", "sync_dir"]);
    put(&mut wal, 1).unwrap();
    put(&mut wal, 2).unwrap();
    assert_eq!(calls.take(), [""; 0]);
    wal.write_out().unwrap();
    assert_eq!(calls.take(), ["write_at"]);
    put(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    assert_eq!(calls.take(), ["write_at", "sync_data"]);
    wal.sync().unwrap();
    wal.write_out().unwrap();
    assert_eq!(calls.take(), [""; 0]);
    let mut large = BatchBuilder::new();
    large.put(CfId(0), b"large", &vec![7; 300 << 10]);
    large.set_sequence(4);
    wal.append(large.as_bytes(), 4).unwrap();
    assert_eq!(calls.take(), ["write_at"]);
    assert_eq!(wal.size(), wal.written());
    wal.close().unwrap();
    assert_eq!(calls.take(), ["sync_data", "write_at", "sync_data"]);
}

#[test]
fn logs_follow_each_other() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut first = create(&dir, 5, None, 0);
    put(&mut first, 1).unwrap();
    put(&mut first, 2).unwrap();
    let end = first.end().unwrap();
    assert_eq!(first.end().unwrap().record, end.record);
    assert_eq!(put(&mut first, 3).unwrap_err().kind(), ErrorKind::Internal);
    // 3 to 6 skip the logs, 8 and 9 skip the second one.
    let mut second = create(&dir, 8, Some(&end), 6);
    put(&mut second, 7).unwrap();
    second.seal_gap(9).unwrap();
    put(&mut second, 10).unwrap();
    second.sync().unwrap();
    first.close().unwrap();
    assert_eq!(bytes_of(&dir, 5).len() as u64, end.record.size);
    second.close().unwrap();
    let (seen, replay) = attempts(&dir).unwrap();
    assert_eq!((seen, replay.last_seq, replay.cut), (vec![1, 2, 7, 10], 10, None));
    assert!(replay.logs.iter().all(|log| log.closed));
    assert_eq!(attempts_from(&dir, 6).unwrap().0, [7, 10]);
    assert_eq!(attempts_from(&dir, 9).unwrap().0, [0; 0]);
}

#[test]
fn numbers_out_of_order_are_refused() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut wal = create(&dir, 5, None, 3);
    for seq in [3, 5] {
        assert_eq!(put(&mut wal, seq).unwrap_err().kind(), ErrorKind::Internal);
    }
    assert_eq!(wal.seal_gap(2).unwrap_err().kind(), ErrorKind::Internal);
    put(&mut wal, 4).unwrap();
    wal.close().unwrap();
    assert_eq!(attempts(&dir).unwrap().0, [4]);
}

/// A seal that promises proves that all earlier logs are durable: none is written before.
#[test]
fn a_log_vouches_only_when_the_one_before_is_durable() {
    let sealed = |dir: &Dir, number| {
        let bytes = bytes_of(dir, number);
        let rule = lithify_journal::wal::SeqRule::Contiguous;
        let mut walk = lithify_journal::wal::WalWalk::new(&bytes, number, rule);
        while walk.next_batch().unwrap().is_some() {}
        walk.findings().sealed
    };
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut first = create(&dir, 5, None, 0);
    put(&mut first, 1).unwrap();
    let end = first.end().unwrap();
    let mut second = create(&dir, 8, Some(&end), 1);
    for seq in 2..5 {
        put(&mut second, seq).unwrap();
        second.sync().unwrap();
    }
    assert_eq!(sealed(&dir, 8), 0);
    assert!(!end.is_durable());
    let next = second.end().unwrap();
    second.close().unwrap();
    assert_eq!(sealed(&dir, 8), 0, "closed before the one it follows");
    assert!(!next.is_durable());
    let mut third = create(&dir, 9, Some(&next), 4);
    put(&mut third, 5).unwrap();
    third.sync().unwrap();
    first.close().unwrap();
    assert!(end.is_durable() && next.is_durable());
    let synced = third.synced();
    third.seal_idle().unwrap();
    third.seal_idle().unwrap();
    third.write_out().unwrap();
    assert_eq!(sealed(&dir, 9), synced);
    assert_eq!(third.written(), synced + SEAL_BYTES);
}

/// The disk is full, then no longer: nothing that was refused appears, nothing else is lost.
#[test]
fn a_full_disk_heals() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    let mut wal = create(&dir, 5, None, 0);
    put(&mut wal, 1).unwrap();
    wal.write_out().unwrap();
    for room in 0..60 {
        fs.set_capacity(fs.used() + room);
        let gathered = wal.last_seq() + 1;
        put(&mut wal, gathered).unwrap();
        wal.keep();
        let refused = wal.append(group(gathered + 1, 999).as_bytes(), gathered + 1);
        refused.and_then(|()| wal.write_out()).unwrap_err();
        assert_eq!((wal.last_seq(), wal.poisoned()), (gathered, false));
        fs.set_capacity(u64::MAX);
        wal.write_out().unwrap();
    }
    let (seen, _) = attempts(&dir).unwrap();
    assert_eq!(seen, (1..=61).collect::<Vec<_>>());
}

/// The closing seal alone finds no room: the log is whole without it, and vouched for.
#[test]
fn a_log_closes_on_a_full_disk() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    let mut wal = create(&dir, 7, None, 0);
    put(&mut wal, 1).unwrap();
    let end = wal.end().unwrap();
    fs.set_capacity(fs.used());
    wal.close().unwrap();
    assert!(end.is_durable());
    fs.set_capacity(u64::MAX);
    let mut next = create(&dir, 9, Some(&end), 1);
    put(&mut next, 2).unwrap();
    next.close().unwrap();
    assert_eq!(attempts(&dir).unwrap().0.len(), 2);
}

#[test]
fn a_failed_creation_can_be_repeated() {
    let fs = FaultFs::new(Arc::new(MemFs::new()), |op| {
        (op.name == "sync_dir" && op.index < 3).then(|| std::io::Error::other("once").into())
    });
    let dir = dir_on(Arc::new(fs));
    assert!(NewLog::make(&dir, FileId(5), true).is_err());
    create(&dir, 5, None, 0).close().unwrap();
    assert!(NewLog::make(&dir, FileId(5), true).is_err(), "names are never reused");
}
