//! A plan: operations of one client that follow from a seed, and mean the same whatever happens to be
//! left of the plan, so that any of them can be cut out.

use std::collections::BTreeSet;

use lithify_env::Random;
use lithify_env::random::derive_seed;

use crate::operator::Operator;
use crate::transaction::Transaction;

/// A key's number.
pub type KeyNo = u32;

/// Keys from this number on are put once and then deleted as such; nothing else but deletions of ranges
/// may change them.
pub const ONCE: KeyNo = 100_000;

/// A column family's number; 0 is the default one, which is always there.
pub type FamilyNo = u8;

/// What a value is made of: a number of its own, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueOf {
    pub number: u32,
    pub len: u32,
}

/// A change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(KeyNo, ValueOf),
    Delete(KeyNo),
    /// From the first key on, below the second.
    DeleteRange(KeyNo, KeyNo),
    /// An operand for the operator of the family.
    Merge(KeyNo, ValueOf),
    /// A key of those that are put once gets a value if it has none, and else loses it by a single
    /// deletion. The client looks first, before all changes of a batch, which has two of no key.
    Once(KeyNo, ValueOf),
    /// What that came to.
    SingleDelete(KeyNo),
    /// The same in another family; nothing, if that is not there.
    In(FamilyNo, Box<Change>),
}

impl Change {
    /// The key of a family that the client looks at before.
    pub fn asks(&self, family: FamilyNo) -> Option<(FamilyNo, KeyNo)> {
        match self {
            Change::In(family, change) => change.asks(*family),
            Change::Once(k, _) => Some((family, *k)),
            _ => None,
        }
    }

    /// What the client does once it knows whether that key is there.
    pub fn settled(&self, is_there: bool) -> Change {
        match self {
            Change::In(family, change) => Change::In(*family, Box::new(change.settled(is_there))),
            // Now and then there is nothing to delete.
            Change::Once(k, v) if is_there || v.number.is_multiple_of(8) => {
                Change::SingleDelete(*k)
            }
            Change::Once(k, v) => Change::Put(*k, *v),
            plain => plain.clone(),
        }
    }
}

/// A movement of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    First,
    Last,
    Seek(KeyNo),
    SeekForPrev(KeyNo),
    Next,
    Prev,
}

/// What a client does. A view (a snapshot, an iterator) is named by a number that counts round those
/// there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Write(Vec<Change>),
    Get(KeyNo),
    MultiGet(Vec<KeyNo>),
    /// The entries between two bounds, at most so many, from either end.
    Scan {
        from: Option<KeyNo>,
        to: Option<KeyNo>,
        backward: bool,
        most: u32,
    },
    /// The entries whose keys begin with so many bytes of a key.
    Prefix {
        of: KeyNo,
        bytes: u32,
        backward: bool,
    },
    /// A new iterator, and where it is after each movement.
    Walk(Vec<Move>),
    Snapshot,
    GetAt(u32, KeyNo),
    ScanAt(u32),
    ForgetSnapshot(u32),
    /// An iterator that is kept.
    Hold(KeyNo),
    WalkHeld(u32, Vec<Move>),
    LetGo(u32),
    Flush,
    Compact(Option<KeyNo>, Option<KeyNo>),
    Settle,
    Sync,
    /// A copy is made, opened, and read whole.
    Checkpoint,
    /// Another handle reads all that is there.
    ReadOnly,
    Reopen,
    /// A family is made, unless it is there.
    Create(FamilyNo),
    /// A family goes, with all it holds; a snapshot does not keep it.
    Drop(FamilyNo),
    Transaction(Transaction),
    /// An operation that is about one family in another than the default one; nothing, if that is not
    /// there.
    In(FamilyNo, Box<Op>),
}

impl Op {
    /// Whether it is about one family.
    fn is_of_one(&self) -> bool {
        matches!(
            self,
            Op::Get(_)
                | Op::MultiGet(_)
                | Op::Scan { .. }
                | Op::Prefix { .. }
                | Op::Walk(_)
                | Op::GetAt(..)
                | Op::ScanAt(_)
                | Op::Hold(_)
                | Op::Flush
                | Op::Compact(..)
                | Op::Transaction(_)
        )
    }
}

/// The merge operator of each family.
pub type Operators = [Operator; 3];

/// The operations of one client.
#[derive(Clone, Debug)]
pub struct Plan {
    pub operators: Operators,
    pub ops: Vec<Op>,
}

/// The bytes of a key; the first one has none. One that is put once lies behind the other of its number.
pub fn key(n: KeyNo) -> Vec<u8> {
    match n.checked_sub(ONCE) {
        None if n == 0 => String::new(),
        Some(n) => format!("{n:04}/once"),
        None => format!("{n:04}/key"),
    }
    .into_bytes()
}

/// The bytes of a value: half of them can be compressed.
pub fn value(of: ValueOf) -> Vec<u8> {
    let mut bytes = vec![0; of.len as usize];
    let half = bytes.len().div_ceil(2);
    Random::from_seed(of.number.into()).fill(&mut bytes[..half]);
    bytes
}

/// What the plan of a seed is about.
struct Theme {
    keys: u64,
    lengths: [u64; 3],
    views: u64,
    /// Families besides the default one.
    families: u64,
    /// All values are numbers.
    numbers: bool,
}

impl Plan {
    /// The plan of `seed`, with so many operations and a last look at everything.
    pub fn new(seed: u64, count: usize) -> Plan {
        let mut random = Random::from_seed(derive_seed(seed, "plan"));
        let theme = Theme {
            keys: [8, 40, 200, 800][random.below(4) as usize],
            lengths: [[60, 0, 400], [300, 0, 3000], [20, 0, 90], [200, 600, 20_000]]
                [random.below(4) as usize],
            views: [0, 2, 4][random.below(3) as usize],
            families: 2 * Random::from_seed(derive_seed(seed, "families")).below(2),
            numbers: seed.is_multiple_of(4),
        };
        let families = 1..=theme.families as FamilyNo;
        let mut operators = Operator::OF_BYTES;
        operators.rotate_left((seed % 3) as usize);
        if theme.numbers {
            operators[0] = Operator::Add;
        }
        let mut author = Author { random, theme, views: 0, number: 0 };
        let mut ops: Vec<Op> = (0..count).map(|_| author.op()).collect();
        let all = |backward| Op::Scan { from: None, to: None, backward, most: u32::MAX };
        ops.extend([all(false), all(true), Op::Reopen, all(false), all(true)]);
        let last = families.map(|family| Op::In(family, Box::new(all(false))));
        ops.extend(last);
        Plan { operators, ops }
    }
}

/// Who writes a plan.
pub struct Author {
    random: Random,
    theme: Theme,
    /// Views that are held, if no operation is cut out.
    views: u64,
    number: u32,
}

impl Author {
    pub fn below(&mut self, n: u64) -> u32 {
        self.random.below(n) as u32
    }
    /// A key that may be put, deleted and merged into.
    pub fn key(&mut self) -> KeyNo {
        self.below(self.theme.keys)
    }
    /// A family to name, now and then, if there are several.
    pub fn any_family(&mut self) -> Option<FamilyNo> {
        let named = self.theme.families > 0 && self.below(3) == 0;
        named.then(|| self.below(self.theme.families + 1) as FamilyNo)
    }
    pub fn once(&mut self) -> KeyNo {
        ONCE + self.below(self.theme.keys.min(30))
    }
    /// A key to look for.
    fn any_key(&mut self) -> KeyNo {
        if self.below(6) == 0 { self.once() } else { self.key() }
    }
    fn maybe_key(&mut self) -> Option<KeyNo> {
        (self.below(3) > 0).then(|| self.any_key())
    }
    pub fn value(&mut self) -> ValueOf {
        let class = match self.below(40) {
            0 => 2,
            1..6 => 1,
            _ => 0,
        };
        let len = self.below(self.theme.lengths[class] + 1);
        self.bytes(len)
    }
    /// What is merged into a value.
    pub fn operand(&mut self) -> ValueOf {
        let len = self.below(40);
        self.bytes(len)
    }
    fn bytes(&mut self, len: u32) -> ValueOf {
        self.number += 1;
        ValueOf { number: self.number, len: if self.theme.numbers { 8 } else { len } }
    }
    fn change(&mut self) -> Change {
        match self.below(20) {
            0..10 => Change::Put(self.key(), self.value()),
            10..13 => Change::Merge(self.key(), self.operand()),
            13..15 => Change::Once(self.once(), self.value()),
            15..19 => Change::Delete(self.key()),
            _ => self.range(),
        }
    }
    fn batch(&mut self) -> Vec<Change> {
        let count = 1 + self.below(15);
        let mut changes: Vec<Change> = (0..count).map(|_| self.change()).collect();
        let mut put = BTreeSet::new();
        changes.retain(|change| !matches!(change, Change::Once(k, _) if !put.insert(*k)));
        changes
    }
    fn range(&mut self) -> Change {
        let from = self.any_key();
        let most = 1 + self.theme.keys / 5;
        Change::DeleteRange(from, from + self.below(most))
    }
    pub fn walk(&mut self) -> Vec<Move> {
        let count = 1 + self.below(12);
        (0..count)
            .map(|i| match self.below(if i == 0 { 4 } else { 14 }) {
                0 => Move::Seek(self.any_key()),
                1 => Move::SeekForPrev(self.any_key()),
                2 => Move::First,
                3 => Move::Last,
                4..10 => Move::Next,
                _ => Move::Prev,
            })
            .collect()
    }

    fn op(&mut self) -> Op {
        if self.theme.families == 0 || self.below(3) > 0 {
            return self.op_of_one();
        }
        let family = 1 + self.below(self.theme.families) as FamilyNo;
        match self.below(60) {
            0 => Op::Drop(family),
            1..5 => Op::Create(family),
            _ => match self.op_of_one() {
                Op::Write(changes) => {
                    let mut inside = |change| match self.below(3) {
                        0 => change,
                        _ => Change::In(family, Box::new(change)),
                    };
                    Op::Write(changes.into_iter().map(&mut inside).collect())
                }
                op if op.is_of_one() => Op::In(family, Box::new(op)),
                op => op,
            },
        }
    }

    fn op_of_one(&mut self) -> Op {
        match self.below(1000) {
            0..350 => Op::Write(vec![Change::Put(self.key(), self.value())]),
            350..410 => Op::Write(vec![Change::Merge(self.key(), self.operand())]),
            410..450 => Op::Write(vec![Change::Once(self.once(), self.value())]),
            450..510 => Op::Write(vec![Change::Delete(self.key())]),
            510..580 => Op::Write(self.batch()),
            580..600 => Op::Write(vec![self.range()]),
            600..690 => Op::Get(self.any_key()),
            690..720 => Op::Transaction(self.transaction()),
            720..740 => {
                let count = self.below(12);
                Op::MultiGet((0..count).map(|_| self.any_key()).collect())
            }
            740..752 => Op::Prefix {
                of: self.any_key(),
                bytes: 1 + self.below(5),
                backward: self.below(2) == 0,
            },
            752..790 => Op::Scan {
                from: self.maybe_key(),
                to: self.maybe_key(),
                backward: self.below(2) == 0,
                most: 1 + self.below(60),
            },
            790..850 => Op::Walk(self.walk()),
            850..940 => self.view(),
            940..960 => Op::Flush,
            960..970 => {
                let (from, to) = (self.maybe_key(), self.maybe_key());
                // Swapped bounds are a mistake of the caller's.
                if from.zip(to).is_some_and(|(a, b)| key(a) > key(b)) {
                    Op::Compact(to, from)
                } else {
                    Op::Compact(from, to)
                }
            }
            970..978 => Op::Settle,
            978..986 => Op::Sync,
            986..989 => Op::Checkpoint,
            989..991 => Op::ReadOnly,
            991..995 => {
                self.views = 0;
                Op::Reopen
            }
            _ => Op::Write((0..20).map(|_| Change::Put(self.key(), self.value())).collect()),
        }
    }

    /// Something with a snapshot or an iterator that is kept.
    fn view(&mut self) -> Op {
        let which = self.below(8);
        if self.views < self.theme.views && self.below(3) == 0 {
            self.views += 1;
            return if self.below(2) == 0 { Op::Snapshot } else { Op::Hold(self.any_key()) };
        }
        match self.below(8) {
            0 => {
                self.views = self.views.saturating_sub(1);
                if self.below(2) == 0 { Op::ForgetSnapshot(which) } else { Op::LetGo(which) }
            }
            1..4 => Op::GetAt(which, self.any_key()),
            4 => Op::ScanAt(which),
            _ => Op::WalkHeld(which, self.walk()),
        }
    }
}
