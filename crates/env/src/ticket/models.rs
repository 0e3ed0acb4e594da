//! The ticket in every order of its threads, weak memory included (`cargo xtask loom`).

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::task::Wake as TaskWake;

use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::*;

/// What the completer writes and those who waited read: without order between the two, loom shows
/// the reader the old value, too.
struct Cargo(AtomicU32);

impl Cargo {
    fn new() -> Arc<Cargo> {
        Arc::new(Cargo(AtomicU32::new(0)))
    }
    fn load(&self) {
        self.0.store(7, Ordering::Relaxed);
    }
    fn unload(&self) {
        assert_eq!(self.0.load(Ordering::Relaxed), 7);
    }
}

#[test]
fn waiters_wake_and_see_what_was_written() {
    loom::model(|| {
        let (ticket, cargo) = (Ticket::new(), Cargo::new());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let (ticket, cargo) = (ticket.clone(), cargo.clone());
                thread::spawn(move || {
                    assert_eq!(ticket.block(None), Wake::Done);
                    cargo.unload();
                })
            })
            .collect();
        cargo.load();
        ticket.complete();
        waiters.into_iter().for_each(|w| w.join().unwrap());
    });
}

/// A thread that only looks is ordered behind the completion as well.
#[test]
fn a_look_is_enough() {
    loom::model(|| {
        let (ticket, cargo) = (Ticket::new(), Cargo::new());
        let looker = {
            let (ticket, cargo) = (ticket.clone(), cargo.clone());
            thread::spawn(move || {
                if ticket.is_done() {
                    cargo.unload();
                }
            })
        };
        cargo.load();
        ticket.complete();
        looker.join().unwrap();
    });
}

struct Bell(AtomicUsize);

impl TaskWake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Plain::SeqCst);
    }
}

/// A watcher is woken once, or told at once that there is nothing to wait for.
#[test]
fn a_watcher_is_woken_once() {
    loom::model(|| {
        let (ticket, bell) = (Ticket::new(), Arc::new(Bell(AtomicUsize::new(0))));
        let completers: Vec<_> = (0..2)
            .map(|_| {
                let ticket = ticket.clone();
                thread::spawn(move || ticket.complete())
            })
            .collect();
        let kept = ticket.watch(&Waker::from(bell.clone()));
        completers.into_iter().for_each(|c| c.join().unwrap());
        assert_eq!(bell.0.load(Plain::SeqCst), usize::from(kept));
        assert!(!ticket.watch(&Waker::from(bell)));
    });
}
