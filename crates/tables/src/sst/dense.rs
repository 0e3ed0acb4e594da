//! Which tables have so many deletions that they should be compacted soon: scans over them look at
//! entries that are not there, and the data they hide takes space.

use lithify_base::memory::Pieces;
use lithify_format::table::tail::BlockMeta;

/// When a table is marked as it is written. RocksDB's `CompactOnDeletionCollector`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionTrigger {
    /// Neighbouring entries that are looked at together; 0 for none. A block counts whole, so a
    /// stretch may begin and end up to a block later.
    pub window: u64,
    /// Deletions among them that mark the table, from 1.
    pub deletes: u64,
    /// Deletions in percent of all entries that mark the table; 0 for never.
    pub ratio_percent: u32,
}

impl DeletionTrigger {
    /// True if a table of these blocks should be marked. Range deletions do not count.
    pub(crate) fn marks(&self, blocks: &Pieces<BlockMeta>) -> bool {
        self.all_in_all(blocks) || self.in_a_row(blocks)
    }

    fn all_in_all(&self, blocks: &Pieces<BlockMeta>) -> bool {
        let (entries, deletes) = sums(blocks);
        self.ratio_percent > 0
            && deletes > 0
            && u128::from(deletes) * 100 >= u128::from(entries) * u128::from(self.ratio_percent)
    }

    /// As many blocks as fit into the window, at least one, from each block on.
    fn in_a_row(&self, blocks: &Pieces<BlockMeta>) -> bool {
        if self.window == 0 {
            return false;
        }
        let (mut end, mut entries, mut deletes) = (0, 0u64, 0u64);
        (0..blocks.len()).any(|from| {
            while let Some(next) = blocks.get(end)
                && (end == from || entries.saturating_add(next.entries) <= self.window)
            {
                entries = entries.saturating_add(next.entries);
                deletes = deletes.saturating_add(next.deletes);
                end += 1;
            }
            let many = deletes >= self.deletes.max(1);
            entries = entries.saturating_sub(blocks[from].entries);
            deletes = deletes.saturating_sub(blocks[from].deletes);
            many
        })
    }
}

fn sums(blocks: &Pieces<BlockMeta>) -> (u64, u64) {
    blocks.iter().fold((0, 0), |s, b| (s.0 + b.entries, s.1 + b.deletes))
}

#[cfg(test)]
mod tests {
    use lithify_merge::workload::Choices;

    use super::*;

    fn blocks(counts: &[(u64, u64)]) -> Pieces<BlockMeta> {
        let block = |&(entries, deletes): &(u64, u64)| BlockMeta {
            entries,
            deletes,
            ..BlockMeta::default()
        };
        counts.iter().map(block).collect()
    }

    #[test]
    fn deletions_in_a_row_or_in_all_mark_a_table() {
        let rows = |window, deletes| DeletionTrigger { window, deletes, ratio_percent: 0 };
        let table = blocks(&[(10, 1), (10, 0), (10, 6), (10, 5), (10, 0), (10, 4)]);
        assert!(rows(20, 11).marks(&table));
        assert!(!rows(20, 12).marks(&table), "the third is too far away");
        assert!(rows(40, 15).marks(&table));
        assert!(!rows(39, 15).marks(&table));
        assert!(rows(1, 6).marks(&table), "a block counts whole");
        assert!(!rows(1, 7).marks(&table));
        assert!(!rows(0, 1).marks(&table), "no window, no mark");
        assert!(!rows(5, 0).marks(&blocks(&[(10, 0)])), "a table without deletions");

        let ratio = |ratio_percent| DeletionTrigger { ratio_percent, ..DeletionTrigger::default() };
        assert!(ratio(26).marks(&table));
        assert!(!ratio(27).marks(&table), "16 of 60");
        assert!(!ratio(0).marks(&table) && !ratio(1).marks(&Pieces::default()));
    }

    /// The sliding sums against sums of every stretch.
    #[test]
    fn stretches_agree_with_all_of_them() {
        let mut choices = Choices::new(4);
        let mut below = |n: u64| choices.below(n as usize) as u64;
        let mut marked = 0;
        for _ in 0..2000 {
            let mut counts: Vec<(u64, u64)> = Vec::new();
            for _ in 0..below(8) {
                let entries = 1 + below(19);
                counts.push((entries, below(entries + 1)));
            }
            let (window, deletes) = (1 + below(59), 1 + below(39));
            let trigger = DeletionTrigger { window, deletes, ratio_percent: 0 };
            let stretch = |from: usize, end: usize| sums(&blocks(&counts[from..end]));
            let naive = (0..counts.len()).any(|from| {
                (from + 1..=counts.len()).any(|end| {
                    let (entries, deletes) = stretch(from, end);
                    (end == from + 1 || entries <= trigger.window) && deletes >= trigger.deletes
                })
            });
            assert_eq!(trigger.marks(&blocks(&counts)), naive, "{counts:?} {trigger:?}");
            marked += u32::from(naive);
        }
        assert!((300..1700).contains(&marked), "{marked} of 2000 are marked");
    }
}
