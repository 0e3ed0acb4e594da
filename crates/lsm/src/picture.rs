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
/// Columns of a picture drawn to scale, where nothing says how many there are.
const SCALED_WIDTH: usize = 72;
/// Characters of a key that a heading has room for.
const CLIPPED: usize = 44;
/// Fewest columns that show anything.
const SCALED_WIDTH_MIN: usize = 16;

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
    let bounds = Bounds::of(version);
    let scaled = (!bounds.exact()).then_some(SCALED_WIDTH);
    with_sums(version, &bounds, scaled, &is_locked)
}

/// The same, in lines of at most `columns` characters where that is possible: a picture that is wider with its
/// keys is drawn to scale.
pub fn print_within(
    version: &Version,
    columns: usize,
    is_locked: impl Fn(FileId) -> bool,
) -> String {
    let bounds = Bounds::of(version);
    if bounds.exact() {
        let exact = with_sums(version, &bounds, None, &is_locked);
        if exact.lines().all(|line| line.chars().count() <= columns) {
            return exact;
        }
    }
    // What stands beside the drawing is as wide at any scale.
    let least = with_sums(version, &bounds, Some(SCALED_WIDTH_MIN), &is_locked);
    let runs = least.lines().filter(|line| line.starts_with('L'));
    let widest = runs.map(|line| line.chars().count()).max().unwrap_or(0);
    let room = (columns + SCALED_WIDTH_MIN).saturating_sub(widest).max(SCALED_WIDTH_MIN);
    with_sums(version, &bounds, Some(room), &is_locked)
}

/// The lines with what they come to; `scaled` is the width of a picture drawn to scale.
fn with_sums(
    version: &Version,
    bounds: &Bounds<'_>,
    scaled: Option<usize>,
    is_locked: &impl Fn(FileId) -> bool,
) -> String {
    let lines = draw(version, bounds, scaled, is_locked);
    let width = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = if scaled.is_some() { heading(bounds) } else { String::new() };
    for (line, run) in lines.iter().zip(version.runs_newest_first()) {
        let n = run.files().len();
        let plural = if n == 1 { "" } else { "s" };
        let _ = writeln!(out, "{line:width$} | {n} file{plural}, {}", readable(run.bytes()));
    }
    out
}

/// The picture alone, as tests compare it: no heading, no sums.
pub fn print_bare(version: &Version, is_locked: impl Fn(FileId) -> bool) -> String {
    let bounds = Bounds::of(version);
    let scaled = (!bounds.exact()).then_some(SCALED_WIDTH);
    let lines = draw(version, &bounds, scaled, &is_locked);
    lines.into_iter().fold(String::new(), |s, line| s + &line + "\n")
}

/// What a picture drawn to scale cannot say in its lines: its first and last key.
fn heading(bounds: &Bounds<'_>) -> String {
    let ends = (bounds.keys.first(), bounds.keys.last());
    let (Some(lo), Some(hi)) = ends else { return String::new() };
    format!("first key  {}\nlast key   {}\n", clip(lo), clip(hi))
}

fn draw(
    version: &Version,
    bounds: &Bounds<'_>,
    scaled: Option<usize>,
    is_locked: &impl Fn(FileId) -> bool,
) -> Vec<String> {
    let runs = version.runs_newest_first();
    let line = |run: &Run| match scaled {
        None => draw_exact(run, bounds, is_locked),
        Some(width) => draw_scaled(run, bounds, width, is_locked),
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

/// Each of `width` columns is an equal share of the bounds; `=` wins over `-`.
fn draw_scaled(
    run: &Run,
    bounds: &Bounds,
    width: usize,
    is_locked: &impl Fn(FileId) -> bool,
) -> String {
    let mut line = vec![' '; width];
    let column = |key: &[u8]| bounds.rank(key) * (width - 1) / (bounds.keys.len() - 1).max(1);
    for f in run.files() {
        let (from, to) = (column(&f.range.lo), column(&f.range.hi.key));
        for c in &mut line[from..=to.clamp(from, width - 1)] {
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

/// A key in printable characters, none of which means something in a picture, as the command line takes it.
fn escape(key: &[u8]) -> String {
    let mut out = String::new();
    for &b in key {
        match b {
            b'-' | b'=' | b':' | b')' | b'|' | b'\\' | 0..=b' ' | 0x7f.. => {
                let _ = write!(out, "\\x{b:02x}");
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
            let (hex, tail) = rest.strip_prefix(b"x")?.split_at_checked(2)?;
            out.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = tail;
        } else {
            out.push(b);
        }
    }
    (!out.is_empty()).then_some(out)
}

/// A key, or as many of its first bytes as there is room for; those are a bound and a prefix, too.
fn clip(key: &[u8]) -> String {
    if key.is_empty() {
        return "(the empty key)".to_owned();
    }
    let mut len = 0;
    let fits = |b: &&u8| {
        len += escape(std::slice::from_ref(b)).len();
        len <= CLIPPED
    };
    match key.iter().take_while(fits).count() {
        all if all == key.len() => escape(key),
        some => format!("{} (first {some} of {} bytes)", escape(&key[..some]), key.len()),
    }
}
