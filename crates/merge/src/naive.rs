//! The naive twin: the drop rules, the grid cut and the encoding as the contract words them, over
//! plain vectors. The oracle of every engine; never fast, never clever.
//!
//! Keeps: one expression per rule of formats sections 6 and 7, no state carried between entries.

use lithify_base::{InternalKey, Key, Kind, Result, Tag};
use lithify_format::block::BlockBuilder;
use lithify_format::checksum::raw_sum;
use lithify_format::compress::Compressor;
use lithify_format::xxph3::xxph3_64;

use crate::cut::logical;
use crate::ledger::{Ledger, RULES, Rule, weigh};
use crate::products::{Item, Products};
use crate::recipe::Recipe;
use crate::tombstone::{Fragment, Fragments, RangeTombstone};

/// An owned entry of some input run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// User key.
    pub key: Vec<u8>,
    /// Sequence number and kind.
    pub tag: Tag,
    /// Value.
    pub value: Vec<u8>,
    /// Position of the run.
    pub run: u16,
}

/// One file of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutFile {
    /// Blocks with their trailers.
    pub blocks: Vec<Vec<u8>>,
    /// Filter hashes in order.
    pub hashes: Vec<u64>,
    /// Range tombstones.
    pub tombstones: Vec<RangeTombstone>,
}

/// A whole output, file by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The files, in key order.
    pub files: Vec<OutFile>,
    /// Blocks since the last file cut.
    open: OutFile,
}

impl Output {
    /// Adds what an engine produced.
    pub fn absorb(&mut self, products: &Products) {
        for item in products.items() {
            match item {
                Item::Block(b) => {
                    self.open.blocks.push(products.block(b).to_vec());
                    self.open.hashes.extend_from_slice(products.hashes(b));
                }
                Item::FileCut(cut) => {
                    let mut file = std::mem::take(&mut self.open);
                    file.tombstones = cut.tombstones.clone();
                    self.files.push(file);
                }
                Item::SetDone(_) => {}
            }
        }
    }
    /// True if no block waits for its file cut.
    pub fn is_closed(&self) -> bool {
        self.open == OutFile::default()
    }
}

/// Compacts entries of any order.
///
/// # Errors
/// What the codec of the recipe reports.
pub fn compact(recipe: &Recipe, mut input: Vec<Entry>) -> Result<(Output, Ledger)> {
    let order = &*recipe.order;
    input.retain(|e| recipe.range.contains(&e.key, order));
    sort(recipe, &mut input);
    let mut ledger = Ledger::default();
    let kept = tombstones(recipe, &mut ledger);
    let survivors = drop_entries(recipe, &input, &kept, &mut ledger);
    let files = encode(recipe, &survivors, &kept)?;
    Ok((Output { files, open: OutFile::default() }, ledger))
}

/// Sorts by the total order R7.
pub fn sort(recipe: &Recipe, entries: &mut [Entry]) {
    entries.sort_by(|a, b| {
        recipe.order.compare(&a.key, &b.key).then(b.tag.cmp(&a.tag)).then(a.run.cmp(&b.run))
    });
}

/// D5.
fn tombstones(recipe: &Recipe, ledger: &mut Ledger) -> Fragments {
    let mut list = Vec::new();
    for f in recipe.tombstones.iter() {
        let mut kept = Vec::new();
        for t in &f.tombs {
            ledger.tombs_in += 1;
            let stripe = recipe.stripe(t.seq);
            let used = &recipe.in_use[usize::from(t.run)];
            if f.tombs.iter().any(|n| n.seq > t.seq && recipe.stripe(n.seq) == stripe) {
                ledger.tombs_hidden += 1;
            } else if recipe.drop_tombstones
                && stripe == 0
                && !used.overlaps(&f.lo, &f.hi, &*recipe.order)
            {
                ledger.tombs_elided += 1;
            } else {
                ledger.tombs_out += 1;
                kept.push(*t);
            }
        }
        if !kept.is_empty() {
            list.push(Fragment { lo: f.lo.clone(), hi: f.hi.clone(), tombs: kept });
        }
    }
    Fragments::from_sorted(list)
}

/// D1-D4, D6, D7.
fn drop_entries(
    recipe: &Recipe,
    all: &[Entry],
    kept: &Fragments,
    ledger: &mut Ledger,
) -> Vec<Entry> {
    let order = &*recipe.order;
    let kind = |e: &Entry| e.tag.kind().unwrap_or(Kind::Value);
    let same_key = |a: &Entry, b: &Entry| order.compare(&a.key, &b.key).is_eq();
    let stripe = |e: &Entry| recipe.stripe(e.tag.seq());
    let free = |e: &Entry| !recipe.in_use[usize::from(e.run)].contains(&e.key, order);

    let mut fate: Vec<Option<Rule>> = vec![None; all.len()];
    for (i, e) in all.iter().enumerate() {
        let newer = all[..i].iter().rev().take_while(|n| same_key(n, e));
        let hidden = newer.clone().any(|n| stripe(n) == stripe(e) && kind(n) != Kind::Merge);
        let covered = recipe.tombstones.iter().any(|f| {
            order.compare(&f.lo, &e.key).is_le()
                && order.compare(&e.key, &f.hi).is_lt()
                && f.tombs.iter().any(|t| t.seq > e.tag.seq() && recipe.stripe(t.seq) == stripe(e))
        });
        let paired = kind(e) == Kind::SingleDelete
            && all.get(i + 1).is_some_and(|n| {
                same_key(n, e) && stripe(n) == stripe(e) && kind(n) == Kind::Value
            });
        fate[i] = if hidden {
            Some(Rule::Hidden)
        } else if covered {
            Some(Rule::Covered)
        } else if paired {
            Some(Rule::Paired)
        } else {
            None
        };
    }
    for (i, e) in all.iter().enumerate().rev() {
        let only_deletes_follow = all[i + 1..]
            .iter()
            .zip(&fate[i + 1..])
            .take_while(|(o, _)| same_key(o, e))
            .all(|(o, f)| f.is_some() || kind(o).is_delete());
        let elided = recipe.drop_tombstones && kind(e).is_delete() && free(e);
        if fate[i].is_none() && elided && only_deletes_follow {
            fate[i] = Some(Rule::Elided);
        }
    }
    let mut out = Vec::new();
    let mut dropped = [0; RULES];
    for (e, fate) in all.iter().zip(fate) {
        let weight = |t| weigh(xxph3_64(&e.key), t, e.value.len());
        ledger.entries_in += 1;
        ledger.bytes_in += (e.key.len() + 8 + e.value.len()) as u64;
        ledger.sum_in = ledger.sum_in.wrapping_add(weight(e.tag));
        if let Some(rule) = fate {
            dropped[rule as usize] += 1;
            ledger.sum_dropped = ledger.sum_dropped.wrapping_add(weight(e.tag));
            continue;
        }
        let mut e = e.clone();
        let before = e.tag;
        let hides_zero =
            kept.find(&e.key, order).is_some_and(|f| f.tombs.iter().any(|t| t.seq <= before.seq()));
        if recipe.zero_seqs
            && kind(&e) == Kind::Value
            && before.seq() != 0
            && stripe(&e) == 0
            && free(&e)
            && !hides_zero
        {
            e.tag = Tag::new(0, Kind::Value);
            ledger.zeroed += 1;
            let change = weight(e.tag).wrapping_sub(weight(before));
            ledger.sum_zeroed = ledger.sum_zeroed.wrapping_add(change);
        }
        ledger.entries_out += 1;
        ledger.sum_out = ledger.sum_out.wrapping_add(weight(e.tag));
        out.push(e);
    }
    ledger.dropped = dropped;
    out
}

/// Grid cut (formats 6): for each entry, whether a block starts there and whether a file does.
pub fn cuts(recipe: &Recipe, entries: &[Entry]) -> Vec<(bool, bool)> {
    let order = &*recipe.order;
    let mut s = vec![0u64];
    for e in entries {
        s.push(s[s.len() - 1] + logical(e.key.len(), e.value.len()));
    }
    let at_split = |i: usize, splits: &[Key]| {
        splits.iter().any(|k| {
            order.compare(k, &entries[i].key).is_le()
                && (i == 0 || order.compare(&entries[i - 1].key, k).is_lt())
        })
    };
    let (b, f) = (u64::from(recipe.block_bytes), recipe.file_bytes);
    let (mut candidate, mut file) = (0, 0);
    (0..entries.len())
        .map(|i| {
            let hard = at_split(i, &recipe.hard_splits);
            let soft = at_split(i, &recipe.soft_splits);
            if i == 0 {
                return (true, true);
            }
            if !(hard || soft || s[i] / b != s[i - 1] / b) {
                return (false, false);
            }
            if order.compare(&entries[i].key, &entries[i - 1].key).is_eq() {
                return (true, false);
            }
            let starts = s[i] / f != candidate / f || hard || soft && s[i] - file >= f / 8;
            candidate = s[i];
            if starts {
                file = s[i];
            }
            (true, starts)
        })
        .collect()
}

fn encode(recipe: &Recipe, entries: &[Entry], kept: &Fragments) -> Result<Vec<OutFile>> {
    let order = &*recipe.order;
    let cuts = cuts(recipe, entries);
    let mut files: Vec<OutFile> = Vec::new();
    let mut starts: Vec<Key> = Vec::new();
    let mut from = 0;
    while from < entries.len() {
        let to = (from + 1..entries.len()).find(|&i| cuts[i].0).unwrap_or(entries.len());
        if cuts[from].1 {
            files.push(OutFile::default());
            starts.push(entries[from].key.as_slice().into());
        }
        if let Some(file) = files.last_mut() {
            file.blocks.push(block(recipe, &entries[from..to])?);
            file.hashes.extend(entries[from..to].iter().map(|e| xxph3_64(&e.key)));
        }
        from = to;
    }
    for file in &mut files {
        file.hashes.dedup();
        if !recipe.filter {
            file.hashes.clear();
        }
    }
    let whole = recipe.range.hi.as_ref().filter(|hi| !hi.inclusive).map(|hi| &hi.key);
    if files.is_empty() && !kept.between(recipe.range.lo.as_ref(), whole, order).is_empty() {
        files.push(OutFile::default());
    }
    for (i, file) in files.iter_mut().enumerate() {
        let lo = if i == 0 { recipe.range.lo.as_ref() } else { starts.get(i) };
        let hi = starts.get(i + 1).or(whole);
        file.tombstones = kept.between(lo, hi, order).to_tombstones();
    }
    Ok(files)
}

/// One block with its trailer.
///
/// # Errors
/// What the codec of the recipe reports.
pub fn block(recipe: &Recipe, entries: &[Entry]) -> Result<Vec<u8>> {
    let mut builder = BlockBuilder::new(u32::from(recipe.restart_interval));
    for e in entries {
        builder.add_entry(InternalKey { user: &e.key, tag: e.tag }, &e.value);
    }
    let mut out = Vec::new();
    let type_byte =
        Compressor::new(recipe.codec, recipe.codec_level)?.append(builder.finish(), &mut out);
    let sum = raw_sum(recipe.checksum, &out, type_byte);
    out.push(type_byte);
    out.extend_from_slice(&sum.to_le_bytes());
    Ok(out)
}
