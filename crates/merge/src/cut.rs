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

use std::fmt;
use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, ComparatorRef, Error, ErrorKind, Key, Result};

use crate::products::{BlockMeta, Item, Products};
use crate::recipe::Recipe;
use crate::tombstone::{Fragments, RangeTombstone};
use crate::zone::keep_tombstones;

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

/// Derives the cuts of a whole output again, from the metadata of its blocks, and compares them and the
/// range tombstones of each file. This is how a host keeps an engine honest about files.
#[derive(Clone, Debug, Default)]
pub struct CutCheck {
    cut: Cut,
    last_key: Vec<u8>,
    blocks: u64,
    /// The tombstones of a file that is cut, until it is known where the next one starts.
    open: Option<Vec<RangeTombstone>>,
    /// Where the open file starts; none is the start of the output.
    file: Option<Key>,
    /// Known from the first batch on.
    due: Option<Arc<Due>>,
}

/// What decides the tombstones of each file.
struct Due {
    kept: Fragments,
    range: (Option<Key>, Option<Key>),
    order: ComparatorRef,
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Due {
    fn of(recipe: &Recipe) -> Due {
        let range = &recipe.range;
        let hi = range.hi.as_ref().filter(|hi| !hi.inclusive).map(|hi| hi.key.clone());
        let (kept, _) = keep_tombstones(recipe);
        Due { kept, range: (range.lo.clone(), hi), order: recipe.order.clone() }
    }

    /// The tombstones of a file from `lo` to before `hi`, as the writer of the kernel makes them.
    fn file(&self, lo: Option<&Key>, hi: Option<&Key>) -> Fragments {
        let (lo, hi) = (lo.or(self.range.0.as_ref()), hi.or(self.range.1.as_ref()));
        self.kept.between(lo, hi, &*self.order)
    }
}

impl CutCheck {
    /// Reads the next products in order.
    ///
    /// # Errors
    /// Internal, if a block or file starts where the recipe starts none, or fails to, or if a file has
    /// other range tombstones than those of the recipe.
    pub fn read(&mut self, recipe: &Recipe, products: &Products) -> Result<()> {
        if self.due.is_none() {
            self.due = Some(Arc::new(Due::of(recipe)));
        }
        for item in products.items() {
            match item {
                Item::Block(b) => self.block(recipe, products, b)?,
                Item::FileCut(_) if self.open.is_some() => {
                    return Err(wrong("two file cuts in a row"));
                }
                Item::FileCut(cut) => self.open = Some(cut.tombstones.clone()),
                Item::SetDone(_) => {}
            }
        }
        Ok(())
    }

    fn block(&mut self, recipe: &Recipe, products: &Products, b: &BlockMeta) -> Result<()> {
        let key = products.first_key(b).user;
        let new_key = self.blocks == 0 || recipe.order.compare(&self.last_key, key).is_ne();
        let start = self.cut.place_block(recipe, key, b.logical_bytes(), new_key);
        let announced = self.open.is_some() || self.blocks == 0;
        if start == Start::Within {
            return Err(wrong("a block starts inside a grid cell"));
        }
        if (start == Start::File) != announced {
            return Err(wrong("a file cut differs from the recipe's"));
        }
        if self.cut.misses_split(recipe, products.last_key(b).user) {
            return Err(wrong("a block reaches over a split key"));
        }
        if let Some(tombstones) = self.open.take() {
            if self.blocks == 0 {
                return Err(wrong("a file is cut before its first block"));
            }
            self.file(&tombstones, Some(key.into()))?;
        }
        self.blocks += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(products.last_key(b).user);
        Ok(())
    }

    /// The open file has these tombstones, and the next one starts at `next`.
    fn file(&mut self, tombstones: &[RangeTombstone], next: Option<Key>) -> Result<()> {
        if let Some(due) = &self.due
            && due.file(self.file.as_ref(), next.as_ref()).to_tombstones()? != tombstones
        {
            return Err(wrong("a file has other range tombstones than the recipe's"));
        }
        self.file = next;
        Ok(())
    }

    /// The output is complete.
    ///
    /// # Errors
    /// Internal, if the last file was not closed, or as [`read`](CutCheck::read).
    pub fn finish(mut self) -> Result<()> {
        if let Some(tombstones) = self.open.take() {
            return self.file(&tombstones, None);
        }
        let lost = |due: &Due| !due.file(None, None).is_empty();
        match self.blocks {
            0 if self.due.as_deref().is_some_and(lost) => {
                Err(wrong("range tombstones have no file"))
            }
            0 => Ok(()),
            _ => Err(wrong("the last file is open")),
        }
    }
}

#[cold]
fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("engine output is not cut by the recipe: {what}"))
}

#[cfg(test)]
mod tests;
