//! What a directory must show, key by key: families with their orders and operators, and a map for each.
//!
//! A life is random writes of which [`Twin`] keeps the outcome. RocksDB's own view is compared with it
//! before its directory is taken over, so that it is RocksDB's word from then on.
//! Keeps: single deletions meet what they are allowed to: keys of a class of their own, put at most once
//! since they went. Operands go to a class of their own, too, whose values the operator takes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;

/// Keys and values, in byte order whatever the family's order is.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;
/// What all families hold at one moment.
pub type State = Vec<Arc<Content>>;

/// How the keys of a family look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A word and a number.
    Numbered,
    /// Few bytes out of three, so that keys begin with other keys.
    Dense,
    /// Alike for many bytes.
    Long,
}

const LOOKS: [(Look, &str); 3] =
    [(Look::Numbered, "numbered"), (Look::Dense, "dense"), (Look::Long, "long")];
/// Names of operators that both engines have.
const OPERATORS: [&str; 3] = ["uint64add", "stringappend", "max"];

/// What a column family is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: String,
    /// Keys are in reverse byte order.
    pub reverse: bool,
    /// A merge operator by the name that RocksDB's options have for it.
    pub operator: Option<&'static str>,
    look: Look,
    /// Every key that may be written, in the family's order.
    pub keys: Vec<Vec<u8>>,
}

/// What is done to a key with this place in its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Plain,
    /// Single deletions.
    Single,
    /// Operands.
    Operands,
}

impl Family {
    /// A family by dice, with at most `most` keys.
    pub fn random(name: &str, most: usize, rng: &mut Rng) -> Family {
        let look = LOOKS[[0, 0, 1, 2][rng.usize(0..4)]].0;
        let operator = rng.choice([None, Some(0), Some(1), Some(2)]).flatten();
        let operator = operator.map(|at| OPERATORS[at]);
        Family::new(name, rng.bool(), operator, look, rng.usize(most / 3..=most))
    }

    pub fn new(
        name: &str,
        reverse: bool,
        operator: Option<&'static str>,
        look: Look,
        count: usize,
    ) -> Family {
        let mut keys: Vec<Vec<u8>> = match look {
            Look::Numbered => (0..count).map(|n| format!("key{n:05}").into_bytes()).collect(),
            Look::Long => {
                (0..count).map(|n| format!("{}{n:03}/{}", "=".repeat(40), n % 3).into()).collect()
            }
            Look::Dense => dense(count),
        };
        if reverse {
            keys.reverse();
        }
        Family { name: name.to_owned(), reverse, operator, look, keys }
    }

    /// A line that [`read`](Family::read) reads.
    pub fn written(&self) -> String {
        let look = LOOKS.iter().find(|l| l.0 == self.look).expect("each has a name").1;
        let order = if self.reverse { "reverse" } else { "bytewise" };
        let operator = self.operator.unwrap_or("none");
        format!("{} {order} {operator} {look} {}", self.name, self.keys.len())
    }

    pub fn read(line: &str) -> Family {
        let parts: Vec<&str> = line.split(' ').collect();
        let [name, order, operator, look, count] = parts[..] else { panic!("no family: {line}") };
        let operator = OPERATORS.into_iter().find(|o| *o == operator);
        let look = LOOKS.iter().find(|l| l.1 == look).expect("a look").0;
        Family::new(name, order == "reverse", operator, look, count.parse().expect("a number"))
    }

    fn class(&self, at: usize) -> Class {
        match at % 8 {
            7 => Class::Single,
            1 | 4 if self.operator.is_some() => Class::Operands,
            _ => Class::Plain,
        }
    }

    /// Operands may be merged into the key with this place.
    pub fn has_operands(&self, at: usize) -> bool {
        self.class(at) == Class::Operands
    }

    /// `a` comes before `b`.
    pub fn before(&self, a: &[u8], b: &[u8]) -> bool {
        if self.reverse { a > b } else { a < b }
    }

    /// A map's entries in the family's order.
    pub fn ordered<'a>(&self, map: &'a Content) -> Vec<(&'a Vec<u8>, &'a Vec<u8>)> {
        let mut all: Vec<_> = map.iter().collect();
        if self.reverse {
            all.reverse();
        }
        all
    }

    /// The first key of a stretch and an end that is not in it.
    pub fn bounds(&self, stretch: &Range<usize>, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
        let lo = self.keys[stretch.start].clone();
        let last = self.keys[stretch.end - 1].clone();
        let end = self.keys.get(stretch.end).cloned();
        // Just after the last key, where bytes have a next one; else the next key, or the last itself.
        let after = (!self.reverse).then(|| [&last[..], &[0]].concat());
        let after = after.filter(|after| end.as_ref() != Some(after));
        let hi = match end {
            Some(end) if rng.u8(0..4) > 0 => end,
            end => after.or(end).unwrap_or(last),
        };
        (lo, hi)
    }

    fn value(&self, class: Class, rng: &mut Rng) -> Vec<u8> {
        match (class, self.operator) {
            (Class::Operands, Some("uint64add")) => rng.u64(0..1 << 40).to_le_bytes().to_vec(),
            (Class::Operands, Some(_)) => {
                (0..rng.usize(1..12)).map(|_| rng.u8(b'a'..=b'z')).collect()
            }
            _ => {
                let len = if rng.u8(0..120) == 0 { rng.usize(0..3000) } else { rng.usize(0..90) };
                let even = rng.bool() && self.look != Look::Dense;
                (0..len).map(|at| if even && at % 8 > 0 { b'=' } else { rng.u8(..) }).collect()
            }
        }
    }
}

/// The first keys, in byte order, of one to six bytes out of three; they have bytes that need care.
fn dense(count: usize) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for len in 1..=6u32 {
        for n in 0..3usize.pow(len) {
            keys.push((0..len).map(|at| [0, b'm', 0xff][n / 3usize.pow(at) % 3]).collect());
        }
    }
    keys.sort();
    let step = (keys.len() / count.max(1)).max(1);
    keys.into_iter().step_by(step).take(count).collect()
}

/// One write of one family.
#[derive(Clone, Debug)]
pub enum Deed {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Single(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    /// From the first on, below the second.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// How often what is done in a burst of writes, per 1,000.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    deletes: u32,
    narrow: u32,
    wide: u32,
}

impl Mix {
    /// Nothing is deleted but what must be.
    pub const PUTS: Mix = Mix { deletes: 0, narrow: 0, wide: 0 };

    pub fn random(rng: &mut Rng) -> Mix {
        Mix {
            deletes: [0, 50, 300][rng.usize(0..3)],
            narrow: [0, 10, 60][rng.usize(0..3)],
            wide: [0, 0, 4, 25][rng.usize(0..4)],
        }
    }
}

/// What every family holds.
#[derive(Clone, Debug)]
pub struct Twin {
    pub families: Vec<Family>,
    now: State,
}

impl Twin {
    /// Empty families.
    pub fn new(families: Vec<Family>) -> Twin {
        let now = families.iter().map(|_| Arc::default()).collect();
        Twin { families, now }
    }

    /// Families that hold this.
    pub fn of(families: Vec<Family>, content: Vec<Content>) -> Twin {
        Twin { families, now: content.into_iter().map(Arc::new).collect() }
    }

    /// What they hold now.
    pub fn state(&self) -> State {
        self.now.clone()
    }

    /// A stretch of a family's keys: all of them, or a few neighbours.
    pub fn stretch(&self, family: usize, rng: &mut Rng) -> Range<usize> {
        let count = self.families[family].keys.len();
        match rng.u8(0..4) {
            0 => 0..count,
            wide => {
                let most = (count / [1, 2, 4, 12][usize::from(wide)]).max(2);
                let from = rng.usize(0..count);
                from..(from + rng.usize(1..most)).min(count)
            }
        }
    }

    /// A write to a key of `stretch`, which may be any of those that are allowed there.
    pub fn deed(&self, family: usize, stretch: &Range<usize>, mix: Mix, rng: &mut Rng) -> Deed {
        let of = &self.families[family];
        let at = rng.usize(stretch.clone());
        let key = of.keys[at].clone();
        let kind = rng.u32(0..1000);
        let (lo, hi) = match kind {
            k if k < mix.narrow => of.bounds(&(at..(at + rng.usize(1..6)).min(of.keys.len())), rng),
            k if k < mix.narrow + mix.wide => match rng.u8(0..3) {
                0 => of.bounds(&(0..of.keys.len()), rng),
                1 => of.bounds(stretch, rng),
                _ => of.bounds(&self.stretch(family, rng), rng),
            },
            _ => Default::default(),
        };
        if of.before(&lo, &hi) && !lo.is_empty() {
            return Deed::DeleteRange(lo, hi);
        }
        let deletes = rng.u32(0..1000) < mix.deletes;
        let class = of.class(at);
        match class {
            Class::Single if self.now[family].contains_key(&key) => Deed::Single(key),
            Class::Operands if rng.u8(0..3) > 0 => Deed::Merge(key, of.value(class, rng)),
            Class::Plain | Class::Operands if deletes => Deed::Delete(key),
            _ => Deed::Put(key, of.value(class, rng)),
        }
    }

    /// Does it.
    pub fn apply(&mut self, family: usize, deed: &Deed) {
        let of = &self.families[family];
        let map = Arc::make_mut(&mut self.now[family]);
        match deed {
            Deed::Put(key, value) => {
                map.insert(key.clone(), value.clone());
            }
            Deed::Delete(key) | Deed::Single(key) => {
                map.remove(key);
            }
            Deed::Merge(key, operand) => {
                let merged = merged(of.operator.expect("it has one"), map.get(key), operand);
                map.insert(key.clone(), merged);
            }
            Deed::DeleteRange(lo, hi) => {
                map.retain(|key, _| of.before(key, lo) || !of.before(key, hi));
            }
        }
    }
}

/// What the operator of this name makes of a value and an operand.
fn merged(operator: &str, value: Option<&Vec<u8>>, operand: &[u8]) -> Vec<u8> {
    let Some(value) = value else { return operand.to_vec() };
    match operator {
        "uint64add" => {
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            number(value).wrapping_add(number(operand)).to_le_bytes().to_vec()
        }
        "stringappend" => [value, &b","[..], operand].concat(),
        "max" => operand.max(value).to_vec(),
        other => panic!("no operator {other}"),
    }
}

/// Where what is shown, in the family's order, is not what the twin holds.
pub fn difference(family: &Family, shown: &[(Vec<u8>, Vec<u8>)], held: &Content) -> Option<String> {
    let held_in_order = family.ordered(held);
    if held_in_order.len() == shown.len()
        && held_in_order.iter().zip(shown).all(|(a, b)| *a.0 == b.0 && *a.1 == b.1)
    {
        return None;
    }
    let mut text = format!("{} keys are shown, {} should be", shown.len(), held.len());
    let seen: Content = shown.iter().cloned().collect();
    let short = |value: Option<&Vec<u8>>| {
        value.map_or("nothing".to_owned(), |v| v[..v.len().min(40)].escape_ascii().to_string())
    };
    let all: std::collections::BTreeSet<&Vec<u8>> = seen.keys().chain(held.keys()).collect();
    for key in all.into_iter().filter(|key| seen.get(*key) != held.get(*key)).take(5) {
        let (is, should) = (short(seen.get(key)), short(held.get(key)));
        let _ = write!(text, "; {} is {is}, and should be {should}", key.escape_ascii());
    }
    Some(text)
}
