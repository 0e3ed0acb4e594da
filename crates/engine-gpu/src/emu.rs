//! The emulator as a device: the kernels of `kernels`, compiled by g++, their threads fibers of the host
//! (`emu/fiber.cpp`). Feature `emu`, for tests: it is slow, and its time says nothing of a GPU's.
//!
//! Keeps: every call does its work before it returns, so events are always ready. Copies are checked
//! against the memory that was handed out; kernels are not, they get addresses as on a device.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::ops::Range;

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::{Bytes, Lent};

use crate::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};
use crate::layout::{self, Params};

unsafe extern "C" {
    fn lithify_emu_launch(kernel: u32, ctas: u32, params: *const u64, seed: u64) -> *const c_char;
    fn lithify_emu_sizes(out: *mut u64);
    fn lithify_emu_shape(out: *mut u64);
    fn lithify_emu_hash(bytes: *const u8, n: u64, out: *mut u64) -> *const c_char;
    fn lithify_emu_decode(
        bytes: *const u8,
        n: u64,
        out: *mut u8,
        size: u64,
        seed: u64,
        taken: *mut u64,
    ) -> *const c_char;
    fn lithify_emu_encode(
        bytes: *const u8,
        n: u64,
        out: *mut u8,
        most: u64,
        len: *mut u64,
    ) -> *const c_char;
}

/// What device memory holds before it is written.
const POISON: u8 = 0xa5;
/// Alignment of device memory.
const ALIGN: usize = 64;

/// The emulator.
#[derive(Debug)]
pub struct Emu {
    seed: u64,
    launches: u64,
    next: u64,
    memory: BTreeMap<u64, (Vec<u8>, Range<usize>)>,
    arenas: BTreeMap<u64, Vec<u8>>,
}

impl Emu {
    /// An emulator whose orders of threads are drawn from `seed`.
    ///
    /// # Panics
    /// If the kernels were compiled with another layout than this crate has.
    pub fn new(seed: u64) -> Emu {
        let mut sizes = [0; 8];
        // SAFETY: the function writes eight words.
        unsafe { lithify_emu_sizes(sizes.as_mut_ptr()) };
        assert_eq!(sizes, layout::sizes(), "kernels/layout.cuh and src/layout.rs differ");
        Emu { seed, launches: 0, next: 0, memory: BTreeMap::new(), arenas: BTreeMap::new() }
    }

    /// Bytes of memory and arenas that are out.
    pub fn held(&self) -> usize {
        let memory: usize = self.memory.values().map(|(_, range)| range.len()).sum();
        memory + self.arenas.values().map(Vec::len).sum::<usize>()
    }

    /// The device memory at `address`, of which `bytes` are asked for.
    fn at(&mut self, address: u64, bytes: usize) -> Result<&mut [u8]> {
        let found = self.memory.range_mut(..=address).next_back();
        let stretch = found.and_then(|(base, (memory, range))| {
            let from = range.start + (address - base) as usize;
            let part = from..from.checked_add(bytes)?;
            memory.get_mut(part.clone()).filter(|_| part.end <= range.end)
        });
        stretch.ok_or_else(|| lost("a copy reaches out of the memory of the device"))
    }
}

/// XXH3, XXPH3, content weight and weight of bytes, by the kernels' functions; the tag of the weight is the
/// length. For tests of those.
///
/// # Errors
/// Internal if the emulator fails.
pub fn hashes(bytes: &[u8]) -> Result<[u64; 4]> {
    let mut out = [0; 4];
    // SAFETY: `bytes` are so many, and the function writes four words.
    let said = unsafe { lithify_emu_hash(bytes.as_ptr(), bytes.len() as u64, out.as_mut_ptr()) };
    answer(said).map(|()| out)
}

/// What the kernels decode of `stored`, the payload of a block compressed with LZ4, of which `size` bytes are to come;
/// none if they refuse it. For tests of the codec.
///
/// # Errors
/// Internal if the emulator fails.
pub fn lz4_decode(stored: &[u8], size: usize, seed: u64) -> Result<Option<Vec<u8>>> {
    let (mut out, mut taken) = (vec![POISON; size], 0);
    let (n, size) = (stored.len() as u64, out.len() as u64);
    // SAFETY: `stored` and `out` are so many bytes, and one word is written to `taken`.
    let said = unsafe {
        lithify_emu_decode(stored.as_ptr(), n, out.as_mut_ptr(), size, seed, &raw mut taken)
    };
    answer(said).map(|()| (taken != 0).then_some(out))
}

/// The stored payload that the kernels make of `plain` with LZ4; none if it would have more than `most` bytes. For tests of
/// the codec.
///
/// # Errors
/// Internal if the emulator fails.
pub fn lz4_encode(plain: &[u8], most: usize) -> Result<Option<Vec<u8>>> {
    let (mut out, mut len) = (vec![POISON; most], 0);
    let (n, most) = (plain.len() as u64, most as u64);
    // SAFETY: `plain` and `out` are so many bytes, and one word is written to `len`.
    let said =
        unsafe { lithify_emu_encode(plain.as_ptr(), n, out.as_mut_ptr(), most, &raw mut len) };
    answer(said)?;
    out.truncate(len as usize);
    Ok((len != 0).then_some(out))
}

fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("the emulator: {what}"))
}

fn answer(said: *const c_char) -> Result<()> {
    if said.is_null() {
        return Ok(());
    }
    // SAFETY: what it answers are string literals.
    let said = unsafe { CStr::from_ptr(said) };
    Err(lost(&said.to_string_lossy()))
}

impl Device for Emu {
    fn name(&self) -> String {
        "emulator".to_owned()
    }
    fn shape(&self) -> Shape {
        let mut shape = [0; 3];
        // SAFETY: the function writes three words.
        unsafe { lithify_emu_shape(shape.as_mut_ptr()) };
        let [threads, items, scan_items] = shape.map(|n| n as u32);
        // Few CTAs, so that their loops go round.
        Shape { threads, items, scan_items, ctas: 3 }
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut memory = vec![POISON; bytes.saturating_add(ALIGN)];
        let start = memory.as_mut_ptr() as usize;
        let pad = start.next_multiple_of(ALIGN) - start;
        let address = (start + pad) as u64;
        self.memory.insert(address, (memory, pad..pad + bytes));
        Ok(Memory { address, bytes: bytes as u64 })
    }
    fn free(&mut self, memory: Memory) {
        self.memory.remove(&memory.address);
    }
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        self.next += 1;
        self.arenas.insert(self.next, vec![POISON; bytes]);
        Ok(Arena(self.next))
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        let bytes = self.arenas.get_mut(&arena.0).ok_or_else(|| lost("no such arena"))?;
        Ok(bytes)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.arenas.remove(&arena.0);
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        let bytes = self.arenas.remove(&arena.0).ok_or_else(|| lost("no such arena"))?;
        Ok(Box::new(bytes))
    }
    fn upload(&mut self, _queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()> {
        let bytes = self.arenas.remove(&from.0).ok_or_else(|| lost("no such arena"))?;
        let copied = match bytes.get(part) {
            Some(part) => self.at(to, part.len()).map(|to| to.copy_from_slice(part)),
            None => Err(lost("a copy reaches out of its arena")),
        };
        self.arenas.insert(from.0, bytes);
        copied
    }
    fn send(&mut self, _queue: Queue, from: Bytes, to: u64) -> Result<()> {
        self.at(to, from.len()).map(|to| to.copy_from_slice(from.as_slice()))
    }
    fn download(&mut self, _queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        let mut bytes = self.arenas.remove(&to.0).ok_or_else(|| lost("no such arena"))?;
        let copied = match bytes.get_mut(part) {
            Some(part) => self.at(from, part.len()).map(|from| part.copy_from_slice(from)),
            None => Err(lost("a copy reaches out of its arena")),
        };
        self.arenas.insert(to.0, bytes);
        copied
    }
    fn launch(&mut self, _queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        if params.len() != Params::WORDS {
            return Err(lost("a kernel gets other parameters than it has"));
        }
        self.launches += 1;
        let seed = self.seed.wrapping_add(self.launches << 32);
        // SAFETY: there are as many words as a kernel has parameters. The addresses among them lie in the
        // memory that this device handed out, which lives until it is given back; that kernels stay inside
        // of what they are told is what their tests are about.
        answer(unsafe { lithify_emu_launch(kernel as u32, ctas, params.as_ptr(), seed) })
    }
    fn record(&mut self, _queue: Queue) -> Result<Event> {
        Ok(Event(self.launches))
    }
    fn ready(&mut self, _event: Event) -> Result<bool> {
        Ok(true)
    }
    fn after(&mut self, _queue: Queue, _event: Event) -> Result<()> {
        Ok(())
    }
}
