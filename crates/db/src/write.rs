//! The write path: join or lead a commit group, append it to the log with one write, insert it
//! into the memtable, publish its sequence numbers.
//!
//! Whoever holds the turn owns the [`Log`]. It first passes the gate (stalls) and makes room (a
//! full memtable is frozen), so a writer that must wait does so before anything of it exists.
//! A group is visible to readers all at once, because they read at published numbers only.
//! Leaves to others: how logs begin and end, and what happens when one fails ([`logs`]).

pub(crate) mod logs;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Error, ErrorKind, FileId, Kind, Result, Seq, memory};
use lithify_control::{Event, MemId};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_format::wal::{BatchBuilder, BatchView};
use lithify_memtable::{MemTable, MemWriter};
use lithify_store::wal::{WalEnd, WalWriter};

use logs::{Closing, GivenUp};

use crate::metrics::Counter;
use crate::options::WriteOptions;
use crate::settings::Durability;
use crate::shell::Shell;
use crate::turn::{Outcome, Waiter};

const DEFAULT_FAMILY: CfId = CfId(0);

/// Memory a group keeps for the next; what one huge batch took is given back.
const GROUP_BYTES_KEPT: usize = 4 << 20;

/// What the holder of the write turn owns.
pub(crate) struct Log {
    /// Write handle of the active memtable.
    pub(crate) mem: MemWriter,
    /// Its number.
    pub(crate) mem_id: MemId,
    /// The open log; made when the first write wants one.
    pub(crate) wal: Option<WalWriter>,
    /// Number of the log that belongs to the active memtable, open or not yet made.
    pub(crate) wal_number: FileId,
    /// How the log before ended.
    pub(crate) before: Option<WalEnd>,
    /// Logs of earlier memtables that are still being synced.
    pub(crate) closing: Vec<Closing>,
    /// The log was lost and is not replaced yet: nothing can be written.
    pub(crate) given_up: Option<GivenUp>,
    /// Number of the next write.
    pub(crate) next_seq: Seq,
    /// The active memtable holds writes that no log holds.
    pub(crate) unlogged: bool,
    /// The last frozen memtable that did.
    pub(crate) unlogged_before: Option<MemId>,
    /// Writes that skipped the log came after the log's last record.
    pub(crate) gap: bool,
    /// The group being written; its memory is reused.
    pub(crate) group: BatchBuilder,
}

/// The caller's own write, borrowed.
#[derive(Clone, Copy)]
pub(crate) enum Own<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    Batch(&'a BatchBuilder),
    /// Nothing to write: the log is to be synced.
    Sync,
    /// The write was queued and is in the waiter.
    Queued(&'a Waiter<Log>),
}

impl Own<'_> {
    fn byte_len(&self) -> usize {
        match self {
            Own::Put { key, value } => key.len() + value.len(),
            Own::Delete { key } => key.len(),
            Own::Batch(b) => b.byte_len(),
            Own::Queued(w) => w.batch.byte_len(),
            Own::Sync => 0,
        }
    }
    /// At most so many entries.
    fn entries(&self) -> usize {
        match self {
            Own::Put { .. } | Own::Delete { .. } => 1,
            Own::Batch(b) => b.count() as usize,
            Own::Queued(w) => w.batch.count() as usize,
            Own::Sync => 0,
        }
    }
    /// # Errors
    /// `LimitExceeded` if there is no memory for it.
    fn to_batch(self) -> Result<BatchBuilder> {
        let mut batch = BatchBuilder::new();
        batch.try_reserve(self.entries(), self.byte_len())?;
        self.add_to(&mut batch);
        Ok(batch)
    }
    fn add_to(self, batch: &mut BatchBuilder) {
        match self {
            Own::Put { key, value } => batch.put(DEFAULT_FAMILY, key, value),
            Own::Delete { key } => batch.delete(DEFAULT_FAMILY, key),
            Own::Batch(b) => batch.append(b),
            Own::Queued(w) => batch.append(&w.batch),
            Own::Sync => {}
        }
    }
    /// Inserts into the memtable from sequence number `seq` on; the number after.
    fn insert(self, mem: &mut MemWriter, seq: Seq) -> Seq {
        match self {
            Own::Put { key, value } => mem.add(seq, Kind::Value, key, value),
            Own::Delete { key } => mem.add(seq, Kind::Delete, key, &[]),
            Own::Batch(b) => return insert_batch(mem, &b.view(), seq),
            Own::Queued(w) => return insert_batch(mem, &w.batch.view(), seq),
            Own::Sync => return seq,
        }
        seq + 1
    }
}

/// Sees to it that a group finds memory, before anything of it exists.
///
/// # Errors
/// `LimitExceeded` if there is none.
fn reserve(log: &mut Log, own: Own<'_>, peers: &[Arc<Waiter<Log>>]) -> Result<()> {
    let (mut entries, mut bytes) = (own.entries(), own.byte_len());
    for peer in peers {
        entries += peer.batch.count() as usize;
        bytes += peer.batch.byte_len();
    }
    log.group.clear();
    log.group.try_reserve(entries, bytes)?;
    let room = log.mem.try_reserve(entries, bytes);
    room.map_err(|none| memory::refused("a memtable", none.bytes, &none))
}

/// Inserts a batch; also what replays a log.
pub(crate) fn insert_batch(mem: &mut MemWriter, batch: &BatchView<'_>, mut seq: Seq) -> Seq {
    for op in batch.iter() {
        match op.kind {
            Kind::RangeDelete => mem.add_range_delete(seq, op.key, op.value),
            kind => mem.add(seq, kind, op.key, op.value),
        }
        seq += 1;
    }
    seq
}

/// The turn while it is held. However the holder ends, it is passed on and nobody who waits is
/// forgotten.
pub(crate) struct Held<'a> {
    shell: &'a Shell,
    log: Option<Box<Log>>,
    /// Whose batches the holder took over and has not answered for.
    peers: Vec<Arc<Waiter<Log>>>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(shell: &'a Shell, log: Box<Log>) -> Held<'a> {
        Held { shell, log: Some(log), peers: Vec::new() }
    }
    pub(crate) fn log(&mut self) -> &mut Log {
        self.log.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Some(mut log) = self.log.take() else { return };
        if std::thread::panicking() {
            // Of a comparator, most likely. Nobody knows how far the group got, so nothing is
            // written behind it; what the log holds shows at the next open.
            let what = "a write panicked; whether it and those with it survive shows at the next \
                        open, until which the database is read-only";
            let error = Error::new(ErrorKind::OutcomeUnknown, what);
            self.shell.go_read_only(error.clone());
            log.wal = None;
            for peer in self.peers.drain(..) {
                peer.serve(Err(error.clone()));
            }
        }
        self.shell.turn.pass_on(log);
    }
}

impl Shell {
    /// Writes `own`, alone or with others.
    pub(crate) fn write(&self, own: Own<'_>, options: &WriteOptions) -> Result<()> {
        if let Own::Batch(batch) = own {
            self.check_batch(batch)?;
            if batch.is_empty() {
                return Ok(());
            }
        }
        self.check_home()?;
        if options.no_wait {
            self.gate.check_free()?;
        }
        let _timed = self.metrics.write.sample(&*self.env.rt);
        let durability = options.durability.unwrap_or(self.settings.load().durability);
        if let Some(log) = self.turn.try_take() {
            return self.lead(log, own, durability, options.no_wait, || Ok(()));
        }
        let (waiter, outcome) = self.turn.wait(&*self.env.rt, own.to_batch()?, durability);
        match outcome {
            Outcome::Served(result) => result,
            Outcome::Yours(log) => {
                self.lead(log, Own::Queued(&waiter), durability, options.no_wait, || Ok(()))
            }
        }
    }

    /// Writes `batch` if `check` passes once nobody else can write: between it and the batch there is
    /// no other write.
    ///
    /// # Errors
    /// Those of `check`, then nothing was written; else as a write.
    pub(crate) fn write_if(
        &self,
        batch: &BatchBuilder,
        options: &WriteOptions,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.check_batch(batch)?;
        if options.no_wait {
            self.gate.check_free()?;
        }
        let _timed = self.metrics.write.sample(&*self.env.rt);
        let durability = options.durability.unwrap_or(self.settings.load().durability);
        let log = self.take_turn()?;
        self.lead(log, Own::Batch(batch), durability, options.no_wait, check)
    }

    /// Makes everything acknowledged so far durable.
    pub(crate) fn sync_log(&self) -> Result<()> {
        let log = self.take_turn()?;
        self.lead(log, Own::Sync, Durability::Sync, false, || Ok(()))
    }

    /// The turn, waiting for it if need be.
    pub(crate) fn take_turn(&self) -> Result<Box<Log>> {
        self.check_home()?;
        if let Some(log) = self.turn.try_take() {
            return Ok(log);
        }
        match self.turn.wait(&*self.env.rt, BatchBuilder::new(), Durability::NoWal).1 {
            Outcome::Yours(log) => Ok(log),
            Outcome::Served(result) => Err(result.err().unwrap_or_else(|| self.closed_error())),
        }
    }

    /// A range deletion must not end before it starts, and an operand needs an operator.
    fn check_batch(&self, batch: &BatchBuilder) -> Result<()> {
        for op in batch.view().iter() {
            if op.kind == Kind::Merge && self.workshop().operator.is_none() {
                return Err(Error::invalid(
                    "the database was opened without a merge operator; give it one with \
                     Builder::merge_operator; nothing was written",
                ));
            }
            if op.kind == Kind::RangeDelete && self.order().compare(op.key, op.value).is_gt() {
                return Err(Error::invalid(
                    "a range deletion ends before it starts; swap its bounds",
                ));
            }
        }
        Ok(())
    }

    /// Holds the turn: writes `own` and whatever else waits, then passes the turn on. If `check`
    /// fails, nothing is written.
    fn lead(
        &self,
        log: Box<Log>,
        own: Own<'_>,
        durability: Durability,
        no_wait: bool,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut held = Held::new(self, log);
        check()?;
        self.gate.pass(own.byte_len() as u64, no_wait, &*self.env.rt, &self.metrics)?;
        self.check_replaced(held.log(), no_wait)?;
        self.make_room(held.log(), no_wait)?;
        held.peers = self.turn.gather();
        if !held.peers.is_empty() {
            self.gate.charge(held.peers.iter().map(|p| p.batch.byte_len() as u64).sum());
        }
        let Held { log, peers, .. } = &mut held;
        let log = log.as_mut().expect("held");
        let result = self.commit(log, own, durability, peers);
        for peer in held.peers.drain(..) {
            peer.serve(result.clone());
        }
        result
    }

    /// One commit group: log, memtable, publish.
    fn commit(
        &self,
        log: &mut Log,
        own: Own<'_>,
        durability: Durability,
        peers: &[Arc<Waiter<Log>>],
    ) -> Result<()> {
        let durability = peers.iter().map(|p| p.durability).fold(durability, Ord::max);
        let first = log.next_seq;
        reserve(log, own, peers)?;
        if durability == Durability::NoWal {
            log.unlogged = true;
            log.gap = true;
        } else {
            self.append(log, own, durability, peers)?;
        }
        let mut next = own.insert(&mut log.mem, first);
        let mut bytes = own.byte_len();
        for peer in peers {
            next = insert_batch(&mut log.mem, &peer.batch.view(), next);
            bytes += peer.batch.byte_len();
        }
        log.next_seq = next;
        self.published.store(next - 1, Ordering::Release);
        self.metrics.add(Counter::Writes, next - first);
        self.metrics.add(Counter::WriteBytes, bytes as u64);
        self.metrics.add(Counter::Groups, 1);
        Ok(())
    }

    /// Appends the group to the log and brings it as far as `durability` asks.
    fn append(
        &self,
        log: &mut Log,
        own: Own<'_>,
        durability: Durability,
        peers: &[Arc<Waiter<Log>>],
    ) -> Result<()> {
        if durability == Durability::Sync || log.wal.is_none() {
            self.check_owner()?;
        }
        log.group.clear();
        own.add_to(&mut log.group);
        for peer in peers {
            log.group.append(&peer.batch);
        }
        let writes = !log.group.is_empty();
        match self.append_group(log, durability) {
            Ok(()) if durability == Durability::Sync => self.sync_closing(log),
            Err(error) if logs::is_lost(&error) => {
                if !zoo::on(Bug::RefusedStays) {
                    self.replace_log(log, error.clone())?;
                }
                // What was written before is in tables now: all that a sync asks for.
                if writes { Err(logs::not_committed(error)) } else { Ok(()) }
            }
            other => other,
        }
    }

    /// Gathers the group in the log and brings that as far as `durability` asks.
    fn append_group(&self, log: &mut Log, durability: Durability) -> Result<()> {
        if !log.group.is_empty() {
            let first = log.next_seq;
            log.group.set_sequence(first);
            let gap = std::mem::take(&mut log.gap);
            let count = u64::from(log.group.count());
            if log.wal.is_none() {
                log.wal = Some(self.create_wal(log)?);
            }
            let wal = log.wal.as_mut().expect("made above");
            if gap {
                // Says up to which number writes skipped the log.
                wal.seal_gap(first - 1)?;
            }
            let payload = log.group.as_bytes();
            wal.append(payload, first + count - 1)?;
            self.metrics.add(Counter::WalBytes, payload.len() as u64);
            if payload.len() > GROUP_BYTES_KEPT {
                log.group = BatchBuilder::new();
            }
        }
        let Some(wal) = log.wal.as_mut() else { return Ok(()) };
        match durability {
            Durability::NoWal | Durability::Buffered => wal.keep(),
            Durability::Os => wal.write_out()?,
            Durability::Sync => {
                self.metrics.add(Counter::WalSyncs, 1);
                wal.sync()?;
            }
        }
        Ok(())
    }

    /// Freezes the active memtable if it is full.
    fn make_room(&self, log: &mut Log, no_wait: bool) -> Result<()> {
        if (log.mem.table().bytes() as u64) < self.memtable_bytes {
            return Ok(());
        }
        self.freeze(log)?;
        // The verdict on this very freeze may be to stop.
        self.gate.pass(0, no_wait, &*self.env.rt, &self.metrics)
    }

    /// Replaces the active memtable by an empty one and hands the old one to be flushed. Its
    /// log is closed in the background.
    pub(crate) fn freeze(&self, log: &mut Log) -> Result<()> {
        let fresh = self.new_memtable()?;
        if let Some(wal) = &mut log.wal {
            match wal.end() {
                Ok(end) => log.before = Some(end),
                // That freezes, too.
                Err(e) if logs::is_lost(&e) => return self.replace_log(log, e),
                Err(e) => return Err(e),
            }
        }
        if let Some(wal) = log.wal.take() {
            self.close_wal(log, wal);
        }
        self.swap_memtable(log, fresh);
        Ok(())
    }

    /// Puts an empty memtable in the place of the active one, whose log is closed or lost, and has
    /// that flushed.
    fn swap_memtable(&self, log: &mut Log, fresh: (Arc<MemTable>, MemWriter)) {
        let next_wal = self.next_file();
        let (table, writer) = fresh;
        let next_id = MemId(log.mem_id.0 + 1);
        let old = std::mem::replace(&mut log.mem, writer).freeze();
        let old_id = std::mem::replace(&mut log.mem_id, next_id);
        log.wal_number = next_wal;
        if std::mem::take(&mut log.unlogged) {
            log.unlogged_before = Some(old_id);
        }
        let bytes = old.bytes() as u64;
        self.push_memtable(next_id, table);
        self.drive(Event::Frozen { mem: old_id, bytes, log_number: next_wal.0 });
    }
}
