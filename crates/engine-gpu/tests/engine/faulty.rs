//! A device on which the n-th call of a kind fails, or the n-th copy flips a bit: always the CPU's bytes, no
//! call after the device is lost, and nothing held in the end (reliability F17).

use std::ops::Range;

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine_gpu::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};
use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
use lithify_env::sync::{Arc, Mutex};
use lithify_format::compress::Codec;
use lithify_merge::workload::{Case, Features};
use lithify_merge::{Bytes, Lent, naive};

use crate::common::*;
use crate::relay::part;

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Alloc,
    Arena,
    Bytes,
    Lend,
    Upload,
    Send,
    Download,
    Launch,
    Record,
    Ready,
    After,
}
pub(crate) const CALLS: [Call; 11] = [
    Call::Alloc,
    Call::Arena,
    Call::Bytes,
    Call::Lend,
    Call::Upload,
    Call::Send,
    Call::Download,
    Call::Launch,
    Call::Record,
    Call::Ready,
    Call::After,
];

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The device is gone, from this call on.
    Gone,
    /// There is not so much memory, this time.
    NoRoom,
    /// A bit of what is copied flips, at this place of it.
    Flip(usize),
}

/// What was asked of a device.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) calls: [u64; CALLS.len()],
    /// Calls after the one that told that it is gone.
    pub(crate) late: u64,
    gone: bool,
    pub(crate) held: usize,
}

/// The device.
pub(crate) struct Faulty {
    pub(crate) emu: Emu,
    pub(crate) plan: Option<(Call, u64, Mishap)>,
    pub(crate) asked: Arc<Mutex<Asked>>,
}

impl Faulty {
    /// Counts a call; says where to flip a bit if one is to flip.
    fn count(&mut self, call: Call) -> Result<Option<usize>> {
        let mut asked = self.asked.lock();
        if asked.gone {
            asked.late += 1;
        }
        let n = asked.calls[call as usize];
        asked.calls[call as usize] += 1;
        match self.plan {
            Some((kind, at, mishap)) if kind == call && at == n => match mishap {
                Mishap::Flip(at) => Ok(Some(at)),
                Mishap::NoRoom => Err(Error::new(ErrorKind::LimitExceeded, "no room")),
                Mishap::Gone => {
                    asked.gone = true;
                    Err(Error::new(ErrorKind::Io, "gone"))
                }
            },
            _ => Ok(None),
        }
    }
    fn flip(&mut self, arena: &Arena, part: &Range<usize>, flip: Option<usize>) -> Result<()> {
        if let Some(at) = flip.filter(|_| !part.is_empty()) {
            self.emu.bytes(arena)?[part.start + at % part.len()] ^= 1 << (at % 8);
        }
        Ok(())
    }
    fn held(&self) {
        self.asked.lock().held = self.emu.held();
    }
}

impl Device for Faulty {
    fn name(&self) -> String {
        "faulty".to_owned()
    }
    fn shape(&self) -> Shape {
        self.emu.shape()
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        self.count(Call::Alloc)?;
        let memory = self.emu.alloc(bytes);
        self.held();
        memory
    }
    fn free(&mut self, memory: Memory) {
        self.emu.free(memory);
        self.held();
    }
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        self.count(Call::Arena)?;
        let arena = self.emu.arena(bytes);
        self.held();
        arena
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        self.count(Call::Bytes)?;
        self.emu.bytes(arena)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.emu.drop_arena(arena);
        self.held();
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        self.count(Call::Lend)?;
        let lent = self.emu.lend(arena);
        self.held();
        lent
    }
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()> {
        let flip = self.count(Call::Upload)?;
        // Only in the first block: what kernels are told of places they believe.
        self.flip(from, &(part.start..part.end.min(part.start + 40)), flip)?;
        self.emu.upload(queue, from, part, to)
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()> {
        let mut bytes = from.as_slice().to_vec();
        if let Some(at) = self.count(Call::Send)?.filter(|_| !bytes.is_empty()) {
            let n = bytes.len();
            bytes[at % n] ^= 1 << (at % 8);
        }
        self.emu.send(queue, bytes.into(), to)
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        let flip = self.count(Call::Download)?;
        self.emu.download(queue, from, to, part.clone())?;
        self.flip(to, &part, flip)
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        self.count(Call::Launch)?;
        self.emu.launch(queue, kernel, ctas, params)
    }
    fn record(&mut self, queue: Queue) -> Result<Event> {
        self.count(Call::Record)?;
        self.emu.record(queue)
    }
    fn ready(&mut self, event: Event) -> Result<bool> {
        self.count(Call::Ready)?;
        self.emu.ready(event)
    }
    fn after(&mut self, queue: Queue, event: Event) -> Result<()> {
        self.count(Call::After)?;
        self.emu.after(queue, event)
    }
}

/// The job: a dozen sets with deletes, tombstones and some blocks that the device has to count, compressed and plain, and
/// compressed output.
pub(crate) fn job() -> Case {
    let sized = |seed| {
        let mut case = Case::with(seed, SMALL, Features::Lz4).unwrap();
        let n = case.blocks.iter().flatten().count();
        if let Some(block) = case.blocks.iter_mut().flatten().nth(n / 2) {
            block.slice.entries = 0;
        }
        case
    };
    let of_all = |case: &Case| {
        let blocks = case.blocks.iter().flatten().map(|block| block.slice.bytes.as_slice());
        let compressed = blocks.filter(|bytes| bytes[bytes.len() - 5] == Codec::Lz4 as u8).count();
        let all = case.blocks.iter().flatten().count();
        case.recipe.codec == Codec::Lz4
            && (8..16).contains(&case.sets(2500).len())
            && compressed > 5
            && compressed < all
    };
    // A small one, as it is merged hundreds of times.
    let bytes = |case: &Case| case.entries().iter().map(|e| 50 + e.value.len()).sum::<usize>();
    (0..400).map(sized).filter(of_all).min_by_key(bytes).expect("some case has so many sets")
}

/// Runs the job under a plan, and says what was asked of the device.
fn under(plan: Option<(Call, u64, Mishap)>, case: &Case) -> (Arc<Mutex<Asked>>, bool) {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let device = Faulty { emu: Emu::new(5), plan, asked: asked.clone() };
    let options = GpuOptions { tuned: Some((4 << 10, 4 << 20)), ..GpuOptions::default() };
    let engine = GpuEngine::new(Box::new(device), options).unwrap();
    let done = part(&engine, case, case.sets(2500));
    let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
    assert!(done.output == output && done.ledger == ledger, "{plan:?}");
    assert_eq!(asked.lock().late, 0, "{plan:?}: a call of a device that is gone");
    let lost = figure(&engine, "device_lost") == 1;
    if !lost {
        assert_eq!(asked.lock().held, 0, "{plan:?}");
    }
    (asked, done.gave_up || done.disproved.is_some())
}

#[test]
fn every_call_may_fail() {
    let case = job();
    let calls = under(None, &case).0.lock().calls;
    let (mut tried, mut noticed) = (0, 0);
    // Nothing is sent from where it was read (`direct` does that).
    for call in CALLS.into_iter().filter(|call| *call != Call::Send) {
        assert!(calls[call as usize] > 0, "{call:?}");
        for n in 0..calls[call as usize] {
            let takes = matches!(call, Call::Alloc | Call::Arena);
            for mishap in [Mishap::Gone, Mishap::NoRoom].into_iter().take(1 + usize::from(takes)) {
                let (_, gave_up) = under(Some((call, n, mishap)), &case);
                tried += 1;
                noticed += u64::from(gave_up);
            }
        }
    }
    println!("{tried} calls failed: 0 wrong bytes");
    assert_eq!(tried, noticed, "what failed was noticed");
}

#[test]
fn every_copy_may_flip_a_bit() {
    let case = job();
    let calls = under(None, &case).0.lock().calls;
    let mut tried = 0;
    for call in [Call::Upload, Call::Download] {
        for n in 0..calls[call as usize] {
            for at in 0..seeds(6) {
                under(Some((call, n, Mishap::Flip(at as usize * 7919 + 13 * n as usize))), &case);
                tried += 1;
            }
        }
    }
    println!("{tried} bits flipped: 0 wrong bytes");
    assert!(tried > 100, "{tried}");
}
