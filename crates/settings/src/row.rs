//! One row of the table of settings, and the macro that makes [`Settings`] and all rows from the same
//! text, so that no field can be without a row.
//!
//! Keeps: what a row shows, it reads back.
//! Leaves to others: the rows themselves (`table`), rules between settings (`check`).

use lithify_base::{Error, Result};

use crate::rocksdb::Rocks;
use crate::text::{Bytes, Kind};
use crate::{ROWS, Settings};

/// In which of the two tables a setting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What a user sees first: at most 40 settings.
    First,
    /// For RocksDB's sake: a program or a directory that comes from there finds what it had. Few need them.
    RocksDb,
}

/// What a setting is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The database as a whole: its column families have the same value.
    Database,
    /// Each column family by itself.
    Family,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    Rate,
    /// Seconds.
    Seconds,
    /// Percent.
    Percent,
    /// Bits for each key.
    Bits,
    /// Things, which the setting's name says.
    Number,
    /// Nothing: the value is one of several names.
    Choice,
}

impl Unit {
    /// The unit as it is written behind a number; empty for things and names.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Rate => "per second",
            Unit::Seconds => "seconds",
            Unit::Percent => "percent",
            Unit::Bits => "bits",
            Unit::Number | Unit::Choice => "",
        }
    }
}

/// The numbers that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Zero is taken too, whatever the smallest number is; it switches something off.
    pub zero: bool,
    /// The smallest number.
    pub least: u64,
    /// The largest number; `u64::MAX` or `u32::MAX` if the type of the field is the only limit.
    pub most: u64,
}

impl Range {
    /// Whether the setting takes this number.
    pub const fn holds(&self, number: u64) -> bool {
        (self.zero && number == 0) || (self.least <= number && number <= self.most)
    }
}

/// What a default follows from.
pub(crate) enum Why {
    /// It is one of the three budgets, from which others follow.
    Budget,
    /// From `memory_budget`.
    Memory,
    /// From `compaction_threads`.
    Threads,
    /// From `disk_budget`.
    Disk,
    /// From nothing: it was measured or chosen once.
    Fixed,
}

/// One setting.
pub struct Row {
    /// Its name, which is that of its field in [`Settings`].
    pub name: &'static str,
    /// What a value counts.
    pub unit: Unit,
    /// In which table it stands.
    pub group: Group,
    /// What it is of.
    pub scope: Scope,
    /// True if a database that is open can change it.
    pub live: bool,
    /// Its default for people: a value, or the rule that gives it.
    pub default: &'static str,
    /// The value as text.
    pub show: fn(&Settings) -> String,
    pub(crate) docs: &'static str,
    /// Smallest and largest number, as text.
    pub(crate) bounds: Option<Bounds>,
    pub(crate) most: u64,
    pub(crate) takes: fn() -> String,
    pub(crate) why: Why,
    /// Why the default is right; for a rule, the rule.
    pub(crate) reason: &'static str,
    pub(crate) rocks: Rocks,
    pub(crate) field: Field,
}

/// How a row gets at its field of [`Settings`].
pub(crate) struct Field {
    pub(crate) read: fn(&mut Settings, &str) -> Result<(), String>,
    pub(crate) number: fn(&Settings) -> Option<u64>,
    pub(crate) copy: fn(&Settings, &mut Settings),
    /// The value in force, where it is left to the store.
    pub(crate) in_force: Option<fn(&Settings) -> String>,
}

/// The column of ranges: zero besides, the smallest number, the largest one if there is a limit.
pub(crate) struct Bounds {
    pub(crate) zero: bool,
    pub(crate) least: &'static str,
    pub(crate) most: Option<&'static str>,
}

impl Row {
    /// The first sentence of the docs of its field.
    pub fn sentence(&self) -> String {
        let docs = self.docs.replace("\n ", " ").replace(['[', ']'], "");
        let docs = docs.trim();
        let end = docs.find(". ").or_else(|| docs.find(".\n")).map_or(docs.len(), |at| at + 1);
        docs.get(..end).unwrap_or(docs).to_owned()
    }

    /// The numbers that it takes; `None` if its values are names.
    ///
    /// # Panics
    /// If the table has a bound that is no number.
    pub fn range(&self) -> Option<Range> {
        let number = |text| <Bytes as Kind<u64>>::read(text).expect("a bound of the table");
        self.bounds.as_ref().map(|bounds| Range {
            zero: bounds.zero,
            least: number(bounds.least),
            most: bounds.most.map_or(self.most, number),
        })
    }

    /// What values it takes, for people: `64KiB to 2GiB`, `on, off`.
    pub fn takes(&self) -> String {
        let names = (self.takes)();
        let Some(bounds) = &self.bounds else { return names };
        let zero = if bounds.zero { "0, or " } else { "" };
        let numbers = match bounds.most {
            Some(most) => format!("{zero}{} to {most}", bounds.least),
            None => format!("{zero}{} or more", bounds.least),
        };
        if names.is_empty() { numbers } else { format!("{numbers}, or {names}") }
    }

    /// What RocksDB's users know it as, if they do; a dot stands before the name of a part.
    pub fn rocksdb(&self) -> Option<&'static str> {
        self.rocks.names.first().copied()
    }

    /// Its name in OPTIONS files that RocksDB wrote, if it is read from there or written for it.
    pub fn in_options(&self) -> Option<&'static str> {
        self.rocks.place.and(self.rocksdb())
    }

    pub(crate) fn is_budget(&self) -> bool {
        matches!(self.why, Why::Budget)
    }

    /// Changes this setting alone.
    pub(crate) fn set(&self, s: &mut Settings, value: &str) -> Result<()> {
        (self.field.read)(s, value.trim())
            .map_err(|what| Error::invalid(format!("{}: {what}", self.name)))
    }
}

/// The row of a name; hyphens may stand for its underscores.
///
/// # Errors
/// InvalidArgument with the name that was meant, most likely.
pub fn row(name: &str) -> Result<&'static Row> {
    let spelled = name.replace('-', "_");
    if let Some(row) = ROWS.iter().find(|row| row.name == spelled) {
        return Ok(row);
    }
    let of_rocksdb = ROWS.iter().find(|row| row.rocks.names.contains(&&*spelled));
    if let Some(row) = of_rocksdb {
        return Err(Error::invalid(format!(
            "there is no setting `{name}`; what RocksDB calls so is `{}` here",
            row.name
        )));
    }
    let near = ROWS.iter().map(|row| (distance(&spelled, row.name), row.name)).min();
    let (_, near) = near.unwrap_or_default();
    Err(Error::invalid(format!(
        "there is no setting `{name}`; did you mean `{near}`? `lithify settings --all` lists all"
    )))
}

/// Letters to add, drop or change to get from one word to the other (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut left_above = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            let change = left_above + usize::from(x != y);
            row[j + 1] = change.min(above + 1).min(row[j] + 1);
            left_above = above;
        }
    }
    row[b.len()]
}

/// Makes [`Settings`], its docs, its defaults and [`ROWS`] from the rows of the table, whose head
/// explains the columns.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty, $unit:ident $range:tt, $group:ident $scope:ident $live:ident,
        default $default:tt,
        rocksdb $rocks:tt
        $(, in_force $in_force:expr)?;
    )*) => {
        /// Everything a user may set. Name what is to differ from the defaults, and leave the rest to
        /// [`Settings::default`], or to what the machine can spare ([`Settings::for_budget`]): by field, or by
        /// the method of the same name. [`Settings::check`] refuses what cannot hold together, by name, and
        /// says how to mend it.
        ///
        /// ```
        /// # use lithify_settings as lithify;
        /// use lithify::{Durability, Settings};
        ///
        /// let fields = Settings { memory_budget: 64 << 20, l0_trigger: 8, ..Settings::default() };
        /// let methods = Settings::default().memory_budget(64 << 20).l0_trigger(8);
        /// assert_eq!(fields.settled(), methods);
        /// assert_eq!(methods.memtable_bytes, 6 << 20); // follows from the memory
        /// ```
        ///
        /// Always end a literal with `..Settings::default()`: later versions have more fields.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(
                $(#[doc = $doc])+
                #[doc = ""]
                #[doc = settings!(@docs range $range)]
                #[doc = settings!(@docs default $default)]
                #[doc = settings!(@docs live $live)]
                #[doc = settings!(@docs rocksdb $rocks)]
                pub $name: $type,
            )*
            /// Directories for tables, in the order in which levels fill them; none for the database's own. At
            /// most four. See [`table_dirs`](fn@Settings::table_dirs).
            pub table_dirs: Vec<$crate::TableDir>,
            /// For tests: the planner's options that no setting above reaches, instead of those of the
            /// policy's preset. A small tree can be made to stack, split and merge all the time.
            #[doc(hidden)]
            pub plan: Option<Box<lithify_plan::PlanOptions>>,
            /// For measuring what checks cost: sums of blocks are not verified on reads and in
            /// compactions, what engines return is not certified, and flushes do not audit memtables.
            #[doc(hidden)]
            pub unchecked: bool,
            /// For tests: tables are written as RocksDB writes them, without counts of their blocks, and
            /// with range deletions that reach beyond the bounds of the table, where they do not count.
            #[doc(hidden)]
            pub as_rocksdb: bool,
            /// What followed from a budget here followed from this one; `None` if all was set and nothing
            /// is to follow from another.
            #[doc(hidden)]
            pub derived_from: Option<Budget>,
        }

        impl Settings {
            $(
                #[doc = concat!("With this [`", stringify!($name), "`](field@Settings::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, value: $type) -> Settings {
                    self.$name = value;
                    self.settled()
                }
            )*
        }

        /// Every setting. The order is that in OPTIONS files; the budgets come first, because others
        /// follow from them.
        pub const ROWS: &[$crate::row::Row] = &[$({
            type Form = settings!(@kind $unit);
            $crate::row::Row {
                name: stringify!($name),
                unit: settings!(@unit $unit),
                group: $crate::row::Group::$group,
                scope: $crate::row::Scope::$scope,
                live: settings!(@live $live),
                default: settings!(@text $default),
                show: |s| <Form as Kind<$type>>::show(&s.$name),
                docs: concat!($($doc, "\n"),+),
                bounds: settings!(@bounds $range),
                most: <Form as Kind<$type>>::MOST,
                takes: <Form as Kind<$type>>::takes,
                why: settings!(@why $default),
                reason: settings!(@reason $default),
                rocks: settings!(@rocks $name $rocks),
                field: $crate::row::Field {
                    read: |s, text| { s.$name = <Form as Kind<$type>>::read(text)?; Ok(()) },
                    number: |s| <Form as Kind<$type>>::number(&s.$name),
                    copy: |from, to| to.$name = from.$name.clone(),
                    in_force: settings!(@some $($in_force)?),
                },
            }
        }),*];

        /// The defaults for a budget.
        pub(crate) fn defaults(budget: &Budget) -> Settings {
            Settings {
                $($name: settings!(@value $unit budget $default),)*
                table_dirs: Vec::new(),
                plan: None,
                unchecked: false,
                as_rocksdb: false,
                derived_from: Some(*budget),
            }
        }
    };

    (@kind Rate) => { $crate::text::Bytes };
    (@kind Bytes) => { $crate::text::Bytes };
    (@kind Digits) => { $crate::text::Digits };
    (@kind $other:ident) => { $crate::text::Plain };

    (@unit Digits) => { $crate::row::Unit::Bytes };
    (@unit $unit:ident) => { $crate::row::Unit::$unit };

    (@live live) => { true };
    (@live fixed) => { false };

    (@bounds ()) => { None };
    (@bounds (zero or $($rest:tt)+)) => { settings!(@bounds true $($rest)+) };
    (@bounds ($($rest:tt)+)) => { settings!(@bounds false $($rest)+) };
    (@bounds $zero:literal $least:literal up) => {
        Some($crate::row::Bounds { zero: $zero, least: $least, most: None })
    };
    (@bounds $zero:literal $least:literal to $most:literal) => {
        Some($crate::row::Bounds { zero: $zero, least: $least, most: Some($most) })
    };

    (@text ($text:literal, $reason:literal)) => { $text };
    (@text (budget |$b:ident| $value:expr, $text:literal, $reason:literal)) => { $text };
    (@text ($from:ident |$b:ident| $value:expr, $rule:literal)) => { $rule };

    (@reason ($text:literal, $reason:literal)) => { $reason };
    (@reason (budget |$b:ident| $value:expr, $text:literal, $reason:literal)) => { $reason };
    (@reason ($from:ident |$b:ident| $value:expr, $rule:literal)) => { $rule };

    (@why ($text:literal, $reason:literal)) => { $crate::row::Why::Fixed };
    (@why (budget $($rest:tt)+)) => { $crate::row::Why::Budget };
    (@why (memory $($rest:tt)+)) => { $crate::row::Why::Memory };
    (@why (threads $($rest:tt)+)) => { $crate::row::Why::Threads };
    (@why (disk $($rest:tt)+)) => { $crate::row::Why::Disk };

    (@value $unit:ident $budget:ident ($text:literal, $reason:literal)) => {
        <settings!(@kind $unit) as Kind<_>>::read($text).expect("a default of the table")
    };
    (@value $unit:ident $budget:ident ($from:ident |$b:ident| $value:expr, $($rest:tt)+)) => {{
        let $b: &Budget = $budget;
        $value
    }};

    (@some) => { None };
    (@some $value:expr) => { Some($value) };

    (@rocks $name:ident ()) => {
        $crate::rocksdb::Rocks { names: &[], place: None, write: None, read: None }
    };
    (@rocks $name:ident (
        $($known:literal)or+ $(in $place:ident $(writes $write:ident)? $(reads $read:ident)?)?
    )) => {
        $crate::rocksdb::Rocks {
            names: &[$($known),+],
            place: settings!(@some $($crate::rocksdb::Place::$place)?),
            write: settings!(@some $($(|s| $crate::rocksdb::$write(&s.$name))?)?),
            read: settings!(@some $($(|s, all, text| {
                if let Some(value) = $crate::rocksdb::$read(all, text) {
                    s.$name = value;
                }
            })?)?),
        }
    };

    (@docs range ()) => { "" };
    (@docs range (zero or $least:literal to $most:literal)) => {
        concat!("0, or ", $least, " to ", $most, ".")
    };
    (@docs range (zero or $least:literal up)) => { concat!("0, or ", $least, " or more.") };
    (@docs range ($least:literal up)) => { concat!($least, " or more.") };
    (@docs range ($least:literal to $most:literal)) => { concat!($least, " to ", $most, ".") };
    (@docs default $default:tt) => { concat!("Default: ", settings!(@text $default), ".") };
    (@docs live live) => { "An open database can change it." };
    (@docs live fixed) => { "" };
    (@docs rocksdb ()) => { "" };
    (@docs rocksdb ($known:literal $($rest:tt)*)) => { concat!("RocksDB's `", $known, "`.") };
}
pub(crate) use settings;
