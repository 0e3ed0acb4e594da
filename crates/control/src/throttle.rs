//! How fast writers may go. Four rates are known, and the lowest one holds:
//!
//! - what is left of the memtables, over the time until the oldest of them is flushed ([`Room`]). It is worked out anew
//!   for each write, and only writers that would use up the room sooner notice it;
//! - the rate that compactions sustain: the room in level 0 before a stop, over the time until level 0 is
//!   shorter (`relief`);
//! - where level 0 has three quarters of the bytes that stop writes, one that falls with what is left of the last quarter;
//! - where the verdict on writes is "slow down" (a pure function of the tree and the memtables,
//!   `plan::stall`), one that falls smoothly with the room before a stop. For the depth of level 0 `adaptive` does
//!   without it while a compaction is at work that takes from level 0: when that ends, the deepest range is the next, so
//!   the room until then says better how fast writers may be. Other policies may go on with another range.
//!
//! ```text
//!   rate = pace x s x (2 - s), s = room left / room between slow-down and stop
//!
//!   level 0 at 20 runs, slow-down at 20, stop at 36, pace 400 MB/s: 400 MB/s
//!              28                                                  300 MB/s
//!              35                                                   48 MB/s
//! ```
//!
//! The parabola leaves writers alone while there is much room and brakes towards the wall.
//! `pace` is how fast the last few memtables were flushed: what writers really did, not what
//! was configured. So a slow-down begins without a jerk, and writers meet compaction
//! somewhere on the way instead of at the wall (bLSM's pacing; RocksDB starts at a fixed rate
//! and multiplies by 0.8 and 0.6 from there). A stop is for the emergency: what took room longer than
//! was to be foreseen.

use std::collections::VecDeque;

use lithify_plan::stall::{l0_bytes_slowdown, l0_bytes_stop};
use lithify_plan::{Cause, PlanOptions, PolicyKind, Stall, Verdict};

/// Fastest pace that is believed, bytes per second.
const MAX_PACE: u64 = 64 << 30;
/// The pace of writers before enough was flushed to know it: where RocksDB begins.
const FIRST_PACE: u64 = 16 << 20;

/// The verdict on writes, as writers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Writes wait until this cause is gone.
    pub stop: Option<Cause>,
    /// Writes are slowed to this many bytes per second for this cause.
    pub delay: Option<(u64, Cause)>,
    /// Writes go no faster than this many bytes per second, delayed or not: it is what compactions
    /// sustain. Faster writers would come to a stop for this cause.
    pub pace: Option<(u64, Cause)>,
    /// While a memtable is flushed: what writes have until it is.
    pub memory: Option<Room>,
}

/// What is left of the memtables until the oldest is flushed. Instants are in nanoseconds, as for
/// [`Core::on`](crate::Core::on).
///
/// ```text
///   64 MiB are left, and a flush that began just now takes 100 ms: 640 MiB/s
///   its end is 20 ms away and 10 MiB are left:                     10 / (80 - 50) ms = 333 MiB/s
///   it has not ended after 150 ms, and 5 MiB are left:             5 / (150 - 50) ms = 50 MiB/s
/// ```
///
/// So writers slow down as the room goes, and none waits for the end of a flush in one piece, however long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of writes from the moment when the active memtable was empty until all memtables are full.
    pub bytes: u64,
    /// When the flush of the oldest memtable began.
    pub began: u64,
    /// When that flush should have ended; the same instant as `began` before there was any flush to judge by.
    pub until: u64,
    /// Writers may always go as fast as this, bytes per second.
    pub least: u64,
}

impl Room {
    /// The bytes per second with which the room lasts, once `passed` bytes of writes are in the active memtable.
    /// A flush is taken to need as long again as since the middle of the time it should take, if that is
    /// longer than until its expected end.
    pub fn rate(&self, passed: u64, now: u64) -> u64 {
        let middle = self.began + self.until.saturating_sub(self.began) / 2;
        let lasts = self.until.saturating_sub(now).max(now.saturating_sub(middle)).max(1);
        let left = self.bytes.saturating_sub(passed);
        let rate = u128::from(left) * 1_000_000_000 / u128::from(lasts);
        u64::try_from(rate).unwrap_or(u64::MAX).max(self.least)
    }
}

impl Pressure {
    /// The cause of whichever stall is on. A pace is none, nor is memory that has to last.
    pub fn cause(&self) -> Option<Cause> {
        self.stop.or(self.delay.map(|d| d.1))
    }

    /// The rate of writes at `now` in nanoseconds, once `passed` bytes of them are in the active memtable: bytes per second, and
    /// what it is for; `None` if they are free or stopped.
    pub fn rate(&self, passed: u64, now: u64) -> Option<(u64, Cause)> {
        let memory = self.memory.map(|room| (room.rate(passed, now), Cause::MemtableLimit));
        [self.delay, self.pace, memory].into_iter().flatten().min()
    }
}

/// Flushes over which the pace is taken: two that commit one right after the other say nothing.
const FLUSHES: usize = 4;

/// A memtable whose flush committed.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    at: u64,
    /// Bytes that it took in memory.
    memory: u64,
    /// Bytes of the writes in it, as writers count them.
    writes: u64,
}

/// The delay controller.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    least_rate: u64,
    /// Bytes per second; the fastest of late, forgotten slowly.
    pace: u64,
    /// The last flushes, oldest first.
    flushes: VecDeque<Flushed>,
    /// What writers were told last.
    told: Pressure,
}

impl Throttle {
    /// A controller that never goes below `least_rate` bytes per second.
    pub(crate) fn new(least_rate: u64) -> Throttle {
        let (least_rate, told) = (least_rate.max(1), Pressure::default());
        Throttle { least_rate, pace: 0, flushes: VecDeque::new(), told }
    }
    /// Never goes below this from now on.
    pub(crate) fn set_least_rate(&mut self, least_rate: u64) {
        self.least_rate = least_rate.max(1);
    }

    /// The pressure to tell writers of, if it is not what they were told last.
    pub(crate) fn tell(&mut self, pressure: Pressure) -> Option<Pressure> {
        let changed = pressure != self.told;
        self.told.clone_from(&pressure);
        changed.then_some(pressure)
    }

    /// Bytes of the writes that fill a memtable of so many; `None` before the first flush.
    pub(crate) fn writes(&self, memory: u64) -> Option<u64> {
        let sum = |part: fn(&Flushed) -> u64| self.flushes.iter().map(part).sum::<u64>();
        let all = sum(|f| f.memory);
        let share = u128::from(memory) * u128::from(sum(|f| f.writes)) / u128::from(all.max(1));
        (all > 0).then(|| u64::try_from(share).unwrap_or(memory))
    }

    /// True while writers are slowed down or stopped.
    pub(crate) fn holds_writers(&self) -> bool {
        self.told.cause().is_some()
    }

    /// A memtable that took so many bytes of memory, with so many bytes of writes, is flushed; `now` in nanoseconds.
    pub(crate) fn flushed(&mut self, memory: u64, writes: u64, now: u64) {
        self.flushes.push_back(Flushed { at: now, memory, writes });
        if self.flushes.len() <= FLUSHES {
            return;
        }
        let Flushed { at: since, .. } = self.flushes.pop_front().expect("there are several");
        let span = now.saturating_sub(since);
        if span == 0 {
            // All of one batch of edits: that says nothing of how fast they came.
            return;
        }
        let bytes: u64 = self.flushes.iter().map(|f| f.writes).sum();
        let pace = u128::from(bytes) * 1_000_000_000 / u128::from(span);
        let pace = u64::try_from(pace).unwrap_or(MAX_PACE).min(MAX_PACE);
        self.pace = (self.pace - self.pace / 16).max(pace);
    }

    /// The rate for level 0 with so many bytes, from three quarters of those that stop writes on: the pace of writers,
    /// times the share of the last quarter that is left; `None` while that pace is not known. Merges in place take depth away and
    /// leave the bytes, so the ends of compactions at work do not say when there will be fewer.
    fn crowded(&self, l0_bytes: u64, options: &PlanOptions) -> Option<u64> {
        let (slow, stop) = (l0_bytes_slowdown(options), l0_bytes_stop(options));
        if options.disable_auto || self.pace == 0 || l0_bytes < slow {
            return None;
        }
        let left = u128::from(stop.saturating_sub(l0_bytes));
        let rate = u128::from(self.pace) * left / u128::from(stop - slow).max(1);
        u64::try_from(rate).ok()
    }

    /// The pressure for `stall`, where `ends` is the rate at which level 0 stays below its stop until compactions at work
    /// end, if that is known, `l0_bytes` are in it, and `memory` is what is left of memtables while one is flushed. Called when
    /// the tree or the memtables changed.
    pub(crate) fn judge(
        &self,
        stall: &Stall,
        options: &PlanOptions,
        ends: Option<u64>,
        l0_bytes: u64,
        memory: Option<Room>,
    ) -> Pressure {
        let memory = memory.map(|room| Room { least: self.least_rate, ..room });
        let at_least = |rate: u64, cause| (rate.max(self.least_rate), cause);
        let crowded = self.crowded(l0_bytes, options).map(|rate| at_least(rate, Cause::L0Bytes));
        match (stall.verdict, stall.cause) {
            (Verdict::None, _) | (_, None) => {
                // Writers that of themselves are half as fast at most are left alone.
                let binds = ends.filter(|rate| rate / 2 < self.pace);
                let binds = binds.map(|rate| at_least(rate, Cause::L0Files));
                let pace = [binds, crowded].into_iter().flatten().min();
                Pressure { pace, memory, ..Pressure::default() }
            }
            (Verdict::Stop, Some(cause)) => Pressure { stop: Some(cause), ..Pressure::default() },
            (Verdict::Delay, Some(cause)) => {
                let pace = if self.pace == 0 { FIRST_PACE } else { self.pace };
                let (left, of) = room(cause, stall, options);
                let (left, of) = (u128::from(left.min(of)), u128::from(of.max(1)));
                let share = u128::from(pace) * left / of * (2 * of - left) / of;
                let share = u64::try_from(share).unwrap_or(MAX_PACE);
                let share = share.max(floor(cause));
                let by_ends = cause == Cause::L0Files && options.policy == PolicyKind::Adaptive;
                let rate = match ends {
                    Some(rate) if by_ends => rate,
                    Some(rate) => rate.min(share),
                    None => share,
                };
                let delay = Some(at_least(rate, cause));
                Pressure { delay, pace: crowded, memory, ..Pressure::default() }
            }
        }
    }
}

/// How much is left before `cause` becomes a stop, and of how much.
fn room(cause: Cause, stall: &Stall, o: &PlanOptions) -> (u64, u64) {
    let between = |now: u64, slow: u64, stop: u64| {
        (stop.saturating_sub(now), stop.saturating_sub(slow).max(1))
    };
    match cause {
        Cause::L0Files => between(stall.l0_depth.into(), o.l0_slowdown.into(), o.l0_stop.into()),
        // Where no debt stops writes they are slowed down as if four times as much did, which are RocksDB's defaults: a share
        // that stays the same would make each pace a part of the one before.
        Cause::PendingBytes if o.hard_debt == 0 => {
            between(stall.debt, o.soft_debt, o.soft_debt.saturating_mul(4))
        }
        Cause::PendingBytes => between(stall.debt, o.soft_debt, o.hard_debt),
        _ => (1, 2),
    }
}

/// What writers have at least for a cause that never becomes a stop: slowed down to a part of their pace again and again,
/// they would have next to nothing in the end.
fn floor(cause: Cause) -> u64 {
    if cause == Cause::ReadAmp { FIRST_PACE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MS: u64 = 1_000_000;
    const ROOM: Room = Room { bytes: 64 * MIB, began: 5 * MS, until: 105 * MS, least: 0 };

    fn paced(mib_per_second: u64) -> Throttle {
        let mut t = Throttle::new(MIB);
        for second in 1..60 {
            t.flushed(mib_per_second * MIB, mib_per_second * MIB, second * 1_000_000_000);
        }
        t
    }

    fn rate(t: &Throttle, l0_depth: u32) -> Option<u64> {
        let stall =
            Stall { verdict: Verdict::Delay, cause: Some(Cause::L0Files), l0_depth, debt: 0 };
        t.judge(&stall, &PlanOptions::default(), None, 0, None).delay.map(|d| d.0 / MIB)
    }

    #[test]
    fn the_rate_falls_with_the_room() {
        let t = paced(320);
        let rates: Vec<_> = [20, 24, 28, 32, 35].map(|d| rate(&t, d).unwrap()).into();
        assert_eq!(rates, [320, 300, 240, 140, 38]);
    }

    #[test]
    fn the_rate_never_falls_below_the_least() {
        assert_eq!(rate(&Throttle::new(MIB), 20), Some(16), "nothing was flushed yet");
        assert_eq!(rate(&paced(320), 36), Some(1));
    }

    #[test]
    fn what_never_stops_writers_does_not_slow_them_down_to_nothing() {
        let (mut t, mut at) = (paced(320), 60_000_000_000);
        let stall =
            Stall { verdict: Verdict::Delay, cause: Some(Cause::ReadAmp), ..Stall::default() };
        for _ in 0..500 {
            let delay = t.judge(&stall, &PlanOptions::default(), None, 0, None).delay;
            let (rate, _) = delay.unwrap();
            assert!(rate >= FIRST_PACE, "{rate}");
            at += 64 * MIB * 1_000_000_000 / rate;
            t.flushed(64 * MIB, 64 * MIB, at);
        }
    }

    #[test]
    fn a_burst_is_forgotten_slowly() {
        let mut t = paced(320);
        t.flushed(MIB, MIB, 60_000_000_000);
        assert_eq!(rate(&t, 20), Some(300));
    }

    #[test]
    fn two_commits_in_a_row_are_no_burst() {
        let mut t = paced(320);
        t.flushed(320 * MIB, 320 * MIB, 59_000_000_001);
        assert!(rate(&t, 20).unwrap() <= 427, "four flushes in three seconds, not one in 1 ns");
    }

    #[test]
    fn a_batch_of_commits_is_no_burst() {
        let mut t = paced(320);
        (0..9).for_each(|_| t.flushed(320 * MIB, 320 * MIB, 62_000_000_000));
        assert!(
            rate(&t, 20).unwrap() <= 427,
            "four flushes in three seconds, and then nine at once"
        );
    }

    #[test]
    fn stops_and_free_flow_have_no_rate() {
        let t = paced(320);
        let o = PlanOptions::default();
        let stop =
            Stall { verdict: Verdict::Stop, cause: Some(Cause::L0Files), ..Stall::default() };
        let stopped = Pressure { stop: Some(Cause::L0Files), ..Pressure::default() };
        assert_eq!(t.judge(&stop, &o, None, 0, Some(ROOM)), stopped);
        assert_eq!(t.judge(&Stall::default(), &o, None, 0, None), Pressure::default());
    }

    #[test]
    fn memory_lasts_until_the_flush_ends_and_longer() {
        let rate = |passed: u64, at: u64| ROOM.rate(passed * MIB, (5 + at) * MS) / MIB;
        assert_eq!(rate(0, 0), 640);
        assert_eq!(rate(54, 80), 333, "as long again as since the middle, as that is longer");
        assert_eq!(rate(59, 150), 50, "it should have ended");
        assert_eq!(rate(64, 80), 0);
        assert_eq!(rate(70, 80), 0, "more than there was room for");
        let slow = Room { least: MIB, ..ROOM };
        assert_eq!(slow.rate(64 * MIB, 9 * MS), MIB, "the least rate");
    }

    #[test]
    fn a_first_flush_is_taken_to_last_as_long_again() {
        let first = Room { until: ROOM.began, ..ROOM };
        let rate = |passed: u64, at: u64| first.rate(passed * MIB, (5 + at) * MS) / MIB;
        assert_eq!(rate(32, 10), 3200);
        assert_eq!(rate(32, 100), 320);
        assert!(first.rate(0, 5 * MS) > 1 << 50, "it has only begun");
    }

    #[test]
    fn the_lowest_of_the_rates_holds() {
        let pressure = |pace: u64| {
            let pace = Some((pace * MIB, Cause::L0Files));
            Pressure { pace, memory: Some(ROOM), ..Pressure::default() }
        };
        assert_eq!(pressure(600).rate(0, 5 * MS), Some((600 * MIB, Cause::L0Files)));
        assert_eq!(pressure(700).rate(0, 5 * MS), Some((640 * MIB, Cause::MemtableLimit)));
        assert_eq!(pressure(700).cause(), None, "no stall");
        let t = paced(320);
        let slow =
            Stall { verdict: Verdict::Delay, cause: Some(Cause::L0Files), l0_depth: 24, debt: 0 };
        let told = t.judge(&slow, &PlanOptions::default(), None, 0, Some(ROOM));
        assert_eq!(told.rate(0, 5 * MS), Some((300 * MIB, Cause::L0Files)));
        assert_eq!(told.rate(54 * MIB, 105 * MS), Some((200 * MIB, Cause::MemtableLimit)));
        assert_eq!(told.memory.map(|room| room.least), Some(MIB), "the least rate of all");
    }

    #[test]
    fn bytes_of_level_0_slow_writers_beside_its_depth_and_not_in_its_place() {
        let policy = PolicyKind::Adaptive;
        // They stop at 6 x 36 x 64 MiB: half of the last quarter is left.
        let o =
            PlanOptions { policy, memtable_bytes: 64 * MIB, l0_stop: 36, ..PlanOptions::default() };
        let bytes = 6 * 36 * 64 * MIB / 8 * 7;
        let stall =
            |verdict, l0_depth| Stall { verdict, cause: Some(Cause::L0Files), l0_depth, debt: 0 };
        let told = |verdict, depth, ends: Option<u64>| {
            let told =
                paced(320).judge(&stall(verdict, depth), &o, ends.map(|e| e * MIB), bytes, None);
            told.rate(0, 0).map(|(rate, cause)| (rate / MIB, cause))
        };
        assert_eq!(told(Verdict::None, 12, None), Some((160, Cause::L0Bytes)));
        assert_eq!(told(Verdict::None, 12, Some(100)), Some((100, Cause::L0Files)));
        assert_eq!(told(Verdict::Delay, 24, None), Some((160, Cause::L0Bytes)));
        assert_eq!(
            told(Verdict::Delay, 32, None),
            Some((140, Cause::L0Files)),
            "nothing is at work"
        );
        assert_eq!(told(Verdict::Delay, 32, Some(900)), Some((160, Cause::L0Bytes)));
        let off = PlanOptions { disable_auto: true, ..o.clone() };
        let judged = |t: &Throttle, o| t.judge(&Stall::default(), o, None, bytes, None);
        assert_eq!(judged(&paced(320), &off), Pressure::default(), "nor do they stop then");
        assert_eq!(judged(&Throttle::new(MIB), &o), Pressure::default(), "no pace is known");
    }

    #[test]
    fn writers_are_held_to_what_is_sustained_and_slow_ones_left_alone() {
        let (t, o) = (paced(320), PlanOptions::default());
        let told = |rate: u64| t.judge(&Stall::default(), &o, Some(rate * MIB), 0, None);
        assert_eq!(told(640), Pressure::default(), "twice what writers do");
        let pace = Some((600 * MIB, Cause::L0Files));
        assert_eq!(told(600), Pressure { pace, ..Pressure::default() });
        assert_eq!(told(600).cause(), None, "no stall");
        assert_eq!(told(0).rate(0, 0), Some((MIB, Cause::L0Files)), "the least rate");
        let slow =
            Stall { verdict: Verdict::Delay, cause: Some(Cause::L0Files), l0_depth: 24, debt: 0 };
        let rate = |rate: u64, policy: PolicyKind| {
            let o = PlanOptions { policy, ..PlanOptions::default() };
            t.judge(&slow, &o, Some(rate * MIB), 0, None).delay
        };
        assert_eq!(rate(50, PolicyKind::Hybrid), Some((50 * MIB, Cause::L0Files)));
        assert_eq!(
            rate(900, PolicyKind::Hybrid),
            Some((300 * MIB, Cause::L0Files)),
            "room says 300"
        );
        assert_eq!(rate(50, PolicyKind::Adaptive), Some((50 * MIB, Cause::L0Files)));
        assert_eq!(rate(900, PolicyKind::Adaptive), Some((900 * MIB, Cause::L0Files)));
        let debt_of = Stall { cause: Some(Cause::PendingBytes), debt: 3 << 30, ..slow };
        let o = PlanOptions { soft_debt: 2 << 30, hard_debt: 4 << 30, ..o };
        let o = PlanOptions { policy: PolicyKind::Adaptive, ..o };
        let told = t.judge(&debt_of, &o, Some(900 * MIB), 0, None).delay;
        assert_eq!(told, Some((240 * MIB, Cause::PendingBytes)), "of debt it says nothing");
        let o = PlanOptions { hard_debt: 0, ..o };
        let told = |debt: u64| t.judge(&Stall { debt, ..debt_of }, &o, None, 0, None).delay;
        let rates = [2, 5, 8, 9].map(|gib| told(gib << 30).map(|(rate, _)| rate / MIB));
        assert_eq!(rates, [320, 240, 1, 1].map(Some), "no debt stops writes");
    }

    #[test]
    fn room_has_no_most_bytes() {
        let gib = 1 << 30;
        let room = Room { bytes: 30 * gib, began: 0, until: 20_000 * MS, least: MIB };
        assert_eq!([0, 10].map(|passed| room.rate(passed * gib, 0) / MIB), [1536, 1024]);
    }
}
