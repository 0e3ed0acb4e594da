//! Grid cut: where blocks and files start, as a function of logical bytes alone (R1).
//!
//! Keeps: the answer for entry i depends on the surviving entries before it and on the recipe,
//! never on encoded sizes, codecs, buffers or set bounds (R1). Versions of one key never straddle
//! files.
//! Leaves to others: encoding. [`CutCheck`] derives the same cuts again from block metadata.
//!
//! Worked example, B = 100, F = 200: entries of L = 60 start at S = 0, 60, 120, 180, 240. The grid
//! cell S/B is 0, 0, 1, 1, 2, so blocks start at entries 0, 2 and 4; S/F of the block starts is
//! 0, 0, 1, so entry 4 starts a file.

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, Error, ErrorKind, Result};

use crate::products::{BlockMeta, Item, Products};
use crate::recipe::Recipe;

/// Logical size of an entry: user key, tag, value and four bytes of lengths.
#[inline]
pub fn logical(user_key_len: usize, value_len: usize) -> u64 {
    user_key_len as u64 + 8 + value_len as u64 + 4
}

/// What starts at an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing: it joins the open block.
    Within,
    /// A block of the open file.
    Block,
    /// A block and a file.
    File,
}

/// The running state of the cut. It is part of the carry between sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// S: logical bytes of all entries so far.
    s: u64,
    /// S at the start of the entry before.
    prev: u64,
    /// S at the previous candidate for a file start.
    candidate: u64,
    /// S at the start of the open file.
    file: u64,
    started: bool,
    hard: usize,
    soft: usize,
}

impl Cut {
    /// Places the next surviving entry. `new_key` says whether its user key differs from the entry
    /// before; `at_splits` whether it may be the first at or above a split key (a true costs
    /// comparisons, a wrong false costs the split).
    #[inline]
    pub fn place(
        &mut self,
        recipe: &Recipe,
        key: &[u8],
        value_len: usize,
        new_key: bool,
        at_splits: bool,
    ) -> Start {
        let s = self.s;
        let shift = recipe.block_bytes.trailing_zeros();
        let grid = s >> shift != self.prev >> shift;
        self.prev = s;
        self.s = s + logical(key.len(), value_len);
        if !grid && !at_splits && self.started {
            return Start::Within;
        }
        self.start(recipe, key, s, grid, new_key)
    }

    #[inline(never)]
    fn start(&mut self, recipe: &Recipe, key: &[u8], s: u64, grid: bool, new_key: bool) -> Start {
        let order = &*recipe.order;
        let hard = pass(&mut self.hard, &recipe.hard_splits, key, order);
        let soft = pass(&mut self.soft, &recipe.soft_splits, key, order);
        if !self.started {
            self.started = true;
            return Start::File;
        }
        if !(grid || hard || soft) {
            return Start::Within;
        }
        if !new_key && !zoo::on(Bug::KeySplit) {
            return Start::Block;
        }
        let f = recipe.file_bytes;
        let new_cell = s / f != self.candidate / f;
        self.candidate = s;
        if new_cell || hard || (soft && s - self.file >= f / 8) {
            self.file = s;
            return Start::File;
        }
        Start::Block
    }

    /// Places a whole block, whose own start is what is asked about.
    pub(crate) fn place_block(
        &mut self,
        recipe: &Recipe,
        key: &[u8],
        logical: u64,
        new_key: bool,
    ) -> Start {
        let s = self.s;
        let shift = recipe.block_bytes.trailing_zeros();
        let grid = s >> shift != self.prev >> shift;
        self.prev = s;
        self.s = s.saturating_add(logical);
        self.start(recipe, key, s, grid, new_key)
    }

    /// The open block, of which `placed` logical bytes were placed, is finished with `logical` bytes.
    pub(crate) fn resume_block(&mut self, placed: u64, logical: u64) {
        self.prev = self.s.saturating_sub(placed);
        self.s = self.prev.saturating_add(logical);
    }
    /// True if split keys were not passed yet.
    pub(crate) fn has_splits_ahead(&self, recipe: &Recipe) -> bool {
        self.hard < recipe.hard_splits.len() || self.soft < recipe.soft_splits.len()
    }
    /// True if a split key at or below `key`, the last one placed, was not passed.
    pub(crate) fn misses_split(&self, recipe: &Recipe, key: &[u8]) -> bool {
        let ahead = |splits: &[lithify_base::Key], at: usize| {
            splits.get(at).is_some_and(|s| recipe.order.compare(s, key).is_le())
        };
        ahead(&recipe.hard_splits, self.hard) || ahead(&recipe.soft_splits, self.soft)
    }

    /// S: logical bytes of all entries placed so far.
    pub fn logical_bytes(&self) -> u64 {
        self.s
    }
    /// True if the next entry starts a block whatever its key is, because S has left the grid cell
    /// in which the last entry started.
    pub fn ends_block(&self, recipe: &Recipe) -> bool {
        let shift = recipe.block_bytes.trailing_zeros();
        self.started && self.s >> shift != self.prev >> shift
    }
    /// S at the start of the last block that started with a new user key, counted from the second
    /// block on: what decides whether the next such block starts a file.
    pub fn candidate(&self) -> u64 {
        self.candidate
    }
    /// S at the start of the open file.
    pub fn file_start(&self) -> u64 {
        self.file
    }
    /// Hard and soft split keys passed by the entries placed so far.
    pub fn splits_passed(&self) -> (usize, usize) {
        (self.hard, self.soft)
    }
}

/// Moves past every split key at or below `key`; true if there was one.
fn pass(at: &mut usize, splits: &[lithify_base::Key], key: &[u8], order: &dyn Comparator) -> bool {
    let before = *at;
    while splits.get(*at).is_some_and(|s| order.compare(s, key).is_le()) {
        *at += 1;
    }
    *at > before
}

/// Derives the cuts of a whole output again, from the metadata of its blocks, and compares. This
/// is how a host keeps an engine honest about files.
#[derive(Clone, Debug, Default)]
pub struct CutCheck {
    cut: Cut,
    last_key: Vec<u8>,
    blocks: u64,
    cut_open: bool,
}

impl CutCheck {
    /// Reads the next products in order.
    ///
    /// # Errors
    /// Internal, if a block or file starts where the recipe starts none, or fails to.
    pub fn read(&mut self, recipe: &Recipe, products: &Products) -> Result<()> {
        for item in products.items() {
            match item {
                Item::Block(b) => self.block(recipe, products, b)?,
                Item::FileCut(_) if self.cut_open => return Err(wrong("two file cuts in a row")),
                Item::FileCut(_) => self.cut_open = true,
                Item::SetDone(_) => {}
            }
        }
        Ok(())
    }

    fn block(&mut self, recipe: &Recipe, products: &Products, b: &BlockMeta) -> Result<()> {
        let key = products.first_key(b).user;
        let new_key = self.blocks == 0 || recipe.order.compare(&self.last_key, key).is_ne();
        let start = self.cut.place_block(recipe, key, b.logical_bytes(), new_key);
        let announced = std::mem::take(&mut self.cut_open) || self.blocks == 0;
        if start == Start::Within {
            return Err(wrong("a block starts inside a grid cell"));
        }
        if (start == Start::File) != announced {
            return Err(wrong("a file cut differs from the recipe's"));
        }
        self.blocks += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(products.last_key(b).user);
        Ok(())
    }

    /// The output is complete.
    ///
    /// # Errors
    /// Internal, if the last file was not closed.
    pub fn finish(self) -> Result<()> {
        if self.blocks > 0 && !self.cut_open { Err(wrong("the last file is open")) } else { Ok(()) }
    }
}

#[cold]
fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("engine output is not cut by the recipe: {what}"))
}

#[cfg(test)]
mod tests;
