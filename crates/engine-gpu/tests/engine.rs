//! The engine over the emulator makes the CPU's bytes, and over a device that fails it costs time only.

#[path = "engine/card.rs"]
mod card;
#[path = "engine/common.rs"]
mod common;
#[cfg(feature = "emu")]
#[path = "engine/conformance.rs"]
mod conformance;
#[cfg(feature = "emu")]
#[path = "engine/cuda.rs"]
mod cuda;
#[cfg(feature = "emu")]
#[path = "engine/direct.rs"]
mod direct;
#[cfg(feature = "emu")]
#[path = "engine/faulty.rs"]
mod faulty;
#[cfg(feature = "emu")]
#[path = "engine/gds.rs"]
mod gds;
#[cfg(feature = "emu")]
#[path = "engine/hostile.rs"]
mod hostile;
#[path = "engine/lost.rs"]
mod lost;
#[cfg(feature = "emu")]
#[path = "engine/lz4.rs"]
mod lz4;
#[cfg(feature = "emu")]
#[path = "engine/odd.rs"]
mod odd;
#[cfg(feature = "emu")]
#[path = "engine/pipeline.rs"]
mod pipeline;
#[path = "engine/played.rs"]
mod played;
#[path = "engine/predicts.rs"]
mod predicts;
#[path = "engine/relay.rs"]
mod relay;
#[cfg(feature = "emu")]
#[path = "engine/several.rs"]
mod several;
#[cfg(feature = "emu")]
#[path = "engine/sizes.rs"]
mod sizes;
