//! Compiles the units of `hw/rtl` into this crate, as Verilator emits them; only with the feature `verilated`.
//!
//! Keeps: no other build asks for a C++ compiler or for Verilator, and this one says which package is missing.
#![allow(clippy::disallowed_methods, reason = "a build script works on files")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shapes that tests use: name, W, N.
const SHAPES: [(&str, u32, u32); 2] = [("n4w16", 16, 4), ("n8w32", 32, 8)];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_VERILATED").is_none() {
        return;
    }
    let hw = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo names it")).join("../../hw");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo names it"));
    println!("cargo::rerun-if-changed={}", hw.join("rtl").display());
    println!("cargo::rerun-if-changed={}", hw.join("tb/shim.cpp").display());
    let root = verilator_root();
    for (name, width, ways) in SHAPES {
        compile(&hw, &out, &root, name, (width, ways));
        println!("cargo::rustc-link-lib=static={name}");
    }
    runtime(&out, &root);
    println!("cargo::rustc-link-search=native={}", out.display());
    for library in ["static=verilated_runtime", "stdc++", "atomic", "pthread"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

/// Where Verilator keeps the sources of its runtime.
fn verilator_root() -> PathBuf {
    let said = Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]).output();
    let Ok(said) = said else {
        panic!(
            "the feature `verilated` needs Verilator: install the package `verilator`, or build without it"
        );
    };
    PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())
}

/// Verilates a unit and compiles it with the shim into a library of that name.
fn compile(hw: &Path, out: &Path, root: &Path, name: &str, (width, ways): (u32, u32)) {
    let dir = out.join(name);
    let rtl = hw.join("rtl");
    let mut modules: Vec<PathBuf> = rtl
        .read_dir()
        .unwrap_or_else(|e| panic!("{}: {e}", rtl.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "sv"))
        .collect();
    // What all others name comes first.
    modules.sort_by_key(|path| (path.file_stem().is_some_and(|stem| stem != "pkg"), path.clone()));
    let mut verilator = Command::new("verilator");
    verilator.args(["--cc", "-O3", "--x-assign", "unique", "--x-initial", "unique"]);
    verilator.args(["--top-module", "top", &format!("-GW={width}"), &format!("-GN={ways}")]);
    verilator.args(["--prefix", &format!("V{name}"), "--Mdir"]).arg(&dir).args(&modules);
    run(&mut verilator);
    let mut sources: Vec<PathBuf> = dir
        .read_dir()
        .expect("verilator made it")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cpp"))
        .collect();
    sources.sort();
    sources.push(hw.join("tb/shim.cpp"));
    // Both shapes are in one program, and each has a `Card` of its own.
    let names = [format!("-DMODEL={name}"), format!("-DCard={name}_card")];
    library(out, root, name, &sources, &[&names[..], &[format!("-I{}", dir.display())]].concat());
}

/// What all shapes share of Verilator's runtime.
fn runtime(out: &Path, root: &Path) {
    let include = root.join("include");
    let sources = ["verilated.cpp", "verilated_threads.cpp"].map(|file| include.join(file));
    library(out, root, "verilated_runtime", &sources, &[]);
}

/// Compiles sources into a static library.
fn library(out: &Path, root: &Path, name: &str, sources: &[PathBuf], flags: &[String]) {
    let include = root.join("include");
    let dir = out.join(format!("{name}-objects"));
    std::fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let object = |i: usize| dir.join(format!("{i}.o"));
    let next = AtomicUsize::new(0);
    let work = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(source) = sources.get(i) else { return };
        let mut compiler = Command::new(env::var_os("CXX").unwrap_or_else(|| "g++".into()));
        compiler.args(["-std=c++17", "-O2", "-fPIC", "-c"]).args(flags);
        compiler.arg(format!("-I{}", include.display()));
        compiler.arg(format!("-I{}", include.join("vltstd").display()));
        compiler.arg(source).arg("-o").arg(object(i));
        run(&mut compiler);
    };
    // As many at once as cargo may use.
    let jobs = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1usize);
    std::thread::scope(|scope| {
        (0..jobs.min(sources.len())).for_each(|_| drop(scope.spawn(work)));
    });
    let archive = out.join(format!("lib{name}.a"));
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("crs").arg(&archive).args((0..sources.len()).map(object)));
}

fn run(command: &mut Command) {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{program}: {status}"),
        Err(e) => {
            panic!("{program}: {e}; the feature `verilated` needs it (packages `verilator`, `g++`)")
        }
    }
}
