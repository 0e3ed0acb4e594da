//! Processes of their own: kills, limits of the system, memory that is refused, one owner at a time.

#[path = "../common/mod.rs"]
mod common;

mod bad_conditions;
mod descriptors;
mod families_killed;
mod kills;
mod memory_budget;
mod one_owner;
mod refused_memory;
mod system_calls;

/// The child that is to be killed: works until it is. Alone, it does nothing.
#[test]
fn the_load() {
    common::child::work_if_asked();
}
