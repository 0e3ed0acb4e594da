//! First in, first out: a store that forgets. Data stays in L0 as it was flushed, and the oldest
//! files are dropped, unread, once all of them are larger than `fifo_max_bytes` or the oldest is
//! older than `ttl_seconds`.
//!
//! ```text
//!   L0.9  a--z 40M      fifo_max_bytes 100M: L0.6 goes, and with it every key whose newest value
//!   L0.8  a--z 40M      it holds. Keys of it that were written again since stay as they are.
//!   L0.7  a--z 20M
//!   L0.6  a--z 30M
//! ```
//!
//! **Data is lost by design**, whatever a snapshot or the log promised: a snapshot reads at its
//! sequence number what is still there. What is never seen is an older value than the newest: a file
//! goes only when nothing older lies under it, which the admission rule checks, as a drop is a job
//! from the file's position to the bottom of the tree without an output.
//!
//! Optionally (`fifo_allow_compaction`) small files of L0 are merged among themselves, so that reads
//! look at fewer of them: as long as that rewrites at most 1.1 memtables per file it removes
//! (RocksDB's bound), which leaves files alone that are large already.
//!
//! Files below L0, left by another policy or by a manual compaction, are the oldest and go first, one
//! at a time, those with the oldest newest entry first.

use std::ops::ControlFlow::{self, Continue};

use lithify_base::Pos;
use lithify_lsm::{FileRef, Run};

use crate::measures::age::is_older;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::offers::{Offers, Policy};
use crate::steps::among_l0::{self, cheapest_runs};

/// The policy `fifo`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Policy for Fifo {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        if view.options.disable_auto {
            return Continue(());
        }
        let gone = expired(view).or_else(|| surplus(view));
        let to = Pos::base(view.options.last_level());
        offers.offer_all(gone.map(|(files, reason)| {
            Candidate::merge(Kind::Drop, files, to, reason).at_prio(Prio::High)
        }))?;
        if view.options.fifo_allow_compaction {
            offers.offer_all(small_runs(view))?;
        }
        Continue(())
    }
}

/// The oldest files whose entries are all older than the time to live. A file is as old as its
/// creation says, which no entry of it is younger than.
fn expired(view: &View) -> Option<(Vec<FileRef>, Reason)> {
    let seconds = view.options.ttl_seconds;
    let old = |f: &FileRef| is_older(f.created, seconds, view.now);
    let files = oldest_while(view, |files| files.iter().all(old));
    (!files.is_empty()).then_some((files, Reason::Expired { seconds }))
}

/// The oldest files that make all of them larger than they may be together.
fn surplus(view: &View) -> Option<(Vec<FileRef>, Reason)> {
    let limit = view.options.fifo_max_bytes;
    let all: u64 = view.version.runs_newest_first().map(Run::bytes).sum();
    let going = view.flights().iter().filter(|k| k.kind == Kind::Drop).map(|k| k.bytes());
    let bytes = all.saturating_sub(going.sum());
    let mut left = bytes;
    let files = oldest_while(view, |files| {
        let more = left > limit;
        left = left.saturating_sub(files.iter().map(|f| f.bytes).sum());
        more
    });
    (!files.is_empty()).then_some((files, Reason::TooLarge { bytes, limit }))
}

/// The oldest files, a run of L0 after the other as long as `more` says so; below L0 one file.
fn oldest_while(view: &View, mut more: impl FnMut(&[FileRef]) -> bool) -> Vec<FileRef> {
    let mut runs = view.version.runs_newest_first().rev().peekable();
    let Some(oldest) = runs.peek() else { return Vec::new() };
    if oldest.pos.level > 0 {
        let idle = oldest.files().iter().filter(|f| view.is_idle(f));
        let first = idle.min_by_key(|f| (f.seqs.1, f.id));
        let file: Vec<FileRef> = first.into_iter().cloned().collect();
        return if !file.is_empty() && more(&file) { file } else { Vec::new() };
    }
    // Files being dropped are gone soon; nothing that is merged may be passed.
    let dropping = |r: &&Run| {
        let holder = r.files().iter().find_map(|f| view.holder(f.id));
        holder.and_then(|id| view.flight(id)).is_some_and(|k| k.kind == Kind::Drop)
    };
    let rest = runs.skip_while(dropping);
    let free = rest.take_while(|r| view.all_idle(r.files()) && more(r.files()));
    free.flat_map(|r| r.files().iter().cloned()).collect()
}

/// The newest runs of L0, where merging them is cheap.
fn small_runs(view: &View) -> Option<Candidate> {
    let (window, per_removed) = cheapest_runs(view);
    let cheap = per_removed <= view.options.memtable_bytes.saturating_mul(11) / 10;
    let enough = window >= view.options.l0_trigger().max(2) as usize;
    (cheap && enough).then(|| {
        let reason = Reason::SimilarRuns { runs: window as u32 };
        among_l0::merge(&view.version.level(0).runs()[..window], reason).at_prio(Prio::Normal)
    })
}
