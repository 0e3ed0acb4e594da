//! Spaces writes out at a rate that may change at any moment.
//!
//! Keeps: what passed at a rate is waited for at that rate, or at a higher one once there is one, and never longer than
//! at the rate it passed at. So a rate that jitters lets no more pass than its highest value does.
//!
//! ```text
//!   4 MiB pass at 4 MiB/s: the next write may pass in 1 s
//!   the rate falls to 2 MiB/s after 0.2 s: in 0.8 s, as before
//!   it rises to 4 MiB/s again:             in 0.8 s: they passed at that rate
//!   it rises to 8 MiB/s:                   in 0.4 s
//! ```

/// Delays shorter than this are saved up, nanoseconds: a sleep costs more than it spaces.
const SHORTEST_DELAY: u64 = 1_000_000;

/// When the next write may pass. Instants are in nanoseconds, as for [`Core::on`](crate::Core::on); rates in bytes per
/// second.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// When what has passed is waited for.
    next: u64,
    /// The rate that `next` is worked out by; 0 if nothing has passed.
    owed_at: u64,
    /// The rate of now; 0 if there is none.
    rate: u64,
}

impl Pacer {
    /// The rate from `now` on; without one nothing is waited for.
    pub fn press(&mut self, rate: Option<u64>, now: u64) {
        let Some(new) = rate.map(|rate| rate.max(1)) else {
            *self = Pacer::default();
            return;
        };
        if self.owed_at > 0 && new > self.owed_at {
            let owed = u128::from(self.owed(now)) * u128::from(self.owed_at) / u128::from(new);
            self.next = now + u64::try_from(owed).unwrap_or(u64::MAX);
            self.owed_at = new;
        }
        self.rate = new;
    }

    /// Whether the next write may pass.
    pub fn is_due(&self, now: u64) -> bool {
        self.owed(now) < SHORTEST_DELAY
    }

    /// How long it is until what has passed is waited for.
    fn owed(&self, now: u64) -> u64 {
        self.next.saturating_sub(now)
    }

    /// When the next write may pass at the rate of now, which is `rate`; `None` if it may at once.
    pub fn ask(&mut self, rate: u64, now: u64) -> Option<u64> {
        if !self.is_due(now) {
            return Some(self.next);
        }
        self.next = self.next.max(now);
        (self.owed_at, self.rate) = (rate.max(1), rate.max(1));
        None
    }

    /// Counts `bytes` that passed at the rate of now; none are counted without a rate.
    pub fn charge(&mut self, bytes: u64) {
        if self.rate > 0 {
            self.next = self.next.saturating_add(cost(bytes, self.rate));
            // Where both rates differ, too long a wait is the smaller fault.
            self.owed_at = self.owed_at.max(self.rate);
        }
    }
}

/// How long `bytes` take at `rate` bytes per second.
fn cost(bytes: u64, rate: u64) -> u64 {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_passed_is_waited_for_at_its_rate_or_a_higher_one() {
        let mut pacer = Pacer::default();
        pacer.press(Some(4 * MIB), 0);
        assert_eq!(pacer.ask(4 * MIB, 0), None);
        pacer.charge(4 * MIB);
        assert_eq!(pacer.owed(0), SECOND);
        pacer.press(Some(2 * MIB), SECOND / 5);
        assert_eq!(pacer.owed(SECOND / 5), SECOND * 4 / 5);
        pacer.press(Some(4 * MIB), SECOND / 5);
        assert_eq!(pacer.owed(SECOND / 5), SECOND * 4 / 5, "they passed at that rate");
        pacer.press(Some(8 * MIB), SECOND / 5);
        assert_eq!(pacer.owed(SECOND / 5), SECOND * 2 / 5);
        assert_eq!(pacer.ask(MIB, SECOND / 5), Some(SECOND * 3 / 5));
        pacer.press(None, SECOND / 5);
        assert_eq!(pacer.owed(SECOND / 5), 0, "without a rate nothing is waited for");
    }

    #[test]
    fn a_rate_that_jitters_lets_no_more_pass_than_its_highest_value() {
        let mut pacer = Pacer::default();
        let (mut passed, end) = (0, 60 * SECOND);
        for (turn, now) in (0..end).step_by(50_000_000).enumerate() {
            let rate = if turn % 2 == 0 { 3 * MIB } else { 5 * MIB };
            pacer.press(Some(rate), now);
            while pacer.ask(rate, now).is_none() {
                pacer.charge(4 * MIB);
                passed += 4 * MIB;
            }
        }
        assert!((3 * 60 * MIB..=5 * 60 * MIB + 4 * MIB).contains(&passed), "{} MiB", passed / MIB);
    }

    #[test]
    fn what_passes_without_being_asked_for_is_waited_for_too() {
        let mut pacer = Pacer::default();
        pacer.charge(MIB);
        assert_eq!(pacer.owed(0), 0, "there is no rate");
        pacer.press(Some(MIB), 0);
        assert_eq!(pacer.ask(MIB, 0), None);
        pacer.charge(MIB / 1024);
        pacer.charge(2 * MIB);
        assert_eq!(pacer.owed(0), 2 * SECOND + SECOND / 1024);
        let mut slowest = Pacer::default();
        assert_eq!(slowest.ask(0, 0), None);
        slowest.charge(u64::MAX);
        slowest.charge(u64::MAX);
        assert_eq!(slowest.owed(0), u64::MAX);
    }
}
