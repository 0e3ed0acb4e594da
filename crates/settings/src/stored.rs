//! The settings that a directory was last opened with, out of its newest OPTIONS file: exactly, if
//! it was written here, and as far as the names mean the same, if RocksDB wrote it ([`rocksdb`]).

use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::{Error, Result, shown_path};
use lithify_env::PosixFs;
use lithify_env::sync::Arc;
use lithify_files::dir::Dir;
use lithify_journal::files::FileName;
use lithify_journal::options::{FamilySection, OptionsFile};

use crate::rocksdb::{self, Options};
use crate::table::{ROWS, Settings};

impl Settings {
    /// The settings that the database in `path` was last opened with or changed to, and the name of
    /// the file that says so; `None` if there is none. They need not be sound on this machine: ask
    /// [`check`](Settings::check). An open does not look at them.
    ///
    /// # Errors
    /// Io; Corruption if the file is no OPTIONS file; InvalidArgument if it has a value that this
    /// version does not take.
    pub fn stored_in(path: impl AsRef<Path>) -> Result<Option<(Settings, String)>> {
        read(path.as_ref(), |file| match file.own.is_empty() {
            true => Ok(file.families.first().map_or_else(Settings::default, |f| foreign(file, f))),
            false => with(Settings::default(), &file.own),
        })
    }

    /// The settings that each column family but `default` of the database in `path` was last opened
    /// with or changed to, by name. What a family has in common with the database is taken from
    /// `db`. For `ColumnFamilyOptions::settings`, which has an example; an open does not look at them.
    ///
    /// # Errors
    /// As [`stored_in`](Settings::stored_in).
    pub fn stored_families_in(
        path: impl AsRef<Path>,
        db: &Settings,
    ) -> Result<BTreeMap<String, Settings>> {
        let all = read(path.as_ref(), |file| {
            let of = |family: &FamilySection| {
                let settings = match file.own.is_empty() {
                    // All of it is set, whatever would follow from the database's budgets.
                    true => {
                        Settings { derived_from: None, ..foreign(file, family) }.in_database(db)
                    }
                    false => with(db.clone(), &family.own)?,
                };
                Ok((family.name.clone(), settings))
            };
            file.families.iter().skip(1).map(of).collect()
        })?;
        Ok(all.map(|(families, _)| families).unwrap_or_default())
    }
}

/// What `take` takes out of the newest OPTIONS file in `path`, and the name of that.
fn read<T>(
    path: &Path,
    take: impl FnOnce(&OptionsFile) -> Result<T>,
) -> Result<Option<(T, String)>> {
    let dir = Dir::new(Arc::new(PosixFs::new()), path).hold_if_there()?;
    let Some((number, text)) = dir.read_options()? else { return Ok(None) };
    let name = FileName::Options(number);
    let within = |e: Error| e.in_file(shown_path(&dir.path_of(name)));
    let file = OptionsFile::parse(&text).map_err(within)?;
    Ok(Some((take(&file).map_err(within)?, name.to_string())))
}

/// The settings of a family of a directory that RocksDB wrote.
fn foreign(file: &OptionsFile, family: &FamilySection) -> Settings {
    rocksdb::settings_of(&Options { db: &file.db, family })
}

/// `settings` with what is written down. Names that a later version wrote are passed over.
fn with(mut settings: Settings, own: &BTreeMap<String, String>) -> Result<Settings> {
    // The budgets come first: they move what follows from them.
    for row in ROWS {
        if let Some(value) = own.get(row.name) {
            settings.set(row.name, value)?;
        }
    }
    Ok(settings)
}
