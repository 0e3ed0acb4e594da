//! The workloads, under db_bench's names and with db_bench's meaning.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One workload. `num` is the size of the key space and the operations per thread of writing
/// workloads; `reads` the operations per thread of reading ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Workload {
    /// Writes keys 0, 1, 2, ... to a fresh store (one thread).
    FillSeq,
    /// Writes uniformly random keys, with repeats, to a fresh store.
    FillRandom,
    /// Writes every key once, in random order, to a fresh store (one thread).
    FillUniqueRandom,
    /// Writes uniformly random keys, with repeats, to the store as it is.
    Overwrite,
    /// Writes keys by a Zipf distribution of exponent `zipf`, the hot ones scattered over the key
    /// space, to the store as it is.
    OverwriteZipf,
    /// Writes or deletes uniformly random keys, by a coin of `delete-percent`.
    OverwriteDelete,
    /// Looks up uniformly random keys.
    ReadRandom,
    /// Looks up keys that do not exist (one byte longer than any in the store).
    ReadMissing,
    /// Looks up uniformly random keys, `batch-size` of them per call.
    MultiReadRandom,
    /// Walks forward from the first key.
    ReadSeq,
    /// Walks backward from the last key.
    ReadReverse,
    /// Seeks uniformly random keys with a new iterator each, then reads `seek-nexts` entries.
    SeekRandom,
    /// Like `readrandom` while one more thread writes random keys.
    ReadWhileWriting,
    /// Looks up or writes uniformly random keys, by a coin of `read-percent`. Begins with an
    /// empty store if it comes first.
    ReadRandomWriteRandom,
    /// Puts, gets and seeks by `mix` over hot and cold key ranges, in one phase for each of
    /// `mix-ranges`. Begins with an empty store if it comes first.
    MixGraph,
    /// Writes `num` records for YCSB's workloads to a fresh store.
    YcsbLoad,
    /// 50% reads, 50% updates.
    YcsbA,
    /// 95% reads, 5% updates.
    YcsbB,
    /// Reads alone.
    YcsbC,
    /// 95% reads of the latest records, 5% inserts.
    YcsbD,
    /// 95% scans of 1 to 100 records, 5% inserts.
    YcsbE,
    /// 50% reads, 50% reads followed by a write of the same record.
    YcsbF,
    /// Deletes uniformly random keys.
    DeleteRandom,
    /// Flushes, then compacts the whole key space; only the compaction is timed.
    Compact,
    /// Waits until no flush and no compaction is pending.
    WaitIdle,
    /// Prints the engine's own statistics.
    Stats,
    /// Reads the whole store and checks every byte, and that no key is missing or in excess.
    Verify,
}

impl Workload {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::FillSeq => "fillseq",
            Workload::FillRandom => "fillrandom",
            Workload::FillUniqueRandom => "filluniquerandom",
            Workload::Overwrite => "overwrite",
            Workload::OverwriteZipf => "overwritezipf",
            Workload::OverwriteDelete => "overwritedelete",
            Workload::ReadRandom => "readrandom",
            Workload::ReadMissing => "readmissing",
            Workload::MultiReadRandom => "multireadrandom",
            Workload::ReadSeq => "readseq",
            Workload::ReadReverse => "readreverse",
            Workload::SeekRandom => "seekrandom",
            Workload::ReadWhileWriting => "readwhilewriting",
            Workload::ReadRandomWriteRandom => "readrandomwriterandom",
            Workload::MixGraph => "mixgraph",
            Workload::YcsbLoad => "ycsbload",
            Workload::YcsbA => "ycsba",
            Workload::YcsbB => "ycsbb",
            Workload::YcsbC => "ycsbc",
            Workload::YcsbD => "ycsbd",
            Workload::YcsbE => "ycsbe",
            Workload::YcsbF => "ycsbf",
            Workload::DeleteRandom => "deleterandom",
            Workload::Compact => "compact",
            Workload::WaitIdle => "waitidle",
            Workload::Stats => "stats",
            Workload::Verify => "verify",
        }
    }

    /// True if it starts from an empty store (unless `--use-existing-db`).
    pub fn is_fresh(self) -> bool {
        matches!(
            self,
            Workload::FillSeq
                | Workload::FillRandom
                | Workload::FillUniqueRandom
                | Workload::YcsbLoad
        )
    }

    /// True if it starts from an empty store when no workload came before it.
    pub fn may_begin(self) -> bool {
        self.is_fresh() || matches!(self, Workload::MixGraph | Workload::ReadRandomWriteRandom)
    }

    /// True if its operations write.
    pub fn writes(self) -> bool {
        self.is_fresh()
            || self.is_mixed()
            || matches!(
                self,
                Workload::Overwrite
                    | Workload::OverwriteZipf
                    | Workload::OverwriteDelete
                    | Workload::DeleteRandom
                    | Workload::ReadWhileWriting
            )
    }

    /// True if each client both reads and writes.
    pub fn is_mixed(self) -> bool {
        matches!(self, Workload::MixGraph | Workload::ReadRandomWriteRandom)
            || self.is_ycsb() && self != Workload::YcsbC
    }

    /// True for YCSB's letters.
    pub fn is_ycsb(self) -> bool {
        matches!(
            self,
            Workload::YcsbA
                | Workload::YcsbB
                | Workload::YcsbC
                | Workload::YcsbD
                | Workload::YcsbE
                | Workload::YcsbF
        )
    }

    /// True if it is one pass that cannot be split over threads.
    pub fn is_single(self) -> bool {
        matches!(
            self,
            Workload::FillSeq
                | Workload::FillUniqueRandom
                | Workload::Compact
                | Workload::WaitIdle
                | Workload::Stats
                | Workload::Verify
        )
    }
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
