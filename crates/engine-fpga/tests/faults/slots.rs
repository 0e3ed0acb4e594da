//! Slots by themselves: golden ones, corners by name, and random bytes. `REWRITE=1` writes the golden files
//! anew; a changed one is a change of the page and lands with its reason.
#![allow(clippy::disallowed_methods, reason = "golden files are read and written as they are")]

use lithify_base::{Kind, Tag};
use lithify_engine_fpga::card::{Card, Transfer};
use lithify_engine_fpga::faulty::forge;
use lithify_engine_fpga::model::{Cost, run};
use lithify_engine_fpga::stream::*;
use lithify_engine_fpga::{ModelCard, ModelOptions};
use lithify_format::weight::{content, weigh};
use lithify_format::xxph3::xxph3_64;
use lithify_merge::workload::Choices;

use crate::common::*;

/// An entry of an area.
type E = (Vec<u8>, u64, Vec<u8>);

fn put(key: &[u8], seq: u64, value: &[u8]) -> E {
    (key.to_vec(), Tag::new(seq, Kind::Value).0, value.to_vec())
}

fn delete(key: &[u8], seq: u64) -> E {
    (key.to_vec(), Tag::new(seq, Kind::Delete).0, Vec::new())
}

fn marker(key: &[u8], mask: u16, split: bool) -> E {
    (key.to_vec(), MARKER | u64::from(mask) | if split { SPLIT } else { 0 }, Vec::new())
}

fn varint(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Entries with whole keys, but every second one that shares what it can.
fn area(entries: &[E]) -> Vec<u8> {
    let (mut out, mut last) = (Vec::new(), Vec::new());
    for (i, (key, tag, value)) in entries.iter().enumerate() {
        let internal = [&key[..], &tag.to_le_bytes()].concat();
        let shared = match i % 2 {
            0 => 0,
            _ => internal.iter().zip(&last).take_while(|(a, b)| a == b).count(),
        };
        for n in [shared, internal.len() - shared, value.len()] {
            varint(&mut out, n);
        }
        out.extend_from_slice(&internal[shared..]);
        out.extend_from_slice(value);
        last = internal;
    }
    out
}

/// A set in the making.
#[derive(Clone)]
struct Set {
    header: Header,
    snapshots: Vec<u64>,
    /// By data way, its areas and what their descriptors say of counts.
    ways: Vec<Vec<(Vec<u8>, Descriptor)>>,
    replay: Vec<u8>,
    markers: Vec<E>,
}

const WHOLE: Descriptor = Descriptor {
    at: 0,
    bytes: 0,
    skip: 0,
    take: TAKE_ALL,
    expected: 0,
    replay: false,
    markers: false,
    sum: F64::ZERO,
};

impl Set {
    fn new(ways: &[&[E]]) -> Set {
        let areas = |entries: &&[E]| match entries.is_empty() {
            true => Vec::new(),
            false => vec![(area(entries), WHOLE)],
        };
        Set {
            header: Header {
                tag: 0x1122_3344_5566_7788,
                block_lg: 8,
                restart_interval: 4,
                out_bytes: 16 << 10,
                ..Header::default()
            },
            snapshots: Vec::new(),
            ways: ways.iter().map(areas).collect(),
            replay: Vec::new(),
            markers: Vec::new(),
        }
    }

    fn slot(&self) -> Vec<u8> {
        let mut all: Vec<(Vec<u8>, Descriptor)> = self.ways.concat();
        let data = all.len();
        if !self.replay.is_empty() {
            all.push((self.replay.clone(), Descriptor { replay: true, ..WHOLE }));
        }
        if !self.markers.is_empty() {
            all.push((area(&self.markers), Descriptor { markers: true, ..WHOLE }));
        }
        let mut slot = vec![0; beats(DESCRIPTORS_AT + DESCRIPTOR * all.len())];
        put_snapshots(&mut slot, &self.snapshots);
        let mut first = 0;
        for no in 0..WAYS_MAX {
            let count = self.ways.get(no).map_or(0, Vec::len) as u32;
            let used = if no < self.ways.len() { first } else { 0 };
            Way { first: used, count, run: no as u16 * u16::from(count > 0) }.put(&mut slot, no);
            first += count;
        }
        let sides = (all.len() - data) as u32;
        Way { first: if sides == 0 { 0 } else { first }, count: sides, run: 0 }
            .put(&mut slot, WAYS_MAX);
        for (no, (bytes, descriptor)) in all.iter().enumerate() {
            let at = slot.len();
            slot.extend_from_slice(bytes);
            slot.resize(beats(slot.len()), 0);
            let sum = F64::of(&slot[at..]);
            Descriptor { at: at as u32, bytes: bytes.len() as u32, sum, ..*descriptor }
                .put(&mut slot, no);
        }
        Header {
            ways: self.ways.len() as u8,
            snapshots: self.snapshots.len() as u8,
            descriptors: all.len() as u32,
            in_bytes: slot.len() as u32,
            ..self.header
        }
        .seal(&mut slot);
        slot
    }
}

/// What is never written shows.
const UNTOUCHED: u8 = 0xa5;

/// What a unit of N = 8 makes of a slot.
fn merged(input: &[u8], out_bytes: usize) -> (Code, Vec<u8>) {
    let mut out = vec![UNTOUCHED; out_bytes];
    let code = run(input, &mut out, 8, Cost::new(32));
    (code, out)
}

fn status(out: &[u8]) -> Status {
    Status::read(&out[out.len() - STATUS..]).unwrap()
}

/// Records in order and the open one, of an output slot whose sums are checked on the way.
fn records(out: &[u8]) -> Vec<Record> {
    let (end, status) = (out.len(), status(out));
    let at = |no: usize| match no == status.blocks as usize {
        true => end - ENDING,
        false => end - ENDING - RECORD * (no + 1),
    };
    let all = 0..=status.blocks as usize;
    let rows = all.clone().map(|no| &out[at(no)..at(no) + RECORD]);
    assert!(Status::is_summed(&out[end - STATUS..], rows));
    let records: Vec<Record> = all.map(|no| Record::read(&out[at(no)..]).unwrap()).collect();
    for r in &records {
        assert_eq!(F64::of(&out[r.at as usize..][..beats(r.bytes as usize)]), r.sum);
    }
    records
}

/// All entries of an output slot, block by block; the open block is the last.
fn blocks(out: &[u8]) -> Vec<Vec<E>> {
    let mut all = Vec::new();
    for r in records(out) {
        let payload = &out[r.at as usize..][..r.bytes as usize];
        let tail = if r.open { 0 } else { 4 * r.restarts as usize + 4 };
        let (mut rest, mut key) = (&payload[..payload.len() - tail], Vec::new());
        let mut block = Vec::new();
        while !rest.is_empty() {
            let mut next = || {
                let (n, after) = lithify_format::varint::get_u32(rest).unwrap();
                rest = after;
                n as usize
            };
            let (shared, unshared, value) = (next(), next(), next());
            key.truncate(shared);
            key.extend_from_slice(&rest[..unshared]);
            let (user, tag) = key.split_last_chunk::<8>().unwrap();
            let bytes = rest[unshared..unshared + value].to_vec();
            block.push((user.to_vec(), u64::from_le_bytes(*tag), bytes));
            rest = &rest[unshared + value..];
        }
        assert_eq!(block.len(), r.entries as usize);
        all.push(block);
    }
    all
}

fn entries(out: &[u8]) -> Vec<E> {
    blocks(out).concat()
}

/// The four sets of the page's golden files.
fn golden() -> [(&'static str, Set); 4] {
    let plain = Set::new(&[
        &[put(b"apple", 12, b"red"), put(b"cherry", 15, &[7; 200]), delete(b"fig", 14)],
        &[put(b"apple", 4, b"green"), put(b"banana", 3, b""), put(b"fig", 2, b"purple")],
    ]);
    let mut judged = Set::new(&[
        &[delete(b"a", 30), put(b"b", 31, b"new"), delete(b"d", 32), put(b"e", 33, b"e")],
        &[],
        &[
            put(b"a", 9, b"old"),
            delete(b"b", 8),
            put(b"c", 7, &[1; 300]),
            delete(b"d", 6),
            put(b"z", 5, b""),
        ],
    ]);
    judged.snapshots = vec![6, 20];
    judged.header.drop_tombstones = true;
    judged.header.zero_seqs = true;
    judged.header.in_use = 0b001;
    judged.markers =
        vec![marker(b"c", 0b101, false), marker(b"c\0", 0, true), marker(b"y", 0b100, true)];
    let mut replayed = Set::new(&[&[put(b"k5", 9, &[2; 100]), put(b"k6", 8, &[3; 100])]]);
    replayed.replay =
        area(&[put(b"k1", 0, &[1; 40]), put(b"k1\x01\0\0", 3, b""), delete(b"k4", 7)]);
    replayed.header.s_mod_b = 17;
    let mut trimmed = Set::new(&[&[]]);
    let of = |i: u8| put(&[b'x', i], 100 + u64::from(i), &[i; 9]);
    let long: Vec<E> = (0..20).map(of).collect();
    trimmed.ways[0] = vec![
        (area(&long[..7]), Descriptor { skip: 3, expected: 7, ..WHOLE }),
        (area(&long[7..9]), Descriptor { expected: 2, ..WHOLE }),
        (area(&long[9..]), Descriptor { take: 6, expected: 11, ..WHOLE }),
    ];
    [("plain", plain), ("judged", judged), ("replayed", replayed), ("trimmed", trimmed)]
}

fn hex(bytes: &[u8]) -> String {
    let line = |row: &[u8]| row.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Golden files are what other implementations of the page are held against.
#[test]
fn golden_slots() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    for (name, set) in golden() {
        let input = set.slot();
        let (code, out) = merged(&input, set.header.out_bytes as usize);
        assert_eq!(code, Code::Ok, "{name}");
        let mut out = out;
        // Figures of time differ between implementations.
        let end = out.len();
        out[end - 48..].fill(0);
        for (what, bytes) in [("in", &input), ("out", &out)] {
            let path = format!("{dir}/{name}.{what}.hex");
            if std::env::var_os("REWRITE").is_some() {
                std::fs::write(&path, hex(bytes)).unwrap();
            }
            assert_eq!(&unhex(&std::fs::read_to_string(&path).unwrap()), bytes, "{path}");
        }
    }
}

#[test]
fn golden_slots_say_what_the_page_says() {
    let [(_, plain), (_, judged), (_, replayed), (_, trimmed)] = golden();
    let out = merged(&plain.slot(), 16 << 10).1;
    let kept = [
        put(b"apple", 12, b"red"),
        put(b"banana", 3, b""),
        put(b"cherry", 15, &[7; 200]),
        delete(b"fig", 14),
    ];
    assert_eq!(entries(&out), kept);
    assert_eq!(blocks(&out).iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    let s = status(&out);
    let weight = |(key, tag, value): &E| weigh(content(xxph3_64(key), value), Tag(*tag));
    assert_eq!((s.hidden, s.elided, s.zeroed, &s.entries_in[..3]), (2, 0, 0, &[3, 3, 0][..]));
    let gone = [put(b"apple", 4, b"green"), put(b"fig", 2, b"purple")];
    assert_eq!(s.sum_dropped, gone.iter().fold(0u64, |sum, e| sum.wrapping_add(weight(e))));
    let all = kept.iter().chain(&gone);
    assert_eq!(s.sum_in, all.clone().fold(0u64, |sum, e| sum.wrapping_add(weight(e))));
    assert_eq!(s.bytes_in, all.map(|(k, _, v)| (k.len() + 8 + v.len()) as u64).sum::<u64>());
    assert_eq!(
        out[s.payload_bytes as usize..].iter().position(|&b| b != UNTOUCHED).unwrap(),
        out.len() - ENDING - RECORD * s.blocks as usize - s.payload_bytes as usize
    );

    let out = merged(&judged.slot(), 16 << 10).1;
    let kept = [
        // Not free: way 0 is in use before `c`.
        delete(b"a", 30),
        put(b"a", 9, b"old"),
        // Free, but in another stripe than the value above it, and nothing follows: gone.
        put(b"b", 31, b"new"),
        put(b"c", 7, &[1; 300]),
        put(b"e", 33, b"e"),
        put(b"z", 5, b""),
    ];
    assert_eq!(entries(&out), kept);
    let s = status(&out);
    assert_eq!((s.hidden, s.elided, s.zeroed), (0, 3, 0));
    // `c` leaves its cell; the split after `c` is taken by `e`, the one at `y` by `z`.
    assert_eq!(blocks(&out).iter().map(Vec::len).collect::<Vec<_>>(), [4, 1, 1]);

    let out = merged(&replayed.slot(), 16 << 10).1;
    let s = status(&out);
    assert_eq!((s.replayed, s.entries_in[0], entries(&out).len()), (3, 2, 5));
    let first = records(&out)[0];
    assert_eq!((first.s_mod_b, first.no), (17, 0));
    assert!(out.starts_with(&replayed.replay[..20]));

    let out = merged(&trimmed.slot(), 16 << 10).1;
    let keys: Vec<u8> = entries(&out).iter().map(|(key, ..)| key[1]).collect();
    assert_eq!(keys, (3..15).collect::<Vec<u8>>());
}

#[test]
fn f64_is_that_of_the_page() {
    let mut beat = [0; BEAT];
    beat[0] = 1;
    let mut bytes = [0; 16];
    (bytes[0], bytes[8]) = (1, 8);
    assert_eq!(F64::of(&beat).to_bytes(), bytes);
    // An all-ones word counts as zero, and a short stretch as if padded.
    assert_eq!(F64::of(&[0xff; BEAT]), F64::of(&[0; BEAT]));
    assert_eq!(F64::of(&beat[..1]), F64::of(&beat));
    assert_ne!(F64::of(&beat), F64::of(&[beat, [0; BEAT]].concat()));
}

/// Each code, by the smallest set that has it.
#[test]
fn every_code_has_a_set() {
    let one = |e: E| Set::new(&[&[e]]);
    let good = || Set::new(&[&[put(b"a", 5, b"v"), put(b"b", 4, b"w")]]);
    let with = |d: Descriptor| {
        let mut set = good();
        set.ways[0][0].1 = d;
        set
    };
    let raw = |bytes: &[u8]| {
        let mut set = good();
        set.ways[0][0].0 = bytes.to_vec();
        set
    };
    let header = |change: &dyn Fn(&mut Header)| {
        let mut set = good();
        change(&mut set.header);
        set
    };
    let kind = |kind: u64| (b"k".to_vec(), 7 << 8 | kind, Vec::new());
    let side = |markers: Vec<E>| Set { markers, ..good() };
    let sets = [
        (Code::Ok, good()),
        (Code::Ok, one(put(&[7; KEY_MAX], SEQ_END - 1, b""))),
        (Code::Ok, one(put(b"", 0, b""))),
        (Code::Ok, one(put(b"k", 1, &[1; 128]))),
        (Code::Kind, one(kind(2))),
        (Code::Kind, one(kind(7))),
        (Code::KeyLong, one(put(&[7; KEY_MAX + 1], 1, b""))),
        (Code::KeyLong, raw(&[0x80, 0x80, 0x01, 9, 0])),
        (Code::ValueLong, raw(&[0, 9, 0x80, 0x80, 0x80, 0x80, 0x01])),
        (Code::SeqHigh, one(put(b"k", SEQ_END, b""))),
        (Code::DeleteValue, one((b"k".to_vec(), 5 << 8, b"v".to_vec()))),
        (Code::Structure, raw(&[0])),
        (Code::Structure, raw(&[0, 9, 1, b'k', 1, 1, 0, 0, 0, 0, 0, 0])),
        (Code::Structure, raw(&[1, 9, 0, b'k', 1, 1, 0, 0, 0, 0, 0, 0])),
        (Code::Structure, raw(&[0, 7, 0, 1, 1, 0, 0, 0, 0, 0])),
        (Code::Structure, side(vec![put(b"m", 3, b"")])),
        (Code::Ok, with(Descriptor { expected: 2, ..WHOLE })),
        (Code::Ok, with(Descriptor { skip: 2, ..WHOLE })),
        (Code::Ok, with(Descriptor { skip: 1, take: 1, expected: 9, ..WHOLE })),
        (Code::Count, with(Descriptor { expected: 3, ..WHOLE })),
        (Code::Count, with(Descriptor { skip: 3, ..WHOLE })),
        (Code::Count, with(Descriptor { take: 3, ..WHOLE })),
        (Code::Order, Set::new(&[&[put(b"b", 4, b""), put(b"a", 5, b"")]])),
        (Code::Order, Set::new(&[&[put(b"a", 4, b""), put(b"a", 5, b"")]])),
        (Code::Order, Set::new(&[&[put(b"a", 4, b""), put(b"a", 4, b"")]])),
        (Code::Ok, Set::new(&[&[put(b"a", 4, b"")], &[put(b"a", 4, b"")]])),
        (Code::Order, Set { replay: area(&[put(b"x", 1, b"")]), ..good() }),
        (Code::OutFull, header(&|h| h.out_bytes = 384)),
        (Code::Header, header(&|h| h.block_lg = 5)),
        (Code::Header, header(&|h| h.block_lg = 17)),
        (Code::Header, header(&|h| h.restart_interval = 0)),
        (Code::Header, header(&|h| h.s_mod_b = 256)),
        (Code::Header, Set::new(&[&[], &[], &[], &[], &[], &[], &[], &[], &[]])),
    ];
    for (i, (code, set)) in sets.iter().enumerate() {
        let (seen, out) = merged(&set.slot(), set.header.out_bytes as usize);
        assert_eq!(seen, *code, "set {i}");
        assert_eq!((status(&out).code, status(&out).tag), (*code, set.header.tag), "set {i}");
    }
    let mut slot = good().slot();
    let last = slot.len() - BEAT;
    slot[last] ^= 1;
    assert_eq!(merged(&slot, 16 << 10).0, Code::Link);
    slot[last] ^= 1;
    slot[DESCRIPTORS_AT] ^= 64;
    assert_eq!(merged(&slot, 16 << 10).0, Code::Header);
}

/// A set of `n` versions of one key, with a snapshot below each: nothing may go, and blocks share the key.
#[test]
fn versions_of_one_key_over_many_blocks() {
    let versions: Vec<E> = (0..16).rev().map(|i| put(b"key", 10 * i + 5, &[i as u8; 90])).collect();
    let mut set = Set::new(&[&versions[..8], &versions[8..]]);
    set.snapshots = (1..=16).map(|i| 10 * i - 1).collect();
    let out = merged(&set.slot(), 16 << 10).1;
    assert_eq!(entries(&out), versions);
    assert!(blocks(&out).len() > 5);
    set.snapshots.truncate(3);
    let out = merged(&set.slot(), 16 << 10).1;
    assert_eq!(status(&out).hidden, 12);
}

/// Deletes that wait: more than one stripe of them, freed by what follows or not.
#[test]
fn deletes_wait_for_what_follows() {
    let deletes: Vec<E> = (0..17).rev().map(|i| delete(b"k", 10 * i + 5)).collect();
    let mut set = Set::new(&[&deletes]);
    set.snapshots = (1..=16).map(|i| 10 * i - 1).collect();
    set.header.drop_tombstones = true;
    let out = merged(&set.slot(), 16 << 10).1;
    assert_eq!((entries(&out).len(), status(&out).elided), (0, 17));
    assert_eq!(status(&out).payload_bytes, 0);
    let open = records(&out)[0];
    assert_eq!((open.open, open.bytes, open.entries, open.ended), (true, 0, 0, false));
    // A value at the bottom, of another way, keeps all of them; that it is free does not matter.
    let mut kept = Set::new(&[&deletes[..16], &[put(b"k", 3, b"v")]]);
    (kept.snapshots, kept.header.drop_tombstones) = (set.snapshots.clone(), true);
    let out = merged(&kept.slot(), 16 << 10).1;
    assert_eq!((entries(&out).len(), status(&out).elided, status(&out).hidden), (17, 0, 0));
}

/// Whatever lies in the input slot: a status, and nothing written outside of what the page names.
#[test]
fn random_slots_end_with_a_status() {
    let n = seeds("LITHIFY_FPGA_HOSTILE", 4000);
    let mut codes = [0u64; 256];
    for seed in 0..n {
        let dice = &mut Choices::new(seed);
        let sets = golden();
        let mut slot = sets[dice.below(4)].1.slot();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(slot.len());
            slot[at] = dice.bits() as u8;
        }
        // With sums that are right again, more is read than the first sum.
        if !dice.one_in(8) {
            reseal(&mut slot);
        }
        let (code, out) = merged(&slot, 16 << 10);
        codes[code as usize] += 1;
        let status = status(&out);
        assert_eq!(status.code, code);
        if code == Code::Ok {
            entries(&out);
            // And what is forged is summed as if it were right.
            let mut forged = out.clone();
            if forge(&mut forged, dice.bits()) {
                assert_ne!(forged, out);
                records(&forged);
            }
        }
    }
    let seen = Code::ALL.into_iter().filter(|&code| codes[code as usize] > 0).count();
    assert!(seen >= 8 && codes[0] > n / 20, "{codes:?}");
}

/// The same through a card: random slots, sizes and addresses that a command may have. Each ends within a bound of
/// cycles, with a status in its place or none, and nothing else in the card's memory changes.
#[test]
fn random_commands_write_nothing_outside_of_their_slot() {
    const MEMORY: usize = 64 << 10;
    let n = seeds("LITHIFY_FPGA_HOSTILE", 4000) / 4;
    let mut card = ModelCard::new(ModelOptions { memory: MEMORY, ..model(1, 8, 32) });
    card.write(0, register::CONTROL, register::ENABLE);
    let mut ended = Vec::new();
    let (mut codes, mut refused) = ([0u64; 256], 0);
    for seed in 0..n {
        let dice = &mut Choices::new(seed);
        let mut memory = vec![UNTOUCHED; MEMORY];
        let sets = golden();
        let mut slot = sets[dice.below(4)].1.slot();
        for _ in 0..dice.below(4) {
            let at = dice.below(slot.len());
            slot[at] = dice.bits() as u8;
        }
        match dice.below(3) {
            // Random from its first byte.
            0 => {
                let bytes = 512 + 64 * dice.below(64);
                slot = dice.bytes(bytes);
            }
            // A sound one says its true sizes.
            _ => reseal(&mut slot),
        }
        let input = 64 * dice.below(64);
        memory[input..input + slot.len()].copy_from_slice(&slot);
        let said = u32::from_le_bytes(slot[36..40].try_into().unwrap());
        let out_bytes = if dice.one_in(4) { 1024 + 64 * dice.below(64) as u32 } else { said };
        let mut command = Command {
            input: input as u64,
            output: (32 << 10) + 64 * dice.below(64) as u64,
            in_bytes: slot.len() as u32,
            out_bytes,
            tag: u64::from_le_bytes(slot[8..16].try_into().unwrap()),
        };
        if dice.one_in(8) {
            command.output = dice.bits();
        }
        let no = seed as u32;
        card.send(Transfer { id: 0, at: 0, buffer: memory.clone() });
        card.poll(0, &mut ended);
        for (i, word) in (0u32..).zip(command.to_words()) {
            card.write(0, Command::register(no) + 4 * i, word);
        }
        card.write(0, register::DOORBELL, no.wrapping_add(1));
        card.poll(1_000_000, &mut ended);
        assert_eq!(card.read(0, register::DONE), no.wrapping_add(1), "seed {seed} does not end");
        let end =
            usize::try_from(command.output).ok().and_then(|at| at.checked_add(out_bytes as usize));
        let own = match end.filter(|&end| end <= MEMORY && command.is_sound()) {
            Some(end) => command.output as usize..end,
            None => 0..0,
        };
        let (before, after) = (memory.as_slice(), card.memory());
        assert!(before[..own.start] == after[..own.start], "seed {seed}: before the slot");
        assert!(before[own.end..] == after[own.end..], "seed {seed}: behind the slot");
        if own.is_empty() {
            refused += 1;
            continue;
        }
        let status = status(&after[own]);
        assert_eq!(status.tag, command.tag, "seed {seed}");
        codes[status.code as usize] += 1;
    }
    let seen = Code::ALL.into_iter().filter(|&code| codes[code as usize] > 0).count();
    assert!(seen >= 5 && codes[0] > n / 20 && refused > n / 20, "{refused} {codes:?}");
}

/// Makes the sums of an input slot right.
fn reseal(slot: &mut [u8]) {
    let n = u32::from_le_bytes(slot[28..32].try_into().unwrap()).min(8) as usize;
    for no in 0..n {
        let d = Descriptor::read(slot, no);
        let area = d.at as usize..(d.at as usize).saturating_add(beats(d.bytes as usize));
        if let Some(bytes) = slot.get(area) {
            let sum = F64::of(bytes);
            Descriptor { sum, ..d }.put(slot, no);
        }
    }
    let end = beats(DESCRIPTORS_AT + DESCRIPTOR * n);
    slot[48..64].fill(0);
    let sum = F64::of(&slot[..end]).to_bytes();
    slot[48..64].copy_from_slice(&sum);
}
