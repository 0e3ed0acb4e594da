//! A list in pieces of one size.

use super::LARGE;

/// A list that grows at its end, in pieces of just under 64 KiB: nothing moves when it grows, and what it leaves
/// when it is dropped fits the next one.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    /// All but the last one are full.
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Pieces<T> {
    /// Elements of a full piece, at least one.
    const FULL: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fit = (LARGE - 1) / size;
        if fit == 0 { 1 } else { fit }
    };

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.room(1).push(element);
        self.len += 1;
    }

    /// The piece that takes the next `more` elements, as many as are left of it at most.
    #[inline]
    fn room(&mut self, more: usize) -> &mut Vec<T> {
        if self.len.is_multiple_of(Self::FULL) {
            self.pieces.push(Vec::new());
        }
        let last = self.pieces.len() - 1;
        let piece = &mut self.pieces[last];
        let needed = piece.len() + more;
        if needed > piece.capacity() {
            // The first piece grows as a list does, as most lists are short; behind it come whole ones.
            let room = if last == 0 {
                needed.max(2 * piece.capacity()).min(Self::FULL)
            } else {
                Self::FULL
            };
            piece.reserve_exact(room - piece.len());
        }
        piece
    }

    /// The element at a place.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / Self::FULL)?.get(at % Self::FULL)
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last element.
    #[inline]
    pub fn last(&self) -> Option<&T> {
        self.pieces.last()?.last()
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.pieces.iter().flatten()
    }

    /// The elements of a range, as slices that follow each other; what is beyond the end is left out.
    pub fn slices(&self, of: std::ops::Range<usize>) -> impl Iterator<Item = &[T]> + Clone {
        let pieces = self.pieces.iter().enumerate().skip(of.start / Self::FULL);
        pieces.map_while(move |(n, piece)| {
            let from = of.start.saturating_sub(n * Self::FULL);
            let until = of.end.saturating_sub(n * Self::FULL).min(piece.len());
            piece.get(from..until).filter(|slice| !slice.is_empty())
        })
    }
}

impl<T: Copy> Pieces<T> {
    /// Appends several elements.
    pub fn extend_from_slice(&mut self, mut elements: &[T]) {
        while !elements.is_empty() {
            let left = Self::FULL - self.len % Self::FULL;
            let (now, rest) = elements.split_at(left.min(elements.len()));
            self.room(now.len()).extend_from_slice(now);
            (self.len, elements) = (self.len + now.len(), rest);
        }
    }
}

impl<T> std::ops::Index<usize> for Pieces<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pieces[at / Self::FULL][at % Self::FULL]
    }
}

impl<T> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Pieces<T> {
        let mut list = Pieces::default();
        elements.into_iter().for_each(|element| list.push(element));
        list
    }
}

impl<T> Default for Pieces<T> {
    fn default() -> Pieces<T> {
        Pieces { pieces: Vec::new(), len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_pieces_is_a_list() {
        let full = Pieces::<u64>::FULL;
        let (mut ours, mut plain) = (Pieces::default(), Vec::new());
        for n in 0..40_u64 {
            let more: Vec<u64> = (0..n * 61).collect();
            ours.extend_from_slice(&more);
            ours.push(n);
            plain.extend_from_slice(&more);
            plain.push(n);
            assert_eq!((ours.len(), ours.last()), (plain.len(), plain.last()));
        }
        assert!(ours.len() > 4 * full && ours.iter().eq(plain.iter()));
        for at in [0, 1, full - 1, full, full + 1, 3 * full, plain.len() - 1, plain.len()] {
            assert_eq!(ours.get(at), plain.get(at), "{at}");
            for end in [at, at + 1, at + full, at + full + 1, plain.len()] {
                let told: Vec<u64> = ours.slices(at..end).flatten().copied().collect();
                assert_eq!(
                    told,
                    plain.get(at..end.min(plain.len())).unwrap_or_default(),
                    "{at}..{end}"
                );
            }
        }
    }

    #[test]
    fn no_piece_is_large() {
        let mut list = Pieces::default();
        (0..100_000_u64).for_each(|n| list.push(n));
        assert!(
            list.pieces.len() > 10 && list.pieces.iter().all(|piece| piece.capacity() * 8 < LARGE)
        );
    }
}
