//! Machines that return anything: the answer is a typed error, or an output that the certifier
//! judges; and the offload goes on with the right set afterwards.

use super::*;
use crate::certify::{Certifier, Mode};

/// A case with few sets, and some state in the middle of it.
struct Stage {
    recipe: Arc<Recipe>,
    /// Output up to the set.
    before: Vec<Products>,
    offload: Offload,
    expected: Products,
    apart: Apart,
    rest: Vec<BlockSet>,
}

fn stage(seed: u64, dice: &mut Choices) -> Option<Stage> {
    let case = case(seed);
    let mut machine = Machine::new(&case.recipe);
    let mut offload = Offload::new(case.recipe.clone()).unwrap();
    let mut all = sets(&case, dice);
    let skip = dice.below(all.len());
    let mut before = Vec::new();
    for set in all.drain(..skip.min(all.len())) {
        let (products, apart) = machine.merge(set, dice);
        offload.set_done(apart.arrays(), &mut Products::default()).unwrap();
        before.push(products);
    }
    let set = (!all.is_empty()).then(|| all.remove(0))?;
    let (expected, apart) = machine.merge(set, dice);
    let recipe = case.recipe.clone();
    Some(Stage { recipe, before, offload, expected, apart, rest: all })
}

/// A number that is wrong in some way.
fn wrong(dice: &mut Choices, right: u64) -> u64 {
    match dice.below(6) {
        0 => right.wrapping_add(1),
        1 => right.wrapping_sub(1),
        2 => 0,
        3 => dice.pick(&[u64::MAX, 1 << 63, (1 << 32) - 1, 1 << 60]),
        4 => right ^ 1 << dice.below(64),
        _ => dice.bits(),
    }
}

fn wrong_range(dice: &mut Choices, range: &mut Range<usize>) {
    let end = if dice.one_in(2) { &mut range.start } else { &mut range.end };
    *end = wrong(dice, *end as u64) as usize;
}

fn spoil_bytes(dice: &mut Choices, bytes: &mut Vec<u8>) {
    let at = dice.below(bytes.len());
    match dice.below(5) {
        0 => bytes.truncate(at),
        1 => *bytes = dice.bytes(dice.clone().below(300)),
        2 => bytes.extend(dice.bytes(dice.clone().below(20))),
        _ => {
            if let Some(b) = bytes.get_mut(at) {
                *b = dice.bits() as u8;
            }
        }
    }
}

fn spoil_block(dice: &mut Choices, b: &mut BlockMeta) {
    let number = |dice: &mut Choices, n: &mut u32| *n = wrong(dice, u64::from(*n)) as u32;
    match dice.below(13) {
        0 => wrong_range(dice, &mut b.at),
        1 => wrong_range(dice, &mut b.first),
        2 => wrong_range(dice, &mut b.last),
        3 => wrong_range(dice, &mut b.hashes),
        4 => number(dice, &mut b.entries),
        5 => b.raw_key_bytes = wrong(dice, b.raw_key_bytes),
        6 => b.raw_value_bytes = wrong(dice, b.raw_value_bytes),
        7 => b.min_seq = wrong(dice, b.min_seq),
        8 => b.max_seq = wrong(dice, b.max_seq),
        9 => number(dice, &mut b.values),
        10 => number(dice, &mut b.deletes),
        11 => number(dice, &mut b.single_deletes),
        _ => number(dice, &mut b.merges),
    }
}

/// One lie of a machine that fills arrays.
fn spoil(dice: &mut Choices, a: &mut Apart) {
    let n = a.blocks.len();
    let (i, j) = (dice.below(n), dice.below(n));
    match dice.below(12) {
        0 => spoil_bytes(dice, &mut a.arena),
        1 => spoil_bytes(dice, &mut a.keys),
        2 => wrong_range(dice, &mut a.open),
        3 if n > 0 => a.blocks.swap(i, j),
        4 if n > 0 => drop(a.blocks.remove(i)),
        5 if n > 0 => a.blocks.insert(i, a.blocks[j].clone()),
        6 if !a.hashes.is_empty() => {
            let at = dice.below(a.hashes.len());
            a.hashes[at] = wrong(dice, a.hashes[at]);
        }
        7 => a.last_prefix = Some(dice.bits()).filter(|_| dice.one_in(2)),
        8 if n > 0 => a.blocks[i].weight = wrong(dice, a.blocks[i].weight),
        9 => {
            let at = dice.below(a.drops.dropped.len());
            a.drops.dropped[at] = wrong(dice, a.drops.dropped[at]);
        }
        10 => {
            let d = &mut a.drops;
            let fields = [
                &mut d.entries_in,
                &mut d.bytes_in,
                &mut d.sum_in,
                &mut d.sum_dropped,
                &mut d.made,
                &mut d.sum_made,
                &mut d.zeroed,
                &mut d.sum_zeroed,
            ];
            let at = dice.below(fields.len());
            *fields.into_iter().nth(at).unwrap() = dice.bits();
        }
        _ if n > 0 => spoil_block(dice, &mut a.blocks[i]),
        _ => a.hashes.push(dice.bits()),
    }
}

/// The rest of the output by a kernel, and the judgement of all of it.
fn certify(stage: Stage, accepted: &Products) -> Result<()> {
    let Stage { recipe, before, offload, rest, .. } = stage;
    let mut certifier = Certifier::new(Mode::Full);
    before.iter().try_for_each(|p| certifier.read(&recipe, p))?;
    certifier.read(&recipe, accepted)?;
    let mut out = Products::default();
    let mut kernel = Kernel::resume(recipe.clone(), offload.carry().clone())?;
    for set in rest {
        kernel.begin(set)?;
        kernel.work(u64::MAX)?;
        kernel.drain(&mut out);
        certifier.read(&recipe, &out)?;
    }
    let ledger = kernel.finish()?;
    kernel.drain(&mut out);
    certifier.read(&recipe, &out)?;
    certifier.finish(&ledger)
}

/// Blocks and cuts, without the carry.
fn output(products: &Products) -> Vec<Step> {
    let mut steps = steps(products);
    steps.retain(|s| !matches!(s, Step::SetDone(_)));
    steps
}

#[test]
fn spoiled_arrays_are_refused_or_judged_by_the_certifier() {
    let mut verdicts = [0; 3];
    for seed in 0..4000 {
        let dice = &mut Choices::new(seed);
        let Some(mut stage) = stage(1000 + seed % 500, dice) else { continue };
        let mut bad = stage.apart.clone();
        for _ in 0..dice.pick(&[1, 1, 1, 3]) {
            spoil(dice, &mut bad);
        }
        let carry = stage.offload.carry().clone();
        let mut out = Products::default();
        if stage.offload.set_done(bad.arrays(), &mut out).is_ok() {
            let right = output(&out) == output(&stage.expected);
            let judged = certify(stage, &out);
            assert!(right || judged.is_err(), "seed {seed}: a wrong output was accepted");
            verdicts[if judged.is_err() { 1 } else { 2 }] += 1;
            continue;
        }
        verdicts[0] += 1;
        assert!(out.is_empty(), "seed {seed}");
        assert_eq!(*stage.offload.carry(), carry, "seed {seed}");
        stage.offload.set_done(stage.apart.arrays(), &mut out).unwrap();
        same(&out, &stage.expected, &format!("seed {seed} once more"));
    }
    assert!(verdicts.iter().all(|&n| n > 100), "{verdicts:?}");
}

#[test]
fn spoiled_payloads_are_refused_unless_all_but_values_is_right() {
    let mut verdicts = [0; 2];
    for seed in 0..4000 {
        let dice = &mut Choices::new(seed);
        let Some(mut stage) = stage(1000 + seed % 500, dice) else { continue };
        let mut bad = stage.apart.clone();
        for _ in 0..dice.pick(&[1, 1, 1, 3]) {
            let n = bad.payloads.len();
            let (i, j) = (dice.below(n), dice.below(n));
            match dice.below(6) {
                0 if n > 0 => bad.payloads.swap(i, j),
                1 if n > 0 => drop(bad.payloads.remove(i)),
                2 if n > 0 => bad.payloads.insert(i, bad.payloads[j].clone()),
                3 | 4 if n > 0 => spoil_bytes(dice, &mut bad.payloads[i]),
                _ => spoil_bytes(dice, &mut bad.tail),
            }
        }
        let carry = stage.offload.carry().clone();
        let mut out = Products::default();
        let seen = bad.hand_in(Way::Payloads, &mut stage.offload, &mut out);
        if seen.is_ok() {
            verdicts[1] += 1;
            let shape = |p: &Products| {
                let mut steps = output(p);
                for step in &mut steps {
                    if let Step::Block { stored, .. } = step {
                        stored.clear();
                    }
                }
                steps
            };
            assert_eq!(shape(&out), shape(&stage.expected), "seed {seed}");
            certify(stage, &out).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            continue;
        }
        verdicts[0] += 1;
        assert!(out.is_empty(), "seed {seed}");
        assert_eq!(*stage.offload.carry(), carry, "seed {seed}");
        stage.apart.hand_in(Way::Payloads, &mut stage.offload, &mut out).unwrap();
        same(&out, &stage.expected, &format!("seed {seed} once more"));
    }
    assert!(verdicts[0] > 2000 && verdicts[1] > 20, "{verdicts:?}");
}

/// Blocks that come after their set has joined the output are held against what was said of them.
#[test]
fn blocks_that_come_later() {
    let (mut cut, mut changed) = (0, 0);
    for seed in 0..400 {
        let dice = &mut Choices::new(seed);
        let Some(mut stage) = stage(1000 + seed, dice) else { continue };
        let before = stage.offload.open().entries.to_vec();
        let Apart { arena, blocks, open, .. } = stage.apart.clone();
        let Some(first) = blocks.first() else { continue };
        let made = Made { arena: Box::new(Vec::new()), ..stage.apart.arrays() };
        let joined = stage.offload.join(made, &arena[open]).unwrap();
        let mut out = Products::default();
        if dice.one_in(2) {
            let end = blocks.last().unwrap().at.end;
            let short: Box<dyn Lent> = Box::new(arena[..end - 1].to_vec());
            assert!(joined.hand_out(short, &mut out).is_err(), "seed {seed}");
            cut += 1;
        } else if !before.is_empty() && arena[first.at.end - 5] == 0 {
            let mut wrong = arena.clone();
            wrong[first.at.start + dice.below(before.len())] ^= 1;
            assert!(joined.hand_out(Box::new(wrong), &mut out).is_err(), "seed {seed}");
            changed += 1;
        }
        assert!(out.is_empty(), "seed {seed}");
    }
    assert!(cut > 50 && changed > 20, "{cut} {changed}");
}
