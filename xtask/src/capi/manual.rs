//! The program in `docs/c.md`: compiled as it stands there, and run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::call;

/// What it prints.
const PRINTS: &str = "banana: yellow\nnow: banana=yellow\ntrees: oak=old\nbefore: apple=red\n";

/// With the header in `headers` and `library`; `name` tells the two libraries apart.
pub(super) fn run(place: &Path, name: &str, headers: &Path, library: &Path) -> Result<()> {
    let page = fs::read_to_string(root().join("docs/c.md"))?;
    let (_, program) = page.split_once("```c\n").context("docs/c.md has no program")?;
    let (program, _) = program.split_once("```").context("the program in docs/c.md has no end")?;
    let home = place.join("manual").join(name);
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let (source, binary) = (home.join("program.c"), home.join("program"));
    fs::write(&source, program)?;
    let folder = library.parent().context("a library without a folder")?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(&source).arg("-I").arg(headers);
    gcc.arg(library).arg(format!("-Wl,-rpath,{}", folder.display())).arg("-o").arg(&binary);
    call(&mut gcc)?;
    let output = Command::new(&binary).arg(home.join("fruit")).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said != PRINTS {
        bail!("the program in docs/c.md ({name}): {}\n{said}", output.status);
    }
    Ok(())
}
