//! Values of settings as text, in both directions: `64MiB`, `on`, `zstd:3`, `auto`.
//!
//! Keeps: `read(show(value))` is `value`.

use crate::{CompactionPri, Compression, Durability, Policy};

/// A way to write values of type `T` as text.
pub(crate) trait Kind<T> {
    /// The largest number that a value can be; 0 if values are no numbers.
    const MOST: u64 = 0;
    /// The value as text.
    fn show(value: &T) -> String;
    /// The value that the text says; else what the text should have been.
    fn read(text: &str) -> Result<T, String>;
    /// The value as a number; `None` if it is none, or is left to the store.
    fn number(_: &T) -> Option<u64> {
        None
    }
    /// What `read` takes besides numbers, for people: names of values, or `auto`.
    fn takes() -> String {
        String::new()
    }
}

/// As the type is written.
pub(crate) struct Plain;
/// A number of bytes, with the largest unit that divides it.
pub(crate) struct Bytes;
/// A number of bytes that is read like [`Bytes`] and shown in digits, as OPTIONS files have it.
pub(crate) struct Digits;

/// What stands for a value that follows from others.
const AUTO: &str = "auto";

/// Units that are shown, the first that divides a size: 64MiB, but 10GB, of which KiB is the largest of its kind.
const SHOWN: [(&str, u64); 7] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
];

/// Bytes in a unit as people write it, in capitals or not: those of disks are powers of 1000, and a letter alone
/// stands for the powers of 1024, as in the bench.
fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    let power = match unit.chars().next() {
        None | Some('B') => 0,
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(_) => return None,
    };
    match unit.get(1..).unwrap_or_default() {
        "" => Some(1 << (10 * power)),
        "IB" if power > 0 => Some(1 << (10 * power)),
        "B" if power > 0 => Some(1000u64.pow(power)),
        _ => None,
    }
}

impl Kind<u64> for Bytes {
    const MOST: u64 = u64::MAX;
    fn show(&bytes: &u64) -> String {
        let unit = SHOWN.iter().find(|(_, unit)| bytes > 0 && bytes % unit == 0);
        match unit {
            Some((name, unit)) => format!("{}{name}", bytes / unit),
            None => bytes.to_string(),
        }
    }
    fn read(text: &str) -> Result<u64, String> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit_bytes(unit.trim());
        let bytes = unit.and_then(|unit| number.parse::<u64>().ok()?.checked_mul(unit));
        bytes.ok_or_else(|| {
            format!(
                "`{text}` is no size; write a number of bytes, of KiB, MiB, GiB or TiB (powers of 1024), or \
                 of KB, MB, GB or TB (powers of 1000)"
            )
        })
    }
    fn number(&bytes: &u64) -> Option<u64> {
        Some(bytes)
    }
}

impl Kind<u32> for Bytes {
    const MOST: u64 = u32::MAX as u64;
    fn show(&bytes: &u32) -> String {
        <Bytes as Kind<u64>>::show(&bytes.into())
    }
    fn read(text: &str) -> Result<u32, String> {
        let bytes = <Bytes as Kind<u64>>::read(text)?;
        u32::try_from(bytes).map_err(|_| format!("`{text}` is too large"))
    }
    fn number(&bytes: &u32) -> Option<u64> {
        Some(bytes.into())
    }
}

impl Kind<u32> for Digits {
    const MOST: u64 = u32::MAX as u64;
    fn show(bytes: &u32) -> String {
        bytes.to_string()
    }
    fn read(text: &str) -> Result<u32, String> {
        <Bytes as Kind<u32>>::read(text)
    }
    fn number(&bytes: &u32) -> Option<u64> {
        Some(bytes.into())
    }
}

impl Kind<u32> for Plain {
    const MOST: u64 = u32::MAX as u64;
    fn show(number: &u32) -> String {
        number.to_string()
    }
    fn read(text: &str) -> Result<u32, String> {
        text.parse().map_err(|_| format!("`{text}` is no whole number"))
    }
    fn number(&number: &u32) -> Option<u64> {
        Some(number.into())
    }
}

impl Kind<u64> for Plain {
    const MOST: u64 = u64::MAX;
    fn show(number: &u64) -> String {
        number.to_string()
    }
    fn read(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("`{text}` is no whole number"))
    }
    fn number(&number: &u64) -> Option<u64> {
        Some(number)
    }
}

impl Kind<bool> for Plain {
    fn show(&on: &bool) -> String {
        if on { "on" } else { "off" }.to_owned()
    }
    fn read(text: &str) -> Result<bool, String> {
        match text {
            "on" | "true" | "yes" => Ok(true),
            "off" | "false" | "no" => Ok(false),
            _ => Err(format!("`{text}` is neither `on` nor `off`")),
        }
    }
    fn takes() -> String {
        "on, off".to_owned()
    }
}

/// A value that may be left to the store.
impl<T, K: Kind<T>> Kind<Option<T>> for K {
    const MOST: u64 = K::MOST;
    fn show(value: &Option<T>) -> String {
        value.as_ref().map_or_else(|| AUTO.to_owned(), K::show)
    }
    fn read(text: &str) -> Result<Option<T>, String> {
        if text == AUTO {
            return Ok(None);
        }
        K::read(text).map(Some).map_err(|what| format!("{what}; `{AUTO}` leaves it to the store"))
    }
    fn number(value: &Option<T>) -> Option<u64> {
        value.as_ref().and_then(K::number)
    }
    fn takes() -> String {
        match K::takes() {
            none if none.is_empty() => AUTO.to_owned(),
            some => format!("{some}, {AUTO}"),
        }
    }
}

/// The names of values, for people.
fn names<T>(all: impl IntoIterator<Item = T>, name: fn(T) -> &'static str) -> String {
    all.into_iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The value of that name, out of all there are.
fn named<T: Copy>(
    text: &str,
    all: impl IntoIterator<Item = T> + Clone,
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.clone().into_iter().find(|&value| name(value) == text);
    found.ok_or_else(|| format!("`{text}` is none of {}", names(all, name)))
}

impl Kind<Durability> for Plain {
    fn show(&durability: &Durability) -> String {
        durability.name().to_owned()
    }
    fn read(text: &str) -> Result<Durability, String> {
        named(text, Durability::ALL, Durability::name)
    }
    fn takes() -> String {
        names(Durability::ALL, Durability::name)
    }
}

impl Kind<CompactionPri> for Plain {
    fn show(pri: &CompactionPri) -> String {
        pri.name().to_owned()
    }
    fn read(text: &str) -> Result<CompactionPri, String> {
        named(text, CompactionPri::ALL, CompactionPri::name)
    }
    fn takes() -> String {
        names(CompactionPri::ALL, CompactionPri::name)
    }
}

impl Kind<Policy> for Plain {
    fn show(policy: &Policy) -> String {
        policy.name().to_owned()
    }
    fn read(text: &str) -> Result<Policy, String> {
        named(text, Policy::EVERY, Policy::name)
    }
    fn takes() -> String {
        names(Policy::EVERY, Policy::name)
    }
}

impl Kind<Compression> for Plain {
    fn show(compression: &Compression) -> String {
        match compression {
            Compression::None => "none".to_owned(),
            Compression::Lz4 => "lz4".to_owned(),
            Compression::Snappy => "snappy".to_owned(),
            Compression::Zlib(level) => format!("zlib:{level}"),
            Compression::Bzip2 => "bzip2".to_owned(),
            Compression::Zstd(level) => format!("zstd:{level}"),
        }
    }
    fn read(text: &str) -> Result<Compression, String> {
        let level = |codec: &str| text.strip_prefix(codec).and_then(|level| level.parse().ok());
        match text {
            "none" => return Ok(Compression::None),
            "lz4" => return Ok(Compression::Lz4),
            "snappy" => return Ok(Compression::Snappy),
            "bzip2" => return Ok(Compression::Bzip2),
            _ => {}
        }
        let zlib = level("zlib:").map(Compression::Zlib);
        let found = zlib.or_else(|| level("zstd:").map(Compression::Zstd));
        found
            .ok_or_else(|| format!("`{text}` is none of {}", <Plain as Kind<Compression>>::takes()))
    }
    fn takes() -> String {
        "none, lz4, snappy, zlib:1 to zlib:9, bzip2, zstd:1 to zstd:19".to_owned()
    }
}
