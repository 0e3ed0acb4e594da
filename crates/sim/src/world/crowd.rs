//! Several clients that write at the same time, at any durability, and what became of their order.
//!
//! No client knows in which order the database took their batches: a group is written as one. The log
//! knows. After the clients are done, it is read, and gives the order in which the model takes the
//! batches.
//!
//! Keeps: each batch is in the log once and whole; one that was acknowledged before another was begun
//! comes before it. A state may be left by a crash only from the moment on when all its batches were
//! begun.

use std::collections::BTreeMap;

use lithify::{Durability, Error, WriteOptions};
use lithify_env::Rt;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_journal::files::FileName;
use lithify_journal::wal::{SeqRule, WalWalk};

use super::script::Told;
use super::writes::batch_of;
use super::{Violation, World, failed, key, value};
use crate::crew::{Crew, MOST, Story};
use crate::disk::Entry;
use crate::model::Change;

/// Entries of a batch that its writer may insert: see `Settings::concurrent_memtable_writes`.
const LARGE: u32 = 48;

/// What written-down clients write at, by turns.
const LEVELS: [Durability; 3] = [Durability::Os, Durability::Sync, Durability::Buffered];

/// A batch of a client.
struct Task {
    /// The first change is a put of a value that no other writer writes.
    changes: Vec<Change>,
    durability: Durability,
}

/// Changes as a log has them: family, key and value; an empty value also for a deletion.
type Logged = (u32, Vec<u8>, Vec<u8>);

/// How the batches of one client ended.
type Ended = Arc<Mutex<Vec<(Fate, Option<Error>)>>>;

/// What is known of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// Position in the log of the disk at which it was begun, and at which it was acknowledged.
    begun: usize,
    ended: usize,
    /// The same in the order of all calls.
    first: u64,
    last: u64,
    /// Seconds since 1970 at which it was begun.
    second: u64,
}

impl World {
    /// A few clients write a few batches each. Not while storage fails: what they are told then has
    /// no order.
    pub(super) fn crowd(&mut self) -> Told {
        if self.shaken || self.shape.unlogged {
            return self.put(4);
        }
        let clients = 2 + self.dice.choose(MOST as u32 - 1, "clients");
        let most = 1 + self.dice.choose(4, "batches");
        let mut tasks: Vec<Vec<Task>> = Vec::new();
        for _ in 0..clients {
            let count = 1 + self.dice.choose(most, "of one");
            tasks.push((0..count).map(|_| self.any_task()).collect());
        }
        self.work(tasks)
    }

    fn any_task(&mut self) -> Task {
        if self.shape.settings.concurrent_memtable_writes && self.dice.choose(3, "large") > 0 {
            return self.large_task();
        }
        let len = 8 + self.dice.choose(self.shape.value_max, "bytes") as usize;
        let own = Change::Put(self.any_key(), self.own_value(len));
        let mut changes = vec![self.somewhere(own)];
        let more = self.dice.choose(3, "more");
        changes.extend((0..more).map(|_| self.any_change()));
        Task { changes, durability: self.any_durability() }
    }

    /// A batch of so many entries that its writer may insert it beside others.
    fn large_task(&mut self) -> Task {
        let mut changes = vec![Change::Put(self.any_key(), self.own_value(24))];
        for _ in 0..LARGE + self.dice.choose(16, "entries") {
            changes.push(match self.dice.weighted(&[20, 4, 1], "change") {
                0 => Change::Put(self.any_key(), self.own_value(24)),
                1 => Change::Delete(self.any_key()),
                _ => self.any_range(),
            });
        }
        Task { changes, durability: self.any_durability() }
    }

    /// A value that no other write has: 8 bytes or more.
    fn own_value(&mut self, len: usize) -> Arc<[u8]> {
        self.next += 1;
        value(self.next, len)
    }

    /// Clients that put `count` values each, at mixed durability.
    ///
    /// # Errors
    /// What must not happen.
    pub fn crowd_of(&mut self, clients: u32, count: u32, len: usize) -> Told {
        let mut tasks = Vec::new();
        for client in 0..clients {
            let mut own = Vec::new();
            for n in 0..count {
                let changes = vec![Change::Put(key(client * 8 + n % 16), self.own_value(len))];
                own.push(Task { changes, durability: LEVELS[(client + n) as usize % 3] });
            }
            tasks.push(own);
        }
        self.work_or_write(tasks)
    }

    /// Clients that put `count` batches each that are large enough to be inserted side by side.
    ///
    /// # Errors
    /// What must not happen.
    pub fn large_crowd(&mut self, clients: u32, count: u32, len: usize) -> Told {
        let mut tasks = Vec::new();
        for client in 0..clients {
            let mut own = Vec::new();
            for n in 0..count {
                let keys = (client * 8)..(client * 8 + LARGE + n);
                let puts = keys.map(|n| Change::Put(key(n), self.own_value(len)));
                own.push(Task {
                    changes: puts.collect(),
                    durability: LEVELS[(client + n) as usize % 3],
                });
            }
            tasks.push(own);
        }
        self.work_or_write(tasks)
    }

    /// Has clients write `tasks`; where storage fails, one after the other.
    fn work_or_write(&mut self, tasks: Vec<Vec<Task>>) -> Told {
        if !self.shaken {
            return self.work(tasks);
        }
        for task in tasks.into_iter().flatten() {
            self.write_at(task.changes, task.durability)?;
        }
        Ok(())
    }

    fn work(&mut self, tasks: Vec<Vec<Task>>) -> Told {
        let from = self.fs.position();
        let before = self.db().stats().counts.own_inserts;
        let clock = Arc::new(AtomicU64::new(0));
        let mut fates = Vec::new();
        let mut stories: Vec<Story> = Vec::new();
        for own in &tasks {
            let told = Ended::default();
            fates.push(told.clone());
            let mut batches = Vec::new();
            for task in own {
                let batch =
                    batch_of(self.db(), &task.changes).map_err(|e| failed("a batch", &e))?;
                batches.push((batch, WriteOptions::at(task.durability)));
            }
            let (db, fs, clock) = (self.opened().clone(), self.fs.clone(), clock.clone());
            let pump = self.pump.clone();
            stories.push(Box::new(move || {
                for (batch, options) in batches {
                    let (begun, first) = (fs.position(), clock.fetch_add(1, Ordering::Relaxed));
                    let second = pump.wall_seconds();
                    let error = db.write(&batch, &options).err();
                    let (ended, last) = (fs.position(), clock.fetch_add(1, Ordering::Relaxed));
                    told.lock().push((Fate { begun, ended, first, last, second }, error));
                }
            }));
        }
        let crew = Crew::new(stories);
        self.pump.attend(&crew);
        if let Some(said) = crew.panics().first() {
            return Violation::new(format!("a client panicked: {said}"));
        }
        let mut ended: Vec<Fate> = Vec::new();
        for told in &fates {
            for (fate, error) in told.lock().iter() {
                match error {
                    None => ended.push(*fate),
                    Some(e) => return Err(failed("a write among others", e)),
                }
            }
        }
        if self.db().stats().counts.own_inserts > before {
            self.marks.hit("inserted beside others");
        }
        self.db().sync().map_err(|e| failed("a sync", &e))?;
        let mut all: Vec<Task> = tasks.into_iter().flatten().collect();
        for (task, fate) in all.iter_mut().zip(&ended) {
            let stamped = |change: &Change| self.stamped(change, fate.second);
            task.changes = task.changes.iter().map(stamped).collect();
        }
        let order = self.logged_order(from, &all)?;
        self.settle_order(&all, &ended, &order)?;
        self.journal.synced(self.fs.position());
        Ok(())
    }

    /// The order in which the log has `tasks`.
    fn logged_order(&self, from: usize, tasks: &[Task]) -> Result<Vec<usize>, Violation> {
        let mut firsts: BTreeMap<Logged, usize> = BTreeMap::new();
        for (i, task) in tasks.iter().enumerate() {
            firsts.insert(self.logged(&task.changes[0])?, i);
        }
        let all = self.logged_since(from)?;
        let mut order = Vec::new();
        let mut at = 0;
        while at < all.len() {
            let Some(&task) = firsts.get(&all[at]) else {
                at += 1;
                continue;
            };
            let changes = tasks[task].changes.iter().map(|change| self.logged(change));
            let changes = changes.collect::<Result<Vec<Logged>, _>>()?;
            if all.get(at..at + changes.len()) != Some(&changes[..]) || order.contains(&task) {
                return Violation::new("a batch is in the log twice, or not whole");
            }
            at += changes.len();
            order.push(task);
        }
        if order.len() != tasks.len() {
            return Violation::new("an acknowledged batch is not in the log");
        }
        Ok(order)
    }

    /// All changes in the logs that were written to since `from`, in order.
    fn logged_since(&self, from: usize) -> Result<Vec<Logged>, Violation> {
        let (mut logs, mut written) = (BTreeMap::new(), Vec::new());
        for (at, entry) in self.fs.log_from(0).iter().enumerate() {
            match entry {
                Entry::Create(_, name, ino) => {
                    if let Some(FileName::Wal(number)) = FileName::parse(name) {
                        logs.insert(*ino, number);
                    }
                }
                Entry::Write(ino, ..) if at >= from && !written.contains(ino) => written.push(*ino),
                _ => {}
            }
        }
        let disk = self.fs.disk();
        let mut all = Vec::new();
        for ino in written {
            let Some(number) = logs.get(&ino) else { continue };
            let content = &disk.inodes[&ino].visible;
            let mut walk = WalWalk::new(content, *number, SeqRule::Contiguous);
            let wrong = |e| failed("a look into the log", &e);
            while let Some(batch) = walk.next_batch().map_err(wrong)? {
                let view = batch.view().map_err(wrong)?;
                all.extend(view.iter().map(|op| (op.cf.0, op.key.to_vec(), op.value.to_vec())));
            }
        }
        Ok(all)
    }

    /// The model and the journal take the batches in this order.
    fn settle_order(&mut self, tasks: &[Task], fates: &[Fate], order: &[usize]) -> Told {
        let (mut begun, mut first) = (0, 0);
        let mut acks = Vec::new();
        for &task in order {
            let fate = fates[task];
            if fate.last < first {
                return Violation::new("a write is behind one begun after it was acknowledged");
            }
            first = first.max(fate.first);
            begun = begun.max(fate.begun);
            tasks[task].changes.iter().for_each(|change| self.model.apply(change));
            self.journal.begun(self.model.sums(), begun);
            acks.push((fate.ended, self.journal.writes(), tasks[task].durability));
        }
        acks.sort_unstable_by_key(|ack| ack.0);
        for (position, state, durability) in acks {
            match durability {
                Durability::Sync => self.journal.durable_at(position, state),
                Durability::Os => self.journal.written_at(position, state),
                Durability::Buffered | Durability::NoWal => {}
            }
        }
        Ok(())
    }

    /// How a log has a change.
    fn logged(&self, change: &Change) -> Result<Logged, Violation> {
        Ok(match change {
            Change::Put(key, value) | Change::Merge(key, value) => (0, key.clone(), value.to_vec()),
            Change::Delete(key) | Change::SingleDelete(key) => (0, key.clone(), Vec::new()),
            Change::DeleteRange(from, to) => (0, from.clone(), to.clone()),
            Change::In(name, change) => {
                let (_, key, value) = self.logged(change)?;
                (self.tree(name)?.id(), key, value)
            }
            Change::Create(_) | Change::Drop(_) => unreachable!("no batch makes a family"),
        })
    }
}
