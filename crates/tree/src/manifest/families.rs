//! Column families: several trees in one database, each with an order of keys, settings and stalls of
//! its own; one log, so a batch over several families is atomic.
//!
//! A family is known by its number, which is never used again, in batches, the log and the manifest,
//! and by its name to users. Making and dropping one is an edit of the manifest, written while the
//! write turn is held. A dropped family takes no writes and shows nothing any more; its files go when
//! no iterator pins them, or with the next open.
//! Leaves to others: what families share (`shared`), the tree of one (`shell`).

use std::collections::BTreeSet;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Error, ErrorKind, Result};
use lithify_control::{Core, Event, MemId};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_journal::manifest::WireEdit;
use lithify_lsm::Version;
use lithify_store::manifest::translate;
use lithify_store::places;

use crate::family::TreeParts;
use crate::open::written::write_options;
use crate::settings::Settings;
use crate::settings::translate::{Described, core_options};
use crate::shared::Shared;
use crate::shell::Shell;
use crate::write::Held;
use lithify_opening::{ColumnFamilyOptions, denied_by};
use lithify_reports::exclusive::Holding;
use lithify_settings::proportion;
use lithify_views::names::{DEFAULT_CF, DEFAULT_NAME};
use lithify_views::super_version::Mem;

/// Longest name of a family, bytes.
const NAME_MAX: usize = 1024;

impl Shared {
    /// The open family with this number.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn family_of(self: &Arc<Shared>, cf: CfId) -> Result<Shell> {
        let found = self.families.lock().iter().find(|family| family.cf == cf).cloned();
        found.map(|family| self.shell(family)).ok_or_else(|| self.stranger(cf))
    }

    /// The open family with this name.
    pub(crate) fn family_named(self: &Arc<Shared>, name: &str) -> Result<Shell> {
        let found = self.families.lock().iter().find(|family| family.name == name).cloned();
        found.map(|family| self.shell(family)).ok_or_else(|| {
            match self.background.progress.closed.load(Ordering::SeqCst) {
                true => self.closed_error(),
                false => {
                    let what = format!("there is no column family `{name}`; create it first");
                    Error::new(ErrorKind::NotFound, what)
                }
            }
        })
    }

    /// What a write to a family is told that is not there.
    pub(crate) fn stranger(self: &Arc<Shared>, cf: CfId) -> Error {
        if self.background.progress.closed.load(Ordering::SeqCst) {
            return self.closed_error();
        }
        let dropped = self.dropped.lock().iter().find(|family| family.cf == cf).cloned();
        dropped.map_or_else(
            || {
                let what = format!(
                    "there is no column family number {}: it was dropped, or is another \
                     database's; nothing was written",
                    cf.0
                );
                Error::new(ErrorKind::NotFound, what)
            },
            |family| family.dropped_error(),
        )
    }

    /// All families, to be written down.
    pub(crate) fn described(self: &Arc<Shared>) -> Vec<Described> {
        let described = |f: &Shell| Described {
            name: f.family.name.clone(),
            settings: Settings::clone(&f.family.settings.load()),
            comparator: f.order().name().to_owned(),
            merge_operator: f.context().operator.as_ref().map(|op| op.name().to_owned()),
            prefix_extractor: f.context().output.prefixes.name().map(str::to_owned),
        };
        self.families().iter().map(described).collect()
    }

    /// Writes the settings of all families down, for tools. The database does without.
    fn note_options(self: &Arc<Shared>) {
        if let Err(e) =
            write_options(&self.resources.dir, &self.resources.numbers, &self.described())
        {
            self.note("options_not_written", &[("cause", e.to_string().into())]);
        }
    }
}

impl Shell {
    /// Takes the turn, for a change of the families. Nothing is in doubt then, and no other thread changes settings: what is set
    /// for the whole database would not reach a family that is not there yet.
    fn hold_families(&self) -> Result<(Holding<'_>, Held<'_>)> {
        self.check_caller()?;
        let alone = self.alone();
        let mut held = Held::new(self, self.take_turn()?);
        if let Some(error) = self.family_of(DEFAULT_CF)?.family.gate.refused() {
            return Err(error);
        }
        // A lost log is replaced while there is one family, and then it can't be known any more.
        self.check_replaced(held.log(), false)?;
        self.sync_closing(held.log())?;
        Ok((alone, held))
    }

    /// Makes a column family. It is there once this returns, whatever happens then.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is taken, empty or too long, or settings that contradict each
    /// other; `LimitExceeded` beyond the number of families that there may be; `NoSpace` if it was not
    /// made; `OutcomeUnknown` if only the next open shows whether it was; `ReadOnly`.
    pub fn create_family(&self, name: &str, options: &ColumnFamilyOptions) -> Result<Shell> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(Error::invalid(format!(
                "the name of a column family has 1 to {NAME_MAX} bytes, and this one has {}",
                name.len()
            )));
        }
        let order = options.order_of(name, None)?;
        let (_alone, mut held) = self.hold_families()?;
        let settings = options.settings_in(&self.shared.db_settings.load(), name)?;
        if self.families().iter().any(|family| family.family.name == name) {
            return Err(Error::invalid(format!(
                "there is a column family `{name}` already; open it with column_family"
            )));
        }
        proportion::admit(self.families().len() + 1, &self.shared.db_settings.load())?;
        let dirs = places::union(std::iter::once(&settings.table_dirs[..]));
        self.shared.resources.own(&dirs, &BTreeSet::new(), denied_by(&settings))?;
        let cf = self.next_family()?;
        let log_number = held.log().wal_number;
        let edit = WireEdit {
            cf,
            cf_add: Some(name.to_owned()),
            comparator: Some(order.name().to_owned()),
            log_number: Some(log_number.0),
            max_cf: Some(cf.0),
            ..WireEdit::default()
        };
        // The number is burnt whatever comes of it.
        self.shared.max_cf.store(cf.0, Ordering::SeqCst);
        let (tables, context) =
            self.shared.resources.tools(cf, name, &settings, &order, &options.components());
        let writer = crate::family::new_memtable(
            settings.memtable_bytes,
            &order,
            &self.shared.resources.arenas,
        )?
        .1;
        self.change_families(edit)?;
        let mems = vec![Mem::new(MemId(1), writer.table().clone(), log_number)];
        let core =
            Core::new(core_options(&settings), Version::empty(order), translate::FIRST_EPOCH);
        let name = name.to_owned();
        let parts = TreeParts { cf, name, settings, tables, core, context, mems };
        let shell = self.shared().add(held.log(), parts, writer);
        shell.drive(Event::Awaited { by: 0 });
        self.tell_paused();
        shell.note("family_created", &[("id", u64::from(cf.0).into())]);
        self.shared.note_options();
        Ok(shell)
    }

    /// A number that no family ever had.
    fn next_family(&self) -> Result<CfId> {
        let last = match zoo::on(Bug::FamilyNumberAgain) {
            true => self.families().last().map_or(0, |family| family.family.cf.0),
            false => self.shared.max_cf.load(Ordering::SeqCst),
        };
        let Some(number) = last.checked_add(1) else {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                "the numbers of column families are used up, and none is used twice; nothing was \
                 written; take the database into a new one with `lithify salvage`, which numbers \
                 them anew",
            ));
        };
        Ok(CfId(number))
    }

    /// Drops a column family with all it holds.
    ///
    /// # Errors
    /// `NotFound` if there is none of that name; `InvalidArgument` for the default family; else as
    /// [`create_family`](Shell::create_family).
    pub fn drop_family(&self, name: &str) -> Result<()> {
        if name == DEFAULT_NAME {
            return Err(Error::invalid("the default column family can't be dropped"));
        }
        let (_alone, mut held) = self.hold_families()?;
        let family = self.family_named(name)?;
        let edit = WireEdit { cf: family.family.cf, cf_drop: true, ..WireEdit::default() };
        family.change_families(edit)?;
        family.note("family_dropped", &[("id", u64::from(family.family.cf.0).into())]);
        held.log().families.retain(|filling| filling.family.cf != family.family.cf);
        family.empty();
        self.shared.note_options();
        Ok(())
    }

    /// Writes an edit that makes or drops a family.
    fn change_families(&self, edit: WireEdit) -> Result<()> {
        let Err(error) = self.commit_family(edit) else { return Ok(()) };
        if error.kind() == ErrorKind::NoSpace {
            return Err(error);
        }
        let what = "whether the column family was made or dropped shows at the next open, until \
                    which the database is read-only";
        let unknown = Error::new(ErrorKind::OutcomeUnknown, what).caused_by(error);
        self.shared.go_read_only(unknown.clone());
        Err(unknown)
    }
}
