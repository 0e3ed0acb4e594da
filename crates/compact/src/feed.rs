//! The front end of a compaction: cuts the inputs into block sets at user keys and reads them
//! ahead of the merge.
//!
//! One set is a few MiB over all runs, so a compaction of any size needs the memory of the sets
//! in flight only. The blocks of a run in a set lie next to each other in one file (or two, at a
//! file boundary) and are fetched with one read each; reads of the next sets go on while the
//! engine works on this one.

use std::collections::VecDeque;
use std::ops::Range;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, KeyRange, Result, memory};
use lithify_env::sync::Arc;
use lithify_env::{FileRef, IoBuf, OpenOpts, PendingIo, SharedUrgency, Ticket, spawn_read};
use lithify_format::checksum::context_modifier;
use lithify_merge::cleancut::{self, BlockFence, CleanCut, CutSet};
use lithify_merge::{BlockSet, BlockSlice, Bytes, JobRange, RunSlice};
use lithify_store::dir::typed;
use lithify_store::sst::{BlockAt, FullIndex, TableReader};

use crate::recipe::InputRun;
use crate::workshop::Workshop;

/// Sets being read or waiting for the engine.
const SETS_AHEAD: usize = 3;

/// Reads block sets in key order.
pub(crate) struct Feed {
    shop: Arc<Workshop>,
    urgency: SharedUrgency,
    runs: Vec<Blocks>,
    /// By run, the first block that it reads.
    first: Vec<usize>,
    /// Sets not asked for yet.
    cuts: VecDeque<CutSet>,
    /// Sets asked for, in order.
    ahead: VecDeque<Reading>,
}

/// The blocks of one run over its files.
struct Blocks {
    files: Vec<Source>,
    /// Number of blocks before each file.
    before: Vec<usize>,
}

struct Source {
    input: Arc<FullIndex>,
    file: FileRef,
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
}

/// A read buffer as the engine holds it.
struct Buffer(IoBuf);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Feed {
    /// A feed over what `runs`, newest first, hold of `range`, in sets of about `set_bytes`, read as
    /// urgently as `urgency` says.
    pub(crate) fn new(
        shop: Arc<Workshop>,
        urgency: SharedUrgency,
        runs: &[InputRun],
        range: &JobRange,
        set_bytes: u64,
    ) -> Result<Feed> {
        let order = &*shop.order;
        let mut fences: Vec<Vec<BlockFence>> = Vec::with_capacity(runs.len());
        let mut all = Vec::with_capacity(runs.len());
        for run in runs {
            let mut list = Vec::new();
            let mut blocks = Blocks { files: Vec::new(), before: Vec::new() };
            for (meta, input) in run.files.iter().filter(|(f, _)| meets(&f.range, range, order)) {
                blocks.before.push(list.len());
                list.extend(input.block_fences().map(|fence| BlockFence {
                    last_key: fence.separator.into(),
                    bytes: u64::from(fence.at.size) + TRAILER,
                }));
                let file = match shop.output.direct_io {
                    true => {
                        let number = meta.backing.unwrap_or(meta.id).0;
                        shop.dir.open_table(number, OpenOpts::read().direct())?.1
                    }
                    false => input.table().file().clone(),
                };
                blocks.files.push(Source { input: input.clone(), file });
            }
            fences.push(list);
            all.push(blocks);
        }
        let within = |run: &Vec<BlockFence>| cleancut::within(run, range, order);
        let places: Vec<Range<usize>> = fences.iter().map(within).collect();
        let slices = fences.iter().zip(&places).map(|(run, at)| &run[at.clone()]).collect();
        let mut cutter = CleanCut::new(slices, order);
        let cuts = std::iter::from_fn(|| cutter.next_set(set_bytes)).collect();
        drop(cutter);
        let first = places.iter().map(|at| at.start).collect();
        Ok(Feed { shop, urgency, runs: all, first, cuts, ahead: VecDeque::new() })
    }

    /// Asks for as many sets ahead as there is room for.
    pub(crate) fn read_ahead(&mut self) -> Result<()> {
        while self.wants_more()
            && let Some(cut) = self.cuts.pop_front()
        {
            let reading = self.ask(cut)?;
            self.ahead.push_back(reading);
        }
        Ok(())
    }

    /// Large sets, of many runs, are not read as far ahead: what is ahead has a bound in bytes, too.
    fn wants_more(&self) -> bool {
        let most = SETS_AHEAD * 2 * self.shop.output.write_bytes;
        let ahead: usize = self.ahead.iter().map(Reading::bytes).sum();
        self.ahead.is_empty() || (self.ahead.len() < SETS_AHEAD && ahead < most)
    }

    /// True if every set has been handed out.
    pub(crate) fn is_spent(&self) -> bool {
        self.cuts.is_empty() && self.ahead.is_empty()
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
    fn ask(&self, cut: CutSet) -> Result<Reading> {
        let mut pieces = Vec::new();
        for (run, blocks) in cut.blocks.iter().enumerate() {
            let mut left = blocks.start + self.first[run]..blocks.end + self.first[run];
            while !left.is_empty() {
                let of = &self.runs[run];
                let source = of.before.partition_point(|&b| b <= left.start) - 1;
                let end = of.before.get(source + 1).map_or(left.end, |&b| b.min(left.end));
                let local = left.start - of.before[source]..end - of.before[source];
                left.start = end;
                pieces.push(self.read(run as u16, source, local)?);
            }
        }
        Ok(Reading { cut, pieces })
    }

    fn read(&self, run: u16, source: usize, blocks: Range<usize>) -> Result<Piece> {
        let from = &self.runs[usize::from(run)].files[source];
        let first = from.input.block(blocks.start);
        let last = from.input.block(blocks.end - 1);
        let align = from.file.alignment() as u64;
        let start = first.offset / align * align;
        let end = (last.offset + u64::from(last.size) + TRAILER).next_multiple_of(align);
        let len = (end - start) as usize;
        check_holes(from.input.table(), start, len, blocks.clone().map(|no| from.input.block(no)))?;
        let buffer = self.shop.buffers.try_get(len);
        let buffer = buffer.map_err(|none| memory::refused("an input", len, &none))?;
        let rt = &*self.shop.env.rt;
        let io = spawn_read(rt, &self.urgency, from.file.clone(), buffer, start, len);
        Ok(Piece { run, source, blocks, start, len, io })
    }

    /// Turns read buffers into block slices.
    fn assemble(&self, reading: Reading) -> Result<BlockSet> {
        let mut runs: Vec<(u16, Vec<BlockSlice>)> = Vec::new();
        for piece in reading.pieces {
            let from = &self.runs[usize::from(piece.run)].files[piece.source];
            let (buffer, result) = piece.io.take();
            if zoo::on(Bug::ReadErrorIsEnd) && result.is_err() && piece.start == 0 {
                continue;
            }
            result.map_err(typed)?;
            let table = from.input.table();
            let check = table.check();
            let bytes = Bytes::new(Arc::new(Buffer(buffer)));
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

/// True if a file over `file` may hold keys of `range`.
fn meets(file: &KeyRange, range: &JobRange, order: &dyn Comparator) -> bool {
    range.lo.as_ref().is_none_or(|lo| !file.hi.is_before(lo, order))
        && range.hi.as_ref().is_none_or(|hi| !hi.is_before(&file.lo, order))
}

/// Bytes behind each block's payload.
const TRAILER: u64 = lithify_merge::products::TRAILER as u64;
