//! The directories of a family's tables. They are in no OPTIONS file and have no text: a directory says
//! nothing about what lies outside of it, so each open names them anew, as with RocksDB.

use std::path::PathBuf;

use lithify_plan::{Places, places};

use crate::TableDir;
use crate::table::Settings;

impl Settings {
    /// Keeps tables in these directories, each with the bytes that it is to hold: RocksDB's `db_paths`, and
    /// with the settings of a column family its `cf_paths`. A family without any has those of the database.
    /// Fast storage comes first: the upper levels, which are small and read and written most, go there.
    ///
    /// A flush writes to the first directory. Levels take directories in order, each with the size that the
    /// tree aims at (`level_base_bytes` for levels 0 and 1, `level_multiplier` times more for each further
    /// one), for as long as they fit whole into the directory's size; what fits nowhere goes to the last. A table
    /// gets to another directory when it is compacted. The database's own directory has logs and manifest, and
    /// tables only if it is named as well.
    ///
    /// Name the same directories at each open: the database remembers which of them each table is in, by
    /// position, and not where they are. More may be added at the end. Each is made if need be, and belongs to
    /// this database alone from then on: the file OWNER in it says so.
    ///
    /// ```
    /// # use lithify_settings as lithify;
    /// let settings = lithify::Settings::default().table_dirs([
    ///     ("/fast/shop", 10 << 30), // levels 0 to 2: 256 MiB, 256 MiB and 2.5 GiB
    ///     ("/large/shop", 0),       // all others
    /// ]);
    /// settings.check()?;
    /// # Ok::<(), lithify_base::Error>(())
    /// ```
    #[must_use]
    pub fn table_dirs<P: Into<PathBuf>>(
        mut self,
        dirs: impl IntoIterator<Item = (P, u64)>,
    ) -> Settings {
        let dir = |(path, target_bytes): (P, u64)| TableDir { path: path.into(), target_bytes };
        self.table_dirs = dirs.into_iter().map(dir).collect();
        self.settled()
    }

    /// Which of the directories the files of each level go to.
    #[doc(hidden)]
    pub fn places(&self) -> Places {
        let targets: Vec<u64> = self.table_dirs.iter().map(|dir| dir.target_bytes).collect();
        places(&targets, self.level_base_bytes, self.level_multiplier)
    }
}
