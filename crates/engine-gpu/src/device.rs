//! A device: memory, arenas that host and device share, copies, kernels and events, in queues.
//!
//! Keeps: all calls return at once, and what they ask for happens later, in the order of its queue.
//! An arena that a copy reads or writes is not the host's until an event behind the copy is ready;
//! a member of this trait refuses to show it before.
//! Leaves to others: what is computed, and in which order (`unit`).

use std::fmt;
use std::ops::Range;

use lithify_base::Result;
use lithify_merge::{Bytes, Lent};

/// A kernel of `kernels`, in the order of the emulator's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kernel {
    /// Verifies and decodes compressed blocks.
    Decode,
    /// Counts entries and key bytes of blocks.
    Count,
    /// Verifies blocks and takes them apart.
    Unpack,
    /// Checks the order of records in runs.
    Order,
    /// Trims runs to the ranges.
    Trim,
    /// Finds where tiles of the merge begin in each list.
    Partition,
    /// Merges the tiles.
    Merge,
    /// D1 and D2.
    Judge,
    /// D3 and D4.
    Drop,
    /// Block starts.
    Blocks,
    /// File starts.
    Files,
    /// Sizes of entries, filter hashes.
    Sizes,
    /// The table of output blocks.
    Table,
    /// Writes the blocks.
    Pack,
    /// Compresses them.
    Encode,
    /// Where compressed ones go.
    Places,
    /// Moves them there.
    Gather,
    /// Decodes them.
    Check,
    /// Reads them again.
    Prove,
}

impl Kernel {
    /// All of them, in order.
    pub const ALL: [Kernel; 19] = [
        Kernel::Decode,
        Kernel::Count,
        Kernel::Unpack,
        Kernel::Order,
        Kernel::Trim,
        Kernel::Partition,
        Kernel::Merge,
        Kernel::Judge,
        Kernel::Drop,
        Kernel::Blocks,
        Kernel::Files,
        Kernel::Sizes,
        Kernel::Table,
        Kernel::Pack,
        Kernel::Encode,
        Kernel::Places,
        Kernel::Gather,
        Kernel::Check,
        Kernel::Prove,
    ];

    /// Its name in the image.
    pub fn symbol(self) -> &'static str {
        match self {
            Kernel::Decode => "k0a_decode",
            Kernel::Count => "k0c_count",
            Kernel::Unpack => "k0_unpack",
            Kernel::Order => "k0b_order",
            Kernel::Trim => "k0b_trim",
            Kernel::Partition => "k1_partition",
            Kernel::Merge => "k2_merge",
            Kernel::Judge => "k3_judge",
            Kernel::Drop => "k3_drop",
            Kernel::Blocks => "k4_blocks",
            Kernel::Files => "k7_files",
            Kernel::Sizes => "k4_sizes",
            Kernel::Table => "k4_table",
            Kernel::Pack => "k5_pack",
            Kernel::Encode => "k6_encode",
            Kernel::Places => "k6_places",
            Kernel::Gather => "k6_gather",
            Kernel::Check => "k8_decode",
            Kernel::Prove => "k8_prove",
        }
    }
}

/// How the kernels were compiled, and how many CTAs the device likes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a CTA, a multiple of 32.
    pub threads: u32,
    /// Entries of a thread in the merge.
    pub items: u32,
    /// Entries of a thread in kernels that add up as they go over all of them.
    pub scan_items: u32,
    /// CTAs that kernels with a loop over blocks are started with, at most.
    pub ctas: u32,
}

/// Memory of the device.
#[derive(Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its address there, a multiple of 64.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// An arena: memory of the host that the device copies from and to, by number.
#[derive(Debug, PartialEq, Eq)]
pub struct Arena(pub u64);

/// An event in a queue, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(pub u64);

/// A queue: what is asked of one happens in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Copies to the device.
    Up,
    /// Kernels of a unit, which has a queue of its own.
    Work(u8),
    /// Copies to the host.
    Down,
}

/// A machine that runs kernels. An error of any call means that the device is lost: no other call
/// is made of it.
pub trait Device: Send {
    /// Its name, for people.
    fn name(&self) -> String;
    /// How its kernels were compiled.
    fn shape(&self) -> Shape;
    /// Takes memory of the device.
    ///
    /// # Errors
    /// LimitExceeded if there is not so much; the device is not lost then.
    fn alloc(&mut self, bytes: u64) -> Result<Memory>;
    /// Gives memory of the device back.
    fn free(&mut self, memory: Memory);
    /// Takes an arena.
    ///
    /// # Errors
    /// LimitExceeded if there is not so much; the device is not lost then.
    fn arena(&mut self, bytes: usize) -> Result<Arena>;
    /// Bytes of the host's memory that an arena takes, of which so many were asked for: what counts of it.
    fn takes(&self, arena: &Arena, asked: usize) -> usize {
        let _ = arena;
        asked
    }
    /// The bytes of an arena.
    ///
    /// # Errors
    /// Internal while a copy may be in flight, or if it was given back.
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]>;
    /// Gives an arena back.
    fn drop_arena(&mut self, arena: Arena);
    /// Lends an arena to the host, which gives it back by dropping it.
    ///
    /// # Errors
    /// As [`Device::bytes`].
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>>;
    /// Copies a part of an arena to an address of the device.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()>;
    /// Copies bytes that were read to an address of the device, straight from where they lie. It holds them until the copy
    /// has been made; from memory that it lent before ([`Device::lend`]) it copies without the host's help.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()>;
    /// Copies to a part of an arena from an address of the device.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()>;
    /// Runs a kernel over so many CTAs.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()>;
    /// Notes a moment in a queue.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn record(&mut self, queue: Queue) -> Result<Event>;
    /// Looks anew at how far its queues have come. Until it looks again, the device may say of an event that it has not happened
    /// because one before it in the queue had not, and ask its driver nothing. A device that never looks asks each time.
    fn look(&mut self) {}
    /// True if all before the event has happened.
    ///
    /// # Errors
    /// What went wrong on the device before it; the device is lost.
    fn ready(&mut self, event: Event) -> Result<bool>;
    /// Has a queue wait for an event of another one.
    ///
    /// # Errors
    /// Any: the device is lost.
    fn after(&mut self, queue: Queue, event: Event) -> Result<()>;
    /// Nanoseconds from one event to another by the device's own clock, if it has one, and both have happened not
    /// long ago.
    ///
    /// # Errors
    /// As [`Device::ready`].
    fn between(&mut self, from: Event, to: Event) -> Result<Option<f64>> {
        let _ = (from, to);
        Ok(None)
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
