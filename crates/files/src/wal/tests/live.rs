//! Logs that are read while they are written.

use lithify_env::Fault;
use lithify_journal::wal::record::BLOCK_SIZE;

use super::*;
use crate::testing::{mem_dir, overwrite};
use crate::wal::{end_of_log, read_log};

#[test]
fn only_blocks_of_zeros_at_the_end_are_left_out() {
    const MOST: usize = 2 << 20;
    for used in [0, 1, 5, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE, 100_000] {
        for zeros in [0, 1, BLOCK_SIZE, 700_000, 5 << 20] {
            let mut bytes = vec![7; used];
            bytes.resize(used + zeros, 0);
            let dir = mem_dir();
            overwrite(&dir, FileName::Wal(7), &bytes);
            let end = end_of_log(&dir, FileId(7)).unwrap();
            let expected = if zeros <= MOST { used } else { used + zeros - MOST };
            assert_eq!(end, expected as u64, "{used} and {zeros}");
            let read = read_log(&dir, FileId(7)).unwrap().unwrap();
            let len = expected.next_multiple_of(BLOCK_SIZE).min(bytes.len());
            assert_eq!(read.len(), len as u64, "{used} and {zeros}");
        }
    }
    let none = mem_dir();
    assert!(read_log(&none, FileId(7)).unwrap().is_none());
    assert_eq!(end_of_log(&none, FileId(7)).unwrap(), 0);
}

/// A reader meets half of a record; before it comes to what lies behind, the writer has copied the other half, synced the
/// log and written a seal that says so. That is no damage: the log ended before the record when the reader came.
#[test]
fn a_seal_that_comes_while_a_log_is_read_accuses_no_record() {
    let mem = MemFs::new();
    let plain = dir_on(Arc::new(mem.clone()));
    let mut wal = create(&plain, 5, None, 0);
    put(&mut wal, 1).unwrap();
    wal.sync().unwrap();
    let first = wal.written();
    put(&mut wal, 2).unwrap();
    wal.sync().unwrap();
    let second = wal.written();
    wal.seal_idle().unwrap();
    wal.sync().unwrap();
    let name = FileName::Wal(5);
    let whole = plain.read_whole(name, u64::MAX).unwrap().unwrap();
    let cut = ((first + second) / 2) as usize;
    for pause in [cut - 1, cut, cut + 1, second as usize] {
        let mut early = whole.clone();
        early[cut..].fill(0);
        early.resize(1 << 20, 0);
        overwrite(&plain, name, &early);
        let (now, later) = (plain.clone(), [whole.clone(), vec![0; 1000]].concat());
        let fs = FaultFs::new(Arc::new(mem.clone()), move |op| {
            if op.name != "read_at" || !(1000..=32 << 10).contains(&op.len) {
                return None;
            }
            // What is read first, and what behind.
            match op.offset {
                0 => Some(Fault::Short(pause)),
                at if at == pause as u64 => {
                    let file = now.open_file(name, OpenOpts::write()).unwrap();
                    write_all_at(&*file, &later, 0).unwrap();
                    None
                }
                _ => None,
            }
        });
        let (seen, replay) =
            attempts(&Dir::new(Arc::new(fs), "/db")).unwrap_or_else(|e| panic!("{pause}: {e}"));
        assert_eq!((&seen[..], replay.last_seq), (&[1][..], 1), "{pause}");
        assert_eq!(
            end_of_log(&plain, FileId(5)).unwrap() as usize,
            whole.iter().rposition(|b| *b != 0).unwrap() + 1
        );
    }
    assert_eq!(attempts(&plain).unwrap().0, [1, 2]);
}

/// While a reader is at work the writer goes on in log 5, ends it, and begins the one that was made ahead. The writes in that
/// one are not shown without those that the reader missed.
#[test]
fn a_log_that_begins_while_others_are_read_counts_as_empty() {
    let plain = mem_dir();
    let mut wal = create(&plain, 5, None, 0);
    (1..=3).for_each(|seq| put(&mut wal, seq).unwrap());
    wal.write_out().unwrap();
    let early = bytes_of(&plain, 5);
    (4..=5).for_each(|seq| put(&mut wal, seq).unwrap());
    let end = wal.end().unwrap();
    let mut next = create(&plain, 7, Some(&end), 5);
    next.write_out().unwrap();
    let opened = bytes_of(&plain, 7);
    put(&mut next, 6).unwrap();
    next.write_out().unwrap();
    let late = [(5, bytes_of(&plain, 5)), (7, bytes_of(&plain, 7))];
    assert_eq!(attempts(&plain).unwrap().0, [1, 2, 3, 4, 5, 6]);

    // Half of its first records may be there already, and only its opening seal in the end.
    for (zeros, head, begun) in [
        (0, 0, &late[1].1),
        (100_000, 0, &late[1].1),
        (0, 20, &late[1].1),
        (0, 50, &late[1].1),
        (100_000, 50, &opened),
    ] {
        for nth in 2..=3 {
            let early = [&early[..], &vec![0; zeros]].concat();
            let ahead = [&opened[..head], &vec![0; zeros]].concat();
            let dir = dir_with(&[(5, &early), (7, &ahead)]);
            let (now, late) = (dir.clone(), [(5, late[0].1.clone()), (7, begun.clone())]);
            let (seen, replay) = attempts(&at_open(&dir, 7, nth, move || {
                late.iter().for_each(|(n, bytes)| overwrite(&now, FileName::Wal(*n), bytes));
            }))
            .unwrap();
            let what = format!("{zeros} zeros, {head} bytes, open {nth}");
            assert_eq!((&seen[..], replay.last_seq), (&[1, 2, 3][..], 3), "{what}");
        }
    }
}

/// A close takes away the log that was made ahead, whatever a reader that has listed it is at.
#[test]
fn a_log_made_ahead_may_go_while_logs_are_read() {
    let first = log_with(5, 0, 1..=3);
    for nth in 1..=2 {
        let dir = dir_with(&[(5, &first), (7, &[])]);
        let now = dir.clone();
        let read = at_open(&dir, 7, nth, move || now.remove(FileName::Wal(7)).unwrap());
        assert_eq!(attempts(&read).unwrap().0, [1, 2, 3], "open {nth}");
    }
    // The only one that was listed may have held writes that are in tables now.
    let dir = dir_with(&[(7, &[])]);
    let now = dir.clone();
    let read = at_open(&dir, 7, 1, move || now.remove(FileName::Wal(7)).unwrap());
    assert!(attempts(&read).unwrap_err().is_corruption());
}

/// The directory as a reader sees it before whose open number `nth` of log `number` something happens.
fn at_open(dir: &Dir, number: u64, nth: u64, act: impl Fn() + Send + Sync + 'static) -> Dir {
    let (path, opens) = (dir.path_of(FileName::Wal(number)), Mutex::new(0));
    let fs = FaultFs::new(dir.fs().clone(), move |op| {
        if op.name == "open" && op.path == path {
            *opens.lock() += 1;
            if *opens.lock() == nth {
                act();
            }
        }
        None
    });
    Dir::new(Arc::new(fs), dir.path())
}

/// The next log is made ahead and empty, or has begun; zeros that the last one goes on with are no cut.
#[test]
fn zeros_at_the_ends_of_logs_cut_nothing_off() {
    let (first, second) = (log_with(5, 0, 1..=3), log_with(9, 3, 4..=5));
    let zeros = |log: &[u8]| [log, &[0; 100_000]].concat();
    let logs = [(5, zeros(&first)), (7, zeros(&[])), (9, zeros(&second)), (11, vec![])];
    for count in 1..=logs.len() {
        let logs: Vec<(u64, &[u8])> = logs[..count].iter().map(|(n, b)| (*n, &b[..])).collect();
        let (seen, replay) = attempts(&dir_with(&logs)).unwrap();
        assert_eq!((seen.len(), replay.cut), (if count < 3 { 3 } else { 5 }, None), "{count}");
    }
    // Write 3 was lost, and zeros are where it was: what follows does not count.
    let short = zeros(&log_with(5, 0, 1..=2));
    let lost = dir_with(&[(5, &short), (7, &[]), (9, &second)]);
    let (seen, replay) = attempts(&lost).unwrap();
    assert_eq!((seen, replay.cut.unwrap().dropped_logs), (vec![1, 2], vec![7, 9]));
}

/// The bytes of a log that names none before it.
fn log_with(number: u64, last_seq: Seq, writes: std::ops::RangeInclusive<Seq>) -> Vec<u8> {
    let dir = mem_dir();
    let mut wal = create(&dir, number, None, last_seq);
    writes.for_each(|seq| put(&mut wal, seq).unwrap());
    wal.write_out().unwrap();
    bytes_of(&dir, number)
}
