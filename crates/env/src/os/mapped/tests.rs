//! What becomes of a SIGBUS. Each case is a process of its own, as most of them end it.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicPtr;

use super::*;
use crate::fs::{File, FileRef, Fs, OpenOpts, read_full_at};
use crate::os::posix::PosixFs;

/// Tells a child its case and its directory.
const CASE: &str = "LITHIFY_TEST_SIGBUS";
const PLACE: &str = "LITHIFY_TEST_SIGBUS_PLACE";
/// How a child ends that lived through its case.
const LIVED: i32 = 20;
/// How one ends in a handler of its own.
const HANDLED: i32 = 30;
const PAGES: usize = 8 * 4096;

type Case = (&'static str, fn(&Path), Ended);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Code(i32),
    Signal(i32),
}

const CASES: &[Case] = &[
    ("a file that was cut", a_file_that_was_cut, Ended::Code(LIVED)),
    ("a cut file in a forked child", a_cut_file_in_a_forked_child, Ended::Code(LIVED)),
    ("a thread that holds the signal back", a_thread_that_holds_it_back, Ended::Code(LIVED)),
    ("a mapping of the program's own", a_mapping_of_its_own, Ended::Signal(libc::SIGBUS)),
    ("the same where it was ignored", an_ignored_fault, Ended::Signal(libc::SIGBUS)),
    ("a signal that is sent", a_signal_that_is_sent, Ended::Signal(libc::SIGBUS)),
    ("the same where it was ignored ", an_ignored_signal, Ended::Code(LIVED)),
    ("a handler from before", a_handler_from_before, Ended::Code(HANDLED)),
    ("a plain handler from before", a_plain_handler_from_before, Ended::Code(HANDLED)),
    ("a handler for one signal", a_handler_for_one_signal, Ended::Signal(libc::SIGBUS)),
    ("a handler from afterwards", a_handler_from_afterwards, Ended::Code(LIVED)),
    ("a default that was restored", a_default_that_was_restored, Ended::Code(LIVED)),
];

#[test]
fn each_signal_ends_where_it_would_and_those_of_mappings_nowhere() {
    if let Ok(case) = std::env::var(CASE) {
        let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
        CASES[case.parse::<usize>().unwrap()].1(&place);
        std::process::exit(LIVED);
    }
    for (number, (name, _, ended)) in CASES.iter().enumerate() {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let this =
            "os::mapped::tests::each_signal_ends_where_it_would_and_those_of_mappings_nowhere";
        child.args(["--exact", this, "--nocapture"]).env(CASE, number.to_string());
        let output = child.env(PLACE, scratch.path()).output().unwrap();
        let seen = match output.status.code() {
            Some(code) => Ended::Code(code),
            None => Ended::Signal(output.status.signal().unwrap()),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(seen, *ended, "{name}: {said}");
    }
}

/// A file of sevens.
fn sevens(place: &Path, name: &str) -> PathBuf {
    let path = place.join(name);
    std::fs::write(&path, [7; PAGES]).unwrap();
    path
}

fn cut(path: &Path) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(4096).unwrap();
}

fn mapped(path: &Path) -> FileRef {
    PosixFs::new().open(path, OpenOpts::read().mapped()).unwrap()
}

/// Whether a file is mapped into this process.
fn is_mapped(path: &Path) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap())
}

/// The file was cut behind its first page: what was there is an end.
fn ends_early(file: &dyn File) -> bool {
    let mut buf = [1; PAGES / 4];
    let first = read_full_at(file, &mut buf, 0).unwrap();
    let behind = file.read_at(&mut buf, 5000).unwrap();
    (first, behind) == (4096, 0)
}

/// Looks at a page that is not there, through a mapping of the test's own.
fn fault(place: &Path) -> ! {
    let path = sevens(place, "own");
    let file = std::fs::File::open(&path).unwrap();
    // SAFETY: a fresh mapping, of which no reference is made.
    let base = unsafe {
        mmap(ptr::null_mut(), PAGES, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0).unwrap()
    };
    cut(&path);
    EXPECTED.store(base.cast::<u8>().wrapping_add(4096 + 8), Ordering::Relaxed);
    // SAFETY: the address lies in the mapping; what the look leads to is the case.
    unsafe { ptr::read_volatile(EXPECTED.load(Ordering::Relaxed)) };
    unreachable!("the page is there");
}

/// Where the test's own access is.
static EXPECTED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Installs what a program might have.
fn act(handler: libc::sighandler_t, flags: c_int) {
    // SAFETY: an action of all zeros but for its handler, which is one of this file's.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        assert_eq!(libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()), 0);
    }
}

fn send() {
    // SAFETY: a plain call.
    unsafe { libc::raise(libc::SIGBUS) };
}

extern "C" fn ends(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: what the system passes; ending at once is allowed in a handler.
    unsafe {
        let told =
            (*info).si_addr().cast() == EXPECTED.load(Ordering::Relaxed) && !context.is_null();
        libc::_exit(if told { HANDLED } else { 1 })
    }
}

extern "C" fn ends_plainly(signal: c_int) {
    // SAFETY: ending at once is allowed in a handler.
    unsafe { libc::_exit(if signal == libc::SIGBUS { HANDLED } else { 1 }) }
}

/// Runs once: the second time it ends in another way than by the signal.
extern "C" fn returns_once(_: c_int) {
    static CALLED: AtomicBool = AtomicBool::new(false);
    if CALLED.swap(true, Ordering::Relaxed) {
        // SAFETY: as above.
        unsafe { libc::_exit(1) }
    }
}

fn address(handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)) -> libc::sighandler_t {
    handler as libc::sighandler_t
}

fn plain_address(handler: extern "C" fn(c_int)) -> libc::sighandler_t {
    handler as libc::sighandler_t
}

fn a_file_that_was_cut(place: &Path) {
    let path = sevens(place, "cut");
    let file = mapped(&path);
    assert!(is_mapped(&path));
    cut(&path);
    assert!(ends_early(&*file));
    // The handler is there for the next one, whatever became of this one.
    let path = sevens(place, "next");
    let next = mapped(&path);
    assert!(is_mapped(&path));
    cut(&path);
    assert!(ends_early(&*next) && ends_early(&*file));
}

fn a_cut_file_in_a_forked_child(place: &Path) {
    let path = sevens(place, "cut");
    let file = mapped(&path);
    cut(&path);
    // SAFETY: the child calls nothing that needs another thread, and ends without unwinding.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(if ends_early(&*file) { LIVED } else { 1 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == LIVED);
    }
    assert!(ends_early(&*file), "the parent has its own");
}

fn a_thread_that_holds_it_back(place: &Path) {
    let path = sevens(place, "cut");
    let file = mapped(&path);
    assert!(is_mapped(&path));
    cut(&path);
    let held = std::thread::spawn(move || {
        // SAFETY: a set of signals of this thread.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, ptr::null_mut());
        }
        ends_early(&*file)
    });
    assert!(held.join().unwrap());
}

fn a_mapping_of_its_own(place: &Path) {
    let _file = mapped(&sevens(place, "file"));
    fault(place);
}

fn an_ignored_fault(place: &Path) {
    act(libc::SIG_IGN, 0);
    let _file = mapped(&sevens(place, "file"));
    fault(place);
}

fn a_signal_that_is_sent(place: &Path) {
    act(libc::SIG_DFL, 0);
    let path = sevens(place, "file");
    let _file = mapped(&path);
    assert!(is_mapped(&path));
    send();
}

fn an_ignored_signal(place: &Path) {
    act(libc::SIG_IGN, 0);
    let path = sevens(place, "file");
    let file = mapped(&path);
    send();
    send();
    cut(&path);
    assert!(ends_early(&*file), "the handler is still there");
}

fn a_handler_from_before(place: &Path) {
    act(address(ends), libc::SA_SIGINFO);
    let path = sevens(place, "file");
    let file = mapped(&path);
    cut(&path);
    assert!(ends_early(&*file), "what is ours is not handed on");
    fault(place);
}

fn a_plain_handler_from_before(place: &Path) {
    act(plain_address(ends_plainly), 0);
    let _file = mapped(&sevens(place, "file"));
    fault(place);
}

fn a_handler_for_one_signal(place: &Path) {
    act(plain_address(returns_once), libc::SA_RESETHAND);
    let _file = mapped(&sevens(place, "file"));
    fault(place);
}

/// It may hand on to the one here, which would hand on to it: the next file is not mapped.
fn a_handler_from_afterwards(place: &Path) {
    let _file = mapped(&sevens(place, "file"));
    act(plain_address(ends_plainly), 0);
    let path = sevens(place, "cut");
    let file = mapped(&path);
    assert!(!is_mapped(&path));
    cut(&path);
    assert!(ends_early(&*file));
}

fn a_default_that_was_restored(place: &Path) {
    let _file = mapped(&sevens(place, "file"));
    act(libc::SIG_DFL, 0);
    let path = sevens(place, "cut");
    let file = mapped(&path);
    assert!(is_mapped(&path));
    cut(&path);
    assert!(ends_early(&*file));
}

/// Slots that files had before, and files that come and go meanwhile, show no mapping that is not there.
#[test]
fn an_address_is_found_in_the_slot_that_has_it() {
    let slot = Slot::empty();
    slot.show(8192, 100);
    for (address, found) in [(8191, false), (8192, true), (8291, true), (8292, false), (0, false)] {
        assert_eq!(slot.holding(address).is_some(), found, "{address}");
    }
    slot.show(0, 0);
    assert!(slot.holding(8192).is_none() && slot.holding(0).is_none());
    slot.version.fetch_add(1, Ordering::Relaxed);
    slot.start.store(8192, Ordering::Relaxed);
    slot.len.store(100, Ordering::Relaxed);
    assert!(slot.holding(8192).is_none(), "it is being changed");
}
