//! The twin programs: one program in C makes random calls and prints what each gives. It is built with RocksDB's
//! header and library, and with ours; the two outputs must be equal.
//!
//! Keeps: every difference that is allowed stands in `tests/twin/allowed.txt` with its reason, at most
//! [`ALLOWED`] lines. `differs TAG` covers what a line prints after `~TAG:`; `avoided NAME` is a call
//! that the program does not make, because what comes after it could not be compared.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::list::Symbol;
use crate::run::call;

/// Lines of the list of differences.
const ALLOWED: usize = 15;

/// How much is run.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub(super) seeds: u64,
    pub(super) first: u64,
    pub(super) calls: u64,
}

/// RocksDB, to build with: the folder of `rocksdb/c.h`, and the library.
pub(super) struct Peer {
    pub(super) headers: PathBuf,
    pub(super) library: PathBuf,
}

/// Builds both programs and runs them side by side.
///
/// # Errors
/// The first difference that is not allowed, or a line of the list that is not needed.
pub(super) fn run(
    symbols: &[Symbol],
    room: &Path,
    place: &Path,
    peer: &Peer,
    wish: Wish,
) -> Result<()> {
    let folder = room.join("tests/twin");
    let allowed = fs::read_to_string(folder.join("allowed.txt")).context("reading allowed.txt")?;
    let allowed = tags(&allowed)?;
    let home = place.join("twin");
    fs::create_dir_all(&home)?;
    fs::write(home.join("pairs.inc"), pairs(symbols))?;
    let ours = build(&folder, &home, "ours", |gcc| {
        gcc.arg("-DTWIN_HEADER=<lithify_rocksdb.h>").arg("-I").arg(place.join("include"));
        gcc.arg(place.join("liblithify.so.0")).arg(format!("-Wl,-rpath,{}", place.display()));
    })?;
    let theirs = build(&folder, &home, "theirs", |gcc| {
        let dir = peer.library.parent().unwrap_or(Path::new("."));
        gcc.arg("-DTWIN_HEADER=<rocksdb/c.h>").arg("-I").arg(&peer.headers);
        gcc.arg(&peer.library).arg(format!("-Wl,-rpath,{}", dir.display()));
    })?;
    let mut met = BTreeSet::new();
    for seed in wish.first..wish.first + wish.seeds {
        let lines = compare(&ours, &theirs, &home, seed, wish.calls, &allowed, &mut met)?;
        eprintln!("twin: seed {seed}: {lines} lines equal");
    }
    match allowed.iter().find(|tag| !met.contains(*tag)) {
        Some(tag) if wish.calls * wish.seeds >= 1_000_000 => {
            bail!("allowed.txt has `{tag}`, and nothing differs there")
        }
        _ => Ok(()),
    }
}

/// The tags of the list.
fn tags(text: &str) -> Result<BTreeSet<String>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    if lines.len() > ALLOWED {
        bail!("allowed.txt has {} lines; {ALLOWED} are the most", lines.len());
    }
    let mut tags = BTreeSet::new();
    for line in lines {
        let (head, reason) =
            line.split_once(": ").with_context(|| format!("allowed.txt: `{line}`"))?;
        match head.split_once(' ') {
            Some(("differs", tag)) if !reason.is_empty() => drop(tags.insert(tag.to_owned())),
            Some(("avoided", _)) if !reason.is_empty() => {}
            _ => bail!(
                "allowed.txt: `{line}` is neither `differs TAG: reason` nor `avoided NAME: reason`"
            ),
        }
    }
    Ok(tags)
}

fn build(
    folder: &Path,
    home: &Path,
    name: &str,
    with: impl FnOnce(&mut Command),
) -> Result<PathBuf> {
    let binary = home.join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(home);
    gcc.args(super::c_files(folder)?).arg("-o").arg(&binary);
    with(&mut gcc);
    call(&mut gcc)?;
    Ok(binary)
}

fn start(binary: &Path, home: &Path, seed: u64, calls: u64) -> Result<Child> {
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    let data = home.join(format!("{name}-data"));
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    fs::create_dir_all(&data)?;
    let mut command = Command::new(binary);
    command.args([seed.to_string(), calls.to_string()]).arg(&data).stdout(Stdio::piped());
    command.spawn().with_context(|| format!("starting {}", binary.display()))
}

/// Runs both at once; the number of lines, or the first that differ.
fn compare(
    ours: &Path,
    theirs: &Path,
    home: &Path,
    seed: u64,
    calls: u64,
    allowed: &BTreeSet<String>,
    met: &mut BTreeSet<String>,
) -> Result<u64> {
    let mut both = [start(ours, home, seed, calls)?, start(theirs, home, seed, calls)?];
    let outputs = both.each_mut().map(|child| child.stdout.take());
    let [Some(mine), Some(other)] = outputs else { bail!("a program without output") };
    let (mut mine, mut other) =
        (BufReader::new(mine).split(b'\n'), BufReader::new(other).split(b'\n'));
    let (mut lines, mut last) = (0, String::new());
    let differs = loop {
        let next = (mine.next().transpose()?, other.next().transpose()?);
        let next = (text(next.0), text(next.1));
        match next {
            (None, None) => break None,
            (Some(a), Some(b)) if is_same(&a, &b, allowed, met) => last = a,
            (a, b) => break Some((a, b)),
        }
        lines += 1;
    };
    for child in &mut both {
        if differs.is_some() {
            drop(child.kill());
        }
        let status = child.wait()?;
        if differs.is_none() && !status.success() {
            bail!("seed {seed}: a program ended with {status} after {lines} lines");
        }
    }
    let Some((a, b)) = differs else { return Ok(lines) };
    let end = || "(its output ends)".to_owned();
    let (a, b) = (a.unwrap_or_else(end), b.unwrap_or_else(end));
    bail!(
        "twin: seed {seed} differs after {lines} lines\n before: {last}\n   ours: {a}\n theirs: {b}\n\
         in full: {} {seed} {} DIR {}",
        ours.display(),
        lines + 1,
        lines.saturating_sub(1)
    )
}

fn text(bytes: Option<Vec<u8>>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Equal, or only after an allowed tag.
fn is_same(a: &str, b: &str, allowed: &BTreeSet<String>, met: &mut BTreeSet<String>) -> bool {
    if a == b {
        return true;
    }
    let (a, b) = (a.split_once('~'), b.split_once('~'));
    let (Some((a, rest)), Some((b, other))) = (a, b) else { return false };
    let tag = rest.split(':').next().unwrap_or_default();
    let allowed = a == b && allowed.contains(tag) && other.split(':').next() == Some(tag);
    if allowed {
        met.insert(tag.to_owned());
    }
    allowed
}

/// Each setter that has a getter as C, and a function that says all options of one object.
pub(super) fn pairs(symbols: &[Symbol]) -> String {
    let (mut code, mut table, mut all) = (String::new(), String::new(), String::new());
    let plain = |name: &str, n: usize| {
        symbols.iter().any(|s| s.name == name && s.params.len() == n && s.class != "refused")
    };
    for get in symbols.iter().filter(|s| s.params.len() == 1 && !s.result.ends_with('*')) {
        let Some((object, option)) = get.name.split_once("_get_") else { continue };
        if option == "statistics_level" {
            // RocksDB's needs statistics, of which there are none.
            continue;
        }
        let (create, destroy) = (format!("{object}_create"), format!("{object}_destroy"));
        let set = [format!("{object}_set_{option}"), format!("{object}_{option}")];
        let set = set.into_iter().find(|set| plain(set, 2));
        let (Some(set), true, true) = (set, plain(&create, 0), plain(&destroy, 1)) else {
            continue;
        };
        let (name, get) = (format!("pair_{object}_{option}"), (&get.name, get.result.as_str()));
        let call = format!("({name}, {object}_t, {create}, {destroy}, {set}, {}", get.0);
        let _ = match get.1 {
            "double" => writeln!(code, "REAL{call})"),
            "unsigned char" | "bool" => writeln!(code, "WHOLE{call}, 2)"),
            _ => writeln!(code, "WHOLE{call}, 4)"),
        };
        let _ = writeln!(table, "  {{\"{set}\", {name}}},");
        if object == "rocksdb_options" {
            let _ = writeln!(all, "  say(\" %g\", (double){}(o));", get.0);
        }
    }
    format!(
        "/* Made of symbols.txt. */\n{code}static const struct {{\n  const char* name;\n  void (*run)(void);\n}} \
         pairs[] = {{\n{table}}};\nstatic void say_options(rocksdb_options_t* o) {{\n{all}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_differ_after_an_allowed_tag_alone() {
        let allowed = tags("differs x: why\navoided y: why\n").unwrap();
        let mut met = BTreeSet::new();
        for (a, b, same) in [
            ("1 get = a", "1 get = a", true),
            ("1 get = a", "1 get = b", false),
            ("1 get = a ~x: 1", "1 get = a ~x: 2", true),
            ("1 get = a ~x: 1", "1 get = b ~x: 1", false),
            ("1 get = a ~z: 1", "1 get = a ~z: 2", false),
            ("1 get = a ~x: 1", "1 get = a", false),
        ] {
            assert_eq!(is_same(a, b, &allowed, &mut met), same, "{a} | {b}");
        }
        assert_eq!(met, allowed);
        for wrong in ["x: why\n", "differs x\n", "may x: why\n", &"differs x: why\n".repeat(16)] {
            assert!(tags(wrong).is_err(), "{wrong}");
        }
    }
}
