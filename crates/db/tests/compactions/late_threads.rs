//! A job has told its outcome a moment before its thread lets go of it. What it holds then, functions of the user's
//! among it, must not outlive the close and the handles: what made them may be gone.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use lithify::{Builder, Comparator, Db};
use lithify_env::{Class, Env, MemFs, RtOptions};

use crate::common::tiny;
use crate::lingers::Lingers;

struct Own;

impl Comparator for Own {
    fn name(&self) -> &str {
        "own"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

fn work(db: &Db) {
    for round in 0..3u8 {
        for key in 0..200u32 {
            db.put(key.to_be_bytes(), [round; 1000]).unwrap();
        }
        db.flush().unwrap();
    }
}

#[test]
fn functions_of_the_user_end_with_the_handles() {
    let options = RtOptions { compact_threads: 2, ..RtOptions::default() };
    let rt = Lingers::new(options, &Class::ALL, Duration::from_millis(30));
    let env = Env { fs: Arc::new(MemFs::new()), rt: Arc::new(rt) };
    for _ in 0..3 {
        let order = Arc::new(Own);
        let db =
            Builder::new(tiny()).env(env.clone()).comparator(order.clone()).open("/db").unwrap();
        work(&db);
        db.close().unwrap();
        assert_eq!(Arc::strong_count(&order), 1, "nothing has it any more");
    }
}
