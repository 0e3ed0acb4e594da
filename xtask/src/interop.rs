//! `cargo xtask interop`: RocksDB and Lithify read each other's files.
//!
//! Two suites. In the workspace's, Debian's tools of RocksDB 7 read what our tests write. In the
//! peer's, RocksDB 11 writes tables and directories that ours reads, and reads ours; and LevelDB,
//! through Python, writes directories that ours takes over.

use std::process::Command;

use anyhow::{Result, bail};

use crate::repo;
use crate::run::{at_root, call, spelled};
use crate::{peers, test};

/// Suites of the workspace that run RocksDB's tools: package, and which of its tests.
const ORACLES: [(&str, &[&str]); 6] = [
    ("lithify", &["--test", "files", "--features", "zstd", "oracle_tables::"]),
    ("lithify-format", &["--test", "formats", "--features", "zstd", "interop::"]),
    ("lithify-journal", &["--lib", "tests::ldb_"]),
    ("lithify-store", &["--lib", "foreign::"]),
    ("lithify", &["--test", "reads", "ttl::rocksdb_and_we_read_each_others_times"]),
    ("lithify-cli", &["--test", "program", "settling_says_which_releases_open_the_result"]),
];

/// Installs and builds what is missing, then runs both suites.
///
/// # Errors
/// If something can't be installed or built, or a suite fails.
pub(crate) fn run() -> Result<()> {
    test::place_tools();
    need_leveldb()?;
    peers::rocksdb()?;
    for (package, tests) in ORACLES {
        let command = || {
            let mut command = at_root("cargo", &["test", "--locked", "-p", package]);
            command.args(tests);
            command
        };
        // A name that no test has any more passes all of none.
        let listed = command().args(["--", "--list"]).output()?;
        if !String::from_utf8_lossy(&listed.stdout).contains(": test") {
            bail!("`{}` has no tests", spelled(&command()));
        }
        // Required now: a missing tool fails the suite.
        call(command().env("LITHIFY_ORACLES", "1"))?;
    }
    let peer = repo::root().join("peers/rocksdb");
    call(
        Command::new("cargo")
            .args(["test", "--locked", "--test", "interop", "--target-dir"])
            .arg(peer.join("target"))
            // What was counted is shown, too.
            .args(["--", "--show-output"])
            .current_dir(&peer)
            .env_remove("RUSTFLAGS"),
    )
}

/// LevelDB comes with its Python binding.
fn need_leveldb() -> Result<()> {
    let there = Command::new("python3").args(["-c", "import plyvel"]).status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    call(Command::new("python3").args(["-m", "pip", "install", "--quiet", "plyvel==1.5.1"]))
}
