//! Prove: a set is merged again, and what an engine says of it is compared, entry by entry.
//!
//! [`certify`](crate::certify) shows that an output is well formed and that the engine's ledger
//! balances. An engine that followed another recipe (an older list of snapshots, nothing in use, no
//! range tombstones), or that changed a value before it weighed it, passes: its output is in order, and
//! its ledger is true of what it did. So a host merges a set once more from the carry before it, with
//! the true recipe, and compares keys, tags and values of all blocks, where blocks and files begin, filter
//! hashes, range tombstones, and the carry: the block that stays open, and the ledger with every drop.
//!
//! Keeps: the rules are the kernel's. [`Kernel`] runs as ever, only that its blocks are neither
//! compressed nor summed; there is no second implementation that could be wrong in its own way. An output
//! that is proven from its beginning to its end, each set from the carry of the one before, is the
//! output of the CPU but for how blocks are compressed. Takes memory for the output of one slice of work.
//! Leaves to others: keeping the sets and the output until here, and what follows from a disproof.
//!
//! Worked example: snapshot 10, `k: value@12, value@9`. An engine that does not know of the snapshot
//! drops `value@9` as hidden, and its ledger says so: one in, one dropped, one out. The same set merged
//! here has two entries in its first block, and the engine is refused.
//!
//! ```text
//!   carry before --- set ---> kernel, plain ---> blocks, cuts, carry
//!                                                  = ?   = ?   = ?
//!   claimed by the engine ----------------------> blocks, cuts, carry after
//! ```

use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, Result};
use lithify_format::compress::Decoder;

use crate::certify::{broken, payload};
use crate::encode::Carry;
use crate::kernel::{Kernel, Work};
use crate::ledger::Ledger;
use crate::products::{BlockMeta, Item, Products, TRAILER};
use crate::recipe::Recipe;
use crate::set::BlockSet;

/// Input bytes merged before the output so far is compared: bounds memory.
const SLICE_BYTES: u64 = 1 << 20;

/// A stretch of a batch of products: what an engine claims. The output of a set may lie in several
/// batches, and a batch may hold the output of several sets.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The batch.
    pub of: &'a Products,
    /// Some of its items, in order.
    pub items: &'a [Item],
}

impl<'a> From<&'a Products> for Claim<'a> {
    /// The whole batch.
    fn from(of: &'a Products) -> Claim<'a> {
        Claim { of, items: of.items() }
    }
}

/// Proves what an engine claims to have made of `set`. `before` is the carry of the set before it, none
/// for the first one; `claims` are all items since then, up to and with the set's own end.
///
/// # Errors
/// Internal if the claims differ from what the recipe makes of the set. What the input is refused with
/// if it is bad: the engine should have failed over it.
pub fn set(
    recipe: &Arc<Recipe>,
    before: Option<&Carry>,
    set: BlockSet,
    claims: &[Claim<'_>],
) -> Result<()> {
    let no = set.no;
    let mut kernel = Kernel::plain(recipe.clone(), before.cloned())?;
    let mut claimed = Claimed::new(recipe, claims);
    let mut ours = Products::default();
    kernel.begin(set)?;
    loop {
        let work = kernel.work(SLICE_BYTES)?;
        kernel.drain(&mut ours);
        claimed.compare(&ours).map_err(|e| at_set(no, e))?;
        if work != Work::More {
            return claimed.end().map_err(|e| at_set(no, e));
        }
    }
}

/// Proves the end of an output, what an engine claims behind its last set: the last block and file.
/// `before` is the last carry, none if there was no set.
///
/// # Errors
/// Internal if the claims, or the ledger, differ from what the recipe makes of the carry.
pub fn end(
    recipe: &Arc<Recipe>,
    before: Option<&Carry>,
    claims: &[Claim<'_>],
    ledger: &Ledger,
) -> Result<()> {
    let mut kernel = Kernel::plain(recipe.clone(), before.cloned())?;
    let mut claimed = Claimed::new(recipe, claims);
    let mut ours = Products::default();
    let expected = kernel.finish()?;
    kernel.drain(&mut ours);
    claimed.compare(&ours)?;
    claimed.end()?;
    if expected == *ledger {
        return Ok(());
    }
    Err(broken("the ledger differs from that of the sets"))
}

/// The claims, and how far they are compared.
struct Claimed<'a> {
    recipe: &'a Recipe,
    rest: std::vec::IntoIter<(&'a Products, &'a Item)>,
    /// Of the recipe's dictionary.
    decoder: Option<Decoder>,
}

impl<'a> Claimed<'a> {
    fn new(recipe: &'a Recipe, claims: &[Claim<'a>]) -> Claimed<'a> {
        let all = claims.iter().flat_map(|claim| claim.items.iter().map(|item| (claim.of, item)));
        Claimed { recipe, rest: all.collect::<Vec<_>>().into_iter(), decoder: None }
    }

    /// Compares the next items with ours.
    fn compare(&mut self, ours: &Products) -> Result<()> {
        for mine in ours.items() {
            let Some((of, theirs)) = self.rest.next() else {
                return Err(broken("a part of its output is missing"));
            };
            match (mine, theirs) {
                (Item::Block(a), Item::Block(b)) => self.block((ours, a), (of, b))?,
                (Item::FileCut(a), Item::FileCut(b)) if a == b => {}
                (Item::FileCut(_), Item::FileCut(_)) => {
                    return Err(broken("a file has other range tombstones"));
                }
                (Item::SetDone(a), Item::SetDone(b)) if a == b => {}
                (Item::SetDone(_), Item::SetDone(_)) => {
                    return Err(broken("its carry differs in the open block or in the ledger"));
                }
                _ => return Err(broken("its blocks, files and sets end elsewhere")),
            }
        }
        Ok(())
    }

    fn block(
        &mut self,
        mine: (&Products, &BlockMeta),
        theirs: (&Products, &BlockMeta),
    ) -> Result<()> {
        let ((ours, a), (of, b)) = (mine, theirs);
        let same_keys = ours.first_key(a) == of.first_key(b) && ours.last_key(a) == of.last_key(b);
        if !same_keys || ours.hashes(a) != of.hashes(b) || figures(a) != figures(b) {
            return Err(broken("a block's metadata differs from that of its entries"));
        }
        let expected = ours.block(a);
        let expected = &expected[..expected.len() - TRAILER];
        if *payload(&mut self.decoder, self.recipe, of, b)? != *expected
            && !zoo::on(Bug::ProvenByFigures)
        {
            return Err(broken("a block has other entries than the recipe makes"));
        }
        Ok(())
    }

    /// Nothing may be left.
    fn end(&self) -> Result<()> {
        match self.rest.as_slice() {
            [] => Ok(()),
            _ => Err(broken("it goes on behind its end")),
        }
    }
}

/// All that is said of a block but for where it lies.
fn figures(block: &BlockMeta) -> BlockMeta {
    BlockMeta { at: 0..0, first: 0..0, last: 0..0, hashes: 0..0, ..block.clone() }
}

fn at_set(no: u32, e: Error) -> Error {
    Error::new(e.kind(), format!("set {no} was merged again")).caused_by(e)
}

/// Chooses the sets that are proven: one in so many, by dice of the host.
///
/// Ask once for each set, when its output is here: an engine that learns of the choice before could
/// behave for that set alone.
#[derive(Clone, Debug)]
pub struct Prover {
    one_in: u32,
    dice: u64,
    asked: bool,
}

impl Prover {
    /// Chooses one set in `one_in`: each if that is 1, none if it is 0. `seed` must be one that the engine
    /// can't know: drawn for this session from the host's source of chance.
    pub fn new(one_in: u32, seed: u64) -> Prover {
        Prover { one_in, dice: seed, asked: false }
    }

    /// Whether the set whose output just came is to be proven.
    pub fn picks(&mut self) -> bool {
        if zoo::on(Bug::FirstSetProven) {
            return !std::mem::replace(&mut self.asked, true);
        }
        // SplitMix64.
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.one_in > 0 && (z ^ z >> 31).is_multiple_of(u64::from(self.one_in))
    }

    /// Whether any set is ever proven.
    pub fn is_on(&self) -> bool {
        self.one_in > 0
    }
}

#[cfg(test)]
mod tests;
