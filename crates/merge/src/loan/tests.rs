//! Blocks that move into memory of the host's, part by part.

use super::*;
use crate::products::{BlockMeta, FileCut};

/// Products with blocks at these places of lent memory, a cut where there is no place.
fn lent(bytes: &[u8], places: &[Option<Range<usize>>]) -> Products {
    let item = |place: &Option<Range<usize>>| match place {
        Some(at) => Item::Block(BlockMeta { at: at.clone(), ..BlockMeta::default() }),
        None => Item::FileCut(FileCut::default()),
    };
    let items = places.iter().map(item).collect();
    let lent: Option<Box<dyn Lent>> = Some(Box::new(bytes.to_vec()));
    Products { lent, used: bytes.len(), items, ..Products::default() }
}

/// Settles what was lent, in parts of `part` bytes, in memory that has some to spare.
fn settle(of: &mut Products, phase: usize, part: usize) -> usize {
    let loan = of.recall(phase).expect("blocks are lent");
    assert!(of.arena().is_empty());
    let (mut own, mut sums, mut at) = (vec![9u8; loan.bytes() + 5], Vec::new(), 0);
    for part in loan.parts(part) {
        let to = &mut own[at..at + part.bytes()];
        at += part.bytes();
        sums.extend(loan.copy(&part, to, Some(ChecksumKind::Xxh3)));
    }
    let bytes = loan.bytes();
    assert_eq!(at, bytes);
    of.settle(loan, Box::new(own), sums);
    bytes
}

fn blocks(of: &Products) -> Vec<BlockMeta> {
    let block = |item: &Item| if let Item::Block(b) = item { Some(b.clone()) } else { None };
    of.items().iter().filter_map(block).collect()
}

#[test]
fn blocks_lie_as_in_their_files() {
    let bytes: Vec<u8> = (0..9000u32).map(|n| n as u8).collect();
    let places =
        [Some(0..100), Some(164..264), None, Some(300..5300), None, None, Some(6000..6001)];
    for part in [1, 150, 5000, 1 << 20] {
        let mut of = lent(&bytes, &places);
        settle(&mut of, PAGE + 7, part);
        assert!(of.is_lent());
        let found = blocks(&of);
        let at: Vec<_> = found.iter().map(|b| b.at.clone()).collect();
        assert_eq!(at, [7..107, 107..207, PAGE..PAGE + 5000, 3 * PAGE..3 * PAGE + 1]);
        for (i, (block, place)) in found.iter().zip(places.iter().flatten()).enumerate() {
            assert_eq!(of.block(block), &bytes[place.clone()]);
            let sum = of.block(block).split_last_chunk::<TRAILER>();
            let sum = sum.map_or(0, |(of, end)| raw_sum(ChecksumKind::Xxh3, of, end[0]));
            assert_eq!(of.sums[i], sum);
        }
    }
}

#[test]
fn what_a_machine_says_of_places_takes_no_more_than_its_memory() {
    let bytes = vec![1; 2 * PAGE];
    let far = [
        Some(0..usize::MAX),
        Some(PAGE..3 * PAGE),
        Some(Range { start: 5, end: 4 }),
        Some(usize::MAX..usize::MAX),
    ];
    let mut of = lent(&bytes, &far);
    settle(&mut of, 0, 100);
    assert!(blocks(&of).iter().all(|b| of.block(b).is_empty()));
    // The same block again and again, each in a file of its own.
    let many: Vec<_> = (0..10_000).flat_map(|_| [Some(0..1), None]).collect();
    let mut of = lent(&bytes, &many);
    let asked = settle(&mut of, 1, PAGE);
    assert!(asked <= 1 + 2 * PAGE + PAGE / 2 + 16 * PAGE, "{asked}");
    assert_eq!(blocks(&of).iter().filter(|b| of.block(b) == [1]).count(), 2 * PAGE);
}
