//! Tables from outside with merge operands: they combine with what is there and with what comes, under
//! the operator that they name, or under any if they name none.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{scan, tiny};
use lithify::merge::{Add, Max};
use lithify::{Builder, Db, ErrorKind, IngestOptions, MergeOperatorRef, TableBuilder};
use lithify_env::{Env, RtOptions};

fn world() -> Env {
    Env::in_memory(RtOptions::default())
}

fn builder(env: &Env, operator: Option<MergeOperatorRef>) -> Builder {
    let builder = Builder::new(tiny()).env(env.clone());
    match operator {
        Some(operator) => builder.merge_operator(operator),
        None => builder,
    }
}

fn adding(env: &Env) -> Builder {
    builder(env, Some(Arc::new(Add)))
}

fn take_in(db: &Db, path: &str) -> lithify::Result<()> {
    db.ingest(&[path], &IngestOptions::default())
}

fn bytes(n: u64) -> Vec<u8> {
    n.to_le_bytes().to_vec()
}

#[test]
fn operands_from_outside_combine_with_what_is_there() {
    for named in [true, false] {
        let env = world();
        let mut db = adding(&env).open("db").unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for round in 0..12 {
            for _ in 0..60 {
                let (key, n) = (vec![b'k', rng.u8(0..50)], rng.u64(0..1000));
                match rng.u8(0..4) {
                    0 => {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    }
                    1 => {
                        db.put(&key, bytes(n)).unwrap();
                        model.insert(key, n);
                    }
                    _ => {
                        db.merge(&key, bytes(n)).unwrap();
                        *model.entry(key).or_default() += n;
                    }
                }
            }
            let path = format!("{round}.sst");
            let mut table = match named {
                true => db.table_builder(&path).unwrap(),
                false => builder(&env, None).table(&path).unwrap(),
            };
            for n in 0..50 {
                let (key, value) = (vec![b'k', n], rng.u64(0..1000));
                match rng.u8(0..6) {
                    0 => {
                        table.put(&key, bytes(value)).unwrap();
                        model.insert(key, value);
                    }
                    1 => {
                        table.delete(&key).unwrap();
                        model.remove(&key);
                    }
                    2 | 3 => {
                        table.merge(&key, bytes(value)).unwrap();
                        *model.entry(key).or_default() += value;
                    }
                    _ => {}
                }
            }
            table.finish().unwrap();
            take_in(&db, &path).unwrap();
            match rng.u8(0..4) {
                0 => db.compact_range(None, None).unwrap(),
                1 => {
                    db.close().unwrap();
                    db = adding(&env).open("db").unwrap();
                }
                _ => {}
            }
            let shown = scan(&db).unwrap();
            let expected = model.iter().map(|(key, n)| (key.clone(), bytes(*n))).collect();
            assert_eq!(shown, expected, "named: {named}, round {round}");
        }
        db.close().unwrap();
    }
}

fn with_operand(mut table: TableBuilder) {
    table.merge(b"key", bytes(7)).unwrap();
    table.finish().unwrap();
}

#[test]
fn operands_for_another_operator_are_refused_by_its_name() {
    let env = world();
    let max = || builder(&env, Some(Arc::new(Max)));
    with_operand(max().table("max.sst").unwrap());
    with_operand(builder(&env, None).table("any.sst").unwrap());
    let refused = |db: &Db, path: &str, word: &str| {
        let error = take_in(db, path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(db.get(b"key").unwrap().is_none(), "nothing was taken in");
    };
    let db = builder(&env, None).open("without").unwrap();
    refused(&db, "max.sst", "`MaxOperator`");
    refused(&db, "any.sst", "has no merge operator");
    db.close().unwrap();
    let db = adding(&env).open("adding").unwrap();
    refused(&db, "max.sst", "`MaxOperator`");
    take_in(&db, "any.sst").unwrap();
    db.close().unwrap();
    // From here on it is an operand of this database's, which no other operator gets to see.
    let error = max().open("adding").unwrap_err();
    assert!(error.to_string().contains("`UInt64AddOperator`"), "{error}");
    let db = adding(&env).open("adding").unwrap();
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&bytes(7)[..]));
    db.close().unwrap();
    let db = max().open("largest").unwrap();
    take_in(&db, "max.sst").unwrap();
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&bytes(7)[..]));
    db.close().unwrap();
}
