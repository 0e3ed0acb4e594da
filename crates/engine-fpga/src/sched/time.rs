//! Card time: when everything would have happened on a card with links of a given rate, by reservations.
//!
//! Keeps: the same calls in the same order give the same times, on any machine. Nothing here is measured.
//!
//! Worked example: a link of 8 GB/s with 30 us an operation. A transfer of 4 MB that may begin at 0 ends after
//! 530 us; the next one of the same direction, ready meanwhile, after 1,060 us.

/// How a card is attached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Towards the card, bytes a nanosecond.
    pub to_card: f64,
    /// From the card, bytes a nanosecond.
    pub from_card: f64,
    /// Nanoseconds that each operation takes besides.
    pub operation_ns: f64,
    /// Nanoseconds from a carry that has come back to the next set's start.
    pub host_ns: f64,
}

impl Link {
    /// DMA over 16 lanes of the third generation of PCI Express.
    pub const GEN3_X16: Link =
        Link { to_card: 9.5, from_card: 12.0, operation_ns: 30_000.0, host_ns: 20_000.0 };
}

/// Reservations of links and units, in nanoseconds since the card was powered on.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    link: Link,
    to_card_free: f64,
    from_card_free: f64,
    units_free: Vec<f64>,
    /// Time that the link towards the card was at work.
    pub(crate) to_card_busy: f64,
    /// Time that the link from the card was at work.
    pub(crate) from_card_busy: f64,
    /// Time that units were at work, together.
    pub(crate) units_busy: f64,
    /// The end of the last reservation.
    pub(crate) end: f64,
}

impl Timetable {
    /// Nothing is reserved.
    pub(crate) fn new(link: Link, units: usize) -> Timetable {
        Timetable {
            link,
            to_card_free: 0.0,
            from_card_free: 0.0,
            units_free: vec![0.0; units],
            to_card_busy: 0.0,
            from_card_busy: 0.0,
            units_busy: 0.0,
            end: 0.0,
        }
    }

    /// The end of a transfer to the card that may begin at `ready`.
    pub(crate) fn send(&mut self, bytes: usize, ready: f64) -> f64 {
        let takes = self.link.operation_ns + bytes as f64 / self.link.to_card;
        self.to_card_busy += takes;
        self.to_card_free = self.to_card_free.max(ready) + takes;
        self.end = self.end.max(self.to_card_free);
        self.to_card_free
    }

    /// The end of a transfer from the card that may begin at `ready`.
    pub(crate) fn receive(&mut self, bytes: usize, ready: f64) -> f64 {
        let takes = self.link.operation_ns + bytes as f64 / self.link.from_card;
        self.from_card_busy += takes;
        self.from_card_free = self.from_card_free.max(ready) + takes;
        self.end = self.end.max(self.from_card_free);
        self.from_card_free
    }

    /// The end of a set that takes `takes` nanoseconds on a unit and may begin at `ready`.
    pub(crate) fn run(&mut self, ready: f64, takes: f64) -> f64 {
        let Some(free) = self.units_free.iter_mut().min_by(|a, b| a.total_cmp(b)) else {
            return ready;
        };
        *free = free.max(ready) + takes;
        self.units_busy += takes;
        self.end = self.end.max(*free);
        *free
    }

    /// When the host can begin what follows from something known at `known`.
    pub(crate) fn after_host(&self, known: f64) -> f64 {
        known + self.link.host_ns
    }
}
