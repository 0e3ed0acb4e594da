//! Table files: reading ([`TableReader`], [`TableIter`]), writing ([`Assembler`]), and checking
//! whole files ([`verify`]).

mod assembler;
pub(crate) mod block;
mod dense;
mod fence;
mod filter;
mod index;
mod iter;
mod many;
mod open;
mod point;
mod reader;
mod source;
pub mod verify;

pub use assembler::{
    Assembler, AssemblerOptions, BlockParts, FinishStep, FinishedTable, WriteMode,
};
pub use block::{Block, PinnedSlice};
pub use dense::DeletionTrigger;
pub use fence::{BlockAt, Fences};
pub use filter::Scope;
pub use index::{BlockFence, FullIndex};
pub use iter::{Passed, TableIter};
pub use many::Wanted;
pub use open::{Blocks, OpenTable, Verify, open_alone};
pub use reader::{Fill, TableReader, ValueRef};
