//! Memtables as histograms of writes, and how a flush cuts one into files.

use std::ops::Range;
use std::sync::Arc;

use lithify_base::{Bytewise, Key};
use lithify_control::{Cutting, Flow};
use lithify_lsm::Version;
use lithify_plan::adapt::{create, sample_step, survey};
use lithify_plan::{CutPolicy, PlanOptions};

use crate::merge::{Cutter, EntryBytes, Recipe, Set};
use crate::overlap::Overlap;
use crate::space::{Space, key};

/// Writes since the last freeze.
#[derive(Clone, Debug, Default)]
pub struct MemTable {
    /// Writes per cell.
    pub writes: Vec<u32>,
    /// All of them.
    pub count: u64,
    /// Sequence number before the first one.
    pub before: u64,
    /// The keys, where they were written one after the other; otherwise they lie anywhere in their
    /// cells.
    pub keys: Option<Range<u64>>,
}

impl MemTable {
    /// An empty one over `cells` cells, after write number `before`.
    pub fn new(cells: u32, before: u64) -> MemTable {
        MemTable { writes: vec![0; cells as usize], count: 0, before, keys: None }
    }
    /// What they take in memory.
    fn bytes(&self, of: &EntryBytes) -> u64 {
        (self.count as f64 * of.memory) as u64
    }
    /// Writes to keys of `cell`.
    pub fn add(&mut self, cell: u32, writes: u32) {
        self.writes[cell as usize] += writes;
        self.count += u64::from(writes);
    }
    /// A write to each of `keys`, which begin where the last ones ended.
    pub fn add_keys(&mut self, keys: Range<u64>, space: &Space) {
        let mut from = keys.start;
        while from < keys.end {
            let cell = space.cell_of(from);
            // What lies behind the space is taken to be at its end.
            let last = cell + 1 == space.cells;
            let to = if last { keys.end } else { space.start(cell + 1).min(keys.end) };
            self.add(cell, u32::try_from(to - from).unwrap_or(u32::MAX));
            from = to;
        }
        self.keys.get_or_insert(keys.start..keys.start).end = keys.end;
    }
    /// The keys of a cell between which its writes lie.
    fn part(&self, cell: u32, space: &Space) -> Range<u64> {
        let whole = space.cell(cell);
        match &self.keys {
            Some(keys) => whole.start.max(keys.start)..whole.end.min(keys.end),
            None => whole,
        }
    }
}

/// What a flush makes of a memtable, and what it learns.
pub struct Flushing {
    /// One set and its files.
    pub recipe: Recipe,
    /// What went where, if it is cut by buckets.
    pub flow: Option<Box<Flow>>,
}

/// Plans the flush of `mem`.
pub fn flush(
    mem: &MemTable,
    cutting: &Cutting,
    version: &Version,
    options: &PlanOptions,
    overlap: &Overlap,
    bytes: &EntryBytes,
    space: &Space,
) -> Flushing {
    let (flow, splits) = look(mem, cutting, version, options, bytes, space).unzip();
    let hard = splits.unwrap_or_default();
    let cuts = CutPolicy { target_bytes: u64::MAX, hard, ..CutPolicy::default() };
    let mut cutter = Cutter::new(&cuts, bytes.logical, space);
    let mut out = 0.0;
    for (cell, &writes) in mem.writes.iter().enumerate().filter(|(_, w)| **w > 0) {
        let keys = mem.part(cell as u32, space);
        let distinct = overlap.distinct(f64::from(writes), (keys.end - keys.start) as f64);
        out += distinct;
        cutter.push(keys, distinct);
    }
    let set = Set { reads: Vec::new(), entries_in: mem.count as f64, entries_out: out };
    Flushing { recipe: Recipe { sets: vec![set], files: cutter.finish() }, flow }
}

/// What goes into each bucket of a flush that is cut, and where its files begin.
fn look(
    mem: &MemTable,
    cutting: &Cutting,
    version: &Version,
    options: &PlanOptions,
    bytes: &EntryBytes,
    space: &Space,
) -> Option<(Box<Flow>, Vec<Key>)> {
    let (map, keys) = match cutting {
        Cutting::Whole => return None,
        Cutting::By(map) => (map.clone(), sample(mem, map.len() as u64, bytes, space)),
        Cutting::First => {
            let initial = u64::from(options.buckets.initial.max(1));
            let keys = sample(mem, initial, bytes, space);
            (Arc::new(create(version, options, &keys)), keys)
        }
    };
    let found = survey(&map, keys, mem.bytes(bytes), &Bytewise);
    Some((Box::new(Flow { map, report: found.report }), found.splits))
}

/// A key every so many bytes, each with those bytes.
fn sample(mem: &MemTable, buckets: u64, bytes: &EntryBytes, space: &Space) -> Vec<(Key, u64)> {
    let step = sample_step(mem.bytes(bytes), buckets) as f64;
    let mut keys = Vec::new();
    let mut since = 0.0;
    for (cell, &writes) in mem.writes.iter().enumerate() {
        let of = mem.part(cell as u32, space);
        let width = of.end.saturating_sub(of.start) as f64;
        let mut passed = 0;
        loop {
            let due = ((step - since) / bytes.logical).ceil().max(1.0);
            if due > f64::from(writes - passed) {
                since += f64::from(writes - passed) * bytes.logical;
                break;
            }
            passed += due as u32;
            let at = of.start + (width * f64::from(passed - 1) / f64::from(writes)) as u64;
            keys.push((key(at), (since + due * bytes.logical) as u64));
            since = 0.0;
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_base::bytewise;
    use lithify_plan::PolicyKind;

    const SPACE: Space = Space { keys: 1 << 20, cells: 256 };
    const BYTES: EntryBytes =
        EntryBytes { user: 1e3, disk: 1e3, block: 4e3, tail: 8.0, logical: 1e3, memory: 1e3 };

    fn full() -> MemTable {
        let mut mem = MemTable::new(SPACE.cells, 0);
        (0..8192).for_each(|i| mem.add(i % 256, 1));
        mem
    }

    #[test]
    fn the_first_map_divides_a_flush_evenly() {
        let mut options = PlanOptions::preset(PolicyKind::Bucket);
        options.buckets.initial = 4;
        options.memtable_bytes = 8 << 20;
        let version = Version::empty(bytewise());
        let random = &Overlap::Random;
        let f = flush(&full(), &Cutting::First, &version, &options, random, &BYTES, &SPACE);
        let flow = f.flow.unwrap();
        assert_eq!((flow.map.len(), f.recipe.files.len()), (4, 4));
        let shares: Vec<f64> = f.recipe.files.iter().map(|f| f.entries()).collect();
        assert!(shares.iter().all(|s| (1950.0..2150.0).contains(s)), "{shares:?}");
        let bounds: Vec<u64> = flow.map.bounds.iter().map(|b| crate::space::number(b)).collect();
        let starts: Vec<u64> = f.recipe.files[1..].iter().map(|f| f.keys.start).collect();
        assert_eq!(bounds, starts);
        assert!(flow.report.buckets.iter().all(|b| b.keys.len() == 15));
    }

    #[test]
    fn without_buckets_a_flush_is_one_file() {
        let options = PlanOptions::preset(PolicyKind::Hybrid);
        let version = Version::empty(bytewise());
        let f = flush(&full(), &Cutting::Whole, &version, &options, &Overlap::None, &BYTES, &SPACE);
        assert!(f.flow.is_none());
        assert_eq!(f.recipe.files.len(), 1);
        assert_eq!(f.recipe.files[0].entries().round(), 8192.0);
    }
}
