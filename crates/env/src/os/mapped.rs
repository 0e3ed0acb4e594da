//! Files read out of a mapping, and files that grow written through one, in place of a system call for each read or write.
//!
//! Where the device fails to give a page of a mapped file, or the file was cut before it, the system sends the thread that
//! looks there a SIGBUS, which ends a process that is not prepared for it. This one is: a handler finds out whether the address
//! is in one of the mappings here. If so it marks the mapping as broken and puts zeros in the place of all of it, so that the
//! copy under way ends; the thread that copies sees the mark and asks the file instead, by a call that says what is wrong. A full
//! disk is the same to a thread that writes: there is no page for its bytes. Every other SIGBUS goes on to whatever was
//! installed before, as if this handler were not there.
//!
//! Keeps: no reference to a mapping is ever made, bytes are copied out of it or into it; what was copied while a mapping broke
//! does not count; a mapping is not given back while a copy is under way. The handler takes no
//! lock, allocates nothing and touches nothing but atomics that are never given back, so it may run at any moment, in a forked
//! child as well. At most [`MAPPINGS_MAX`] files are mapped at once, a quarter of what Linux lets a process have by default: the
//! program needs some for its memory and its threads.
//!
//! Where the handler would not run no mapping is used: in a thread that holds SIGBUS back, and for a file that is opened when
//! another handler has been installed over this one. A program that installs one later, over files that are mapped
//! already, must hand on to this one what it does not know, as it must for every library.
//!
//! ```text
//!   reader                                      handler, in the same thread
//!   copy byte 5000 of a file cut to 100   ->    the address is in slot 3: broken = true
//!                                               zeros over all of slot 3's mapping
//!   the copy goes on, with zeros          <-
//!   slot 3 is broken: the copy is dropped,
//!   `pread` says that the file has ended
//! ```

mod growing;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
// The standard library's, also under a model checker: a signal handler is no thread of a model.
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

pub(super) use growing::Growing;

/// Most files that are mapped at once.
const MAPPINGS_MAX: usize = 16 << 10;
/// More at a time is left to the system: it copies as fast, reads ahead of what is read, and looks pages up together.
const COPIED_MAX: usize = 32 << 10;
/// Slots that one word tells the state of.
const BITS: usize = u64::BITS as usize;

/// Where a mapping lies, as the handler sees it.
struct Slot {
    /// Odd while the two numbers below are being changed. No copy is under way then, so the handler, which looks for the mapping
    /// of one, passes over such a slot.
    version: AtomicUsize,
    start: AtomicUsize,
    /// 0 for no mapping.
    len: AtomicUsize,
    /// A page could not be read: what the mapping shows is not what the file has.
    broken: AtomicBool,
}

static SLOTS: [Slot; MAPPINGS_MAX] = [const { Slot::empty() }; MAPPINGS_MAX];
/// A bit for each slot: whether a file has it.
static TAKEN: [AtomicU64; MAPPINGS_MAX / BITS] = [const { AtomicU64::new(0) }; MAPPINGS_MAX / BITS];

impl Slot {
    const fn empty() -> Self {
        Self {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// The number of a slot that is now the caller's; `None` if all are taken.
    fn take() -> Option<usize> {
        for (at, word) in TAKEN.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = (!taken).trailing_zeros();
                let with = taken | 1 << bit;
                // Acquire: what its last owner did to it comes before.
                match word.compare_exchange_weak(taken, with, Ordering::Acquire, Ordering::Relaxed)
                {
                    Ok(_) => return Some(at * BITS + bit as usize),
                    Err(now) => taken = now,
                }
            }
        }
        None
    }

    /// Gives back a slot that was taken, and shows no mapping.
    fn give_back(number: usize) {
        TAKEN[number / BITS].fetch_and(!(1 << (number % BITS)), Ordering::Release);
    }

    /// Shows a mapping, or none (`len` 0). Only the slot's owner changes it.
    fn show(&self, start: usize, len: usize) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The mapping that is shown, if it has `address`. Never waits.
    fn holding(&self, address: usize) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        let len = self.len.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        (whole && address.wrapping_sub(start) < len).then_some((start, len))
    }

    /// The slot with the mapping that has `address`.
    fn find(address: usize) -> Option<(&'static Slot, usize, usize)> {
        for (at, word) in TAKEN.iter().enumerate() {
            let mut taken = word.load(Ordering::Acquire);
            while taken != 0 {
                let number = at * BITS + taken.trailing_zeros() as usize;
                taken &= taken - 1;
                if let Some((start, len)) = SLOTS[number].holding(address) {
                    return Some((&SLOTS[number], start, len));
                }
            }
        }
        None
    }
}

/// A part of a file.
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    slot: usize,
    /// What of it [`READ`] counts.
    counted: u64,
}

/// Bytes that are mapped to be read.
static READ: AtomicU64 = AtomicU64::new(0);

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; what changes is in atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file to read them; `None` if there are none, if more than `most` bytes would be mapped to
    /// be read, if the system refuses, or if a failed page would end the process.
    pub(super) fn of(file: BorrowedFd<'_>, len: u64, most: u64) -> Option<Mapping> {
        let with = |mapped: u64| mapped.checked_add(len).filter(|with| *with <= most);
        READ.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).ok()?;
        let short = usize::try_from(len).ok();
        match short.and_then(|len| Mapping::map(file, 0, len, ProtFlags::READ)) {
            Some(mut mapping) => {
                mapping.counted = len;
                Some(mapping)
            }
            None => {
                READ.fetch_sub(len, Ordering::Relaxed);
                None
            }
        }
    }

    /// Maps `len` bytes from `start`, the beginning of a page.
    fn map(file: BorrowedFd<'_>, start: u64, len: usize, access: ProtFlags) -> Option<Mapping> {
        if !(1..=isize::MAX as usize).contains(&len) || !is_guarded() {
            return None;
        }
        let slot = Slot::take()?;
        // SAFETY: a fresh mapping at an address the system picks touches no other memory.
        let base = unsafe { mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, start) };
        let Some(base) = base.ok().and_then(|base| NonNull::new(base.cast::<u8>())) else {
            Slot::give_back(slot);
            return None;
        };
        SLOTS[slot].broken.store(false, Ordering::Relaxed);
        SLOTS[slot].show(base.as_ptr().expose_provenance(), len);
        Some(Mapping { base, len, slot, counted: 0 })
    }

    /// Fills `buf` from `offset`. False if that has to be asked of the file itself, and `buf` may have anything in it then: the
    /// range is not all in the mapping, or long, or what the mapping shows is not what the file has.
    #[inline]
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        let inside = offset.checked_add(buf.len()).is_some_and(|end| end <= self.len);
        let broken = &SLOTS[self.slot].broken;
        if !inside || buf.len() > COPIED_MAX || broken.load(Ordering::Relaxed) || !is_heard() {
            return false;
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self`; `buf` is memory of its own. A page that fails
        // leads to the handler, by which there are zeros to copy.
        unsafe {
            ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), buf.as_mut_ptr(), buf.len())
        };
        // The mark was made before the zeros were put there, by whichever thread. Who copied zeros sees it.
        fence(Ordering::Acquire);
        !broken.load(Ordering::Relaxed)
    }
}

impl Mapping {
    /// Puts `bytes` at `at`, in the mapping; false if what was put there may not be in the file.
    #[inline]
    fn write(&self, bytes: &[u8], at: usize) -> bool {
        assert!(at <= self.len && bytes.len() <= self.len - at, "the range is in the mapping");
        let broken = &SLOTS[self.slot].broken;
        if broken.load(Ordering::Relaxed) || !is_heard() {
            return false;
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self` and was made to be written; `bytes` is memory of
        // its own. A page that fails leads to the handler, by which there is memory in its place.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len())
        };
        // As for a read.
        fence(Ordering::Acquire);
        !broken.load(Ordering::Relaxed)
    }

    /// Lets go of the pages of a range: they are mapped anew when they are looked at.
    fn leave(&self, at: usize, len: usize) {
        assert!(at <= self.len && len <= self.len - at, "the range is in the mapping");
        // SAFETY: the range lies in the mapping, to which no reference is ever made. Of a shared mapping the pages stay the file's
        // with what is in them; of zeros that were put in its place nothing counts.
        let _ = unsafe { madvise(self.base.as_ptr().add(at).cast(), len, Advice::LinuxDontNeed) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In this order: an address that is given back may be another's at once, and a slot another mapping's.
        SLOTS[self.slot].show(0, 0);
        // SAFETY: exactly this range was mapped, or replaced by zeros, and no copy is under way. A failure leaks it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        Slot::give_back(self.slot);
        READ.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

thread_local! {
    /// Whether this thread can be sent a SIGBUS; `None` before its first read.
    static HEARD: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this thread can be sent a SIGBUS: the system ends a process where a thread that holds it back meets one. Asked once,
/// as threads that hold signals back are made so.
#[inline]
fn is_heard() -> bool {
    HEARD.get().unwrap_or_else(|| {
        let heard = !holds_back(libc::SIGBUS);
        HEARD.set(Some(heard));
        heard
    })
}

/// Whether this thread holds `signal` back, as far as that can be told.
#[cold]
fn holds_back(signal: c_int) -> bool {
    // SAFETY: an empty set of signals is all zeros, and the system fills it in.
    unsafe {
        let mut held: libc::sigset_t = std::mem::zeroed();
        let asked = libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut held);
        asked != 0 || libc::sigismember(&held, signal) != 0
    }
}

/// What was installed for SIGBUS before the handler here; never given back, as the handler may be reading it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// The handler here, as the system knows it.
fn own() -> libc::sighandler_t {
    on_sigbus as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as libc::sighandler_t
}

/// Whether the handler here is the one that the system calls; installs it if that is so by no one's choice. Over a handler
/// that was installed over this one it is not installed again: the two would hand on to each other for ever.
fn is_guarded() -> bool {
    let Some(now) = installed() else { return false };
    if now.sa_sigaction == own() {
        return true;
    }
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: what is stored there is never given back.
    let again =
        unsafe { before.as_ref() }.is_none_or(|before| before.sa_sigaction == now.sa_sigaction);
    if !again && !is_none(&now) {
        return false;
    }
    // Two threads that come here at once do the same twice.
    BEFORE.store(Box::into_raw(Box::new(now)), Ordering::Release);
    match install(&guard_over(now)) {
        // Put there since the look above.
        Some(other) if ![own(), now.sa_sigaction].contains(&other.sa_sigaction) => {
            BEFORE.store(Box::into_raw(Box::new(other)), Ordering::Release);
            true
        }
        replaced => replaced.is_some(),
    }
}

/// The handler here in the place of `before`, which finds all as it would without: the mask, the stack, and whether calls
/// that were interrupted go on.
fn guard_over(before: libc::sigaction) -> libc::sigaction {
    let kept = match is_none(&before) {
        // A stack of a thread may be small, or full.
        true => libc::SA_ONSTACK | libc::SA_RESTART,
        false => before.sa_flags & (libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER),
    };
    libc::sigaction { sa_sigaction: own(), sa_flags: libc::SA_SIGINFO | kept, ..before }
}

/// Whether this is what the system does by itself.
fn is_none(action: &libc::sigaction) -> bool {
    [libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
}

/// What is installed for SIGBUS.
fn installed() -> Option<libc::sigaction> {
    // SAFETY: all zeros is an action, and the system fills it in.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGBUS, ptr::null(), &mut now) == 0).then_some(now)
    }
}

/// Installs an action for SIGBUS; the one that was there, or `None` if the system refuses. May be called by a handler.
fn install(action: &libc::sigaction) -> Option<libc::sigaction> {
    // SAFETY: the action is one that the system gave, or the handler here, which is prepared to run at any moment. All zeros is
    // an action, and the system fills it in.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGBUS, action, &mut before) == 0).then_some(before)
    }
}

/// Runs where a thread looked at a page that is not there, or when a program sends a SIGBUS.
extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes what belongs to the signal. The address is one where the code is the system's own.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // Sent by a program; or the system tells of a page that went bad while no one looked at it.
    let unasked = code <= 0 || code == libc::BUS_MCEERR_AO;
    if code > 0
        && let Some((slot, start, len)) = Slot::find(address)
    {
        slot.broken.store(true, Ordering::SeqCst);
        // A page that no one looks at needs no zeros, and without a reader its mapping may go at any moment.
        if unasked || blank(start, len) {
            return;
        }
    }
    hand_on(signal, info, context, unasked);
}

/// Puts zeros in the place of a mapping that a thread is copying from or to; false if the system refuses. All of it, as no other
/// page of it is of use, and a mapping in three pieces counts three times. What was copied to other pages of it stays in the file.
fn blank(start: usize, len: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let start = ptr::with_exposed_provenance_mut(start);
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the range is a mapping of this module's, to which no reference is ever made, and the thread that copies
    // keeps it from being given back. The call is the system's, without any lock or memory of a library.
    unsafe { mmap_anonymous(start, len, access, flags) }.is_ok()
}

/// Does with a SIGBUS what would be done without the handler here.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, unasked: bool) {
    // SAFETY: stored before the handler was installed, and never given back.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    if before.sa_sigaction == libc::SIG_IGN && unasked {
        return;
    }
    if is_none(before) {
        // The access is made again, and meets what the system does.
        install(before);
        if unasked {
            // There is no access. The signal comes when this handler returns.
            // SAFETY: a plain call, which handlers may make.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    if before.sa_flags & libc::SA_RESETHAND != 0 {
        // It was to run once.
        install(&libc::sigaction { sa_sigaction: libc::SIG_DFL, ..*before });
    }
    // SAFETY: the flags tell which of the two the address is, and it was installed for this signal.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            type WithFacts = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            std::mem::transmute::<usize, WithFacts>(before.sa_sigaction)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(before.sa_sigaction)(signal);
        }
    }
}

#[cfg(test)]
mod tests;
