//! Gives the shared library its name, and binds its own calls to itself: a program that has another
//! library with RocksDB's functions loaded gets ours from ours.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblithify.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
