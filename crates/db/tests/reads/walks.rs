//! `DbIter::walk` gives what `next` gives, whatever lies in the way of a stretch of plain values.

use std::ops::ControlFlow;
use std::sync::Arc;

use lithify::merge::Append;
use lithify::{Builder, Db, DbIter, ReadOptions, Snapshot};
use lithify_base::Kind;

use crate::common::tiny;

fn key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = format!("{:04}", rng.u32(0..400)).into_bytes();
    key.truncate(rng.usize(2..5));
    key
}

/// A step of a life with all kinds of entries, most of them values.
fn step(db: &Db, rng: &mut fastrand::Rng, kinds: &[Kind]) {
    let key = key(rng);
    match kinds[rng.usize(..kinds.len())] {
        Kind::Value => db.put(key, vec![b'v'; rng.usize(0..60)]).unwrap(),
        Kind::Delete | Kind::SingleDelete => db.delete(key).unwrap(),
        Kind::Merge => db.merge(key, b"+").unwrap(),
        Kind::RangeDelete => {
            let end = [&key[..], b"3"].concat();
            db.delete_range(key, end).unwrap();
        }
    }
}

fn by_steps(mut iter: DbIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        all.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().unwrap();
    all
}

/// In pieces, each of which stops at an entry that the next one begins with; now and then a plain step.
fn by_walks(mut iter: DbIter, rng: &mut fastrand::Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let end = all.len() + rng.usize(0..200);
        let mut stopped_at = None;
        iter.walk(|key, value| {
            if all.len() == end {
                stopped_at = Some((key.to_vec(), value.to_vec()));
                return ControlFlow::Break(());
            }
            all.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
        let here = iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec()));
        assert_eq!(here, stopped_at, "it stands where it was told to stop");
        if iter.valid() && rng.bool() {
            all.push(here.unwrap());
            iter.next();
        }
    }
    iter.status().unwrap();
    all
}

#[test]
fn a_walk_gives_what_steps_give() {
    use Kind::{Delete, Merge, RangeDelete, Value};
    let lives: [&[Kind]; 4] = [
        &[Value],
        &[Value, Value, Value, Delete],
        &[Value, Value, Value, Delete, Merge],
        &[Value, Value, Value, Value, Value, Value, Delete, Merge, RangeDelete],
    ];
    for (seed, kinds) in (0..).zip(lives) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let scratch = tempfile::tempdir().unwrap();
        let builder = Builder::new(tiny()).merge_operator(Arc::new(Append::default()));
        let db = builder.open(scratch.path().join("db")).unwrap();
        let mut snapshots: Vec<Snapshot> = Vec::new();
        let mut given = 0;
        for _ in 0..40 {
            for _ in 0..rng.usize(1..300) {
                step(&db, &mut rng, kinds);
            }
            match rng.u8(0..6) {
                0 => db.flush().unwrap(),
                1 => db.compact_range(None, None).unwrap(),
                2 => snapshots.push(db.snapshot()),
                _ => {}
            }
            let mut options = match snapshots.get(rng.usize(0..4)) {
                Some(snapshot) => ReadOptions::at(snapshot),
                None => ReadOptions::default(),
            };
            if rng.bool() {
                options = options.with_bounds(Some(key(&mut rng)), Some(key(&mut rng)));
            }
            let wanted = by_steps(db.iter_opt(&options).unwrap());
            let walked = by_walks(db.iter_opt(&options).unwrap(), &mut rng);
            assert_eq!(walked, wanted);
            given += walked.len();
        }
        assert!(given > 1000, "{given}");
        drop(snapshots);
        db.close().unwrap();
    }
}
