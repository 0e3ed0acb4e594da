//! Anything may lie in the input slot of a command: the unit answers within a bound, writes nothing outside of the
//! output slot, and then does a good set as if nothing had been. Of the model; `hw/tb/seeds.py` does the same with the RTL.
#![allow(clippy::disallowed_methods, reason = "golden files are read as they are")]

use lithify_engine_fpga::card::{Card, Transfer};
use lithify_engine_fpga::stream::*;
use lithify_engine_fpga::{ModelCard, ModelOptions};
use lithify_merge::workload::Choices;

const INPUT: u64 = 1 << 16;
const OUTPUT: u64 = 1 << 18;
const MEMORY: usize = 1 << 19;
/// Cycles after which a unit has hung: a set of some KiB takes a few thousand.
const BOUND: u64 = 1 << 20;
/// What is never written shows.
const UNTOUCHED: u8 = 0xa5;

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A card with one unit, and commands so far.
struct Bench {
    card: ModelCard,
    commands: u32,
}

impl Bench {
    fn new() -> Bench {
        let options = ModelOptions { units: 1, memory: MEMORY, ..ModelOptions::default() };
        let mut card = ModelCard::new(options);
        card.write(0, register::CONTROL, register::ENABLE);
        Bench { card, commands: 0 }
    }

    /// Runs a slot; all of the output slot, or none if the unit says that it made no record.
    fn run(&mut self, slot: &[u8], out_bytes: u32, tag: u64) -> Option<Vec<u8>> {
        let mut ended = Vec::new();
        self.card.send(Transfer { id: 0, at: 0, buffer: vec![UNTOUCHED; MEMORY] });
        self.card.send(Transfer { id: 1, at: INPUT, buffer: slot.to_vec() });
        self.card.poll(0, &mut ended);
        let before = self.card.memory().to_vec();
        let in_bytes = slot.len() as u32;
        let command = Command { input: INPUT, output: OUTPUT, in_bytes, out_bytes, tag };
        let at = Command::register(self.commands);
        for (i, word) in command.to_words().into_iter().enumerate() {
            self.card.write(0, at + 4 * i as u32, word);
        }
        self.card.write(0, register::PENDING, u32::MAX);
        self.commands += 1;
        self.card.write(0, register::DOORBELL, self.commands);
        let mut cycles = 0;
        while self.card.read(0, register::DONE) != self.commands {
            assert!(cycles < BOUND, "the unit hangs");
            self.card.poll(1000, &mut ended);
            cycles += 1000;
        }
        let silent = self.card.read(0, register::PENDING) & register::NO_RECORD != 0;
        let after = self.card.memory();
        let slot = OUTPUT as usize..OUTPUT as usize + out_bytes as usize;
        assert_eq!(before[..slot.start], after[..slot.start], "written below the output slot");
        assert_eq!(before[slot.end..], after[slot.end..], "written above the output slot");
        (!silent).then(|| after[slot].to_vec())
    }
}

/// A slot with something wrong, and the size of its output.
fn spoiled(dice: &mut Choices, good: &[u8]) -> (Vec<u8>, u32) {
    let mut slot = good.to_vec();
    let mut out_bytes = u32::from_le_bytes(good[36..40].try_into().unwrap());
    let sealed = !dice.one_in(4);
    match dice.below(5) {
        0 => slot.iter_mut().for_each(|byte| *byte = dice.bits() as u8),
        1 => slot.truncate((slot.len() / BEAT / 2).max(8) * BEAT),
        2 => {
            out_bytes = (1024 + BEAT * dice.below(8)) as u32;
            slot[36..40].copy_from_slice(&out_bytes.to_le_bytes());
        }
        // From the ways on, and anywhere.
        from => {
            for _ in 0..=dice.below(6) {
                let at = if from == 3 { WAYS_AT } else { 0 };
                let at = at + dice.below(slot.len() - at);
                slot[at] = dice.bits() as u8;
            }
        }
    }
    let n = u32::from_le_bytes(slot[28..32].try_into().unwrap()) as usize;
    if sealed && n <= (slot.len() - DESCRIPTORS_AT) / DESCRIPTOR {
        for no in 0..n {
            let d = Descriptor::read(&slot, no);
            let area = d.at as usize..(d.at as usize).saturating_add(beats(d.bytes as usize));
            if let Some(bytes) = slot.get(area) {
                let sum = F64::of(bytes);
                Descriptor { sum, ..d }.put(&mut slot, no);
            }
        }
        let end = beats(DESCRIPTORS_AT + DESCRIPTOR * n).min(slot.len());
        slot[48..64].fill(0);
        let sum = F64::of(&slot[..end]).to_bytes();
        slot[48..64].copy_from_slice(&sum);
    }
    (slot, out_bytes)
}

#[test]
fn a_unit_survives_anything_in_its_slot() {
    let seeds = std::env::var("LITHIFY_FPGA_SPOILED").ok().and_then(|n| n.parse().ok());
    let sets = ["judged", "plain", "replayed", "trimmed"]
        .map(|name| (golden(&format!("{name}.in")), golden(&format!("{name}.out"))));
    let mut bench = Bench::new();
    let mut codes = [0u32; 256];
    for seed in 0..seeds.unwrap_or(400) {
        let dice = &mut Choices::new(seed);
        let (good, wanted) = &sets[dice.below(sets.len())];
        let tag = u64::from_le_bytes(good[8..16].try_into().unwrap());
        let (slot, out_bytes) = spoiled(dice, good);
        if let Some(out) = bench.run(&slot, out_bytes, tag) {
            let status = Status::read(&out[out.len() - STATUS..]).unwrap();
            assert_eq!(status.tag, tag, "seed {seed}");
            codes[status.code as usize] += 1;
        }
        let made = bench.run(good, wanted.len() as u32, tag).unwrap();
        // Figures of time are at the end of the status record.
        let timeless = wanted.len() - 48;
        assert!(made[..timeless] == wanted[..timeless], "a good set behind seed {seed}");
    }
    let seen = codes.iter().filter(|&&n| n > 0).count();
    assert!(seen >= 6, "codes of the status records: {seen}");
}
