//! Opening, and what is asked of a directory without opening it.

use std::path::PathBuf;

use lithify::import::ImportOptions;
use lithify::{Builder, ColumnFamilyOptions, Db, Error, MergeOperatorRef, Settings};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::database::Database;
use crate::errors::{OrRaise, raised};
use crate::follower::Follower;

/// Opens the database in directory `path`, and makes it if there is none.
///
/// `memory` bounds what it keeps in memory (`"256MiB"` or bytes); the other settings follow from that. A setting
/// is named as in the manual's list, and takes a number, a bool or text such as `"64MiB"`; `mapped_reads` is `"auto"`
/// here. `families` has, by name, the settings of families that need some: a dict that may have `merge`.
#[pyfunction]
#[pyo3(signature = (path, *, memory=None, read_only=false, create=true, merge=None, families=None, **settings))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    memory: Option<&Bound<'_, PyAny>>,
    read_only: bool,
    create: bool,
    merge: Option<&str>,
    families: Option<&Bound<'_, PyDict>>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Database> {
    let mut chosen = chosen(memory, settings)?;
    chosen.create_if_missing &= create;
    let builder = with_families(builder(py, chosen.clone(), merge)?, &chosen, families)?;
    let named = path.clone();
    let opened = py.detach(move || match read_only {
        true => builder.open_read_only(path),
        false => builder.create_missing_column_families().open(path),
    });
    Ok(Database::new(opened.or_raise(py)?, named, chosen))
}

/// Follows the database in `path`, which another process writes: a reader that sees what was written since at each
/// `catch_up`. Keywords as for `open`.
#[pyfunction]
#[pyo3(signature = (path, *, memory=None, merge=None, families=None, **settings))]
pub(crate) fn follow(
    py: Python<'_>,
    path: PathBuf,
    memory: Option<&Bound<'_, PyAny>>,
    merge: Option<&str>,
    families: Option<&Bound<'_, PyDict>>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Follower> {
    let chosen = chosen(memory, settings)?;
    let builder = with_families(builder(py, chosen.clone(), merge)?, &chosen, families)?;
    let named = path.clone();
    let follower = py.detach(move || builder.open_follower(path)).or_raise(py)?;
    Ok(Follower::new(follower, named, chosen))
}

/// The names of the families of the database in `path`, `default` first.
#[pyfunction]
pub(crate) fn list_families(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    py.detach(|| Db::list_column_families(path)).or_raise(py)
}

/// Reads every byte of the database in `path`, which is not open, and returns what is wrong, a sentence for each
/// finding; an empty list means that all checks out.
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    let report = py.detach(|| Builder::new(Settings::default()).verify(path, &mut |_| {}));
    let report = report.or_raise(py)?;
    Ok(report.findings.iter().map(ToString::to_string).collect())
}

/// Makes a database in `target`, which is absent or empty, of the directory `source` that RocksDB or LevelDB left.
/// Tables are hard-linked where the file system can; `source` is left as it is. With `check` every key is compared
/// afterwards. What was taken over: a dict of numbers, and what one should know under `notes`.
#[pyfunction]
#[pyo3(signature = (source, target, *, merge=None, check=false))]
pub(crate) fn import_directory<'py>(
    py: Python<'py>,
    source: PathBuf,
    target: PathBuf,
    merge: Option<&str>,
    check: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let builder = builder(py, Settings::default(), merge)?;
    let options = ImportOptions { verify: check, ..ImportOptions::default() };
    let done = py.detach(|| builder.import(source, target, options, &mut |_| {})).or_raise(py)?;
    let all = PyDict::new(py);
    all.set_item("tables", done.tables)?;
    all.set_item("bytes", done.bytes)?;
    all.set_item("linked", done.linked)?;
    all.set_item("copied", done.copied)?;
    all.set_item("batches", done.batches)?;
    all.set_item("keys", done.keys)?;
    all.set_item("notes", done.notes)?;
    Ok(all)
}

/// Takes what is readable out of the damaged database in `source`, which is left as it is, into a new one in
/// `target`. What was found, and under `lost` a sentence for each thing that could not be read.
#[pyfunction]
#[pyo3(signature = (source, target, *, merge=None))]
pub(crate) fn salvage<'py>(
    py: Python<'py>,
    source: PathBuf,
    target: PathBuf,
    merge: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let builder = builder(py, Settings::default(), merge)?;
    let done = py.detach(|| builder.salvage(source, target, &mut |_| {})).or_raise(py)?;
    let all = PyDict::new(py);
    all.set_item("keys", done.keys)?;
    all.set_item("bytes", done.bytes)?;
    all.set_item("tables", done.tables)?;
    all.set_item("entries", done.entries)?;
    all.set_item("batches", done.batches)?;
    all.set_item("lost", done.lost.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    all.set_item("left_out", done.left_out)?;
    all.set_item("notes", done.notes)?;
    Ok(all)
}

/// The settings that `memory` and those given lead to, each name with its value as text.
#[pyfunction]
#[pyo3(signature = (*, memory=None, **settings))]
pub(crate) fn settings<'py>(
    py: Python<'py>,
    memory: Option<&Bound<'py, PyAny>>,
    settings: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    listed(py, &chosen(memory, settings)?)
}

/// The settings that a caller chose by keyword. One has a default of its own here: tables are mapped while they fit, because
/// the stores that Python's users know (LevelDB, LMDB) map theirs.
fn chosen(
    memory: Option<&Bound<'_, PyAny>>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<Settings> {
    let mut chosen = Settings::default();
    if let Some(memory) = memory {
        set(&mut chosen, "memory_budget", memory)?;
    }
    chosen.mapped_reads = None;
    set_all(&mut chosen, settings)?;
    Ok(chosen)
}

fn builder(py: Python<'_>, settings: Settings, merge: Option<&str>) -> PyResult<Builder> {
    let builder = Builder::new(settings);
    match merge {
        Some(name) => Ok(builder.merge_operator(operator(py, name)?)),
        None => Ok(builder),
    }
}

/// The same with what is asked for families by name.
fn with_families(
    mut builder: Builder,
    db: &Settings,
    families: Option<&Bound<'_, PyDict>>,
) -> PyResult<Builder> {
    for (name, wish) in families.iter().flat_map(|all| all.iter()) {
        let name: String = name.extract()?;
        let options = family_options(db, Some(wish.cast::<PyDict>()?))?;
        builder = builder.column_family(&name, options);
    }
    Ok(builder)
}

/// Each setting's name and value.
pub(crate) fn listed<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for row in settings.explain() {
        all.set_item(row.name, row.value)?;
    }
    Ok(all)
}

/// Changes the settings that `changes` names.
fn set_all(settings: &mut Settings, changes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for (name, value) in changes.iter().flat_map(|all| all.iter()) {
        set(settings, &name.extract::<String>()?, &value)?;
    }
    Ok(())
}

fn set(settings: &mut Settings, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    settings.set(name, &text(name, value)?).or_raise(value.py())
}

/// A setting's value as the command line takes it.
pub(crate) fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(if yes.is_true() { "on" } else { "off" }.to_owned());
    }
    let plain = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>();
    if plain {
        return Ok(value.str()?.to_string());
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("`{name}` takes a number, a bool or a str, not {kind}")))
}

/// A family's options; what it does not say is the database's.
pub(crate) fn family_options(
    db: &Settings,
    wish: Option<&Bound<'_, PyDict>>,
) -> PyResult<ColumnFamilyOptions> {
    let mut options = ColumnFamilyOptions::new();
    let Some(wish) = wish else { return Ok(options) };
    let rest = wish.copy()?;
    if let Some(name) = wish.get_item("merge")? {
        rest.del_item("merge")?;
        options = options.merge_operator(operator(wish.py(), &name.extract::<String>()?)?);
    }
    if !rest.is_empty() {
        let mut settings = db.clone();
        set_all(&mut settings, Some(&rest))?;
        options = options.settings(settings);
    }
    Ok(options)
}

fn operator(py: Python<'_>, name: &str) -> PyResult<MergeOperatorRef> {
    lithify::merge::built_in(name).ok_or_else(|| {
        let what = format!(
            "there is no merge operator `{name}`; there are uint64add, stringappend and max"
        );
        raised(py, &Error::invalid(what))
    })
}
