//! Torn tails and rot. A power loss keeps what was synced and any part of the rest: truncations at
//! every length and holes in unsynced bytes stand for it, and none of them may raise an alarm.

use lithify_journal::wal::{Predecessor, RecordWriter, Sections};

use super::*;

/// A log as it lies on disk, with the end of each of its groups.
#[derive(Clone)]
struct Written {
    number: u64,
    bytes: Vec<u8>,
    /// Attempts (equal to sequence numbers here) and where each ends.
    ends: Vec<(u64, u64)>,
}

/// Three logs of five groups each. If `synced`, groups 2, 7, 8, 12 and 13 are, each after the log
/// before was closed: then later seals vouch for the first two logs, and for the third up to 12.
/// Else nothing is, and no log is closed.
fn three_logs(synced: bool) -> Vec<Written> {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut out: Vec<Written> = Vec::new();
    let mut before: Option<WalEnd> = None;
    let mut closing: Option<WalWriter> = None;
    let mut seq = 0;
    for number in [5, 8, 11] {
        let mut wal = create(&dir, number, before.as_ref(), seq);
        let mut ends = Vec::new();
        for _ in 0..5 {
            seq += 1;
            put(&mut wal, seq).unwrap();
            wal.write_out().unwrap();
            ends.push((seq, wal.written()));
            if synced && matches!(seq, 2 | 7 | 8 | 12 | 13) {
                if let Some(old) = closing.take() {
                    old.close().unwrap();
                }
                wal.sync().unwrap();
            }
        }
        out.push(Written { number, bytes: Vec::new(), ends });
        before = Some(wal.end().unwrap());
        closing = Some(wal);
    }
    closing.unwrap().write_out().unwrap();
    for log in &mut out {
        log.bytes = bytes_of(&dir, log.number);
    }
    out
}

fn dir_of(logs: &[Written]) -> Dir {
    let logs: Vec<(u64, &[u8])> = logs.iter().map(|l| (l.number, &l.bytes[..])).collect();
    dir_with(&logs)
}

/// The attempts that are left if log `which` ends at `cut`: those before it, its own below the
/// cut, and the later ones if none of its own is lost.
fn left(logs: &[Written], which: usize, cut: u64) -> Vec<u64> {
    let own = &logs[which].ends;
    let mut left: Vec<u64> =
        logs[..which].iter().flat_map(|l| l.ends.iter().map(|e| e.0)).collect();
    left.extend(own.iter().filter(|e| e.1 <= cut).map(|e| e.0));
    if own.last().unwrap().1 <= cut {
        left.extend(logs[which + 1..].iter().flat_map(|l| l.ends.iter().map(|e| e.0)));
    }
    left
}

#[test]
fn any_unsynced_tail_may_go() {
    for synced in [false, true] {
        let logs = three_logs(synced);
        for which in 0..3 {
            // Seals of later logs; those of the log itself go with its tail.
            let vouched = synced && which < 2;
            for cut in 0..=logs[which].bytes.len() {
                let mut torn = logs.clone();
                torn[which].bytes.truncate(cut);
                let found = attempts(&dir_of(&torn));
                let expected = left(&logs, which, cut as u64);
                let what = format!("log {} cut at {cut}, synced: {synced}", logs[which].number);
                match found {
                    Ok((seen, _)) => {
                        assert_eq!(seen, expected, "{what}");
                        assert!(seen.len() == 15 || !vouched, "silent: {what}");
                    }
                    Err(e) => {
                        assert!(e.is_corruption() && vouched, "a false alarm: {what}: {e}");
                        let name = format!("{:06}.log", logs[which].number);
                        assert!(e.file().is_some_and(|f| f.ends_with(&name)), "{what}: {e}");
                    }
                }
            }
        }
    }
}

/// Each byte of the logs is garbled. What a seal promises is never lost in silence: either the
/// result is whole, or it is an error, or only groups behind every promise are gone.
#[test]
fn rot_below_a_promise_is_reported() {
    let logs = three_logs(true);
    let (mut reported, mut cut_off) = (0, 0);
    for which in 0..3 {
        for at in 0..logs[which].bytes.len() {
            let mut rotten = logs.clone();
            rotten[which].bytes[at] ^= 0x10;
            match attempts(&dir_of(&rotten)) {
                Ok((seen, _)) => {
                    assert!((1..=15).collect::<Vec<_>>().starts_with(&seen));
                    assert!(seen.len() >= 13, "log {} byte {at}: {seen:?}", logs[which].number);
                    cut_off += usize::from(seen.len() < 15);
                }
                Err(e) => {
                    assert!(e.is_corruption(), "{e}");
                    reported += 1;
                }
            }
        }
    }
    assert!(reported > 500 && cut_off > 50, "{reported} reported, {cut_off} cut off");
}

/// A hole in unsynced bytes with good records behind it is a reordered tail, not rot.
#[test]
fn holes_above_promises_are_cut() {
    let logs = three_logs(false);
    for which in 0..3 {
        for hole in (0..logs[which].bytes.len()).step_by(3) {
            let mut torn = logs.clone();
            let len = torn[which].bytes.len();
            torn[which].bytes[hole..len.min(hole + 20)].fill(0);
            // Bytes that were zero already make no hole.
            let mut pairs = torn[which].bytes.iter().zip(&logs[which].bytes);
            let Some(first) = pairs.position(|(a, b)| a != b) else { continue };
            let (seen, _) = attempts(&dir_of(&torn)).unwrap();
            assert_eq!(seen, left(&logs, which, first as u64), "hole at {first}");
        }
    }
}

#[test]
fn a_missing_log_is_named() {
    let logs = three_logs(false);
    for gone in [0, 1] {
        let mut rest = logs.clone();
        let number = rest.remove(gone).number;
        let e = attempts(&dir_of(&rest)).unwrap_err();
        assert!(e.is_corruption() && e.file().unwrap().ends_with(&format!("{number:06}.log")));
        assert_eq!(attempts_from(&dir_of(&rest), number + 1).unwrap().0.len(), 15 - 5 * (gone + 1));
        let none = BTreeMap::new();
        let (seen, replay) = attempts_known(&dir_of(&rest), 0, &none, OnRot::Salvage).unwrap();
        assert_eq!(seen.len(), 5 * gone);
        // With the first log gone nothing is left to say where the rest was cut.
        assert_eq!(replay.cut.is_some_and(|cut| cut.rot && cut.dropped_logs == [11]), gone == 1);
    }
    // The newest log is missed only by the manifest, if it knows that it was synced.
    let known = |size| BTreeMap::from([(11, size)]);
    let dir = dir_of(&logs[..2]);
    assert_eq!(attempts_known(&dir, 0, &known(None), OnRot::Refuse).unwrap().0.len(), 10);
    let e = attempts_known(&dir, 0, &known(Some(50)), OnRot::Refuse).unwrap_err();
    assert!(e.is_corruption() && e.file().unwrap().ends_with("000011.log"));
}

#[test]
fn the_manifest_may_promise() {
    let logs = three_logs(false);
    let mut torn = logs.clone();
    torn[2].bytes.truncate(logs[2].ends[3].1 as usize);
    for (size, fine) in [(logs[2].ends[3].1, true), (logs[2].ends[3].1 + 1, false)] {
        let known = BTreeMap::from([(11, Some(size))]);
        let found = attempts_known(&dir_of(&torn), 0, &known, OnRot::Refuse);
        assert_eq!(found.is_ok(), fine);
        let (seen, replay) = attempts_known(&dir_of(&torn), 0, &known, OnRot::Salvage).unwrap();
        assert_eq!((seen.len(), replay.cut.map(|cut| cut.rot)), (14, (!fine).then_some(true)));
    }
}

#[test]
fn salvage_keeps_what_lies_before_the_rot() {
    let logs = three_logs(true);
    let mut rotten = logs.clone();
    let at = logs[0].ends[2].1;
    rotten[0].bytes[at as usize - 1] ^= 1;
    let dir = dir_of(&rotten);
    let e = attempts(&dir).unwrap_err();
    assert!(e.is_corruption() && e.offset() == Some(logs[0].ends[1].1 + SEAL_BYTES), "{e}");
    let (seen, replay) = attempts_known(&dir, 0, &BTreeMap::new(), OnRot::Salvage).unwrap();
    let cut = replay.cut.unwrap();
    assert_eq!((seen, cut.log, cut.rot), (vec![1, 2], 5, true));
    assert_eq!(cut.dropped_logs, [8, 11]);
    // Zeros at their ends don't count.
    let end = |log: &[u8]| log.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let all: usize = logs.iter().map(|l| end(&l.bytes)).sum();
    assert_eq!(cut.dropped_bytes + cut.at, all as u64);
}

/// After a recovery gave up a log, the next one follows the log that was cut. The given-up log
/// never counts again, even if the newest one is lost again.
#[test]
fn logs_given_up_stay_given_up() {
    let logs = three_logs(false);
    let mut torn = logs.clone();
    torn[0].bytes.truncate(logs[0].ends[3].1 as usize - 1);
    let dir = dir_of(&torn);
    let (seen, first) = attempts(&dir).unwrap();
    assert_eq!(seen, [1, 2, 3]);
    assert_eq!(first.cut.as_ref().unwrap().dropped_logs, [8, 11]);
    let end = WalEnd::found(first.end().unwrap());
    let empty = create(&dir, 12, Some(&end), first.last_seq);
    drop(empty);
    let (seen, again) = attempts(&dir).unwrap();
    assert_eq!((seen, again.end()), (vec![1, 2, 3], first.end()));
    let mut wal = create(&dir, 13, Some(&WalEnd::found(again.end().unwrap())), again.last_seq);
    wal.append(group(4, 104).as_bytes(), 4).unwrap();
    wal.close().unwrap();
    let (seen, last) = attempts(&dir).unwrap();
    assert_eq!((seen, last.passed), (vec![1, 2, 3, 104], vec![8, 11, 12]));
}

/// Foreign logs have no seals: numbers may jump inside, and behind a torn log only the very next
/// number counts.
#[test]
fn foreign_logs() {
    let log = |seqs: &[u64]| {
        let (mut writer, mut bytes) = (RecordWriter::new(), Vec::new());
        for &seq in seqs {
            writer.append(group(seq, seq).as_bytes(), &mut bytes);
        }
        bytes
    };
    let first = log(&[1, 4, 5]);
    let whole = attempts(&dir_with(&[(5, &first), (8, &log(&[9, 12]))])).unwrap();
    assert_eq!((whole.0, whole.1.last_seq), (vec![1, 4, 5, 9, 12], 12));
    let torn = &first[..first.len() - 1];
    let (seen, replay) = attempts(&dir_with(&[(5, torn), (8, &log(&[9]))])).unwrap();
    assert_eq!((seen, replay.cut.unwrap().dropped_logs), (vec![1, 4], vec![8]));
    let (seen, replay) = attempts(&dir_with(&[(5, torn), (8, &log(&[5, 6]))])).unwrap();
    assert_eq!((seen, replay.cut), (vec![1, 4, 5, 6], None));
    let e = attempts(&dir_with(&[(5, &first), (8, &log(&[5]))])).unwrap_err();
    assert!(e.is_corruption());
}

/// RocksDB gives the numbers of a prepared transaction's writes to the mark that commits it, which has none in its record. The
/// log behind goes on with the number after them, also where old bytes end the one before.
#[test]
fn numbers_go_on_behind_a_commit_mark() {
    let (mut writer, mut first) = (RecordWriter::new(), Vec::new());
    let mut writes = BatchBuilder::new();
    for attempt in [2_u64, 3] {
        writes.put(CfId(0), format!("key{attempt}").as_bytes(), &attempt.to_le_bytes());
    }
    let mut section = BatchBuilder::section(&writes, b"pay").unwrap();
    section.set_sequence(2);
    for batch in [group(1, 1).as_bytes(), section.as_bytes(), &committed(2, b"pay")] {
        writer.append(batch, &mut first);
    }
    let mark = first.len();
    first.extend_from_slice(&[7; 100]);
    let second = foreign_log(None, &[group(4, 4).as_bytes()]);
    let (seen, replay) = effects(&dir_with(&[(5, &first), (8, &second)])).unwrap();
    assert_eq!((seen, replay.last_seq, replay.cut), (vec![1, 2, 3, 4], 4, None));
    // Without the mark, the numbers show that something is missing.
    first.truncate(mark - 1);
    let (seen, replay) = effects(&dir_with(&[(5, &first), (8, &second)])).unwrap();
    assert_eq!((seen, replay.cut.unwrap().dropped_logs), (vec![1], vec![8]));
}

/// What RocksDB says of the log before is the first number of its last record.
#[test]
fn rocksdb_names_the_first_number_of_the_last_record() {
    let mut three = group(2, 2);
    for attempt in [3_u64, 4] {
        three.put(CfId(0), format!("key{attempt}").as_bytes(), &attempt.to_le_bytes());
    }
    let next = |size: usize, last_seq, first: Seq| {
        let before = Predecessor { log_number: 5, size: size as u64, last_seq };
        foreign_log(Some(before), &[group(first, first).as_bytes()])
    };
    let first = foreign_log(None, &[group(1, 1).as_bytes(), three.as_bytes()]);
    let second = next(first.len(), 2, 5);
    let (seen, replay) = effects(&dir_with(&[(5, &first), (8, &second)])).unwrap();
    assert_eq!((seen, replay.cut), (vec![1, 2, 3, 4, 5], None));
    // A mark's number is the one behind it.
    let mut section = BatchBuilder::section(&group(2, 2), b"pay").unwrap();
    section.set_sequence(2);
    let (write, mark) = (group(1, 1), committed(2, b"pay"));
    let batches = [write.as_bytes(), section.as_bytes(), &mark];
    let first = foreign_log(None, &batches);
    let second = next(first.len(), 2, 3);
    let (seen, replay) = effects(&dir_with(&[(5, &first), (8, &second)])).unwrap();
    assert_eq!((seen, replay.cut), (vec![1, 2, 3], None));
    // Its length shows that the mark is missing: the section before has the same number.
    for len in foreign_log(None, &batches[..2]).len()..first.len() {
        let (seen, replay) = effects(&dir_with(&[(5, &first[..len]), (8, &second)])).unwrap();
        assert_eq!((seen, replay.cut.unwrap().dropped_logs), (vec![1], vec![8]), "{len} bytes");
    }
}

/// The batch with which RocksDB commits `name`: the mark, and no write.
fn committed(seq: Seq, name: &[u8]) -> Vec<u8> {
    let mut batch = BatchBuilder::new();
    batch.set_sequence(seq);
    let mut bytes = batch.as_bytes().to_vec();
    bytes.extend_from_slice(&[0x0b, name.len() as u8]);
    bytes.extend_from_slice(name);
    bytes
}

/// A log without seals.
fn foreign_log(before: Option<Predecessor>, batches: &[&[u8]]) -> Vec<u8> {
    let (mut writer, mut bytes) = (RecordWriter::new(), Vec::new());
    before.into_iter().for_each(|p| p.append(&mut writer, &mut bytes));
    batches.iter().for_each(|batch| writer.append(batch, &mut bytes));
    bytes
}

/// Replays everything; the attempts that took effect, in order.
fn effects(dir: &Dir) -> Result<(Vec<u64>, Replay)> {
    let (mut sections, mut seen) = (Sections::default(), Vec::new());
    let replay = replay(dir, 0..u64::MAX, &BTreeMap::new(), OnRot::Refuse, |_, batch| {
        let logged = batch.view()?;
        let effect = sections.take(&logged)?;
        let batch = effect.as_ref().map_or(logged, BatchBuilder::view);
        for op in batch.iter() {
            seen.push(u64::from_le_bytes(op.value.try_into().unwrap()));
        }
        Ok(batch.sequence() + u64::from(batch.count()))
    })?;
    Ok((seen, replay))
}

/// Blocks of another log, or of another place, are never taken for good ones.
#[test]
fn swapped_and_foreign_groups_are_damage() {
    let logs = three_logs(false);
    let log = &logs[2];
    let (b, c, d) = (log.ends[1].1 as usize, log.ends[2].1 as usize, log.ends[3].1 as usize);
    let mut swapped = logs.clone();
    let bytes = &log.bytes;
    swapped[2].bytes = [&bytes[..b], &bytes[c..d], &bytes[b..c], &bytes[d..]].concat();
    assert_eq!(attempts(&dir_of(&swapped)).unwrap().0, left(&logs, 2, b as u64));
    let mut renamed = three_logs(true);
    renamed[1].bytes = renamed[2].bytes.clone();
    assert!(attempts(&dir_of(&renamed)).is_err());
}

/// A block that was never synced may come back with the head of a deleted log in it. The log it
/// names is not the one before this one, and those between them count.
#[test]
fn the_head_of_a_deleted_log_names_none() {
    let logs = three_logs(true);
    let mut stale = logs.clone();
    stale[2].bytes = logs[1].bytes.clone();
    let kept: Vec<u64> = (1..=10).collect();
    assert_eq!(attempts(&dir_of(&stale)).unwrap().0, kept);
    // Only its first sector, or less: what it says of the log before it may be all that is left.
    for len in (1..=100).rev() {
        stale[2].bytes.truncate(len);
        assert_eq!(attempts(&dir_of(&stale)).unwrap().0, kept, "{len} bytes");
    }
}

/// The same with only the record that names the log before, and the log's own opening seal behind it: the
/// two do not belong together, though each is whole and in place.
#[test]
fn a_record_of_a_deleted_log_before_the_own_seal_names_none() {
    let logs = three_logs(true);
    let (mut record, mut other) = (Vec::new(), logs.clone());
    Predecessor { log_number: 3, size: 77, last_seq: 2 }
        .append(&mut RecordWriter::new(), &mut record);
    other[2].bytes[..record.len()].copy_from_slice(&record);

    let kept: Vec<u64> = (1..=10).collect();
    for len in (1..=logs[2].ends[1].1 as usize).rev() {
        other[2].bytes.truncate(len);
        let (seen, replay) = attempts_from(&dir_of(&other), 4).unwrap();
        assert_eq!((seen, replay.passed), (kept.clone(), vec![]), "{len} bytes");
    }
}

/// Only a seal lets a log pass others over: records of data behind its head do not.
#[test]
fn a_log_without_seals_passes_no_log_over() {
    let logs = three_logs(true);
    let (mut writer, mut bytes) = (RecordWriter::new(), Vec::new());
    Predecessor { log_number: 3, size: 77, last_seq: 2 }.append(&mut writer, &mut bytes);
    writer.append(group(11, 11).as_bytes(), &mut bytes);
    let mut other = logs.clone();
    other[2].bytes = bytes;
    let (seen, replay) = attempts_from(&dir_of(&other), 4).unwrap();
    assert_eq!((seen, replay.passed), ((1..=11).collect(), vec![]));
}

/// A log that follows one which is no longer needed: whatever lies between was given up before.
#[test]
fn logs_between_an_obsolete_one_and_its_follower_do_not_count() {
    let logs = three_logs(false);
    let dir = dir_of(&logs);
    let first = WalEnd::found(attempts(&dir_of(&logs[..1])).unwrap().1.end().unwrap());
    let mut wal = create(&dir, 12, Some(&first), 5);
    wal.append(group(6, 106).as_bytes(), 6).unwrap();
    wal.close().unwrap();
    let (seen, replay) = attempts_from(&dir, 8).unwrap();
    assert_eq!((seen, replay.passed), (vec![106], vec![8, 11]));
}

/// A record that takes no number, at the end of a log, is missed as any other is: what follows does not count.
#[test]
fn a_log_without_its_last_mark_is_not_whole() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut wal = create(&dir, 5, None, 0);
    put(&mut wal, 1).unwrap();
    wal.write_out().unwrap();
    let before = wal.written() as usize;
    let mut mark = BatchBuilder::new();
    mark.end_prepared(
        b"a transaction with a name of more than a seal's length, as those of clusters are",
    );
    mark.set_sequence(2);
    wal.append(mark.as_bytes(), 1).unwrap();
    wal.write_out().unwrap();
    let all = wal.written() as usize;
    let end = wal.end().unwrap();
    let mut next = create(&dir, 8, Some(&end), 1);
    put(&mut next, 2).unwrap();
    next.write_out().unwrap();
    let (first, second) = (bytes_of(&dir, 5), bytes_of(&dir, 8));
    let shown = |len: usize| attempts(&dir_with(&[(5, &first[..len]), (8, &second)])).unwrap().0;
    // Its closing seal is missing, which says nothing.
    assert_eq!(shown(all), [1, 2]);
    for len in before..all {
        assert_eq!(shown(len), [1], "{len} of {all} bytes");
    }
}
