//! What an iterator of a database merges: memtables and runs.

use std::ops::ControlFlow;

use lithify_base::{Result, Tag};
use lithify_memtable::MemIter;
use lithify_tables::sst::Passed;

use super::capped::Capped;
use super::merging::Merging;
use super::stratum::Stratum;
use super::{Cursor, by_steps};

/// The internal cursor under every iterator.
pub(crate) type Merged = Merging<Child>;

/// One memtable or one run.
pub(crate) enum Child {
    Mem(MemIter),
    Run(Stratum),
    /// One of them as it was, under newer entries of a transaction.
    Old(Box<Capped<Child>>),
}

macro_rules! each {
    ($self:ident, $c:ident => $e:expr) => {
        match $self {
            Child::Mem($c) => $e,
            Child::Run($c) => $e,
            Child::Old($c) => $e,
        }
    };
}

impl Cursor for Child {
    fn narrow(&mut self, prefix: Option<&[u8]>) {
        match self {
            Child::Mem(_) => {}
            Child::Run(c) => c.narrow(prefix),
            Child::Old(c) => c.narrow(prefix),
        }
    }
    fn seek(&mut self, user: &[u8], tag: Tag) {
        each!(self, c => c.seek(user, tag));
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        each!(self, c => c.seek_for_prev(user, tag));
    }
    fn seek_to_first(&mut self) {
        each!(self, c => c.seek_to_first());
    }
    fn seek_to_last(&mut self) {
        each!(self, c => c.seek_to_last());
    }
    fn next(&mut self) {
        each!(self, c => c.next());
    }
    #[inline]
    fn next_of_same(&mut self) -> bool {
        each!(self, c => c.next_of_same())
    }
    fn walk(&mut self, visit: &mut impl FnMut(Passed<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Child::Run(c) => c.walk(visit),
            Child::Mem(_) | Child::Old(_) => by_steps(self, visit),
        }
    }
    fn prev(&mut self) {
        each!(self, c => c.prev());
    }
    fn valid(&self) -> bool {
        each!(self, c => c.valid())
    }
    fn user_key(&self) -> &[u8] {
        each!(self, c => c.user_key())
    }
    fn tag(&self) -> Tag {
        each!(self, c => c.tag())
    }
    fn value(&self) -> &[u8] {
        each!(self, c => c.value())
    }
    #[inline]
    fn entry(&self) -> (&[u8], &[u8]) {
        each!(self, c => (c.user_key(), c.value()))
    }
    fn status(&self) -> Result<()> {
        match self {
            Child::Mem(_) => Ok(()),
            Child::Run(c) => c.status(),
            Child::Old(c) => c.status(),
        }
    }
}
