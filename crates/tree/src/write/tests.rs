//! The write turn, taken by several threads.

use lithify_base::{CfId, Error, ErrorKind};
use lithify_env::{OsRt, RtOptions};
use lithify_journal::wal::BatchBuilder;
use lithify_settings::Durability;
use lithify_writes::turn::{Outcome, Turn};

fn batch(key: &[u8]) -> BatchBuilder {
    let mut b = BatchBuilder::new();
    b.put(CfId(0), key, b"v");
    b
}

/// Every writer is either served once or holds the turn once, and no write is lost.
#[test]
fn every_writer_is_served_or_leads() {
    let rt = OsRt::new(RtOptions::default());
    let turn = Turn::new(Box::new(0u64));
    const EACH: u64 = 2000;
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let (turn, rt) = (&turn, &rt);
            s.spawn(move || {
                for _ in 0..EACH {
                    let mut token = match turn.wait(rt, batch(&[t]), Durability::Os) {
                        (_, Outcome::Served(r)) => {
                            r.unwrap();
                            continue;
                        }
                        (_, Outcome::Yours(token)) => token,
                    };
                    *token += 1;
                    for w in turn.gather(|_| true) {
                        *token += u64::from(w.batch.count());
                        w.serve(Ok(()));
                    }
                    turn.pass_on(token);
                }
            });
        }
    });
    assert_eq!(*turn.try_take().unwrap(), 4 * EACH);
}

#[test]
fn a_closed_turn_refuses_everyone() {
    let rt = OsRt::new(RtOptions::default());
    let turn = Turn::new(Box::new(()));
    let token = turn.try_take().unwrap();
    turn.close(Error::new(ErrorKind::ShuttingDown, "closed"));
    drop(token);
    let (_, outcome) = turn.wait(&rt, batch(b"k"), Durability::Os);
    assert!(matches!(outcome, Outcome::Served(Err(e)) if e.kind() == ErrorKind::ShuttingDown));
}
