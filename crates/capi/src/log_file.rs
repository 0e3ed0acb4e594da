//! The file LOG of a database, as far as programs look into RocksDB's: what an open was given, option by
//! option. What happens afterwards is in EVENTS.
//!
//! Keeps: an option stands with the value that it was given, or with RocksDB's default. Those that mean
//! something else here, or nothing, are named after that.

use crate::options::Options;

/// Families that are described one by one. More are only counted.
const SHOWN: usize = 64;

impl Options {
    /// The text of the file.
    pub(crate) fn log_text(&self, families: &[(&str, &Options)], noted: &str) -> String {
        log_text(self, families, noted)
    }
}

fn log_text(options: &Options, families: &[(&str, &Options)], noted: &str) -> String {
    let mut lines = vec![
        format!(
            "Lithify {}: what this open was given, as RocksDB's LOG has it. What happens is in EVENTS.",
            env!("CARGO_PKG_VERSION")
        ),
        checksums(),
        "Jemalloc supported: 0".to_owned(),
        String::new(),
    ];
    lines.extend(options.shown().iter().map(|line| format!("Options.{line}")));
    for (name, options) in families.iter().take(SHOWN) {
        lines.push(String::new());
        lines.push(format!("--------------- Options for column family [{name}]:"));
        lines.extend(options.shown().iter().map(|line| format!("Options.{line}")));
        lines.push(format!("Options.table_properties_collectors: {}", options.collector_text()));
        lines.push("  table_factory options:".to_owned());
        let table = options.table.clone().unwrap_or_default();
        lines.extend(table.shown().iter().map(|line| format!("  {line}")));
    }
    if families.len() > SHOWN {
        lines.push(format!("and {} column families more", families.len() - SHOWN));
    }
    lines.push(String::new());
    lines.push("Taken otherwise than given, or without effect here:".to_owned());
    lines.push(if noted.is_empty() { "nothing".to_owned() } else { noted.to_owned() });
    lines.push(String::new());
    lines.join("\n")
}

/// RocksDB says what it was compiled for. CRC32c is chosen here when it runs, so both are said.
fn checksums() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x86",
        "aarch64" => "Arm64",
        other => other,
    };
    let compiled = match cfg!(any(target_feature = "sse4.2", target_feature = "crc")) {
        true => "Supported on",
        false => "Not supported on",
    };
    format!(
        "Fast CRC32 supported: found when the library runs; by what it was compiled for: {compiled} {arch}"
    )
}
