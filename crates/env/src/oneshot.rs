//! One value from one job to the thread that waits for it.
//!
//! Keeps: the receiver's ticket completes exactly once, when the value is there or when the sender
//! is gone without one, so that no thread waits for a job that panicked or was dropped with its
//! runtime.

use crate::sync::{Arc, Mutex};
use crate::ticket::Ticket;

/// The end that gives the value.
#[derive(Debug)]
pub struct Sender<T> {
    ticket: Ticket,
    slot: Arc<Mutex<Option<T>>>,
}

/// The end that waits for it.
#[must_use = "the value comes through `take`"]
#[derive(Debug)]
pub struct Receiver<T> {
    ticket: Ticket,
    slot: Arc<Mutex<Option<T>>>,
}

/// The two ends for one value.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let (ticket, slot) = (Ticket::new(), Arc::new(Mutex::new(None)));
    (Sender { ticket: ticket.clone(), slot: Arc::clone(&slot) }, Receiver { ticket, slot })
}

impl<T> Sender<T> {
    /// Gives the value. A second one is dropped.
    pub fn send(&self, value: T) {
        if !self.ticket.is_done() {
            *self.slot.lock() = Some(value);
            self.ticket.complete();
        }
    }

    /// Whether the value was given.
    pub fn is_sent(&self) -> bool {
        self.ticket.is_done()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.ticket.complete();
    }
}

impl<T> Receiver<T> {
    /// Completes when the value is there or will never be.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Whether waiting is over.
    pub fn is_done(&self) -> bool {
        self.ticket.is_done()
    }

    /// The value; `None` if it is not there, or will never be.
    pub fn take(self) -> Option<T> {
        self.slot.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_arrives_once() {
        let (sender, receiver) = oneshot();
        assert!(!receiver.is_done() && !sender.is_sent());
        sender.send(1);
        sender.send(2);
        assert!(receiver.is_done() && sender.is_sent());
        assert_eq!(receiver.take(), Some(1));
    }

    #[test]
    fn none_waits_for_a_sender_that_is_gone() {
        let (sender, receiver) = oneshot::<u8>();
        drop(sender);
        assert!(receiver.is_done());
        assert_eq!(receiver.take(), None);
    }
}
