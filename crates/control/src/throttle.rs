//! How fast writers may go. The stall verdict is a pure function of the tree and the memtables
//! (`plan::stall`); this turns "slow down" into a rate that moves smoothly, by RocksDB's rules:
//! down by a fifth while debt grows, down by two fifths near the stop, up by a quarter while it
//! shrinks, and up again on recovery.

use lithify_plan::{Cause, Stall, Verdict};

/// Slowest rate, bytes per second.
const FLOOR: u64 = 16 << 10;

/// The verdict on writes, as writers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Writes wait until this cause is gone.
    pub stop: Option<Cause>,
    /// Writes are slowed to this many bytes per second for this cause.
    pub delay: Option<(u64, Cause)>,
}

impl Pressure {
    /// The cause of whichever stall is on.
    pub fn cause(&self) -> Option<Cause> {
        self.stop.or(self.delay.map(|d| d.1))
    }
}

/// The delay controller.
#[derive(Debug)]
pub(crate) struct Throttle {
    start_rate: u64,
    rate: u64,
    last_debt: u64,
    delaying: bool,
}

impl Throttle {
    pub(crate) fn new(start_rate: u64) -> Throttle {
        Throttle { start_rate, rate: start_rate, last_debt: 0, delaying: false }
    }

    /// The pressure for `stall`; `near_stop` if little is missing to a stop. Called when the tree
    /// or the memtables changed.
    pub(crate) fn judge(&mut self, stall: &Stall, near_stop: bool) -> Pressure {
        let debt = stall.debt;
        let pressure = match stall.verdict {
            Verdict::None => {
                if self.delaying {
                    // On recovery the next slow-down starts where this one was going.
                    self.rate = (self.rate + self.rate / 10 * 4).min(self.start_rate);
                }
                self.delaying = false;
                Pressure::default()
            }
            Verdict::Delay => {
                self.adjust(debt, near_stop);
                self.delaying = true;
                Pressure { stop: None, delay: stall.cause.map(|c| (self.rate, c)) }
            }
            Verdict::Stop => {
                self.adjust(debt, true);
                self.delaying = true;
                Pressure { stop: stall.cause, delay: None }
            }
        };
        self.last_debt = debt;
        pressure
    }

    fn adjust(&mut self, debt: u64, near_stop: bool) {
        if !self.delaying {
            return; // the first verdict of a slow-down starts at the current rate
        }
        let rate = self.rate;
        self.rate = if near_stop {
            rate / 10 * 6
        } else if debt > self.last_debt {
            rate / 10 * 8
        } else if debt < self.last_debt {
            rate / 8 * 10
        } else {
            rate
        }
        .clamp(FLOOR, self.start_rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(verdict: Verdict, debt: u64) -> Stall {
        Stall { verdict, cause: Some(Cause::L0Files), l0_depth: 0, debt }
    }

    #[test]
    fn the_rate_follows_the_debt() {
        let mut t = Throttle::new(1000 * FLOOR);
        let rate = |p: Pressure| p.delay.map(|d| d.0 / FLOOR);
        let delay = |debt| stall(Verdict::Delay, debt);
        assert_eq!(t.judge(&stall(Verdict::None, 5), false), Pressure::default());
        assert_eq!(rate(t.judge(&delay(10), false)), Some(1000), "starts at its rate");
        assert_eq!(rate(t.judge(&delay(11), false)), Some(800), "debt grew");
        assert_eq!(rate(t.judge(&delay(11), false)), Some(800), "debt stood");
        assert_eq!(rate(t.judge(&delay(9), false)), Some(1000), "debt shrank");
        assert_eq!(rate(t.judge(&delay(9), true)), Some(600), "little is missing to a stop");
        assert_eq!(t.judge(&stall(Verdict::Stop, 9), false).stop, Some(Cause::L0Files));
        assert_eq!(t.judge(&stall(Verdict::None, 0), false), Pressure::default());
        assert_eq!(rate(t.judge(&delay(0), false)), Some(504), "0.36 x 1.4 of the start");
    }

    #[test]
    fn the_rate_never_reaches_zero() {
        let mut t = Throttle::new(1 << 20);
        for debt in 0..200 {
            t.judge(&stall(Verdict::Delay, debt), false);
        }
        assert_eq!(t.rate, FLOOR);
    }
}
