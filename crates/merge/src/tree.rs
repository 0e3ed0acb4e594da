//! Loser tree: picks the smallest of k sorted runs with log2(k) integer comparisons per entry.
//!
//! Keeps: the total order R7: head, then the whole user key, then tag descending, then the newer
//! run. Inner nodes hold the loser of their match with its head, so the common case touches no
//! key.
//! Leaves to others: loading blocks. A selection stops when a run's view is used up.
//!
//! Worked example with heads 4, 2, 9, 7: leaves play pairwise, 2 and 7 win, 2 wins the root. Nodes
//! keep the losers 4, 9 and 7; when run 1 moves on to head 5 it replays only 4, then 7.

use lithify_base::{Comparator, Tag};

use crate::view::View;

/// An entry chosen by the merge: which run, and which of its view's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Index of the lane (not the run number).
    pub lane: u32,
    /// Index in the lane's view.
    pub at: u32,
}

/// A run's loaded block and the part of it that is still to be merged.
#[derive(Debug, Default)]
pub struct Lane {
    /// Position of the run; smaller is newer.
    pub run: u16,
    /// The block.
    pub view: View,
    /// Next entry.
    pub at: usize,
    /// End of the entries that belong to the set.
    pub end: usize,
}

impl Lane {
    fn is_spent(&self) -> bool {
        self.at >= self.end
    }
    fn head(&self) -> u64 {
        if self.is_spent() { u64::MAX } else { self.view.heads()[self.at] }
    }
}

/// How keys with equal heads compare. Monomorphic, so that byte order pays no indirect call.
pub trait KeyOrder {
    /// Whether heads say anything about the order.
    const HEADS: bool;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering;
}

/// Byte order.
#[derive(Clone, Copy, Debug)]
pub struct ByBytes;

/// Any other order.
#[derive(Clone, Copy)]
pub struct ByComparator<'a>(pub &'a dyn Comparator);

impl KeyOrder for ByBytes {
    const HEADS: bool = true;
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

impl KeyOrder for ByComparator<'_> {
    const HEADS: bool = false;
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.compare(a, b)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    head: u64,
    lane: u32,
}

/// The tree. Rebuilt for every set; replayed for every entry.
#[derive(Debug, Default)]
pub struct Tree {
    /// Losers; node 0 holds the winner.
    nodes: Vec<Node>,
    /// Leaves: the number of lanes rounded up to a power of two.
    width: usize,
}

/// Why a selection stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This lane's view is used up; load its next block, or leave it spent, and replay it.
    Spent(usize),
    /// As many picks as asked for.
    Full,
    /// Every lane is spent.
    End,
}

impl Tree {
    /// Plays all lanes against each other.
    pub fn build<O: KeyOrder>(&mut self, lanes: &[Lane], order: &O) {
        self.width = lanes.len().next_power_of_two().max(2);
        self.nodes.clear();
        self.nodes.resize(self.width, Node::default());
        let leaf = |i: usize| match lanes.get(i) {
            Some(l) if O::HEADS || l.is_spent() => Node { head: l.head(), lane: i as u32 },
            Some(_) => Node { head: 0, lane: i as u32 },
            None => Node { head: u64::MAX, lane: i as u32 },
        };
        let mut winners: Vec<Node> = (0..self.width).map(leaf).collect();
        let mut row = self.width;
        while row > 1 {
            row /= 2;
            for i in 0..row {
                let (a, b) = (winners[2 * i], winners[2 * i + 1]);
                let a_wins = beats(lanes, a, b, order);
                self.nodes[row + i] = if a_wins { b } else { a };
                winners[i] = if a_wins { a } else { b };
            }
        }
        self.nodes[0] = winners[0];
    }

    /// Lets a lane whose entry changed play its way up again. Only the winner's lane may change.
    #[inline]
    pub fn replay<O: KeyOrder>(&mut self, lanes: &[Lane], lane: usize, order: &O) {
        let l = &lanes[lane];
        let head = if O::HEADS || l.is_spent() { l.head() } else { 0 };
        self.climb(lanes, Node { head, lane: lane as u32 }, order);
    }

    #[inline]
    fn climb<O: KeyOrder>(&mut self, lanes: &[Lane], mut winner: Node, order: &O) {
        let mut i = (self.width + winner.lane as usize) / 2;
        while i > 0 {
            let node = &mut self.nodes[i];
            if node.head == winner.head {
                if beats(lanes, *node, winner, order) {
                    std::mem::swap(node, &mut winner);
                }
            } else {
                // Which of two random heads is smaller cannot be predicted: swap without a branch.
                let swap = u64::from(node.head < winner.head).wrapping_neg();
                let (heads, ids) = (node.head ^ winner.head, node.lane ^ winner.lane);
                node.head ^= heads & swap;
                winner.head ^= heads & swap;
                node.lane ^= ids & swap as u32;
                winner.lane ^= ids & swap as u32;
            }
            i /= 2;
        }
        self.nodes[0] = winner;
    }

    /// Appends the next entries in order to `picks`, until a lane is used up or there are `max`.
    pub fn select<O: KeyOrder>(
        &mut self,
        lanes: &mut [Lane],
        order: &O,
        picks: &mut Vec<Pick>,
        max: usize,
    ) -> Stop {
        while picks.len() < max {
            let w = self.nodes[0].lane as usize;
            let Some(lane) = lanes.get_mut(w).filter(|l| !l.is_spent()) else { return Stop::End };
            picks.push(Pick { lane: w as u32, at: lane.at as u32 });
            lane.at += 1;
            if lane.is_spent() {
                return Stop::Spent(w);
            }
            self.replay(lanes, w, order);
        }
        Stop::Full
    }
}

/// True if the entry of `a` comes before that of `b`. Spent lanes come last.
#[inline(never)]
fn beats<O: KeyOrder>(lanes: &[Lane], a: Node, b: Node, order: &O) -> bool {
    if a.head != b.head {
        return a.head < b.head;
    }
    let lane = |n: Node| lanes.get(n.lane as usize).filter(|l| !l.is_spent());
    let (Some(x), Some(y)) = (lane(a), lane(b)) else { return lane(a).is_some() };
    let tag = |l: &Lane| -> Tag { l.view.tag(l.at) };
    order
        .compare(x.view.key(x.at), y.view.key(y.at))
        .then(tag(y).cmp(&tag(x)))
        .then(x.run.cmp(&y.run))
        .is_lt()
}
