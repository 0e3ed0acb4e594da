//! Reads of a key whose newest entry is an operand: all operands down to a value are gathered, and
//! combined.

use std::ops::ControlFlow;

use lithify_base::{Result, Seq, Tag};
use lithify_env::sync::Arc;
use lithify_format::filter::key_hash;
use lithify_tables::sst::Fill;

use crate::read::operands::Operands;
use crate::read::super_version::SuperVersion;
use crate::shell::Shell;

impl Shell {
    /// The value of `key` at `at`, whose newest visible entry is an operand.
    pub(crate) fn merged_value(&self, sv: &SuperVersion, key: &[u8], at: Seq) -> Result<Vec<u8>> {
        self.merged_under(std::iter::empty(), sv, key, at)
    }

    /// The same under a transaction's own entries of the key, newest first.
    pub(crate) fn merged_under<'a>(
        &self,
        own: impl Iterator<Item = (Tag, &'a [u8])>,
        sv: &SuperVersion,
        key: &[u8],
        at: Seq,
    ) -> Result<Vec<u8>> {
        let mut operands = Operands::default();
        for (tag, value) in own {
            if let ControlFlow::Break(base) = operands.take(tag, value, None)? {
                let operator = self.context().operator.as_ref();
                return operands.combine(operator, key, base.as_deref());
            }
        }
        let base = self.gather(sv, key, at, &mut operands)?;
        operands.combine(self.context().operator.as_ref(), key, base.as_deref())
    }

    /// Looks for operands of `key` until there is something to apply them to.
    fn gather(
        &self,
        sv: &SuperVersion,
        key: &[u8],
        at: Seq,
        operands: &mut Operands,
    ) -> Result<Option<Vec<u8>>> {
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
            let reader: &Arc<_> = slot.reader(&self.family.tables)?;
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
