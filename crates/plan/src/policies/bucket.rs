//! The policies `bucket` and `bucket-df` (BucketLSM): flushes are cut into key ranges, and each of
//! these goes down from L0 by itself (`steps::buckets`); `bucket-df` also stacks what is locked.

use std::ops::ControlFlow;

use crate::nouns::view::View;
use crate::policies::composed::{self, Shape};
use crate::rule::offers::{Offers, Policy};

/// The policies `bucket` and `bucket-df`.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Data is stacked over a locked way.
    pub stacks: bool,
}

impl Policy for Bucket {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        composed::propose(Shape { buckets: true, stacks: self.stacks }, view, offers)
    }
}
