use std::ops::Range;

use lithify_base::prefix::{CappedPrefix, FixedPrefix};
use lithify_base::{Kind, Prefixes, Tag};
use lithify_format::compress::{Codec, Decoder};
use lithify_format::filter::key_hash;

use super::*;
use crate::naive::{self, Output};
use crate::products::{BlockMeta, FileCut, Lent};
use crate::set::BlockSet;
use crate::view::View;
use crate::workload::{Case, Choices, Size};
use crate::{Kernel, Work};

mod hostile;
mod rules;

const SMALL: Size = Size { entries: 60, value: 600 };

/// How a set is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Arrays,
    Payloads,
    /// In arrays, and its blocks once the set has joined the output.
    Ahead,
}

/// A set as a machine could return it, taken apart from what the kernel made of it.
#[derive(Clone, Debug)]
struct Apart {
    set: u32,
    arena: Vec<u8>,
    blocks: Vec<BlockMeta>,
    open: Range<usize>,
    keys: Vec<u8>,
    hashes: Vec<u64>,
    last_prefix: Option<u64>,
    drops: Drops,
    /// For the other way: plain blocks, and the open one.
    payloads: Vec<Vec<u8>>,
    tail: Vec<u8>,
}

impl Apart {
    fn arrays(&self) -> Made {
        let Apart { set, open, last_prefix, .. } = self;
        Made {
            set: *set,
            arena: Box::new(self.arena.clone()),
            blocks: self.blocks.clone(),
            open: open.clone(),
            keys: self.keys.clone(),
            hashes: self.hashes.clone(),
            last_prefix: *last_prefix,
            drops: self.drops.clone(),
        }
    }
    fn decode(&self, offload: &mut Offload) -> Result<Made> {
        let payloads: Vec<&[u8]> = self.payloads.iter().map(Vec::as_slice).collect();
        Made::decode(offload, self.set, &payloads, &self.tail, self.drops.clone())
    }
    fn hand_in(&self, way: Way, offload: &mut Offload, out: &mut Products) -> Result<()> {
        let made = match way {
            Way::Arrays => self.arrays(),
            Way::Payloads => self.decode(offload)?,
            Way::Ahead => {
                let none: Box<dyn Lent> = Box::new(Vec::new());
                let made = Made { arena: none, ..self.arrays() };
                let joined = offload.join(made, &self.arena[self.open.clone()])?;
                return joined.hand_out(Box::new(self.arena.clone()), out);
            }
        };
        offload.set_done(made, out)
    }
}

/// A kernel whose products are taken apart.
struct Machine {
    recipe: Arc<Recipe>,
    kernel: Kernel,
    before: Carry,
    /// Hash of the last prefix in the open file, before the open block.
    last_prefix: Option<u64>,
}

impl Machine {
    fn new(recipe: &Arc<Recipe>) -> Machine {
        let before = Offload::new(recipe.clone()).unwrap().carry().clone();
        let kernel = Kernel::new(recipe.clone()).unwrap();
        Machine { recipe: recipe.clone(), kernel, before, last_prefix: None }
    }

    /// What the kernel makes of the next set, whole and apart.
    fn merge(&mut self, set: BlockSet, dice: &mut Choices) -> (Products, Apart) {
        let mut products = Products::default();
        self.kernel.begin(set).unwrap();
        assert_eq!(self.kernel.work(u64::MAX).unwrap(), Work::SetDone);
        self.kernel.drain(&mut products);
        let Some(Item::SetDone(done)) = products.items().last() else { panic!("no carry") };
        let (no, after) = (done.no, (*done.carry).clone());
        let apart = self.take_apart(&products, no, &after, dice);
        self.before = after;
        (products, apart)
    }

    fn take_apart(
        &mut self,
        from: &Products,
        set: u32,
        after: &Carry,
        dice: &mut Choices,
    ) -> Apart {
        let open = after.open(&self.recipe);
        let was_ended = self.before.open(&self.recipe).is_ended;
        let mut gap = |arena: &mut Vec<u8>| arena.extend(dice.bytes(dice.clone().below(9)));
        let (mut arena, mut blocks, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
        for item in from.items() {
            let Item::Block(meta) = item else {
                if matches!(item, Item::FileCut(_)) {
                    self.last_prefix = None;
                }
                continue;
            };
            gap(&mut arena);
            let at = arena.len();
            arena.extend_from_slice(from.block(meta));
            blocks.push(BlockMeta { at: at..arena.len(), continues_key: false, ..meta.clone() });
            payloads.push(plain(from.block(meta)));
            self.note_prefixes(payloads.last().unwrap());
        }
        gap(&mut arena);
        let at = arena.len();
        arena.extend_from_slice(open.entries);
        let mut tail = open.entries.to_vec();
        if was_ended {
            match payloads.is_empty() {
                true => tail.clear(),
                false => drop(payloads.remove(0)),
            }
        }
        let open_at = at..arena.len();
        gap(&mut arena);
        Apart {
            set,
            arena,
            blocks,
            open: open_at,
            keys: from.keys.clone(),
            hashes: [&from.hashes, open.hashes].concat(),
            last_prefix: self.last_prefix,
            drops: difference(self.before.ledger(), after.ledger()),
            payloads,
            tail,
        }
    }

    fn note_prefixes(&mut self, payload: &[u8]) {
        let mut view = View::default();
        view.decode(payload, &[]).unwrap();
        for i in 0..view.len() {
            let hash = self.recipe.prefixes.of(view.key(i)).map(key_hash);
            self.last_prefix = hash.or(self.last_prefix);
        }
    }
}

fn plain(stored: &[u8]) -> Vec<u8> {
    let (payload, trailer) = stored.split_at(stored.len() - 5);
    match trailer[0] {
        0 => payload.to_vec(),
        codec => Decoder::rocksdb().decode(codec, payload, 1 << 28).unwrap(),
    }
}

fn difference(a: &Ledger, b: &Ledger) -> Drops {
    let mut dropped = b.dropped;
    dropped.iter_mut().zip(a.dropped).for_each(|(b, a)| *b -= a);
    Drops {
        entries_in: b.entries_in - a.entries_in,
        bytes_in: b.bytes_in - a.bytes_in,
        sum_in: b.sum_in.wrapping_sub(a.sum_in),
        dropped,
        sum_dropped: b.sum_dropped.wrapping_sub(a.sum_dropped),
        made: b.made - a.made,
        sum_made: b.sum_made.wrapping_sub(a.sum_made),
        zeroed: b.zeroed - a.zeroed,
        sum_zeroed: b.sum_zeroed.wrapping_sub(a.sum_zeroed),
    }
}

/// A step of the output without its places.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Block { stored: Vec<u8>, bounds: [Vec<u8>; 2], hashes: Vec<u64>, meta: BlockMeta },
    FileCut(FileCut),
    SetDone(SetDone),
}

fn steps(products: &Products) -> Vec<Step> {
    let step = |item: &Item| match item {
        Item::FileCut(cut) => Step::FileCut(cut.clone()),
        Item::SetDone(done) => Step::SetDone(done.clone()),
        Item::Block(b) => Step::Block {
            stored: products.block(b).to_vec(),
            bounds: [products.first_key(b).to_vec(), products.last_key(b).to_vec()],
            hashes: products.hashes(b).to_vec(),
            meta: BlockMeta { at: 0..0, first: 0..0, last: 0..0, hashes: 0..0, ..b.clone() },
        },
    };
    products.items().iter().map(step).collect()
}

/// A case whose recipe may take prefixes of keys, which generated ones do not.
fn case(seed: u64) -> Case {
    let mut case = Case::generate(seed, SMALL).unwrap();
    let mut recipe = Recipe::clone(&case.recipe);
    recipe.prefixes = match seed % 4 {
        0 => Prefixes::by(Arc::new(FixedPrefix::new(3))),
        1 => Prefixes::by(Arc::new(CappedPrefix::new(2))),
        _ => Prefixes::default(),
    };
    case.recipe = Arc::new(recipe);
    case
}

/// Some cut of the case into sets.
fn sets(case: &Case, dice: &mut Choices) -> Vec<BlockSet> {
    let budget = dice.pick(&[1, 300, 2000, 20_000]);
    case.sets(budget)
}

fn same(seen: &Products, expected: &Products, what: &str) {
    let (seen, expected) = (steps(seen), steps(expected));
    for (i, (a, b)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(a, b, "{what}: step {i}");
    }
    assert_eq!(seen.len(), expected.len(), "{what}: steps");
}

/// Blocks, metadata, hashes, cuts, carries and ledger of each set and of the end.
#[test]
fn sets_made_elsewhere_leave_what_the_kernel_leaves() {
    for way in [Way::Arrays, Way::Payloads, Way::Ahead] {
        for seed in 0..400 {
            let (case, dice) = (case(seed), &mut Choices::new(seed));
            let mut machine = Machine::new(&case.recipe);
            let mut offload = Offload::new(case.recipe.clone()).unwrap();
            let mut out = Products::default();
            for set in sets(&case, dice) {
                let what = format!("{way:?} seed {seed} set {}", set.no);
                let (expected, apart) = machine.merge(set, dice);
                apart
                    .hand_in(way, &mut offload, &mut out)
                    .unwrap_or_else(|e| panic!("{what}: {e}\n{:?}", case.recipe));
                same(&out, &expected, &what);
                assert_eq!(offload.carry(), &machine.before, "{what}");
            }
            let ledger = machine.kernel.finish().unwrap();
            assert_eq!(offload.finish(&mut out).unwrap(), ledger, "{way:?} seed {seed}");
            let mut expected = Products::default();
            machine.kernel.drain(&mut expected);
            same(&out, &expected, &format!("{way:?} seed {seed} end"));
        }
    }
}

#[test]
fn any_engine_goes_on_from_any_carry() {
    for seed in 400..700 {
        let (case, dice) = (case(seed), &mut Choices::new(seed));
        let mut recipe = Recipe::clone(&case.recipe);
        // The naive twin knows no prefixes.
        recipe.prefixes = Prefixes::default();
        let recipe = Arc::new(recipe);
        let (expected, ledger) = naive::compact(&recipe, case.entries()).unwrap();
        let (mut output, mut out) = (Output::default(), Products::default());
        let mut carry = Offload::new(recipe.clone()).unwrap().carry().clone();
        for set in sets(&case, dice) {
            let mut kernel = Kernel::resume(recipe.clone(), carry.clone()).unwrap();
            let mut machine = Machine { kernel, before: carry.clone(), ..Machine::new(&recipe) };
            match dice.below(3) {
                0 => {
                    kernel = machine.kernel;
                    kernel.begin(set).unwrap();
                    assert_eq!(kernel.work(u64::MAX).unwrap(), Work::SetDone);
                    kernel.drain(&mut out);
                }
                n => {
                    let way = if n == 1 { Way::Arrays } else { Way::Payloads };
                    let (_, apart) = machine.merge(set, dice);
                    let mut offload = Offload::resume(recipe.clone(), carry).unwrap();
                    apart.hand_in(way, &mut offload, &mut out).unwrap();
                }
            }
            output.absorb(&out);
            let Some(Item::SetDone(done)) = out.items().last() else { panic!("no carry") };
            carry = (*done.carry).clone();
        }
        let seen = match dice.one_in(2) {
            true => {
                let mut kernel = Kernel::resume(recipe.clone(), carry).unwrap();
                let seen = kernel.finish().unwrap();
                kernel.drain(&mut out);
                seen
            }
            false => Offload::resume(recipe.clone(), carry).unwrap().finish(&mut out).unwrap(),
        };
        output.absorb(&out);
        assert_eq!(seen, ledger, "seed {seed}");
        assert_eq!(output, expected, "seed {seed}");
    }
}

/// What no case reaches is not tested.
#[test]
fn the_cases_reach_every_matter() {
    let mut reached = [0; 14];
    for seed in 0..400 {
        let (case, dice) = (case(seed), &mut Choices::new(seed));
        let recipe = &case.recipe;
        let mut machine = Machine::new(recipe);
        for set in sets(&case, dice) {
            let before = machine.before.clone();
            let before = before.open(recipe);
            let (out, apart) = machine.merge(set, dice);
            let blocks = apart.blocks.len();
            let after = machine.before.open(recipe);
            let cut = |item: &Item| matches!(item, Item::FileCut(_));
            let (hard, soft) = before.cut.splits_passed();
            let (hard_now, soft_now) = after.cut.splits_passed();
            let facts = [
                before.is_ended && blocks > 0,
                before.is_ended && blocks == 0,
                !before.is_ended && blocks > 0,
                !before.entries.is_empty()
                    && blocks == 0
                    && after.entries.len() > before.entries.len(),
                // Ended by a split alone.
                !before.is_ended
                    && apart.payloads.first().is_some_and(|p| {
                        !before.entries.is_empty() && entries_of(p) == before.entries.len()
                    }),
                blocks > 0 && recipe.codec == Codec::Lz4,
                blocks > 0 && recipe.prefixes.get().is_some(),
                blocks > 0 && after.last_prefix.is_some() && apart.last_prefix == after.last_prefix,
                blocks > 0 && !recipe.snapshots.is_empty(),
                out.items().iter().any(cut),
                out.items()
                    .iter()
                    .any(|i| matches!(i, Item::FileCut(c) if !c.tombstones.is_empty())),
                blocks > 0 && hard_now > hard,
                blocks > 0 && soft_now > soft,
                out.items().iter().any(|i| matches!(i, Item::Block(b) if b.continues_key)),
            ];
            reached.iter_mut().zip(facts).for_each(|(n, fact)| *n += usize::from(fact));
        }
    }
    assert!(reached.iter().all(|&n| n >= 20), "{reached:?}");
}

/// Where the entries of a plain block end.
fn entries_of(payload: &[u8]) -> usize {
    let count = payload.last_chunk::<4>().map_or(0, |c| u32::from_le_bytes(*c) as usize);
    payload.len() - 4 - 4 * count
}
