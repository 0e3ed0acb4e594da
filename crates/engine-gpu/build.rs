//! Takes in the image of the kernels, where there is one that `image.lock` knows; with the feature `emu` compiles the
//! kernels against the fiber emulator.
//!
//! Keeps: no build asks for a GPU's compiler. What is taken in is the image of the lock, or none: it is made by `cargo
//! xtask gpu build`, which touches the lock, so that this script looks again. Only `emu` asks for a C++ compiler, and
//! says if it is missing.
#![allow(clippy::disallowed_methods, reason = "a build script talks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    image();
    #[cfg(feature = "emu")]
    emu();
}

/// Where `cargo xtask gpu build` puts the image.
const IMAGE: &str = "../../target/gpu/lithify.fatbin";
const LOCK: &str = "image.lock";

/// Has the image compiled in if it is that of the lock.
fn image() {
    println!("cargo::rustc-check-cfg=cfg(lithify_gpu_image)");
    println!("cargo::rerun-if-changed={LOCK}");
    let Ok(image) = std::fs::read(IMAGE) else { return };
    println!("cargo::rerun-if-changed={IMAGE}");
    let lock = std::fs::read_to_string(LOCK).expect("image.lock is in git");
    let sum = format!("xxh3 {:016x}", twox_hash::XxHash3_64::oneshot(&image));
    if !lock.lines().any(|line| line == sum) {
        println!(
            "cargo::warning=target/gpu/lithify.fatbin is not the image of image.lock, and is left out"
        );
        return;
    }
    let at = std::fs::canonicalize(IMAGE).expect("it was read");
    println!("cargo::rustc-cfg=lithify_gpu_image");
    println!("cargo::rustc-env=LITHIFY_GPU_BUILT_IN={}", at.display());
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
