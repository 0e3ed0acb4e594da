//! How the bucket map follows the load: it is made once, learns from each flush, and its buckets are
//! split and merged. All functions go from value to value; a map is a hint, so nothing here can be
//! wrong, only slow.
//!
//! **Temperature** (BucketLSM, eq. 1): what flowed into a bucket in the window of the last flushes,
//! in thousandths of the average bucket. Above `split_percent` a bucket is split into as many parts of
//! equal flow as it has averages; at or below `merge_percent` it joins its colder neighbour.
//!
//! ```text
//!   bucket        a..f   f..m   m..r   r..z       N = 4, window total 120 MiB
//!   flow, MiB      66     30     18      6        r..z has 6 x 4 / 120 = 0.2: joins m..r
//!   temperature   2.2    1.0    0.6    0.2        a..f has 2.2: split in three, at its tertiles
//! ```
//!
//! A load that moves to one bucket makes it hot and deep at once. Its L0 files lie over every point
//! at which it could be split, and new ones come faster than old ones go; so they do not stand in
//! the way: files that span a new bound go down once more as one job, and those of later flushes are
//! cut. The paper splits a bucket only when it has no L0 files (`only_when_empty`).
//!
//! **Slots.** Under `adaptive`, a map may have as many buckets as compactions were of use of late. While it has fewer,
//! a bucket is split that has more than one and a half of what each of so many would have; while it has more, one
//! joins its neighbour that has half of that or less.
//!
//! Hysteresis: no bucket changes within a window of its last change, nor on fewer than three
//! flushes; at most an eighth of the buckets change between two flushes. N buckets are at most N
//! times as hot as their average, so a merge leaves enough of them that one can still be split:
//! else a load that was narrow for a while would end all cutting for good.

use lithify_base::{Comparator, Key, MAX_LEVELS};
use lithify_lsm::{BucketMap, BucketStat, Run, Version, Violation};

use crate::nouns::options::{FIRST_BUCKETS, PlanOptions, PolicyKind, adaptive_buckets};
use crate::nouns::spec::{JobSpec, Kind};

/// Flushes a bucket must have seen data of before it is split.
const ENTRIES_MIN: usize = 3;
/// Most buckets of any map.
const BUCKETS_MAX: u64 = 4096;
/// Under `adaptive`, a bucket is split above this part of what each useful compaction would have if all had as
/// much, thousandths; while there are fewer buckets than useful compactions.
const WIDE: u64 = 1500;
/// And merged at or below this part, while there are more buckets.
const NARROW: u64 = 500;
/// How far a new bound may be from its quantile, in thousandths of the bucket's bytes, to lie at the
/// beginning of a file of the base level instead.
const SNAP: u64 = 100;

/// Keys sampled for each bucket, on average.
const KEYS_PER_BUCKET: u64 = 64;
/// Keys of a bucket that are reported.
const KEYS_REPORTED: usize = 15;
/// A bucket's share below this many bytes joins its left neighbour's file.
const SHARE_MIN: u64 = 64 << 10;
/// One below this part of the memtable, if that is less.
const SHARE_PART: u64 = 16;

/// What a flush wrote, by the buckets of the map it was cut by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushReport {
    /// Epoch of that map.
    pub epoch: u64,
    /// One per bucket of that map.
    pub buckets: Vec<BucketFlow>,
}

/// What a flush wrote into one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketFlow {
    /// Bytes.
    pub bytes: u64,
    /// Keys that divide the bytes into equal parts, in key order; commonly 15. The middle one is
    /// the median. At least one if there are bytes.
    pub keys: Vec<Key>,
}

/// Bytes between the keys that [`survey`] is shown of a memtable of `bytes` bytes which `buckets`
/// buckets cut.
pub fn sample_step(bytes: u64, buckets: u64) -> u64 {
    (bytes / (buckets.max(1) * KEYS_PER_BUCKET)).max(1)
}

/// How a flush is cut, and what it will have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// What goes into each bucket.
    pub report: FlushReport,
    /// First keys of all files but the first: where buckets begin, but for those whose share is
    /// too small for a file and joins their left neighbour's.
    pub splits: Vec<Key>,
}

/// The flush of a memtable of `bytes` bytes that `map` cuts. `sample` has keys of it in order, each
/// with the bytes since the one before; [`sample_step`] says how many keys are enough.
pub fn survey(
    map: &BucketMap,
    sample: Vec<(Key, u64)>,
    bytes: u64,
    order: &dyn Comparator,
) -> Survey {
    let mut flows = vec![BucketFlow::default(); map.len()];
    for (key, bytes) in sample {
        let flow = &mut flows[map.bucket_of(&key, order)];
        flow.bytes += bytes;
        flow.keys.push(key);
    }
    let least = SHARE_MIN.min(bytes / SHARE_PART);
    let shares = map.bounds.iter().zip(&flows[1..]);
    let splits = shares.filter(|s| s.1.bytes >= least).map(|s| s.0.clone()).collect();
    flows.iter_mut().for_each(|flow| thin(&mut flow.keys));
    Survey { report: FlushReport { epoch: map.epoch, buckets: flows }, splits }
}

/// Keeps [`KEYS_REPORTED`] keys, evenly spread.
fn thin(keys: &mut Vec<Key>) {
    let n = keys.len();
    if n > KEYS_REPORTED {
        let kept = (0..KEYS_REPORTED).map(|i| keys[(2 * i + 1) * n / (2 * KEYS_REPORTED)].clone());
        *keys = kept.collect();
    }
}

/// The first map of a tree: as many buckets as the options say, but none smaller than a flush can
/// fill. Their bounds divide the base level into equal bytes, or the largest level, or else
/// `sample`: keys of the first memtable in order, each with its bytes.
pub fn create(version: &Version, options: &PlanOptions, sample: &[(Key, u64)]) -> BucketMap {
    let buckets = bucket_limit(options).min(u64::from(options.buckets.initial.max(1)));
    let levels = 1..=options.last_level();
    let largest = levels.max_by_key(|&l| version.bytes(l)).unwrap_or(1);
    let level = if version.level(1).is_empty() { largest } else { 1 };
    let files = |run: &Run| -> Vec<(Key, u64)> {
        run.files().iter().map(|f| (f.range.lo.clone(), f.bytes)).collect()
    };
    let base = version.level(level).runs().last().map(files).unwrap_or_default();
    let bounds = match base.len() >= 2 {
        true => quantiles(&base, buckets, version.order()),
        false => quantiles(sample, buckets, version.order()),
    };
    let fresh = BucketStat { age: options.buckets.window, ..BucketStat::default() };
    BucketMap { epoch: 0, stats: vec![fresh; bounds.len() + 1], bounds }
}

/// Most buckets that flushes of a memtable can fill, and that four times the first number allows; under
/// `adaptive` no more than compactions are of use, or than are worth what cutting costs.
fn bucket_limit(options: &PlanOptions) -> u64 {
    let most = match options.policy {
        PolicyKind::Adaptive => {
            options.buckets.useful.max(adaptive_buckets(options.memtable_bytes)).into()
        }
        _ => BUCKETS_MAX,
    };
    let fill = options.memtable_bytes / options.buckets.min_file_bytes.max(1);
    fill.min(4 * u64::from(options.buckets.initial.max(1))).clamp(1, most)
}

/// Up to `parts - 1` keys that divide the items into parts of equal bytes.
fn quantiles(items: &[(Key, u64)], parts: u64, order: &dyn Comparator) -> Vec<Key> {
    let total: u64 = items.iter().map(|i| i.1).sum();
    let (mut bounds, mut before) = (Vec::<Key>::new(), 0u64);
    for (key, bytes) in items {
        let part = u128::from(before) * u128::from(parts) / u128::from(total.max(1));
        let first = items[0].0.clone();
        let last = bounds.last().unwrap_or(&first);
        if part > bounds.len() as u128 && order.compare(key, last).is_gt() {
            bounds.push(key.clone());
        }
        before = before.saturating_add(*bytes);
    }
    bounds.truncate(parts.saturating_sub(1) as usize);
    bounds
}

/// The map after a flush has committed. A flush that was cut by an older map counts for the
/// buckets of now that its keys lie in.
pub fn on_flush(
    map: &BucketMap,
    report: &FlushReport,
    options: &PlanOptions,
    order: &dyn Comparator,
) -> BucketMap {
    let mut flows = vec![BucketFlow::default(); map.len()];
    if report.epoch == map.epoch && report.buckets.len() == map.len() {
        flows.clone_from(&report.buckets);
    } else {
        for (i, flow) in report.buckets.iter().enumerate() {
            spread(map, flow, i, &mut flows, order);
        }
    }
    let window = options.buckets.window.max(1) as usize;
    let mut next = map.clone();
    for (stat, flow) in next.stats.iter_mut().zip(flows) {
        stat.flushed.push(flow.bytes);
        stat.sketches.push(flow.keys);
        let old = stat.flushed.len().saturating_sub(window);
        stat.flushed.drain(..old);
        let old = stat.sketches.len().saturating_sub(stat.flushed.len());
        stat.sketches.drain(..old);
        stat.age = stat.age.saturating_add(1);
    }
    next
}

/// Gives each of a flow's keys its share of the bytes.
fn spread(
    map: &BucketMap,
    flow: &BucketFlow,
    number: usize,
    flows: &mut [BucketFlow],
    order: &dyn Comparator,
) {
    let n = flow.keys.len() as u64;
    if n == 0 {
        flows[number.min(map.len() - 1)].bytes += flow.bytes;
        return;
    }
    for (i, key) in flow.keys.iter().enumerate() {
        let to = &mut flows[map.bucket_of(key, order)];
        // The shares of all keys add up to the bytes, whatever they leave over.
        let part = |i: u64| u128::from(flow.bytes) * u128::from(i) / u128::from(n);
        to.bytes += (part(i as u64 + 1) - part(i as u64)) as u64;
        to.keys.push(key.clone());
    }
}

/// How hot bucket `i` is, in thousandths of the average; 1000 while nothing flows.
pub fn temperature(map: &BucketMap, i: usize) -> u64 {
    match map.flow_of_all() {
        0 => 1000,
        all => (u128::from(map.flow(i)) * map.len() as u128 * 1000 / u128::from(all)) as u64,
    }
}

/// What flowed into bucket `i`, in thousandths of what each of `parts` would have if all had as much.
fn share(map: &BucketMap, i: usize, parts: u64) -> u64 {
    let all = u128::from(map.flow_of_all().max(1));
    (u128::from(map.flow(i)) * u128::from(parts) * 1000 / all) as u64
}

/// Into how many parts bucket `i` goes because few jobs would have all there is while slots stand empty.
/// 1 where any map of `adaptive` has enough of them.
fn parts_for_slots(map: &BucketMap, i: usize, options: &PlanOptions) -> u64 {
    let limit = bucket_limit(options);
    let many = options.policy == PolicyKind::Adaptive && limit > u64::from(FIRST_BUCKETS);
    match share(map, i, limit) {
        part if many && part > WIDE => part.div_ceil(1000),
        _ => 1,
    }
}

/// True if there are more buckets than compactions are of use, and bucket `i` would be small even so.
fn is_too_narrow(map: &BucketMap, i: usize, options: &PlanOptions) -> bool {
    let limit = bucket_limit(options);
    let known = options.policy == PolicyKind::Adaptive && options.buckets.useful > 0;
    known && map.len() as u64 > limit && share(map, i, limit) <= NARROW
}

/// The map after a commit, if a bucket is due for a change; `version` is the tree with what was
/// committed. `done` is the compaction, which was about the buckets of its range; `None` after a
/// flush, which is about all of them. One change per call.
pub fn adapt(
    map: &BucketMap,
    version: &Version,
    done: Option<&JobSpec>,
    options: &PlanOptions,
) -> Option<BucketMap> {
    let about = match done {
        None => 0..=map.len() - 1,
        Some(job) if !matches!(job.kind, Kind::L0Bucket | Kind::Df | Kind::Move) => return None,
        Some(job) => map.buckets_of(&job.hull, version.order()),
    };
    if !options.buckets.adapt || !may_change(map) {
        return None;
    }
    let mut about: Vec<usize> = about.collect();
    about.retain(|&i| map.stats[i].age >= options.buckets.window);
    about.sort_by_key(|&i| std::cmp::Reverse(temperature(map, i)));
    let split = about.iter().find_map(|&i| split(map, version, i, options));
    split.or_else(|| about.iter().rev().find_map(|&i| merge(map, version, i, options)))
}

/// At most an eighth of the buckets change between two flushes, at least one.
fn may_change(map: &BucketMap) -> bool {
    let fresh = map.stats.iter().filter(|s| s.age == 0).count();
    // A split leaves two fresh buckets.
    fresh == 0 || fresh + 2 <= 2 * (map.len() / 8).max(1)
}

/// Bucket `i` in parts, if it is hot, or too wide for the compactions that are of use, and there are points to
/// cut it at.
fn split(map: &BucketMap, version: &Version, i: usize, options: &PlanOptions) -> Option<BucketMap> {
    let (heat, stat) = (temperature(map, i), &map.stats[i]);
    let room = bucket_limit(options).saturating_sub(map.len() as u64);
    let empty = !options.buckets.only_when_empty || is_empty(map, version, i);
    let hot = heat > 10 * u64::from(options.buckets.split_percent);
    let for_slots = parts_for_slots(map, i, options);
    if !hot && for_slots == 1
        || room == 0
        || !empty
        || is_unknown(stat)
        || is_appended(stat, version.order())
    {
        return None;
    }
    let order = version.order();
    let inside = |point: &Key| {
        let (lo, hi) = map.bounds_of(i);
        lo.is_none_or(|lo| order.compare(point, lo).is_gt())
            && hi.is_none_or(|hi| order.compare(point, hi).is_lt())
    };
    let for_heat = if hot { heat.max(heat_of_late(map, i)).div_ceil(1000) } else { 1 };
    let parts = for_heat.max(for_slots).min(room + 1);
    let mut points = quantiles(&weighed(stat, order), parts, order);
    points.iter_mut().for_each(|p| *p = snapped(map, version, i, p).unwrap_or_else(|| p.clone()));
    points.retain(inside);
    points.dedup();
    if points.is_empty() {
        return None;
    }
    let mut next = map.clone();
    let (mut parts, mut rest) = (Vec::new(), stat.clone());
    for point in &points {
        let (low, high) = halves(&rest, point, order);
        parts.push(low);
        rest = high;
    }
    parts.push(rest);
    next.stats.splice(i..=i, parts);
    next.bounds.splice(i..i, points);
    next.epoch += 1;
    Some(next)
}

/// The temperature over the last flushes alone: what a bucket that has just become hot will have.
fn heat_of_late(map: &BucketMap, i: usize) -> u64 {
    let late = |stat: &BucketStat| -> u64 { stat.flushed.iter().rev().take(ENTRIES_MIN).sum() };
    let all: u64 = map.stats.iter().map(late).sum();
    let share = u128::from(late(&map.stats[i])) * map.len() as u128 * 1000;
    (share / u128::from(all.max(1))) as u64
}

/// True on too few flushes to know where the load is.
fn is_unknown(stat: &BucketStat) -> bool {
    stat.sketches.iter().filter(|keys| !keys.is_empty()).count() < ENTRIES_MIN
}

/// True while keys only grow: a bound inside what was appended would cut nothing still to come.
fn is_appended(stat: &BucketStat, order: &dyn Comparator) -> bool {
    let seen: Vec<&Vec<Key>> = stat.sketches.iter().filter(|keys| !keys.is_empty()).collect();
    seen.windows(2).all(|w| match (w[0].last(), w[1].first()) {
        (Some(end), Some(begin)) => order.compare(end, begin).is_lt(),
        _ => false,
    })
}

/// The keys of the window in order, each with its share of its flush.
fn weighed(stat: &BucketStat, order: &dyn Comparator) -> Vec<(Key, u64)> {
    let unknown = stat.flushed.len() - stat.sketches.len();
    let flushes = stat.flushed[unknown..].iter().zip(&stat.sketches);
    let mut keys: Vec<(Key, u64)> = flushes
        .flat_map(|(bytes, keys)| keys.iter().map(move |k| (k.clone(), bytes / keys.len() as u64)))
        .collect();
    keys.sort_by(|a, b| order.compare(&a.0, &b.0));
    keys
}

/// The beginning of a base-level file near `wanted`, so that no file spans the new bound.
fn snapped(map: &BucketMap, version: &Version, i: usize, wanted: &Key) -> Option<Key> {
    let order = version.order();
    let (lo, hi) = map.bounds_of(i);
    let keys: Vec<&Key> = map.stats[i].sketches.iter().flatten().collect();
    let rank = |key: &Key| {
        let before = keys.iter().filter(|k| order.compare(k, key).is_lt()).count();
        before as u64 * 1000 / keys.len().max(1) as u64
    };
    let wanted = rank(wanted);
    let run = (1..MAX_LEVELS as u8).find_map(|l| version.level(l).runs().last())?;
    let from = lo.map_or(0, |lo| run.lower_bound(lo, order));
    let inside = run.files()[from..].iter().map(|f| &f.range.lo);
    let inside = inside.take_while(|k| hi.is_none_or(|hi| order.compare(k, hi).is_lt()));
    let near = inside.map(|k| (rank(k).abs_diff(wanted), k)).min_by_key(|n| n.0)?;
    (near.0 <= SNAP).then(|| near.1.clone())
}

/// The statistics of both halves, each with the share of bytes that its keys say.
fn halves(stat: &BucketStat, point: &Key, order: &dyn Comparator) -> (BucketStat, BucketStat) {
    let (mut low, mut high) = (BucketStat::default(), BucketStat::default());
    let unknown = stat.flushed.len() - stat.sketches.len();
    for (i, &bytes) in stat.flushed.iter().enumerate() {
        let keys = i.checked_sub(unknown).map_or(&[][..], |k| &stat.sketches[k]);
        let below = keys.partition_point(|k| order.compare(k, point).is_lt());
        let share = match keys.len() {
            0 => bytes / 2,
            n => (u128::from(bytes) * below as u128 / n as u128) as u64,
        };
        low.flushed.push(share);
        high.flushed.push(bytes - share);
        if i >= unknown {
            low.sketches.push(keys[..below].to_vec());
            high.sketches.push(keys[below..].to_vec());
        }
    }
    (low, high)
}

/// Bucket `i` joined with its colder neighbour, if it is cold. Its L0 files stay narrow, and a cold
/// bucket is not deep enough to lose them soon, so that waiting for that would be waiting for ever.
fn merge(map: &BucketMap, version: &Version, i: usize, options: &PlanOptions) -> Option<BucketMap> {
    let cold = temperature(map, i) <= 10 * u64::from(options.buckets.merge_percent)
        || is_too_narrow(map, i, options);
    let known = map.stats[i].flushed.len() >= ENTRIES_MIN;
    let few = 100 * (map.len() as u64 - 1) <= u64::from(options.buckets.split_percent);
    let empty = !options.buckets.only_when_empty || is_empty(map, version, i);
    if !cold || !known || few || !empty {
        return None;
    }
    let settled = |j: &usize| map.stats[*j].age >= options.buckets.window;
    let neighbours = [i.checked_sub(1), Some(i + 1).filter(|&j| j < map.len())];
    let with = neighbours.into_iter().flatten().filter(settled).min_by_key(|&j| map.flow(j))?;
    let low = i.min(with);
    let mut next = map.clone();
    let joined = joined(&map.stats[low], &map.stats[low + 1], version.order());
    next.bounds.remove(low);
    next.stats.splice(low..=low + 1, [joined]);
    next.epoch += 1;
    Some(next)
}

/// Two neighbours' statistics as one, flush by flush.
fn joined(low: &BucketStat, high: &BucketStat, order: &dyn Comparator) -> BucketStat {
    // Buckets of one map have seen the same flushes; what one lacks is at the old end.
    let sum = |a: &[u64], b: &[u64]| -> Vec<u64> {
        let n = a.len().max(b.len());
        let at = |v: &[u64], i: usize| (i + v.len()).checked_sub(n).map_or(0, |k| v[k]);
        (0..n).map(|i| at(a, i).saturating_add(at(b, i))).collect()
    };
    let pairs = low.sketches.iter().rev().zip(high.sketches.iter().rev());
    let mut sketches: Vec<Vec<Key>> =
        pairs.map(|(a, b)| [a.as_slice(), b.as_slice()].concat()).collect();
    sketches.reverse();
    sketches.iter_mut().for_each(|keys| keys.sort_by(|a, b| order.compare(a, b)));
    BucketStat { flushed: sum(&low.flushed, &high.flushed), sketches, age: 0 }
}

/// True if no L0 file has keys of bucket `i`.
fn is_empty(map: &BucketMap, version: &Version, i: usize) -> bool {
    let order = version.order();
    let mut files = version.level(0).files();
    !files.any(|f| map.buckets_of(&f.range, order).contains(&i))
}

/// B2: a change of bounds loses no flow.
///
/// # Errors
/// If the window totals differ.
pub fn keeps_flow(before: &BucketMap, after: &BucketMap) -> Result<(), Violation> {
    match (before.flow_of_all(), after.flow_of_all()) {
        (a, b) if a == b => Ok(()),
        (a, b) => Err(Violation::new("B2", format!("{a} bytes in the window became {b}"))),
    }
}

/// B1: the files of one flush are cut at bounds of its map and nowhere else: no bucket has keys in
/// two of them.
///
/// # Errors
/// The bucket that is in two files.
pub fn flush_is_cut(
    map: &BucketMap,
    files: &[lithify_lsm::FileMeta],
    order: &dyn Comparator,
) -> Result<(), Violation> {
    let mut spans: Vec<_> = files.iter().map(|f| map.buckets_of(&f.range, order)).collect();
    spans.sort_by_key(|s| *s.start());
    match spans.windows(2).find(|w| w[0].end() >= w[1].start()) {
        Some(w) => {
            Err(Violation::new("B1", format!("bucket {} is in two files of a flush", w[1].start())))
        }
        None => Ok(()),
    }
}
