//! Writes whose keys count them: what is left of a database must be the first ones.

use lithify::Db;
use lithify_sim::world::whole;

/// The value of write number `n`, counted from 0, whose key is the number.
pub(crate) fn value(n: u32) -> Vec<u8> {
    n.to_be_bytes().into_iter().cycle().take(600).collect()
}

/// How many writes are there, which must be the first ones.
pub(crate) fn written(db: &Db, what: &str) -> u32 {
    let mut next = 0u32;
    for (key, shown) in whole(db).unwrap() {
        assert_eq!(*key, next.to_be_bytes(), "{what}");
        assert!(*shown == *value(next), "{what}: {next} has another value");
        next += 1;
    }
    next
}
