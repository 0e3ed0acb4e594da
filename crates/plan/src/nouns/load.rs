//! What the machine has to spare, as two numbers that `control` moves and policies read: so a plan stays a
//! function of its view.

/// The load of the machine, as far as planning cares. By default there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// What a byte costs that a job reads or writes: how many bytes it must bring one level down, in
    /// thousandths. 0 while writers rest or the machine is idle.
    pub price: u32,
    /// Compactions at once that are of use: more of them would move no more bytes per second. 0 while
    /// that is not known. Policies see it as their free slots; where one is of use, flushes are not cut.
    pub useful: u32,
}
