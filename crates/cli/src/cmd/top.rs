//! `top`: a database as it breathes, beside the program that writes it: what is open, what its jobs do, how fast
//! its logs and tables grow, and the tree as a picture. It reads names and sizes of files, the manifest and the
//! event log, opens no table and takes no lock.

use std::fmt::Write as _;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lithify_base::{FileId, shown_path};
use lithify_lsm::picture::print_within;
use lithify_watch::Watch;
use lithify_watch::events::Session;
use lithify_watch::watch::Look;

use crate::cmd::explain::live;
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
first, over the keys that there are, `=` for a file that a job takes. Nothing is locked and nothing changes; what a program keeps for itself,
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
        let mut watch = Watch::new(&self.dir.dir()?)?;
        let began = Instant::now();
        for look in 1.. {
            let found = watch.look(began.elapsed())?.clone();
            let frame = frame(&watch, &found)?;
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

/// What the last look shows.
fn frame(watch: &Watch, look: &Look) -> Result<String> {
    let mut text = format!("{}\n", shown_path(watch.path()));
    text += &match look.owner {
        Some(owner) => live(owner, look.session.as_ref()),
        None => "no program has it open\n".to_owned(),
    };
    text += &watch.growth().told(watch.tables());
    let session = look.session.as_ref().filter(|_| look.owner.is_some());
    let busy = session.map(Session::busy).unwrap_or_default();
    let Some(trees) = watch.trees() else { return Ok(text) };
    trees.each(|_, name, version| {
        let _ = match trees.0.families.len() {
            1 => writeln!(text),
            _ => writeln!(text, "\ncolumn family `{}`", escape(name.as_bytes())),
        };
        let is_busy = |file: FileId| busy.binary_search(&file.0).is_ok();
        let drawn = print_within(version, output::columns(), is_busy);
        text += if version.file_count() == 0 { "no tables\n" } else { &drawn };
        Ok(())
    })?;
    Ok(text)
}
