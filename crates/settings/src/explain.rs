//! Settings by name: changing one, asking for one, and the list of all with the reason for each value.

use lithify_base::Result;

use crate::budget::Budget;
use crate::row::{Group, Row, Why, row};
use crate::table::{ROWS, Settings};

/// A setting as it is in force, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveSetting {
    /// Its name, as a field of [`Settings`].
    pub name: &'static str,
    /// Its value as [`Settings::set`] takes it; for one that was left open, what is in force.
    pub value: String,
    /// True if it follows from the budgets, or is the default; false if it was set.
    pub derived: bool,
    /// Why it has this value.
    pub reason: String,
    /// An open database can change it.
    pub live: bool,
    /// It is there for RocksDB's sake, and few need it.
    pub for_rocksdb: bool,
    /// What values it takes, for people: `64KiB to 2GiB`, `on, off`.
    pub takes: String,
    /// RocksDB's name of it, if there is one.
    pub rocksdb: Option<&'static str>,
}

impl Row {
    /// The value in force, where it was left open.
    fn in_force(&self, s: &Settings) -> String {
        self.field.in_force.unwrap_or(self.show)(s)
    }

    fn reason(&self, s: &Settings, derived: &Settings) -> String {
        let default = (self.show)(derived) == (self.show)(s);
        let budget = match self.why {
            Why::Budget => return self.reason.to_owned(),
            Why::Fixed if default => return format!("default: {}", self.reason),
            Why::Fixed => return format!("set; the default is {}", (self.show)(derived)),
            Why::Memory => "memory_budget",
            Why::Threads => "compaction_threads",
            Why::Disk => "disk_budget",
        };
        let of = ROWS.iter().find(|row| row.name == budget).map(|row| (row.show)(s));
        let of = format!("{budget} = {}", of.unwrap_or_default());
        match default {
            true => format!("from {of}: {}", self.reason),
            false => format!("set; {of} would give {}", self.in_force(derived)),
        }
    }
}

impl Settings {
    /// Changes one setting by its name, as on a command line. Sizes take `KiB` to `TiB` and `KB` to
    /// `TB`; `auto` leaves a value to the store where that is possible. A budget takes along what
    /// follows from it and was not set. Whether the whole is sound is asked afterwards
    /// ([`check`](Settings::check)).
    ///
    /// ```
    /// # use lithify_settings as lithify;
    /// let mut s = lithify::Settings::default();
    /// s.set("memory_budget", "64MiB").unwrap();
    /// assert_eq!(s.memtable_bytes, 6 << 20);
    /// let error = s.set("memtable_byte", "1MiB").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `memtable_bytes`?"));
    /// ```
    ///
    /// # Errors
    /// InvalidArgument naming what was meant, or what the setting takes.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let row = row(name)?;
        let mut changed = self.clone();
        row.set(&mut changed, value)?;
        *self = match row.is_budget() {
            true => self.clone().with_budget(changed.budget()),
            false => changed,
        };
        Ok(())
    }

    /// The value of one setting as text.
    ///
    /// # Errors
    /// As [`set`](Settings::set) for an unknown name.
    pub fn get(&self, name: &str) -> Result<String> {
        Ok((row(name)?.show)(self))
    }

    /// Every setting as it is in force, with its reason: what it follows from, or that it was set
    /// and what it would be otherwise.
    pub fn explain(&self) -> Vec<EffectiveSetting> {
        let settled = self.clone().settled();
        let derived = Settings::for_budget(self.budget());
        let of_machine = Settings::for_budget(Budget::default());
        let all = ROWS.iter().map(|row| {
            let base = if row.is_budget() { &of_machine } else { &derived };
            EffectiveSetting {
                name: row.name,
                value: row.in_force(&settled),
                derived: (row.show)(&settled) == (row.show)(base),
                reason: row.reason(&settled, &derived),
                live: row.live,
                for_rocksdb: row.group == Group::RocksDb,
                takes: row.takes(),
                rocksdb: row.rocksdb(),
            }
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_told_from_what_follows() {
        let mut s = Settings::default();
        for (name, value) in
            [("l0-trigger", "8"), ("file_bytes", "3MiB"), ("memory_budget", "64 MiB")]
        {
            s.set(name, value).unwrap();
        }
        let told = s.explain();
        let of = |name: &str| told.iter().find(|t| t.name == name).unwrap();
        assert!(of("memtable_bytes").derived && !of("file_bytes").derived);
        assert_eq!(of("file_bytes").reason, "set; memory_budget = 64MiB would give 6MiB");
        assert_eq!(of("l0_trigger").reason, "set; the default is 4");
        assert!(of("memtable_bytes").reason.starts_with("from memory_budget = 64MiB:"));
        assert_eq!(of("policy").value, s.effective_policy().name());
        assert_eq!(of("buffer_bytes").value, "10MiB");
    }

    #[test]
    fn an_unknown_name_is_told_the_one_that_was_meant() {
        let told = |name: &str| Settings::default().set(name, "1").unwrap_err().to_string();
        assert!(told("bloom_bit").contains("did you mean `bloom_bits`?"));
        assert!(told("l0_stops").contains("did you mean `l0_stop`?"));
        assert!(told("write_buffer_size").contains("`memtable_bytes` here"));
        assert!(told("max_background_compactions").contains("`compaction_threads` here"));
        assert!(told("max_background_jobs").contains("`compaction_threads` here"));
        let mut s = Settings::default();
        let wrong = s.set("policy", "levelled").unwrap_err().to_string();
        assert!(wrong.contains("policy: ") && wrong.contains("leveled"), "{wrong}");
        let wrong = s.set("memtable_bytes", "64 parsecs").unwrap_err().to_string();
        assert!(wrong.contains("KiB"), "{wrong}");
        assert_eq!(s, Settings::default(), "what failed changed nothing");
    }
}
