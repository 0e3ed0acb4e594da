//! Commands that a chore runs, and packages that it installs.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

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

/// Runs `command` to its end with its output caught: what it wrote to standard output and standard error, in this
/// order, and whether it succeeded. After `most` it is killed, and the output says so: what it did by then
/// tells where it hangs. The output goes to files, so that a child that outlives it keeps no reader waiting.
///
/// # Errors
/// If it cannot be started, or its output not kept.
pub(crate) fn caught(command: &mut Command, most: Duration) -> Result<(String, String, bool)> {
    static CAUGHT: AtomicUsize = AtomicUsize::new(0);
    let name = spelled(command);
    let n = CAUGHT.fetch_add(1, Relaxed);
    let place = |end| std::env::temp_dir().join(format!("xtask-{}-{n}.{end}", std::process::id()));
    let (out, err) = (place("out"), place("err"));
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let mut child = command.spawn().with_context(|| format!("starting `{name}`"))?;
    let end = Instant::now() + most;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            None => break None,
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let text = |path| -> Result<String> {
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        fs::remove_file(path)?;
        Ok(text)
    };
    let (out, mut err) = (text(&out)?, text(&err)?);
    if status.is_none() {
        writeln!(err, "`{name}` had not ended after {} s and was killed", most.as_secs())?;
    }
    Ok((out, err, status.is_some_and(|status| status.success())))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_said_and_how_it_ended_is_kept() {
        let (out, err, well) =
            caught(&mut shell("echo one; echo two >&2"), Duration::from_secs(60)).unwrap();
        assert_eq!((out.as_str(), err.as_str(), well), ("one\n", "two\n", true));
        assert!(!caught(&mut shell("exit 3"), Duration::from_secs(60)).unwrap().2);
    }

    #[test]
    fn a_program_that_hangs_is_killed_and_what_it_said_is_shown() {
        let mut command = shell("echo so far; exec sleep 600");
        let (out, err, well) = caught(&mut command, Duration::from_millis(300)).unwrap();
        assert!(out == "so far\n" && err.contains("was killed") && !well, "{out}{err}");
    }
}
