//! Options as text: by RocksDB's names, one by one, as `name=value;name={name=value}`, and out of the OPTIONS
//! file of a directory.
//!
//! Keeps: a name of text does what the setter of that name does. What has no name here is an error, and
//! changes nothing.
//! Leaves to others: what the options mean (`options`, `table`).

use std::ffi::c_char;
use std::path::Path;

use lithify::{Db, Error, ErrorKind, Settings};

use crate::db::{Database, Family, count};
use crate::face::DEFAULT;
use crate::kept::{TextRow, Texts};
use crate::options::{Caching, Options};
use crate::raw::{Many, Res, c_array, c_text, export, give};
use crate::shared::{Cache, Env};
use crate::table::{FifoOptions, TableOptions, UniversalOptions};

/// What setters of an object begin with.
const OF_OPTIONS: &str = "rocksdb_options_";
const OF_TABLES: &str = "rocksdb_block_based_options_";
const OF_UNIVERSAL: &str = "rocksdb_universal_compaction_options_";
const OF_FIFO: &str = "rocksdb_fifo_compaction_options_";

/// Setters whose names are not those of their options.
const RENAMED: &[(&str, &str)] = &[("data_block_hash_ratio", "data_block_hash_table_util_ratio")];

/// Options that text may change while a database is open, that have no setter, and no effect here.
const WITHOUT_EFFECT: &[&str] = &["paranoid_file_checks", "force_consistency_checks"];

/// Names of values, with RocksDB's numbers.
const NAMES: &[(&str, i32)] = &[
    ("kNoCompression", 0),
    ("kSnappyCompression", 1),
    ("kZlibCompression", 2),
    ("kBZip2Compression", 3),
    ("kLZ4Compression", 4),
    ("kLZ4HCCompression", 5),
    ("kXpressCompression", 6),
    ("kZSTD", 7),
    ("kDisableCompressionOption", 255),
    ("kCompactionStyleLevel", 0),
    ("kCompactionStyleUniversal", 1),
    ("kCompactionStyleFIFO", 2),
    ("kByCompensatedSize", 0),
    ("kOldestLargestSeqFirst", 1),
    ("kOldestSmallestSeqFirst", 2),
    ("kMinOverlappingRatio", 3),
    ("kRoundRobin", 4),
    ("kBinarySearch", 0),
    ("kHashSearch", 1),
    ("kTwoLevelIndexSearch", 2),
    ("kBinarySearchWithFirstKey", 3),
    ("kDataBlockBinarySearch", 0),
    ("kDataBlockBinaryAndHash", 1),
    ("kCompactionStopStyleSimilarSize", 0),
    ("kCompactionStopStyleTotalSize", 1),
];

/// The option that a setter sets.
pub(crate) fn name_of(setter: &'static str, of: &str) -> &'static str {
    let name = setter.strip_prefix(of).unwrap_or(setter);
    let name = name.strip_prefix("set_").unwrap_or(name);
    RENAMED.iter().find(|(set, _)| *set == name).map_or(name, |(_, name)| name)
}

fn row<O: Texts>(of: &str, name: &str) -> Option<&'static TextRow<O>> {
    O::ROWS.iter().find(|row| name_of(row.setter, of) == name)
}

/// Sets an option of one object.
fn set<O: Texts>(object: &mut O, of: &str, name: &str, value: &str) -> Res<()> {
    let row = row::<O>(of, name);
    let row = row.ok_or_else(|| Error::invalid(format!("Unrecognized option: {name}")))?;
    let number = NAMES.iter().find(|(name, _)| *name == value).map(|(_, n)| n.to_string());
    (row.set)(object, number.as_deref().unwrap_or(value))
        .map_err(|error| Error::invalid(format!("{name}={value}")).caused_by(error))
}

/// `name=value;name={name=value;..}` as pairs.
///
/// # Errors
/// `InvalidArgument` for what is none.
fn pairs(text: &str) -> Res<Vec<(&str, &str)>> {
    let (mut pairs, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| {
            Error::invalid(format!("Mismatched key value pair, '=' expected: `{rest}`"))
        })?;
        let mut depth = 0_usize;
        let end = after.char_indices().find(|(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *c == ';' && depth == 0
        });
        let (value, next) = end.map_or((after, ""), |(at, _)| (&after[..at], &after[at + 1..]));
        let value = value.trim();
        let inner = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        pairs.push((name.trim(), inner.unwrap_or(value)));
        rest = next.trim();
    }
    Ok(pairs)
}

/// Sets all options that `text` names on an object within others.
fn set_all<O: Texts>(object: &mut O, of: &str, text: &str) -> Res<()> {
    pairs(text)?.into_iter().try_for_each(|(name, value)| set(object, of, name, value))
}

impl Options {
    /// Sets an option by its name.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none of that name, or it does not take this value.
    pub(crate) fn set_by_name(&mut self, name: &str, value: &str) -> Res<()> {
        match name {
            "block_based_table_factory" | "table_factory" => {
                let mut table = self.table.clone().unwrap_or_default();
                set_all(&mut table, OF_TABLES, value)?;
                table.put(self);
            }
            "compaction_options_universal" => {
                let mut universal = UniversalOptions::default();
                set_all(&mut universal, OF_UNIVERSAL, value)?;
                universal.put(self);
            }
            "compaction_options_fifo" => {
                let mut fifo = FifoOptions::default();
                set_all(&mut fifo, OF_FIFO, value)?;
                fifo.put(self);
            }
            name => set(self, OF_OPTIONS, name, value)?,
        }
        Ok(())
    }

    /// All options with their values, as `name: value`.
    pub(crate) fn shown(&self) -> Vec<String> {
        shown(self, OF_OPTIONS)
    }
}

impl TableOptions {
    /// The same of its own.
    pub(crate) fn shown(&self) -> Vec<String> {
        shown(self, OF_TABLES)
    }
}

fn shown<O: Texts>(object: &O, of: &str) -> Vec<String> {
    let row = |row: &TextRow<O>| format!("{}: {}", name_of(row.setter, of), (row.get)(object));
    O::ROWS.iter().map(row).collect()
}

/// Changes settings of an open database by RocksDB's names of them. What has no effect here is noted.
fn change(db: &Db, n: i32, names: Many<*const c_char>, values: Many<*const c_char>) -> Res<()> {
    let n = count(n, "count")?;
    if n == 0 {
        return Err(Error::invalid("no option is named"));
    }
    let known = db.settings().explain();
    let (mut changes, mut notes) = (Vec::new(), Vec::new());
    for (name, value) in names.texts(n, "keys")?.into_iter().zip(values.texts(n, "values")?) {
        if let Some(setting) = known.iter().find(|setting| setting.rocksdb == Some(name)) {
            let value = match (name == "disable_auto_compactions", value) {
                (true, "true") => "false",
                (true, "false") => "true",
                (_, value) => value,
            };
            changes.push((setting.name, value));
            continue;
        }
        // Looked at like one that an open is given.
        match row::<Options>(OF_OPTIONS, name) {
            Some(row) if row.class == "noted" => (row.set)(&mut Options::new(), value)?,
            _ if WITHOUT_EFFECT.contains(&name) => drop(crate::kept::value::<bool>(value)?),
            _ => return Err(Error::invalid(format!("Unrecognized option: {name}"))),
        }
        notes.push(format!("{name}={value}"));
    }
    db.set_settings(&changes)?;
    if !notes.is_empty() {
        db.note("options_noted", &notes.join(" "));
    }
    Ok(())
}

/// The options that the database in `path` was last opened with, and those of its families by name.
///
/// # Errors
/// `NotFound` if no file there has them; as of reading it.
fn stored(path: &Path, cache: Option<&Cache>) -> Res<(Options, Vec<(String, Options)>)> {
    let (settings, _) = Settings::stored_in(path)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is no OPTIONS file").in_file(format!("{path:?}"))
    })?;
    let others = Settings::stored_families_in(path, &settings)?;
    let db = with(settings, cache);
    let mut families = vec![(DEFAULT.to_owned(), db.clone())];
    families.extend(others.into_iter().map(|(name, settings)| (name, with(settings, cache))));
    Ok((db, families))
}

/// Options with these settings, which their getters tell.
fn with(mut settings: Settings, cache: Option<&Cache>) -> Options {
    let mut options = Options::new();
    for setting in settings.explain() {
        if let Some(name) = setting.rocksdb {
            // Where RocksDB has no such value, its getter tells its default.
            let _ = options.set_by_name(name, &setting.value);
        }
    }
    settings.create_if_missing = false;
    // What it would be from C, and what its getter tells.
    settings.mapped_reads = settings.mapped_reads.or(Some(false));
    options.settings = settings;
    options.kept.forget_notes();
    if let Some(cache) = cache {
        options.cache = Caching::Shared(cache.blocks().clone());
    }
    options
}

export! {
    fn rocksdb_get_options_from_string(
        base: &Options, text: text, options: &mut Options, errptr
    ) {
        let mut new = base.clone();
        for (name, value) in pairs(text)? {
            new.set_by_name(name, value)?;
        }
        *options = new;
        Ok(())
    }
    fn rocksdb_load_latest_options(
        path: path, env: maybe Env, ignores_unknown: bool, cache: maybe Cache,
        options: out *mut Options, n: out usize, names: out *mut *mut c_char,
        of: out *mut *mut Options, errptr
    ) {
        let _ = ignores_unknown;
        n.set(0);
        options.set(std::ptr::null_mut());
        names.set(std::ptr::null_mut());
        of.set(std::ptr::null_mut());
        if env.and_then(Env::world).is_some() {
            return Err(Error::unsupported("load_latest_options of files in memory; set the options"));
        }
        let (db, families) = stored(path, cache)?;
        n.set(families.len());
        options.set(give(db));
        names.set(c_array(families.iter().map(|(name, _)| c_text(name))));
        of.set(c_array(families.into_iter().map(|(_, options)| give(options))));
        Ok(())
    }
    fn rocksdb_set_options(
        db: &Database, n: i32, names: many *const c_char,
        values: many *const c_char, errptr
    ) {
        db.told(change(&db.db(), n, names, values))
    }
    fn rocksdb_set_options_cf(
        db: &Database, family: &Family, n: i32, names: many *const c_char,
        values: many *const c_char, errptr
    ) {
        db.told(change(&*family.inner()?, n, names, values))
    }
}
