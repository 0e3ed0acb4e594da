//! Several keys at once answer as each alone, and read less.
#![allow(clippy::disallowed_methods, reason = "the database runs on real threads")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::eager;
use lithify::{Builder, Db, IngestOptions, Policy, ReadOptions};
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};

fn key(n: u32) -> Vec<u8> {
    format!("{n:05}").into_bytes()
}

type Answers = Vec<Option<Vec<u8>>>;
type Ask = fn(&Db, &[Vec<u8>], &ReadOptions) -> Answers;

fn one_by_one(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> Answers {
    keys.iter().map(|k| db.get_opt(k, options).unwrap().map(Vec::from)).collect()
}

fn together(db: &Db, keys: &[Vec<u8>], options: &ReadOptions) -> Answers {
    let found = db.multi_get_opt(keys, options).unwrap();
    found.into_iter().map(|value| value.map(Vec::from)).collect()
}

#[test]
fn several_keys_answer_as_each_alone_and_read_less() {
    let (mut alone, mut shared) = (0, 0);
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let mut rng = fastrand::Rng::with_seed(i as u64);
        let reads = Arc::new(AtomicU64::new(0));
        let counted = reads.clone();
        let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
            counted.fetch_add(u64::from(op.name == "read_at"), Ordering::Relaxed);
            None
        });
        let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 4, ..RtOptions::default() }));
        let env = Env { fs: Arc::new(fs), rt };
        let settings = eager(policy, &mut rng);
        let builder = || Builder::new(settings.clone()).env(env.clone());
        let db = builder().open("db").unwrap();
        let mut snapshots = Vec::new();
        for round in 0..40u32 {
            for _ in 0..150 {
                let k = key(rng.u32(0..5000));
                match rng.u8(0..20) {
                    0 => db.delete(&k).unwrap(),
                    1 => db.delete_range(&k, [&k[..4], b"~"].concat()).unwrap(),
                    _ => db.put(&k, vec![round as u8; rng.usize(0..900)]).unwrap(),
                }
            }
            if round % 8 == 7 {
                let path = Path::new("outside.sst");
                let mut table = builder().table(path).unwrap();
                let from = rng.u32(0..4000);
                (from..from + 200).for_each(|n| table.put(key(n), b"outside").unwrap());
                table.finish().unwrap();
                db.ingest(&[path], &IngestOptions { transfer: lithify::Transfer::Move }).unwrap();
                snapshots.push(db.snapshot());
            }
        }
        db.flush().unwrap();
        db.wait_idle(None).unwrap();
        for round in 0..30 {
            // Some near each other, some far, some twice, in no order.
            let near = rng.u32(0..4900);
            let mut keys: Vec<Vec<u8>> = (near..near + rng.u32(1..100)).map(key).collect();
            keys.extend((0..rng.u32(0..50)).map(|_| key(rng.u32(0..6000))));
            rng.shuffle(&mut keys);
            let options = match round % 3 {
                0 => ReadOptions::default(),
                _ => ReadOptions::at(&snapshots[rng.usize(..snapshots.len())]),
            };
            assert_eq!(together(&db, &keys, &options), one_by_one(&db, &keys, &options));
            // What is asked for first pays for the blocks of both: so each begins without any.
            let spent = |ask: Ask| {
                let cold = builder().open_read_only("db").unwrap();
                let before = reads.load(Ordering::Relaxed);
                ask(&cold, &keys, &ReadOptions::default());
                reads.load(Ordering::Relaxed) - before
            };
            shared += spent(together);
            alone += spent(one_by_one);
        }
        drop(snapshots);
        db.close().unwrap();
    }
    eprintln!("reads of the file: {alone} one by one, {shared} together");
    assert!(shared < alone, "{alone} one by one, {shared} together");
}
