//! Tables: what a machine that merges elsewhere must know of a recipe, as flat arrays that can be
//! copied into its memory.
//!
//! Keeps: the zones are those that the kernel itself walks over, so there is one answer to what is
//! in use, covered or split at a key.
//! Leaves to others: the plain numbers of a recipe (block and file bytes, switches), which are read
//! from the recipe.
//!
//! Worked example: run 0 is in use in `[c, f]` and a file must start at `k`. The zones are `..c` (free
//! for run 0), `c..f` (not free), the keys after `f` (free), and `k..` (free, one split key passed).

use lithify_base::{Comparator, Key, Seq};

use crate::recipe::Recipe;
use crate::zone::Zones;

/// A stretch of keys in which the drop rules and the splits have one answer each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRow {
    /// The key it starts at; absent for the first zone.
    pub key: Option<Key>,
    /// It starts just after the key, not at it.
    pub after: bool,
    /// Position of the range tombstones' fragment over it ([`Tables::fragment`]).
    pub fragment: Option<u32>,
    /// Hard split keys at or below its keys.
    pub hard_splits: u32,
    /// Soft split keys at or below its keys.
    pub soft_splits: u32,
}

/// What decides about drops and splits, in arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Sequence numbers of live snapshots, ascending.
    pub snapshots: Vec<Seq>,
    /// All zones, in key order; never empty. The first one starts before every key.
    pub zones: Vec<ZoneRow>,
    /// Words of [`free`](Tables::free) for each zone.
    pub words: usize,
    /// One bit by zone and run, `words` words for each zone: no older data in use behind the run
    /// (D3, D4). Run `r` is bit `r % 64` of word `r / 64`.
    pub free: Vec<u64>,
    /// Where the tombstones of each fragment start in [`tombs`](Tables::tombs), and at last where all
    /// end.
    pub fragments: Vec<u32>,
    /// Sequence numbers of the range tombstones over each fragment, newest first: all that came in,
    /// as D2 needs them.
    pub tombs: Vec<Seq>,
    /// By fragment, the smallest sequence number of the tombstones that stay (D4, D5);
    /// [`MAX_SEQ`](lithify_base::MAX_SEQ) if none does.
    pub kept_min: Vec<Seq>,
}

impl Tables {
    pub(crate) fn new(recipe: &Recipe, zones: Zones) -> Tables {
        let order = &*recipe.order;
        let words = usize::from(recipe.runs).div_ceil(64);
        let mut tables = Tables { snapshots: recipe.snapshots.clone(), words, ..Tables::default() };
        tables.kept_min = zones.walk(|start, zone| {
            let passed = |splits: &[Key]| match start {
                None => 0,
                Some((key, _)) => splits.partition_point(|s| order.compare(s, key).is_le()) as u32,
            };
            tables.zones.push(ZoneRow {
                key: start.map(|(key, _)| key.clone()),
                after: start.is_some_and(|(_, after)| after),
                fragment: zone.fragment_at(),
                hard_splits: passed(&recipe.hard_splits),
                soft_splits: passed(&recipe.soft_splits),
            });
            let base = tables.free.len();
            tables.free.resize(base + words, 0);
            for run in (0..recipe.runs).filter(|&run| zone.is_free(run)) {
                tables.free[base + usize::from(run / 64)] |= 1 << (run % 64);
            }
        });
        for f in recipe.tombstones.iter() {
            tables.fragments.push(tables.tombs.len() as u32);
            tables.tombs.extend(f.tombs.iter().map(|t| t.seq));
        }
        tables.fragments.push(tables.tombs.len() as u32);
        tables
    }

    /// Position of the zone that `key` lies in.
    pub fn zone(&self, key: &[u8], order: &dyn Comparator) -> usize {
        let starts_by = |z: &ZoneRow| match &z.key {
            None => true,
            Some(k) if z.after => order.compare(k, key).is_lt(),
            Some(k) => order.compare(k, key).is_le(),
        };
        self.zones.partition_point(starts_by).saturating_sub(1)
    }
    /// True if no older data is in use behind `run` at the keys of a zone.
    pub fn is_free(&self, zone: usize, run: u16) -> bool {
        let word = self.free.get(zone * self.words + usize::from(run / 64));
        word.is_some_and(|w| w >> (run % 64) & 1 == 1)
    }
    /// Sequence numbers of the range tombstones over a fragment, newest first.
    pub fn fragment(&self, fragment: u32) -> &[Seq] {
        let at = |i: u32| self.fragments.get(i as usize).map_or(0, |&at| at as usize);
        self.tombs.get(at(fragment)..at(fragment + 1)).unwrap_or_default()
    }
}
