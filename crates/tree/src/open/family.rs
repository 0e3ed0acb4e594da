//! One column family while its database is opened: its tree out of the manifest, and what the logs
//! hold for it, which goes into memtables and from there into tables.

use lithify_base::{CfId, Error, ErrorKind, Pos, Result};
use lithify_compact::{Cut, FlushJob, FlushSpec, JobContext, JobControl, Outcome};
use lithify_control::Core;
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Job, Step};
use lithify_journal::wal::BatchView;
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_memtable::{MemTable, MemWriter};
use lithify_opening::Components;
use lithify_store::manifest::translate;
use lithify_tables::cache::TableCache;

use super::resources::Resources;
use crate::family::{TreeParts, new_memtable};
use crate::settings::Settings;
use crate::settings::translate::{Described, core_options};
use lithify_views::operands::Foreign;
use lithify_views::super_version::Mem;
use lithify_writes::mems::RANGE_DELETES_MANY;
use lithify_writes::mems::{Mems, Reservation};
use lithify_writes::shared::Arenas;

/// A column family that is being put together.
pub(super) struct Family {
    pub(super) cf: CfId,
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) version: Version,
    pub(super) next_epoch: u32,
    pub(super) components: Components,
    /// The directory may hold operands for another operator.
    pub(super) foreign: Option<Foreign>,
    /// What logs held, oldest first; the last one may be empty.
    pub(super) mems: Vec<MemWriter>,
}

impl Family {
    pub(super) fn of(cf: CfId, name: &str, settings: Settings, version: Version) -> Family {
        // Above every epoch and stratum in use, at any level: compaction outputs carry theirs down.
        let epochs = version.files().map(|f| f.epoch.max(u64::from(f.pos.stratum.0)));
        // An epoch beyond these orders nothing: strata do, and are numbered anew before.
        let newest = epochs.filter(|&n| n <= u64::from(translate::STRATUM_MAX)).max().unwrap_or(0);
        let next_epoch = translate::FIRST_EPOCH.max(newest as u32 + 1);
        let name = name.to_owned();
        let (components, foreign, mems) = (Components::default(), None, Vec::new());
        Family { cf, name, settings, version, next_epoch, components, foreign, mems }
    }
}

/// What logs hold, on its way into memtables.
pub(super) struct Replay<'a> {
    pub(super) families: &'a mut Vec<Family>,
    /// The log that is being read.
    pub(super) log: u64,
}

impl Mems for Replay<'_> {
    type Writer = MemWriter;
    /// A family has flushed past its older logs, and one that was dropped takes nothing.
    fn of(&mut self, cf: CfId) -> Option<&mut MemWriter> {
        let at = self.families.binary_search_by_key(&cf, |f| f.cf).ok()?;
        let family = &mut self.families[at];
        match family.version.log_number() <= self.log {
            true => family.mems.last_mut(),
            false => None,
        }
    }
}

impl Replay<'_> {
    /// Refuses operands that are for another operator than the family has.
    pub(super) fn check(&self, batch: &BatchView<'_>) -> Result<()> {
        let takes = |f: &&Family| f.version.log_number() <= self.log;
        self.families.iter().filter(takes).try_for_each(|family| match &family.foreign {
            Some(foreign) => foreign.check_batch(family.cf, batch),
            None => Ok(()),
        })
    }

    /// Room for a batch in the families that it writes to.
    pub(super) fn reserve(&mut self, batch: &BatchView<'_>) -> Result<()> {
        let mut reservation = Reservation::default();
        reservation.add_batch(batch);
        reservation.reserve(self)
    }
}

impl Family {
    pub(super) fn described(&self) -> Described {
        Described {
            name: self.name.clone(),
            settings: self.settings.clone(),
            comparator: self.version.order().name().to_owned(),
            merge_operator: self.components.operator.as_ref().map(|op| op.name().to_owned()),
            prefix_extractor: self.components.prefixes.name().map(str::to_owned),
        }
    }

    /// A memtable that is to take in about `expected` bytes.
    pub(super) fn new_memtable(&self, arenas: &Arenas, expected: u64) -> Result<MemWriter> {
        let bytes = expected.min(self.settings.memtable_bytes);
        Ok(new_memtable(bytes, self.version.comparator(), arenas)?.1)
    }

    /// Goes on in a new memtable if the last one is full.
    pub(super) fn make_room(&mut self, arenas: &Arenas, expected: u64) -> Result<()> {
        let last = self.mems.last().map(MemWriter::table);
        let bytes = last.map_or(0, |table| table.bytes() as u64);
        if bytes >= self.settings.memtable_bytes
            || last.is_some_and(|table| table.range_deletes() >= RANGE_DELETES_MANY)
        {
            self.mems.push(self.new_memtable(arenas, expected)?);
        }
        Ok(())
    }

    pub(super) fn tools(&self, resources: &Resources) -> (Arc<TableCache>, Arc<JobContext>) {
        let order = self.version.comparator();
        resources.tools(self.cf, &self.name, &self.settings, order, &self.components)
    }

    /// Writes what was replayed to level 0, as if each memtable had been flushed by itself (V13).
    pub(super) fn flush(&mut self, context: &Arc<JobContext>) -> Result<()> {
        for mem in std::mem::take(&mut self.mems) {
            let table = mem.freeze();
            if table.is_empty() {
                continue;
            }
            let out = Pos::new(0, self.next_epoch);
            self.next_epoch += 1;
            let adds = flush_now(context, table, out)?;
            let edit = Edit { adds, ..Edit::new(self.cf) };
            self.version = self.version.apply(&edit).map_err(internal)?;
        }
        Ok(())
    }

    pub(super) fn parts(
        self,
        (tables, context): (Arc<TableCache>, Arc<JobContext>),
        mems: Vec<Mem>,
    ) -> TreeParts {
        let Family { cf, name, settings, version, next_epoch, .. } = self;
        let core = Core::new(core_options(&settings), version, next_epoch);
        TreeParts { cf, name, settings, tables, core, context, mems }
    }
}

pub(super) fn internal(v: lithify_lsm::Violation) -> Error {
    Error::new(ErrorKind::Internal, v.to_string())
}

/// Runs a flush to its end on this thread.
fn flush_now(context: &Arc<JobContext>, mem: Arc<MemTable>, out: Pos) -> Result<Vec<FileMeta>> {
    let ended: Arc<Mutex<Option<Outcome>>> = Arc::default();
    let report = {
        let ended = ended.clone();
        Box::new(move |outcome| *ended.lock() = Some(outcome))
    };
    let control = Arc::new(JobControl::flush(mem.bytes() as u64));
    let spec = FlushSpec { mem, out, snapshots: Vec::new(), cut: Cut::Whole, control };
    let mut job = FlushJob::new(context.clone(), spec, report);
    loop {
        match job.step() {
            Step::More => {}
            Step::Wait(ticket) => {
                context.env.rt.park(&ticket, None);
            }
            Step::WaitUntil(ticket, at) => {
                context.env.rt.park(&ticket, Some(at));
            }
            Step::Done => break,
        }
    }
    let outcome = ended.lock().take();
    outcome.expect("a finished job has reported").result
}

#[cfg(test)]
mod tests {
    use lithify_journal::wal::BatchBuilder;
    use lithify_memtable::HeapPool;

    use super::*;

    /// Replays `batch` into `families` empty memtables; the memory that they took.
    fn reserved_by(batch: &BatchBuilder, families: u32) -> usize {
        let arenas = Arenas::new(Arc::new(HeapPool), None);
        let empty = |n| {
            let version = Version::empty(Arc::new(lithify_base::Bytewise));
            let mut family = Family::of(CfId(n), &n.to_string(), Settings::default(), version);
            family.mems.push(family.new_memtable(&arenas, 0).unwrap());
            family
        };
        let mut families: Vec<Family> = (0..families).map(empty).collect();
        let mut replay = Replay { families: &mut families, log: 1 };
        replay.reserve(&batch.view()).unwrap();
        lithify_writes::mems::insert_batch(&mut replay, &batch.view(), 1);
        families.iter().flat_map(|f| &f.mems).map(|mem| mem.table().reserved_bytes()).sum()
    }

    #[test]
    fn a_batch_over_many_families_takes_memory_in_proportion_to_it() {
        const FAMILIES: u32 = 150;
        // Family by family, and back and forth between them.
        for back_and_forth in [false, true] {
            let mut batch = BatchBuilder::new();
            for n in 0..10 * FAMILIES {
                let cf = if back_and_forth { n % FAMILIES } else { n / 10 };
                batch.put(CfId(cf), &n.to_be_bytes(), &[7; 2000]);
            }
            let taken = reserved_by(&batch, FAMILIES);
            println!("{} bytes of log, {taken} of memory", batch.byte_len());
            // Each memtable begins with 16 KiB.
            assert!(taken < 2 * batch.byte_len() + FAMILIES as usize * (32 << 10), "{taken}");
        }
    }
}
