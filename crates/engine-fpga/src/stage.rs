//! Staging: a block set becomes an input slot.
//!
//! ```text
//!  blocks -> verify, decompress -> entry areas, descriptors ---------> sent as soon as the set is known
//!  outermost blocks of a run -> decode -> skip, take
//!  carry -> replay; zones -> mask, markers -> header, the side way --> sent when the carry is known
//! ```
//!
//! Keeps: what is staged holds exactly the entries of the set, and the host has counted them: what a unit says
//! came in is held against that. The marks among them are made of `Tables`, where `merge` has sorted everything that
//! depends on key positions. Blocks inside of a run are verified, copied and counted, not decoded.
//! Leaves to others: what a unit finds in the entries themselves, such as operands. A set whose blocks do not
//! verify is not staged: the kernel tries it, and names the block.
//!
//! Worked example: the set `(f, m]`, run 2 with blocks `a..g` and `g..p`. The first is decoded and has three
//! entries at or below `f`: `skip` 3. The second has five up to `m`: `take` 5. Run 2 is in use in `[h, k]`:
//! markers at `h` and at `k` followed by a zero byte; before `h` the mask has the bit of its way clear.

use std::borrow::Cow;
use std::ops::Range;

use lithify_base::{Error, Key};
use lithify_format::block::Layout;
use lithify_merge::offload::{OpenState, Tables, ZoneRow};
use lithify_merge::view::View;
use lithify_merge::{BlockSet, BlockSlice, Recipe, RunSlice};

use crate::area::{self, Counts, user_key};
use crate::memory::Buffer;
use crate::stream::{
    AREA_MAX, BEAT, DESCRIPTOR, DESCRIPTORS_AT, Descriptor, F64, Header, KEY_MAX, MARKER, Record,
    SNAPSHOTS_MAX, SPLIT, TAKE_ALL, WAYS_MAX, Way, beats, put_snapshots,
};

/// Most markers of a set.
pub(crate) const MARKERS_MAX: usize = 4096;
/// Descriptors that the side way needs.
const SIDE: usize = 2;

/// Why the CPU merges a set and not a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OnCpu {
    /// Blocks of more runs than a unit has ways.
    Runs,
    /// Range tombstones lie over its keys.
    Tombstones,
    /// Blocks with values apart, or whose number stands for those of their entries.
    Form,
    /// Too many markers, or a long one.
    Markers,
    /// It does not fit a slot.
    Large,
    /// A block does not verify.
    Input,
    /// A unit said that it does not take it.
    Code,
    /// A link, memory or a unit failed over it twice.
    Damaged,
    /// A unit did not answer.
    Hung,
    /// What a unit made of it was wrong.
    Wrong,
    /// No slot became free.
    Busy,
    /// The card gets no more work.
    Quarantine,
    /// Sets before it were unsuitable, so the part stays on the kernel.
    Settled,
}

impl OnCpu {
    /// All of them.
    pub(crate) const ALL: [OnCpu; 13] = [
        OnCpu::Runs,
        OnCpu::Tombstones,
        OnCpu::Form,
        OnCpu::Markers,
        OnCpu::Large,
        OnCpu::Input,
        OnCpu::Code,
        OnCpu::Damaged,
        OnCpu::Hung,
        OnCpu::Wrong,
        OnCpu::Busy,
        OnCpu::Quarantine,
        OnCpu::Settled,
    ];

    /// The name of its count in reports, and for people what such a set is.
    pub(crate) const fn told(self) -> (&'static str, &'static str) {
        match self {
            OnCpu::Runs => ("cpu_runs", "of more runs than a unit has ways"),
            OnCpu::Tombstones => ("cpu_tombstones", "under range deletions"),
            OnCpu::Form => ("cpu_form", "of tables in a form that units do not take"),
            OnCpu::Markers => ("cpu_markers", "with too many bounds or too long ones"),
            OnCpu::Large => ("cpu_large", "that a slot has no room for once decompressed"),
            OnCpu::Input => ("cpu_input", "with a block that does not verify"),
            OnCpu::Code => ("cpu_code", "with entries that units do not take"),
            OnCpu::Damaged => ("cpu_damaged", "over which a link or a memory failed twice"),
            OnCpu::Hung => ("cpu_hung", "over which a unit or a link did not answer"),
            OnCpu::Wrong => ("cpu_wrong", "of which a unit made something wrong"),
            OnCpu::Busy => ("cpu_busy", "for which no slot became free"),
            OnCpu::Quarantine => ("cpu_quarantine", "for which the card was given up"),
            OnCpu::Settled => ("cpu_settled", "behind two in a row that did not suit"),
        }
    }

    /// It says something about the input, so the next set is likely to be like it. Not so of one that was too large:
    /// the next ones are cut smaller.
    pub(crate) fn is_of_input(self) -> bool {
        matches!(
            self,
            OnCpu::Runs
                | OnCpu::Tombstones
                | OnCpu::Form
                | OnCpu::Markers
                | OnCpu::Input
                | OnCpu::Code
        )
    }
}

/// The part of an input slot that does not depend on the carry.
#[derive(Debug)]
pub(crate) struct Staged {
    /// Runs of the data ways.
    runs: Vec<u16>,
    ways: Vec<Way>,
    descriptors: Vec<Descriptor>,
    /// The slot from [`DESCRIPTORS_AT`] on: descriptors, room for those of the side way, and the entry areas with
    /// their pads.
    pub(crate) areas: Buffer,
    /// Their bytes; they themselves may be on their way.
    pub(crate) areas_len: usize,
    /// Stored bytes of the set.
    pub(crate) stored: u64,
    /// Entries of the set by way, as the host has counted them.
    pub(crate) entries: Vec<u64>,
    /// Their user key, tag and value bytes.
    pub(crate) bytes_in: u64,
    /// Zones from that of the first keys above the set's lower bound.
    zones: Range<usize>,
}

/// The rest, a few blocks at most: sent once the carry is known, and the unit waits for it.
#[derive(Debug)]
pub(crate) struct Head {
    /// Places in the slot and what they get: the areas of the side way, its descriptors, and header with tables.
    pub(crate) parts: Vec<(usize, Vec<u8>)>,
    /// Bytes of the whole slot.
    pub(crate) in_bytes: usize,
}

/// What of a carry decides about the next set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Entries that later ones may join; empty if the grid has ended the block.
    pub(crate) replay: Vec<u8>,
    /// S mod B where the output of the next set begins.
    pub(crate) s_mod_b: u32,
    /// Hard and soft splits passed.
    pub(crate) splits: (usize, usize),
}

impl Standing {
    /// Of a carry.
    pub(crate) fn of(open: &OpenState<'_>, recipe: &Recipe) -> Standing {
        let end = open.cut.logical_bytes();
        let replay = if open.is_ended { &[][..] } else { open.entries };
        let back = if replay.is_empty() { 0 } else { open.counts.logical_bytes() };
        let s = end.wrapping_sub(back) & (u64::from(recipe.block_bytes) - 1);
        Standing { replay: replay.to_vec(), s_mod_b: s as u32, splits: open.cut.splits_passed() }
    }

    /// What the carry will be, from the open block alone, which comes back before all others: the next
    /// set starts on it, and counts if it was right. None if the block does not parse. `before` is
    /// where the set with this open block began.
    pub(crate) fn after(
        before: &Standing,
        record: &Record,
        open: &[u8],
        recipe: &Recipe,
    ) -> Option<Standing> {
        if open.is_empty() {
            return Some(before.clone());
        }
        let (last, counts) = area::last_entry(open)?;
        let (last, bytes) = (user_key(last)?, counts.bytes + 4 * u64::from(counts.all));
        let passed = |splits: &[Key]| splits.partition_point(|split| **split <= *last);
        let (replay, s) = match record.ended {
            true => (&[][..], u64::from(record.s_mod_b) + bytes),
            false => (open, u64::from(record.s_mod_b)),
        };
        let s_mod_b = (s & (u64::from(recipe.block_bytes) - 1)) as u32;
        let splits = (passed(&recipe.hard_splits), passed(&recipe.soft_splits));
        Some(Standing { replay: replay.to_vec(), s_mod_b, splits })
    }
}

/// Stages a set. `buffer` is used for its areas; it is given back if the set is not suitable. A slot has
/// `slot_bytes`, a unit takes `ways` runs.
pub(crate) fn stage(
    recipe: &Recipe,
    tables: &Tables,
    set: &BlockSet,
    ways: usize,
    slot_bytes: usize,
    mut buffer: Buffer,
) -> Result<Staged, (OnCpu, Buffer)> {
    let areas = buffer.filled();
    areas.clear();
    // Its bytes are counted by what it may hold, so it does not grow.
    areas.reserve_exact(slot_bytes);
    let staged = try_stage(recipe, tables, set, ways, slot_bytes, areas);
    let areas_len = areas.len();
    buffer.count();
    match staged {
        Ok(staged) => Ok(Staged { areas_len, areas: buffer, ..staged }),
        Err(why) => Err((why, buffer)),
    }
}

fn try_stage(
    recipe: &Recipe,
    tables: &Tables,
    set: &BlockSet,
    ways: usize,
    slot_bytes: usize,
    areas: &mut Vec<u8>,
) -> Result<Staged, OnCpu> {
    let runs = runs_of(recipe, set, ways)?;
    let zones = zones_of(tables, set);
    if tables.zones[zones.clone()].iter().any(|zone| zone.fragment.is_some()) {
        return Err(OnCpu::Tombstones);
    }
    let blocks: usize = runs.iter().map(|r| r.blocks.len()).sum();
    let tables = beats(DESCRIPTOR * (blocks + SIDE));
    let room = slot_bytes.saturating_sub(DESCRIPTORS_AT);
    if tables > room {
        return Err(OnCpu::Large);
    }
    areas.resize(tables, 0);
    let mut staged = Staged {
        runs: runs.iter().map(|r| r.run).collect(),
        ways: Vec::new(),
        descriptors: Vec::new(),
        areas: Buffer::default(),
        areas_len: 0,
        stored: set.bytes(),
        entries: Vec::new(),
        bytes_in: 0,
        zones,
    };
    for run in runs {
        let first = staged.descriptors.len();
        let mut entries = 0;
        for (at, trim) in trimmed(recipe, set, run)? {
            let (descriptor, counts) = area(&run.blocks[at], trim, room, areas)?;
            entries += u64::from(counts.taken);
            staged.bytes_in += counts.bytes;
            staged.descriptors.push(descriptor);
        }
        let count = staged.descriptors.len() - first;
        staged.ways.push(Way { first: first as u32, count: count as u32, run: run.run });
        staged.entries.push(entries);
    }
    for (no, descriptor) in staged.descriptors.iter().enumerate() {
        let at = DESCRIPTOR * no;
        areas[at..at + DESCRIPTOR].copy_from_slice(&descriptor.to_bytes());
    }
    Ok(staged)
}

/// The runs that are present in the set, newest first.
fn runs_of<'a>(
    recipe: &Recipe,
    set: &'a BlockSet,
    ways: usize,
) -> Result<Vec<&'a RunSlice>, OnCpu> {
    let mut runs: Vec<&RunSlice> = set.runs.iter().filter(|r| !r.blocks.is_empty()).collect();
    runs.sort_by_key(|r| r.run);
    let twice = runs.windows(2).any(|w| w[0].run == w[1].run);
    if twice || runs.iter().any(|r| r.run >= recipe.runs) {
        return Err(OnCpu::Input);
    }
    if runs.len() > ways.min(WAYS_MAX) {
        return Err(OnCpu::Runs);
    }
    Ok(runs)
}

/// Zones that hold keys of the set.
fn zones_of(tables: &Tables, set: &BlockSet) -> Range<usize> {
    let above_lo = |zone: &ZoneRow| match (&zone.key, &set.keys.lo) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(key), Some(lo)) => key > lo,
    };
    let within_hi = |zone: &ZoneRow| match (&zone.key, &set.keys.hi) {
        (None, _) | (_, None) => true,
        (Some(key), Some(hi)) if zone.after => key < hi,
        (Some(key), Some(hi)) => key <= hi,
    };
    let first = tables.zones.partition_point(|zone| !above_lo(zone)).saturating_sub(1);
    first..tables.zones.partition_point(within_hi).max(first + 1)
}

/// Which of a block's entries are in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trim {
    skip: u32,
    /// None for all that follow.
    take: Option<u32>,
}

/// The blocks of a run that have entries of the set, and which of them: only the outermost ones can have
/// others, too.
fn trimmed(recipe: &Recipe, set: &BlockSet, run: &RunSlice) -> Result<Vec<(usize, Trim)>, OnCpu> {
    let mut view = View::default();
    let mut look = |block: &BlockSlice| {
        view.load(block, &[]).map_err(input)?;
        let range = view.trim(&set.keys, &recipe.range, &[], &*recipe.order).map_err(input)?;
        if view.len() >= TAKE_ALL as usize {
            return Err(OnCpu::Large);
        }
        let take = (range.end < view.len()).then_some(range.len() as u32);
        let some = !range.is_empty();
        Ok(some.then_some(Trim { skip: range.start as u32, take }))
    };
    let blocks = &run.blocks;
    let (mut first, mut end) = (0, blocks.len());
    let mut outer = Vec::new();
    while first < end {
        if let Some(trim) = look(&blocks[first])? {
            outer.push((first, trim));
            break;
        }
        first += 1;
    }
    while end > first + 1 {
        if let Some(trim) = look(&blocks[end - 1])? {
            outer.push((end - 1, trim));
            break;
        }
        end -= 1;
    }
    let middle = (first + 1)..end.saturating_sub(1).max(first + 1);
    let whole = Trim { skip: 0, take: None };
    let mut all: Vec<(usize, Trim)> = middle.map(|at| (at, whole)).collect();
    all.extend(outer);
    all.sort_by_key(|&(at, _)| at);
    Ok(all)
}

fn input(_: Error) -> OnCpu {
    OnCpu::Input
}

/// Appends the entry area of a block, and counts what is taken of it. `areas` begin at [`DESCRIPTORS_AT`] in the slot
/// and may have `room` bytes.
fn area(
    block: &BlockSlice,
    trim: Trim,
    room: usize,
    areas: &mut Vec<u8>,
) -> Result<(Descriptor, Counts), OnCpu> {
    if block.seq.is_some() {
        return Err(OnCpu::Form);
    }
    let plain: Cow<'_, [u8]> = block.plain().map_err(input)?;
    let layout = Layout::parse(&plain).map_err(input)?;
    if layout.has_separated_values() {
        return Err(OnCpu::Form);
    }
    let entries = plain.get(..layout.keys_end()).unwrap_or_default();
    let at = areas.len();
    if entries.len() > AREA_MAX || at + beats(entries.len()) > room {
        return Err(OnCpu::Large);
    }
    let counts = area::count(entries, trim.skip, trim.take).filter(|counts| {
        // What its file says of it, if that says anything.
        counts.all > 0 && (block.entries == 0 || block.entries == counts.all)
    });
    let counts = counts.ok_or(OnCpu::Input)?;
    if counts.all >= TAKE_ALL {
        return Err(OnCpu::Large);
    }
    areas.extend_from_slice(entries);
    areas.resize(beats(areas.len()), 0);
    let descriptor = Descriptor {
        at: (DESCRIPTORS_AT + at) as u32,
        bytes: entries.len() as u32,
        skip: trim.skip,
        take: trim.take.unwrap_or(TAKE_ALL),
        expected: counts.all,
        sum: F64::of(&areas[at..]),
        ..Descriptor::default()
    };
    Ok((descriptor, counts))
}

impl Staged {
    /// Input bytes that a unit reads, but for those of the side way.
    pub(crate) fn bytes(&self) -> usize {
        DESCRIPTORS_AT + self.areas_len
    }

    /// Descriptors of the data ways.
    pub(crate) fn areas_count(&self) -> usize {
        self.descriptors.len()
    }

    /// Header, tables and side way for a set that goes on from `standing`.
    pub(crate) fn head(
        &self,
        recipe: &Recipe,
        tables: &Tables,
        standing: &Standing,
        tag: u64,
        slot_bytes: (usize, usize),
    ) -> Result<Head, OnCpu> {
        if standing.replay.len() > AREA_MAX {
            return Err(OnCpu::Large);
        }
        let (in_use, markers) = self.markers(tables, standing)?;
        let mut side = Vec::new();
        let mut descriptors = self.descriptors.clone();
        for (bytes, replay) in [(&standing.replay, true), (&markers, false)] {
            if bytes.is_empty() {
                continue;
            }
            let at = side.len();
            side.extend_from_slice(bytes);
            side.resize(beats(side.len()), 0);
            descriptors.push(Descriptor {
                at: (self.bytes() + at) as u32,
                bytes: bytes.len() as u32,
                take: TAKE_ALL,
                replay,
                markers: !replay,
                sum: F64::of(&side[at..]),
                ..Descriptor::default()
            });
        }
        let in_bytes = self.bytes() + side.len();
        if in_bytes > slot_bytes.0 {
            return Err(OnCpu::Large);
        }
        let header = Header {
            ways: self.ways.len() as u8,
            tag,
            s_mod_b: standing.s_mod_b,
            in_use,
            descriptors: descriptors.len() as u32,
            in_bytes: in_bytes as u32,
            out_bytes: slot_bytes.1 as u32,
            ..of_recipe(recipe)
        };
        let mut tables = self.tables(recipe, &header, &descriptors);
        let mut parts = Vec::new();
        if !side.is_empty() {
            // The descriptors before the side way's are in the slot; its own may share a beat with the last one.
            let first = (DESCRIPTORS_AT + DESCRIPTOR * self.descriptors.len()) / BEAT * BEAT;
            parts.extend([(self.bytes(), side), (first, tables.split_off(first))]);
        }
        tables.truncate(DESCRIPTORS_AT);
        parts.push((0, tables));
        Ok(Head { parts, in_bytes })
    }

    /// Header and tables of the set, with the sum over them.
    fn tables(&self, recipe: &Recipe, header: &Header, descriptors: &[Descriptor]) -> Vec<u8> {
        let mut slot = vec![0; header.tables_end()];
        put_snapshots(&mut slot, &recipe.snapshots);
        for no in 0..WAYS_MAX {
            self.ways.get(no).copied().unwrap_or_default().put(&mut slot, no);
        }
        let sides = (descriptors.len() - self.descriptors.len()) as u32;
        let first = if sides == 0 { 0 } else { self.descriptors.len() as u32 };
        Way { first, count: sides, run: 0 }.put(&mut slot, WAYS_MAX);
        for (no, descriptor) in descriptors.iter().enumerate() {
            descriptor.put(&mut slot, no);
        }
        header.seal(&mut slot);
        slot
    }

    /// By way of this set, older data in use behind its run in a zone.
    fn mask(&self, tables: &Tables, zone: usize) -> u16 {
        let used = |&(_, &run): &(usize, &u16)| !tables.is_free(zone, run);
        self.runs.iter().enumerate().filter(used).map(|(way, _)| 1 << way).sum()
    }

    /// The mask above the set's lower bound, and the entries that change it or bring splits.
    fn markers(&self, tables: &Tables, standing: &Standing) -> Result<(u16, Vec<u8>), OnCpu> {
        let zones = &tables.zones;
        let (hard, soft) = standing.splits;
        let first = &zones[self.zones.start];
        let above = self.mask(tables, self.zones.start);
        let mut list: Vec<(Key, u64)> = Vec::new();
        // Splits at or below the lower bound that no survivor took.
        if first.hard_splits as usize > hard || first.soft_splits as usize > soft {
            let at = (0..=self.zones.start).rev().find(|&i| splits_at(zones, i));
            let key = at.and_then(|i| zones[i].key.clone());
            list.push((key.unwrap_or_default(), MARKER | SPLIT | u64::from(above)));
        }
        let mut mask = above;
        for i in self.zones.clone().skip(1) {
            let (now, splits) = (self.mask(tables, i), splits_at(zones, i));
            if now == mask && !splits {
                continue;
            }
            mask = now;
            let mut key = zones[i].key.as_deref().unwrap_or_default().to_vec();
            if zones[i].after {
                key.push(0);
            }
            if key.len() > KEY_MAX {
                return Err(OnCpu::Markers);
            }
            let tag = MARKER | u64::from(mask) | if splits { SPLIT } else { 0 };
            match list.last_mut() {
                Some((last, known)) if **last == key[..] => *known = tag | *known & SPLIT,
                _ => list.push((key.into(), tag)),
            }
        }
        if list.len() > MARKERS_MAX || list.iter().any(|(key, _)| key.len() > KEY_MAX) {
            return Err(OnCpu::Markers);
        }
        Ok((above, encoded(&list)))
    }
}

/// The entry area of markers.
fn encoded(markers: &[(Key, u64)]) -> Vec<u8> {
    let mut area = Vec::new();
    for (key, tag) in markers {
        // Whole keys: 0, then the length in two bytes where it needs them, then no value.
        area.push(0);
        let unshared = key.len() + 8;
        if unshared < 0x80 {
            area.push(unshared as u8);
        } else {
            area.extend([unshared as u8 | 0x80, (unshared >> 7) as u8]);
        }
        area.push(0);
        area.extend_from_slice(key);
        area.extend_from_slice(&tag.to_le_bytes());
    }
    area
}

/// What the header has of the recipe.
fn of_recipe(recipe: &Recipe) -> Header {
    Header {
        snapshots: recipe.snapshots.len().min(SNAPSHOTS_MAX) as u8,
        block_lg: recipe.block_bytes.trailing_zeros() as u8,
        drop_tombstones: recipe.drop_tombstones,
        zero_seqs: recipe.zero_seqs,
        restart_interval: recipe.restart_interval,
        ..Header::default()
    }
}

/// A split lies where zone `i` starts.
fn splits_at(zones: &[ZoneRow], i: usize) -> bool {
    let Some(before) = i.checked_sub(1).and_then(|i| zones.get(i)) else { return false };
    zones
        .get(i)
        .is_some_and(|z| z.hard_splits > before.hard_splits || z.soft_splits > before.soft_splits)
}
