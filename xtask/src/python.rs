//! `cargo xtask python`: builds the Python package in an environment of its own, as a user's `pip` would, and
//! runs its tests and the type checks of its stub.
//!
//! Keeps: nothing outside `target/python` and the package managers' own places is written. The tests run against
//! the wheel as it is installed, from another folder, so that no source lies in the way.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, call, has, install};

const USAGE: &str = "cargo xtask python [--runs N] [--kills N]";
const PACKAGE: &str = "python";
/// Where the environment, the wheel and what cargo builds lie.
const PLACE: &str = "target/python";
/// The oldest Python whose stable interface has buffers.
const OLDEST: (u32, u32) = (3, 11);
/// What builds the wheel, besides what the package's own `test` extra asks for.
const BUILDER: &str = "maturin>=1.9,<2";

/// Random lives beside a dict, and writers killed: in the environment of the tests.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut more: Vec<(&str, String)> = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let variable = match arg.as_str() {
            "--runs" => "LITHIFY_RUNS",
            "--kills" => "LITHIFY_KILLS",
            _ => bail!("{USAGE}"),
        };
        let number: u32 = rest.next().context(USAGE)?.parse().context(USAGE)?;
        more.push((variable, number.to_string()));
    }
    let Some(python) = interpreter() else {
        let (major, minor) = OLDEST;
        eprintln!(
            "skipped: the Python package needs CPython {major}.{minor} or later, which is not here"
        );
        return Ok(());
    };
    lint()?;
    let place = root().join(PLACE);
    let own = environment(&python, &place)?;
    let wheel = wheel(&own, &place)?;
    let pip = ["-m", "pip", "install", "-q", "--force-reinstall", "--no-deps"];
    call(Command::new(&own).args(pip).arg(&wheel))?;
    check(&own, &place, &more)
}

/// The first interpreter that is new enough.
fn interpreter() -> Option<String> {
    let (major, minor) = OLDEST;
    let new = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    let fits = |name: &&str| {
        has(name)
            && Command::new(name).args(["-c", &new]).status().is_ok_and(|status| status.success())
    };
    let names =
        ["python3", "python", "python3.15", "python3.14", "python3.13", "python3.12", "python3.11"];
    names.iter().find(|name| fits(name)).map(|name| (*name).to_owned())
}

fn lint() -> Result<()> {
    let manifest = "python/Cargo.toml";
    call(&mut at_root("cargo", &["fmt", "--manifest-path", manifest, "--check"]))?;
    let args = ["clippy", "-q", "--locked", "--manifest-path", manifest, "--", "-D", "warnings"];
    call(at_root("cargo", &args).env("CARGO_TARGET_DIR", root().join(PLACE).join("cargo")))
}

/// The interpreter of our own environment, which has what builds and tests the package.
fn environment(python: &str, place: &Path) -> Result<PathBuf> {
    let (folder, own) = (place.join("env"), place.join("env/bin/python"));
    if !own.exists() {
        let make = || call(Command::new(python).args(["-m", "venv"]).arg(&folder));
        if make().is_err() {
            // Debian has this module of Python's in a package of its own.
            install("python3-venv")?;
            make()?;
        }
    }
    let wishes = tools().context("python/pyproject.toml")?;
    call(Command::new(&own).args(["-m", "pip", "install", "-q", BUILDER]).args(wishes))?;
    Ok(own)
}

/// The packages of the extra `test`, as `pyproject.toml` lists them on one line.
fn tools() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root().join(PACKAGE).join("pyproject.toml"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("test = ["));
    let line = line.context("no line `test = [..]`")?;
    Ok(line.split('"').skip(1).step_by(2).map(ToOwned::to_owned).collect())
}

fn wheel(own: &Path, place: &Path) -> Result<PathBuf> {
    let wheels = place.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut maturin = Command::new(own);
    maturin.args(["-m", "maturin", "build", "-q", "--release", "--locked", "-i"]).arg(own);
    maturin.arg("-o").arg(&wheels).current_dir(root().join(PACKAGE));
    call(maturin.env("CARGO_TARGET_DIR", place.join("cargo")))?;
    let mut made = std::fs::read_dir(&wheels)?.filter_map(|entry| Some(entry.ok()?.path()));
    made.find(|path| path.extension().is_some_and(|e| e == "whl")).context("no wheel was built")
}

/// The tests, and the stub against the module.
fn check(own: &Path, place: &Path, more: &[(&str, String)]) -> Result<()> {
    let package = root().join(PACKAGE);
    let config = package.join("pyproject.toml");
    let mut tests = Command::new(own);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c"]).arg(&config);
    tests.arg(package.join("tests")).envs(more.iter().map(|(name, n)| (name, n)));
    call(tests.current_dir(place).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    let mut types = Command::new(own);
    types.args(["-m", "mypy", "--strict", "--config-file"]).arg(&config);
    let cache = place.join("mypy");
    types.args(["lithify", "tests", "--cache-dir"]).arg(&cache);
    call(types.current_dir(&package))?;
    let mut stub = Command::new(own);
    stub.args(["-m", "mypy.stubtest", "lithify", "--mypy-config-file"]).arg(&config);
    call(stub.current_dir(place).env("MYPY_CACHE_DIR", &cache))
}
