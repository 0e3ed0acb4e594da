//! Prints how many cycles the model's formula says an input slot takes: `cycles WIDTH SLOT`.
//!
//! `cargo xtask fpga cycles` holds it against what a simulated unit took.
#![allow(clippy::disallowed_methods, reason = "a tool of developers, which reads a file")]

use lithify_engine_fpga::model::{Cost, run};
use lithify_engine_fpga::stream::{Code, STATUS, WAYS_MAX};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, width, slot] = words.as_slice() else { panic!("usage: cycles WIDTH SLOT") };
    let slot = std::fs::read(slot).expect("the slot can be read");
    let size = slot[36..40].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let mut out = vec![0; size as usize];
    let cost = Cost::new(width.parse().expect("a width is a number"));
    assert_eq!(run(&slot, &mut out, WAYS_MAX, cost), Code::Ok, "the set is sound");
    let at = out.len() - STATUS + 208;
    println!("{}", out[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
}
