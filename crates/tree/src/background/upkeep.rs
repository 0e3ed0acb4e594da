//! What may wait: files that are not needed any more, the cache's share of memory, the event log,
//! and time for the core. One job does it all, woken by time and by the close.

use std::collections::BTreeSet;
use std::time::Duration;

use lithify_base::{Error, ErrorKind, FileId, shown_path};
use lithify_control::Event;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_env::{Hanging, Job, Mono, Step};
use lithify_journal::files::FileName;
use lithify_lsm::FileRef;

use crate::family::OpenFamily;
use crate::open::resources::Shares;
use crate::shared::Shared;
use crate::shell::Shell;
use crate::write::Held;
use crate::write::ended::Ended;
use crate::write::log::LogFile;
use lithify_reports::events::line;
use lithify_reports::field::Field;
use lithify_tables::cache::BLOCKS_LEAST;

/// Size at which the event log is put aside as `EVENTS.old` and started anew, bytes.
const EVENTS_MAX: u64 = 32 << 20;
/// How often the disk's free space and the time of day are looked up.
const DISK_EVERY: Duration = Duration::from_secs(1);
/// With less room than so many memtables of all families it is looked up more often than that,
const LOW_MEMTABLES: u64 = 16;
/// and with less than this, which no writer fills in the meantime, bytes.
const LOW_BYTES: u64 = 4 << 30;
/// How often freed memory is given back while jobs are at work.
const TRIM_EVERY: Duration = Duration::from_millis(250);
/// After so long without a job and nearly without writes the cache may borrow memory of memtables and buffers. If it were less, a
/// writer that comes and goes would pay for fresh pages each time.
const REST: Duration = Duration::from_secs(1);
/// Nearly without writes: in that time memtables grow by at most this part of one.
const REST_GROWTH: u64 = 8;
/// The most that it borrows, so that it is given back within milliseconds, bytes.
const LOAN_MAX: u64 = 1 << 30;
/// How often the upkeep job looks around when nothing wakes it.
const UPKEEP_EVERY: Duration = Duration::from_millis(50);
/// A call to the disk that takes longer is noted: with the time between two looks and that until the
/// note is written it is less than 5 s.
pub(crate) const HANGS: Duration = Duration::from_secs(4);

impl Shared {
    /// Tells the minds how much fits on the disk, so that they begin nothing that does not.
    pub(crate) fn look_at_disk(self: &Arc<Shared>) {
        // A handle that only reads begins nothing.
        if !self.life.read_only_handle {
            let (bytes, disk) = self.room();
            let told = |f: Shell| f.drive(Event::DiskFree { bytes, disk });
            self.families().into_iter().for_each(told);
        }
    }

    /// Tells it before anything is begun.
    pub(crate) fn look_at_disk_first(self: &Arc<Shared>) {
        let (bytes, disk) = self.room();
        self.families().iter().for_each(|family| family.core().know_room(bytes, disk));
    }

    /// Bytes that tables may still take, and those that the disk has free: all there may be where the
    /// file system can't tell, so that it is tried.
    fn room(self: &Arc<Shared>) -> (u64, u64) {
        let disk = self.resources.dir.free_space();
        let tables = self.tree_bytes();
        let bytes = match self.db_settings.load().disk_budget {
            Some(budget) => disk.min(budget.saturating_sub(tables)),
            None => disk,
        };
        let families = self.families();
        let memtables = families
            .iter()
            .map(|f| f.family.settings.memtable_bytes())
            .fold(0, u64::saturating_add);
        let near = memtables.saturating_mul(LOW_MEMTABLES).max(LOW_BYTES);
        let low = bytes < near;
        self.background.disk_low.store(low, Ordering::Relaxed);
        self.background.disk.look(bytes, tables, low);
        (bytes, disk)
    }

    /// The same where it may have become too little since the last look.
    pub(crate) fn look_at_low_disk(self: &Arc<Shared>) {
        if self.background.disk_low.load(Ordering::Relaxed) {
            self.look_at_disk();
        }
    }

    fn tree_bytes(self: &Arc<Shared>) -> u64 {
        let of_family = |f: &Shell| f.super_version().tree.version.all_bytes();
        self.families().iter().map(of_family).fold(0, u64::saturating_add)
    }

    /// Remembers a log that will be obsolete one day.
    pub(crate) fn log_made(&self, number: FileId) {
        self.writes.logs.lock().push(LogFile { number, ended: None });
    }

    /// Remembers who closes a log, if it is not obsolete before.
    pub(crate) fn log_ended(&self, number: FileId, ended: &Arc<Ended>) {
        let mut logs = self.writes.logs.lock();
        logs.iter_mut().rfind(|l| l.number == number).expect("it was made").ended =
            Some(ended.clone());
    }

    /// Deletes logs whose writes are all in tables, also those that wait to be made durable, but
    /// not the newest: if the manifest's last edit is damaged later on, that log or its follower's
    /// first record tells. So it is made durable, once it is the only one that is not needed.
    pub(crate) fn sweep_logs(self: &Arc<Shared>) {
        if self.keeps_files() {
            return;
        }
        let first = self.first_log();
        let (gone, kept) = {
            let mut logs = self.writes.logs.lock();
            let newest = logs.last().map(|l| l.number);
            let gone = logs.extract_if(.., |l| l.number.0 < first && Some(l.number) != newest);
            let gone: Vec<LogFile> = gone.collect();
            let kept = logs.first().filter(|l| l.number.0 < first);
            (gone, kept.and_then(|l| l.ended.clone()))
        };
        for LogFile { number, ended } in gone {
            if let Some(ended) = ended {
                ended.abandon();
            }
            if let Err(e) = self.resources.dir.remove(FileName::Wal(number.0)) {
                self.note("delete_failed", &[("cause", e.to_string().into())]);
            }
        }
        if let Some(ended) = kept {
            ended.begin(&self.resources.env.rt);
        }
    }

    /// Adds to the event log what concerns the whole database.
    pub(crate) fn note(&self, event: &str, fields: &[(&str, Field)]) {
        self.events.note(self.resources.env.rt.now(), event, fields);
    }

    /// What a reader of the event log has to know before all else: the policy, and what the world's clock said at `at`, in
    /// whole seconds of which the next had not begun then.
    pub(crate) fn told_first(&self, at: Mono) -> [(&'static str, Field); 2] {
        let rt = &self.resources.env.rt;
        let policy = self.db_settings.load().effective_policy().name();
        let ago = rt.now().since(at).as_secs();
        [("policy", policy.into()), ("unix_seconds", rt.wall_seconds().saturating_sub(ago).into())]
    }

    /// Gives the block cache what memtables, buffers, open tables and what cursors read ahead leave of the
    /// budget, and a sixteenth of it in any case. What these take beyond that, which open iterators keep, is
    /// taken out of buffers and memory of memtables that are kept for the next use; so is what these lend to the
    /// cache while there is next to nothing to write and it is full. A cache that is shared has a capacity of its own.
    pub(crate) fn fit_cache(&self) {
        let s = self.db_settings.load();
        let room = lithify_settings::cache_bytes(&s);
        let shares = Shares {
            memtables: s.memtable_bytes.saturating_mul(u64::from(s.memtable_count)),
            buffers: lithify_settings::buffer_bytes(&s),
        };
        if let Some(cache) = &self.resources.shared_cache {
            cache.fit();
            return self.resources.keep_idle(&shares, self.resources.beyond_shares(&shares));
        }
        let blocks = &self.resources.blocks;
        let others =
            blocks.resident() + blocks.ahead_bytes() + self.resources.beyond_shares(&shares);
        blocks.set_room(room);
        let least = room / BLOCKS_LEAST;
        let own = room.saturating_sub(others).max(least);
        let resting = self.background.resting.load(Ordering::Relaxed);
        let full = blocks.weight() >= own - own / 8;
        let lent = match resting && full {
            true => self.resources.unused(&shares, s.memtable_bytes).min(LOAN_MAX),
            false => 0,
        };
        self.resources.keep_idle(&shares, lent + (others + least).saturating_sub(room));
        blocks.fit(own + lent, room);
    }

    /// Has the largest memtable frozen if databases that share memory for memtables need it and no writer here does
    /// so; they are told how this one is.
    fn look_at_shared_memtables(self: &Arc<Shared>) {
        let Some(member) = &self.resources.arenas.shared else { return };
        let families = self.families();
        let able = |f: &Shell| !f.family.gate.is_stopped() && f.family.gate.refused().is_none();
        member.set_able(families.iter().any(able));
        // Others do not wait for flushes that fail.
        let flushes = |f: &Shell| {
            f.super_version().mems.len() > 1 && f.family.gate.report().trouble.is_none()
        };
        member.look_at_flushes(|| families.iter().any(flushes));
        if member.may_have_to_freeze()
            && let Some(shell) = families.into_iter().next()
        {
            let job = self.resources.alive.counted(Box::new(MakeRoom(shell)));
            self.resources.env.rt.spawn_apart(job);
        }
    }

    /// Deletes files of dropped families, and lets go of those that have nothing left.
    pub(crate) fn sweep_dropped(self: &Arc<Shared>) {
        let mut over = self.dropped_families();
        over.retain(Shell::sweep_all);
        let is_over =
            |family: &Arc<OpenFamily>| over.iter().any(|gone| Arc::ptr_eq(&gone.family, family));
        self.dropped.lock().retain(|family| !is_over(family));
    }
}

impl Shell {
    /// Bytes of tables out of the tree that are still read.
    pub(crate) fn obsolete_bytes(&self) -> u64 {
        self.family.work.obsolete.lock().iter().map(|f| f.bytes).sum()
    }
    /// Trees that are still read.
    pub(crate) fn live_trees(&self) -> usize {
        self.family.views.trees.lock().iter().filter(|tree| tree.strong_count() > 0).count()
    }
    pub(crate) fn running_flushes(&self) -> usize {
        self.family.work.at_work.lock().values().filter(|work| work.flushes.is_some()).count()
    }

    /// Writers wait for room, and some tables may have become obsolete: the next job, which may need the
    /// room that they take, does not wait for the upkeep job.
    pub(crate) fn sweep_for_room(&self) {
        if self.shared.background.pauses.load(Ordering::SeqCst) == 0 {
            self.sweep_tables();
        }
        self.shared.look_at_disk();
    }

    /// Deletes what a dropped family has left; true if that was all, and no job is at work on more.
    fn sweep_all(&self) -> bool {
        // Looked at first: a job that ends leaves its files behind before.
        let idle = self.family.work.at_work.lock().is_empty();
        self.sweep_tables();
        self.sweep_litter();
        idle && self.is_let_go()
            && self.family.work.obsolete.lock().is_empty()
            && self.family.work.litter.lock().is_empty()
    }

    /// Deletes obsolete tables that are not pinned any more: the list holds the last references. A
    /// table that moved is known by a reference for each place it had, and goes with the last.
    pub(crate) fn sweep_tables(&self) {
        if self.shared.keeps_files() {
            return;
        }
        let free: Vec<FileRef> = {
            let mut list = self.family.work.obsolete.lock();
            let (free, kept): (Vec<_>, Vec<_>) =
                std::mem::take(&mut *list).into_iter().partition(|f| Arc::strong_count(f) == 1);
            let pinned: BTreeSet<FileId> = kept.iter().map(|f| f.id).collect();
            let (free, still) = free.into_iter().partition(|f| !pinned.contains(&f.id));
            *list = kept;
            list.extend::<Vec<_>>(still);
            free
        };
        if free.is_empty() {
            return;
        }
        let version = self.core().version().clone();
        let gone: BTreeSet<FileId> =
            free.iter().map(|f| f.id).filter(|id| version.file(*id).is_none()).collect();
        gone.into_iter().for_each(|id| self.delete_table(id));
    }

    /// Deletes what jobs made that were given up.
    pub(crate) fn sweep_litter(&self) {
        if self.shared.keeps_files() {
            return;
        }
        let litter = std::mem::take(&mut *self.family.work.litter.lock());
        litter.into_iter().for_each(|id| self.delete_table(id));
    }

    fn delete_table(&self, id: FileId) {
        self.family.tables.forget(id);
        self.shared.events.listeners().push(
            self.shared.resources.env.rt.now(),
            "table_deleted",
            &[("file", id.0.into())],
        );
        if let Err(e) = self.shared.resources.dir.remove_table(id.0) {
            // An orphan now; the next open collects it.
            self.note("delete_failed", &[("cause", e.to_string().into())]);
        }
    }
}

/// Makes room for other databases. It may wait for flushes where a log can't go on, so it runs apart.
struct MakeRoom(Shell);

impl Job for MakeRoom {
    fn step(&mut self) -> Step {
        // A writer that has the turn makes room itself, and one that comes later meets what failed here.
        if let Some(log) = self.0.shared.writes.turn.try_take() {
            let _ = self.0.make_room(Held::new(&self.0, log).log());
        }
        Step::Done
    }
}

/// Whether there is next to nothing to write, by windows of [`REST`].
struct Rest {
    /// When the window began, and the bytes of memtables then.
    since: Mono,
    memtables: u64,
    resting: bool,
}

impl Rest {
    fn new() -> Rest {
        Rest { since: Mono::ZERO, memtables: 0, resting: false }
    }

    /// Looks at whether jobs were at work since the last look, and at the bytes of memtables, which are full at `memtable`. A job or
    /// a growth ends the rest at once; a window without either begins it.
    fn look(&mut self, now: Mono, worked: bool, memtables: u64, memtable: u64) -> bool {
        let wrote = worked || memtables.abs_diff(self.memtables) > memtable / REST_GROWTH;
        if wrote || now.since(self.since) >= REST {
            (self.since, self.memtables, self.resting) = (now, memtables, !wrote);
        }
        self.resting
    }
}

/// Looks around now and then: time for the core, the event log, files that are not pinned any more.
pub(crate) struct Upkeep {
    shared: Arc<Shared>,
    log: Option<lithify_env::FileRef>,
    at: u64,
    /// The log was begun anew, and its first line is still to be written.
    begins: bool,
    /// When they are looked up next.
    disk_at: Mono,
    /// When freed memory may be given back next, and whether jobs were at work since.
    trim_at: Mono,
    worked: bool,
    rest: Rest,
    /// Calls that were noted as hanging.
    hanging: Vec<Hanging>,
}

impl Upkeep {
    pub(crate) fn new(shared: Arc<Shared>) -> Upkeep {
        let (disk_at, trim_at) = (Mono::ZERO, Mono::ZERO);
        let (log, at, begins) = (None, 0, false);
        let (worked, rest, hanging) = (false, Rest::new(), Vec::new());
        Upkeep { shared, log, at, begins, disk_at, trim_at, worked, rest, hanging }
    }

    fn look_at_rest(&mut self, worked: bool) {
        let now = self.shared.resources.env.rt.now();
        let memtable = self.shared.db_settings.load().memtable_bytes;
        let in_use = self.shared.resources.memtables_in_use();
        let resting = self.rest.look(now, worked, in_use, memtable);
        self.shared.background.resting.store(resting, Ordering::Relaxed);
    }

    /// Gives back what jobs have freed, if any was at work since the last time.
    fn trim_heap(&mut self) {
        let now = self.shared.resources.env.rt.now();
        if self.worked && now >= self.trim_at {
            lithify_env::trim_heap();
            (self.worked, self.trim_at) = (false, now + TRIM_EVERY);
        }
    }

    fn look_at_disk_and_clock(&mut self) {
        let now = self.shared.resources.env.rt.now();
        if now < self.disk_at {
            return;
        }
        self.disk_at = now + DISK_EVERY;
        self.shared.look_at_disk();
        let seconds = self.shared.resources.env.rt.wall_seconds();
        for family in self.shared.families() {
            family.drive(Event::WallTime { seconds });
        }
    }

    /// Notes which calls hang, and which no longer do. What hangs in this job itself is only known
    /// to `Db::explain`, as it could not be written down.
    fn look_at_calls(&mut self) {
        let Some(watched) = &self.shared.resources.files.watched else { return };
        let hanging = watched.look(HANGS);
        let now = self.shared.resources.env.rt.now();
        let told = |call: &Hanging, event: &str| {
            let micros = now.since(call.since).as_micros() as u64;
            let fields = [
                ("call", call.op.into()),
                ("file", shown_path(&call.path).to_string().into()),
                ("micros", micros.into()),
            ];
            self.shared.note(event, &fields);
        };
        let is_in = |list: &[Hanging], call: &Hanging| list.iter().any(|c| c.id == call.id);
        self.hanging.iter().filter(|c| !is_in(&hanging, c)).for_each(|c| told(c, "disk_answers"));
        hanging.iter().filter(|c| !is_in(&self.hanging, c)).for_each(|c| told(c, "disk_hangs"));
        self.hanging = hanging;
    }

    fn write_events(&mut self) {
        let (mut text, first) = self.shared.events.drain();
        if text.is_empty() {
            return;
        }
        if self.log.is_some() && self.at > EVENTS_MAX {
            self.log = None;
            self.shared.resources.dir.set_events_aside();
            self.begins = true;
        }
        if self.log.is_none() {
            let Ok((file, at)) = self.shared.resources.dir.open_events() else { return };
            self.at = at;
            self.log = Some(file);
        }
        if self.begins {
            // What the opening told is in the log before, or in none any more.
            let mut head = String::new();
            line(&mut head, first, "goes_on", &self.shared.told_first(first));
            text.insert_str(0, &head);
        }
        if let Some(file) = &self.log
            && lithify_env::write_all_at(&**file, text.as_bytes(), self.at).is_ok()
        {
            self.at += text.len() as u64;
            self.begins = false;
        }
    }
}

impl Job for Upkeep {
    fn step(&mut self) -> Step {
        // Asked before all else: what is left when the stop comes takes one more whole round.
        let last = self.shared.background.stop.is_done();
        self.look_at_calls();
        let families = self.shared.families();
        let bytes = self.shared.background.progress.moved.swap(0, Ordering::Relaxed);
        self.worked |= bytes > 0;
        for family in &families {
            if bytes > 0 {
                family.drive(Event::Moved { bytes });
            }
            family.drive(Event::Tick);
        }
        self.look_at_disk_and_clock();
        if self.shared.background.pauses.load(Ordering::SeqCst) == 0 {
            self.shared.sweep_logs();
            for family in families {
                family.sweep_tables();
                family.sweep_litter();
            }
            self.shared.sweep_dropped();
        }
        // With what was just deleted.
        self.shared.look_at_low_disk();
        self.look_at_rest(bytes > 0);
        self.shared.fit_cache();
        if !last {
            self.shared.look_at_shared_memtables();
        }
        self.trim_heap();
        self.write_events();
        self.shared.deliver_events();
        if last {
            self.shared.background.stopped.complete();
            return Step::Done;
        }
        Step::WaitUntil(
            self.shared.background.stop.clone(),
            self.shared.resources.env.rt.now() + UPKEEP_EVERY,
        )
    }
    fn panicked(&mut self, message: String) {
        self.shared.go_read_only(Error::new(ErrorKind::Internal, message));
        self.shared.background.stopped.complete();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMTABLE: u64 = 32 << 20;

    /// Looks every 50 ms for `looks` looks, while memtables grow by `step` at each; the answers.
    fn looks(rest: &mut Rest, now: &mut Mono, bytes: &mut u64, looks: u32, step: u64) -> Vec<bool> {
        let look = |_| {
            *now = *now + UPKEEP_EVERY;
            *bytes += step;
            rest.look(*now, false, *bytes, MEMTABLE)
        };
        (0..looks).map(look).collect()
    }

    #[test]
    fn a_trickle_of_writes_is_rest_and_a_stream_is_none() {
        let (mut rest, mut now, mut bytes) = (Rest::new(), Mono::ZERO, MEMTABLE);
        assert!(!rest.look(now, false, bytes, MEMTABLE), "it was opened just now");
        // 1 MiB a second.
        let trickle = looks(&mut rest, &mut now, &mut bytes, 100, (1 << 20) / 20);
        let (first, later) = trickle.split_at(19);
        assert!(first.iter().all(|resting| !resting) && later.iter().all(|resting| *resting));
        // 16 MiB a second: within a third of one.
        let stream = looks(&mut rest, &mut now, &mut bytes, 100, (16 << 20) / 20);
        assert!(stream[6..].iter().all(|resting| !resting), "{stream:?}");
        assert!(looks(&mut rest, &mut now, &mut bytes, 21, 0)[20]);
        assert!(!rest.look(now, true, bytes, MEMTABLE), "a job ends it at once");
        assert!(!looks(&mut rest, &mut now, &mut bytes, 19, 0)[18]);
    }
}
