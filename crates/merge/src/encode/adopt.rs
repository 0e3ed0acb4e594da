//! The output stage, fed with what another machine encoded: whole blocks of which only metadata is
//! known, and entries that are read, written once more and compared.
//!
//! Keeps: a block that joins starts where the recipe starts one, and an entry that joins is encoded
//! as [`Writer::put`] encodes it, so the writer's state afterwards is that of a writer that got
//! every entry itself.
//! Leaves to others: whether the places that a machine states exist (`offload`).

use lithify_base::{Error, ErrorKind, InternalKey, Kind, Result};
use lithify_format::limits::MAX_BLOCK;
use lithify_format::xxph3::xxph3_64;

use super::{Carry, OpenBlock, Survivor, Writer};
use crate::cut::{Cut, Start};
use crate::ledger::{content, weigh};
use crate::products::{BlockMeta, Item, Products};
use crate::recipe::Recipe;
use crate::view::lengths;

/// A finished block that another machine made, without its bytes.
pub(crate) struct Foreign<'a> {
    pub(crate) meta: BlockMeta,
    pub(crate) first: InternalKey<'a>,
    pub(crate) last: InternalKey<'a>,
    pub(crate) hashes: &'a [u64],
}

/// Where the output stands between two sets, as a machine must know it to go on.
#[derive(Clone, Copy, Debug)]
pub struct OpenState<'a> {
    /// Encoded entries of the open block, without the restart points behind them. Empty before the first
    /// entry of the output only.
    pub entries: &'a [u8],
    /// Restart points of the open block: where their entries start in it.
    pub restarts: &'a [u32],
    /// Entries since the last restart point, that of the restart point included.
    pub since: u16,
    /// Counts of the open block. Its places mean nothing.
    pub counts: &'a BlockMeta,
    /// Filter hashes of the open block, which the finished block begins with.
    pub hashes: &'a [u64],
    /// First internal key of the open block.
    pub first_key: &'a [u8],
    /// Last internal key of the output, which is that of the open block.
    pub last_key: &'a [u8],
    /// XXPH3 of the last user key: a key with the same hash adds none to the filter.
    pub last_hash: Option<u64>,
    /// Hash of the last prefix that a key of the open file has.
    pub last_prefix: Option<u64>,
    /// Where blocks and files start next.
    pub cut: &'a Cut,
    /// The next entry starts a block, whatever its key is. If false, the open block grows unless the
    /// next entry is the first at or above a split key.
    pub is_ended: bool,
}

impl Carry {
    /// The state as a machine must know it.
    pub fn open<'a>(&'a self, recipe: &Recipe) -> OpenState<'a> {
        OpenState {
            entries: &self.block,
            restarts: &self.open.restarts,
            since: self.open.since,
            counts: &self.open.meta,
            hashes: &self.hashes,
            first_key: &self.open.first_key,
            last_key: &self.file.last_key,
            last_hash: self.file.last_hash,
            last_prefix: self.file.last_prefix,
            cut: &self.cut,
            is_ended: self.cut.ends_block(recipe),
        }
    }
}

impl Writer {
    /// Forgets everything and stands at `carry`.
    pub(crate) fn restart(&mut self, carry: &Carry) {
        self.out.clear();
        self.resume(carry.clone());
    }

    /// Makes room for blocks of `n` bytes together.
    pub(crate) fn reserve(&mut self, n: usize) {
        self.out.reserve(n);
    }

    /// Takes the steps made so far.
    pub(crate) fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.out.items)
    }

    /// Takes everything, the open block too, of which the place is returned.
    pub(crate) fn take_all(&mut self) -> (Products, std::ops::Range<usize>) {
        let open = self.open.at..self.out.used;
        (std::mem::take(&mut self.out), open)
    }

    /// Encoded entries of the open block.
    pub(crate) fn open_bytes(&self) -> &[u8] {
        &self.out.arena()[self.open.at..]
    }

    /// Filter hashes of the open block.
    pub(crate) fn open_hashes(&self) -> &[u64] {
        &self.out.hashes[self.open.hashes_at..]
    }

    /// Entries in the open block.
    pub(crate) fn open_entries(&self) -> u32 {
        self.open.meta.entries
    }

    /// Hash of the last prefix in the open file.
    pub(crate) fn last_prefix(&self) -> Option<u64> {
        self.file.last_prefix
    }

    /// States what the hash of the last prefix in the open file is, after blocks were adopted.
    pub(crate) fn set_last_prefix(&mut self, hash: Option<u64>) {
        self.file.last_prefix = hash;
    }

    /// True if `tail` is what ends the open block: its restart points and their number.
    pub(crate) fn ends_with(&self, tail: &[u8]) -> bool {
        let restarts = &self.open.restarts;
        let Some((points, count)) = tail.split_last_chunk::<4>() else { return false };
        u32::from_le_bytes(*count) as usize == restarts.len()
            && points.len() == 4 * restarts.len()
            && points.chunks_exact(4).zip(restarts).all(|(p, r)| p == r.to_le_bytes())
    }

    /// Puts a finished block behind what was written so far. If a block is open, this is that block
    /// with the entries that joined it; else it starts here.
    ///
    /// # Errors
    /// Internal if it is not the open block, or starts or goes on where the recipe says otherwise.
    pub(crate) fn adopt(&mut self, block: Foreign<'_>) -> Result<()> {
        let Foreign { mut meta, first, last, hashes } = block;
        let logical = meta.logical_bytes();
        // The open block's entries are among those of the block.
        self.ledger.sum_out = self.open.sum_before.wrapping_add(meta.weight);
        if self.open.meta.entries > 0 {
            self.check_resumed(&meta, first, last, hashes)?;
            self.cut.resume_block(self.open.meta.logical_bytes(), logical);
            meta.continues_key = self.open.meta.continues_key;
        } else {
            let order = &*self.recipe.order;
            let before = InternalKey::decode(&self.file.last_key);
            if before.is_some_and(|before| before.cmp(first, order).is_ge()) {
                return Err(refused("blocks are out of order"));
            }
            let new_key = before.is_none_or(|b| order.compare(b.user, first.user).is_ne());
            let start = self.cut.place_block(&self.recipe, first.user, logical, new_key);
            match start {
                Start::Within => return Err(refused("a block starts inside a grid cell")),
                Start::File if self.file.entries => self.close_file(Some(first.user.into()))?,
                Start::Block | Start::File => {}
            }
            self.file.entries = true;
            meta.continues_key = start == Start::Block && !new_key;
        }
        if self.cut.misses_split(&self.recipe, last.user) {
            return Err(refused("a block reaches over a split key"));
        }
        self.out.used = 0;
        self.out.hashes.clear();
        self.open.clear(0, 0);
        self.open.sum_before = self.ledger.sum_out;
        self.open.first_key.clear();
        self.file.last_key.clear();
        last.encode_into(&mut self.file.last_key);
        self.file.last_hash = Some(xxph3_64(last.user));
        self.out.items.push(Item::Block(meta));
        Ok(())
    }

    /// Whether a finished block may be the open one with entries that joined it.
    fn check_resumed(
        &self,
        meta: &BlockMeta,
        first: InternalKey<'_>,
        last: InternalKey<'_>,
        hashes: &[u64],
    ) -> Result<()> {
        let order = &*self.recipe.order;
        let open = &self.open.meta;
        let same = |key: InternalKey<'_>, bytes| InternalKey::decode(bytes) == Some(key);
        let grown = InternalKey::decode(&self.file.last_key)
            .is_some_and(|before| before.cmp(last, order).is_lt());
        let counts = |m: &BlockMeta| {
            let kinds = [m.values, m.deletes, m.single_deletes, m.merges].map(u64::from);
            [m.raw_key_bytes, m.raw_value_bytes, kinds[0], kinds[1], kinds[2], kinds[3]]
        };
        let (now, then) = (counts(meta), counts(open));
        let bounds = meta.min_seq <= open.min_seq && meta.max_seq >= open.max_seq;
        let fits = match meta.entries == open.entries {
            true => now == then && same(last, &self.file.last_key),
            false => grown && now.iter().zip(&then).all(|(n, t)| n >= t),
        };
        if fits
            && bounds
            && same(first, &self.open.first_key)
            && hashes.starts_with(self.open_hashes())
        {
            return Ok(());
        }
        Err(refused("the first block does not begin with the one that was open"))
    }

    /// Reads the encoded entries of one block from byte `from` on, before which lies what the writer
    /// has of the block, and writes them.
    ///
    /// # Errors
    /// Internal if they do not parse, are out of order, outside of the job's range, or encoded in
    /// any other way than this writer does, or if a block starts where the recipe says otherwise.
    pub(crate) fn read(&mut self, block: &[u8], from: usize) -> Result<()> {
        let recipe = self.recipe.clone();
        let mut key = Vec::new();
        let (mut at, mut entries, mut sum) = (from, 0, 0);
        if from > 0 {
            key.extend_from_slice(&self.file.last_key);
            entries = self.open.meta.entries;
        }
        while at < block.len() {
            let raw = parse(&block[at..], key.len())?;
            key.truncate(raw.shared);
            key.extend_from_slice(raw.delta);
            sum += key.len();
            // A few bytes can stand for many bytes of keys: readers have the same cap.
            let Some(k) = InternalKey::decode(&key).filter(|_| sum <= MAX_BLOCK) else {
                return Err(refused("a block's entry does not parse"));
            };
            let kind = match k.tag.kind() {
                Some(kind) if kind != Kind::RangeDelete => kind,
                _ => return Err(refused("an entry of unknown kind")),
            };
            if !recipe.range.contains(k.user, &*recipe.order) {
                return Err(refused("an entry lies outside of the job's range"));
            }
            self.at_splits = self.cut.has_splits_ahead(&recipe);
            let hash = xxph3_64(k.user);
            let weight = weigh(content(hash, raw.value), k.tag);
            self.put(Survivor { key: k.user, tag: k.tag, kind, value: raw.value, hash, weight })
                .map_err(unsorted)?;
            entries += 1;
            if self.open.meta.entries != entries || self.open.first_key.is_empty() {
                return Err(refused("blocks start elsewhere than the recipe says"));
            }
            let end = at + raw.len;
            if self.open_bytes().get(at..) != Some(&block[at..end]) {
                return Err(refused("an entry is not encoded as the format says"));
            }
            at = end;
        }
        Ok(())
    }
}

impl OpenBlock {
    /// Begins anew, with nothing in it.
    pub(super) fn clear(&mut self, at: usize, hashes_at: usize) {
        (self.at, self.hashes_at, self.since) = (at, hashes_at, 0);
        self.restarts.clear();
        self.meta = BlockMeta { min_seq: lithify_base::MAX_SEQ, ..BlockMeta::default() };
    }
}

/// An encoded entry.
struct Raw<'a> {
    shared: usize,
    delta: &'a [u8],
    value: &'a [u8],
    /// Bytes of all of it.
    len: usize,
}

/// Takes the first entry of `bytes` apart, whose predecessor's key has `before` bytes.
fn parse(bytes: &[u8], before: usize) -> Result<Raw<'_>> {
    let bad = || refused("a block's entry does not parse");
    let (shared, unshared, value, rest) = lengths(bytes).map_err(|_| bad())?;
    let (shared, unshared, value) = (shared as usize, unshared as usize, value as usize);
    let (Some((delta, rest)), true) = (rest.split_at_checked(unshared), shared <= before) else {
        return Err(bad());
    };
    let (value, rest) = rest.split_at_checked(value).ok_or_else(bad)?;
    Ok(Raw { shared, delta, value, len: bytes.len() - rest.len() })
}

/// The writer calls an input unsorted, which here is the machine's doing.
fn unsorted(e: Error) -> Error {
    if e.is_corruption() { refused("entries are out of order") } else { e }
}

/// What another machine handed back cannot be.
#[cold]
pub(crate) fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("blocks made elsewhere are refused: {what}"))
}
