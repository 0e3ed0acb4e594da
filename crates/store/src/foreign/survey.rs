//! The survey: a look at everything in a foreign directory before any of it is taken over.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lithify_base::{
    CfId, ComparatorRef, Error, ErrorKind, FileId, Kind, MAX_SEQ, Result, Seq, shown_path,
};
use lithify_env::OpenOpts;
use lithify_files::dir::{Dir, FileName};
use lithify_files::wal::{self, Cut, OnRot};
use lithify_journal::manifest::WireFile;
use lithify_journal::manifest::file::FileCounts;
use lithify_journal::wal::{Op, Sections, SeqRule, WalWalk};
use lithify_tables::sst::verify::{Checked, inspect};
use lithify_tables::sst::{OpenTable, TableReader};

use super::{DeclaredOptions, Maker, declared, maker};
use crate::manifest::{Orders, Recovered, counts_of, family_version, name_ends, timestamps};
use crate::numbers;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The properties of tables; every entry of those of LevelDB, which have none. Entries of kinds that are not counted, such as wide columns, are met
    /// only when they are read.
    Properties,
    /// Every block and entry.
    Entries,
}

/// The merge operators that are known: family and name of the operator, if the directory says it,
/// to whether operands of it can be combined.
pub type Operators<'a> = &'a dyn Fn(&str, Option<&str>) -> bool;

/// A foreign directory that can be taken over.
#[derive(Clone)]
pub struct Survey {
    /// Who made it.
    pub maker: Maker,
    /// Its manifest, with counts of every table filled in.
    pub found: Recovered,
    /// What its options file says.
    pub options: DeclaredOptions,
    /// Order of keys of each family.
    pub orders: BTreeMap<CfId, ComparatorRef>,
    /// Logs that are needed, with their bytes.
    pub logs: Vec<(u64, u64)>,
    /// Batches in them.
    pub batches: u64,
    /// Where the logs ended early, if they did; of the later ones those that hold writes.
    pub cut: Option<Cut>,
    /// Tables.
    pub tables: u64,
    /// Bytes of the tables.
    pub bytes: u64,
}

/// Looks at all of a directory. `watch` is told of the bytes of tables as they have been read, and of
/// all there are.
///
/// # Errors
/// Corruption and Io as reading gives them; `Unsupported`, naming the feature, for what can't be
/// taken over; `InvalidArgument` if an order is not that of the directory; those of `orders`.
pub fn survey(
    dir: &Dir,
    found: Recovered,
    orders: Orders<'_>,
    operators: Operators<'_>,
    depth: Depth,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Survey> {
    let maker = maker(dir, &found)?;
    let logs = found.state.logs();
    let options = declared(dir, &logs)?;
    let mut survey = Survey {
        maker,
        found,
        options,
        orders: BTreeMap::new(),
        logs: Vec::new(),
        batches: 0,
        cut: None,
        tables: 0,
        bytes: 0,
    };
    survey.take_orders(orders)?;
    survey.take_tables(dir, operators, depth, watch)?;
    let last_logged = survey.take_logs(dir, logs, operators)?;
    survey.check_seqs(last_logged).map_err(|e| e.in_file(shown_path(dir.path())))?;
    Ok(survey)
}

impl Survey {
    fn take_orders(&mut self, orders: Orders<'_>) -> Result<()> {
        for (&cf, family) in &self.found.state.families {
            let order = orders(cf, &family.name, family.comparator.as_deref());
            let order = order.map_err(|e| timestamps(family).unwrap_or(e))?;
            // Names its comparator, and finds files that form no tree.
            family_version(&self.found.state, cf, order.clone())?;
            self.orders.insert(cf, order);
        }
        Ok(())
    }

    fn take_tables(
        &mut self,
        dir: &Dir,
        operators: Operators<'_>,
        depth: Depth,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let families = &mut self.found.state.families;
        let all = families.values().flat_map(|f| f.files.values());
        let total = all.fold(0, |sum: u64, f| sum.saturating_add(f.size));
        for (cf, family) in families {
            let said = self.options.merge_operators.get(&family.name).cloned();
            for file in family.files.values_mut() {
                let table = open(dir, file, &self.orders[cf])?;
                let of_table = Some(table.properties().merge_operator.as_str());
                let of_table = of_table.filter(|n| !n.is_empty() && *n != "nullptr");
                let name = said.as_deref().or(of_table);
                let mut read = self.bytes;
                // LevelDB's tables have no properties.
                let depth = if table.format_version() == 0 { Depth::Entries } else { depth };
                let seen = match depth {
                    Depth::Properties => None,
                    Depth::Entries => Some(read_whole(&table, &mut |n| {
                        read += n;
                        watch(read.min(total), total);
                    })?),
                };
                let merges = seen.map_or(table.properties().merge_operands, |s| s.merges);
                if merges > 0 && !operators(&family.name, name) {
                    return Err(no_operator(&family.name, name).in_file(table.name()));
                }
                describe(file, &table, seen.as_ref());
                self.tables += 1;
                self.bytes += file.size;
                watch(self.bytes, total);
            }
            name_ends(dir, family, &self.orders[cf])?;
        }
        Ok(())
    }

    /// The number of the last write that the logs know of.
    fn take_logs(&mut self, dir: &Dir, logs: Range<u64>, operators: Operators<'_>) -> Result<Seq> {
        let state = &self.found.state;
        let (mut batches, mut sections) = (0, Sections::default());
        let replayed = wal::replay(dir, logs, &state.wals, OnRot::Refuse, |log, batch| {
            batches += 1;
            let named = |e: Error| e.in_file(dir.path_of(FileName::Wal(log)).display());
            let logged = batch.view()?;
            let effect = sections.take(&logged)?;
            for op in logged.iter_all().filter_map(Op::write) {
                // What a dropped family held is passed over, and what is in tables already.
                let Some(family) = state.families.get(&op.cf) else { continue };
                if log < family.log_number && !logged.is_marked() {
                    continue;
                }
                let name = self.options.merge_operators.get(&family.name).map(String::as_str);
                if op.kind == Kind::Merge && !operators(&family.name, name) {
                    return Err(named(no_operator(&family.name, name)));
                }
            }
            let count = effect.map_or(batch.count, |effect| effect.count());
            Ok(batch.first_seq + u64::from(count))
        })?;
        (self.batches, self.cut) = (batches, replayed.cut);
        // Old bytes end a log that is recycled, and the next one may not have begun.
        self.cut.iter_mut().for_each(|cut| cut.dropped_logs.retain(|log| holds_writes(dir, *log)));
        for log in replayed.logs {
            self.logs.push((log.number, log.len));
        }
        Ok(replayed.last_seq)
    }

    /// Refuses what the open of the new database would refuse after it was written.
    fn check_seqs(&self, last_logged: Seq) -> Result<()> {
        let state = &self.found.state;
        let files = state.families.values().flat_map(|f| f.files.values());
        let last = files.map(|f| f.largest_seq).fold(state.last_seq.max(last_logged), Ord::max);
        numbers::check_seqs(last)
    }
}

/// Whether a log begins with a write, or with what can't be read.
fn holds_writes(dir: &Dir, log: u64) -> bool {
    let bytes = wal::read_log(dir, FileId(log)).ok().flatten().unwrap_or_default();
    let first = WalWalk::over(bytes.bytes(), log, SeqRule::Rising).next_batch();
    !matches!(first, Ok(None))
}

fn no_operator(family: &str, name: Option<&str>) -> Error {
    let operator = match name {
        Some(name) => format!("of operator `{name}`, which is not known here"),
        None => "and nothing says of which operator".to_owned(),
    };
    Error::unsupported(format!(
        "column family `{family}` holds merge operands {operator}; compact it with the program that \
         wrote it, so that only values are left, or give an operator of that name"
    ))
}

fn open(dir: &Dir, file: &WireFile, order: &ComparatorRef) -> Result<Arc<TableReader>> {
    let number = file.backing.unwrap_or(file.number);
    let (dir, name, opened) = dir.open_table_there(number, OpenOpts::read())?;
    let mut spec = OpenTable::new(opened, dir.path_of(name).display().to_string(), order.clone());
    spec.bytes = file.backing.is_none().then_some(file.size);
    spec.base_context = file.base_context;
    spec.largest_seq = Some(file.largest_seq);
    spec.tail_bytes = file.tail_size;
    TableReader::open(spec)
}

/// Reads and checks every entry.
fn read_whole(table: &Arc<TableReader>, watch: &mut dyn FnMut(u64)) -> Result<Checked> {
    let (checked, errors) = inspect(table, None, watch);
    // A feature that is not known here says more than what follows from it.
    let feature = errors.iter().find(|e| e.kind() == ErrorKind::Unsupported);
    match feature.or(errors.first()) {
        Some(e) => Err(e.clone()),
        None => Ok(checked),
    }
}

/// Completes the description of a file from its table.
fn describe(file: &mut WireFile, table: &TableReader, seen: Option<&Checked>) {
    let counts = counts_of(table);
    file.counts = Some(match seen {
        None => counts,
        Some(c) => FileCounts {
            entries: c.entries,
            deletes: c.deletes,
            raw_key_bytes: c.raw_key_bytes - 8 * c.entries,
            raw_value_bytes: c.raw_value_bytes,
            ..counts
        },
    });
    // LevelDB's manifest does not say which numbers a table holds.
    if file.largest_seq == MAX_SEQ
        && table.stored_tombstones().is_empty()
        && let Some((low, high)) = seen.and_then(|c| c.seqs)
    {
        (file.smallest_seq, file.largest_seq) = (low, high);
    }
}
