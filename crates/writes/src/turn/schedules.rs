//! The turn under chosen schedules (`cargo xtask shuttle`).

use lithify_base::{CfId, ErrorKind};
use lithify_env::sync::atomic::{AtomicBool, Ordering::SeqCst};
use lithify_env::{OsRt, RtOptions};
use lithify_testkit::schedules::{explore, thread};

use super::*;

fn batch(key: u8) -> BatchBuilder {
    let mut b = BatchBuilder::new();
    b.put(CfId(0), &[key], b"v");
    b
}

/// What the holder owns: the writes done, and whether someone has it.
struct Token {
    written: u64,
    held: Arc<AtomicBool>,
}

impl Token {
    fn write(&mut self, count: u32) {
        assert!(!self.held.swap(true, SeqCst), "two hold the turn");
        self.written += u64::from(count);
        self.held.store(false, SeqCst);
    }
}

fn turn() -> Arc<Turn<Token>> {
    Arc::new(Turn::new(Box::new(Token { written: 0, held: Arc::default() })))
}

/// Writes once; whether it led.
fn write(turn: &Turn<Token>, rt: &OsRt, key: u8) -> Result<bool> {
    if let Some(mut token) = turn.take_soon(rt) {
        let group = turn.gather(|_| true);
        token.write(1 + group.iter().map(|w| w.batch.count()).sum::<u32>());
        turn.pass_on(token);
        group.iter().for_each(|w| w.serve(Ok(())));
        return Ok(true);
    }
    match turn.wait(rt, batch(key), Durability::Os) {
        (_, Outcome::Served(result)) => result.map(|()| false),
        (own, Outcome::Yours(mut token)) => {
            let group = turn.gather(|_| true);
            assert!(group.iter().all(|w| !Arc::ptr_eq(w, &own)), "a leader serves itself");
            token.write(1 + group.iter().map(|w| w.batch.count()).sum::<u32>());
            turn.pass_on(token);
            group.iter().for_each(|w| w.serve(Ok(())));
            Ok(true)
        }
    }
}

/// Every write is done once, by its own thread or by the holder, and the turn is handed over.
#[test]
fn the_turn_is_handed_over() {
    explore("the turn is handed over", || {
        let (turn, rt) = (turn(), Arc::new(OsRt::new(RtOptions::default())));
        let writers: Vec<_> = (0..4)
            .map(|key| {
                let (turn, rt) = (turn.clone(), rt.clone());
                thread::spawn(move || {
                    let led = (0..2).filter(|_| write(&turn, &rt, key).unwrap());
                    led.count()
                })
            })
            .collect();
        let led: usize = writers.into_iter().map(|w| w.join().unwrap()).sum();
        let token = turn.try_take().expect("the turn is free at the end");
        assert_eq!((token.written, turn.waiting.load(SeqCst)), (8, 0));
        led
    });
}

/// A close takes the turn in its turn; a writer that waits or comes later is refused.
#[test]
fn a_close_ends_the_turn() {
    explore("a close ends the turn", || {
        let (turn, rt) = (turn(), Arc::new(OsRt::new(RtOptions::default())));
        let writers: Vec<_> = (0..3)
            .map(|key| {
                let (turn, rt) = (turn.clone(), rt.clone());
                thread::spawn(move || match write(&turn, &rt, key) {
                    Ok(_) => 1,
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::ShuttingDown);
                        0
                    }
                })
            })
            .collect();
        let token = match turn.try_take() {
            Some(token) => token,
            None => match turn.wait(&*rt, BatchBuilder::new(), Durability::NoWal).1 {
                Outcome::Yours(token) => token,
                Outcome::Served(_) => panic!("one that wants the turn was served"),
            },
        };
        turn.close(Error::new(ErrorKind::ShuttingDown, "closed"));
        let done: u64 = writers.into_iter().map(|w| w.join().unwrap()).sum();
        assert_eq!(token.written, done, "a write was told wrongly how it ended");
        assert!(turn.try_take().is_none());
        done
    });
}
