//! Compiles the kernels against the fiber emulator; only with the feature `emu`.
//!
//! Keeps: no other build asks for a C++ compiler, and this one says what is missing.
#![allow(clippy::disallowed_methods, reason = "a build script talks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "emu")]
    emu();
}

/// Where the folders `emu` and `kernels` are, if not beside this script.
#[cfg(feature = "emu")]
const SOURCES: &str = "LITHIFY_GPU_SOURCES";

/// Set where the kernels are to be watched by AddressSanitizer and UndefinedBehaviorSanitizer, whose runtime is
/// loaded before all else (`cargo xtask gpu sanitize`).
#[cfg(feature = "emu")]
const SANITIZE: &str = "LITHIFY_GPU_SANITIZE";

/// The library of the emulator: small CTAs, so that small cases have many.
#[cfg(feature = "emu")]
fn emu() {
    println!("cargo::rerun-if-env-changed={SOURCES}");
    // Another copy, in which `cargo xtask gpu mutants` has planted a bug.
    let at = std::env::var(SOURCES).unwrap_or_else(|_| ".".to_owned());
    let [emulator, kernels] = ["emu", "kernels"].map(|folder| format!("{at}/{folder}"));
    for folder in [&emulator, &kernels] {
        println!("cargo::rerun-if-changed={folder}");
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).warnings(true).extra_warnings(true);
    build.include(&emulator).include(&kernels).file(format!("{emulator}/fiber.cpp"));
    build.define("THREADS", "64").define("ITEMS", "2");
    println!("cargo::rerun-if-env-changed={SANITIZE}");
    if std::env::var_os(SANITIZE).is_some() {
        for flag in ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"] {
            build.flag(flag);
        }
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo::rustc-link-arg=-lasan");
        println!("cargo::rustc-link-arg=-lubsan");
    }
    if let Err(e) = build.try_compile("lithify_emu") {
        panic!(
            "the feature `emu` needs a C++17 compiler (package `g++`), or build without it: {e}"
        );
    }
}
