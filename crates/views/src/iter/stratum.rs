//! A cursor over one run: its files are disjoint and in key order, so they are one long table.
//! Files are opened when the cursor enters them.

use std::ops::ControlFlow;

use lithify_base::{ComparatorRef, Error, Result, Tag};
use lithify_env::sync::Arc;
use lithify_tables::cache::TableCache;
use lithify_tables::sst::{Passed, Scope, TableIter};

use super::Cursor;
use crate::super_version::RunTables;

/// A cursor over the tables of a run, one after the other.
pub(crate) struct Stratum {
    run: RunTables,
    tables: Arc<TableCache>,
    order: ComparatorRef,
    /// The keys that are of interest, as long as it is not narrowed.
    scope: Scope,
    /// The same now.
    now: Scope,
    fill_cache: bool,
    /// Index of the file that was entered.
    at: usize,
    /// Its filter says that it has nothing of interest: it counts as empty.
    skipped: bool,
    open: Option<TableIter>,
    error: Option<Error>,
}

impl Stratum {
    pub(crate) fn new(
        run: RunTables,
        tables: Arc<TableCache>,
        order: ComparatorRef,
        scope: Scope,
        fill_cache: bool,
    ) -> Stratum {
        Stratum {
            run,
            tables,
            order,
            now: scope.clone(),
            scope,
            fill_cache,
            at: 0,
            skipped: false,
            open: None,
            error: None,
        }
    }

    /// Opens file `at`, unless it has nothing of interest; false if there is none or it can't be read.
    fn enter(&mut self, at: usize) -> bool {
        if self.open.is_some() && self.at == at {
            return true;
        }
        self.open = None;
        self.at = at;
        self.skipped = false;
        let Some(slot) = self.run.slots.get(at) else {
            return false;
        };
        let asked = slot.reader(&self.tables).and_then(|r| Ok((r.may_have(&self.now)?, r)));
        match asked {
            Ok((false, _)) => {
                self.tables.leave_out();
                self.skipped = true;
                true
            }
            Ok((true, reader)) => {
                let mut iter = TableIter::new(reader.clone());
                iter.set_fill_cache(self.fill_cache);
                self.open = Some(iter);
                true
            }
            Err(e) => {
                self.error = Some(e);
                false
            }
        }
    }

    /// True if the open file has nothing (more): it may hold range deletions only. An error in it
    /// ends the iteration.
    fn is_spent(&mut self) -> bool {
        let Some(iter) = &self.open else { return self.skipped };
        if iter.valid() {
            return false;
        }
        let status = iter.status();
        if let Err(e) = status {
            self.error = Some(e);
            self.open = None;
            return false;
        }
        true
    }

    fn settle_forward(&mut self) {
        while self.is_spent() {
            let before = self.open.take();
            if !self.enter(self.at + 1) {
                return;
            }
            if let Some(iter) = &mut self.open {
                if let Some(before) = before {
                    iter.go_on_from(before);
                }
                iter.seek_to_first();
            }
        }
    }

    fn settle_backward(&mut self) {
        while self.is_spent() {
            let Some(before) = self.at.checked_sub(1) else {
                self.open = None;
                self.skipped = false;
                return;
            };
            if !self.enter(before) {
                return;
            }
            if let Some(iter) = &mut self.open {
                iter.seek_to_last();
            }
        }
    }
}

impl Cursor for Stratum {
    fn narrow(&mut self, prefix: Option<&[u8]>) {
        self.now = match prefix {
            Some(prefix) => Scope { start: prefix.into(), exact: true, ..self.scope.clone() },
            None => self.scope.clone(),
        };
        self.open = None;
    }
    fn seek(&mut self, user: &[u8], tag: Tag) {
        self.error = None;
        let at = self.run.run.lower_bound(user, &*self.order);
        if self.enter(at) {
            if let Some(iter) = &mut self.open {
                iter.seek(user, tag);
            }
            self.settle_forward();
        }
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        self.error = None;
        // The first file that does not end before `user` may start at or before it; else the
        // answer is the last entry of the file before.
        let at = self.run.run.lower_bound(user, &*self.order);
        let last = self.run.slots.len().saturating_sub(1);
        if self.enter(at.min(last)) {
            if let Some(iter) = &mut self.open {
                iter.seek_for_prev(user, tag);
            }
            self.settle_backward();
        }
    }
    fn seek_to_first(&mut self) {
        self.error = None;
        if self.enter(0) {
            if let Some(iter) = &mut self.open {
                iter.seek_to_first();
            }
            self.settle_forward();
        }
    }
    fn seek_to_last(&mut self) {
        self.error = None;
        if self.enter(self.run.slots.len().saturating_sub(1)) {
            if let Some(iter) = &mut self.open {
                iter.seek_to_last();
            }
            self.settle_backward();
        }
    }
    fn next(&mut self) {
        if let Some(iter) = &mut self.open {
            iter.next();
            if !iter.valid() {
                self.settle_forward();
            }
        }
    }
    #[inline]
    fn next_of_same(&mut self) -> bool {
        let Some(iter) = &mut self.open else { return false };
        let repeats = iter.next_of_same();
        if !iter.valid() {
            // No user key is in two files of a run (V4).
            self.settle_forward();
        }
        repeats
    }
    fn walk(&mut self, visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        // No user key is in two files of a run (V4).
        while let Some(iter) = &mut self.open {
            iter.walk(visit)?;
            self.settle_forward();
            if !self.valid() {
                break;
            }
        }
        ControlFlow::Continue(())
    }
    fn prev(&mut self) {
        if let Some(iter) = &mut self.open {
            iter.prev();
            if !iter.valid() {
                self.settle_backward();
            }
        }
    }
    fn valid(&self) -> bool {
        self.error.is_none() && self.open.as_ref().is_some_and(TableIter::valid)
    }
    fn user_key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], TableIter::user_key)
    }
    fn tag(&self) -> Tag {
        self.open.as_ref().map_or(Tag(0), TableIter::tag)
    }
    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], TableIter::value)
    }
    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}
