//! What the tests of the commands share: running the binary.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use std::process::{Command, Output, Stdio};

/// Runs a command; it gets no input.
pub fn lithify(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lithify")).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command that must succeed; what it printed.
#[track_caller]
pub fn ok(args: &[&str]) -> String {
    let out = lithify(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}
