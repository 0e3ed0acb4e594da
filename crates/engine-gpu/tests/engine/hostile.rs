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
    for seed in 0..seeds(150) {
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
    assert!(equal > 10 && bad > 10, "{equal} {left} {bad}");
}
