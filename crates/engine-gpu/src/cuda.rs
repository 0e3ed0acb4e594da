//! The driver of NVIDIA's GPUs, behind [`Driver`]: its library is loaded when a GPU is asked for, so no build and no
//! machine needs it.
//!
//! All that is decided about answers lies outside of it. Tests run it over a library with the driver's interface
//! (`tests/engine/cuda.rs`); an H200 has run it (`docs/results/gpu`).
//! Keeps: one call of the trait is one call of the driver, or two; each makes the GPU's context current first, as
//! calls come from more than one thread. Memory that the driver knows of is given back to the system after the driver has
//! let go of it, or never. Large memory of the host is our own, in huge pages, which the driver is told
//! of: on an H200's host that takes 0.19 s for 1 GiB, where memory of the driver's own takes 0.52.
//! Leaves to others: which calls, and what an answer means (`card`, `driver`).

use std::ffi::{CString, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use lithify_env::Region;
use lithify_env::sync::Mutex;

use crate::arena::Pinned;
use crate::driver::{CardFacts, Code, Driver, Signal, Stream, Transfer};

/// Flags of the driver's header: streams that do not wait for the default one, events with a time, memory that
/// every context sees.
const NON_BLOCKING: c_uint = 1;
const TIMED: c_uint = 0;
const PORTABLE: c_uint = 1;
/// Memory of the host from here on comes in huge pages.
const HUGE: usize = 2 << 20;
/// What the driver answers to a thing that is not there.
const NOT_FOUND: Code = Code(500);
const INVALID: Code = Code(1);
const NO_CONTEXT: Code = Code(201);

/// The driver, and of one GPU what was made so far.
#[derive(Default)]
pub struct Cuda(Mutex<Made>);

#[derive(Default)]
struct Made {
    device: c_int,
    context: Handle,
    module: Handle,
    kernels: Vec<Handle>,
    streams: Vec<Handle>,
    signals: Vec<Handle>,
    /// Memory that the driver was told of.
    regions: Vec<Region>,
}

impl Drop for Made {
    fn drop(&mut self) {
        // What was not given back the GPU may still write to, and the driver takes its addresses for memory that it knows:
        // it stays for as long as the program runs.
        std::mem::forget(std::mem::take(&mut self.regions));
    }
}

/// A handle of the driver: an address that only the driver reads.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);
// SAFETY: nothing in this program reads what it points at, and the driver's calls may come from any thread.
unsafe impl Send for Handle {}
impl Default for Handle {
    fn default() -> Handle {
        Handle(ptr::null_mut())
    }
}

fn answer(result: sys::CUresult) -> Result<(), Code> {
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(Code(other as u32)),
    }
}

/// What a call of the driver writes through the pointer it is given.
fn out<T>(call: impl FnOnce(*mut T) -> sys::CUresult) -> Result<T, Code> {
    let mut value = MaybeUninit::uninit();
    answer(call(value.as_mut_ptr()))?;
    // SAFETY: every call here writes what it is asked for when it succeeds.
    Ok(unsafe { value.assume_init() })
}

impl Cuda {
    /// What was made, with the GPU's context current on this thread.
    fn made<T>(&self, of: impl FnOnce(&mut Made) -> Result<T, Code>) -> Result<T, Code> {
        let mut made = self.0.lock();
        if made.context.0.is_null() {
            return Err(NO_CONTEXT);
        }
        // SAFETY: the context was retained by `take`, and is set to none when it is released.
        answer(unsafe { sys::cuCtxSetCurrent(made.context.0.cast()) })?;
        of(&mut made)
    }
    fn attribute(device: c_int, which: Attribute) -> Result<u32, Code> {
        // SAFETY: the call writes one number.
        let n = out(|to| unsafe { sys::cuDeviceGetAttribute(to, which, device) })?;
        Ok(u32::try_from(n).unwrap_or_default())
    }
}

/// The handle of that number.
fn nth(of: &[Handle], no: usize) -> Result<Handle, Code> {
    of.get(no).copied().ok_or(INVALID)
}

impl Driver for Cuda {
    fn is_there(&self) -> bool {
        // SAFETY: it loads the library by its name and lets go of it; NVIDIA's has no conditions on that.
        unsafe { sys::is_culib_present() }
    }
    fn version(&self) -> Result<u32, Code> {
        // SAFETY: the flags have to be 0.
        answer(unsafe { sys::cuInit(0) })?;
        // SAFETY: the call writes one number.
        let n: c_int = out(|to| unsafe { sys::cuDriverGetVersion(to) })?;
        Ok(u32::try_from(n).unwrap_or_default())
    }
    fn count(&self) -> Result<u32, Code> {
        // SAFETY: the call writes one number.
        let n: c_int = out(|to| unsafe { sys::cuDeviceGetCount(to) })?;
        Ok(u32::try_from(n).unwrap_or_default())
    }
    fn take(&self, no: u32) -> Result<(), Code> {
        let no = c_int::try_from(no).map_err(|_| INVALID)?;
        // SAFETY: the call writes a number for the device.
        let device = out(|to| unsafe { sys::cuDeviceGet(to, no) })?;
        // SAFETY: the device is one; `close` releases the context.
        let context = out(|to| unsafe { sys::cuDevicePrimaryCtxRetain(to, device) })?;
        let mut made = self.0.lock();
        (made.device, made.context) = (device, Handle(context.cast()));
        Ok(())
    }
    fn facts(&self) -> Result<CardFacts, Code> {
        let driver = self.version()?;
        self.made(|made| {
            let of = |which| Cuda::attribute(made.device, which);
            let mut name = [0u8; 128];
            // SAFETY: the call writes a name of at most so many bytes, with a zero at its end.
            answer(unsafe {
                sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, made.device)
            })?;
            let name = name.split(|b| *b == 0).next().unwrap_or_default();
            let (mut free, mut memory) = (0, 0);
            // SAFETY: the call writes two numbers.
            answer(unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut memory) })?;
            let major = of(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = of(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            Ok(CardFacts {
                name: String::from_utf8_lossy(name).into_owned(),
                driver,
                capability: 10 * major + minor,
                processors: of(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
                copiers: of(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
                memory: memory as u64,
                free: free as u64,
            })
        })
    }
    fn load(&self, image: &[u8]) -> Result<(), Code> {
        self.made(|made| {
            // SAFETY: `card` has held the image's header and its length against each other; the driver reads no
            // further than the header says, and copies what it keeps.
            let module = out(|to| unsafe { sys::cuModuleLoadData(to, image.as_ptr().cast()) })?;
            made.module = Handle(module.cast());
            Ok(())
        })
    }
    fn kernels(&self, names: &[&str]) -> Result<(), Code> {
        self.made(|made| {
            for name in names {
                let name = CString::new(*name).map_err(|_| NOT_FOUND)?;
                let module = made.module.0.cast();
                // SAFETY: the module is loaded, and the name ends with a zero.
                let one = out(|to| unsafe { sys::cuModuleGetFunction(to, module, name.as_ptr()) })?;
                made.kernels.push(Handle(one.cast()));
            }
            Ok(())
        })
    }
    fn words(&self, name: &str, words: &mut [u64]) -> Result<(), Code> {
        let name = CString::new(name).map_err(|_| NOT_FOUND)?;
        self.made(|made| {
            let (mut at, mut bytes) = (0, 0);
            let module = made.module.0.cast();
            // SAFETY: the module is loaded, the name ends with a zero; the call writes an address and a length.
            answer(unsafe {
                sys::cuModuleGetGlobal_v2(&raw mut at, &raw mut bytes, module, name.as_ptr())
            })?;
            words.fill(0);
            let bytes = bytes.min(size_of_val(words));
            // SAFETY: the variable has so many bytes, and so do the words.
            answer(unsafe { sys::cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), at, bytes) })
        })
    }
    fn stream(&self) -> Result<Stream, Code> {
        self.made(|made| {
            // SAFETY: the call writes a handle.
            let one = out(|to| unsafe { sys::cuStreamCreate(to, NON_BLOCKING) })?;
            made.streams.push(Handle(one.cast()));
            Ok(Stream(made.streams.len() - 1))
        })
    }
    fn signal(&self) -> Result<Signal, Code> {
        self.made(|made| {
            // SAFETY: the call writes a handle.
            let one = out(|to| unsafe { sys::cuEventCreate(to, TIMED) })?;
            made.signals.push(Handle(one.cast()));
            Ok(Signal(made.signals.len() - 1))
        })
    }
    fn alloc(&self, bytes: u64) -> Result<u64, Code> {
        let bytes = usize::try_from(bytes).map_err(|_| crate::driver::NO_MEMORY)?;
        // SAFETY: the call writes an address.
        self.made(|_| out(|to| unsafe { sys::cuMemAlloc_v2(to, bytes) }))
    }
    fn free(&self, address: u64) -> Result<(), Code> {
        // SAFETY: `alloc` gave this address, and its owner gives it back once.
        self.made(|_| answer(unsafe { sys::cuMemFree_v2(address) }))
    }
    fn pin(&self, bytes: usize) -> Result<Pinned, Code> {
        self.made(|made| {
            if bytes >= HUGE
                && let Ok(region) = Region::new(bytes)
            {
                let at = region.as_ptr();
                // SAFETY: the memory is there until `unpin`, which first takes it back from the driver.
                let told =
                    answer(unsafe { sys::cuMemHostRegister_v2(at.cast(), region.len(), PORTABLE) });
                if told.is_ok() {
                    // SAFETY: the region has so many bytes, all set; `unpin` drops it, and nothing else reaches it.
                    let bytes = unsafe { std::slice::from_raw_parts_mut(at, region.len()) };
                    made.regions.push(region);
                    return Ok(Pinned::new(bytes));
                }
            }
            // SAFETY: the call writes an address.
            let at: *mut c_void = out(|to| unsafe { sys::cuMemHostAlloc(to, bytes, PORTABLE) })?;
            // SAFETY: so many bytes begin there, they are this program's until `unpin`, and they are set before
            // anything reads them.
            let bytes = unsafe {
                ptr::write_bytes(at.cast::<u8>(), 0, bytes);
                std::slice::from_raw_parts_mut(at.cast::<u8>(), bytes)
            };
            Ok(Pinned::new(bytes))
        })
    }
    fn unpin(&self, pinned: Pinned) -> Result<(), Code> {
        self.made(|made| {
            let at = pinned.at().as_ptr();
            let Some(no) = made.regions.iter().position(|region| region.as_ptr() == at) else {
                // SAFETY: what is no region comes from `cuMemHostAlloc`, and the value is given up here.
                return answer(unsafe { sys::cuMemFreeHost(at.cast()) });
            };
            // SAFETY: the driver was told of this memory by `pin`. Where it keeps it, so does this program.
            answer(unsafe { sys::cuMemHostUnregister(at.cast()) })?;
            drop(made.regions.swap_remove(no));
            Ok(())
        })
    }
    fn copy(&self, stream: Stream, copies: &[Transfer<'_>]) -> Result<(), Code> {
        let ends = copies.iter().map(Ends::of).collect::<Result<Vec<Ends>, Code>>()?;
        self.made(|made| {
            let stream = nth(&made.streams, stream.0)?.0.cast();
            // SAFETY: parts lie in arenas, which `card` keeps until an event behind the copy has happened, and so it does bytes
            // that are sent, which are shared, so that nothing writes to them; nothing reads what is copied to before that event.
            // Addresses of the GPU lie in memory that `card` has from `alloc`.
            answer(unsafe {
                match (ends.as_slice(), copies) {
                    ([], _) => sys::CUresult::CUDA_SUCCESS,
                    ([one], [Transfer::Down(..)]) => sys::cuMemcpyDtoHAsync_v2(
                        one.to as *mut c_void,
                        one.from,
                        one.bytes,
                        stream,
                    ),
                    ([one], _) => sys::cuMemcpyHtoDAsync_v2(
                        one.to,
                        one.from as *const c_void,
                        one.bytes,
                        stream,
                    ),
                    (all, _) => together(all, made.device, stream),
                }
            })
        })
    }
    fn launch(
        &self,
        stream: Stream,
        kernel: u32,
        ctas: u32,
        threads: u32,
        params: &[u64],
    ) -> Result<(), Code> {
        self.made(|made| {
            let stream = nth(&made.streams, stream.0)?.0.cast();
            let kernel = nth(&made.kernels, kernel as usize)?.0.cast();
            let mut args = [params.as_ptr().cast_mut().cast::<c_void>()];
            // SAFETY: a kernel has one parameter, a struct; `card` compared its size with that of `params` when
            // the image was loaded. The driver copies it before it returns.
            answer(unsafe {
                let none = ptr::null_mut();
                let args = args.as_mut_ptr();
                sys::cuLaunchKernel(kernel, ctas, 1, 1, threads, 1, 1, 0, stream, args, none)
            })
        })
    }
    fn record(&self, signal: Signal, stream: Stream) -> Result<(), Code> {
        self.made(|made| {
            let (signal, stream) = (nth(&made.signals, signal.0)?, nth(&made.streams, stream.0)?);
            // SAFETY: both are handles of this context.
            answer(unsafe { sys::cuEventRecord(signal.0.cast(), stream.0.cast()) })
        })
    }
    fn query(&self, signal: Signal) -> Result<(), Code> {
        self.made(|made| {
            let signal = nth(&made.signals, signal.0)?;
            // SAFETY: it is a handle of this context.
            answer(unsafe { sys::cuEventQuery(signal.0.cast()) })
        })
    }
    fn elapsed(&self, from: Signal, to: Signal) -> Result<f64, Code> {
        self.made(|made| {
            let (from, to) = (nth(&made.signals, from.0)?, nth(&made.signals, to.0)?);
            // SAFETY: both are handles of this context; the call writes one number, of milliseconds.
            let ms: f32 =
                out(|ms| unsafe { sys::cuEventElapsedTime_v2(ms, from.0.cast(), to.0.cast()) })?;
            Ok(f64::from(ms) * 1e6)
        })
    }
    fn wait(&self, stream: Stream, signal: Signal) -> Result<(), Code> {
        self.made(|made| {
            let (signal, stream) = (nth(&made.signals, signal.0)?, nth(&made.streams, stream.0)?);
            // SAFETY: both are handles of this context; the flags have to be 0.
            answer(unsafe { sys::cuStreamWaitEvent(stream.0.cast(), signal.0.cast(), 0) })
        })
    }
    fn close(&self) -> Result<(), Code> {
        self.made(|made| {
            for stream in made.streams.drain(..) {
                // SAFETY: it is a handle of this context, and out of the list, so nothing uses it again.
                answer(unsafe { sys::cuStreamDestroy_v2(stream.0.cast()) })?;
            }
            for signal in made.signals.drain(..) {
                // SAFETY: as for streams.
                answer(unsafe { sys::cuEventDestroy_v2(signal.0.cast()) })?;
            }
            made.kernels.clear();
            let module = std::mem::take(&mut made.module);
            if !module.0.is_null() {
                // SAFETY: it was loaded by `load`; its kernels are out of the list, and none runs any more.
                answer(unsafe { sys::cuModuleUnload(module.0.cast()) })?;
            }
            // No thread's calls are to go to a context that is gone; another one's set their own first.
            // SAFETY: none is one that may be current.
            answer(unsafe { sys::cuCtxSetCurrent(ptr::null_mut()) })?;
            made.context = Handle::default();
            // SAFETY: `take` retained it, once, and it is released once: without a context no call gets here again.
            answer(unsafe { sys::cuDevicePrimaryCtxRelease_v2(made.device) })
        })
    }
    fn name_of(&self, code: Code) -> String {
        // Without the driver, which may be the one that fails: by the header.
        let known = [(1, "invalid value"), (2, "out of memory"), (3, "not initialized")];
        let more = [
            (100, "no device"),
            (209, "no binary for this GPU"),
            (201, "no context"),
            (214, "ECC error"),
            (222, "unsupported PTX version"),
            (500, "not found"),
            (700, "illegal address"),
            (715, "illegal instruction"),
            (716, "misaligned address"),
            (719, "launch failed"),
            (999, "unknown error"),
        ];
        let found = known.iter().chain(&more).find(|(of, _)| *of == code.0);
        found.map_or("an error", |(_, name)| name).to_owned()
    }
}

/// Where a copy begins on both sides, and how long it is.
struct Ends {
    from: u64,
    to: u64,
    bytes: usize,
}

impl Ends {
    fn of(copy: &Transfer<'_>) -> Result<Ends, Code> {
        let address = |at: *const u8| at.expose_provenance() as u64;
        let part = |of: &Pinned, part: &Range<usize>| -> Result<(u64, usize), Code> {
            Ok((address(of.at().as_ptr()) + part.start as u64, inside(of, part)?))
        };
        Ok(match copy {
            Transfer::Up(arena, range, to) => {
                let (from, bytes) = part(arena, range)?;
                Ends { from, to: *to, bytes }
            }
            Transfer::Send(from, to) => {
                Ends { from: address(from.as_ptr()), to: *to, bytes: from.len() }
            }
            Transfer::Down(from, arena, range) => {
                let (to, bytes) = part(arena, range)?;
                Ends { from: *from, to, bytes }
            }
        })
    }
}

/// Several copies in one call.
///
/// # Safety
/// As for each copy by itself.
unsafe fn together(all: &[Ends], device: c_int, stream: sys::CUstream) -> sys::CUresult {
    let list = |of: fn(&Ends) -> u64| all.iter().map(of).collect::<Vec<u64>>();
    let (mut to, mut from) = (list(|one| one.to), list(|one| one.from));
    let mut bytes: Vec<usize> = all.iter().map(|one| one.bytes).collect();
    // Hints are for memory that moves between host and GPU, which this is not.
    let hint = sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device,
    };
    let mut how = sys::CUmemcpyAttributes {
        srcAccessOrder: sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        srcLocHint: hint,
        dstLocHint: hint,
        flags: 0,
    };
    let mut first = 0;
    // SAFETY: lists of one length, all of which have these attributes; the call reads them before it returns.
    unsafe {
        sys::cuMemcpyBatchAsync_v2(
            to.as_mut_ptr(),
            from.as_mut_ptr(),
            bytes.as_mut_ptr(),
            all.len(),
            &raw mut how,
            &raw mut first,
            1,
            stream,
        )
    }
}

/// How long a part of an arena is.
fn inside(arena: &Pinned, part: &Range<usize>) -> Result<usize, Code> {
    let is_inside = part.start <= part.end && part.end <= arena.size();
    if is_inside { Ok(part.len()) } else { Err(INVALID) }
}
