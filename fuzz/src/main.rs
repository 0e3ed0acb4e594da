//! libFuzzer over one target of `lithify-hostile`, which LITHIFY_TARGET names; all targets are in
//! one program, so that it is built once.
//!
//! Keeps: a run that holds more memory at once than 64 bytes per byte of input and the target's
//! allowance fails like a panic. `cargo xtask fuzz` starts it.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libfuzzer_sys::fuzz_target;
use lithify_hostile::Target;

/// Counts what is held, and the most that was held since it was last asked.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to `System` unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

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
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    (target.run)(bytes);
    let most = PEAK.load(Relaxed).saturating_sub(before);
    let limit = 64 * bytes.len() + target.allowance;
    assert!(most <= limit, "{most} bytes were held for {} bytes of input", bytes.len());
});
