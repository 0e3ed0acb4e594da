//! Directories for tables, as a command line names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lithify::{Builder, ColumnFamilyOptions, Settings, TableDir};
use lithify_bench::parse_bytes;
use lithify_files::Dir;
use lithify_store::places;
use lithify_watch::tree::dir_of;

use crate::failure::usage_with;

/// `--table-dir [FAMILY=]DIR[:SIZE]`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TableDirArg {
    /// Directory with tables of the database, for each that it has, in order, with the bytes that it is to
    /// hold (without: only what is flushed, or all that is left if it is the last); of another column
    /// family with its name before it
    #[arg(long, value_name = "[FAMILY=]DIR[:SIZE]")]
    table_dir: Vec<String>,
}

impl TableDirArg {
    /// Those of the database, in its settings.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<()> {
        settings.table_dirs = self.of("default")?;
        Ok(())
    }
    /// Those of the column families that are named.
    pub(crate) fn families(&self) -> Result<BTreeMap<String, Vec<TableDir>>> {
        let names = self.table_dir.iter().filter_map(|text| family_of(text).0);
        let others = names.filter(|name| *name != "default");
        others.map(|name| Ok((name.to_owned(), self.of(name)?))).collect()
    }
    /// The directory of a database with all of them that are there.
    pub(crate) fn attached(&self, dir: &Path) -> Result<Dir> {
        let place = dir_of(dir)?;
        let all = self.table_dir.iter().map(|text| Ok(parsed(family_of(text).1)?.path));
        places::attach(&place, &all.collect::<Result<Vec<_>>>()?)?;
        Ok(place)
    }
    /// A builder that knows them all, for those who only look at tables.
    pub(crate) fn builder(&self) -> Result<Builder> {
        let mut settings = Settings::default();
        self.apply(&mut settings)?;
        let own = |dirs| {
            let own = Settings { table_dirs: dirs, ..Settings::default() };
            ColumnFamilyOptions::new().settings(own)
        };
        let families = self.families()?.into_iter();
        let builder = Builder::new(settings);
        Ok(families.fold(builder, |b, (name, dirs)| b.column_family(&name, own(dirs))))
    }
    /// Those of one family.
    fn of(&self, family: &str) -> Result<Vec<TableDir>> {
        let of = self.table_dir.iter().map(|text| family_of(text));
        let own = of.filter(|(name, _)| name.unwrap_or("default") == family);
        own.map(|(_, text)| parsed(text)).collect()
    }
}

/// The family that is named before a directory. A sign `=` behind a `/` is one of the directory.
fn family_of(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((family, dir)) if !family.contains('/') => (Some(family), dir),
        _ => (None, text),
    }
}

fn parsed(text: &str) -> Result<TableDir> {
    let (path, target_bytes) = match text.rsplit_once(':') {
        Some((path, size)) => match parse_bytes(size) {
            Ok(bytes) => (path, bytes),
            Err(_) => {
                return usage_with(
                    format!("--table-dir {text}: `{size}` is no size"),
                    "write DIR:SIZE, as --table-dir /fast/fruit:10GiB",
                );
            }
        },
        None => (text, 0),
    };
    Ok(TableDir { path: PathBuf::from(path), target_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(of: &[&str]) -> TableDirArg {
        TableDirArg { table_dir: of.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn dir(path: &str, target_bytes: u64) -> TableDir {
        TableDir { path: path.into(), target_bytes }
    }

    #[test]
    fn directories_have_sizes_and_families() {
        let given = arg(&["/fast:1GiB", "cold=/a=b/cold", "default=/large", "cold=c:5MB"]);
        let mut settings = Settings::default();
        given.apply(&mut settings).unwrap();
        assert_eq!(settings.table_dirs, [dir("/fast", 1 << 30), dir("/large", 0)]);
        let cold = vec![dir("/a=b/cold", 0), dir("c", 5_000_000)];
        assert_eq!(given.families().unwrap(), BTreeMap::from([("cold".to_owned(), cold)]));
        assert_eq!(arg(&["/a=b"]).of("default").unwrap(), [dir("/a=b", 0)]);
        assert!(arg(&["/a:much"]).of("default").is_err());
    }
}
