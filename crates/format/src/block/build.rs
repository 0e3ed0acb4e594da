//! Writing blocks.

use lithify_base::{InternalKey, Tag};

use crate::table::handle::BlockHandle;
use crate::varint;

/// Builds one block at a time from entries in order; the buffers are reused between blocks.
///
/// The bytes are a pure function of the entries and the restart interval (R2): the phase starts
/// anew with each block.
#[derive(Debug)]
pub struct BlockBuilder {
    interval: u32,
    block: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: u32,
    last_key: Vec<u8>,
    last_handle: BlockHandle,
    entries: u64,
    raw_key_bytes: u64,
}

impl BlockBuilder {
    /// A builder with one restart point every `restart_interval` entries (at least 1).
    pub fn new(restart_interval: u32) -> BlockBuilder {
        assert!(restart_interval >= 1, "restart interval is at least 1");
        BlockBuilder {
            interval: restart_interval,
            block: Vec::new(),
            restarts: vec![0],
            since_restart: 0,
            last_key: Vec::new(),
            last_handle: BlockHandle::default(),
            entries: 0,
            raw_key_bytes: 0,
        }
    }

    /// Adds a key and its value. Keys come in the block's order; whole internal keys in data
    /// blocks, names in meta blocks.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = self.shared_with_last(key, None);
        self.push_lengths(shared, key.len(), Some(value.len()));
        self.push_key_tail(key, None, shared);
        self.block.extend_from_slice(value);
    }

    /// As [`add`](BlockBuilder::add), for an internal key in its two parts.
    pub fn add_entry(&mut self, key: InternalKey<'_>, value: &[u8]) {
        let shared = self.shared_with_last(key.user, Some(key.tag));
        self.push_lengths(shared, key.user.len() + 8, Some(value.len()));
        self.push_key_tail(key.user, Some(key.tag), shared);
        self.block.extend_from_slice(value);
    }

    /// Adds an index entry without a value length (format_version >= 4): the whole handle where
    /// the key shares nothing, else only the change in size.
    ///
    /// # Panics
    /// If a delta is due and `handle` does not lie right behind the handle before it (R4).
    pub fn add_handle(&mut self, key: &[u8], handle: BlockHandle) {
        let shared = self.shared_with_last(key, None);
        self.push_lengths(shared, key.len(), None);
        self.push_key_tail(key, None, shared);
        if shared == 0 {
            handle.encode_into(&mut self.block);
        } else {
            assert_eq!(handle.offset, self.last_handle.end(), "indexed blocks are adjacent");
            let delta = handle.size.wrapping_sub(self.last_handle.size) as i64;
            varint::put_u64(&mut self.block, varint::zigzag(delta));
        }
        self.last_handle = handle;
    }

    /// True if nothing was added since the last [`clear`](BlockBuilder::clear).
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
    /// Entries added.
    pub fn entries(&self) -> u64 {
        self.entries
    }
    /// Sum of the lengths of the keys added, in bytes.
    pub fn raw_key_bytes(&self) -> u64 {
        self.raw_key_bytes
    }
    /// The last key added; empty if there is none.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }
    /// Size of the block if it were finished now, in bytes.
    pub fn size(&self) -> usize {
        self.block.len() + 4 * self.restarts.len() + 4
    }

    /// Appends the tail and returns the whole block. The builder must be cleared before more is
    /// added.
    pub fn finish(&mut self) -> &[u8] {
        for at in &self.restarts {
            self.block.extend_from_slice(&at.to_le_bytes());
        }
        let count = self.restarts.len() as u32;
        assert!(count < 1 << 28, "restart count fits the footer word");
        self.block.extend_from_slice(&count.to_le_bytes());
        &self.block
    }

    /// Forgets the block and starts the next one.
    pub fn clear(&mut self) {
        self.block.clear();
        self.restarts.truncate(1);
        self.since_restart = 0;
        self.last_key.clear();
        self.last_handle = BlockHandle::default();
        self.entries = 0;
        self.raw_key_bytes = 0;
    }

    /// Opens a restart point if one is due and says how much of the key need not be written.
    #[inline]
    fn shared_with_last(&mut self, key: &[u8], tag: Option<Tag>) -> usize {
        if self.since_restart == self.interval {
            let at = u32::try_from(self.block.len()).expect("a restart point lies below 4 GiB");
            self.restarts.push(at);
            self.since_restart = 0;
        }
        self.since_restart += 1;
        if self.since_restart == 1 {
            return 0;
        }
        let shared = common_prefix(&self.last_key, key);
        match tag {
            Some(tag) if shared == key.len() => {
                let rest = self.last_key.get(shared..).unwrap_or_default();
                shared + common_prefix(rest, &tag.0.to_le_bytes())
            }
            _ => shared,
        }
    }

    #[inline]
    fn push_lengths(&mut self, shared: usize, key_len: usize, value_len: Option<usize>) {
        self.entries += 1;
        self.raw_key_bytes += key_len as u64;
        let unshared = key_len - shared;
        match value_len {
            Some(n) if (shared | unshared | n) < 0x80 => {
                self.block.extend_from_slice(&[shared as u8, unshared as u8, n as u8]);
            }
            _ => {
                varint::put_u64(&mut self.block, shared as u64);
                varint::put_u64(&mut self.block, unshared as u64);
                if let Some(n) = value_len {
                    varint::put_u64(&mut self.block, n as u64);
                }
            }
        }
    }

    #[inline]
    fn push_key_tail(&mut self, key: &[u8], tag: Option<Tag>, shared: usize) {
        self.last_key.truncate(shared.min(key.len()));
        self.last_key.extend_from_slice(key.get(self.last_key.len()..).unwrap_or_default());
        if let Some(tag) = tag {
            self.last_key.extend_from_slice(&tag.0.to_le_bytes());
        }
        self.block.extend_from_slice(self.last_key.get(shared..).unwrap_or_default());
    }
}

/// Length of the longest common prefix.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    let (mut a, mut b) = (a, b);
    while let (Some((x, a_rest)), Some((y, b_rest))) =
        (a.split_first_chunk::<8>(), b.split_first_chunk::<8>())
    {
        let diff = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if diff != 0 {
            return at + (diff.trailing_zeros() / 8) as usize;
        }
        at += 8;
        (a, b) = (a_rest, b_rest);
    }
    at + a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
