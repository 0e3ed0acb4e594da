use super::*;
use crate::SetDone;
use crate::workload::{Case, Choices, Size};

const SMALL: Size = Size { entries: 80, value: 200 };

/// One set, what the kernel made of it in batches that end anywhere, and the carry before.
struct Step {
    before: Option<Carry>,
    set: BlockSet,
    batches: Vec<Products>,
}

/// Everything a host has of a session of the kernel that drains after each `budget` bytes of input.
fn session(case: &Case, sets: Vec<BlockSet>, budget: u64) -> (Vec<Step>, Products, Ledger) {
    let mut kernel = Kernel::new(case.recipe.clone()).unwrap();
    let (mut steps, mut before) = (Vec::new(), None);
    for set in sets {
        kernel.begin(set.clone()).unwrap();
        let mut batches = Vec::new();
        loop {
            let work = kernel.work(budget).unwrap();
            let mut batch = Products::default();
            kernel.drain(&mut batch);
            batches.push(batch);
            if work == Work::SetDone {
                break;
            }
        }
        let after = match batches.last().and_then(|b| b.items().last()) {
            Some(Item::SetDone(SetDone { carry, .. })) => (**carry).clone(),
            other => panic!("{other:?}"),
        };
        steps.push(Step { before: before.replace(after), set, batches });
    }
    let ledger = kernel.finish().unwrap();
    let mut rest = Products::default();
    kernel.drain(&mut rest);
    (steps, rest, ledger)
}

fn verdict(case: &Case, step: &Step) -> Result<()> {
    let claims: Vec<Claim<'_>> = step.batches.iter().map(Claim::from).collect();
    set(&case.recipe, step.before.as_ref(), step.set.clone(), &claims)
}

/// Whatever the sets and the batches, with every codec, rule and order.
#[test]
fn what_the_kernel_makes_is_proven() {
    for seed in 0..150 {
        let case = Case::generate(seed, SMALL).unwrap();
        let dice = &mut Choices::new(seed);
        for sets in [case.sets(1), case.sets(u64::MAX), case.sets_by(|| 1 + dice.bits() % 9000)] {
            let (steps, rest, ledger) = session(&case, sets, 1 + dice.bits() % 4000);
            for step in &steps {
                verdict(&case, step).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            }
            let last = steps.last().and_then(|s| match s.batches.last()?.items().last()? {
                Item::SetDone(done) => Some(&*done.carry),
                _ => None,
            });
            end(&case.recipe, last, &[Claim::from(&rest)], &ledger).unwrap();
        }
    }
}

/// Any change to a block, a cut or the end of a set is refused, one that is consistent in itself too.
#[test]
fn every_change_to_the_output_of_a_set_is_refused() {
    let case = Case::uniform(3, 2, 900, 16, 32).unwrap();
    let (mut steps, rest, ledger) = session(&case, case.sets(9000), u64::MAX);
    let step = &mut steps[2];
    verdict(&case, step).unwrap();
    let good = step.batches[0].clone();
    let Some(Item::Block(block)) = good.items().first().cloned() else { panic!("a block") };
    for at in 0..block.stored_len() - TRAILER {
        let mut bad = good.clone();
        bad.block_mut(&block)[at] ^= 1;
        let kind = case.recipe.checksum;
        let stored = bad.block_mut(&block);
        let (payload, trailer) = stored.split_last_chunk_mut::<TRAILER>().unwrap();
        let sum = lithify_format::checksum::raw_sum(kind, payload, trailer[0]);
        trailer[1..].copy_from_slice(&sum.to_le_bytes());
        step.batches[0] = bad;
        assert!(verdict(&case, step).is_err(), "byte {at}");
    }
    let n = good.items().len();
    type Change<'a> = &'a dyn Fn(&mut Vec<Item>);
    let lies: [Change<'_>; 6] = [
        &|items| drop(items.remove(0)),
        &|items| items.insert(0, items[0].clone()),
        &|items| items.insert(1, Item::FileCut(crate::FileCut::default())),
        &|items| drop(items.pop()),
        &|items| items.push(items[n - 1].clone()),
        &|items| {
            if let Item::Block(b) = &mut items[0] {
                b.weight += 1;
            }
        },
    ];
    for (i, lie) in lies.iter().enumerate() {
        let mut items = good.items().to_vec();
        lie(&mut items);
        let mut bad = good.clone();
        bad.set_items(items);
        step.batches[0] = bad;
        assert!(verdict(&case, step).is_err(), "lie {i}");
    }
    let mut other = ledger.clone();
    other.sum_in ^= 1;
    let last = match steps[steps.len() - 1].batches[0].items().last() {
        Some(Item::SetDone(done)) => Some((*done.carry).clone()),
        _ => None,
    };
    end(&case.recipe, last.as_ref(), &[Claim::from(&rest)], &ledger).unwrap();
    assert!(end(&case.recipe, last.as_ref(), &[Claim::from(&rest)], &other).is_err());
    assert!(end(&case.recipe, last.as_ref(), &[], &ledger).is_err(), "no last file");
}

/// The carry of another recipe is refused before anything is merged: its counts of range tombstones
/// follow from the recipe alone.
#[test]
fn a_carry_of_a_recipe_with_other_range_tombstones_is_refused() {
    let mut case = Case::uniform(3, 2, 300, 16, 32).unwrap();
    let (steps, ..) = session(&case, case.sets(3000), u64::MAX);
    let mut recipe = (*case.recipe).clone();
    let tomb = crate::RangeTombstone { lo: b"a"[..].into(), hi: b"b"[..].into(), seq: 9, run: 0 };
    recipe.tombstones = crate::Fragments::from_raw([tomb], &*recipe.order);
    recipe.in_use_all(0);
    case.recipe = Arc::new(recipe);
    let refused = verdict(&case, &steps[1]).unwrap_err();
    assert!(refused.to_string().contains("range tombstones"), "{refused}");
}

/// The choice falls on any set, and as often as it should.
#[test]
fn one_set_in_so_many_is_chosen() {
    for one_in in [1, 2, 64] {
        let mut prover = Prover::new(one_in, 7);
        let chosen: Vec<u32> = (0..64_000).filter(|_| prover.picks()).collect();
        let expected = 64_000 / one_in as usize;
        let sigma = (expected as f64).sqrt();
        assert!((chosen.len() as f64 - expected as f64).abs() <= 4.0 * sigma, "{}", chosen.len());
        let first = |seed| {
            let mut prover = Prover::new(one_in, seed);
            (0..).find(|_| prover.picks())
        };
        assert!(one_in == 1 || (0..20).any(|seed| first(seed) != first(0)));
    }
    assert!(!Prover::new(0, 1).picks());
}
