//! What is refused, and devices on which every call fails or panics. These tests need no compiler (reliability F17).

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lithify_base::{Comparator, Error, ErrorKind, Prefixes, Result, ReverseBytewise};
use lithify_engine::{Engine, Offer, Products, Progress, Recipe};
use lithify_engine_gpu::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};
use lithify_engine_gpu::{GpuEngine, GpuOptions};
use lithify_env::{OsRt, RtOptions, RtRef, Wake};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Codec;
use lithify_merge::workload::{Case, Features};
use lithify_merge::{Bytes, Lent, naive};

use crate::common::*;
use crate::relay::part;

/// A device that has fallen off its bus, or whose first call panics.
struct Gone {
    panics: bool,
}

fn gone<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Io, "the device does not answer"))
}

impl Device for Gone {
    fn name(&self) -> String {
        "gone".to_owned()
    }
    fn shape(&self) -> Shape {
        Shape { threads: 64, items: 2, scan_items: 2, ctas: 4 }
    }
    fn alloc(&mut self, _bytes: u64) -> Result<Memory> {
        assert!(!self.panics, "a symbol is missing");
        gone()
    }
    fn free(&mut self, _memory: Memory) {}
    fn arena(&mut self, _bytes: usize) -> Result<Arena> {
        gone()
    }
    fn bytes(&mut self, _arena: &Arena) -> Result<&mut [u8]> {
        gone()
    }
    fn drop_arena(&mut self, _arena: Arena) {}
    fn lend(&mut self, _arena: Arena) -> Result<Box<dyn Lent>> {
        gone()
    }
    fn upload(&mut self, _: Queue, _: &Arena, _: Range<usize>, _: u64) -> Result<()> {
        gone()
    }
    fn send(&mut self, _: Queue, _: Bytes, _: u64) -> Result<()> {
        gone()
    }
    fn download(&mut self, _: Queue, _: u64, _: &Arena, _: Range<usize>) -> Result<()> {
        gone()
    }
    fn launch(&mut self, _: Queue, _: Kernel, _: u32, _: &[u64]) -> Result<()> {
        gone()
    }
    fn record(&mut self, _queue: Queue) -> Result<Event> {
        gone()
    }
    fn ready(&mut self, _event: Event) -> Result<bool> {
        gone()
    }
    fn after(&mut self, _queue: Queue, _event: Event) -> Result<()> {
        gone()
    }
}

fn engine() -> GpuEngine {
    GpuEngine::new(Box::new(Gone { panics: false }), GpuOptions::default()).unwrap()
}

/// The first call loses the device; the CPU merges everything, and nothing more is taken.
#[test]
fn a_device_that_is_gone_costs_time_only() {
    let engine = engine();
    for seed in 0..12 {
        let case = Case::with(seed, SMALL, Features::Device).unwrap();
        let done = part(&engine, &case, case.sets(4000));
        let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        assert!(done.output == output && done.ledger == ledger && done.disproved.is_none());
        assert!(done.gave_up && done.here == 0);
    }
    assert_eq!(figure(&engine, "device_lost"), 1);
    let reason = refusal(engine.open(Arc::new(Recipe::new(1))));
    assert!(reason.contains("gets no more work"), "{reason}");
    assert!(reason.contains("does not answer"), "{reason}");
}

/// The pump is gone then, and tells no session of a set that comes later.
#[test]
fn a_panic_in_the_driver_stops_all_sessions() {
    let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
    let device = Box::new(Gone { panics: true });
    let engine = GpuEngine::on(&rt, device, GpuOptions::default()).unwrap();
    let case = Case::with(1, SMALL, Features::Device).unwrap();
    let mut sessions = [(); 2].map(|()| engine.open(case.recipe.clone()).unwrap());
    for session in &mut sessions {
        let set = case.sets(4000).remove(0);
        assert!(matches!(session.offer(set), Offer::Taken));
        let mut products = Products::default();
        let until = rt.now() + Duration::from_secs(10);
        let fault = loop {
            match session.poll(&mut products) {
                Progress::Failed(fault) => break fault,
                Progress::Pending(ticket) => {
                    assert_eq!(rt.park(&ticket, Some(until)), Wake::Done, "it is not told");
                }
                _ => {}
            }
        };
        let told = fault.error().to_string();
        assert!(told.contains("a symbol is missing"), "{told}");
    }
    assert!(refusal(engine.open(case.recipe.clone())).contains("a symbol is missing"));
}

#[test]
fn an_engine_that_was_disproved_gets_no_more_work() {
    let engine = engine();
    engine.disown(&Error::invalid("a wrong byte"));
    let reason = refusal(engine.open(Arc::new(Recipe::new(1))));
    assert!(reason.contains("a wrong byte"), "{reason}");
}

#[test]
fn what_no_kernel_does_is_refused_with_a_sentence() {
    let engine = engine();
    let refused = |change: &dyn Fn(&mut Recipe)| {
        let mut recipe = Recipe::new(2);
        change(&mut recipe);
        refusal(engine.open(Arc::new(recipe)))
    };
    let order = ReverseBytewise.name().to_owned();
    assert!(refused(&|r| r.order = Arc::new(ReverseBytewise)).contains(&order));
    assert!(refused(&|r| r.codec = Codec::Snappy).contains("compress with LZ4"));
    assert!(refused(&|r| r.checksum = ChecksumKind::Crc32c).contains("XXH3"));
    assert!(refused(&|r| *r = Recipe::new(1025)).contains("1025"));
    assert!(refused(&|r| r.prefixes = prefixes()).contains("prefixes"));
    assert!(refused(&|r| r.block_bytes = 3).contains("power of two"));
    engine.open(Arc::new(Recipe::new(1024))).unwrap().cancel();
}

fn prefixes() -> Prefixes {
    Prefixes::default().named("rocksdb.FixedPrefix.3")
}

#[test]
fn options_that_make_no_sense() {
    for options in [
        GpuOptions { set_bytes: 0, ..GpuOptions::default() },
        GpuOptions { set_bytes: 2 << 20, memory: 1 << 20, ..GpuOptions::default() },
    ] {
        assert!(GpuEngine::new(Box::new(Gone { panics: false }), options).is_err());
    }
}
