//! `settings`: the settings with the values in force, and why they have them.

use std::path::PathBuf;

use anyhow::Result;
use comfy_table::{ContentArrangement, Table, TableStyle};
use lithify::{EffectiveSetting, Settings as All};
use lithify_base::shown_path;
use serde_json::json;

use crate::failure::{usage, usage_with};
use crate::open::{SetArg, no_family, no_file};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify settings --explain                                  what this machine gets
  lithify settings --explain fruit                            what fruit was last opened with
  lithify settings --explain fruit --family trees             the same of one of its column families
  lithify settings --explain --set memory_budget=4GiB         what would follow
  lithify settings --all                                      those for RocksDB's sake, too
  lithify put --db fruit --set durability=sync apple red      with a setting of one's own

memory_budget, compaction_threads and disk_budget say what the database may take; everything else
follows from them unless it is set. Settings that are there for RocksDB's sake are left out while
they have their defaults; docs/settings.md says what each is. Nothing is opened and nothing changes.";

/// `lithify settings`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Settings {
    /// Directory of a database: its settings instead of this machine's defaults
    #[arg(value_name = "DIR", conflicts_with = "db")]
    dir: Option<PathBuf>,
    /// The same, as every command takes it; LITHIFY_DB does not count here
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Column family of the database, if not the default one
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Say why each setting has its value: what it follows from, or that it was set
    #[arg(long)]
    explain: bool,
    /// Print those for RocksDB's sake too, whatever they are (JSON has all of them anyway)
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    set: SetArg,
    /// Print a JSON array
    #[arg(long, conflicts_with = "explain")]
    json: bool,
}

impl Settings {
    pub(crate) fn run(self) -> Result<()> {
        let (settings, file) = self.asked_for()?;
        let told = settings.explain();
        if self.json {
            as_json(&told)?;
            return Ok(settings.check()?);
        }
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        if self.explain {
            // Reasons are long: they fold where a person looks.
            if output::is_watched() {
                table.set_content_arrangement(ContentArrangement::Dynamic);
                table.set_width(output::columns() as u16);
            }
            table.set_header(["setting", "value", "why"]);
        }
        let seen = |t: &&EffectiveSetting| self.all || !t.for_rocksdb || !t.derived;
        for t in told.iter().filter(seen) {
            let why = match (t.derived, self.set.names(t.name), &file) {
                (false, true, _) => format!("--set: {}", t.reason),
                (false, false, Some(file)) => format!("{file}: {}", t.reason),
                _ => t.reason.clone(),
            };
            let mut row = vec![t.name.to_owned(), t.value.clone()];
            row.extend(self.explain.then_some(why));
            table.add_row(row);
        }
        output::line(&table.to_string())?;
        let left_out = told.len() - told.iter().filter(seen).count();
        if left_out > 0 {
            output::line(&format!(
                "{left_out} more are there for RocksDB's sake and have their defaults; --all prints them"
            ))?;
        }
        // What could not be opened is told last, where it is seen.
        Ok(settings.check()?)
    }

    /// The settings of the machine or of a database, with what was set, and the file that has them.
    fn asked_for(&self) -> Result<(All, Option<String>)> {
        let dir = self.dir.as_ref().or(self.db.as_ref());
        let Some(dir) = dir else {
            if let Some(name) = &self.family {
                let what = format!("--family {name} is of no database");
                return usage_with(what, "name the directory of its database");
            }
            let mut settings = All::default();
            self.set.apply(&mut settings)?;
            return Ok((settings, None));
        };
        no_file(dir, "a database is a directory; name that")?;
        let Some((mut settings, file)) = All::stored_in(dir)? else {
            return usage(format!(
                "{} has no OPTIONS file; name the directory of a database, or none",
                shown_path(dir)
            ));
        };
        self.set.apply(&mut settings)?;
        if let Some(name) = self.family.as_deref().filter(|name| *name != "default") {
            let mut families = All::stored_families_in(dir, &settings)?;
            let Some(own) = families.remove(name) else {
                let names = ["default".to_owned()].into_iter().chain(families.into_keys());
                return no_family(name, &names.collect::<Vec<String>>());
            };
            settings = own;
        }
        Ok((settings, Some(file)))
    }
}

fn as_json(told: &[EffectiveSetting]) -> Result<()> {
    let all: Vec<_> = told
        .iter()
        .map(|t| {
            json!({
                "name": t.name, "value": t.value, "derived": t.derived, "reason": t.reason,
                "live": t.live, "for_rocksdb": t.for_rocksdb, "takes": t.takes, "rocksdb": t.rocksdb,
            })
        })
        .collect();
    output::json(&json!(all))
}
