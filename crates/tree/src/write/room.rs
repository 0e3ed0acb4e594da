//! Room for writes: which memtables are frozen, and how empty ones take their places.
//!
//! A memtable is frozen once it is full, or once its log takes too many bytes, as notes fill logs and no memtable. Several
//! families share one log and one memory, and both are kept within their bounds. A log can go when every family has flushed
//! past it, so one that is rarely written holds back the logs of all: once the logs that are kept pass a bound, the
//! memtables that need the oldest of them are frozen. And once the active memtables take most of what memtables may take
//! together, the largest is. Several databases may have one bound for the memtables of all of them
//! (`lithify_writes::shared`).

use std::time::Duration;

use lithify_base::{CfId, FileId, Result, Seq};
use lithify_control::{Event, MemId};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_files::wal::{LOG_END, Prepared};
use lithify_memtable::{MemTable, MemWriter};
use lithify_store::numbers;

use super::Held;
use super::log::{Filling, Log};
use crate::shell::Shell;
use lithify_views::super_version::Mem;
use lithify_writes::errors;
use lithify_writes::gate::Wait;
use lithify_writes::shared::{Arenas, Member};

/// Bytes of a log after which it is asked again whether the logs take too many.
const LOOK_AGAIN_BYTES: u64 = 64 << 10;
/// How long a writer waits for shared memory before it looks whether there is any to come.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Log {
    /// The families, by their places, whose memtables make room. One that is stopped keeps its own.
    fn too_full(&mut self, max_logs: u64, memory: u64, prepared: &Prepared) -> Vec<usize> {
        let all = 0..self.families.len();
        let mut out: Vec<usize> = all.filter(|at| self.families[*at].is_full()).collect();
        if self.open_bytes() > self.room {
            out.extend(self.holding_back(max_logs, prepared));
        }
        if out.is_empty() {
            out.extend(self.largest_of_too_many(memory));
        }
        out.sort_unstable();
        out.dedup();
        out.retain(|at| !self.families[*at].family.gate.is_stopped());
        out
    }

    /// Families whose active memtables need the oldest log, if the logs take more than `most` bytes. Where the open log
    /// takes them alone that is all of them, so that it ends even if they are empty.
    fn holding_back(&mut self, most: u64, prepared: &Prepared) -> Vec<usize> {
        self.forget_unneeded(prepared);
        let (open, end) = (self.open_bytes(), most.min(LOG_END));
        self.room = end.min(open + LOOK_AGAIN_BYTES);
        let kept: u64 = self.kept.iter().map(|(_, bytes)| bytes).sum();
        let all = 0..self.families.len();
        if open > end {
            return all.collect();
        }
        let Some((oldest, _)) = self.kept.front().filter(|_| open + kept > most) else {
            return Vec::new();
        };
        let old = |f: &Filling| f.log.load(Ordering::Relaxed) <= *oldest;
        let needs = |at: &usize| old(&self.families[*at]) && !self.families[*at].table.is_empty();
        all.filter(needs).collect()
    }

    /// Forgets earlier logs whose writes are in tables, and which hold nothing that is prepared.
    pub(super) fn forget_unneeded(&mut self, prepared: &Prepared) {
        let now = self.wal_number.0;
        let needs = |f: &Filling| {
            let sv = f.family.super_version();
            sv.first_log(sv.tree.version.log_number(), now)
        };
        let first = prepared.kept_from(self.families.iter().map(needs).min().unwrap_or(now));
        self.kept.retain(|(number, _)| *number >= first);
    }

    /// The family with the largest active memtable, if all of them take too much of `memory` bytes:
    /// seven eighths of it, or half of it while those being flushed take the rest.
    fn largest_of_too_many(&self, memory: u64) -> Option<usize> {
        let bytes = |at: &usize| self.families[*at].table.bytes() as u64;
        let active: u64 = (0..self.families.len()).map(|at| bytes(&at)).sum();
        let frozen = || {
            let of = |f: &Filling| {
                let sv = f.family.super_version();
                sv.mems.iter().skip(1).map(|m| m.table.bytes() as u64).sum::<u64>()
            };
            self.families.iter().map(of).sum::<u64>()
        };
        let too_many = active > memory / 8 * 7
            || (active > memory / 2 && active.saturating_add(frozen()) > memory);
        let able = (0..self.families.len()).filter(|at| self.families[*at].can_freeze());
        if too_many { able.max_by_key(bytes) } else { None }
    }

    /// Tells `member` what these families' memtables take, and gives the family that has the largest if that is to be
    /// frozen to make room for other databases.
    fn largest_of_all(&self, member: &Member) -> Option<usize> {
        self.tell(member);
        member.set_able(true);
        let all = (0..self.families.len()).filter(|at| self.families[*at].can_freeze());
        let bytes = |at: &usize| self.families[*at].table.reserved_bytes();
        if member.is_to_freeze() { all.max_by_key(bytes) } else { None }
    }

    /// Tells `member` what these families' memtables take.
    pub(super) fn tell(&self, member: &Member) {
        member
            .fills(self.families.iter().map(|f| (f.table.reserved_bytes() as u64, f.can_freeze())));
    }

    /// Memtables without a write need no log before `log`.
    pub(super) fn pass_over_empty(&mut self, log: FileId) {
        for family in self.families.iter().filter(|f| f.table.is_empty()) {
            family.log.store(log.0, Ordering::Release);
        }
    }

    /// Puts another empty memtable, `fresh`, in the place of the active one of a family, which is empty: readers that have
    /// that one at hand see none of the writes to come. Its writer is here.
    pub(crate) fn renew(&mut self, cf: CfId, (table, writer): (Arc<MemTable>, MemWriter)) {
        let Some(at) = self.at(cf) else { return };
        let family = &mut self.families[at];
        drop(family.mem.replace(writer));
        family.table = table.clone();
        let new = Mem { id: family.id, table, log: family.log.clone() };
        family.family.change_memtables(|mems| mems[0] = new);
    }

    /// Writes from number `first` on are in no log.
    pub(super) fn note_unlogged(&mut self, first: Seq) {
        for family in &mut self.families {
            let newest = family.table.last_seq();
            family.unlogged |= newest.is_some_and(|newest| newest >= first);
        }
    }
}

impl Shell {
    /// Freezes memtables that are full, or hold too much of the logs or of memory; false if there
    /// are none.
    pub(crate) fn make_room(&self, log: &mut Log) -> Result<bool> {
        let mut full = Vec::new();
        if !log.is_alone() || log.families[0].is_full() || log.open_bytes() > log.room {
            let (most, memory) = (self.max_wal_bytes(log), self.memtable_budget());
            full = log.too_full(most, memory, &self.shared.writes.prepared);
        }
        if full.is_empty()
            && let Some(member) = &self.shared.resources.arenas.shared
        {
            full.extend(log.largest_of_all(member));
        }
        if full.is_empty() {
            return Ok(false);
        }
        self.freeze(log, &full)?;
        Ok(true)
    }

    /// Waits while memtables have all the memory that databases share for them; true if it had to, and the turn was
    /// free meanwhile.
    pub(super) fn wait_for_memory(&self, held: &mut Held<'_>, no_wait: bool) -> Result<bool> {
        let member = self.shared.resources.arenas.shared.as_ref();
        let Some(freed) = member.and_then(|member| member.has_to_wait()) else { return Ok(false) };
        self.family.gate.check_flushes(no_wait)?;
        let rt = &*self.shared.resources.env.rt;
        // What is waited for may be given up: looked at again.
        let wait = Wait::for_memory(freed, rt.now() + LOOK_AGAIN);
        held.step_aside(|| self.family.gate.sit_out(&wait, rt, &self.shared.metrics))?;
        Ok(true)
    }

    /// Replaces the active memtables of the families at `which` by empty ones and hands the old ones
    /// to be flushed. The log is closed in the background.
    pub(crate) fn freeze(&self, log: &mut Log, which: &[usize]) -> Result<()> {
        self.recall(log)?;
        if !numbers::fits_memtable(log.next_seq) {
            return Err(errors::numbers_used_up());
        }
        let fresh = fresh_memtables(log, which, &self.shared.resources.arenas)?;
        if let Some(wal) = &mut log.wal {
            match wal.end() {
                Ok(end) => log.before = Some(end),
                // That freezes, too.
                Err(e) if errors::is_lost(&e) => return self.replace_log(log, e),
                Err(e) => return Err(e),
            }
        }
        let ended = log.wal.take();
        let is_logged = ended.is_some();
        if let Some(wal) = ended {
            self.close_wal(log, wal);
        }
        self.swap_memtables(log, fresh);
        if is_logged {
            self.shared.spawn_log_ahead();
        }
        Ok(())
    }

    /// Puts empty memtables in the place of active ones, whose log is closed or lost, and has those
    /// flushed.
    pub(super) fn swap_memtables(&self, log: &mut Log, fresh: Vec<Fresh>) {
        self.shared.next_log(log);
        log.room = 0;
        let next_wal = log.wal_number;
        self.shared.writes.log_now.store(next_wal.0, Ordering::Release);
        let mut frozen = Vec::new();
        for Fresh { at, table, writer } in fresh {
            let family = &mut log.families[at];
            let old = family.mem.replace(writer).freeze();
            family.table = table.clone();
            let new = Mem::new(MemId(family.id.0 + 1), table, next_wal);
            let old_id = std::mem::replace(&mut family.id, new.id);
            family.log = new.log.clone();
            if std::mem::take(&mut family.unlogged) {
                family.unlogged_before = Some(old_id);
            }
            let bytes = old.bytes() as u64;
            // A nearly empty memtable is mostly overhead, which says nothing of a full one.
            let written = family.family.gate.take_passed().clamp(bytes / 4, bytes);
            family.family.change_memtables(|mems| mems.insert(0, new));
            let event = Event::Frozen { mem: old_id, bytes, written, log_number: next_wal.0 };
            frozen.push((self.shared.shell(family.family.clone()), event));
        }
        log.pass_over_empty(next_wal);
        if let Some(member) = &self.shared.resources.arenas.shared {
            log.tell(member);
            member.froze();
        }
        frozen.into_iter().for_each(|(shell, event)| shell.drive(event));
        self.shared.look_at_low_disk();
    }

    /// Most bytes of logs that are kept before memtables are flushed to let them go.
    fn max_wal_bytes(&self, log: &Log) -> u64 {
        let of = |f: &Filling| {
            f.family.settings.memtable_bytes() * u64::from(f.family.settings.load().memtable_count)
        };
        match self.shared.db_settings.load().max_wal_bytes {
            0 => 4 * log.families.iter().map(of).sum::<u64>(),
            most => most,
        }
    }

    /// Bytes that the memtables of all families may take.
    fn memtable_budget(&self) -> u64 {
        let s = self.shared.db_settings.load();
        s.memtable_bytes * u64::from(s.memtable_count)
    }
}

/// A memtable that is to become active.
pub(super) struct Fresh {
    at: usize,
    table: Arc<MemTable>,
    writer: MemWriter,
}

/// Empty memtables for the families at `which`.
pub(super) fn fresh_memtables(log: &Log, which: &[usize], arenas: &Arenas) -> Result<Vec<Fresh>> {
    let fresh = |&at: &usize| {
        let (table, writer) = log.families[at].family.new_memtable(arenas)?;
        Ok(Fresh { at, table, writer })
    };
    which.iter().map(fresh).collect()
}
