//! Garbage collection: drop rules D1-D7 over a stream in total order (formats, section 7).
//!
//! Keeps: exactly the stated rules. Every rule but D3 and D7 looks back only; deletes that might
//! be elided wait until the next survivor of their key, or its end, decides. At most one delete
//! per stripe can wait, because an older one of the stripe is hidden.
//! Leaves to others: D5 and the tombstones' files (`zone`, `encode`), and
//! combining merge operands.
//!
//! Worked example, snapshot 10, nothing in use: `k: value@12, delete@11, value@9, value@7`.
//! The delete is hidden by 12 (D1, stripe 1), 9 survives in stripe 0 and becomes seq 0 (D4), 7 is
//! hidden by 9. Output: `value@12, value@0`.

use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, Kind, Result, Seq, Tag};

use crate::encode::{Survivor, Writer};
use crate::ledger::{Rule, weigh};
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
}

/// A delete that waits for the older entries of its key.
#[derive(Debug)]
struct Waiting {
    tag: Tag,
    kind: Kind,
    value: Vec<u8>,
    hash: u64,
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
}

impl Gc {
    pub(crate) fn new(recipe: Arc<Recipe>, zones: Zones) -> Gc {
        Gc { recipe, zones, hider: None, waiting: Vec::new(), waiting_key: Vec::new(), pair: false }
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
        if new_key && e.tag.kind_byte() == Kind::Value as u8 && self.zones.is_bare() {
            self.hider = Some(e.tag.seq());
            let tag = self.settle(e, Kind::Value, out);
            let Input { key, value, hash, .. } = e;
            return out.put_inline(Survivor { key, tag, kind: Kind::Value, value, hash });
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
        let hidden = self.hider.is_some_and(|q| self.recipe.stripe(q) == stripe);
        let pair = std::mem::take(&mut self.pair);
        if kind != Kind::Merge {
            self.hider = Some(seq);
        }
        if hidden {
            if pair && kind == Kind::Value {
                self.drop_pair(out);
            }
            out.ledger.drop_entry(Rule::Hidden, weigh(e.hash, e.tag, e.value.len()));
        } else if self.is_covered(seq, stripe) {
            out.ledger.drop_entry(Rule::Covered, weigh(e.hash, e.tag, e.value.len()));
        } else if kind.is_delete() {
            self.delete(e, kind, out)?;
        } else {
            self.release(out)?;
            self.survive(e, kind, out)?;
        }
        Ok(())
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
            });
        }
        self.pair = kind == Kind::SingleDelete;
        self.waiting_key.clear();
        self.waiting_key.extend_from_slice(e.key);
        let value = e.value.to_vec();
        self.waiting.push(Waiting { tag: e.tag, kind, value, hash: e.hash, elidable });
        Ok(())
    }

    /// D7: the single delete before this value goes with it.
    fn drop_pair(&mut self, out: &mut Writer) {
        if let Some(w) = self.waiting.pop() {
            out.ledger.drop_entry(Rule::Paired, weigh(w.hash, w.tag, w.value.len()));
        }
    }

    fn survive(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> Result<()> {
        let tag = self.settle(e, kind, out);
        out.put(Survivor { key: e.key, tag, kind, value: e.value, hash: e.hash })
    }

    /// D4: the tag a survivor is written with.
    #[inline(always)]
    fn settle(&mut self, e: Input<'_>, kind: Kind, out: &mut Writer) -> Tag {
        let seq = e.tag.seq();
        if kind != Kind::Value
            || seq == 0
            || !self.recipe.zero_seqs
            || self.recipe.snapshots.first().is_some_and(|&s| s < seq)
            || !(self.zones.is_free(e.run) || zoo::on(Bug::ZeroedOverOlder))
            || (self.zones.keeps_below(seq) && !zoo::on(Bug::ZeroedUnderTombstone))
        {
            return e.tag;
        }
        let tag = Tag::new(0, kind);
        let (new, old) = (weigh(e.hash, tag, e.value.len()), weigh(e.hash, e.tag, e.value.len()));
        out.ledger.zeroed += 1;
        out.ledger.sum_zeroed = out.ledger.sum_zeroed.wrapping_add(new.wrapping_sub(old));
        tag
    }

    /// A survivor that is no delete follows: every waiting delete hides it from someone.
    fn release(&mut self, out: &mut Writer) -> Result<()> {
        for w in self.waiting.drain(..) {
            out.put(Survivor {
                key: &self.waiting_key,
                tag: w.tag,
                kind: w.kind,
                value: &w.value,
                hash: w.hash,
            })?;
        }
        Ok(())
    }

    /// The user key ends: D3 decides about waiting deletes.
    #[inline]
    pub(crate) fn end_key(&mut self, out: &mut Writer) -> Result<()> {
        self.hider = None;
        if self.waiting.is_empty() { Ok(()) } else { self.elide(out) }
    }

    #[inline(never)]
    fn elide(&mut self, out: &mut Writer) -> Result<()> {
        self.pair = false;
        self.waiting.retain(|w| {
            if w.elidable {
                out.ledger.drop_entry(Rule::Elided, weigh(w.hash, w.tag, w.value.len()));
            }
            !w.elidable
        });
        self.release(out)
    }
}

#[cold]
fn bad_kind(tag: Tag) -> Error {
    match tag.kind() {
        Some(_) => Error::corruption("a range deletion among point entries"),
        None => Error::unsupported(format!("entry kind {:#x} is not supported", tag.kind_byte())),
    }
}

#[cfg(test)]
mod tests;
