use lithify_base::ErrorKind;

use super::*;

fn file(level: Level, number: u64) -> WireFile {
    let bound = |k: &[u8]| [k, &[1, 1, 0, 0, 0, 0, 0, 0]].concat();
    WireFile {
        level,
        number,
        size: 10,
        smallest: bound(b"a"),
        largest: bound(b"z"),
        smallest_seq: 1,
        largest_seq: 1,
        epoch: number,
        ..WireFile::default()
    }
}

fn edit(added: &[WireFile], deleted: &[(Level, u64)]) -> WireEdit {
    WireEdit { added: added.to_vec(), deleted: deleted.to_vec(), ..WireEdit::default() }
}

fn base() -> WireEdit {
    WireEdit {
        db_id: Some("id".to_owned()),
        comparator: Some("leveldb.BytewiseComparator".to_owned()),
        log_number: Some(3),
        next_file: Some(20),
        last_seq: Some(5),
        ..WireEdit::default()
    }
}

fn manifest(edits: &[WireEdit]) -> Vec<u8> {
    let (mut out, mut w) = (Vec::new(), RecordWriter::new());
    edits.iter().for_each(|e| w.append(&e.to_vec(), &mut out));
    out
}

fn files(read: &ManifestRead) -> Vec<u64> {
    read.state.families[&CfId(0)].files.keys().copied().collect()
}

#[test]
fn replay_of_a_snapshot_is_the_state() {
    let mut state = ManifestState::default();
    for e in [
        base(),
        edit(&[file(0, 7), file(0, 8)], &[]),
        WireEdit { cf: CfId(4), cf_add: Some("m".to_owned()), max_cf: Some(4), ..base() },
        WireEdit { cf: CfId(4), bucket_hint: Some(vec![1]), ..edit(&[file(2, 9)], &[]) },
        edit(&[file(1, 7)], &[(0, 7)]), // a move: delete and add of one number
        WireEdit {
            cursors: vec![(1, vec![0; 9])],
            wal_additions: vec![
                WalAddition { number: 2, synced: None },
                WalAddition { number: 11, synced: Some(77) },
                WalAddition { number: 11, synced: Some(50) },
            ],
            min_log_to_keep: Some(3),
            sections_from: Some(2),
            wals_deleted_below: Some(3),
            ..WireEdit::default()
        },
    ] {
        state.apply(&e).unwrap();
    }
    assert_eq!(state.wals, BTreeMap::from([(11, Some(77))]));
    let (bytes, mut writer) = state.to_manifest(5);
    let read = read_manifest(&bytes, bytes.len() as u64).unwrap();
    assert_eq!(read.state, state);
    assert_eq!((read.good_end, read.verdict), (bytes.len() as u64, Verdict::Clean));
    assert_eq!(read.state.to_manifest(5).0, bytes, "equal states give equal bytes");

    // What a deleted manifest left behind, sums and all, is no edit of this one; neither is a
    // record of a log, which would not even decode.
    let next = WireEdit { next_file: Some(99), ..WireEdit::default() };
    let mut other = state.to_manifest(4).1;
    for remnant in [1, 2, 3] {
        let (mut tail, mut own) = (bytes.clone(), writer);
        match remnant {
            1 => other.append(&next, &mut tail),
            2 => RecordWriter::at(tail.len() as u64).append(&101u64.to_le_bytes(), &mut tail),
            _ => {
                // A record of its own that stands one place too far behind.
                own.append(&next, &mut Vec::new());
                own.append(&next, &mut tail);
            }
        }
        let read = read_manifest(&tail, 0).unwrap();
        assert_eq!(read.state, state, "remnant {remnant}");
        assert_eq!(read.verdict, Verdict::TornTail { cut_at: bytes.len() as u64 });
    }
    let mut longer = bytes.clone();
    writer.append(&next, &mut longer);
    assert_eq!(read_manifest(&longer, 0).unwrap().state.next_file, 99);
}

#[test]
fn contradictions_are_corruption() {
    for (bad, says) in [
        (edit(&[], &[(0, 7)]), "not there"),
        (edit(&[file(0, 6), file(0, 6)], &[]), "twice"),
        (edit(&[file(0, 5)], &[]), "twice"),
        (edit(&[], &[(1, 5)]), "not there"),
        (WireEdit { cf: CfId(9), ..edit(&[file(0, 8)], &[]) }, "unknown column family"),
        (WireEdit { cf_add: Some("x".to_owned()), ..WireEdit::default() }, "twice"),
        (WireEdit { cf_drop: true, ..WireEdit::default() }, "default"),
        (WireEdit { comparator: Some("other".to_owned()), ..WireEdit::default() }, "comparator"),
    ] {
        let bytes = manifest(&[base(), edit(&[file(0, 5)], &[]), bad]);
        let e = read_manifest(&bytes, 0).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(says), "{e}");
    }
}

#[test]
fn required_fields() {
    for missing in ["next file number", "log number", "last sequence number"] {
        let mut e = base();
        match missing {
            "next file number" => e.next_file = None,
            "log number" => e.log_number = None,
            _ => e.last_seq = None,
        }
        let e = read_manifest(&manifest(&[e]), 0).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(missing), "{e}");
    }
    assert!(read_manifest(&[], 0).unwrap_err().is_corruption());
}

#[test]
fn an_atomic_group_is_all_or_nothing() {
    let part =
        |remaining, n| WireEdit { group_remaining: Some(remaining), ..edit(&[file(0, n)], &[]) };
    let edits = [base(), part(2, 7), part(1, 8), part(0, 9)];
    let all = manifest(&edits);
    assert_eq!(files(&read_manifest(&all, 0).unwrap()), [7, 8, 9]);
    let cut = manifest(&edits[..3]);
    let read = read_manifest(&cut, 0).unwrap();
    let base_end = manifest(&edits[..1]).len() as u64;
    assert!(files(&read).is_empty());
    assert_eq!(read.verdict, Verdict::TornTail { cut_at: base_end });
    let e = read_manifest(&manifest(&[base(), part(1, 7), base()]), 0).unwrap_err();
    assert!(e.to_string().contains("interrupted"), "{e}");
}

#[test]
fn torn_tails_keep_a_prefix_and_promises_are_kept() {
    let edits = [base(), edit(&[file(0, 7)], &[]), edit(&[file(0, 8)], &[])];
    let bytes = manifest(&edits);
    let two = manifest(&edits[..2]).len();
    for cut in two..bytes.len() {
        let read = read_manifest(&bytes[..cut], two as u64).unwrap();
        assert_eq!((files(&read), read.good_end), (vec![7], two as u64), "cut {cut}");
        assert!(read_manifest(&bytes[..cut], bytes.len() as u64).unwrap_err().is_corruption());
    }
    let mut flipped = bytes.clone();
    flipped[two + 9] ^= 4;
    assert_eq!(files(&read_manifest(&flipped, two as u64).unwrap()), [7]);
    assert!(read_manifest(&flipped, bytes.len() as u64).unwrap_err().is_corruption());
}

#[test]
fn refusals_name_the_place() {
    let bytes = manifest(&[base()]);
    let mut out = bytes.clone();
    RecordWriter::at(bytes.len() as u64).append(&[0x90, 0x03], &mut out);
    let e = read_manifest(&out, 0).unwrap_err();
    assert_eq!((e.kind(), e.offset()), (ErrorKind::Unsupported, Some(bytes.len() as u64)));
    assert!(e.to_string().contains("blob"), "{e}");
}
