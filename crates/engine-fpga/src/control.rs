//! How large the next block set is to be, learnt from those that came back.
//!
//! Keeps: decisions are a function of what was learnt, in its order; nothing here measures, and no output byte
//! depends on it.
//! Leaves to others: what a stage is and how long it took (`sched`), the cutting of sets, which asks for
//! the size before each one, and what is learnt for [`Buffer::Adaptive`] ([`Tuner`]).
//!
//! A set goes through three stages side by side with others: to the card, a unit, from the card. Links with 30 us for an
//! operation and 9.5 bytes a nanosecond, and a unit with 110 us and 5.2, want sets of 10.9 MB; `adaptive` gets there from
//! 1 MiB in four steps.

use lithify_engine::tune::{Exactness, Tuner};

/// Least and most bytes of a set by [`Buffer::Adaptive`].
pub const ADAPTIVE: (u64, u64) = (1 << 20, 16 << 20);
/// Least and most bytes of a set by [`Buffer::Stem`].
pub const STEM: (u64, u64) = (8 << 20, 512 << 20);
/// Below this no set is asked for, whatever a formula says: a block.
const LEAST: u64 = 4096;

/// Who decides how large sets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Always the same.
    Static,
    /// The smallest set that reaches 95% of what the slowest stage does with sets without end.
    Adaptive,
    /// Algorithm 2 of STEM (ICDE 2024) with its equation 4, damped: a moving average of 0.5 and a clamp.
    Stem,
    /// The same as printed.
    StemRaw,
}

impl Buffer {
    /// All of them.
    pub const ALL: [Buffer; 4] = [Buffer::Static, Buffer::Adaptive, Buffer::Stem, Buffer::StemRaw];

    /// Its name in flags and tables.
    pub fn name(self) -> &'static str {
        match self {
            Buffer::Static => "static",
            Buffer::Adaptive => "adaptive",
            Buffer::Stem => "stem",
            Buffer::StemRaw => "stem-raw",
        }
    }
    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Buffer> {
        Buffer::ALL.into_iter().find(|buffer| buffer.name() == name)
    }
}

/// What one set took, in nanoseconds, without its waits for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Stored bytes of the set.
    pub bytes: u64,
    /// To find where it ends: the search in the indexes alone.
    pub cut_ns: f64,
    /// On the link towards the card.
    pub to_card_ns: f64,
    /// From the carry before it to its own: the unit, and all that no other set of its part can overlap.
    pub unit_ns: f64,
    /// On the link from the card.
    pub from_card_ns: f64,
    /// Sets of how many parts the links carry at once: at most as many as there are units.
    pub parts: usize,
}

/// Decides the size of sets.
#[derive(Clone, Debug)]
pub struct Controller {
    buffer: Buffer,
    /// Slots and units of the card.
    slots: usize,
    units: usize,
    /// Bytes that a set may have at most.
    most: u64,
    now: f64,
    tuner: Tuner,
}

impl Controller {
    /// For a card with so many slots and units, whose slots take sets of at most `most` bytes. Sets of `first`
    /// bytes come first, but that [`Buffer::Adaptive`] begins with its smallest.
    pub fn new(buffer: Buffer, slots: usize, units: usize, first: u64, most: u64) -> Controller {
        let most = most.max(1);
        let now = match buffer {
            Buffer::Adaptive => ADAPTIVE.0,
            Buffer::Stem => first.max(STEM.0),
            Buffer::Static | Buffer::StemRaw => first,
        };
        let now = now.min(most) as f64;
        // The time of a card is modelled, and so exact.
        let tuner = Tuner::new((ADAPTIVE.0, most.min(ADAPTIVE.1)), ADAPTIVE.0, Exactness::MODELLED);
        Controller { buffer, slots, units, most, now, tuner }
    }

    /// Bytes that the next set should have.
    pub fn set_bytes(&self) -> u64 {
        self.now as u64
    }

    /// A set of so many bytes is on its way to the card.
    pub fn loaded(&mut self, bytes: u64) {
        if self.buffer == Buffer::Adaptive {
            self.tuner.sent(bytes);
            self.now = self.tuner.set_bytes() as f64;
        }
    }

    /// A set came back.
    pub fn learn(&mut self, of: &Sample) {
        if of.bytes == 0 {
            return;
        }
        match self.buffer {
            Buffer::Static => {}
            Buffer::Adaptive => self.adapt(of),
            Buffer::Stem => {
                let next = (self.now + self.stem(of)) / 2.0;
                let most = self.most.min(STEM.1);
                self.now = next.clamp(STEM.0.min(most) as f64, most as f64);
            }
            Buffer::StemRaw => {
                let least = LEAST.min(self.most) as f64;
                self.now = self.stem(of).clamp(least, self.most as f64);
            }
        }
    }

    /// Algorithm 2 with equation 4 in place of a time divided by a size: what the card does in the time of a cut.
    fn stem(&self, of: &Sample) -> f64 {
        let bytes = of.bytes as f64;
        let all = of.to_card_ns + of.unit_ns + of.from_card_ns;
        let by_buffers = self.slots as f64 * of.cut_ns * bytes / all.max(1.0);
        let by_units = self.units as f64 * of.cut_ns * bytes / of.unit_ns.max(1.0);
        by_buffers.min(by_units)
    }

    fn adapt(&mut self, of: &Sample) {
        // Every part has a unit of its own as long as there are any, and all share the links.
        let parts = of.parts.clamp(1, self.units.max(1)) as f64;
        let times = [parts * of.to_card_ns, of.unit_ns, parts * of.from_card_ns];
        self.tuner.learn(of.bytes, times);
    }
}
