//! Lets the binary find RocksDB's shared library beside its own folder, wherever the target
//! directory lies; and the tests where `cargo xtask peers` put it.
fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../native");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{here}/target/native");
    println!("cargo:rerun-if-changed=build.rs");
}
