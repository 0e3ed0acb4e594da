//! `cargo xtask gpu`: the kernels of `engine-gpu`.
//!
//! | chore | what it does |
//! |---|---|
//! | `check` | the kernels run on the emulator, as an engine, against the naive twin; then `kit try` |
//! | `build` | a pinned compiler makes code for GPUs of them, as `image.lock` says (`gpu_image`) |
//! | `sanitize` | the same cases, with every access of the kernels watched |
//! | `kit` | what is carried to a machine with a GPU, to check and measure it there (`gpu_kit`) |
//! | `kit try` | the kit's steps, here and on the emulator |
//! | `mutants` | bugs are planted in the kernels, one at a time, and each must be found |
//!
//! Keeps: nothing else in this project needs a C++ compiler for these sources. Without one `check` says
//! what goes unchecked, or fails if `LITHIFY_GPU=1`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::gpu_image::{Checked, build};
use crate::gpu_kit;
use crate::repo::root;
use crate::run::{at_root, call, has, install};

const USAGE: &str = "cargo xtask gpu check | build | kit [try] | sanitize | mutants";

/// Where mutants are compiled, and where their sources are.
const TARGET: &str = "target/gpu";
const SOURCES: &str = "target/gpu/sources";

/// Seconds that the tests of a mutant may take at least, and how many times those that they take without one: a machine at
/// work is no find. Seconds that a build may take.
const SECONDS: u64 = 240;
const SLOWER: u64 = 5;
const BUILD_SECONDS: u64 = 1800;
/// What `timeout` ends with where it was needed.
const TIMED_OUT: i32 = 124;

/// Bugs of the kernels: a name, a file, what stands there and what stands there instead. None is of K7: the
/// host finds where files start by itself, and what K7 says of it decides only whether a key that begins a
/// file is hashed although the key before it has the same hash, which two keys hardly have.
const MUTANTS: &[(&str, &str, &str, &str)] = &[
    (
        "barrier",
        "kernels/prim.cuh",
        "        if (lane() == WARP - 1) of_warp[k][w] = before.v[k] + v.v[k];\n    }\n    __syncthreads();",
        "        if (lane() == WARP - 1) of_warp[k][w] = before.v[k] + v.v[k];\n    }",
    ),
    (
        "divergent barrier",
        "kernels/drop.cu",
        "    Sums<3> all;\n    cta_before(in, all);",
        "    Sums<3> all = in;\n    if (i0 < total) cta_before(in, all);",
    ),
    (
        "look-back stops early",
        "kernels/prim.cuh",
        "? 0 : state == 2 ? one->whole[k] : one->own[k];",
        "? 0 : one->own[k];",
    ),
    (
        "tie in the merge",
        "kernels/merge.cu",
        "return at<u32>(p.run)[a] < at<u32>(p.run)[b];",
        "return at<u32>(p.run)[a] > at<u32>(p.run)[b];",
    ),
    (
        "heads decide about lengths",
        "kernels/merge.cu",
        "    if (c) return c < 0;\n    x = at<u64>(p.tag)[a]",
        "    x = at<u64>(p.tag)[a]",
    ),
    (
        "partition one off",
        "kernels/merge.cu",
        "bool inside = rank < target;",
        "bool inside = rank <= target;",
    ),
    (
        "lower end of a set included",
        "kernels/unpack.cu",
        "if (c < 0 || (c == 0 && bound[i].form == 1)) return true;",
        "if (c < 0) return true;",
    ),
    (
        "zone bound without after",
        "kernels/drop.cu",
        "if (c < 0 || (c == 0 && zones[mid].form == 1))",
        "if (c <= 0)",
    ),
    (
        "D1 forgets stripes",
        "kernels/drop.cu",
        "if (!is_new && stripe(p, at<u64>(p.tag)[ord[i - 1]] >> 8) == of)",
        "if (!is_new)",
    ),
    (
        "D2 forgets stripes",
        "kernels/drop.cu",
        "return lo > from && stripe(p, tombs[lo - 1]) == of;",
        "return lo > from;",
    ),
    ("D4 under tombstones", "kernels/drop.cu", "if (kept > seq) {", "if (kept > seq || true) {"),
    (
        "the block that was open has ended",
        "kernels/pack.cu",
        "bool grid = j == 0 ? p.is_ended :",
        "bool grid = j == 0 ? false :",
    ),
    (
        "restart phase of a resumed block",
        "kernels/pack.cu",
        "u64 ordinal = j - start + (b == 0 ? p.open_entries : 0);",
        "u64 ordinal = j - start;",
    ),
    (
        "shared prefix ends with the user key",
        "kernels/pack.cu",
        "u32 n = (a.len < b.len ? a.len : b.len) + 8, i = 0;",
        "u32 n = a.len < b.len ? a.len : b.len, i = 0;",
    ),
    (
        "number of a whole block",
        "kernels/unpack.cu",
        "in.seq == NO_SEQ ? s.tag : in.seq << 8 | kind;",
        "s.tag;",
    ),
    (
        "lines of scans are not emptied",
        "kernels/unpack.cu",
        "        at<u64>(p.ticks)[i] = 0;",
        "        (void)i;",
    ),
    (
        "sums of blocks are believed",
        "kernels/unpack.cu",
        "&& load32(stored + in.stored + 1) == sum;",
        "&& (load32(stored + in.stored + 1) == sum || true);",
    ),
    (
        "lanes of a decoder do not wait",
        "kernels/lz4.cuh",
        "        __syncwarp(ALL);\n        const u8 *from = out",
        "        const u8 *from = out",
    ),
    (
        "a match goes on behind its end",
        "kernels/lz4.cuh",
        "from[i < s.offset ? i : i % s.offset]",
        "from[i < s.offset ? i : s.offset - 1]",
    ),
    (
        "an offset before the first byte",
        "kernels/lz4.cuh",
        "s.offset != 0 && s.offset <= made &&",
        "s.offset != 0 &&",
    ),
    (
        "a decoded block is short",
        "kernels/lz4.cuh",
        "if (s.match == 0) return made == size;",
        "if (s.match == 0) return true;",
    ),
    (
        "steps of the encoder do not grow",
        "kernels/lz4.cuh",
        "next += tries / LZ4_PATIENCE;",
        "next += 1;",
    ),
    (
        "matches do not grow backwards",
        "kernels/lz4.cuh",
        "for (; before > 0 && cur > start &&",
        "for (; before > 0 && cur > start && false &&",
    ),
    (
        "a block is compressed that saves less than an eighth",
        "kernels/encode.cu",
        "return n - (n + 7) / 8;",
        "return n;",
    ),
    (
        "a compressed block's sum without its type",
        "kernels/hash.cuh",
        "(u32)xxh3_warp(payload, n, secret) ^ (u32)type * 0x6b9083d9u;",
        "(u32)xxh3_warp(payload, n, secret) ^ (u32)type * 0u;",
    ),
    ("entries of a group have one number", "kernels/block.cuh", "                no++;\n", ""),
    (
        "the last value of a turn is not copied",
        "kernels/pack.cu",
        "turn < count; turn += WARP / each",
        "turn + 1 < count; turn += WARP / each",
    ),
];

/// Runs a part of the chore.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => need().and_then(|()| emulated()).and_then(|()| gpu_kit::rehearse()),
        ["build"] => match build()? {
            Checked::Same => Ok(()),
            Checked::NoCompiler(error) => Err(error),
        },
        ["kit"] => gpu_kit::make(),
        ["kit", "try"] => need().and_then(|()| gpu_kit::rehearse()),
        ["sanitize"] => need().and_then(|()| sanitized("500")),
        ["mutants"] => need().and_then(|()| mutants("")),
        ["mutants", name] => need().and_then(|()| mutants(name)),
        _ => bail!("{USAGE}"),
    }
}

/// What runs before a merge.
pub(crate) fn check() -> Result<()> {
    match need() {
        Ok(()) => emulated()
            .and_then(|()| sanitized("60"))
            .and_then(|()| gpu_kit::rehearse())
            .and_then(|()| compiled()),
        Err(error) if std::env::var_os("LITHIFY_GPU").is_some_and(|v| v == "1") => Err(error),
        Err(error) => {
            eprintln!("note: {error:#};");
            eprintln!("      the kernels of engine-gpu were neither compiled nor run");
            Ok(())
        }
    }
}

/// Holds the image of the kernels against its lock.
fn compiled() -> Result<()> {
    if let Checked::NoCompiler(error) = build()? {
        eprintln!(
            "note: {error:#};\n      what a GPU's compiler makes of the kernels is NOT CHECKED"
        );
    }
    Ok(())
}

/// Installs the compiler if it is missing.
fn need() -> Result<()> {
    if has("g++") { Ok(()) } else { install("g++") }
}

const TESTS: [&str; 8] =
    ["test", "--profile", "sim", "--locked", "-p", "lithify-engine-gpu", "--features", "emu"];

fn emulated() -> Result<()> {
    call(&mut at_root("cargo", &TESTS))
}

/// The test of random cases that devices take, so many, and those of odd inputs, over kernels that are watched by
/// AddressSanitizer and UndefinedBehaviorSanitizer. What a kernel reads or writes outside of the memory of its set,
/// or of an arena, ends the test; within that memory arrays lie side by side, and it sees nothing.
fn sanitized(cases: &str) -> Result<()> {
    let found = Command::new("g++").arg("-print-file-name=libasan.so").output()?;
    let runtime = String::from_utf8(found.stdout)?;
    let runner = format!(
        "target.'cfg(all())'.runner=['env', 'LD_PRELOAD={}', \
         'ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0']",
        runtime.trim()
    );
    let own = ["--config", &runner, "--test", "engine", "--"];
    let args = [
        &TESTS[..],
        &own[..],
        &[
            "odd::",
            "lz4::",
            "hostile::",
            "direct::inputs",
            "conformance::what_devices_take",
            "conformance::lz4",
        ],
    ]
    .concat();
    call(at_root("cargo", &args).env("LITHIFY_GPU_SANITIZE", "1").env("LITHIFY_SEEDS", cases))
}

/// Plants each bug whose name has `name` in it, and runs the tests, which must fail.
fn mutants(name: &str) -> Result<()> {
    let chosen: Vec<_> = MUTANTS.iter().filter(|mutant| mutant.0.contains(name)).collect();
    let (code, seconds) = tests_over(None, BUILD_SECONDS)?;
    if code != Some(0) {
        bail!("the tests of engine-gpu fail without a bug");
    }
    let limit = SECONDS.max(SLOWER * seconds);
    let mut missed = Vec::new();
    for (name, file, from, to) in &chosen {
        let (code, seconds) = tests_over(Some((file, from, to)), limit)?;
        let said = match code {
            Some(0) => "MISSED",
            Some(TIMED_OUT) => "found, as the tests do not end",
            _ => "found",
        };
        println!("{said}: {name} ({seconds} s)");
        if code == Some(0) {
            missed.push(*name);
        }
    }
    if !missed.is_empty() {
        bail!("the tests of engine-gpu do not find: {}", missed.join(", "));
    }
    println!("{0} of {0} bugs found", chosen.len());
    Ok(())
}

/// Runs the tests over a copy of the sources, changed as told, for so many seconds: what they end with, and after how many.
///
/// # Errors
/// If the copy does not compile, or the text is not there once.
fn tests_over(mutant: Option<(&str, &str, &str)>, limit: u64) -> Result<(Option<i32>, u64)> {
    for folder in ["kernels", "emu"] {
        let to = root().join(SOURCES).join(folder);
        fs::create_dir_all(&to)?;
        for entry in root().join("crates/engine-gpu").join(folder).read_dir()? {
            let from = entry?.path();
            let text = fs::read_to_string(&from)?;
            write_if_changed(&to.join(from.file_name().unwrap_or_default()), &text)?;
        }
    }
    if let Some((file, from, to)) = mutant {
        let path = root().join(SOURCES).join(file);
        let text = fs::read_to_string(&path)?;
        if text.matches(from).count() != 1 {
            bail!("`{from}` stands {} times in {file}", text.matches(from).count());
        }
        fs::write(&path, text.replace(from, to))?;
    }
    let sources = root().join(SOURCES);
    let cargo = |seconds: u64, more: &[&str]| {
        // A kernel with a bug may run for ever.
        let seconds = seconds.to_string();
        let limit = [seconds.as_str(), "cargo"];
        let args = [&limit[..], &TESTS[..], &["-q", "--target-dir", TARGET], more].concat();
        let mut command = at_root("timeout", &args);
        command.env("LITHIFY_GPU_SOURCES", &sources).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    call(&mut cargo(BUILD_SECONDS, &["--no-run"])).context("the kernels do not compile")?;
    let finders = ["conformance::", "odd::", "lz4::"];
    let start = Instant::now();
    let ran = cargo(limit, &[&["--test", "engine", "--"], &finders[..]].concat()).status()?;
    Ok((ran.code(), start.elapsed().as_secs()))
}

/// Cargo goes by times: a file that is the same keeps its own.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    Ok(fs::write(path, text)?)
}
