//! Which column families a damaged directory has, how each is called, and which tables are whose.
//!
//! A manifest says so, even one that lost edits: no number of a family or a table is used twice. What
//! it does not name tells of itself, in its properties. A family that only a log knows has no name,
//! and is given one.
//!
//! ```text
//!   MANIFEST gone    000012.sst  family 1 `orders`     000015.sst  damaged, of an unknown owner
//!                    000013.sst  family 3 `orders`     000016.log  writes to families 0, 3 and 4
//!   default, orders (3; 1 was dropped before), unnamed-4; 000015.sst is lost
//! ```
//!
//! Keeps: no entry goes to another family than its own. A table of which nothing says whose it is
//! counts only where there is but one family.
//! Leaves to others: reading entries (`table`, `logs`).

use std::collections::{BTreeMap, BTreeSet};

use lithify_base::CfId;
use lithify_files::dir::{Dir, FileName};
use lithify_format::table::props::TableProps;
use lithify_journal::manifest::{ManifestState, WireFile};

use super::logs::Logs;
use super::{DEFAULT_CF, Lost};
use crate::props::properties;

/// Most families that are given a name: hostile logs may tell of any number, and each costs a memtable.
const UNNAMED_MAX: usize = 16;
/// Longest name of a family that the facade takes, bytes.
const NAME_MAX: usize = 1024;
/// What RocksDB writes where a table's family is not known.
const UNKNOWN_CF: u64 = i32::MAX as u64;

/// A column family, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) name: String,
    /// Name of its order of keys, if anything says it.
    pub(super) comparator: Option<String>,
}

/// A table to be read.
pub(super) struct Member<'a> {
    pub(super) number: u64,
    /// Whose it is, if anything says it.
    pub(super) cf: Option<CfId>,
    /// What a manifest says of it.
    pub(super) stated: Option<&'a WireFile>,
}

/// Families and tables of a directory.
pub(super) struct Census<'a> {
    pub(super) families: BTreeMap<CfId, Known>,
    pub(super) tables: Vec<Member<'a>>,
}

impl<'a> Census<'a> {
    /// What `state` says of families, and no tables.
    fn of(state: Option<&'a ManifestState>) -> Census<'a> {
        let mut families = BTreeMap::from([(DEFAULT_CF, Known::default())]);
        let said = state.into_iter().flat_map(|state| &state.families);
        families.extend(said.map(|(cf, f)| {
            (*cf, Known { name: f.name.clone(), comparator: f.comparator.clone() })
        }));
        Census { families, tables: Vec::new() }
    }

    /// What a manifest names that is believed. One that lost its end knows nothing of what was flushed
    /// last, and the log of it may be gone: tables among `listed` with numbers above `last`, the newest
    /// write that is known, can only be that.
    pub(super) fn stated(
        dir: &Dir,
        state: &'a ManifestState,
        listed: &[u64],
        last: u64,
        notes: &mut Vec<String>,
    ) -> Census<'a> {
        let mut census = Census::of(Some(state));
        census.tables.extend(files_of(state).map(|(number, (cf, file))| Member {
            number,
            cf: Some(cf),
            stated: Some(file),
        }));
        let named: BTreeSet<u64> = census.tables.iter().map(|table| table.number).collect();
        for &number in listed.iter().filter(|number| !named.contains(number)) {
            let Ok(props) = properties(dir, number) else { continue };
            let ours = state.db_id.as_deref() == Some(props.creating_db_identity.as_str());
            let newer = props.key_largest_seqno.is_some_and(|seq| seq > last);
            // One of a family that was dropped has no say.
            let lives = family_of(&props)
                .is_some_and(|cf| state.families.contains_key(&cf) || cf.0 > state.max_cf);
            if ours && newer && lives {
                notes.push(format!(
                    "{} has newer writes than the manifest knows of, and was taken",
                    FileName::Table(number)
                ));
                census.add(number, Some(&props), None);
            }
        }
        census
    }

    /// All tables that are `listed`, but for those of another database that were not taken in. `doubted` is a manifest that
    /// reads and lost edits.
    pub(super) fn listed(
        dir: &Dir,
        doubted: Option<&'a ManifestState>,
        listed: &[u64],
        db_id: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Census<'a> {
        let mut census = Census::of(doubted);
        let stated: BTreeMap<u64, _> = doubted.into_iter().flat_map(files_of).collect();
        for &number in listed {
            let props = properties(dir, number).ok();
            let stated = stated.get(&number).copied();
            // A table that was taken in has its maker's identity, or none.
            let own = props.as_ref().filter(|props| !props.is_external());
            let maker = own.map_or("", |props| &props.creating_db_identity);
            if stated.is_none() && !maker.is_empty() && db_id.is_some_and(|id| id != maker) {
                let name = FileName::Table(number);
                notes.push(format!("{name} is of another database: left out"));
                continue;
            }
            census.add(number, props.as_ref(), stated);
        }
        census
    }

    /// Adds a table, and its family if that is new.
    fn add(
        &mut self,
        number: u64,
        props: Option<&TableProps>,
        stated: Option<(CfId, &'a WireFile)>,
    ) {
        let cf = stated.map(|(cf, _)| cf).or_else(|| props.and_then(family_of));
        if let (Some(cf), Some(props)) = (cf, props) {
            let known = self.families.entry(cf).or_default();
            if known.name.is_empty() {
                known.name.clone_from(&props.column_family_name);
            }
            if known.comparator.is_none() && !props.comparator.is_empty() {
                known.comparator = Some(props.comparator.clone());
            }
        }
        self.tables.push(Member { number, cf, stated: stated.map(|(_, file)| file) });
    }

    /// Gives each family a name of its own, those that only `logs` know included, and each table a
    /// family. What has none is in neither.
    pub(super) fn settle(&mut self, logs: &Logs, notes: &mut Vec<String>, lost: &mut Vec<Lost>) {
        for &cf in logs.families.keys() {
            self.families.entry(cf).or_default();
        }
        let alone = self.families.len() == 1;
        self.tables.retain_mut(|table| {
            table.cf = table.cf.or_else(|| alone.then_some(DEFAULT_CF));
            if table.cf.is_none() {
                let what = "nothing says which column family it is of";
                lost.push(Lost::file(FileName::Table(table.number), what));
            }
            table.cf.is_some()
        });
        let mut taken = BTreeSet::from([super::DEFAULT_NAME.to_owned()]);
        let mut nameless = Vec::new();
        // The newest first: of several with one name only it can be there still.
        for (cf, known) in std::mem::take(&mut self.families).into_iter().rev() {
            let name = &known.name;
            if cf == DEFAULT_CF {
                let name = super::DEFAULT_NAME.to_owned();
                self.families.insert(cf, Known { name, ..known });
            } else if name.is_empty() || name.len() > NAME_MAX {
                nameless.push((cf, known));
            } else if taken.insert(name.clone()) {
                self.families.insert(cf, known);
            } else {
                notes.push(format!(
                    "column family number {} was dropped before another `{name}` was made: left out",
                    cf.0
                ));
            }
        }
        for (at, (cf, known)) in nameless.into_iter().rev().enumerate() {
            if at >= UNNAMED_MAX {
                lost.push(self.whole_family(cf, logs));
                continue;
            }
            let mut name = format!("unnamed-{}", cf.0);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            notes.push(format!(
                "nothing says the name of column family number {}: it is `{name}` now",
                cf.0
            ));
            self.families.insert(cf, Known { name, ..known });
        }
        let families = &self.families;
        self.tables.retain(|table| table.cf.is_some_and(|cf| families.contains_key(&cf)));
    }

    fn whole_family(&self, cf: CfId, logs: &Logs) -> Lost {
        let logged = logs.families.get(&cf);
        let table = self.tables.iter().find(|table| table.cf == Some(cf));
        let table = FileName::Table(table.map_or(0, |table| table.number));
        let file = logged.map_or(table, |logged| FileName::Wal(logged.log));
        let what = format!(
            "column family number {}, of which nothing says the name, is left out: there are \
             {UNNAMED_MAX} others",
            cf.0
        );
        let entries = logged.map(|logged| (logged.entries.len() + logged.deletions.len()) as u64);
        Lost { entries, ..Lost::file(file, what) }
    }
}

/// The tables that a manifest names, by number: family and description.
fn files_of(state: &ManifestState) -> impl Iterator<Item = (u64, (CfId, &WireFile))> {
    let all = state.families.iter().flat_map(|(&cf, f)| f.files.values().map(move |f| (cf, f)));
    all.map(|(cf, file)| (file.backing.unwrap_or(file.number), (cf, file)))
}

/// The family that a table says it is of.
fn family_of(props: &TableProps) -> Option<CfId> {
    match props.column_family_id {
        UNKNOWN_CF => None,
        id => u32::try_from(id).ok().map(CfId),
    }
}
