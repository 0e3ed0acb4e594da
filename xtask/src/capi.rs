//! `cargo xtask capi`: the library with RocksDB's C interface.
//!
//! | chore | what it does |
//! |---|---|
//! | `build` | builds it and lays it out in `target/capi` (`--release` for use) |
//! | `header` | writes the header that states the prototypes of `symbols.txt` |
//! | `test` | holds sources, header, list and library to each other; runs the C tests under sanitizers |
//! | `suite` | runs the Rust binding's own tests; `--write` makes `tests/suite.txt` of what they give |
//! | `cost` | compares the time of puts, gets and steps of an iterator from C and from Rust |
//! | `fuzz` | makes calls of random bytes, hostile ones among them, under the address sanitizer |
//! | `twin` | makes random calls of our library and of RocksDB, and compares what they give |
//! | `valgrind` | runs the C tests under valgrind, with a library of its own |
//!
//! Keeps: `crates/capi/symbols.txt` is the one list of what is exported, with classes and prototypes. All
//! else is made of it or held against it.

mod checks;
mod cost;
mod fuzz;
mod list;
mod manual;
mod suite;
mod twin;
mod valgrind;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::peers;
use crate::repo::root;
use crate::run::{at_root, call, has};

const USAGE: &str = "cargo xtask capi build [--release] | header | test | suite [--write] \
     | cost | fuzz [--calls N] [--seconds N] [--seed N] | twin [--seeds N] [--calls N] [--first SEED] \
     | valgrind";
const ROOM: &str = "crates/capi";
/// Where the library lies for those who link it.
const PLACE: &str = "target/capi";
/// How programs in C are built whose memory is watched.
const SANITIZED: [&str; 8] = [
    "-std=gnu11",
    "-g",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];
/// Calls of the twin programs before a merge, per seed.
const TWIN_SHARE: u64 = 10_000;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["build"] => build("debug").map(drop),
        ["build", "--release"] => build("release").map(drop),
        ["header"] => {
            let symbols = symbols()?;
            for header in &list::HEADERS {
                fs::write(room().join(header.path), list::header(header, &symbols))?;
            }
            Ok(())
        }
        ["test"] => test(),
        ["suite"] => suite::run(&build("debug")?, &room(), false),
        ["suite", "--write"] => suite::run(&build("debug")?, &room(), true),
        ["cost"] => cost::run(&room(), &build("release")?, cost::ROUNDS),
        ["fuzz", ..] => fuzz::run(&room(), &build("debug")?, fuzz::wish(&args[1..])?),
        ["twin", ..] => match run_twin(twin_wish(&args[1..])?)? {
            true => Ok(()),
            false => bail!("there is no RocksDB here to compare with"),
        },
        ["valgrind"] => valgrind::run(&room(), &root().join(PLACE)),
        _ => bail!("{USAGE}"),
    }
}

/// What a full run of the twin programs is, unless told otherwise.
fn twin_wish(args: &[&str]) -> Result<twin::Wish> {
    let mut wish = twin::Wish { seeds: 10, first: 1, calls: 100_000 };
    for pair in args.chunks(2) {
        let [name, value] = pair else { bail!("{USAGE}") };
        let value: u64 = value.parse().context(USAGE)?;
        match *name {
            "--seeds" => wish.seeds = value,
            "--calls" => wish.calls = value,
            "--first" => wish.first = value,
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wish)
}

/// Runs the twin programs; false where RocksDB cannot be had.
fn run_twin(wish: twin::Wish) -> Result<bool> {
    let Some(headers) = suite::headers()? else {
        eprintln!("skipped: no RocksDB header, as cargo cannot fetch the binding");
        return Ok(false);
    };
    let library = match peers::library() {
        Ok(library) => library,
        Err(error) => {
            eprintln!("skipped: no RocksDB library: {error:#}");
            return Ok(false);
        }
    };
    let place = root().join(PLACE);
    manual::run(&place, "theirs", &headers, &library)?;
    let peer = twin::Peer { headers, library };
    twin::run(&symbols()?, &room(), &build("debug")?, &peer, wish)?;
    Ok(true)
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
    // Not over the old one, which a program may be running with.
    let new = place.join("liblithify.so.new");
    fs::copy(from.join("liblithify_c.so"), &new)?;
    fs::rename(&new, place.join("liblithify.so.0"))?;
    fs::copy(from.join("liblithify_c.a"), place.join("liblithify.a"))?;
    for header in &list::HEADERS {
        fs::copy(room().join(header.path), place.join(header.path))?;
    }
    let own = place.join("compat/include/rocksdb");
    fs::create_dir_all(&own)?;
    fs::write(own.join("c.h"), "#include \"../../../include/lithify_rocksdb.h\"\n")?;
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

/// What runs before a merge: the tests, a share of the twin programs, some seconds of random calls.
pub(crate) fn check() -> Result<()> {
    test()?;
    if !has("gcc") {
        return Ok(());
    }
    run_twin(twin::Wish { seeds: 2, first: 1, calls: TWIN_SHARE })?;
    fuzz::run(&room(), &build("debug")?, fuzz::SHARE)
}

pub(crate) fn test() -> Result<()> {
    if !has("gcc") || !has("nm") {
        eprintln!("skipped: the tests of the C interface need gcc and nm, and they are not here");
        return Ok(());
    }
    let symbols = symbols()?;
    for header in &list::HEADERS {
        let path = header.path;
        if fs::read_to_string(room().join(path))? != list::header(header, &symbols) {
            bail!("{path} is not what symbols.txt says; run `cargo xtask capi header`");
        }
    }
    list::check_sources(&symbols, &room().join("src"))?;
    let place = build("debug")?;
    checks::exports(&symbols, &place)?;
    checks::headers(&room(), &place, suite::headers()?.as_deref())?;
    checks::coverage(&symbols, &room())?;
    run_tests(&place)?;
    manual::run(&place, "ours", &place.join("compat/include"), &place.join("liblithify.so.0"))?;
    let count = |class: &str| symbols.iter().filter(|symbol| symbol.class == class).count();
    let [exact, noted, refused] = ["exact", "noted", "refused"].map(count);
    eprintln!("{} functions: {exact} exact, {noted} noted, {refused} refused", symbols.len());
    Ok(())
}

/// The sources of a folder, in order.
fn c_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
}

/// The tests in C, with the address and the undefined-behaviour sanitizer.
fn run_tests(place: &Path) -> Result<()> {
    let (tests, binary, data) = (room().join("tests/c"), place.join("tests"), place.join("data"));
    let sources = c_files(&tests)?;
    let mut gcc = Command::new("gcc");
    gcc.args(SANITIZED).args(sources).arg("-I").arg(place.join("include")).arg("-L").arg(place);
    gcc.arg(format!("-Wl,-rpath,{}", place.display())).arg("-llithify").arg("-o").arg(&binary);
    call(&mut gcc)?;
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    call(Command::new(&binary).arg(&data))
}
