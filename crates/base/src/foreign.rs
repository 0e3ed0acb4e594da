//! Foreign text: names, keys, values and paths that others chose, made fit for a terminal.
//!
//! A name in a directory is any bytes. Printed as it is, it can move the cursor, set the window's title,
//! turn the direction of writing around or look like another name. So text that leaves the store for
//! people goes through here: what can be seen stays as it is, and what can't is spelled out, byte by byte:
//!
//! ```
//! use lithify_base::foreign::shown;
//! assert_eq!(shown("plum\u{1b}[2J").to_string(), r"plum\x1b[2J");
//! assert_eq!(shown(b"a\\b\n\xff").to_string(), r"a\\b\n\xff");
//! assert_eq!(shown("\u{202e}gpj").to_string(), r"\xe2\x80\xaegpj");
//! ```
//!
//! Keeps: [`shown`] never shows two texts alike, and the command line reads its form back. [`sentence`] and
//! [`lines`] are the net under it, for messages that have been put together: they leave backslashes alone,
//! so that what is spelled out already stays as it is.
//! Leaves to others: where text goes.

use std::fmt::{self, Write as _};
use std::path::Path;

/// Most bytes of a name or key that [`Shown::short`] shows.
pub const SHORT: usize = 200;

/// Whether `c` shows nothing of its own or acts on what is around it: control characters, bidirectional
/// marks, separators of lines, and all that has no width.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Bytes that others chose, for people: printable characters as they are, a backslash doubled, everything
/// else as `\n`, `\t`, `\r` or `\x00` to `\xff`.
pub fn shown<B: AsRef<[u8]> + ?Sized>(bytes: &B) -> Shown<'_> {
    Shown { bytes: bytes.as_ref(), max: usize::MAX }
}

/// The same for a path.
pub fn shown_path<P: AsRef<Path> + ?Sized>(path: &P) -> Shown<'_> {
    shown(path.as_ref().as_os_str().as_encoded_bytes())
}

/// What [`shown`] shows.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    bytes: &'a [u8],
    max: usize,
}

impl Shown<'_> {
    /// At most [`SHORT`] bytes of it, and then how many there are: for messages.
    #[must_use]
    pub fn short(self) -> Self {
        Shown { max: SHORT, ..self }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.bytes.get(..self.max).unwrap_or(self.bytes);
        for chunk in shown.utf8_chunks() {
            spell(chunk.valid(), |c| c == '\\' || is_hidden(c), f)?;
            spell_bytes(chunk.invalid(), f)?;
        }
        match shown.len() < self.bytes.len() {
            true => write!(f, "... ({} bytes)", self.bytes.len()),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A message of one line: what is hidden is spelled out, backslashes stay.
pub fn sentence(text: &str) -> Message<'_> {
    Message { text, hides: is_hidden }
}

/// The same for text of several lines and columns: their ends and tabs stay, too.
pub fn lines(text: &str) -> Message<'_> {
    Message { text, hides: |c| is_hidden(c) && c != '\n' && c != '\t' }
}

/// What [`sentence`] and [`lines`] show.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    text: &'a str,
    hides: fn(char) -> bool,
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spell(self.text, self.hides, f)
    }
}

/// A writer that lets no more than `left` bytes of a [`sentence`] through.
pub(crate) struct Sieve<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    left: usize,
    cut: usize,
}

impl<'a, 'b> Sieve<'a, 'b> {
    pub(crate) fn new(to: &'a mut fmt::Formatter<'b>, max: usize) -> Self {
        Sieve { to, left: max, cut: 0 }
    }
    /// Says how much was cut off, if anything was.
    pub(crate) fn end(self) -> fmt::Result {
        match self.cut {
            0 => Ok(()),
            n => write!(self.to, "... ({n} bytes more)"),
        }
    }
}

impl fmt::Write for Sieve<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = (0..=self.left.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let (fits, rest) = text.split_at(fits.unwrap_or(0));
        self.left = if rest.is_empty() { self.left - fits.len() } else { 0 };
        self.cut += rest.len();
        spell(fits, is_hidden, self.to)
    }
}

/// Makes JSON fit for a terminal without a change of its meaning: what is hidden can only stand in strings
/// there, as can its escape. Ends of lines stay, which are between the values.
pub fn json(text: String) -> String {
    if text.bytes().all(|b| b == b'\n' || matches!(b, b' '..=b'~')) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) && c != '\n' {
            true => escape_json(c, &mut out),
            false => out.push(c),
        }
    }
    out
}

/// Appends the escape of `c` in a JSON string.
pub fn escape_json(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Writes `text`, with what `hides` says spelled out.
fn spell(text: &str, hides: impl Fn(char) -> bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut from = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| hides(*c)) {
        f.write_str(&text[from..at])?;
        from = at + c.len_utf8();
        match c {
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            '\\' => f.write_str("\\\\")?,
            _ => spell_bytes(&text.as_bytes()[at..from], f)?,
        }
    }
    f.write_str(&text[from..])
}

fn spell_bytes(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "\\x{b:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// Each character that acts on a terminal or has no width is spelled out, and no letter is.
    #[test]
    fn what_is_hidden_is_spelled_out() {
        for hidden in [0..=0x1f, 0x7f..=0x9f, 0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x206f] {
            for c in hidden.filter_map(char::from_u32) {
                assert!(shown(c.encode_utf8(&mut [0; 4])).to_string().starts_with('\\'), "{c:?}");
            }
        }
        for visible in ["red plum", "Äpfel", "слива", "सेब", "梅", "🍎", "~\"'`", "e\u{301}"]
        {
            assert_eq!(shown(visible).to_string(), visible);
        }
        // The library knows more characters that it does not print than those we call hidden (such as
        // are not given out yet), but none of ours is one that it prints.
        for c in ('\0'..=char::MAX).filter(|c| is_hidden(*c)) {
            let known = c.escape_debug().count() > 1;
            assert!(
                known || "\u{115f}\u{1160}\u{17b4}\u{17b5}\u{3164}\u{ffa0}".contains(c),
                "{c:?}"
            );
        }
    }

    /// No two texts look alike, so the form can be read back.
    #[test]
    fn two_texts_never_look_alike() {
        let pieces = [&b"\\"[..], b"n", b"\n", b"x", b"\x1b", b"1", b"\xe2", b"\x80", b"\xae"];
        let mut seen = std::collections::BTreeMap::new();
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in pieces {
                        let text = [a, b, c, d].concat();
                        let before = seen.insert(shown(&text).to_string(), text.clone());
                        assert!(before.is_none_or(|before| before == text));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_long_is_cut() {
        let name = "\u{1b}".repeat(1 << 20);
        let short = shown(&name).short().to_string();
        assert_eq!(short.len(), 4 * SHORT + "... (1048576 bytes)".len());
        assert!(short.ends_with("\\x1b... (1048576 bytes)"));
        // A character at the cut does not tear the text.
        assert!(shown(&"é".repeat(SHORT)).short().to_string().starts_with("ééé"));
    }

    /// An error can be built from anything; what it says is safe and bounded.
    #[test]
    fn errors_are_safe_and_bounded() {
        let evil = "a\u{1b}]0;owned\x07\n\u{9b}\u{202e}\\x41";
        let source = std::io::Error::other(evil);
        let cause = Error::io("open", evil, source).at(7);
        let error = Error::corruption(evil).in_file(evil).caused_by(cause);
        for text in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
            assert!(!text.contains(is_hidden), "{text:?}");
            assert_eq!(text.matches(r"a\x1b]0;owned\x07\n\xc2\x9b\xe2\x80\xae\x41").count(), 4);
        }
        let huge = Error::corruption("é\n".repeat(1 << 20));
        let text = huge.in_file("f\u{1b}".repeat(1 << 20)).to_string();
        assert!(text.len() < 64 << 10, "{}", text.len());
        assert!(text.ends_with("bytes more)"), "{}", &text[text.len() - 40..]);
    }

    #[test]
    fn messages_keep_what_is_spelled_out_already() {
        assert_eq!(sentence("a \\x1b \u{1b}\tb\n").to_string(), r"a \x1b \x1b\tb\n");
        assert_eq!(lines("a \\x1b \u{1b}\tb\r\n").to_string(), "a \\x1b \\x1b\tb\\r\n");
    }

    #[test]
    fn json_means_the_same() {
        let text = "{\n  \"a\\n\u{7f}\": \"\u{202e}\u{e0041}é\"\n}".to_owned();
        assert_eq!(json(text), "{\n  \"a\\n\\u007f\": \"\\u202e\\udb40\\udc41é\"\n}");
    }
}
