//! A machine that is slower than this one, for experiments on small machines: [`ThrottledFs`] stands before a file system and
//! [`DilatedRt`] before a runtime.
//!
//! Keeps: what a call returns is what the world behind returns; only time is added.
#![forbid(unsafe_code)]

mod dilate;
mod throttle;

pub use dilate::DilatedRt;
pub use throttle::{Bandwidth, Throttle, ThrottledFs};
