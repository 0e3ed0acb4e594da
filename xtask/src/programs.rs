//! Programs that cargo builds and a chore then runs itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo::root;
use crate::run::{at_root, spelled};

/// A program that cargo built.
pub(crate) struct Program {
    /// The folder of its package.
    pub(crate) folder: PathBuf,
    /// Its name within the package: of the binary, of the file of tests, or of the library.
    pub(crate) target: String,
    /// True for a program of tests.
    pub(crate) is_test: bool,
    pub(crate) path: PathBuf,
}

impl Program {
    /// Package and target, as a reader looks for them.
    pub(crate) fn name(&self) -> String {
        let folder = self.folder.strip_prefix(root()).unwrap_or(&self.folder);
        format!("{} {}", folder.display(), self.target)
    }

    /// The command that runs it where cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Has cargo build what `args` name.
///
/// # Errors
/// If it does not build; cargo says why.
pub(crate) fn build(args: &[&str]) -> Result<Vec<Program>> {
    let how = ["--locked", "--message-format", "json-render-diagnostics"];
    let mut command = at_root("cargo", &[args, &how].concat());
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("`{}` ended with {}", spelled(&command), output.status);
    }
    let mut built = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let Some(path) = message["executable"].as_str() else { continue };
        let manifest = message["manifest_path"].as_str().context("a program of no package")?;
        built.push(Program {
            folder: Path::new(manifest).parent().context("a manifest in no folder")?.to_owned(),
            target: message["target"]["name"].as_str().unwrap_or_default().to_owned(),
            is_test: message["profile"]["test"].as_bool().unwrap_or_default(),
            path: PathBuf::from(path),
        });
    }
    Ok(built)
}
