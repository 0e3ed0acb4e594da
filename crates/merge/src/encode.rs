//! The output stage: surviving entries in, restart-point blocks, file cuts and metadata out.
//!
//! Keeps: bytes are a pure function of the surviving entries and the recipe; the block that is
//! open when a batch of products is taken stays with the writer (the carry), so set and buffer
//! bounds leave no trace. Entries must ascend strictly (R7): the writer compares each with the
//! one before anyway, to find the shared prefix, and fails on a wrong order.
//! Leaves to others: which entries survive (`gc`).

use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Key, Kind, Result, Tag};
use lithify_format::checksum::raw_sum;
use lithify_format::compress::{Codec, Compressor};
use lithify_format::filter::key_hash;
use lithify_format::varint;

use crate::copy::copy;
use crate::cut::{Cut, Start};
use crate::ledger::Ledger;
use crate::products::{BlockMeta, FileCut, Item, Products};
use crate::recipe::Recipe;
use crate::tombstone::Fragments;
use crate::zone::{Zones, keep_tombstones};

mod adopt;

pub use adopt::OpenState;
pub(crate) use adopt::{Foreign, refused};

/// Everything an engine must remember between two sets. Any engine can go on from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carry {
    /// Encoded entries of the open block.
    block: Vec<u8>,
    /// Filter hashes of the open block.
    hashes: Vec<u64>,
    open: OpenBlock,
    cut: Cut,
    file: OpenFile,
    ledger: Ledger,
}

impl Carry {
    /// The ledger up to here.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// The block that more entries may join. Its bytes lie at the end of the products' arena.
#[derive(Clone, Debug, Default, PartialEq)]
struct OpenBlock {
    /// Start in the arena, and of its hashes.
    at: usize,
    hashes_at: usize,
    restarts: Vec<u32>,
    /// Entries since the last restart point.
    since: u16,
    first_key: Vec<u8>,
    /// What the ledger's sum of entries written was before its first one.
    sum_before: u64,
    meta: BlockMeta,
}

/// The file that more blocks may join.
#[derive(Clone, Debug, Default, PartialEq)]
struct OpenFile {
    /// First user key; absent for the first file, whose tombstones have no lower bound.
    lo: Option<Key>,
    /// Whether it has an entry.
    entries: bool,
    /// Last internal key written, and the hash of its user key. Empty at the start of the output.
    last_key: Vec<u8>,
    last_hash: Option<u64>,
    /// The hash of the last prefix.
    last_prefix: Option<u64>,
}

/// The output stage.
pub(crate) struct Writer {
    recipe: Arc<Recipe>,
    bytewise: bool,
    kept: Fragments,
    compressor: Option<Compressor>,
    /// Blocks get a checksum: they are written, not compared with.
    sums: bool,
    /// A compressed block on its way to the arena.
    scratch: Vec<u8>,
    open: OpenBlock,
    cut: Cut,
    file: OpenFile,
    pub(crate) ledger: Ledger,
    /// The next entry may be the first at or above a split key.
    pub(crate) at_splits: bool,
    pub(crate) out: Products,
}

/// An entry on its way out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survivor<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: Tag,
    pub(crate) kind: Kind,
    pub(crate) value: &'a [u8],
    pub(crate) hash: u64,
    /// The weight of the entry.
    pub(crate) weight: u64,
}

impl Writer {
    /// A writer at the start of a recipe's output, and the recipe's zones. D5 decides here which
    /// range tombstones stay.
    ///
    /// # Errors
    /// InvalidArgument for a recipe that makes no sense, Unsupported for a codec this build does
    /// not write.
    pub(crate) fn start(recipe: Arc<Recipe>) -> Result<(Writer, Zones)> {
        recipe.check()?;
        let (kept, counts) = keep_tombstones(&recipe);
        let zones = Zones::new(&recipe, &kept);
        let (tombs_in, tombs_out) = (recipe.tombstones.tombs(), kept.tombs());
        let mut out = Writer::new(recipe, kept)?;
        out.ledger.tombs_in = tombs_in;
        out.ledger.tombs_out = tombs_out;
        out.ledger.tombs_hidden = counts.hidden;
        out.ledger.tombs_elided = counts.elided;
        Ok((out, zones))
    }

    fn new(recipe: Arc<Recipe>, kept: Fragments) -> Result<Writer> {
        let compressor = match recipe.codec {
            Codec::None => None,
            codec => {
                let dictionary = recipe.dictionary.as_deref().unwrap_or_default();
                let level = recipe.codec_level;
                Some(Compressor::with_dictionary(codec, level, dictionary)?)
            }
        };
        let at_splits = !(recipe.hard_splits.is_empty() && recipe.soft_splits.is_empty());
        Ok(Writer {
            bytewise: recipe.order.is_bytewise(),
            recipe,
            kept,
            compressor,
            sums: true,
            scratch: Vec::new(),
            open: OpenBlock::default(),
            cut: Cut::default(),
            file: OpenFile::default(),
            ledger: Ledger::default(),
            at_splits,
            out: Products::default(),
        })
    }

    /// From now on blocks are neither compressed nor summed.
    pub(crate) fn leave_plain(&mut self) {
        (self.compressor, self.sums) = (None, false);
    }

    /// Goes on where another writer of the same recipe stopped.
    pub(crate) fn resume(&mut self, carry: Carry) {
        self.out.append(&carry.block);
        self.out.hashes.extend_from_slice(&carry.hashes);
        self.open = OpenBlock { at: 0, hashes_at: 0, ..carry.open };
        self.cut = carry.cut;
        self.file = carry.file;
        self.ledger = carry.ledger;
        self.at_splits = true;
    }

    /// The state between two sets.
    pub(crate) fn carry(&self) -> Carry {
        Carry {
            block: self.out.arena()[self.open.at..].to_vec(),
            hashes: self.out.hashes[self.open.hashes_at..].to_vec(),
            open: OpenBlock { at: 0, hashes_at: 0, ..self.open.clone() },
            cut: self.cut.clone(),
            file: self.file.clone(),
            ledger: self.ledger.clone(),
        }
    }

    /// Bytes of finished blocks that wait to be taken.
    pub(crate) fn ready(&self) -> usize {
        self.open.at
    }

    /// Moves what is finished into `out`, which is cleared first, and keeps the open block.
    pub(crate) fn drain(&mut self, out: &mut Products) {
        out.clear();
        std::mem::swap(&mut self.out, out);
        self.out.append(&out.arena()[self.open.at..]);
        self.out.hashes.extend_from_slice(&out.hashes[self.open.hashes_at..]);
        out.used = self.open.at;
        out.hashes.truncate(self.open.hashes_at);
        (self.open.at, self.open.hashes_at) = (0, 0);
    }

    /// Writes an entry. Entries come in strictly ascending order.
    ///
    /// # Errors
    /// Corruption if they do not: some input was not sorted.
    #[inline(never)]
    pub(crate) fn put(&mut self, e: Survivor<'_>) -> Result<()> {
        self.put_inline(e)
    }

    /// As [`put`](Writer::put), for the one place where a call per entry would show.
    #[inline(always)]
    pub(crate) fn put_inline(&mut self, e: Survivor<'_>) -> Result<()> {
        let shared = self.order(e.key, e.tag)?;
        let new_key = !shared.same_key;
        let at_splits = std::mem::take(&mut self.at_splits);
        match self.cut.place(&self.recipe, e.key, e.value.len(), new_key, at_splits) {
            Start::Within => {}
            Start::Block => self.start_block(e, !new_key)?,
            Start::File => {
                if self.file.entries {
                    self.close_block()?;
                    self.close_file(Some(e.key.into()))?;
                }
                self.start_block(e, false)?;
            }
        }
        self.append(e, shared)
    }

    /// Compares with the entry before: the order must be strict, and the shared prefix comes out
    /// of the same pass.
    #[inline(always)]
    fn order(&self, key: &[u8], tag: Tag) -> Result<Shared> {
        let Some((last, last_tag)) = self.file.last_key.split_last_chunk::<8>() else {
            return Ok(Shared::default());
        };
        let user = common_prefix(last, key);
        let keys = if self.bytewise {
            last[user..].first().cmp(&key[user..].first())
        } else {
            self.recipe.order.compare(last, key)
        };
        if keys.then(tag.0.cmp(&u64::from_le_bytes(*last_tag))).is_ge() {
            return Err(unsorted());
        }
        let mut internal = user;
        if user == key.len() {
            // The rest of the last internal key meets our tag.
            internal += common_prefix(&self.file.last_key[user..], &tag.0.to_le_bytes());
        } else if user == last.len() {
            internal += common_prefix(last_tag, &tail(key, tag, user));
        }
        Ok(Shared { internal, same_key: keys.is_eq() })
    }

    #[inline(always)]
    fn append(&mut self, e: Survivor<'_>, shared: Shared) -> Result<()> {
        let open = &mut self.open;
        let mut shared = shared.internal;
        if open.since == self.recipe.restart_interval || open.meta.entries == 0 {
            let at = self.out.used - open.at;
            open.restarts.push(u32::try_from(at).map_err(|_| too_large())?);
            open.since = 0;
            shared = 0;
        }
        open.since += 1;
        let user = e.key.len();
        let tag = e.tag.0.to_le_bytes();
        let unshared = user + 8 - shared;
        put_lengths(&mut self.out, shared, unshared, e.value.len());
        let at = self.out.claim(unshared + e.value.len());
        let room = &mut self.out.arena[at..at + unshared + e.value.len()];
        if shared <= user {
            copy(room, &e.key[shared..]);
            copy(&mut room[user - shared..], &tag);
        } else {
            copy(room, &tag[shared - user..]);
        }
        copy(&mut room[unshared..], e.value);

        // Kept apart from the block: bytes just written are slow to read back.
        let last = &mut self.file.last_key;
        last.resize(user + 8, 0);
        copy(last, e.key);
        copy(&mut last[user..], &tag);

        open.meta.count(e.kind, e.tag.seq(), e.key.len(), e.value.len());
        if let Some(hash) = self.recipe.prefixes.of(e.key).map(key_hash)
            && self.file.last_prefix.replace(hash) != Some(hash)
        {
            self.out.hashes.push(hash);
        }
        if self.recipe.filter && self.file.last_hash != Some(e.hash) {
            self.out.hashes.push(e.hash);
        }
        self.file.last_hash = Some(e.hash);
        self.ledger.entries_out += 1;
        self.ledger.sum_out = self.ledger.sum_out.wrapping_add(e.weight);
        Ok(())
    }

    #[inline(never)]
    fn start_block(&mut self, e: Survivor<'_>, continues_key: bool) -> Result<()> {
        self.close_block()?;
        self.file.entries = true;
        self.open.first_key.clear();
        self.open.first_key.extend_from_slice(e.key);
        self.open.first_key.extend_from_slice(&e.tag.0.to_le_bytes());
        self.open.meta.continues_key = continues_key;
        Ok(())
    }

    /// Finishes the open block, if there is one.
    fn close_block(&mut self) -> Result<()> {
        let open = &mut self.open;
        let out = &mut self.out;
        if open.meta.entries > 0 {
            for at in &open.restarts {
                out.append(&at.to_le_bytes());
            }
            let count = u32::try_from(open.restarts.len()).map_err(|_| too_large())?;
            out.append(&count.to_le_bytes());
            let payload = &out.arena()[open.at..];
            if payload.len() > u32::MAX as usize {
                return Err(too_large());
            }
            let mut type_byte = 0;
            if let Some(compressor) = &mut self.compressor {
                self.scratch.clear();
                if compressor.compress(payload, &mut self.scratch) {
                    type_byte = compressor.codec() as u8;
                    out.used = open.at;
                    out.append(&self.scratch);
                }
            }
            let sum = match self.sums {
                true => raw_sum(self.recipe.checksum, &out.arena()[open.at..], type_byte),
                false => 0,
            };
            out.append(&[type_byte]);
            out.append(&sum.to_le_bytes());

            let keys = &mut out.keys;
            let first = keys.len()..keys.len() + open.first_key.len();
            keys.extend_from_slice(&open.first_key);
            let last = keys.len()..keys.len() + self.file.last_key.len();
            keys.extend_from_slice(&self.file.last_key);
            let mut meta = std::mem::take(&mut open.meta);
            meta.weight = self.ledger.sum_out.wrapping_sub(open.sum_before);
            meta.at = open.at..out.used;
            meta.hashes = open.hashes_at..out.hashes.len();
            (meta.first, meta.last) = (first, last);
            out.items.push(Item::Block(meta));
        }
        open.clear(out.used, out.hashes.len());
        open.sum_before = self.ledger.sum_out;
        Ok(())
    }

    /// Ends the open file before user key `next`; without one, it is the last.
    ///
    /// # Errors
    /// As [`Fragments::to_tombstones`].
    fn close_file(&mut self, next: Option<Key>) -> Result<()> {
        let order = &*self.recipe.order;
        let range = &self.recipe.range;
        let last = range.hi.as_ref().filter(|hi| !hi.inclusive).map(|hi| &hi.key);
        let lo = self.file.lo.as_ref().or(range.lo.as_ref());
        let hi = next.as_ref().or(last).filter(|_| !zoo::on(Bug::TombstoneUnclipped));
        let tombstones = self.kept.between(lo, hi, order).to_tombstones()?;
        self.out.items.push(Item::FileCut(FileCut { tombstones }));
        self.file.lo = next;
        self.file.entries = false;
        (self.file.last_hash, self.file.last_prefix) = (None, None);
        Ok(())
    }

    /// Ends the output.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.close_block()?;
        let tail = !self.file.entries && {
            let order = &*self.recipe.order;
            let range = &self.recipe.range;
            let last = range.hi.as_ref().filter(|hi| !hi.inclusive).map(|hi| &hi.key);
            !self.kept.between(range.lo.as_ref(), last, order).is_empty()
        };
        if self.file.entries || tail {
            self.close_file(None)?;
        }
        Ok(())
    }
}

/// What an entry has in common with the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Leading bytes of the internal key.
    internal: usize,
    /// The user keys are equal.
    same_key: bool,
}

/// Up to eight bytes of the internal key (`key`, `tag`) from `from` on.
fn tail(key: &[u8], tag: Tag, from: usize) -> [u8; 8] {
    let mut out = [0; 8];
    let rest = key[from..].iter().chain(tag.0.to_le_bytes().iter()).copied().collect::<Vec<_>>();
    out.copy_from_slice(&rest[..8]);
    out
}

#[inline(always)]
fn put_lengths(out: &mut Products, shared: usize, unshared: usize, value: usize) {
    if (shared | unshared | value) < 0x80 {
        let at = out.claim(3);
        out.arena[at..at + 3].copy_from_slice(&[shared as u8, unshared as u8, value as u8]);
    } else {
        put_long_lengths(out, shared, unshared, value);
    }
}

fn put_long_lengths(out: &mut Products, shared: usize, unshared: usize, value: usize) {
    for mut v in [shared, unshared, value] {
        let mut bytes = [0; varint::MAX_LEN_64];
        let mut n = 0;
        while v >= 0x80 {
            bytes[n] = v as u8 | 0x80;
            v >>= 7;
            n += 1;
        }
        bytes[n] = v as u8;
        out.append(&bytes[..=n]);
    }
}

/// Length of the longest common prefix.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let (mut at, a, b) = (0, &a[..n], &b[..n]);
    while let (Some(x), Some(y)) = (a[at..].first_chunk::<8>(), b[at..].first_chunk::<8>()) {
        let diff = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if diff != 0 {
            return at + (diff.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

#[cold]
fn unsorted() -> Error {
    Error::corruption("entries of an input are not in order")
}

#[cold]
fn too_large() -> Error {
    Error::new(ErrorKind::LimitExceeded, "a data block would exceed 4 GiB")
}
