use proptest::prelude::*;

use super::*;

const CF: CfId = CfId(0);

#[test]
fn bytes_are_rocksdbs() {
    let mut b = BatchBuilder::new();
    b.put(CF, b"k", b"vv");
    b.delete(CfId(300), b"d");
    b.log_data(b"n");
    b.set_sequence(0x0102);
    assert_eq!(
        b.as_bytes(),
        b"\x02\x01\0\0\0\0\0\0\x02\0\0\0\x01\x01k\x02vv\x04\xac\x02\x01d\x03\x01n"
    );
    assert_eq!((b.count(), b.sequence(), b.byte_len()), (2, 0x0102, 26));
}

#[test]
fn clear_keeps_nothing_but_memory() {
    let mut b = BatchBuilder::with_capacity(100);
    assert!(b.is_empty());
    b.put(CF, b"k", b"v");
    b.set_sequence(9);
    assert!(!b.is_empty());
    b.clear();
    assert_eq!(b, BatchBuilder::new());
}

#[test]
fn every_refused_kind_names_its_feature() {
    for (kinds, name) in [
        (&[0x12u8, 0x13, 0x15][..], "two-phase"),
        (&[0x10, 0x11], "blob"),
        (&[0x14, 0x18, 0x19], "timestamp"),
        (&[0x16, 0x17], "wide columns"),
    ] {
        for kind in kinds {
            let mut bytes = vec![0; BATCH_HEADER];
            bytes.push(*kind);
            let e = BatchView::parse(&bytes).unwrap_err();
            assert_eq!(e.kind(), lithify_base::ErrorKind::Unsupported, "{kind:#x}");
            assert!(e.to_string().contains(name), "{e}");
        }
    }
    let mut bytes = vec![0; BATCH_HEADER];
    bytes.push(0x40);
    assert!(BatchView::parse(&bytes).unwrap_err().is_corruption());
}

#[test]
fn counts_and_sequences_are_checked() {
    let mut b = BatchBuilder::new();
    b.put(CF, b"k", b"v");
    for count in [0u8, 2, 255] {
        let mut bytes = b.as_bytes().to_vec();
        bytes[8] = count;
        assert!(BatchView::parse(&bytes).unwrap_err().is_corruption());
    }
    for (seq, good) in [(MAX_SEQ, true), (MAX_SEQ + 1, false), (u64::MAX, false)] {
        let mut bytes = b.as_bytes().to_vec();
        bytes[..8].copy_from_slice(&seq.to_le_bytes());
        assert_eq!(BatchView::parse(&bytes).is_ok(), good, "{seq}");
    }
    // So is that of a batch of marks alone, which has no entries.
    b.clear();
    b.end_prepared(b"pay");
    for (seq, good) in [(MAX_SEQ, true), (MAX_SEQ + 1, false), (u64::MAX, false)] {
        let mut bytes = b.as_bytes().to_vec();
        bytes[..8].copy_from_slice(&seq.to_le_bytes());
        assert_eq!(BatchView::parse(&bytes).is_ok(), good, "{seq}");
    }
    b.clear();
    b.put(CF, b"k", b"v");
    // A no-op takes no sequence number and no bytes but its own.
    let mut bytes = b.as_bytes().to_vec();
    bytes.push(NOOP);
    assert_eq!(BatchView::parse(&bytes).unwrap().iter().count(), 1);
}

#[test]
fn every_truncation_is_refused() {
    let mut b = BatchBuilder::new();
    b.put(CfId(7), b"key", b"value");
    b.single_delete(CF, b"s");
    b.delete_range(CF, b"a", b"z");
    // A cut between entries is refused too: the count no longer matches.
    for cut in 0..b.byte_len() {
        let e = BatchView::parse(&b.as_bytes()[..cut]).unwrap_err();
        assert!(e.is_corruption(), "cut {cut}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32, Kind, Vec<u8>, Vec<u8>),
    Note(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let kind = prop::sample::select(vec![
        Kind::Value,
        Kind::Delete,
        Kind::Merge,
        Kind::SingleDelete,
        Kind::RangeDelete,
    ]);
    prop_oneof![
        9 => (prop_oneof![Just(0u32), any::<u32>()], kind, bytes(), bytes())
            .prop_map(|(cf, kind, k, v)| Step::Write(cf, kind, k, v)),
        1 => bytes().prop_map(Step::Note),
    ]
}

fn build(steps: &[Step]) -> BatchBuilder {
    let mut b = BatchBuilder::new();
    for s in steps {
        match s {
            Step::Write(cf, kind, k, v) => match kind {
                Kind::Value => b.put(CfId(*cf), k, v),
                Kind::Delete => b.delete(CfId(*cf), k),
                Kind::Merge => b.merge(CfId(*cf), k, v),
                Kind::SingleDelete => b.single_delete(CfId(*cf), k),
                Kind::RangeDelete => b.delete_range(CfId(*cf), k, v),
            },
            Step::Note(n) => b.log_data(n),
        }
    }
    b
}

proptest! {
    #[test]
    fn batches_round_trip_and_concatenate(
        a in prop::collection::vec(step(), 0..20),
        b in prop::collection::vec(step(), 0..20),
    ) {
        let mut joined = build(&a);
        let mark = joined.mark();
        joined.append(&build(&b));
        let first = build(&a);
        prop_assert_eq!(joined.view_to(mark), first.view());
        let mut cut = joined.clone();
        cut.truncate(mark);
        prop_assert_eq!(cut, first);
        joined.set_sequence(77);
        let view = BatchView::parse(joined.as_bytes()).unwrap();
        prop_assert_eq!(view, joined.view());
        prop_assert_eq!(BatchBuilder::from_bytes(joined.as_bytes().to_vec()).unwrap(), joined.clone());
        let steps: Vec<Step> = a.into_iter().chain(b).collect();
        prop_assert_eq!(joined.as_bytes()[8..].to_vec(), build(&steps).as_bytes()[8..].to_vec());
        let mut ops = view.iter_all();
        for s in &steps {
            match (s, ops.next()) {
                (Step::Note(n), Some(Op::LogData(got))) => prop_assert_eq!(&n[..], got),
                (Step::Write(cf, kind, k, v), Some(Op::Write(op))) => {
                    let value = if kind.is_delete() { &[][..] } else { &v[..] };
                    let expected = BatchOp { cf: CfId(*cf), kind: *kind, key: k, value };
                    prop_assert_eq!(op, expected);
                }
                (s, got) => prop_assert!(false, "{s:?} came back as {got:?}"),
            }
        }
        prop_assert_eq!(ops.next(), None);
        prop_assert_eq!(view.iter().count(), view.count() as usize);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(view) = BatchView::parse(&bytes) {
            prop_assert_eq!(view.iter().count(), view.count() as usize);
        }
    }
}

/// A batch knows whether it does more than put and delete keys, however it came about.
#[test]
fn a_batch_knows_whether_it_is_plain() {
    let special: [fn(&mut BatchBuilder); 2] =
        [|batch| batch.merge(CfId(0), b"k", b"v"), |batch| batch.delete_range(CfId(3), b"a", b"b")];
    for add in special {
        let mut batch = BatchBuilder::new();
        batch.put(CfId(0), b"k", b"v");
        batch.delete(CfId(2), b"k");
        batch.single_delete(CfId(0), b"k");
        batch.log_data(b"note");
        assert!(batch.is_plain());
        let before = batch.mark();
        add(&mut batch);
        assert!(!batch.is_plain());
        assert_eq!(BatchBuilder::from_bytes(batch.as_bytes().to_vec()).unwrap(), batch);
        let mut group = BatchBuilder::new();
        group.append(&batch);
        assert!(!group.is_plain());
        batch.truncate(before);
        assert!(batch.is_plain());
        group.clear();
        group.append(&batch);
        assert!(group.is_plain());
        assert!(BatchBuilder::from_bytes(group.as_bytes().to_vec()).unwrap().is_plain());
    }
}
