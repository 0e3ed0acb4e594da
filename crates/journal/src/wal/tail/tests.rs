use lithify_base::CfId;

use super::*;
use crate::wal::seal::head_of;
use crate::wal::{BatchBuilder, RecordWriter, SealReason};

const LOG: u64 = 12;

/// A log under construction: batches of one entry, seals, raw bytes.
#[derive(Default)]
struct Log {
    writer: RecordWriter,
    bytes: Vec<u8>,
    next_seq: Seq,
}

impl Log {
    fn new() -> Log {
        Log { next_seq: 1, ..Log::default() }
    }
    fn batch(&mut self, value: &[u8]) -> u64 {
        let mut b = BatchBuilder::new();
        b.put(CfId(0), b"key", value);
        b.set_sequence(self.next_seq);
        self.next_seq += 1;
        self.writer.append(b.as_bytes(), &mut self.bytes);
        self.bytes.len() as u64
    }
    fn seal(&mut self, synced: u64) -> u64 {
        let (at, last) = (self.bytes.len() as u64, self.next_seq - 1);
        let seal = Seal {
            reason: SealReason::Group,
            log_number: LOG,
            offset: at,
            synced,
            last_seq: last,
            head: Some(head_of(&self.bytes)),
        };
        seal.append(&mut self.writer, &mut self.bytes).offset
    }
}

fn walk(bytes: &[u8]) -> (Vec<Seq>, WalWalk<'_>) {
    let mut walk = WalWalk::new(bytes, LOG, SeqRule::Contiguous);
    let mut seqs = Vec::new();
    while let Some(batch) = walk.next_batch().unwrap() {
        assert_eq!(batch.view().unwrap().sequence(), batch.first_seq);
        seqs.push(batch.first_seq);
    }
    (seqs, walk)
}

fn verdict(bytes: &[u8]) -> Verdict {
    walk(bytes).1.verdict(&Promise::default())
}

#[test]
fn the_rule_as_a_table() {
    use Verdict::{Clean, Corruption, TornTail};
    let bad = |offset| Some(Damage { offset, what: What::Checksum });
    let corrupt = |offset, what| Corruption { offset, what };
    // len, good end, damage, sealed, manifest promise, successor -> verdict
    let rows = [
        (100, 100, None, 0, 0, None, Clean),
        (100, 100, None, 100, 100, Some((100, 5)), Clean),
        (100, 60, bad(60), 0, 0, None, TornTail { cut_at: 60 }),
        (100, 60, bad(75), 60, 60, None, TornTail { cut_at: 60 }),
        (100, 60, bad(75), 61, 0, None, corrupt(75, What::Checksum)),
        (100, 60, bad(60), 0, 61, None, corrupt(60, What::Checksum)),
        (100, 60, bad(60), 0, 0, Some((100, 5)), corrupt(60, What::Checksum)),
        (100, 100, None, 0, 150, None, corrupt(100, What::CutShort)),
        (100, 100, None, 0, 0, Some((150, 5)), corrupt(100, What::CutShort)),
        (100, 100, None, 0, 0, Some((100, 6)), corrupt(100, What::Sequence)),
        (100, 100, None, 0, 0, Some((60, 5)), corrupt(60, What::Misplaced)),
        (0, 0, None, 0, 0, None, Clean),
        (0, 0, None, 0, 0, Some((0, 5)), Clean),
    ];
    for (i, (len, good_end, damage, sealed, synced, end, expected)) in rows.into_iter().enumerate()
    {
        let promise = Promise { synced, end };
        let found = Findings { len, good_end, damage, ends_in_zeros: false, sealed, last_seq: 5 };
        assert_eq!(judge(&found, &promise), expected, "row {i}");
        // Zeros to the end are no torn tail, and what was promised is missing all the same.
        let zeros = Findings { ends_in_zeros: damage.is_some(), ..found };
        let expected = if matches!(expected, TornTail { .. }) { Clean } else { expected };
        assert_eq!(judge(&zeros, &promise), expected, "row {i}");
    }
}

/// A log that is written through a mapping goes on with zeros. One that lacks a promised record there is as bad as one that
/// was cut.
#[test]
fn zeros_behind_the_last_record_are_no_damage() {
    let mut log = Log::new();
    log.batch(b"one");
    let end = log.batch(&[0; 100]);
    let zeros = Promise::default();
    for more in [0, 1, 6, 7, 60, 40_000, 3 << 20] {
        let mut bytes = log.bytes.clone();
        bytes.resize(bytes.len() + more, 0);
        let (_, found) = walk(&bytes);
        assert_eq!(found.findings().good_end, end, "{more}");
        assert_eq!(found.verdict(&zeros), Verdict::Clean, "{more}");
        let promised = Promise { synced: end + 1, end: None };
        let missing =
            matches!(found.verdict(&promised), Verdict::Corruption { offset, .. } if offset == end);
        assert!(missing, "{more}");
        // One byte of anything else, and it is torn.
        bytes.extend_from_slice(&[0, 0, 1]);
        assert_eq!(walk(&bytes).1.verdict(&zeros), Verdict::TornTail { cut_at: end }, "{more}");
    }
}

/// Each bit of a sealed log is flipped: below the promise always corruption, above it a cut that
/// keeps every whole batch before it. (Fault F11.)
#[test]
fn every_flipped_bit_is_judged_by_the_promise() {
    let mut log = Log::new();
    log.batch(b"one");
    let synced = log.batch(b"two");
    log.seal(synced);
    log.batch(b"three");
    assert_eq!(verdict(&log.bytes), Verdict::Clean);
    for bit in 0..log.bytes.len() * 8 {
        let mut bytes = log.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match verdict(&bytes) {
            Verdict::Corruption { .. } => assert!((bit as u64) < synced * 8, "bit {bit}"),
            Verdict::TornTail { cut_at } => {
                assert!(bit as u64 >= synced * 8 && cut_at >= synced, "bit {bit}");
            }
            Verdict::Clean => panic!("bit {bit} passed unnoticed"),
        }
    }
}

#[test]
fn any_truncation_is_torn_or_breaks_the_manifests_promise() {
    let mut log = Log::new();
    let first = log.batch(b"one");
    log.batch(&[7; 40_000]);
    for cut in (0..log.bytes.len()).step_by(7) {
        let (_, walk) = walk(&log.bytes[..cut]);
        let promised = Promise { synced: first, end: None };
        let corrupt = matches!(walk.verdict(&promised), Verdict::Corruption { .. });
        assert_eq!(corrupt, (cut as u64) < first, "cut {cut}");
        assert!(!matches!(walk.verdict(&Promise::default()), Verdict::Corruption { .. }));
    }
}

#[test]
fn a_hole_above_every_promise_is_cut_though_good_records_follow() {
    let mut log = Log::new();
    let synced = log.batch(b"one");
    log.seal(synced);
    let hole = log.batch(b"two") as usize;
    log.batch(b"three");
    log.bytes[hole - 1] ^= 1;
    let sealed_end = synced + (HEADER_SIZE + Seal::ENCODED_LEN) as u64;
    assert_eq!(verdict(&log.bytes), Verdict::TornTail { cut_at: sealed_end });
    // A later seal that promises the hole was synced makes it corruption.
    let at = log.bytes.len() as u64;
    log.seal(at);
    assert!(
        matches!(verdict(&log.bytes), Verdict::Corruption { offset, .. } if offset == sealed_end)
    );
}

/// Writes that skipped the log leave a jump, which only a seal makes legal; none goes back.
#[test]
fn numbers_jump_only_where_a_seal_says_so() {
    let mut log = Log::new();
    log.batch(b"one");
    log.next_seq = 5;
    let mut unannounced = Log { next_seq: 5, ..Log::default() };
    unannounced.bytes.clone_from(&log.bytes);
    unannounced.writer = log.writer;
    unannounced.batch(b"five");
    assert_eq!(walk(&unannounced.bytes).1.findings().damage.unwrap().what, What::Sequence);
    log.seal(0);
    let announced = log.bytes.len();
    log.batch(b"five");
    let (seqs, good) = walk(&log.bytes);
    assert_eq!((seqs, good.next_seq()), (vec![1, 5], Some(6)));
    assert_eq!(good.verdict(&Promise::default()), Verdict::Clean);
    let (seqs, sealed) = walk(&log.bytes[..announced]);
    assert_eq!((seqs, sealed.findings().last_seq), (vec![1], 4));
    log.next_seq = 3;
    log.seal(0);
    assert_eq!(walk(&log.bytes).1.findings().damage.unwrap().what, What::Sequence);
    log.bytes.truncate(announced);
    log.writer = RecordWriter::at(announced as u64);
    log.next_seq = 4;
    log.batch(b"four again");
    assert_eq!(walk(&log.bytes).1.findings().damage.unwrap().what, What::Sequence);
}

#[test]
fn swapped_duplicated_and_foreign_records_are_damage() {
    let mut log = Log::new();
    let a = log.batch(b"one") as usize;
    let b = log.batch(b"two") as usize;
    let c = log.batch(b"six") as usize;
    let (one, two, six) = (&log.bytes[..a], &log.bytes[a..b], &log.bytes[b..c]);
    for order in [[one, six, two], [one, one, two], [one, two, two]] {
        let bytes = order.concat();
        let (seqs, walk) = walk(&bytes);
        assert!(seqs.len() < 3);
        assert_eq!(walk.findings().damage.unwrap().what, What::Sequence);
    }
    let mut rising = WalWalk::new(&log.bytes[a..], LOG, SeqRule::Rising);
    while rising.next_batch().unwrap().is_some() {}
    assert_eq!((rising.next_seq(), rising.verdict(&Promise::default())), (Some(4), Verdict::Clean));
}

#[test]
fn seals_are_bound_to_log_and_offset() {
    let mut log = Log::new();
    let at = log.batch(b"one");
    log.seal(at);
    let mut shifted = Log::new();
    shifted.batch(b"some other");
    shifted.bytes.extend_from_slice(&log.bytes[at as usize..]);
    assert_eq!(walk(&shifted.bytes).1.findings().damage.unwrap().what, What::Misplaced);
    let mut other = WalWalk::new(&log.bytes, LOG + 1, SeqRule::Contiguous);
    while other.next_batch().unwrap().is_some() {}
    assert_eq!(other.findings().damage.unwrap().what, What::Misplaced);
    assert_eq!(other.findings().sealed, 0);
}

/// A value may hold the bytes of a seal: it promises nothing, even behind damage.
#[test]
fn a_seal_inside_a_value_promises_nothing() {
    let mut inner = Log::new();
    let at = inner.batch(b"one");
    inner.seal(at);
    let mut log = Log::new();
    let first = log.batch(b"first") as usize;
    let seal_bytes = inner.bytes[at as usize..].to_vec();
    log.batch(&seal_bytes);
    log.bytes[first - 1] ^= 1;
    assert_eq!(verdict(&log.bytes), Verdict::TornTail { cut_at: 0 });
}

#[test]
fn a_malformed_batch_is_judged_by_the_promise() {
    // An unsynced block may come back with what another file left in it: a manifest's record.
    let mut log = Log::new();
    let at = log.batch(b"one");
    log.writer.append(b"short", &mut log.bytes);
    assert_eq!(verdict(&log.bytes), Verdict::TornTail { cut_at: at });
    log.seal(log.bytes.len() as u64);
    let expected = Verdict::Corruption { offset: at, what: What::Malformed };
    assert_eq!(verdict(&log.bytes), expected);
    let e = expected.into_result(0).unwrap_err();
    assert!(e.is_corruption() && e.offset() == Some(at));
}

#[test]
fn predecessors_come_first_and_are_older() {
    let p = Predecessor { log_number: 9, size: 1000, last_seq: 0 };
    let mut log = Log::new();
    p.append(&mut log.writer, &mut log.bytes);
    log.batch(b"one");
    let (seqs, good) = walk(&log.bytes);
    assert_eq!((seqs, good.predecessor()), (vec![1], Some(p)));
    p.append(&mut log.writer, &mut log.bytes);
    assert_eq!(walk(&log.bytes).1.findings().damage.unwrap().what, What::Misplaced);
    let mut own = Log::new();
    Predecessor { log_number: LOG, ..p }.append(&mut own.writer, &mut own.bytes);
    assert_eq!(walk(&own.bytes).1.findings().damage.unwrap().what, What::Misplaced);
}

/// A record of a deleted log before the seal that opens this one: each is whole, and they do not belong
/// together.
#[test]
fn a_seal_knows_the_record_that_the_log_began_with() {
    let p = Predecessor { log_number: 9, size: 77, last_seq: 0 };
    let mut log = Log::new();
    p.append(&mut log.writer, &mut log.bytes);
    log.seal(0);
    let begun = log.bytes.len() as u64;
    log.batch(b"one");
    assert_eq!(verdict(&log.bytes), Verdict::Clean);

    let mut other = Vec::new();
    Predecessor { log_number: 3, ..p }.append(&mut RecordWriter::new(), &mut other);
    let mut mixed = log.bytes.clone();
    mixed[..other.len()].copy_from_slice(&other);
    let (seqs, found) = walk(&mixed);
    let damage = Damage { offset: other.len() as u64, what: What::Misplaced };
    assert_eq!((seqs, found.findings().damage), (vec![], Some(damage)));

    // A promise counts all the same: the record that was promised is bad.
    log.seal(begun);
    mixed.extend_from_slice(&log.bytes[mixed.len()..]);
    let offset = other.len() as u64;
    assert_eq!(verdict(&mixed), Verdict::Corruption { offset, what: What::Misplaced });
}

#[test]
fn a_closing_seal_is_seen() {
    let mut log = Log::new();
    let at = log.batch(b"one");
    let head = Some(head_of(&log.bytes));
    let reason = SealReason::Close;
    let seal = Seal { reason, log_number: LOG, offset: at, synced: at, last_seq: 1, head };
    seal.append(&mut log.writer, &mut log.bytes);
    assert!(walk(&log.bytes).1.was_closed());
    log.batch(b"two");
    assert!(!walk(&log.bytes).1.was_closed());
}
