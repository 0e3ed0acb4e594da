//! What a column family is opened with.

use std::time::Duration;

use lithify_base::{
    CompactionFilterRef, ComparatorRef, Error, MergeOperatorRef, PrefixExtractorRef, Prefixes,
    Result,
};
use lithify_settings::{Settings, TableDir};
use lithify_store::manifest;

/// Components of one family that are no part of its tree.
#[derive(Clone, Default)]
pub struct Components {
    /// Combines operands.
    pub operator: Option<MergeOperatorRef>,
    /// Drops and changes values in compactions.
    pub filter: Option<CompactionFilterRef>,
    /// Prefixes of keys that filters have.
    pub prefixes: Prefixes,
}

/// What a column family is like.
#[derive(Clone, Default)]
pub struct ColumnFamilyOptions {
    settings: Option<Settings>,
    order: Option<ComparatorRef>,
    components: Components,
    ttl: Option<Duration>,
}

impl ColumnFamilyOptions {
    /// The settings of the database, keys in byte order.
    pub fn new() -> ColumnFamilyOptions {
        ColumnFamilyOptions::default()
    }
    /// Settings of the family's own. Those that concern the database as a whole are the database's
    /// whatever they say here: `create_if_missing`, `error_if_exists`, `private_files`,
    /// `memory_budget`, `buffer_bytes`, `disk_budget`, `durability`, `max_wal_bytes`, `background_rate`, `auto_tuned_rate`,
    /// `background_nice`, `concurrent_memtable_writes`, the numbers of threads and of open files, direct IO, `mapped_reads`,
    /// `mapped_log`, `verify_checksums` and `event_log`. They may be other ones at each open.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-stored-{}", std::process::id()));
    /// use lithify::{Builder, ColumnFamilyOptions, Db, Settings};
    ///
    /// let db = Db::open(&dir, Settings::default())?;
    /// let logs = db.create_column_family("logs", ColumnFamilyOptions::new())?;
    /// logs.set_settings(&[("l0_trigger", "8")])?;
    /// db.close()?;
    ///
    /// // A tool that opens the database as its owner does.
    /// let settings = Settings::stored_in(&dir)?.map(|(s, _)| s).unwrap_or_default();
    /// let mut builder = Builder::new(settings.clone());
    /// for (name, own) in Settings::stored_families_in(&dir, &settings)? {
    ///     builder = builder.column_family(&name, ColumnFamilyOptions::new().settings(own));
    /// }
    /// let db = builder.open(&dir)?;
    /// assert_eq!(db.column_family("logs")?.settings().l0_trigger, 8);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> ColumnFamilyOptions {
        self.settings = Some(settings);
        self
    }
    /// Orders keys by `order`. A family remembers its comparator's name and refuses another.
    #[must_use]
    pub fn comparator(mut self, order: ComparatorRef) -> ColumnFamilyOptions {
        self.order = Some(order);
        self
    }

    /// As `Builder::merge_operator`, for this family.
    #[must_use]
    pub fn merge_operator(mut self, operator: MergeOperatorRef) -> ColumnFamilyOptions {
        self.components.operator = Some(operator);
        self
    }
    /// As `Builder::compaction_filter`, for this family.
    #[must_use]
    pub fn compaction_filter(mut self, filter: CompactionFilterRef) -> ColumnFamilyOptions {
        self.components.filter = Some(filter);
        self
    }

    /// As `Builder::prefix_extractor`, for this family.
    #[must_use]
    pub fn prefix_extractor(mut self, extractor: PrefixExtractorRef) -> ColumnFamilyOptions {
        self.components.prefixes = Prefixes::by(extractor);
        self
    }

    /// Values expire `ttl` after they were written; zero means never. That is for databases that are
    /// opened with `Builder::open_ttl` and families made with
    /// `TtlDb::create_column_family`: the family needs it
    /// each time or never, as its values carry times then. Elsewhere it is refused.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> ColumnFamilyOptions {
        self.ttl = Some(ttl);
        self
    }

    /// What the default family is opened with.
    #[doc(hidden)] // a seam to other crates
    pub fn of_default(
        settings: Settings,
        order: ComparatorRef,
        components: Components,
    ) -> ColumnFamilyOptions {
        let (settings, order) = (Some(settings), Some(order));
        ColumnFamilyOptions { settings, order, components, ttl: None }
    }
    /// The order of keys that it was given.
    #[doc(hidden)] // a seam to other crates
    pub fn order(&self) -> Option<ComparatorRef> {
        self.order.clone()
    }
    /// The directories of its tables, if it has some of its own.
    #[doc(hidden)] // a seam to other crates
    pub fn table_dirs(&self) -> &[TableDir] {
        self.settings.as_ref().map_or(&[], |settings| &settings.table_dirs)
    }
    /// Takes them away.
    #[doc(hidden)] // a seam to other crates
    pub fn clear_table_dirs(&mut self) {
        self.settings.iter_mut().for_each(|settings| settings.table_dirs.clear());
    }
    /// Takes the time to live away, which the layer that expires values heeds by itself.
    #[doc(hidden)] // a seam to other crates
    pub fn take_ttl(&mut self) -> Option<Duration> {
        self.ttl.take()
    }
    /// Components that are no part of the tree.
    #[doc(hidden)] // a seam to other crates
    pub fn components(&self) -> Components {
        self.components.clone()
    }
    /// Puts others in their place.
    #[doc(hidden)] // a seam to other crates
    pub fn change_components(&mut self, change: impl FnOnce(Components) -> Components) {
        self.components = change(std::mem::take(&mut self.components));
    }

    /// The settings in a database with settings `db`.
    ///
    /// # Errors
    /// `InvalidArgument` if they contradict each other, or there is a time to live.
    #[doc(hidden)] // a seam to other crates
    pub fn settings_in(&self, db: &Settings, name: &str) -> Result<Settings> {
        if self.ttl.is_some() {
            return Err(Error::invalid(format!(
                "column family `{name}` is given a time to live, which only Builder::open_ttl and \
                 TtlDb::create_column_family heed; use them, or leave it out"
            )));
        }
        let Some(own) = self.settings.clone() else { return Ok(db.clone()) };
        let settings = own.in_database(db);
        settings.check().map_err(|e| {
            let what = format!("of the settings of column family `{name}`");
            Error::new(e.kind(), what).caused_by(e)
        })?;
        Ok(settings)
    }

    /// The order of keys, where the manifest records the comparator `recorded`.
    ///
    /// # Errors
    /// `Unsupported` if only the program knows it.
    #[doc(hidden)] // a seam to other crates
    pub fn order_of(&self, name: &str, recorded: Option<&str>) -> Result<ComparatorRef> {
        if let Some(order) = &self.order {
            return Ok(order.clone());
        }
        manifest::known_order(recorded).map_err(|e| {
            let what = format!(
                "column family `{name}` can't be opened; give its comparator with \
                 Builder::column_family"
            );
            Error::new(e.kind(), what).caused_by(e)
        })
    }
}

impl std::fmt::Debug for ColumnFamilyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = self.order.as_ref().map(|order| order.name());
        f.debug_struct("ColumnFamilyOptions").field("comparator", &order).finish_non_exhaustive()
    }
}
