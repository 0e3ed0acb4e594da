//! Where a path leads: through links and relative names, also where not all of it exists.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lithify_env::{Fs, MemFs, PosixFs};

#[test]
fn a_path_leads_to_the_same_place_however_it_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    symlink(root.join("a/b"), root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    let cases = [
        ("a/b", "a/b"),
        ("a/./b/", "a/b"),
        ("a/b/../b", "a/b"),
        ("link", "a/b"),
        ("link/new", "a/b/new"),
        ("link/../b", "a/b"), // the parent of where the link leads
        ("new/deep/../x", "new/x"),
        ("new/../link/x", "a/b/x"),
        ("new/../a/b", "a/b"),
        ("dangling/x", "dangling/x"),
        ("file/x", "file/x"),
    ];
    for (path, leads) in cases {
        assert_eq!(PosixFs::new().resolve(&root.join(path)), root.join(leads), "{path}");
    }
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(PosixFs::new().resolve(Path::new("no-such/x")), here.join("no-such/x"));
    assert_eq!(PosixFs::new().resolve(Path::new("/../..")), Path::new("/"));
    // Where there are no links, the letters tell.
    let by_letters = |path: &str| MemFs::new().resolve(Path::new(path));
    assert_eq!(by_letters("/a/./b/../c"), PathBuf::from("/a/c"));
    assert_eq!(by_letters("a/.."), PathBuf::new());
}
