//! Bytes as text, both ways, without loss.
//!
//! Escaped text (the default, [`lithify_base::foreign`]) is the bytes themselves as far as they are
//! printable UTF-8, else `\n`, `\t`, `\r`, `\\` or `\x00` to `\xff`. So output can be pasted as input, and a line or a
//! tab-separated column of output is always one key or value.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Result;
use lithify_base::foreign::{is_hidden, shown};
use lithify_base::shown_path;
use serde_json::{Map, Value};

use crate::failure::usage;

/// How keys and values are written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Escaped,
    Hex,
    Raw,
}

/// The flags that choose a form.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FormArgs {
    /// Read and print keys and values as hexadecimal digits
    #[arg(long, conflicts_with = "raw", help_heading = "Keys and values")]
    hex: bool,
    /// Read and print keys and values as they are, byte for byte
    #[arg(long, help_heading = "Keys and values")]
    raw: bool,
}

impl FormArgs {
    pub(crate) fn form(self) -> Form {
        match (self.hex, self.raw) {
            (true, _) => Form::Hex,
            (_, true) => Form::Raw,
            _ => Form::Escaped,
        }
    }
}

impl Form {
    /// The bytes that `text` stands for.
    pub(crate) fn parse(self, text: &OsStr) -> Result<Vec<u8>> {
        match self {
            Form::Escaped => unescape(text.as_bytes()),
            Form::Hex => unhex(text.as_bytes()),
            Form::Raw => Ok(text.as_bytes().to_vec()),
        }
    }
    /// Appends what stands for `bytes`.
    pub(crate) fn write(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Form::Escaped => write_escaped(bytes, out),
            Form::Hex => out.extend(bytes.iter().flat_map(|b| hex_digits(*b))),
            Form::Raw => out.extend_from_slice(bytes),
        }
    }
    /// Puts `bytes` into a JSON object: as the string `name` if they are UTF-8, else as hexadecimal
    /// digits under the name with `_hex`; also where a string would be longer than digits. So a string
    /// always stands for itself.
    pub(crate) fn put_json(self, name: &str, bytes: &[u8], object: &mut Map<String, Value>) {
        let text = std::str::from_utf8(bytes).ok().filter(|text| json_len(text) <= 2 * text.len());
        match text.filter(|_| self != Form::Hex) {
            Some(text) => object.insert(name.to_owned(), text.into()),
            None => {
                let digits: String =
                    bytes.iter().flat_map(|b| hex_digits(*b)).map(char::from).collect();
                object.insert(format!("{name}_hex"), digits.into())
            }
        };
    }
}

/// How many bytes a text has in a JSON string as [`output::json_line`](crate::output::json_line) makes it.
fn json_len(text: &str) -> usize {
    let len = |c| match c {
        '"' | '\\' | '\n' | '\t' | '\r' | '\x08' | '\x0c' => 2,
        c if is_hidden(c) => 6 * c.len_utf16(),
        c => c.len_utf8(),
    };
    text.chars().map(len).sum()
}

/// Escaped text of `bytes`.
pub(crate) fn escape(bytes: &[u8]) -> String {
    shown(bytes).to_string()
}

/// A count, as a value of a flag.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number from 0 on".to_owned())
}

/// A path as a Rust program writes it.
pub(crate) fn quoted(path: &Path) -> String {
    format!("{:?}", shown_path(path).to_string())
}

/// Appends the escaped text of `bytes`.
pub(crate) fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let plain = |b: &u8| matches!(b, b' '..=b'~') && *b != b'\\';
    match bytes.iter().all(plain) {
        true => out.extend_from_slice(bytes),
        false => out.extend_from_slice(escape(bytes).as_bytes()),
    }
}

fn hex_digits(b: u8) -> [u8; 2] {
    let digit = |n: u8| b"0123456789abcdef"[usize::from(n)];
    [digit(b >> 4), digit(b & 15)]
}

fn unescape(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let Some((byte, used)) = escaped(rest) else { return bad_escape(text) };
        out.push(byte);
        rest = &rest[used..];
    }
    Ok(out)
}

/// The byte that an escape stands for, and the length of the escape: `rest` is what follows its
/// backslash. `None` if that is no escape.
pub(crate) fn escaped(rest: &[u8]) -> Option<(u8, usize)> {
    Some(match rest {
        [b'n', ..] => (b'\n', 1),
        [b't', ..] => (b'\t', 1),
        [b'r', ..] => (b'\r', 1),
        [b'0', ..] => (0, 1),
        [b'\\', ..] => (b'\\', 1),
        [b'x', high, low, ..] => (digit(*high)? << 4 | digit(*low)?, 3),
        _ => return None,
    })
}

fn bad_escape(text: &[u8]) -> Result<Vec<u8>> {
    usage(format!(
        "`{}` has a backslash that starts no escape; there are \\n \\t \\r \\0 \\\\ and \\x00 to \
         \\xff, and --raw takes bytes as they are",
        String::from_utf8_lossy(text)
    ))
}

/// The bytes that hexadecimal digits stand for; `None` if they are none, or odd in number.
pub(crate) fn bytes_of_hex(text: &[u8]) -> Option<Vec<u8>> {
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

fn unhex(text: &[u8]) -> Result<Vec<u8>> {
    match bytes_of_hex(text) {
        Some(bytes) => Ok(bytes),
        None => usage(format!(
            "`{}` is not an even number of hexadecimal digits; --hex takes two of 0-9 and a-f for each byte",
            String::from_utf8_lossy(text)
        )),
    }
}

fn digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests;
