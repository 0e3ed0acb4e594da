//! Blocks whose bytes were changed and whose sums are right: the device makes of them what the CPU makes, or leaves them to it;
//! and kernels stay inside of what they were given, which the sanitizers watch (`cargo xtask gpu sanitize`).

use std::sync::Arc;

use lithify_engine::conformance::run;
use lithify_engine::{CpuEngine, Engine};
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::compress::{Codec, Compressor};
use lithify_merge::Recipe;
use lithify_merge::workload::{Case, Choices, Features};

use crate::common::*;

/// What stands in a block at a place that matters: lengths, restart points, their number.
fn changed(c: &mut Choices, payload: &mut Vec<u8>) {
    for _ in 0..1 + c.below(2) {
        let at = match c.below(3) {
            0 => c.below(payload.len()),
            1 => c.below(payload.len().min(12)),
            _ => payload.len() - 1 - c.below(payload.len().min(12)),
        };
        match c.below(6) {
            0 => payload[at] = c.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            1 => payload[at] = payload[at].wrapping_add(1),
            2 => payload[at] = payload[at].wrapping_sub(1),
            3 => payload.truncate(at.max(4)),
            4 => payload.insert(at, c.bits() as u8),
            _ => payload[at] ^= 1 << c.below(8),
        }
    }
}

/// Changes a block of a case, and gives it the sum of its bytes.
fn damage(c: &mut Choices, case: &mut Case) {
    let n = case.blocks.iter().flatten().count();
    let at = c.below(n);
    let Some(block) = case.blocks.iter_mut().flatten().nth(at) else { return };
    let slice = &mut block.slice;
    let Ok(plain) = slice.plain() else { return };
    let mut payload = plain.into_owned();
    changed(c, &mut payload);
    let codec = c.pick(&[Codec::None, Codec::Lz4]);
    let mut bytes = Vec::new();
    let type_byte = Compressor::new(codec, 0).unwrap().append(&payload, &mut bytes);
    slice.checksum = ChecksumKind::Xxh3;
    let sum = raw_sum(slice.checksum, &bytes, type_byte).wrapping_add(slice.modifier);
    bytes.push(type_byte);
    bytes.extend_from_slice(&sum.to_le_bytes());
    slice.bytes = bytes.into();
    if c.one_in(2) {
        (slice.entries, slice.key_bytes) = (0, 0);
    }
}

#[test]
fn changed_blocks_cost_time_only() {
    let engine = engine();
    let [mut equal, mut left, mut bad] = [0; 3];
    let n = seeds(150);
    for seed in 0..n {
        let c = &mut Choices::new(seed);
        let features = c.pick(&[Features::Device, Features::Lz4]);
        let mut case = Case::with(seed, SMALL, features).unwrap();
        if case.blocks.iter().flatten().next().is_none() {
            continue;
        }
        damage(c, &mut case);
        let by = |engine: &dyn Engine, recipe: &Arc<Recipe>| {
            run(engine, &FixedRt, recipe, case.sets(4000), false)
        };
        match (by(&engine, &case.recipe), by(&CpuEngine, &case.recipe)) {
            (Ok(here), Ok(cpu)) => {
                assert!(here.output == cpu.output && here.ledger == cpu.ledger, "seed {seed}");
                equal += 1;
            }
            (Err(_), Ok(_)) => left += 1,
            (Err(_), Err(_)) => bad += 1,
            (Ok(_), Err(e)) => panic!("seed {seed}: the CPU refuses what the device takes: {e}"),
        }
        assert_eq!(figure(&engine, "device_lost"), 0, "seed {seed}: {:?}", engine.evidence());
    }
    println!("{equal} blocks are taken as by the CPU, {left} left to it, {bad} refused by both");
    assert!(equal > n / 15 && bad > n / 15, "{equal} {left} {bad}");
}

/// Most memory that this process has had at once, bytes.
#[allow(clippy::disallowed_methods, reason = "asks the system about this process")]
fn memory_most() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Blocks may say that they hold far more entries than they have bytes, as compressed ones do: what the device could never
/// take is refused before tables are made for it.
#[test]
fn entries_that_are_only_claimed_take_no_memory() {
    let engine = engine();
    let mut case = Case::uniform(3, 1, 4_000, 16, 100).unwrap();
    let entries = 30_000_000u32;
    // An LZ4 block of that size, as far as it can be seen without decoding it.
    let size = 3 * entries;
    let mut bytes = vec![0; size as usize / 255 + 8];
    let varint: Vec<u8> =
        (0..4).map(|i| (size >> (7 * i)) as u8 & 0x7f | u8::from(i < 3) << 7).collect();
    bytes[..4].copy_from_slice(&varint);
    let sum = raw_sum(ChecksumKind::Xxh3, &bytes, Codec::Lz4 as u8);
    bytes.push(Codec::Lz4 as u8);
    bytes.extend_from_slice(&sum.to_le_bytes());
    let bytes = lithify_merge::Bytes::from(bytes);
    for block in case.blocks.iter_mut().flatten() {
        (block.slice.bytes, block.slice.checksum) = (bytes.clone(), ChecksumKind::Xxh3);
        (block.slice.entries, block.slice.key_bytes) = (entries, 8 * u64::from(entries));
        block.slice.modifier = 0;
    }
    let sets = case.sets(u64::MAX);
    let blocks = sets[0].runs[0].blocks.len() as u64;
    assert!(blocks > 30, "{blocks}");
    let blocks: Arc<[_]> = sets[0].runs[0].blocks[..30].to_vec().into();
    let mut set = sets[0].clone();
    set.runs[0].blocks = blocks;
    let before = memory_most();
    let refused = run(&engine, &FixedRt, &case.recipe, vec![set], true).unwrap_err();
    assert!(refused.to_string().contains("of the device"), "{refused}");
    let grown = memory_most() - before;
    assert!(grown < 1 << 30, "{grown} bytes");
}
