//! What the machine has to spare, as two numbers that `control` moves and policies read: so a plan stays a
//! function of its view.

/// The load of the machine, as far as planning cares. By default there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// What a byte costs that a job reads or writes: how many bytes it must bring one level down, in
    /// thousandths. 0 while writers rest or the machine is idle.
    pub price: u32,
    /// Compactions at once that are of use: more of them would move no more bytes per second. 0 where that is not
    /// measured. [`Limits::slots_free`](crate::Limits::slots_free) counts up to it.
    pub useful: u32,
    /// Writers fill memtables, or would if they were not held up. While they do not, level 0 is brought to rest
    /// with the fewest bytes.
    pub written: bool,
}

impl Load {
    /// The price of a byte while all useful compactions are at work, thousandths: more has to come down than
    /// is rewritten for it. What is not worth that now will be, once more lies above it.
    pub const FULL_PRICE: u32 = 700;

    /// True if compactions have hardly ever been idle of late, so that bytes alone decide how fast writers can be.
    pub fn is_full(&self) -> bool {
        self.price >= Load::FULL_PRICE / 10 * 9
    }
}
