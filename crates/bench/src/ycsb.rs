//! YCSB's core workloads A to F (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB",
//! SoCC 2010).
//!
//! Records are numbered in order of insertion and live under shuffled keys, so that an insert
//! lands anywhere in the key space. Which record an operation takes is zipfian: scrambled over
//! all records, or counted back from the newest (D).
//!
//! Keeps: a record has one writer. With several threads an update goes to the record of the
//! thread's own remainder next to the one drawn, which leaves the skew as it is but for the very
//! hottest record, of which each thread has its own.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

use crate::keys::{Permutation, mix};
use crate::lane::Lane;
use crate::load::{get_key, put_key, seek_key};
use crate::settings::BenchSettings;
use crate::workload::Workload;
use crate::zipf::Zipf;

/// Longest scan of workload E.
const SCAN_MAX: u64 = 100;

/// The records of a store: how many, and under which keys.
pub(crate) struct Records {
    order: Permutation,
    /// Records claimed by an insert. The write may still be under way.
    claimed: AtomicU64,
    capacity: u64,
}

impl Records {
    /// `present` records, room for `capacity`.
    pub(crate) fn new(present: u64, capacity: u64, seed: u64) -> Records {
        let order = Permutation::new(capacity, mix(seed ^ 0x7963_7362));
        Records { order, claimed: AtomicU64::new(present), capacity }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Key number of a record.
    fn key(&self, record: u64) -> u64 {
        self.order.at(record)
    }

    /// The key of a new record, while there are fewer than `limit`.
    fn claim(&self, limit: u64) -> Option<u64> {
        let limit = limit.min(self.capacity);
        let more = |claimed: u64| (claimed < limit).then_some(claimed + 1);
        let before = self.claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        before.ok().map(|record| self.key(record))
    }
}

/// Percent of each operation.
struct Blend {
    reads: u8,
    updates: u8,
    inserts: u8,
    scans: u8,
    // The rest reads a record and then updates it.
}

fn blend(workload: Workload) -> Blend {
    let none = Blend { reads: 0, updates: 0, inserts: 0, scans: 0 };
    match workload {
        Workload::YcsbA => Blend { reads: 50, updates: 50, ..none },
        Workload::YcsbB => Blend { reads: 95, updates: 5, ..none },
        Workload::YcsbC => Blend { reads: 100, ..none },
        Workload::YcsbD => Blend { reads: 95, inserts: 5, ..none },
        Workload::YcsbE => Blend { scans: 95, inserts: 5, ..none },
        Workload::YcsbF => Blend { reads: 50, ..none },
        other => unreachable!("{other} is none of YCSB's letters"),
    }
}

/// The ranks of `workload` over `count` records.
pub(crate) fn ranks(workload: Workload, count: u64, settings: &BenchSettings) -> Option<Zipf> {
    let theta = settings.zipf;
    match workload {
        Workload::OverwriteZipf => Some(Zipf::new(settings.num(), theta)),
        Workload::YcsbD => Some(Zipf::new(count.max(1), theta)),
        w if w.is_ycsb() => Some(Zipf::scrambled(theta)),
        _ => None,
    }
}

/// Inserts records until there are as many as keys.
pub(crate) fn load(lane: &mut Lane<'_>) -> Result<()> {
    let course = lane.course;
    let num = course.settings.num();
    while lane.has_more() {
        let Some(key) = course.records.claim(num) else { break };
        let bytes = put_key(lane, key)?;
        lane.finish(1, bytes);
    }
    Ok(())
}

/// Runs one of the letters.
pub(crate) fn run(lane: &mut Lane<'_>, workload: Workload) -> Result<()> {
    let course = lane.course;
    let blend = blend(workload);
    let Some(zipf) = &course.zipf else { bail!("{workload} has no ranks") };
    let mut value = Vec::new();
    while lane.has_more() {
        let mut coin = lane.rng.u8(0..100);
        let mut falls_under = |share: u8| {
            let hit = coin < share;
            coin = coin.wrapping_sub(if hit { 0 } else { share });
            hit
        };
        let bytes = if falls_under(blend.reads) {
            let record = draw(lane, zipf, workload);
            get_key(lane, course.records.key(record), &mut value)?
        } else if falls_under(blend.updates) {
            let record = draw_own(lane, zipf, workload);
            put_key(lane, course.records.key(record))?
        } else if falls_under(blend.inserts) {
            let Some(key) = course.records.claim(u64::MAX) else {
                bail!("no key is left to insert; raise --num or lower --reads");
            };
            put_key(lane, key)?
        } else if falls_under(blend.scans) {
            let record = draw(lane, zipf, workload);
            let entries = lane.rng.u64(1..=SCAN_MAX);
            seek_key(lane, course.records.key(record), entries)?
        } else {
            let record = draw_own(lane, zipf, workload);
            let key = course.records.key(record);
            get_key(lane, key, &mut value)? + put_key(lane, key)?
        };
        lane.finish(1, bytes);
    }
    Ok(())
}

/// A record by its popularity.
#[inline]
fn draw(lane: &mut Lane<'_>, zipf: &Zipf, workload: Workload) -> u64 {
    let count = lane.course.records.count();
    let rank = zipf.pick(&mut lane.rng);
    if workload == Workload::YcsbD { count - 1 - rank.min(count - 1) } else { mix(rank) % count }
}

/// The record next to the one drawn that this lane may write.
#[inline]
fn draw_own(lane: &mut Lane<'_>, zipf: &Zipf, workload: Workload) -> u64 {
    let record = draw(lane, zipf, workload);
    let (lanes, count) = (lane.course.lanes as u64, lane.course.records.count());
    let own = record - record % lanes + lane.index as u64;
    if own < count { own } else { own.saturating_sub(lanes).min(count - 1) }
}
