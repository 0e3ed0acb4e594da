//! The trees of a database, from its manifest alone; and a tree as bars over its keys.
//!
//! Keeps: no table is opened, so a database whose tables are damaged can be looked at. A tree of many files becomes
//! at most [`BARS_MAX`] bars a run and [`SCALE`] steps wide.
//!
//! The keys that begin or end a file stand at equal distances, as in the text picture drawn to scale: where a tree
//! has more files, its keys take more room.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lithify_base::{CfId, Error, ErrorKind, Key, shown, shown_path};
use lithify_env::PosixFs;
use lithify_files::Dir;
use lithify_journal::manifest::ManifestState;
use lithify_lsm::Version;
use lithify_store::manifest::{Recovered, family_version, known_order, recover};

/// Steps from the first key to the last.
pub const SCALE: u64 = 4096;
/// Most bars of a run, about.
pub const BARS_MAX: usize = 512;
/// Most trees that are drawn; there may be thousands of families.
pub const TREES_MAX: usize = 64;

/// The trees of all column families.
pub struct Trees<'a>(pub &'a ManifestState);

impl Trees<'_> {
    /// Shows each with the number and the name of its family, one at a time: a tree takes far more memory than its
    /// lines in a manifest.
    ///
    /// # Errors
    /// If a tree is not sound, or its order of keys not known here; what `show` says.
    pub fn each(&self, mut show: impl FnMut(CfId, &str, &Version) -> Result<()>) -> Result<()> {
        for (&cf, family) in &self.0.families {
            let order = known_order(family.comparator.as_deref());
            let order =
                order.with_context(|| format!("column family `{}`", shown(&family.name)))?;
            show(cf, &family.name, &family_version(self.0, cf, order)?)?;
        }
        Ok(())
    }
}

/// The manifest of the database in `path`.
///
/// # Errors
/// If there is none, or it is damaged.
pub fn read(path: &Path) -> Result<Recovered> {
    read_in(&dir_of(path)?, path)
}

/// The same, in its directory.
pub(crate) fn read_in(dir: &Dir, path: &Path) -> Result<Recovered> {
    let none = || {
        let what = "there is no database here (no file CURRENT)";
        Error::new(ErrorKind::NotFound, what).in_file(shown_path(path))
    };
    Ok(recover(dir)?.ok_or_else(none)?)
}

/// The directory `path` on the real file system, held open if it is there.
///
/// # Errors
/// If it is there and can't be opened.
pub fn dir_of(path: &Path) -> Result<Dir> {
    Ok(Dir::new(Arc::new(PosixFs::new()), path).hold_if_there()?)
}

/// A tree as bars over its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its column family.
    pub family: String,
    /// Its first and last key, as the command line takes them.
    pub ends: [String; 2],
    /// Its runs, newest first.
    pub runs: Vec<DrawnRun>,
    /// Most tables that a read of one key looks into.
    pub reads: u64,
    /// Bytes of all its tables for each byte of its deepest level, in hundredths.
    pub space: u64,
    /// Most runs of level 0 over one key.
    pub l0: u32,
}

/// A run as bars.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnRun {
    /// Its level.
    pub level: u8,
    /// Its stratum.
    pub stratum: u64,
    /// Its files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// What is drawn, in the order of keys.
    pub bars: Vec<Bar>,
}

/// A file, or several small neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// From where to where, of [`SCALE`].
    pub span: [u64; 2],
    /// Bytes.
    pub bytes: u64,
    /// The numbers of its files.
    pub files: Vec<u64>,
}

/// `version` as bars.
pub fn draw(family: &str, version: &Version) -> Drawn {
    let order = version.order();
    let mut keys: Vec<&Key> =
        version.files().flat_map(|f| [&f.range.lo, &f.range.hi.key]).collect();
    keys.sort_by(|a, b| order.compare(a, b));
    keys.dedup_by(|a, b| order.compare(a, b).is_eq());
    let widest = keys.len().saturating_sub(1).max(1) as u64;
    let place =
        |key: &Key| keys.partition_point(|k| order.compare(k, key).is_lt()) as u64 * SCALE / widest;
    let runs = version.runs_newest_first().map(|run| {
        let mut bars: Vec<Bar> = Vec::new();
        // Wide enough that so many fit.
        let least = if run.files().len() > BARS_MAX { SCALE / BARS_MAX as u64 } else { 0 };
        for f in run.files() {
            let span = [place(&f.range.lo), place(&f.range.hi.key)];
            match bars.last_mut().filter(|last| span[1] - last.span[0] < least) {
                Some(last) => {
                    last.span[1] = span[1];
                    last.bytes += f.bytes;
                    last.files.push(f.id.0);
                }
                None => bars.push(Bar { span, bytes: f.bytes, files: vec![f.id.0] }),
            }
        }
        DrawnRun {
            level: run.pos.level,
            stratum: u64::from(run.pos.stratum.0),
            files: run.files().len(),
            bytes: run.bytes(),
            bars,
        }
    });
    let all: u64 = version.all_bytes();
    let deepest = version.deepest_level().map_or(0, |level| version.bytes(level));
    let name =
        |key: Option<&&Key>| key.map_or_else(String::new, |k| shown(&***k).short().to_string());
    let levels = 0..=version.deepest_level().unwrap_or(0);
    Drawn {
        family: shown(family).short().to_string(),
        ends: [name(keys.first()), name(keys.last())],
        runs: runs.collect(),
        reads: levels.map(|level| u64::from(version.max_depth(level))).sum(),
        space: u64::try_from(u128::from(all) * 100 / u128::from(deepest.max(1)))
            .unwrap_or(u64::MAX),
        l0: version.max_depth(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_base::Bytewise;
    use lithify_lsm::picture::parse;

    fn version(lines: &[&str]) -> Version {
        let drawn = parse(lines, 100).unwrap();
        Version::empty(Arc::new(Bytewise)).apply(&drawn.edit()).unwrap()
    }

    #[test]
    fn a_tree_is_bars_over_its_keys() {
        let drawn =
            draw("a\u{1b}b", &version(&["L0.8  a---e", "L0.7  a-------i", "L1.0  a---c  e---i"]));
        assert_eq!(drawn.family, "a\\x1bb");
        assert_eq!(drawn.ends, ["a", "i"]);
        assert_eq!((drawn.reads, drawn.l0, drawn.space), (3, 2, 200));
        let runs: Vec<_> = drawn.runs.iter().map(|r| (r.level, r.stratum, r.bytes)).collect();
        assert_eq!(runs, [(0, 8, 100), (0, 7, 100), (1, 0, 200)]);
        // a, c, e and i at equal distances.
        let spans: Vec<_> = drawn.runs[2].bars.iter().map(|bar| bar.span).collect();
        assert_eq!(spans, [[0, 1365], [2730, 4096]]);
        assert_eq!(drawn.runs[0].bars[0].span, [0, 2730]);
    }

    #[test]
    fn many_files_are_few_bars_and_none_is_forgotten() {
        let word = |n: u32| format!("{n:05}--{n:05}x");
        let line = format!("L1.0  {}", (0..5000).map(word).collect::<Vec<_>>().join(" "));
        let drawn = draw("default", &version(&[&line]));
        let bars = &drawn.runs[0].bars;
        assert!(bars.len() <= 2 * BARS_MAX && bars.len() > BARS_MAX / 2, "{}", bars.len());
        let mut files: Vec<u64> = bars.iter().flat_map(|bar| bar.files.clone()).collect();
        files.sort_unstable();
        assert_eq!(files, (1..=5000).collect::<Vec<_>>());
        assert_eq!(bars.iter().map(|bar| bar.bytes).sum::<u64>(), 500_000);
        assert!(bars.is_sorted_by_key(|bar| bar.span));
    }

    #[test]
    fn a_tree_without_files_has_nothing_to_draw() {
        let drawn = draw("default", &Version::empty(Arc::new(Bytewise)));
        assert!(drawn.runs.is_empty() && drawn.ends == ["", ""] && drawn.reads == 0);
    }
}
