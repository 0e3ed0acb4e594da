//! Reads of files into the memory of a device: a library that tests play, with the interface of NVIDIA's, loaded as that is.
//! It is compiled for each way to behave.

#![allow(clippy::disallowed_methods, reason = "the library takes descriptors of the system")]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_base::ErrorKind;
use lithify_engine_gpu::cufile::CuFile;
use lithify_engine_gpu::device::{Memory, Queue};
use lithify_engine_gpu::gds::{Gds, GdsFile, Inlet, NoGds, Registered, Status};
use lithify_engine_gpu::{Device, Emu};
use lithify_env::sync::Mutex;

/// A library played in this process, for what one that is loaded can't be asked.
#[derive(Default)]
struct Played(Mutex<Vec<String>>);

impl Inlet for &'static Played {
    fn is_there(&self) -> bool {
        true
    }
    fn open(&self) -> Result<(), Status> {
        Ok(())
    }
    fn close(&self) {
        self.0.lock().push("close".to_owned());
    }
    fn register(&self, _: std::os::fd::BorrowedFd<'_>) -> Result<Registered, Status> {
        Ok(Registered(7))
    }
    fn deregister(&self, file: Registered) {
        self.0.lock().push(format!("deregister {}", file.0));
    }
    fn read(&self, file: Registered, at: u64, len: usize, to: u64) -> isize {
        self.0.lock().push(format!("read {} {at} {len} {to}", file.0));
        len.min(100) as isize
    }
}

fn content(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * i / 7 + i) as u8).collect()
}

fn memory(emu: &mut Emu, bytes: u64) -> Memory {
    emu.alloc(bytes).unwrap()
}

fn bytes_of(emu: &mut Emu, memory: &Memory) -> Vec<u8> {
    let n = memory.bytes as usize;
    let arena = emu.arena(n).unwrap();
    emu.download(Queue::Down, memory.address, &arena, 0..n).unwrap();
    emu.bytes(&arena).unwrap().to_vec()
}

/// Reads go on where they are short, lie where they should, and everything is let go of in order.
#[test]
fn short_reads_go_on() {
    let played: &'static Played = Box::leak(Box::default());
    let gds = Gds::open(played).unwrap();
    let file = gds.file(File::open("/dev/null").unwrap().into()).unwrap();
    let of = Memory { address: 4096, bytes: 400 };
    file.read(10, &of, 50..300).unwrap();
    file.read(0, &of, 400..400).unwrap();
    for beyond in [0..401, 401..402, Range { start: 9, end: 5 }] {
        let error = file.read(0, &of, beyond).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    drop(gds);
    drop(file);
    let due = [
        "read 7 10 250 4146",
        "read 7 110 150 4246",
        "read 7 210 50 4346",
        "deregister 7",
        "close",
    ];
    assert_eq!(*played.0.lock(), due);
}

#[test]
fn no_library_is_a_reason() {
    let Err(why) = Gds::open(CuFile::at(Path::new("/nowhere/libcufile.so"))) else {
        panic!("it opened")
    };
    assert_eq!(why, NoGds::NoLibrary);
    assert!(why.to_string().contains("no library"), "{why}");
    // A library, and not this one.
    let Err(why) = Gds::open(CuFile::at(Path::new("libm.so.6"))) else { panic!("it opened") };
    assert_eq!(why, NoGds::NoLibrary);
}

/// The library of `cufile_stub.c` that behaves so.
fn stub(folder: &Path, how: &str) -> PathBuf {
    let to = folder.join(format!("libcufile_{how}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/cufile_stub.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wall", "-Werror"]).arg(format!("-DHOW=\"{how}\""));
    let done = compiler.arg("-o").arg(&to).arg(source).status();
    assert!(done.expect("the feature emu needs a compiler").success());
    to
}

/// In each mode of the library: what is read is what the file holds, or an error says which call failed, and why.
#[test]
fn whatever_the_library_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let data = content(10_000);
    std::fs::write(&path, &data).unwrap();
    let mut emu = Emu::new(1);
    let memory = memory(&mut emu, 8_000);
    let mode = |mode: &str| Gds::open(CuFile::at(&stub(folder.path(), mode)));
    let file = |gds: &Gds<CuFile>| gds.file(File::open(&path).unwrap().into());
    for kind in ["usual", "short", "open"] {
        let gds = mode(kind).unwrap_or_else(|why| panic!("{kind}: {why}"));
        let file = file(&gds).unwrap();
        for (at, part) in [(0u64, 0u64..8_000), (1_234, 17..7_001), (9_999, 5..6)] {
            let before = bytes_of(&mut emu, &memory);
            file.read(at, &memory, part.clone()).unwrap();
            let after = bytes_of(&mut emu, &memory);
            let (from, to) = (part.start as usize, part.end as usize);
            assert_eq!(after[from..to], data[at as usize..][..to - from], "{kind}");
            assert_eq!((&after[..from], &after[to..]), (&before[..from], &before[to..]), "{kind}");
        }
        let beyond = file.read(5_000, &memory, 0..6_000).unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::Corruption, "{kind}: {beyond}");
    }
    for (kind, code, said) in [("closed", 5010, "kernel module"), ("cuda", 5011, "CUDA error 201")]
    {
        let Err(why) = mode(kind) else { panic!("{kind}: it opened") };
        assert!(matches!(why, NoGds::Unusable(Status { code: of, .. }) if of == code), "{why}");
        assert!(why.to_string().contains(said), "{why}");
    }
    let refused = file(&mode("refuses").unwrap()).err().expect("it is refused");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("file system is not supported"), "{refused}");
    let read = |kind: &str| {
        let of: GdsFile<CuFile> = file(&mode(kind).unwrap()).unwrap();
        of.read(0, &memory, 0..8_000).unwrap_err()
    };
    for (kind, of, said) in [
        ("fails", ErrorKind::Internal, "internal error (5030)"),
        ("system", ErrorKind::Io, "could not read"),
        ("more", ErrorKind::Internal, "more than it was asked for"),
    ] {
        let error = read(kind);
        assert_eq!(error.kind(), of, "{kind}: {error}");
        assert!(error.to_string().contains(said), "{kind}: {error}");
    }
}
