//! The steps of a life on our side, and the comparison after each.

use std::time::Duration;

use lithify::{CompactOptions, Db, DbIter, ReadOptions, WriteBatch};

use super::here::{Here, Open};
use super::twin::{Content, Deed, Family, Mix, State, Twin, difference};

/// How long background work of so little data may take.
const IDLE: Duration = Duration::from_secs(60);

impl Here {
    /// Something by dice: mostly a burst of writes, and what moves data.
    pub(super) fn step(&mut self, twin: &mut Twin) {
        if self.rng.u8(0..5) > 0 {
            self.burst(twin);
        }
        let family = self.rng.usize(0..twin.families.len());
        match self.rng.u8(0..20) {
            0..5 => {
                self.note(format!("flush {family}"));
                self.open().families[family].flush().unwrap();
            }
            5..12 => self.compact(twin, family),
            12 | 13 => {
                self.note("wait".into());
                assert!(self.open().db.wait_idle(Some(IDLE)).unwrap(), "it never comes to rest");
                self.verify();
            }
            14 => {
                let on = self.rng.bool();
                self.note(format!("automatic compaction of {family}: {on}"));
                self.open().families[family].set_auto_compaction(on);
            }
            15 => {
                self.note("settle, and go on".into());
                let open = self.open();
                open.db.settle().unwrap();
                open.families.iter().for_each(|family| family.set_auto_compaction(true));
            }
            16 => {
                self.note("close and open".into());
                self.close();
                self.verify();
                self.reopen(twin);
            }
            _ => {}
        }
        self.turn_snapshots(twin);
    }

    fn turn_snapshots(&mut self, twin: &Twin) {
        let dice = self.rng.u8(0..10);
        let held = self.open().snapshots.len();
        if dice < 4 && held < 3 {
            self.note("take a snapshot".into());
            let open = self.open();
            open.snapshots.push((open.db.snapshot(), twin.state()));
        } else if dice > 6 && held > 0 {
            let at = self.rng.usize(0..held);
            self.note(format!("release snapshot {at}"));
            self.open().snapshots.swap_remove(at);
        }
    }

    fn compact(&mut self, twin: &Twin, family: usize) {
        let stretch = twin.stretch(family, &mut self.rng);
        let (from, to) = twin.families[family].bounds(&stretch, &mut self.rng);
        let from = (self.rng.u8(0..4) > 0).then_some(&from[..]);
        let to = (self.rng.u8(0..4) > 0).then_some(&to[..]);
        let ordered = match (from, to) {
            (Some(from), Some(to)) => twin.families[family].before(from, to),
            _ => true,
        };
        let (from, to) = if ordered { (from, to) } else { (to, from) };
        let rewrite = self.rng.bool();
        let show = |key: Option<&[u8]>| key.map_or("..".into(), |k| k.escape_ascii().to_string());
        let how = if rewrite { "rewrite" } else { "compact" };
        self.note(format!("{how} {family} from {} to {}", show(from), show(to)));
        let options = CompactOptions { rewrite, ..CompactOptions::default() };
        self.open().families[family].compact_range_opt(from, to, &options).unwrap();
    }

    /// Writes to a stretch of one family, or to all families in batches.
    fn burst(&mut self, twin: &mut Twin) {
        let one = (self.rng.u8(0..3) > 0).then(|| self.rng.usize(0..twin.families.len()));
        let stretches: Vec<_> =
            (0..twin.families.len()).map(|family| twin.stretch(family, &mut self.rng)).collect();
        let mix = Mix::random(&mut self.rng);
        let most = [10, 60, 250][self.rng.usize(0..3)];
        let count = self.rng.usize(1..most);
        let together = self.rng.usize(1..20);
        self.note(format!("{count} writes to {one:?}, {stretches:?}, {mix:?}"));
        let mut batch = WriteBatch::new();
        for n in 1..=count {
            let family = one.unwrap_or_else(|| self.rng.usize(0..twin.families.len()));
            let deed = twin.deed(family, &stretches[family], mix, &mut self.rng);
            twin.apply(family, &deed);
            let open = self.open();
            let to = &open.families[family];
            match &deed {
                Deed::Put(key, value) => batch.put_cf(to, key, value),
                Deed::Delete(key) => batch.delete_cf(to, key),
                Deed::Single(key) => batch.single_delete_cf(to, key),
                Deed::Merge(key, operand) => batch.merge_cf(to, key, operand),
                Deed::DeleteRange(lo, hi) => batch.delete_range_cf(to, lo, hi),
            }
            .unwrap();
            if n % together == 0 || n == count {
                open.db.write(&batch).unwrap();
                batch = WriteBatch::new();
            }
        }
    }

    fn note(&mut self, what: String) {
        self.story.push(what);
    }

    /// Every family, now and at each snapshot: scans both ways, and every key that there may be.
    pub(super) fn compare(&mut self, twin: &Twin) {
        let Open { families, snapshots, .. } = self.open.as_ref().expect("it is open");
        let now: State = twin.state();
        let moments = snapshots.iter().map(|(at, state)| (ReadOptions::at(at), state));
        let moments = moments.chain([(ReadOptions::default(), &now)]);
        for (options, state) in moments {
            for ((db, family), held) in families.iter().zip(&twin.families).zip(state) {
                let found = look(db, family, &options, held, &mut self.rng);
                if let Some(found) = found {
                    let when = if options.snapshot.is_some() { "at a snapshot" } else { "now" };
                    panic!("family {} {when}: {found}\n{}", family.name, db.picture());
                }
            }
        }
    }
}

/// What differs in one family at one moment.
fn look(
    db: &Db,
    family: &Family,
    options: &ReadOptions,
    held: &Content,
    rng: &mut fastrand::Rng,
) -> Option<String> {
    let mut iter = db.iter_opt(options).unwrap();
    let mut shown = run(&mut iter, DbIter::seek_to_first, DbIter::next);
    if let Some(found) = difference(family, &shown, held) {
        return Some(format!("forward: {found}"));
    }
    let mut back = run(&mut iter, DbIter::seek_to_last, DbIter::prev);
    back.reverse();
    if let Some(found) = difference(family, &back, held) {
        return Some(format!("backward: {found}"));
    }
    for key in &family.keys {
        let found = db.get_opt(key, options).unwrap();
        if found.as_deref() != held.get(key).map(Vec::as_slice) {
            let found = found.map_or("nothing".into(), |v| v.escape_ascii().to_string());
            return Some(format!("{} is {found}, other than in a scan", key.escape_ascii()));
        }
    }
    // From somewhere in the middle, both ways.
    let key = &family.keys[rng.usize(0..family.keys.len())];
    iter.seek(key);
    let first = shown.iter().position(|entry| !family.before(&entry.0, key));
    let first = first.unwrap_or(shown.len());
    let rest = shown.split_off(first);
    if key_of(&iter) != rest.first().map(|entry| &entry.0[..]) {
        return Some(format!("a seek to {} is elsewhere", key.escape_ascii()));
    }
    iter.seek_for_prev(key);
    let at_or_before = rest.first().filter(|entry| entry.0 == *key).or(shown.last());
    if key_of(&iter) != at_or_before.map(|entry| &entry.0[..]) {
        return Some(format!("a seek back from {} is elsewhere", key.escape_ascii()));
    }
    None
}

fn key_of(iter: &DbIter) -> Option<&[u8]> {
    iter.valid().then(|| iter.key())
}

fn run(
    iter: &mut DbIter,
    start: impl Fn(&mut DbIter),
    next: impl Fn(&mut DbIter),
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut shown = Vec::new();
    start(iter);
    while iter.valid() {
        shown.push((iter.key().to_vec(), iter.value().to_vec()));
        next(iter);
    }
    iter.status().unwrap();
    shown
}
