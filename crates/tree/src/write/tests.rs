//! The write turn, taken by several threads; [`gate`] has what stands before it.

mod gate;

use std::time::Duration;

use lithify_base::{CfId, Error, ErrorKind};
use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::{Class, Job, Mono, OsRt, Rt, RtOptions, Ticket, Wake};
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
                    if let Some(mut token) = turn.take_soon(rt) {
                        *token += 1;
                        turn.pass_on(token);
                        continue;
                    }
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

/// A runtime that tells when a thread is about to sleep, and in which something happens while one spins.
struct Watched<F> {
    real: OsRt,
    while_it_spins: F,
    sleeps: AtomicBool,
}

impl<F: Fn() + Send + Sync + 'static> Watched<F> {
    fn new(while_it_spins: F) -> Watched<F> {
        let (real, sleeps) = (OsRt::new(RtOptions::default()), AtomicBool::new(false));
        Watched { real, while_it_spins, sleeps }
    }
}

impl<F: Fn() + Send + Sync + 'static> Rt for Watched<F> {
    fn now(&self) -> Mono {
        self.real.now()
    }
    fn wall_seconds(&self) -> u64 {
        self.real.wall_seconds()
    }
    fn seed(&self, who: &str) -> u64 {
        self.real.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.real.spawn(class, job);
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.sleeps.store(true, Ordering::Release);
        self.real.park(ticket, deadline)
    }
    fn spin(&self, ready: &dyn Fn() -> bool) -> bool {
        (self.while_it_spins)();
        ready()
    }
    fn thread_cpu(&self) -> Duration {
        self.real.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.real.threads(class)
    }
}

#[test]
fn a_turn_that_is_free_soon_is_taken_without_a_sleep() {
    let turn = std::sync::Arc::new(Turn::new(Box::new(7)));
    let token = Mutex::new(turn.try_take());
    let holder = turn.clone();
    let rt = Watched::new(move || holder.pass_on(token.lock().take().expect("passed on once")));
    assert_eq!(turn.take_soon(&rt).as_deref(), Some(&7));
    assert!(turn.try_take().is_none(), "two hold the turn");
    assert!(!rt.sleeps.load(Ordering::Acquire));
}

#[test]
fn a_turn_that_stays_taken_is_not_waited_for_for_ever() {
    let turn = Turn::new(Box::new(7));
    let _token = turn.try_take().unwrap();
    assert!(turn.take_soon(&OsRt::new(RtOptions::default())).is_none());
}

#[test]
fn a_batch_that_is_larger_than_a_group_waits_for_its_own_turn() {
    let gathered = |value: usize| {
        let (turn, rt) = (Turn::new(Box::new(7)), Watched::new(|| {}));
        let token = turn.try_take().unwrap();
        let sleep = || {
            let mut large = BatchBuilder::new();
            large.put(CfId(0), b"k", &vec![0; value]);
            match turn.wait(&rt, large, Durability::Os).1 {
                Outcome::Yours(token) => turn.pass_on(token),
                Outcome::Served(result) => result.unwrap(),
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(sleep);
            while !rt.sleeps.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let group = turn.gather(|_| true);
            group.iter().for_each(|w| w.serve(Ok(())));
            turn.pass_on(token);
            group.len()
        })
    };
    assert_eq!((gathered(1000), gathered(2 << 20)), (1, 0));
}

#[test]
fn a_writer_that_spins_does_not_overtake_one_that_sleeps() {
    let (turn, rt) = (Turn::new(Box::new(7)), Watched::new(|| {}));
    let token = turn.try_take().unwrap();
    let sleep = || match turn.wait(&rt, batch(b"k"), Durability::Os).1 {
        Outcome::Yours(token) => turn.pass_on(token),
        Outcome::Served(_) => panic!("no holder gathered"),
    };
    std::thread::scope(|threads| {
        threads.spawn(sleep);
        while !rt.sleeps.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let mut spins = 0;
        let spinning = Watched::new(|| {});
        while spins < 100 && turn.take_soon(&spinning).is_none() {
            spins += 1;
        }
        assert_eq!(spins, 100, "the turn belongs to who sleeps");
        turn.pass_on(token);
    });
    assert!(turn.try_take().is_some(), "the sleeper had it, and left it free");
}
