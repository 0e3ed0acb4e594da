//! Hostile bytes: one function per reader of bytes, which must end without a panic, without a
//! hang, and with memory in proportion to its input, whatever the bytes are.
//!
//! Keeps: a target is a pure function of its bytes, so a finding is a file that can be replayed. Where
//! a sum guards what lies behind it, the target makes the sum right, or the fuzzer would never
//! get past it. Beyond not failing, each target asserts what must hold for any bytes: what
//! decodes encodes to the same value, forward and backward walks agree, a certified answer is
//! the right one.
//! Leaves to others: making up bytes (the fuzzer, in a workspace of its own under `fuzz`), counting
//! memory (its allocator). `tests/corpus.rs` replays every seed on any toolchain.
#![forbid(unsafe_code)]

mod blocks;
mod codecs;
pub mod directory;
mod engine;
mod foreign;
mod image;
mod logs;
mod memtable;
pub mod meter;
mod tables;
mod texts;

/// A target: its name and what it does with bytes.
pub struct Target {
    /// Its name, which is that of its folder of seeds.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
    /// Bytes that it may hold besides 64 per byte of input: 1 MiB, and what the parts that it
    /// starts need for any input.
    pub allowance: usize,
}

const MIB: usize = 1 << 20;

/// Every target.
pub const TARGETS: [Target; 19] = [
    Target { name: "log_records", run: logs::records, allowance: MIB },
    Target { name: "log_walk", run: logs::walk, allowance: MIB },
    Target { name: "batch", run: logs::batch, allowance: MIB },
    Target { name: "manifest", run: logs::manifest, allowance: MIB },
    Target { name: "edit", run: logs::edit, allowance: MIB },
    Target { name: "block", run: blocks::block, allowance: MIB },
    Target { name: "index", run: blocks::index, allowance: MIB },
    Target { name: "filter", run: blocks::filter, allowance: MIB },
    Target { name: "meta_blocks", run: blocks::meta, allowance: MIB },
    // Bzip2 takes up to 3.7 MB, by the level that a block's first bytes name.
    Target { name: "compressed", run: blocks::compressed, allowance: 5 * MIB },
    // Bzip2 takes a MiB for itself, the deflater a quarter; each is there twice.
    Target { name: "codecs", run: codecs::sequence, allowance: 6 * MIB },
    Target { name: "options", run: texts::options, allowance: MIB },
    Target { name: "names", run: texts::names, allowance: MIB },
    // A table of 4 KiB, changed, Bzip2's among them; its input says how.
    Target { name: "table", run: tables::table, allowance: 6 * MIB },
    // As above, for a database: memtables, worker threads and a block cache come with it.
    Target { name: "db_image", run: image::image, allowance: 48 * MIB },
    // The same for a directory of another engine, and a second database made of it.
    Target { name: "foreign_image", run: foreign::image, allowance: 64 * MIB },
    // Nodes and pieces come in chunks of 64 KiB and more; the twin has everything again.
    Target { name: "memtable", run: memtable::calls, allowance: 4 * MIB },
    // Guards its memory itself, each operation's by the directory's bytes on the disk.
    Target { name: "directory", run: directory::run, allowance: usize::MAX / 2 },
    Target { name: "engine_reply", run: engine::reply, allowance: 2 * MIB },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// Changes made to sound bytes, as a program that a fuzzer can write: two bytes of offset, then what
/// to do there.
fn change(bytes: &mut Vec<u8>, program: &[u8]) {
    for step in program.chunks_exact(4) {
        if bytes.is_empty() {
            return;
        }
        let at = usize::from(u16::from_le_bytes([step[0], step[1]])) % bytes.len();
        match step[2] {
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, step[3]),
            3 => bytes[at] ^= step[3],
            4 => bytes[at] = bytes[at].wrapping_add(step[3]),
            _ => bytes[at] = step[3],
        }
    }
}
