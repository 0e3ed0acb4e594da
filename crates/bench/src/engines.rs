//! The tables of `bench engines`, and its JSON: numbers and words, whatever engines they are for.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde_json::{Value, json};

use crate::fold::to_columns;
use crate::gpu::{GpuRow, gpu_text};

/// What a job is made of: its bytes, those of a key and of a value, and how many streams it is cut into.
pub type JobKind = (u64, usize, usize, usize);

/// What came of some streams.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Nanoseconds of processor time in the engine, and of certifying.
    pub engine_ns: u64,
    /// The same.
    pub certify_ns: u64,
    /// Nanoseconds of the busiest thread, both together.
    pub slowest_ns: u64,
    /// Entries of the input.
    pub entries: u64,
    /// Bytes of all entries.
    pub bytes: u64,
    /// Stored bytes of all sets, those that straddle a bound twice.
    pub stored: u64,
    /// How many sets there were.
    pub sets: u64,
    /// Hashes of the outputs, stream by stream.
    pub hashes: Vec<u64>,
}

/// An engine and a job.
#[derive(Clone, Debug)]
pub struct EngineRow {
    /// The job, and its parts; of the CPU its threads.
    pub kind: JobKind,
    /// Medians of its rounds.
    pub ran: Ran,
    /// What the card says, if it is one.
    pub card: Option<CardFigures>,
}

/// What a card says of itself. Times are card time but for those of the host.
#[derive(Clone, Debug)]
pub struct CardFigures {
    /// What stands for the card.
    pub what: &'static str,
    /// Its units.
    pub units: usize,
    /// Their clock.
    pub mhz: f64,
    /// Whether that clock is an estimate.
    pub is_estimate: bool,
    /// Who decides how large sets are.
    pub buffer: &'static str,
    /// How it is attached, as it was typed.
    pub link: String,
    /// Nanoseconds from beginning to end.
    pub ns: f64,
    /// Cycles of its units.
    pub cycles: f64,
    /// Bytes to it and from it.
    pub bytes_to: f64,
    /// The same.
    pub bytes_from: f64,
    /// Shares of that time: link in, units, link out.
    pub busy: [f64; 3],
    /// Bytes of the next set, when all was done.
    pub set_bytes: f64,
    /// Share of sets that the kernel merged.
    pub fell_back: f64,
    /// Bytes of all slots on the card, and of the buffers on the host at most.
    pub memory: [f64; 2],
    /// Nanoseconds of the host for staging and decoding, round by round.
    pub host_ns: Vec<[f64; 2]>,
}

/// What the formula says of jobs.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// By job and card.
    pub rows: Vec<Prediction>,
    /// How it is attached, as it was typed.
    pub link: String,
}

/// What the formula says of one.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Bytes of the job.
    pub job: u64,
    /// Its units.
    pub units: usize,
    /// Their clock.
    pub mhz: f64,
    /// Whether that clock is an estimate.
    pub is_estimate: bool,
    /// Who decides how large sets are.
    pub buffer: &'static str,
    /// Nanoseconds from beginning to end.
    pub ns: f64,
    /// Shares of that time: link in, units, link out.
    pub busy: [f64; 3],
    /// Bytes of the next set, when all was done.
    pub set_bytes: f64,
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    let n = of.len();
    if n == 0 { 0.0 } else { (of[(n - 1) / 2] + of[n / 2]) / 2.0 }
}

impl EngineRow {
    /// A row of the CPU with so many threads.
    pub fn cpu((job, key, value): (u64, usize, usize), threads: usize) -> EngineRow {
        EngineRow { kind: (job, key, value, threads), ran: Ran::default(), card: None }
    }

    /// The same row in another round.
    pub fn again(&mut self, other: EngineRow) {
        if let (Some(card), Some(other)) = (&mut self.card, other.card) {
            card.host_ns.extend(other.host_ns);
        }
    }

    /// The row of all its rounds.
    pub fn of(self, rounds: Vec<Ran>) -> EngineRow {
        let of = |field: fn(&Ran) -> u64| {
            median(rounds.iter().map(|ran| field(ran) as f64).collect()) as u64
        };
        let ran = Ran {
            engine_ns: of(|ran| ran.engine_ns),
            certify_ns: of(|ran| ran.certify_ns),
            slowest_ns: of(|ran| ran.slowest_ns),
            ..rounds.first().cloned().unwrap_or_default()
        };
        EngineRow { ran, ..self }
    }

    /// Nanoseconds from beginning to end: of card time, or of processor time.
    fn ns(&self) -> f64 {
        self.card.as_ref().map_or(self.ran.slowest_ns as f64, |card| card.ns)
    }

    /// Processor seconds of the host a GB: before the card or the merge, behind it, and for certifying.
    fn host(&self) -> [f64; 3] {
        let bytes = self.ran.bytes.max(1) as f64;
        let (first, second) = match &self.card {
            None => (self.ran.engine_ns as f64, 0.0),
            Some(card) => {
                let of = |i: usize| median(card.host_ns.iter().map(|ns| ns[i]).collect());
                (of(0), of(1))
            }
        };
        [first, second, self.ran.certify_ns as f64].map(|ns| ns / bytes)
    }
}

impl CardFigures {
    /// What its clock is.
    fn clock(&self) -> String {
        clock(self.mhz, self.is_estimate)
    }
}

fn clock(mhz: f64, is_estimate: bool) -> String {
    format!("{mhz:.0} MHz{}", if is_estimate { " (est.)" } else { "" })
}

/// The busiest of link in, units and link out, and its share of the time.
fn bound(busy: [f64; 3]) -> (&'static str, f64) {
    let names = ["link in", "unit", "link out"];
    let most = (0..3).max_by(|&a, &b| busy[a].total_cmp(&busy[b])).unwrap_or(0);
    (names[most], busy[most])
}

fn bytes(n: f64) -> String {
    match n {
        n if n < 1e6 => format!("{:.0} KiB", n / 1024.0),
        n if n < 1e9 => format!("{:.1} MiB", n / 1_048_576.0),
        n => format!("{:.2} GB", n / 1e9),
    }
}

fn job(n: u64) -> String {
    if n < 1_000_000_000 {
        format!("{} MB", n / 1_000_000)
    } else {
        format!("{:.1} GB", n as f64 / 1e9)
    }
}

/// All tables, folded where they take more than so many columns.
pub fn engines_text(
    rows: &[EngineRow],
    predicted: &Predictions,
    gpu: &[GpuRow],
    columns: Option<usize>,
) -> String {
    cards_text(rows, predicted, columns) + &gpu_text(gpu, columns)
}

fn cards_text(rows: &[EngineRow], predicted: &Predictions, columns: Option<usize>) -> String {
    let mut table = empty();
    table.set_header([
        "engine",
        "job",
        "key/value",
        "GB/s",
        "ns/entry",
        "host CPU s/GB: stage or merge",
        "decode",
        "certify",
        "unit GB/s: @200 MHz",
        "@its clock",
        "bound by",
        "set",
        "on the CPU",
    ]);
    for row in rows {
        table.add_row(cells(row));
    }
    align(&mut table, 3);
    let mut text = to_columns(&table.to_string(), 3, columns);
    let cards: Vec<&CardFigures> = rows.iter().filter_map(|row| row.card.as_ref()).collect();
    let Some(card) = cards.first() else { return text };
    let most = |of: fn(&CardFigures) -> f64| cards.iter().map(|c| of(c)).fold(0.0, f64::max);
    text += &format!(
        "\nFPGA rows are MODELLED: GB/s and ns are card time over the link {}, outputs equal to the CPU's by \
         hash.\nMemory at most: {} on the card, {} of buffers on the host.\n",
        card.link,
        bytes(most(|c| c.memory[0])),
        bytes(most(|c| c.memory[1])),
    );
    text + &predicted_text(predicted, columns)
}

/// What a formula says, if it was asked.
fn predicted_text(predicted: &Predictions, columns: Option<usize>) -> String {
    if predicted.rows.is_empty() {
        return String::new();
    }
    let mut table = empty();
    table.set_header([
        "PREDICTED by formula",
        "clock",
        "sets",
        "job",
        "GB/s",
        "bound by",
        "last set",
    ]);
    for row in &predicted.rows {
        let (by, share) = bound(row.busy);
        table.add_row([
            format!("{0} parts, {0} units", row.units),
            clock(row.mhz, row.is_estimate),
            row.buffer.to_owned(),
            job(row.job),
            format!("{:.2}", row.job as f64 / row.ns),
            format!("{by} {:.0}%", 100.0 * share),
            bytes(row.set_bytes),
        ]);
    }
    align(&mut table, 3);
    let table = to_columns(&table.to_string(), 4, columns);
    format!("\n{table}\nThe same link: {}.", predicted.link)
}

fn empty() -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule));
    table
}

fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn cells(row: &EngineRow) -> Vec<String> {
    let (job_bytes, key, value, parts) = row.kind;
    let host = row.host().map(|s| format!("{s:.3}"));
    let [first, second, certify] = host;
    let mut cells = vec![
        String::new(),
        job(job_bytes),
        format!("{key}/{value}"),
        format!("{:.2}", row.ran.bytes as f64 / row.ns().max(1.0)),
        format!("{:.1}", row.ns() / row.ran.entries.max(1) as f64),
        first,
        second,
        certify,
    ];
    let Some(card) = &row.card else {
        cells[0] = format!("cpu x{parts}");
        cells[6] = "-".to_owned();
        cells.extend(["-", "-", "cpu", "-", "-"].map(str::to_owned));
        return cells;
    };
    let a_cycle = row.ran.bytes as f64 / card.cycles.max(1.0);
    let (by, share) = bound(card.busy);
    cells[0] = format!(
        "fpga {}, {parts} parts, {} units, {}, {}",
        card.what,
        card.units,
        card.clock(),
        card.buffer
    );
    cells.extend([
        format!("{:.2}", a_cycle * 0.2),
        format!("{:.2}", a_cycle * card.mhz / 1000.0),
        format!("{by} {:.0}%", 100.0 * share),
        bytes(card.set_bytes),
        format!("{:.1}%", 100.0 * card.fell_back),
    ]);
    cells
}

/// All of it, for programs.
pub fn engines_json(rows: &[EngineRow], predicted: &Predictions, gpu: &[GpuRow]) -> Value {
    let prediction = |row: &Prediction| {
        json!({
            "is_predicted": true,
            "job_bytes": row.job,
            "parts": row.units,
            "units": row.units,
            "mhz": row.mhz,
            "mhz_is_an_estimate": row.is_estimate,
            "buffer": row.buffer,
            "link": predicted.link,
            "gb_per_s": row.job as f64 / row.ns,
            "busy": busy(row.busy),
            "set_bytes": row.set_bytes,
        })
    };
    json!({
        "rows": rows.iter().map(row_json).collect::<Vec<_>>(),
        "gpu": gpu,
        "predicted": predicted.rows.iter().map(prediction).collect::<Vec<_>>(),
    })
}

fn busy(of: [f64; 3]) -> Value {
    json!({ "link_in": of[0], "units": of[1], "link_out": of[2], "bound_by": bound(of).0 })
}

fn row_json(row: &EngineRow) -> Value {
    let (job, key, value, parts) = row.kind;
    let [first, decode, certify] = row.host();
    let card = row.card.as_ref().map(|card| {
        let a_cycle = row.ran.bytes as f64 / card.cycles.max(1.0);
        json!({
            "card": card.what,
            "is_simulated": true,
            "units": card.units,
            "mhz": card.mhz,
            "mhz_is_an_estimate": card.is_estimate,
            "buffer": card.buffer,
            "link": card.link,
            "card_ns": card.ns,
            "cycles": card.cycles,
            "unit_gb_per_s_at_200_mhz": a_cycle * 0.2,
            "unit_gb_per_s_at_its_clock": a_cycle * card.mhz / 1000.0,
            "busy": busy(card.busy),
            "set_bytes": card.set_bytes,
            "share_on_the_cpu": card.fell_back,
            "card_memory_bytes": card.memory[0],
            "host_buffer_bytes_most": card.memory[1],
        })
    });
    json!({
        "engine": if row.card.is_some() { "fpga" } else { "cpu" },
        "job_bytes": job,
        "key_bytes": key,
        "value_bytes": value,
        "parts": parts,
        "entries": row.ran.entries,
        "entry_bytes": row.ran.bytes,
        "sets": row.ran.sets,
        "stored_bytes": row.ran.stored,
        "gb_per_s": row.ran.bytes as f64 / row.ns().max(1.0),
        "ns_per_entry": row.ns() / row.ran.entries.max(1) as f64,
        "host_cpu_s_per_gb": { "stage_or_merge": first, "decode": decode, "certify": certify },
        "output_hashes": row.ran.hashes.iter().map(|h| format!("{h:016x}")).collect::<Vec<_>>(),
        "fpga": card,
    })
}

#[cfg(test)]
mod tests;
