//! The write path: join or lead a commit group, append it to the log with one write, insert it
//! into the memtable, publish its sequence numbers.
//!
//! The holder of the turn owns the [`Log`]. It first passes the gate (stalls) and makes room (a
//! full memtable is frozen), so a writer that must wait does so before anything of it exists.
//! A group is visible to readers all at once, because they read at published numbers only.
//! Leaves to others: what a group is made of ([`entries`]); how logs begin and end, and what happens
//! when one fails ([`logs`]); which memtables make room, and how ([`room`]);
//! who inserts what ([`together`]).

pub(crate) mod ahead;
pub(crate) mod ended;
mod entries;
pub(crate) mod log;
pub(crate) mod logs;
mod prepared;
mod room;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use entries::Own;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Kind, Result, Seq};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_journal::wal::{BatchBuilder, BatchOp};

use entries::reserve;
use log::Log;

use crate::family::OpenFamily;
use crate::options::WriteOptions;
use crate::settings::Durability;
use crate::shell::Shell;
use lithify_memtable::MemWriter;
use lithify_reports::metrics::Counter;
use lithify_reports::reentry::At;
use lithify_views::look::ranges::check_order;
use lithify_views::names::DEFAULT_CF;
use lithify_writes::errors;
use lithify_writes::gate::{Gate, Wait, stalled};
use lithify_writes::loan::Loan;
use lithify_writes::own::{insert_all, measure, prefetch};
use lithify_writes::turn::{Outcome, Waiter};

/// Longest sleep of a writer that keeps the turn.
const SLEEPS_WITH_TURN: Duration = Duration::from_millis(10);

/// For writes that nothing has to be asked before, nor told.
#[inline(always)]
fn always() -> (impl FnOnce() -> Result<()>, impl FnOnce()) {
    (|| Ok(()), || ())
}

/// Memory a group keeps for the next; what one huge batch took is given back.
const GROUP_BYTES_KEPT: usize = 4 << 20;

impl Log {
    /// Whether the gates of all families that `batch` is about are as `is` says. Asks once for entries of one family
    /// that follow each other, and tells their bytes.
    fn all_gates(&self, batch: &BatchBuilder, is: impl Fn(&Gate, u64) -> bool) -> bool {
        let of =
            |cf, bytes| self.at(cf).is_some_and(|at| is(&self.families[at].family.gate, bytes));
        if !batch.names_families() {
            return of(DEFAULT_CF, batch.byte_len() as u64);
        }
        let size = |op: &BatchOp<'_>| (op.key.len() + op.value.len()) as u64;
        let view = batch.view();
        let mut ops = view.iter().peekable();
        while let Some(op) = ops.next() {
            let mut bytes = size(&op);
            while let Some(next) = ops.next_if(|next| next.cf == op.cf) {
                bytes += size(&next);
            }
            if !of(op.cf, bytes) {
                return false;
            }
        }
        true
    }
    /// Tells the gates what a group is to write, each its share. For `own` with `no_wait` others wait only while a stall is on.
    fn charge(&self, own: Own<'_>, no_wait: bool, peers: &[Arc<Waiter<Log>>]) {
        let charge = |gate: &Gate, bytes| match no_wait {
            true => gate.count(bytes),
            false => gate.charge(bytes),
        };
        if self.is_alone() {
            let gate = &self.families[0].family.gate;
            charge(gate, own.byte_len() as u64);
            gate.charge(peers.iter().map(|peer| peer.batch.byte_len() as u64).sum());
            return;
        }
        let each = |batch, charge: &dyn Fn(&Gate, u64)| {
            self.all_gates(batch, |gate, bytes| {
                charge(gate, bytes);
                true
            });
        };
        match own.batch() {
            Some(batch) => each(batch, &charge),
            None => charge(&self.family_of_single(own).gate, own.byte_len() as u64),
        }
        peers.iter().for_each(|peer| each(&peer.batch, &Gate::charge));
    }
    /// The family of a write that names none by name.
    fn family_of_single(&self, own: Own<'_>) -> &Arc<OpenFamily> {
        // A batch without names is the default family's, through whatever handle it is written.
        let at = own.cf().and_then(|cf| self.at(cf)).unwrap_or(0);
        &self.families[at].family
    }
    /// The first family that `own` names and that is not there.
    fn stranger(&self, own: Own<'_>) -> Option<CfId> {
        let absent = |cf: &CfId| self.at(*cf).is_none();
        match own.batch() {
            Some(batch) if batch.names_families() => {
                batch.view().iter().map(|op| op.cf).find(absent)
            }
            Some(_) => None,
            None => own.cf().filter(absent),
        }
    }
}

/// The turn while it is held. However the holder ends, it is passed on and no waiter is
/// forgotten.
pub(crate) struct Held<'a> {
    shell: &'a Shell,
    log: Option<Box<Log>>,
    /// Whose batches the holder took over and has not answered for.
    peers: Vec<Arc<Waiter<Log>>>,
    /// The memtable's handle, once the turn was passed on before the holder inserts.
    loan: Option<Loan<MemWriter>>,
    /// The thread is at work for the database; none while it waits without the turn.
    at: Option<At>,
    /// Its thread was unwinding from a panic already when it took the turn.
    unwinds: bool,
}

impl<'a> Held<'a> {
    pub(crate) fn new(shell: &'a Shell, log: Box<Log>) -> Held<'a> {
        Held::by(shell, log, shell.shared.mark().set())
    }
    /// The same for a thread that is at work for the database already.
    fn by(shell: &'a Shell, log: Box<Log>, at: At) -> Held<'a> {
        let unwinds = std::thread::panicking();
        Held { shell, log: Some(log), peers: Vec::new(), loan: None, at: Some(at), unwinds }
    }
    pub(crate) fn log(&mut self) -> &mut Log {
        self.log.as_mut().expect("held until it is dropped")
    }
    /// Lets others write while this one waits.
    fn step_aside(&mut self, wait: impl FnOnce()) -> Result<()> {
        self.at = None;
        if let Some(log) = self.log.take() {
            self.pass_on(log);
        }
        wait();
        self.log = Some(self.shell.take_turn()?);
        self.at = Some(self.shell.shared.mark().set());
        Ok(())
    }
    fn pass_on(&self, log: Box<Log>) {
        self.shell.shared.writes.turn.pass_on(log);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let loan = self.loan.take();
        if self.log.is_none() && loan.is_none() {
            return;
        }
        // A write by a destructor of a thread that unwinds is as whole as any other.
        if !self.unwinds && std::thread::panicking() {
            let error = self.shell.torn(self.log.as_deref_mut());
            for peer in self.peers.drain(..) {
                peer.serve(Err(error.clone()));
            }
        }
        if let Some(log) = self.log.take() {
            self.pass_on(log);
        }
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
        let at = self.begin_write()?;
        if options.no_wait {
            self.family.gate.check_open()?;
        }
        let _timed = self.shared.metrics.write.sample(&*self.shared.resources.env.rt);
        let durability = self.durability(options);
        let (turn, rt) = (&self.shared.writes.turn, &*self.shared.resources.env.rt);
        if let Some(log) = turn.take_soon(rt) {
            return self.lead(Held::by(self, log, at), own, durability, options.no_wait, always());
        }
        // A thread that only waits is not at work.
        drop(at);
        let (waiter, outcome) = turn.wait(rt, own.to_batch()?, durability);
        match outcome {
            Outcome::Served(result) => result,
            Outcome::Yours(log) => {
                let (held, own) = (Held::new(self, log), Own::Queued(&waiter));
                self.lead(held, own, durability, options.no_wait, always())
            }
        }
    }

    /// Writes `batch` if `check` passes once no other can write: between it and the batch there is
    /// no other write, and none between a write that failed and `failed`.
    ///
    /// # Errors
    /// Those of `check`, then nothing was written; else as a write.
    pub(crate) fn write_if(
        &self,
        batch: &BatchBuilder,
        options: &WriteOptions,
        check: impl FnOnce() -> Result<()>,
        failed: impl FnOnce(),
    ) -> Result<()> {
        self.check_batch(batch)?;
        if options.no_wait {
            self.family.gate.check_open()?;
        }
        let _timed = self.shared.metrics.write.sample(&*self.shared.resources.env.rt);
        let durability = self.durability(options);
        let log = self.take_turn()?;
        let held = Held::new(self, log);
        self.lead(held, Own::Batch(batch), durability, options.no_wait, (check, failed))
    }

    fn durability(&self, options: &WriteOptions) -> Durability {
        options.durability.unwrap_or_else(|| self.family.settings.durability())
    }

    /// Makes everything acknowledged so far durable. It writes nothing, so no stall holds it back; and it takes no other's
    /// write along, as those have to pass their gates.
    pub fn sync_log(&self) -> Result<()> {
        let log = self.take_turn()?;
        let mut held = Held::new(self, log);
        if let Some(error) = held.log().refused() {
            return Err(error);
        }
        self.check_replaced(held.log(), false)?;
        self.commit(&mut held, Own::Sync, Durability::Sync)
    }

    /// The same for the holder of the turn.
    pub(crate) fn sync_held(&self, log: &mut Log) -> Result<()> {
        self.append(log, Own::Sync, Durability::Sync, &[])
    }

    /// The turn, waiting for it if need be. All that was written before is in memtables, and published.
    pub(crate) fn take_turn(&self) -> Result<Box<Log>> {
        self.check_caller()?;
        let (turn, rt) = (&self.shared.writes.turn, &*self.shared.resources.env.rt);
        let mut log = match turn.take_soon(rt) {
            Some(log) => log,
            None => match turn.wait(rt, BatchBuilder::new(), Durability::NoWal).1 {
                Outcome::Yours(log) => log,
                Outcome::Served(result) => {
                    return Err(result.err().unwrap_or_else(|| self.shared.closed_error()));
                }
            },
        };
        // If that one panicked, the database only reads, and the gate says so.
        let _ = self.recall(&mut log);
        Ok(log)
    }

    /// A range deletion must not end before it starts, an operand needs an operator, and what was
    /// added without a family must not go by the handle of another one than the default.
    fn check_batch(&self, batch: &BatchBuilder) -> Result<()> {
        if batch.is_plain() && self.family.cf == DEFAULT_CF {
            return Ok(());
        }
        for op in batch.view().iter() {
            if op.cf == DEFAULT_CF && self.family.cf != DEFAULT_CF {
                return Err(errors::wrong_handle(&self.family.name));
            }
            if !matches!(op.kind, Kind::Merge | Kind::RangeDelete) {
                continue;
            }
            let family = self.family_of(op.cf)?;
            if op.kind == Kind::Merge && family.context().operator.is_none() {
                return Err(errors::no_operator());
            }
            if op.kind == Kind::RangeDelete {
                check_order(family.order(), op.key, op.value)?;
            }
        }
        Ok(())
    }

    /// Holds the turn: writes `own` and whatever else waits, then passes the turn on. If `check`
    /// fails, nothing is written; if the write does, `failed` is called before the turn is passed on.
    fn lead(
        &self,
        mut held: Held<'_>,
        own: Own<'_>,
        durability: Durability,
        no_wait: bool,
        (check, failed): (impl FnOnce() -> Result<()>, impl FnOnce()),
    ) -> Result<()> {
        loop {
            self.pass_gates(&mut held, own, no_wait)?;
            self.check_replaced(held.log(), no_wait)?;
            // The verdict on this very freeze may be to stop.
            if !self.make_room(held.log())?
                && (own.byte_len() == 0 || !self.wait_for_memory(&mut held, no_wait)?)
            {
                break;
            }
        }
        // The turn was not given away since, and is not before the batch is written.
        check()?;
        self.take_along(&mut held);
        let Held { log, peers, .. } = &held;
        log.as_ref().expect("held").charge(own, no_wait, peers);
        let result = self.commit(&mut held, own, durability);
        if result.is_err() {
            failed();
        }
        // To wake a thread takes longer than a short write: the next holder need not wait for it.
        let peers = std::mem::take(&mut held.peers);
        drop(held);
        for peer in peers {
            peer.serve(result.clone());
        }
        result
    }

    /// Passes the gates of the families that `own` is about. While writes are stopped the turn is free, and while they are slowed
    /// down too, with other families about: a stall holds up those who write to the stalled family, and no others. Without other
    /// families the next writer would have to wait for the same rate, so a short sleep keeps the turn; a long one would hold up
    /// a sync, a flush and writes that are not to wait.
    fn pass_gates(&self, held: &mut Held<'_>, own: Own<'_>, no_wait: bool) -> Result<()> {
        loop {
            if let Some(cf) = held.log().stranger(own) {
                return Err(self.shared.stranger(cf));
            }
            let Some((family, wait)) = self.stalled_family(held.log(), own, no_wait)? else {
                return Ok(());
            };
            if no_wait {
                return Err(stalled(wait.cause));
            }
            let rt = &*self.shared.resources.env.rt;
            let is_short =
                wait.until.is_some_and(|until| until.since(rt.now()) <= SLEEPS_WITH_TURN);
            let wait = || family.gate.sit_out(&wait, rt, &self.shared.metrics);
            match held.log().is_alone() && is_short {
                true => wait(),
                false => held.step_aside(wait)?,
            }
        }
    }

    /// The first family that `own` is about whose gate does not let it pass, and what to wait for.
    fn stalled_family(
        &self,
        log: &Log,
        own: Own<'_>,
        no_wait: bool,
    ) -> Result<Option<(Arc<OpenFamily>, Wait)>> {
        let ask = |family: &Arc<OpenFamily>| {
            let wait = family.gate.ask(no_wait, || self.shared.resources.env.rt.now())?;
            Ok(wait.map(|wait| (family.clone(), wait)))
        };
        let named = own.batch().filter(|batch| batch.names_families());
        let Some(batch) = named else { return ask(log.family_of_single(own)) };
        if log.all_gates(batch, |gate, _| gate.is_free()) {
            return Ok(None);
        }
        let cfs: BTreeSet<CfId> = batch.view().iter().map(|op| op.cf).collect();
        for at in cfs.into_iter().filter_map(|cf| log.at(cf)) {
            if let Some(stalled) = ask(&log.families[at].family)? {
                return Ok(Some(stalled));
            }
        }
        Ok(None)
    }

    /// Takes over what others want written. With several families, a write
    /// that one of their gates would make wait takes its own turn.
    fn take_along(&self, held: &mut Held<'_>) {
        if held.log().is_alone() {
            held.peers = self.shared.writes.turn.gather(|batch| !batch.names_families());
            return;
        }
        let log = held.log.as_ref().expect("held");
        // What time it is is asked once at most.
        let (now, rt) = (OnceCell::new(), &self.shared.resources.env.rt);
        let flows = |gate: &Gate, _| gate.flows(|| *now.get_or_init(|| rt.now()));
        held.peers = self.shared.writes.turn.gather(|batch| log.all_gates(batch, flows));
    }

    /// One commit group: log, memtable, publish.
    fn commit(&self, held: &mut Held<'_>, own: Own<'_>, durability: Durability) -> Result<()> {
        let Held { log, peers, .. } = &mut *held;
        let log = log.as_deref_mut().expect("held");
        let durability = peers.iter().map(|p| p.durability).fold(durability, Ord::max);
        let first = log.next_seq;
        reserve(log, own, peers)?;
        if let Some(member) = &self.shared.resources.arenas.shared {
            log.tell(member);
        }
        if durability == Durability::NoWal {
            log.gap = true;
        } else {
            if durability >= Durability::Os && log.is_alone() {
                prefetch(own, peers, &log.families[0].table);
            }
            self.append(log, own, durability, peers)?;
        }
        self.recall(log)?;
        if self.shared.writes.turn.is_crowded()
            && matches!(durability, Durability::Buffered | Durability::Os)
            && self.insert_behind(held, own)
        {
            return Ok(());
        }
        let Held { log, peers, .. } = held;
        let log = log.as_deref_mut().expect("held");
        let (next, bytes) = match &peers[..] {
            [] => (own.insert(log, first), own.byte_len()),
            _ => self.insert_group(log, own, peers, first)?,
        };
        log.next_seq = next;
        if durability == Durability::NoWal {
            log.note_unlogged(first);
        }
        self.publish(first, next, bytes);
        Ok(())
    }

    /// Inserts a group that is in the log behind the turn, which is passed on before: the next one is at
    /// the log meanwhile. False if it can't be, and nothing was done.
    #[inline(never)]
    fn insert_behind(&self, held: &mut Held<'_>, own: Own<'_>) -> bool {
        let together = || self.family.settings.load().concurrent_memtable_writes;
        let several = !held.log().is_alone() || !own.is_of_default();
        if several || (!held.peers.is_empty() && together()) {
            return false;
        }
        let (entries, bytes) = measure(own, &held.peers);
        let log = held.log();
        let first = log.next_seq;
        let Some(loan) = log.families[0].mem.lend_after(entries, bytes) else { return false };
        log.next_seq = first + entries as Seq;
        let writer = held.loan.insert(loan);
        self.shared.writes.turn.pass_on(held.log.take().expect("held"));
        let next = insert_all(own, &held.peers, writer.get(), first);
        self.publish(first, next, bytes);
        held.loan.take().expect("lent above").give_back();
        true
    }

    /// Waits until the group before is in the memtable: it may be inserted behind the turn.
    ///
    /// # Errors
    /// `OutcomeUnknown` if its holder panicked.
    #[inline]
    pub(crate) fn recall(&self, log: &mut Log) -> Result<()> {
        match log.families[0].mem.recall() {
            true => Ok(()),
            false => Err(self.torn(Some(log))),
        }
    }

    /// Shows readers the writes from number `first` up to the one before `next`.
    #[inline]
    fn publish(&self, first: Seq, next: Seq, bytes: usize) {
        self.shared.writes.published.store(next - 1, Ordering::Release);
        self.shared.metrics.add_in_turn([
            (Counter::Writes, next - first),
            (Counter::WriteBytes, bytes as u64),
            (Counter::Groups, 1),
        ]);
    }

    /// Gathers a group, appends it to the log and brings it as far as `durability` asks.
    fn append(
        &self,
        log: &mut Log,
        own: Own<'_>,
        durability: Durability,
        peers: &[Arc<Waiter<Log>>],
    ) -> Result<()> {
        log.group.clear();
        own.add_to(&mut log.group);
        for peer in peers {
            log.group.append(&peer.batch);
        }
        self.log_group(log, durability)
    }

    /// Appends what is in the group to the log, and brings that as far as `durability` asks.
    fn log_group(&self, log: &mut Log, durability: Durability) -> Result<()> {
        if durability == Durability::Sync || log.wal.is_none() {
            self.shared.check_owner()?;
        }
        let writes = !log.group.is_empty();
        match self.append_group(log, durability) {
            Ok(()) if durability == Durability::Sync => self.sync_closing(log),
            Err(error) if errors::is_lost(&error) => {
                if !zoo::on(Bug::RefusedStays) {
                    self.replace_log(log, error.clone())?;
                }
                // What was written before is in tables now: all that a sync asks for.
                if writes { Err(errors::not_committed(error)) } else { Ok(()) }
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
            self.shared.metrics.add_in_turn([(Counter::WalBytes, payload.len() as u64)]);
            if payload.len() > GROUP_BYTES_KEPT {
                log.group = BatchBuilder::new();
            }
        }
        let Some(wal) = log.wal.as_mut() else { return Ok(()) };
        match durability {
            Durability::NoWal | Durability::Buffered => wal.keep(),
            Durability::Os => wal.write_out()?,
            Durability::Sync => {
                self.shared.metrics.add(Counter::WalSyncs, 1);
                wal.sync()?;
            }
        }
        Ok(())
    }
}
