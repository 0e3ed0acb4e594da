//! The operations of each workload, as loops over a [`Lane`].
//!
//! Keeps: buffers are reused, so the loops allocate only where the store's interface does; the
//! model learns of a write after the store acknowledged it.

use anyhow::{Result, anyhow, bail};

use crate::keys::{Permutation, decode_key, encode_key, mix};
use crate::lane::Lane;
use crate::mix::{MixKeys, MixOp, scan_length};
use crate::model::{ABSENT, Due};
use crate::store::{BatchOp, StoreIter};
use crate::workload::Workload;
use crate::ycsb;

/// Entries of a scan between two clock readings.
const SCAN_STEP: u64 = 128;

/// Runs `workload`'s operations in `lane`.
pub(crate) fn drive(workload: Workload, lane: &mut Lane<'_>) -> Result<()> {
    let writers = lane.course.settings.threads as u64;
    let num = lane.course.settings.num();
    match workload {
        Workload::FillSeq => fill(lane, |lane, i| (lane.ops() + i) % num),
        Workload::FillUniqueRandom => {
            let order = Permutation::new(num, lane.course.settings.seed);
            fill(lane, move |lane, i| order.at((lane.ops() + i) % num))
        }
        Workload::FillRandom | Workload::Overwrite => fill(lane, |lane, _| lane.own_key(writers)),
        Workload::OverwriteZipf => {
            // Another order than that of the filling, so that hot keys are not of one age.
            let order = Permutation::new(num, mix(lane.course.settings.seed));
            let Some(zipf) = &lane.course.zipf else { bail!("{workload} has no ranks") };
            fill(lane, move |lane, _| {
                let key = order.at(zipf.pick(&mut lane.rng));
                lane.own_of(key, writers)
            })
        }
        Workload::OverwriteDelete => write_or_delete(lane, writers),
        Workload::DeleteRandom => delete(lane, writers),
        Workload::ReadRandom | Workload::ReadWhileWriting => read(lane),
        Workload::ReadMissing => read_missing(lane),
        Workload::MultiReadRandom => multi_read(lane),
        Workload::ReadSeq => scan(lane, Direction::Forward),
        Workload::ReadReverse => scan(lane, Direction::Backward),
        Workload::SeekRandom => seek(lane),
        Workload::Verify => verify(lane),
        Workload::ReadRandomWriteRandom => read_and_write(lane, writers),
        Workload::MixGraph => mix_graph(lane, writers),
        Workload::YcsbLoad => ycsb::load(lane),
        w if w.is_ycsb() => ycsb::run(lane, w),
        Workload::Compact | Workload::WaitIdle | Workload::Stats => {
            unreachable!("{workload} has no client operations")
        }
        other => unreachable!("{other} is one of YCSB's"),
    }
}

/// The extra thread of `readwhilewriting`: random writes until told to stop.
pub(crate) fn write_beside(lane: &mut Lane<'_>) -> Result<()> {
    fill(lane, |lane, _| lane.any_key())
}

/// Writes the keys that `next(lane, i)` names, where `i` counts inside a batch.
fn fill(lane: &mut Lane<'_>, mut next: impl FnMut(&mut Lane<'_>, u64) -> u64) -> Result<()> {
    if lane.course.settings.batch_size > 1 {
        return fill_batches(lane, next);
    }
    while lane.has_more() {
        let key = next(lane, 0);
        let bytes = put_key(lane, key)?;
        lane.finish(1, bytes);
    }
    Ok(())
}

/// Writes the next version of key number `key`; the bytes carried.
#[inline]
pub(crate) fn put_key(lane: &mut Lane<'_>, key: u64) -> Result<u64> {
    let course = lane.course;
    let version = lane.version(lane.ops());
    lane.set_key(key);
    course.values.make(key, version, &mut lane.value);
    course.store.put(&lane.key, &lane.value, course.settings.wal)?;
    course.model.set(key, version);
    let bytes = (lane.key.len() + lane.value.len()) as u64;
    lane.wrote(bytes);
    Ok(bytes)
}

fn fill_batches(
    lane: &mut Lane<'_>,
    mut next: impl FnMut(&mut Lane<'_>, u64) -> u64,
) -> Result<()> {
    let course = lane.course;
    let (key_size, batch_size) = (course.settings.key_size, course.settings.batch_size);
    let entry_bytes = (key_size + course.settings.value_size) as u64;
    let mut entries: Vec<_> =
        (0..batch_size).map(|_| (0u64, vec![0u8; key_size], Vec::new())).collect();
    while lane.has_more() {
        let n = lane.up_to(batch_size);
        for (i, (number, key, value)) in entries[..n].iter_mut().enumerate() {
            *number = next(lane, i as u64);
            encode_key(*number, key);
            course.values.make(*number, lane.version(lane.ops() + i as u64), value);
        }
        let ops: Vec<_> = entries[..n].iter().map(|(_, k, v)| BatchOp::Put(k, v)).collect();
        course.store.write_batch(&ops, course.settings.wal)?;
        for (i, (number, ..)) in entries[..n].iter().enumerate() {
            course.model.set(*number, lane.version(lane.ops() + i as u64));
        }
        lane.wrote(n as u64 * entry_bytes);
        lane.finish(n as u64, n as u64 * entry_bytes);
    }
    Ok(())
}

fn delete(lane: &mut Lane<'_>, writers: u64) -> Result<()> {
    while lane.has_more() {
        let key = lane.own_key(writers);
        let bytes = delete_key(lane, key)?;
        lane.finish(1, bytes);
    }
    Ok(())
}

/// Deletes key number `key`; the bytes carried.
fn delete_key(lane: &mut Lane<'_>, key: u64) -> Result<u64> {
    let course = lane.course;
    lane.set_key(key);
    course.store.delete(&lane.key, course.settings.wal)?;
    course.model.set(key, ABSENT);
    let bytes = lane.key.len() as u64;
    lane.wrote(bytes);
    Ok(bytes)
}

/// A coin for every operation: delete, or write.
fn write_or_delete(lane: &mut Lane<'_>, writers: u64) -> Result<()> {
    let deletes = lane.course.settings.delete_percent / 100.0;
    while lane.has_more() {
        let key = lane.own_key(writers);
        let bytes = match lane.rng.f64() < deletes {
            true => delete_key(lane, key)?,
            false => put_key(lane, key)?,
        };
        lane.finish(1, bytes);
    }
    Ok(())
}

fn read(lane: &mut Lane<'_>) -> Result<()> {
    let mut value = Vec::new();
    while lane.has_more() {
        let key = lane.any_key();
        let bytes = get_key(lane, key, &mut value)?;
        lane.finish(1, bytes);
    }
    Ok(())
}

/// Looks up key number `key` and judges the answer; the bytes carried.
#[inline]
pub(crate) fn get_key(lane: &mut Lane<'_>, key: u64, value: &mut Vec<u8>) -> Result<u64> {
    let due = lane.due(key);
    lane.set_key(key);
    let found = lane.course.store.get(&lane.key, value)?;
    lane.judge(key, due, found.then_some(value))?;
    lane.found(u64::from(found));
    let value_bytes = if found { value.len() } else { 0 };
    Ok((lane.key.len() + value_bytes) as u64)
}

/// A coin for every operation: read, or write.
fn read_and_write(lane: &mut Lane<'_>, writers: u64) -> Result<()> {
    let reads = lane.course.settings.read_percent / 100.0;
    let mut value = Vec::new();
    while lane.has_more() {
        let bytes = if lane.rng.f64() < reads {
            let key = lane.any_key();
            get_key(lane, key, &mut value)?
        } else {
            let key = lane.own_key(writers);
            put_key(lane, key)?
        };
        lane.finish(1, bytes);
    }
    Ok(())
}

fn mix_graph(lane: &mut Lane<'_>, writers: u64) -> Result<()> {
    let settings = lane.course.settings;
    let keys = |&ranges: &u64| match settings.db_bench_compat {
        true => MixKeys::uniform(settings.num()),
        false => MixKeys::new(settings.num(), ranges, settings.seed),
    };
    let phases: Vec<MixKeys> = settings.mix_ranges.iter().map(keys).collect();
    let mut value = Vec::new();
    while lane.has_more() {
        let phase = &phases[lane.phase(phases.len())];
        let operations = lane.ops() * lane.course.lanes as u64;
        let turn = operations.checked_div(settings.mix_rotate).unwrap_or(0);
        let key = phase.pick(&mut lane.rng, turn);
        let op = settings.mix.op(lane.rng.f64());
        let bytes = match op {
            MixOp::Put => {
                let own = lane.own_of(key, writers);
                put_key(lane, own)?
            }
            MixOp::Get => get_key(lane, key, &mut value)?,
            MixOp::Seek => {
                let entries = scan_length(&mut lane.rng);
                seek_key(lane, key, entries)?
            }
        };
        lane.finish(1, bytes);
    }
    Ok(())
}

fn read_missing(lane: &mut Lane<'_>) -> Result<()> {
    let course = lane.course;
    let mut value = Vec::new();
    lane.key.push(b'0');
    while lane.has_more() {
        let key = lane.any_key();
        lane.set_key(key);
        if course.store.get(&lane.key, &mut value)? {
            bail!("a key that was never written is found (key {key} with one more byte)");
        }
        lane.finish(1, lane.key.len() as u64);
    }
    Ok(())
}

fn multi_read(lane: &mut Lane<'_>) -> Result<()> {
    let course = lane.course;
    let key_size = course.settings.key_size;
    let mut keys = vec![vec![0u8; key_size]; course.settings.batch_size];
    let mut asked = Vec::new();
    let mut values = Vec::new();
    while lane.has_more() {
        let n = lane.up_to(keys.len());
        asked.clear();
        for key in &mut keys[..n] {
            let number = lane.any_key();
            asked.push((number, lane.due(number)));
            encode_key(number, key);
        }
        let refs: Vec<&[u8]> = keys[..n].iter().map(Vec::as_slice).collect();
        course.store.multi_get(&refs, &mut values)?;
        if values.len() != n {
            bail!("multi_get answered {} of {n} keys", values.len());
        }
        let mut bytes = n * key_size;
        for (&(number, due), value) in asked.iter().zip(&values) {
            lane.judge(number, due, value.as_deref())?;
            lane.found(u64::from(value.is_some()));
            bytes += value.as_ref().map_or(0, Vec::len);
        }
        lane.finish(n as u64, bytes as u64);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

fn scan(lane: &mut Lane<'_>, direction: Direction) -> Result<()> {
    let mut iter = lane.course.store.iter()?;
    match direction {
        Direction::Forward => iter.seek_to_first(),
        Direction::Backward => iter.seek_to_last(),
    }
    let mut before = None;
    while iter.valid() && lane.has_more() {
        let (mut entries, mut bytes) = (0, 0);
        let step = lane.up_to(SCAN_STEP as usize) as u64;
        while iter.valid() && entries < step {
            let key = judge_entry(lane, &*iter)?;
            let ordered = match direction {
                Direction::Forward => before.is_none_or(|b| b < key),
                Direction::Backward => before.is_none_or(|b| b > key),
            };
            if !ordered {
                bail!("key {key} comes after key {} in a scan", before.unwrap_or(0));
            }
            before = Some(key);
            entries += 1;
            bytes += (iter.key().len() + iter.value().len()) as u64;
            match direction {
                Direction::Forward => iter.next(),
                Direction::Backward => iter.prev(),
            }
        }
        lane.found(entries);
        lane.count(entries, bytes);
    }
    iter.status()
}

/// Judges the entry under `iter` and returns its key number.
#[inline]
fn judge_entry(lane: &mut Lane<'_>, iter: &dyn StoreIter) -> Result<u64> {
    let number = decode_key(iter.key())
        .ok_or_else(|| anyhow!("a scan finds a key that was never written: {:?}", iter.key()))?;
    // Beside a writer, the iterator may be older than what is due now.
    let due = if lane.course.beside_writer { Due::Unknown } else { lane.due(number) };
    lane.judge(number, due, Some(iter.value()))?;
    Ok(number)
}

fn seek(lane: &mut Lane<'_>) -> Result<()> {
    let entries = lane.course.settings.seek_nexts + 1;
    while lane.has_more() {
        let start = lane.any_key();
        let bytes = seek_key(lane, start, entries)?;
        lane.finish(1, bytes);
    }
    Ok(())
}

/// Seeks key number `start` with a new iterator and reads up to `entries` entries; the bytes
/// carried.
pub(crate) fn seek_key(lane: &mut Lane<'_>, start: u64, entries: u64) -> Result<u64> {
    let course = lane.course;
    lane.set_key(start);
    let mut iter = course.store.iter()?;
    iter.seek(&lane.key);
    let (mut due_from, mut bytes, mut left) = (start, 0, entries);
    while iter.valid() && left > 0 {
        let key = judge_entry(lane, &*iter)?;
        if key < due_from {
            bail!("a seek to key {start} arrives at key {key}");
        }
        lane.judge_gap(due_from, key)?;
        due_from = key + 1;
        bytes += (iter.key().len() + iter.value().len()) as u64;
        lane.found(1);
        left -= 1;
        if left > 0 {
            iter.next();
        }
    }
    iter.status()?;
    if !iter.valid() {
        lane.judge_gap(due_from, course.settings.key_space())?;
    }
    Ok(bytes)
}

fn verify(lane: &mut Lane<'_>) -> Result<()> {
    let mut iter = lane.course.store.iter()?;
    iter.seek_to_first();
    let (mut due_from, mut found) = (0, 0);
    while iter.valid() {
        let key = judge_entry(lane, &*iter)?;
        if key < due_from {
            bail!("key {key} comes twice or out of order");
        }
        lane.judge_gap(due_from, key)?;
        due_from = key + 1;
        found += 1;
        let bytes = iter.key().len() + iter.value().len();
        iter.next();
        lane.found(1);
        if found % SCAN_STEP == 0 {
            lane.count(SCAN_STEP, 0);
        }
        lane.count(0, bytes as u64);
    }
    iter.status()?;
    lane.count(found % SCAN_STEP, 0);
    lane.judge_gap(due_from, lane.course.settings.key_space())
}
