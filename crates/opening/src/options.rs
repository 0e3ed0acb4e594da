//! What a database is opened with: settings, components and the world.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lithify_base::{
    CfId, CompactionFilterRef, ComparatorRef, MergeOperatorRef, Prefixes, Result, bytewise,
};
use lithify_engine::Engine;
use lithify_env::sync::Arc;
use lithify_env::{Env, FsRef, OsRt, PosixFs, RtOptions};
use lithify_files::Dir;
use lithify_journal::manifest::ManifestState;
use lithify_store::{manifest, places};

use lithify_reports::listener::EventListener;
use lithify_settings::Settings;
use lithify_tables::cache::SharedCache;
use lithify_views::names::DEFAULT_CF;
use lithify_writes::shared::SharedMemtables;

use crate::family::{ColumnFamilyOptions, Components};

/// Permission bits that private files do not give to the group and to others.
const PRIVATE: u32 = 0o077;

/// What a database is opened with.
#[derive(Clone)]
pub struct OpenOptions {
    /// Of the database as a whole, and of its default family.
    pub settings: Settings,
    /// The order of the default family's keys.
    pub order: ComparatorRef,
    /// Combines the default family's operands.
    pub operator: Option<MergeOperatorRef>,
    /// Drops and changes values of the default family in compactions.
    pub filter: Option<CompactionFilterRef>,
    /// Prefixes of the default family's keys that filters have.
    pub prefixes: Prefixes,
    /// The world; this machine's if `None`.
    pub env: Option<Env>,
    /// Told of what happens.
    pub listeners: Vec<Arc<dyn EventListener>>,
    /// Engines that compactions may use besides the CPU.
    pub engines: Vec<Arc<dyn Engine>>,
    /// The block cache, if it is shared with other databases.
    pub shared_cache: Option<SharedCache>,
    /// What bounds the memtables, if it does those of other databases as well.
    pub shared_memtables: Option<SharedMemtables>,
    /// A LevelDB directory may become ours.
    pub upgrade: bool,
    /// What a new database is made for.
    pub making: Making,
    /// Permission bits that no new file gets, for what is made of a directory that does not give them.
    pub denied: u32,
    /// What is known of other families, by their names.
    pub families: BTreeMap<String, ColumnFamilyOptions>,
}

/// What a new database is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// The program that opens it, in a directory of its own.
    New,
    /// The same, and it may be among files of others.
    AmongFiles,
    /// What is taken out of another one, which has begun here ([`Dir::begin`]): it is none before that is finished.
    Copy,
}

impl OpenOptions {
    /// Default components: byte order and this machine.
    pub fn new(settings: Settings) -> OpenOptions {
        OpenOptions {
            settings: settings.settled(),
            order: bytewise(),
            operator: None,
            filter: None,
            prefixes: Prefixes::default(),
            env: None,
            listeners: Vec::new(),
            engines: Vec::new(),
            shared_cache: None,
            shared_memtables: None,
            upgrade: false,
            making: Making::New,
            denied: 0,
            families: BTreeMap::new(),
        }
    }

    /// The file system.
    pub fn fs(&self) -> FsRef {
        match &self.env {
            Some(env) => env.fs.clone(),
            None => Arc::new(PosixFs::new()),
        }
    }

    /// Permission bits that no new file gets.
    pub fn denied(&self) -> u32 {
        self.denied | denied_by(&self.settings)
    }

    /// All directories that tables may be in besides the database's own.
    pub fn table_dirs(&self) -> Vec<PathBuf> {
        let of_families = self.families.values().map(ColumnFamilyOptions::table_dirs);
        places::union(std::iter::once(&self.settings.table_dirs[..]).chain(of_families))
    }

    /// The directory of a database, held if it is there, with those of its tables.
    ///
    /// # Errors
    /// As [`places::attach`].
    pub fn hold(&self, fs: &FsRef, path: &Path) -> Result<Dir> {
        let dir = Dir::new(fs.clone(), path).hold_if_there()?;
        let dir = if self.making == Making::Copy { dir.unfinished() } else { dir };
        places::attach(&dir, &self.table_dirs())?;
        Ok(dir)
    }

    /// Finds the tables that a manifest names, in `dir` and in these.
    pub fn locate(&self, dir: &Dir, state: &mut ManifestState) -> Result<()> {
        let names: Vec<_> = state.families.iter().map(|(cf, f)| (*cf, f.name.clone())).collect();
        names.into_iter().try_for_each(|(cf, name)| {
            let settings = self.family(cf, &name).settings_in(&self.settings, &name)?;
            places::locate(dir, state, cf, &settings.table_dirs)
        })
    }

    /// The world that was given, or this machine's.
    pub fn world(&self) -> Env {
        self.env.clone().unwrap_or_else(|| machine(&self.settings))
    }

    /// What is known of a family of the directory.
    pub fn family(&self, cf: CfId, name: &str) -> ColumnFamilyOptions {
        match cf {
            DEFAULT_CF => ColumnFamilyOptions::of_default(
                self.settings.clone(),
                self.order.clone(),
                Components {
                    operator: self.operator.clone(),
                    filter: self.filter.clone(),
                    prefixes: self.prefixes.clone(),
                },
            ),
            _ => self.families.get(name).cloned().unwrap_or_default(),
        }
    }

    /// The orders of keys that it is given.
    pub fn orders(&self) -> Vec<ComparatorRef> {
        let of_families = self.families.values().filter_map(ColumnFamilyOptions::order);
        std::iter::once(self.order.clone()).chain(of_families).collect()
    }

    /// The order of keys of a family in a directory that is made a new one of, where `recorded` is its
    /// comparator. Byte order is what a builder has by default: the directory may say another one of
    /// ours.
    ///
    /// # Errors
    /// `Unsupported` if only the program knows it.
    pub fn order_found(
        &self,
        cf: CfId,
        name: &str,
        recorded: Option<&str>,
    ) -> Result<ComparatorRef> {
        match cf {
            DEFAULT_CF if self.order.is_bytewise() => manifest::known_order(recorded),
            cf => self.family(cf, name).order_of(name, recorded),
        }
    }

    /// The same for what is made of a database that has its tables in these directories: it has its own at home.
    #[must_use]
    pub fn at_home(&self) -> OpenOptions {
        let mut with = self.clone();
        with.settings.table_dirs.clear();
        with.families.values_mut().for_each(ColumnFamilyOptions::clear_table_dirs);
        with
    }

    /// Leaves times to live out: values are taken over with their times.
    pub fn forget_times(&mut self) {
        for options in self.families.values_mut() {
            options.take_ttl();
        }
    }
}

/// Permission bits that no new file gets with these settings.
pub fn denied_by(settings: &Settings) -> u32 {
    if settings.private_files { PRIVATE } else { 0 }
}

/// This machine, with the threads that `settings` ask for.
pub fn machine(settings: &Settings) -> Env {
    let policy = settings.effective_policy();
    Env {
        fs: Arc::new(PosixFs::new()),
        rt: Arc::new(OsRt::new(RtOptions {
            flush_threads: settings.flush_threads as usize,
            compact_threads: settings.compaction_threads as usize,
            io_threads: policy.transfer_threads(settings.compaction_threads, settings.file_bytes)
                as usize,
            // One may be in a commit, and one in the upkeep proper.
            upkeep_threads: 2,
            background_nice: settings.background_nice as u8,
            seed: None,
        })),
    }
}
