//! Memory for inputs that a device copies from where it was read: the feed reads into it, and no copy of the host's lies
//! between a file and the device.
//!
//! ```text
//!   wished -- pump: arena, lent by the device --> free -- Stock::take --> a buffer of the feed's -- dropped --> free
//! ```
//! Keeps: no call of the device is made where memory is asked for, only by the pump, which sees what was wished for. What is out and
//! what is free has a bound of its own, so that inputs never take the room of what comes back. What is out is known by its
//! address for as long as it is out.
//! Leaves to others: that a copy holds the bytes it is about (`Device::send`).

use std::collections::BTreeMap;

use lithify_env::IoBuf;
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::Lent;

/// What buffers have at least: direct IO wants whole pages, and memory of the host's may begin within one.
const PAGE: usize = 4096;
/// Buffers have a size in steps of an eighth, so that one serves more than one read.
const STEPS: usize = 8;

/// The stock of a device; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Stock(Arc<Mutex<Shelf>>);

/// Memory of the device's, and how much of the host's it takes, which may be more.
struct Piece {
    lent: Box<dyn Lent>,
    takes: usize,
}

#[derive(Default)]
struct Shelf {
    free: Vec<Piece>,
    /// Where what is out begins, and how long it is.
    out: BTreeMap<usize, usize>,
    /// Sizes that were asked for in vain, since the pump last looked.
    wished: Vec<usize>,
    /// Bytes of all that there is, and the most.
    held: usize,
    most: usize,
    /// The device has no more, or is gone.
    closed: bool,
    /// Buffers that were handed out, and that were not there.
    served: u64,
    missed: u64,
}

/// Memory of the device's in the hands of a buffer.
struct Out(Option<Piece>, Stock);

impl AsMut<[u8]> for Out {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], |piece| piece.lent.bytes_mut())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let Some(piece) = self.0.take() else { return };
        let mut shelf = self.1.0.lock();
        shelf.out.remove(&piece.lent.bytes().as_ptr().addr());
        let mut gone = Vec::new();
        if shelf.closed {
            shelf.held -= piece.takes;
            gone.push(piece);
        } else {
            shelf.free.push(piece);
        }
        drop(shelf);
    }
}

impl Stock {
    /// A stock of at most so many bytes.
    pub(crate) fn new(most: u64) -> Stock {
        let stock = Stock::default();
        stock.0.lock().most = usize::try_from(most).unwrap_or(usize::MAX);
        stock
    }

    /// A buffer with room for so many bytes, if one is free. If not, and there may be more, that is wished for; then the
    /// pump is to be told.
    pub(crate) fn take(&self, bytes: usize) -> (Option<IoBuf>, bool) {
        let mut shelf = self.0.lock();
        if shelf.most == 0 || shelf.closed {
            return (None, false);
        }
        let wanted = with_steps(bytes).saturating_add(PAGE);
        let fits = |piece: &(usize, usize)| (wanted..=2 * wanted).contains(&piece.1);
        let free = shelf.free.iter().map(|piece| piece.lent.bytes().len()).enumerate();
        let Some((at, len)) = free.filter(fits).min_by_key(|piece| piece.1) else {
            shelf.missed += 1;
            let is_new = shelf.wished.is_empty();
            // A part asks for a few sets at once; more is asked for again.
            if shelf.wished.len() < 256 && wanted <= shelf.most {
                shelf.wished.push(wanted);
            }
            return (None, is_new && !shelf.wished.is_empty());
        };
        let piece = shelf.free.swap_remove(at);
        shelf.served += 1;
        shelf.out.insert(piece.lent.bytes().as_ptr().addr(), len);
        drop(shelf);
        (Some(IoBuf::lent(Box::new(Out(Some(piece), self.clone())))), false)
    }

    /// Whether bytes lie in what is out. As long as someone holds them they stay there.
    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        let start = bytes.as_ptr().addr();
        let shelf = self.0.lock();
        let found = shelf.out.range(..=start).next_back();
        found.is_some_and(|(at, len)| start - at + bytes.len() <= *len)
    }

    /// What the pump is to add, and what it is to let go of first.
    pub(crate) fn wished(&self) -> (Option<usize>, Vec<Box<dyn Lent>>) {
        let mut shelf = self.0.lock();
        let mut gone = Vec::new();
        let Some(bytes) = shelf.wished.pop() else { return (None, gone) };
        while shelf.held + bytes > shelf.most
            && let Some(piece) = shelf.free.pop()
        {
            shelf.held -= piece.takes;
            gone.push(piece.lent);
        }
        if shelf.held + bytes > shelf.most {
            shelf.wished.clear();
            return (None, gone);
        }
        (Some(bytes), gone)
    }

    /// The pump has memory, which takes so much of the host's.
    pub(crate) fn add(&self, lent: Box<dyn Lent>, takes: usize) {
        let mut shelf = self.0.lock();
        shelf.held += takes;
        shelf.free.push(Piece { lent, takes });
    }

    /// There is no more; what is free is given back, and what is out when it is not used any more.
    pub(crate) fn close(&self) {
        let mut shelf = self.0.lock();
        shelf.closed = true;
        let free = std::mem::take(&mut shelf.free);
        shelf.held -= free.iter().map(|piece| piece.takes).sum::<usize>();
        drop(shelf);
        drop(free);
    }

    /// Bytes that there are, buffers that were handed out, and that were not there.
    pub(crate) fn figures(&self) -> [f64; 3] {
        let shelf = self.0.lock();
        [shelf.held as f64, shelf.served as f64, shelf.missed as f64]
    }
}

/// A size that others of nearly the same are rounded to as well.
fn with_steps(bytes: usize) -> usize {
    let step = (bytes.max(PAGE).checked_next_power_of_two().unwrap_or(bytes) / 2 / STEPS).max(PAGE);
    bytes.max(1).div_ceil(step).saturating_mul(step)
}
