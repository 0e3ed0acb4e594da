//! The order of a part: everything that decides what its files hold, as one value.
//!
//! It names tables and has a recipe, and knows no tree, no version and no table of jobs. So a part can
//! be merged by any worker, with tables opened anew, and again after a worker gave it back: its files
//! hold the same entries and are cut alike. Only their numbers differ, as no number is used twice.
//!
//! Leaves to others: what all compactions of a column family share, and no entry depends on (`context`):
//! the directory, whose tables they are, threads, buffers.

use std::collections::BTreeMap;

use lithify_base::{Comparator, FileId, KeyRange, Pos, Result};
use lithify_env::SharedUrgency;
use lithify_env::sync::Arc;
use lithify_lsm::FileRef;
use lithify_merge::{JobRange, Recipe};
use lithify_tables::sst::FullIndex;

use crate::context::{JobContext, OutputOptions, Times};
use crate::feed::Feed;
use crate::recipe::InputRun;
use crate::sink::Sink;

/// The order of one part of a compaction.
#[derive(Clone, Debug)]
pub(crate) struct PartOrder {
    /// Its runs, newest first: of each the tables, in key order, that may hold keys of the part. A table
    /// is known by number, size, bounds, base context and largest sequence number.
    pub(crate) runs: Vec<RunOrder>,
    /// Whether all tables of the compaction count the entries of their blocks, so that a key outside
    /// of its table's bounds would be noticed.
    pub(crate) counted: bool,
    /// What decides the bytes of its blocks, with its range of keys.
    pub(crate) recipe: Arc<Recipe>,
    /// Where its files go and how they look.
    pub(crate) output: OutputOrder,
    /// Bytes of inputs that may be in memory at once.
    pub(crate) memory: u64,
    /// How urgently its transfers run; may change while it is at work.
    pub(crate) urgency: SharedUrgency,
}

/// The tables of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunOrder {
    pub(crate) pos: Pos,
    pub(crate) tables: Vec<FileRef>,
}

/// What the files of a part are besides their blocks.
#[derive(Clone, Debug)]
pub(crate) struct OutputOrder {
    pub(crate) pos: Pos,
    /// The number of the directory that they go to.
    pub(crate) place: u8,
    /// The smallest of the inputs.
    pub(crate) epoch: u64,
    pub(crate) times: Times,
    /// How tables look: versions, filters, indexes.
    pub(crate) shape: Arc<OutputOptions>,
}

/// Tables that are open, by number.
#[derive(Default)]
pub(crate) struct OpenTables(BTreeMap<FileId, Arc<FullIndex>>);

impl OpenTables {
    /// All of `runs`.
    pub(crate) fn of(runs: &[InputRun]) -> OpenTables {
        let files = runs.iter().flat_map(|run| &run.files);
        OpenTables(files.map(|(meta, input)| (meta.id, input.clone())).collect())
    }

    /// A table; opened if it is not open.
    fn get(&self, context: &JobContext, file: &FileRef) -> Result<Arc<FullIndex>> {
        match self.0.get(&file.id) {
            Some(open) => Ok(open.clone()),
            None => Ok(Arc::new(FullIndex::of(context.tables.open(file)?)?)),
        }
    }
}

impl PartOrder {
    /// What reads the part and what writes it, in `context`. `open` has the tables that are open already.
    ///
    /// # Errors
    /// Corruption or Io if another table cannot be opened.
    pub(crate) fn begin(
        &self,
        context: &Arc<JobContext>,
        open: &OpenTables,
    ) -> Result<(Feed, Sink)> {
        let mut runs = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let with_index = |file: &FileRef| Ok((file.clone(), open.get(context, file)?));
            let files = run.tables.iter().map(with_index).collect::<Result<_>>()?;
            runs.push(InputRun { pos: run.pos, files });
        }
        let feed = Feed::new(context.clone(), self, &runs)?;
        let sink = Sink::new(context.clone(), self.urgency.clone(), self.output.clone())
            .with_dictionary(self.recipe.dictionary.clone());
        Ok((feed, sink))
    }
}

impl RunOrder {
    /// The tables of `run` that may hold keys of `range`.
    pub(crate) fn of(run: &InputRun, range: &JobRange, order: &dyn Comparator) -> RunOrder {
        let meets = |file: &KeyRange| {
            range.lo.as_ref().is_none_or(|lo| !file.hi.is_before(lo, order))
                && range.hi.as_ref().is_none_or(|hi| !hi.is_before(&file.lo, order))
        };
        let files = run.files.iter().map(|(file, _)| file);
        let tables = files.filter(|file| meets(&file.range)).cloned().collect();
        RunOrder { pos: run.pos, tables }
    }
}
