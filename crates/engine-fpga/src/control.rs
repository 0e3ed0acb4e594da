//! How large the next block set is to be, learnt from those that came back.
//!
//! Keeps: decisions are a function of what was learnt, in its order; nothing here measures, and no output byte
//! depends on it.
//! Leaves to others: what a stage is and how long it took (`sched`), the cutting of sets, which asks for
//! the size before each one, and what is learnt for [`Buffer::Adaptive`] ([`Stages`]).
//!
//! A set goes through three stages side by side with others: to the card, a unit, from the card. Links with 30 us for an
//! operation and 9.5 bytes a nanosecond, and a unit with 110 us and 5.2, want sets of 18.5 MB, more than there are ([`ADAPTIVE`]). `adaptive` begins with 1 MiB, so
//! that a unit soon has something to do, and makes each set twice as large as the one before, up to 4 MiB: a link that is
//! less than twice as fast as the unit is through with the next one in time. Once sets of two sizes have come back it is known
//! what is wanted, and that is asked for. The last sets of a part are half as large: while they pass, the link towards the card has
//! nothing more to do.

use lithify_engine::tune::{Exactness, Stages};

/// Least and most bytes of a set by [`Buffer::Adaptive`].
pub const ADAPTIVE: (u64, u64) = (1 << 20, 16 << 20);
/// Least and most bytes of a set by [`Buffer::Stem`].
pub const STEM: (u64, u64) = (8 << 20, 512 << 20);
/// The largest set that [`Buffer::Adaptive`] asks for over the largest that has come back, or its smallest before any has: a
/// line through sets that are so much smaller is not believed any further.
const UNSEEN: f64 = 4.0;
/// The share of what the slowest stage does with sets without end that [`Buffer::Adaptive`] wants.
const WANTED: f64 = 0.97;
/// Below this no set is asked for, whatever a formula says: a block.
const LEAST: u64 = 4096;

/// Who decides how large sets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Always the same.
    Static,
    /// The smallest set that reaches 97% of what the slowest stage does with sets without end.
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
    /// Stored bytes of the largest set, where slots are made for sets of `set` bytes and their input part has `input`: what
    /// fits is `Adaptive`'s to fill, which sees how sets grow in a slot (`growth`).
    pub(crate) fn most(self, set: u64, input: usize) -> u64 {
        match self {
            Buffer::Adaptive => input as u64,
            Buffer::Static | Buffer::Stem | Buffer::StemRaw => set,
        }
    }
    /// Stored bytes that sets may shrink to at the end of a part whose others have `set` (`Caps::last_bytes`). The paper's rules
    /// know of no end, and neither do fixed sizes.
    pub(crate) fn last_bytes(self, set: u64) -> u64 {
        match self {
            Buffer::Adaptive => set / 2,
            Buffer::Static | Buffer::Stem | Buffer::StemRaw => u64::MAX,
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
    growth: Growing,
}

/// What [`Buffer::Adaptive`] knows.
#[derive(Clone, Debug)]
struct Growing {
    stages: Stages,
    /// The largest sets that were offered and that came back.
    offered: f64,
    back: f64,
    /// What is wanted, once that is known.
    wanted: Option<f64>,
}

impl Growing {
    /// Bytes that the next set should have, were there no bounds.
    fn next(&self) -> f64 {
        let least = ADAPTIVE.0 as f64;
        let wanted = self.wanted.unwrap_or((2.0 * self.offered).max(least));
        wanted.min(UNSEEN * self.back.max(least))
    }
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
        let stages = Stages::new(Exactness::MODELLED);
        let growth = Growing { stages, offered: 0.0, back: 0.0, wanted: None };
        Controller { buffer, slots, units, most, now, growth }
    }

    /// Bytes that the next set should have.
    pub fn set_bytes(&self) -> u64 {
        self.now as u64
    }

    /// A set of so many bytes was cut, and a session has it. As long as nothing is known, [`Buffer::Adaptive`] makes each twice as
    /// large as the one before: those that wait behind the first one hold up no unit.
    pub fn offered(&mut self, bytes: u64) {
        if self.buffer == Buffer::Adaptive {
            self.growth.offered = self.growth.offered.max(bytes as f64);
            self.grow();
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
        let growth = &mut self.growth;
        if !growth.stages.learn(of.bytes, [of.to_card_ns, of.unit_ns, of.from_card_ns]) {
            return;
        }
        growth.back = growth.back.max(of.bytes as f64);
        // Every part has a unit of its own as long as there are any, and all share the links.
        let parts = of.parts.clamp(1, self.units.max(1)) as f64;
        let wanted = growth.stages.wanted(WANTED, [parts, 1.0, parts]).map(|(bytes, _)| bytes);
        // A stage that has changed is learnt anew, for which sets have to be of two sizes.
        let other = match 2 * of.bytes <= self.most.min(ADAPTIVE.1) {
            true => 2.0 * of.bytes as f64,
            false => of.bytes as f64 / 2.0,
        };
        growth.wanted = wanted.or(growth.wanted.map(|_| other));
        self.grow();
    }

    fn grow(&mut self) {
        let most = self.most.min(ADAPTIVE.1) as f64;
        self.now = self.growth.next().clamp((ADAPTIVE.0 as f64).min(most), most);
    }
}
