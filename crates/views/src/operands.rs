//! Merge operands, as the facade meets them: whether a directory's operands are for the operator that
//! it is opened with, and what readers make of operands.
//!
//! Keeps: an operand is never given to an operator of another name. A database without operands opens
//! with any operator, or none.
//! Leaves to others: combining operands in flushes and compactions (`lithify_merge`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lithify_base::operator::{built_in, full_merge};
use lithify_base::{CfId, Error, Kind, MergeOperatorRef, Result, Seq, Tag, memory};
use lithify_files::dir::Dir;
use lithify_journal::options::OptionsFile;
use lithify_journal::wal::BatchView;
use lithify_lsm::Version;
use lithify_tables::cache::TableCache;

use crate::names::DEFAULT_NAME;

/// Whether a table's property names an operator.
fn is_named(name: &str) -> bool {
    !name.is_empty() && name != "nullptr"
}

/// True if two names are of the same operator: ours go by RocksDB's short names, too.
pub fn is_same(a: &str, b: &str) -> bool {
    a == b || built_in(a).zip(built_in(b)).is_some_and(|(a, b)| a.name() == b.name())
}

/// Operands that an open may meet although it has not the operator they were written for.
pub struct Foreign {
    family: String,
    /// The operator given, if one was.
    given: Option<String>,
    /// The one that the directory was last opened with; `None` if nothing tells.
    stored: Option<String>,
}

impl Foreign {
    /// Compares the operator that `family` is given with the one that `dir` was last opened with.
    /// `None` if it is the same, as it is with nearly every open.
    pub fn look(
        declared: &Declared,
        family: &str,
        given: Option<&MergeOperatorRef>,
    ) -> Option<Foreign> {
        let given = given.map(|op| op.name().to_owned());
        let same = |stored: &Option<String>| match (stored, &given) {
            (None, None) => true,
            (Some(stored), Some(given)) => is_same(stored, given),
            _ => false,
        };
        match declared.get(family) {
            Some(stored) if same(stored) => None,
            stored => {
                let (family, stored) = (family.to_owned(), stored.cloned().flatten());
                Some(Foreign { family, given, stored })
            }
        }
    }

    /// Refuses if a table has operands for another operator.
    ///
    /// # Errors
    /// `Unsupported` with the name of that operator; what opening a table gives.
    pub fn check_tables(&self, version: &Version, tables: &TableCache) -> Result<()> {
        for file in version.files() {
            let table = tables.open(file)?;
            let properties = table.properties();
            let name = properties.merge_operator.as_str();
            let known = Some(name).filter(|name| is_named(name));
            let fits = known.map_or(self.is_believed(), |name| self.is_given(name));
            if properties.merge_operands > 0 && !fits {
                return Err(self.refuse(known).in_file(table.name()));
            }
        }
        Ok(())
    }

    /// Refuses a batch from a log that has operands for another operator of the family.
    ///
    /// # Errors
    /// `Unsupported` with the name of that operator.
    pub fn check_batch(&self, cf: CfId, batch: &BatchView<'_>) -> Result<()> {
        if !self.is_believed() && batch.iter().any(|op| op.cf == cf && op.kind == Kind::Merge) {
            return Err(self.refuse(None));
        }
        Ok(())
    }

    /// A log names no operator, nor do some tables from outside. Where nothing else does, the one that is
    /// given is believed.
    fn is_believed(&self) -> bool {
        self.stored.is_none() && self.given.is_some()
    }

    fn is_given(&self, name: &str) -> bool {
        self.given.as_ref().is_some_and(|given| is_same(given, name))
    }

    fn refuse(&self, name: Option<&str>) -> Error {
        let whose = match name.or(self.stored.as_deref()) {
            Some(name) => format!("merge operator `{name}`"),
            None => "a merge operator that is not known any more".to_owned(),
        };
        let given = match &self.given {
            Some(given) => format!("and was opened with `{given}`"),
            None => "and was opened without one".to_owned(),
        };
        let (family, holder, giver) = match self.family.as_str() {
            DEFAULT_NAME => (String::new(), "the database".to_owned(), "merge_operator"),
            name => (format!("{name}="), format!("column family `{name}`"), "column_family"),
        };
        let option = format!("--merge-operator {family}NAME");
        Error::unsupported(format!(
            "{holder} holds operands of {whose}, {given}; nothing was changed; give it that operator \
             with Builder::{giver}, or `{option}` on the command line"
        ))
    }
}

/// Refuses a table from outside whose operands are for another operator than `given`. One that names
/// none takes any.
///
/// # Errors
/// `Unsupported` with the name of that operator.
pub fn check_staged(operands_for: Option<&str>, given: Option<&MergeOperatorRef>) -> Result<()> {
    match operands_for {
        Some(name) if !is_named(name) => match given {
            Some(_) => Ok(()),
            None => Err(Error::unsupported(
                "the table holds merge operands, and this database has no merge operator; open it \
                 with one (Builder::merge_operator); nothing was taken in",
            )),
        },
        Some(name) if !given.is_some_and(|given| is_same(given.name(), name)) => {
            Err(Error::unsupported(format!(
                "the table holds operands of merge operator `{name}`, which is not this \
                 database's; open the database with it (Builder::merge_operator); nothing was \
                 taken in"
            )))
        }
        _ => Ok(()),
    }
}

/// The operator that the newest OPTIONS file names for each family, if it names one; empty without such
/// a file, or if it can't be read.
pub type Declared = BTreeMap<String, Option<String>>;

/// Reads them.
///
/// # Errors
/// `Io`.
pub fn declared(dir: &Dir) -> Result<Declared> {
    let Some((_, text)) = dir.read_options()? else { return Ok(Declared::new()) };
    let Ok(options) = OptionsFile::parse(&text) else { return Ok(Declared::new()) };
    let named = options.families.iter().rev();
    Ok(named.map(|f| (f.name.clone(), f.merge_operator().map(str::to_owned))).collect())
}

/// What a reader says of operands without an operator.
pub fn no_operator() -> Error {
    Error::unsupported(
        "this key holds merge operands, and the database was opened without a merge operator; give \
         it one with Builder::merge_operator",
    )
}

/// The operands of a key that a reader has met, with their sequence numbers.
#[derive(Default)]
pub struct Operands {
    /// Newest first.
    met: Vec<(Seq, Vec<u8>)>,
}

impl Operands {
    /// Forgets all operands.
    pub fn clear(&mut self) {
        self.met.clear();
    }
    /// True if there are no operands.
    pub fn is_empty(&self) -> bool {
        self.met.is_empty()
    }
    /// Takes the next operand, older than those before; or newer ones, one after the other, before a
    /// call of [`turn`](Operands::turn).
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory for it.
    pub fn push(&mut self, seq: Seq, operand: &[u8]) -> Result<()> {
        self.met.push((seq, memory::copied(operand, "a merge operand")?));
        Ok(())
    }
    /// Operands that were met oldest first come into order, without those that a range deletion at
    /// `hidden` hides.
    pub fn turn(&mut self, hidden: Option<Seq>) {
        self.met.retain(|(seq, _)| hidden.is_none_or(|h| h <= *seq));
        self.met.reverse();
    }
    /// Takes the next older entry of the key, over which the newest range deletion is `hidden`. Breaks
    /// with the value that the operands are applied to, if there is one.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory for it; `Corruption` for what is no entry of a key.
    pub fn take(
        &mut self,
        tag: Tag,
        value: &[u8],
        hidden: Option<Seq>,
    ) -> Result<ControlFlow<Option<Vec<u8>>>> {
        if hidden.is_some_and(|h| h > tag.seq()) {
            return Ok(ControlFlow::Break(None));
        }
        match tag.kind() {
            Some(Kind::Merge) => {
                self.push(tag.seq(), value)?;
                Ok(ControlFlow::Continue(()))
            }
            Some(Kind::Value) => Ok(ControlFlow::Break(Some(memory::copied(value, "a value")?))),
            Some(Kind::Delete | Kind::SingleDelete) => Ok(ControlFlow::Break(None)),
            Some(Kind::RangeDelete) | None => Err(Error::corruption(format!(
                "entry of kind {:#x} among point keys",
                tag.kind_byte()
            ))),
        }
    }
    /// What the operands make of `base`.
    ///
    /// # Errors
    /// `Unsupported` without an operator; `MergeFailed`.
    pub fn combine(
        &self,
        operator: Option<&MergeOperatorRef>,
        key: &[u8],
        base: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let operator = operator.ok_or_else(no_operator)?;
        let oldest_first: Vec<&[u8]> = self.met.iter().rev().map(|(_, o)| &o[..]).collect();
        full_merge(&**operator, key, base, &oldest_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_base::operator::{Add, Max};

    #[test]
    fn a_table_from_outside_brings_operands_for_our_operator_only() {
        let add: MergeOperatorRef = std::sync::Arc::new(Add);
        let max: MergeOperatorRef = std::sync::Arc::new(Max);
        for name in ["UInt64AddOperator", "uint64add"] {
            check_staged(Some(name), Some(&add)).unwrap();
            for other in [Some(&max), None] {
                let error = check_staged(Some(name), other).unwrap_err();
                assert!(error.to_string().contains(name), "{error}");
            }
        }
        check_staged(None, None).unwrap();
    }
}
