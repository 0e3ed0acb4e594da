//! `cargo xtask peers`: fetches and builds the engines that `lithify bench compare` runs against.
//!
//! RocksDB comes ready-made: the Maven artifact `org.rocksdb:rocksdbjni` has its shared library
//! for every platform, with the whole C interface exported, so nothing of its 18 minutes of C++
//! is compiled here. The Rust crate of the same version gives the bindings, for which libclang
//! and its headers are needed. The others are built from their crates; LMDB's needs a C compiler.
//! Everything comes through the ordinary package managers, and a second call does only what is missing.
//!
//! Keeps: nothing outside `peers/*/target` and the package managers' own places is written.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::run::{call, install};

/// RocksDB's version: the one that the crate pinned in `peers/rocksdb/Cargo.toml` binds.
const VERSION: &str = "11.8.1";

/// Fetches and builds what is missing.
pub(crate) fn run() -> Result<()> {
    rocksdb()?;
    ["fjall", "redb", "lmdb"].into_iter().try_for_each(build)
}

/// The same for RocksDB alone, which tests of foreign files need.
pub(crate) fn rocksdb() -> Result<()> {
    let peer = repo::root().join("peers/rocksdb");
    need_tool("mvn", "maven")?;
    need_tool("unzip", "unzip")?;
    need_libclang()?;
    place_library(&peer.join("target/native"))?;
    build("rocksdb")
}

/// Builds the peer `name` and starts it once.
fn build(name: &str) -> Result<()> {
    let peer = repo::root().join("peers").join(name);
    let target = peer.join("target");
    call(
        Command::new("cargo")
            .args(["build", "--release", "--target-dir"])
            .arg(&target)
            .current_dir(&peer)
            .env_remove("RUSTFLAGS"),
    )?;
    let binary = target.join("release").join(format!("lithify-peer-{name}"));
    call(Command::new(&binary).arg("--help").stdout(std::process::Stdio::null()))
        .context("starting the peer that was just built")?;
    eprintln!("ready: {}", binary.display());
    Ok(())
}

/// Puts `librocksdb.so` into `dir`, unless that version of it is there already.
fn place_library(dir: &Path) -> Result<()> {
    let (library, stamp) = (dir.join("librocksdb.so"), dir.join("VERSION"));
    let wanted = format!("{VERSION}\n");
    if library.exists() && std::fs::read_to_string(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    let member = match std::env::consts::ARCH {
        "x86_64" => "librocksdbjni-linux64.so",
        "aarch64" => "librocksdbjni-linux-aarch64.so",
        other => bail!("the artifact has no library for {other} that this command knows of"),
    };
    std::fs::create_dir_all(dir)?;
    let coordinates = format!("org.rocksdb:rocksdbjni:{VERSION}");
    let jar = format!("rocksdbjni-{VERSION}.jar");
    // Two goals: the first brings the artifact into Maven's own store, the second copies it here.
    let goal = |name: &str, options: &[String]| {
        call(Command::new("mvn").args(["-q", "-B", name, "-Dtransitive=false"]).args(options))
    };
    goal("dependency:get", &[format!("-Dartifact={coordinates}")])?;
    goal(
        "dependency:copy",
        &[format!("-Dartifact={coordinates}"), format!("-DoutputDirectory={}", dir.display())],
    )?;
    call(
        Command::new("unzip").args(["-o", "-q"]).arg(dir.join(&jar)).arg(member).arg("-d").arg(dir),
    )?;
    std::fs::rename(dir.join(member), &library)?;
    std::fs::remove_file(dir.join(&jar))?;
    Ok(std::fs::write(&stamp, wanted)?)
}

/// Installs `package` unless `tool` runs.
fn need_tool(tool: &str, package: &str) -> Result<()> {
    let version = if tool == "unzip" { "-v" } else { "--version" };
    if Command::new(tool).arg(version).output().is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    install(package)
}

/// Installs libclang with its headers unless some version of it is here.
fn need_libclang() -> Result<()> {
    match libclang() {
        Some(_) => Ok(()),
        None => install("libclang-dev"),
    }
}

/// The folder of libclang: as `LIBCLANG_PATH` says, or as Debian has it.
pub(crate) fn libclang() -> Option<PathBuf> {
    if let Some(told) = std::env::var_os("LIBCLANG_PATH") {
        return Some(told.into());
    }
    ["/usr/lib", "/usr/lib64"].iter().find_map(|dir| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let versions = entries.filter(|e| e.file_name().to_string_lossy().starts_with("llvm"));
        versions.map(|e| e.path().join("lib")).find(|path| path.join("libclang.so").exists())
    })
}
