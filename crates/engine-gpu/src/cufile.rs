//! NVIDIA's cuFile behind [`Inlet`]: its library is loaded when reads through it are asked for, so no build and no
//! machine needs it.
//!
//! Tests call it over a library of their own with the same interface; on an H100 NVIDIA's has run, in its compatibility mode
//! (`docs/results/gpu`). Names, structs and numbers are those of its public reference; an answer is taken as a number, as
//! one that is not known must not become a value of an enum.
//! Keeps: one call of the trait is one call of the library.
//! Leaves to others: which calls, and what an answer means (`gds`).

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::gds::{Inlet, Registered, Status};

/// Names of the library: with its development files, and without.
const NAMES: [&str; 2] = ["libcufile.so.0", "libcufile.so"];
/// A file by its descriptor.
const OPAQUE_FD: c_int = 1;
/// The library lacks a function: its number for what is not supported here.
const MISSING: Status = Status { code: 5007, driver: 0 };

/// `CUfileError_t`: the library's number, and the driver's.
#[repr(C)]
#[derive(Clone, Copy)]
struct Answer {
    code: c_int,
    driver: c_int,
}

impl Answer {
    fn taken(self) -> Result<(), Status> {
        match self.code {
            0 => Ok(()),
            code => Err(Status { code, driver: self.driver }),
        }
    }
}

/// `CUfileDescr_t` for Linux: the kind, a union of a descriptor and a pointer, functions of a file system's own.
#[repr(C)]
struct Descr {
    kind: c_int,
    handle: Handle,
    fs_ops: *const c_void,
}

#[repr(C)]
union Handle {
    fd: c_int,
    #[allow(dead_code, reason = "gives the union its size")]
    pointer: *mut c_void,
}

type Open = unsafe extern "C" fn() -> Answer;
type Register = unsafe extern "C" fn(*mut *mut c_void, *mut Descr) -> Answer;
type Deregister = unsafe extern "C" fn(*mut c_void);
type Read = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, i64, i64) -> isize;

/// The library, if there is one.
pub struct CuFile(Option<Library>);

impl CuFile {
    /// NVIDIA's.
    pub fn installed() -> CuFile {
        CuFile(NAMES.iter().find_map(|name| load(name.as_ref())))
    }
    /// One at this place.
    pub fn at(path: &Path) -> CuFile {
        CuFile(load(path))
    }

    /// One of its functions.
    ///
    /// # Safety
    /// `T` is the type of the function with that name.
    unsafe fn function<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: by the caller; the pointer is used only while `self` has the library.
        let found = unsafe { self.0.as_ref()?.get::<T>(name) };
        found.ok().map(|symbol| *symbol)
    }
    fn opens(&self) -> Option<Open> {
        // SAFETY: the type is that of the library's reference, as in all that follow.
        unsafe { self.function("cuFileDriverOpen") }
    }
    fn registers(&self) -> Option<Register> {
        // SAFETY: as above.
        unsafe { self.function("cuFileHandleRegister") }
    }
    fn deregisters(&self) -> Option<Deregister> {
        // SAFETY: as above.
        unsafe { self.function("cuFileHandleDeregister") }
    }
    fn reads(&self) -> Option<Read> {
        // SAFETY: as above.
        unsafe { self.function("cuFileRead") }
    }
}

fn load(name: &Path) -> Option<Library> {
    // SAFETY: NVIDIA's library has no conditions on being loaded.
    unsafe { Library::new(name) }.ok()
}

impl Inlet for CuFile {
    fn is_there(&self) -> bool {
        let is_whole = self.opens().is_some() && self.reads().is_some();
        is_whole && self.registers().is_some() && self.deregisters().is_some()
    }
    fn open(&self) -> Result<(), Status> {
        let open = self.opens().ok_or(MISSING)?;
        // SAFETY: it takes nothing.
        unsafe { open() }.taken()
    }
    fn close(&self) {
        // What counts its users came with a later version.
        // SAFETY: the type is that of the library's reference.
        let close = unsafe {
            self.function::<Open>("cuFileDriverClose_v2")
                .or_else(|| self.function::<Open>("cuFileDriverClose"))
        };
        if let Some(close) = close {
            // SAFETY: it takes nothing, and no file is registered any more.
            let _ = unsafe { close() };
        }
    }
    fn register(&self, file: BorrowedFd<'_>) -> Result<Registered, Status> {
        let register = self.registers().ok_or(MISSING)?;
        let handle = Handle { fd: file.as_raw_fd() };
        let mut descr = Descr { kind: OPAQUE_FD, handle, fs_ops: ptr::null() };
        let mut registered = ptr::null_mut();
        // SAFETY: both point at values that live through the call; the descriptor is open, and `gds` keeps it open for as
        // long as the file is registered.
        unsafe { register(&raw mut registered, &raw mut descr) }.taken()?;
        Ok(Registered(registered.expose_provenance()))
    }
    fn deregister(&self, file: Registered) {
        if let Some(deregister) = self.deregisters() {
            // SAFETY: the library gave this, and `gds` gives it back once.
            unsafe { deregister(ptr::with_exposed_provenance_mut(file.0)) };
        }
    }
    fn read(&self, file: Registered, at: u64, len: usize, to: u64) -> isize {
        let Some(read) = self.reads() else { return -(MISSING.code as isize) };
        let (Ok(at), Ok(to)) = (i64::try_from(at), usize::try_from(to)) else {
            return -5022;
        };
        let file = ptr::with_exposed_provenance_mut(file.0);
        // SAFETY: the file is registered, and `gds` has held the range against the memory of the GPU that it names. The
        // library reads the address as one of the GPU.
        unsafe { read(file, ptr::with_exposed_provenance_mut(to), len, at, 0) }
    }
}
