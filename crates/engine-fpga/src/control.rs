//! How large the next block set is to be, learnt from those that came back.
//!
//! Keeps: decisions are a function of what was learnt, in its order; nothing here measures, and no output byte
//! depends on it.
//! Leaves to others: what a stage is and how long it took (`sched`), and the cutting of sets, which asks for
//! the size before each one.
//!
//! A set goes through three stages side by side with others: to the card, a unit, from the card. In each a set
//! of `b` bytes takes `a + b / r` nanoseconds. Small sets pay `a` often. Large ones fill memory, and a job has
//! few of them, so that its beginning and end, where some stages idle, weigh more.
//!
//! Worked example: links with `a` 30 us and `r` 9.5 bytes a nanosecond, a unit with 110 us and 5.2. The unit is
//! the slowest; 95% of its 5.2 GB/s are 4.94, which it reaches with sets of `110 us x 4.94 / (1 - 0.95)`,
//! 10.9 MB, and the links with far smaller ones. So `adaptive` wants 10.9 MB, and gets there from 1 MiB in four
//! steps.

/// Least and most bytes of a set by [`Buffer::Adaptive`].
pub const ADAPTIVE: (u64, u64) = (1 << 20, 16 << 20);
/// Least and most bytes of a set by [`Buffer::Stem`].
pub const STEM: (u64, u64) = (8 << 20, 512 << 20);
/// Share of the slowest stage's asymptote that [`Buffer::Adaptive`] wants.
const WANTED: f64 = 0.95;
/// The largest set of [`Buffer::Adaptive`] before any has come back, over its smallest.
const UNSEEN: u64 = 4;
/// How much a set counts against the next one in the fits.
const FADES: f64 = 0.9;
/// Sizes have to differ by so much for a fit of both figures: variance over the square of the mean.
const SPREAD: f64 = 1e-3;
/// A set that takes so much more or less than its line says makes the line worthless.
const STRANGE: f64 = 0.25;
/// New sizes that differ by less than this share are not worth a change.
const NEAR: f64 = 0.1;
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
    stages: [Fit; 3],
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
        Controller { buffer, slots, units, most, now, stages: [Fit::default(); 3] }
    }

    /// Bytes that the next set should have.
    pub fn set_bytes(&self) -> u64 {
        self.now as u64
    }

    /// A set of so many bytes is on its way to the card. Until one has come back, nothing is known of larger ones, and those that
    /// wait behind the first one hold up no unit: [`Buffer::Adaptive`] makes each twice as large as the one before.
    pub fn loaded(&mut self, bytes: u64) {
        let unknown = self.stages[1].n == 0.0;
        if self.buffer == Buffer::Adaptive && unknown && bytes as f64 > 0.75 * self.now {
            self.now = self.within((2.0 * self.now).min((UNSEEN * ADAPTIVE.0) as f64));
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
        let bytes = of.bytes as f64;
        // Every part has a unit of its own as long as there are any, and all share the links.
        let parts = of.parts.clamp(1, self.units.max(1)) as f64;
        let times = [parts * of.to_card_ns, of.unit_ns, parts * of.from_card_ns];
        for (stage, ns) in self.stages.iter_mut().zip(times) {
            stage.learn(bytes, ns);
        }
        // Sets under way since the last change, and the rest of a part, say nothing about the present size.
        if bytes < 0.75 * self.now || bytes > 1.33 * self.now {
            return;
        }
        let Some(wanted) = self.wanted() else {
            // Another size has to be tried before the two figures of a line are known.
            let up = self.within(2.0 * self.now);
            self.now = if up > self.now { up } else { self.within(self.now / 2.0) };
            return;
        };
        let next = self.within(wanted.clamp(self.now / 2.0, 2.0 * self.now));
        if (next - self.now).abs() > NEAR * self.now {
            self.now = next;
        }
    }

    fn within(&self, bytes: f64) -> f64 {
        let most = self.most.min(ADAPTIVE.1);
        bytes.clamp(ADAPTIVE.0.min(most) as f64, most as f64)
    }

    /// The smallest set with which no stage falls below that share of the slowest one's asymptote.
    fn wanted(&self) -> Option<f64> {
        let lines = [self.stages[0].line()?, self.stages[1].line()?, self.stages[2].line()?];
        let slowest = lines.iter().map(|line| line.per_byte).fold(0.0, f64::max);
        // Nanoseconds a byte that every stage has to keep.
        let due = slowest / WANTED;
        Some(lines.iter().map(|line| line.fixed / (due - line.per_byte)).fold(0.0, f64::max))
    }
}

/// `t = fixed + bytes * per_byte`.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    per_byte: f64,
}

/// Least squares over the last sets, older ones fading.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// The last fixed part found: when all sizes are alike, it stays.
    fixed: Option<f64>,
}

impl Fit {
    fn learn(&mut self, bytes: f64, ns: f64) {
        let off = self.line().map_or(0.0, |of| ns / (of.fixed + bytes * of.per_byte) - 1.0);
        if off.abs() > STRANGE {
            // Something has changed for good, or will soon be as it was: either way it is learnt anew.
            *self = Fit::default();
        }
        for sum in [&mut self.n, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy] {
            *sum *= FADES;
        }
        self.n += 1.0;
        self.x += bytes;
        self.y += ns;
        self.xx += bytes * bytes;
        self.xy += bytes * ns;
        let variance = self.xx / self.n - (self.x / self.n).powi(2);
        if variance > SPREAD * (self.x / self.n).powi(2) {
            let slope = (self.xy / self.n - self.x * self.y / (self.n * self.n)) / variance;
            self.fixed = Some(((self.y - slope * self.x) / self.n).clamp(0.0, self.y / self.n));
        }
    }

    fn line(&self) -> Option<Line> {
        let fixed = self.fixed?;
        let per_byte = (self.y / self.n - fixed).max(0.0) / (self.x / self.n);
        Some(Line { fixed, per_byte: per_byte.max(1e-9) })
    }
}
