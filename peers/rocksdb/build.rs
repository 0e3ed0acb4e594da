//! Lets the binary find RocksDB's shared library beside its own folder, wherever the target
//! directory lies.
fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../native");
    println!("cargo:rerun-if-changed=build.rs");
}
