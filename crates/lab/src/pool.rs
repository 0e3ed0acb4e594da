//! The threads that transfer, by the rules of `env`'s lanes: of the transfers that are ready the most
//! urgent goes first, of equals the one that came first; the oldest goes once so many were picked
//! before it; and while one of the first urgency is under way, others get a quarter of the threads.
//!
//! Keeps: which transfer goes next is a function of what came before. A thread is taken from
//! [`Pool::pick`] to [`Pool::end`].

use std::collections::VecDeque;

/// Of flushes: writers wait for them.
pub const FIRST: u8 = u8::MAX;
/// Picks after which the oldest transfer goes whatever its urgency.
const PASSED_OVER: u64 = 64;
/// Different urgencies: those of compactions from 0 on, and the first.
const LINES: usize = 8;
/// While a transfer of the first urgency is under way, one in so many threads takes others.
const OTHERS: usize = 4;

/// Transfers that wait, and threads that are taken.
#[derive(Debug)]
pub struct Pool<T> {
    threads: usize,
    /// By urgency.
    ready: [VecDeque<Waiting<T>>; LINES],
    waiting: usize,
    picks: u64,
    arrivals: u64,
    first: usize,
    others: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    owner: u64,
    transfer: T,
    /// Picks, and arrivals, before it came.
    since: (u64, u64),
}

impl<T> Pool<T> {
    /// So many threads, at least one.
    pub fn new(threads: u32) -> Pool<T> {
        let threads = threads.max(1) as usize;
        let ready = std::array::from_fn(|_| VecDeque::new());
        Pool { threads, ready, waiting: 0, picks: 0, arrivals: 0, first: 0, others: 0 }
    }

    /// A transfer of `owner` waits for a thread.
    pub fn push(&mut self, urgency: u8, owner: u64, transfer: T) {
        self.arrivals += 1;
        let since = (self.picks, self.arrivals);
        self.waiting += 1;
        self.ready[line(urgency)].push_back(Waiting { owner, transfer, since });
    }

    /// What waits of `owner` gets another urgency.
    pub fn hurry(&mut self, owner: u64, urgency: u8) {
        let mut moved: Vec<Waiting<T>> = Vec::new();
        for line in &mut self.ready {
            let (own, rest) = std::mem::take(line).into_iter().partition(|w| w.owner == owner);
            *line = rest;
            moved.extend::<VecDeque<_>>(own);
        }
        let line = &mut self.ready[line(urgency)];
        line.extend(moved);
        line.make_contiguous().sort_by_key(|w| w.since);
    }

    /// The transfer that gets a thread now, if there is one; true if it is of the first urgency.
    pub fn pick(&mut self) -> Option<(T, bool)> {
        if self.waiting == 0 || self.first + self.others >= self.threads {
            return None;
        }
        let capped = self.first > 0 && self.others >= (self.threads / OTHERS).max(1);
        let there = || (0..LINES).filter(|&i| !self.ready[i].is_empty());
        let oldest = there().min_by_key(|&i| self.ready[i][0].since)?;
        let passed = self.picks - self.ready[oldest][0].since.0;
        let at = match !capped && passed >= PASSED_OVER {
            true => oldest,
            false => there().next_back()?,
        };
        let first = at == LINES - 1;
        if capped && !first {
            return None;
        }
        let picked = self.ready[at].pop_front()?;
        self.waiting -= 1;
        self.picks += 1;
        match first {
            true => self.first += 1,
            false => self.others += 1,
        }
        Some((picked.transfer, first))
    }

    /// A transfer has ended; `first` is what its pick said.
    pub fn end(&mut self, first: bool) {
        match first {
            true => self.first -= 1,
            false => self.others -= 1,
        }
    }
}

/// The line in which transfers of an urgency wait.
fn line(urgency: u8) -> usize {
    match urgency {
        FIRST => LINES - 1,
        other => usize::from(other).min(LINES - 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_goes_first_and_equals_in_order() {
        let mut pool = Pool::new(8);
        for (urgency, name) in [(1, "a"), (3, "b"), (3, "c"), (FIRST, "f")] {
            pool.push(urgency, 0, name);
        }
        let picked: Vec<_> = std::iter::from_fn(|| pool.pick()).collect();
        assert_eq!(picked, [("f", true), ("b", false), ("c", false)], "a waits for the end of f");
        pool.end(true);
        assert_eq!(pool.pick(), Some(("a", false)));
    }

    #[test]
    fn the_oldest_goes_after_so_many_others() {
        let mut pool = Pool::new(1);
        pool.push(1, 0, 1000);
        for i in 0..2 * PASSED_OVER {
            pool.push(2, 0, i);
            let (picked, first) = pool.pick().unwrap();
            pool.end(first);
            if picked == 1000 {
                return assert_eq!(i, PASSED_OVER);
            }
        }
        panic!("it never went");
    }

    #[test]
    fn a_raised_job_overtakes() {
        let mut pool = Pool::new(1);
        pool.push(2, 7, "b");
        pool.push(1, 8, "a");
        pool.hurry(8, 3);
        assert_eq!(pool.pick(), Some(("a", false)));
        assert_eq!(pool.pick(), None, "the thread is taken");
    }
}
