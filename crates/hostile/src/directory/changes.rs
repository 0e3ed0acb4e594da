//! What is done to a sound directory to make it hostile: its names, what kinds of file they name, how
//! long the files are, and their bytes.
//!
//! Keeps: whatever a step says, nothing outside of the directory is changed, but that a file there may
//! get a second name inside. A step that the system refuses (a device node for an ordinary user) does nothing.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use xxhash_rust::xxh3::xxh3_64;

use super::guard::walk;
use super::images::Image;
use crate::image::reframed;

/// Names that are ours, among them the next ones that the database would use, nearly ours, or no one's;
/// besides them one of 255 bytes.
const NAMES: [&[u8]; 47] = [
    b"CURRENT",
    b"LOCK",
    b"IDENTITY",
    b"EVENTS",
    b"EVENTS.old",
    b"LOG",
    b"000000.dbtmp",
    b"000018.dbtmp",
    b"OPTIONS-000019.dbtmp",
    b"MANIFEST-000000",
    b"MANIFEST-000018",
    b"MANIFEST-000099",
    b"OPTIONS-000019",
    b"OPTIONS-000099",
    b"000000.sst",
    b"000012.sst",
    b"000020.sst",
    b"000099.ldb",
    b"000000.log",
    b"000005.log",
    b"000020.log",
    b"18446744073709551615.log",
    b"18446744073709551614.log",
    b"18446744073709551615.sst",
    b"MANIFEST-18446744073709551615",
    b"OPTIONS-18446744073709551614",
    b"9223372036854775807.log",
    b"72057594037927935.log",
    b"99999999999999999999.log",
    b"12.sst",
    b"0000000000012.sst",
    b"000012.SST",
    b" MANIFEST-000001",
    b"current",
    b"\xff\xfe.log",
    b"\x1b[31m000012.sst",
    b"000012\n.sst",
    b"meta",
    b"shared",
    b"private",
    b"1",
    b"3",
    b"4294967296",
    b"18446744073709551615",
    b"000012_9f86d081884c7d65_100.sst",
    b"lost+found",
    b".hidden",
];

/// What links lead to, from the tree outside.
const OUTSIDE: [&str; 14] = [
    "file",
    "secret",
    "directory",
    "directory/000012.sst",
    "directory/absent",
    "database",
    "database/CURRENT",
    "private",
    "empty",
    "absent",
    "absent/absent",
    "link",
    "/dev/zero",
    "/dev/null",
];

/// Files outside that may get a second name.
const SHARED: [&str; 4] = ["file", "secret", "directory/000012.sst", "database/CURRENT"];

/// Lengths with hardly a byte in them.
const SIZES: [u64; 6] = [0, 1 << 20, 1 << 30, 40 << 30, 1 << 40, (1 << 40) - 7];

/// Numbers that files may be given.
const NUMBERS: [&str; 8] = [
    "000000",
    "000001",
    "4294967296",
    "72057594037927935",
    "9223372036854775807",
    "18446744073709551614",
    "18446744073709551615",
    "99999999999999999999",
];

/// Words that take the place of others in texts.
const WORDS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "99999",
    "18446744073709551615",
    "000012.sst",
    "../outside/file",
    "/absent",
    "MANIFEST-000099",
    "MANIFEST-18446744073709551615",
    "LOCK",
    "\u{1b}[2J",
];

/// A step of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    what: What,
    /// Chooses the entry that it is about.
    which: u8,
    a: u8,
    b: u8,
    /// Changes to bytes.
    inner: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Rename,
    Remove,
    Add,
    LinkAway,
    AddLink,
    HardLink,
    AddHardLink,
    Special,
    AddSpecial,
    Forbid,
    Stretch,
    Bytes,
    /// With sums made right.
    Mended,
    Word,
    CopyOver,
    Renumber,
}

const KINDS: [What; 16] = [
    What::Rename,
    What::Remove,
    What::Add,
    What::LinkAway,
    What::AddLink,
    What::HardLink,
    What::AddHardLink,
    What::Special,
    What::AddSpecial,
    What::Forbid,
    What::Stretch,
    What::Bytes,
    What::Mended,
    What::Word,
    What::CopyOver,
    What::Renumber,
];

fn pick<T>(from: &[T], n: u8) -> &T {
    &from[usize::from(n) % from.len()]
}

fn name(n: u8) -> PathBuf {
    match NAMES.get(usize::from(n) % (NAMES.len() + 1)) {
        Some(name) => PathBuf::from(OsStr::from_bytes(name)),
        None => PathBuf::from("n".repeat(255)),
    }
}

impl Change {
    /// Takes the next step off `rest`; `None` at its end.
    pub(super) fn next(rest: &mut &[u8]) -> Option<Change> {
        let (&[kind, which, a, b], after) = rest.split_first_chunk()?;
        let what = *pick(&KINDS, kind);
        let bytes =
            if matches!(what, What::Bytes | What::Mended) { 4 + 4 * usize::from(a % 8) } else { 0 };
        let (inner, after) = after.split_at(bytes.min(after.len()));
        *rest = after;
        Some(Change { what, which, a, b, inner: inner.to_vec() })
    }

    /// Does it to the directory `at`, which was `image`, with `outside` beside it.
    pub(super) fn make(&self, at: &Path, image: &Image, outside: &Path) -> io::Result<()> {
        let all = walk(at)?;
        let mut folders = vec![at.to_owned()];
        folders.extend(all.iter().filter(|p| !p.is_symlink() && p.is_dir()).cloned());
        let new = pick(&folders, self.b).join(name(self.a));
        match self.what {
            What::Add => return add(&new, &b"something"[..usize::from(self.which % 10)]),
            What::AddLink => return symlink(lead(self.which, &new, outside), &new),
            What::AddHardLink => {
                return fs::hard_link(outside.join(pick(&SHARED, self.which)), new);
            }
            What::AddSpecial => return special(&new, self.which),
            _ if all.is_empty() => return Ok(()),
            _ => {}
        }
        let entry = pick(&all, self.which);
        match self.what {
            What::Rename => fs::rename(entry, new),
            What::Remove => remove(entry),
            What::LinkAway => {
                remove(entry)?;
                symlink(lead(self.a, entry, outside), entry)
            }
            What::HardLink => {
                remove(entry)?;
                fs::hard_link(outside.join(pick(&SHARED, self.a)), entry)
            }
            What::Special => {
                remove(entry)?;
                special(entry, self.a)
            }
            What::Renumber => {
                fs::rename(entry, renumbered(entry, NUMBERS[usize::from(self.a) % NUMBERS.len()]))
            }
            // What follows goes through names, which may be links by now.
            _ if !is_own_file(entry)? => Ok(()),
            What::Forbid => {
                let mode = *pick(&[0, 0o400, 0o200, 0o777, 0o4755], self.a);
                fs::set_permissions(entry, Permissions::from_mode(mode))
            }
            What::Stretch => {
                let file = OpenOptions::new().write(true).open(entry)?;
                file.set_len(*pick(&SIZES, self.a))
            }
            What::CopyOver => match pick(&all, self.a) {
                from if is_own_file(from)? && fs::metadata(from)?.len() < 1 << 20 => {
                    fs::write(entry, fs::read(from)?)
                }
                _ => Ok(()),
            },
            _ if fs::metadata(entry)?.len() > 1 << 20 => Ok(()),
            _ => fs::write(entry, self.rewritten(entry, fs::read(entry)?, at, image)),
        }
    }

    /// What the file `entry` holds after a change to its bytes.
    fn rewritten(&self, entry: &Path, mut bytes: Vec<u8>, at: &Path, image: &Image) -> Vec<u8> {
        let inside = entry.strip_prefix(at).unwrap_or(entry);
        if self.what == What::Word {
            let text = with_word(&bytes, WORDS[usize::from(self.a) % WORDS.len()], self.b);
            return if is_list(inside) { summed(text) } else { text };
        }
        let file_name = inside.file_name().unwrap_or_default().to_string_lossy();
        let framed = file_name.ends_with(".log") || file_name.starts_with("MANIFEST");
        if self.what == What::Mended && framed {
            return reframed(&bytes, &self.inner);
        }
        crate::change(&mut bytes, &self.inner);
        match (self.what, image.table(inside)) {
            (What::Mended, Some(table)) if inside.extension().is_some_and(|e| e == "ldb") => {
                table.mend_blocks(&mut bytes);
            }
            (What::Mended, Some(table)) => table.mend(&mut bytes),
            (What::Mended, None) if is_list(inside) => return summed(bytes),
            _ => {}
        }
        bytes
    }
}

/// Makes a file where nothing is: what is there may be a link by now, or a FIFO.
fn add(at: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(at)?.write_all(bytes)
}

/// A regular file that has no other name.
fn is_own_file(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let stat = fs::symlink_metadata(path)?;
    Ok(stat.is_file() && stat.nlink() == 1)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Where a link leads: outside, to itself, or to where it lies.
fn lead(n: u8, link: &Path, outside: &Path) -> PathBuf {
    match usize::from(n) % (OUTSIDE.len() + 2) {
        n if n < OUTSIDE.len() => outside.join(OUTSIDE[n]),
        n if n == OUTSIDE.len() => link.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes something that is no regular file.
fn special(at: &Path, n: u8) -> io::Result<()> {
    let node = |kind, minor| {
        let device = if minor == 0 { 0 } else { makedev(1, minor) };
        Ok(mknodat(CWD, at, kind, Mode::from_raw_mode(0o666), device)?)
    };
    match n % 5 {
        0 => node(FileType::Fifo, 0),
        1 => node(FileType::Socket, 0),
        2 => fs::create_dir(at),
        3 => node(FileType::CharacterDevice, 3),
        _ => node(FileType::CharacterDevice, 5),
    }
}

/// `path` with the digits of its name replaced.
fn renumbered(path: &Path, number: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digit = |c: char| c.is_ascii_digit();
    let Some(from) = name.find(digit) else { return path.with_file_name(number) };
    let len = name[from..].find(|c| !digit(c)).unwrap_or(name.len() - from);
    path.with_file_name(format!("{}{number}{}", &name[..from], &name[from + len..]))
}

/// The list of a backup.
fn is_list(inside: &Path) -> bool {
    inside.starts_with("meta")
}

/// `text` with one of its words replaced; words are what blanks, line ends and `=` part.
fn with_word(text: &[u8], word: &str, which: u8) -> Vec<u8> {
    let ends = |byte: &u8| matches!(byte, b' ' | b'\n' | b'=');
    let mut words: Vec<Vec<u8>> = text.split_inclusive(ends).map(<[u8]>::to_vec).collect();
    if !words.is_empty() {
        let at = usize::from(which) % words.len();
        let end = words[at].pop_if(|byte| ends(byte));
        words[at] = word.bytes().chain(end).collect();
    }
    words.concat()
}

/// The list of a backup with its sum made right.
fn summed(text: Vec<u8>) -> Vec<u8> {
    let at = text.windows(4).rposition(|window| window == b"sum ");
    let mut body = text[..at.unwrap_or(text.len())].to_vec();
    let sum = format!("sum {:016x}\n", xxh3_64(&body));
    body.extend(sum.bytes());
    body
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { what, which, a, b, inner } = self;
        write!(f, "{what:?} entry {which}, {a}, {b}")?;
        match what {
            What::Add | What::AddSpecial | What::Rename => write!(f, ": {:?}", name(*a)),
            What::AddLink => {
                write!(
                    f,
                    ": {:?} to {:?}",
                    name(*a),
                    lead(*which, Path::new("itself"), "".as_ref())
                )
            }
            What::AddHardLink => write!(f, ": {:?} of {}", name(*a), pick(&SHARED, *which)),
            What::LinkAway => write!(f, ": to {:?}", lead(*a, Path::new("itself"), "".as_ref())),
            What::HardLink => write!(f, ": of {}", pick(&SHARED, *a)),
            What::Stretch => write!(f, ": to {} bytes", pick(&SIZES, *a)),
            What::Renumber => write!(f, ": {}", pick(&NUMBERS, *a)),
            What::Word => write!(f, ": {:?}", pick(&WORDS, *a)),
            _ if !inner.is_empty() => write!(f, ": {inner:?}"),
            _ => Ok(()),
        }
    }
}
