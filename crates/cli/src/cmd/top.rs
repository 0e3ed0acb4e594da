//! `top`: a database as it breathes, beside the program that writes it: what is open, what its jobs do, how fast
//! its logs and tables grow, and the tree as a picture. It reads names and sizes of files, the manifest and the
//! event log, opens no table and takes no lock.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lithify_base::shown_path;
use lithify_files::Dir;
use lithify_journal::files::FileName;
use lithify_lsm::picture::{print_within, readable};

use crate::cmd::explain;
use crate::cmd::picture::{Trees, dir_of, read};
use crate::open::DirArg;
use crate::output;
use crate::text::escape;

const EXAMPLES: &str = "\
Examples:
  lithify top fruit                     until Ctrl-C, every second
  lithify top fruit --every 10
  lithify top fruit --count 1           once, for a program or a report

The first lines say whether a program has the database open, whether its writes are held back and by what,
and its jobs. `logs` grow as writes come, `tables` as flushes and compactions write; the second rate over the
first, since the start, is the write amplification. Then each column family's tree: a line is a run, newest
first, over the keys that there are. Nothing is locked and nothing changes; what a program keeps for itself,
as the rate to which writes are slowed, it tells with `Db::stats` and `Db::explain`.";

/// To the upper left corner, and clear all below.
const ANEW: &str = "\x1b[H\x1b[J";

/// `lithify top`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    #[command(flatten)]
    dir: DirArg,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = crate::text::number)]
    count: Option<u64>,
}

impl Top {
    pub(crate) fn run(self) -> Result<()> {
        let path = self.dir.dir()?;
        let dir = dir_of(&path)?;
        let mut growth = Growth::new(&dir)?;
        for look in 1.. {
            let frame = frame(&path, &dir, &mut growth)?;
            let mut out = output::out();
            out.write_all(if output::is_watched() { ANEW } else { "" }.as_bytes())?;
            out.write_all(lithify_base::foreign::lines(&frame).to_string().as_bytes())?;
            out.flush()?;
            if self.count.is_some_and(|count| look >= count) {
                break;
            }
            thread::sleep(Duration::from_secs(self.every));
        }
        Ok(())
    }
}

/// What one look shows.
fn frame(path: &Path, dir: &Dir, growth: &mut Growth) -> Result<String> {
    let mut text = format!("{}\n", shown_path(path));
    text += &explain::beside(dir)?;
    growth.look(dir)?;
    text += &growth.told();
    let found = read(path)?;
    let trees = Trees(&found.state);
    trees.each(|_, name, version| {
        let _ = match trees.0.families.len() {
            1 => writeln!(text),
            _ => writeln!(text, "\ncolumn family `{}`", escape(name.as_bytes())),
        };
        let drawn = print_within(version, output::columns(), |_| false);
        text += if version.file_count() == 0 { "no tables\n" } else { &drawn };
        Ok(())
    })?;
    Ok(text)
}

/// How the files of a database grow, by looks at their sizes.
struct Growth {
    began: Instant,
    last: Instant,
    /// Sizes at the last look, by number.
    sizes: Sizes,
    /// What was added since the look before, and in all: of logs and of tables.
    now: [f64; 2],
    all: [u64; 2],
}

/// Sizes of logs and of tables.
type Sizes = [BTreeMap<u64, u64>; 2];

impl Growth {
    fn new(dir: &Dir) -> Result<Growth> {
        let began = Instant::now();
        Ok(Growth { began, last: began, sizes: sizes(dir)?, now: [0.0; 2], all: [0; 2] })
    }

    fn look(&mut self, dir: &Dir) -> Result<()> {
        let (sizes, now) = (sizes(dir)?, Instant::now());
        let seconds = (now - self.last).as_secs_f64().max(1e-3);
        for (kind, now) in sizes.iter().enumerate() {
            let added = added(&self.sizes[kind], now);
            self.all[kind] += added;
            self.now[kind] = added as f64 / seconds;
        }
        (self.sizes, self.last) = (sizes, now);
        Ok(())
    }

    fn told(&self) -> String {
        let mut text = String::new();
        for (kind, name) in ["logs", "tables"].iter().enumerate() {
            let files = &self.sizes[kind];
            let _ = writeln!(
                text,
                "{name:7} {}, {}; growing {}/s, {} in {:.0} s",
                output::count(files.len() as u64, "file"),
                readable(files.values().sum()),
                readable(self.now[kind] as u64),
                readable(self.all[kind]),
                (self.last - self.began).as_secs_f64(),
            );
        }
        if self.all[0] > 0 {
            let _ = writeln!(
                text,
                "write amplification {:.1}",
                self.all[1] as f64 / self.all[0] as f64
            );
        }
        text
    }
}

/// Bytes that files have in `now` beyond what they had in `before`. One that is gone takes nothing away.
fn added(before: &BTreeMap<u64, u64>, now: &BTreeMap<u64, u64>) -> u64 {
    let more = |(number, size): (&u64, &u64)| {
        size.saturating_sub(before.get(number).copied().unwrap_or(0))
    };
    now.iter().map(more).sum()
}

fn sizes(dir: &Dir) -> Result<Sizes> {
    let mut sizes = Sizes::default();
    for entry in dir.list_if_there()?.unwrap_or_default() {
        match entry.file {
            Some(FileName::Wal(number)) => drop(sizes[0].insert(number, entry.len)),
            Some(FileName::Table(number)) => drop(sizes[1].insert(number, entry.len)),
            _ => {}
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_what_came_and_not_what_went() {
        let files = |list: &[(u64, u64)]| list.iter().copied().collect::<BTreeMap<_, _>>();
        let before = files(&[(1, 100), (2, 50)]);
        assert_eq!(added(&before, &files(&[(2, 80), (3, 7)])), 37);
        assert_eq!(added(&before, &before), 0);
        assert_eq!(added(&files(&[]), &before), 150);
    }
}
