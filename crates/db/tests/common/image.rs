//! A database directory as bytes: taken from one file system, damaged, put into another.

use std::collections::BTreeMap;
use std::path::Path;

use lithify_env::{EntryKind, Fs, MemFs, OpenOpts, read_full_at, write_all_at};

/// Files by name.
pub type Image = BTreeMap<String, Vec<u8>>;

/// The files of `directory` as they are now. A database at work may delete an obsolete file
/// between the listing and the reading; then the look starts over.
pub fn take(fs: &dyn Fs, directory: &str) -> Image {
    loop {
        if let Some(image) = look(fs, directory) {
            return image;
        }
    }
}

/// One look; `None` if a file vanished during it.
fn look(fs: &dyn Fs, directory: &str) -> Option<Image> {
    let mut image = Image::new();
    for entry in fs.list(Path::new(directory)).unwrap() {
        if entry.kind == EntryKind::File {
            let path = Path::new(directory).join(&entry.name);
            let file = match fs.open(&path, OpenOpts::read()) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
                opened => opened.unwrap(),
            };
            let mut bytes = vec![0; entry.len as usize];
            let count = read_full_at(&*file, &mut bytes, 0).unwrap();
            bytes.truncate(count);
            image.insert(entry.name, bytes);
        }
    }
    Some(image)
}

/// A file system that holds just this, in `directory`.
pub fn put(image: &Image, directory: &str) -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(directory)).unwrap();
    for (name, bytes) in image {
        let file = fs.create(&Path::new(directory).join(name), OpenOpts::write()).unwrap();
        write_all_at(&*file, bytes, 0).unwrap();
    }
    fs
}

/// What a file is, by its name.
pub fn kind(name: &str) -> &'static str {
    match name {
        "CURRENT" => "CURRENT",
        "IDENTITY" => "IDENTITY",
        "LOCK" => "LOCK",
        "EVENTS" => "EVENTS",
        _ if name.starts_with("MANIFEST-") => "MANIFEST",
        _ if name.starts_with("OPTIONS-") => "OPTIONS",
        _ if name.ends_with(".log") => "log",
        _ if name.ends_with(".sst") => "table",
        _ => "other",
    }
}
