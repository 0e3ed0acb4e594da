//! Whole transfers over files that give short, interrupted and failing results; direct IO; and
//! transfers in the background (reliability F5).

use std::io::{Error, ErrorKind};
use std::path::Path;

use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    BufPool, Class, Fault, FaultFs, FileRef, Fs, IoBuf, MemFs, OpenOpts, OsRt, PosixFs, Random,
    RtOptions, SharedUrgency, read_exact_at, read_full_at, spawn_read, spawn_write, write_all_at,
};

fn pattern(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_seed(len as u64).fill(&mut bytes);
    bytes
}

/// A file whose reads and writes are cut short or interrupted at random.
fn flaky(seed: u64) -> FileRef {
    let random = Mutex::new(Random::from_seed(seed));
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let mut random = random.lock();
        match (op.name, random.below(3)) {
            ("read_at" | "write_at", 0) => Some(Error::from(ErrorKind::Interrupted).into()),
            ("read_at" | "write_at", 1) => Some(Fault::Short(1 + random.below(700) as usize)),
            _ => None,
        }
    });
    fs.create(Path::new("f"), OpenOpts::write()).unwrap()
}

#[test]
fn short_and_interrupted_calls_become_whole_transfers() {
    let bytes = pattern(20_000);
    for seed in 0..20 {
        let file = flaky(seed);
        write_all_at(&*file, &bytes, 37).unwrap();
        let mut back = vec![0; 20_000];
        read_exact_at(&*file, &mut back, 37).unwrap();
        assert!(back == bytes, "seed {seed}");
        let mut longer = vec![0; 30_000];
        assert_eq!(read_full_at(&*file, &mut longer, 37).unwrap(), 20_000);
        let error = read_exact_at(&*file, &mut longer, 37).unwrap_err();
        assert_eq!((error.op, error.kind()), ("read_at", ErrorKind::UnexpectedEof));
        assert_eq!(read_full_at(&*file, &mut longer, 1 << 40).unwrap(), 0);
    }
}

#[test]
fn every_failed_call_of_a_transfer_is_reported() {
    let bytes = pattern(1000);
    // Each write moves 100 bytes, so a transfer is 10 calls after the `create`.
    for nth in 1..=10 {
        let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| match op.name {
            "write_at" if op.index == nth => Some(Error::other("injected").into()),
            "write_at" => Some(Fault::Short(100)),
            _ => None,
        });
        let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
        let error = write_all_at(&*file, &bytes, 0).unwrap_err();
        assert_eq!(error.to_string(), "write_at \"f\": injected");
        assert_eq!(file.len().unwrap(), (nth - 1) * 100, "nothing after the failure");
    }
}

#[test]
fn a_file_without_progress_is_an_error_not_a_loop() {
    for stuck in [None, Some(ErrorKind::Interrupted)] {
        let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| match (op.name, stuck) {
            ("write_at", None) => Some(Fault::Short(0)),
            ("write_at" | "read_at", Some(kind)) => Some(Error::from(kind).into()),
            _ => None,
        });
        let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
        let kind = stuck.unwrap_or(ErrorKind::WriteZero);
        assert_eq!(write_all_at(&*file, b"x", 0).unwrap_err().kind(), kind);
        if stuck.is_some() {
            assert_eq!(read_full_at(&*file, &mut [0], 0).unwrap_err().kind(), kind);
        }
    }
}

#[test]
fn a_direct_file_keeps_its_true_length() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    let bytes = pattern(3 * 4096 + 123);
    let file = PosixFs::new().create(&path, OpenOpts::write().direct()).unwrap();
    let mut buf = IoBuf::from(&bytes[..]);
    buf.pad_to(file.alignment().max(512));
    write_all_at(&*file, &buf, 0).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.sync_data().unwrap();

    let file = PosixFs::new().open(&path, OpenOpts::read().direct()).unwrap();
    let mut back = IoBuf::with_capacity(1 << 16);
    back.set_len(1 << 16);
    let count = read_full_at(&*file, back.as_mut_slice(), 0).unwrap();
    assert!(back[..count] == bytes[..]);
    assert_eq!(read_full_at(&*file, &mut back[..4096], 3 * 4096).unwrap(), 123);
}

#[test]
fn a_short_direct_transfer_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let cuts = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&cuts);
    let fs = FaultFs::new(Arc::new(PosixFs::new()), move |op| match op.name {
        "read_at" | "write_at" if op.len > 4096 => {
            counter.fetch_add(1, Ordering::Relaxed);
            Some(Fault::Short(4096))
        }
        _ => None,
    });
    let path = scratch.path().join("f");
    let file = fs.create(&path, OpenOpts::write().direct()).unwrap();
    let bytes = IoBuf::from(&pattern(5 * 4096)[..]);
    write_all_at(&*file, &bytes, 4096).unwrap();
    let mut back = IoBuf::with_capacity(5 * 4096);
    back.set_len(5 * 4096);
    read_exact_at(&*file, &mut back, 4096).unwrap();
    assert!(back[..] == bytes[..]);
    assert_eq!(cuts.load(Ordering::Relaxed), 8);
}

fn rt() -> OsRt {
    OsRt::new(RtOptions { io_threads: 2, ..RtOptions::default() })
}

#[test]
fn background_transfers_loop_and_give_the_buffer_back() {
    let (rt, pool) = (rt(), BufPool::new(1 << 20));
    let file = flaky(3);
    let chunks: Vec<Vec<u8>> = (1..=8).map(|n| pattern(n * 1111)).collect();
    let writes: Vec<_> = chunks
        .iter()
        .enumerate()
        .map(|(n, chunk)| {
            let mut buf = pool.get(chunk.len());
            buf.extend_from_slice(chunk);
            spawn_write(&rt, &SharedUrgency::default(), Arc::clone(&file), buf, n as u64 * 10_000)
        })
        .collect();
    for (write, chunk) in writes.into_iter().zip(&chunks) {
        let (buf, result) = write.wait(&rt);
        assert_eq!((result.unwrap(), &buf[..]), (chunk.len(), &chunk[..]));
    }
    assert_eq!(pool.in_use(), 0);
    let last = spawn_read(
        &rt,
        &SharedUrgency::default(),
        Arc::clone(&file),
        pool.get(10_000),
        70_000,
        10_000,
    )
    .wait(&rt);
    assert_eq!(last.1.unwrap(), 8888);
    assert!(last.0[..] == chunks[7][..], "cut to what was there");
}

#[test]
fn background_transfers_report_failures() {
    let rt = rt();
    let fs = FaultFs::new(Arc::new(MemFs::new()), |op| match op.name {
        "read_at" => Some(Error::from(ErrorKind::PermissionDenied).into()),
        "write_at" => panic!("a broken file"),
        _ => None,
    });
    let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
    let read = spawn_read(&rt, &SharedUrgency::default(), Arc::clone(&file), IoBuf::new(), 0, 10)
        .wait(&rt);
    assert_eq!(read.1.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(read.0.is_empty(), "no byte of a failed read is shown");
    let write =
        spawn_write(&rt, &SharedUrgency::default(), file, IoBuf::from(&b"kept"[..]), 0).wait(&rt);
    assert_eq!(write.1.unwrap_err().to_string(), "write_at \"f\": a broken file");
    assert_eq!(&write.0[..], b"kept");
}

#[test]
fn a_runtime_that_stops_completes_its_transfers() {
    let rt = OsRt::new(RtOptions { io_threads: 1, ..RtOptions::default() });
    let fs = FaultFs::new(Arc::new(MemFs::new()), |op| {
        (op.name == "write_at").then(|| Error::from(ErrorKind::Interrupted).into())
    });
    let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
    let writes: Vec<_> = (0..50)
        .map(|_| {
            spawn_write(&rt, &SharedUrgency::default(), Arc::clone(&file), IoBuf::from(&[1][..]), 0)
        })
        .collect();
    assert_eq!(lithify_env::Rt::threads(&rt, Class::Io), 1);
    drop(rt);
    for write in writes {
        assert!(write.is_done() && write.take().1.is_err());
    }
}
