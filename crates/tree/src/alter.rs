//! Changing settings of an open database.
//!
//! Keeps: what is written down is sound, and written before it is in force: after a crash the
//! OPTIONS file has the old settings or the new ones. Nothing is in force that could not be
//! written.
//! Leaves to others: which settings can change (the table of settings).

use lithify_base::{Error, ErrorKind, Result};
use lithify_control::Event;
use lithify_env::sync::Arc;
use lithify_journal::files::FileName;
use lithify_settings::row;

use crate::settings::Settings;
use crate::settings::translate::{core_options, options_text, tuning};
use crate::shell::Shell;
use lithify_reports::exclusive::Holding;
use lithify_views::names::DEFAULT_CF;

impl Shell {
    /// Changes settings by name; all of them or none.
    pub fn alter(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.check_caller()?;
        let _one_at_a_time = self.alone();
        // A close waits for a change under way, and none begins after it.
        self.check_open()?;
        if self.shared.is_read_only_handle() {
            let what = "a handle that only reads has no settings to change; open it with `open`";
            return Err(Error::new(ErrorKind::ReadOnly, what));
        }
        let new = changed(&self.family.settings.load(), changes)?;
        self.shared.check_owner()?;
        let of_all = self.altered(new)?;
        for (family, settings) in &of_all {
            let of = |name: &str| format!("it does not go with what column family `{name}` has");
            settings.check().map_err(|e| match family.family.cf == self.family.cf {
                true => e,
                false => Error::invalid(of(&family.family.name)).caused_by(e),
            })?;
        }
        self.write_options_again(&of_all)?;
        for (family, settings) in of_all {
            if family.family.cf == DEFAULT_CF {
                self.shared.db_settings.store(settings.clone());
            }
            family.family.settings.store(settings);
            family.in_force();
        }
        self.shared.fit_cache();
        self.shared.look_at_disk();
        for (name, value) in changes {
            let (name, value) = ((*name).into(), (*value).into());
            self.note("setting_changed", &[("name", name), ("value", value)]);
        }
        Ok(())
    }

    /// Switches automatic compaction, until the database is closed.
    pub(crate) fn alter_auto_compaction(&self, on: bool) {
        let _one_at_a_time = self.alone();
        let mut new = Settings::clone(&self.family.settings.load());
        new.auto_compaction = on;
        self.family.settings.store(Arc::new(new));
        self.drive_by(|| Event::AutoCompaction { on: self.family.settings.load().auto_compaction });
    }

    /// Waits until no other thread changes settings or families: two would write one file.
    pub(crate) fn alone(&self) -> Holding<'_> {
        self.shared.altering.hold(&*self.shared.resources.env.rt)
    }

    /// Tells everybody the settings of now.
    fn in_force(&self) {
        let now = self.family.settings.load_full();
        if self.family.cf == DEFAULT_CF {
            self.shared.resources.limiter.set(now.background_rate, tuning(&now));
        }
        self.drive_by(|| Event::Options(Box::new(core_options(&self.family.settings.load()))));
    }

    /// The settings of all families once this one has `new`: what concerns the database as a whole
    /// is changed through the default family, and then everywhere.
    fn altered(&self, new: Settings) -> Result<Vec<(Shell, Arc<Settings>)>> {
        let db = self.shared.db_settings.load();
        if self.family.cf != DEFAULT_CF && new != new.clone().in_database(&db) {
            return Err(Error::invalid(
                "this setting is of the database as a whole; change it through the database's own \
                 handle, not a column family's",
            ));
        }
        let altered = |family: Shell| {
            let old = Settings::clone(&family.family.settings.load());
            let settings = match family.family.cf {
                cf if cf == self.family.cf => new.clone(),
                _ if self.family.cf == DEFAULT_CF => old.in_database(&new),
                _ => old,
            };
            (family, Arc::new(settings))
        };
        Ok(self.families().into_iter().map(altered).collect())
    }

    /// Replaces the text of the newest OPTIONS file, which the open wrote.
    fn write_options_again(&self, of_all: &[(Shell, Arc<Settings>)]) -> Result<()> {
        let number = self
            .shared
            .resources
            .dir
            .newest_options()?
            .unwrap_or_else(|| self.shared.next_file().0);
        let mut described = self.shared.described();
        for (described, (_, settings)) in described.iter_mut().zip(of_all) {
            described.settings = Settings::clone(settings);
        }
        let text = options_text(&described);
        let (name, temp) = (FileName::Options(number), FileName::OptionsTemp(number));
        self.shared.resources.dir.replace(name, temp, text.as_bytes())
    }
}

fn changed(old: &Settings, changes: &[(&str, &str)]) -> Result<Settings> {
    let mut new = old.clone();
    for (name, value) in changes {
        let row = row(name)?;
        if !row.live {
            return Err(Error::invalid(format!(
                "{} can't be changed while the database is open; close it and open it with the \
                 new value",
                row.name
            )));
        }
        new.set(row.name, value)?;
    }
    Ok(new)
}
