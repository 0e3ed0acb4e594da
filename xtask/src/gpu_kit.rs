//! `cargo xtask gpu kit`: what is carried to a machine with a GPU, so that one command there checks and measures it in
//! under ten minutes, without Rust: `target/gpu/kit/run OUT`. `kit try` runs the same steps here, on the emulator.
//!
//! Keeps: the kit has a program that any glibc from 2.34 on runs, the image of `image.lock`, the sources that it was
//! made of, and what was predicted before. It stays under 50 MB, so that it is copied in a moment.
//! Leaves to others: the steps (`crates/gpu-kit`).

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::gpu_image::{Checked, IMAGE, KERNELS, build, download};
use crate::repo::root;
use crate::run::{at_root, call};

const KIT: &str = "target/gpu/kit";
const PREDICTIONS: &str = "crates/gpu-kit/predictions.toml";
/// NVIDIA's sanitizer.
const SANITIZER: (&str, &str) = ("nvidia-cuda-sanitizer-api", "13.0.85");
/// Most bytes of a kit.
const MOST: u64 = 50 << 20;
/// The oldest C library that the program may need.
const GLIBC: (u32, u32) = (2, 34);

const RUN: &str = "#!/bin/sh
# Checks and measures the GPU of this machine, in under ten minutes: kit/run OUT [gpu-check's flags]
set -eu
[ $# -ge 1 ] || { echo 'usage: kit/run OUT' >&2; exit 2; }
kit=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd)
exec \"$kit/gpu-check\" run \"$@\" --image \"$kit/lithify.fatbin\"
";

/// Makes the kit.
pub(crate) fn make() -> Result<()> {
    if let Checked::NoCompiler(error) = build()? {
        return Err(error.context("a kit without an image is of no use"));
    }
    call(&mut at_root(
        "cargo",
        &["build", "--release", "--locked", "-p", "lithify-gpu-kit", "--bin", "gpu-check"],
    ))?;
    let kit = root().join(KIT);
    if kit.exists() {
        fs::remove_dir_all(&kit)?;
    }
    fs::create_dir_all(kit.join("kernels"))?;
    let program = kit.join("gpu-check");
    fs::copy(root().join("target/release/gpu-check"), &program)?;
    call(Command::new("strip").arg(&program))?;
    let needs = glibc(&program)?;
    if needs > GLIBC {
        bail!(
            "gpu-check needs glibc {}.{}, and {}.{} is promised",
            needs.0,
            needs.1,
            GLIBC.0,
            GLIBC.1
        );
    }
    fs::copy(root().join(IMAGE), kit.join("lithify.fatbin"))?;
    fs::copy(root().join(PREDICTIONS), kit.join("predictions.toml"))?;
    for file in root().join(KERNELS).read_dir()? {
        let file = file?;
        fs::copy(file.path(), kit.join("kernels").join(file.file_name()))?;
    }
    fs::write(kit.join("run"), RUN)?;
    call(Command::new("chmod").arg("a+x").arg(kit.join("run")))?;
    if let Err(error) = sanitizer(&kit) {
        eprintln!(
            "note: {error:#}; the kit has no sanitizer, and its step 3 takes one in the path"
        );
    }
    let bytes = size(&kit)?;
    if bytes > MOST {
        bail!("the kit has {bytes} bytes, and {MOST} are promised");
    }
    println!("{KIT}: {} MB, glibc {}.{}; run it as {KIT}/run OUT", bytes >> 20, needs.0, needs.1);
    Ok(())
}

/// Runs all steps of the kit on the emulator, with small sizes; and for a GPU that is not there, where each step says why
/// it could not run.
pub(crate) fn rehearse() -> Result<()> {
    let told = tried("target/gpu/tried", &["--emulator", "--quick"])?;
    let says = |step: &Value| !is_empty(&step["figures"]) || step["not_run"].is_string();
    sound(&told, "emulator", says).context("the kit on the emulator")?;
    let told = tried("target/gpu/tried-without", &["--quick", "--gpu", "1000000"])?;
    let says = |step: &Value| is_empty(&step["figures"]) && step["not_run"].is_string();
    sound(&told, "gpu", says).context("the kit without a GPU")
}

/// Runs the steps, with `flags`; the results.
fn tried(out: &str, flags: &[&str]) -> Result<Value> {
    let out = root().join(out);
    let features = ["-p", "lithify-gpu-kit", "--features", "emu", "--bin", "gpu-check"];
    let cargo = ["run", "-q", "--profile", "sim", "--locked"];
    let mut command = at_root("cargo", &[&cargo[..], &features, &["--", "run"]].concat());
    call(command.arg(&out).args(flags))?;
    Ok(serde_json::from_str(&fs::read_to_string(out.join("results.json"))?)?)
}

fn is_empty(of: &Value) -> bool {
    of.as_array().is_none_or(Vec::is_empty)
}

/// Whether no step of ten failed, and each says what it should; and the results say whose they are.
fn sound(told: &Value, device: &str, says: impl Fn(&Value) -> bool) -> Result<()> {
    let steps = told["steps"].as_array().context("results without steps")?;
    let sound = steps.iter().filter(|step| step["failed"].is_null() && says(step)).count();
    if (sound, steps.len()) != (10, 10) {
        bail!("{sound} of {} steps say what they found, and ten should", steps.len());
    }
    if told["device"] != device {
        bail!("the results do not say whose they are");
    }
    Ok(())
}

/// The newest version of the C library that a program asks for.
fn glibc(program: &Path) -> Result<(u32, u32)> {
    let out =
        Command::new("objdump").arg("-T").arg(program).output().context("starting `objdump`")?;
    let told = String::from_utf8_lossy(&out.stdout).into_owned();
    let version = |part: &str| -> Option<(u32, u32)> {
        let mut of = part.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((of.next()?.ok()?, of.next()?.ok()?))
    };
    let all = told.split("GLIBC_").skip(1).filter_map(version);
    all.max().context("the program asks for no C library")
}

/// Puts NVIDIA's sanitizer beside the program.
fn sanitizer(kit: &Path) -> Result<()> {
    let wheel = download(&[SANITIZER])?;
    let unpacked = root().join("target/gpu/sanitizer");
    for file in wheel {
        let mut unpack = Command::new("python3");
        call(unpack.args(["-m", "zipfile", "-e"]).arg(&file).arg(&unpacked))?;
    }
    let found = find(&unpacked, "compute-sanitizer")?.context("the wheel has no sanitizer")?;
    let from = found.parent().context("it lies in a folder")?;
    call(Command::new("cp").arg("-r").arg(from).arg(kit.join("sanitizer")))?;
    call(Command::new("chmod").args(["-R", "a+rx"]).arg(kit.join("sanitizer")))
}

/// A file of that name beneath a folder.
fn find(folder: &Path, name: &str) -> Result<Option<std::path::PathBuf>> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name)? {
                return Ok(Some(found));
            }
        } else if path.file_name().is_some_and(|of| of == name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in folder.read_dir()? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        bytes += if is_folder { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
