//! The flags of a GPU, and the table of what is predicted of one: numbers and words, whatever engine they are for.

use clap::Args;
use comfy_table::{LineStyle, Table, TableStyle};
use serde::Serialize;

use crate::fold::to_columns;
use crate::parse_bytes;

/// `--gpu-*`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "GPU")]
pub struct GpuFlags {
    /// Which GPUs, by number, with commas between, or `all`. Each has an engine of its own, and a part of a compaction goes to
    /// the one that is expected to be through first; flags for memory and sets hold of each. In builds that
    /// have it, `emulator` is one: its kernels on the CPU, for tests, far slower
    #[arg(long, visible_alias = "gpu-device", value_name = "DEVICES", default_value = "0")]
    pub gpu_devices: String,
    /// Sets on the device at once; with three, copies in both directions and kernels go on side by side
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub gpu_units: u8,
    /// Stored bytes of a set [default: what its stages take decides, from 4MiB to 16MiB, as far as --gpu-memory has room; on
    /// the emulator 1MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub gpu_set: Option<u64>,
    /// Most bytes of device memory: eight times the sets of all units [default: 4GiB]. On the emulator that is memory of the
    /// host, on top of the setting memory_budget
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub gpu_memory: Option<u64>,
    /// Most bytes of host memory that the device copies from and to, on top of the setting memory_budget
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = parse_bytes)]
    pub gpu_pinned: u64,
    /// What is looked at of all that comes back: `full`, every entry, or `sums`, the sum of every block and one
    /// block in 64
    #[arg(long, value_name = "HOW", default_value = "full", value_parser = ["full", "sums"])]
    pub gpu_verify: String,
    /// One in so many sets is merged again by the CPU and compared
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub gpu_prove: u32,
    /// `cost`, only where it is expected to be through first, or `always`
    #[arg(long, value_name = "HOW", default_value = "cost", value_parser = ["cost", "always"])]
    pub gpu_route: String,
}

/// What is predicted of a job on a GPU.
#[derive(Clone, Debug, Serialize)]
pub struct GpuRow {
    /// Always: nothing of it is measured.
    pub is_predicted: bool,
    /// Bytes of the job's entries, of a key and of a value.
    pub job_bytes: u64,
    /// The same.
    pub key_bytes: usize,
    /// The same.
    pub value_bytes: usize,
    /// Name of the codec of blocks, both ways.
    pub codec: &'static str,
    /// Stored bytes of a block over those that it stands for.
    pub stored_share: f64,
    /// Units of the device, and bytes of a set.
    pub units: u8,
    /// The same.
    pub set_bytes: u64,
    /// GB of entries a second.
    pub gb_per_s: f64,
    /// What is busiest.
    pub bound_by: &'static str,
    /// Its share of the time.
    pub busiest: f64,
    /// Bytes of such a job of which the kernels on the emulator made what the CPU made, in this run.
    pub emulated_bytes: u64,
}

/// The table of these rows; nothing without any.
pub(crate) fn gpu_text(rows: &[GpuRow], columns: Option<usize>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule));
    table.set_header([
        "PREDICTED by formula",
        "job",
        "key/value",
        "codec",
        "GB/s",
        "bound by",
        "sets",
        "emulated",
    ]);
    for row in rows {
        table.add_row([
            format!("gpu, {} units", row.units),
            format!("{} MB", row.job_bytes / 1_000_000),
            format!("{}/{}", row.key_bytes, row.value_bytes),
            match row.stored_share < 1.0 {
                true => format!("{} {:.2}", row.codec, row.stored_share),
                false => row.codec.to_owned(),
            },
            format!("{:.1}", row.gb_per_s),
            format!("{} {:.0}%", row.bound_by, 100.0 * row.busiest),
            format!("{} MiB", row.set_bytes >> 20),
            match row.emulated_bytes {
                0 => "-".to_owned(),
                bytes => format!("{} MB, equal", bytes / 1_000_000),
            },
        ]);
    }
    let table = to_columns(&table.to_string(), 4, columns);
    format!(
        "\n{table}\nNo GPU ran this: 45 GB/s assumed up and down, 3000 for its memory, 7 us a call, LZ4 at 150 GB/s of what it \
         decodes and 30 of what it encodes; GB/s are of entries, without the host's half and without files."
    )
}
