//! The back end of a job: products in, synced table files out.
//!
//! Blocks are assembled and written behind the merge. When a file is cut, the rest of its life goes on by itself
//! while the next file is being filled: its tail is built, filter and all, writes are drained, and it is synced.
//! Blocks of a machine come in memory of their own, which is written itself; others are copied into buffers.

use std::ops::Range;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, FileId, Result};
use lithify_env::sync::Arc;
use lithify_env::{
    Class, Job, Receiver, Sender, SharedUrgency, Step, Stretch, Ticket, Urgency, oneshot,
};
use lithify_files::dir::{Dir, FileName};
use lithify_lsm::FileMeta;
use lithify_merge::products::PAGE;
use lithify_merge::tombstone::RangeTombstone;
use lithify_merge::{Item, Lent, Products};
use lithify_tables::sst::{
    Assembler, AssemblerOptions, BlockParts, FinishStep, FinishedTable, WriteMode,
};

use crate::context::JobContext;
use crate::order::OutputOrder;

/// Output writes under way at once for a compaction's file.
const WRITES_BEHIND: usize = 3;
/// The same for a flush: writers wait for it, so it takes a larger share of the disk.
const FLUSH_WRITES_BEHIND: usize = 12;
/// Files of a compaction being drained and synced at once.
const CLOSING_MAX: usize = 4;
/// The same for a flush, which may be cut into many small ones; each has a buffer at least.
const FLUSH_CLOSING_MAX: usize = 20;
/// What the system says of a name that is taken.
const EEXIST: i32 = 17;

/// Takes products and makes table files.
pub(crate) struct Sink {
    context: Arc<JobContext>,
    urgency: SharedUrgency,
    output: OutputOrder,
    /// What blocks were compressed with, if a dictionary.
    dictionary: Option<Arc<[u8]>>,
    open: Option<Assembler>,
    closing: Vec<Closing>,
    done: Vec<FileMeta>,
    written: u64,
    directory_synced: bool,
    /// Last, so that files are closed before they are removed.
    litter: Litter,
}

/// The files of a job that has not ended well (yet): they go with it, lest a job that fails for
/// want of space takes some at every try.
struct Litter {
    dir: Dir,
    files: Vec<FileId>,
}

impl Drop for Litter {
    fn drop(&mut self) {
        for id in &self.files {
            // What stays is an orphan; the next open collects it.
            let _ = self.dir.remove(FileName::Table(id.0));
        }
    }
}

impl Litter {
    /// The next output file.
    fn create(
        &mut self,
        context: &JobContext,
        urgency: SharedUrgency,
        output: &OutputOrder,
        dictionary: Option<Arc<[u8]>>,
    ) -> Result<Assembler> {
        let dictionary = match zoo::on(Bug::DictionaryOnce) {
            true => dictionary.filter(|_| self.files.is_empty()),
            false => dictionary,
        };
        let id = context.next_file();
        self.files.push(id);
        let spec = context.table_spec(id, output, dictionary);
        let in_flight = if output.pos.level == 0 { FLUSH_WRITES_BEHIND } else { WRITES_BEHIND };
        let options = AssemblerOptions {
            pool: context.buffers.clone(),
            buffer: context.output.write_bytes,
            mode: WriteMode::Async { rt: context.env.rt.clone(), in_flight, urgency },
            direct: context.output.direct_io,
            reserve: 0,
            deletions: output.shape.deletions,
        };
        let created = Assembler::create(&self.dir, spec, context.order.clone(), options);
        if created.as_ref().is_err_and(|e| e.errno() == Some(EEXIST)) {
            // A file of another owner, if this one was robbed of its lock.
            self.files.pop();
        }
        created
    }
}

/// A file whose writes and sync are under way.
type Closing = Receiver<Result<Box<FinishedTable>>>;

impl Sink {
    /// A sink whose files are as `output` orders, written as urgently as `urgency` says.
    pub(crate) fn new(
        context: Arc<JobContext>,
        urgency: SharedUrgency,
        output: OutputOrder,
    ) -> Sink {
        let dir = context.table_dirs.at(output.place).clone();
        let litter = Litter { dir, files: Vec::new() };
        Sink {
            context,
            urgency,
            output,
            dictionary: None,
            open: None,
            closing: Vec::new(),
            done: Vec::new(),
            written: 0,
            directory_synced: false,
            litter,
        }
    }

    /// Puts the dictionary that blocks are compressed with into its files.
    pub(crate) fn with_dictionary(mut self, dictionary: Option<Arc<[u8]>>) -> Sink {
        self.dictionary = dictionary;
        self
    }

    /// Takes what an engine produced.
    pub(crate) fn take(&mut self, products: &mut Products) -> Result<()> {
        if products.is_lent() {
            return self.take_lent(products);
        }
        for item in products.items() {
            match item {
                Item::Block(block) => self.table()?.push_product(products, block)?,
                Item::FileCut(cut) => {
                    if let Some(table) = self.cut(&cut.tombstones)? {
                        self.close(table);
                    }
                }
                Item::SetDone(_) => {}
            }
        }
        products.clear();
        Ok(())
    }

    /// The same of blocks in memory that is the sink's now: their sums are turned where they lie, file by file, and
    /// then the memory is written.
    fn take_lent(&mut self, products: &mut Products) -> Result<()> {
        let Some(mut lent) = products.take_lent() else { return Ok(()) };
        let mut whole: Vec<(Assembler, Vec<Range<usize>>)> = Vec::new();
        let mut parts: Vec<Range<usize>> = Vec::new();
        for item in products.items() {
            match item {
                Item::Block(block) => {
                    let place = products.place(block);
                    let of = BlockParts::of(products, block);
                    self.table()?.adopt(lent.bytes_mut(), place.clone(), of)?;
                    match parts.last_mut() {
                        Some(last) if last.end == place.start => last.end = place.end,
                        _ => parts.push(place),
                    }
                }
                Item::FileCut(cut) => {
                    let table = self.cut(&cut.tombstones)?;
                    whole.extend(table.map(|table| (table, std::mem::take(&mut parts))));
                }
                Item::SetDone(_) => {}
            }
        }
        let stretch: Stretch = Arc::new(Written(lent));
        for (mut table, parts) in whole {
            table.push_lent(&stretch, &parts)?;
            self.close(table);
        }
        if let Some(table) = &mut self.open {
            table.push_lent(&stretch, &parts)?;
        }
        products.clear();
        Ok(())
    }

    /// How far behind a multiple of a page the file that is open has come.
    pub(crate) fn phase(&self) -> usize {
        let bytes = self.open.as_ref().map_or(0, Assembler::data_bytes);
        (bytes % PAGE as u64) as usize
    }

    /// The file that is open, or a new one.
    fn table(&mut self) -> Result<&mut Assembler> {
        Ok(match &mut self.open {
            Some(table) => table,
            closed => {
                let table = self.litter.create(
                    &self.context,
                    self.urgency.clone(),
                    &self.output,
                    self.dictionary.clone(),
                )?;
                closed.insert(table)
            }
        })
    }

    /// The file that ends with these range tombstones, if there is anything in it.
    fn cut(&mut self, tombstones: &[RangeTombstone]) -> Result<Option<Assembler>> {
        if self.open.is_none() && tombstones.is_empty() {
            return Ok(None);
        }
        let mut table = match self.open.take() {
            Some(table) => table,
            // Without blocks, so none was compressed.
            None => self.litter.create(&self.context, self.urgency.clone(), &self.output, None)?,
        };
        table.push_tombstones(tombstones);
        Ok(Some(table))
    }

    /// The write or sync to wait for before more is taken, if too much is under way.
    pub(crate) fn must_wait(&mut self) -> Result<Option<Ticket>> {
        self.reap()?;
        let most = if self.output.pos.level == 0 { FLUSH_CLOSING_MAX } else { CLOSING_MAX };
        if self.closing.len() >= most {
            return Ok(Some(self.closing[0].ticket().clone()));
        }
        Ok(self.open.as_mut().and_then(Assembler::needs_wait))
    }

    /// After the last products: what to wait for until every file is synced, `None` when all
    /// are and their names are, too.
    pub(crate) fn finish(&mut self) -> Result<Option<Ticket>> {
        if self.open.is_some() {
            return Err(Error::new(ErrorKind::Internal, "the last file was not cut"));
        }
        self.reap()?;
        if let Some(closing) = self.closing.first() {
            return Ok(Some(closing.ticket().clone()));
        }
        if !self.directory_synced && !self.done.is_empty() {
            self.litter.dir.sync()?;
            self.directory_synced = true;
        }
        Ok(None)
    }

    /// Where its files are made.
    pub(crate) fn context(&self) -> &JobContext {
        &self.context
    }
    /// Bytes of finished files.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }
    /// The files, in key order.
    pub(crate) fn into_files(mut self) -> Vec<FileMeta> {
        self.litter.files.clear();
        self.done
    }

    /// Lets the closing go on by itself.
    fn close(&mut self, table: Assembler) {
        let (result, closing) = oneshot();
        let job = Finish { urgency: self.urgency.clone(), table, result };
        self.context.env.rt.spawn(Class::Io, Box::new(job));
        self.closing.push(closing);
    }

    /// Takes in closed files, in order.
    fn reap(&mut self) -> Result<()> {
        while let Some(first) = self.closing.first()
            && first.is_done()
        {
            let lost = || Error::new(ErrorKind::Internal, "a file was closed without a result");
            let mut meta = self.closing.remove(0).take().ok_or_else(lost)??.meta;
            meta.pos = self.output.pos;
            meta.place = self.output.place;
            meta.epoch = self.output.epoch;
            self.written += meta.bytes;
            self.done.push(meta);
        }
        Ok(())
    }
}

/// Memory that nothing changes any more.
struct Written(Box<dyn Lent>);

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Builds the tail of a file, drains and syncs it.
struct Finish {
    urgency: SharedUrgency,
    table: Assembler,
    result: Sender<Result<Box<FinishedTable>>>,
}

impl Finish {
    fn end(&self, result: Result<Box<FinishedTable>>) -> Step {
        self.result.send(result);
        Step::Done
    }
}

impl Job for Finish {
    fn step(&mut self) -> Step {
        match self.table.finish_step() {
            Ok(FinishStep::More) => Step::More,
            Ok(FinishStep::Wait(ticket)) => Step::Wait(ticket),
            Ok(FinishStep::Done(done)) => self.end(Ok(done)),
            Err(e) => self.end(Err(e)),
        }
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        self.end(Err(Error::new(ErrorKind::Internal, message)));
    }
}
