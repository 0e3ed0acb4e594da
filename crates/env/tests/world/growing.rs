//! Files that grow and are written through a mapping have what a call for each write gives them, whatever becomes of them
//! (reliability F6).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::path::Path;
use std::process::Command;

use lithify_env::{FileRef, Fs, OpenOpts, PosixFs, Random, write_all_at};

/// How much longer a file is than what was written to it, at most, in bytes.
const STEP: u64 = 1 << 20;

fn grown(path: &Path) -> FileRef {
    PosixFs::new().create(path, OpenOpts::write().mapped()).unwrap()
}

fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.ends_with(path.to_str().unwrap()))
}

/// The file has `expected`, and zeros behind that, and not many.
fn has(path: &Path, expected: &[u8]) {
    let content = std::fs::read(path).unwrap();
    let (front, zeros) = content.split_at(expected.len());
    assert!(front == expected, "{} bytes", expected.len());
    assert!(zeros.iter().all(|byte| *byte == 0) && zeros.len() as u64 <= STEP, "{}", zeros.len());
}

#[test]
fn a_growing_file_has_what_was_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("log");
    let file = grown(&path);
    let mut random = Random::from_seed(3);
    let mut expected = Vec::new();
    let mut mapped = 0;
    for round in 0..4000 {
        // Now and then more than is copied, and once a byte that is written anew.
        let most = if random.below(50) == 0 { 200_000 } else { 3000 };
        let mut bytes = vec![0; random.below(most) as usize];
        random.fill(&mut bytes);
        let at = expected.len() - usize::from(random.below(100) == 0).min(expected.len());
        write_all_at(&*file, &bytes, at as u64).unwrap();
        expected.truncate(at);
        expected.extend_from_slice(&bytes);
        if round % 500 == 0 {
            file.sync_data().unwrap();
            has(&path, &expected);
            mapped += usize::from(is_mapped(&path));
        }
        if round % 700 == 0 {
            let cut = expected.len() * 9 / 10;
            expected.truncate(cut);
            file.set_len(cut as u64).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), cut as u64);
        }
    }
    assert!(mapped > 4, "{mapped}");
    has(&path, &expected);
    file.set_len(expected.len() as u64).unwrap();
    assert!(std::fs::read(&path).unwrap() == expected);
    drop(file);
    assert!(!is_mapped(&path));
}

/// A file that another program cuts: a write makes it as long as a call would.
#[test]
fn a_growing_file_may_be_cut_under_its_writer() {
    let scratch = tempfile::tempdir().unwrap();
    for left in [0, 1, 5000, 70_000] {
        let path = scratch.path().join(left.to_string());
        let file = grown(&path);
        write_all_at(&*file, &vec![7; 30_000], 0).unwrap();
        write_all_at(&*file, &vec![8; 30_000], 30_000).unwrap();
        let mut expected = [[7; 30_000], [8; 30_000]].concat();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
        expected[(left as usize).min(60_000)..].fill(0);
        write_all_at(&*file, &vec![9; 30_000], 60_000).unwrap();
        expected.extend_from_slice(&[9; 30_000]);
        assert!(std::fs::read(&path).unwrap()[..90_000] == expected, "{left}");
        assert!(!is_mapped(&path), "{left}: what failed is not tried again");
    }
}

/// A disk that is really full: the write says so, what was written before is there, and when there is room writing goes on.
#[test]
fn a_full_disk_is_an_error_of_the_write() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "lithify-test"])
        .arg(place)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mounting a tmpfs needs root");
        return;
    }
    let full = || {
        let path = place.join("log");
        let file = grown(&path);
        let mut expected = Vec::new();
        let error = loop {
            match write_all_at(&*file, &[expected.len() as u8 | 1; 1000], expected.len() as u64) {
                Ok(()) => expected.extend_from_slice(&[expected.len() as u8 | 1; 1000]),
                Err(e) => break e,
            }
        };
        assert!(error.is_no_space(), "{error}");
        assert!(expected.len() > 1_500_000, "{}", expected.len());
        assert!(std::fs::read(&path).unwrap()[..expected.len()] == expected);
        file.set_len(expected.len() as u64 / 2).unwrap();
        expected.truncate(expected.len() / 2);
        write_all_at(&*file, b"more", expected.len() as u64).unwrap();
        expected.extend_from_slice(b"more");
        file.sync_data().unwrap();
        has(&path, &expected);
    };
    let result = std::panic::catch_unwind(full);
    let unmounted = Command::new("umount").arg(place).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    result.unwrap();
}

/// A process whose files may not grow beyond a size: up to there all goes well, and no signal ends it before.
#[test]
fn a_limit_of_file_sizes_is_not_run_into_early() {
    const NAME: &str = "growing::a_limit_of_file_sizes_is_not_run_into_early";
    let bytes = [7; 1000];
    if let Some(path) = std::env::var_os("LITHIFY_GROWING") {
        let path = Path::new(&path);
        let file = grown(path);
        for n in 0..1500 {
            write_all_at(&*file, &bytes, n * 1000).unwrap();
        }
        assert!(!is_mapped(path));
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("log");
    // In blocks of 1024 bytes: a file that is a step longer would go beyond, and all that is written does not.
    let command = format!(
        "ulimit -f 1500; exec {} {NAME} --exact",
        std::env::current_exe().unwrap().display()
    );
    let status = Command::new("bash")
        .args(["-c", &command])
        .env("LITHIFY_GROWING", &path)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
    has(&path, &bytes.repeat(1500));
}

/// What was copied is the system's: a process that is killed loses none of it.
#[test]
fn what_was_copied_outlives_the_process() {
    const NAME: &str = "growing::what_was_copied_outlives_the_process";
    if let Some(path) = std::env::var_os("LITHIFY_GROWING") {
        let file = grown(Path::new(&path));
        for n in 0..100_000u64 {
            write_all_at(&*file, &(n + 1).to_le_bytes(), n * 8).unwrap();
        }
        assert!(is_mapped(Path::new(&path)));
        std::process::abort();
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("log");
    let status = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact"])
        .env("LITHIFY_GROWING", &path)
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .status();
    assert!(!status.unwrap().success());
    let expected: Vec<u8> = (1..=100_000u64).flat_map(u64::to_le_bytes).collect();
    has(&path, &expected);
}

/// Of what was written little stays counted as the process's own.
#[test]
fn pages_that_were_written_are_let_go_of() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("log");
    let file = grown(&path);
    let bytes = [7; 1000];
    for n in 0..100_000 {
        write_all_at(&*file, &bytes, n * 1000).unwrap();
    }
    // The figures of one mapping follow the line that names its file.
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(path.to_str().unwrap()));
    let rss = of_file.clone().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let kib: u64 = rss.trim().trim_end_matches(" kB").parse().unwrap();
    assert!((1..=2 << 10).contains(&kib), "{kib} KiB");
    has(&path, &bytes.repeat(100_000));
}
