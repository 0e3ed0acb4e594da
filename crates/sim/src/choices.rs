//! The one source of choice: whatever could go one way or another in a simulated world asks here.
//!
//! A run is a tree of *streams*: one for the settings, one for each operation, one for each
//! crash. A stream draws from a seed, or repeats a list; it notes what was drawn, so a run that
//! drew from a seed becomes a list that can be repeated, shortened and kept. Cutting one
//! operation out of a run leaves the streams of all others as they were, which is what makes
//! shrinking quick.
//!
//! Keeps: the answer to `choose(n)` is below `n`; a list that has ended answers 0, so 0 should be
//! the dullest choice everywhere.

use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Random, random::derive_seed};

/// Something that decides.
pub trait Choices {
    /// A number below `n`; 0 if `n` is 0 or 1. `tag` says what is being decided, for readers of a
    /// trace.
    fn choose(&mut self, n: u32, tag: &'static str) -> u32;
}

/// Choices from a seed, from a list, or both: a list first, and then always 0.
#[derive(Clone, Debug)]
pub struct Stream {
    source: Source,
    taken: Vec<Taken>,
}

/// One choice that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The answer.
    pub value: u32,
    /// It was below this.
    pub below: u32,
}

#[derive(Clone, Debug)]
enum Source {
    Seeded { random: Random, first: Option<u32> },
    Listed { list: Vec<u32>, at: usize },
}

impl Stream {
    /// Random choices that follow from `seed` and the name of the part of the run.
    pub fn seeded(seed: u64, part: &str) -> Stream {
        let random = Random::from_seed(derive_seed(seed, part));
        Stream { source: Source::Seeded { random, first: None }, taken: Vec::new() }
    }

    /// The same stream with its first choice made: a run that is forced to one side.
    #[must_use]
    pub fn beginning_with(mut self, value: u32) -> Stream {
        if let Source::Seeded { first, .. } = &mut self.source {
            *first = Some(value);
        }
        self
    }

    /// These choices, and 0 from then on. A number that is too large counts as the largest.
    pub fn listed(list: Vec<u32>) -> Stream {
        Stream { source: Source::Listed { list, at: 0 }, taken: Vec::new() }
    }

    /// The choices made so far, without the zeros at the end: a list for [`Stream::listed`] that
    /// repeats them.
    pub fn list(&self) -> Vec<u32> {
        let mut list: Vec<u32> = self.taken.iter().map(|t| t.value).collect();
        while list.last() == Some(&0) {
            list.pop();
        }
        list
    }

    /// What was chosen, each with its bound.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }
}

impl Choices for Stream {
    fn choose(&mut self, n: u32, _tag: &'static str) -> u32 {
        if n <= 1 {
            return 0;
        }
        let value = match &mut self.source {
            Source::Seeded { random, first } => {
                let drawn = random.below(u64::from(n)) as u32;
                first.take().map_or(drawn, |value| value.min(n - 1))
            }
            Source::Listed { list, at } => {
                let value = list.get(*at).copied().unwrap_or(0);
                *at += 1;
                value.min(n - 1)
            }
        };
        self.taken.push(Taken { value, below: n });
        value
    }
}

/// The list after `taken` in the odometer's order, `None` after the last: repeating a run with
/// each list in turn, from the empty one on, makes every combination of choices once.
pub fn successor(taken: &[Taken]) -> Option<Vec<u32>> {
    let at = taken.iter().rposition(|t| t.value + 1 < t.below)?;
    let mut list: Vec<u32> = taken[..=at].iter().map(|t| t.value).collect();
    list[at] += 1;
    Some(list)
}

/// The stream in use, shared by all parts of one world.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<Stream>>);

impl Dice {
    /// Dice that draw from `stream`.
    pub fn new(stream: Stream) -> Dice {
        Dice(Arc::new(Mutex::new(stream)))
    }

    /// Draws from `stream` from now on; the stream before, with what it noted.
    pub fn swap(&self, stream: Stream) -> Stream {
        std::mem::replace(&mut self.0.lock(), stream)
    }

    /// What was chosen since [`Dice::swap`]; draws zeros from now on.
    pub fn taken(&self) -> Vec<u32> {
        self.swap(Stream::listed(Vec::new())).list()
    }

    /// A number below `n`.
    pub fn choose(&self, n: u32, tag: &'static str) -> u32 {
        self.0.lock().choose(n, tag)
    }

    /// True once in `n` times, never for the dullest choice.
    pub fn one_in(&self, n: u32, tag: &'static str) -> bool {
        self.choose(n, tag) + 1 == n
    }

    /// A position in `items`.
    pub fn pick<'a, T>(&self, items: &'a [T], tag: &'static str) -> &'a T {
        &items[self.choose(items.len() as u32, tag) as usize]
    }

    /// The position of a weight, each as likely as it is heavy.
    pub fn weighted(&self, weights: &[u32], tag: &'static str) -> usize {
        let mut rest = self.choose(weights.iter().sum(), tag);
        for (i, &weight) in weights.iter().enumerate() {
            if rest < weight {
                return i;
            }
            rest -= weight;
        }
        unreachable!("a choice is below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_stream_repeats_as_a_list() {
        let mut first = Stream::seeded(7, "op 3");
        let drawn: Vec<u32> = (1..50).map(|n| first.choose(n, "x")).collect();
        let mut again = Stream::listed(first.list());
        let repeated: Vec<u32> = (1..50).map(|n| again.choose(n, "x")).collect();
        assert_eq!(drawn, repeated);
        assert_ne!(drawn, (1..50).map(|_| 0).collect::<Vec<u32>>());
    }

    #[test]
    fn the_odometer_makes_every_combination_once() {
        let mut seen = Vec::new();
        let mut list = Some(Vec::new());
        while let Some(choices) = list {
            let mut stream = Stream::listed(choices);
            // The second choice exists only after some first choices.
            let a = stream.choose(3, "a");
            let b = if a > 0 { stream.choose(2, "b") } else { 9 };
            seen.push((a, b));
            list = successor(stream.taken());
        }
        assert_eq!(seen, [(0, 9), (1, 0), (1, 1), (2, 0), (2, 1)]);
    }
}
