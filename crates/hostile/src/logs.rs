//! Logs and manifests: records, batches, edits.

use lithify_base::bytewise;
use lithify_journal::manifest::{WireEdit, read_manifest};
use lithify_journal::wal::record::BLOCK_SIZE;
use lithify_journal::wal::{
    BatchBuilder, BatchView, Found, Op, Predecessor, Promise, RecordReader, RecordWriter, Seal,
    Sections, SeqRule, Verdict, WalWalk,
};
use lithify_store::manifest::{family_version, translate};

/// Reads records to the end, over every damage.
pub(super) fn records(bytes: &[u8]) {
    let mut reader = RecordReader::new(bytes, Some(7));
    let mut last = 0;
    // Each resumption moves on by a header at least, or by the rest of a block.
    let mut left = 2 * bytes.len() + BLOCK_SIZE;
    loop {
        left = left.checked_sub(1).expect("reading ends");
        match reader.next_record() {
            Found::Record(record) => {
                assert!(record.offset >= last && record.end > record.offset, "records move on");
                assert!(record.end <= bytes.len() as u64);
                last = record.end;
            }
            Found::Damage(damage) => {
                assert!(damage.offset <= bytes.len() as u64);
                if !reader.resume() {
                    break;
                }
            }
            Found::Refused(_) | Found::End => break,
        }
    }
}

/// Walks a log whose records have right sums: the input is payloads, each with its length and
/// type.
pub(super) fn walk(bytes: &[u8]) {
    let Some((&[rule, synced], rest)) = bytes.split_first_chunk() else { return };
    let rule = if rule & 1 == 0 { SeqRule::Rising } else { SeqRule::Contiguous };
    for log in [framed(rest), rest.to_vec()] {
        let mut walk = WalWalk::new(&log, 7, rule);
        let mut last = None;
        while let Ok(Some(batch)) = walk.next_batch() {
            let view = batch.view().expect("a yielded batch was checked");
            assert_eq!(view.iter().count() as u32, batch.count);
            assert!(last.is_none_or(|last| batch.first_seq > last) || batch.count == 0);
            last = Some((batch.first_seq + u64::from(batch.count)).saturating_sub(1)).max(last);
        }
        let found = walk.findings();
        assert!(found.good_end <= found.len && found.len == log.len() as u64);
        let mut again = WalWalk::new(&log, 7, rule);
        while let Ok(Some(_)) = again.next_batch() {}
        if let Ok(None) = again.next_batch() {
            let promise = Promise { synced: u64::from(synced), end: None };
            if let Verdict::TornTail { cut_at } = again.verdict(&promise) {
                assert!(cut_at >= u64::from(synced), "nothing promised is cut off");
            }
        }
    }
}

/// Records with right sums around pieces of `bytes`: a type byte, a length byte, a payload.
fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut writer) = (Vec::new(), RecordWriter::new());
    while let Some((&[kind, len], rest)) = bytes.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(len)));
        match kind % 4 {
            0 => writer.append_special(kind, payload, &mut out),
            1 => writer.append_special(0xC0, payload, &mut out),
            2 => writer.append_special(130, payload, &mut out),
            _ => writer.append(payload, &mut out),
        }
        bytes = rest;
    }
    out
}

pub(super) fn batch(bytes: &[u8]) {
    let mut room = [0; Seal::ENCODED_LEN];
    let _ = Seal::decode(bytes).map(|seal| assert_eq!(seal.encode(&mut room), bytes));
    let _ = Predecessor::decode(bytes).map(|before| assert_eq!(before.encode(), bytes));
    let Ok(view) = BatchView::parse(bytes) else {
        assert!(BatchBuilder::from_bytes(bytes.to_vec()).is_err());
        return;
    };
    if view.is_marked() {
        return marked(&view);
    }
    let mut built = BatchBuilder::new();
    for op in view.iter_all() {
        match op {
            Op::LogData(note) => built.log_data(note),
            Op::Write(op) => built.add(&op),
            Op::Mark(_) => unreachable!("it has none"),
        }
    }
    assert_eq!(built.count(), view.count());
    let again = BatchView::parse(built.as_bytes()).expect("what is built is sound");
    assert!(again.iter_all().eq(view.iter_all()), "a batch means what it says");
}

/// A batch with marks of two-phase commit: what takes effect with it is as sound.
fn marked(view: &BatchView<'_>) {
    let mut sections = Sections::default();
    let effect = sections.take(view).expect("there is memory").expect("it has marks");
    let again = BatchView::parse(effect.as_bytes()).expect("what takes effect is sound");
    assert!(!again.is_marked() && again.count() >= view.count());
    assert_eq!(view.iter().count(), view.count() as usize, "marks are no entries");
    for (name, open) in sections.into_open() {
        let section = BatchBuilder::section(&open, &name).expect("there is memory");
        let mut once_more = Sections::default();
        once_more.take(&section.view()).expect("there is memory");
        assert_eq!(once_more.into_open(), [(name, open)].into(), "a section stays what it is");
    }
}

/// A manifest whose records have right sums: the input is edits, each with its length; and the
/// input as it is.
pub(super) fn manifest(bytes: &[u8]) {
    for manifest in [framed_edits(bytes), bytes.to_vec()] {
        let Ok(read) = read_manifest(&manifest, 0) else { continue };
        assert!(read.good_end <= manifest.len() as u64);
        let (snapshot, _) = read.state.to_manifest(7);
        let again = read_manifest(&snapshot, 0).expect("a snapshot reads");
        assert_eq!(again.state, read.state, "a snapshot is what it was taken of");
        let mut state = read.state;
        state.families.values_mut().for_each(translate::order_foreign);
        for &cf in state.families.keys() {
            let _ = family_version(&state, cf, bytewise());
        }
    }
}

fn framed_edits(mut bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut writer) = (Vec::new(), RecordWriter::new());
    while let Some((&len, rest)) = bytes.split_first() {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(len)));
        writer.append(payload, &mut out);
        bytes = rest;
    }
    out
}

pub(super) fn edit(bytes: &[u8]) {
    let _ = translate::decode_hint(bytes).map(|map| {
        let again = translate::decode_hint(&translate::encode_hint(&map));
        assert!(again.is_some_and(|again| again == map));
    });
    let Ok(edit) = WireEdit::decode(bytes) else { return };
    let again = WireEdit::decode(&edit.to_vec()).expect("what is encoded decodes");
    assert_eq!(again, edit);
    for file in &edit.added {
        let _ = translate::file_meta(file, &*bytewise()).map(|meta| {
            assert_eq!(translate::wire_file(&meta).number, file.number);
        });
    }
}
