//! A table made outside of any database: sorted entries in, one file out, through the cuts and the
//! encoder of every other table.
//!
//! Keeps: all entries have the number 0, each key occurs once, and the table says that it is in the
//! external form, so the database that takes it in may give all of them one number. Its block sums are bound to
//! an identity of its own.
//! Leaves to others: the order of entries ([`Kernel::push`] fails on a wrong one, but the caller can
//! say it better), taking tables in.

use lithify_base::{ComparatorRef, FileId, Kind, MAX_LEVELS, MergeOperatorRef, Result, Tag};
use lithify_env::sync::Arc;
use lithify_env::{BufPool, FileRef};
use lithify_format::table::tail::TableSpec;
use lithify_merge::tombstone::{Fragments, RangeTombstone};
use lithify_merge::{Item, Kernel, Products, Recipe, SLICE_BYTES};
use lithify_tables::sst::{Assembler, AssemblerOptions, FinishedTable, WriteMode};

use crate::context::{Maker, OutputOptions, Times};

/// The level whose tables it looks like: where it goes is not known, and most data is there.
const LEVEL: u8 = MAX_LEVELS as u8 - 1;

/// Writes one external table.
pub struct ExternalTable {
    kernel: Kernel,
    products: Products,
    table: Assembler,
    order: ComparatorRef,
    tombstones: Vec<RangeTombstone>,
}

impl ExternalTable {
    /// A table in `file`, which is empty and called `name` in errors. It looks as `output` has it for
    /// the deepest level. `maker` must be another one for each table; `operator` is the merge operator
    /// that its operands are for, if one is known.
    ///
    /// # Errors
    /// Unsupported if this build does not write the codec; what the file gives.
    pub fn new(
        file: FileRef,
        name: String,
        order: ComparatorRef,
        output: &OutputOptions,
        maker: Maker,
        operator: Option<&MergeOperatorRef>,
        now: u64,
    ) -> Result<ExternalTable> {
        let mut recipe = Recipe::new(1);
        recipe.order = order.clone();
        recipe.file_bytes = u64::MAX;
        recipe.drop_tombstones = false;
        recipe.zero_seqs = false;
        output.encode(&mut recipe, LEVEL);
        recipe.check()?;
        let times = Times { now, oldest_ancestor: now };
        let spec = output.table_spec(maker, FileId(1), LEVEL, times, false);
        // No manifest says where it ends, so its deletions end where they should.
        let mut spec = TableSpec { external: true, as_rocksdb: false, ..spec };
        if let Some(operator) = operator {
            spec.merge_operator = operator.name().to_owned();
        }
        let options = AssemblerOptions {
            pool: BufPool::new(output.write_bytes),
            buffer: output.write_bytes,
            mode: WriteMode::Sync,
            direct: false,
            reserve: 0,
            deletions: output.deletions,
        };
        Ok(ExternalTable {
            kernel: Kernel::new(Arc::new(recipe))?,
            products: Products::default(),
            table: Assembler::over(file, name, spec, order.clone(), options)?,
            order,
            tombstones: Vec::new(),
        })
    }

    /// Adds the next entry: its key is above the one before.
    ///
    /// # Errors
    /// Corruption if it is not; the first failed write, after which the table is lost.
    pub fn push(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        self.kernel.push(key, Tag::new(0, kind), value, 0)?;
        match self.kernel.ready_bytes() >= SLICE_BYTES {
            true => self.hand_on(),
            false => Ok(()),
        }
    }

    /// Adds a range deletion, in any order. It hides no entry of this table.
    pub fn push_range_delete(&mut self, from: &[u8], to: &[u8]) {
        self.tombstones.push(RangeTombstone { lo: from.into(), hi: to.into(), seq: 0, run: 0 });
    }

    /// Bytes written so far, without blocks that are not full.
    pub fn bytes(&self) -> u64 {
        self.table.data_bytes() + self.kernel.ready_bytes() as u64
    }

    /// Ends the table and syncs it. Its name is not synced.
    ///
    /// # Errors
    /// `InvalidArgument` if there is nothing in it; the first failed write or sync.
    pub fn finish(mut self) -> Result<FinishedTable> {
        self.kernel.finish()?;
        self.hand_on()?;
        let fragments = Fragments::from_raw(std::mem::take(&mut self.tombstones), &*self.order);
        self.table.push_tombstones(&fragments.to_tombstones()?);
        self.table.finish()
    }

    fn hand_on(&mut self) -> Result<()> {
        self.kernel.drain(&mut self.products);
        for item in self.products.items() {
            // One file, whatever the cuts: the last one is that of the whole output.
            if let Item::Block(block) = item {
                self.table.push_product(&self.products, block)?;
            }
        }
        self.products.clear();
        Ok(())
    }
}
