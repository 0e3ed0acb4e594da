//! The planner over pictures, random worlds and long lives.

#[path = "../life/mod.rs"]
mod life;

mod admission;
mod datadriven;
mod inherited;
mod invariants;
mod naive;
mod offers;
mod pictures;
mod places;
mod rest;
mod room;
mod steady;
mod traps;
mod upkeep;
