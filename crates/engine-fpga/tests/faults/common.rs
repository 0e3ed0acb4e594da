//! What the tests of this room share: engines over the model, and what all tests of engines share.
#![allow(dead_code, reason = "each program uses a part of it")]

pub(crate) use lithify_engine::testing::*;
use lithify_engine_fpga::card::Card;
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};

/// Small slots, so that a case makes a card of a few MiB.
pub(crate) fn options() -> FpgaOptions {
    FpgaOptions { set_bytes: 256 << 10, ..FpgaOptions::default() }
}

pub(crate) fn model(units: usize, ways: usize, width: usize) -> ModelOptions {
    ModelOptions { units, ways, width, memory: units * 3 * (2 << 20), ..ModelOptions::default() }
}

pub(crate) fn engine(card: ModelOptions, options: FpgaOptions) -> FpgaEngine {
    FpgaEngine::new(Box::new(ModelCard::new(card)), options).expect("the model suits")
}

pub(crate) fn over(card: Box<dyn Card>, options: FpgaOptions) -> FpgaEngine {
    FpgaEngine::new(card, options).expect("the card suits")
}
