//! Prefixes of keys: with which extractor a database and its families are open, and scans of keys of
//! one prefix.
//!
//! Keeps: what a scan shows follows from the extractor that it is open with, whatever the tables were
//! written with. Where a shape takes no prefixes, that never changes.

use lithify::prefix::{CappedPrefix, FixedPrefix};
use lithify::{PrefixExtractorRef, ReadOptions};
use lithify_env::sync::Arc;

use super::reads::meet;
use super::{Violation, World, families};
use crate::model::Map;

/// Ways to take prefixes.
pub(super) const WAYS: u32 = 4;

/// The extractor of a way; the first takes no prefixes, the last takes whole keys, and none of those
/// that are shorter.
fn extractor(way: u32) -> Option<PrefixExtractorRef> {
    match way {
        0 => None,
        1 => Some(Arc::new(FixedPrefix::new(2))),
        2 => Some(Arc::new(CappedPrefix::new(3))),
        _ => Some(Arc::new(FixedPrefix::new(7))),
    }
}

impl World {
    /// What the family of this name is open with. One takes prefixes in another way.
    pub(super) fn extractor_of(&self, family: &str) -> Option<PrefixExtractorRef> {
        let other = family == families::NAMES[2] && self.prefixes > 0;
        extractor(if other { (self.prefixes + 1) % WAYS } else { self.prefixes })
    }

    /// The next open may take prefixes in another way.
    pub(super) fn turn_prefixes(&mut self) {
        if self.shape.prefixes > 0 && self.dice.choose(3, "other prefixes") > 0 {
            self.prefixes = self.dice.choose(WAYS, "prefixes");
        }
    }

    /// Scans the keys of one prefix.
    pub(super) fn scan_prefix(&mut self) -> Result<(), Violation> {
        let family = self.any_family();
        let left_out =
            |world: &World| world.tree(&family).map_or(0, |tree| tree.stats().prefix_filter_useful);
        let before = left_out(self);
        let seen = self.scan_prefix_of(&family);
        if left_out(self) > before {
            self.marks.hit("table left out");
        }
        seen
    }

    fn scan_prefix_of(&self, family: &str) -> Result<(), Violation> {
        let (key, map) = (self.any_key(), self.model.map_of(family));
        if self.dice.choose(2, "by extractor") == 1 {
            return self.scan_from(family, &key, &map);
        }
        let start = &key[..1 + self.dice.choose(4, "bytes") as usize];
        let of_start = map.iter().filter(|(k, _)| k.starts_with(start));
        let expected: Map = of_start.map(|(k, v)| (k.clone(), v.clone())).collect();
        let options = ReadOptions::default().with_prefix(start);
        self.view(family, &options, &expected, "a scan of a prefix")
    }

    /// Scans from `key` up, and down, as far as keys have its prefix.
    fn scan_from(&self, family: &str, key: &[u8], map: &Map) -> Result<(), Violation> {
        let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
        let what = "a scan as far as the prefix";
        let (mut iter, second) = match self.scan_of(family, &options) {
            Ok(scan) => scan,
            Err(e) => return self.excuse(what, &e),
        };
        let map = self.showing(family, map, second);
        let by = self.extractor_of(family);
        let of = |k: &[u8]| by.as_ref().and_then(|by| by.prefix(k)).map(<[u8]>::to_vec);
        let prefix = of(key);
        let same = |(k, _): &(&Vec<u8>, &_)| prefix.is_none() || of(k) == prefix;
        iter.seek(key);
        for expected in map.range(key.to_vec()..).take_while(same).map(Some).chain([None]) {
            self.excused(meet(&iter, expected, what))?;
            iter.next();
        }
        iter.seek_for_prev(key);
        for expected in map.range(..=key.to_vec()).rev().take_while(same).map(Some).chain([None]) {
            self.excused(meet(&iter, expected, what))?;
            iter.prev();
        }
        Ok(())
    }
}
