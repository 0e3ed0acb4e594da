//! The stream of `docs/formats/hw-stream.md`: what lies where in the slots of a card's memory and in the
//! registers of a unit, version 1.
//!
//! Keeps: writing and reading are each other's inverse, any bytes are safe to read, and every number of the
//! page stands here once, for the driver and for the model.
//! Leaves to others: what the fields mean (`stage` writes them, `model` obeys them, `session` reads what came
//! out).
//!
//! Worked example: the one beat whose first word is 1 and whose other words are 0 has the F64 A = 1, B = 8.

use lithify_base::{Error, ErrorKind, Result};

/// Bytes of a beat. Slots, areas, payloads and records start at multiples of it.
pub const BEAT: usize = 64;
/// Version of the page.
pub const VERSION: u16 = 1;
/// Data ways that the tables have rows for; the side way is the row behind them.
pub const WAYS_MAX: usize = 16;
/// Snapshots that the tables have room for.
pub const SNAPSHOTS_MAX: usize = 16;
/// Longest user key, bytes.
pub const KEY_MAX: usize = 240;
/// Values are shorter than this.
pub const VALUE_END: u64 = 1 << 28;
/// Sequence numbers are below this: the upper half of a tag must not be all ones.
pub const SEQ_END: u64 = (1 << 56) - (1 << 24);
/// Most bytes of an entry area.
pub const AREA_MAX: usize = (1 << 28) + (1 << 20);
/// What `take` has for all entries there are; counts in descriptors are below it.
pub const TAKE_ALL: u32 = (1 << 20) - 1;
/// Most restart points of a block.
pub const RESTARTS_MAX: usize = 1024;
/// Where the tables of an input slot are.
pub const SNAPSHOTS_AT: usize = 64;
/// As [`SNAPSHOTS_AT`].
pub const WAYS_AT: usize = 192;
/// As [`SNAPSHOTS_AT`].
pub const DESCRIPTORS_AT: usize = 512;
/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 32;
/// Bytes of a block record and of the open record.
pub const RECORD: usize = 64;
/// Bytes of the status record.
pub const STATUS: usize = 256;
/// Bytes at the end of an output slot that are no block records.
pub const ENDING: usize = STATUS + RECORD;
/// A marker's tag has all ones in its upper half.
pub const MARKER: u64 = 0xffff_ffff_0000_0000;
/// The bit of a marker's tag that says that a split lies here.
pub const SPLIT: u64 = 1 << 16;

const HEADER_MAGIC: [u8; 4] = *b"LSET";
const BLOCK_MAGIC: [u8; 4] = *b"LBLK";
const OPEN_MAGIC: [u8; 4] = *b"LOPN";
const STATUS_MAGIC: [u8; 4] = *b"LSTA";
const SUM_AT: usize = 48;

/// `n` rounded up to whole beats.
pub const fn beats(n: usize) -> usize {
    n.next_multiple_of(BEAT)
}

/// The sum that guards links and card memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F64 {
    a: u64,
    b: u64,
}

impl F64 {
    /// The sum of nothing, and of zeros.
    pub const ZERO: F64 = F64 { a: 0, b: 0 };

    /// The sum of a stretch of beats. Bytes that are missing from the last beat count as zeros.
    pub fn of(bytes: &[u8]) -> F64 {
        let mut sum = F64::default();
        sum.add(bytes);
        F64::read(&sum.to_bytes())
    }

    fn read(bytes: &[u8]) -> F64 {
        F64 { a: u64_at(bytes, 0), b: u64_at(bytes, 8) }
    }

    /// Goes on with more beats.
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        let mut last = [0; BEAT];
        let missing = beats(bytes.len()) - bytes.len() + rest.len();
        last[..rest.len()].copy_from_slice(rest);
        last[..missing].as_chunks::<8>().0.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
    }

    #[inline(always)]
    fn word(&mut self, w: u64) {
        self.a = add_mod(self.a, w);
        self.b = add_mod(self.b, self.a);
    }

    /// As it is stored: A, then B.
    pub fn to_bytes(self) -> [u8; 16] {
        // All ones stand for zero until here.
        let canon = |x: u64| if x == u64::MAX { 0 } else { x };
        let mut out = [0; 16];
        out[..8].copy_from_slice(&canon(self.a).to_le_bytes());
        out[8..].copy_from_slice(&canon(self.b).to_le_bytes());
        out
    }
}

/// Sum modulo 2^64 - 1.
#[inline(always)]
fn add_mod(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u64::from(carry)
}

fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    out[at..at + N].copy_from_slice(&bytes);
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    chunk.copied().unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(get(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

/// The first beat of an input slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Rows of the way table that are data ways.
    pub ways: u8,
    /// How many snapshots there are.
    pub snapshots: u8,
    /// Echoed in every record.
    pub tag: u64,
    /// A block has two to the power of this logical bytes.
    pub block_lg: u8,
    /// D3, D4.
    pub drop_tombstones: bool,
    /// D4.
    pub zero_seqs: bool,
    /// Entries per restart point.
    pub restart_interval: u16,
    /// S mod B where the output begins.
    pub s_mod_b: u32,
    /// By way, older data in use before the first marker.
    pub in_use: u16,
    /// Descriptors of all ways.
    pub descriptors: u32,
    /// Bytes of the input slot.
    pub in_bytes: u32,
    /// Bytes of the output slot.
    pub out_bytes: u32,
}

impl Header {
    /// Writes it to the start of `slot`, and the sum of header and tables, which must be there already.
    pub fn seal(&self, slot: &mut [u8]) {
        slot[..BEAT].fill(0);
        put(slot, 0, HEADER_MAGIC);
        put(slot, 4, VERSION.to_le_bytes());
        (slot[6], slot[7]) = (self.ways, self.snapshots);
        put(slot, 8, self.tag.to_le_bytes());
        (slot[16], slot[17]) =
            (self.block_lg, u8::from(self.drop_tombstones) | u8::from(self.zero_seqs) << 1);
        put(slot, 18, self.restart_interval.to_le_bytes());
        put(slot, 20, self.s_mod_b.to_le_bytes());
        put(slot, 24, self.in_use.to_le_bytes());
        put(slot, 28, self.descriptors.to_le_bytes());
        put(slot, 32, self.in_bytes.to_le_bytes());
        put(slot, 36, self.out_bytes.to_le_bytes());
        let sum = F64::of(&slot[..self.tables_end()]);
        put(slot, SUM_AT, sum.to_bytes());
    }

    /// Where header and tables end, padded to a beat.
    pub fn tables_end(&self) -> usize {
        beats(DESCRIPTORS_AT + self.descriptors as usize * DESCRIPTOR)
    }

    /// Reads the header of an input slot; none if it is not one of this version, or the sum over it and the
    /// tables is wrong.
    pub fn read(slot: &[u8]) -> Option<Header> {
        if get::<4>(slot, 0) != HEADER_MAGIC || u16_at(slot, 4) != VERSION {
            return None;
        }
        let header = Header {
            ways: *slot.get(6)?,
            snapshots: *slot.get(7)?,
            tag: u64_at(slot, 8),
            block_lg: *slot.get(16)?,
            drop_tombstones: slot.get(17)? & 1 != 0,
            zero_seqs: slot.get(17)? & 2 != 0,
            restart_interval: u16_at(slot, 18),
            s_mod_b: u32_at(slot, 20),
            in_use: u16_at(slot, 24),
            descriptors: u32_at(slot, 28),
            in_bytes: u32_at(slot, 32),
            out_bytes: u32_at(slot, 36),
        };
        let tables = slot.get(..header.tables_end())?;
        let mut first: [u8; BEAT] = get(slot, 0);
        first[SUM_AT..].fill(0);
        let mut sum = F64::of(&first);
        sum.add(tables.get(BEAT..)?);
        (sum.to_bytes() == get(slot, SUM_AT)).then_some(header)
    }
}

/// Writes the numbers of snapshots; the places behind them are all ones.
pub fn put_snapshots(slot: &mut [u8], snapshots: &[u64]) {
    for i in 0..SNAPSHOTS_MAX {
        let seq = snapshots.get(i).copied().unwrap_or(u64::MAX);
        put(slot, SNAPSHOTS_AT + 8 * i, seq.to_le_bytes());
    }
}

/// The numbers of snapshots, all places.
pub fn snapshots(slot: &[u8]) -> [u64; SNAPSHOTS_MAX] {
    std::array::from_fn(|i| u64_at(slot, SNAPSHOTS_AT + 8 * i))
}

/// A row of the way table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Its first descriptor.
    pub first: u32,
    /// How many follow each other from there.
    pub count: u32,
    /// The run it is of, for people.
    pub run: u16,
}

impl Way {
    /// Writes row `no`; that behind all data ways is the side way.
    pub fn put(&self, slot: &mut [u8], no: usize) {
        let at = WAYS_AT + 16 * no;
        slot[at..at + 16].fill(0);
        put(slot, at, self.first.to_le_bytes());
        put(slot, at + 4, self.count.to_le_bytes());
        put(slot, at + 8, self.run.to_le_bytes());
        slot[at + 10] = u8::from(no == WAYS_MAX);
    }
    /// Row `no`; none if its kind is wrong.
    pub fn read(slot: &[u8], no: usize) -> Option<Way> {
        let at = WAYS_AT + 16 * no;
        let way =
            Way { first: u32_at(slot, at), count: u32_at(slot, at + 4), run: u16_at(slot, at + 8) };
        (*slot.get(at + 10)? == u8::from(no == WAYS_MAX)).then_some(way)
    }
}

/// What is known of an entry area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Where it starts in the input slot.
    pub at: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Entries left out.
    pub skip: u32,
    /// Entries taken after these; [`TAKE_ALL`] for all there are.
    pub take: u32,
    /// Entries of the area; 0 if unknown.
    pub expected: u32,
    /// Its entries are put out again.
    pub replay: bool,
    /// Its entries are markers.
    pub markers: bool,
    /// The sum of its beats.
    pub sum: F64,
}

impl Descriptor {
    /// Writes descriptor `no`.
    pub fn put(&self, slot: &mut [u8], no: usize) {
        put(slot, DESCRIPTORS_AT + DESCRIPTOR * no, self.to_bytes());
    }
    /// As it lies in a slot.
    pub fn to_bytes(&self) -> [u8; DESCRIPTOR] {
        let counts = [self.skip, self.take, self.expected].map(|n| u64::from(n & TAKE_ALL));
        let bits = counts[0]
            | counts[1] << 20
            | counts[2] << 40
            | u64::from(self.replay) << 60
            | u64::from(self.markers) << 61;
        let mut row = [0; DESCRIPTOR];
        put(&mut row, 0, self.at.to_le_bytes());
        put(&mut row, 4, self.bytes.to_le_bytes());
        put(&mut row, 8, bits.to_le_bytes());
        put(&mut row, 16, self.sum.to_bytes());
        row
    }
    /// Descriptor `no`.
    pub fn read(slot: &[u8], no: usize) -> Descriptor {
        let at = DESCRIPTORS_AT + DESCRIPTOR * no;
        let bits = u64_at(slot, at + 8);
        let count = |from: u32| (bits >> from) as u32 & TAKE_ALL;
        Descriptor {
            at: u32_at(slot, at),
            bytes: u32_at(slot, at + 4),
            skip: count(0),
            take: count(20),
            expected: count(40),
            replay: bits >> 60 & 1 != 0,
            markers: bits >> 61 & 1 != 0,
            sum: F64 { a: u64_at(slot, at + 16), b: u64_at(slot, at + 24) },
        }
    }
}

/// What is known of a payload: a finished block, or the open one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// It is the open block.
    pub open: bool,
    /// Where the payload starts in the output slot.
    pub at: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Entries.
    pub entries: u32,
    /// The sum of its beats.
    pub sum: F64,
    /// The set's.
    pub tag: u64,
    /// Its number, from 0.
    pub no: u32,
    /// Restart points.
    pub restarts: u32,
    /// S mod B at its first entry.
    pub s_mod_b: u32,
    /// Of the open block: the grid has ended it.
    pub ended: bool,
}

impl Record {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        put(&mut out, 0, if self.open { OPEN_MAGIC } else { BLOCK_MAGIC });
        put(&mut out, 4, self.at.to_le_bytes());
        put(&mut out, 8, self.bytes.to_le_bytes());
        put(&mut out, 12, self.entries.to_le_bytes());
        put(&mut out, 16, self.sum.to_bytes());
        put(&mut out, 32, self.tag.to_le_bytes());
        put(&mut out, 40, self.no.to_le_bytes());
        put(&mut out, 44, self.restarts.to_le_bytes());
        put(&mut out, 48, self.s_mod_b.to_le_bytes());
        put(&mut out, 52, u32::from(self.ended).to_le_bytes());
        out
    }
    /// Reads a record; none if it is of neither kind.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let open = match get::<4>(bytes, 0) {
            BLOCK_MAGIC => false,
            OPEN_MAGIC => true,
            _ => return None,
        };
        Some(Record {
            open,
            at: u32_at(bytes, 4),
            bytes: u32_at(bytes, 8),
            entries: u32_at(bytes, 12),
            sum: F64 { a: u64_at(bytes, 16), b: u64_at(bytes, 24) },
            tag: u64_at(bytes, 32),
            no: u32_at(bytes, 40),
            restarts: u32_at(bytes, 44),
            s_mod_b: u32_at(bytes, 48),
            ended: u32_at(bytes, 52) & 1 != 0,
        })
    }
}

/// What a set came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// All went well.
    Ok = 0,
    /// Neither value nor delete.
    Kind = 1,
    /// A user key above [`KEY_MAX`] bytes.
    KeyLong = 2,
    /// A value of [`VALUE_END`] bytes or more.
    ValueLong = 3,
    /// A number from [`SEQ_END`] on.
    SeqHigh = 4,
    /// A delete with a value.
    DeleteValue = 5,
    /// An area does not parse.
    Structure = 16,
    /// Other entries than announced.
    Count = 17,
    /// Entries are not in order.
    Order = 18,
    /// The output slot is too small, or a block has too many restart points.
    OutFull = 19,
    /// F64 of an area.
    Link = 32,
    /// Header and tables, or figures other than the command's.
    Header = 33,
    /// The host asked for it.
    Aborted = 48,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 13] = [
        Code::Ok,
        Code::Kind,
        Code::KeyLong,
        Code::ValueLong,
        Code::SeqHigh,
        Code::DeleteValue,
        Code::Structure,
        Code::Count,
        Code::Order,
        Code::OutFull,
        Code::Link,
        Code::Header,
        Code::Aborted,
    ];

    /// The code of a number; none if the page has none.
    pub fn of(n: u8) -> Option<Code> {
        Code::ALL.into_iter().find(|&code| code as u8 == n)
    }

    /// The name of its count in reports.
    pub fn row(self) -> &'static str {
        match self {
            Code::Ok => "code_ok",
            Code::Kind => "code_kind",
            Code::KeyLong => "code_key_long",
            Code::ValueLong => "code_value_long",
            Code::SeqHigh => "code_seq_high",
            Code::DeleteValue => "code_delete_value",
            Code::Structure => "code_structure",
            Code::Count => "code_count",
            Code::Order => "code_order",
            Code::OutFull => "code_out_full",
            Code::Link => "code_link",
            Code::Header => "code_header",
            Code::Aborted => "code_aborted",
        }
    }
}

/// Where an error was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPlace {
    /// The way; 16 is the side way, 255 none.
    pub way: u8,
    /// Descriptor within the way; all ones if not known.
    pub descriptor: u32,
    /// Entry within the area; all ones if not known.
    pub entry: u32,
}

impl ErrorPlace {
    /// No place.
    pub const NONE: ErrorPlace = ErrorPlace { way: 255, descriptor: u32::MAX, entry: u32::MAX };
}

/// The last record of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// What the set came to.
    pub code: Code,
    /// Where, if that is not [`Code::Ok`].
    pub place: ErrorPlace,
    /// The command's.
    pub tag: u64,
    /// Finished blocks.
    pub blocks: u32,
    /// Bytes of all payloads with their pads.
    pub payload_bytes: u32,
    /// Logical bytes of data entries taken.
    pub bytes_in: u64,
    /// Their weights.
    pub sum_in: u64,
    /// Dropped by D1.
    pub hidden: u64,
    /// Dropped by D3.
    pub elided: u64,
    /// Weights of all dropped.
    pub sum_dropped: u64,
    /// Numbers set to 0 by D4.
    pub zeroed: u64,
    /// Of those, the weight after minus the weight before.
    pub sum_zeroed: u64,
    /// Entries replayed.
    pub replayed: u64,
    /// Data entries taken, by way.
    pub entries_in: [u32; WAYS_MAX],
    /// Cycles from the command to this record.
    pub cycles: u64,
    /// Cycles lost, by cause.
    pub stalls: [u32; 5],
}

/// Causes of stalls in the order of the page.
pub const STALLS: [&str; 5] = [
    "stall_merge_input",
    "stall_output_merge",
    "stall_output_values",
    "stall_output_memory",
    "stall_weighing",
];

/// Beats of a status record that its sum covers.
const SUMMED: usize = 3 * BEAT;
const STATUS_SUM_AT: usize = SUMMED;

impl Status {
    /// The record of a set that ended with an error: nothing else of it counts.
    pub fn failed(code: Code, place: ErrorPlace, tag: u64) -> Status {
        Status {
            code,
            place,
            tag,
            blocks: 0,
            payload_bytes: 0,
            bytes_in: 0,
            sum_in: 0,
            hidden: 0,
            elided: 0,
            sum_dropped: 0,
            zeroed: 0,
            sum_zeroed: 0,
            replayed: 0,
            entries_in: [0; WAYS_MAX],
            cycles: 0,
            stalls: [0; 5],
        }
    }

    /// Its bytes. `records` is the sum of all block records and the open record, in this order.
    pub fn to_bytes(&self, records: F64) -> [u8; STATUS] {
        let mut out = [0; STATUS];
        put(&mut out, 0, STATUS_MAGIC);
        put(&mut out, 4, VERSION.to_le_bytes());
        (out[6], out[7]) = (self.code as u8, self.place.way);
        put(&mut out, 8, self.tag.to_le_bytes());
        put(&mut out, 16, self.place.descriptor.to_le_bytes());
        put(&mut out, 20, self.place.entry.to_le_bytes());
        put(&mut out, 24, self.blocks.to_le_bytes());
        put(&mut out, 28, self.payload_bytes.to_le_bytes());
        let words = [
            self.bytes_in,
            self.sum_in,
            self.hidden,
            self.elided,
            self.sum_dropped,
            self.zeroed,
            self.sum_zeroed,
            self.replayed,
        ];
        for (i, word) in words.iter().enumerate() {
            put(&mut out, 32 + 8 * i, word.to_le_bytes());
        }
        for (way, n) in self.entries_in.iter().enumerate() {
            put(&mut out, 128 + 4 * way, n.to_le_bytes());
        }
        let mut sum = records;
        sum.add(&out[..SUMMED]);
        put(&mut out, STATUS_SUM_AT, sum.to_bytes());
        put(&mut out, 208, self.cycles.to_le_bytes());
        for (i, n) in self.stalls.iter().enumerate() {
            put(&mut out, 216 + 4 * i, n.to_le_bytes());
        }
        out
    }

    /// Reads a status record, whose sum is not looked at.
    ///
    /// # Errors
    /// Io if this is no status record of this version: the unit has not written it.
    pub fn read(bytes: &[u8]) -> Result<Status> {
        if bytes.len() != STATUS
            || get::<4>(bytes, 0) != STATUS_MAGIC
            || u16_at(bytes, 4) != VERSION
        {
            return Err(damaged("there is no status record where one is due"));
        }
        let code =
            Code::of(bytes[6]).ok_or_else(|| damaged("a status record has no known code"))?;
        let word = |i: usize| u64_at(bytes, 32 + 8 * i);
        Ok(Status {
            code,
            place: ErrorPlace {
                way: bytes[7],
                descriptor: u32_at(bytes, 16),
                entry: u32_at(bytes, 20),
            },
            tag: u64_at(bytes, 8),
            blocks: u32_at(bytes, 24),
            payload_bytes: u32_at(bytes, 28),
            bytes_in: word(0),
            sum_in: word(1),
            hidden: word(2),
            elided: word(3),
            sum_dropped: word(4),
            zeroed: word(5),
            sum_zeroed: word(6),
            replayed: word(7),
            entries_in: std::array::from_fn(|way| u32_at(bytes, 128 + 4 * way)),
            cycles: u64_at(bytes, 208),
            stalls: std::array::from_fn(|i| u32_at(bytes, 216 + 4 * i)),
        })
    }

    /// True if the sum in the status record `bytes` is that of `records`, in order, and of itself.
    pub fn is_summed<'a>(bytes: &[u8], records: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut sum = F64::default();
        records.for_each(|record| sum.add(record));
        sum.add(bytes.get(..SUMMED).unwrap_or_default());
        sum.to_bytes() == get(bytes, STATUS_SUM_AT)
    }
}

/// Registers of a unit.
pub mod register {
    /// What the identity register of a unit reads.
    pub const IDENTITY_IS: u32 = 0x5546_534c;
    /// What every register reads where no card is.
    pub const NO_CARD: u32 = u32::MAX;
    /// `LSFU`.
    pub const IDENTITY: u32 = 0x000;
    /// Version of the page.
    pub const VERSION: u32 = 0x004;
    /// N.
    pub const WAYS: u32 = 0x008;
    /// W.
    pub const WIDTH: u32 = 0x00c;
    /// Longest user key.
    pub const KEY_MAX: u32 = 0x010;
    /// lg of the value limit.
    pub const VALUE_LG: u32 = 0x014;
    /// Most restart points.
    pub const RESTARTS_MAX: u32 = 0x018;
    /// Commands in the ring.
    pub const RING: u32 = 0x01c;
    /// Build hash, two halves.
    pub const BUILD: u32 = 0x020;
    /// Enable, abort, reset.
    pub const CONTROL: u32 = 0x040;
    /// Busy, enabled, reset in progress.
    pub const STATE: u32 = 0x044;
    /// Interrupts pending.
    pub const PENDING: u32 = 0x04c;
    /// Commands written so far.
    pub const DOORBELL: u32 = 0x050;
    /// Commands finished so far.
    pub const DONE: u32 = 0x054;
    /// Code of the last set that had one other than 0.
    pub const LAST_CODE: u32 = 0x058;
    /// Cycles since reset, two halves.
    pub const CYCLES: u32 = 0x060;
    /// Cycles busy, two halves.
    pub const BUSY: u32 = 0x068;
    /// Beats read, two halves.
    pub const BEATS_READ: u32 = 0x070;
    /// Beats written, two halves.
    pub const BEATS_WRITTEN: u32 = 0x078;
    /// The first command of the ring.
    pub const COMMANDS: u32 = 0x400;
    /// Bit of the control register.
    pub const ENABLE: u32 = 1;
    /// Bit of the control register.
    pub const ABORT: u32 = 2;
    /// Bit of the control register.
    pub const RESET: u32 = 4;
    /// Bit of the state register.
    pub const IS_BUSY: u32 = 1;
    /// Bit of the state register.
    pub const IS_ENABLED: u32 = 2;
    /// Bit of the state register: a reset is in progress, and nothing that is written lasts.
    pub const IS_RESETTING: u32 = 4;
    /// Bit of the interrupt registers: a command failed without a status record.
    pub const NO_RECORD: u32 = 2;
}

/// Commands in the ring of a unit.
pub const RING: u32 = 16;
/// Bytes of a command.
pub const COMMAND: usize = 64;

/// One set to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Card address of the input slot.
    pub input: u64,
    /// Card address of the output slot.
    pub output: u64,
    /// Bytes of the input slot.
    pub in_bytes: u32,
    /// Bytes of the output slot.
    pub out_bytes: u32,
    /// Echoed in every record.
    pub tag: u64,
}

impl Command {
    /// Its words, as they are written to the ring.
    pub fn to_words(&self) -> [u32; COMMAND / 4] {
        let mut out = [0; COMMAND];
        put(&mut out, 0, self.input.to_le_bytes());
        put(&mut out, 8, self.output.to_le_bytes());
        put(&mut out, 16, self.in_bytes.to_le_bytes());
        put(&mut out, 20, self.out_bytes.to_le_bytes());
        put(&mut out, 24, self.tag.to_le_bytes());
        std::array::from_fn(|i| u32_at(&out, 4 * i))
    }
    /// Reads the words of the ring.
    pub fn read(words: &[u32]) -> Command {
        let word = |i: usize| words.get(i).copied().unwrap_or_default();
        let pair = |i: usize| u64::from(word(i)) | u64::from(word(i + 1)) << 32;
        Command {
            input: pair(0),
            output: pair(2),
            in_bytes: word(4),
            out_bytes: word(5),
            tag: pair(6),
        }
    }
    /// Whether addresses and sizes keep the rules of the page.
    pub fn is_sound(&self) -> bool {
        let aligned =
            [self.input, self.output, u64::from(self.in_bytes), u64::from(self.out_bytes)];
        aligned.iter().all(|n| n.is_multiple_of(BEAT as u64))
            && self.in_bytes >= 512
            && self.out_bytes >= 1024
    }
    /// Where its words go in the ring, as the `no`-th command since reset.
    pub fn register(no: u32) -> u32 {
        register::COMMANDS + COMMAND as u32 * (no % RING)
    }
}

/// What came back from a card cannot be: the link, its memory or the unit failed.
#[cold]
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Io, what)
}
