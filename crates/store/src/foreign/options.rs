//! What the options file of a foreign directory says that its other files do not.
//!
//! Keeps: only options that decide what bytes mean, or where they are, are looked at. How the other
//! engine was tuned means nothing to this one.
//! Leaves to others: the text's form (`lithify_journal::options`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use lithify_base::{Error, Result};
use lithify_files::dir::{Dir, FileName};
use lithify_journal::options::{FamilySection, OptionsFile};

/// What the newest options file says of the families, by name.
#[derive(Clone, Debug, Default)]
pub struct DeclaredOptions {
    /// Number of the file; `None` if there is none.
    pub number: Option<u64>,
    /// Merge operator of each family that has one.
    pub merge_operators: BTreeMap<String, String>,
    /// Prefix extractor of each family that has one.
    pub prefix_extractors: BTreeMap<String, String>,
    /// Comparator of each family that says one.
    pub comparators: BTreeMap<String, String>,
}

/// Reads the newest options file. `logs` are the numbers of those that are still needed.
///
/// # Errors
/// Corruption if it is damaged; `Unsupported`, naming the option, if the database can't be read
/// without something that is not here: logs in another directory, tables of another form.
pub fn declared(dir: &Dir, logs: &Range<u64>) -> Result<DeclaredOptions> {
    let Some((number, bytes)) = dir.read_options()? else { return Ok(DeclaredOptions::default()) };
    let name = FileName::Options(number);
    let blame = |e: Error| e.in_file(dir.path_of(name).display());
    let file = OptionsFile::parse(&bytes).map_err(blame)?;
    logs_are_here(dir, &file, logs).map_err(blame)?;
    let mut said = DeclaredOptions { number: Some(number), ..DeclaredOptions::default() };
    for family in &file.families {
        tables_are_known(family).map_err(blame)?;
        let note = |map: &mut BTreeMap<String, String>, value: Option<&str>| {
            map.extend(value.map(|v| (family.name.clone(), v.to_owned())));
        };
        note(&mut said.merge_operators, family.merge_operator());
        note(&mut said.prefix_extractors, family.prefix_extractor());
        note(&mut said.comparators, family.comparator());
    }
    Ok(said)
}

/// Logs may lie in a directory of their own, which is on no list of files here.
fn logs_are_here(dir: &Dir, file: &OptionsFile, wanted: &Range<u64>) -> Result<()> {
    let Some(logs) = file.db.get("wal_dir").filter(|d| !d.is_empty()) else { return Ok(()) };
    if Path::new(logs.trim_end_matches('/')) == dir.path() {
        return Ok(());
    }
    let needed = |entry: &lithify_files::dir::Listed| match entry.file {
        Some(FileName::Wal(n)) => wanted.contains(&n),
        _ => false,
    };
    let there = Dir::new(dir.fs().clone(), logs).list_if_there()?;
    let has_others = there.as_ref().is_some_and(|listed| listed.iter().any(needed));
    // Each open database has a log: without one here, it was elsewhere.
    let has_none = there.is_none() && !dir.list()?.iter().any(needed);
    match has_others || has_none {
        false => Ok(()),
        true => Err(Error::unsupported(format!(
            "its logs lie in another directory, {logs} (option `wal_dir`); close the database, move \
             the logs here, and remove that option from this file"
        ))),
    }
}

fn tables_are_known(family: &FamilySection) -> Result<()> {
    let refused = |what: String| {
        Err(Error::unsupported(format!("column family `{}` has {what}", family.name)))
    };
    let is = |option: &str, value: &str| family.table.get(option).is_some_and(|v| v == value);
    match family.options.get("table_factory").map(String::as_str) {
        None | Some("BlockBasedTable") => {}
        Some(other) => {
            return refused(format!("tables of the form `{other}`; only BlockBasedTable is read"));
        }
    }
    if is("use_udi_as_primary_index", "true") {
        return refused("tables with a user-defined index in place of RocksDB's".to_owned());
    }
    if family.comparator().is_some_and(|name| name.ends_with(".u64ts")) {
        return refused("keys with user-defined timestamps".to_owned());
    }
    Ok(())
}
