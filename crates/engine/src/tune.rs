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
//! Worked example: links with `a` 30 us and `r` 9.5 bytes a nanosecond, work with 110 us and 5.2. The work is the
//! slowest; 95% of its 5.2 GB/s are 4.94, which it reaches with sets of `110 us x 4.94 / (1 - 0.95)`, 10.9 MB, and
//! the links with far smaller ones.
//!
//! As long as `a` and `r` are not known, sets go out by halves down to the smallest size, and on between it and eight times
//! as much, without waiting for those before. Each set that comes back tells of its size, whichever that is. Once it is
//! known by how much lines are off, and what is wanted is certain enough, sizes go there by twofold steps and stay, until it
//! is another size by far. Where it is uncertain larger sets are taken, as these cost less than smaller ones do.

use crate::Cost;

/// Share of the slowest stage's asymptote that is wanted.
const WANTED: f64 = 0.95;
/// Inverses of sizes that differ from their mean by less than this share of it say nothing of the fixed part.
const APART: f64 = 0.1;
/// As long as lines are not known, sizes go by halves to the smallest one, and on between it and so many times that.
const TRIED: f64 = 8.0;
/// A size stays as long as it is within this share of what is wanted: there the slowest stage has 93% to 97%.
const NEAR: f64 = 0.6;
/// What is wanted is not known as long as it is more uncertain than this share of it.
const KNOWN: f64 = 0.5;
/// A size is left only for one that differs by so many times what is uncertain of that.
const SURE: f64 = 3.0;

/// How exact the times are that are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exactness {
    /// How much a set counts against the next one in the fits.
    fades: f64,
    /// A set that takes so much more or less than its line says does not belong to it.
    strange: f64,
    /// So many of these in a row are chance; what is still strange after them is a change.
    chance: u32,
    /// So many sets have to tell how far a line is off before it counts.
    told: f64,
}

impl Exactness {
    /// Times that are modelled: two sets of one size take the same.
    pub const MODELLED: Exactness = Exactness { fades: 0.9, strange: 0.25, chance: 0, told: 0.0 };
    /// Times by a clock, of stages that others use as well.
    pub const CLOCKED: Exactness = Exactness { fades: 0.97, strange: 0.6, chance: 3, told: 2.0 };
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
    /// so many sets go through each stage at once, one after the other; and by which share of it that is uncertain. None as
    /// long as both figures of a stage are not known.
    pub fn wanted(&self, share: f64, at_once: [f64; 3]) -> Option<(f64, f64)> {
        let mut lines = self.lines()?;
        for (line, n) in lines.iter_mut().zip(at_once) {
            *line = Line { fixed: n * line.fixed, per_byte: n * line.per_byte, ..*line };
        }
        let slowest = lines.iter().map(|line| line.per_byte).fold(0.0, f64::max);
        // Nanoseconds a byte that every stage has to keep.
        let due = slowest / share;
        let of_stage = |line: &Line| (line.fixed / (due - line.per_byte), line.unsure);
        lines.iter().map(of_stage).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn lines(&self) -> Option<[Line; 3]> {
        let [up, work, down] = &self.stages;
        let known = |stage: &Fit| stage.line().filter(|_| stage.told >= self.exactness.told);
        Some([known(up)?, known(work)?, known(down)?])
    }
}

/// Decides the size of sets.
#[derive(Clone, Debug)]
pub struct Tuner {
    /// Bytes of a set.
    least: u64,
    most: u64,
    now: f64,
    /// Where sizes go, once that is known.
    goal: Option<f64>,
    /// Before: by how much the next size that is tried differs.
    step: f64,
    stages: Stages,
}

impl Tuner {
    /// Sets of `first` bytes come first; all have `least` to `most`.
    pub fn new((least, most): (u64, u64), first: u64, exactness: Exactness) -> Tuner {
        let most = most.max(1);
        let least = least.clamp(1, most);
        let now = first.clamp(least, most) as f64;
        Tuner { least, most, now, goal: None, step: 0.5, stages: Stages::new(exactness) }
    }

    /// Bytes that the next set should have.
    pub fn set_bytes(&self) -> u64 {
        self.now as u64
    }

    /// A set of so many bytes is on its way: the next one may have another size, at most twice or half as many.
    pub fn sent(&mut self, bytes: u64) {
        if let Some(goal) = self.goal {
            self.now = goal.clamp(self.now / 2.0, 2.0 * self.now);
            return;
        }
        // The rest of a part is no trial.
        if (bytes as f64) < 0.75 * self.now {
            return;
        }
        let (least, most) = (self.least as f64, self.most as f64);
        if self.now <= least {
            self.step = 2.0;
        } else if self.now >= (TRIED * least).min(most) {
            self.step = 0.5;
        }
        self.now = (self.step * self.now).clamp(least, most);
    }

    /// A set of so many bytes came back, and its stages took so many nanoseconds, without waits for others.
    pub fn learn(&mut self, bytes: u64, ns: [f64; 3]) {
        if !self.stages.learn(bytes, ns) {
            return;
        }
        let Some((wanted, unsure)) = self.stages.wanted(WANTED, [1.0; 3]) else {
            self.goal = None;
            return;
        };
        if unsure < KNOWN {
            // Sets that are too large cost less than those that are too small.
            let wanted = (wanted * (1.0 + unsure)).clamp(self.least as f64, self.most as f64);
            let apart = |goal: f64| (wanted / goal).max(goal / wanted) - 1.0;
            if self.goal.is_none_or(|goal| apart(goal) > NEAR.max(SURE * unsure)) {
                self.goal = Some(wanted);
            }
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
}

/// `t = fixed + bytes * per_byte`.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    per_byte: f64,
    /// The standard error of the fixed part, as a share of it.
    unsure: f64,
}

/// Least squares of the time of a byte over the inverse of the size, `t / bytes = per_byte + fixed / bytes`: what times
/// are off by grows with them. Older sets fade; those whose sizes are alike leave the fixed part as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    /// Sets, faded, and their means: of the inverse of the size, and of the time of a byte.
    n: f64,
    inverse: f64,
    time: f64,
    /// Squares of distances from the mean, and their products.
    squares: f64,
    products: f64,
    /// How many sets told by how much the line is off, and squares of that as shares, faded.
    told: f64,
    off: f64,
    /// Strange times in a row.
    strange: u32,
}

impl Fit {
    fn learn(&mut self, bytes: f64, ns: f64, exactness: &Exactness) {
        let (inverse, time) = (1.0 / bytes, ns / bytes);
        if let Some(line) = self.line() {
            let off = time / (line.per_byte + line.fixed * inverse) - 1.0;
            if off.abs() > exactness.strange {
                self.strange += 1;
                if self.strange <= exactness.chance {
                    return;
                }
                // Something has changed for good, or will soon be as it was: either way it is learnt anew.
                *self = Fit::default();
            } else {
                self.told = self.told * exactness.fades + 1.0;
                self.off = self.off * exactness.fades + off * off;
            }
        }
        self.strange = 0;
        self.n = self.n * exactness.fades + 1.0;
        let apart = inverse - self.inverse;
        let is_apart = apart.abs() > APART * self.inverse;
        self.inverse += apart / self.n;
        self.time += (time - self.time) / self.n;
        if is_apart && self.n > 1.0 {
            self.squares = self.squares * exactness.fades + apart * (inverse - self.inverse);
            self.products = self.products * exactness.fades + apart * (time - self.time);
        }
    }

    fn line(&self) -> Option<Line> {
        if self.squares <= 0.0 {
            return None;
        }
        let fixed = (self.products / self.squares).clamp(0.0, self.time / self.inverse);
        let per_byte = (self.time - fixed * self.inverse).max(1e-9);
        // So few say little of how far it may be off.
        let told = self.told.max(1.0);
        let off = (1.0 + 2.0 / told) * (self.off / told).sqrt() * self.time;
        let unsure = off / self.squares.sqrt() / fixed.max(1e-9);
        Some(Line { fixed, per_byte, unsure })
    }
}
