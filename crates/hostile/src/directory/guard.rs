//! What no operation on a hostile directory may do: touch anything outside of it, hold memory out of
//! proportion, take longer than ten seconds, or panic.
//!
//! Keeps: the tree outside is made once and its times lie in the past, so whatever is written there
//! shows in a time; names, contents, modes and inodes are compared, too. A call that hangs is told by
//! a thread that watches it, which ends the process: there is no other way out of a blocked call.
//! Leaves to others: what is done (`deeds`), and to which directory (`changes`).

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::meter;

/// Longest that one call may take.
pub(super) const LONGEST: Duration = Duration::from_secs(10);
/// Memory that any call may hold, bytes; more only in proportion to what lies on the disk.
const MEMORY: u64 = 64 << 20;
/// Bytes of memory per byte on the disk beyond that.
const PER_DISK_BYTE: u64 = 4;
/// The sentinels' last change, seconds since 1970.
const LONG_AGO: u64 = 1_000_000_000;
/// How often the watching thread looks.
const TICK: Duration = Duration::from_millis(50);

/// One name outside, as `lstat` and reading show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    inode: u64,
    mode: u32,
    links: u64,
    len: u64,
    changed: (i64, i64),
    content: Vec<u8>,
}

impl Seen {
    /// What is different.
    fn against(&self, new: &Seen) -> String {
        let number = |what: &str, old: u64, new: u64| {
            (old != new).then(|| format!("its {what} was {old} and is {new}"))
        };
        let content = self.content != new.content;
        let text = |bytes: &[u8]| bytes[..bytes.len().min(60)].escape_ascii().to_string();
        let all = [
            number("inode", self.inode, new.inode),
            number("mode", self.mode.into(), new.mode.into()),
            number("names", self.links, new.links),
            number("length", self.len, new.len),
            (self.changed != new.changed).then(|| "it was written to".to_owned()),
            content.then(|| format!("`{}` is now `{}`", text(&self.content), text(&new.content))),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// All names outside.
pub(super) type View = BTreeMap<PathBuf, Seen>;

/// Makes the tree outside: files, one of them secret, directories, a database, a link.
pub(super) fn make_outside(at: &Path, database: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
    for dir in ["", "empty", "directory", "database", "private"] {
        fs::create_dir_all(at.join(dir))?;
    }
    fs::write(at.join("file"), "what a sentinel holds\n")?;
    fs::write(at.join("secret"), "not to be read by others\n")?;
    fs::write(at.join("directory/000012.sst"), "looks like a table\n")?;
    fs::write(at.join("directory/1"), "looks like a list\n")?;
    fs::set_permissions(at.join("secret"), Permissions::from_mode(0o600))?;
    symlink("file", at.join("link"))?;
    for (path, bytes) in database {
        fs::write(at.join("database").join(path), bytes)?;
    }
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(LONG_AGO);
    let mut all = vec![at.to_owned()];
    all.extend(walk(at)?);
    for path in all {
        if !fs::symlink_metadata(&path)?.is_symlink() {
            File::open(&path)?.set_modified(past)?;
        }
    }
    Ok(())
}

/// Every name below `at`, links not followed, in order. What can't be listed has no names.
pub(super) fn walk(at: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![at.to_owned()]);
    while let Some(dir) = left.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// What is outside now.
pub(super) fn view(outside: &Path) -> io::Result<View> {
    let mut seen = View::new();
    let mut all = vec![outside.to_owned()];
    all.extend(walk(outside)?);
    for path in all {
        let stat = fs::symlink_metadata(&path)?;
        let content = if stat.is_file() { fs::read(&path)? } else { Vec::new() };
        let changed = (stat.mtime(), stat.mtime_nsec());
        let (inode, mode, links) = (stat.ino(), stat.mode(), stat.nlink());
        seen.insert(path, Seen { inode, mode, links, len: stat.size(), changed, content });
    }
    Ok(seen)
}

/// The first difference of what is outside. A file that the directory has a second name for may lose
/// that name, and an operation that takes tables over by their names may give it another.
pub(super) fn difference(before: &View, after: &View) -> Option<String> {
    first_difference(before, after, |old| old.mode & 0o170_000 == 0o100_000 && old.links > 1)
}

/// The same, where any file may get more names.
pub(super) fn difference_but_names(before: &View, after: &View) -> Option<String> {
    first_difference(before, after, |_| true)
}

fn first_difference(
    before: &View,
    after: &View,
    may_have_names: fn(&Seen) -> bool,
) -> Option<String> {
    if let Some(path) = after.keys().find(|path| !before.contains_key(*path)) {
        return Some(format!("{} was made", path.display()));
    }
    for (path, old) in before {
        let Some(new) = after.get(path) else {
            return Some(format!("{} is gone", path.display()));
        };
        let links = if may_have_names(old) { old.links } else { new.links };
        if *old != (Seen { links, ..new.clone() }) {
            return Some(format!("{}: {}", path.display(), old.against(new)));
        }
    }
    None
}

/// Bytes that `dirs` take on the disk.
pub(super) fn on_disk(dirs: &[&Path]) -> u64 {
    let of = |path: PathBuf| fs::symlink_metadata(path).map_or(0, |stat| stat.blocks() * 512);
    dirs.iter().flat_map(|dir| walk(dir).unwrap_or_default()).map(of).sum()
}

/// What memory a call may hold whose directories take `disk` bytes.
fn allowed(disk: u64) -> u64 {
    MEMORY.max(PER_DISK_BYTE.saturating_mul(disk))
}

/// Since when a call runs, milliseconds of `since_start`; 0 = none does.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// A thread panicked, perhaps one whose panics are caught.
static PANICKED: AtomicBool = AtomicBool::new(false);
/// What runs, for the watchdog that must tell of it.
static DOING: Mutex<String> = Mutex::new(String::new());

fn doing() -> String {
    DOING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn since_start() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// Starts watching this process.
fn install(longest: Duration) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, SeqCst);
            // A guard's own complaint says it already; a lock that is held is no reason to hang.
            if let Ok(doing) = DOING.try_lock() {
                eprintln!("{}", *doing);
            }
            before(panic);
        }));
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(TICK);
                let began = BEGAN.load(SeqCst);
                let taken = since_start().saturating_sub(began);
                if began != 0 && taken > longest.as_millis() as u64 {
                    eprintln!("after {taken} ms it still runs:\n{}", doing());
                    std::process::abort();
                }
            }
        });
    });
}

/// Takes the mark of a running call away, also when it panics.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        BEGAN.store(0, SeqCst);
    }
}

/// Runs `call` on the directories `dirs` beside the tree `outside`; what it gave, or what it did that
/// it must not. The first call of the process says how long is too long for all.
pub(super) fn watch<T>(
    doing: &str,
    longest: Duration,
    outside: &Path,
    dirs: &[&Path],
    call: impl FnOnce() -> T,
) -> Result<T, String> {
    install(longest);
    let failed = |e: io::Error| format!("the tree outside does not read: {e}");
    let before = view(outside).map_err(failed)?;
    let disk = on_disk(dirs);
    doing.clone_into(&mut DOING.lock().unwrap_or_else(PoisonError::into_inner));
    PANICKED.store(false, SeqCst);
    let held = meter::mark();
    BEGAN.store(since_start(), SeqCst);
    let running = Running;
    let result = call();
    drop(running);
    let most = meter::most().saturating_sub(held) as u64;
    if PANICKED.load(SeqCst) {
        return Err("a thread panicked".to_owned());
    }
    if let Some(difference) = difference(&before, &view(outside).map_err(failed)?) {
        return Err(difference);
    }
    let limit = allowed(disk.max(on_disk(dirs)));
    if most > limit {
        return Err(format!("{most} bytes of memory were held, {limit} are allowed"));
    }
    Ok(result)
}
