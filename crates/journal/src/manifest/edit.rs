//! One version edit in its wire form: a sequence of (varint32 tag, payload).
//!
//! Fields are written in RocksDB's order, each at most once, so equal edits give equal bytes and
//! `encode(decode(b)) == b` for what we wrote. When reading, any order is accepted and a repeated
//! scalar takes its last value, as RocksDB reads it.
//!
//! Keeps: an unknown tag that may not be ignored is refused by number; nothing is guessed.
//! Leaves to others: what the edit means for the tree.

use lithify_base::{CfId, Error, Level, Result, Seq};

use super::file::{OldForm, WireFile, internal_key, level, refused, seq, text, whole};
use super::tags::{EDIT_IGNORABLE, edit as tag, wal as wal_tag};
use lithify_format::varint::{self, Reader};

/// A log named by the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalAddition {
    /// Log number.
    pub number: u64,
    /// Every byte below this size is synced; `None` when the log was only created.
    pub synced: Option<u64>,
}

/// The job that made an edit, for audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTag {
    /// Job number.
    pub job: u64,
    /// Which try at it.
    pub attempt: u64,
}

/// Where an edit was written. Blocks that were never synced may come back with what a deleted file
/// left in them, sums and all; an edit that stands elsewhere than it says is such a remnant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the manifest.
    pub manifest: u64,
    /// How many edits come before it.
    pub edit: u64,
}

impl Place {
    /// Appends the field that says so. It comes before all others of its edit.
    pub fn encode(self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        varint::put_u64(&mut payload, self.manifest);
        varint::put_u64(&mut payload, self.edit);
        put_bytes(out, tag::PLACE, &payload);
    }

    /// What the record of an edit says about its place; `None` if its first field is another one.
    pub fn of(record: &[u8]) -> Option<Place> {
        let mut r = Reader::new(record);
        let is_place = r.var32().ok()? == tag::PLACE;
        is_place.then(|| whole(r.length_prefixed()?, Place::decode)).and_then(Result::ok)
    }

    fn decode(r: &mut Reader<'_>) -> Result<Place> {
        Ok(Place { manifest: r.var64()?, edit: r.var64()? })
    }
}

/// A version edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireEdit {
    /// Database id.
    pub db_id: Option<String>,
    /// Comparator name of the family.
    pub comparator: Option<String>,
    /// Keys carry user timestamps that are stored; RocksDB writes it beside the comparator. Only
    /// `true` is read, which is also what its absence means.
    pub timestamps_stored: Option<bool>,
    /// Logs below this number hold nothing that the family still needs.
    pub log_number: Option<u64>,
    /// LevelDB's second log; always 0 today.
    pub prev_log: Option<u64>,
    /// Next file number.
    pub next_file: Option<u64>,
    /// Largest family id ever used.
    pub max_cf: Option<u32>,
    /// Logs below this number may be deleted.
    pub min_log_to_keep: Option<u64>,
    /// The first log with what a transaction prepared that may count, which logs that families need may
    /// all be above; 0 if there is none.
    pub sections_from: Option<u64>,
    /// Last sequence number.
    pub last_seq: Option<Seq>,
    /// Where the next compaction of a level starts: level and internal key.
    pub cursors: Vec<(Level, Vec<u8>)>,
    /// Files removed: level and number.
    pub deleted: Vec<(Level, u64)>,
    /// Files added.
    pub added: Vec<WireFile>,
    /// Logs added or synced further.
    pub wal_additions: Vec<WalAddition>,
    /// Logs below this number are gone.
    pub wals_deleted_below: Option<u64>,
    /// Family the edit is about.
    pub cf: CfId,
    /// The edit creates the family, with this name.
    pub cf_add: Option<String>,
    /// The edit drops the family.
    pub cf_drop: bool,
    /// The edit belongs to an atomic group; this many edits of it follow.
    pub group_remaining: Option<u32>,
    /// Bucket map hint, opaque here.
    pub bucket_hint: Option<Vec<u8>>,
    /// The job that made the edit.
    pub job: Option<JobTag>,
}

impl WireEdit {
    /// Appends the wire form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_scalars(out);
        for (level, key) in &self.cursors {
            varint::put_u32(out, tag::COMPACT_CURSOR);
            varint::put_u32(out, u32::from(*level));
            varint::put_length_prefixed(out, key);
        }
        for (level, number) in &self.deleted {
            varint::put_u32(out, tag::DELETED_FILE);
            varint::put_u32(out, u32::from(*level));
            varint::put_u64(out, *number);
        }
        for file in &self.added {
            varint::put_u32(out, tag::NEW_FILE_4);
            file.encode(out);
        }
        let mut payload = Vec::new();
        for wal in &self.wal_additions {
            payload.clear();
            wal.encode(&mut payload);
            put_bytes(out, tag::WAL_ADDITION, &payload);
        }
        if let Some(number) = self.wals_deleted_below {
            payload.clear();
            varint::put_u64(&mut payload, number);
            put_bytes(out, tag::WAL_DELETION, &payload);
        }
        self.encode_family(out);
        if let Some(hint) = &self.bucket_hint {
            put_bytes(out, tag::BUCKET_HINT, hint);
        }
        if let Some(number) = self.sections_from {
            payload.clear();
            varint::put_u64(&mut payload, number);
            put_bytes(out, tag::SECTIONS_FROM, &payload);
        }
        if let Some(JobTag { job, attempt }) = self.job {
            payload.clear();
            varint::put_u64(&mut payload, job);
            varint::put_u64(&mut payload, attempt);
            put_bytes(out, tag::JOB, &payload);
        }
    }

    /// The wire form.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Says that families need no log below `first`, if that is not what their log numbers say, and that what is
    /// prepared is in logs from `sections` on, 0 for none, where the manifest says `said`.
    pub fn name_logs(&mut self, first: Option<u64>, sections: u64, said: u64) {
        self.min_log_to_keep = match sections {
            0 => first,
            // RocksDB goes by this alone where transactions are prepared.
            sections => Some(first.unwrap_or(sections).min(sections)),
        };
        self.sections_from = Some(sections).filter(|sections| *sections != said);
    }

    /// Reads the wire form.
    ///
    /// Errors: `Corruption` if it is malformed; `Unsupported`, naming the tag or feature, if it
    /// needs what this version lacks.
    pub fn decode(bytes: &[u8]) -> Result<WireEdit> {
        let mut edit = WireEdit::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            let at = r.offset() as u64;
            edit.field(&mut r).map_err(|e| e.at(at))?;
        }
        Ok(edit)
    }

    fn encode_scalars(&self, out: &mut Vec<u8>) {
        if let Some(id) = &self.db_id {
            put_bytes(out, tag::DB_ID, id.as_bytes());
        }
        if let Some(name) = &self.comparator {
            put_bytes(out, tag::COMPARATOR, name.as_bytes());
        }
        let scalars = [
            (tag::LOG_NUMBER, self.log_number),
            (tag::PREV_LOG, self.prev_log),
            (tag::NEXT_FILE, self.next_file),
            (tag::MAX_COLUMN_FAMILY, self.max_cf.map(u64::from)),
            (tag::MIN_LOG_TO_KEEP, self.min_log_to_keep),
            (tag::LAST_SEQ, self.last_seq),
        ];
        for (tag, value) in scalars {
            if let Some(value) = value {
                varint::put_u32(out, tag);
                varint::put_u64(out, value);
            }
        }
    }

    fn encode_family(&self, out: &mut Vec<u8>) {
        if self.cf.0 != 0 {
            varint::put_u32(out, tag::COLUMN_FAMILY);
            varint::put_u32(out, self.cf.0);
        }
        if let Some(name) = &self.cf_add {
            put_bytes(out, tag::COLUMN_FAMILY_ADD, name.as_bytes());
        }
        if self.cf_drop {
            varint::put_u32(out, tag::COLUMN_FAMILY_DROP);
        }
        if let Some(remaining) = self.group_remaining {
            varint::put_u32(out, tag::ATOMIC_GROUP);
            varint::put_u32(out, remaining);
        }
        if let Some(stored) = self.timestamps_stored {
            put_bytes(out, tag::PERSIST_TIMESTAMPS, &[u8::from(stored)]);
        }
    }

    /// Reads one tag and its payload.
    fn field(&mut self, r: &mut Reader<'_>) -> Result<()> {
        match r.var32()? {
            tag::NEW_FILE => self.added.push(WireFile::decode_old(r, OldForm::One)?),
            tag::NEW_FILE_2 => self.added.push(WireFile::decode_old(r, OldForm::Two)?),
            tag::NEW_FILE_3 => self.added.push(WireFile::decode_old(r, OldForm::Three)?),
            tag::NEW_FILE_4 => {
                let (file, min_log) = WireFile::decode(r)?;
                self.added.push(file);
                self.min_log_to_keep = min_log.or(self.min_log_to_keep);
            }
            tag::DELETED_FILE => self.deleted.push((level(r)?, r.var64()?)),
            tag::COMPACT_CURSOR => self.cursors.push((level(r)?, internal_key(r)?)),
            tag::COLUMN_FAMILY => self.cf = CfId(r.var32()?),
            tag::COLUMN_FAMILY_ADD => {
                self.cf_add = Some(text(r.length_prefixed()?, "a column family name")?);
            }
            tag::COLUMN_FAMILY_DROP => self.cf_drop = true,
            tag::ATOMIC_GROUP => self.group_remaining = Some(r.var32()?),
            tag::BUCKET_HINT => self.bucket_hint = Some(r.length_prefixed()?.to_vec()),
            tag::JOB => {
                let tag = |f: &mut Reader<'_>| Ok(JobTag { job: f.var64()?, attempt: f.var64()? });
                self.job = Some(whole(r.length_prefixed()?, tag)?);
            }
            other => return self.field_of_database(other, r),
        }
        Ok(())
    }

    /// A field about the whole database or its logs, or one that is refused or passed over.
    fn field_of_database(&mut self, field: u32, r: &mut Reader<'_>) -> Result<()> {
        match field {
            tag::DB_ID => self.db_id = Some(text(r.length_prefixed()?, "the database id")?),
            tag::COMPARATOR => {
                self.comparator = Some(text(r.length_prefixed()?, "a comparator name")?);
            }
            tag::LOG_NUMBER => self.log_number = Some(r.var64()?),
            tag::PREV_LOG => self.prev_log = Some(r.var64()?),
            tag::NEXT_FILE => self.next_file = Some(r.var64()?),
            tag::MAX_COLUMN_FAMILY => self.max_cf = Some(r.var32()?),
            tag::MIN_LOG_TO_KEEP => self.min_log_to_keep = Some(r.var64()?),
            tag::LAST_SEQ => self.last_seq = Some(seq(r)?),
            tag::SECTIONS_FROM => {
                self.sections_from = Some(whole(r.length_prefixed()?, |f| f.var64())?);
            }
            tag::WAL_ADDITION_OLD => self.wal_additions.push(WalAddition::decode(r)?),
            tag::WAL_ADDITION => {
                self.wal_additions.push(whole(r.length_prefixed()?, WalAddition::decode)?);
            }
            tag::WAL_DELETION_OLD => self.wals_deleted_below = Some(r.var64()?),
            tag::WAL_DELETION => {
                self.wals_deleted_below = Some(whole(r.length_prefixed()?, |f| f.var64())?);
            }
            tag::PERSIST_TIMESTAMPS => match r.length_prefixed()? {
                [1] => self.timestamps_stored = Some(true),
                _ => return Err(refused("user-defined timestamps that are not stored")),
            },
            tag::FULL_HISTORY_TS_LOW => return Err(refused("user-defined timestamps")),
            tag::BLOB_ADDITION
            | tag::BLOB_GARBAGE
            | tag::BLOB_ADDITION_OLD
            | tag::BLOB_GARBAGE_OLD => return Err(refused("blob files")),
            t if t & EDIT_IGNORABLE != 0 => {
                r.length_prefixed()?;
            }
            t => {
                return Err(Error::unsupported(format!(
                    "the manifest has an edit with tag {t}, which this version does not know and \
                     may not ignore"
                )));
            }
        }
        Ok(())
    }
}

impl WalAddition {
    fn encode(&self, out: &mut Vec<u8>) {
        varint::put_u64(out, self.number);
        if let Some(synced) = self.synced {
            varint::put_u32(out, wal_tag::SYNCED_SIZE);
            varint::put_u64(out, synced);
        }
        varint::put_u32(out, wal_tag::END);
    }

    fn decode(r: &mut Reader<'_>) -> Result<WalAddition> {
        let mut wal = WalAddition { number: r.var64()?, synced: None };
        loop {
            match r.var32()? {
                wal_tag::END => return Ok(wal),
                wal_tag::SYNCED_SIZE => wal.synced = Some(r.var64()?),
                t => return Err(Error::unsupported(format!("log field {t} in the manifest"))),
            }
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    varint::put_u32(out, tag);
    varint::put_length_prefixed(out, bytes);
}

#[cfg(test)]
mod tests;
