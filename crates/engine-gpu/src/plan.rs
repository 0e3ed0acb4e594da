//! The plan of a set: which tables go to the device, where everything lies there, and which kernels run.
//!
//! A set has two halves. The *front* needs no carry: it verifies, merges and drops. The *back* lays out and encodes,
//! from where the output stands, and runs once the set before has joined the output. Each half has memory of
//! its own.
//!
//! Keeps: room is taken for what a set of its counts can come to at most, so no kernel needs to ask.
//! Leaves to others: copies and waiting (`unit`), and what comes back (`returned`).

use lithify_base::MAX_SEQ;
use lithify_format::compress::Codec;
use lithify_merge::offload::{OpenState, Tables};
use lithify_merge::recipe::Density;
use lithify_merge::{Carry, Recipe};

use crate::device::{Device, Kernel, Queue, Shape};
use crate::layout::{
    BlockIn, BlockOut, Bound, Carve, KEY_MOST, LIST, LISTS_MOST, Params, RunIn, Status, Tick, Zone,
};
use crate::stage::{Staged, Totals};
use crate::unit::{OnDevice, Trouble};

/// Scans of a set.
const SCANS: u64 = 6;

/// Bytes that each entry takes in records and in room for output, as [`carve_records`] and [`carve_output`] take it.
const OF_ENTRY: f64 = (9 * 8 + 13 * 4 + 1 + 3 * 8 + 4 * 4 + 1 + 2 * 8 + 27) as f64;
/// Sets are not alike, and each has small tables.
const SLACK: f64 = 1.15;
/// What a set is taken to need where it is not known what the inputs hold.
const UNKNOWN: f64 = 16.0;

/// Bytes of device memory that a stored byte of a set needs, of both halves, on a device of that shape.
pub(crate) fn need(shape: Shape, recipe: &Recipe) -> f64 {
    let Some(density) = recipe.density else { return UNKNOWN };
    let Density { entries, key_bytes, plain_bytes, compressed } = density;
    let threads = f64::from(shape.threads);
    let (tile, of_scan) = (threads * f64::from(shape.items), threads * f64::from(shape.scan_items));
    let ticks = SCANS as f64 * Tick::BYTES as f64;
    let splits = 4.0 * f64::from(recipe.runs).clamp(1.0, LISTS_MOST as f64);
    let blocks = (key_bytes + 12.0 * entries + plain_bytes) / f64::from(recipe.block_bytes.max(1));
    let of_entries = entries * (OF_ENTRY + ticks / of_scan + splits / tile);
    // Of keys: the heap, bounds of blocks twice, and the output; of blocks: input, as it is stored, too, if it is
    // compressed, and output, twice if that is, and their rows.
    let outputs = 1.0 + f64::from(u8::from(recipe.codec == Codec::Lz4));
    let of_bytes = 4.0 * key_bytes + (1.0 + outputs) * plain_bytes + compressed;
    let rows = blocks * (BlockOut::BYTES + BlockIn::BYTES + 9) as f64;
    SLACK * (of_entries + of_bytes + rows)
}

/// The first half of a set as it will lie on the device; places count from the beginning of its memory.
pub(crate) struct Front {
    pub(crate) image: Image,
    params: Params,
    /// Bytes of memory.
    pub(crate) bytes: u64,
    /// The same of the second half, behind an open block of usual size.
    pub(crate) back: u64,
    tiles: Tiles,
}

/// What the second half needs to know of the first one.
pub(crate) struct Fronted {
    /// What its kernels were told.
    params: Params,
    tiles: Tiles,
    totals: Totals,
    /// Bytes of all payloads.
    input: u64,
}

/// How kernels go over all entries.
#[derive(Clone, Copy)]
struct Tiles {
    /// How many the merge has, and entries of each.
    count: u64,
    size: u64,
    /// The same of scans.
    of_scan: u64,
    scan_size: u64,
}

impl Tiles {
    fn of(shape: Shape, records: u64) -> Tiles {
        let [size, scan_size] = [shape.items, shape.scan_items]
            .map(|items| u64::from(shape.threads) * u64::from(items));
        let [count, of_scan] = [size, scan_size].map(|size| records.div_ceil(size).max(1));
        Tiles { count, size, of_scan, scan_size }
    }
    /// Bytes of a scan's lines: one before the first tile, and one tile more for the scan over blocks, of which
    /// there is one more than entries.
    fn scan(self) -> u64 {
        (self.of_scan + 3) * Tick::BYTES as u64
    }
}

/// Bytes that each record takes of a front's memory at least, as [`carve_records`] takes it.
const RECORD: u64 = 9 * 8 + 13 * 4 + 1;

/// Bytes of memory that a front with these totals has at least: known before its tables are made, as what a block claims
/// of itself may be far more than it has.
pub(crate) fn least(totals: Totals) -> u64 {
    totals.records.saturating_mul(RECORD).saturating_add(totals.heap)
}

impl Front {
    /// Lays a set out whose blocks are counted and have their places.
    pub(crate) fn new(
        shape: Shape,
        recipe: &Recipe,
        tables: &Tables,
        staged: &Staged,
        totals: Totals,
    ) -> Front {
        let mut image = Image::new(staged.bytes);
        let mut params = Params::default();
        put_input(&mut image, &mut params, recipe, staged, totals);
        put_recipe(&mut image, &mut params, recipe, tables);
        let tiles = Tiles::of(shape, totals.records);
        params.status = image.put_zeros(Status::BYTES);
        let mut carve = Carve::new(0, image.bytes());
        // The back's, too. `Kernel::Order` empties them.
        params.tick_words = SCANS * tiles.scan() / 8;
        params.ticks = carve.take(params.tick_words, 8);
        carve_records(&mut carve, &mut params, recipe, staged, totals, tiles.count);
        let open = u64::from(recipe.block_bytes);
        let (mut back, mut of_back) = (Carve::new(0, 2 * open), params);
        let input = (totals, staged.payload);
        carve_output(&mut back, &mut of_back, recipe, input, (open, open / 8));
        Front { image, params, bytes: carve.bytes(), back: back.bytes(), tiles }
    }

    /// Starts its kernels, with the memory at `base`.
    pub(crate) fn launch(
        self,
        device: &mut dyn Device,
        queue: Queue,
        base: u64,
        staged: &Staged,
        totals: Totals,
    ) -> Result<Fronted, Trouble> {
        let Front { mut params, tiles, .. } = self;
        params.rebase_front(base);
        let mut launches = Launches { device, queue, params, tiles };
        launches.front(staged, totals)?;
        let params = launches.params;
        Ok(Fronted { params, tiles, totals, input: staged.payload })
    }
}

/// The second half of a set.
pub(crate) struct Back {
    pub(crate) image: Image,
    params: Params,
    /// Bytes of memory.
    pub(crate) bytes: u64,
    tiles: Tiles,
    /// Finished blocks are compressed.
    encodes: bool,
}

impl Back {
    /// Lays out what follows a front, from where the output stands. None if the keys of the block that is open
    /// have no room: the front has taken room for those of a block that kernels made.
    pub(crate) fn new(front: &Fronted, recipe: &Recipe, carry: &Carry) -> Option<Back> {
        let open = carry.open(recipe);
        if open_key_bytes(&open) > open_keys_most(recipe) {
            return None;
        }
        let mut image = Image::new(0);
        let mut params = front.params;
        put_carry(&mut image, &mut params, &open);
        let mut carve = Carve::new(0, image.bytes());
        let open = (params.open_len, params.open_entries);
        carve_output(&mut carve, &mut params, recipe, (front.totals, front.input), open);
        let encodes = recipe.codec == Codec::Lz4;
        Some(Back { image, params, bytes: carve.bytes(), tiles: front.tiles, encodes })
    }

    /// Starts its kernels, with the memory at `base`. Says what they were told.
    pub(crate) fn launch(
        &self,
        device: &mut dyn Device,
        queue: Queue,
        base: u64,
    ) -> Result<Params, Trouble> {
        let mut params = self.params;
        params.rebase_back(base);
        let mut launches = Launches { device, queue, params, tiles: self.tiles };
        launches.back(self.encodes)?;
        Ok(launches.params)
    }
}

/// What is copied to the device at once: blocks, then small tables.
pub(crate) struct Image {
    /// Bytes of the blocks, which are filled in last.
    pub(crate) blocks: usize,
    pub(crate) small: Vec<u8>,
}

impl Image {
    pub(crate) fn new(blocks: usize) -> Image {
        Image { blocks: blocks.next_multiple_of(64), small: Vec::new() }
    }
    /// Where the next table goes, from the beginning of the memory.
    pub(crate) fn next(&mut self) -> u64 {
        self.small.resize(self.small.len().next_multiple_of(64), 0);
        (self.blocks + self.small.len()) as u64
    }
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.next();
        self.small.extend_from_slice(bytes);
        at
    }
    pub(crate) fn put_words(&mut self, words: impl IntoIterator<Item = u64>) -> u64 {
        let at = self.next();
        self.small.extend(words.into_iter().flat_map(u64::to_le_bytes));
        at
    }
    pub(crate) fn put_all<const N: usize>(
        &mut self,
        rows: impl IntoIterator<Item = [u64; N]>,
    ) -> u64 {
        self.put_words(rows.into_iter().flatten())
    }
    pub(crate) fn put_zeros(&mut self, n: usize) -> u64 {
        let at = self.next();
        self.small.resize(self.small.len() + n, 0);
        at
    }
    pub(crate) fn bytes(&self) -> u64 {
        (self.blocks + self.small.len()) as u64
    }
}

/// Does the same to several fields.
macro_rules! each {
    ($params:ident: $($field:ident)*; $it:ident => $what:expr) => {
        $({
            let $it = $params.$field;
            $params.$field = $what;
        })*
    };
}

impl Params {
    /// Turns places in the front's memory into addresses.
    fn rebase_front(&mut self, base: u64) {
        each!(self: input plain blocks heap runs bound_keys bounds hi lo tag hash content src vlen koff
            klen run lists list_out m_in m_out splits ord snapshots zones zone_keys free fragments
            tombs kept_min group vseen segv zone bits sid stag s_at szone sgroup ticks status;
            place => place.wrapping_add(base));
    }
    /// Turns places in the back's memory into addresses.
    fn rebase_back(&mut self, base: u64) {
        each!(self: open_bytes open_restarts last_key bid bstart bfile shared place hpos kpos
            hashes_out keys_out blocks_out arena packed; place => place.wrapping_add(base));
    }
}

/// Blocks, runs and ranges.
fn put_input(
    image: &mut Image,
    params: &mut Params,
    recipe: &Recipe,
    staged: &Staged,
    totals: Totals,
) {
    params.input = 0;
    params.blocks = image.put_all(staged.blocks.iter().map(BlockIn::words));
    params.n_blocks = staged.blocks.len() as u64;
    params.n_records = totals.records;
    params.heap_bytes = totals.heap;
    params.runs = image.put_all(staged.runs.iter().map(RunIn::words));
    params.n_runs = staged.runs.len() as u64;
    // Below: excluded by the set, included by the job. Above: included by the set, as it says by the job.
    let job_hi = recipe.range.hi.as_ref();
    let ends = [
        (staged.keys.lo.as_ref(), 1),
        (staged.keys.hi.as_ref(), 2),
        (recipe.range.lo.as_ref(), 2),
        (job_hi.map(|end| &end.key), job_hi.map_or(0, |end| 1 + u64::from(end.inclusive))),
    ];
    let mut keys = Vec::new();
    let bounds = ends.map(|(key, form)| {
        let Some(key) = key else { return Bound::default() };
        let at = keys.len() as u64;
        keys.extend_from_slice(key);
        Bound { at, len: key.len() as u64, form }
    });
    params.bounds = image.put_all(bounds.iter().map(Bound::words));
    params.bound_keys = image.put(&keys);
    // What all keys of the set begin with.
    let lo = staged.keys.lo.as_ref().or(recipe.range.lo.as_ref());
    let hi = staged.keys.hi.as_ref().or(job_hi.map(|end| &end.key));
    if let (Some(lo), Some(hi)) = (lo, hi) {
        params.prefix = lo.iter().zip(hi.iter()).take_while(|(a, b)| a == b).count() as u64;
    }
}

/// What decides about drops and splits.
fn put_recipe(image: &mut Image, params: &mut Params, recipe: &Recipe, tables: &Tables) {
    params.snapshots = image.put_words(tables.snapshots.iter().copied());
    params.n_snapshots = tables.snapshots.len() as u64;
    let mut keys = Vec::new();
    let zones: Vec<_> = tables
        .zones
        .iter()
        .map(|zone| {
            let key = zone.key.as_deref().unwrap_or_default();
            let key_at = keys.len() as u64;
            keys.extend_from_slice(key);
            let zone = Zone {
                key_at,
                key_len: key.len() as u64,
                form: zone.key.as_ref().map_or(0, |_| 1 + u64::from(zone.after)),
                fragment: zone.fragment.map_or(u64::MAX, u64::from),
                hard: u64::from(zone.hard_splits),
                soft: u64::from(zone.soft_splits),
            };
            zone.words()
        })
        .collect();
    params.zones = image.put_all(zones);
    params.n_zones = tables.zones.len() as u64;
    params.zone_keys = image.put(&keys);
    params.free = image.put_words(tables.free.iter().copied());
    params.words = tables.words as u64;
    let fragments: Vec<u8> = tables.fragments.iter().flat_map(|at| at.to_le_bytes()).collect();
    params.fragments = image.put(&fragments);
    params.tombs = image.put_words(tables.tombs.iter().copied());
    // None is above every number.
    let kept = tables.kept_min.iter().map(|&seq| if seq == MAX_SEQ { u64::MAX } else { seq });
    params.kept_min = image.put_words(kept);
    params.drop = u64::from(recipe.drop_tombstones);
    params.zero = u64::from(recipe.zero_seqs);
    params.filter = u64::from(recipe.filter);
    params.block_shift = u64::from(recipe.block_bytes.trailing_zeros());
    params.file_bytes = recipe.file_bytes;
    params.interval = u64::from(recipe.restart_interval);
}

/// Where the output stands.
fn put_carry(image: &mut Image, params: &mut Params, open: &OpenState<'_>) {
    let (hard, soft) = open.cut.splits_passed();
    let started = !open.entries.is_empty();
    params.started = u64::from(started);
    params.has_open = u64::from(started);
    params.is_ended = u64::from(open.is_ended);
    params.s = open.cut.logical_bytes();
    params.candidate = open.cut.candidate();
    params.file = open.cut.file_start();
    (params.hard, params.soft) = (hard as u64, soft as u64);
    params.open_bytes = image.put(open.entries);
    params.open_len = open.entries.len() as u64;
    params.open_entries = u64::from(open.counts.entries);
    params.open_key_bytes = open_key_bytes(open);
    let restarts: Vec<u8> = open.restarts.iter().flat_map(|at| at.to_le_bytes()).collect();
    params.open_restarts = image.put(&restarts);
    params.n_open_restarts = open.restarts.len() as u64;
    params.last_key = image.put(open.last_key);
    params.last_len = open.last_key.len() as u64;
    params.has_last_hash = u64::from(open.last_hash.is_some());
    params.last_hash = open.last_hash.unwrap_or_default();
}

/// Bytes of the user keys in the open block.
fn open_key_bytes(open: &OpenState<'_>) -> u64 {
    open.counts.raw_key_bytes.saturating_sub(8 * u64::from(open.counts.entries))
}

/// Most bytes of user keys in a block that kernels leave open: those of one cell of the grid, over which its last
/// entry may reach.
fn open_keys_most(recipe: &Recipe) -> u64 {
    u64::from(recipe.block_bytes) + KEY_MOST
}

/// Room for what kernels of the front make.
fn carve_records(
    carve: &mut Carve,
    params: &mut Params,
    recipe: &Recipe,
    staged: &Staged,
    totals: Totals,
    tiles: u64,
) {
    let n = totals.records + 3;
    each!(params: hi lo tag hash content src koff stag s_at; _old => carve.take(n, 8));
    each!(params: vlen klen run ord m_in m_out group vseen segv zone sid szone sgroup;
        _old => carve.take(n, 4));
    params.bits = carve.take(n, 1);
    let runs = staged.runs.len() as u64;
    params.lists = carve.take(runs + runs.div_ceil(LISTS_MOST), LIST);
    params.list_out = carve.take(runs + 1, 4);
    params.splits = carve.take((tiles + 2) * runs.clamp(1, LISTS_MOST), 4);
    // K8 puts the keys of the block that was open there, too.
    params.heap = carve.take(totals.heap + open_keys_most(recipe), 1);
    params.plain = carve.take(staged.plain, 1);
}

/// Room for what kernels of the back make of a set with these totals and so many bytes of payloads, behind an open block
/// of so many bytes and entries.
fn carve_output(
    carve: &mut Carve,
    params: &mut Params,
    recipe: &Recipe,
    (totals, input): (Totals, u64),
    (open_len, open_entries): (u64, u64),
) {
    let n = totals.records + 3;
    each!(params: place kpos hashes_out; _old => carve.take(n, 8));
    each!(params: bid bstart shared hpos; _old => carve.take(n, 4));
    params.bfile = carve.take(n, 1);
    // A block starts where the grid cell changes, or at a split.
    let logical = totals.heap + 12 * totals.records + input;
    let splits = recipe.hard_splits.len() + recipe.soft_splits.len();
    let starts = (logical >> params.block_shift) + splits as u64 + 2;
    params.blocks_room = starts.min(n) + 1;
    params.blocks_out = carve.take(params.blocks_room, BlockOut::BYTES as u64);
    params.keys_room = 2 * (totals.heap + 8 * n);
    params.keys_out = carve.take(params.keys_room, 1);
    // Three lengths of five bytes, a tag and a restart point an entry; number of restart points and trailer
    // a block.
    let most = totals.heap + input + 27 * n + open_len;
    params.arena_room = most + 4 * open_entries + 9 * params.blocks_room;
    params.arena = carve.take(params.arena_room, 1);
    if recipe.codec == Codec::Lz4 {
        params.packed = carve.take(params.arena_room, 1);
    }
}

/// CTAs for a kernel with a warp per item.
pub(crate) fn per_warp(device: &dyn Device, items: u64) -> u32 {
    let shape = device.shape();
    let ctas = items.div_ceil(u64::from(shape.threads / 32));
    ctas.clamp(1, u64::from(shape.ctas)) as u32
}

/// The kernels of a set, in order.
struct Launches<'a> {
    device: &'a mut dyn Device,
    queue: Queue,
    params: Params,
    tiles: Tiles,
}

impl Launches<'_> {
    fn launch(&mut self, kernel: Kernel, ctas: u64) -> Result<(), Trouble> {
        let ctas = ctas.clamp(1, u64::from(u32::MAX)) as u32;
        self.device.launch(self.queue, kernel, ctas, &self.params.words()).on_device()
    }

    /// A kernel with a scan, which has lines of its own.
    fn scan(&mut self, kernel: Kernel, tiles: u64) -> Result<(), Trouble> {
        self.launch(kernel, tiles)?;
        self.params.ticks += self.tiles.scan();
        Ok(())
    }

    /// Merges lists `first..first + count`, of at most `records`, into `out`.
    fn round(&mut self, first: u64, count: u64, records: u64) -> Result<(), Trouble> {
        (self.params.list_first, self.params.n_lists) = (first, count);
        let tiles = records.div_ceil(self.tiles.size).max(1);
        self.launch(Kernel::Partition, tiles + 1)?;
        self.launch(Kernel::Merge, tiles)
    }

    fn front(&mut self, staged: &Staged, totals: Totals) -> Result<(), Trouble> {
        let most = u64::from(self.device.shape().ctas);
        let warps = u64::from(per_warp(self.device, staged.blocks.len() as u64));
        if staged.decoded > 0 {
            self.launch(Kernel::Decode, warps)?;
        }
        self.launch(Kernel::Unpack, warps)?;
        self.launch(Kernel::Order, self.tiles.count.min(most))?;
        self.launch(Kernel::Trim, 1)?;
        let runs = staged.runs.len() as u64;
        let (one, other) = (self.params.m_in, self.params.m_out);
        (self.params.m_in, self.params.m_out) = (self.params.ord, one);
        for (i, group) in staged.runs.chunks(LISTS_MOST as usize).enumerate() {
            let records = group.iter().map(|run| run.count).sum();
            self.round(i as u64 * LISTS_MOST, group.len() as u64, records)?;
        }
        self.params.m_in = one;
        if runs > LISTS_MOST {
            self.params.m_out = other;
            self.round(runs, runs.div_ceil(LISTS_MOST), totals.records)?;
            self.params.m_in = other;
        }
        self.scan(Kernel::Judge, self.tiles.of_scan)?;
        self.scan(Kernel::Drop, self.tiles.of_scan)
    }

    fn back(&mut self, encodes: bool) -> Result<(), Trouble> {
        let most = u64::from(self.device.shape().ctas);
        let blocks = self.params.blocks_room;
        self.scan(Kernel::Blocks, self.tiles.of_scan)?;
        self.launch(Kernel::Files, 1)?;
        self.scan(Kernel::Sizes, self.tiles.of_scan)?;
        self.scan(Kernel::Table, blocks.div_ceil(self.tiles.scan_size))?;
        let warps = u64::from(per_warp(self.device, blocks));
        self.launch(Kernel::Pack, warps)?;
        if encodes {
            self.launch(Kernel::Encode, blocks.min(most))?;
            self.scan(Kernel::Places, blocks.div_ceil(self.tiles.scan_size))?;
            self.launch(Kernel::Gather, warps)?;
            self.launch(Kernel::Check, warps)?;
        }
        self.launch(Kernel::Prove, warps)
    }
}
