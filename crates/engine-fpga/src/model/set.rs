//! One set in the model of a unit: decoders, merge, drop rules and encoder, an entry at a time.
//!
//! Keeps: what it writes is a function of the input slot and of N alone. Cycles are counted by the formula
//! that holds for the pipeline: encoder, hasher, weigher or the busiest decoder, whichever takes longest.
//! Leaves to others: registers and memory (`model`), what a step costs (`cost`), when entries have come (`pace`).
//!
//! Worked example: ways 0 and 1 have `k@7` and `k@5`, there is no snapshot. Way 0 wins the merge, `k@7` goes to
//! the encoder; `k@5` has the key and stripe of the entry before it and is dropped as hidden.

use std::cmp::Ordering;
use std::ops::Range;

use lithify_base::Tag;
use lithify_format::weight::{content, weigh};
use lithify_format::xxph3::xxph3_64;

use super::cost::Cost;
use super::pace::{Pace, WayPace};
use crate::stream::{
    AREA_MAX, BEAT, Code, Command, Descriptor, ENDING, ErrorPlace, F64, Header, KEY_MAX, MARKER,
    RECORD, RESTARTS_MAX, Record, SEQ_END, SNAPSHOTS_MAX, SPLIT, STATUS, Status, TAKE_ALL,
    WAYS_MAX, Way, beats, snapshots,
};

/// Why a set ends early, and where that was found.
type Fault = (Code, ErrorPlace);

/// Runs one set at once: what a unit of N = `ways` makes of `input`, in `out`, which keeps what the unit does
/// not write. The code that it ended with.
pub fn run(input: &[u8], out: &mut [u8], ways: usize, cost: Cost) -> Code {
    let tag = Header::read(input).map_or(0, |header| header.tag);
    let command = Command {
        tag,
        in_bytes: input.len() as u32,
        out_bytes: out.len() as u32,
        ..Command::default()
    };
    let mut run = Run::new(command, input.to_vec(), ways, cost);
    while !run.is_over() {
        run.step(u64::MAX);
    }
    run.store(out);
    run.code()
}

/// A set at work.
pub(super) struct Run {
    command: Command,
    cost: Cost,
    input: Vec<u8>,
    decoders: Vec<Decoder>,
    gc: Gc,
    encoder: Encoder,
    /// The key and tag of the merged stream's last entry, and its way; none before the first.
    last: Option<(Vec<u8>, u64, usize)>,
    status: Status,
    /// Cycles until header and tables have come, and of the hasher.
    tables: u64,
    hashed: u64,
    pace: Pace,
    /// Cycles that were granted so far.
    granted: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Entries are left.
    Merging,
    /// The record is due when the cycles are.
    Ending,
    /// The record may be stored.
    Over,
}

impl Run {
    pub(super) fn new(command: Command, input: Vec<u8>, ways: usize, cost: Cost) -> Run {
        let mut run = Run {
            command,
            cost,
            input,
            decoders: Vec::new(),
            gc: Gc::default(),
            encoder: Encoder::default(),
            last: None,
            status: Status::failed(Code::Ok, ErrorPlace::NONE, command.tag),
            tables: 0,
            hashed: 0,
            pace: Pace::new(cost.engines()),
            granted: 0,
            state: State::Merging,
        };
        if let Err(fault) = run.prepare(ways) {
            run.fail(fault);
        }
        run
    }

    pub(super) fn command(&self) -> &Command {
        &self.command
    }
    pub(super) fn code(&self) -> Code {
        self.status.code
    }
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Ends it with the code that says so.
    pub(super) fn abort(mut self: Box<Run>) -> Box<Run> {
        self.fail((Code::Aborted, ErrorPlace::NONE));
        self.state = State::Over;
        self
    }

    /// Reads header and tables, and the first entry of each way.
    fn prepare(&mut self, ways: usize) -> Result<(), Fault> {
        let bad = (Code::Header, ErrorPlace::NONE);
        let header = Header::read(&self.input).ok_or(bad)?;
        let same = header.tag == self.command.tag
            && header.in_bytes == self.command.in_bytes
            && header.out_bytes == self.command.out_bytes;
        let within = usize::from(header.ways) <= ways.min(WAYS_MAX)
            && usize::from(header.snapshots) <= SNAPSHOTS_MAX
            && (6..=16).contains(&header.block_lg)
            && header.restart_interval > 0
            && header.s_mod_b < 1 << header.block_lg;
        if !(same && within) {
            return Err(bad);
        }
        self.tables = Cost::tables(header.tables_end());
        self.gc = Gc::new(&header, snapshots(&self.input));
        self.encoder = Encoder::new(&header, self.command.out_bytes as usize);
        for no in (0..usize::from(header.ways)).chain([WAYS_MAX]) {
            let way = Way::read(&self.input, no).ok_or(bad)?;
            let end = way.first.checked_add(way.count).filter(|&end| end <= header.descriptors);
            let end = end.ok_or(bad)?;
            for i in way.first..end {
                let d = Descriptor::read(&self.input, i as usize);
                let (at, bytes) = (d.at as usize, d.bytes as usize);
                let inside = at >= header.tables_end()
                    && at.is_multiple_of(BEAT)
                    && (1..=AREA_MAX).contains(&bytes)
                    && at + beats(bytes) <= self.input.len();
                if !inside {
                    return Err(bad);
                }
            }
            self.decoders.push(Decoder::new(no, way.first..end));
        }
        let live = self.decoders.iter().filter(|d| !d.left.is_empty()).count();
        for decoder in &mut self.decoders {
            decoder.pace = WayPace::new(live);
            decoder.advance(&self.input, self.cost)?;
        }
        Ok(())
    }

    fn fail(&mut self, (code, place): Fault) {
        self.status = Status::failed(code, place, self.command.tag);
        self.encoder.forget();
        self.state = State::Ending;
    }

    fn cycles(&self) -> u64 {
        let decoders = self.decoders.iter().map(|d| d.pace.decoded()).max().unwrap_or_default();
        Cost::FIXED + self.tables + self.pace.over().max(decoders).max(self.hashed)
    }

    /// Goes on for about so many cycles; how many it took.
    pub(super) fn step(&mut self, cycles: u64) -> u64 {
        let before = self.granted;
        self.granted = self.granted.saturating_add(cycles);
        while self.state == State::Merging && self.cycles() < self.granted {
            match self.entry() {
                Ok(true) => {}
                Ok(false) => {
                    self.end();
                    self.state = State::Ending;
                }
                Err(fault) => self.fail(fault),
            }
        }
        if self.state == State::Ending && self.cycles() <= self.granted {
            self.state = State::Over;
            self.status.cycles = self.cycles();
            self.granted = self.cycles();
        }
        self.granted.saturating_sub(before)
    }

    /// The next entry of the merged stream; false if there is none.
    fn entry(&mut self) -> Result<bool, Fault> {
        let Some(i) = self.least() else {
            let before = self.encoder.cycles;
            self.gc.end_key(&mut self.encoder, &mut self.status, self.cost)?;
            self.pace.take(0, self.encoder.cycles - before, 0);
            return Ok(false);
        };
        let (before, mut rounds) = (self.encoder.cycles, 0);
        let d = &mut self.decoders[i];
        let place = d.place();
        if !follows(&mut self.last, d, i) {
            return Err((Code::Order, place));
        }
        let value = &self.input[d.value.clone()];
        if d.replays() {
            if self.gc.has_begun {
                return Err((Code::Order, place));
            }
            self.status.replayed += 1;
            self.encoder.put(&d.key, d.tag, value, self.cost).map_err(|c| (c, place))?;
        } else if d.marks() {
            self.gc.end_key(&mut self.encoder, &mut self.status, self.cost)?;
            self.gc.mark(d.tag, &mut self.encoder);
        } else {
            self.status.entries_in[i] += 1;
            rounds = self.cost.rounds(value.len());
            self.hashed += self.cost.hashed(d.key.len());
            let e = Entry { key: &d.key, tag: d.tag, value, way: i };
            self.gc.entry(e, &mut self.encoder, &mut self.status, self.cost)?;
        }
        let at = self.pace.take(d.pace.key(), self.encoder.cycles - before, rounds);
        d.pace.took(self.cost.rows(value.len()), at);
        d.advance(&self.input, self.cost)?;
        Ok(true)
    }

    /// The way whose entry comes next.
    fn least(&self) -> Option<usize> {
        let mut least: Option<usize> = None;
        for (i, d) in self.decoders.iter().enumerate() {
            if d.live && least.is_none_or(|l| d.comes_before(&self.decoders[l])) {
                least = Some(i);
            }
        }
        least
    }

    fn end(&mut self) {
        self.encoder.end(self.command.tag);
        self.status.blocks = self.encoder.records.len() as u32;
        self.status.payload_bytes = self.encoder.out.len() as u32;
    }

    /// Stores what the unit writes; how many beats that is.
    pub(super) fn store(&self, out: &mut [u8]) -> u64 {
        let (end, e) = (out.len(), &self.encoder);
        let Some(top) = end.checked_sub(STATUS) else { return 0 };
        let mut sum = F64::default();
        let mut written = e.out.len() + STATUS;
        if self.status.code == Code::Ok {
            out[..e.out.len()].copy_from_slice(&e.out);
            for (k, record) in e.records.iter().enumerate() {
                let bytes = record.to_bytes();
                let at = end - ENDING - RECORD * (k + 1);
                out[at..at + RECORD].copy_from_slice(&bytes);
                sum.add(&bytes);
            }
            let bytes = e.open.to_bytes();
            out[end - ENDING..top].copy_from_slice(&bytes);
            sum.add(&bytes);
            written += RECORD * (e.records.len() + 1);
        }
        out[top..].copy_from_slice(&self.status.to_bytes(sum));
        (written / BEAT) as u64
    }
}

/// Whether the entry of `next` comes after the last one, which it becomes.
fn follows(last: &mut Option<(Vec<u8>, u64, usize)>, next: &Decoder, at: usize) -> bool {
    let Some((key, tag, way)) = last else {
        *last = Some((next.key.clone(), next.tag, at));
        return true;
    };
    let order = next.key.cmp(key).then((*tag).cmp(&next.tag)).then(at.cmp(way));
    key.clear();
    key.extend_from_slice(&next.key);
    (*tag, *way) = (next.tag, at);
    order == Ordering::Greater
}

/// One way: takes entry areas apart.
#[derive(Default)]
struct Decoder {
    /// Row of the way table.
    way: usize,
    /// Its first descriptor, and those that are left.
    first: u32,
    left: Range<u32>,
    /// The area in work.
    area: Option<Area>,
    /// Entries of it parsed so far.
    parsed: u32,
    /// The last internal key of the area, whole.
    internal: Vec<u8>,
    /// The entry that waits for the merge, if it is live.
    live: bool,
    key: Vec<u8>,
    tag: u64,
    value: Range<usize>,
    pace: WayPace,
}

/// An entry area in work.
struct Area {
    /// What is left of it, in the input slot.
    left: Range<usize>,
    of: Descriptor,
}

impl Decoder {
    fn new(way: usize, left: Range<u32>) -> Decoder {
        Decoder { way, first: left.start, left, ..Decoder::default() }
    }

    /// R7; the ways of a unit stand in the order of their rows.
    fn comes_before(&self, other: &Decoder) -> bool {
        let keys = self.key.cmp(&other.key);
        keys.then(other.tag.cmp(&self.tag)).then(self.way.cmp(&other.way)).is_lt()
    }

    /// The entry that waits is to be put out again.
    fn replays(&self) -> bool {
        self.area.as_ref().is_some_and(|area| area.of.replay)
    }
    /// The entry that waits is a marker.
    fn marks(&self) -> bool {
        self.area.as_ref().is_some_and(|area| area.of.markers)
    }

    /// Of the entry that waits.
    fn place(&self) -> ErrorPlace {
        ErrorPlace {
            way: self.way as u8,
            descriptor: self.left.start.saturating_sub(self.first + 1),
            entry: self.parsed.saturating_sub(1),
        }
    }

    fn fault(&self, code: Code) -> Fault {
        (code, self.place())
    }

    /// Moves on to the next entry taken.
    fn advance(&mut self, input: &[u8], cost: Cost) -> Result<(), Fault> {
        self.live = false;
        loop {
            let Some(area) = &self.area else {
                if self.left.is_empty() {
                    return Ok(());
                }
                self.enter(input)?;
                continue;
            };
            let Descriptor { skip, take, expected, .. } = area.of;
            let (parsed, all) = (self.parsed, take == TAKE_ALL);
            if parsed >= skip && !all && parsed - skip == take {
                self.area = None;
            } else if area.left.is_empty() {
                if parsed < skip || !all || (expected != 0 && expected != parsed) {
                    return Err(self.fault(Code::Count));
                }
                self.area = None;
            } else {
                self.parse(input, cost)?;
                if self.parsed > skip {
                    self.live = true;
                    return self.check();
                }
            }
        }
    }

    /// Begins the next area.
    fn enter(&mut self, input: &[u8]) -> Result<(), Fault> {
        let of = Descriptor::read(input, self.left.start as usize);
        self.left.start += 1;
        self.parsed = 0;
        let left = of.at as usize..of.at as usize + of.bytes as usize;
        // Pads count as they are.
        let padded = &input[left.start..left.start + beats(left.len())];
        if F64::of(padded) != of.sum {
            return Err(self.fault(Code::Link));
        }
        self.area = Some(Area { left, of });
        self.internal.clear();
        Ok(())
    }

    /// A number of at most `most` bytes.
    fn length(&mut self, input: &[u8], most: usize, long: Code) -> Result<usize, Fault> {
        let mut n = 0;
        for i in 0..most {
            let Some(at) = self.area.as_mut().and_then(|area| area.left.next()) else {
                return Err(self.fault(Code::Structure));
            };
            let byte = input[at];
            n |= usize::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(self.fault(long))
    }

    fn parse(&mut self, input: &[u8], cost: Cost) -> Result<(), Fault> {
        self.parsed += 1;
        let before = self.area.as_ref().map_or(0, |area| area.left.len());
        let shared = self.length(input, 2, Code::KeyLong)?;
        let unshared = self.length(input, 2, Code::KeyLong)?;
        let value = self.length(input, 4, Code::ValueLong)?;
        if shared + unshared > KEY_MAX + 8 {
            return Err(self.fault(Code::KeyLong));
        }
        let left = self.area.as_ref().map_or(0..0, |area| area.left.clone());
        let inside = unshared + value <= left.len();
        if shared > self.internal.len() || shared + unshared < 8 || !inside {
            return Err(self.fault(Code::Structure));
        }
        let at = left.start;
        self.internal.truncate(shared);
        self.internal.extend_from_slice(&input[at..at + unshared]);
        self.value = at + unshared..at + unshared + value;
        if let Some(area) = &mut self.area {
            area.left.start = self.value.end;
        }
        let bytes = before - (left.len() - unshared - value);
        self.pace.parsed(bytes, cost.key_decoded(shared, unshared), cost.rows(value));
        Ok(())
    }

    /// Whether the entry just parsed is one that a unit takes; it is the one that waits then.
    fn check(&mut self) -> Result<(), Fault> {
        let Some((user, tag)) = self.internal.split_last_chunk::<8>() else {
            return Err(self.fault(Code::Structure));
        };
        let tag = u64::from_le_bytes(*tag);
        self.key.clear();
        self.key.extend_from_slice(user);
        self.tag = tag;
        if self.way == WAYS_MAX {
            let marks = tag & MARKER == MARKER;
            if marks != self.marks() || (marks && !self.value.is_empty()) {
                return Err(self.fault(Code::Structure));
            }
            return Ok(());
        }
        if self.replays() || self.marks() {
            return Err(self.fault(Code::Structure));
        }
        match tag & 0xff {
            kind if kind > 1 => Err(self.fault(Code::Kind)),
            _ if tag >> 8 >= SEQ_END => Err(self.fault(Code::SeqHigh)),
            0 if !self.value.is_empty() => Err(self.fault(Code::DeleteValue)),
            _ => Ok(()),
        }
    }
}

/// A data entry.
#[derive(Clone, Copy)]
struct Entry<'a> {
    key: &'a [u8],
    tag: u64,
    value: &'a [u8],
    way: usize,
}

/// D1, D3, D4 and the masks.
#[derive(Default)]
struct Gc {
    snapshots: Vec<u64>,
    drop_tombstones: bool,
    zero_seqs: bool,
    in_use: u16,
    /// A data entry or a marker has come.
    has_begun: bool,
    /// User key of the last data entry, unless a marker came since, and its stripe.
    key: Vec<u8>,
    stripe: Option<usize>,
    /// Deletes of the key that wait: tag, weight, and whether they are free.
    waiting: Vec<(u64, u64, bool)>,
}

impl Gc {
    fn new(header: &Header, snapshots: [u64; SNAPSHOTS_MAX]) -> Gc {
        Gc {
            snapshots: snapshots.to_vec(),
            drop_tombstones: header.drop_tombstones,
            zero_seqs: header.zero_seqs,
            in_use: header.in_use,
            ..Gc::default()
        }
    }

    fn mark(&mut self, tag: u64, out: &mut Encoder) {
        self.has_begun = true;
        self.in_use = tag as u16;
        out.split_pending |= tag & SPLIT != 0;
    }

    fn entry(
        &mut self,
        e: Entry<'_>,
        out: &mut Encoder,
        status: &mut Status,
        cost: Cost,
    ) -> Result<(), Fault> {
        self.has_begun = true;
        let content = content(xxph3_64(e.key), e.value);
        let weight = weigh(content, Tag(e.tag));
        status.bytes_in += (e.key.len() + 8 + e.value.len()) as u64;
        status.sum_in = status.sum_in.wrapping_add(weight);
        if self.stripe.is_none() || self.key != e.key {
            self.end_key(out, status, cost)?;
            self.key.clear();
            self.key.extend_from_slice(e.key);
        }
        let seq = e.tag >> 8;
        let stripe = self.snapshots.iter().filter(|&&s| s < seq).count();
        if self.stripe.replace(stripe) == Some(stripe) {
            status.hidden += 1;
            status.sum_dropped = status.sum_dropped.wrapping_add(weight);
            out.cycles += cost.dropped(e.value.len());
            return Ok(());
        }
        let free = self.in_use >> e.way & 1 == 0;
        if e.tag & 0xff == 0 {
            let free = free && self.drop_tombstones;
            if !free && self.waiting.is_empty() {
                return out.put(e.key, e.tag, &[], cost).map_err(nowhere);
            }
            self.waiting.push((e.tag, weight, free));
            return Ok(());
        }
        let (tag, after) = self.settled(e.tag, stripe, free, content);
        if tag != e.tag {
            status.zeroed += 1;
            status.sum_zeroed = status.sum_zeroed.wrapping_add(after.wrapping_sub(weight));
        }
        for (tag, ..) in self.waiting.drain(..) {
            out.put(e.key, tag, &[], cost).map_err(nowhere)?;
        }
        out.put(e.key, tag, e.value, cost).map_err(nowhere)
    }

    /// D4: the tag that a value is written with, and its weight then.
    fn settled(&self, tag: u64, stripe: usize, free: bool, content: u64) -> (u64, u64) {
        let oldest = self.drop_tombstones && self.zero_seqs && stripe == 0 && free;
        let tag = if oldest { tag & 0xff } else { tag };
        (tag, weigh(content, Tag(tag)))
    }

    /// The key ends: free deletes that wait go, and the others go out.
    fn end_key(&mut self, out: &mut Encoder, status: &mut Status, cost: Cost) -> Result<(), Fault> {
        self.stripe = None;
        for (tag, weight, free) in self.waiting.drain(..) {
            if free {
                status.elided += 1;
                status.sum_dropped = status.sum_dropped.wrapping_add(weight);
            } else {
                out.put(&self.key, tag, &[], cost).map_err(nowhere)?;
            }
        }
        Ok(())
    }
}

fn nowhere(code: Code) -> Fault {
    (code, ErrorPlace::NONE)
}

/// R1, R2, and the records.
#[derive(Default)]
struct Encoder {
    block_lg: u8,
    interval: u16,
    limit: usize,
    /// Payloads with their pads; the block in work is the last one, not padded yet.
    out: Vec<u8>,
    records: Vec<Record>,
    open: Record,
    s_mod_b: u32,
    /// The grid has ended the block in work, and a split is to be taken.
    ended: bool,
    split_pending: bool,
    restarts: Vec<u32>,
    since: u16,
    last: Vec<u8>,
    next: Vec<u8>,
    tag: u64,
    cycles: u64,
}

impl Encoder {
    fn new(header: &Header, limit: usize) -> Encoder {
        let open = Record { open: true, s_mod_b: header.s_mod_b, ..Record::default() };
        Encoder {
            block_lg: header.block_lg,
            interval: header.restart_interval,
            limit,
            s_mod_b: header.s_mod_b,
            open,
            tag: header.tag,
            ..Encoder::default()
        }
    }

    /// Nothing that was made counts.
    fn forget(&mut self) {
        self.out.clear();
        self.records.clear();
    }

    /// A survivor.
    fn put(&mut self, key: &[u8], tag: u64, value: &[u8], cost: Cost) -> Result<(), Code> {
        if self.open.entries == 0 || self.ended || self.split_pending {
            self.start_block(cost);
        }
        self.split_pending = false;
        let s = u64::from(self.s_mod_b) + (key.len() + 8 + value.len() + 4) as u64;
        self.ended = s >> self.block_lg != 0;
        self.s_mod_b = (s & ((1 << self.block_lg) - 1)) as u32;

        self.next.clear();
        self.next.extend_from_slice(key);
        self.next.extend_from_slice(&tag.to_le_bytes());
        let mut shared = 0;
        if self.since == self.interval || self.open.entries == 0 {
            if self.restarts.len() == RESTARTS_MAX {
                return Err(Code::OutFull);
            }
            self.restarts.push((self.out.len() - self.open.at as usize) as u32);
            self.since = 0;
        } else {
            shared = self.last.iter().zip(&self.next).take_while(|(a, b)| a == b).count();
        }
        self.since += 1;
        self.open.entries += 1;
        let before = self.out.len();
        for n in [shared, self.next.len() - shared, value.len()] {
            put_varint(&mut self.out, n);
        }
        let lengths = self.out.len() - before;
        self.out.extend_from_slice(&self.next[shared..]);
        self.out.extend_from_slice(value);
        self.cycles += cost.kept(lengths, shared, self.next.len() - shared, value.len());
        if let (1, Some(before)) = (self.open.entries, self.records.last()) {
            let payload = before.bytes as usize;
            self.cycles += cost.turned(payload, lengths, self.next.len(), value.len());
        }
        std::mem::swap(&mut self.last, &mut self.next);
        self.check_room()
    }

    /// Payloads, records and what else there is must not meet, the block's own end included.
    fn check_room(&self) -> Result<(), Code> {
        let tail = 4 * self.restarts.len() + 4;
        let records = RECORD * (self.records.len() + 1);
        let used = beats(self.out.len() + tail) + records + ENDING;
        if used > self.limit { Err(Code::OutFull) } else { Ok(()) }
    }

    fn start_block(&mut self, cost: Cost) {
        if self.open.entries > 0 {
            for restart in &self.restarts {
                self.out.extend_from_slice(&restart.to_le_bytes());
            }
            self.out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
            self.cycles += cost.block(self.restarts.len());
            let mut record = self.seal();
            record.open = false;
            self.records.push(record);
        }
        self.restarts.clear();
        self.open = Record { open: true, s_mod_b: self.s_mod_b, ..Record::default() };
        self.open.at = self.out.len() as u32;
    }

    /// Pads the block in work and says what it is.
    fn seal(&mut self) -> Record {
        let at = self.open.at as usize;
        let bytes = (self.out.len() - at) as u32;
        self.out.resize(beats(self.out.len()), 0);
        Record {
            bytes,
            restarts: self.restarts.len() as u32,
            sum: F64::of(&self.out[at..]),
            tag: self.tag,
            no: self.records.len() as u32,
            ..self.open
        }
    }

    /// The set ends.
    fn end(&mut self, tag: u64) {
        self.tag = tag;
        let mut open = self.seal();
        open.ended = self.ended;
        self.open = open;
    }
}

fn put_varint(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
