//! A whole directory that a stranger prepared, on the real file system: whatever names, links and
//! kinds of file are in it, no operation touches anything outside, hangs, panics, or holds memory out of
//! proportion.
//!
//! Keeps: a program is bytes (an image, operations, and what to change before them), so that a
//! finding is a file that can be replayed. One program runs at a time in a process, in a scratch
//! directory of the process's own, in memory where the machine has `/dev/shm`.
//! Leaves to others: counting memory (an allocator that tells `meter`).
//!
//! ```text
//!   byte 0     the image      byte 1    how many operations, 1 to 3
//!   2 each     an operation and its variant
//!   4 each     a change: what, which entry, two figures; changes of bytes have 4 to 32 bytes more
//!
//!   base/hostile    base/target    base/database, base/backups: sound    base/outside: never changed
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a stranger's directory is made around `env`, and a guard works beside it"
)]

mod changes;
mod deeds;
mod guard;
mod images;

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::changes::Change;
use self::deeds::{Deed, Places};
use self::images::{BACKUPS, DATABASE, Image};

/// Longest file that an operation can write, bytes: a sparse file that is copied must not fill the
/// machine's memory.
const FILE_MAX: u64 = 64 << 20;
/// Most changes of one program.
const CHANGES_MAX: usize = 12;

/// How a scratch directory begins; the rest is the process.
const BASE: &str = "lithify-directory-";

/// Runs the program that `bytes` are.
///
/// # Panics
/// If an operation did what none may do.
pub fn run(bytes: &[u8]) {
    let program = Program::parse(bytes);
    if let Err(wrong) = scene(|scene| scene.perform(&program)) {
        panic!("{wrong}\nin {program}");
    }
}

/// What each operation says to each directory that nothing was done to: `database Verify: fine`.
pub fn unharmed() -> Vec<String> {
    let mut said = Vec::new();
    for image in 0..images::COUNT as u8 {
        for deed in Deed::ALL {
            let program =
                Program { image, deeds: vec![(deed, 0)], changes: Vec::new(), bytes: Vec::new() };
            let (name, results) = scene(|scene| {
                let name = scene.images[usize::from(image)].name;
                (name, scene.perform(&program).expect("it is sound"))
            });
            let result = results.into_iter().next().map(|result| match result {
                Ok(()) => "fine".to_owned(),
                Err(error) => error.to_string(),
            });
            said.push(format!("{name} {deed:?}: {}", result.unwrap_or_default()));
        }
    }
    said
}

/// Runs `call` under the guard, with a directory of one link and the tree outside that it leads to; says
/// what was wrong. A call longer than `longest` ends the process, if this is the process's first.
///
/// # Errors
/// What `call` did that no operation may do.
pub fn guarded(longest: Duration, call: impl FnOnce(&Path, &Path)) -> Result<(), String> {
    scene(|scene| {
        let (hostile, outside) = (scene.places.hostile.clone(), scene.outside());
        let made = fs::create_dir(&hostile)
            .and_then(|()| std::os::unix::fs::symlink(outside.join("file"), hostile.join("link")));
        made.map_err(|e| e.to_string())?;
        let call = || call(&hostile, &outside);
        let result = guard::watch("a test", longest, &outside, &[&hostile], call);
        scene.clear();
        // What a test changed outside is made new.
        scene.make_outside();
        result
    })
}

/// Takes this process's scratch directory away.
pub fn clean_up() {
    let mut scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scene) = scene.take() {
        let _ = fs::remove_dir_all(&scene.base);
    }
}

struct Program {
    image: u8,
    deeds: Vec<(Deed, u8)>,
    changes: Vec<Change>,
    bytes: Vec<u8>,
}

impl Program {
    fn parse(bytes: &[u8]) -> Program {
        let mut rest = bytes;
        let mut next = || {
            let (first, after) = rest.split_first().unwrap_or((&0, &[]));
            rest = after;
            *first
        };
        let (image, count) = (next() % images::COUNT as u8, 1 + next() % 3);
        let deeds = (0..count)
            .map(|_| (Deed::ALL[usize::from(next()) % Deed::ALL.len()], next()))
            .collect();
        let changes = std::iter::from_fn(|| Change::next(&mut rest)).take(CHANGES_MAX).collect();
        Program { image, deeds, changes, bytes: bytes.to_vec() }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the program {:02x?}", self.bytes)?;
        writeln!(f, "  image {}", self.image)?;
        self.changes.iter().try_for_each(|change| writeln!(f, "  {change}"))?;
        self.deeds.iter().try_for_each(|(deed, how)| writeln!(f, "  then {deed:?} ({how})"))
    }
}

/// What a process has for all its programs.
struct Scene {
    base: PathBuf,
    images: Vec<Image>,
    places: Places,
    /// What is outside when nothing was done to it.
    sound: guard::View,
}

static SCENE: Mutex<Option<Scene>> = Mutex::new(None);

/// Calls `call` with the scene, which is made if it is not there.
fn scene<T>(call: impl FnOnce(&mut Scene) -> T) -> T {
    let mut scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    call(scene.get_or_insert_with(Scene::make))
}

/// Where scratch directories are made.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let writable = rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok();
    if writable { memory.to_owned() } else { std::env::temp_dir() }
}

/// Removes the scratch directories of processes that are no more.
fn sweep(scratch: &Path) -> io::Result<()> {
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(BASE).filter(|p| p.parse::<u32>().is_ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another process may be at it, or own it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Lets this process write files of that length, or of any if `None`.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.map_or(maximum, |b| Some(maximum.map_or(b, |m| m.min(b))));
    // Refused only beyond the maximum.
    let _ = setrlimit(Resource::Fsize, Rlimit { current, maximum });
}

impl Scene {
    fn make() -> Scene {
        // Then writing beyond the limit is an error, and no end of the process.
        let noticed = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), noticed)
            .expect("signals can be caught");
        let scratch = scratch();
        sweep(&scratch).expect("a scratch directory");
        let base = scratch.join(format!("{BASE}{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir(&base).expect("a scratch directory");
        let images = images::make(&base.join("made"));
        let [hostile, target, database, backups] =
            ["hostile", "target", "database", "backups"].map(|name| base.join(name));
        let places = Places { hostile, target, database, backups };
        let mut scene = Scene { base, images, places, sound: guard::View::new() };
        scene.make_outside();
        scene
    }

    fn outside(&self) -> PathBuf {
        self.base.join("outside")
    }

    fn make_outside(&mut self) {
        let outside = self.outside();
        let _ = fs::remove_dir_all(&outside);
        let made = guard::make_outside(&outside, &self.images[DATABASE].files);
        let seen = made.and_then(|()| guard::view(&outside));
        self.sound = seen.expect("a scratch directory");
    }

    /// Makes the directory and does what is to be done; what each operation gave, or what was wrong.
    fn perform(&mut self, program: &Program) -> Result<Vec<lithify::Result<()>>, String> {
        let prepared = self.prepare(program);
        let done = prepared.and_then(|()| self.carry_out(program));
        self.clear();
        if done.is_err() {
            self.make_outside();
        }
        done
    }

    fn prepare(&self, program: &Program) -> Result<(), String> {
        // A program that failed left something.
        self.clear();
        let image = &self.images[usize::from(program.image)];
        let needs = |of: fn((bool, bool)) -> bool| program.deeds.iter().any(|d| of(d.0.needs()));
        let write = || -> io::Result<()> {
            if needs(|(database, _)| database) {
                self.images[DATABASE].write(&self.places.database)?;
            }
            if needs(|(_, backups)| backups) {
                self.images[BACKUPS].write(&self.places.backups)?;
            }
            image.write(&self.places.hostile)
        };
        write().map_err(|e| format!("a sound directory can't be written: {e}"))?;
        limit_files(None);
        for change in &program.changes {
            // What the system refuses is not done.
            let _ = change.make(&self.places.hostile, image, &self.outside());
        }
        limit_files(Some(FILE_MAX));
        // The guard compares with what is there from here on.
        match guard::view(&self.outside()).map(|now| guard::difference_but_names(&self.sound, &now))
        {
            Ok(None) => Ok(()),
            other => Err(format!("a change was made outside: {other:?}")),
        }
    }

    fn carry_out(&self, program: &Program) -> Result<Vec<lithify::Result<()>>, String> {
        let Places { hostile, target, database, backups } = &self.places;
        let dirs: [&Path; 4] = [hostile, target, database, backups];
        let mut results = Vec::new();
        for &(deed, how) in &program.deeds {
            // A target must be absent.
            remove(target);
            let doing = format!("{deed:?} in {program}");
            let call = || deeds::carry_out(deed, how, &self.places);
            let result = guard::watch(&doing, guard::LONGEST, &self.outside(), &dirs, call);
            results.push(result.map_err(|wrong| format!("{deed:?}: {wrong}"))?);
            if let Some(link) = self.link_among_ours() {
                return Err(format!("{deed:?}: {} is a link", link.display()));
            }
        }
        Ok(results)
    }

    /// A copy that depends on its source: there are no symbolic links in what we make.
    fn link_among_ours(&self) -> Option<PathBuf> {
        let ours = [&self.places.target, &self.places.database, &self.places.backups];
        let all = ours.iter().flat_map(|dir| guard::walk(dir).unwrap_or_default());
        all.into_iter().find(|path| path.is_symlink())
    }

    /// Takes away what a program left.
    fn clear(&self) {
        let Places { hostile, target, database, backups } = &self.places;
        [hostile, target, database, backups].iter().for_each(|dir| remove(dir));
    }
}

/// Removes a directory, whatever its modes are.
fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {}
        _ => return,
    }
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        let _ = fs::set_permissions(&dir, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    fs::remove_dir_all(dir).expect("what a program left can be removed");
}
