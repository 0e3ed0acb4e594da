//! The tour: what `bench` without workloads runs. Every path of a store once, on small values,
//! in under 90 seconds on two cores.

use crate::settings::BenchSettings;
use crate::workload::Workload;

/// Key space of the tour: RocksDB fills this in about 8 s on one core of a small machine.
const NUM: u64 = 2_000_000;
/// Upper bound of each workload; ten workloads, of which most end by their operations.
const LIMIT_SECONDS: f64 = 8.0;
/// Reads per thread of the reading workloads that are slower than a scan.
const READS: u64 = 1_000_000;

/// Writes per second beside the readers: the same for every engine, so that a store that takes
/// more writes does not lose readers by it.
const WRITE_RATE: f64 = 20_000.0;

const WORKLOADS: [Workload; 10] = [
    Workload::FillSeq,
    Workload::FillRandom,
    Workload::Overwrite,
    Workload::ReadRandom,
    Workload::ReadMissing,
    Workload::ReadWhileWriting,
    Workload::SeekRandom,
    Workload::ReadSeq,
    Workload::Compact,
    Workload::Verify,
];

/// `settings` with the tour's workloads, and its sizes where the user gave none.
pub(crate) fn apply(settings: BenchSettings) -> BenchSettings {
    let num = settings.num.unwrap_or(NUM);
    BenchSettings {
        workloads: WORKLOADS.to_vec(),
        num: Some(num),
        reads: settings.reads.or(Some(READS.min(num))),
        write_rate: settings.write_rate.or(Some(WRITE_RATE)),
        limit_seconds: settings.limit_seconds.or(Some(LIMIT_SECONDS)),
        ..settings
    }
}
