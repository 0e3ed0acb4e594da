//! The README's program, as printed there, compiles and does what the README says; its commands, in its order, work.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use lithify::{Db, Settings, WriteBatch};

/// The program, between the marks that the test below looks for.
fn program() -> lithify::Result<()> {
    // README begins
    let db = Db::open("fruit", Settings::default())?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));

    let mut batch = WriteBatch::new(); // all of it or nothing
    batch.put("cherry", "dark red")?;
    batch.delete("banana")?;
    db.write(&batch)?;

    for entry in db.range("b"..) {
        let (key, value) = entry?; // an error ends an iteration; it is never silent
        assert_eq!((&key[..], &value[..]), (&b"cherry"[..], &b"dark red"[..]));
    }
    db.close()
    // README ends
}

#[test]
fn the_program_is_the_one_in_the_readme() {
    let source = include_str!("readme.rs");
    let readme = include_str!("../../../../README.md");
    let between = |text: &str, from: &str, to: &str| {
        let start = text.find(from).expect(from) + from.len();
        let end = start + text[start..].find(to).expect(to);
        let lines: Vec<String> = text[start..end]
            .lines()
            .map(|l| l.trim().to_owned())
            .filter(|l| !l.is_empty())
            .collect();
        lines
    };
    let tested = between(source, "// README begins", "// README ends");
    let printed = between(readme, "fn main() -> lithify::Result<()> {", "\n}\n");
    assert_eq!(tested, printed);

    let scratch = tempfile::tempdir().unwrap();
    std::env::set_current_dir(scratch.path()).unwrap();
    program().unwrap();
    assert!(scratch.path().join("fruit/CURRENT").exists());
}

/// The lines of blocks of commands; what a backslash continues is one line.
fn commands(readme: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for block in readme.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap().replace("\\\n", " ");
        lines.extend(block.lines().filter(|l| !l.is_empty()).map(str::to_owned));
    }
    lines
}

/// What is run in place of a line: the same, but so that it ends, and soon.
fn runnable(line: &str, table: Option<&str>) -> String {
    let line = line.split(" # ").next().unwrap().trim_end();
    if let Some(rest) = line.strip_prefix("cargo run --release -- ") {
        let small = rest.replace("--num 2M", "--num 2k").replace("--num 1M", "--num 2k");
        let small = if small.contains("--num") { small } else { format!("{small} --num 2k") };
        return format!("lithify {small} --touch-memory 0");
    }
    match line {
        "lithify top fruit" => format!("{line} --count 1"),
        "lithify lab --threads 1,4,16" => {
            format!("{line} --policies hybrid --num 20K --memtable 1MiB --file 1MiB")
        }
        "lithify table dump fruit/000012.sst" => {
            format!("lithify table dump {}", table.expect("fruit has a table by then"))
        }
        _ => line.to_owned(),
    }
}

/// A table of the database `dir`.
fn table_of(dir: &Path) -> Option<String> {
    let files = std::fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().path());
    let table = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "sst"))?;
    Some(table.to_str().unwrap().to_owned())
}

/// Where the commands are typed: rows, a directory of RocksDB, a package index of two paragraphs, and the program's
/// directory before all others in the path.
fn world() -> (tempfile::TempDir, String) {
    let world = tempfile::tempdir().unwrap();
    let path = |name: &str| world.path().join(name);
    std::fs::write(path("fruit.tsv"), "name\tcolour\ncherry\tdark red\navocado\tgreen\n").unwrap();
    crate::import::copied("rocksdb-versions", &path("rocks"));
    std::fs::create_dir(path("bin")).unwrap();
    let index =
        "#!/bin/sh\nprintf 'Package: bash\\nVersion: 5.2\\n\\nPackage: dash\\nVersion: 0.5\\n'\n";
    std::fs::write(path("bin/apt-cache"), index).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path("bin/apt-cache"), mode).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_lithify")).parent().unwrap().to_owned();
    let usual = std::env::var("PATH").unwrap();
    let search = format!("{}:{}:{usual}", program.display(), path("bin").display());
    (world, search)
}

/// The first line that `serve` prints, whose end is not waited for.
fn served(dir: &Path) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(["serve", "fruit", "--listen", "127.0.0.1:0"])
        .current_dir(dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// The chores of this workspace that a line starts are chores that there are; they are not run.
fn is_chore(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("cargo xtask ") else { return false };
    let name = rest.split(' ').next().unwrap();
    let chores = include_str!("../../../../xtask/src/main.rs");
    assert!(chores.contains(&format!("\n        \"{name}\" => ")), "{line}: no such chore");
    true
}

#[test]
fn the_commands_of_the_readme_work_in_its_order() {
    let (world, search) = world();
    let mut said = std::collections::BTreeMap::new();
    for line in commands(include_str!("../../../../README.md")) {
        // RocksDB as a peer is built by a chore, and the bench beside it has tests of its own.
        if is_chore(&line) || line.contains("bench compare --workloads fillrandom,readrandom") {
            continue;
        }
        if line.starts_with("lithify serve fruit") {
            assert!(served(world.path()).starts_with("http://127.0.0.1:"), "{line}");
            continue;
        }
        let run = runnable(&line, table_of(&world.path().join("fruit")).as_deref());
        let out = Command::new("sh")
            .args(["-c", &run])
            .current_dir(world.path())
            .env("PATH", &search)
            .env_remove("LITHIFY_DB")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(out.status.success(), "{run}: {}", String::from_utf8_lossy(&out.stderr));
        said.insert(run, String::from_utf8_lossy(&out.stdout).into_owned());
    }
    assert!(said.len() > 25, "the README shows {} commands", said.len());
    let of = |line: &str| said.get(line).unwrap_or_else(|| panic!("{line} is no line of it"));
    assert_eq!(of("lithify get --db fruit apple"), "red\n");
    assert!(of("lithify load --db fruit fruit.tsv").contains("2 rows"));
    let found = of("lithify scan --db fruit --prefix a --limit 10");
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(
        std::fs::read_to_string(world.path().join("fruit.dump")).unwrap().contains("apple\tred")
    );
    assert!(of("lithify verify fruit").contains("all good, 3 keys"));
    assert!(of("lithify top fruit --count 1").contains("no program has it open"));
    assert!(of("lithify compact --settle fruit").contains("and later open"));
    let bash = of("lithify scan --db packages --prefix bash/ --keys-only");
    assert_eq!(bash, "bash/5.2\n");
    for policy in ["hybrid", "bucket-df"] {
        let drawn = world.path().join(format!("jobs-{policy}-1.svg"));
        assert!(std::fs::read_to_string(drawn).unwrap().contains("<svg"), "{policy}");
    }
}
