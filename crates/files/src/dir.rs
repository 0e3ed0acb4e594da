//! A database directory: names, and the few files that are rewritten whole.
//!
//! Keeps: a name is ours only if it is spelled exactly as we would spell it, so a foreign file is
//! never taken for one of ours. Only regular files are; a symbolic link, a FIFO or a device under
//! such a name is foreign, and nothing is done through it once the directory is held ([`Dir::hold`]),
//! as is everything that reads or changes one. A small file is replaced by *temp file, sync, rename,
//! directory sync*, so that at any crash it has its old content or its new content; the temp file is
//! made anew, because what has its name may be another name of a file elsewhere.
//! Leaves to others: what tables, logs and manifests contain; which files are still needed
//! (`store`).
//!
//! The pointer protocol, as the crash tests check it:
//! ```text
//!   write 000012.dbtmp "MANIFEST-000012\n"     crash: CURRENT is old, the temp file an orphan
//!   sync  000012.dbtmp                         crash: the same
//!   rename 000012.dbtmp -> CURRENT             crash: old or new, both complete
//!   sync directory                             now, and only now, the old manifest may go
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Result, memory, shown_path};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    DirEnt, EntryKind, FileRef, FsRef, IoError, IoResult, LockGuard, OpenOpts, Random,
    read_full_at, write_all_at,
};
pub use lithify_journal::files::FileName;
use lithify_journal::files::{current_content, parse_current};

mod places;
mod sparse;

pub use places::{Deed, FoundTable, NAME_DIRS, Owner, TableDir};
pub use sparse::{Allowance, Sparse};

/// Largest CURRENT or IDENTITY that is read: both are one short line.
const LINE_MAX: u64 = 4 << 10;

/// What file systems put into their topmost directory: a newly mounted disk has it and is empty.
pub const OF_A_NEW_DISK: &str = "lost+found";

/// Numbers that a database may hand out between two edits of its manifest. Each job and each log that
/// could not be begun for want of space takes one, so 10^12 are enough for months of failing.
pub const AHEAD_MAX: u64 = 1 << 40;

/// A file found in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name as it stands.
    pub name: String,
    /// What it is; `None` for a foreign file, and for all that is no regular file.
    pub file: Option<FileName>,
    /// Length in bytes.
    pub len: u64,
}

/// Largest options file that is read, bytes.
pub const OPTIONS_MAX: u64 = 64 << 20;

/// Turns storage errors into the store's error: the one place where that is done.
pub trait OrTyped<T> {
    /// The same result with the store's error. A file that ends too early becomes
    /// [`ErrorKind::Corruption`], a full disk [`ErrorKind::NoSpace`], the rest
    /// [`ErrorKind::Io`].
    fn or_typed(self) -> Result<T>;
}

impl<T> OrTyped<T> for IoResult<T> {
    fn or_typed(self) -> Result<T> {
        self.map_err(typed)
    }
}

/// The store's form of a storage error.
pub fn typed(e: IoError) -> Error {
    let path = e.path.display().to_string();
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::corruption("the file ends before its content does").in_file(path)
        }
        _ if e.is_out_of_descriptors() => Error::new(
            ErrorKind::Io,
            "the process has too many files open; raise its limit (`ulimit -n`) or lower \
             max_open_files",
        )
        .in_file(path.clone())
        .caused_by(Error::io(e.op, path, e.source)),
        _ => Error::io(e.op, path, e.source),
    }
}

/// A database directory on some file system. Cheap to clone.
#[derive(Clone)]
pub struct Dir {
    fs: FsRef,
    path: PathBuf,
    /// Further directories with tables; those of all handles that were made of one.
    places: Arc<Mutex<Vec<Dir>>>,
    /// What names the manifest here: CURRENT, or what is to become it.
    pointer: FileName,
}

impl Dir {
    /// The directory `path` of `fs`; nothing is touched.
    pub fn new(fs: FsRef, path: impl Into<PathBuf>) -> Dir {
        Dir { fs, path: path.into(), places: Arc::default(), pointer: FileName::Current }
    }
    /// The file system.
    pub fn fs(&self) -> &FsRef {
        &self.fs
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Path of one of its files.
    pub fn path_of(&self, file: FileName) -> PathBuf {
        self.path.join(file.to_string())
    }

    /// The same directory, held open: from here on its names lead to what is in it now, through no
    /// link, whatever becomes of its path ([`lithify_env::Fs::beneath`]). What is made in it never gets
    /// a permission bit of `denied`.
    ///
    /// # Errors
    /// Io if there is none, or it can't be opened.
    pub fn hold(&self, denied: u32) -> Result<Dir> {
        let fs = self.fs.beneath(&self.path, denied).or_typed()?;
        Ok(Dir { fs, ..self.clone() })
    }
    /// The same if there is such a directory; else as it was.
    pub fn hold_if_there(&self) -> Result<Dir> {
        match self.fs.beneath(&self.path, 0) {
            Ok(fs) => Ok(Dir { fs, ..self.clone() }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(self.clone()),
            Err(e) => Err(typed(e)),
        }
    }
    /// Makes the directory if need be, parents included, and the names of all that are new durable;
    /// the directory, held with `denied` ([`Dir::hold`]). New directories don't get these bits either. One
    /// that is made here is the one that is held, whatever is put into its place meanwhile.
    pub fn create(&self, denied: u32) -> Result<Dir> {
        let fs = match self.fs.beneath(&self.path, denied) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => self.make(&self.path, denied)?,
            there => {
                let fs = there.or_typed()?;
                // Its making may have been cut short before its name was durable.
                self.fs.sync_dir(above(&self.path)).or_typed()?;
                fs
            }
        };
        Ok(Dir { fs, ..self.clone() })
    }
    /// The same for one that must be absent or empty, as `what`, a copy of something in `source`, comes
    /// into it: it will be no more readable than that.
    ///
    /// # Errors
    /// `InvalidArgument` if it has something in it.
    pub fn create_copy(&self, source: &Dir, what: &str) -> Result<Dir> {
        self.check_empty(what)?;
        let made = self.create(source.denied()?)?;
        // What was looked at first may have been another one.
        made.check_empty(what)?;
        Ok(made)
    }
    /// Says durably that what is made here is not finished, before anything else of it is here: until
    /// [`finish`](Dir::finish) it opens as no database, whatever cuts the making short. The directory as its
    /// maker uses it.
    ///
    /// # Errors
    /// Io and `NoSpace`.
    pub fn begin(&self) -> Result<Dir> {
        self.create_file(FileName::Unfinished, OpenOpts::write())?;
        self.sync()?;
        Ok(self.unfinished())
    }
    /// The directory as the maker of what is not finished uses it.
    #[must_use]
    pub fn unfinished(&self) -> Dir {
        Dir { pointer: FileName::Unfinished, ..self.clone() }
    }
    /// All is here and durable: what [`begin`](Dir::begin) began is a database from here on.
    ///
    /// # Errors
    /// Io. If only the directory's sync failed, it may be one.
    pub fn finish(&self) -> Result<()> {
        let (from, to) = (self.path_of(FileName::Unfinished), self.path_of(FileName::Current));
        self.fs.rename(&from, &to).or_typed()?;
        self.sync()
    }
    /// The permission bits that a copy of what is here must not have: what one of the files, or the way
    /// to them, denies to the group or to others.
    ///
    /// # Errors
    /// Io.
    pub fn denied(&self) -> Result<u32> {
        let mut least = 0o777;
        for entry in self.list()?.iter().filter(|entry| entry.file.is_some()) {
            match self.fs.permissions(&self.path.join(&entry.name)) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                bits => least &= bits.or_typed()?,
            }
        }
        let way = self.fs.permissions(&self.path).or_typed()?;
        let elsewhere = self.places().iter().map(Dir::denied).collect::<Result<Vec<u32>>>()?;
        Ok(elsewhere.into_iter().fold(denied_by(way, least), |all, bits| all | bits))
    }
    /// Whether more may look for files in here than in `other`.
    ///
    /// # Errors
    /// Io.
    pub fn is_more_open_than(&self, other: &Dir) -> Result<bool> {
        let search = |dir: &Dir| dir.fs.permissions(&dir.path).map(|bits| bits & 0o011).or_typed();
        Ok(search(self)? & !search(other)? != 0)
    }
    /// Refuses a place for `what`, which is made of what is in `source`, before anything is written: it
    /// must be absent or empty, and neither directory may lie in the other.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_target(&self, source: &Dir, what: &str) -> Result<()> {
        self.check_apart(source, what)?;
        self.check_empty(what)
    }
    /// Refuses a place for `what` that is the directory `source`, lies in it, or has it inside; links
    /// are followed.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_apart(&self, source: &Dir, what: &str) -> Result<()> {
        let (place, other) = (self.fs.resolve(&self.path), self.fs.resolve(&source.path));
        let how = match (place.starts_with(&other), other.starts_with(&place)) {
            (true, true) => "is",
            (true, false) => "lies in",
            (false, true) => "has in it",
            (false, false) => return Ok(()),
        };
        let why = format!(
            "{what} needs a place of its own, and this directory {how} {}; choose another one",
            source.path.display()
        );
        Err(Error::invalid(why).in_file(self.path.display()))
    }
    /// Refuses a place for `what` that is neither absent nor empty.
    ///
    /// # Errors
    /// `InvalidArgument`, naming what is there.
    pub fn check_empty(&self, what: &str) -> Result<()> {
        let listed = self.list_if_there()?.unwrap_or_default();
        let Some(entry) = listed.iter().find(|entry| entry.name != OF_A_NEW_DISK) else {
            return Ok(());
        };
        let unfinished = |entry: &Listed| entry.file == Some(FileName::Unfinished);
        if listed.iter().any(unfinished) {
            let why = format!(
                "{what} needs a new directory or an empty one, and this one has what another attempt left \
                 unfinished; remove {} and try again, or choose another one",
                shown_path(&self.path)
            );
            return Err(Error::invalid(why).in_file(self.path.display()));
        }
        let why = format!(
            "{what} needs a new directory or an empty one, and this one has `{}` in it; choose another \
             one",
            entry.name
        );
        Err(Error::invalid(why).in_file(self.path.display()))
    }
    /// Refuses a directory that belongs to something else: there are foreign files in it, and nothing
    /// that a database leaves whose making was cut short. A LOCK alone is no sign of one: other
    /// programs have such files too.
    ///
    /// # Errors
    /// `InvalidArgument`, naming one of the files.
    pub fn check_unclaimed(&self) -> Result<()> {
        let listed = self.list_if_there()?.unwrap_or_default();
        let begun = |file: FileName| file != FileName::Lock;
        if listed.iter().filter_map(|entry| entry.file).any(begun) {
            return Ok(());
        }
        let foreign = |entry: &&Listed| entry.file.is_none() && entry.name != OF_A_NEW_DISK;
        let Some(entry) = listed.iter().find(foreign) else { return Ok(()) };
        let why = format!(
            "there is no database here, but other files, such as `{}`; choose a new or empty \
             directory, or allow this one with create_among_files",
            entry.name
        );
        Err(Error::invalid(why).in_file(self.path.display()))
    }
    /// Makes a directory in the one above it, which is held, and holds it.
    fn make(&self, path: &Path, denied: u32) -> Result<FsRef> {
        let above = above(path);
        let fs = match self.fs.beneath(above, denied) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && above != path => {
                self.make(above, denied)?
            }
            there => there.or_typed()?,
        };
        let name = path.file_name().map_or_else(|| path.to_path_buf(), |name| above.join(name));
        fs.create_dir_all(&name).or_typed()?;
        fs.sync_dir(above).or_typed()?;
        // By its full path, as its names are asked for; that lies in the one above by its letters.
        fs.beneath(path, denied).or_typed()
    }
    /// Makes names made, renamed and removed so far durable.
    pub fn sync(&self) -> Result<()> {
        self.fs.sync_dir(&self.path).or_typed()
    }
    /// Makes a new file.
    pub fn create_file(&self, file: FileName, opts: OpenOpts) -> Result<FileRef> {
        self.fs.create(&self.path_of(file), opts).or_typed()
    }
    /// Opens a file.
    pub fn open_file(&self, file: FileName, opts: OpenOpts) -> Result<FileRef> {
        self.fs.open(&self.path_of(file), opts).or_typed()
    }
    /// Opens the table `number` under our name or LevelDB's.
    ///
    /// # Errors
    /// Corruption if there is neither: callers ask for tables that a manifest names. `InvalidArgument` if it
    /// may be in a directory that was not named.
    pub fn open_table(&self, number: u64, opts: OpenOpts) -> Result<(FileName, FileRef)> {
        let (_, name, opened) = self.open_table_there(number, opts)?;
        Ok((name, opened))
    }
    /// The same in this directory alone; `None` if it is not here.
    fn open_table_here(&self, number: u64, opts: OpenOpts) -> Result<Option<(FileName, FileRef)>> {
        for name in [FileName::Table(number), FileName::LevelDbTable(number)] {
            match self.fs.open(&self.path_of(name), opts) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                other => return Ok(Some((name, other.or_typed()?))),
            }
        }
        Ok(None)
    }
    /// Length of a file in bytes; `None` if it is absent.
    pub fn len_of(&self, file: FileName) -> Result<Option<u64>> {
        self.fs.len(&self.path_of(file)).or_typed()
    }
    /// Removes a file; fine if it is gone already.
    pub fn remove(&self, file: FileName) -> Result<()> {
        match self.fs.unlink(&self.path_of(file)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.or_typed(),
        }
    }
    /// Every entry, sorted by name.
    pub fn list(&self) -> Result<Vec<Listed>> {
        self.fs.list(&self.path).map(listed).or_typed()
    }
    /// The same; `None` if there is no such directory.
    pub fn list_if_there(&self) -> Result<Option<Vec<Listed>>> {
        match self.fs.list(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            other => other.map(listed).map(Some).or_typed(),
        }
    }

    /// The number of the newest OPTIONS file; `None` if there is none. One whose number is far above that
    /// of the manifest was put there by someone else.
    pub fn newest_options(&self) -> Result<Option<u64>> {
        let listed = self.list_if_there()?.unwrap_or_default();
        // Without a CURRENT that can be read there is no database, or one that is refused.
        let manifest = self.read_current().unwrap_or(None).unwrap_or(0);
        let foreign = manifest.saturating_add(AHEAD_MAX);
        // One that is no regular file is refused by name where it is opened, and not passed over.
        let numbers = listed.iter().filter_map(|entry| match FileName::parse(&entry.name) {
            Some(FileName::Options(number)) if number < foreign => Some(number),
            _ => None,
        });
        Ok(numbers.max())
    }
    /// The number and the text of the newest OPTIONS file; `None` if there is none.
    ///
    /// # Errors
    /// Corruption if it is larger than one can be; Io.
    pub fn read_options(&self) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(number) = self.newest_options()? else { return Ok(None) };
        let text = self.read_whole(FileName::Options(number), OPTIONS_MAX)?;
        Ok(text.map(|text| (number, text)))
    }

    /// Takes the directory's lock.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] if another handle or process holds it.
    pub fn lock(&self) -> Result<Box<dyn LockGuard>> {
        if zoo::on(Bug::LockMadeAnew) {
            self.remove(FileName::Lock)?;
        }
        match self.fs.lock(&self.path_of(FileName::Lock)) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Err(Error::new(
                ErrorKind::Locked,
                format!(
                    "the database is open in another handle or process ({}); close that one first",
                    e.source
                ),
            )
            .in_file(self.path_of(FileName::Lock).display())),
            other => other.or_typed(),
        }
    }

    /// The manifest that CURRENT names; `None` if there is no CURRENT.
    ///
    /// # Errors
    /// Corruption if CURRENT does not hold one manifest name and a newline; `NotFound` if what was made here is
    /// not finished.
    pub fn read_current(&self) -> Result<Option<u64>> {
        let content = match self.read_whole(self.pointer, LINE_MAX)? {
            // So it begins.
            Some(content) if content.is_empty() && self.pointer == FileName::Unfinished => None,
            None => self.check_finished().map(|()| None)?,
            content => content,
        };
        let Some(content) = content else { return Ok(None) };
        let number = parse_current(&content);
        number.map(Some).map_err(|e| e.in_file(self.path_of(self.pointer).display()))
    }

    /// Refuses a directory with what [`begin`](Dir::begin) began and [`finish`](Dir::finish) did not end.
    ///
    /// # Errors
    /// `NotFound`, as there is no database; Io.
    pub fn check_finished(&self) -> Result<()> {
        if self.len_of(FileName::Unfinished)?.is_none() || self.len_of(FileName::Current)?.is_some()
        {
            return Ok(());
        }
        let what = format!(
            "there is no database here, but a copy or a salvage that is not finished; if none is being made, \
             remove {} and make it again",
            shown_path(&self.path)
        );
        Err(Error::new(ErrorKind::NotFound, what).unfinished().in_file(self.path.display()))
    }

    /// Makes CURRENT name `manifest`, durably. The manifest must be complete and synced before.
    pub fn point_current(&self, manifest: u64) -> Result<()> {
        let line = current_content(manifest);
        self.replace(self.pointer, FileName::Temp(manifest), line.as_bytes())
    }

    /// The database id; `None` if there is no IDENTITY.
    pub fn read_identity(&self) -> Result<Option<String>> {
        let Some(content) = self.read_whole(FileName::Identity, LINE_MAX)? else { return Ok(None) };
        match std::str::from_utf8(&content).map(|text| text.trim_end_matches(['\n', '\r'])) {
            Ok(id) if !id.is_empty() => Ok(Some(id.to_owned())),
            _ => Err(Error::corruption("it should hold the database id")
                .in_file(self.path_of(FileName::Identity).display())),
        }
    }

    /// Writes the database id, durably.
    pub fn write_identity(&self, id: &str) -> Result<()> {
        self.replace(FileName::Identity, FileName::Temp(0), id.as_bytes())
    }

    /// Replaces the content of a small file by the protocol above. `temp` is the name it has
    /// until it is complete; a leftover of that name goes, and so does the file itself if this fails before
    /// it is renamed.
    pub fn replace(&self, file: FileName, temp: FileName, content: &[u8]) -> Result<()> {
        let temp = self.path_of(temp);
        let out = self.create_anew(&temp)?;
        let written = write_all_at(&*out, content, 0).and_then(|()| out.sync_all());
        drop(out);
        let renamed = written.and_then(|()| self.fs.rename(&temp, &self.path_of(file)));
        if renamed.is_err() {
            let _ = self.fs.unlink(&temp);
        }
        renamed.or_typed()?;
        self.sync()
    }

    /// Opens EVENTS to write on at its end; the file and its length. What is no regular file, or has
    /// another name elsewhere, is set aside: only a log that is written here alone is written on.
    ///
    /// # Errors
    /// Io.
    pub fn open_events(&self) -> Result<(FileRef, u64)> {
        if let Ok(file) = self.open_file(FileName::Events, OpenOpts::write())
            && file.links().is_ok_and(|names| names <= 1)
        {
            let len = file.len().or_typed()?;
            return Ok((file, len));
        }
        self.set_events_aside();
        Ok((self.create_file(FileName::Events, OpenOpts::write())?, 0))
    }

    /// Gives EVENTS the name EVENTS.old. The one that had it is given up: two are as much as is read.
    pub fn set_events_aside(&self) {
        // A rename over another name of the same file does nothing.
        let _ = self.remove(FileName::OldEvents);
        // One that stays is in the way of the next, which is then not made.
        let _ = self.fs.rename(&self.path_of(FileName::Events), &self.path_of(FileName::OldEvents));
    }

    /// Makes a file where a leftover of that name may be: never the leftover itself, which may have
    /// other names, or be a link.
    fn create_anew(&self, path: &Path) -> Result<FileRef> {
        match self.fs.create(path, OpenOpts::write()) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                self.fs.unlink(path).or_typed()?;
                self.fs.create(path, OpenOpts::write()).or_typed()
            }
            other => other.or_typed(),
        }
    }

    /// The whole content of a file; `None` if it is absent. The limit guards memory against a
    /// file that cannot be what its name says.
    ///
    /// # Errors
    /// Corruption if it is longer than `limit` bytes, or most of it is not on disk; `LimitExceeded` if
    /// there is no memory for it.
    pub fn read_whole(&self, file: FileName, limit: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path_of(file);
        let Some(opened) = self.open_if_there(file)? else { return Ok(None) };
        let len = opened.len().or_typed()?;
        if len > limit {
            return Err(Error::corruption(format!("has {len} bytes, expected at most {limit}"))
                .in_file(path.display()));
        }
        let room = || {
            Allowance::META.check(&*opened, 0, len)?;
            memory::zeroed(len as usize, "a file")
        };
        let mut bytes = room().map_err(|e| e.in_file(path.display()))?;
        let count = read_full_at(&*opened, &mut bytes, 0).or_typed()?;
        bytes.truncate(count);
        Ok(Some(bytes))
    }
}

/// The directory that `path` is a name in; the root is in itself.
fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        above => above.unwrap_or(path),
    }
}

/// What a file of permissions `bits`, in a directory of permissions `way`, denies to the group and to
/// others: all to a class that can't read it, else to write if the class can't.
pub fn denied_by(way: u32, bits: u32) -> u32 {
    let denied = [0o010, 0o001].map(|search| {
        let (read, write, all) = (4 * search, 2 * search, 7 * search);
        match (way & search != 0 && bits & read != 0, bits & write != 0) {
            (false, _) => all,
            (true, false) => write,
            (true, true) => 0,
        }
    });
    denied[0] | denied[1]
}

fn listed(entries: Vec<DirEnt>) -> Vec<Listed> {
    let listed = entries.into_iter().map(|e| {
        let file = (e.kind == EntryKind::File).then(|| FileName::parse(&e.name)).flatten();
        Listed { name: e.name, file, len: e.len }
    });
    listed.collect()
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// A new database id: 128 random bits in the form of a version 4 UUID.
pub fn fresh_identity(random: &mut Random) -> String {
    let mut b = [0u8; 16];
    random.fill(&mut b);
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (i, byte) in b.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    id
}

/// A new identity of a session: about 103 random bits in RocksDB's form, 20 digits in base 36. Theirs has
/// 64 bits in the last 12 digits and the lowest two bits of what the first 8 stand for.
pub fn fresh_session(random: &mut Random) -> String {
    let (upper, lower) = (random.next_u64(), random.next_u64());
    let mut id = base_36((upper << 2) | (lower >> 62), 8);
    id.push_str(&base_36(lower & (u64::MAX >> 2), 12));
    id
}

/// The lowest `digits` digits of `n` in base 36, letters in upper case.
fn base_36(n: u64, digits: u32) -> String {
    let digit = |i| char::from_digit((n / 36u64.pow(i) % 36) as u32, 36).expect("it is below 36");
    (0..digits).rev().map(|i| digit(i).to_ascii_uppercase()).collect()
}

#[cfg(test)]
mod tests;
