//! Measures: what a tree needs and how badly. Scores and debt, the order of seeds, stalls, where
//! outputs are cut, room on the disk, the bucket map. Functions of values; no policy is known here.

pub mod adapt;
pub(crate) mod age;
pub mod cuts;
pub mod room;
pub mod score;
pub mod seed;
pub mod stall;
