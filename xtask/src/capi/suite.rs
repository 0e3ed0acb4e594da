//! The tests of the Rust binding of RocksDB, unchanged, against our library: what each of them gives is held
//! against `tests/suite.txt`, name by name.
//!
//! Keeps: nothing of the binding is in this repository. Its version is the one that the peer's lock file pins,
//! cargo fetches it, and a copy is built in the target folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::peers;
use crate::repo::root;
use crate::run::call;

const BINDING: &str = "rocksdb";
const SYSTEM: &str = "librocksdb-sys";
/// The binding's tests of its own parts, which are in no file of `tests`.
const LIBRARY: &str = "lib";
const PASS: &str = "pass";

/// Runs the suite on the library that lies in `place`; with `write`, the outcomes become the list, and
/// reasons that it had stay.
pub(super) fn run(place: &Path, room: &Path, write: bool) -> Result<()> {
    let Some(clang) = peers::libclang() else {
        eprintln!("skipped: the binding's tests need libclang (`LIBCLANG_PATH`, or libclang-dev)");
        return Ok(());
    };
    let Some(packages) = packages()? else {
        eprintln!("skipped: cargo cannot fetch the binding");
        return Ok(());
    };
    // Cargo's folder of a package has its version in its name, so another version is another copy.
    let version = packages.binding.file_name().context("the binding has no folder")?;
    let home = place.join("suite").join(version);
    lay_out(&packages, &home)?;
    let outcomes = outcomes(&packages, &home, place, &clang)?;
    let list = room.join("tests/suite.txt");
    let listed = read(&fs::read_to_string(&list).unwrap_or_default())?;
    let passed = outcomes.values().filter(|passed| **passed).count();
    eprintln!("{passed} of {} tests of the binding pass", outcomes.len());
    if write {
        return Ok(fs::write(&list, written(&outcomes, &listed))?);
    }
    compare(&outcomes, &listed)
}

/// The folders of the binding and of its system crate in cargo's cache.
struct Packages {
    binding: PathBuf,
    system: PathBuf,
}

/// `None` if they are not here and cannot be fetched.
fn packages() -> Result<Option<Packages>> {
    let manifest = root().join("peers/rocksdb/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let output = cargo.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let all: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = |name: &str| {
        let packages = all["packages"].as_array().context("cargo lists no packages")?;
        let found = packages.iter().find(|package| package["name"] == name);
        let manifest = found.and_then(|package| package["manifest_path"].as_str());
        let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
        folder.map(Path::to_owned).with_context(|| format!("the peer does not depend on {name}"))
    };
    Ok(Some(Packages { binding: folder(BINDING)?, system: folder(SYSTEM)? }))
}

/// A workspace around a copy of the binding, which is not touched.
fn lay_out(packages: &Packages, home: &Path) -> Result<()> {
    fs::create_dir_all(home)?;
    let copy = home.join(BINDING);
    if !copy.exists() {
        call(Command::new("cp").arg("-r").arg(&packages.binding).arg(&copy))?;
        fs::copy(copy.join("Cargo.lock"), home.join("Cargo.lock"))?;
    }
    let workspace = format!("[workspace]\nmembers = [\"{BINDING}\"]\nresolver = \"2\"\n");
    Ok(fs::write(home.join("Cargo.toml"), workspace)?)
}

/// Each test as `program::name` and whether it passed. A program that does not link has one line.
fn outcomes(
    packages: &Packages,
    home: &Path,
    place: &Path,
    clang: &Path,
) -> Result<BTreeMap<String, bool>> {
    let mut all = BTreeMap::new();
    let mut programs: Vec<String> = Vec::new();
    for entry in fs::read_dir(home.join(BINDING).join("tests"))? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        programs.extend(file.strip_suffix(".rs").map(str::to_owned));
    }
    programs.push(LIBRARY.to_owned());
    programs.sort_unstable();
    let headers = compiler_headers()?;
    let run = |program: &str, of: &[&str]| {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-default-features", "--features", "bindgen-runtime"]);
        cargo.arg("--no-fail-fast").args(match program {
            LIBRARY => vec!["--lib"],
            program => vec!["--test", program],
        });
        cargo.arg("--").args(of).current_dir(home);
        cargo.env("ROCKSDB_LIB_DIR", place.join("compat")).env("LIBCLANG_PATH", clang);
        cargo.env("ROCKSDB_INCLUDE_DIR", packages.system.join("rocksdb/include"));
        cargo.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{headers}"));
        cargo.env("LD_LIBRARY_PATH", place).env("CARGO_TARGET_DIR", home.join("target"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("RUSTFLAGS").output()
    };
    for program in programs {
        let output = run(&program, &[])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut ran = results(&text);
        if !text.contains("running ") {
            let said = String::from_utf8_lossy(&output.stderr);
            let missing = missing(&said);
            if missing.is_empty() {
                bail!("{program} did not build, and not for want of a function:\n{said}");
            }
            eprintln!("{program} does not link: {}", missing.join(", "));
            all.insert(format!("{program}::(link)"), false);
        } else if !text.contains("test result: ") {
            // One of its tests took the program down: each by itself tells which.
            let list = run(&program, &["--list"])?.stdout;
            let list = String::from_utf8_lossy(&list).into_owned();
            let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
            ran = names
                .map(|name| {
                    let name = name.split(' ').next().unwrap_or_default();
                    let passed = run(&program, &["--exact", name])?.status.success();
                    Ok((name.to_owned(), passed))
                })
                .collect::<Result<_>>()?;
        }
        all.extend(ran.into_iter().map(|(name, passed)| (format!("{program}::{name}"), passed)));
    }
    Ok(all)
}

/// Where the C compiler has `stddef.h`, which a libclang without its headers lacks.
fn compiler_headers() -> Result<String> {
    let output = Command::new("gcc").arg("-print-file-name=include").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The lines `test NAME ... ok` or another outcome; what a test prints may stand between.
fn results(text: &str) -> Vec<(String, bool)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    lines
        .filter(|(name, said)| *name != "result:" && !said.starts_with("ignored"))
        .map(|(name, said)| {
            let name = name.split(' ').next().unwrap_or_default();
            (name.to_owned(), said.ends_with("ok"))
        })
        .collect()
}

/// The functions that a linker found nowhere.
fn missing(said: &str) -> Vec<String> {
    let parts = said.split("undefined reference to `").chain(said.split("undefined symbol: "));
    let names = parts.filter(|part| part.starts_with("rocksdb_"));
    let mut names: Vec<String> = names
        .map(|part| part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The list: `NAME: pass` or `NAME: reason`, one a line.
fn read(text: &str) -> Result<BTreeMap<String, String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, said) =
                line.split_once(": ").with_context(|| format!("suite.txt: `{line}`"))?;
            Ok((name.to_owned(), said.to_owned()))
        })
        .collect()
}

fn written(outcomes: &BTreeMap<String, bool>, listed: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "# The tests of the Rust binding: `pass`, or why not. `cargo xtask capi suite` holds it to what they give.\n",
    );
    for (name, passed) in outcomes {
        let known = listed.get(name).filter(|said| *said != PASS);
        let said = if *passed { PASS } else { known.map_or("no reason yet", String::as_str) };
        let _ = writeln!(text, "{name}: {said}");
    }
    text
}

fn compare(outcomes: &BTreeMap<String, bool>, listed: &BTreeMap<String, String>) -> Result<()> {
    let mut wrong = Vec::new();
    for (name, passed) in outcomes {
        match listed.get(name) {
            None => wrong.push(format!("{name} is not in the list")),
            Some(said) if (said == PASS) != *passed => {
                wrong.push(format!("{name}: passed is {passed}, and the list says `{said}`"));
            }
            Some(_) => {}
        }
    }
    let gone = listed.keys().filter(|name| !outcomes.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name} is in the list and did not run")));
    match wrong.is_empty() {
        true => Ok(()),
        false => bail!("crates/capi/tests/suite.txt and the tests differ:\n{}", wrong.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_and_held_against_the_list() {
        let said = "test a ... ok\ntest b - should panic ... ok\ntest c ... FAILED\n\
                    test d ... ignored\ntest result: FAILED. 2 passed\n";
        let ran: BTreeMap<String, bool> = results(said).into_iter().collect();
        assert_eq!(
            ran.iter().map(|(n, p)| (n.as_str(), *p)).collect::<Vec<_>>(),
            [("a", true), ("b", true), ("c", false)]
        );
        let listed = read("# head\na: pass\nb: pass\nc: no such thing: here\n").unwrap();
        compare(&ran, &listed).unwrap();
        assert_eq!(read(&written(&ran, &listed)).unwrap(), listed);
        for other in ["a: pass\nb: pass\nc: pass\n", "a: x\nb: pass\nc: x\n", "a: pass\nb: pass\n"]
        {
            assert!(compare(&ran, &read(other).unwrap()).is_err(), "{other}");
        }
        assert!(compare(&ran, &read("a: pass\nb: pass\nc: x\nd: pass\n").unwrap()).is_err());
    }

    #[test]
    fn a_linker_names_what_is_missing() {
        let said = "x: undefined reference to `rocksdb_b'\nundefined symbol: rocksdb_a\n\
                    y: undefined reference to `rocksdb_b'\nundefined reference to `other'";
        assert_eq!(missing(said), ["rocksdb_a", "rocksdb_b"]);
    }
}
