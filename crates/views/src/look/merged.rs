//! Reads of a key whose newest entry is an operand: all operands down to a value are gathered, and
//! combined.

use std::ops::ControlFlow;

use lithify_base::{Result, Seq, Tag};
use lithify_env::sync::Arc;
use lithify_format::filter::key_hash;
use lithify_tables::sst::Fill;

use super::Look;
use crate::operands::Operands;
impl Look<'_> {
    /// The value of `key`, whose newest visible entry is an operand.
    pub(super) fn merged(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.merged_under(std::iter::empty(), key)
    }

    /// The same under a transaction's own entries of the key, newest first.
    ///
    /// # Errors
    /// `Corruption` or `Io` of a table; those of the operator, and `Unsupported` without one.
    pub fn merged_under<'a>(
        &self,
        own: impl Iterator<Item = (Tag, &'a [u8])>,
        key: &[u8],
    ) -> Result<Vec<u8>> {
        let mut operands = Operands::default();
        for (tag, value) in own {
            if let ControlFlow::Break(base) = operands.take(tag, value, None)? {
                return operands.combine(self.operator, key, base.as_deref());
            }
        }
        let base = self.gather(key, &mut operands)?;
        operands.combine(self.operator, key, base.as_deref())
    }

    /// Looks for operands of `key` until there is something to apply them to.
    fn gather(&self, key: &[u8], operands: &mut Operands) -> Result<Option<Vec<u8>>> {
        let (sv, at) = (self.sv, self.at);
        let order = sv.tree.version.order();
        let mut hidden: Option<Seq> = None;
        for mem in &sv.mems {
            let mem = &*mem.table;
            if mem.has_range_tombstones() {
                hidden = hidden.max(mem.covering(key, at));
            }
            for (tag, value) in mem.entries(key, at) {
                if let ControlFlow::Break(base) = operands.take(tag, value, hidden)? {
                    return Ok(base);
                }
            }
        }
        let hash = key_hash(key);
        for run in &sv.tree.runs {
            let Some(slot) = run.find(key, order) else { continue };
            let reader: &Arc<_> = slot.reader(self.tables)?;
            if slot.file.range_deletes > 0 {
                hidden = hidden.max(reader.covering_seq(&slot.file, key, at));
            }
            let mut met = Ok(ControlFlow::Continue(()));
            reader.get_all(key, hash, at, Fill::Cache, |tag, value| {
                met = operands.take(tag, value.bytes(), hidden);
                match met {
                    Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            })?;
            if let ControlFlow::Break(base) = met? {
                return Ok(base);
            }
        }
        Ok(None)
    }
}
