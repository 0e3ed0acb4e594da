//! Writing a table: data blocks as engines hand them out, in order, and then the tail.
//!
//! Blocks arrive as `payload ++ type ++ raw sum`. They are copied into aligned buffers, each raw
//! sum turned into the stored one by adding the context of file and offset; full buffers are
//! written behind the caller's back or at once. Blocks that lie side by side in memory which the caller gives
//! away are not copied: their sums are turned in place ([`Assembler::adopt`]), and the memory itself is written, with
//! direct IO all of it that lies in whole pages of the file. At the end the tail is built from block metadata (the same
//! code for every engine), the file is cut to its true length and synced.
//!
//! ```text
//!   Open --finish_step--> Draining --> Trimming --> Syncing --> Done        (at most one IO a step)
//! ```
//!
//! Keeps: at most the promised number of writes is in flight; the first failed write fails the
//! file for good, and a failed sync is never repeated. The file is new: its name must not exist.
//! Leaves to others: syncing the directory before anyone names the file, and removing it if it
//! fails or is not wanted.

use std::collections::VecDeque;
use std::ops::Range;

use lithify_base::{
    Comparator, ComparatorRef, End, Error, ErrorKind, FileId, InternalKey, KeyRange, Pos, Result,
    Seq, Tag,
};
use lithify_env::{
    BufPool, FileRef, IoBuf, OpenOpts, PendingIo, RtRef, SharedUrgency, Stretch, Ticket,
    spawn_write, spawn_write_part, write_all_at,
};
use lithify_files::dir::{Dir, FileName, OrTyped};
use lithify_format::block::{BlockCheck, TRAILER_LEN};
use lithify_format::checksum::context_modifier;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::props::TableProps;
use lithify_format::table::range_del;
use lithify_format::table::tail::{BlockMeta, TableSpec, TailBuilder};
use lithify_lsm::FileMeta;
use lithify_merge::products::{self, Products};
use lithify_merge::tombstone::RangeTombstone;

use super::dense::DeletionTrigger;

/// How buffers reach the file.
#[derive(Clone)]
pub enum WriteMode {
    /// By the caller, one after the other.
    Sync,
    /// By IO jobs of the runtime.
    Async {
        /// Runs the writes.
        rt: RtRef,
        /// Most writes in flight, at least 1; the assembler asks to wait at this number.
        in_flight: usize,
        /// How urgent they are.
        urgency: SharedUrgency,
    },
}

/// How a table is written and described; has no influence on its bytes.
#[derive(Clone)]
pub struct AssemblerOptions {
    /// Where buffers come from.
    pub pool: BufPool,
    /// Size of a buffer and so of a write, in bytes; a multiple of 4 KiB.
    pub buffer: usize,
    /// How buffers are written.
    pub mode: WriteMode,
    /// Bypass the page cache.
    pub direct: bool,
    /// Space to reserve, in bytes: about what the file will take. 0 reserves none.
    pub reserve: u64,
    /// Marks tables with many deletions.
    pub deletions: DeletionTrigger,
}

/// An encoded data block and what its engine says about it.
#[derive(Clone, Copy, Debug)]
pub struct BlockParts<'a> {
    /// `payload ++ type byte ++ raw sum`.
    pub stored: &'a [u8],
    /// First internal key.
    pub first: InternalKey<'a>,
    /// Last internal key.
    pub last: InternalKey<'a>,
    /// Entries in it.
    pub entries: u64,
    /// Sum of the lengths of its internal keys.
    pub raw_key_bytes: u64,
    /// Sum of the lengths of its values.
    pub raw_value_bytes: u64,
    /// Content weight of its entries ([`lithify_format::weight`]).
    pub weight: u64,
    /// Deletes and single deletes in it.
    pub deletes: u64,
    /// Merge operands in it.
    pub merges: u64,
    /// Smallest and largest sequence number in it.
    pub seqs: (Seq, Seq),
    /// Filter hashes of its distinct user keys, in key order.
    pub hashes: &'a [u64],
}

impl<'a> BlockParts<'a> {
    /// A block of a batch of products; without bytes where their memory was taken.
    pub fn of(of: &'a Products, block: &products::BlockMeta) -> BlockParts<'a> {
        BlockParts {
            stored: of.block(block),
            first: of.first_key(block),
            last: of.last_key(block),
            entries: u64::from(block.entries),
            raw_key_bytes: block.raw_key_bytes,
            raw_value_bytes: block.raw_value_bytes,
            weight: block.weight,
            deletes: u64::from(block.deletes) + u64::from(block.single_deletes),
            merges: u64::from(block.merges),
            seqs: (block.min_seq, block.max_seq),
            hashes: of.hashes(block),
        }
    }
}

/// What became of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedTable {
    /// Its description at position (0, 0); see [`FinishedTable::at`].
    pub meta: FileMeta,
    /// Its properties.
    pub props: TableProps,
}

/// What finishing needs next.
#[derive(Debug)]
pub enum FinishStep {
    /// Call again.
    More,
    /// Call again when the ticket is complete.
    Wait(Ticket),
    /// The table is complete and synced. Its name is not, until the directory is.
    Done(Box<FinishedTable>),
}

/// Writes one table.
pub struct Assembler {
    file: FileRef,
    name: String,
    spec: TableSpec,
    order: ComparatorRef,
    check: BlockCheck,
    options: AssemblerOptions,
    tail: TailBuilder,
    buf: IoBuf,
    /// Offset in the file where `buf` goes.
    buf_at: u64,
    /// Bytes of adopted blocks that [`push_lent`](Assembler::push_lent) has not had yet.
    adopted: u64,
    in_flight: VecDeque<PendingIo>,
    /// How many of the last of them were lent together.
    fresh: usize,
    stage: Stage,
    failed: Option<Error>,
}

enum Stage {
    Open,
    /// The tail is in the buffers; the last ones are being written.
    Draining(Box<FinishedTable>),
    /// Everything is written; the file may be longer than the table.
    Trimming(Box<FinishedTable>),
    Syncing(Box<FinishedTable>),
    Finished,
}

impl Assembler {
    /// Makes the file of the table that `spec` identifies.
    ///
    /// # Errors
    /// Io if the file exists or cannot be made.
    pub fn create(
        dir: &Dir,
        spec: TableSpec,
        order: ComparatorRef,
        options: AssemblerOptions,
    ) -> Result<Assembler> {
        let name = FileName::Table(spec.identity.file_number);
        let opts = if options.direct { OpenOpts::write().direct() } else { OpenOpts::write() };
        let file = dir.create_file(name, opts)?;
        Assembler::over(file, name.to_string(), spec, order, options)
    }

    /// Writes the table that `spec` identifies into `file`, which is empty; `name` is what errors
    /// call it.
    ///
    /// # Errors
    /// Io or NoSpace if the space to reserve is not there.
    pub fn over(
        file: FileRef,
        name: String,
        spec: TableSpec,
        order: ComparatorRef,
        options: AssemblerOptions,
    ) -> Result<Assembler> {
        assert!(
            options.buffer >= 4096 && options.buffer.is_multiple_of(4096),
            "write buffers are multiples of 4 KiB"
        );
        if options.reserve > 0 {
            file.allocate(0, options.reserve).or_typed()?;
        }
        let check = spec.check();
        let buf = new_buffer(&options)?;
        Ok(Assembler {
            file,
            name,
            spec,
            order,
            check,
            options,
            tail: TailBuilder::new(),
            buf,
            buf_at: 0,
            adopted: 0,
            in_flight: VecDeque::new(),
            fresh: 0,
            stage: Stage::Open,
            failed: None,
        })
    }

    /// Number of the file.
    pub fn number(&self) -> FileId {
        FileId(self.spec.identity.file_number)
    }
    /// Bytes of data blocks so far.
    pub fn data_bytes(&self) -> u64 {
        self.tail.data_end()
    }
    /// Data blocks so far.
    pub fn blocks(&self) -> usize {
        self.tail.blocks().len()
    }

    /// Appends a block of a batch of products.
    ///
    /// # Errors
    /// The first failed write; the file is lost then. So for all calls.
    pub fn push_product(&mut self, of: &Products, block: &products::BlockMeta) -> Result<()> {
        self.push_block(BlockParts::of(of, block))
    }

    /// Appends a block.
    ///
    /// # Errors
    /// As [`push_product`](Assembler::push_product); Internal if `stored` is shorter than a
    /// trailer.
    ///
    /// # Panics
    /// After [`finish_step`](Assembler::finish_step).
    pub fn push_block(&mut self, block: BlockParts<'_>) -> Result<()> {
        assert!(self.adopted == 0, "adopted blocks come before others");
        let (head, sum) = self.next_sum(block.stored)?;
        self.append(head)?;
        self.append(&sum)?;
        self.note(block);
        Ok(())
    }

    /// Adds a block that lies in memory which is written itself: `arena` has it at its `place`, and gets the stored
    /// sum there. What is adopted goes to the file by [`push_lent`](Assembler::push_lent), before anything else does.
    ///
    /// # Errors
    /// As [`push_block`](Assembler::push_block).
    pub fn adopt(
        &mut self,
        arena: &mut [u8],
        place: Range<usize>,
        block: BlockParts<'_>,
    ) -> Result<()> {
        let stored = arena.get(place.clone()).ok_or_else(truncated)?;
        let (_, sum) = self.next_sum(stored)?;
        if let Some(to) = arena[place.clone()].last_chunk_mut() {
            *to = sum;
        }
        self.adopted += place.len() as u64;
        self.note(BlockParts { stored: &arena[place], ..block });
        Ok(())
    }

    /// Writes adopted blocks, which lie side by side in each of some parts of `from`: from there, but for what the file
    /// cannot take so. With direct IO that is the ends; all of a part if it lies otherwise in its pages than in those of the
    /// file. [`needs_wait`](Assembler::needs_wait) does not count what was lent last.
    ///
    /// # Errors
    /// As [`push_product`](Assembler::push_product).
    ///
    /// # Panics
    /// If these are not the blocks that were adopted.
    pub fn push_lent(&mut self, from: &Stretch, parts: &[Range<usize>]) -> Result<()> {
        let before = self.in_flight.len();
        parts.iter().try_for_each(|part| self.write_lent(from, part.clone()))?;
        self.fresh = self.in_flight.len() - before;
        Ok(())
    }

    fn write_lent(&mut self, from: &Stretch, part: Range<usize>) -> Result<()> {
        let left = self.adopted.checked_sub(part.len() as u64);
        self.adopted = left.expect("what is written was adopted");
        let bytes = &(**from).as_ref()[part.clone()];
        let Range { start, end } = self.in_place(bytes);
        self.append(&bytes[..start])?;
        if start < end && !self.buf.is_empty() {
            self.submit()?;
        }
        // The system writes to a buffered file one piece at a time, and waking a thread for each costs more than that.
        let most = match self.file.alignment() {
            1 => usize::MAX,
            _ => self.options.buffer,
        };
        let mut at = start;
        while at < end
            && let WriteMode::Async { rt, urgency, .. } = &self.options.mode
        {
            let next = end.min(at.saturating_add(most));
            let (file, piece) = (self.file.clone(), part.start + at..part.start + next);
            let io = spawn_write_part(&**rt, urgency, file, from, piece, self.buf_at);
            self.in_flight.push_back(io);
            self.buf_at += (next - at) as u64;
            at = next;
        }
        self.append(&bytes[end..])
    }

    /// Which of the next bytes of the file are written from where they lie.
    fn in_place(&self, bytes: &[u8]) -> Range<usize> {
        // A write costs more than copying a few bytes does.
        let is_short = bytes.len() < self.options.buffer / 4;
        if is_short || matches!(self.options.mode, WriteMode::Sync) {
            return 0..0;
        }
        let alignment = self.file.alignment();
        let filled = self.buf.len();
        let head = filled.next_multiple_of(alignment) - filled;
        if head >= bytes.len() || !(bytes.as_ptr().addr() + head).is_multiple_of(alignment) {
            return 0..0;
        }
        let rest = bytes.len() - head;
        head..head + (rest - rest % alignment)
    }

    /// What goes to the file of the next block: all but its sum, and the sum at the place where it comes to lie.
    fn next_sum<'a>(&self, stored: &'a [u8]) -> Result<(&'a [u8], [u8; 4])> {
        assert!(matches!(self.stage, Stage::Open), "the table is being finished");
        self.check_failed()?;
        let (head, sum) = stored.split_last_chunk::<4>().ok_or_else(truncated)?;
        if head.is_empty() {
            return Err(truncated());
        }
        let modifier = context_modifier(self.check.base, self.tail.data_end());
        Ok((head, u32::from_le_bytes(*sum).wrapping_add(modifier).to_le_bytes()))
    }

    /// Notes what the tail says of the next block.
    fn note(&mut self, block: BlockParts<'_>) {
        let offset = self.tail.data_end();
        let size = (block.stored.len() - TRAILER_LEN) as u64;
        self.tail.push_hashes(block.hashes);
        self.tail.push_block(BlockMeta {
            handle: BlockHandle::new(offset, size),
            first_key: block.first.to_vec(),
            last_key: block.last.to_vec(),
            entries: block.entries,
            raw_key_bytes: block.raw_key_bytes,
            raw_value_bytes: block.raw_value_bytes,
            weight: block.weight,
            deletes: block.deletes,
            merges: block.merges,
            min_seq: block.seqs.0,
            max_seq: block.seqs.1,
        });
    }

    /// Appends range tombstones: fragments, by start and then newest first.
    pub fn push_tombstones(&mut self, tombstones: &[RangeTombstone]) {
        for t in tombstones {
            let (start, end) = (t.lo.to_vec(), t.hi.to_vec());
            self.tail.push_tombstone(range_del::RangeTombstone { start, end, seq: t.seq });
        }
    }

    /// A ticket to wait for before more blocks are pushed; `None` if there is room.
    pub fn needs_wait(&mut self) -> Option<Ticket> {
        self.reap();
        let most = match &self.options.mode {
            WriteMode::Sync => return None,
            WriteMode::Async { in_flight, .. } => (*in_flight).max(1),
        };
        // What was lent last is written while the next comes.
        if self.in_flight.len().saturating_sub(self.fresh) < most {
            return None;
        }
        self.in_flight.front().map(|io| io.ticket().clone())
    }

    /// Does the next step of finishing the table: at most one IO call by the caller's thread.
    ///
    /// # Errors
    /// The first failed write or sync, or a table without entries. The file is lost then.
    pub fn finish_step(&mut self) -> Result<FinishStep> {
        self.check_failed()?;
        match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Open => self.begin_tail(),
            Stage::Draining(done) => self.drain(done),
            Stage::Trimming(done) => {
                let trimmed = self.file.set_len(done.meta.bytes).or_typed();
                self.remember(trimmed)?;
                self.stage = Stage::Syncing(done);
                Ok(FinishStep::More)
            }
            Stage::Syncing(done) => {
                let synced = self.file.sync_all().or_typed();
                self.remember(synced)?;
                Ok(FinishStep::Done(done))
            }
            Stage::Finished => panic!("the table is finished"),
        }
    }

    /// Finishes the table, waiting where needed.
    ///
    /// # Errors
    /// As [`finish_step`](Assembler::finish_step).
    pub fn finish(mut self) -> Result<FinishedTable> {
        loop {
            match (self.finish_step()?, &self.options.mode) {
                (FinishStep::Done(done), _) => return Ok(*done),
                (FinishStep::Wait(ticket), WriteMode::Async { rt, .. }) => {
                    rt.park(&ticket, None);
                }
                _ => {}
            }
        }
    }

    /// Builds the tail and hands it to the buffers.
    fn begin_tail(&mut self) -> Result<FinishStep> {
        let mut builder = std::mem::take(&mut self.tail);
        let bounds = bounds(&builder, &*self.order)
            .ok_or_else(|| Error::invalid("a table has entries or range tombstones"))?;
        if self.spec.as_rocksdb && self.order.is_bytewise() {
            let end = if bounds.0.hi.inclusive { &[] } else { &bounds.0.hi.key[..] };
            builder.widen_tombstones(&bounds.0.lo, end);
        }
        let data_end = builder.data_end();
        // The description counts user keys and values of points alone, the properties internal
        // keys and range tombstones with them.
        let keys: u64 = builder.blocks().iter().map(|b| b.raw_key_bytes - 8 * b.entries).sum();
        let values: u64 = builder.blocks().iter().map(|b| b.raw_value_bytes).sum();
        let marked = self.options.deletions.marks(builder.blocks());
        let tail = builder.finish(&self.spec, &*self.order)?;
        self.append(&tail.bytes)?;
        if !self.buf.is_empty() {
            // The padding of a direct file is cut off again by `Trimming`.
            self.buf.pad_to(self.file.alignment());
            self.submit()?;
        }
        let p = &tail.props;
        let (range, lo_tag, hi_tag) = bounds;
        let ranges = p.num_range_deletions;
        let mut meta = FileMeta::new(self.number(), Pos::new(0, 0), range);
        meta.lo_tag = lo_tag;
        meta.hi_tag = hi_tag;
        meta.bytes = tail.file_size;
        meta.entries = p.points();
        meta.deletes = p.deleted_keys.saturating_sub(ranges);
        meta.range_deletes = ranges;
        meta.raw_key_bytes = keys;
        meta.raw_value_bytes = values;
        meta.seqs = (p.key_smallest_seqno.unwrap_or(0), p.key_largest_seqno.unwrap_or(0));
        meta.base_context = tail.check.base;
        meta.tail_bytes = tail.file_size - data_end;
        meta.created = p.file_creation_time;
        meta.oldest_ancestor = p.creation_time;
        meta.marked = marked;
        self.stage = Stage::Draining(Box::new(FinishedTable { meta, props: tail.props }));
        Ok(FinishStep::More)
    }

    fn drain(&mut self, done: Box<FinishedTable>) -> Result<FinishStep> {
        self.reap();
        self.check_failed()?;
        if let Some(io) = self.in_flight.front() {
            let ticket = io.ticket().clone();
            self.stage = Stage::Draining(done);
            return Ok(FinishStep::Wait(ticket));
        }
        let longer = self.buf_at != done.meta.bytes || self.options.reserve > done.meta.bytes;
        self.stage = if longer { Stage::Trimming(done) } else { Stage::Syncing(done) };
        Ok(FinishStep::More)
    }

    /// Copies bytes to the buffers, handing full ones on.
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let room = self.options.buffer - self.buf.len();
            let (now, rest) = bytes.split_at(bytes.len().min(room));
            self.buf.extend_from_slice(now);
            if self.buf.len() == self.options.buffer {
                self.submit()?;
            }
            if rest.is_empty() {
                return Ok(());
            }
            bytes = rest;
        }
    }

    /// Writes the buffer, or has it written, and starts a new one.
    fn submit(&mut self) -> Result<()> {
        let at = self.buf_at;
        self.buf_at += self.buf.len() as u64;
        match &self.options.mode {
            WriteMode::Sync => {
                let written = write_all_at(&*self.file, self.buf.as_slice(), at).or_typed();
                self.buf.clear();
                self.remember(written)
            }
            WriteMode::Async { rt, urgency, .. } => {
                let (rt, urgency) = (rt.clone(), urgency.clone());
                let next = new_buffer(&self.options)?;
                let full = std::mem::replace(&mut self.buf, next);
                let io = spawn_write(&*rt, &urgency, self.file.clone(), full, at);
                self.in_flight.push_back(io);
                Ok(())
            }
        }
    }

    /// Takes back buffers whose writes have ended, in order.
    fn reap(&mut self) {
        while self.in_flight.front().is_some_and(PendingIo::is_done) {
            let Some(io) = self.in_flight.pop_front() else { return };
            let (_, result) = io.take();
            // The first failure is kept and returned by the next call.
            let _ = self.remember(result.map(drop).or_typed());
        }
    }

    fn remember(&mut self, result: Result<()>) -> Result<()> {
        let named = result.map_err(|e| e.in_file(&self.name));
        if let (Err(e), None) = (&named, &self.failed) {
            self.failed = Some(e.clone());
        }
        named
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl FinishedTable {
    /// The description of the table at a position. `epoch` is its age among flushes; in level 0
    /// it is the stratum.
    pub fn at(&self, pos: Pos, epoch: u64) -> FileMeta {
        FileMeta { pos, epoch, ..self.meta.clone() }
    }
}

#[cold]
fn truncated() -> Error {
    Error::new(ErrorKind::Internal, "an engine returned a truncated block")
}

fn new_buffer(options: &AssemblerOptions) -> Result<IoBuf> {
    options.pool.try_get(options.buffer).map_err(|_| {
        Error::new(ErrorKind::LimitExceeded, "no memory for a write buffer of a table")
    })
}

/// Bounds of points and tombstones together, with the tags of the outermost internal keys.
fn bounds(tail: &TailBuilder, order: &dyn Comparator) -> Option<(KeyRange, Tag, Tag)> {
    let blocks: Range<Option<&BlockMeta>> = tail.blocks().first()..tail.blocks().last();
    let lows = [
        blocks.start.and_then(|b| InternalKey::decode(&b.first_key)),
        tail.tombstones().first().map(|t| t.key()),
    ];
    let lo = lows.into_iter().flatten().min_by(|a, b| a.cmp(*b, order))?;
    let last = blocks.end.and_then(|b| InternalKey::decode(&b.last_key));
    let point = last.map(|key| (End::incl(key.user), key.tag));
    let ends = tail.tombstones().iter().map(|t| &t.end);
    let range = ends
        .max_by(|a, b| order.compare(a, b))
        .map(|end| (End::excl(&end[..]), FileMeta::EXCLUSIVE_END));
    let (hi, hi_tag) = [point, range].into_iter().flatten().max_by(|a, b| a.0.cmp(&b.0, order))?;
    Some((KeyRange { lo: lo.user.into(), hi }, lo.tag, hi_tag))
}

#[cfg(test)]
mod tests;
