//! Single sentences of the seam, each with a small case.

use super::*;
use lithify_base::MAX_SEQ;

/// Memory whose owner sees when it comes back.
struct Loan {
    bytes: Vec<u8>,
    _held: Arc<()>,
}

impl Lent for Loan {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// The first set of a plain case with several blocks, and an offload at its start.
fn plain_set() -> (Offload, Products, Apart) {
    let case = Case::uniform(7, 2, 400, 16, 32).unwrap();
    let set = case.sets(u64::MAX).remove(0);
    let (products, apart) = Machine::new(&case.recipe).merge(set, &mut Choices::new(7));
    assert!(apart.blocks.len() > 3);
    (Offload::new(case.recipe.clone()).unwrap(), products, apart)
}

/// One change of what is handed in.
type Lie = fn(&mut Apart);

fn lend(apart: &Apart, owner: &Arc<()>) -> Made {
    let arena = Box::new(Loan { bytes: apart.arena.clone(), _held: owner.clone() });
    Made { arena, ..apart.arrays() }
}

#[test]
fn lent_memory_comes_back_when_products_are_cleared_refilled_or_dropped() {
    let (mut offload, expected, apart) = plain_set();
    let owner = Arc::new(());
    let held = || Arc::strong_count(&owner) - 1;
    let start = offload.carry().clone();
    let mut out = Products::default();
    for end in 0..3 {
        offload = Offload::resume(offload.recipe.clone(), start.clone()).unwrap();
        offload.set_done(lend(&apart, &owner), &mut out).unwrap();
        assert_eq!(held(), 1);
        same(&out, &expected, "blocks in lent memory");
        match end {
            0 => out.clear(),
            1 => drop(offload.finish(&mut out).unwrap()),
            _ => drop(std::mem::take(&mut out)),
        }
        assert_eq!(held(), 0, "end {end}");
    }
}

#[test]
fn lent_memory_comes_back_at_once_if_the_set_is_refused() {
    let (mut offload, _, apart) = plain_set();
    let owner = Arc::new(());
    let mut out = Products::default();
    let mut bad = lend(&apart, &owner);
    bad.blocks[2].weight ^= 1;
    assert!(offload.set_done(bad, &mut out).is_err());
    assert_eq!(Arc::strong_count(&owner), 1);
    let bad = Made { open: 1..usize::MAX, ..lend(&apart, &owner) };
    assert!(offload.set_done(bad, &mut out).is_err());
    assert_eq!(Arc::strong_count(&owner), 1);
}

/// Memory that is gone once a second handle is held.
struct Fading(Vec<u8>, Arc<()>);

impl Lent for Fading {
    fn bytes(&self) -> &[u8] {
        if Arc::strong_count(&self.1) > 2 { &[] } else { &self.0 }
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        if Arc::strong_count(&self.1) > 2 { &mut [] } else { &mut self.0 }
    }
}

#[test]
fn lent_memory_that_breaks_its_promise_gives_empty_blocks() {
    let (mut offload, _, apart) = plain_set();
    let owner = Arc::new(());
    let arena = Box::new(Fading(apart.arena.clone(), owner.clone()));
    let mut out = Products::default();
    offload.set_done(Made { arena, ..apart.arrays() }, &mut out).unwrap();
    let Item::Block(b) = out.items()[0].clone() else { panic!("a block") };
    assert!(!out.block(&b).is_empty());
    let _second = owner.clone();
    assert!(out.arena().is_empty() && out.block(&b).is_empty() && out.block_mut(&b).is_empty());
    assert!(out.clone().block(&b).is_empty() && out.parts_mut().0.is_empty());
    let mut certifier = crate::certify::Certifier::new(crate::certify::Mode::Full);
    assert!(certifier.read(&offload.recipe, &out).is_err());
}

#[test]
fn checksums_are_rewritten_inside_lent_memory() {
    let (mut offload, _, apart) = plain_set();
    let mut out = Products::default();
    offload.set_done(apart.arrays(), &mut out).unwrap();
    let Item::Block(b) = out.items()[1].clone() else { panic!("a block") };
    out.block_mut(&b).last_mut().map(|byte| *byte ^= 0xff).unwrap();
    let (arena, _) = out.parts_mut();
    arena[b.at.start] ^= 0xff;
    let mut expected = apart.arena[apart.blocks[1].at.clone()].to_vec();
    expected[0] ^= 0xff;
    *expected.last_mut().unwrap() ^= 0xff;
    assert_eq!(out.block(&b), expected);
    let copy = out.clone();
    out.clear();
    assert!(out.block(&b).is_empty(), "the memory is its owner's again");
    assert_eq!(copy.block(&b), expected, "a clone has memory of its own");
}

#[test]
fn a_kernel_refills_products_that_held_lent_memory() {
    let (mut offload, _, apart) = plain_set();
    let mut out = Products::default();
    offload.set_done(apart.arrays(), &mut out).unwrap();
    let mut kernel = Kernel::resume(offload.recipe.clone(), offload.carry().clone()).unwrap();
    kernel.finish().unwrap();
    kernel.drain(&mut out);
    let mut expected = Products::default();
    offload.finish(&mut expected).unwrap();
    same(&out, &expected, "the end");
}

/// Each sentence of what is refused: one change, of the arrays.
#[test]
fn arrays_that_cannot_be_are_refused_and_change_nothing() {
    let changes: [(&str, Lie); 21] = [
        ("before the one before", |a| a.blocks.swap(1, 2)),
        ("outside of its array", |a| a.blocks[1].at.end = usize::MAX),
        ("outside of its array", |a| (a.blocks[1].first.start, a.blocks[1].first.end) = (3, 2)),
        ("outside of its array", |a| a.blocks[1].last = 0..7),
        ("outside of its array", |a| a.blocks[1].hashes.end = usize::MAX),
        ("before the one before", |a| a.blocks[2].hashes.start -= 1),
        ("before the one before", |a| a.open = a.blocks[0].at.clone()),
        ("metadata", |a| a.blocks[1].entries = 0),
        ("metadata", |a| a.blocks[1].values += 1),
        ("metadata", |a| a.blocks[1].raw_value_bytes = 1 << 40),
        ("metadata", |a| a.blocks[1].raw_key_bytes = 7),
        ("metadata", |a| a.blocks[1].max_seq = MAX_SEQ + 1),
        ("metadata", |a| a.blocks[1].first = a.blocks[2].first.clone()),
        ("too many", |a| a.blocks[1].raw_key_bytes = u64::MAX),
        ("too many", |a| a.drops.entries_in = u64::MAX),
        ("inside a grid cell", |a| a.blocks[1].raw_value_bytes = 0),
        ("no block is open", |a| a.open.end = a.open.start),
        ("filter hashes", |a| a.hashes.truncate(a.hashes.len() - 1)),
        ("filter hashes", |a| *a.hashes.last_mut().unwrap() ^= 1),
        ("does not balance", |a| a.drops.entries_in += 1),
        ("does not balance", |a| a.blocks[1].weight ^= 1),
    ];
    for (i, (why, change)) in changes.into_iter().enumerate() {
        let (mut offload, expected, apart) = plain_set();
        let mut out = Products::default();
        let mut bad = apart.clone();
        change(&mut bad);
        let e = offload.set_done(bad.arrays(), &mut out).unwrap_err().to_string();
        assert!(e.contains(why), "change {i}: {e} lacks {why:?}");
        offload.set_done(apart.arrays(), &mut out).unwrap();
        same(&out, &expected, "the same set handed in once more");
    }
}

/// Replaces the entries of a payload, and its restart points.
fn payload(restart_interval: u32, entries: &[(&[u8], u64)]) -> Vec<u8> {
    let mut b = lithify_format::block::BlockBuilder::new(restart_interval);
    for (user, seq) in entries {
        b.add_entry(InternalKey { user, tag: Tag::new(*seq, Kind::Value) }, b"");
    }
    b.finish().to_vec()
}

/// Each sentence of what is refused: payloads of one block and an open entry, and the reason.
#[test]
fn payloads_that_cannot_be_are_refused() {
    let mut recipe = Recipe::new(1);
    (recipe.block_bytes, recipe.restart_interval) = (64, 2);
    recipe.range.hi = Some(lithify_base::End::excl(b"x".as_slice()));
    let recipe = Arc::new(recipe);
    let keys: [&[u8]; 5] = [b"aaaaaaaaaaaaaaaaaa", b"aaaab", b"aaab", b"b", b"c"];
    let good: Vec<(&[u8], u64)> = keys.iter().map(|&k| (k, 9)).collect();
    let open = |k: &[u8]| payload(2, &[(k, 9)])[..3 + k.len() + 8].to_vec();
    let with = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut p = payload(2, &good[..4]);
        f(&mut p);
        p
    };
    let tail = with(&|_| ()).len() - 12;
    let one = |i: usize, key: &'static [u8]| {
        let mut all = good[..4].to_vec();
        all[i].0 = key;
        payload(2, &all)
    };
    let cases = [
        ("balance", with(&|_| ()), open(b"c")),
        ("no entries", payload(2, &[]), open(b"c")),
        ("restart points of a block", with(&|p| p[tail] = 1), open(b"c")),
        (
            "restart points of a block",
            with(&|p| drop(p.splice(tail + 4.., [1, 0, 0, 0]))),
            open(b"c"),
        ),
        ("fewer bytes", vec![9, 0, 0, 0], open(b"c")),
        ("shorter than its footer", vec![1, 2], open(b"c")),
        ("not encoded as", payload(1, &good[..4]), open(b"c")),
        ("not encoded as", payload(4, &good[..4]), open(b"c")),
        ("does not parse", with(&|p| p[0] = 1), open(b"c")),
        ("out of order", one(2, b"aaa"), open(b"c")),
        ("out of order", with(&|_| ()), open(b"b")),
        ("job's range", with(&|_| ()), open(b"x")),
        ("blocks start elsewhere", payload(2, &good[..3]), open(b"b")),
        ("blocks start elsewhere", payload(2, &good), open(b"d")),
        ("unknown kind", with(&|p| p[3 + 18] = 0x70), open(b"c")),
        ("no block is open", with(&|_| ()), Vec::new()),
    ];
    for (i, (why, block, open)) in cases.into_iter().enumerate() {
        let mut offload = Offload::new(recipe.clone()).unwrap();
        let seen = Made::decode(&mut offload, 0, &[&block], &open, Drops::default())
            .and_then(|made| offload.set_done(made, &mut Products::default()));
        let e = seen.unwrap_err().to_string();
        assert!(e.contains(why), "case {i}: {e} lacks {why:?}");
    }
}

/// Restart points and sums are the format's, but an entry that shares less than it could is not
/// what the kernel writes.
#[test]
fn an_entry_that_shares_too_little_is_refused() {
    let mut entries = vec![0, 10, 0];
    entries.extend_from_slice(b"aa\x01\x09\0\0\0\0\0\0");
    entries.extend_from_slice(&[1, 9, 0]);
    entries.extend_from_slice(b"b\x01\x09\0\0\0\0\0\0");
    let mut offload = Offload::new(Arc::new(Recipe::new(1))).unwrap();
    Made::decode(&mut offload, 0, &[], &entries, Drops::default()).unwrap();
    entries.truncate(13);
    entries.extend_from_slice(&[0, 10, 0]);
    entries.extend_from_slice(b"ab\x01\x09\0\0\0\0\0\0");
    let e = Made::decode(&mut offload, 0, &[], &entries, Drops::default());
    assert!(e.err().is_some_and(|e| e.to_string().contains("not encoded as")));
}

/// A compressed block shows by its metadata only what it begins with.
#[test]
fn a_compressed_block_that_lost_what_was_open_is_refused() {
    let changes: [Lie; 7] = [
        |a| (a.blocks[0].entries, a.blocks[0].values) = (1, 1),
        |a| a.blocks[0].raw_key_bytes = 8 * u64::from(a.blocks[0].entries),
        |a| a.blocks[0].raw_value_bytes = 0,
        |a| a.blocks[0].min_seq = a.blocks[0].max_seq,
        |a| a.blocks[0].first = a.blocks[0].last.clone(),
        |a| a.blocks[0].last = a.blocks[0].first.clone(),
        |a| a.hashes[0] ^= 1,
    ];
    let mut case = Case::uniform(9, 1, 400, 16, 32).unwrap();
    case.recipe = Arc::new(Recipe { block_bytes: 8 << 10, ..Recipe::clone(&case.recipe) });
    let mut machine = Machine::new(&case.recipe);
    let mut sets = case.sets(6000);
    let dice = &mut Choices::new(9);
    let (_, first) = machine.merge(sets.remove(0), dice);
    let (expected, mut second) = machine.merge(sets.remove(0), dice);
    // Said to be LZ4, so that it is not looked into; the certifier would.
    let at = second.blocks[0].at.end - 5;
    second.arena[at] = 4;
    for (i, change) in changes.into_iter().enumerate() {
        let mut out = Products::default();
        let mut offload = Offload::new(case.recipe.clone()).unwrap();
        first.hand_in(Way::Arrays, &mut offload, &mut out).unwrap();
        assert!(!offload.open().is_ended && offload.open().counts.entries > 1);
        let mut bad = second.clone();
        change(&mut bad);
        let e = offload.set_done(bad.arrays(), &mut out).unwrap_err().to_string();
        assert!(e.contains("the one that was open"), "change {i}: {e}");
        offload.set_done(second.arrays(), &mut out).unwrap();
        assert_eq!(out.items().len(), expected.items().len());
    }
}

#[test]
fn a_split_key_inside_of_a_block_is_noticed() {
    for soft in [false, true] {
        let case = Case::uniform(7, 2, 400, 16, 32).unwrap();
        let set = || case.sets(u64::MAX).remove(0);
        let (_, apart) = Machine::new(&case.recipe).merge(set(), &mut Choices::new(7));
        let mut recipe = Recipe::clone(&case.recipe);
        let inside = InternalKey::decode(&apart.keys[apart.blocks[1].last.clone()]).unwrap().user;
        let splits = if soft { &mut recipe.soft_splits } else { &mut recipe.hard_splits };
        splits.push(inside.into());
        let mut offload = Offload::new(Arc::new(recipe)).unwrap();
        let e = offload.set_done(apart.arrays(), &mut Products::default()).unwrap_err();
        assert!(e.to_string().contains("over a split key"), "{e}");
        let e = apart.decode(&mut offload).err().unwrap();
        assert!(e.to_string().contains("blocks start elsewhere"), "{e}");
    }
}

#[test]
fn a_finished_output_takes_no_set() {
    let (mut offload, _, apart) = plain_set();
    let mut out = Products::default();
    let made = apart.decode(&mut offload).unwrap();
    offload.finish(&mut out).unwrap();
    let kinds = [
        offload.set_done(made, &mut out).unwrap_err().kind(),
        apart.decode(&mut offload).err().unwrap().kind(),
        offload.finish(&mut out).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [lithify_base::ErrorKind::InvalidArgument; 3]);
}

/// A machine that has only the tables judges keys as the recipe does.
#[test]
fn tables_answer_as_the_recipe_does() {
    let mut free = [0; 2];
    for seed in 0..300 {
        let case = case(seed);
        let (recipe, order) = (&*case.recipe, &*case.recipe.order);
        let offload = Offload::new(case.recipe.clone()).unwrap();
        let tables = offload.tables();
        assert_eq!(tables.snapshots, recipe.snapshots);
        let (kept, _) = crate::zone::keep_tombstones(recipe);
        let mut keys: Vec<Vec<u8>> = case.entries().into_iter().map(|e| e.key).collect();
        let bounds = tables.zones.iter().filter_map(|z| z.key.as_ref());
        keys.extend(bounds.flat_map(|k| [k.to_vec(), [&k[..], &[0]].concat()]));
        for key in &keys {
            let zone = tables.zone(key, order);
            let row = &tables.zones[zone];
            for run in 0..recipe.runs {
                let expected = !recipe.in_use[usize::from(run)].contains(key, order);
                assert_eq!(tables.is_free(zone, run), expected, "seed {seed} run {run} {key:?}");
                free[usize::from(expected)] += 1;
            }
            let over = recipe.tombstones.find(key, order);
            let seqs: Vec<u64> = over.iter().flat_map(|f| &f.tombs).map(|t| t.seq).collect();
            assert_eq!(row.fragment.map_or(&[][..], |f| tables.fragment(f)), seqs, "seed {seed}");
            let stay = kept.find(key, order).and_then(|f| f.tombs.last()).map(|t| t.seq);
            let kept_min = row.fragment.map(|f| tables.kept_min[f as usize]);
            assert_eq!(kept_min.filter(|&s| s != MAX_SEQ), stay, "seed {seed}");
            let passed = |splits: &[lithify_base::Key]| {
                splits.iter().filter(|s| order.compare(s, key).is_le()).count() as u32
            };
            let expected = (passed(&recipe.hard_splits), passed(&recipe.soft_splits));
            assert_eq!((row.hard_splits, row.soft_splits), expected, "seed {seed} {key:?}");
        }
    }
    assert!(free.iter().all(|&n| n > 10_000), "{free:?}");
}
