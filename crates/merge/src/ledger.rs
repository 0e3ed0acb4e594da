//! The conservation ledger: what came in, and what was made of it, equals what went
//! out plus what was dropped by a rule.
//!
//! Keeps: counts and the content weight, a wrapping sum of [`weigh`] over entries. The sum sees a
//! lost, doubled or re-tagged entry and a changed value. An entry's [`content`] is hashed once, where
//! it is read; if it passes through, the same number stands for what is written.
//! Leaves to others: whether a drop was right ([`prove`](crate::prove)), and the inputs' weights,
//! which the host has from its own tables.

use lithify_base::{Error, ErrorKind, Result};

pub use lithify_format::weight::{content, weigh};

/// Why an entry is not in the output (the rules are in `gc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Rule {
    /// D1: a newer entry of the key hides it in its stripe.
    Hidden = 0,
    /// D2: a range tombstone covers it in its stripe.
    Covered = 1,
    /// D3: a delete that hides nothing.
    Elided = 2,
    /// D7: a single delete together with the put it cancels (the put counts as hidden).
    Paired = 3,
    /// D6: an operand, or what operands were applied to; another entry was made in its place.
    Combined = 4,
    /// D8: a value that the user's filter removed or changed; another entry was made in its place.
    Filtered = 5,
}

/// Number of rules.
pub const RULES: usize = 6;

/// Counts and sums of one compaction, up to some set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Point entries read, inside the job's range.
    pub entries_in: u64,
    /// Point entries written.
    pub entries_out: u64,
    /// Point entries dropped, by [`Rule`].
    pub dropped: [u64; RULES],
    /// Point entries made of others (D6, D8). Each has the key and the sequence number of one that
    /// was dropped as combined or filtered, so there are never more of them.
    pub made: u64,
    /// Point entries whose sequence number was set to 0 (D4).
    pub zeroed: u64,
    /// Sum of [`weigh`] over entries read.
    pub sum_in: u64,
    /// Sum of [`weigh`] over entries written.
    pub sum_out: u64,
    /// Sum of [`weigh`] over entries dropped.
    pub sum_dropped: u64,
    /// Sum of [`weigh`] over entries made.
    pub sum_made: u64,
    /// Sum over zeroed entries of the weight after minus the weight before.
    pub sum_zeroed: u64,
    /// Range tombstones over fragments read.
    pub tombs_in: u64,
    /// Range tombstones over fragments kept, before they are clamped to files.
    pub tombs_out: u64,
    /// Range tombstones dropped because a newer one of their stripe covers the fragment.
    pub tombs_hidden: u64,
    /// Range tombstones dropped because they hide nothing (D5).
    pub tombs_elided: u64,
    /// Logical bytes read: key, tag and value.
    pub bytes_in: u64,
}

impl Ledger {
    /// Sets an entry down as dropped.
    #[inline]
    pub(crate) fn drop_entry(&mut self, rule: Rule, weight: u64) {
        self.dropped[rule as usize] += 1;
        self.sum_dropped = self.sum_dropped.wrapping_add(weight);
    }
    /// Sets an entry down that was made of others.
    pub(crate) fn make_entry(&mut self, weight: u64) {
        self.made += 1;
        self.sum_made = self.sum_made.wrapping_add(weight);
    }
    /// What it counts of range tombstones, all of which follows from the recipe alone.
    pub(crate) fn tombs(&self) -> [u64; 4] {
        [self.tombs_in, self.tombs_out, self.tombs_hidden, self.tombs_elided]
    }
    /// True if everything that came in is accounted for, and everything else was made of it.
    pub fn balances(&self) -> bool {
        // An engine may claim any figures: sums that overflow balance nothing.
        let add = |all: &[u64]| all.iter().try_fold(0u64, |sum, &n| sum.checked_add(n));
        let out = add(&self.dropped).and_then(|dropped| dropped.checked_add(self.entries_out));
        let tombs = add(&[self.tombs_out, self.tombs_hidden, self.tombs_elided]);
        let sum = self.sum_in.wrapping_sub(self.sum_dropped).wrapping_add(self.sum_zeroed);
        let witnesses =
            [self.dropped[Rule::Combined as usize], self.dropped[Rule::Filtered as usize]];
        add(&witnesses).is_some_and(|witnesses| self.made <= witnesses)
            && out.is_some_and(|out| Some(out) == self.entries_in.checked_add(self.made))
            && tombs == Some(self.tombs_in)
            && sum.wrapping_add(self.sum_made) == self.sum_out
    }
    /// Fails unless the ledger balances.
    ///
    /// # Errors
    /// Internal: an engine lost, doubled or changed an entry.
    pub fn check(&self) -> Result<()> {
        if self.balances() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Internal,
            format!("compaction ledger does not balance: {self:?}"),
        ))
    }
}
