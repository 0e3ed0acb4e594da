//! One test as two users: what root may do hides what others may not, and the other way round.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set in the process of the ordinary user.
const MARK: &str = "LITHIFY_TEST_AS_USER";

/// The user that owns nothing, by its number on every system.
const USER: u32 = 65534;

/// Runs `test`, which is what the test function of this `name` does, as this user; and if that is root,
/// once more as an ordinary one, in a process of its own.
pub fn as_both(name: &str, test: impl FnOnce()) {
    test();
    if !is_root() || std::env::var_os(MARK).is_some() {
        return;
    }
    // Where this program lies an ordinary user may have no way to.
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("test");
    // By another process: a child that a test beside this one starts would inherit the file open for
    // writing, and what is open for writing can't be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    for path in [place.path(), &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = Command::new(&program)
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(MARK, "1")
        .current_dir("/")
        .uid(USER)
        .gid(USER)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said.contains("1 passed"),
        "as an ordinary user: {said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    let probe = tempfile::tempdir().unwrap();
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(probe.path()).unwrap()) == 0
}
