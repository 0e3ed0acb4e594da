//! Blocks that a machine lent, on their way into memory of the host's.
//!
//! ```text
//!   Products --recall--> Loan --copy, part by part--> the host's memory --settle--> Products
//! ```
//! Keeps: what a machine or another thread could still change is neither certified nor written. A block's sum is found in
//! the copy, right behind the copying, while the processor has it at hand. Blocks come to lie side by side, in item
//! order, and those of each file as in the file, so that a file with direct IO can be written from there.
//! Leaves to others: whose threads copy, and memory for them.

use std::ops::Range;

use lithify_format::checksum::{ChecksumKind, raw_sum};

use crate::products::{Item, Lent, PAGE, Products, TRAILER};

/// Blocks of one batch.
pub struct Loan {
    lent: Box<dyn Lent>,
    moves: Vec<Move>,
    bytes: usize,
}

/// Where a block lies, and where it goes. It has no bytes if the first is no place.
struct Move {
    from: Range<usize>,
    to: Range<usize>,
}

/// Blocks that are copied together: a stretch of the memory that they go to.
pub struct LoanPart {
    moves: Range<usize>,
    to: Range<usize>,
}

impl LoanPart {
    /// Bytes of the stretch.
    pub fn bytes(&self) -> usize {
        self.to.len()
    }
}

impl Loan {
    /// Bytes of memory that the blocks need.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The blocks in parts of at least `bytes` bytes, but for the last, side by side from the first byte on.
    pub fn parts(&self, bytes: usize) -> Vec<LoanPart> {
        let mut parts = Vec::new();
        let mut part = LoanPart { moves: 0..0, to: 0..0 };
        for one in &self.moves {
            if part.to.len() >= bytes {
                let (moves, to) = (part.moves.end, part.to.end);
                parts.push(std::mem::replace(
                    &mut part,
                    LoanPart { moves: moves..moves, to: to..to },
                ));
            }
            part.moves.end += 1;
            part.to.end = part.to.end.max(one.to.end);
        }
        // With what may lie behind the last block, where a file would begin.
        part.to.end = self.bytes;
        parts.push(part);
        parts
    }

    /// Copies the blocks of `part` to its stretch. The raw sum of each copy, its type byte included, if `kind` says which
    /// is asked for; 0 for one that is shorter than its trailer.
    ///
    /// # Panics
    /// If `to` is no stretch of that part's.
    pub fn copy(&self, part: &LoanPart, to: &mut [u8], kind: Option<ChecksumKind>) -> Vec<u32> {
        assert_eq!(to.len(), part.bytes(), "a stretch of another part");
        let from = self.lent.bytes();
        let mut sums = Vec::with_capacity(part.moves.len());
        for one in &self.moves[part.moves.clone()] {
            let place = one.to.start - part.to.start..one.to.end - part.to.start;
            let block = &mut to[place];
            if let Some(bytes) = from.get(one.from.clone()).filter(|b| b.len() == block.len()) {
                block.copy_from_slice(bytes);
            }
            let Some(kind) = kind else { continue };
            let sum =
                |(payload, trailer): (&[u8], &[u8; TRAILER])| raw_sum(kind, payload, trailer[0]);
            sums.push(block.split_last_chunk::<TRAILER>().map_or(0, sum));
        }
        sums
    }
}

impl Products {
    /// Takes the blocks that were lent, if any were, to bring them into memory of the host's. The file that is open has
    /// come `phase` bytes behind a multiple of [`PAGE`]: its first block here will lie so, and files after it begin
    /// at a multiple. Until they are [settled](Products::settle) no block has bytes.
    pub fn recall(&mut self, phase: usize) -> Option<Loan> {
        let used = self.used;
        let lent = self.take_lent()?;
        let all = lent.bytes().len().min(used);
        let (places, bytes) = self.places(all, phase);
        let blocks = self.items.iter().filter_map(|item| match item {
            Item::Block(block) => Some(block),
            _ => None,
        });
        let moves = blocks.zip(places).map(|(block, to)| Move { from: block.at.clone(), to });
        Some(Loan { moves: moves.collect(), lent, bytes })
    }

    /// The blocks of a loan lie in `own` now, where its [`copy`](Loan::copy) has put them; with the sums that were found, if
    /// they were asked for, in the order of parts.
    pub fn settle(&mut self, loan: Loan, own: Box<dyn Lent>, sums: Vec<u32>) {
        let mut moves = loan.moves.into_iter();
        for item in &mut self.items {
            let Item::Block(block) = item else { continue };
            block.at = moves.next().map_or(0..0, |one| one.to);
        }
        (self.used, self.sums) = (loan.bytes, sums);
        self.lent = Some(own);
    }

    /// Where each block goes that lies within the first `all` bytes, and where the last one ends. Blocks beyond, or more
    /// than there are bytes for, get no bytes.
    fn places(&self, all: usize, phase: usize) -> (Vec<Range<usize>>, usize) {
        let mut places = Vec::with_capacity(self.items.len());
        let (mut at, mut left) = (phase % PAGE, all);
        // Many tiny files would take more room than blocks do: they are not aligned.
        let mut waste = all / 4 + 16 * PAGE;
        for item in &self.items {
            match item {
                Item::Block(block) => {
                    let is_there = block.at.start <= block.at.end && block.at.end <= all;
                    let len = if is_there { block.at.len() } else { 0 };
                    let len = if len <= left { len } else { 0 };
                    left -= len;
                    places.push(at..at + len);
                    at += len;
                }
                Item::FileCut(_) => {
                    let gap = at.next_multiple_of(PAGE) - at;
                    if gap <= waste {
                        (at, waste) = (at + gap, waste - gap);
                    }
                }
                Item::SetDone(_) => {}
            }
        }
        (places, at)
    }
}

#[cfg(test)]
mod tests;
