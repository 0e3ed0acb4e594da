//! The write buffer: an append arena under a B+tree on 8-byte key heads.
//!
//! One writer adds entries ([`MemWriter`]), or several do with shares of its right
//! ([`SharedWriter`]), while any number of threads read ([`MemTable`]) without taking a lock. Entries
//! are never changed or removed, and their bytes never move, so what a reader borrowed stays valid as
//! long as it holds the table.
//!
//! Keeps: the order of internal keys (user key ascending by the comparator, tag descending); an
//! entry is visible to every reader that learnt of its sequence number from the writer.
//! Leaves to others: which sequence numbers a reader may see, what kinds mean, fragments of
//! range tombstones, when to freeze.
//!
//! | file | what |
//! |---|---|
//! | `arena` | chunks of memory, records in them |
//! | `node` | one tree node and the version protocol between the writer and readers |
//! | `index` | descent, insertion, splits; `index/shared` with several writers |
//! | `bloom` | filter that answers most lookups of absent keys |
//! | `rangedel` | range tombstones |
//! | `table` | `MemTable` and `MemWriter`; `table/shared` several writers for a while |
//! | `iter` | cursors, iterators, the walk of a flush |
//! | `audit` | whether what comes out is what went in |
//! | `naive` | the twin with the same answers, the oracle of the tests; cargo feature `testing` |

mod arena;
mod audit;
mod bloom;
mod index;
mod iter;
#[cfg(all(test, loom))]
mod models;
#[cfg(any(test, feature = "testing"))]
pub mod naive;
mod node;
mod rangedel;
mod sync;
mod table;

pub use arena::{ArenaChunk, ArenaPool, HeapPool};
pub use audit::Audit;
pub use iter::{MemIter, Versions, Walk};
pub use rangedel::RangeTombstone;
pub use table::{MemTable, MemTableOptions, MemWriter, SharedWriter, entry_sum};
