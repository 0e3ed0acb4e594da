//! A whole table in memory, written and read the plain way: slow, obviously right, the oracle of
//! every faster writer and reader.
//!
//! Keeps: the bytes of [`NaiveTableWriter`] are *the* bytes of a recipe without file cuts; the
//! reader checks every sum it meets and trusts no count.
//! Leaves to others: files, drop rules, splitting output over several tables.

mod read;
mod write;

pub use read::{Entry, NaiveTableReader};
pub use write::NaiveTableWriter;

#[cfg(test)]
mod tests;
