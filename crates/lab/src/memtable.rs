//! Memtables as histograms of writes, and how a flush cuts one into files.

use std::sync::Arc;

use lithify_base::{Bytewise, Key};
use lithify_control::{Cutting, Flow};
use lithify_lsm::Version;
use lithify_plan::adapt::{create, sample_step, survey};
use lithify_plan::{CutPolicy, PlanOptions};

use crate::merge::{Cutter, EntryBytes, Overlap, Recipe, Set};
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
}

impl MemTable {
    /// An empty one over `cells` cells, after write number `before`.
    pub fn new(cells: u32, before: u64) -> MemTable {
        MemTable { writes: vec![0; cells as usize], count: 0, before }
    }
    /// What they take in memory.
    fn bytes(&self, of: &EntryBytes) -> u64 {
        (self.count as f64 * of.memory) as u64
    }
    /// A write to a key of `cell`.
    pub fn add(&mut self, cell: u32) {
        self.writes[cell as usize] += 1;
        self.count += 1;
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
    overlap: Overlap,
    bytes: &EntryBytes,
    space: &Space,
) -> Flushing {
    let (flow, splits) = look(mem, cutting, version, options, bytes, space).unzip();
    let hard = splits.unwrap_or_default();
    let cuts = CutPolicy { target_bytes: u64::MAX, hard, ..CutPolicy::default() };
    let mut cutter = Cutter::new(&cuts, bytes.logical, space);
    let mut out = 0.0;
    for (cell, &writes) in mem.writes.iter().enumerate() {
        let keys = space.cell(cell as u32);
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
        let of = space.cell(cell as u32);
        let width = (of.end - of.start) as f64;
        for i in 0..writes {
            since += bytes.logical;
            if since >= step {
                let at = of.start + (width * f64::from(i) / f64::from(writes)) as u64;
                keys.push((key(at), since as u64));
                since = 0.0;
            }
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
        EntryBytes { user: 1000.0, disk: 1000.0, logical: 1000.0, memory: 1000.0 };

    fn full() -> MemTable {
        let mut mem = MemTable::new(SPACE.cells, 0);
        (0..8192).for_each(|i| mem.add(i % 256));
        mem
    }

    #[test]
    fn the_first_map_divides_a_flush_evenly() {
        let mut options = PlanOptions::preset(PolicyKind::Bucket);
        options.buckets.initial = 4;
        options.memtable_bytes = 8 << 20;
        let version = Version::empty(bytewise());
        let random = Overlap::Random;
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
        let f = flush(&full(), &Cutting::Whole, &version, &options, Overlap::None, &BYTES, &SPACE);
        assert!(f.flow.is_none());
        assert_eq!(f.recipe.files.len(), 1);
        assert_eq!(f.recipe.files[0].entries().round(), 8192.0);
    }
}
