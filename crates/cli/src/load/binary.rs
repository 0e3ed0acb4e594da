//! Length-prefixed binary: u32 key length, u32 value length (little endian), key, value.
//!
//! There is nothing to resynchronise on, so a length that cannot be one ends the load: the lengths
//! are checked against the store's limits before any memory is taken for them.

use std::io::{BufReader, Read};

use anyhow::{Result, bail};
use lithify::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

use super::rows::{Choice, Entry, Row, Rows};
use super::source::Source;
use crate::failure::usage;

/// Entries one after another.
pub(super) struct Binary {
    bytes: BufReader<Source>,
    at: u64,
}

impl Binary {
    pub(super) fn new(source: Source, choice: &Choice) -> Result<Binary> {
        if !choice.key.is_empty() || choice.value.is_some() {
            return usage("binary entries have no fields; leave out --key and --value");
        }
        Ok(Binary { bytes: source.buffered(), at: 0 })
    }

    /// Fills `buf` with the next `len` bytes.
    fn take(&mut self, len: usize, buf: &mut Vec<u8>) -> Result<()> {
        buf.clear();
        let count = (&mut self.bytes).take(len as u64).read_to_end(buf)?;
        if count < len {
            bail!("the file ends inside the entry at byte {}", self.at);
        }
        Ok(())
    }
}

impl Rows for Binary {
    fn means_empty_keys(&self) -> bool {
        true
    }
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        let mut head = Vec::with_capacity(8);
        (&mut self.bytes).take(8).read_to_end(&mut head)?;
        let [a, b, c, d, e, f, g, h] = head[..] else {
            match head.len() {
                0 => return Ok(Row::End),
                _ => bail!("the file ends inside the lengths at byte {}", self.at),
            }
        };
        let key = u32::from_le_bytes([a, b, c, d]) as usize;
        let value = u32::from_le_bytes([e, f, g, h]) as usize;
        if key == 0 && value == 0 {
            bail!(
                "the entry at byte {} has neither key nor value; does the file end in zeros that do not \
                 belong to it?",
                self.at
            );
        }
        if key > MAX_KEY_BYTES || value > MAX_VALUE_BYTES {
            bail!(
                "the entry at byte {} would have a key of {key} and a value of {value} bytes; is \
                 this a length-prefixed file?",
                self.at
            );
        }
        let mut buf = std::mem::take(&mut entry.key);
        self.take(key, &mut buf)?;
        entry.key = buf;
        let mut buf = std::mem::take(&mut entry.value);
        self.take(value, &mut buf)?;
        entry.value = buf;
        self.at += 8 + (key + value) as u64;
        Ok(Row::Entry)
    }
}
