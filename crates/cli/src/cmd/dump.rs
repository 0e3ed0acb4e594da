//! `dump`: every key and value of every family, in a form that `load --escaped` reads back.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use lithify::{Bytewise, Comparator, Db, ReadOptions, ReverseBytewise};

use crate::dump::{Line, Order, Style};
use crate::failure::usage;
use crate::open::{DbArg, no_family};
use crate::output::{self, Out};
use crate::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  lithify dump --db fruit > fruit.dump
  lithify load --db fruit-2 --escaped fruit.dump        the same keys and values, all families
  lithify dump --db fruit | ssh there lithify load --db fruit --escaped -
  lithify dump --db fruit --json                        one JSON object a line
  lithify dump --db fruit --family trees                only that one, or several

As text, an entry is a line: the key, a tab and the value, escaped as `scan` prints them. Other lines
say which dump and family this is, and the last one how many entries there were, so that `load`
knows a dump that was cut short. As JSON, bytes that are no UTF-8, and those that are shorter so, are
hexadecimal digits in `key_hex` and `value_hex` instead of text in `key` and `value`.

A dump has what a reader sees at that moment: values, with merge operands combined by
--merge-operator. It does not have deletions, older values, sequence numbers or settings; of values
that expire it has the bytes, their time included, so they expire as before where they are loaded
into a family that is opened so. `lithify backup` and `lithify checkpoint` keep all of it.";

/// `lithify dump`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dump {
    /// Directory of the database, in place of --db
    #[arg(value_name = "DIR", conflicts_with = "db")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    db: DbArg,
    /// Only this column family; may be given several times
    #[arg(long, value_name = "NAME")]
    family: Vec<String>,
    /// Write a JSON object a line
    #[arg(long)]
    json: bool,
}

impl Dump {
    pub(crate) fn run(self) -> Result<()> {
        let db = self.db.at(self.dir).for_reading()?;
        let all = db.column_families();
        if let Some(name) = self.family.iter().find(|name| !all.contains(name)) {
            return no_family(name, &all);
        }
        let wanted = |name: &&String| self.family.is_empty() || self.family.contains(name);
        let style = if self.json { Style::Json } else { Style::Text };
        // On a terminal, a counter would stand among the lines.
        let counter = !output::is_watched();
        let mut writer = Writer {
            style,
            out: output::out(),
            line: Vec::new(),
            entries: 0,
            counter: counter.then(Progress::entries),
        };
        writer.write(Line::Begin)?;
        for name in all.iter().filter(wanted) {
            let family = db.column_family(name)?;
            writer.write(Line::Family { name, order: order_of(&family, name)? })?;
            writer.family(&family)?;
        }
        writer.write(Line::End(writer.entries))?;
        Ok(writer.out.flush()?)
    }
}

/// The order of a family's keys, which a dump must be able to say.
fn order_of(family: &Db, name: &str) -> Result<Order> {
    match family.comparator_name() {
        own if own == Bytewise.name() => Ok(Order::Bytewise),
        own if own == ReverseBytewise.name() => Ok(Order::Reverse),
        other => usage(format!(
            "family {name}: its keys are ordered by `{other}`, which `load` cannot make; leave it out with \
             --family"
        )),
    }
}

/// Writes the lines.
struct Writer {
    style: Style,
    out: Out,
    line: Vec<u8>,
    entries: u64,
    counter: Option<Progress>,
}

impl Writer {
    fn family(&mut self, family: &Db) -> Result<()> {
        let options = ReadOptions { skip_cache_fill: true, ..ReadOptions::default() };
        let mut iter = family.iter_opt(&options)?;
        iter.seek_to_first();
        while iter.valid() {
            self.write(Line::Entry { key: iter.key(), value: iter.value() })?;
            self.entries += 1;
            if let Some(counter) = &self.counter {
                counter.count(self.entries);
            }
            iter.next();
        }
        Ok(iter.status()?)
    }

    fn write(&mut self, line: Line<'_>) -> Result<()> {
        self.line.clear();
        self.style.write(line, &mut self.line);
        Ok(self.out.write_all(&self.line)?)
    }
}
