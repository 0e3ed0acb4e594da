//! What a manifest adds up to: edits replayed into plain state, and that state as the first
//! edits of a new manifest.
//!
//! Keeps: an atomic group takes effect whole or not at all; a file is added once and deleted
//! only if it is there; `replay(snapshot(s)) == s`.
//! Leaves to others: runs, levels and their invariants; whether named files exist.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lithify_base::{CfId, Error, Level, Result, Seq};

use super::edit::{Place, WalAddition, WireEdit};
use super::file::WireFile;
use crate::wal::tail::{Damage, Findings, What, judge};
use crate::wal::{Found, LogBytes, Promise, RecordKind, RecordReader, RecordWriter, Verdict};

/// State of one column family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyState {
    /// Name.
    pub name: String,
    /// Comparator name, if recorded.
    pub comparator: Option<String>,
    /// Logs below this number hold nothing that the family still needs.
    pub log_number: u64,
    /// Live files by number.
    pub files: BTreeMap<u64, WireFile>,
    /// Where the next compaction of a level starts.
    pub cursors: BTreeMap<Level, Vec<u8>>,
    /// Bucket map hint, opaque here.
    pub bucket_hint: Option<Vec<u8>>,
}

/// State of a database as its manifest tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestState {
    /// Database id, if recorded.
    pub db_id: Option<String>,
    /// Next file number.
    pub next_file: u64,
    /// Last sequence number.
    pub last_seq: Seq,
    /// LevelDB's second log; 0 today.
    pub prev_log: u64,
    /// Logs below this number may be deleted.
    pub min_log_to_keep: u64,
    /// The first log with what a transaction prepared that may count; 0 if there is none.
    pub sections_from: u64,
    /// Largest family id ever used.
    pub max_cf: u32,
    /// Live families by id. `default` (0) is always there.
    pub families: BTreeMap<CfId, FamilyState>,
    /// Logs the manifest names, with the size known to be synced.
    pub wals: BTreeMap<u64, Option<u64>>,
}

impl Default for ManifestState {
    fn default() -> Self {
        let default = FamilyState { name: "default".to_owned(), ..FamilyState::default() };
        ManifestState {
            db_id: None,
            next_file: 0,
            last_seq: 0,
            prev_log: 0,
            min_log_to_keep: 0,
            sections_from: 0,
            max_cf: 0,
            families: BTreeMap::from([(CfId(0), default)]),
            wals: BTreeMap::new(),
        }
    }
}

impl ManifestState {
    /// Logs below this number hold nothing that any family needs, nor any prepared transaction.
    pub fn first_log(&self) -> u64 {
        let least = self.families.values().map(|family| family.log_number).min().unwrap_or(0);
        let of_families = least.max(self.min_log_to_keep);
        match self.sections_from {
            0 => of_families,
            sections => of_families.min(sections),
        }
    }
    /// Numbers of the logs that families may need. Those made after the last edit are among them once
    /// the next file number is above them, too.
    pub fn logs(&self) -> Range<u64> {
        let first = self.first_log();
        first..self.next_file.max(first)
    }
    /// Applies one edit. `Corruption` if it contradicts the state; the state is then unusable.
    pub fn apply(&mut self, edit: &WireEdit) -> Result<()> {
        let name = edit.cf_add.as_ref();
        let taken = name.is_some_and(|name| self.families.values().any(|f| f.name == *name));
        self.apply_named(edit, taken)
    }

    /// The same if it is known whether another family has the name that `edit` adds.
    fn apply_named(&mut self, edit: &WireEdit, taken: bool) -> Result<()> {
        if let Some(id) = &edit.db_id {
            self.db_id = Some(id.clone());
        }
        self.next_file = edit.next_file.unwrap_or(self.next_file).max(self.next_file);
        self.last_seq = edit.last_seq.unwrap_or(self.last_seq).max(self.last_seq);
        self.prev_log = edit.prev_log.unwrap_or(self.prev_log);
        self.max_cf = edit.max_cf.unwrap_or(0).max(self.max_cf).max(edit.cf.0);
        self.min_log_to_keep = edit.min_log_to_keep.unwrap_or(0).max(self.min_log_to_keep);
        self.sections_from = edit.sections_from.unwrap_or(self.sections_from);
        self.apply_wals(edit);
        self.apply_family(edit, taken)
    }

    /// The edits that rebuild this state: the head of a new manifest, in RocksDB's order.
    pub fn snapshot(&self) -> Vec<WireEdit> {
        let mut edits = vec![WireEdit { db_id: self.db_id.clone(), ..WireEdit::default() }];
        let wals = self.wals.iter().map(|(&number, &synced)| WalAddition { number, synced });
        edits.push(WireEdit { wal_additions: wals.collect(), ..WireEdit::default() });
        if self.min_log_to_keep > 0 {
            let wals_deleted_below = Some(self.min_log_to_keep);
            edits.push(WireEdit { wals_deleted_below, ..WireEdit::default() });
        }
        for (&cf, family) in &self.families {
            edits.push(WireEdit {
                cf,
                cf_add: (cf.0 != 0).then(|| family.name.clone()),
                comparator: family.comparator.clone(),
                ..WireEdit::default()
            });
            edits.push(WireEdit {
                cf,
                added: family.files.values().cloned().collect(),
                cursors: family.cursors.iter().map(|(&l, k)| (l, k.clone())).collect(),
                bucket_hint: family.bucket_hint.clone(),
                log_number: Some(family.log_number),
                ..WireEdit::default()
            });
        }
        edits.push(WireEdit {
            next_file: Some(self.next_file),
            last_seq: Some(self.last_seq),
            prev_log: Some(self.prev_log),
            max_cf: Some(self.max_cf),
            min_log_to_keep: (self.min_log_to_keep > 0).then_some(self.min_log_to_keep),
            sections_from: (self.sections_from > 0).then_some(self.sections_from),
            ..WireEdit::default()
        });
        edits.retain(|edit| *edit != WireEdit::default());
        edits
    }

    /// The bytes of manifest `number`, new, that holds this state, and the writer that continues
    /// it.
    pub fn to_manifest(&self, number: u64) -> (Vec<u8>, ManifestWriter) {
        let mut writer = ManifestWriter { number, edits: 0, records: RecordWriter::new() };
        let mut bytes = Vec::new();
        self.snapshot().iter().for_each(|edit| writer.append(edit, &mut bytes));
        (bytes, writer)
    }

    fn apply_wals(&mut self, edit: &WireEdit) {
        for wal in &edit.wal_additions {
            let synced = self.wals.entry(wal.number).or_default();
            *synced = (*synced).max(wal.synced);
        }
        let floor = edit.wals_deleted_below.unwrap_or(0).max(self.min_log_to_keep);
        self.wals = self.wals.split_off(&floor);
    }

    fn apply_family(&mut self, edit: &WireEdit, taken: bool) -> Result<()> {
        let cf = edit.cf;
        if let Some(name) = &edit.cf_add {
            if self.families.contains_key(&cf) || taken {
                return Err(Error::corruption(format!(
                    "the manifest adds column family {} `{name}` twice",
                    cf.0
                )));
            }
            self.families.insert(cf, FamilyState { name: name.clone(), ..Default::default() });
        }
        let Some(family) = self.families.get_mut(&cf) else {
            // RocksDB may log a last edit about a family that was just dropped.
            return if cf.0 <= self.max_cf && edit.added.is_empty() && !edit.cf_drop {
                Ok(())
            } else {
                Err(Error::corruption(format!("the manifest names unknown column family {}", cf.0)))
            };
        };
        if edit.cf_drop {
            if cf.0 == 0 {
                return Err(Error::corruption("the manifest drops the default column family"));
            }
            self.families.remove(&cf);
            return Ok(());
        }
        family.apply(edit)
    }
}

/// Makes records of edits, each of which says where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestWriter {
    number: u64,
    edits: u64,
    records: RecordWriter,
}

impl ManifestWriter {
    /// Appends the record of the next edit to `out`.
    pub fn append(&mut self, edit: &WireEdit, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        Place { manifest: self.number, edit: self.edits }.encode(&mut payload);
        edit.encode(&mut payload);
        self.records.append(&payload, out);
        self.edits += 1;
    }
}

impl FamilyState {
    fn apply(&mut self, edit: &WireEdit) -> Result<()> {
        if let Some(name) = &edit.comparator {
            if self.comparator.as_ref().is_some_and(|known| known != name) {
                return Err(Error::corruption(format!(
                    "the manifest changes the comparator of column family `{}` to `{name}`",
                    self.name
                )));
            }
            self.comparator = Some(name.clone());
        }
        self.log_number = edit.log_number.unwrap_or(0).max(self.log_number);
        for (level, number) in &edit.deleted {
            match self.files.remove(number) {
                Some(file) if file.level == *level => {}
                _ => {
                    return Err(Error::corruption(format!(
                        "the manifest deletes file {number:06} of level {level}, which is not there"
                    )));
                }
            }
        }
        for file in &edit.added {
            if self.files.insert(file.number, file.clone()).is_some() {
                return Err(Error::corruption(format!(
                    "the manifest adds file {:06} twice",
                    file.number
                )));
            }
        }
        self.cursors.extend(edit.cursors.iter().cloned());
        if edit.bucket_hint.is_some() {
            self.bucket_hint.clone_from(&edit.bucket_hint);
        }
        Ok(())
    }
}

/// A manifest, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRead {
    /// What it adds up to.
    pub state: ManifestState,
    /// End of the last record that took effect. A writer that goes on in this file first cuts
    /// it here, because an unfinished atomic group or torn bytes may follow.
    pub good_end: u64,
    /// How the file ends; never `Corruption`.
    pub verdict: Verdict,
    /// Its first edit says where it stands: only ours do.
    pub ours: bool,
}

/// Reads the bytes of a whole manifest. `promised` is an offset below which the file is known to
/// have been synced (0 if none is known).
///
/// Errors: `Corruption` if a record below `promised` is bad, an edit contradicts the ones before
/// it, or the fields every database has are missing; `Unsupported` for features this version
/// lacks.
pub fn read_manifest(bytes: &[u8], promised: u64) -> Result<ManifestRead> {
    read_manifest_over(LogBytes::whole(bytes), promised)
}

/// The same over bytes with stretches of zeros left out.
///
/// Errors: as [`read_manifest`].
pub fn read_manifest_over(bytes: LogBytes<'_>, promised: u64) -> Result<ManifestRead> {
    let mut reader = RecordReader::over(bytes, None);
    let mut state = ManifestState::default();
    let mut names: BTreeSet<String> = state.families.values().map(|f| f.name.clone()).collect();
    let mut required = Required::default();
    let mut group: Vec<WireEdit> = Vec::new();
    let mut places = Places::default();
    let mut good_end = 0;
    let damage = loop {
        let record = match reader.next_record() {
            Found::Record(record) => record,
            Found::Refused(e) => return Err(e),
            Found::Damage(damage) => break Some(damage),
            Found::End => break None,
        };
        if record.kind != RecordKind::Data {
            continue;
        }
        if !places.fits(&record.payload) {
            break Some(Damage { offset: record.offset, what: What::Misplaced });
        }
        let at = |e: Error| {
            let place = format!("in the edit at byte {}", record.offset);
            Error::new(e.kind(), place).at(record.offset).caused_by(e)
        };
        let edit = WireEdit::decode(&record.payload).map_err(at)?;
        let open = match edit.group_remaining {
            Some(remaining) => remaining > 0,
            None if group.is_empty() => false,
            None => return Err(at(Error::corruption("an atomic group is interrupted"))),
        };
        group.push(edit);
        if open {
            continue;
        }
        for edit in group.drain(..) {
            required.note(&edit);
            let taken = edit.cf_add.as_ref().is_some_and(|name| names.contains(name));
            let gone = state.families.get(&edit.cf).filter(|_| edit.cf_drop);
            let gone = gone.map(|family| family.name.clone());
            state.apply_named(&edit, taken).map_err(at)?;
            match gone {
                Some(name) => drop(names.remove(&name)),
                None => names.extend(edit.cf_add.filter(|_| !edit.cf_drop)),
            }
        }
        good_end = record.end;
    };
    let found = Findings { len: bytes.len(), good_end, damage, ..Findings::default() };
    let mut verdict = judge(&found, &Promise { synced: promised, end: None });
    verdict.into_result(good_end)?;
    required.check()?;
    if !group.is_empty() {
        verdict = Verdict::TornTail { cut_at: good_end };
    }
    Ok(ManifestRead { state, good_end, verdict, ours: places.manifest.is_some() })
}

/// Whether each edit stands where it was written. Known from the first edit on, which was synced
/// before CURRENT named the manifest; in one that says nothing of places, as RocksDB's, any edit
/// fits.
#[derive(Default)]
struct Places {
    edits: u64,
    manifest: Option<u64>,
}

impl Places {
    fn fits(&mut self, record: &[u8]) -> bool {
        let place = Place::of(record);
        if self.edits == 0 {
            self.manifest = place.map(|p| p.manifest);
        }
        let expected = self.manifest.map(|manifest| Place { manifest, edit: self.edits });
        self.edits += 1;
        expected.is_none() || place == expected
    }
}

/// The three fields without which a manifest describes no database.
#[derive(Default)]
struct Required {
    next_file: bool,
    log_number: bool,
    last_seq: bool,
}

impl Required {
    fn note(&mut self, edit: &WireEdit) {
        self.next_file |= edit.next_file.is_some();
        self.log_number |= edit.log_number.is_some();
        self.last_seq |= edit.last_seq.is_some();
    }

    fn check(&self) -> Result<()> {
        for (there, what) in [
            (self.next_file, "next file number"),
            (self.log_number, "log number"),
            (self.last_seq, "last sequence number"),
        ] {
            if !there {
                return Err(Error::corruption(format!("the manifest has no {what}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
