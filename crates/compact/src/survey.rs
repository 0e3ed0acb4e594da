//! A look over a memtable before a flush that is cut by buckets. One walk, a key kept every so many
//! bytes; the walk costs a few per cent of the flush it precedes. What is made of the keys (how much
//! goes into each bucket, where files begin) is `plan::adapt`'s.

use lithify_base::{Comparator, Key};
use lithify_env::sync::Arc;
use lithify_lsm::{BucketMap, Version};
use lithify_memtable::MemTable;
use lithify_plan::PlanOptions;
use lithify_plan::adapt::{FlushReport, create, sample_step, survey};

/// How a flush is cut into files.
#[derive(Clone)]
pub enum Cut {
    /// Not at all.
    Whole,
    /// At the bounds of this map.
    By(Arc<BucketMap>),
    /// At the bounds of a map made from the tree or, if that is empty, from the memtable.
    First {
        /// The tree.
        version: Box<Version>,
        /// The planner's options: how many buckets.
        options: Box<PlanOptions>,
    },
}

/// What the look over a memtable showed.
pub(crate) struct Survey {
    pub(crate) map: Arc<BucketMap>,
    pub(crate) report: FlushReport,
    /// First keys of all files but the first.
    pub(crate) splits: Vec<Key>,
}

/// Looks over `mem`; `None` if it is not cut.
pub(crate) fn look(mem: &MemTable, cut: &Cut, order: &dyn Comparator) -> Option<Survey> {
    let (map, sample) = match cut {
        Cut::Whole => return None,
        Cut::By(map) => (map.clone(), sample(mem, map.len() as u64)),
        Cut::First { version, options } => {
            let keys = sample(mem, u64::from(options.buckets.initial.max(1)));
            (Arc::new(create(version, options, &keys)), keys)
        }
    };
    let found = survey(&map, sample, mem.bytes() as u64, order);
    Some(Survey { map, report: found.report, splits: found.splits })
}

/// A key every so many bytes, each with those bytes.
fn sample(mem: &MemTable, buckets: u64) -> Vec<(Key, u64)> {
    let step = sample_step(mem.bytes() as u64, buckets);
    let mut keys = Vec::new();
    let mut bytes = 0;
    for (key, _, value) in mem.walk() {
        bytes += (key.len() + value.len() + 12) as u64;
        if bytes >= step {
            keys.push((Key::from(key), bytes));
            bytes = 0;
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_base::{Bytewise, Kind, bytewise};
    use lithify_memtable::{HeapPool, MemTableOptions};

    fn memtable(keys: u32) -> Arc<MemTable> {
        let options = MemTableOptions { order: bytewise(), arena_bytes: 1 << 20, bloom: false };
        let (table, mut writer) = MemTable::new(options, Arc::new(HeapPool));
        for i in 0..keys {
            writer.add(u64::from(i) + 1, Kind::Value, &i.to_be_bytes(), &[7; 1000]);
        }
        table
    }

    fn first(buckets: u32) -> Cut {
        let mut options = PlanOptions::default();
        options.buckets.initial = buckets;
        Cut::First { version: Box::new(Version::empty(bytewise())), options: Box::new(options) }
    }

    #[test]
    fn the_first_map_divides_the_memtable_into_equal_bytes() {
        let mem = memtable(4000);
        let survey = look(&mem, &first(4), &Bytewise).unwrap();
        assert_eq!(survey.splits, survey.map.bounds);
        assert_eq!(survey.map.len(), 4);
        let shares: Vec<u64> = survey.report.buckets.iter().map(|b| b.bytes >> 10).collect();
        assert!(shares.iter().all(|s| (900..1100).contains(s)), "{shares:?}");
        assert!(survey.report.buckets.iter().all(|b| b.keys.len() == 15));
    }

    #[test]
    fn a_small_share_joins_its_neighbour() {
        let mem = memtable(1000);
        let bounds: Vec<Key> = [500u32, 990].map(|i| Key::from(i.to_be_bytes().as_slice())).into();
        let stats = vec![Default::default(); 3];
        let map = Arc::new(BucketMap { epoch: 3, bounds: bounds.clone(), stats });
        let survey = look(&mem, &Cut::By(map), &Bytewise).unwrap();
        assert_eq!(survey.splits, bounds[..1], "ten entries of 1 KB are no file of their own");
        assert_eq!((survey.report.epoch, survey.report.buckets.len()), (3, 3));
    }
}
