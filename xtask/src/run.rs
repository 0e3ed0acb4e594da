//! Commands that a chore runs, and packages that it installs.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, bail};

use crate::repo;

/// A command that starts in the repository's root.
pub(crate) fn at_root(program: &str, args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(repo::root());
    command
}

/// Runs `command` to its end; its output goes where ours goes.
///
/// # Errors
/// If it cannot be started or fails.
pub(crate) fn call(command: &mut Command) -> Result<()> {
    let name = spelled(command);
    let status = command.status().with_context(|| format!("starting `{name}`"))?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(())
}

/// The command as it would be typed.
pub(crate) fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Does `work` for each of `all`, `jobs` at once; the results in order.
///
/// # Errors
/// The first of `work`'s, or that it panicked.
pub(crate) fn each<T: Sync, R: Send>(
    jobs: usize,
    all: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            match all.get(at) {
                Some(one) => done.push((at, work(one))),
                None => return done,
            }
        }
    };
    let mut done: Vec<(usize, Result<R>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(all.len())).map(|_| scope.spawn(some)).collect();
        workers.into_iter().flat_map(|h| h.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    if done.len() < all.len() {
        bail!("a job panicked");
    }
    done.into_iter().map(|(_, result)| result).collect()
}

/// True if `tool` can be started at all.
pub(crate) fn has(tool: &str) -> bool {
    let quiet = || Stdio::null();
    Command::new(tool).stdin(quiet()).stdout(quiet()).stderr(quiet()).status().is_ok()
}

/// Installs a Debian package, as root or through sudo without a password.
///
/// # Errors
/// If there is no apt here, no right to use it, or it fails; the sentence says which.
pub(crate) fn install(package: &str) -> Result<()> {
    eprintln!("installing {package}");
    if !has("apt-get") {
        bail!("this system has no apt-get; install {package} by hand and try again");
    }
    let apt = |args: &[&str]| {
        let mut command = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
        if !is_root() {
            command.args(["-n", "apt-get"]);
        }
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        call(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let install = ["install", "-y", "-q", "--no-install-recommends", package];
    if apt(&install).is_ok() {
        return Ok(());
    }
    // A fresh machine has no package lists yet.
    apt(&["update", "-q"])
        .and_then(|()| apt(&install))
        .with_context(|| format!("install {package} by hand and try again"))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n")
}
