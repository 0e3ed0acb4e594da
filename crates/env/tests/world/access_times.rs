//! Reading a file leaves no trace in it.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::fs::FileTimes;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lithify_env::{Fs, OpenOpts, PosixFs, read_exact_at};

fn read(path: &Path) {
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    read_exact_at(&*file, &mut [0; 4], 0).unwrap();
}

#[test]
fn what_is_read_keeps_the_time_of_its_last_access() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("file");
    std::fs::write(&path, "some bytes").unwrap();
    // Older than its last change: then the next reader of any other kind is noted.
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_accessed(long_ago)).unwrap();
    read(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
}

/// The system notes the reader, and lets it read. Root may open any file without a note, so this shows something to other users
/// only.
#[test]
fn a_file_of_another_user_is_read() {
    read(Path::new("/etc/passwd"));
}
