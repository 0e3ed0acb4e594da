//! Values of settings as text, in both directions: `64MiB`, `on`, `zstd:3`, `auto`.

use super::{CompactionPri, Compression, Durability, Policy};

/// A way to write values of type `T`.
pub(super) trait Kind<T> {
    fn show(value: &T) -> String;
    /// What the text says, or what it should have been.
    fn read(text: &str) -> Result<T, String>;
}

/// As the type is written.
pub(super) struct Plain;
/// A number of bytes.
pub(super) struct Bytes;

/// What stands for a value that follows from others.
const AUTO: &str = "auto";

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

impl Kind<u64> for Bytes {
    fn show(&bytes: &u64) -> String {
        let whole = |&&(_, bits): &&(&str, u32)| bytes > 0 && bytes % (1 << bits) == 0;
        match UNITS.iter().find(whole) {
            Some((unit, bits)) => format!("{}{unit}", bytes >> bits),
            None => bytes.to_string(),
        }
    }
    fn read(text: &str) -> Result<u64, String> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let bits = match unit.trim() {
            "" | "B" => Some(0),
            unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bits)| *bits),
        };
        let bytes = bits.and_then(|bits| number.parse::<u64>().ok()?.checked_mul(1 << bits));
        bytes.ok_or_else(|| {
            format!("`{text}` is no size; write a number of bytes, or of KiB, MiB, GiB or TiB")
        })
    }
}

impl Kind<u32> for Bytes {
    fn show(&bytes: &u32) -> String {
        <Bytes as Kind<u64>>::show(&bytes.into())
    }
    fn read(text: &str) -> Result<u32, String> {
        let bytes = <Bytes as Kind<u64>>::read(text)?;
        u32::try_from(bytes).map_err(|_| format!("`{text}` is too large"))
    }
}

impl Kind<Option<u64>> for Bytes {
    fn show(bytes: &Option<u64>) -> String {
        bytes.as_ref().map_or_else(|| AUTO.to_owned(), <Bytes as Kind<u64>>::show)
    }
    fn read(text: &str) -> Result<Option<u64>, String> {
        if text == AUTO {
            return Ok(None);
        }
        let also = |what| format!("{what}, or `{AUTO}`");
        <Bytes as Kind<u64>>::read(text).map(Some).map_err(also)
    }
}

impl Kind<u32> for Plain {
    fn show(number: &u32) -> String {
        number.to_string()
    }
    fn read(text: &str) -> Result<u32, String> {
        text.parse().map_err(|_| format!("`{text}` is no whole number"))
    }
}

impl Kind<u64> for Plain {
    fn show(number: &u64) -> String {
        number.to_string()
    }
    fn read(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("`{text}` is no whole number"))
    }
}

impl Kind<Option<u32>> for Plain {
    fn show(number: &Option<u32>) -> String {
        number.map_or_else(|| AUTO.to_owned(), |n| n.to_string())
    }
    fn read(text: &str) -> Result<Option<u32>, String> {
        if text == AUTO {
            return Ok(None);
        }
        let number = text.parse();
        number.map(Some).map_err(|_| format!("`{text}` is neither a whole number nor `{AUTO}`"))
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
}

/// The value of a name, out of all there are.
fn named<T: Copy>(
    text: &str,
    all: impl Iterator<Item = T> + Clone,
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    all.clone().find(|&value| name(value) == text).ok_or_else(|| {
        let names: Vec<&str> = all.map(name).collect();
        format!("`{text}` is none of {}", names.join(", "))
    })
}

fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::NoWal => "no-wal",
        Durability::Buffered => "buffered",
        Durability::Os => "os",
        Durability::Sync => "sync",
    }
}

impl Kind<Durability> for Plain {
    fn show(&durability: &Durability) -> String {
        durability_name(durability).to_owned()
    }
    fn read(text: &str) -> Result<Durability, String> {
        let all = [Durability::NoWal, Durability::Buffered, Durability::Os, Durability::Sync];
        named(text, all.into_iter(), durability_name)
    }
}

impl Kind<Option<Policy>> for Plain {
    fn show(policy: &Option<Policy>) -> String {
        policy.map_or(AUTO, Policy::name).to_owned()
    }
    fn read(text: &str) -> Result<Option<Policy>, String> {
        if text == AUTO {
            return Ok(None);
        }
        let also = |what| format!("{what}, {AUTO}");
        named(text, Policy::EVERY.into_iter(), Policy::name).map(Some).map_err(also)
    }
}

impl Kind<CompactionPri> for Plain {
    fn show(pri: &CompactionPri) -> String {
        pri.name().to_owned()
    }
    fn read(text: &str) -> Result<CompactionPri, String> {
        named(text, CompactionPri::ALL.into_iter(), CompactionPri::name)
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
        if let Some(level) = level("zlib:") {
            return Ok(Compression::Zlib(level));
        }
        match (text, level("zstd:")) {
            ("none", _) => Ok(Compression::None),
            ("lz4", _) => Ok(Compression::Lz4),
            ("snappy", _) => Ok(Compression::Snappy),
            ("bzip2", _) => Ok(Compression::Bzip2),
            (_, Some(level)) => Ok(Compression::Zstd(level)),
            _ => Err(format!(
                "`{text}` is none of none, lz4, snappy, zlib:1 to zlib:9, bzip2, \
                 zstd:1 to zstd:19"
            )),
        }
    }
}
