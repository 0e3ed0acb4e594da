//! Files that are read out of a mapping give what they give without one, whatever becomes of them (reliability F9).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use lithify_env::{FileRef, Fs, Mapped, OpenOpts, PosixFs, Random, read_full_at};

const PAGE: usize = 4096;

fn open(path: &Path, opts: OpenOpts) -> FileRef {
    PosixFs::new().open(path, opts).unwrap()
}

/// A file of random bytes, none of them zero.
fn random_file(place: &Path, name: &str, len: usize) -> PathBuf {
    let mut bytes = vec![0; len];
    Random::from_seed(len as u64).fill(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte |= 1);
    let path = place.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// How often the file is mapped into this process.
fn mappings(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.ends_with(path.to_str().unwrap())).count()
}

fn cut(path: &Path, len: usize) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(len as u64).unwrap();
}

fn read(file: &FileRef, offset: u64, len: usize) -> Result<Vec<u8>, String> {
    let mut buf = vec![0; len];
    let count = file.read_at(&mut buf, offset).map_err(|e| e.to_string())?;
    buf.truncate(count);
    Ok(buf)
}

#[test]
fn a_mapped_file_reads_as_any_other() {
    let scratch = tempfile::tempdir().unwrap();
    let mut random = Random::from_seed(1);
    for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 300_000] {
        let path = random_file(scratch.path(), &len.to_string(), len);
        let mapped = open(&path, OpenOpts::read().mapped());
        assert_eq!(mappings(&path), usize::from(len > 0), "{len}");
        let plain = open(&path, OpenOpts::read());
        let ends = [0, 1, len / 2, len.saturating_sub(1), len, len + 1, len + PAGE];
        let counts = [0, 1, 100, PAGE, 32 << 10, (32 << 10) + 1, 400_000];
        let known = ends.iter().flat_map(|at| counts.iter().map(|count| (*at as u64, *count)));
        let far = [(u64::MAX, 1), (u64::MAX, 0), (i64::MAX as u64, 10), (1 << 63, 10)];
        let mut ranges: Vec<(u64, usize)> = known.chain(far).collect();
        let drawn = |_| (random.below(len as u64 + 10), random.below(40_000) as usize);
        ranges.extend((0..300).map(drawn));
        for (offset, count) in ranges {
            let (expected, got) = (read(&plain, offset, count), read(&mapped, offset, count));
            assert_eq!(expected, got, "{count} bytes at {offset} of {len}");
        }
        drop(mapped);
        assert_eq!(mappings(&path), 0, "{len}");
    }
}

#[test]
fn what_goes_past_the_page_cache_is_not_mapped() {
    let scratch = tempfile::tempdir().unwrap();
    let path = random_file(scratch.path(), "file", 3 * PAGE);
    for opts in [OpenOpts::write().direct(), OpenOpts::read().direct()] {
        let _file = open(&path, opts.mapped());
        assert_eq!(mappings(&path), 0, "{opts:?}");
    }
    let file = open(&path, OpenOpts::read().mapped());
    // What is appended later is read, too.
    std::fs::File::options().append(true).open(&path).unwrap().set_len(4 * PAGE as u64).unwrap();
    assert_eq!(read(&file, 3 * PAGE as u64 - 1, 10).unwrap().len(), 10);
}

/// What fits is mapped, up to half of the memory that there is, and stays so. Files with holes take none.
#[test]
fn files_are_mapped_while_they_fit() {
    let scratch = tempfile::tempdir().unwrap();
    let of = |name: &str, len: u64| {
        let path = scratch.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(len).unwrap();
        path
    };
    let if_it_fits = OpenOpts { mapped: Mapped::IfItFits, ..OpenOpts::read() };
    let small = of("small", 10 * PAGE as u64);
    let first = open(&small, if_it_fits);
    assert_eq!(mappings(&small), 1);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kib = memory.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    let beyond = of("beyond", kib << 10);
    let file = open(&beyond, if_it_fits);
    assert_eq!((mappings(&beyond), read(&file, kib << 9, 3).unwrap()), (0, vec![0; 3]));
    let second = open(&small, if_it_fits);
    assert_eq!(mappings(&small), 2, "what was refused counts for none");
    drop((second, file));
    // What a file takes that is mapped because it is asked for counts for others, until it is closed.
    let file = open(&beyond, OpenOpts::read().mapped());
    assert_eq!(mappings(&beyond), 1);
    let other = open(&small, if_it_fits);
    assert_eq!(mappings(&small), 1, "only the one that was there before");
    drop((file, other));
    let _third = open(&small, if_it_fits);
    assert_eq!(mappings(&small), 2);
    drop(first);
    assert_eq!(mappings(&small), 1);
}

#[test]
fn a_file_that_is_cut_under_its_readers_ends_for_all_of_them() {
    const PAGES: usize = 64;
    const LEFT: usize = 10 * PAGE;
    let scratch = tempfile::tempdir().unwrap();
    let path = random_file(scratch.path(), "file", PAGES * PAGE);
    let whole = std::fs::read(&path).unwrap();
    for round in 0..20 {
        std::fs::write(&path, &whole).unwrap();
        let file = open(&path, OpenOpts::read().mapped());
        assert_eq!(mappings(&path), 1, "round {round}");
        let start = Arc::new(Barrier::new(4));
        let readers: Vec<_> = (0..3u64)
            .map(|reader| {
                let (file, start, whole) = (file.clone(), start.clone(), whole.clone());
                std::thread::spawn(move || {
                    let mut random = Random::from_seed(round * 3 + reader);
                    start.wait();
                    for _ in 0..2000 {
                        let offset = random.below((PAGES * PAGE) as u64 - 8000) as usize;
                        let got = read(&file, offset as u64, 8000).unwrap();
                        // All that was there, or what is left; never anything else.
                        assert_eq!(got, whole[offset..offset + got.len()], "at {offset}");
                        let ended =
                            offset + got.len() == LEFT || (got.is_empty() && offset >= LEFT);
                        assert!(got.len() == 8000 || ended, "{} at {offset}", got.len());
                    }
                })
            })
            .collect();
        start.wait();
        cut(&path, LEFT);
        for reader in readers {
            reader.join().unwrap();
        }
        let mut rest = vec![0; PAGES * PAGE];
        assert_eq!(read_full_at(&*file, &mut rest, 0).unwrap(), LEFT);
        assert_eq!(rest[..LEFT], whole[..LEFT]);
    }
}

/// There is a slot for each of 16,384 mapped files, and each that is closed leaves its slot to the next.
#[test]
fn more_files_than_slots_are_mapped_one_after_the_other() {
    let scratch = tempfile::tempdir().unwrap();
    let path = random_file(scratch.path(), "file", 100);
    for _ in 0..17_000 {
        drop(open(&path, OpenOpts::read().mapped()));
    }
    let _file = open(&path, OpenOpts::read().mapped());
    assert_eq!(mappings(&path), 1);
}
