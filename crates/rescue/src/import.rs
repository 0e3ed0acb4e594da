//! Taking over directories that RocksDB or LevelDB wrote.
//!
//! A new database is made of one by giving its tables second names; none is rewritten. Its logs are
//! copied and replayed by the first open. Or the directory itself becomes ours.
//!
//! ```text
//!   survey    manifest, options, every table and log: refusals come here, before anything exists
//!   link      tables by second names (copies across file systems), logs as copies
//!   CURRENT   from here on the new directory is a database; a crash before leaves none
//!   open      logs become tables, as after any crash
//! ```
//!
//! Keeps: the source is only read. What cannot be taken over is refused by name first.
//! Leaves to others: looking ([`lithify_store::foreign`]), recovery (`open`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use lithify_base::operator::built_in;
use lithify_base::{CfId, Error, MergeOperatorRef, Result, shown, shown_path};
use lithify_env::{Env, LockGuard};
use lithify_files::dir::{Dir, FileName};
use lithify_store::checkpoint::{Checkpoint, Placed};
pub use lithify_store::foreign::Maker;
use lithify_store::foreign::{self, Depth, Survey, survey};
use lithify_store::manifest::Recovered;

use crate::hold;
use lithify_tree::{
    DEFAULT_CF, DEFAULT_NAME, Handle, OpenOptions, ReadOptions, Shell, identity, is_same, open,
    open_reading, recovered,
};

/// How a foreign directory is taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Believe the properties of RocksDB's tables instead of reading every entry first. Quicker for
    /// large directories; an entry that cannot be taken over (wide columns, a block that a compressor of
    /// the program's own made) is then an error when it is read, and damage is found no earlier.
    pub quick: bool,
    /// Compare the new database with the source afterwards, key by key.
    pub verify: bool,
}

/// What an import is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportStage {
    /// Reading the source. Nothing has been written.
    Survey,
    /// Giving tables their second names.
    Link,
    /// Replaying the logs into the new database.
    Logs,
    /// Comparing, key by key.
    Verify,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// What is being done.
    pub stage: ImportStage,
    /// How much of it is done: bytes of tables; keys while comparing.
    pub done: u64,
    /// How much there is to do; 0 if that is not known.
    pub total: u64,
}

/// What was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportReport {
    /// The engine that made the directory.
    pub maker: Maker,
    /// Tables.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Tables that share their bytes with the source, or with the copy that was kept.
    pub linked: u64,
    /// Tables that had to be copied, because they could not be linked.
    pub copied: u64,
    /// Batches of writes that were in the logs.
    pub batches: u64,
    /// Keys that were compared, if that was asked for.
    pub keys: Option<u64>,
    /// What one should know.
    pub notes: Vec<String>,
}

type Watch<'a> = &'a mut dyn FnMut(ImportProgress);

/// What `Builder::import` does.
pub fn import(
    mut with: OpenOptions,
    from: &Path,
    to: &Path,
    options: ImportOptions,
    watch: Watch<'_>,
) -> Result<ImportReport> {
    let Source { env, dir, held, found, mut report } =
        begin(&mut with, from, Some(to), options, watch)?;
    let target = Dir::new(dir.fs().clone(), to);
    let mut done = 0;
    let (made, placed) = copy(found, &env, &dir)?.write(&dir, &target, &mut |bytes| {
        done += bytes;
        watch(ImportProgress { stage: ImportStage::Link, done, total: report.bytes });
    })?;
    drop(held);
    (report.linked, report.copied) = (placed.linked, placed.copied);
    // What is opened now is what was made, whatever has its path meanwhile.
    with.env = Some(Env { fs: made.fs().clone(), ..env });
    let mut new = with.at_home();
    replay(&mut new, to, watch)?;
    if options.verify {
        report.keys = Some(compare((&with, from), (&new, to), watch)?);
    }
    Ok(report)
}

/// What `Builder::import_in_place` does.
pub fn in_place(
    mut with: OpenOptions,
    path: &Path,
    kept: Option<&Path>,
    options: ImportOptions,
    watch: Watch<'_>,
) -> Result<ImportReport> {
    if options.verify && kept.is_none() {
        return Err(Error::invalid(
            "there is nothing to compare with unless the old directory is kept",
        ));
    }
    let Source { dir, held, mut report, .. } = begin(&mut with, path, kept, options, watch)?;
    if let Some(kept) = kept {
        if !dir.places().is_empty() {
            return Err(Error::unsupported(
                "tables of several directories can't be kept in one that RocksDB opens; copy the directories \
                 yourself and import without one to keep, or import into a new directory",
            ));
        }
        let kept = Dir::new(dir.fs().clone(), kept);
        let Placed { linked, copied } = foreign::keep(&dir, &kept)?;
        (report.linked, report.copied) = (linked, copied);
    }
    drop(held);
    with.upgrade = true;
    replay(&mut with, path, watch)?;
    if let Some(kept) = kept.filter(|_| options.verify) {
        report.keys = Some(compare((&with, kept), (&with, path), watch)?);
    }
    Ok(report)
}

/// A directory that may be taken over.
struct Source {
    env: Env,
    dir: Dir,
    /// Keeps its program from opening it.
    held: Option<Box<dyn LockGuard>>,
    found: Survey,
    report: ImportReport,
}

/// Holds the directory in `path` and looks at all of it, and at the place where something is to be
/// made of it; nothing is written.
fn begin(
    with: &mut OpenOptions,
    path: &Path,
    target: Option<&Path>,
    options: ImportOptions,
    watch: Watch<'_>,
) -> Result<Source> {
    with.settings.check()?;
    with.forget_times();
    let env = with.world();
    with.env = Some(env.clone());
    let dir = with.hold(&env.fs, path)?;
    let held = hold(&dir)?;
    let mut found = foreign_manifest(&dir)?;
    with.locate(&dir, &mut found.state)?;
    with.denied = dir.denied()?;
    let env = Env { fs: dir.fs().clone(), ..env };
    with.env = Some(env.clone());
    if let Some(target) = target {
        Dir::new(env.fs.clone(), target).check_target(&dir, "what an import makes")?;
    }
    let found = look(with, &dir, found, options, watch)?;
    let report = described(with, &found);
    Ok(Source { env, dir, held, found, report })
}

/// Opens what is to be a database of ours, so that its logs become tables.
fn replay(with: &mut OpenOptions, path: &Path, watch: Watch<'_>) -> Result<()> {
    watch(ImportProgress { stage: ImportStage::Logs, done: 0, total: 0 });
    with.settings.create_if_missing = false;
    with.settings.error_if_exists = false;
    open(with.clone(), path)?.close()
}

/// The manifest of a foreign directory.
fn foreign_manifest(dir: &Dir) -> Result<Recovered> {
    let found = recovered(dir)?;
    match found.ours {
        false => found.check_room(dir).map(|()| found),
        true => Err(Error::invalid(format!(
            "{} is a database of Lithify already; open it, or copy it with a checkpoint",
            shown_path(dir.path())
        ))),
    }
}

/// The operator that was given for a family.
fn operator_of(with: &OpenOptions, family: &str) -> Option<MergeOperatorRef> {
    match family {
        DEFAULT_NAME => with.operator.clone(),
        name => with.families.get(name).and_then(|options| options.components().operator),
    }
}

/// Surveys the source. The order of ours that it says, and operators of ours that its operands are
/// for, are taken on.
fn look(
    with: &mut OpenOptions,
    source: &Dir,
    found: Recovered,
    options: ImportOptions,
    watch: Watch<'_>,
) -> Result<Survey> {
    let depth = if options.quick { Depth::Properties } else { Depth::Entries };
    let met = RefCell::new(BTreeMap::new());
    let orders =
        |cf: CfId, name: &str, recorded: Option<&str>| with.order_found(cf, name, recorded);
    let knows = |family: &str, name: Option<&str>| match (operator_of(with, family), name) {
        (Some(given), Some(name)) => is_same(given.name(), name),
        // Where nothing else says, the one that is given is believed.
        (Some(_), None) => true,
        (None, name) => {
            let ours = name.and_then(built_in);
            let known = ours.is_some();
            met.borrow_mut().extend(ours.map(|ours| (family.to_owned(), ours)));
            known
        }
    };
    let found = survey(source, found, &orders, &knows, depth, &mut |done, total| {
        watch(ImportProgress { stage: ImportStage::Survey, done, total });
    })?;
    if let Some(order) = found.orders.get(&DEFAULT_CF) {
        with.order = order.clone();
    }
    for (family, operator) in met.into_inner() {
        match family.as_str() {
            DEFAULT_NAME => with.operator = Some(operator),
            _ => {
                let options = with.families.remove(&family).unwrap_or_default();
                with.families.insert(family, options.merge_operator(operator));
            }
        }
    }
    Ok(found)
}

fn described(with: &OpenOptions, found: &Survey) -> ImportReport {
    let mut notes = Vec::new();
    let is_known = |(family, name): &(&String, &String)| {
        let given = operator_of(with, family);
        built_in(name).is_some() || given.is_some_and(|op| is_same(op.name(), name))
    };
    for (family, name) in found.options.merge_operators.iter().filter(|o| !is_known(o)) {
        notes.push(format!(
            "family `{}` had merge operator `{}`; it holds no operands, so the operator \
             is not needed",
            shown(family),
            shown(name)
        ));
    }
    // The program that wrote the directory ends its recovery there as well.
    if let Some(cut) = found.cut.as_ref().filter(|cut| !cut.dropped_logs.is_empty()) {
        let later: Vec<String> =
            cut.dropped_logs.iter().map(|n| FileName::Wal(*n).to_string()).collect();
        notes.push(format!(
            "{} ends at byte {} with writes missing behind it, as after a loss of power; what follows them \
             was left out: {}",
            FileName::Wal(cut.log),
            cut.at,
            later.join(", ")
        ));
    }
    ImportReport {
        maker: found.maker,
        tables: found.tables,
        bytes: found.bytes,
        linked: 0,
        copied: 0,
        batches: found.batches,
        keys: None,
        notes,
    }
}

/// What goes into the new directory.
fn copy(found: Survey, env: &Env, source: &Dir) -> Result<Checkpoint> {
    let db_id = identity(&found, env, source)?;
    let mut state = found.found.state;
    state.db_id = Some(db_id.clone());
    let manifest = state.next_file;
    state.next_file += 1;
    Ok(Checkpoint {
        state,
        manifest,
        logs: found.logs,
        sections: None,
        options: None,
        db_id,
        unsynced: true,
    })
}

/// Compares two directories key by key; how many keys there are.
fn compare(
    old: (&OpenOptions, &Path),
    new: (&OpenOptions, &Path),
    watch: Watch<'_>,
) -> Result<u64> {
    let opened = |(with, path): (&OpenOptions, _)| open_reading(with.clone(), path, Handle::Reads);
    let (old, new) = (opened(old)?, opened(new)?);
    let mut keys = 0;
    for family in old.shell.families() {
        let (old, new) = (&family, new.shell.family_named(family.name())?);
        keys += compare_all(old, &new, keys, watch)?;
    }
    old.close()?;
    new.close()?;
    Ok(keys)
}

/// Keys between two reports of progress.
const REPORTED: u64 = 1 << 14;

/// Compares all keys of a family, after `before` keys of others.
fn compare_all(old: &Shell, new: &Shell, before: u64, watch: Watch<'_>) -> Result<u64> {
    let (mut a, mut b) = (old.iter(&ReadOptions::default())?, new.iter(&ReadOptions::default())?);
    a.seek_to_first();
    b.seek_to_first();
    let mut keys = 0;
    while a.valid() && b.valid() && a.key() == b.key() && a.value() == b.value() {
        a.next();
        b.next();
        keys += 1;
        if keys % REPORTED == 0 {
            watch(ImportProgress { stage: ImportStage::Verify, done: before + keys, total: 0 });
        }
    }
    a.status()?;
    b.status()?;
    if !a.valid() && !b.valid() {
        return Ok(keys);
    }
    let at = if a.valid() { a.key() } else { b.key() };
    Err(Error::corruption(format!(
        "the new database differs from the old one at key {}; use the old one, and report this",
        at.escape_ascii()
    )))
}
