//! Which slots of equal size are taken, and which pages of memory lie under none: numbers only.
//!
//! A [`Shelf`] has slots of one size in slabs of [`SLAB`] bytes. A slot is taken, warm (free, and its
//! memory stays for the next taker) or cold (free, and its memory may have gone back to the system).
//! Slots of less than a page share pages, so each page knows how many slots that are not cold touch it.
//!
//! Keeps: a slot is handed out once until it is given back; the pages that [`Shelf::give`] returns are
//! under no slot that is taken or warm.
//! Leaves to others: the memory itself, and when a slot stays warm (`os::bytes`).
//!
//! Worked example, slots of 3,000 bytes: slot 0 touches page 0, slot 1 the pages 0 and 1. Given back
//! cold, slot 0 frees no page while slot 1 is taken; slot 1 then frees page 0, and page 1 if slot 2 is cold.

use std::collections::VecDeque;
use std::ops::Range;

use crate::os::pages::PAGE;

/// Bytes of a slab.
pub(crate) const SLAB: usize = 1 << 20;
/// Smallest slot: less comes from the allocator, which is good at it.
pub(crate) const SLOT_MIN: usize = 2 << 10;
/// Largest slot: more is a mapping of its own.
pub(crate) const SLOT_MAX: usize = SLAB / 8;
/// Sizes of slots in each doubling: a slot is at most a sixteenth larger than what is asked for.
const STEPS: usize = 16;
/// All sizes of slots.
pub(crate) const CLASSES: usize = (SLOT_MAX / SLOT_MIN).trailing_zeros() as usize * STEPS + 1;
const _: () = assert!(SLOT_MIN.is_power_of_two() && SLOT_MAX.is_power_of_two());
const _: () = assert!(SLOT_MIN / STEPS >= 64 && SLAB / PAGE <= u16::MAX as usize);

/// The class whose slots hold `bytes`; `None` if no slot is that large.
pub(crate) fn class_of(bytes: usize) -> Option<usize> {
    if bytes > SLOT_MAX {
        return None;
    }
    // A power of two is the last step of the doubling below it.
    let doublings = (bytes.saturating_sub(1)).max(SLOT_MIN).ilog2() - SLOT_MIN.ilog2();
    let (base, step) = (SLOT_MIN << doublings, (SLOT_MIN << doublings) / STEPS);
    Some(doublings as usize * STEPS + bytes.saturating_sub(base).div_ceil(step))
}

/// Bytes of the slots of `class`.
pub(crate) fn slot_bytes(class: usize) -> usize {
    let base = SLOT_MIN << (class / STEPS);
    base + class % STEPS * (base / STEPS)
}

/// Where a slot is: its slab, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the slab in its shelf.
    pub(crate) slab: u32,
    /// Number of the slot in its slab.
    pub(crate) slot: u16,
}

/// A slot that was free.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Where it is.
    pub(crate) place: Place,
    /// Whether its memory stayed.
    pub(crate) warm: bool,
    /// Pages that come into use by it.
    pub(crate) fresh: usize,
}

/// The slots of one size.
#[derive(Debug)]
pub(crate) struct Shelf {
    bytes: usize,
    /// The one that came back last at the end.
    warm: VecDeque<Place>,
    cold: Vec<Place>,
    /// For each page of each slab, how many slots that are not cold touch it.
    users: Vec<Vec<u16>>,
}

impl Shelf {
    /// No slab yet, for slots of `bytes`.
    pub(crate) fn new(bytes: usize) -> Shelf {
        Shelf { bytes, warm: VecDeque::new(), cold: Vec::new(), users: Vec::new() }
    }

    /// Where in its slab a slot begins.
    pub(crate) fn offset(&self, place: Place) -> usize {
        usize::from(place.slot) * self.bytes
    }

    /// How much of each slab is in use: slots that are not cold, each as often as it has pages.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = u64> {
        self.users.iter().map(|pages| pages.iter().map(|&users| u64::from(users)).sum())
    }

    fn pages(&self, place: Place) -> Range<usize> {
        let start = self.offset(place);
        start / PAGE..(start + self.bytes).div_ceil(PAGE)
    }

    /// A free slot, a warm one first. `None` if every slot of every slab is taken.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        if let Some(place) = self.warm.pop_back() {
            return Some(Taken { place, warm: true, fresh: 0 });
        }
        let place = self.cold.pop()?;
        let pages = self.pages(place);
        let users = &mut self.users[place.slab as usize][pages];
        let fresh = users.iter().filter(|count| **count == 0).count();
        users.iter_mut().for_each(|count| *count += 1);
        Some(Taken { place, warm: false, fresh })
    }

    /// Adds a slab, all of it cold.
    pub(crate) fn add_slab(&mut self) {
        let slab = self.users.len() as u32;
        self.users.push(vec![0; SLAB / PAGE]);
        // The first slot is taken first.
        let slots = (0..(SLAB / self.bytes) as u16).rev();
        self.cold.extend(slots.map(|slot| Place { slab, slot }));
    }

    /// Takes a slot back whose memory stays.
    pub(crate) fn give_warm(&mut self, place: Place) {
        self.warm.push_back(place);
    }

    /// The warm slot that came back first, which is warm no longer: to be given.
    pub(crate) fn oldest_warm(&mut self) -> Option<Place> {
        self.warm.pop_front()
    }

    /// Takes a slot back, and tells which pages of its slab no slot needs any more.
    pub(crate) fn give(&mut self, place: Place) -> Range<usize> {
        let pages = self.pages(place);
        let users = &mut self.users[place.slab as usize][pages.clone()];
        users.iter_mut().for_each(|count| *count -= 1);
        self.cold.push(place);
        // Pages between the first and the last are this slot's alone.
        let idle = |count: Option<&u16>| count == Some(&0);
        let start = pages.start + usize::from(!idle(users.first()));
        let end = pages.end - usize::from(!idle(users.last()));
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::Random;

    #[test]
    fn a_class_is_the_smallest_that_holds_what_is_asked_for() {
        for bytes in 1..=SLOT_MAX {
            let class = class_of(bytes).unwrap();
            assert!(slot_bytes(class) >= bytes, "{bytes}");
            assert!(class == 0 || slot_bytes(class - 1) < bytes, "{bytes}");
            assert!(class == 0 || slot_bytes(class) - bytes <= bytes / STEPS, "{bytes}");
        }
        assert_eq!(class_of(SLOT_MAX), Some(CLASSES - 1));
        assert_eq!(class_of(SLOT_MAX + 1), None);
        assert!((0..CLASSES).all(|class| slot_bytes(class).is_multiple_of(64)));
    }

    /// Against a plain list of which slots touch which pages.
    #[test]
    fn pages_that_go_back_are_under_no_slot() {
        for bytes in [SLOT_MIN, 2176, 4352, PAGE, 17 << 10, SLOT_MAX] {
            let mut random = Random::from_seed(7);
            let mut shelf = Shelf::new(bytes);
            let mut taken: Vec<Place> = Vec::new();
            let mut warm: Vec<Place> = Vec::new();
            let mut resident: BTreeSet<(u32, usize)> = BTreeSet::new();
            for _ in 0..1000 {
                match random.below(4) {
                    0 | 1 => {
                        let Taken { place, warm: was_warm, fresh } =
                            shelf.take().unwrap_or_else(|| {
                                shelf.add_slab();
                                shelf.take().unwrap()
                            });
                        assert!(!taken.contains(&place), "taken twice");
                        assert_eq!(warm.contains(&place), was_warm);
                        warm.retain(|other| *other != place);
                        let before = resident.len();
                        resident.extend(shelf.pages(place).map(|page| (place.slab, page)));
                        assert_eq!(resident.len() - before, fresh);
                        taken.push(place);
                    }
                    n if !taken.is_empty() => {
                        let place = taken.swap_remove(random.below(taken.len() as u64) as usize);
                        if n == 2 {
                            shelf.give_warm(place);
                            warm.push(place);
                            continue;
                        }
                        let place =
                            match (random.below(2) == 0).then(|| shelf.oldest_warm()).flatten() {
                                Some(oldest) => {
                                    assert_eq!(oldest, warm.remove(0));
                                    taken.push(place);
                                    oldest
                                }
                                None => place,
                            };
                        let others: BTreeSet<(u32, usize)> = taken
                            .iter()
                            .chain(&warm)
                            .flat_map(|p| shelf.pages(*p).map(|page| (p.slab, page)))
                            .collect();
                        for page in shelf.give(place) {
                            resident.remove(&(place.slab, page));
                        }
                        assert_eq!(resident, others, "what stays is what is used");
                    }
                    _ => {}
                }
            }
        }
    }
}
