//! A bound on the bytes per second that background work moves, with flushes first.
//!
//! A caller that moves bytes says so afterwards and is told when it may go on; it is not blocked, it
//! waits as it can. What is not moved at once may be made up for a short while only.
//!
//! Two accounts: all bytes, and those of flushes. A compaction waits until all are paid for, a flush
//! only for flushes; so flushes have the whole rate when they want it, and compactions what is left.
//!
//! ```text
//!   10 MB/s; at 0 s a compaction has moved 5 MB                 -> go on at 0.5 s
//!            at 0 s a flush has moved 2 MB: flushes owe 0.2 s   -> go on at 0.2 s
//!            the compaction asks again: 7 MB are owed           -> go on at 0.7 s
//! ```
//!
//! A tuned limiter finds a rate below its limit by itself: it raises it while nearly all of it is
//! used and lowers it while much is not, once a second, between a twentieth of the limit and all of
//! it; so that work which could spread does not come in bursts. (The idea is RocksDB's auto-tuned
//! rate limiter.)
//!
//! Keeps: what is told depends on the calls and their times alone.
//! Leaves to others: the clock.

use std::time::Duration;

use crate::clock::Mono;
use crate::sync::Mutex;

/// Whose bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Writers wait for it.
    First,
    /// It waits for the others.
    Rest,
}

/// How the rate is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// It is the limit.
    Fixed,
    /// It follows what is used of it.
    Auto,
}

/// Time whose bytes may be made up for.
const BURST: Duration = Duration::from_millis(20);
/// How often a tuned rate is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// The limit over the least tuned rate.
const SPAN: u64 = 20;

/// The accounts. Cheap to ask; one lock, held for a few additions.
#[derive(Debug)]
pub struct RateLimiter(Mutex<State>);

#[derive(Debug)]
struct State {
    limit: u64,
    tuning: Tuning,
    /// Bytes per second now; 0 for no limit.
    rate: u64,
    /// When all bytes moved so far are paid for.
    all: Mono,
    /// The same of the first lane by itself.
    first: Mono,
    /// Since when `moved` is counted.
    since: Mono,
    moved: u64,
}

impl RateLimiter {
    /// At most `limit` bytes per second; 0 for no limit.
    pub fn new(limit: u64, tuning: Tuning) -> RateLimiter {
        let (all, first, since) = (Mono::ZERO, Mono::ZERO, Mono::ZERO);
        let rate = first_rate(limit, tuning);
        RateLimiter(Mutex::new(State { limit, tuning, rate, all, first, since, moved: 0 }))
    }

    /// Another limit from now on. What is owed under the old one is forgotten.
    pub fn set(&self, limit: u64, tuning: Tuning) {
        let mut state = self.0.lock();
        if (state.limit, state.tuning) != (limit, tuning) {
            (state.limit, state.tuning) = (limit, tuning);
            state.rate = first_rate(limit, tuning);
            (state.all, state.first) = (Mono::ZERO, Mono::ZERO);
        }
    }

    /// Bytes per second now; 0 for no limit.
    pub fn rate(&self) -> u64 {
        self.0.lock().rate
    }

    /// `bytes` were moved by `now`; when `lane` may go on, `None` for at once.
    pub fn moved(&self, now: Mono, bytes: u64, lane: Lane) -> Option<Mono> {
        let mut state = self.0.lock();
        if state.rate == 0 {
            return None;
        }
        state.tune(now, bytes);
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(state.rate);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let earliest = Mono(now.0.saturating_sub(BURST.as_nanos() as u64));
        state.all = state.all.max(earliest) + cost;
        if lane == Lane::First {
            state.first = state.first.max(earliest) + cost;
        }
        let until = match lane {
            Lane::First => state.first,
            Lane::Rest => state.all,
        };
        (until > now).then_some(until)
    }
}

fn first_rate(limit: u64, tuning: Tuning) -> u64 {
    match tuning {
        Tuning::Fixed => limit,
        Tuning::Auto => limit.div_ceil(2),
    }
}

impl State {
    fn tune(&mut self, now: Mono, bytes: u64) {
        if self.tuning == Tuning::Fixed {
            return;
        }
        self.moved += bytes;
        let spent = now.since(self.since);
        if spent < PERIOD {
            return;
        }
        let could = u128::from(self.rate) * spent.as_nanos() / 1_000_000_000;
        let (moved, could) = (u128::from(self.moved), could.max(1));
        if moved * 10 >= could * 9 {
            self.rate = self.rate.saturating_add(self.rate / 4 + 1);
        } else if moved * 2 < could {
            self.rate -= self.rate / 5;
        }
        self.rate = self.rate.clamp((self.limit / SPAN).max(1), self.limit);
        (self.since, self.moved) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn compactions_wait_for_all_and_flushes_for_flushes() {
        let limiter = RateLimiter::new(10_000_000, Tuning::Fixed);
        let at = |ms: u64| Mono(100_000 * MS + ms * MS);
        // 20 ms are forgiven.
        assert_eq!(limiter.moved(at(0), 5_000_000, Lane::Rest), Some(at(480)));
        assert_eq!(limiter.moved(at(0), 2_000_000, Lane::First), Some(at(180)));
        assert_eq!(limiter.moved(at(0), 0, Lane::Rest), Some(at(680)));
        assert_eq!(limiter.moved(at(700), 0, Lane::Rest), None);
        limiter.set(0, Tuning::Fixed);
        assert_eq!(limiter.moved(at(700), u64::MAX, Lane::Rest), None);
    }

    /// Bytes moved in 60 s by who always goes on as soon as it may, a megabyte at a time.
    fn greedy(limiter: &RateLimiter) -> u64 {
        let (mut now, mut moved) = (Mono(0), 0);
        while now < Mono(60_000 * MS) {
            moved += 1_000_000;
            now = limiter.moved(now, 1_000_000, Lane::Rest).unwrap_or(now);
        }
        moved
    }

    #[test]
    fn the_rate_is_kept_over_time() {
        let moved = greedy(&RateLimiter::new(10_000_000, Tuning::Fixed));
        assert!((600_000_000..=602_000_000).contains(&moved), "{moved}");
    }

    #[test]
    fn a_tuned_rate_follows_what_is_used() {
        let limiter = RateLimiter::new(100_000_000, Tuning::Auto);
        assert_eq!(limiter.rate(), 50_000_000);
        greedy(&limiter);
        assert_eq!(limiter.rate(), 100_000_000, "all of it was wanted");
        for second in 60..120 {
            limiter.moved(Mono(second * 1000 * MS), 1000, Lane::Rest);
        }
        assert_eq!(limiter.rate(), 5_000_000, "hardly any was");
        let slow = RateLimiter::new(0, Tuning::Auto);
        assert_eq!(slow.moved(Mono(0), 1 << 40, Lane::First), None);
    }
}
