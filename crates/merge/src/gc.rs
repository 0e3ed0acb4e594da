//! Garbage collection: which entries a merge drops or changes, over a stream in total order (R7).
//!
//! Snapshots cut time into *stripes*: entries between two neighbouring snapshots, numbered from the
//! oldest, so a reader sees all of a stripe or nothing of it. A key is *in use* below a run if a file
//! that is no input may hold older entries of it ([`InUse`](crate::recipe::InUse)).
//!
//! - D1: an entry goes that has a newer one of its key and stripe, unless that is an operand; a
//!   value hides no single delete.
//! - D2: an entry goes that a range deletion of its stripe covers.
//! - D3: a delete goes if its key is not in use below its run and only deletes of the key follow.
//! - D4: a value of the oldest stripe that is not in use below gets the number 0, unless a range
//!   deletion that stays would hide it then.
//! - D5: of range deletions over one place the newest of each stripe stays; that of the oldest
//!   stripe goes, too, where nothing below is in use.
//! - D6: the operands of a key and stripe become one value with what is below them, if that is
//!   known; else neighbours become one operand where the operator can do that.
//! - D7: a single delete goes with the value right below it in its stripe, whatever is in use.
//! - D8: the user's filter decides about a value that is the newest of its key here and newer than
//!   every snapshot.
//!
//! Keeps: exactly these rules; `naive` has them once more, one expression each. All
//! but D3, D6 and D7 look back only; deletes that might go wait until the next survivor of their
//! key, or its end, decides. At most one delete per stripe can wait, because an older one of the
//! stripe is hidden. Merge operands wait for what is below them in their stripe. Never do both wait:
//! deletes are let go when an operand comes.
//! Leaves to others: D5 and the tombstones' files (`zone`, `encode`), what operands and filters do.
//!
//! Worked example, snapshot 10, nothing in use: `k: value@12, delete@11, value@9, value@7`.
//! The delete is hidden by 12 (D1, stripe 1), 9 survives in stripe 0 and becomes seq 0 (D4), 7 is
//! hidden by 9. Output: `value@12, value@0`.

use std::sync::Arc;

use lithify_base::compaction_filter::{Decision, decide};
use lithify_base::key::unknown_kind;
use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, Kind, Result, Seq, Tag};

use crate::chain::Chain;
use crate::encode::{Survivor, Writer};
use crate::ledger::{Rule, content, weigh};
use crate::recipe::Recipe;
use crate::zone::Zones;

/// An input entry with what the merge knows about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: Tag,
    pub(crate) value: &'a [u8],
    pub(crate) run: u16,
    /// XXPH3 of the key.
    pub(crate) hash: u64,
    /// Of key and value: with the tag it makes the entry's weight.
    pub(crate) content: u64,
    /// The weight of the entry, computed once for the way in and the way out.
    pub(crate) weight: u64,
}

/// A delete that waits for the older entries of its key.
#[derive(Debug)]
struct Waiting {
    tag: Tag,
    kind: Kind,
    /// Its spelling of the key, if it is another than the first one's.
    key: Option<Box<[u8]>>,
    value: Vec<u8>,
    hash: u64,
    weight: u64,
    /// Nothing in use behind it: it goes if only deletes follow.
    elidable: bool,
}

/// The rules' state between entries. Empty between user keys, so a set may end there.
#[derive(Debug)]
pub(crate) struct Gc {
    recipe: Arc<Recipe>,
    pub(crate) zones: Zones,
    /// Sequence number of the newest-but-latest entry of this key that is no merge operand: it
    /// hides what follows in its stripe.
    hider: Option<Seq>,
    waiting: Vec<Waiting>,
    waiting_key: Vec<u8>,
    /// The last entry was a single delete that survived D1 and D2.
    pair: bool,
    /// The hider is a value. It may go with a single delete over it (D7), so it hides no other one
    /// below, which may be all that keeps an older value elsewhere away.
    hider_is_value: bool,
    /// Operands of this key that wait; none without an operator.
    chain: Chain,
    /// Operands of this key went out as they are: what follows is not its newest version.
    operands_above: bool,
}

/// What lies below a chain of operands in its stripe.
#[derive(Clone, Copy)]
enum Below<'a> {
    /// This value of another entry.
    Value(&'a [u8]),
    /// Certainly nothing.
    Nothing,
    /// Whatever older stripes and other files hold.
    Unknown,
}

impl Gc {
    pub(crate) fn new(recipe: Arc<Recipe>, zones: Zones) -> Gc {
        Gc {
            recipe,
            zones,
            hider: None,
            waiting: Vec::new(),
            waiting_key: Vec::new(),
            pair: false,
            hider_is_value: false,
            chain: Chain::default(),
            operands_above: false,
        }
    }

    /// Moves to the zone of `key`, which is a new user key. What waits of the key before it goes
    /// out first: it belongs to the zone, and to the side of a split, that is left here.
    #[inline(never)]
    pub(crate) fn cross(&mut self, key: &[u8], out: &mut Writer) -> Result<()> {
        self.end_key(out)?;
        out.at_splits |= self.zones.enter(key, &*self.recipe.order);
        Ok(())
    }

    /// Judges the next entry. `new_key` says whether its user key differs from the entry before;
    /// the zones must stand at its key.
    #[inline(always)]
    pub(crate) fn entry(&mut self, e: Input<'_>, new_key: bool, out: &mut Writer) -> Result<()> {
        if new_key {
            self.end_key(out)?;
        }
        let plain = self.zones.is_bare() && self.recipe.user_filter.is_none();
        if new_key && e.tag.kind_byte() == Kind::Value as u8 && plain {
            (self.hider, self.hider_is_value) = (Some(e.tag.seq()), true);
            let (tag, weight) = self.settle(e, Kind::Value, out);
            let Input { key, value, hash, .. } = e;
            return out.put_inline(Survivor { key, tag, kind: Kind::Value, value, hash, weight });
        }
        self.judge(e, out)
    }

    #[inline(never)]
    fn judge(&mut self, e: Input<'_>, out: &mut Writer) -> Result<()> {
        let kind = match e.tag.kind() {
            Some(k) if k != Kind::RangeDelete => k,
            _ => return Err(bad_kind(e.tag)),
        };
        let seq = e.tag.seq();
        let stripe = self.recipe.stripe(seq);
        if !self.chain.is_empty() && self.chain.stripe != stripe {
            self.end_chain(Below::Unknown, out)?;
        }
        let spared = self.hider_is_value && kind == Kind::SingleDelete;
        let hidden = !spared && self.hider.is_some_and(|q| self.recipe.stripe(q) == stripe);
        let under_operands = !self.chain.is_empty();
        let pair = std::mem::take(&mut self.pair);
        if kind != Kind::Merge {
            self.hider = Some(seq);
            self.hider_is_value = kind == Kind::Value;
        }
        if hidden {
            if pair && kind == Kind::Value {
                self.drop_pair(out);
            }
            out.ledger.drop_entry(Rule::Hidden, e.weight);
        } else if self.is_covered(seq, stripe) {
            self.end_chain(Below::Nothing, out)?;
            out.ledger.drop_entry(Rule::Covered, e.weight);
        } else if kind == Kind::Merge {
            self.release(out)?;
            self.operand(e, stripe, out)?;
        } else if under_operands && self.take_as_base(e, kind, out)? {
            out.ledger.drop_entry(Rule::Combined, e.weight);
        } else if kind.is_delete() {
            self.delete(e, kind, out)?;
            // The operands are applied to what it leaves, which is nothing.
            self.pair &= !under_operands;
        } else {
            self.release(out)?;
            self.value(e, out)?;
        }
        Ok(())
    }

    /// D6: an operand waits for what is below it, if there is an operator.
    fn operand(&mut self, e: Input<'_>, stripe: usize, out: &mut Writer) -> Result<()> {
        if self.recipe.operator.is_none() {
            self.operands_above = true;
            return self.survive(e, Kind::Merge, out);
        }
        if self.chain.is_full() {
            self.end_chain(Below::Unknown, out)?;
        }
        if self.chain.is_empty() {
            self.chain.begin(e.key, e.hash, stripe, e.run);
        }
        self.chain.push(&e);
        Ok(())
    }

    /// D6: the value or delete that the chain's operands are applied to. False if they could not
    /// be: they went out as they are then, and it must follow.
    fn take_as_base(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> Result<bool> {
        let below = if kind == Kind::Value { Below::Value(e.value) } else { Below::Nothing };
        self.end_chain(below, out)
    }

    /// D6: nothing more joins the chain. Its operands become one value if it is known what they
    /// are applied to, and that is what the answer says; else as few operands as can be.
    fn end_chain(&mut self, below: Below<'_>, out: &mut Writer) -> Result<bool> {
        if self.chain.is_empty() {
            return Ok(false);
        }
        let Some(operator) = self.recipe.operator.as_deref() else { return Ok(false) };
        let mut chain = std::mem::take(&mut self.chain);
        let below = match below {
            Below::Unknown if self.covers_below(chain.seqs().1, chain.stripe) => Below::Nothing,
            below => below,
        };
        let value = match below {
            Below::Unknown => {
                chain.fold(operator);
                None
            }
            Below::Nothing => chain.apply(operator, None).ok(),
            Below::Value(value) => chain.apply(operator, Some(value)).ok(),
        };
        match &value {
            Some(value) => self.put_merged(&chain, value, out)?,
            None => {
                self.operands_above = true;
                put_operands(&chain, out)?;
            }
        }
        chain.operands.clear();
        self.chain = chain;
        Ok(value.is_some())
    }

    /// The value that a chain was made into takes the place of its newest operand.
    fn put_merged(&mut self, chain: &Chain, value: &[u8], out: &mut Writer) -> Result<()> {
        chain.operands.iter().for_each(|o| o.drop_inputs(&mut out.ledger));
        let tag = Tag::new(chain.seqs().0, Kind::Value);
        let (run, hash, content) = (chain.run, chain.hash, content(chain.hash, value));
        let weight = weigh(content, tag);
        let made = Input { key: &chain.key, tag, value, run, hash, content, weight };
        out.ledger.make_entry(made.weight);
        self.value(made, out)
    }

    /// D2 seen from above: a tombstone of this stripe covers all that is older than `seq`.
    fn covers_below(&self, seq: Seq, stripe: usize) -> bool {
        let Some(f) = self.zones.fragment(&self.recipe) else { return false };
        let at = f.tombs.partition_point(|t| t.seq >= seq);
        f.tombs.get(at).is_some_and(|t| self.recipe.stripe(t.seq) == stripe)
    }

    /// D8: what the user's filter makes of a value that survives.
    fn value(&mut self, e: Input<'_>, out: &mut Writer) -> Result<()> {
        let recipe = &*self.recipe;
        // The newest version of its key, and newer than every snapshot.
        let newest =
            || !self.operands_above && recipe.stripe(e.tag.seq()) == recipe.snapshots.len();
        let decision = match &recipe.user_filter {
            Some(user) if newest() => decide(&*user.filter, &user.context, e.key, e.value),
            _ => Decision::Keep,
        };
        let (kind, value) = match &decision {
            Decision::Keep => return self.survive(e, Kind::Value, out),
            Decision::Remove => (Kind::Delete, &[][..]),
            Decision::Change(value) => (Kind::Value, &value[..]),
        };
        out.ledger.drop_entry(Rule::Filtered, e.weight);
        let (tag, content) = (Tag::new(e.tag.seq(), kind), content(e.hash, value));
        let made = Input { tag, value, content, weight: weigh(content, tag), ..e };
        out.ledger.make_entry(made.weight);
        match kind {
            Kind::Delete => self.delete(made, kind, out),
            _ => self.survive(made, kind, out),
        }
    }

    /// D2: a tombstone above `seq` in its stripe. The smallest one above decides, since stripes
    /// ascend with sequence numbers.
    fn is_covered(&self, seq: Seq, stripe: usize) -> bool {
        let Some(f) = self.zones.fragment(&self.recipe) else { return false };
        let above = f.tombs.partition_point(|t| t.seq > seq);
        above > 0 && self.recipe.stripe(f.tombs[above - 1].seq) == stripe
    }

    fn delete(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> Result<()> {
        let elidable = self.recipe.drop_tombstones && self.zones.is_free(e.run);
        if !elidable && kind == Kind::Delete && self.waiting.is_empty() {
            return out.put(Survivor {
                key: e.key,
                tag: e.tag,
                kind,
                value: e.value,
                hash: e.hash,
                weight: e.weight,
            });
        }
        self.pair = kind == Kind::SingleDelete;
        if self.waiting.is_empty() {
            self.waiting_key.clear();
            self.waiting_key.extend_from_slice(e.key);
        }
        let key = (self.waiting_key != e.key).then(|| e.key.into());
        let (value, hash, weight) = (e.value.to_vec(), e.hash, e.weight);
        self.waiting.push(Waiting { tag: e.tag, kind, key, value, hash, weight, elidable });
        Ok(())
    }

    /// D7: the single delete before this value goes with it.
    fn drop_pair(&mut self, out: &mut Writer) {
        if let Some(w) = self.waiting.pop() {
            out.ledger.drop_entry(Rule::Paired, w.weight);
        }
    }

    fn survive(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> Result<()> {
        let (tag, weight) = self.settle(e, kind, out);
        let Input { key, value, hash, .. } = e;
        out.put(Survivor { key, tag, kind, value, hash, weight })
    }

    /// D4: the tag a survivor is written with, and its weight then.
    #[inline(always)]
    fn settle(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> (Tag, u64) {
        let seq = e.tag.seq();
        if kind != Kind::Value
            || seq == 0
            || !(self.recipe.zero_seqs && self.recipe.drop_tombstones)
            || self.recipe.snapshots.first().is_some_and(|&s| s < seq)
            || !(self.zones.is_free(e.run) || zoo::on(Bug::ZeroedOverOlder))
            || (self.zones.keeps_at_most(seq) && !zoo::on(Bug::ZeroedUnderTombstone))
        {
            return (e.tag, e.weight);
        }
        let tag = Tag::new(0, kind);
        let weight = weigh(e.content, tag);
        out.ledger.zeroed += 1;
        out.ledger.sum_zeroed = out.ledger.sum_zeroed.wrapping_add(weight.wrapping_sub(e.weight));
        (tag, weight)
    }

    /// A survivor that is no delete follows: every waiting delete hides it from someone.
    fn release(&mut self, out: &mut Writer) -> Result<()> {
        for w in self.waiting.drain(..) {
            out.put(Survivor {
                key: w.key.as_deref().unwrap_or(&self.waiting_key),
                tag: w.tag,
                kind: w.kind,
                value: &w.value,
                hash: w.hash,
                weight: w.weight,
            })?;
        }
        Ok(())
    }

    /// The user key ends: D3 decides about waiting deletes.
    #[inline]
    pub(crate) fn end_key(&mut self, out: &mut Writer) -> Result<()> {
        (self.hider, self.hider_is_value) = (None, false);
        if self.waiting.is_empty() && self.chain.is_empty() && !self.operands_above {
            return Ok(());
        }
        self.end_waiting(out)
    }

    #[inline(never)]
    fn end_waiting(&mut self, out: &mut Writer) -> Result<()> {
        // Nothing lies below the chain if no other file may have the key.
        let bottom = self.recipe.drop_tombstones && self.zones.is_free(self.chain.run);
        self.end_chain(if bottom { Below::Nothing } else { Below::Unknown }, out)?;
        self.operands_above = false;
        self.pair = false;
        self.waiting.retain(|w| {
            if w.elidable {
                out.ledger.drop_entry(Rule::Elided, w.weight);
            }
            !w.elidable
        });
        self.release(out)
    }
}

/// Operands that could not be applied to anything, combined with each other or not.
fn put_operands(chain: &Chain, out: &mut Writer) -> Result<()> {
    for o in &chain.operands {
        let (key, hash) = chain.key_of(o);
        let (tag, value) = (o.tag, &o.value[..]);
        let weight = weigh(content(hash, value), tag);
        if o.is_combined() {
            o.drop_inputs(&mut out.ledger);
            out.ledger.make_entry(weight);
        }
        out.put(Survivor { key, tag, kind: Kind::Merge, value, hash, weight })?;
    }
    Ok(())
}

#[cold]
fn bad_kind(tag: Tag) -> Error {
    match tag.kind() {
        Some(_) => Error::corruption("a range deletion among point entries"),
        None => unknown_kind(tag.kind_byte()),
    }
}

#[cfg(test)]
mod tests;
