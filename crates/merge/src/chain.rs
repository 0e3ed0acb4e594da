//! Chains: the merge operands of one key that wait for what is below them (D6).
//!
//! Keeps: all operands of a chain are of one stripe, and every entry between them in the order of
//! sequence numbers is one of them; so what they do together is seen by every snapshot that sees
//! any of them. A chain takes as many bytes as an operand has and [`CHAIN_BYTES_MAX`] more, at most.
//! Leaves to others: which entries are operands that survive, and what lies below them (`gc`).

use lithify_base::operator::{full_merge, partial_merge};
use lithify_base::{MergeOperator, Result, Seq, Tag};

use crate::gc::Input;
use crate::ledger::{Ledger, Rule};

/// Operands are combined with each other, not with what is below all of them, beyond that many bytes.
pub(crate) const CHAIN_BYTES_MAX: usize = if cfg!(test) { 600 } else { 64 << 20 };

/// An operand that waits.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) tag: Tag,
    pub(crate) value: Vec<u8>,
    /// Its spelling of the key and the hash of that, if it is another than the newest one's.
    spelled: Option<(Box<[u8]>, u64)>,
    /// The input entries that it stands for, more than one if it is combined: how many, and the sum
    /// of their weights.
    inputs: (u64, u64),
}

impl Operand {
    /// True if it is not an input entry.
    pub(crate) fn is_combined(&self) -> bool {
        self.inputs.0 > 1
    }
    /// Sets the input entries down as dropped.
    pub(crate) fn drop_inputs(&self, ledger: &mut Ledger) {
        ledger.dropped[Rule::Combined as usize] += self.inputs.0;
        ledger.sum_dropped = ledger.sum_dropped.wrapping_add(self.inputs.1);
    }
}

/// Bytes that an operand takes in a chain.
pub(crate) fn weight(value: &[u8]) -> usize {
    value.len() + size_of::<Operand>()
}

/// The operands of one key in one stripe, newest first. Most keys have none.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// As the newest spells it.
    pub(crate) key: Vec<u8>,
    pub(crate) hash: u64,
    pub(crate) stripe: usize,
    /// The run of the newest.
    pub(crate) run: u16,
    pub(crate) operands: Vec<Operand>,
    bytes: usize,
}

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }
    /// True if no further operand should join.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > CHAIN_BYTES_MAX
    }
    /// Begins a chain, whose memory is reused.
    pub(crate) fn begin(&mut self, key: &[u8], hash: u64, stripe: usize, run: u16) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.hash, self.stripe, self.run, self.bytes) = (hash, stripe, run, 0);
    }
    /// Adds the next older operand.
    pub(crate) fn push(&mut self, e: &Input<'_>) {
        self.bytes += weight(e.value);
        let inputs = (1, e.weight);
        let spelled = (self.key != e.key).then(|| (e.key.into(), e.hash));
        self.operands.push(Operand { tag: e.tag, value: e.value.to_vec(), spelled, inputs });
    }
    /// The key as this operand spells it, and its hash.
    pub(crate) fn key_of<'a>(&'a self, operand: &'a Operand) -> (&'a [u8], u64) {
        match &operand.spelled {
            Some((key, hash)) => (key, *hash),
            None => (&self.key, self.hash),
        }
    }
    /// Sequence numbers of the newest and the oldest operand.
    pub(crate) fn seqs(&self) -> (Seq, Seq) {
        let seq = |o: Option<&Operand>| o.map_or(0, |o| o.tag.seq());
        (seq(self.operands.first()), seq(self.operands.last()))
    }
    /// What all operands make of `base`.
    ///
    /// # Errors
    /// `MergeFailed`.
    pub(crate) fn apply(&self, op: &dyn MergeOperator, base: Option<&[u8]>) -> Result<Vec<u8>> {
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(|o| &o.value[..]).collect();
        full_merge(op, &self.key, base, &operands)
    }
    /// Combines neighbours wherever the operator can, pairs first and then pairs of pairs: one after the other, a long
    /// chain that grows with each would be copied once for each. Where a round combines few, as the operator seldom can, one
    /// pass over what is left ends it. A combined operand has the tag of its newest.
    pub(crate) fn fold(&mut self, op: &dyn MergeOperator) {
        loop {
            let before = self.operands.len();
            self.pass(op, true);
            if !folds_on(before, self.operands.len()) {
                break;
            }
        }
        self.pass(op, false);
    }

    /// Goes over the chain once and combines neighbours: in `pairs`, or each with all older ones that it can.
    fn pass(&mut self, op: &dyn MergeOperator, pairs: bool) {
        let mut folded: Vec<Operand> = Vec::with_capacity(self.operands.len());
        let mut takes = false;
        for older in self.operands.drain(..) {
            let newer = folded.last_mut().filter(|_| takes);
            let merge = |newer: &Operand| partial_merge(op, &self.key, &older.value, &newer.value);
            match newer.and_then(|newer| Some((merge(newer)?, newer))) {
                Some((value, newer)) => {
                    newer.value = value;
                    newer.inputs.0 += older.inputs.0;
                    newer.inputs.1 = newer.inputs.1.wrapping_add(older.inputs.1);
                    takes = !pairs;
                }
                None => {
                    folded.push(older);
                    takes = true;
                }
            }
        }
        self.operands = folded;
    }
}

/// Whether another round may combine many, after one that made `after` operands of `before`.
fn folds_on(before: usize, after: usize) -> bool {
    after > 1 && after <= before / 4 * 3
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use lithify_base::Kind;

    use super::*;

    /// Combines as `with` says, and counts how often it was asked and about how many bytes.
    struct Counting {
        with: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
        asked: AtomicUsize,
        bytes: AtomicUsize,
    }

    impl Counting {
        fn new(with: fn(&[u8], &[u8]) -> Option<Vec<u8>>) -> Counting {
            Counting { with, asked: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
        }
    }

    impl MergeOperator for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn full_merge(&self, _: &[u8], _: Option<&[u8]>, all: &[&[u8]]) -> Result<Vec<u8>> {
            Ok(all.concat())
        }
        fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(older.len() + newer.len(), Ordering::Relaxed);
            (self.with)(older, newer)
        }
    }

    /// An operator that can combine a few of many is not asked about the others again and again.
    #[test]
    fn what_is_seldom_combined_is_asked_of_a_few_times() {
        // A newer "set" takes what is older; two that add are not one.
        let sets = |_: &[u8], newer: &[u8]| newer.starts_with(b"set").then(|| newer.to_vec());
        let (operator, mut chain) = (Counting::new(sets), Chain::default());
        chain.begin(b"k", 0, 0, 0);
        for n in (0..4000u64).rev() {
            let (tag, value) =
                (Tag::new(n + 1, Kind::Merge), if n == 3999 { b"set" } else { b"add" });
            let (hash, content, weight) = (0, 0, n);
            chain.push(&Input { key: b"k", tag, value, run: 0, hash, content, weight });
        }
        chain.fold(&operator);
        assert_eq!(chain.operands.len(), 1, "the newest takes all");
        let asked = operator.asked.into_inner();
        assert!(asked < 12_000, "asked {asked} times about 4000 operands");
    }

    /// Appends to one key, hundreds of thousands of them: each was copied with all newer ones.
    #[test]
    fn a_long_chain_is_not_copied_for_each_operand() {
        let joins = |older: &[u8], newer: &[u8]| Some([older, newer].concat());
        let (operator, mut chain) = (Counting::new(joins), Chain::default());
        let count = 4097u64;
        chain.begin(b"k", 0, 0, 0);
        for n in (0..count).rev() {
            let (tag, value) = (Tag::new(n + 1, Kind::Merge), n.to_be_bytes());
            let (hash, content, weight) = (0, 0, n);
            chain.push(&Input { key: b"k", tag, value: &value, run: 0, hash, content, weight });
        }
        chain.fold(&operator);
        let all: Vec<u8> = (0..count).flat_map(|n| n.to_be_bytes()).collect();
        let [made] = &chain.operands[..] else { panic!("{} operands", chain.operands.len()) };
        assert!(made.value == all && made.tag.seq() == count);
        assert_eq!(made.inputs, (count, count * (count - 1) / 2));
        let given = operator.bytes.into_inner();
        assert!(given < 16 * all.len(), "{given} bytes for {}", all.len());
    }
}
