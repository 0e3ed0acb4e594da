//! How many compactions at once are of use, and what a byte that they move costs.
//!
//! What limits a machine is not asked. Where it is the device, or the processors, another compaction
//! takes from those at work what it gets itself: then it is better not begun, because what it would take
//! down grows meanwhile and goes down with more of it at once. So [`Meter`] keeps the bytes per second
//! that were moved with one compaction at work, with two, and so on, and wants as few of them as move
//! nearly the most. It begins with one, takes twice as many as long as that helps, then looks between.
//!
//! ```text
//!   at work  1    2    4    8         eight slots: two are of use, as four move hardly more, and the
//!   MiB/s    180  295  300  unknown   a third job would only slow down the two
//! ```
//!
//! Trees over the same disk, the column families of a database, count all compactions that are at work over it, and share
//! those that are of use: each may have what the others leave, and an equal part in any case.
//!
//! Keeps: rates that were not seen for ten seconds and while sixteen memtables were filled are forgotten
//! and looked for again, so a machine that changes is followed. Fewer are looked at before more: with
//! large memtables a job outlasts what is known of fewer, and one look must not lead on to the next.

use lithify_plan::Load;

const MS: u64 = 1_000_000;
/// Shortest span over which a rate is taken, nanoseconds.
const SPAN: u64 = 10 * MS;
/// A rate is believed once it was seen for this long, nanoseconds.
const BELIEVED: u64 = 50 * MS;
/// And for this part of the time in which a memtable fills, one in so many: the larger memtables are, the longer
/// lasts a compaction that is begun for a look.
const BELIEVED_PART: u64 = 10;
/// A rate is the mean of this long, nanoseconds.
const MEMORY: u64 = 500 * MS;
/// A rate that was not seen for this long is forgotten, nanoseconds.
const FORGOTTEN: u64 = 10_000 * MS;
/// And not before so many memtables could have been filled meanwhile.
const FORGOTTEN_FILLS: u64 = 16;
/// Fewer compactions are enough if they move this much of the most, percent.
const ENOUGH: u64 = 85;
/// Compactions that are looked at first.
const FIRST: usize = 1;
/// How many times as many are looked at next. A look is not free: meanwhile bytes cost less, and what goes down is
/// rewritten for less.
const STEP: usize = 2;
/// Writers rest once no memtable was full for this many times as long as the last one took.
const RESTS: u64 = 4;
/// And after this long in any case, nanoseconds.
const RESTS_MOST: u64 = 2_000 * MS;
/// A memtable with less than one part in so many of a full one was frozen early.
const EARLY: u64 = 2;
/// What a full one holds is forgotten by one part in so many with each memtable that holds less.
const FULL_FORGETS: u64 = 8;
/// The price follows how busy the compactions were while about this many memtables were filled: what has gathered
/// meanwhile is what goes down next.
const BUSY_FILLS: u64 = 8;
/// And for no longer and no shorter than this, nanoseconds.
const BUSY_MEMORY: [u64; 2] = [SPAN, 4_000 * MS];

/// Bytes per second with so many compactions at work.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rate: u64,
    /// Nanoseconds it was seen, up to [`MEMORY`].
    length: u64,
    at: u64,
}

/// What was observed of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// By compactions at work.
    seen: Vec<Seen>,
    /// When the span that is observed now began, and the compactions at work times nanoseconds since.
    since: u64,
    area: u128,
    at: u64,
    /// Compactions that are of use, or are looked at; 0 until something is observed.
    useful: usize,
    /// The mean of that over about eight memtables, thousandths; 0 until something is observed.
    usual: u64,
    /// Part of the useful compactions that was at work of late, thousandths.
    busy: u64,
    /// When a compaction was at work last.
    worked: u64,
    /// When the last memtable was frozen, and how long it took, or would have to be full, nanoseconds.
    frozen: Option<(u64, u64)>,
    /// Bytes of a full memtable, as far as was seen.
    full: u64,
    /// How long a memtable took of late, the mean of about eight, nanoseconds.
    fill: u64,
    /// How long the last memtable took, or the mean if that is less; 0 before there were two.
    pace: u64,
}

impl Meter {
    /// Of a tree whose flushes were cut into so many ranges: so many compactions were of use, as far as is known.
    pub(crate) fn of(buckets: usize) -> Meter {
        Meter { usual: 1000 * buckets as u64, ..Meter::default() }
    }

    /// `running` compactions were at work until `now`, in all trees over the same disk: a byte that was moved is not told
    /// apart from those of others.
    pub(crate) fn pass(&mut self, running: usize, now: u64) {
        let span = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        self.area += u128::from(span) * running as u128;
        let part = 1000 * running.min(self.useful.max(1)) as u64 / self.useful.max(1) as u64;
        let [least, most] = BUSY_MEMORY;
        let memory = self.fill.saturating_mul(BUSY_FILLS).clamp(least, most);
        let (old, new) = (memory.saturating_sub(span), span.min(memory));
        self.busy = (self.busy * old + part * new).div_ceil(memory);
        if running > 0 {
            self.worked = self.at;
        }
        // What is rounded up at each of many events would never come down to nothing.
        if self.at - self.worked >= memory {
            self.busy = 0;
        }
    }

    /// A memtable is frozen, with so many bytes. One that a caller has flushed early says how fast it filled, but not how
    /// soon the next is full.
    pub(crate) fn frozen(&mut self, bytes: u64, now: u64) {
        let took = self.frozen.map_or(RESTS_MOST, |(at, _)| now.saturating_sub(at));
        let took = match bytes < self.full / EARLY {
            true => whole(took, bytes, self.full),
            false => took,
        };
        // Sizes may change for good.
        self.full = bytes.max(self.full - self.full.div_ceil(FULL_FORGETS));
        let before = self.frozen.map_or(took, |_| self.fill);
        // A rest says nothing of how soon the next memtables are full.
        self.fill = (7 * before + took.min(RESTS_MOST)) / 8;
        if self.useful > 0 {
            self.usual = (7 * self.usual + 1000 * self.useful as u64).div_ceil(8);
        }
        if self.frozen.is_some() {
            self.pace = took.min(self.fill);
        }
        self.frozen = Some((now, took));
    }

    /// Flushes and compactions moved so many bytes since the last time.
    pub(crate) fn moved(&mut self, bytes: u64, slots: usize) {
        let span = self.at - self.since;
        if span < SPAN {
            return;
        }
        let running = ((2 * self.area + u128::from(span)) / (2 * u128::from(span))) as usize;
        (self.since, self.area) = (self.at, 0);
        if self.seen.len() <= running.max(slots) {
            self.seen.resize(running.max(slots) + 1, Seen::default());
        }
        let forgotten = self.forgotten();
        let seen = &mut self.seen[running];
        if self.at - seen.at > forgotten {
            *seen = Seen::default();
        }
        let (span, bytes) = (u128::from(span), u128::from(bytes));
        let length = (u128::from(seen.length) + span).min(u128::from(MEMORY));
        let old = u128::from(seen.rate) * length.saturating_sub(span);
        let new = bytes * 1_000_000_000 * span.min(length) / span;
        let rate = u64::try_from((old + new) / length).unwrap_or(u64::MAX);
        *seen = Seen { rate, length: length as u64, at: self.at };
        self.look(slots);
    }

    /// Nanoseconds after which a rate that was not seen is forgotten.
    fn forgotten(&self) -> u64 {
        FORGOTTEN.max(self.pace * FORGOTTEN_FILLS)
    }

    /// The rate with so many compactions, if it is known.
    fn rate(&self, running: usize) -> Option<u64> {
        let seen = self.seen.get(running)?;
        let believed = BELIEVED.max(self.pace / BELIEVED_PART);
        let known = seen.length >= believed && self.at - seen.at <= self.forgotten();
        known.then_some(seen.rate)
    }

    /// Finds how many are of use, or which number to look at next.
    fn look(&mut self, slots: usize) {
        let most = (1..=slots).filter_map(|n| self.rate(n)).max().unwrap_or(0);
        let wanted = u128::from(most) * u128::from(ENOUGH);
        let enough = |n: &usize| self.rate(*n).is_some_and(|r| u128::from(r) * 100 >= wanted);
        let Some(fewest) = (1..=slots).find(enough) else {
            self.useful = slots.min(FIRST);
            return;
        };
        let fewer = (1..fewest).rev().find(|&n| self.rate(n).is_some()).unwrap_or(0);
        // Only what twice as many move counts: each number moves hardly less than the next one, so by neighbours alone
        // the number would sink step by step.
        let next = slots.min(STEP * fewest);
        let more_is_known = fewest == slots || (next..=slots).any(|n| self.rate(n).is_some());
        self.useful = match fewest - fewer {
            gap if fewer == 0 && gap > 1 => fewest / 2,
            _ if !more_is_known => next,
            1 => fewest,
            _ => fewest.midpoint(fewer),
        };
    }

    /// How many of `slots` compactions are of use, or are looked at; the first while nothing was observed.
    pub(crate) fn useful(&self, slots: usize) -> usize {
        self.useful.max(FIRST).min(slots)
    }

    /// How many of them are this tree's, where others have so many at work over the same disk, in so many trees: what those
    /// leave, and an equal part in any case.
    pub(crate) fn share(&self, slots: usize, (elsewhere, trees): (usize, usize)) -> usize {
        let useful = self.useful(slots);
        useful.saturating_sub(elsewhere).max(useful / (trees + 1)).max(FIRST).min(slots)
    }

    /// How many were of use while about eight memtables were filled; 0 while nothing was observed.
    pub(crate) fn usual(&self) -> u32 {
        u32::try_from((self.usual + 500) / 1000).unwrap_or(u32::MAX)
    }

    /// True while writers fill memtables; `held` says that they would, and are held up.
    pub(crate) fn is_written(&self, held: bool, now: u64) -> bool {
        let Some((at, took)) = self.frozen else { return false };
        held || now.saturating_sub(at) < took.saturating_mul(RESTS).min(RESTS_MOST)
    }

    /// The load, as planners of this tree see it, with what others have at work as for [`share`](Meter::share).
    pub(crate) fn load(
        &self,
        slots: usize,
        elsewhere: (usize, usize),
        held: bool,
        now: u64,
    ) -> Load {
        let written = self.is_written(held, now);
        let price = if written { self.price(slots) } else { 0 };
        Load { price, useful: self.share(slots, elsewhere) as u32, written }
    }

    /// What a byte costs while writers write. Where fewer compactions are of use than there are slots, something else is
    /// the limit, and a job that is begun takes from those at work: the price follows how busy they are. Where all slots
    /// are of use a job takes from none, and an idle slot is lost: the price falls by the power of two and a half.
    fn price(&self, slots: usize) -> u32 {
        let full = u64::from(Load::FULL_PRICE);
        let price = match slots > 1 && self.useful(slots) == slots {
            true => full * self.busy * self.busy * (1000 * self.busy).isqrt() / 1_000_000_000,
            false => full * self.busy / 1000,
        };
        price as u32
    }
}

/// How long a memtable of `full` bytes takes, if `bytes` of it took so long.
fn whole(took: u64, bytes: u64, full: u64) -> u64 {
    let whole = u128::from(took) * u128::from(full) / u128::from(bytes.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000 * MS;
    const FULL: u64 = 64 << 20;

    /// A machine of which `capacity` compactions get all, for so long: as many compactions are at work as
    /// are of use.
    fn works(meter: &mut Meter, capacity: usize, slots: usize, from: u64, until: u64) {
        let span = 50 * MS;
        for now in (from..until).step_by(span as usize).map(|t| t + span) {
            let running = meter.useful(slots);
            meter.pass(running, now);
            if (now / span).is_multiple_of(4) {
                meter.frozen(FULL, now);
            }
            meter.moved(running.min(capacity) as u64 * (100 << 20) / 20, slots);
        }
    }

    #[test]
    fn no_more_compactions_are_of_use_than_the_device_can_serve() {
        let mut meter = Meter::default();
        works(&mut meter, 2, 16, 0, 5 * SECOND);
        assert_eq!(meter.useful(16), 2);
        assert_eq!(meter.load(16, (0, 0), false, 5 * SECOND).price, Load::FULL_PRICE);
    }

    #[test]
    fn a_machine_that_serves_all_slots_gets_all_of_them() {
        let mut meter = Meter::default();
        works(&mut meter, 16, 16, 0, 5 * SECOND);
        assert!(meter.useful(16) >= 13, "{} of 16", meter.useful(16));
        // And keeps them: rates of more are forgotten meanwhile, again and again.
        let mut at_work = 0;
        for at in 5..125 {
            works(&mut meter, 16, 16, at * SECOND, (at + 1) * SECOND);
            at_work += meter.useful(16);
        }
        assert!(at_work >= 12 * 120, "{} of 16 in the mean", at_work / 120);
    }

    /// Two trees over one machine, of which `capacity` compactions get all: the first has the machine for itself at
    /// first. How many each has at work in the end.
    fn beside(capacity: usize, slots: usize) -> [usize; 2] {
        let span = 50 * MS;
        let (mut meters, mut at_work) = ([Meter::default(), Meter::default()], [0, 0]);
        for now in (span..=40 * SECOND).step_by(span as usize) {
            for one in 0..2 {
                let (meter, elsewhere) = (&mut meters[one], at_work[1 - one]);
                let rests = one == 1 && now < 10 * SECOND;
                at_work[one] = match rests {
                    true => 0,
                    false => meter.share(slots, (elsewhere, elsewhere.min(1))),
                };
            }
            let running = at_work[0] + at_work[1];
            for meter in &mut meters {
                meter.pass(running, now);
                if (now / span).is_multiple_of(4) {
                    meter.frozen(FULL, now);
                }
                meter.moved(running.min(capacity) as u64 * (100 << 20) / 20, slots);
            }
        }
        at_work
    }

    #[test]
    fn trees_share_what_the_machine_serves() {
        let [one, two] = beside(16, 16);
        assert!(one + two >= 13 && two >= 5, "{one} and {two} of 16");
        let [one, two] = beside(2, 16);
        assert_eq!([one, two], [1, 1]);
    }

    #[test]
    fn more_are_looked_at_before_what_lies_between() {
        let mut meter = Meter::default();
        let mut looked_at = vec![FIRST];
        for at in 0..4 {
            works(&mut meter, 16, 16, at * 50 * MS, (at + 1) * 50 * MS);
            looked_at.push(meter.useful(16));
        }
        assert_eq!(looked_at, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn jobs_that_outlast_what_is_known_of_fewer_do_not_lead_on_to_more() {
        let mut meter = Meter::default();
        works(&mut meter, 1, 16, 0, 5 * SECOND);
        assert_eq!(meter.useful(16), 1);
        // Four were begun, and go on for a minute: what is of use is looked for below them.
        for now in (5 * SECOND + 50 * MS..=65 * SECOND).step_by(50 * MS as usize) {
            meter.pass(4, now);
            meter.moved(5 << 20, 16);
            assert!(meter.useful(16) <= 4, "{} at {now}", meter.useful(16));
        }
        assert_eq!(meter.useful(16), 2);
        works(&mut meter, 1, 16, 65 * SECOND, 70 * SECOND);
        assert_eq!(meter.useful(16), 1);
    }

    #[test]
    fn a_rate_is_believed_later_and_kept_longer_where_memtables_are_large() {
        let after = |fill: u64, seen: u64, unseen: u64| {
            let mut meter = Meter::default();
            for now in (0..=8 * fill).step_by(fill as usize) {
                meter.pass(1, now);
                meter.frozen(FULL, now);
            }
            (meter.seen, meter.since, meter.area) = (Vec::new(), meter.at, 0);
            meter.pass(1, meter.at + seen);
            meter.moved(100 << 20, 4);
            meter.pass(1, meter.at + unseen);
            meter.rate(1).is_some()
        };
        assert!(after(200 * MS, 50 * MS, 0) && !after(200 * MS, 50 * MS, 11 * SECOND));
        assert!(!after(1500 * MS, 50 * MS, 0) && after(1500 * MS, 200 * MS, 11 * SECOND));
        assert!(!after(1500 * MS, 200 * MS, 33 * SECOND));
    }

    #[test]
    fn a_machine_that_changes_is_followed() {
        let mut meter = Meter::default();
        works(&mut meter, 2, 16, 0, 5 * SECOND);
        works(&mut meter, 8, 16, 5 * SECOND, 30 * SECOND);
        assert!((6..=9).contains(&meter.useful(16)), "{} of use, not about 8", meter.useful(16));
        works(&mut meter, 2, 16, 30 * SECOND, 55 * SECOND);
        assert_eq!(meter.useful(16), 2);
    }

    #[test]
    fn the_price_falls_the_sooner_the_sooner_memtables_fill() {
        let price_after_rest = |fill: u64| {
            let mut meter = Meter::default();
            for now in (0..40 * fill).step_by(fill as usize) {
                meter.pass(2, now);
                meter.frozen(FULL, now);
            }
            let until = 39 * fill + 200 * MS;
            meter.pass(0, until);
            meter.load(2, (0, 0), true, until).price
        };
        assert!(price_after_rest(500 * MS) > Load::FULL_PRICE / 2);
        let mut rested = Meter::default();
        rested.frozen(FULL, 0);
        for now in (0..12).map(|n| 3_600 * SECOND + n * 10 * MS) {
            rested.frozen(FULL, now);
        }
        assert!(rested.fill * BUSY_FILLS < RESTS_MOST * 2, "an hour's rest is forgotten");
        assert_eq!(price_after_rest(10 * MS), 0);
    }

    #[test]
    fn the_price_falls_sooner_where_all_slots_are_of_use() {
        let half_busy = |useful: usize| {
            let mut meter = Meter { useful, ..Meter::default() };
            meter.frozen(FULL, 0);
            (0..400).for_each(|n| meter.pass(n % 2 * useful, n as u64 * 200 * MS));
            meter.load(4, (0, 0), true, meter.at).price
        };
        let about = |part: f64| (0.9 * part * 700.0) as u32..=(1.1 * part * 700.0) as u32;
        assert!(about(0.5).contains(&half_busy(2)), "{}", half_busy(2));
        assert!(about(0.177).contains(&half_busy(4)), "{}", half_busy(4));
        let mut busy = Meter { useful: 4, ..Meter::default() };
        busy.frozen(FULL, 0);
        (0..400).for_each(|n| busy.pass(4, n * 200 * MS));
        assert_eq!(busy.load(4, (0, 0), true, busy.at).price, Load::FULL_PRICE);
    }

    /// However often it is looked at.
    #[test]
    fn where_nothing_is_at_work_bytes_come_to_have_no_price() {
        for tick in [1, 4, 50, 200] {
            let mut meter = Meter::default();
            (0..20).for_each(|n| meter.frozen(FULL, n * 500 * MS));
            let pass = |meter: &mut Meter, running, from: u64, to: u64| {
                let times = (from..=to).step_by(tick as usize);
                times.for_each(|at| meter.pass(running, at * MS));
                meter.load(4, (0, 0), true, to * MS).price
            };
            assert_eq!(pass(&mut meter, 1, 0, 60_000), Load::FULL_PRICE, "each {tick} ms");
            assert!(pass(&mut meter, 0, 60_000, 61_000) > 0, "each {tick} ms");
            assert_eq!(pass(&mut meter, 0, 61_000, 64_000), 0, "each {tick} ms");
        }
    }

    #[test]
    fn bytes_are_free_while_writers_rest() {
        let mut meter = Meter::default();
        works(&mut meter, 2, 4, 0, SECOND);
        assert!(meter.load(4, (0, 0), false, SECOND).price > 0);
        assert_eq!(meter.load(4, (0, 0), false, SECOND + RESTS_MOST).price, 0);
        assert!(meter.load(4, (0, 0), true, SECOND + RESTS_MOST).price > 0, "writers are held up");
    }

    #[test]
    fn an_early_flush_is_no_rest() {
        let mut meter = Meter::default();
        (0..20).for_each(|n| meter.frozen(FULL, n * 500 * MS));
        let (fill, last) = (meter.fill, 19 * 500 * MS);
        // A caller flushes a hundredth of a memtable, and writers go on.
        meter.frozen(FULL / 100, last + 5 * MS);
        assert!(meter.is_written(false, last + 505 * MS), "the next one is not full yet");
        assert!(meter.fill > fill - fill / 20 && meter.pace > 499 * MS, "as if it were full");
        assert!(!meter.is_written(false, last + 5 * MS + RESTS_MOST), "writers do rest");
    }

    #[test]
    fn memtables_that_stay_small_are_full() {
        let mut meter = Meter::default();
        (0..20).for_each(|n| meter.frozen(FULL, n * 500 * MS));
        let small = |n: u64| 10 * SECOND + n * 50 * MS;
        (0..30).for_each(|n| meter.frozen(FULL / 20, small(n)));
        assert!(meter.is_written(false, small(29) + 199 * MS));
        assert!(!meter.is_written(false, small(29) + 200 * MS), "four of them were not filled");
    }

    #[test]
    fn what_is_usual_follows_over_some_memtables() {
        let mut meter = Meter::of(16);
        assert_eq!((meter.usual(), Meter::default().usual()), (16, 0));
        meter.frozen(FULL, 0);
        assert_eq!(meter.usual(), 16, "nothing was observed");
        works(&mut meter, 2, 16, 0, 400 * MS);
        assert!(meter.usual() > 4, "{} after two memtables", meter.usual());
        works(&mut meter, 2, 16, 400 * MS, 10 * SECOND);
        assert_eq!(meter.usual(), 2);
    }

    #[test]
    fn a_database_begins_with_one_compaction_and_without_a_price() {
        assert_eq!(Meter::default().useful(7), FIRST);
        assert_eq!(Meter::default().load(7, (0, 0), true, SECOND).price, 0);
    }
}
