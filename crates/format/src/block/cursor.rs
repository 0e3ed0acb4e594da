//! One position in a block, and the moves between positions. Holds no bytes: every move is given
//! the block, so that owners of any kind can sit on top.

use std::cmp::Ordering;
use std::ops::Range;

use lithify_base::{Error, Result, Tag};

use super::build::common_prefix;
use super::layout::Layout;
use crate::table::handle::BlockHandle;
use crate::varint::{self, Reader};

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// A byte string with its length in the entry's head.
    Bytes,
    /// The same, holding a handle (index blocks before format_version 4).
    WholeHandle {
        /// Whether the block's first key follows the handle.
        first_key: bool,
    },
    /// A handle without length: whole if the key shares nothing, else the change in size.
    DeltaHandle {
        /// Whether the block's first key follows the handle.
        first_key: bool,
    },
}

/// The three (or two) lengths before an entry's key tail.
pub(super) struct Head {
    pub(super) shared: usize,
    pub(super) unshared: usize,
    pub(super) value: usize,
    pub(super) len: usize,
}

/// An entry with everything in one place: its value lies behind its key.
pub(super) struct Usual<'b> {
    pub(super) shared: usize,
    pub(super) tail: &'b [u8],
    pub(super) value: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) layout: Layout,
    pub(super) form: ValueForm,
    /// Shortest key allowed: 8 for internal keys, so that they always split.
    min_key: usize,
    pub(super) key: Vec<u8>,
    pub(super) value: Range<usize>,
    first_key: Range<usize>,
    handle: BlockHandle,
    /// Start of the current entry; `keys_end` if there is none.
    pub(super) at: usize,
    /// Start of the next entry.
    pub(super) next: usize,
    /// The restart point at or before `at` from which the last scan started.
    restart: u32,
    trail: Trail,
}

/// The entries of a stretch that were come past, last one on top: steps back undo what steps forward did to the key,
/// where a scan for each step would read the stretch again. Keys in it take no more bytes than the block has, and marks 10 KiB.
#[derive(Clone, Debug, Default)]
struct Trail {
    /// The entry that the top one lies before, where a step back was the last move.
    end: usize,
    marks: Vec<Mark>,
    /// What the keys lost on the way, one behind the other.
    tails: Vec<u8>,
}

/// An entry that was come past.
#[derive(Clone, Debug)]
struct Mark {
    at: usize,
    value: Range<usize>,
    /// How much of its key the entry behind it shares.
    shared: usize,
    /// Where in `tails` the rest begins.
    tail: usize,
}

/// Entries in a trail: restart points lie closer in all tables but strange ones, where a scan leads to each so many.
const TRAIL_MOST: usize = 256;

impl Trail {
    #[inline]
    fn clear(&mut self) {
        self.marks.clear();
        self.tails.clear();
    }
    /// The cursor leaves the entry at `at` with `key` for one that shares `shared` bytes of it.
    fn note(&mut self, at: usize, value: Range<usize>, key: &[u8], shared: usize) {
        if self.marks.len() == TRAIL_MOST {
            self.clear();
        }
        self.marks.push(Mark { at, value, shared, tail: self.tails.len() });
        self.tails.extend_from_slice(key.get(shared..).unwrap_or_default());
    }
    /// Makes `key` and `value` those of the entry before. Where that is; `None` if the trail does not lead there.
    #[inline]
    fn back(&mut self, key: &mut Vec<u8>, value: &mut Range<usize>) -> Option<usize> {
        let mark = self.marks.pop()?;
        key.truncate(mark.shared);
        key.extend_from_slice(self.tails.get(mark.tail..)?);
        self.tails.truncate(mark.tail);
        *value = mark.value;
        self.end = mark.at;
        Some(mark.at)
    }
}

impl Cursor {
    pub(super) fn new(layout: Layout, form: ValueForm, min_key: usize) -> Cursor {
        Cursor {
            layout,
            form,
            min_key,
            key: Vec::new(),
            value: 0..0,
            first_key: 0..0,
            handle: BlockHandle::default(),
            at: layout.keys_end,
            next: layout.keys_end,
            restart: 0,
            trail: Trail::default(),
        }
    }
    /// Moves to another block of the same kind; keeps the key buffer.
    pub(super) fn reset(&mut self, layout: Layout) {
        self.layout = layout;
        self.trail.clear();
        self.invalidate();
    }
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.at < self.layout.keys_end
    }
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }
    pub(super) fn value(&self) -> Range<usize> {
        self.value.clone()
    }
    pub(super) fn first_key(&self) -> Range<usize> {
        self.first_key.clone()
    }
    /// Whether keys are internal keys.
    pub(super) fn has_tags(&self) -> bool {
        self.min_key == 8
    }
    pub(super) fn handle(&self) -> BlockHandle {
        self.handle
    }

    pub(super) fn seek_to_first(&mut self, block: &[u8]) -> Result<bool> {
        if self.layout.keys_end == 0 {
            self.invalidate();
            return Ok(false);
        }
        self.jump(block, 0)?;
        self.step(block)
    }

    pub(super) fn seek_to_last(&mut self, block: &[u8]) -> Result<bool> {
        if self.layout.keys_end == 0 {
            self.invalidate();
            return Ok(false);
        }
        self.jump(block, self.layout.restarts - 1)?;
        self.scan_until(block, self.layout.keys_end)
    }

    /// Moves to the first entry for which `compare` (entry key against target) is not `Less`.
    #[inline]
    pub(super) fn seek(
        &mut self,
        block: &[u8],
        compare: impl Fn(&[u8]) -> Ordering,
    ) -> Result<bool> {
        self.jump_below(block, &compare)?;
        self.scan_from_here(block, compare)
    }

    /// As [`seek`](Cursor::seek) to `user`, and to `tag` where keys have one, in byte order.
    ///
    /// Does not copy the keys it passes. Let `matched` be how many bytes the entry before has in
    /// common with `user`, below which it lies. An entry that shares more than that with it
    /// differs from `user` in the same byte: it lies below too. Any other shares bytes of `user`,
    /// and is compared from there on. One that shares less than `matched` usually differs in the
    /// very next byte; not so where the writer shared less than it could (RocksDB without
    /// `use_delta_encoding` shares nothing).
    #[inline]
    pub(super) fn seek_bytewise(
        &mut self,
        block: &[u8],
        user: &[u8],
        tag: Option<Tag>,
    ) -> Result<bool> {
        let compare = |key: &[u8]| compare_bytewise(key, user, tag);
        self.jump_below(block, compare)?;
        let tag_len = if tag.is_some() { 8 } else { 0 };
        let (mut matched, mut before_len) = (0, 0);
        while let Some((shared, tail)) = self.parse(block)? {
            let len = shared + tail.len();
            if shared > before_len || len < self.min_key.max(tag_len) {
                return Err(self.fail("bad key lengths"));
            }
            if shared > matched {
                if matched + tag_len < before_len && matched < user.len() {
                    before_len = len;
                    continue;
                }
                // The bytes shared reach into a tag, which `user` does not know.
                let restart = self.restart;
                self.jump(block, restart)?;
                return self.scan_from_here(block, compare);
            }
            let known = user.get(..shared).unwrap_or_default();
            let rest = user.get(shared..).unwrap_or_default();
            let user_tail = tail.get(..(len - tag_len).saturating_sub(shared)).unwrap_or_default();
            let common = common_prefix(user_tail, rest);
            let below = match (user_tail.get(common), rest.get(common)) {
                (None, None) => {
                    self.set_key(known, tail);
                    compare(&self.key).is_lt()
                }
                (x, y) => x < y,
            };
            if below {
                (matched, before_len) = (shared + common, len);
                continue;
            }
            self.set_key(known, tail);
            return Ok(true);
        }
        Ok(false)
    }

    #[inline]
    fn set_key(&mut self, head: &[u8], tail: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(head);
        self.key.extend_from_slice(tail);
    }

    /// Places `next` on the last restart point below the target (or the first): nothing before it
    /// can be the answer.
    #[inline]
    fn jump_below(&mut self, block: &[u8], compare: impl Fn(&[u8]) -> Ordering) -> Result<()> {
        if self.layout.keys_end == 0 {
            self.invalidate();
            return Ok(());
        }
        let (mut low, mut high) = (0, self.layout.restarts - 1);
        while low < high {
            let mid = low + (high - low).div_ceil(2);
            match compare(self.restart_key(block, mid)?) {
                Ordering::Less => low = mid,
                _ => high = mid - 1,
            }
        }
        self.jump(block, low)
    }

    #[inline]
    fn scan_from_here(
        &mut self,
        block: &[u8],
        compare: impl Fn(&[u8]) -> Ordering,
    ) -> Result<bool> {
        while self.step(block)? {
            if compare(&self.key) != Ordering::Less {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    pub(super) fn next(&mut self, block: &[u8]) -> Result<bool> {
        self.step(block)
    }

    pub(super) fn prev(&mut self, block: &[u8]) -> Result<bool> {
        let here = self.at;
        if self.layout.keys_end == 0 || here == 0 {
            self.invalidate();
            return Ok(false);
        }
        let goes_on = self.trail.end == here;
        if goes_on && let Some(at) = self.trail.back(&mut self.key, &mut self.value) {
            (self.at, self.next) = (at, here);
            return Ok(true);
        }
        // The last restart point before this entry, then forward to its predecessor.
        let (mut low, mut high) = (0, self.layout.restarts - 1);
        while low < high {
            let mid = low + (high - low).div_ceil(2);
            match self.layout.restart(block, mid) {
                Some(at) if at < here => low = mid,
                Some(_) => high = mid - 1,
                None => return Err(self.fail("bad restart point")),
            }
        }
        self.jump(block, low)?;
        // One step back is often the only one. The second one in a row begins a trail.
        let found = match goes_on && self.form == ValueForm::Bytes {
            true => self.scan_noting(block, here)?,
            false => self.scan_until(block, here)?,
        };
        self.trail.end = self.at;
        Ok(found)
    }

    /// As [`scan_until`](Cursor::scan_until), but leaves a trail of the entries that it comes past.
    fn scan_noting(&mut self, block: &[u8], end: usize) -> Result<bool> {
        self.step(block)?;
        while self.next < end {
            let (at, value) = (self.at, self.value.clone());
            let Some((shared, tail)) = self.parse(block)? else { break };
            if shared > self.key.len() || shared + tail.len() < self.min_key {
                return Err(self.fail("bad key lengths"));
            }
            self.trail.note(at, value, &self.key, shared);
            self.key.truncate(shared);
            self.key.extend_from_slice(tail);
        }
        if self.next == end {
            return Ok(true);
        }
        Err(self.fail("a restart point at no entry"))
    }

    /// Steps to the entry that ends at `end`, where one is known to end. A restart point that is
    /// none would lead past it, or to no entry at all.
    fn scan_until(&mut self, block: &[u8], end: usize) -> Result<bool> {
        while self.next < end && self.step(block)? {
            if self.next == end {
                return Ok(true);
            }
        }
        Err(self.fail("a restart point at no entry"))
    }

    /// Checks that each restart point but the first, which the layout has seen, is an entry behind the
    /// one before, with its whole key. The cursor stands nowhere afterwards.
    pub(super) fn check_restarts(&mut self, block: &[u8]) -> Result<()> {
        for restart in 1..self.layout.restarts {
            self.restart_key(block, restart)?;
            let at = self.layout.restart(block, restart).unwrap_or_default();
            self.jump(block, restart - 1)?;
            self.scan_until(block, at)?;
        }
        self.invalidate();
        Ok(())
    }

    fn invalidate(&mut self) {
        self.at = self.layout.keys_end;
        self.next = self.layout.keys_end;
        self.key.clear();
        self.value = 0..0;
    }

    /// Places `next` on a restart point.
    #[inline]
    fn jump(&mut self, block: &[u8], restart: u32) -> Result<()> {
        let Some(at) = self.layout.restart(block, restart) else {
            return Err(self.fail("bad restart point"));
        };
        self.restart = restart;
        self.next = at;
        self.key.clear();
        self.trail.clear();
        Ok(())
    }

    /// Reads the entry at `next`; false at the end of the block.
    #[inline]
    fn step(&mut self, block: &[u8]) -> Result<bool> {
        let Some((shared, tail)) = self.parse(block)? else { return Ok(false) };
        if shared > self.key.len() || shared + tail.len() < self.min_key {
            return Err(self.fail("bad key lengths"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(tail);
        Ok(true)
    }

    /// The entry at `next`, if it is one of the usual ones. `None` if it is not, or is damaged.
    #[inline(always)]
    pub(super) fn usual<'b>(&self, block: &'b [u8]) -> Option<Usual<'b>> {
        if self.layout.separated || self.form != ValueForm::Bytes {
            return None;
        }
        let entry = block.get(self.next..self.layout.keys_end)?;
        let head = read_head(entry, true)?;
        let body = entry.get(head.len..)?;
        let tail = body.get(..head.unshared)?;
        if head.value > body.len() - head.unshared {
            return None;
        }
        let start = self.next + head.len + head.unshared;
        Some(Usual { shared: head.shared, tail, value: start..start + head.value })
    }

    /// Stands at the entry at `next`, which has this value and ends with it.
    #[inline(always)]
    pub(super) fn enter(&mut self, value: Range<usize>) {
        self.at = self.next;
        self.next = value.end;
        self.value = value;
    }

    /// Reads the entry at `next` but for its key, of which it returns how much is shared and the
    /// rest; `None` at the end of the block.
    #[inline]
    fn parse<'b>(&mut self, block: &'b [u8]) -> Result<Option<(usize, &'b [u8])>> {
        if let Some(Usual { shared, tail, value }) = self.usual(block) {
            self.enter(value);
            return Ok(Some((shared, tail)));
        }
        self.parse_any(block)
    }

    /// The same for whatever there is.
    fn parse_any<'b>(&mut self, block: &'b [u8]) -> Result<Option<(usize, &'b [u8])>> {
        let at = self.next;
        if at >= self.layout.keys_end {
            self.invalidate();
            return Ok(None);
        }
        let Some(entry) = block.get(at..self.layout.keys_end) else {
            return Err(self.fail("entry behind the block's end"));
        };
        let sized = !matches!(self.form, ValueForm::DeltaHandle { .. });
        let Some(head) = read_head(entry, sized) else {
            return Err(self.fail("bad entry head"));
        };
        let mut body = head.len;
        let mut value_at = None;
        if self.layout.separated {
            self.track_restart(block, at);
            if self.layout.restart(block, self.restart) == Some(at) {
                let Some((offset, rest)) = varint::get_u32(entry.get(body..).unwrap_or_default())
                else {
                    return Err(self.fail("bad value offset"));
                };
                body = entry.len() - rest.len();
                value_at = Some(self.layout.keys_end + offset as usize);
            }
        }
        let tail = entry.get(body..).and_then(|rest| rest.get(..head.unshared));
        let Some(tail) = tail else { return Err(self.fail("key runs over the block's end")) };
        self.at = at;
        let key_end = at + body + head.unshared;
        if self.layout.separated {
            let start = value_at.unwrap_or(self.value.end);
            self.take_value(start, head.value, self.layout.restarts_at)?;
            self.next = key_end;
            self.read_sized_handle(block)?;
        } else if sized {
            self.take_value(key_end, head.value, self.layout.keys_end)?;
            self.next = self.value.end;
            self.read_sized_handle(block)?;
        } else {
            self.read_delta_handle(block, key_end, head.shared)?;
        }
        Ok(Some((head.shared, tail)))
    }

    #[inline]
    fn take_value(&mut self, start: usize, len: usize, limit: usize) -> Result<()> {
        match start.checked_add(len).filter(|&end| end <= limit) {
            Some(end) => {
                self.value = start..end;
                Ok(())
            }
            None => Err(self.fail("value runs over the block's end")),
        }
    }

    #[inline]
    fn read_sized_handle(&mut self, block: &[u8]) -> Result<()> {
        match self.form {
            ValueForm::WholeHandle { first_key } => {
                self.read_handle(block, self.value.clone(), None, first_key).map(drop)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn read_delta_handle(&mut self, block: &[u8], at: usize, shared: usize) -> Result<()> {
        let first_key = matches!(self.form, ValueForm::DeltaHandle { first_key: true });
        let before = (shared > 0).then_some(self.handle);
        let end = self.read_handle(block, at..self.layout.keys_end, before, first_key)?;
        self.value = at..end;
        self.next = end;
        Ok(())
    }

    /// Reads a handle, and returns where it and the first key after it end.
    #[inline]
    fn read_handle(
        &mut self,
        block: &[u8],
        range: Range<usize>,
        before: Option<BlockHandle>,
        has_first_key: bool,
    ) -> Result<usize> {
        let Some(bytes) = block.get(range.clone()) else {
            return Err(self.fail("handle behind the block's end"));
        };
        let mut from = Reader::new(bytes);
        self.handle = match before {
            None => match BlockHandle::decode(&mut from) {
                Ok(handle) => handle,
                Err(_) => return Err(self.fail("bad handle")),
            },
            Some(before) => {
                let size = from
                    .var64()
                    .ok()
                    .map(varint::unzigzag)
                    .and_then(|delta| before.size.checked_add_signed(delta));
                match size {
                    Some(size) => BlockHandle { offset: before.end(), size },
                    None => return Err(self.fail("bad handle delta")),
                }
            }
        };
        if has_first_key {
            let Ok(key) = from.length_prefixed() else {
                return Err(self.fail("bad first key in an index entry"));
            };
            let end = range.start + from.offset();
            self.first_key = end - key.len()..end;
        }
        Ok(range.start + from.offset())
    }

    /// Follows `next` over restart points, which only separated values need to know.
    fn track_restart(&mut self, block: &[u8], at: usize) {
        while self.layout.restart(block, self.restart + 1).is_some_and(|r| r <= at) {
            self.restart += 1;
        }
    }

    /// The whole key at a restart point, in place.
    #[inline]
    fn restart_key<'b>(&mut self, block: &'b [u8], restart: u32) -> Result<&'b [u8]> {
        match self.find_restart_key(block, restart) {
            Some(key) => Ok(key),
            None => Err(self.fail("bad restart point")),
        }
    }

    #[inline]
    fn find_restart_key<'b>(&self, block: &'b [u8], restart: u32) -> Option<&'b [u8]> {
        let at = self.layout.restart(block, restart)?;
        let entry = block.get(at..self.layout.keys_end)?;
        let head = read_head(entry, !matches!(self.form, ValueForm::DeltaHandle { .. }))?;
        let mut body = entry.get(head.len..)?;
        if self.layout.separated {
            body = varint::get_u32(body)?.1;
        }
        body.get(..head.unshared).filter(|key| head.shared == 0 && key.len() >= self.min_key)
    }

    #[cold]
    fn fail(&mut self, what: &str) -> Error {
        let at = self.next;
        self.invalidate();
        Error::corruption(format!("{what} in a block, at its byte {at}"))
    }
}

/// Byte order of an encoded key against a user key and, for internal keys, a tag (newer first).
/// The cursor admits no internal key shorter than a tag, so the fallback is never taken.
#[inline(always)]
fn compare_bytewise(key: &[u8], user: &[u8], tag: Option<Tag>) -> Ordering {
    let Some(tag) = tag else { return key.cmp(user) };
    let Some((key_user, key_tag)) = key.split_last_chunk::<8>() else { return Ordering::Less };
    key_user.cmp(user).then_with(|| tag.cmp(&Tag(u64::from_le_bytes(*key_tag))))
}

/// Reads the lengths before a key tail; `sized` if the value's length is among them.
#[inline]
pub(super) fn read_head(entry: &[u8], sized: bool) -> Option<Head> {
    if let [shared, unshared, value, ..] = *entry
        && (shared | unshared) < 0x80
    {
        let (shared, unshared) = (usize::from(shared), usize::from(unshared));
        if !sized {
            return Some(Head { shared, unshared, value: 0, len: 2 });
        }
        if value < 0x80 {
            return Some(Head { shared, unshared, value: usize::from(value), len: 3 });
        }
    }
    let (shared, rest) = varint::get_u32(entry)?;
    let (unshared, rest) = varint::get_u32(rest)?;
    let (value, rest) = if sized { varint::get_u32(rest)? } else { (0, rest) };
    Some(Head {
        shared: shared as usize,
        unshared: unshared as usize,
        value: value as usize,
        len: entry.len() - rest.len(),
    })
}
