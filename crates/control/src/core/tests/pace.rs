//! Writers at the rate that flushes and compactions sustain.

use super::*;
use crate::Room;
use lithify_plan::Verdict;

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

impl World {
    fn after(&mut self, ms: u64, event: Event) {
        self.now += ms * MS;
        self.on(event);
    }

    /// What writers were told last, since the last time it was asked.
    fn told(&mut self) -> Option<Pressure> {
        let mut last = None;
        while let Some(pressure) = self.take(|c| match c {
            Command::Stall(pressure) => Some(pressure.clone()),
            _ => None,
        }) {
            last = Some(pressure);
        }
        last
    }

    /// The pace that writers were told, MiB per second, and what for.
    fn pace(&mut self) -> (u64, Cause) {
        let told = self.told().expect("something new was told");
        assert_eq!(told.cause(), None, "a pace is no stall");
        let (rate, cause) = told.pace.expect("a pace");
        (rate / MIB, cause)
    }

    /// `runs` of 1 MiB in level 0, one each 10 ms, and a compaction of all of them at work.
    fn with_a_compaction(runs: u32) -> (World, JobId) {
        let mut w = World::new(1);
        w.core.options.plan.memtable_bytes = MIB;
        w.on(Event::Paused { on: true });
        for mem in 0..u64::from(runs) {
            w.on(Event::Paused { on: false });
            w.on(Event::AutoCompaction { on: false });
            w.now += 10 * MS;
            w.flush(mem, "a", "z");
        }
        w.told();
        w.on(Event::AutoCompaction { on: true });
        let (job, spec) = w.compaction().unwrap();
        assert_eq!(spec.inputs.len(), runs as usize);
        (w, job)
    }
}

/// A first memtable that a caller had flushed when it was nearly empty does not say that a full one has so few writes.
#[test]
fn a_first_memtable_that_was_frozen_early_leaves_the_room_of_full_ones() {
    let mut w = World::new(1);
    w.core.options.plan.memtable_bytes = 64 * MIB;
    w.on(Event::Frozen { mem: MemId(1), bytes: 8 << 10, written: 6 << 10, log_number: 1 });
    let room = w.told().and_then(|told| told.memory).expect("a flush is at work");
    let full = u64::from(w.core.options.plan.max_memtables - 1) * 48 * MIB;
    assert_eq!(room.bytes, full);
}

/// What was learnt of the load holds when a setting changes that has nothing to do with it.
#[test]
fn a_setting_that_changes_leaves_the_shape() {
    let mut w = World::new(1);
    let mut options = w.core.options.clone();
    options.plan.policy = lithify_plan::PolicyKind::Adaptive;
    let set = options.plan.level_base_bytes;
    w.core = Core::new(options.clone(), w.core.version().clone(), 1);
    w.core.resources.base_bytes = Some(set);
    (w.core.options.plan.level_base_bytes, w.core.options.plan.buckets.useful) = (5 * set, 11);
    options.plan.l0_stop += 1;
    w.on(Event::Options(Box::new(options.clone())));
    let plan = &w.core.options.plan;
    assert_eq!((plan.level_base_bytes, plan.buckets.useful), (5 * set, 11));
    assert_eq!(plan.l0_stop, options.plan.l0_stop);
    options.plan.level_base_bytes = 2 * set;
    w.on(Event::Options(Box::new(options)));
    assert_eq!(w.core.options.plan.level_base_bytes, 2 * set, "this is what was asked for");
}

#[test]
fn writers_fill_level_0_by_the_time_the_compaction_ends() {
    let (mut w, _) = World::with_a_compaction(6);
    assert_eq!(w.told(), None, "how fast compactions are is not known yet");
    // Six runs of 1 MiB are read and written; 1 MiB each 100 ms is moved.
    for _ in 0..8 {
        w.after(100, Event::Moved { bytes: MIB });
    }
    w.on(Event::Tick);
    // Five runs of room, as one is coming, for 4 MiB at about 10 MiB/s.
    let (rate, cause) = w.pace();
    assert!((11..=13).contains(&rate), "{rate} MiB/s");
    assert_eq!(cause, Cause::L0Files);
}

#[test]
fn the_nearer_its_end_the_faster_they_may_go() {
    let rate_after = |spans: u32| {
        let (mut w, _) = World::with_a_compaction(6);
        for _ in 0..spans {
            w.after(500, Event::Moved { bytes: MIB });
        }
        w.on(Event::Tick);
        w.pace().0
    };
    let rates = [2, 6, 9].map(rate_after);
    assert!(rates.is_sorted() && rates[0] < rates[2], "{rates:?}");
}

#[test]
fn nothing_slows_writers_once_it_has_ended() {
    let (mut w, job) = World::with_a_compaction(6);
    for _ in 0..8 {
        w.after(100, Event::Moved { bytes: MIB });
    }
    w.on(Event::Tick);
    w.pace();
    w.built(job, Pos::new(1, 0), "a", "z");
    assert!(w.commit().is_some());
    assert_eq!(w.told(), Some(Pressure::default()), "it only has to be committed");
    w.on(Event::EditSynced);
    assert_eq!(w.told(), None);
}

#[test]
fn memtables_last_until_the_oldest_is_flushed() {
    let room = while_one_is_flushed(MIB, [100; 5]);
    assert_eq!(room.bytes, MIB, "one of three is empty");
    assert_eq!((room.until - room.began) / MS, 100);
}

#[test]
fn room_is_in_bytes_as_writers_count_them() {
    let room = while_one_is_flushed(MIB / 2, [100; 5]);
    assert_eq!(room.bytes, MIB / 2, "half a MiB fills a memtable");
}

#[test]
fn flushes_that_vary_leave_less_room() {
    let room = while_one_is_flushed(MIB, [160, 40, 160, 40, 160]);
    let lasts = (room.until - room.began) / MS;
    assert!((150..200).contains(&lasts), "{lasts} ms, and the mean is 115");
}

/// The stop is at 216 MiB, six times 36 memtables of 1 MiB, and nothing is at work that would say when there will be less.
#[test]
fn the_more_bytes_level_0_has_the_slower_writers_go() {
    let mut w = World::new(0);
    let plan = &mut w.core.options.plan;
    (plan.policy, plan.memtable_bytes, plan.l0_stop) = (PolicyKind::Adaptive, MIB, 36);
    let mut rates = Vec::new();
    // One beside the other, so that level 0 is one run deep.
    for mem in 0..217 {
        w.now += 10 * MS;
        let key = format!("{mem:04}");
        w.flush(mem, &key, &key);
        let told = w.told().map(|told| (told.cause(), told.pace, told.stop));
        match (mem + 1, told) {
            (..162, told) => assert!(told.is_none_or(|(_, pace, _)| pace.is_none()), "{mem}"),
            (216.., told) => {
                assert!(told.is_none_or(|(cause, _, _)| cause == Some(Cause::L0Bytes)));
            }
            (_, Some((None, Some((rate, Cause::L0Bytes)), None))) => rates.push(rate / MIB),
            (_, told) => panic!("{told:?} at {mem} MiB"),
        }
    }
    assert!(rates.is_sorted_by(|one, next| one >= next), "{rates:?}");
    // Memtables were filled at 100 MiB/s.
    assert_eq!((rates[0], rates[27], rates[53]), (99, 49, 1), "{rates:?}");
    assert_eq!(w.core.outlook(w.now).stall().cause, Some(Cause::L0Bytes), "and then they stop");
}

/// Under settings that would have stopped writers long before, bytes that level 0 has already do not count.
#[test]
fn smaller_memtables_stop_no_writes_for_what_level_0_has_already() {
    let mut w = World::new(0);
    let plan = &mut w.core.options.plan;
    (plan.policy, plan.memtable_bytes, plan.l0_stop) = (PolicyKind::Adaptive, MIB, 36);
    let flush = |w: &mut World, mem| {
        w.now += 10 * MS;
        let key = format!("{mem:04}");
        w.flush(mem, &key, &key);
    };
    (0..100).for_each(|mem| flush(&mut w, mem));
    let mut options = w.core.options.clone();
    // For so small ones the stop is at 54 MiB, and there are 100.
    options.plan.memtable_bytes = MIB / 4;
    w.on(Event::Options(Box::new(options)));
    assert_eq!(w.told().and_then(|told| told.stop), None);
    let mut rates = Vec::new();
    let mut mem = 100;
    while w.core.outlook(w.now).stall().verdict < Verdict::Stop {
        flush(&mut w, mem);
        mem += 1;
        rates.extend(w.told().and_then(|told| told.pace).map(|(rate, _)| rate / MIB));
    }
    assert_eq!(mem, 134, "it may grow by a third");
    let options = w.core.options.clone();
    w.on(Event::Options(Box::new(options)));
    let verdict = w.core.outlook(w.now).stall().verdict;
    assert_eq!(verdict, Verdict::Stop, "the same settings once more give no more room");
    assert!(rates.is_sorted_by(|one, next| one >= next) && rates[0] > 90, "{rates:?}");
}

/// The room with three memtables of 1 MiB, each full after `written` bytes of writes: one is empty, one
/// was just frozen, and one is flushed, which began 10 ms ago; flushes before `took` so many milliseconds.
fn while_one_is_flushed(written: u64, took: [u64; 5]) -> Room {
    let frozen = |mem| Event::Frozen { mem: MemId(mem), bytes: MIB, written, log_number: mem + 1 };
    let mut w = World::new(0);
    w.core.options.plan.max_memtables = 3;
    w.core.options.flush_slots = 1;
    w.core.options.plan.memtable_bytes = MIB;
    for (mem, took) in (0..).zip(took) {
        w.on(frozen(mem));
        let told = w.told().and_then(|told| told.memory).expect("one is flushed");
        assert_eq!(told.until == told.began, mem == 0, "only the first one's time is unknown");
        let (job, _, out) = w.flush_job().unwrap();
        w.now += took * MS;
        w.built(job, out, "a", "z");
        w.commit().unwrap();
        w.on(Event::EditSynced);
        assert_eq!(w.told(), Some(Pressure::default()), "none is flushed");
    }
    w.on(frozen(5));
    assert_eq!(w.told().and_then(|told| told.memory).map(|room| room.bytes), Some(2 * written));
    w.after(10, frozen(6));
    let told = w.told().expect("there is less room");
    assert_eq!(told.cause(), None, "memory that has to last is no stall");
    told.memory.expect("room")
}

/// Writers of 512 MiB a second fill a memtable of 64 MiB in 125 ms. Flushes take 100 ms, so that is enough, until one takes a second.
#[test]
fn writers_slow_down_while_a_flush_lasts_and_none_waits_for_its_end() {
    const FULL: u64 = 64 * MIB;
    const OWN: u64 = 8 * FULL;
    let frozen =
        |mem| Event::Frozen { mem: MemId(mem), bytes: FULL, written: FULL, log_number: mem + 1 };
    let mut w = World::new(0);
    w.core.options.plan.max_memtables = 2;
    w.core.options.plan.memtable_bytes = FULL;
    for mem in 0..6 {
        w.on(frozen(mem));
        let (job, _, out) = w.flush_job().unwrap();
        w.now += 100 * MS;
        w.built(job, out, "a", "z");
        w.commit().unwrap();
        w.on(Event::EditSynced);
        w.now += 25 * MS;
    }
    w.told();
    w.on(frozen(6));
    w.flush_job().unwrap();
    let told = w.told().expect("a memtable is flushed");
    let (mut written, mut rates) = (0, Vec::new());
    for _ in 0..1000 {
        let (rate, _) = told.rate(written, w.now).unwrap();
        rates.push(rate.min(OWN));
        written += rate.min(OWN) / 1000;
        w.now += MS;
    }
    assert!(written < FULL, "{written} bytes in a memtable of 64 MiB");
    assert!(rates.is_sorted_by(|one, next| one >= next));
    assert!(rates.is_sorted_by(|one, next| *next > *one / 2), "none is a jolt");
    assert_eq!(rates[50], OWN, "as long as it may still end in time");
    assert!(rates[300] >= 8 * MIB, "after three times as long writes of a KiB come 8 in a ms");
}

#[test]
fn a_rest_says_nothing_of_how_fast_compactions_are() {
    let (mut w, job) = World::with_a_compaction(6);
    for _ in 0..4 {
        w.after(100, Event::Moved { bytes: MIB });
    }
    w.built(job, Pos::new(1, 0), "a", "z");
    w.commit().unwrap();
    w.on(Event::EditSynced);
    assert_eq!(w.core.jobs(), 0);
    w.after(3_600_000, Event::Tick);
    w.core.options.plan.disable_auto = true;
    for mem in 6..12 {
        w.now += 10 * MS;
        w.flush(mem, "a", "z");
    }
    w.on(Event::AutoCompaction { on: true });
    assert!(w.compaction().is_some());
    w.told();
    w.after(100, Event::Moved { bytes: MIB });
    w.on(Event::Tick);
    let (rate, _) = w.pace();
    assert!(rate >= 3, "{rate} MiB/s; with the hour counted in it would be the least rate, 1");
}
