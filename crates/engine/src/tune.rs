//! How large the sets of a machine are to be, learnt from what its stages took for those that came back.
//!
//! Keeps: a decision is a function of what was learnt, in its order. Nothing here measures, and no byte of an output
//! depends on it.
//! Leaves to others: what a stage is, and how long it took.
//!
//! A set goes through three stages side by side with others: a way in, work, a way out. In each a set of `b` bytes takes
//! `a + b / r` nanoseconds. Small sets pay `a` often. Large ones fill memory, and a job has few of them, so that its
//! beginning and end, where some stages idle, weigh more. So wanted is the smallest set with which no stage falls
//! below 95% of what the slowest one does with sets without end.
//!
//! [`Stages`] is what is known of the stages, and a [`Tuner`] goes from one size to the next by it. Who has another way of
//! going there takes the former alone.
//!
//! Worked example: links with `a` 30 us and `r` 9.5 bytes a nanosecond, work with 110 us and 5.2. The work is the
//! slowest; 95% of its 5.2 GB/s are 4.94, which it reaches with sets of `110 us x 4.94 / (1 - 0.95)`, 10.9 MB, and
//! the links with far smaller ones.

use crate::Cost;

/// Share of the slowest stage's asymptote that a [`Tuner`] wants.
const WANTED: f64 = 0.95;
/// Sizes have to differ by so much for a fit of both figures: variance over the square of the mean.
const SPREAD: f64 = 1e-3;

/// How exact the times are that are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exactness {
    /// How much a set counts against the next one in the fits.
    fades: f64,
    /// A set that takes so much more or less than its line says does not belong to it.
    strange: f64,
    /// So many of these in a row are chance; what is still strange after them is a change.
    chance: u32,
    /// New sizes that differ by less than this share are not worth a change.
    near: f64,
}

impl Exactness {
    /// Times that are modelled: two sets of one size take the same.
    pub const MODELLED: Exactness = Exactness { fades: 0.9, strange: 0.25, chance: 0, near: 0.1 };
    /// Times by a clock, of stages that others use as well.
    pub const CLOCKED: Exactness = Exactness { fades: 0.97, strange: 0.6, chance: 3, near: 0.3 };
}

/// What three stages take for sets, as far as it was learnt.
#[derive(Clone, Debug)]
pub struct Stages {
    exactness: Exactness,
    stages: [Fit; 3],
}

impl Stages {
    /// Nothing so far.
    pub fn new(exactness: Exactness) -> Stages {
        Stages { exactness, stages: [Fit::default(); 3] }
    }

    /// A set of so many bytes came back, and its stages took so many nanoseconds, without waits for others. False for
    /// times that are none: nothing is learnt of them.
    pub fn learn(&mut self, bytes: u64, ns: [f64; 3]) -> bool {
        // A clock of another program's may tell anything.
        if bytes == 0 || ns.iter().any(|ns| !ns.is_finite() || *ns < 0.0) {
            return false;
        }
        for (stage, ns) in self.stages.iter_mut().zip(ns) {
            stage.learn(bytes as f64, ns, &self.exactness);
        }
        true
    }

    /// The smallest set with which no stage falls below `share` of what the slowest one does with sets without end, where
    /// so many sets go through each stage at once, one after the other. None as long as both figures of a stage are not known.
    pub fn wanted(&self, share: f64, at_once: [f64; 3]) -> Option<f64> {
        let mut lines = self.lines()?;
        for (line, n) in lines.iter_mut().zip(at_once) {
            *line = Line { fixed: n * line.fixed, per_byte: n * line.per_byte };
        }
        let slowest = lines.iter().map(|line| line.per_byte).fold(0.0, f64::max);
        // Nanoseconds a byte that every stage has to keep.
        let due = slowest / share;
        Some(lines.iter().map(|line| line.fixed / (due - line.per_byte)).fold(0.0, f64::max))
    }

    fn lines(&self) -> Option<[Line; 3]> {
        Some([self.stages[0].line()?, self.stages[1].line()?, self.stages[2].line()?])
    }
}

/// Decides the size of sets.
#[derive(Clone, Debug)]
pub struct Tuner {
    /// Bytes of a set.
    least: u64,
    most: u64,
    now: f64,
    stages: Stages,
}

impl Tuner {
    /// Sets of `first` bytes come first; all have `least` to `most`.
    pub fn new((least, most): (u64, u64), first: u64, exactness: Exactness) -> Tuner {
        let most = most.max(1);
        let least = least.clamp(1, most);
        let now = first.clamp(least, most) as f64;
        Tuner { least, most, now, stages: Stages::new(exactness) }
    }

    /// Bytes that the next set should have.
    pub fn set_bytes(&self) -> u64 {
        self.now as u64
    }

    /// A set of so many bytes came back, and its stages took so many nanoseconds, without waits for others.
    pub fn learn(&mut self, bytes: u64, ns: [f64; 3]) {
        if !self.stages.learn(bytes, ns) {
            return;
        }
        let bytes = bytes as f64;
        // Sets under way since the last change, and the rest of a part, say nothing about the present size.
        if bytes < 0.75 * self.now || bytes > 1.33 * self.now {
            return;
        }
        let Some(wanted) = self.stages.wanted(WANTED, [1.0; 3]) else {
            // Another size has to be tried before the two figures of a line are known.
            let up = self.within(2.0 * self.now);
            self.now = if up > self.now { up } else { self.within(self.now / 2.0) };
            return;
        };
        let next = self.within(wanted.clamp(self.now / 2.0, 2.0 * self.now));
        if (next - self.now).abs() > self.stages.exactness.near * self.now {
            self.now = next;
        }
    }

    /// What a session costs by what was learnt: once through all stages, and each byte where it takes longest. None as
    /// long as that is not known.
    pub fn cost(&self) -> Option<Cost> {
        let lines = self.stages.lines()?;
        let fixed_ns = lines.iter().map(|line| line.fixed).sum();
        let of_stage = |line: &Line| line.per_byte + line.fixed / self.now.max(1.0);
        let ns_per_byte = lines.iter().map(of_stage).fold(0.0, f64::max);
        Some(Cost { fixed_ns, ns_per_byte })
    }

    fn within(&self, bytes: f64) -> f64 {
        bytes.clamp(self.least as f64, self.most as f64)
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
    /// Strange times in a row.
    strange: u32,
}

impl Fit {
    fn learn(&mut self, bytes: f64, ns: f64, exactness: &Exactness) {
        let off = self.line().map_or(0.0, |of| ns / (of.fixed + bytes * of.per_byte) - 1.0);
        if off.abs() > exactness.strange {
            self.strange += 1;
            if self.strange <= exactness.chance {
                return;
            }
            // Something has changed for good, or will soon be as it was: either way it is learnt anew.
            *self = Fit::default();
        }
        self.strange = 0;
        for sum in [&mut self.n, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy] {
            *sum *= exactness.fades;
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
