//! The front end of a compaction: cuts the inputs into block sets at user keys and reads them
//! ahead of the merge.
//!
//! One set is a few MiB over all runs, so a compaction of any size needs the memory of the sets
//! in flight only. Each set is cut when it is about to be read, as large as the engine wants it by
//! then and as the memory of the part allows. The blocks of a run in a set lie next to each other in
//! one file (or two, at a file boundary) and are fetched with one read each; reads of the next sets go
//! on while the engine works on this one.
//!
//! ```text
//!   memory of a part    [ being read | waits | offered ][ at the engine ]      in sets, at most
//!                         sets_in_flight + 1, half of it   sets_in_flight + 1, the other half
//! ```
//!
//! For the CPU this memory is a fixed number of writes. An engine that wants larger sets has, for as long as
//! it merges the part, a share of what `buffer_bytes` leaves besides (`set_memory`); a third of all is for the
//! output of its sets, which comes set by set. Where the share is less than it wants, its sets are smaller.
//! Buffers count against the share until the host and the engine have released them.

use std::collections::VecDeque;
use std::ops::Range;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, Key, Result, memory};
use lithify_engine::{Caps, Engine};
use lithify_env::sync::Arc;
use lithify_env::{IoBuf, OpenOpts, PendingIo, SharedUrgency, Ticket, spawn_read};
use lithify_files::dir::typed;
use lithify_format::checksum::context_modifier;
use lithify_lsm::FileRef;
use lithify_merge::cleancut::{BlockIndex, CleanCut, CutSet};
use lithify_merge::{BlockSet, BlockSlice, Bytes, RunSlice};
use lithify_tables::sst::{BlockAt, FullIndex, TableReader};

use crate::context::JobContext;
use crate::order::PartOrder;
use crate::recipe::InputRun;
use crate::route::guarded;
use crate::set_memory::{Held, Share};

/// Reads block sets in key order.
pub(crate) struct Feed {
    context: Arc<JobContext>,
    urgency: SharedUrgency,
    /// Bytes of inputs that may be in memory.
    memory: u64,
    cut: CleanCut<Inputs>,
    /// Sets asked for, in order.
    ahead: VecDeque<Reading>,
    /// The smallest set that was cut for want of memory, and what the engine wanted.
    short: Option<(u64, u64)>,
}

/// What sets are cut by.
pub(crate) struct Wants {
    /// Of the engine at work.
    pub(crate) caps: Caps,
    /// What it may take besides the fixed memory of the part; none for the CPU.
    pub(crate) share: Option<Arc<Share>>,
    /// The engine, which may have memory for inputs; none for the CPU.
    pub(crate) engine: Option<Arc<dyn Engine>>,
}

/// The blocks of all runs, newest first.
struct Inputs(Vec<Blocks>);

/// The blocks of one run over its files.
struct Blocks {
    files: Vec<Source>,
    /// Number of blocks before each file.
    before: Vec<usize>,
    /// Number of blocks of all.
    all: usize,
}

struct Source {
    meta: FileRef,
    input: Arc<FullIndex>,
    file: lithify_env::FileRef,
    /// True if it may be relied on that no key lies before the file's range.
    bounded: bool,
    /// Where its index ends above the next file of the run, as LevelDB's and old RocksDB's do (`l` behind `key9`): the
    /// first key of that one.
    end: Option<Key>,
}

impl Blocks {
    /// The file that has block `block`, and which of its blocks that is.
    fn source(&self, block: usize) -> (usize, usize) {
        let source = self.before.partition_point(|&before| before <= block) - 1;
        (source, block - self.before[source])
    }
}

/// `next`, the first key of the file behind `source`, if its index ends above it.
fn end_before(source: &Source, next: &Key, order: &dyn Comparator) -> Option<Key> {
    let last = source.input.block_fences().len().checked_sub(1)?;
    order.compare(source.input.separator(last), next).is_gt().then(|| next.clone())
}

impl BlockIndex for Inputs {
    fn runs(&self) -> usize {
        self.0.len()
    }
    fn blocks(&self, run: usize) -> usize {
        self.0[run].all
    }
    fn last_key(&self, run: usize, block: usize) -> &[u8] {
        let (source, no) = self.0[run].source(block);
        let Source { input, end, .. } = &self.0[run].files[source];
        match end {
            Some(end) if no + 1 == input.block_fences().len() => end,
            _ => input.separator(no),
        }
    }
    fn first_key(&self, run: usize, block: usize) -> Option<&[u8]> {
        let (source, no) = self.0[run].source(block);
        let source = &self.0[run].files[source];
        (no == 0 && source.bounded).then_some(&source.meta.range.lo)
    }
    fn bytes(&self, run: usize, block: usize) -> u64 {
        let (source, no) = self.0[run].source(block);
        u64::from(self.0[run].files[source].input.block(no).size) + TRAILER
    }
}

/// How much an engine is fed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Portion {
    /// Bytes of a set.
    set: u64,
    /// Runs of which a set may have blocks.
    ways: u16,
    /// Sets, and bytes of them, that are read or wait for the engine.
    ahead: (usize, u64),
}

/// What suits an engine with `caps` within `memory` bytes, for so many runs. One set more is read or
/// waits than the engine holds, so that it never waits for the one it takes next; these have half of
/// the memory, and those it holds, with the one it has no room for, the other half.
fn portion(caps: &Caps, memory: u64, runs: usize, write_bytes: u64) -> Portion {
    let sets = caps.sets_in_flight.max(1) + 1;
    let share = memory / 2 / sets as u64;
    // Many runs share a set: none should be read in crumbs.
    let least = runs as u64 * write_bytes / 4;
    let set = wanted(caps).min(share.max(least));
    Portion { set, ways: caps.ways, ahead: (sets, memory / 2) }
}

/// Bytes of a set that suit it.
fn wanted(caps: &Caps) -> u64 {
    caps.set_bytes.min(caps.max_set_bytes)
}

/// Bytes of inputs for an engine with `caps` whose sets hold `held` and are to hold `left` more, of a part
/// with `fixed` memory. What the part has of `share` follows from it.
fn inputs_within(share: &Share, caps: &Caps, fixed: u64, held: u64, left: u64) -> u64 {
    let sets = 2 * (caps.sets_in_flight as u64 + 1);
    let inputs = wanted(caps).saturating_mul(sets).min(held.saturating_add(left));
    let beyond = |inputs: u64| inputs.saturating_add(inputs / 2).saturating_sub(fixed);
    (fixed + share.resize(beyond(inputs), beyond(held))) / 3 * 2
}

/// A set whose bytes are on their way.
struct Reading {
    cut: CutSet,
    pieces: Vec<Piece>,
}

impl Reading {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }
}

/// Neighbouring blocks of one file.
struct Piece {
    run: u16,
    source: usize,
    /// Block numbers in that file.
    blocks: Range<usize>,
    /// Where the read starts in the file (aligned for direct IO).
    start: u64,
    /// Bytes read.
    len: usize,
    io: PendingIo,
    held: Option<Held>,
}

/// A read buffer as the engine holds it, and as it counts.
struct Buffer(IoBuf, #[expect(dead_code, reason = "dropped with the buffer")] Option<Held>);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Feed {
    /// A feed over what `runs`, the tables of `order`, hold of its keys. Sets that are read, wait or are
    /// at the engine have about as many bytes as it allows.
    pub(crate) fn new(
        context: Arc<JobContext>,
        order: &PartOrder,
        runs: &[InputRun],
    ) -> Result<Feed> {
        let range = &order.recipe.range;
        // A key outside of its file's range would be in no set. That is noticed in the end, by how
        // many entries were read, if it is known how many there are.
        let bounded = order.counted;
        let mut all = Vec::with_capacity(runs.len());
        for run in runs {
            let mut blocks = Blocks { files: Vec::new(), before: Vec::new(), all: 0 };
            for (meta, input) in &run.files {
                if input.block_fences().len() == 0 {
                    continue;
                }
                blocks.before.push(blocks.all);
                blocks.all += input.block_fences().len();
                let file = match context.output.direct_io {
                    true => {
                        let number = meta.backing.unwrap_or(meta.id).0;
                        context.dir.open_table(number, OpenOpts::read().direct())?.1
                    }
                    false => input.table().file().clone(),
                };
                let (meta, input) = (meta.clone(), input.clone());
                if let Some(before) = blocks.files.last_mut() {
                    before.end = end_before(before, &meta.range.lo, &*context.order);
                }
                blocks.files.push(Source { meta, input, file, bounded, end: None });
            }
            all.push(blocks);
        }
        let cut = CleanCut::new(Inputs(all), range, context.order.clone());
        let (urgency, memory) = (order.urgency.clone(), order.memory);
        Ok(Feed { context, urgency, memory, cut, ahead: VecDeque::new(), short: None })
    }

    /// Asks for as many sets ahead as there is room for. What the engine wants by then is looked up before
    /// each set is cut.
    pub(crate) fn read_ahead(&mut self, wants: impl Fn() -> Wants) -> Result<()> {
        while !self.cut.is_spent() {
            let Wants { caps, share, engine } = wants();
            let (portion, room) = self.portion(&caps, share.as_deref());
            if !self.wants_more(&portion, room) {
                break;
            }
            let set = portion.set.min(caps.next_bytes(self.cut.bytes_left()));
            let Some(cut) = self.cut.next_set(set, portion.ways) else { break };
            let wanted = wanted(&caps);
            if share.is_some() && portion.set < wanted && !self.cut.is_spent() {
                let least = self.short.map_or(u64::MAX, |(set, _)| set);
                self.short = Some((portion.set.min(least), wanted));
            }
            let reading = self.ask(cut, share.as_ref(), engine.as_deref())?;
            self.ahead.push_back(reading);
        }
        Ok(())
    }

    /// If a set was smaller than the engine at work wants, because there is not enough memory: the smallest
    /// such one, and what is wanted, in bytes.
    pub(crate) fn shortage(&self) -> Option<(u64, u64)> {
        self.short
    }

    /// How much an engine with `caps` is fed at once, and how many more bytes there may be of its sets.
    fn portion(&self, caps: &Caps, share: Option<&Share>) -> (Portion, u64) {
        let (runs, write) = (self.cut.index().runs(), self.context.output.write_bytes as u64);
        let Some(share) = share else {
            return (portion(caps, self.memory, runs, write), u64::MAX);
        };
        let (held, left) = (share.held(), self.cut.bytes_left());
        let inputs = inputs_within(share, caps, self.memory, held, left);
        // With all that is left in memory sets may have any size.
        let memory = if held.saturating_add(left) <= inputs { u64::MAX } else { inputs };
        (portion(caps, memory, runs, write), inputs.saturating_sub(held))
    }

    /// Large sets, of many runs, are not read as far ahead: what is ahead has a bound in bytes, too.
    fn wants_more(&self, portion: &Portion, room: u64) -> bool {
        let (sets, bytes) = portion.ahead;
        let ahead: usize = self.ahead.iter().map(Reading::bytes).sum();
        let fits = portion.set.min(self.cut.bytes_left()) <= room;
        self.ahead.is_empty() || (self.ahead.len() < sets && (ahead as u64) < bytes && fits)
    }

    /// True if every set has been handed out.
    pub(crate) fn is_spent(&self) -> bool {
        self.cut.is_spent() && self.ahead.is_empty()
    }

    /// The next set, if its bytes are here; else the ticket to wait for.
    pub(crate) fn next_set(&mut self) -> Result<std::result::Result<BlockSet, Ticket>> {
        let reading = self.ahead.front().expect("asked for before");
        if let Some(piece) = reading.pieces.iter().find(|p| !p.io.is_done()) {
            return Ok(Err(piece.io.ticket().clone()));
        }
        let reading = self.ahead.pop_front().expect("it is there");
        self.assemble(reading).map(Ok)
    }

    /// Starts the reads of a set.
    fn ask(
        &self,
        cut: CutSet,
        share: Option<&Arc<Share>>,
        engine: Option<&dyn Engine>,
    ) -> Result<Reading> {
        let mut pieces = Vec::new();
        for (run, blocks) in cut.blocks.iter().enumerate() {
            let mut left = blocks.clone();
            while !left.is_empty() {
                let of = &self.cut.index().0[run];
                let (source, first) = of.source(left.start);
                let end = of.before.get(source + 1).map_or(left.end, |&b| b.min(left.end));
                let local = first..first + (end - left.start);
                left.start = end;
                pieces.push(self.read(run as u16, source, local, share, engine)?);
            }
        }
        Ok(Reading { cut, pieces })
    }

    fn read(
        &self,
        run: u16,
        source: usize,
        blocks: Range<usize>,
        share: Option<&Arc<Share>>,
        engine: Option<&dyn Engine>,
    ) -> Result<Piece> {
        let from = &self.cut.index().0[usize::from(run)].files[source];
        let first = from.input.block(blocks.start);
        let last = from.input.block(blocks.end - 1);
        let align = from.file.alignment() as u64;
        let start = first.offset / align * align;
        let end = (last.offset + u64::from(last.size) + TRAILER).next_multiple_of(align);
        let len = (end - start) as usize;
        check_holes(from.input.table(), start, len, blocks.clone().map(|no| from.input.block(no)))?;
        let lent = engine.and_then(|engine| guarded(|| engine.input_buffer(len)).ok().flatten());
        // What an engine lends is held against what was asked for, as all that it does.
        let buffer = match lent.filter(|buffer| buffer.capacity() >= len) {
            Some(buffer) => buffer,
            None => {
                let buffer = self.context.buffers.try_get(len);
                buffer.map_err(|none| memory::refused("an input", len, &none))?
            }
        };
        let held = share.map(|share| share.hold(buffer.capacity() as u64));
        let rt = &*self.context.env.rt;
        let io = spawn_read(rt, &self.urgency, from.file.clone(), buffer, start, len);
        Ok(Piece { run, source, blocks, start, len, io, held })
    }

    /// Turns read buffers into block slices.
    fn assemble(&self, reading: Reading) -> Result<BlockSet> {
        let mut runs: Vec<(u16, Vec<BlockSlice>)> = Vec::new();
        for piece in reading.pieces {
            let from = &self.cut.index().0[usize::from(piece.run)].files[piece.source];
            let (buffer, result) = piece.io.take();
            if zoo::on(Bug::ReadErrorIsEnd) && result.is_err() && piece.start == 0 {
                continue;
            }
            result.map_err(typed)?;
            let table = from.input.table();
            let check = table.check();
            let bytes = Bytes::new(Arc::new(Buffer(buffer, piece.held)));
            let slices = piece.blocks.map(|no| {
                let fence = from.input.fence(no);
                let (block, counts) = (fence.at, fence.counts.unwrap_or_default());
                let at = (block.offset - piece.start) as usize;
                let end = at + block.size as usize + TRAILER as usize;
                let bytes =
                    bytes.slice(at..end).map_err(|e| e.in_file(table.name()).at(block.offset))?;
                Ok(BlockSlice {
                    bytes,
                    offset: block.offset,
                    checksum: check.kind,
                    modifier: context_modifier(check.base, block.offset),
                    decoder: table.decoder().clone(),
                    entries: u32::try_from(counts.entries).unwrap_or(0),
                    key_bytes: counts.raw_key_bytes,
                    seq: table.global_seq(),
                })
            });
            let slices: Vec<BlockSlice> = slices.collect::<Result<_>>()?;
            match runs.last_mut() {
                Some((run, blocks)) if *run == piece.run => blocks.extend(slices),
                _ => runs.push((piece.run, slices)),
            }
        }
        let runs = runs.into_iter().map(|(run, blocks)| RunSlice { run, blocks: blocks.into() });
        Ok(BlockSet { no: reading.cut.no, keys: reading.cut.keys, runs: runs.collect() })
    }
}

/// Refuses holes out of all proportion: in each of `blocks`, as readers do, and in what lies between
/// them if that is most of the `len` bytes from `start`.
fn check_holes(
    table: &TableReader,
    start: u64,
    len: usize,
    blocks: impl Iterator<Item = BlockAt>,
) -> Result<()> {
    let mut in_blocks = 0;
    for block in blocks {
        table.check_read(block.offset, block.size as usize)?;
        in_blocks += block.size as usize;
    }
    if len / 2 > in_blocks { table.check_read(start, len) } else { Ok(()) }
}

/// Bytes behind each block's payload.
const TRAILER: u64 = lithify_merge::products::TRAILER as u64;

#[cfg(test)]
mod tests;
