//! The writer: one closed loop that writes as fast as its processor and the gate let it, in
//! quanta of some tens of microseconds. The gate follows `db`'s.

use fastrand::Rng;
use lithify_control::{Pacer, Pressure};
use lithify_plan::Cause;

use crate::memtable::MemTable;
use crate::setup::Load;
use crate::space::Space;

/// Draws cells by weight in constant time (Walker's alias method).
#[derive(Debug)]
struct Alias {
    /// Per cell, the share of draws that stay, and where the others go.
    table: Vec<(f64, u32)>,
}

impl Alias {
    fn new(weights: &[f64]) -> Alias {
        let n = weights.len();
        let scale = n as f64 / weights.iter().sum::<f64>();
        let mut left: Vec<f64> = weights.iter().map(|w| w * scale).collect();
        let mut table: Vec<(f64, u32)> = (0..n).map(|i| (1.0, i as u32)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| left[i] < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            table[s] = (left[s], l as u32);
            left[l] -= 1.0 - left[s];
            if left[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Alias { table }
    }
    fn pick(&self, rng: &mut Rng) -> u32 {
        let i = rng.usize(..self.table.len());
        let (stay, other) = self.table[i];
        if rng.f64() < stay { i as u32 } else { other }
    }
}

/// Which cells are written when.
#[derive(Debug)]
pub struct Keys {
    rng: Rng,
    space: Space,
    from: From,
    /// Cells that are written; the first of the space.
    cells: u32,
    /// Writes that share one draw.
    grain: u64,
}

#[derive(Debug)]
enum From {
    /// Every cell alike.
    Anywhere,
    /// One key after the other.
    Next,
    /// Phases of equal length; every so many writes the heat moves on by one range.
    Phases(Vec<(u32, Alias)>, Option<u64>),
}

impl Keys {
    /// The keys of a load. Up to `grain` neighbouring writes are drawn together, which is quicker
    /// and changes little as long as a memtable has several draws for each cell.
    pub fn new(load: &Load, space: &Space, seed: u64, grain: u64) -> Keys {
        let mut rng = Rng::with_seed(seed);
        let from = match load {
            Load::Uniform | Load::Unique | Load::Zipf(_) => From::Anywhere,
            Load::Sequential => From::Next,
            Load::Mix { ranges, rotate } => {
                let cells = space.cells;
                let phase = |&r: &u32| (r.clamp(1, cells), mix(r, cells, &mut rng));
                From::Phases(ranges.iter().map(phase).collect(), *rotate)
            }
        };
        Keys { rng, space: *space, from, cells: space.cells, grain: grain.max(1) }
    }

    /// From now on only the first so many keys are written, in whole cells.
    pub fn narrow(&mut self, keys: u64) {
        self.cells = self.space.cell_of(keys.clamp(1, self.space.keys) - 1) + 1;
    }

    /// Puts writes `at..at + n` of `of` into `mem`.
    pub fn write(&mut self, at: u64, n: u64, of: u64, mem: &mut MemTable) {
        if let From::Next = self.from {
            return mem.add_keys(at..at + n, &self.space);
        }
        let draws = n.div_ceil(self.grain);
        for i in 0..draws {
            let cell = self.pick(at + i * self.grain, of);
            let writes = n * (i + 1) / draws - n * i / draws;
            mem.add(cell, u32::try_from(writes).unwrap_or(u32::MAX));
        }
    }

    /// The cell of write `at` of `of`.
    fn pick(&mut self, at: u64, of: u64) -> u32 {
        let cells = self.cells;
        let From::Phases(phases, rotate) = &self.from else { return self.rng.u32(..cells) };
        let phase = at * phases.len() as u64 / of.max(1);
        let (ranges, alias) = &phases[(phase as usize).min(phases.len() - 1)];
        let cell = alias.pick(&mut self.rng);
        let turn = rotate.map_or(0, |every| at / every.max(1)) % u64::from(*ranges);
        let moved = u64::from(cells) * turn / u64::from(*ranges);
        ((u64::from(cell) + moved) % u64::from(cells)) as u32
    }
}

/// MixGraph's key ranges (Cao et al., FAST 2020): the `r`-th most wanted with a weight of
/// `a e^(b r) + c e^(d r)`, shuffled over the key space.
fn mix(ranges: u32, cells: u32, rng: &mut Rng) -> Alias {
    let ranges = ranges.clamp(1, cells);
    let weight = |r: f64| 14.18 * (-2.917 * r).exp() + 0.0164 * (-0.08082 * r).exp();
    let mut weights: Vec<f64> = (1..=ranges).map(|r| weight(f64::from(r))).collect();
    rng.shuffle(&mut weights);
    let of = |cell: u32| (u64::from(cell) * u64::from(ranges) / u64::from(cells)) as usize;
    let mut members = vec![0.0; ranges as usize];
    (0..cells).for_each(|c| members[of(c)] += 1.0);
    let by_cell: Vec<f64> = (0..cells).map(|c| weights[of(c)] / members[of(c)]).collect();
    Alias::new(&by_cell)
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Pass,
    /// Wait for the verdict to change, or for this instant.
    Wait(Cause, Option<u64>),
}

/// The gate in front of the memtable.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pressure: Pressure,
    pacer: Pacer,
}

impl Gate {
    /// The core's new verdict, with so many bytes of writes in the active memtable.
    pub(crate) fn press(&mut self, pressure: Pressure, passed: u64, now: u64) {
        self.pacer.press(pressure.rate(passed, now).map(|(rate, _)| rate), now);
        self.pressure = pressure;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.pressure.stop.is_some()
    }

    /// Whether a write may pass, with `passed` bytes before it in the active memtable.
    pub(crate) fn ask(&mut self, passed: u64, now: u64) -> Verdict {
        if let Some(cause) = self.pressure.stop {
            return Verdict::Wait(cause, None);
        }
        let Some((rate, cause)) = self.pressure.rate(passed, now) else { return Verdict::Pass };
        match self.pacer.ask(rate, now) {
            None => Verdict::Pass,
            Some(pass) => Verdict::Wait(cause, Some(pass)),
        }
    }

    /// Counts `bytes` that pass.
    pub(crate) fn charge(&mut self, bytes: f64) {
        self.pacer.charge(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_weights() {
        let alias = Alias::new(&[1.0, 0.0, 3.0, 4.0]);
        let mut rng = Rng::with_seed(3);
        let mut hits = [0u32; 4];
        (0..80_000).for_each(|_| hits[alias.pick(&mut rng) as usize] += 1);
        assert_eq!(hits[1], 0);
        for (hit, want) in hits.into_iter().zip([10_000u32, 0, 30_000, 40_000]) {
            assert!(hit.abs_diff(want) < 600, "{hits:?}");
        }
    }

    #[test]
    fn a_delay_spaces_writes_at_its_rate() {
        let mut gate = Gate::default();
        gate.pressure.delay = Some((1_000_000, Cause::L0Files));
        let (mut now, mut passed) = (0, 0.0);
        while now < 1_000_000_000 {
            match gate.ask(0, now) {
                Verdict::Pass => {
                    gate.charge(500.0);
                    passed += 500.0;
                }
                Verdict::Wait(_, until) => now = until.unwrap(),
            }
        }
        assert!((990_000.0..1_020_000.0).contains(&passed), "{passed}");
    }

    #[test]
    fn the_hottest_of_ten_ranges_takes_most() {
        let space = Space::new(1_000_000, 1000);
        let load = Load::Mix { ranges: vec![10], rotate: None };
        let mut keys = Keys::new(&load, &space, 5, 1);
        let mut hits = [0u32; 10];
        (0..50_000).for_each(|i| hits[keys.pick(i, 50_000) as usize / 100] += 1);
        let most = f64::from(*hits.iter().max().unwrap()) / 50_000.0;
        assert!((0.83..0.87).contains(&most), "{hits:?}");
    }

    #[test]
    fn rotation_moves_the_heat_to_the_next_range() {
        let space = Space::new(1_000_000, 1000);
        let load = Load::Mix { ranges: vec![10], rotate: Some(1_000) };
        let mut keys = Keys::new(&load, &space, 5, 1);
        let mut hottest = |turn: u64| {
            let mut hits = [0u32; 10];
            let first = turn * 1_000;
            let picks = (first..first + 1_000).map(|at| keys.pick(at, 50_000) / 100);
            picks.for_each(|range| hits[range as usize] += 1);
            (0..10).max_by_key(|&i: &usize| hits[i]).unwrap()
        };
        let first = hottest(0);
        assert_eq!([1, 2, 12].map(&mut hottest), [1, 2, 2].map(|by| (first + by) % 10));
    }

    #[test]
    fn a_sequential_load_writes_each_key_once_and_in_order() {
        let space = Space::new(1_000, 10);
        let mut keys = Keys::new(&Load::Sequential, &space, 5, 64);
        let mut mem = MemTable::new(10, 0);
        keys.write(0, 150, 1_000, &mut mem);
        keys.write(150, 100, 1_000, &mut mem);
        assert_eq!(mem.writes[..4], [100, 100, 50, 0]);
        assert_eq!((mem.count, mem.keys.clone()), (250, Some(0..250)));
    }

    #[test]
    fn drawing_together_loses_no_write() {
        let space = Space::new(1_000, 10);
        let mut keys = Keys::new(&Load::Uniform, &space, 5, 7);
        let mut mem = MemTable::new(10, 0);
        keys.write(0, 1_000, 1_000, &mut mem);
        assert_eq!((mem.count, mem.writes.iter().sum::<u32>()), (1_000, 1_000));
    }
}
