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
use lithify_format::compress::Codec;
use lithify_format::limits::plain_max;

use crate::encode::{Carry, Foreign, Writer, refused};
use crate::ledger::Ledger;
use crate::products::{BlockMeta, Item, Lent, Products, SetDone, TRAILER};
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
    /// The entries that the last set began with.
    start: Vec<u8>,
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
        let (carry, start) = (writer.carry(), Vec::new());
        Ok(Offload { recipe, tables, carry, writer, start, finished: false })
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

    /// Goes on from `carry`, or stands at the start if there is none.
    ///
    /// # Errors
    /// As [`Offload::new`].
    pub fn begin(recipe: Arc<Recipe>, carry: Option<Carry>) -> Result<Offload> {
        match carry {
            None => Offload::new(recipe),
            Some(carry) => Offload::resume(recipe, carry),
        }
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
        let arena = made.arena.bytes();
        let plain = |b: &BlockMeta| arena.get(b.at.clone()).map(made::plain_most);
        let open = arena.get(made.open.clone()).ok_or_else(made::no_place);
        let before = self.carry.open(&self.recipe).entries;
        made.check(&self.recipe, self.logical_bytes(), &plain)?;
        check_start(arena, made.blocks.first(), before)?;
        self.advance(&made, open?)?;
        let (joined, arena) = self.joined(made);
        joined.fill(arena, out);
        Ok(())
    }

    /// Takes the next set before its finished blocks are here, so that the machine may go on with the set after
    /// it while they come. `made` says where they will lie; its arena is not looked at. `open` are the entries
    /// of the block that stays open.
    ///
    /// # Errors
    /// As [`Offload::set_done`].
    pub fn join(&mut self, made: Made, open: &[u8]) -> Result<Joined> {
        self.check_unfinished()?;
        let compressed = self.recipe.codec != Codec::None;
        let plain = |b: &BlockMeta| {
            let payload = b.at.len().saturating_sub(TRAILER);
            Some(if compressed { plain_max(payload) } else { payload })
        };
        made.check(&self.recipe, self.logical_bytes(), &plain)?;
        self.advance(&made, open)?;
        Ok(self.joined(made).0)
    }

    fn logical_bytes(&self) -> u64 {
        self.carry.open(&self.recipe).cut.logical_bytes()
    }

    /// Moves on over the set; stands where it stood if that fails.
    fn advance(&mut self, made: &Made, open: &[u8]) -> Result<()> {
        let moved = self.move_writer(made, open);
        match &moved {
            Ok(()) => self.carry = self.writer.carry(),
            Err(_) => self.writer.restart(&self.carry),
        }
        moved
    }

    /// What became of the set that was moved over, and its arena.
    fn joined(&mut self, made: Made) -> (Joined, Box<dyn Lent>) {
        let Made { set, arena, blocks, keys, hashes, .. } = made;
        let mut items = self.writer.take_items();
        let carry = Box::new(self.carry.clone());
        items.push(Item::SetDone(SetDone { no: set, carry }));
        let used = blocks.last().map_or(0, |b| b.at.end);
        let start = std::mem::take(&mut self.start);
        (Joined { used, start, first: blocks.into_iter().next(), keys, hashes, items }, arena)
    }

    /// Moves the writer over the set.
    fn move_writer(&mut self, made: &Made, open: &[u8]) -> Result<()> {
        let before = self.carry.open(&self.recipe);
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
        if made.blocks.is_empty() && !open.starts_with(before.entries) {
            return Err(wrong_start());
        }
        self.start.clear();
        self.start.extend_from_slice(before.entries);
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

/// A set that is part of the output, and whose finished blocks are still to come.
pub struct Joined {
    /// Bytes of the finished blocks.
    used: usize,
    /// The entries that the first of them begins with.
    start: Vec<u8>,
    first: Option<BlockMeta>,
    keys: Vec<u8>,
    hashes: Vec<u64>,
    items: Vec<Item>,
}

impl Joined {
    /// Fills `out` with the set's blocks, file cuts and end, now that its blocks are here. `out` holds the memory
    /// that they lie in until it is cleared.
    ///
    /// # Errors
    /// Internal if they are not all here, or do not go on where the output stood. What has joined the output
    /// since does not count then: go on from the carry before this set.
    pub fn hand_out(self, arena: Box<dyn Lent>, out: &mut Products) -> Result<()> {
        if arena.bytes().len() < self.used {
            return Err(made::no_place());
        }
        check_start(arena.bytes(), self.first.as_ref(), &self.start)?;
        self.fill(arena, out);
        Ok(())
    }

    fn fill(self, arena: Box<dyn Lent>, out: &mut Products) {
        out.clear();
        out.lend(arena, self.used);
        (out.keys, out.hashes, out.items) = (self.keys, self.hashes, self.items);
    }
}

/// Whether the first finished block begins with the entries that were open. Compressed, it shows only by its
/// metadata.
fn check_start(arena: &[u8], first: Option<&BlockMeta>, before: &[u8]) -> Result<()> {
    let bytes = first.and_then(|b| arena.get(b.at.clone()));
    let plain = bytes.filter(|bytes| made::type_byte(bytes) == 0);
    if plain.is_some_and(|bytes| !bytes.starts_with(before)) {
        return Err(wrong_start());
    }
    Ok(())
}

#[cold]
fn wrong_start() -> Error {
    refused("the block that was open is not where the output goes on")
}

#[cfg(test)]
mod tests;
