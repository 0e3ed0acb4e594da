//! `cargo xtask test`: installs what the tests need, then runs all of them.
//!
//! Keeps: no test needs anything that is installed here. What is missing narrows a check (the
//! tables we write are not shown to RocksDB's own tool), and the test that is narrowed says so;
//! so does this chore.

use anyhow::Result;

use crate::run::{at_root, call, has, install};
use crate::{checkers, sim};

/// A tool that some tests use if they find it.
struct Tool {
    name: &'static str,
    /// Debian's package.
    package: &'static str,
    /// What is not checked without it.
    without: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "sst_dump",
        package: "rocksdb-tools",
        without: "tables and manifests written here are not shown to RocksDB's own tools",
    },
    Tool {
        name: "strace",
        package: "strace",
        without: "system calls are not disturbed from outside; a wrapper inside the process does it",
    },
    Tool {
        name: "apt-cache",
        package: "apt",
        without: "the test on the package index falls back to the list of installed packages",
    },
];

/// Installs, then runs `cargo test` with `args`, or all tests of the workspace without any.
pub(crate) fn run(args: &[String]) -> Result<()> {
    place_tools();
    let all = ["--workspace".to_owned()];
    let chosen = if args.is_empty() { &all[..] } else { args };
    let mut command = at_root("cargo", &["test", "--locked"]);
    if has("sst_dump") {
        // With the tools here, a test that cannot use them is a failure and not a shrug.
        command.env("LITHIFY_ORACLES", "1");
    }
    call(command.args(chosen))?;
    // Chosen tests are run alone; all of them includes the simulation at its own speed, and the
    // threads under model checkers, which are builds of their own.
    if args.is_empty() {
        sim::check()?;
        checkers::loom(&[])?;
    }
    Ok(())
}

/// Makes sure that every tool is here, or says what goes unchecked.
pub(crate) fn place_tools() {
    TOOLS.iter().for_each(place);
}

/// Makes sure `tool` is here, or says what goes unchecked.
fn place(tool: &Tool) {
    if has(tool.name) {
        return;
    }
    if let Err(error) = install(tool.package) {
        eprintln!("note: {} is not here and can't be installed ({error:#});", tool.package);
        eprintln!("      {}", tool.without);
    }
}
