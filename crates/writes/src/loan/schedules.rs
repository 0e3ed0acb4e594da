//! Loans under chosen schedules (`cargo xtask shuttle`).

use lithify_env::sync::atomic::Ordering::SeqCst;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64};
use lithify_env::{OsRt, Rt, RtOptions};
use lithify_journal::wal::BatchBuilder;
use lithify_settings::Durability;
use lithify_testkit::schedules::{explore, thread};

use super::*;
use crate::turn::{Outcome, Turn};

/// What the holder of the turn owns, as a log does: the numbers given out, and what is lent.
struct Token {
    next: u64,
    mem: Lender<Vec<u64>>,
}

struct World {
    turn: Turn<Token>,
    rt: Arc<OsRt>,
    published: AtomicU64,
    read_only: AtomicBool,
}

impl World {
    fn new() -> Arc<World> {
        let rt = Arc::new(OsRt::new(RtOptions::default()));
        let token = Token { next: 1, mem: Lender::new(Vec::new(), rt.clone()) };
        let (published, read_only) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(World { turn: Turn::new(Box::new(token)), rt, published, read_only })
    }
    fn take(&self) -> Box<Token> {
        let rt: &dyn Rt = &*self.rt;
        match self.turn.take_soon(rt) {
            Some(token) => token,
            None => match self.turn.wait(rt, BatchBuilder::new(), Durability::NoWal).1 {
                Outcome::Yours(token) => token,
                Outcome::Served(_) => panic!("one that wants the turn was served"),
            },
        }
    }
    /// One write: a number under the turn, the rest behind it. `None` if it is refused; whether it was
    /// made.
    fn write(&self, panics: bool) -> Option<bool> {
        let mut token = self.take();
        if self.read_only.load(SeqCst) {
            self.turn.pass_on(token);
            return None;
        }
        let number = token.next;
        token.next += 1;
        if !token.mem.recall() {
            self.turn.pass_on(token);
            return Some(false);
        }
        let mut loan = token.mem.lend();
        self.turn.pass_on(token);
        if panics {
            self.read_only.store(true, SeqCst);
            return Some(false);
        }
        loan.get().push(number);
        let before = self.published.swap(number, SeqCst);
        assert_eq!(before + 1, number, "published out of turn");
        loan.give_back();
        Some(true)
    }
}

/// What is inserted behind the turn is inserted and published in the order of the turn; the next that wants
/// all of it waits for it.
#[test]
fn loans_keep_the_order_of_the_turn() {
    explore("loans keep the order of the turn", || {
        let world = World::new();
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || {
                    (0..2).for_each(|_| assert_eq!(world.write(false), Some(true)))
                })
            })
            .collect();
        let mut token = world.take();
        let seen = token.mem.get().len() as u64;
        assert_eq!((seen, world.published.load(SeqCst)), (token.next - 1, token.next - 1));
        world.turn.pass_on(token);
        writers.into_iter().for_each(|w| w.join().unwrap());
        let mut token = world.take();
        assert_eq!(token.mem.get()[..], [1, 2, 3, 4, 5, 6]);
        seen
    });
}

/// After a loan that was not given back nothing is inserted: who comes next is told, however far it was.
#[test]
fn a_torn_loan_ends_the_inserts() {
    explore("a torn loan ends the inserts", || {
        let world = World::new();
        let writers: Vec<_> = (0..3)
            .map(|who| {
                let world = world.clone();
                thread::spawn(move || (who, world.write(who == 0)))
            })
            .collect();
        let ends: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        let made = ends.iter().filter(|(_, end)| *end == Some(true)).count();
        let mut token = world.take();
        assert!(!token.mem.recall(), "torn, and not known");
        let expected: Vec<u64> = (1..=made as u64).collect();
        assert_eq!(*token.mem.get(), expected, "something is behind the torn one");
        assert_eq!(world.published.load(SeqCst), made as u64);
        made
    });
}
