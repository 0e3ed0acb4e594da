//! What the threads do: each function is one step of one of them, and says what was wrong.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lithify::{Db, DbIter, Durability, ErrorKind, ReadOptions, Snapshot, WriteBatch, WriteOptions};

use crate::Stage;
use crate::board::{Board, KEYS, Look, Shown, WRITERS, name, slot_of, slots_of, value};

/// Snapshots a thread holds.
const HELD: usize = 3;
/// After so many refusals of one write, a millisecond apart, the disk behaves until it passes.
const CALM_AFTER: u32 = 500;

/// How the reads of a test of the test are falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// An older value instead of the one there is.
    Stale,
    /// Nothing instead of a value.
    Lost,
    /// A value instead of its deletion.
    Resurrected,
    /// A snapshot that moves: a newer value than the one it had.
    Moving,
}

impl Lie {
    pub const ALL: [Lie; 4] = [Lie::Stale, Lie::Lost, Lie::Resurrected, Lie::Moving];
}

/// What comes between the database and who looks at it: nothing, or a lie in a thousand keys.
pub struct Eyes {
    lie: Option<Lie>,
    seen: AtomicU64,
}

impl Eyes {
    pub fn new(lie: Option<Lie>) -> Eyes {
        Eyes { lie, seen: AtomicU64::new(0) }
    }

    fn see(
        &self,
        board: &Board,
        slot: usize,
        found: Option<Vec<u8>>,
        again: bool,
    ) -> Option<Vec<u8>> {
        let Some(lie) = self.lie else { return found };
        if !self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
            return found;
        }
        let op = found.as_ref().map(|v| u64::from_be_bytes(*v.first_chunk().expect("a value")));
        match (lie, op) {
            (Lie::Stale, Some(op)) => board.older_than(slot, op).or(found),
            (Lie::Lost, Some(_)) => None,
            (Lie::Resurrected, None) => board.older_than(slot, board.begun()[slot / KEYS]),
            (Lie::Moving, _) if again => Some(value(slot, board.next(slot / KEYS))),
            _ => found,
        }
    }
}

/// A snapshot and what it showed at first, from its first slot on.
pub struct Held {
    snapshot: Snapshot,
    first: usize,
    shown: Vec<Shown>,
}

fn failed(what: &str) -> impl Fn(lithify::Error) -> String + '_ {
    move |e| format!("{what}: {e:?}")
}

impl Stage {
    /// One operation of a writer, or a look at what it has written so far.
    pub fn write(
        &self,
        db: &Db,
        writer: usize,
        held: &mut Vec<Held>,
        rng: &mut fastrand::Rng,
    ) -> Result<(), String> {
        match rng.u16(0..10_000) {
            0..40 => return self.look_at_own(db, writer, held, rng),
            40..43 => return db.flush().or_else(survived).map_err(failed("a flush")),
            43 => return self.compact(db, rng),
            _ => {}
        }
        // Now one writer is busier than the others, now none writes for a while: buckets get hot
        // and cold, and their files all go down.
        let turn = self.board.begun().iter().sum::<u64>() / 2000;
        if turn as usize % WRITERS != writer && rng.u8(0..4) > 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
        while self.lull.load(Ordering::Relaxed) && !self.end.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (batch, changes, op) = self.operation(writer, rng);
        let durability = match rng.u8(0..50) {
            0 => Durability::Sync,
            1..20 => Durability::NoWal,
            20..35 => Durability::Buffered,
            _ => Durability::Os,
        };
        self.board.begin(writer, op, changes.into_iter());
        let mut refused = 0;
        while let Err(e) = db.write_opt(&batch, &WriteOptions::at(durability)) {
            // While memory is full and a flush or a large compaction has just failed, nothing is
            // written. Their next tries are up to 10 s apart, so a disk that went on failing them
            // would use up any patience.
            refused += 1;
            if refused == CALM_AFTER {
                self.world.misbehave(false);
            }
            if e.kind() != ErrorKind::NotCommitted || refused > 10_000 {
                return Err(failed("a write")(e));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if refused >= CALM_AFTER {
            self.world.misbehave(true);
        }
        self.board.acknowledge(writer, op);
        Ok(())
    }

    /// The writer's next operation: its batch, and what it leaves of each key it is about.
    fn operation(
        &self,
        writer: usize,
        rng: &mut fastrand::Rng,
    ) -> (WriteBatch, BTreeMap<usize, bool>, u64) {
        let op = self.board.next(writer);
        let own = slots_of(writer);
        // Where it writes most moves on, so that buckets get hot and cold.
        let hot = (op / 300 * 97) as usize % KEYS;
        let pick = |rng: &mut fastrand::Rng| {
            let n = if rng.u8(0..10) < 8 { hot + rng.usize(0..60) } else { rng.usize(0..KEYS) };
            own.start + n % KEYS
        };
        let mut batch = WriteBatch::new();
        let mut changes = BTreeMap::new();
        let put = |batch: &mut WriteBatch, changes: &mut BTreeMap<_, _>, slot| {
            batch.put(name(slot), value(slot, op)).expect("a key and a value");
            changes.insert(slot, false);
        };
        // Now all write large batches at the same time, so that some are inserted side by side.
        let bulky = self.board.begun().iter().sum::<u64>() / 500 % 8 == 3;
        let style = if bulky { 99 } else { rng.u8(0..100) };
        let points = match style {
            0..60 => 1,
            60..90 => rng.usize(2..12),
            90..98 => rng.usize(0..4),
            _ => 60,
        };
        let first = pick(rng);
        for i in 0..points {
            let slot = match style {
                98.. => own.start + (first - own.start + i) % KEYS,
                _ => pick(rng),
            };
            if style < 98 && rng.u8(0..6) == 0 {
                batch.delete(name(slot)).expect("a key");
                changes.insert(slot, true);
            } else {
                put(&mut batch, &mut changes, slot);
            }
        }
        if (90..98).contains(&style) {
            let most = if rng.u8(0..8) == 0 { 400 } else { 30 };
            let end = (first + rng.usize(1..most)).min(own.end);
            batch.delete_range(name(first), name(end)).expect("a range");
            changes.extend((first..end).map(|slot| (slot, true)));
            // In the same batch, over what it has just deleted.
            if rng.bool() {
                put(&mut batch, &mut changes, rng.usize(first..end));
            }
        }
        (batch, changes, op)
    }

    /// Gets, alone and several of one moment.
    pub fn read(&self, db: &Db, rng: &mut fastrand::Rng) -> Result<(), String> {
        for _ in 0..30 {
            let slot = rng.usize(0..WRITERS * KEYS);
            let before = self.board.acknowledged();
            let found = db.get(name(slot)).map_err(failed("a get"))?.map(|v| v.to_vec());
            let found = self.eyes.see(&self.board, slot, found, false);
            Look::new(&self.board, before, self.board.begun()).judge(slot, found.as_deref())?;
        }
        let near = rng.usize(0..WRITERS * KEYS - 100);
        let slots: Vec<usize> = (0..20).map(|_| near + rng.usize(0..100)).collect();
        let keys: Vec<Vec<u8>> = slots.iter().map(|s| name(*s)).collect();
        let before = self.board.acknowledged();
        let found = db.multi_get(&keys).map_err(failed("a multi-get"))?;
        let mut look = Look::new(&self.board, before, self.board.begun());
        for (slot, found) in slots.into_iter().zip(found) {
            let found = self.eyes.see(&self.board, slot, found.map(|v| v.to_vec()), false);
            look.judge(slot, found.as_deref())?;
        }
        Ok(())
    }

    /// Everything there is, as of now; there are no writes.
    pub fn look_at_all(&self, db: &Db) -> Result<(), String> {
        let reached = self.board.acknowledged();
        for forward in [true, false] {
            let iter = db.iter().map_err(failed("an iterator"))?;
            let all = self.scan(iter, forward, 0, WRITERS * KEYS, false)?;
            self.judge_all(&mut Look::new(&self.board, reached, reached), 0, all)?;
        }
        Ok(())
    }

    /// An iterator without a snapshot, or a new snapshot that is kept for a while, or another look
    /// at one that is kept.
    pub fn look_back(
        &self,
        db: &Db,
        held: &mut Vec<Held>,
        rng: &mut fastrand::Rng,
    ) -> Result<(), String> {
        match rng.u8(0..4) {
            0 => {
                let before = self.board.acknowledged();
                let iter = db.iter().map_err(failed("an iterator"))?;
                let mut look = Look::new(&self.board, before, self.board.begun());
                std::thread::sleep(Duration::from_millis(rng.u64(0..10)));
                let all = self.scan(iter, rng.bool(), 0, WRITERS * KEYS, false)?;
                self.judge_all(&mut look, 0, all).map(drop)
            }
            1 => self.hold(db, 0..WRITERS * KEYS, held, rng),
            _ => self.look_again(db, held, rng),
        }
    }

    /// The writer itself knows exactly what a snapshot of its keys shows.
    fn look_at_own(
        &self,
        db: &Db,
        writer: usize,
        held: &mut Vec<Held>,
        rng: &mut fastrand::Rng,
    ) -> Result<(), String> {
        match rng.bool() {
            true => self.hold(db, slots_of(writer), held, rng),
            false => self.look_again(db, held, rng),
        }
    }

    fn hold(
        &self,
        db: &Db,
        slots: std::ops::Range<usize>,
        held: &mut Vec<Held>,
        rng: &mut fastrand::Rng,
    ) -> Result<(), String> {
        if held.len() == HELD {
            held.swap_remove(rng.usize(0..HELD));
        }
        let before = self.board.acknowledged();
        let snapshot = db.snapshot();
        let mut look = Look::new(&self.board, before, self.board.begun());
        self.snapshots.fetch_add(1, Ordering::Relaxed);
        let iter = self.iter_at(db, &snapshot, slots.clone())?;
        let all = self.scan(iter, rng.bool(), slots.start, slots.len(), false)?;
        let shown = self.judge_all(&mut look, slots.start, all)?;
        held.push(Held { snapshot, first: slots.start, shown });
        Ok(())
    }

    fn iter_at(
        &self,
        db: &Db,
        snapshot: &Snapshot,
        slots: std::ops::Range<usize>,
    ) -> Result<DbIter, String> {
        let mut options = ReadOptions::at(snapshot);
        if slots.len() < WRITERS * KEYS {
            options = options.with_bounds(Some(name(slots.start)), Some(name(slots.end)));
        }
        db.iter_opt(&options).map_err(failed("an iterator"))
    }

    /// A snapshot shows what it showed first, however it is read and however late.
    fn look_again(&self, db: &Db, held: &[Held], rng: &mut fastrand::Rng) -> Result<(), String> {
        if held.is_empty() {
            return Ok(());
        }
        let at = rng.usize(0..held.len());
        let one = &held[at];
        let slots = one.first..one.first + one.shown.len();
        let same = |slot: usize, found: Option<Vec<u8>>| {
            let found = self.eyes.see(&self.board, slot, found, true);
            let first = one.shown[slot - one.first].map(|op| value(slot, op));
            self.board.reads.fetch_add(1, Ordering::Relaxed);
            if found == first {
                return Ok(());
            }
            let key = String::from_utf8_lossy(&name(slot)).into_owned();
            Err(format!("a snapshot changed at {key}: {first:?} became {found:?}"))
        };
        for _ in 0..20 {
            let slot = rng.usize(slots.clone());
            let found = db.get_opt(name(slot), &ReadOptions::at(&one.snapshot));
            same(slot, found.map_err(failed("a get"))?.map(|v| v.to_vec()))?;
        }
        let iter = self.iter_at(db, &one.snapshot, slots.clone())?;
        if rng.bool() {
            let all = self.scan(iter, rng.bool(), slots.start, slots.len(), true)?;
            return slots.zip(all).try_for_each(|(slot, found)| same(slot, found));
        }
        walk_about(iter, one, rng)
    }

    /// All slots from `first` on, as the iterator shows them.
    fn scan(
        &self,
        mut iter: DbIter,
        forward: bool,
        first: usize,
        count: usize,
        again: bool,
    ) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut all = vec![None; count];
        let mut last = None;
        if forward {
            iter.seek_to_first();
        } else {
            iter.seek_to_last();
        }
        while iter.valid() {
            let slot = slot_of(iter.key()).filter(|s| (first..first + count).contains(s));
            let slot = slot.ok_or_else(|| format!("a strange key: {:?}", iter.key()))?;
            let in_order = last.is_none_or(|last| (last < slot) == forward && last != slot);
            if !in_order {
                return Err(format!("slot {slot} comes after {last:?}, forward {forward}"));
            }
            last = Some(slot);
            all[slot - first] = Some(iter.value().to_vec());
            if forward { iter.next() } else { iter.prev() }
        }
        iter.status().map_err(failed("a scan"))?;
        if !again {
            for (i, found) in all.iter_mut().enumerate() {
                *found = self.eyes.see(&self.board, first + i, found.take(), false);
            }
        }
        Ok(all)
    }

    fn judge_all(
        &self,
        look: &mut Look<'_>,
        first: usize,
        all: Vec<Option<Vec<u8>>>,
    ) -> Result<Vec<Shown>, String> {
        let judged = all.iter().enumerate();
        judged.map(|(i, found)| look.judge(first + i, found.as_deref())).collect()
    }

    fn compact(&self, db: &Db, rng: &mut fastrand::Rng) -> Result<(), String> {
        let (a, b) = (rng.usize(0..WRITERS * KEYS), rng.usize(0..WRITERS * KEYS));
        let (from, to) = (name(a.min(b)), name(a.max(b)));
        db.compact_range(Some(&from), Some(&to)).or_else(survived).map_err(failed("a compaction"))
    }

    /// Flushes, compactions of anything, pauses of all writers or of automatic compaction.
    pub fn meddle(&self, db: &Db, rng: &mut fastrand::Rng) -> Result<(), String> {
        std::thread::sleep(Duration::from_millis(rng.u64(0..100)));
        match rng.u8(0..12) {
            0..4 => db.flush().or_else(survived).map_err(failed("a flush")),
            4..6 => self.compact(db, rng),
            6 => db.compact_range(None, None).or_else(survived).map_err(failed("a compaction")),
            7..11 => {
                self.lull.store(true, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(rng.u64(0..100)));
                self.lull.store(false, Ordering::Relaxed);
                Ok(())
            }
            _ => {
                db.set_auto_compaction(false);
                std::thread::sleep(Duration::from_millis(rng.u64(0..30)));
                db.set_auto_compaction(true);
                Ok(())
            }
        }
    }
}

/// Who asked for a flush or a compaction is told if the disk failed it; that harms no other.
fn survived(e: lithify::Error) -> lithify::Result<()> {
    if e.kind() == ErrorKind::Io { Ok(()) } else { Err(e) }
}

/// Seeks and turns in random order against what the snapshot showed first.
fn walk_about(mut iter: DbIter, one: &Held, rng: &mut fastrand::Rng) -> Result<(), String> {
    let there: Vec<(usize, u64)> =
        (one.first..).zip(&one.shown).filter_map(|(slot, shown)| Some((slot, (*shown)?))).collect();
    let mut at: Option<usize> = None;
    for _ in 0..60 {
        let slot = one.first + rng.usize(0..one.shown.len());
        match rng.u8(0..6) {
            0 => {
                iter.seek(name(slot));
                at = Some(there.partition_point(|t| t.0 < slot)).filter(|i| *i < there.len());
            }
            1 => {
                iter.seek_for_prev(name(slot));
                at = there.partition_point(|t| t.0 <= slot).checked_sub(1);
            }
            2 | 3 if at.is_some() => {
                iter.next();
                at = at.map(|i| i + 1).filter(|i| *i < there.len());
            }
            _ if at.is_some() => {
                iter.prev();
                at = at.and_then(|i| i.checked_sub(1));
            }
            _ => {}
        }
        iter.status().map_err(failed("a walk"))?;
        let expected = at.map(|i| (name(there[i].0), value(there[i].0, there[i].1)));
        let found = iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec()));
        if expected != found {
            return Err(format!("a snapshot changed: {expected:?} became {found:?}"));
        }
    }
    Ok(())
}
