//! Memtables: against a model, under damage, with threads beside each other.

mod damage;
mod lengths;
mod readers;
mod table;
mod together;
mod twin;
