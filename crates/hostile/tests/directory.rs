//! Programs that make a directory hostile, and the guard over what is done to it: seeds that are kept,
//! random ones, and proofs that the guard sees what it is there for. All as root and as an ordinary
//! user, where the tests run as root (reliability F22).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test reads its seeds, and starts itself as another user"
)]

mod counting;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lithify_env::Random;
use lithify_hostile::directory;

/// Where the seeds are, if not in the repository.
const SEEDS: &str = "LITHIFY_DIRECTORY_SEEDS";
/// Set where a test starts its own program.
const CHILD: &str = "LITHIFY_DIRECTORY_CHILD";
/// Longest call, where a test waits for its end.
const SHORT: Duration = Duration::from_millis(500);
/// An ordinary user, who owns nothing.
const ORDINARY: u32 = 65_534;

/// Memory is counted for the process, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seeds() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/directory");
    let folder = std::env::var_os(SEEDS).map_or(own, PathBuf::from);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seeds", folder.display());
    files
}

/// A new process of this program for one test, as this user or as `user`.
fn again(test: &str, user: Option<u32>) -> Output {
    let scratch = std::env::temp_dir().join(format!("lithify-again-{}-{test}", std::process::id()));
    fs::create_dir_all(scratch.join("seeds")).unwrap();
    // Where an ordinary user may read.
    for path in seeds() {
        fs::copy(&path, scratch.join("seeds").join(path.file_name().unwrap())).unwrap();
    }
    let program = scratch.join("test");
    // By another process: a child that a test beside this one starts would inherit the file open for
    // writing, and what is open for writing can't be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    for open in [&scratch, &program, &scratch.join("seeds")] {
        fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["--exact", test, "--nocapture"]).current_dir(&scratch);
    command.env(CHILD, "1").env(SEEDS, scratch.join("seeds"));
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    fs::remove_dir_all(&scratch).unwrap();
    output
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs `test` again as an ordinary user, if this one is root.
fn also_as_ordinary(test: &str) {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if is_child() || !root {
        return;
    }
    let output = again(test, Some(ORDINARY));
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "as an ordinary user:\n{told}{said}");
    assert!(told.contains("1 passed"), "{told}");
}

#[test]
fn every_seed_passes() {
    let _alone = alone();
    for file in seeds() {
        println!("{}", file.display());
        directory::run(&fs::read(&file).unwrap());
    }
    directory::clean_up();
    also_as_ordinary("every_seed_passes");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The changes of a program: what, which entry, two figures. Each with all that the figures can mean.
fn single_changes() -> Vec<[u8; 4]> {
    const ENTRIES: u8 = 20;
    const NAMES: u8 = 48;
    // What, how many entries or things to add, and how many of each figure.
    let kinds = [
        (0, ENTRIES, NAMES, 1),
        (1, ENTRIES, 1, 1),
        (2, 10, NAMES, 1),
        (3, ENTRIES, 16, 1),
        (4, 16, NAMES, 3),
        (5, ENTRIES, 4, 1),
        (6, 4, NAMES, 3),
        (7, ENTRIES, 5, 1),
        (8, 5, NAMES, 3),
        (9, ENTRIES, 5, 1),
        (10, ENTRIES, 6, 1),
        (13, ENTRIES, 12, 16),
        (14, ENTRIES, ENTRIES, 1),
        (15, ENTRIES, 8, 1),
    ];
    let mut all = Vec::new();
    for (what, entries, first, second) in kinds {
        for which in 0..entries {
            let figures = (0..first).flat_map(|a| (0..second).map(move |b| (a, b)));
            all.extend(figures.map(|(a, b)| [what, which, a, b]));
        }
    }
    all
}

/// One operation on one image with one change of names, kinds or lengths: over a million programs, of
/// which the test runs one in 9,973; LITHIFY_STRIDE=1 runs all, from LITHIFY_FIRST on.
#[test]
fn single_changes_pass() {
    const IMAGES: usize = 8;
    const DEEDS: usize = 16;
    let _alone = alone();
    let changes = single_changes();
    let (first, stride) = (number("LITHIFY_FIRST"), number("LITHIFY_STRIDE"));
    let all = first.unwrap_or(0) as usize..changes.len() * IMAGES * DEEDS;
    for n in all.step_by(stride.unwrap_or(9_973) as usize) {
        let (image, deed) = (n % IMAGES, n / IMAGES % DEEDS);
        let mut program = vec![image as u8, 0, deed as u8, (n % 7) as u8];
        program.extend(changes[n / IMAGES / DEEDS]);
        directory::run(&program);
    }
    directory::clean_up();
    also_as_ordinary("single_changes_pass");
}

/// Short programs of one seed; `cargo xtask fuzz directory` looks at many more.
#[test]
fn random_programs_pass() {
    let _alone = alone();
    let seed = number("LITHIFY_SEED").unwrap_or(1);
    let programs = number("LITHIFY_PROGRAMS").unwrap_or(200);
    let mut random = Random::from_seed(seed);
    for _ in 0..programs {
        let len = 4 + random.below(40) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        directory::run(&bytes);
    }
    directory::clean_up();
    also_as_ordinary("random_programs_pass");
}

/// What nothing was done to is not refused, or the other tests would show nothing.
#[test]
fn sound_directories_are_taken() {
    let _alone = alone();
    let said = directory::unharmed();
    directory::clean_up();
    for line in &said {
        println!("{line}");
    }
    let fine = |line: &str| said.iter().any(|s| s == &format!("{line}: fine"));
    let of_ours = ["Open", "ReadOnly", "Follow", "Verify", "Salvage", "Checkpoint", "BackUpFrom"];
    of_ours.iter().for_each(|deed| assert!(fine(&format!("database {deed}")), "{deed}"));
    for deed in ["BackUpInto", "BackupsRead", "Restore", "Purge", "DeleteBackup"] {
        assert!(fine(&format!("backups {deed}")), "{deed}");
    }
    assert!(fine("tables Ingest"));
    for foreign in ["rocksdb-families", "leveldb-filter"] {
        for deed in ["ReadOnly", "Import", "ImportInPlace", "Dump"] {
            assert!(fine(&format!("{foreign} {deed}")), "{foreign} {deed}");
        }
    }
}

#[test]
fn the_guard_sees_what_is_changed_outside() {
    let _alone = alone();
    type Wrong = fn(&Path, &Path);
    let wrongs: [(&str, Wrong); 8] = [
        ("written through a link", |at, _| fs::write(at.join("link"), "other").unwrap()),
        ("written with the same bytes", |at, _| {
            let bytes = fs::read(at.join("link")).unwrap();
            fs::write(at.join("link"), bytes).unwrap();
        }),
        ("cut", |at, _| File::create(at.join("link")).map(drop).unwrap()),
        ("made", |_, out| fs::write(out.join("absent"), "").unwrap()),
        ("deleted", |_, out| fs::remove_file(out.join("directory/1")).unwrap()),
        ("linked", |at, out| fs::hard_link(out.join("file"), at.join("second")).unwrap()),
        ("renamed", |_, out| fs::rename(out.join("file"), out.join("other")).unwrap()),
        ("made readable", |_, out| {
            fs::set_permissions(out.join("secret"), Permissions::from_mode(0o644)).unwrap();
        }),
    ];
    for (what, wrong) in wrongs {
        let seen = directory::guarded(Duration::from_secs(10), wrong);
        println!("{what}: {seen:?}");
        assert!(seen.is_err(), "{what}");
    }
    let fine: Wrong = |at, _| {
        fs::read(at.join("link")).unwrap();
        fs::remove_file(at.join("link")).unwrap();
        fs::write(at.join("own"), "fine").unwrap();
    };
    assert_eq!(directory::guarded(Duration::from_secs(10), fine), Ok(()));
    directory::clean_up();
}

#[test]
fn the_guard_sees_memory_out_of_proportion() {
    let _alone = alone();
    let hold = |bytes: usize| {
        let held = move |_: &Path, _: &Path| drop(std::hint::black_box(vec![1u8; bytes]));
        directory::guarded(Duration::from_secs(10), held)
    };
    assert!(hold(200 << 20).is_err_and(|e| e.contains("bytes of memory were held")));
    assert_eq!(hold(32 << 20), Ok(()));
    let with_disk = |at: &Path, _: &Path| {
        fs::write(at.join("large"), vec![1u8; 40 << 20]).unwrap();
        drop(std::hint::black_box(vec![1u8; 100 << 20]));
    };
    assert_eq!(directory::guarded(Duration::from_secs(10), with_disk), Ok(()));
    directory::clean_up();
}

#[test]
fn the_guard_sees_panics_that_others_catch() {
    let _alone = alone();
    let caught = |_: &Path, _: &Path| {
        let _ = std::panic::catch_unwind(|| panic!("caught and kept quiet"));
    };
    let seen = directory::guarded(Duration::from_secs(10), caught);
    assert_eq!(seen, Err("a thread panicked".to_owned()));
    directory::clean_up();
}

/// There is no way out of a call that hangs, so the guard ends the process and says what it did.
#[test]
fn the_guard_ends_a_process_that_hangs() {
    let _alone = alone();
    if is_child() {
        let _ = directory::guarded(SHORT, |_, _| std::thread::sleep(Duration::from_secs(60)));
        return;
    }
    let output = again("the_guard_ends_a_process_that_hangs", None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("it still runs"), "{said}");
}
