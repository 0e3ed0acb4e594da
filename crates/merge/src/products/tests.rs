//! Blocks that move into memory of the host's.

use super::*;

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

fn blocks(of: &Products) -> Vec<BlockMeta> {
    let block = |item: &Item| if let Item::Block(b) = item { Some(b.clone()) } else { None };
    of.items().iter().filter_map(block).collect()
}

#[test]
fn blocks_lie_as_in_their_files() {
    let bytes: Vec<u8> = (0..9000u32).map(|n| n as u8).collect();
    let places =
        [Some(0..100), Some(164..264), None, Some(300..5300), None, None, Some(6000..6001)];
    for has_room in [true, false] {
        let mut of = lent(&bytes, &places);
        of.own(PAGE + 7, |n| has_room.then(|| Box::new(vec![9u8; n + 5]) as Box<dyn Lent>));
        assert_eq!(of.is_lent(), has_room);
        let found = blocks(&of);
        let at: Vec<_> = found.iter().map(|b| b.at.clone()).collect();
        assert_eq!(at, [7..107, 107..207, PAGE..PAGE + 5000, 3 * PAGE..3 * PAGE + 1]);
        for (block, place) in found.iter().zip(places.iter().flatten()) {
            assert_eq!(of.block(block), &bytes[place.clone()]);
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
    of.own(0, |n| Some(Box::new(vec![0; n])));
    assert!(blocks(&of).iter().all(|b| of.block(b).is_empty()));
    // The same block again and again, each in a file of its own.
    let many: Vec<_> = (0..10_000).flat_map(|_| [Some(0..1), None]).collect();
    let mut of = lent(&bytes, &many);
    let mut asked = 0;
    of.own(1, |n| {
        asked = n;
        Some(Box::new(vec![0; n]))
    });
    assert!(asked <= 1 + 2 * PAGE + PAGE / 2 + 16 * PAGE, "{asked}");
    assert_eq!(blocks(&of).iter().filter(|b| of.block(b) == [1]).count(), 2 * PAGE);
}
