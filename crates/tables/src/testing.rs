//! What tests of tables share, here and in the rooms above: generated entries, tables written the real
//! way, and a model to compare reads with.

use std::sync::Arc;

use lithify_base::{InternalKey, Kind, Prefixes, Seq, Tag, bytewise};
use lithify_env::{BufPool, IoBuf, OpenOpts, OsRt, RtOptions, SharedUrgency, Stretch};
use lithify_files::testing::{bytes_of, overwrite};
use lithify_files::{Dir, FileName};
use lithify_format::compress::Codec;
use lithify_format::table::footer::Footer;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::metaindex::{self, MetaIndex};
use lithify_format::table::props::TableProps;
use lithify_format::table::tail::{TableIdentity, TableSpec};
use lithify_merge::kernel::Kernel;
use lithify_merge::products::{Item, PAGE, Products};
use lithify_merge::recipe::Recipe;
use lithify_merge::tombstone::{Fragments, RangeTombstone};
use lithify_merge::workload::Choices;

use crate::cache::BlockCache;
use crate::sst::{
    Assembler, AssemblerOptions, BlockParts, DeletionTrigger, FinishedTable, FullIndex, OpenTable,
    TableReader, Verify, WriteMode,
};

/// An entry: user key, tag, value.
pub type Entry = (Vec<u8>, Tag, Vec<u8>);

/// The database id of all tables made here.
pub const DB: &str = "0f3a-test";

/// `keys` user keys in order, some with several versions, deletes and operands among them.
pub fn entries(keys: usize, seed: u64) -> Vec<Entry> {
    let mut choices = Choices::new(seed);
    let mut out = Vec::new();
    let mut seq = 1;
    for i in 0..keys {
        let key = format!("key{:05}{}", i * 3, "x".repeat(choices.below(4))).into_bytes();
        let versions = if choices.one_in(4) { 1 + choices.below(9) } else { 1 };
        let mut of_key = Vec::new();
        for _ in 0..versions {
            let kind =
                choices.pick(&[Kind::Value, Kind::Value, Kind::Value, Kind::Delete, Kind::Merge]);
            let len = choices.below(60);
            let value = if kind == Kind::Delete { Vec::new() } else { choices.bytes(len) };
            of_key.push((key.clone(), Tag::new(seq, kind), value));
            seq += 1;
        }
        out.extend(of_key.into_iter().rev());
    }
    out
}

/// How a test table is written.
#[derive(Clone)]
pub struct Make {
    /// Format version.
    pub version: u32,
    /// How blocks are compressed.
    pub codec: Codec,
    /// Who writes: the caller, or a thread behind its back.
    pub mode: WriteMode,
    /// Whether the file is written past the system's cache.
    pub direct: bool,
    /// Space to reserve, bytes; 0 reserves none.
    pub reserve: u64,
    /// Size of a data block, bytes.
    pub block_bytes: u32,
    /// Largest index, and filter, of one block, bytes.
    pub index_cap: usize,
    /// Bytes that are gathered before they are written.
    pub buffer: usize,
    /// Whether there is a filter over whole keys.
    pub whole_keys: bool,
    /// What of the keys the filter holds besides.
    pub prefixes: Prefixes,
    /// Batches in a row whose memory is written itself, before one whose blocks are copied. Only in the background.
    pub lent: usize,
}

impl Default for Make {
    fn default() -> Make {
        Make {
            version: 6,
            codec: Codec::None,
            mode: WriteMode::Sync,
            direct: false,
            reserve: 0,
            block_bytes: 512,
            index_cap: 1 << 20,
            buffer: 4096,
            whole_keys: true,
            prefixes: Prefixes::default(),
            lent: 0,
        }
    }
}

/// A mode that writes behind the caller's back.
pub fn in_background() -> WriteMode {
    WriteMode::Async {
        rt: Arc::new(OsRt::new(RtOptions::default())),
        in_flight: 2,
        urgency: SharedUrgency::default(),
    }
}

impl Make {
    /// What the assembler is told of table `number`.
    pub fn spec(&self, number: u64) -> TableSpec {
        let mut spec = TableSpec { version: self.version, ..TableSpec::default() };
        spec.index.cap = self.index_cap;
        spec.index.partition = 256;
        spec.filter_partition = if self.index_cap < 256 { 256 } else { 0 };
        spec.whole_keys = self.whole_keys;
        spec.prefixes = self.prefixes.clone();
        spec.compression = self.codec.name();
        spec.identity =
            TableIdentity { db_id: DB.into(), file_number: number, ..TableIdentity::default() };
        spec
    }

    /// The assembler of table `number`.
    pub fn begin(&self, dir: &Dir, number: u64) -> lithify_base::Result<Assembler> {
        let options = AssemblerOptions {
            pool: BufPool::new(1 << 20),
            buffer: self.buffer,
            mode: self.mode.clone(),
            direct: self.direct,
            reserve: self.reserve,
            deletions: DeletionTrigger::default(),
        };
        Assembler::create(dir, self.spec(number), bytewise(), options)
    }

    /// Writes a table as a flush does: kernel, products, assembler. Keeps every entry.
    pub fn write(
        &self,
        dir: &Dir,
        number: u64,
        entries: &[Entry],
        tombstones: &[RangeTombstone],
    ) -> lithify_base::Result<FinishedTable> {
        let mut recipe = Recipe::new(1);
        recipe.block_bytes = self.block_bytes;
        recipe.codec = self.codec;
        recipe.filter = self.whole_keys;
        recipe.prefixes = self.prefixes.clone();
        // A snapshot below every entry: nothing is hidden.
        let last = entries.iter().map(|e| e.1.seq()).max().unwrap_or(0);
        recipe.snapshots = (1..=last).collect();
        recipe.tombstones = Fragments::from_raw(tombstones.iter().cloned(), &*recipe.order);
        let mut kernel = Kernel::new(Arc::new(recipe))?;
        let mut table = self.begin(dir, number)?;
        let mut products = Products::default();
        let (mut batches, batch) = (0, if self.lent > 0 { self.buffer } else { 2000 });
        for (key, tag, value) in entries {
            kernel.push(key, *tag, value, 0)?;
            if kernel.ready_bytes() > batch {
                kernel.drain(&mut products);
                batches += 1;
                match batches % (self.lent + 1) {
                    0 => absorb(&mut table, &products, &self.mode)?,
                    _ => adopt(&mut table, &products, &self.mode)?,
                }
            }
        }
        kernel.finish()?;
        kernel.drain(&mut products);
        absorb(&mut table, &products, &self.mode)?;
        table.finish()
    }
}

fn absorb(
    table: &mut Assembler,
    products: &Products,
    mode: &WriteMode,
) -> lithify_base::Result<()> {
    for item in products.items() {
        match item {
            Item::Block(block) => {
                if let (Some(ticket), WriteMode::Async { rt, .. }) = (table.needs_wait(), mode) {
                    rt.park(&ticket, None);
                }
                table.push_product(products, block)?;
            }
            Item::FileCut(cut) => table.push_tombstones(&cut.tombstones),
            Item::SetDone(_) => {}
        }
    }
    Ok(())
}

/// The same of blocks whose memory is written itself: it lies in its pages as in those of the file.
fn adopt(table: &mut Assembler, products: &Products, mode: &WriteMode) -> lithify_base::Result<()> {
    if let (Some(ticket), WriteMode::Async { rt, .. }) = (table.needs_wait(), mode) {
        rt.park(&ticket, None);
    }
    let before = (table.data_bytes() % PAGE as u64) as usize;
    let mut arena = IoBuf::with_capacity(before + products.arena().len());
    arena.set_len(before);
    arena.extend_from_slice(products.arena());
    let mut end = before;
    for item in products.items() {
        if let Item::Block(block) = item {
            let place = products.place(block);
            end = before + place.end;
            let of = BlockParts::of(products, block);
            table.adopt(&mut arena, before + place.start..end, of)?;
        }
    }
    let arena: Stretch = Arc::new(arena);
    let part = before..end;
    table.push_lent(&arena, std::slice::from_ref(&part))
}

/// Opens table `number` of a directory.
pub fn open(
    dir: &Dir,
    number: u64,
    cache: Option<Arc<BlockCache>>,
) -> lithify_base::Result<Arc<TableReader>> {
    let (name, file) = dir.open_table(number, OpenOpts::read())?;
    let mut spec = OpenTable::new(file, name.to_string(), bytewise());
    spec.cache = cache;
    spec.verify = Verify::Always;
    TableReader::open(spec)
}

/// Data blocks of a table.
pub fn blocks_in(table: &Arc<TableReader>) -> usize {
    FullIndex::of(table.clone()).unwrap().block_fences().len()
}

/// Changes the properties of table `number`, of format version 5, where they are. Their length
/// must stay the same.
pub fn edit_props(dir: &Dir, number: u64, edit: impl FnOnce(&mut TableProps)) {
    let name = FileName::Table(number);
    let mut bytes = bytes_of(dir, name);
    let footer = Footer::read(&bytes, bytes.len() as u64).unwrap();
    let payload = |h: BlockHandle| h.offset as usize..(h.offset + h.size) as usize;
    let names = MetaIndex::decode(&bytes[payload(footer.metaindex)]).unwrap();
    let at = names.get(metaindex::PROPERTIES).unwrap();
    let mut props = TableProps::decode(&bytes[payload(at)]).unwrap();
    edit(&mut props);
    let props = props.encode();
    assert_eq!(props.len() as u64, at.size, "the file around it stays");
    let mut block = Vec::new();
    footer.check.append(&mut block, &props, 0, at.offset);
    bytes[at.offset as usize..][..block.len()].copy_from_slice(&block);
    overwrite(dir, name, &bytes);
}

/// What the model says about entries of `key` at or below `at`, newest first.
pub fn model_get(entries: &[Entry], key: &[u8], at: Seq) -> Vec<(Tag, Vec<u8>)> {
    let of_key = entries.iter().filter(|e| e.0 == key && e.1.seq() <= at);
    of_key.map(|e| (e.1, e.2.clone())).collect()
}

/// Position of the first entry at or after a target.
pub fn model_seek(entries: &[Entry], user: &[u8], tag: Tag) -> usize {
    let target = InternalKey { user, tag };
    entries.partition_point(|e| {
        InternalKey { user: &e.0, tag: e.1 }.cmp(target, &lithify_base::Bytewise).is_lt()
    })
}
