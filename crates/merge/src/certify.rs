//! Certify: proof that an engine's output is what the ledger says, without trusting the engine.
//!
//! Keeps: an output that passes [`Mode::Full`] is strictly ordered, inside the job's range, cut where
//! the recipe cuts, checksummed, counted right, and holds exactly the entries the ledger weighed, values
//! included, each where a search finds it; every key's hash is where the filter will look. Blocks may be larger than
//! the recipe's. [`Mode::Meta`] proves the same of block
//! bounds, counts and stated weights only: enough for the in-process kernel, whose writer compares
//! every entry with the one before it. [`Mode::Sums`] lies between: a machine's memory and its bus are
//! checked in all blocks, its program in a sample.
//! Leaves to others: whether the entries dropped had to go, the others are the input's, and range
//! tombstones are right. The ledger is the engine's own statement: an engine that follows another
//! recipe keeps a ledger that balances ([`prove`](crate::prove)).

use std::borrow::Cow;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, InternalKey, Kind, Result};
use lithify_format::block::BlockIter;
use lithify_format::checksum::raw_sum;
use lithify_format::compress::Decoder;
use lithify_format::filter::key_hash;
use lithify_format::limits::plain_max;
use lithify_format::xxph3::xxph3_64;

use crate::cut::CutCheck;
use crate::ledger::Ledger;
use crate::products::{BlockMeta, Item, Products, TRAILER};
use crate::recipe::Recipe;
use crate::view::View;

/// [`Mode::Sums`] decodes the first block of an output and every one that so many follow.
pub const SAMPLE: u64 = 64;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Metadata of blocks: some nanoseconds per block.
    Meta,
    /// [`Mode::Meta`], the checksum of every block, and one block in [`SAMPLE`] in full.
    Sums,
    /// Every entry, decoded again: about the cost of reading the output once.
    Full,
}

/// Checks the products of one session, batch by batch. A clone taken before a batch is the way back if that
/// batch is refused.
#[derive(Clone, Debug)]
pub struct Certifier {
    mode: Mode,
    cuts: CutCheck,
    view: View,
    /// Of the recipe's dictionary.
    decoder: Option<Decoder>,
    last: Vec<u8>,
    last_hash: Option<u64>,
    last_prefix: Option<u64>,
    /// Blocks read.
    blocks: u64,
    entries: u64,
    weight: u64,
}

impl Certifier {
    /// A certifier at the start of an output.
    pub fn new(mode: Mode) -> Certifier {
        Certifier {
            mode,
            cuts: CutCheck::default(),
            view: View::default(),
            decoder: None,
            last: Vec::new(),
            last_hash: None,
            last_prefix: None,
            blocks: 0,
            entries: 0,
            weight: 0,
        }
    }

    /// Whether it looks at the sums of all blocks.
    pub fn looks_at_sums(&self) -> bool {
        self.mode != Mode::Meta
    }

    /// Reads the next batch, before anyone rewrites its checksums.
    ///
    /// # Errors
    /// Internal: the engine broke the contract; the message says how.
    pub fn read(&mut self, recipe: &Recipe, products: &Products) -> Result<()> {
        self.cuts.read(recipe, products)?;
        let mut found = products.sums.iter().copied();
        for item in products.items() {
            match item {
                Item::Block(b) => self.block(recipe, products, b, found.next())?,
                Item::FileCut(_) => (self.last_hash, self.last_prefix) = (None, None),
                Item::SetDone(_) => {}
            }
        }
        Ok(())
    }

    /// The output is complete; `ledger` is what the engine reports.
    ///
    /// # Errors
    /// Internal if the ledger does not balance or does not match what was read.
    pub fn finish(self, ledger: &Ledger) -> Result<()> {
        self.cuts.finish()?;
        if zoo::on(Bug::EngineBelieved) {
            return Ok(());
        }
        ledger.check()?;
        if self.entries != ledger.entries_out {
            return Err(broken("entries in blocks differ from the ledger"));
        }
        if self.weight != ledger.sum_out {
            return Err(broken("the weight of all entries differs from the ledger"));
        }
        Ok(())
    }

    /// The next block. Its raw sum is `found`, if the host found it already.
    fn block(
        &mut self,
        recipe: &Recipe,
        products: &Products,
        b: &BlockMeta,
        found: Option<u32>,
    ) -> Result<()> {
        let order = &*recipe.order;
        let (first, last) = (products.first_key(b), products.last_key(b));
        if b.entries == 0 || first.cmp(last, order).is_gt() {
            return Err(broken("a block is empty or its bounds are swapped"));
        }
        if let Some(before) = InternalKey::decode(&self.last)
            && before.cmp(first, order).is_ge()
        {
            return Err(broken("blocks are out of order"));
        }
        if !recipe.range.contains(first.user, order) || !recipe.range.contains(last.user, order) {
            return Err(broken("a block lies outside of the job's range"));
        }
        let kinds = [b.values, b.deletes, b.single_deletes, b.merges];
        if kinds.iter().map(|&n| u64::from(n)).sum::<u64>() != u64::from(b.entries) {
            return Err(broken("a block's counts by kind do not add up"));
        }
        self.entries += u64::from(b.entries);
        self.weight = self.weight.wrapping_add(b.weight);
        let sampled = self.blocks.is_multiple_of(SAMPLE);
        self.blocks += 1;
        match self.mode {
            Mode::Full => self.entries_of(recipe, products, b)?,
            Mode::Sums if sampled => self.entries_of(recipe, products, b)?,
            Mode::Sums => {
                match found {
                    Some(sum) if b.at.len() >= TRAILER => agree(sum, products, b)?,
                    _ => drop(checked(recipe, products, b)?),
                }
                self.skip(recipe, last.user);
            }
            Mode::Meta => {}
        }
        self.last.clear();
        last.encode_into(&mut self.last);
        Ok(())
    }

    /// A block whose entries are not looked at: its last key is what a filter hash is not repeated of.
    fn skip(&mut self, recipe: &Recipe, last: &[u8]) {
        self.last_hash = Some(xxph3_64(last));
        // Without one, the prefix before stays the last, as it does for the writer.
        self.last_prefix = recipe.prefixes.of(last).map(key_hash).or(self.last_prefix);
    }

    /// Decodes a block again and compares everything its metadata claims.
    fn entries_of(&mut self, recipe: &Recipe, products: &Products, b: &BlockMeta) -> Result<()> {
        let order = &*recipe.order;
        let payload = &*payload(&mut self.decoder, recipe, products, b)?;
        // A walk from the front does not need restart points, and searches begin at them.
        BlockIter::new(payload)?.check_restarts()?;
        self.view.decode(payload, &[])?;
        let mut seen = BlockMeta { min_seq: lithify_base::MAX_SEQ, ..BlockMeta::default() };
        let mut hashes = products.hashes(b).iter();
        for i in 0..self.view.len() {
            let e = self.view.entry(i, payload);
            let key = InternalKey { user: e.key, tag: e.tag };
            if let Some(before) = InternalKey::decode(&self.last)
                && before.cmp(key, order).is_ge()
            {
                return Err(broken("entries are out of order"));
            }
            let kind = e.tag.kind().filter(|kind| *kind != Kind::RangeDelete);
            let Some(kind) = kind else {
                return Err(broken("an entry of a kind that no block has"));
            };
            seen.count(kind, e.tag.seq(), e.key.len(), e.value.len());
            seen.weight = seen.weight.wrapping_add(e.weight);
            if let Some(hash) = recipe.prefixes.of(e.key).map(key_hash)
                && self.last_prefix.replace(hash) != Some(hash)
                && hashes.next() != Some(&hash)
            {
                return Err(broken("a prefix's filter hash is missing"));
            }
            if recipe.filter && self.last_hash != Some(e.hash) && hashes.next() != Some(&e.hash) {
                return Err(broken("a key's filter hash is missing"));
            }
            self.last_hash = Some(e.hash);
            self.last.clear();
            key.encode_into(&mut self.last);
        }
        if hashes.next().is_some() {
            return Err(broken("a filter hash belongs to no key"));
        }
        self.compare(products, b, &seen)
    }

    fn compare(&self, products: &Products, b: &BlockMeta, seen: &BlockMeta) -> Result<()> {
        let key_of = |i: usize| InternalKey { user: self.view.key(i), tag: self.view.tag(i) };
        let n = self.view.len();
        let same = (seen.entries, seen.raw_key_bytes, seen.raw_value_bytes)
            == (b.entries, b.raw_key_bytes, b.raw_value_bytes)
            && (seen.min_seq, seen.max_seq) == (b.min_seq, b.max_seq)
            && seen.weight == b.weight
            && [seen.values, seen.deletes, seen.single_deletes, seen.merges]
                == [b.values, b.deletes, b.single_deletes, b.merges]
            && n > 0
            && key_of(0) == products.first_key(b)
            && key_of(n - 1) == products.last_key(b);
        if same { Ok(()) } else { Err(broken("a block's metadata differs from its entries")) }
    }
}

/// The stored payload of a block and its type byte, if its checksum is right.
fn checked<'a>(recipe: &Recipe, products: &'a Products, b: &BlockMeta) -> Result<(&'a [u8], u8)> {
    let Some((payload, trailer)) = products.block(b).split_last_chunk::<TRAILER>() else {
        return Err(broken("a block is shorter than its trailer"));
    };
    agree(raw_sum(recipe.checksum, payload, trailer[0]), products, b)?;
    Ok((payload, trailer[0]))
}

/// Whether a block's checksum is the one that was found.
fn agree(found: u32, products: &Products, b: &BlockMeta) -> Result<()> {
    match found == products.raw_sum(b) {
        true => Ok(()),
        false => Err(broken("a block's checksum is wrong")),
    }
}

/// The plain payload of a block whose checksum is right. `decoder` is made at the first use.
///
/// # Errors
/// Internal if the checksum is wrong, or the codec another one than the recipe's; Corruption if the payload does not
/// decompress.
pub(crate) fn payload<'a>(
    decoder: &mut Option<Decoder>,
    recipe: &Recipe,
    products: &'a Products,
    b: &BlockMeta,
) -> Result<Cow<'a, [u8]>> {
    let (stored, type_byte) = checked(recipe, products, b)?;
    if type_byte == 0 {
        return Ok(Cow::Borrowed(stored));
    }
    // Some codecs announce any size in a few bytes: those that were not asked for get no memory.
    if type_byte != recipe.codec as u8 {
        return Err(broken("a block is compressed in another way than was asked for"));
    }
    let decoder = decoder.get_or_insert_with(|| {
        let dictionary = recipe.dictionary.as_deref().unwrap_or_default();
        Decoder::rocksdb().with_dictionary(dictionary)
    });
    Ok(Cow::Owned(decoder.decode(type_byte, stored, plain_max(stored.len()))?))
}

/// Proves that a filter holds every key of a batch: `member` asks the finished filter about a key
/// hash. A missing bit would hide a key that exists.
///
/// # Errors
/// Internal if one is missing.
pub fn members(products: &Products, mut member: impl FnMut(u64) -> bool) -> Result<()> {
    for item in products.items() {
        if let Item::Block(b) = item
            && !products.hashes(b).iter().all(|&h| member(h))
        {
            return Err(broken("a key is missing from its file's filter"));
        }
    }
    Ok(())
}

#[cold]
pub(crate) fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("engine output refused: {what}"))
}

#[cfg(test)]
mod tests;
