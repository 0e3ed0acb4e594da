//! Step 9: too little memory, and a kernel that reads where nothing is: both end in what the CPU makes.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, bail};
use lithify::engine::Engine;
use lithify_base::Result as Typed;
use lithify_engine_gpu::Device;
use lithify_engine_gpu::device::{Arena, Event, Kernel, Memory, Queue, Shape};
use lithify_merge::{Bytes, Lent};

use super::Found;
use super::files::{fill, place, settings};
use crate::machine::Machine;

/// A device whose third merge gets a wild address.
struct Wild {
    device: Box<dyn Device>,
    merges: u32,
}

impl Device for Wild {
    fn name(&self) -> String {
        self.device.name()
    }
    fn shape(&self) -> Shape {
        self.device.shape()
    }
    fn alloc(&mut self, bytes: u64) -> Typed<Memory> {
        self.device.alloc(bytes)
    }
    fn free(&mut self, memory: Memory) {
        self.device.free(memory);
    }
    fn arena(&mut self, bytes: usize) -> Typed<Arena> {
        self.device.arena(bytes)
    }
    fn takes(&self, arena: &Arena, asked: usize) -> usize {
        self.device.takes(arena, asked)
    }
    fn bytes(&mut self, arena: &Arena) -> Typed<&mut [u8]> {
        self.device.bytes(arena)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.device.drop_arena(arena);
    }
    fn lend(&mut self, arena: Arena) -> Typed<Box<dyn Lent>> {
        self.device.lend(arena)
    }
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Typed<()> {
        self.device.upload(queue, from, part, to)
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Typed<()> {
        self.device.send(queue, from, to)
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Typed<()> {
        self.device.download(queue, from, to, part)
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Typed<()> {
        self.merges += u32::from(kernel == Kernel::Merge);
        if self.merges != 3 || kernel != Kernel::Merge {
            return self.device.launch(queue, kernel, ctas, params);
        }
        let wild: Vec<u64> = params.iter().map(|word| word | 1 << 60).collect();
        self.device.launch(queue, kernel, ctas, &wild)
    }
    fn record(&mut self, queue: Queue) -> Typed<Event> {
        self.device.record(queue)
    }
    fn ready(&mut self, event: Event) -> Typed<bool> {
        self.device.ready(event)
    }
    fn after(&mut self, queue: Queue, event: Event) -> Typed<()> {
        self.device.after(queue, event)
    }
}

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let mut found = Found::default();
    let place = place()?;
    let from = place.path().join("from");
    fill(&from, 100, machine.size(256 << 20, 2 << 20))?;
    let known = after(&from, &place.path().join("cpu"), None)?.0;
    let mut wrong = 0;
    let mut small = machine.options(1, machine.size(8 << 20, 128 << 10));
    small.memory = machine.size(64 << 20, 1 << 20);
    let short = machine.engine(small)?;
    let (holds, told) = after(&from, &place.path().join("short"), Some(Arc::new(short)))?;
    wrong += u32::from(holds != known);
    found.note(format!("64 MiB of memory, or less: {told}"));
    if machine.is_real() {
        let wild = Wild { device: machine.device()?, merges: 0 };
        let engine = machine.engine_over(Box::new(wild), small)?;
        let (holds, told) = after(&from, &place.path().join("wild"), Some(Arc::new(engine)))?;
        wrong += u32::from(holds != known);
        if !told.contains("no more work") {
            bail!("a wild address was not noticed: {told}");
        }
        found.note(format!("a wild address: {told}"));
    } else {
        found.note("a wild address: not run, as it would be the emulator's own");
    }
    found.figure("wrong_bytes", f64::from(wrong));
    Ok(found)
}

/// What a database holds after its compaction, and what its engine says.
fn after(
    from: &std::path::Path,
    to: &std::path::Path,
    engine: Option<Arc<dyn Engine>>,
) -> Result<(u64, String)> {
    std::fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    let builder = lithify::Builder::new(settings(1));
    let db = match engine {
        Some(engine) => builder.engine(engine).open(to)?,
        None => builder.open(to)?,
    };
    db.compact_range(None, None)?;
    let holds = super::files::sum(&db)?;
    let told = db.stats().engines.into_iter().map(|of| {
        format!("{} sets, {}", of.sets, of.trouble.or(of.last_lost).unwrap_or("no trouble".into()))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    db.close()?;
    Ok((holds, told))
}
