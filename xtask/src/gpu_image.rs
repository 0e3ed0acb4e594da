//! `cargo xtask gpu build`: the kernels of `engine-gpu`, compiled for GPUs by a pinned compiler, and held against
//! `crates/engine-gpu/image.lock`.
//!
//! Keeps: one source and one compiler make one image. The lock, text in git, has the compiler's packages, the hash of
//! each source and of the image, and what each kernel takes of a GPU, so a review sees what a change of a kernel does.
//! Image and kernels are compared where the machine's C++ compiler, which takes part, is that of the lock.
//! Neither compiler nor image is in git.
//! Leaves to others: taking the image into a build (`build.rs` of `engine-gpu`), and running it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call, spelled};

/// The compiler: packages and their versions.
const COMPILER: [(&str, &str); 5] = [
    ("nvidia-cuda-nvcc", "13.0.88"),
    ("nvidia-cuda-crt", "13.0.88"),
    ("nvidia-nvvm", "13.0.88"),
    ("nvidia-cuda-runtime", "13.0.96"),
    ("nvidia-cuda-cccl", "13.0.85"),
];

/// GPUs that code is made for; all later ones translate that of the last line.
const TARGETS: [&str; 4] = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90,code=sm_90",
    "arch=compute_100,code=sm_100",
    "arch=compute_80,code=compute_80",
];

pub(crate) const KERNELS: &str = "crates/engine-gpu/kernels";
const LOCK: &str = "crates/engine-gpu/image.lock";
const WHEELS: &str = "target/gpu/wheels";
const CUDA: &str = "target/gpu/cuda";
/// Begins the line of a lock that names the machine's C++ compiler.
const HOST: &str = "host g++ ";
pub(crate) const IMAGE: &str = "target/gpu/lithify.fatbin";

/// What is wrong with an image, if something is.
pub(crate) enum Checked {
    /// It is as the lock says.
    Same,
    /// The compiler could not be fetched.
    NoCompiler(anyhow::Error),
}

/// Compiles the kernels, and holds what comes out against the lock; with `REWRITE=1` the lock is written anew.
///
/// # Errors
/// If they do not compile, or the lock says something else.
pub(crate) fn build() -> Result<Checked> {
    if let Err(error) = fetch() {
        return Ok(Checked::NoCompiler(error));
    }
    let now = lock(&compile()?)?;
    let path = root().join(LOCK);
    if std::env::var_os("REWRITE").is_some_and(|v| v == "1") {
        fs::write(&path, now)?;
        return Ok(Checked::Same);
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    let host = |of: &str| of.lines().find(|line| line.starts_with(HOST)).map(str::to_owned);
    if host(&known) != host(&now) {
        eprintln!(
            "note: this is not the C++ compiler of {LOCK}: only the sources are held against it"
        );
    }
    let (known, now) = match host(&known) == host(&now) {
        true => (known, now),
        false => (of_sources(&known), of_sources(&now)),
    };
    let changed: Vec<&str> =
        now.lines().filter(|line| !known.lines().any(|k| k == *line)).collect();
    if known != now {
        bail!(
            "the kernels came out otherwise than {LOCK} says:\n{}\nif that is meant: REWRITE=1 cargo xtask gpu build",
            changed.join("\n")
        );
    }
    look_again()?;
    Ok(Checked::Same)
}

/// Has builds look for the image: their script goes by the time of the lock.
fn look_again() -> Result<()> {
    let lock = fs::File::options().append(true).open(root().join(LOCK))?;
    Ok(lock.set_modified(std::time::SystemTime::now())?)
}

/// The lines of a lock that do not depend on the machine's C++ compiler, whose preprocessor and headers the
/// GPU's compiler uses.
fn of_sources(lock: &str) -> String {
    let kept = |line: &&str| ["compiler ", "source "].iter().any(|of| line.starts_with(of));
    lock.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

/// The machine's C++ compiler.
fn host() -> Result<String> {
    let out = Command::new("g++").arg("-dumpfullversion").output().context("starting `g++`")?;
    Ok(String::from_utf8(out.stdout)?.trim().to_owned())
}

/// Fetches packages by pip, which holds each file against the hash that its index states; the files.
pub(crate) fn download(packages: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
    let wheels = root().join(WHEELS);
    fs::create_dir_all(&wheels)?;
    let wanted: Vec<String> = packages.iter().map(|(name, of)| format!("{name}=={of}")).collect();
    let there = |(name, version): &(&str, &str)| {
        let start = format!("{}-{version}-", name.replace('-', "_"));
        let mut files = wheels.read_dir().into_iter().flatten().flatten();
        files.find(|file| file.file_name().to_string_lossy().starts_with(&start))
    };
    if !packages.iter().all(|package| there(package).is_some()) {
        let pip = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", WHEELS];
        let quiet = ["--disable-pip-version-check"];
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        call(&mut at_root("python3", &[&pip[..], &quiet, &wanted].concat()))
            .with_context(|| format!("{} could not be fetched", wanted.join(", ")))?;
    }
    Ok(packages.iter().filter_map(there).map(|file| file.path()).collect())
}

/// Fetches the compiler and unpacks it.
fn fetch() -> Result<()> {
    let files = download(&COMPILER).context("the compiler of the kernels")?;
    if !nvcc().exists() {
        for file in files {
            let unpack = Command::new("python3")
                .args(["-m", "zipfile", "-e"])
                .args([&file, &root().join(CUDA)])
                .status()?;
            if !unpack.success() {
                bail!("{} does not unpack", file.display());
            }
        }
        for folder in ["bin", "nvvm/bin"] {
            let at = format!("{CUDA}/nvidia/cu13/{folder}");
            call(&mut at_root("chmod", &["-R", "a+x", &at]))?;
        }
    }
    Ok(())
}

fn nvcc() -> PathBuf {
    root().join(CUDA).join("nvidia/cu13/bin/nvcc")
}

/// Makes the image; what the assembler says of the kernels.
fn compile() -> Result<String> {
    let mut nvcc = Command::new(nvcc());
    nvcc.current_dir(root().join(KERNELS)).arg("all.cu").args(["-std=c++17", "-O3", "-fatbin"]);
    nvcc.arg("-I").arg(root().join(CUDA).join("nvidia/cu13/include"));
    nvcc.args(["-Werror", "all-warnings", "--resource-usage", "-o"]).arg(root().join(IMAGE));
    nvcc.args(TARGETS.iter().flat_map(|target| ["-gencode", target]));
    let out = nvcc.stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    if !out.status.success() {
        bail!("`{}`:\n{told}{}", spelled(&nvcc), String::from_utf8_lossy(&out.stdout));
    }
    Ok(told + &String::from_utf8_lossy(&out.stdout))
}

/// The text of the lock.
fn lock(told: &str) -> Result<String> {
    let mut text =
        String::from("# What `cargo xtask gpu build` makes of the kernels, and of what.\n");
    for (name, version) in COMPILER {
        text += &format!("compiler {name} {version}\n");
    }
    text += &format!("{HOST}{}\n", host()?);
    let mut sources: Vec<_> =
        root().join(KERNELS).read_dir()?.flatten().map(|file| file.path()).collect();
    sources.sort();
    for source in &sources {
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("source {name} {}\n", sha256(source)?);
    }
    text += &format!("image {}\n", sha256(&root().join(IMAGE))?);
    // For `build.rs`, which asks for no crate that nothing else does.
    let image = fs::read(root().join(IMAGE))?;
    text += &format!("xxh3 {:016x}\n", twox_hash::XxHash3_64::oneshot(&image));
    text += "# kernel, target, registers, bytes: shared memory, stack, spilled\n";
    for ((target, kernel), [registers, shared, stack, spills]) in usage(told)? {
        text += &format!("kernel {kernel} {target} {registers} {shared} {stack} {spills}\n");
    }
    Ok(text)
}

/// What each kernel takes on each target: registers, bytes of shared memory, of stack, and spilled.
fn usage(told: &str) -> Result<BTreeMap<(String, String), [u64; 4]>> {
    let mut all = BTreeMap::new();
    let mut of = None;
    for line in told.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let mut words = rest.split('\'');
            of = words.next().zip(words.nth(1)).map(|(name, at)| (at.to_owned(), name.to_owned()));
        }
        let Some(of) = &of else { continue };
        let row: &mut [u64; 4] = all.entry(of.clone()).or_default();
        for part in line.split(',').map(|part| part.trim().trim_start_matches("ptxas info    : ")) {
            let number = |text: &str| text.split(' ').find_map(|word| word.parse::<u64>().ok());
            let n = number(part).unwrap_or_default();
            match part {
                p if p.ends_with("registers") => row[0] = n,
                p if p.ends_with("bytes smem") => row[1] = n,
                p if p.ends_with("bytes stack frame") => row[2] = n,
                p if p.contains("bytes spill") => row[3] += n,
                _ => {}
            }
        }
    }
    if all.is_empty() {
        bail!("the compiler says nothing of the kernels:\n{told}");
    }
    Ok(all)
}

fn sha256(path: &Path) -> Result<String> {
    let out = Command::new("sha256sum").arg(path).output().context("starting `sha256sum`")?;
    let told = String::from_utf8(out.stdout)?;
    match told.split(' ').next().filter(|sum| sum.len() == 64) {
        Some(sum) => Ok(sum.to_owned()),
        None => bail!("{} has no sum", path.display()),
    }
}
