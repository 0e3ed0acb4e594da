//! What can be said of the C interface without a test of what its functions do: exports, prototypes, and that
//! every function is in a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::list::Symbol;
use super::twin;
use crate::run::{call, has};

/// The library exports what the list says, and nothing else.
pub(super) fn exports(symbols: &[Symbol], place: &Path) -> Result<()> {
    let library = place.join("liblithify.so.0");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let exported: BTreeSet<&str> =
        text.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    let listed: BTreeSet<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    let more: Vec<_> = exported.difference(&listed).collect();
    let less: Vec<_> = listed.difference(&exported).collect();
    if !more.is_empty() || !less.is_empty() {
        bail!(
            "exported, but not in symbols.txt: {more:?}; in symbols.txt, but not exported: {less:?}"
        );
    }
    Ok(())
}

/// Our headers are C11 and C++17, and where RocksDB's is at hand, they state the same prototypes.
pub(super) fn headers(room: &Path, place: &Path, rocksdb: Option<&Path>) -> Result<()> {
    for (compiler, dialect, language) in [("gcc", "c11", "c"), ("g++", "c++17", "c++")] {
        if !has(compiler) {
            eprintln!("skipped: the header in {dialect}, as {compiler} is not here");
            continue;
        }
        let check = |with: &[&str], folders: &[&Path]| {
            let mut gcc = Command::new(compiler);
            gcc.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]).args(with);
            gcc.arg(format!("-std={dialect}")).arg("-I").arg(place.join("include"));
            for folder in folders {
                gcc.arg("-isystem").arg(folder);
            }
            call(gcc.args(["-x", language]).arg(room.join("tests/agree.c")))
        };
        check(&["-pedantic", "-DLITHIFY_ALONE"], &[])?;
        if let Some(rocksdb) = rocksdb {
            check(&[], &[rocksdb])?;
        }
    }
    Ok(())
}

/// Every function of the list is called by a test: of `tests/c`, or of the twin programs.
pub(super) fn coverage(symbols: &[Symbol], room: &Path) -> Result<()> {
    let mut text = twin::pairs(symbols);
    for folder in ["tests/c", "tests/twin"] {
        for entry in fs::read_dir(room.join(folder))? {
            text.push_str(&fs::read_to_string(entry?.path())?);
        }
    }
    let words: BTreeSet<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let untested = symbols.iter().map(|s| s.name.as_str()).filter(|name| !words.contains(name));
    let untested: Vec<&str> = untested.collect();
    match untested.is_empty() {
        true => Ok(()),
        false => bail!("in no test of crates/capi/tests: {}", untested.join(", ")),
    }
}
