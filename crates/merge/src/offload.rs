//! The host half of a machine that merges and encodes data blocks elsewhere, such as a GPU or an
//! FPGA: what the machine must know before a set, and what becomes of the blocks that come back.
//!
//! Keeps: a set made elsewhere leaves the same blocks, metadata, file cuts, ledger and [`Carry`] as
//! the [`Kernel`](crate::Kernel) leaves, because what is no data block comes from the kernel's own
//! output stage. Places, counts and keys that a machine states are checked before use; what does
//! not fit is an error, and the offload stands where it stood before the set. So the caller may
//! merge that set with a kernel resumed from [`Offload::carry`] instead, and come back afterwards.
//! Leaves to others: the content of finished blocks that came in arrays, which
//! [`certify`](crate::certify) proves; the machine, its memory and its time.
//!
//! ```text
//! recipe, Carry -> Offload --- tables, open ---> machine
//!                     ^                             | arrays, or payloads -> Made::decode
//!                     +--------- set_done <------ Made
//!                                    | blocks, file cuts, Carry
//!                                    v
//!                                 Products
//! ```
//! Worked example: the open block has three entries, and the grid does not end it yet. The machine adds
//! two entries to it, starts another block with one entry, and hands in one finished block of five
//! entries and the bytes of one open entry. `set_done` makes a block item, and a carry with the one
//! entry; if that entry started a file, a file cut follows the block.

use std::sync::Arc;

use lithify_base::{Error, InternalKey, Result};

use crate::encode::{Carry, Foreign, Writer, refused};
use crate::ledger::Ledger;
use crate::products::{Item, Products, SetDone};
use crate::recipe::Recipe;

mod made;
mod tables;

pub use crate::encode::OpenState;
pub use made::{Drops, Made};
pub use tables::{Tables, ZoneRow};

/// One compaction whose blocks are made elsewhere. See the module's page.
pub struct Offload {
    recipe: Arc<Recipe>,
    tables: Tables,
    /// The state after the last set.
    carry: Carry,
    /// Stands at `carry` between calls.
    writer: Writer,
    finished: bool,
}

impl Offload {
    /// Stands at the start of an output. Which range tombstones stay (D5) is decided here.
    ///
    /// # Errors
    /// InvalidArgument for a recipe that makes no sense, Unsupported for a codec this build does
    /// not write.
    pub fn new(recipe: Arc<Recipe>) -> Result<Offload> {
        let (writer, zones) = Writer::start(recipe.clone())?;
        let tables = Tables::new(&recipe, zones);
        Ok(Offload { recipe, tables, carry: writer.carry(), writer, finished: false })
    }

    /// Goes on after the set whose end gave `carry`, whichever engine made it.
    ///
    /// # Errors
    /// As [`Offload::new`].
    pub fn resume(recipe: Arc<Recipe>, carry: Carry) -> Result<Offload> {
        let mut offload = Offload::new(recipe)?;
        offload.writer.restart(&carry);
        offload.carry = carry;
        Ok(offload)
    }

    /// What decides about drops and splits, as arrays.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Where the output stands: after the last set handed in, or at its start.
    pub fn open(&self) -> OpenState<'_> {
        self.carry.open(&self.recipe)
    }

    /// The state after the last set handed in; any engine may go on from it.
    pub fn carry(&self) -> &Carry {
        &self.carry
    }

    /// Takes what the machine made of the next set. `out` is cleared and filled with the set's
    /// blocks, file cuts and end; it holds the memory that `made` lends until it is cleared.
    ///
    /// # Errors
    /// Internal if `made` cannot be what the recipe makes of the set; Unsupported for range
    /// tombstones that no file can store; InvalidArgument after [`Offload::finish`]. `out` stays as it
    /// was then, the memory is given back, and the next call may hand in the same set once more.
    pub fn set_done(&mut self, made: Made, out: &mut Products) -> Result<()> {
        self.check_unfinished()?;
        if let Err(e) = self.join(&made) {
            self.writer.restart(&self.carry);
            return Err(e);
        }
        self.carry = self.writer.carry();
        let Made { set, arena, blocks, keys, hashes, .. } = made;
        out.clear();
        out.lend(arena, blocks.last().map_or(0, |b| b.at.end));
        (out.keys, out.hashes) = (keys, hashes);
        out.items = self.writer.take_items();
        let carry = Box::new(self.carry.clone());
        out.items.push(Item::SetDone(SetDone { no: set, carry }));
        Ok(())
    }

    /// Moves the writer over the set.
    fn join(&mut self, made: &Made) -> Result<()> {
        made.check(&self.recipe, self.carry.open(&self.recipe).cut.logical_bytes())?;
        let before = self.carry.open(&self.recipe);
        let arena = made.arena.bytes();
        let key = |at: &std::ops::Range<usize>| {
            made.keys.get(at.clone()).and_then(InternalKey::decode).ok_or_else(made::no_place)
        };
        let mut entries = 0;
        for b in &made.blocks {
            entries += u64::from(b.entries);
            self.writer.adopt(Foreign {
                first: key(&b.first)?,
                last: key(&b.last)?,
                hashes: made.hashes.get(b.hashes.clone()).ok_or_else(made::no_place)?,
                meta: b.clone(),
            })?;
        }
        let open = arena.get(made.open.clone()).ok_or_else(made::no_place)?;
        // Compressed, the block shows only by its metadata that it begins with the open one.
        let start = match made.blocks.first() {
            Some(b) => arena.get(b.at.clone()).filter(|b| made::type_byte(b) == 0),
            None => Some(open),
        };
        if start.is_some_and(|b| !b.starts_with(before.entries)) {
            return Err(refused("the block that was open is not where the output goes on"));
        }
        let mut from = before.entries.len();
        if !made.blocks.is_empty() {
            if open.is_empty() {
                return Err(refused("no block is open after the last one"));
            }
            self.writer.set_last_prefix(made.last_prefix);
            from = 0;
        }
        self.writer.read(open, from)?;
        let hashed = made.blocks.last().map_or(0, |b| b.hashes.end);
        if made.hashes.get(hashed..) != Some(self.writer.open_hashes()) {
            return Err(refused("filter hashes of the open block differ from its entries"));
        }
        entries += u64::from(self.writer.open_entries());
        let entries = entries.checked_sub(u64::from(before.counts.entries));
        let mut ledger = self.carry.ledger().clone();
        let sum_out = self.writer.ledger.sum_out.wrapping_sub(ledger.sum_out);
        made.drops.add_to(&mut ledger, entries.unwrap_or(u64::MAX), sum_out)?;
        ledger.check()?;
        self.writer.ledger = ledger;
        Ok(())
    }

    /// Ends the output: closes the open block and file. `out` is cleared and takes them.
    ///
    /// # Errors
    /// Internal if the ledger does not balance; Unsupported for range tombstones that no file can
    /// store; InvalidArgument if it was called before.
    pub fn finish(&mut self, out: &mut Products) -> Result<Ledger> {
        self.check_unfinished()?;
        self.finished = true;
        self.writer.finish()?;
        self.writer.ledger.check()?;
        self.writer.drain(out);
        Ok(self.writer.ledger.clone())
    }

    fn check_unfinished(&self) -> Result<()> {
        if self.finished {
            return Err(Error::invalid("the output was finished already"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
