//! Numbers as people write and read them: `64MiB`, `6M`, `1.2 GB`.

/// Parses a byte count: digits with an optional unit, `K`/`KiB`, `M`/`MiB`, `G`/`GiB` as powers
/// of 1024 (and `T`/`TiB`), `KB`, `MB`, `GB`, `TB` as powers of 1000, in capitals or not. `_` may group digits.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    if number.is_empty() {
        return scaled(number, 1);
    }
    let scale = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        "T" | "TIB" => 1 << 40,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => {
            let unit = unit.trim();
            return Err(format!(
                "`{unit}` is no unit of bytes; use KiB, MiB, GiB or TiB, or KB to TB"
            ));
        }
    };
    scaled(number, scale)
}

/// Parses a count: digits with an optional `K`, `M` or `G` (powers of 1000). `_` may group digits.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    if number.is_empty() {
        return scaled(number, 1);
    }
    let scale = match unit.trim() {
        "" => 1,
        "K" | "k" => 1_000,
        "M" | "m" => 1_000_000,
        "G" | "g" => 1_000_000_000,
        other => return Err(format!("`{other}` is no unit of a count; use K, M or G")),
    };
    scaled(number, scale)
}

/// Parses the bytes of something that is kept in memory, as [`parse_bytes`] does.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_size(text: &str) -> Result<usize, String> {
    usize::try_from(parse_bytes(text)?).map_err(|_| "the number is too large".to_owned())
}

fn split_number(text: &str) -> (&str, &str) {
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    text.split_at(end)
}

fn scaled(number: &str, scale: u64) -> Result<u64, String> {
    if number.is_empty() {
        return Err("write a number from 0 on, with or without a unit".to_owned());
    }
    let digits = number.replace('_', "");
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| "the number is too large".to_owned());
    }
    match digits.parse::<f64>() {
        Ok(x) if x >= 0.0 && x * (scale as f64) < u64::MAX as f64 => Ok((x * scale as f64) as u64),
        _ => Err(format!("`{number}` is no number")),
    }
}

/// Bytes in decimal units, three digits: `1.23 GB`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", three_digits(bytes as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", three_digits(bytes as f64 / 1e6)),
        _ => format!("{} GB", three_digits(bytes as f64 / 1e9)),
    }
}

/// A count in decimal units, three digits: `253 k`.
pub(crate) fn show_count(count: f64) -> String {
    if count < 1e3 {
        three_digits(count)
    } else if count < 1e6 {
        format!("{} k", three_digits(count / 1e3))
    } else {
        format!("{} M", three_digits(count / 1e6))
    }
}

/// `x` with about three significant digits.
pub(crate) fn three_digits(x: f64) -> String {
    // A sum of nothing is -0.0, which is no figure for people.
    let x = x + 0.0;
    match x.abs() {
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}
