//! libFuzzer over one target of `lithify-hostile`, which LITHIFY_TARGET names; all targets are in
//! one program, so that it is built once.
//!
//! Keeps: a run that holds more memory at once than 64 bytes per byte of input and the target's
//! allowance fails like a panic. `cargo xtask fuzz` starts it.
#![no_main]

#[path = "../../crates/hostile/tests/counting/mod.rs"]
mod counting;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use lithify_hostile::{Target, meter};

fn target() -> &'static Target {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("LITHIFY_TARGET").unwrap_or_default();
        let found = lithify_hostile::target(&name);
        // What a target makes once and keeps does not count.
        let target = found.unwrap_or_else(|| panic!("LITHIFY_TARGET={name} is no target"));
        (target.run)(&[0, 0]);
        target
    })
}

fuzz_target!(|bytes: &[u8]| {
    let target = target();
    let before = meter::mark();
    (target.run)(bytes);
    let most = meter::most().saturating_sub(before);
    let limit = (64 * bytes.len()).saturating_add(target.allowance);
    assert!(most <= limit, "{most} bytes were held for {} bytes of input", bytes.len());
});
