//! Card time: when everything would have happened on a card with links of a given rate, by reservations.
//!
//! Keeps: the same calls in the same order give the same times, on any machine. Nothing here is measured.
//!
//! Worked example: a link of 8 GB/s with 30 us an operation. A transfer of 4 MB that may begin at 0 ends after
//! 530 us; the next one of the same direction, ready meanwhile, after 1,060 us. One that may begin at 5,000 us is
//! asked for next, and after it one of 1 MB that is ready: this ends after 1,215 us, in the gap.
//!
//! Each direction has two channels. What a unit waits for, which is little, goes by one of its own and not behind
//! whole sets: the next set of that part could start only a set's transfer later. XDMA has four channels each
//! way. Both share the rate, so such bytes take time of the other channel, too.

use std::collections::VecDeque;

/// How a card is attached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Towards the card, bytes a nanosecond.
    pub to_card: f64,
    /// From the card, bytes a nanosecond.
    pub from_card: f64,
    /// Nanoseconds that each operation takes besides. Transfers that are queued at once and one after the other
    /// are one operation.
    pub operation_ns: f64,
    /// Share of either rate that is lost because the other direction is at work; 0 to below 1. It is
    /// charged at all times, so a rate with it is a lower bound.
    pub duplex_loss: f64,
    /// Nanoseconds from a carry that has come back to the next set's start.
    pub host_ns: f64,
}

impl Link {
    /// DMA over 16 lanes of the third generation of PCI Express, as the maker of XDMA documents it.
    pub const GEN3_X16: Link = Link {
        to_card: 9.5,
        from_card: 12.0,
        operation_ns: 30_000.0,
        duplex_loss: 0.0,
        host_ns: 20_000.0,
    };
    /// 8 lanes: an estimate, half of 16.
    pub const GEN3_X8: Link = Link { to_card: 4.75, from_card: 6.0, ..Link::GEN3_X16 };
    /// The fourth generation: an estimate, twice the third.
    pub const GEN4_X16: Link = Link { to_card: 19.0, from_card: 24.0, ..Link::GEN3_X16 };
    /// What the times of STEM (ICDE 2024) for 4.8 GB imply for its card, if transfers bound it.
    pub const STEM: Link = Link { to_card: 1.29, from_card: 1.29, ..Link::GEN3_X16 };

    /// Links that have a name.
    pub const NAMED: [(&'static str, Link); 4] = [
        ("gen3x8", Link::GEN3_X8),
        ("gen3x16", Link::GEN3_X16),
        ("gen4x16", Link::GEN4_X16),
        ("stem", Link::STEM),
    ];

    /// A link by its name, or by figures, `IN,OUT[,US[,LOSS]]`: GB/s to and from the card, microseconds an
    /// operation (30), percent lost because both directions are at work (0).
    ///
    /// # Errors
    /// A sentence that says what there is.
    pub fn parse(text: &str) -> Result<Link, String> {
        if let Some((_, link)) = Link::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*link);
        }
        let names: Vec<&str> = Link::NAMED.iter().map(|(name, _)| *name).collect();
        let none = || {
            format!(
                "there are {}, or IN,OUT[,US[,LOSS]]: GB/s to and from the card, 0.001 to 1000; microseconds \
                 an operation, 0 to 100000; percent lost because both directions are at work, 0 to 90",
                names.join(", ")
            )
        };
        let figures: Result<Vec<f64>, _> = text.split(',').map(str::parse).collect();
        let (to, from, us, loss) = match figures.as_deref() {
            Ok(&[to, from]) => (to, from, 30.0, 0.0),
            Ok(&[to, from, us]) => (to, from, us, 0.0),
            Ok(&[to, from, us, loss]) => (to, from, us, loss),
            _ => return Err(none()),
        };
        let rates = 0.001..=1000.0;
        if !rates.contains(&to) || !rates.contains(&from) {
            return Err(none());
        }
        if !(0.0..=100_000.0).contains(&us) || !(0.0..=90.0).contains(&loss) {
            return Err(none());
        }
        Ok(Link {
            to_card: to,
            from_card: from,
            operation_ns: us * 1000.0,
            duplex_loss: loss / 100.0,
            ..Link::GEN3_X16
        })
    }

    /// Nanoseconds that a transfer to the card takes.
    pub(crate) fn in_ns(&self, bytes: usize) -> f64 {
        self.operation_ns + bytes as f64 / (self.to_card * (1.0 - self.duplex_loss))
    }
    /// Nanoseconds that a transfer from the card takes.
    pub(crate) fn out_ns(&self, bytes: usize) -> f64 {
        self.operation_ns + bytes as f64 / (self.from_card * (1.0 - self.duplex_loss))
    }
}

/// Gaps of a lane that are remembered: what is asked for later than so many others begins behind them.
const GAPS: usize = 16;

/// Something that does one thing at a time.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Time before `free` that nothing was reserved in, ascending.
    gaps: VecDeque<(f64, f64)>,
    free: f64,
    busy: f64,
}

impl Lane {
    /// When something that takes so long would begin at the earliest, and in which gap it would lie.
    fn look(&self, ready: f64, takes: f64) -> (f64, Option<usize>) {
        let fits = |&(from, to): &(f64, f64)| from.max(ready) + takes <= to;
        match self.gaps.iter().position(fits) {
            Some(i) => (self.gaps[i].0.max(ready), Some(i)),
            None => (self.free.max(ready), None),
        }
    }

    /// Reserves it; when it ends.
    fn reserve(&mut self, ready: f64, takes: f64) -> f64 {
        let (start, gap) = self.look(ready, takes);
        let end = start + takes;
        self.busy += takes;
        match gap {
            None => {
                if start > self.free {
                    self.gaps.push_back((self.free, start));
                }
                if self.gaps.len() > GAPS {
                    self.gaps.pop_front();
                }
                self.free = end;
            }
            Some(i) => {
                let (from, to) = self.gaps[i];
                self.gaps[i] = (end, to);
                if start > from {
                    self.gaps.insert(i, (from, start));
                }
            }
        }
        end
    }
}

/// A direction of a link.
#[derive(Clone, Debug, Default)]
struct Channels {
    sets: Lane,
    first: Lane,
}

impl Channels {
    /// A transfer that units wait for, which takes so long; for `bytes_ns` of that the link is at work.
    fn first(&mut self, ready: f64, takes: f64, bytes_ns: f64) -> f64 {
        self.sets.reserve(ready, bytes_ns);
        self.first.reserve(ready, takes)
    }
}

/// Reservations of links and units, in nanoseconds since the card was powered on.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    link: Link,
    to_card: Channels,
    from_card: Channels,
    units: Vec<Lane>,
    /// The end of the last reservation.
    pub(crate) end: f64,
}

impl Timetable {
    /// Nothing is reserved.
    pub(crate) fn new(link: Link, units: usize) -> Timetable {
        let units = vec![Lane::default(); units];
        let (to_card, from_card) = (Channels::default(), Channels::default());
        Timetable { link, to_card, from_card, units, end: 0.0 }
    }

    /// How the card is attached.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The end of a set's transfer to the card that may begin at `ready`.
    pub(crate) fn send(&mut self, bytes: usize, ready: f64) -> f64 {
        let end = self.to_card.sets.reserve(ready, self.link.in_ns(bytes));
        self.ends(end)
    }

    /// The end of a set's transfer from the card that may begin at `ready`.
    pub(crate) fn receive(&mut self, bytes: usize, ready: f64) -> f64 {
        let end = self.from_card.sets.reserve(ready, self.link.out_ns(bytes));
        self.ends(end)
    }

    /// As [`Timetable::send`], for what a unit waits for.
    pub(crate) fn send_first(&mut self, bytes: usize, ready: f64) -> f64 {
        let takes = self.link.in_ns(bytes);
        let end = self.to_card.first(ready, takes, takes - self.link.operation_ns);
        self.ends(end)
    }

    /// As [`Timetable::receive`], for what a unit waits for.
    pub(crate) fn receive_first(&mut self, bytes: usize, ready: f64) -> f64 {
        let takes = self.link.out_ns(bytes);
        let end = self.from_card.first(ready, takes, takes - self.link.operation_ns);
        self.ends(end)
    }

    /// The end of a set that takes `takes` nanoseconds on a unit and may begin at `ready`: on the unit that is
    /// through with it first.
    pub(crate) fn run(&mut self, ready: f64, takes: f64) -> f64 {
        let soonest = self
            .units
            .iter_mut()
            .min_by(|a, b| a.look(ready, takes).0.total_cmp(&b.look(ready, takes).0));
        let Some(unit) = soonest else { return ready };
        let end = unit.reserve(ready, takes);
        self.ends(end)
    }

    fn ends(&mut self, end: f64) -> f64 {
        self.end = self.end.max(end);
        end
    }

    /// When the host can begin what follows from something known at `known`.
    pub(crate) fn after_host(&self, known: f64) -> f64 {
        known + self.link.host_ns
    }

    /// Time that the link towards the card was at work.
    pub(crate) fn in_busy(&self) -> f64 {
        self.to_card.sets.busy
    }
    /// Time that the link from the card was at work.
    pub(crate) fn out_busy(&self) -> f64 {
        self.from_card.sets.busy
    }
    /// Time that units were at work, together.
    pub(crate) fn units_busy(&self) -> f64 {
        self.units.iter().map(|unit| unit.busy).sum()
    }
}
