//! Further directories in which a database has tables: RocksDB's `db_paths`.
//!
//! Which they are is known from the options of the program alone, never from a file, so that no directory
//! from elsewhere leads here. A table is looked for at home first and then in the others, in the order in
//! which they were added: numbers are never used twice, so at most one of them has it.
//!
//! Two small files tell whose they are. DEED, at home, has a name that was drawn at random, and how many
//! directories there were at most; OWNER, in each of the others, has the same name, the id of the database and
//! where its home is. The id alone would not do, because a checkpoint and a restored backup have the id of the
//! database that they were made of, and no DEED; nor the name, because a copy that was made by hand has it, too.
//!
//! Keeps: each is held as home is ([`Dir::hold`]), and its names are made durable by itself.
//! Leaves to others: which tables go where (`plan`), and whether a directory may be used (`store`).

use std::path::{Path, PathBuf};

use lithify_base::{Error, Result};
use lithify_env::OpenOpts;

use super::{Dir, FileName, FileRef, LINE_MAX, OrTyped};

/// What to do where a table is in a directory that was not named.
pub const NAME_DIRS: &str = "name them as they were (table_dirs, --table-dir of the command line, db_paths \
                             and cf_paths of RocksDB)";

/// Most bytes that are written down of where a database is.
const WHEREABOUTS_MAX: usize = 2 << 10;

/// A directory for tables, and how many bytes of them it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDir {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of tables that it is to hold. A level goes to the first directory that has room for all of what
    /// the level aims at, and to the last one if none has.
    pub target_bytes: u64,
}

/// A table that is there.
#[derive(Clone, Debug)]
pub struct FoundTable {
    /// The directory that it is in.
    pub dir: Dir,
    /// Its name there.
    pub name: FileName,
    /// Its length in bytes.
    pub len: u64,
}

/// What further directories of a database know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// A name that no other has.
    pub name: String,
    /// Most of them that there were at once.
    pub dirs: usize,
}

/// Who has tables in a directory besides the one whose home it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name in the owner's DEED.
    pub deed: String,
    /// The owner's id.
    pub db_id: String,
    /// The owner's [`Dir::whereabouts`].
    pub home: String,
}

impl Dir {
    /// The further directories, in the order in which they were added.
    pub fn places(&self) -> Vec<Dir> {
        self.places.lock().clone()
    }
    /// Tables are looked for in `place`, too, from now on, through every handle on this directory, and made there as
    /// `place` says, whatever was said of it before.
    pub fn add_place(&self, place: Dir) {
        let mut places = self.places.lock();
        match places.iter_mut().find(|there| there.path == place.path) {
            Some(there) => *there = place,
            None => places.push(place),
        }
    }
    /// The directory `path`: this one, one of the further ones, or one that is not known.
    pub fn place_at(&self, path: &Path) -> Dir {
        let real = self.fs.resolve(path);
        let is_it = |dir: &Dir| dir.path == path || self.fs.resolve(&dir.path) == real;
        if is_it(self) {
            return self.clone();
        }
        let known = self.places().into_iter().find(is_it);
        known.unwrap_or_else(|| Dir::new(self.fs.clone(), path))
    }

    /// Where it is, with links and `..` resolved: printable, and of a very long path the end.
    pub fn whereabouts(&self) -> String {
        let path = self.fs.resolve(&self.path);
        let text = path.as_os_str().as_encoded_bytes().escape_ascii().to_string();
        text[text.len().saturating_sub(WHEREABOUTS_MAX)..].to_owned()
    }

    /// Opens the table `number`, wherever it is, under our name or LevelDB's; where it is, and its name.
    ///
    /// # Errors
    /// As [`Dir::open_table`].
    pub fn open_table_there(
        &self,
        number: u64,
        opts: OpenOpts,
    ) -> Result<(Dir, FileName, FileRef)> {
        if let Some((name, opened)) = self.open_table_here(number, opts)? {
            return Ok((self.clone(), name, opened));
        }
        for place in self.places() {
            if let Some((name, opened)) = place.open_table_here(number, opts)? {
                return Ok((place, name, opened));
            }
        }
        Err(self.lost(number))
    }
    /// The table `number`, if there is one.
    ///
    /// # Errors
    /// Io.
    pub fn find_table(&self, number: u64) -> Result<Option<FoundTable>> {
        for dir in std::iter::once(self.clone()).chain(self.places()) {
            for name in [FileName::Table(number), FileName::LevelDbTable(number)] {
                if let Some(len) = dir.len_of(name)? {
                    return Ok(Some(FoundTable { dir, name, len }));
                }
            }
        }
        Ok(None)
    }
    /// Removes the table `number`, whichever of its names it has; fine if it is gone already.
    ///
    /// # Errors
    /// Io.
    pub fn remove_table(&self, number: u64) -> Result<()> {
        for dir in std::iter::once(self.clone()).chain(self.places()) {
            for name in [FileName::Table(number), FileName::LevelDbTable(number)] {
                match dir.fs.unlink(&dir.path_of(name)) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    gone => return gone.or_typed(),
                }
            }
        }
        Ok(())
    }
    /// All paths that a file of this name may have.
    pub fn paths_of(&self, file: FileName) -> Vec<PathBuf> {
        let dirs = std::iter::once(self.clone()).chain(self.places());
        dirs.map(|dir| dir.path_of(file)).collect()
    }
    /// Bytes that the disk has free for tables, as far as the file system can tell; with further directories those
    /// of the one with most. A small one that is full must not keep tables from going down to a large one; what
    /// does not fit into it fails by itself.
    pub fn free_space(&self) -> u64 {
        let dirs = std::iter::once(self.clone()).chain(self.places());
        let free = dirs.map(|dir| self.fs.free_space(dir.path()).unwrap_or(u64::MAX));
        free.max().unwrap_or(u64::MAX)
    }
    /// What is said of a table that a manifest names and that is nowhere.
    pub fn lost(&self, number: u64) -> Error {
        let path = self.path_of(FileName::Table(number));
        let dirs = self.read_deed().ok().flatten().map_or(0, |deed| deed.dirs);
        let elsewhere = self.places().len() < dirs;
        let error = match elsewhere {
            true => Error::invalid(format!(
                "the table is in none of the directories that were named, and the database had more of \
                 them; {NAME_DIRS}"
            )),
            false => Error::corruption("the table is missing"),
        };
        error.in_file(path.display())
    }

    /// What further directories of this database know it by; `None` if it has none.
    ///
    /// # Errors
    /// Corruption if that can't be read; Io.
    pub fn read_deed(&self) -> Result<Option<Deed>> {
        let Some(words) = self.read_words(FileName::Deed)? else { return Ok(None) };
        let dirs = words.get(1).and_then(|dirs| dirs.parse().ok()).unwrap_or(0);
        Ok(Some(Deed { name: words[0].clone(), dirs }))
    }
    /// Writes it, durably.
    ///
    /// # Errors
    /// Io.
    pub fn write_deed(&self, deed: &Deed) -> Result<()> {
        let text = format!("{} {}\n", deed.name, deed.dirs);
        self.replace(FileName::Deed, FileName::Temp(0), text.as_bytes())
    }
    /// Whose tables are in this directory; `None` if it was never used for those of another.
    ///
    /// # Errors
    /// Corruption if that can't be read; Io.
    pub fn read_owner(&self) -> Result<Option<Owner>> {
        let Some(words) = self.read_words(FileName::Owner)? else { return Ok(None) };
        let word = |n| words.get(n).cloned().unwrap_or_default();
        Ok(Some(Owner { deed: word(0), db_id: word(1), home: word(2) }))
    }
    /// Writes whose they are, durably.
    ///
    /// # Errors
    /// Io.
    pub fn write_owner(&self, owner: &Owner) -> Result<()> {
        let text = format!("{} {} {}\n", owner.deed, owner.db_id, owner.home);
        self.replace(FileName::Owner, FileName::Temp(0), text.as_bytes())
    }

    /// The words of a file of one line, one to three, of which the last may have blanks; `None` if it is absent.
    fn read_words(&self, file: FileName) -> Result<Option<Vec<String>>> {
        let Some(content) = self.read_whole(file, LINE_MAX)? else { return Ok(None) };
        let words = |text: &str| text.trim().splitn(3, ' ').map(str::to_owned).collect();
        let words: Vec<String> = std::str::from_utf8(&content).map(words).unwrap_or_default();
        match words.first().is_some_and(|word| !word.is_empty()) {
            true => Ok(Some(words)),
            false => Err(Error::corruption("it should name a database")
                .in_file(self.path_of(file).display())),
        }
    }
}

#[cfg(test)]
mod tests;
