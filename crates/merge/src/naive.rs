//! The naive twin: the drop rules, the grid cut and the encoding as the contract words them, over
//! plain vectors. The oracle of every engine; never fast, never clever.
//!
//! Keeps: one expression per rule of the cuts and of `gc`, no state carried between entries.

use lithify_base::compaction_filter::{Decision, decide};
use lithify_base::operator::{full_merge, partial_merge};
use lithify_base::{InternalKey, Key, Kind, Result, Tag};
use lithify_format::block::BlockBuilder;
use lithify_format::checksum::raw_sum;
use lithify_format::compress::Compressor;
use lithify_format::xxph3::xxph3_64;

use crate::chain::{self, CHAIN_BYTES_MAX};
use crate::cut::logical;
use crate::ledger::{Ledger, RULES, Rule, content, weigh};
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

/// An entry and what becomes of it.
struct Version {
    entry: Entry,
    fate: Option<Rule>,
    /// Not among the inputs.
    made: bool,
}

impl Version {
    fn kind(&self) -> Kind {
        self.entry.tag.kind().unwrap_or(Kind::Value)
    }
    fn made(key: &[u8], tag: Tag, value: Vec<u8>, run: u16) -> Version {
        Version { entry: Entry { key: key.to_vec(), tag, value, run }, fate: None, made: true }
    }
}

/// D1-D4, D6-D8.
fn drop_entries(
    recipe: &Recipe,
    all: &[Entry],
    kept: &Fragments,
    ledger: &mut Ledger,
) -> Vec<Entry> {
    let order = &*recipe.order;
    let mut items = Vec::new();
    for key in all.chunk_by(|a, b| order.compare(&a.key, &b.key).is_eq()) {
        let versions = hide(recipe, key);
        items.extend(sift(recipe, combine(recipe, versions)));
    }
    elide(recipe, &mut items);
    let mut out = Vec::new();
    let mut dropped = [0; RULES];
    for Version { entry: e, fate, made } in items {
        let weight = |t| weigh(content(xxph3_64(&e.key), &e.value), t);
        match made {
            true => ledger.make_entry(weight(e.tag)),
            false => {
                ledger.entries_in += 1;
                ledger.bytes_in += (e.key.len() + 8 + e.value.len()) as u64;
                ledger.sum_in = ledger.sum_in.wrapping_add(weight(e.tag));
            }
        }
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
            && recipe.drop_tombstones
            && e.tag.kind() == Some(Kind::Value)
            && before.seq() != 0
            && recipe.stripe(before.seq()) == 0
            && free(recipe, &e)
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

/// D3: deletes that hide nothing, from the last entry to the first.
fn elide(recipe: &Recipe, items: &mut [Version]) {
    let order = &*recipe.order;
    let same_key = |a: &Version, b: &Version| order.compare(&a.entry.key, &b.entry.key).is_eq();
    for i in (0..items.len()).rev() {
        let only_deletes_follow = items[i + 1..]
            .iter()
            .take_while(|o| same_key(o, &items[i]))
            .all(|o| o.fate.is_some() || o.kind().is_delete());
        let item = &mut items[i];
        let elided = recipe.drop_tombstones && item.kind().is_delete() && free(recipe, &item.entry);
        if item.fate.is_none() && elided && only_deletes_follow {
            item.fate = Some(Rule::Elided);
        }
    }
}

/// No older data elsewhere.
fn free(recipe: &Recipe, e: &Entry) -> bool {
    !recipe.in_use[usize::from(e.run)].contains(&e.key, &*recipe.order)
}

/// Sequence numbers of the range tombstones over a key.
fn tombs(recipe: &Recipe, key: &[u8]) -> Vec<u64> {
    let fragment = recipe.tombstones.find(key, &*recipe.order);
    fragment.into_iter().flat_map(|f| &f.tombs).map(|t| t.seq).collect()
}

/// D1, D2 and D7 over the versions of a key.
fn hide(recipe: &Recipe, versions: &[Entry]) -> Vec<Version> {
    let stripe = |e: &Entry| recipe.stripe(e.tag.seq());
    let mut items: Vec<Version> = Vec::new();
    for (i, e) in versions.iter().enumerate() {
        let kind = |e: &Entry| e.tag.kind().unwrap_or(Kind::Value);
        let hides = |n: &&Entry| stripe(n) == stripe(e) && kind(n) != Kind::Merge;
        let hider = versions[..i].iter().rev().find(hides);
        let hidden = match kind(e) {
            Kind::SingleDelete => hider.is_some_and(|n| kind(n).is_delete()),
            _ => hider.is_some(),
        };
        let covers = |&t: &u64| t > e.tag.seq() && recipe.stripe(t) == stripe(e);
        let covered = tombs(recipe, &e.key).iter().any(covers);
        // Operands that wait are applied to what a single delete leaves.
        let operand = |v: &Version| {
            v.fate.is_none() && v.kind() == Kind::Merge && stripe(&v.entry) == stripe(e)
        };
        let taken = recipe.operator.is_some() && items.last().is_some_and(operand);
        let paired = kind(e) == Kind::SingleDelete
            && !taken
            && versions
                .get(i + 1)
                .is_some_and(|n| stripe(n) == stripe(e) && kind(n) == Kind::Value);
        let fate = if hidden {
            Some(Rule::Hidden)
        } else if covered {
            Some(Rule::Covered)
        } else if paired {
            Some(Rule::Paired)
        } else {
            None
        };
        items.push(Version { entry: e.clone(), fate, made: false });
    }
    items
}

/// D6 over the versions of a key: the operands of a stripe that survive, and what is below them.
fn combine(recipe: &Recipe, mut items: Vec<Version>) -> Vec<Version> {
    let Some(operator) = recipe.operator.clone() else { return items };
    let stripe = |item: &Version| recipe.stripe(item.entry.tag.seq());
    let mut out: Vec<Version> = Vec::new();
    while let Some(first) = items.first() {
        let (key, tag, run) = (first.entry.key.clone(), first.entry.tag, first.entry.run);
        let mut bytes = 0;
        let joins = |o: &&Version| {
            let room = bytes <= CHAIN_BYTES_MAX;
            bytes += chain::weight(&o.entry.value);
            o.fate.is_none() && o.kind() == Kind::Merge && stripe(o) == stripe(first) && room
        };
        let n = items.iter().take_while(joins).count();
        if n == 0 {
            out.push(items.remove(0));
            continue;
        }
        let oldest = items[n - 1].entry.tag.seq();
        let covered = |&t: &u64| t < oldest && recipe.stripe(t) == stripe(first);
        let bottom = n == items.len() && recipe.drop_tombstones && free(recipe, &first.entry);
        // What the operands are applied to, if that is known, and whether it is taken.
        let base = match items.get(n).filter(|o| stripe(o) == stripe(first)) {
            Some(o) if o.fate == Some(Rule::Covered) => Some((None, false)),
            Some(o) if o.kind() == Kind::Value => Some((Some(o.entry.value.clone()), true)),
            Some(o) if o.kind().is_delete() => Some((None, true)),
            None if bottom || tombs(recipe, &key).iter().any(covered) => Some((None, false)),
            _ => None,
        };
        let mut chain: Vec<Version> = items.drain(..n).collect();
        let Some((existing, taken)) = base else {
            out.extend(fold(recipe, chain));
            continue;
        };
        let operands: Vec<&[u8]> = chain.iter().rev().map(|o| &o.entry.value[..]).collect();
        if let Ok(value) = full_merge(&*operator, &key, existing.as_deref(), &operands) {
            out.push(Version::made(&key, Tag::new(tag.seq(), Kind::Value), value, run));
            let gone = chain.iter_mut().chain(items.first_mut().filter(|_| taken));
            gone.for_each(|o| o.fate = Some(Rule::Combined));
        }
        out.append(&mut chain);
    }
    out
}

/// Operands combined with each other, newest first, wherever the operator can: pairs of neighbours, then pairs of these, as
/// long as rounds make many fewer of them; in the end each takes all that it can.
fn fold(recipe: &Recipe, chain: Vec<Version>) -> Vec<Version> {
    let Some(operator) = &recipe.operator else { return chain };
    let mut groups: Vec<(Vec<u8>, Vec<Version>)> =
        chain.into_iter().map(|item| (item.entry.value.clone(), vec![item])).collect();
    // True if the group at `at` has taken the next older one.
    let takes = |groups: &mut Vec<(Vec<u8>, Vec<Version>)>, at: usize| {
        let (newer, older) = (&groups[at], &groups[at + 1]);
        let key = &older.1[0].entry.key;
        let Some(both) = partial_merge(&**operator, key, &older.0, &newer.0) else { return false };
        let (_, older) = groups.remove(at + 1);
        groups[at].0 = both;
        groups[at].1.extend(older);
        true
    };
    loop {
        let (before, mut at) = (groups.len(), 0);
        while at + 1 < groups.len() {
            takes(&mut groups, at);
            at += 1;
        }
        if groups.len() < 2 || groups.len() > before / 4 * 3 {
            break;
        }
    }
    let mut at = 0;
    while at + 1 < groups.len() {
        if !takes(&mut groups, at) {
            at += 1;
        }
    }
    let mut out = Vec::new();
    for (value, mut group) in groups {
        if group.len() > 1 {
            let newest = &group[0].entry;
            out.push(Version::made(&newest.key, newest.tag, value, newest.run));
            group.iter_mut().for_each(|o| o.fate = Some(Rule::Combined));
        }
        out.append(&mut group);
    }
    out
}

/// D8 over the versions of a key: the newest survivor, if no snapshot needs it.
fn sift(recipe: &Recipe, mut items: Vec<Version>) -> Vec<Version> {
    let Some(user) = &recipe.user_filter else { return items };
    let Some(i) = items.iter().position(|o| o.fate.is_none()) else { return items };
    let Entry { key, tag, value, run } = items[i].entry.clone();
    if items[i].kind() != Kind::Value || recipe.stripe(tag.seq()) != recipe.snapshots.len() {
        return items;
    }
    let (kind, value) = match decide(&*user.filter, &user.context, &key, &value) {
        Decision::Keep => return items,
        Decision::Remove => (Kind::Delete, Vec::new()),
        Decision::Change(value) => (Kind::Value, value.into_owned()),
    };
    items[i].fate = Some(Rule::Filtered);
    items.insert(i, Version::made(&key, Tag::new(tag.seq(), kind), value, run));
    items
}

/// Grid cut: for each entry, whether a block starts there and whether a file does.
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
        file.tombstones = kept.between(lo, hi, order).to_tombstones()?;
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
