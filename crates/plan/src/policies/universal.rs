//! RocksDB's universal compaction: the tree is one sequence of sorted runs by age, and only
//! neighbours in age are merged. Each run of L0 is one, and so is each run of a deeper level.
//!
//! Once `l0_trigger` runs are not at work, the first of these rules that finds something is taken:
//!
//! 1. **size amplification**: all runs but the oldest are extra space; at `size_amp_percent` of the
//!    oldest run they are merged into it;
//! 2. **size ratio**: from the newest run on, a run joins those before it unless it is larger than
//!    they are together, by more than `universal_size_ratio` percent;
//! 3. **number of runs**: as many of the newest as it takes to come back to the trigger.
//!
//! ```text
//!   L0.9  a--z 10M      trigger 4, ratio 1%: 10M joins 10M, and 20M joins these 20M; 100M is too
//!   L0.8  a--z 10M      large for 40M. The three become one run, as deep as it can lie above the
//!   L0.7  a--z 20M      next older one: L4.0. L5 and L6 hold 60% of what would be too much extra.
//!   L5.0  a--z 100M
//!   L6.0  a--z 230M
//! ```
//!
//! The output goes to the last level if it holds the oldest run, else to the level above the next
//! older run; right above L1 it stays in L0, at the age of its oldest input. So old data ends up in
//! the last level. Runs that do not overlap, as sequential writes make them, move there unread.
//!
//! A merge into the oldest run that would be larger than one job should be is done in **slices**, side
//! by side: files of the second oldest run, each with what lies under it, those first that have the
//! least under them. That needs little spare disk and keeps the rest of both runs free.
//!
//! Runs at work are left out, and runs on both sides of them are never merged: what is newer can go
//! on meanwhile. Keeps: one run per level below L0. Leaves to others: conflicts (`relation`).

use std::ops::ControlFlow::{self, Continue};
use std::ops::Range;

use lithify_base::{Level, Pos};
use lithify_lsm::{FileRef, Run};

use crate::measures::seed::{SEEDS_TRIED, order_seeds};
use crate::nouns::files::{bytes, hull};
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::{Flight, View};
use crate::rule::closure::close;
use crate::rule::offers::{Offers, Policy};

/// The policy `universal`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Universal;

impl Policy for Universal {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        if view.options.disable_auto {
            return Continue(());
        }
        let ages = Ages::of(view);
        let trigger = view.options.universal_trigger().max(1);
        // Runs at work do not count, or the next two flushes would be merged at once, and again.
        let idle = ages.busy.iter().filter(|busy| !**busy).count();
        let sliced = ages.runs.last().is_some_and(|oldest| ages.slices_in_flight(oldest.pos));
        if idle >= trigger || sliced {
            ages.amplified(offers)?;
        }
        if idle >= trigger {
            ages.similar(offers)?;
            offers.offer_all(ages.too_many(idle))?;
        }
        Continue(())
    }
}

/// The runs of a view, newest first.
struct Ages<'v, 'a> {
    view: &'v View<'a>,
    runs: Vec<&'a Run>,
    /// Of each run, whether some of it is an input of a job in flight.
    busy: Vec<bool>,
}

impl<'v, 'a> Ages<'v, 'a> {
    fn of(view: &'v View<'a>) -> Ages<'v, 'a> {
        let runs: Vec<&Run> = view.version.runs_newest_first().collect();
        // A job that takes whole runs has many inputs, and they stand in the order of their runs.
        let inputs = view.flights().iter().flat_map(|k| &k.inputs);
        let mut at_work: Vec<Pos> = inputs.map(|f| f.pos).collect();
        at_work.dedup();
        let busy = runs.iter().map(|run| at_work.contains(&run.pos)).collect();
        Ages { view, runs, busy }
    }

    /// Rule 1: the oldest runs, up to one at work, take too much space next to the very oldest.
    fn amplified(&self, offers: &mut Offers) -> ControlFlow<()> {
        let base = self.runs.len() - 1;
        let slices = self.slices_in_flight(self.runs[base].pos);
        let stays = |at: &usize| slices || !self.busy[*at];
        if base == 0 || !stays(&base) {
            return Continue(());
        }
        let newest = (0..base).rev().take_while(stays).last().unwrap_or(base);
        let leaving: u64 = match slices {
            true => self.leaving(self.runs[base].pos),
            false => 0,
        };
        let extra: u64 = self.runs[newest..base].iter().map(|r| r.compensated_bytes()).sum();
        let extra = extra.saturating_sub(leaving);
        let (limit, size) = (self.view.options.size_amp_percent, self.runs[base].bytes());
        let percent = u128::from(extra) * 100 / u128::from(size.max(1));
        if newest < base && percent >= u128::from(limit) {
            let percent = u64::try_from(percent).unwrap_or(u64::MAX);
            return self.down_to_oldest(newest, Reason::SizeAmp { percent, limit }, offers);
        }
        // What was cut into slices by the second rule goes on as long as that rule would.
        let second = self.runs[base - 1].compensated_bytes().saturating_sub(leaving);
        if slices && self.joins(second, size.saturating_add(leaving)) {
            self.down_to_oldest(base - 1, Reason::SimilarRuns { runs: 2 }, offers)?;
        }
        Continue(())
    }

    /// All runs from one on become the oldest run, in slices if that is too much at once.
    fn down_to_oldest(
        &self,
        newest: usize,
        reason: Reason,
        offers: &mut Offers,
    ) -> ControlFlow<()> {
        let (view, base) = (self.view, self.runs.len() - 1);
        let to = Pos::base(view.options.last_level());
        let all: u64 = self.runs[newest..].iter().map(|r| r.bytes()).sum();
        let sliced = self.runs[base].pos == to && self.runs[base - 1].pos.level > 0;
        let large = view.options.universal_incremental && all > view.options.max_job_bytes();
        match sliced && large || self.busy[base] {
            true => self.slices(self.runs[base - 1], to, &reason, offers),
            false => offers.offer(self.merge(newest..self.runs.len(), reason)),
        }
    }

    /// Bytes on their way into the oldest run.
    fn leaving(&self, base: Pos) -> u64 {
        let jobs = self.view.flights().iter().filter(|k| k.out == base);
        let files = jobs.flat_map(|k| &k.inputs).filter(|f| f.pos != base);
        files.map(|f| f.compensated_bytes()).fold(0, u64::saturating_add)
    }

    /// Rule 2 for a run next to newer ones of this size.
    fn joins(&self, newer: u64, bytes: u64) -> bool {
        let ratio = 100 + u128::from(self.view.options.universal_size_ratio);
        u128::from(newer) * ratio / 100 >= u128::from(bytes)
    }

    /// True if what holds the oldest run takes it in slices.
    fn slices_in_flight(&self, base: Pos) -> bool {
        let mut holders = self
            .view
            .flights()
            .iter()
            .filter(|k| k.inputs.iter().any(|f| f.pos == base))
            .peekable();
        let is_slice = |k: &Flight| {
            let mut above = k.inputs.iter().map(|f| f.pos).filter(|p| *p != base);
            let first = above.next();
            k.out == base && first.is_some_and(|p| p.level > 0 && above.all(|q| q == p))
        };
        holders.peek().is_some() && holders.all(is_slice)
    }

    /// Files of the second oldest run with what lies under them, least under them first.
    fn slices(&self, run: &Run, to: Pos, reason: &Reason, offers: &mut Offers) -> ControlFlow<()> {
        let view = self.view;
        // Of this run alone: the level may be the last one, whose base has seeds enough to hide all others.
        let seeds = order_seeds(view, run.pos.level, |r| r.pos == run.pos);
        for seed in seeds.iter().filter(|f| view.is_idle(f)).take(SEEDS_TRIED) {
            let Some(at) = run.index_of(seed.id) else { continue };
            let mut best = None;
            for end in at + 1..=run.files().len() {
                let inputs = close(view.version, &run.files()[at..end], to);
                let free = view.all_idle(&inputs)
                    && hull(&inputs, view.order()).is_some_and(|r| !view.is_promised(to, &r));
                if !free || end > at + 1 && bytes(&inputs) > view.options.max_job_bytes() {
                    break;
                }
                best = Some(inputs);
            }
            if let Some(inputs) = best {
                return offers.offer(self.wish(inputs, to, reason.clone()));
            }
        }
        Continue(())
    }

    /// Rule 2: the newest neighbours of similar size.
    fn similar(&self, offers: &mut Offers) -> ControlFlow<()> {
        let least = self.view.options.universal_min_merge_width as usize;
        let most = self.view.options.universal_max_merge_width as usize;
        let Some(span) = self.span(|newer, bytes| self.joins(newer, bytes), least, most) else {
            return Continue(());
        };
        let reason = Reason::SimilarRuns { runs: span.len() as u32 };
        match span.end == self.runs.len() {
            true => self.down_to_oldest(span.start, reason, offers),
            false => offers.offer(self.merge(span, reason)),
        }
    }

    /// Rule 3: the newest runs, as many as are too many of those that are not at work.
    fn too_many(&self, idle: usize) -> Option<Candidate> {
        let trigger = self.view.options.universal_trigger();
        let surplus = idle.checked_sub(trigger).filter(|n| *n > 0)?;
        let most = self.view.options.universal_max_merge_width as usize;
        let runs = idle as u32;
        let reason = Reason::ManyRuns { runs, trigger: trigger as u32 };
        if let Some(span) = self.span(|_, _| true, 2, (surplus + 1).min(most)) {
            return Some(self.merge(span, reason));
        }
        // Where a single run of L0 stops writers it goes down alone.
        let alone = (trigger == 0 && !self.busy[0]).then(|| self.merge(0..1, reason));
        alone.filter(|wish| wish.kind == Kind::Move)
    }

    /// The newest idle neighbours, at least `least` and at most `most`, as long as each `joins` the
    /// bytes before it.
    fn span(
        &self,
        joins: impl Fn(u64, u64) -> bool,
        least: usize,
        most: usize,
    ) -> Option<Range<usize>> {
        let least = least.max(2);
        (0..self.runs.len()).find_map(|from| {
            if self.busy[from] {
                return None;
            }
            let (mut end, mut size) = (from + 1, self.runs[from].compensated_bytes());
            while end < self.runs.len() && end - from < most && !self.busy[end] {
                let next = self.runs[end];
                if !joins(size, next.bytes()) {
                    break;
                }
                size = size.saturating_add(next.compensated_bytes());
                end += 1;
            }
            (end - from >= least).then_some(from..end)
        })
    }

    /// A merge of neighbouring runs, as deep as it can lie.
    fn merge(&self, span: Range<usize>, reason: Reason) -> Candidate {
        let oldest = self.runs[span.end - 1].pos;
        let to = match self.runs.get(span.end).map(|older| older.pos.level) {
            None => Pos::base(self.view.options.last_level()),
            Some(0 | 1) => oldest,
            // Positions sort newest first.
            Some(level) => oldest.max(Pos::base(level - 1)),
        };
        let files = self.runs[span].iter().flat_map(|r| r.files().iter().cloned()).collect();
        self.wish(files, to, reason)
    }

    fn wish(&self, files: Vec<FileRef>, to: Pos, reason: Reason) -> Candidate {
        let deep = self.view.version.max_depth(0) >= (self.view.options.l0_slowdown / 2).max(1);
        let prio = if deep { Prio::High } else { Prio::Normal };
        if let Some((movers, to)) = self.movers(&files, to) {
            return Candidate::merge(Kind::Move, movers, to, reason).at_prio(prio);
        }
        let kind = if to.level == 0 { Kind::IntraL0 } else { Kind::Tier };
        Candidate::merge(kind, files, to, reason).at_prio(prio)
    }

    /// Those of the files that are not at `to` yet, if none overlaps another and those that are
    /// there lie to one side of them: then nothing has to be read. They go on down as long as nothing
    /// lies under them.
    fn movers(&self, files: &[FileRef], to: Pos) -> Option<(Vec<FileRef>, Pos)> {
        let (view, order) = (self.view, self.view.order());
        let movers: Vec<FileRef> = files.iter().filter(|f| f.pos != to).cloned().collect();
        let range = hull(&movers, order)?;
        let mut sorted: Vec<&FileRef> = movers.iter().collect();
        sorted.sort_by(|a, b| order.compare(&a.range.lo, &b.range.lo));
        let apart = sorted.windows(2).all(|w| w[0].range.is_before(&w[1].range, order));
        let clear = files.iter().all(|f| f.pos != to || !f.range.overlaps(&range, order));
        if to.level == 0 || !apart || !clear {
            return None;
        }
        let free = |level: &Level| {
            let out = Pos::base(*level);
            view.version.overlapping(*level, &range).next().is_none()
                && !view.is_promised(out, &range)
        };
        let deepest = (to.level + 1..=view.options.last_level()).take_while(free).last();
        Some((movers, deepest.map_or(to, Pos::base)))
    }
}
