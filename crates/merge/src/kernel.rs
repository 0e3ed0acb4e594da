//! The merge kernel: block sets (or a flush's sorted entries) in, products out.
//!
//! Keeps: one pass, no allocation and no indirect call per entry; a value is copied once, into
//! its output block. Every input entry is compared with the one before it, so an unsorted input
//! fails instead of losing data. Output does not depend on how the input was cut into sets, or on
//! how often products were drained.
//! Leaves to others: reading, writing, threads, and when to stop for a breath ([`Kernel::work`]
//! does a bounded amount).
//!
//! ```text
//! blocks -> View (verify, expand) -> Tree (pick) -> Gc (D1-D8) -> Writer (cut, encode) -> Products
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use lithify_base::{Error, Result, Tag};
use lithify_format::xxph3::xxph3_64;

use crate::certify::broken;
use crate::encode::{Carry, Writer, common_prefix};
use crate::gc::{Gc, Input};
use crate::ledger::{Ledger, content, weigh};
use crate::products::{Item, Products, SetDone};
use crate::recipe::Recipe;
use crate::set::{BlockSet, BlockSlice, CleanRange};
use crate::tree::{ByBytes, ByComparator, KeyOrder, Lane, Pick, Stop, Tree};
use crate::view::{View, ViewEntry};

/// Most entries picked before they are encoded; bounds the pick list, nothing else.
const BATCH: usize = 512;
/// Lanes up to which a batch finds its values without an allocation.
const FEW: usize = 16;

/// How far [`Kernel::work`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// There is no set to work on.
    Idle,
    /// The set goes on; call again.
    More,
    /// The set is done and its carry is among the products.
    SetDone,
}

/// One compaction or flush in the making.
pub struct Kernel {
    recipe: Arc<Recipe>,
    gc: Gc,
    out: Writer,
    set: Option<OpenSet>,
    lanes: Vec<Lane>,
    spare: Vec<View>,
    tree: Tree,
    picks: Vec<Pick>,
    last: Last,
}

/// The set being merged.
struct OpenSet {
    no: u32,
    keys: CleanRange,
    /// What all user keys of the set start with.
    prefix: Vec<u8>,
    /// By lane, its blocks and how many were loaded.
    blocks: Vec<(Arc<[BlockSlice]>, usize)>,
}

/// The last input entry, kept or not.
#[derive(Default)]
struct Last {
    any: bool,
    key: Vec<u8>,
    tag: u64,
    run: u16,
}

impl Kernel {
    /// A kernel at the start of its output.
    ///
    /// # Errors
    /// InvalidArgument for a recipe that makes no sense, Unsupported for a codec this build does
    /// not write.
    pub fn new(recipe: Arc<Recipe>) -> Result<Kernel> {
        let (out, zones) = Writer::start(recipe.clone())?;
        Ok(Kernel {
            gc: Gc::new(recipe.clone(), zones),
            recipe,
            out,
            set: None,
            lanes: Vec::new(),
            spare: Vec::new(),
            tree: Tree::default(),
            picks: Vec::new(),
            last: Last::default(),
        })
    }

    /// A kernel that goes on after the set whose end gave `carry`, whichever engine made it.
    ///
    /// # Errors
    /// As [`Kernel::new`].
    pub fn resume(recipe: Arc<Recipe>, carry: Carry) -> Result<Kernel> {
        let mut kernel = Kernel::new(recipe)?;
        kernel.out.resume(carry);
        Ok(kernel)
    }

    /// A kernel whose blocks are neither compressed nor summed: what an engine's output is compared
    /// with, entry by entry. It goes on from `carry`, if there is one.
    ///
    /// # Errors
    /// As [`Kernel::new`]; Internal if the carry is of another recipe.
    pub(crate) fn plain(recipe: Arc<Recipe>, carry: Option<Carry>) -> Result<Kernel> {
        let mut kernel = Kernel::new(recipe)?;
        kernel.out.leave_plain();
        if let Some(carry) = carry {
            if carry.ledger().tombs() != kernel.out.ledger.tombs() {
                return Err(broken("a carry counts other range tombstones than the recipe has"));
            }
            kernel.out.resume(carry);
        }
        Ok(kernel)
    }

    /// Takes the next set. Sets come in key order, one at a time.
    ///
    /// # Errors
    /// InvalidArgument if a set is open or names a run twice or one the recipe lacks; Corruption
    /// from its first blocks.
    pub fn begin(&mut self, set: BlockSet) -> Result<()> {
        if self.set.is_some() {
            return Err(Error::invalid("a set is being merged already"));
        }
        let mut seen = vec![false; usize::from(self.recipe.runs)];
        for r in &set.runs {
            match seen.get_mut(usize::from(r.run)) {
                Some(s) if !*s => *s = true,
                _ => return Err(Error::invalid(format!("run {} twice or unknown", r.run))),
            }
        }
        let prefix = self.common_prefix(&set)?;
        self.spare.extend(self.lanes.drain(..).map(|l| l.view));
        let mut blocks = Vec::new();
        for slice in set.runs {
            let view = self.spare.pop().unwrap_or_default();
            self.lanes.push(Lane { run: slice.run, view, at: 0, end: 0 });
            blocks.push((slice.blocks, 0));
        }
        self.set = Some(OpenSet { no: set.no, keys: set.keys, prefix, blocks });
        for lane in 0..self.lanes.len() {
            self.load(lane)?;
        }
        if self.recipe.order.is_bytewise() {
            self.tree.build(&self.lanes, &ByBytes);
        } else {
            self.tree.build(&self.lanes, &ByComparator(&*self.recipe.order));
        }
        Ok(())
    }

    /// What every user key of the set starts with: the common prefix of its bounds. Where a bound
    /// is missing, the outermost blocks stand in for it.
    fn common_prefix(&mut self, set: &BlockSet) -> Result<Vec<u8>> {
        if !self.recipe.order.is_bytewise() {
            return Ok(Vec::new());
        }
        let job = &self.recipe.range;
        let lo = set.keys.lo.as_ref().or(job.lo.as_ref()).map(|k| k.to_vec());
        let hi = set.keys.hi.as_ref().or(job.hi.as_ref().map(|e| &e.key)).map(|k| k.to_vec());
        let lo = match lo {
            Some(lo) => lo,
            None => match self.outermost(set, Ordering::Less)? {
                Some(lo) => lo,
                None => return Ok(Vec::new()),
            },
        };
        let hi = match hi {
            Some(hi) => hi,
            None => match self.outermost(set, Ordering::Greater)? {
                Some(hi) => hi,
                None => return Ok(Vec::new()),
            },
        };
        Ok(lo[..common_prefix(&lo, &hi)].to_vec())
    }

    /// The smallest first key or largest last key of the set's runs.
    fn outermost(&mut self, set: &BlockSet, side: Ordering) -> Result<Option<Vec<u8>>> {
        let mut view = self.spare.pop().unwrap_or_default();
        let mut best: Option<Vec<u8>> = None;
        for r in &set.runs {
            let block = if side.is_lt() { r.blocks.first() } else { r.blocks.last() };
            let Some(block) = block else { continue };
            view.load(block, &[])?;
            let key = view.key(if side.is_lt() { 0 } else { view.len().saturating_sub(1) });
            if !view.is_empty() && best.as_ref().is_none_or(|b| key.cmp(b) == side) {
                best = Some(key.to_vec());
            }
        }
        self.spare.push(view);
        Ok(best)
    }

    /// Loads blocks into a spent lane until it has entries of the set or none are left. Returns
    /// the bytes read.
    fn load(&mut self, lane: usize) -> Result<u64> {
        let Some(set) = &mut self.set else { return Ok(0) };
        let (Some(l), Some((blocks, loaded))) =
            (self.lanes.get_mut(lane), set.blocks.get_mut(lane))
        else {
            return Ok(0);
        };
        let mut read = 0;
        (l.at, l.end) = (0, 0);
        while let Some(block) = blocks.get(*loaded) {
            *loaded += 1;
            read += block.bytes.len() as u64;
            l.view.load(block, &set.prefix)?;
            let range = l
                .view
                .trim(&set.keys, &self.recipe.range, &set.prefix, &*self.recipe.order)
                .map_err(|e| e.at(block.offset))?;
            if !range.is_empty() {
                self.out.ledger.entries_in += range.len() as u64;
                (l.at, l.end) = (range.start, range.end);
                break;
            }
        }
        Ok(read)
    }

    /// Merges until about `budget` bytes of input blocks were read or the set is done.
    ///
    /// # Errors
    /// Corruption of an input block (with its offset) or of its order, Unsupported entry kinds.
    /// The kernel is of no use after an error.
    pub fn work(&mut self, budget: u64) -> Result<Work> {
        if self.set.is_none() {
            return Ok(Work::Idle);
        }
        let recipe = self.recipe.clone();
        if recipe.order.is_bytewise() {
            self.work_in(budget, &ByBytes)
        } else {
            self.work_in(budget, &ByComparator(&*recipe.order))
        }
    }

    fn work_in<O: KeyOrder>(&mut self, budget: u64, order: &O) -> Result<Work> {
        let mut read = 0;
        while read < budget {
            self.picks.clear();
            let stop = self.tree.select(&mut self.lanes, order, &mut self.picks, BATCH);
            self.digest(order)?;
            match stop {
                Stop::Full => {}
                Stop::Spent(lane) => {
                    read += self.load(lane)?;
                    self.tree.replay(&self.lanes, lane, order);
                }
                Stop::End => {
                    self.end_set()?;
                    return Ok(Work::SetDone);
                }
            }
        }
        Ok(Work::More)
    }

    /// Runs the picked entries through the drop rules and the output stage. Their views stay
    /// loaded meanwhile, so keys and values are borrowed, not copied.
    fn digest<O: KeyOrder>(&mut self, order: &O) -> Result<()> {
        let Some(&Pick { lane, at }) = self.picks.last() else { return Ok(()) };
        let comparator = &*self.recipe.order;
        let last_key = self.lanes[lane as usize].view.key(at as usize);
        let uniform = self.gc.zones.holds(last_key, comparator);
        let mut few = [&[][..]; FEW];
        let many: Vec<&[u8]>;
        let values = if self.lanes.len() <= FEW {
            for (v, l) in few.iter_mut().zip(&self.lanes) {
                *v = l.view.values();
            }
            &few[..]
        } else {
            many = self.lanes.iter().map(|l| l.view.values()).collect();
            &many[..]
        };

        let (mut any, mut last_head) = (self.last.any, None);
        let mut last_key: &[u8] = &self.last.key;
        let (mut last_tag, mut last_run) = (Tag(self.last.tag), self.last.run);
        let (mut sum, mut bytes) = (0u64, 0);
        for &Pick { lane, at } in &self.picks {
            let l = &self.lanes[lane as usize];
            let head = l.view.heads()[at as usize];
            let e = l.view.entry(at as usize, values[lane as usize]);
            let ascends = O::HEADS && last_head.is_some_and(|h| head > h);
            let new_key = ascends
                || !any
                || follows(order, (last_key, last_tag, last_run), (e.key, e.tag, l.run))?;
            if !uniform && !self.gc.zones.holds(e.key, comparator) {
                self.gc.cross(e.key, &mut self.out)?;
            }
            let ViewEntry { key, tag, value, hash, content, weight } = e;
            sum = sum.wrapping_add(weight);
            bytes += key.len() + 8 + value.len();
            let input = Input { key, tag, value, run: l.run, hash, content, weight };
            self.gc.entry(input, new_key, &mut self.out)?;
            (any, last_head, last_key, last_tag, last_run) =
                (true, Some(head), e.key, e.tag, l.run);
        }
        let ledger = &mut self.out.ledger;
        ledger.sum_in = ledger.sum_in.wrapping_add(sum);
        ledger.bytes_in += bytes as u64;
        (self.last.any, self.last.tag, self.last.run) = (any, last_tag.0, last_run);
        self.last.key.clear();
        self.last.key.extend_from_slice(self.lanes[lane as usize].view.key(at as usize));
        Ok(())
    }

    fn end_set(&mut self) -> Result<()> {
        self.gc.end_key(&mut self.out)?;
        if let Some(set) = self.set.take() {
            let carry = Box::new(self.out.carry());
            self.out.out.items.push(Item::SetDone(SetDone { no: set.no, carry }));
        }
        Ok(())
    }

    /// Takes one entry of a flush. Entries come in the total order: key ascending, tag
    /// descending.
    ///
    /// # Errors
    /// Corruption if they do not; Unsupported entry kinds.
    pub fn push(&mut self, key: &[u8], tag: Tag, value: &[u8], run: u16) -> Result<()> {
        let comparator = &*self.recipe.order;
        let next = (key, tag, run);
        let last = (&self.last.key[..], Tag(self.last.tag), self.last.run);
        let new_key = !self.last.any
            || if comparator.is_bytewise() {
                follows(&ByBytes, last, next)?
            } else {
                follows(&ByComparator(comparator), last, next)?
            };
        if new_key {
            self.last.key.clear();
            self.last.key.extend_from_slice(key);
        }
        (self.last.any, self.last.tag, self.last.run) = (true, tag.0, run);
        if !self.gc.zones.holds(key, comparator) {
            self.gc.cross(key, &mut self.out)?;
        }
        let hash = xxph3_64(key);
        let content = content(hash, value);
        let ledger = &mut self.out.ledger;
        ledger.entries_in += 1;
        ledger.bytes_in += (key.len() + 8 + value.len()) as u64;
        let weight = weigh(content, tag);
        ledger.sum_in = ledger.sum_in.wrapping_add(weight);
        let input = Input { key, tag, value, run, hash, content, weight };
        self.gc.entry(input, new_key, &mut self.out)
    }

    /// Bytes of finished blocks that wait to be drained.
    pub fn ready_bytes(&self) -> usize {
        self.out.ready()
    }

    /// Moves everything finished into `out`, whose old content is forgotten and whose buffers are
    /// reused.
    pub fn drain(&mut self, out: &mut Products) {
        self.out.drain(out);
    }

    /// Ends the output: closes the last block and file. Drain once more after it.
    ///
    /// # Errors
    /// InvalidArgument if a set is open; Internal if the ledger does not balance.
    pub fn finish(&mut self) -> Result<Ledger> {
        if self.set.is_some() {
            return Err(Error::invalid("a set is being merged still"));
        }
        self.gc.end_key(&mut self.out)?;
        self.out.finish()?;
        self.out.ledger.check()?;
        Ok(self.out.ledger.clone())
    }
}

/// Checks that `next` comes after `last` in the total order; true if its user key is new.
#[inline]
fn follows<O: KeyOrder>(
    order: &O,
    last: (&[u8], Tag, u16),
    next: (&[u8], Tag, u16),
) -> Result<bool> {
    match order.compare(last.0, next.0) {
        Ordering::Less => Ok(true),
        Ordering::Equal if (last.1, next.2) > (next.1, last.2) => Ok(false),
        _ => Err(Error::corruption("entries of an input are not in order")),
    }
}

#[cfg(test)]
mod tests;
