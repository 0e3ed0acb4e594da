//! `cargo xtask capi`: the library with RocksDB's C interface.
//!
//! | chore | what it does |
//! |---|---|
//! | `build` | builds it and lays it out in `target/capi` (`--release` for use) |
//! | `header` | writes the header that states the prototypes of `symbols.txt` |
//! | `test` | holds sources, header, list and library to each other; runs the C tests under sanitizers |
//! | `suite` | runs the Rust binding's own tests; `--write` makes `tests/suite.txt` of what they give |
//!
//! Keeps: `crates/capi/symbols.txt` is the one list of what is exported, with classes and prototypes. All
//! else is made of it or held against it.

mod list;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call, has};

const USAGE: &str = "cargo xtask capi build [--release] | header | test | suite [--write]";
const ROOM: &str = "crates/capi";
/// Where the library lies for those who link it.
const PLACE: &str = "target/capi";
const HEADER: &str = "include/lithify_rocksdb.h";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["build"] => build("debug").map(drop),
        ["build", "--release"] => build("release").map(drop),
        ["header"] => Ok(fs::write(room().join(HEADER), list::header(&symbols()?))?),
        ["test"] => test(),
        ["suite"] => suite::run(&build("debug")?, &room(), false),
        ["suite", "--write"] => suite::run(&build("debug")?, &room(), true),
        _ => bail!("{USAGE}"),
    }
}

fn room() -> PathBuf {
    root().join(ROOM)
}

fn symbols() -> Result<Vec<list::Symbol>> {
    let text = fs::read_to_string(room().join("symbols.txt")).context("reading symbols.txt")?;
    list::parse(&text)
}

/// Builds the library and gives it its names: `liblithify.so`, and for the linker of a program that
/// knows RocksDB, `compat/librocksdb.so`.
fn build(profile: &str) -> Result<PathBuf> {
    let mut cargo = at_root("cargo", &["build", "-p", "lithify-capi", "--locked"]);
    if profile == "release" {
        cargo.arg("--release");
    }
    call(&mut cargo)?;
    let (from, place) = (root().join("target").join(profile), root().join(PLACE));
    fs::create_dir_all(place.join("compat"))?;
    fs::create_dir_all(place.join("include"))?;
    fs::copy(from.join("liblithify_c.so"), place.join("liblithify.so.0"))?;
    fs::copy(from.join("liblithify_c.a"), place.join("liblithify.a"))?;
    fs::copy(room().join(HEADER), place.join(HEADER))?;
    link("liblithify.so.0", &place.join("liblithify.so"))?;
    link("../liblithify.so.0", &place.join("compat/librocksdb.so"))?;
    eprintln!("ready: {}", place.display());
    Ok(place)
}

fn link(to: &str, at: &Path) -> Result<()> {
    if fs::symlink_metadata(at).is_ok() {
        fs::remove_file(at)?;
    }
    Ok(std::os::unix::fs::symlink(to, at)?)
}

pub(crate) fn test() -> Result<()> {
    if !has("gcc") || !has("nm") {
        eprintln!("skipped: the tests of the C interface need gcc and nm, and they are not here");
        return Ok(());
    }
    let symbols = symbols()?;
    let header = fs::read_to_string(room().join(HEADER))?;
    if header != list::header(&symbols) {
        bail!("{HEADER} is not what symbols.txt says; run `cargo xtask capi header`");
    }
    list::check_sources(&symbols, &room().join("src"))?;
    let place = build("debug")?;
    check_exports(&symbols, &place)?;
    check_header(&place)?;
    run_tests(&place)?;
    let count = |class: &str| symbols.iter().filter(|symbol| symbol.class == class).count();
    let [exact, noted, refused] = ["exact", "noted", "refused"].map(count);
    eprintln!("{} functions: {exact} exact, {noted} noted, {refused} refused", symbols.len());
    Ok(())
}

/// The library exports what the list says, and nothing else.
fn check_exports(symbols: &[list::Symbol], place: &Path) -> Result<()> {
    let library = place.join("liblithify.so.0");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut exported: Vec<&str> =
        text.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let mut listed: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    listed.sort_unstable();
    let only = |a: &[&str], b: &[&str]| {
        a.iter()
            .filter(|name| b.binary_search(name).is_err())
            .map(|n| (*n).to_owned())
            .collect::<Vec<_>>()
    };
    let (more, less) = (only(&exported, &listed), only(&listed, &exported));
    if !more.is_empty() || !less.is_empty() {
        bail!(
            "exported, but not in symbols.txt: {more:?}; in symbols.txt, but not exported: {less:?}"
        );
    }
    Ok(())
}

/// The header is C11 and C++17 by itself.
fn check_header(place: &Path) -> Result<()> {
    for (compiler, dialect, language) in [("gcc", "c11", "c"), ("g++", "c++17", "c++")] {
        if !has(compiler) {
            eprintln!("skipped: the header in {dialect}, as {compiler} is not here");
            continue;
        }
        let flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", language];
        let dialect = format!("-std={dialect}");
        call(Command::new(compiler).args(flags).arg(dialect).arg(place.join(HEADER)))?;
    }
    Ok(())
}

/// The tests in C, with the address and the undefined-behaviour sanitizer.
fn run_tests(place: &Path) -> Result<()> {
    let (tests, binary, data) = (room().join("tests/c"), place.join("tests"), place.join("data"));
    let sources = ["main.c", "basics.c", "more.c", "safety.c", "shared.c", "told.c"]
        .map(|file| tests.join(file));
    let flags = [
        "-std=gnu11",
        "-g",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ];
    let mut gcc = Command::new("gcc");
    gcc.args(flags).args(sources).arg("-I").arg(place.join("include")).arg("-L").arg(place);
    gcc.arg(format!("-Wl,-rpath,{}", place.display())).arg("-llithify").arg("-o").arg(&binary);
    call(&mut gcc)?;
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    call(Command::new(&binary).arg(&data))
}
