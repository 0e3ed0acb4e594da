//! Bytes on disk: golden files, codecs, and what other programs say of them.

mod codecs;
mod golden_tables;
mod interop;
