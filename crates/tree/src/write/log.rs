//! What the holder of the write turn owns: the log, and the memtables that are being filled.

use std::collections::VecDeque;

use lithify_base::{CfId, Error, FileId, Seq};
use lithify_control::MemId;
use lithify_env::RtRef;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::AtomicU64;
use lithify_files::wal::{NewLog, WalEnd, WalWriter};
use lithify_journal::wal::BatchBuilder;
use lithify_memtable::{MemTable, MemWriter};

use super::ended::Ended;
use crate::family::OpenFamily;
use lithify_writes::loan::Lender;
use lithify_writes::mems::{Mems, is_full};

/// What the holder of the write turn owns.
pub(crate) struct Log {
    /// What is being filled: the families by number, the default one first.
    pub(crate) families: Vec<Filling>,
    /// The open log; made when the first write wants one.
    pub(crate) wal: Option<WalWriter>,
    /// Number of the log that belongs to the active memtables, open or not yet made.
    pub(crate) wal_number: FileId,
    /// That log, if it was made ahead and nothing was written to it yet.
    pub(crate) made: Option<NewLog>,
    /// Number of the log after that, once one log was replaced.
    pub(crate) next_wal: Option<FileId>,
    /// How the log before ended.
    pub(crate) before: Option<WalEnd>,
    /// Logs of earlier memtables that are neither durable nor in tables, as far as is known.
    pub(crate) closing: Vec<Closing>,
    /// Earlier logs that a family may still need, with their bytes, oldest first.
    pub(crate) kept: VecDeque<(u64, u64)>,
    /// Bytes that the open log may take before it is asked whether the logs take too many.
    pub(crate) room: u64,
    /// The log was lost and is not replaced yet: nothing can be written.
    pub(crate) given_up: Option<GivenUp>,
    /// Number of the next write.
    pub(crate) next_seq: Seq,
    /// Writes that skipped the log came after the log's last record.
    pub(crate) gap: bool,
    /// The group being written; its memory is reused.
    pub(crate) group: BatchBuilder,
}

/// The active memtable of one family.
pub(crate) struct Filling {
    pub(crate) family: Arc<OpenFamily>,
    /// Write handle; the group before may have it, if there is no other family.
    pub(crate) mem: Lender<MemWriter>,
    pub(crate) table: Arc<MemTable>,
    /// The memtable's number.
    pub(crate) id: MemId,
    /// The memtable's first log, as readers know it.
    pub(crate) log: Arc<AtomicU64>,
    /// It holds writes that no log holds.
    pub(crate) unlogged: bool,
    /// The last frozen memtable that did.
    pub(crate) unlogged_before: Option<MemId>,
}

impl Filling {
    /// The active memtable of `family`, whose writer is `mem`.
    pub(crate) fn new(family: Arc<OpenFamily>, mem: MemWriter, rt: RtRef) -> Filling {
        let active = family.super_version().mems[0].clone();
        let (id, log) = (active.id, active.log);
        let table = mem.table().clone();
        let mem = Lender::new(mem, rt);
        Filling { family, mem, table, id, log, unlogged: false, unlogged_before: None }
    }
    /// A memtable of the family holds writes that no log holds.
    pub(crate) fn lacks_log(&self) -> bool {
        let flushed = |last| self.family.super_version().mems.iter().all(|mem| mem.id > last);
        self.unlogged || self.unlogged_before.is_some_and(|last| !flushed(last))
    }
    /// It has writes, and is not stopped.
    pub(super) fn can_freeze(&self) -> bool {
        !self.table.is_empty() && !self.family.gate.is_stopped()
    }
    pub(super) fn is_full(&self) -> bool {
        is_full(&self.table, self.family.settings.memtable_bytes())
    }
}

/// A log that was made and not deleted.
pub(crate) struct LogFile {
    pub(crate) number: FileId,
    /// `None` as long as it is the one that is written.
    pub(crate) ended: Option<Arc<Ended>>,
}

/// A log of an earlier memtable that is not known to be on stable storage.
#[derive(Clone)]
pub(crate) struct Closing {
    /// Its memtable, in the default family.
    pub(super) mem: MemId,
    pub(crate) end: WalEnd,
    pub(crate) ended: Arc<Ended>,
}

/// A log that was lost, while what it held is not in tables yet.
#[derive(Clone)]
pub(crate) struct GivenUp {
    /// Of each family the last memtable whose writes have no other log.
    pub(super) mems: Vec<(Arc<OpenFamily>, MemId)>,
}

impl Log {
    /// Where the family is in `families`.
    #[inline]
    pub(crate) fn at(&self, cf: CfId) -> Option<usize> {
        match cf.0 {
            0 => Some(0),
            _ => self.families.binary_search_by_key(&cf, |f| f.family.cf).ok(),
        }
    }
    /// What writes are refused with, if they are. A family that was dropped refuses them by itself.
    pub(crate) fn refused(&self) -> Option<Error> {
        self.families[0].family.gate.refused()
    }
    /// Bytes in the open log.
    pub(super) fn open_bytes(&self) -> u64 {
        self.wal.as_ref().map_or(0, WalWriter::size)
    }
    /// True if there is no family but the default one.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.families.len() == 1
    }
}

impl Mems for Log {
    type Writer = MemWriter;
    #[inline]
    fn of(&mut self, cf: CfId) -> Option<&mut MemWriter> {
        let at = self.at(cf)?;
        self.families.get_mut(at).map(|f| f.mem.get())
    }
}
