//! The text picture of a tree: one line per run, newest first, `-` for a file and `=` for a file
//! that a job holds. The same in planner tests, logs, bug reports and `lithify picture DIR`.
//!
//! ```text
//!   L0.8  a---------m
//!   L1.0  a=========m  n-----z:64M      | 2 files, 128.0 MiB
//! ```
//!
//! A file is its first key, a line, its last key; then `)` if the last key is not included, and
//! `:` with a size. What follows `|` is for people. [`parse`] reads what [`print()`] writes, unless
//! the tree is too large for that: then columns stand for equal shares of all file bounds, and
//! only the shape and the sums remain.

use std::collections::BTreeMap;
use std::fmt::Write;

use lithify_base::{CfId, Comparator, End, FileId, Key, KeyRange, Pos};

use crate::edit::Edit;
use crate::file::FileMeta;
use crate::run::Run;
use crate::version::Version;

/// Bounds beyond which a picture is drawn to scale, without keys.
const EXACT_BOUNDS_MAX: usize = 40;
/// Longest key that is still drawn, in characters.
const EXACT_KEY_MAX: usize = 10;
/// Columns of a picture drawn to scale.
const SCALED_WIDTH: usize = 72;

/// A tree as drawn.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Its files, numbered from 1 in reading order.
    pub files: Vec<FileMeta>,
    /// Those drawn as locked.
    pub locked: Vec<FileId>,
}

impl Picture {
    /// The edit that makes this tree from an empty one.
    pub fn edit(&self) -> Edit {
        Edit { adds: self.files.clone(), ..Edit::new(CfId(0)) }
    }
    /// The file drawn at `pos` with these bounds.
    pub fn find(&self, pos: Pos, range: &KeyRange) -> Option<&FileMeta> {
        self.files.iter().find(|f| f.pos == pos && f.range == *range)
    }
}

/// Reads a picture. Files without a size have `default_bytes`. Sequence numbers are made up so
/// that newer lines have larger ones; further right, a file spans fewer of its line's hundred.
///
/// # Errors
/// A sentence that names the line and what is wrong with it.
pub fn parse(lines: &[&str], default_bytes: u64) -> Result<Picture, String> {
    let mut picture = Picture::default();
    for (i, line) in lines.iter().enumerate() {
        let drawn = line.split(" | ").next().unwrap_or("").trim();
        let mut words = drawn.split_whitespace();
        let Some(pos) = words.next() else { continue };
        let pos = parse_pos(pos).ok_or_else(|| format!("no position like L1.0 in: {line}"))?;
        let seq = 100 * (lines.len() - i) as u64;
        for (j, word) in words.enumerate() {
            let (range, locked, bytes) =
                parse_file(word).ok_or_else(|| format!("no file like a---m in: {word}"))?;
            let id = FileId(picture.files.len() as u64 + 1);
            let mut f = FileMeta::new(id, pos, range);
            f.bytes = bytes.unwrap_or(default_bytes);
            f.entries = f.bytes / 1024;
            let inset = (j as u64).min(49);
            f.seqs = (seq + inset, seq + 99 - inset);
            if locked {
                picture.locked.push(id);
            }
            picture.files.push(f);
        }
    }
    Ok(picture)
}

/// `L1.0` as a position.
pub fn parse_pos(text: &str) -> Option<Pos> {
    let (level, stratum) = text.strip_prefix('L')?.split_once('.')?;
    Some(Pos::new(level.parse().ok()?, stratum.parse().ok()?))
}

/// One drawn file: its range, whether it is locked, its size.
pub fn parse_file(word: &str) -> Option<(KeyRange, bool, Option<u64>)> {
    let (word, bytes) = match word.split_once(':') {
        Some((w, size)) => (w, Some(parse_bytes(size)?)),
        None => (word, None),
    };
    let (word, exclusive) = match word.strip_suffix(')') {
        Some(w) => (w, true),
        None => (word, false),
    };
    let at = word.find(['-', '='])?;
    let (lo, rest) = word.split_at(at);
    let locked = rest.starts_with('=');
    let hi = rest.trim_start_matches(if locked { '=' } else { '-' });
    let (lo, hi) = (unescape(lo)?, unescape(hi)?);
    let hi = if exclusive { End::excl(hi) } else { End::incl(hi) };
    Some((KeyRange { lo: lo.into(), hi }, locked, bytes))
}

/// A number with an optional suffix K, M, G or T (powers of 1024).
pub fn parse_bytes(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The picture of a version, one line per run and a sum at the end of each.
pub fn print(version: &Version, is_locked: impl Fn(FileId) -> bool) -> String {
    let lines = draw(version, &is_locked);
    let width = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = heading(version);
    for (line, run) in lines.iter().zip(version.runs_newest_first()) {
        let n = run.files().len();
        let plural = if n == 1 { "" } else { "s" };
        let _ = writeln!(out, "{line:width$} | {n} file{plural}, {}", readable(run.bytes()));
    }
    out
}

/// The picture alone, as tests compare it: no heading, no sums.
pub fn print_bare(version: &Version, is_locked: impl Fn(FileId) -> bool) -> String {
    draw(version, &is_locked).into_iter().fold(String::new(), |s, line| s + &line + "\n")
}

/// What a picture drawn to scale cannot say in its lines.
fn heading(version: &Version) -> String {
    let bounds = Bounds::of(version);
    if bounds.exact() {
        return String::new();
    }
    let ends = (bounds.keys.first(), bounds.keys.last());
    let (Some(lo), Some(hi)) = ends else { return String::new() };
    format!("keys  {} .. {}\n", clip(&escape(lo)), clip(&escape(hi)))
}

fn draw(version: &Version, is_locked: &impl Fn(FileId) -> bool) -> Vec<String> {
    let bounds = Bounds::of(version);
    let exact = bounds.exact();
    let runs = version.runs_newest_first();
    let line = |run: &Run| match exact {
        true => draw_exact(run, &bounds, is_locked),
        false => draw_scaled(run, &bounds, is_locked),
    };
    let names: Vec<String> = version.runs_newest_first().map(|r| r.pos.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    runs.zip(&names)
        .map(|(r, name)| format!("{name:width$}  {}", line(r)).trim_end().into())
        .collect()
}

/// The distinct bounds of all files, in key order.
struct Bounds<'a> {
    keys: Vec<&'a Key>,
    order: &'a dyn Comparator,
    longest: usize,
}

impl<'a> Bounds<'a> {
    fn of(version: &'a Version) -> Bounds<'a> {
        let order = version.order();
        let mut keys: Vec<&Key> =
            version.files().flat_map(|f| [&f.range.lo, &f.range.hi.key]).collect();
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup_by(|a, b| order.compare(a, b).is_eq());
        // Escaping is at least as long as the key, so long keys need no escaping to be refused.
        let few = keys.len() <= EXACT_BOUNDS_MAX;
        let drawn = |k: &&Key| if few { escape(k).chars().count() } else { k.len() };
        let longest = keys.iter().map(drawn).max().unwrap_or(0);
        Bounds { keys, order, longest }
    }
    fn exact(&self) -> bool {
        self.keys.len() <= EXACT_BOUNDS_MAX && self.longest <= EXACT_KEY_MAX
    }
    fn rank(&self, key: &[u8]) -> usize {
        self.keys.partition_point(|k| self.order.compare(k, key).is_lt())
    }
}

/// Keys at columns of their own; every file with both its keys.
fn draw_exact(run: &Run, bounds: &Bounds, is_locked: &impl Fn(FileId) -> bool) -> String {
    let step = bounds.longest + 4;
    let mut line = String::new();
    let mut length = 0;
    for f in run.files() {
        let fill = if is_locked(f.id) { '=' } else { '-' };
        let (lo, hi) = (escape(&f.range.lo), escape(&f.range.hi.key));
        let from = (bounds.rank(&f.range.lo) * step).max(length + usize::from(length > 0));
        let end = bounds.rank(&f.range.hi.key) * step;
        line.extend(std::iter::repeat_n(' ', from - length));
        let dashes = end.saturating_sub(from + lo.chars().count()).max(1);
        line += &lo;
        line.extend(std::iter::repeat_n(fill, dashes));
        line += &hi;
        if !f.range.hi.inclusive {
            line.push(')');
        }
        length = line.chars().count();
    }
    line
}

/// Each column is an equal share of the bounds; `=` wins over `-`.
fn draw_scaled(run: &Run, bounds: &Bounds, is_locked: &impl Fn(FileId) -> bool) -> String {
    let mut line = vec![' '; SCALED_WIDTH];
    let column =
        |key: &[u8]| bounds.rank(key) * (SCALED_WIDTH - 1) / (bounds.keys.len() - 1).max(1);
    for f in run.files() {
        let (from, to) = (column(&f.range.lo), column(&f.range.hi.key));
        for c in &mut line[from..=to.clamp(from, SCALED_WIDTH - 1)] {
            *c = if is_locked(f.id) || *c == '=' { '=' } else { '-' };
        }
    }
    line.into_iter().collect()
}

/// One line per level: files, bytes, depth. For reports that have no room for a picture.
pub fn summary(version: &Version) -> String {
    let mut levels: BTreeMap<u8, (usize, usize, u64)> = BTreeMap::new();
    for run in version.runs_newest_first() {
        let l = levels.entry(run.pos.level).or_default();
        *l = (l.0 + 1, l.1 + run.files().len(), l.2 + run.bytes());
    }
    let mut out = String::new();
    for (level, (runs, files, bytes)) in levels {
        let depth = version.max_depth(level);
        let bytes = readable(bytes);
        let _ = writeln!(out, "L{level}  runs {runs}  files {files}  depth {depth}  {bytes}");
    }
    out
}

/// Bytes for people.
pub fn readable(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (name, shift) in units {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

/// A key in printable characters, none of which means something in a picture.
fn escape(key: &[u8]) -> String {
    let mut out = String::new();
    for &b in key {
        match b {
            b'-' | b'=' | b':' | b')' | b'|' | b'\\' | 0..=b' ' | 0x7f.. => {
                let _ = write!(out, "\\{b:02x}");
            }
            _ => out.push(b as char),
        }
    }
    if key.is_empty() { "\\".into() } else { out }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    if text == "\\" {
        return Some(Vec::new());
    }
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        if b == b'\\' {
            let (hex, tail) = rest.split_at_checked(2)?;
            out.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = tail;
        } else {
            out.push(b);
        }
    }
    (!out.is_empty()).then_some(out)
}

/// At most 32 characters.
fn clip(text: &str) -> String {
    match text.char_indices().nth(32) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into(),
    }
}
