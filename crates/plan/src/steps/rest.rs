//! Level 0 while writers rest: what brings it to rest with the fewest bytes, stretch by stretch.
//!
//! Level 0 is at rest with fewer runs than its trigger and no more bytes than the base level should hold.
//! For each number of its oldest runs that may go down, what stays is merged in place if it is too many runs, and
//! the cheapest of these ways is taken. So the most that is due goes down in one job, and not in two that each rewrite what
//! lies below. Runs that a job merges in place count as the one run that they will be, and are waited for.
//!
//! ```text
//!   L0  12M 12M 60M   L1 80M, target 64M. All three down: 84M + 80M are moved. The oldest alone: 60M + 80M,
//!                     and 24M in two runs may stay. The oldest goes.
//! ```

use lithify_base::{FileId, Pos};
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::nouns::files::bytes;
use crate::nouns::stretch::Gathered;
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::steps::gather::best_way;

/// What stays of a stretch has at most this share of what may stay, percent: stretches are not equally full, and
/// all of them together must not be over it.
const STAYS: u64 = 95;

/// Files of one stretch that count as one run.
struct Group {
    files: Vec<FileRef>,
    bytes: u64,
    idle: bool,
}

/// The runs of a stretch, newest first; those that one job holds are one.
fn groups(view: &View, files: Vec<FileRef>) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    let mut last = None;
    for f in files {
        let by = view.holder(f.id);
        match all.last_mut().filter(|_| by.is_some() && by == last) {
            Some(group) => {
                group.bytes = group.bytes.saturating_add(f.bytes);
                group.files.push(f);
            }
            None => {
                all.push(Group { bytes: f.bytes, idle: by.is_none(), files: vec![f] });
            }
        }
        last = by;
    }
    all
}

fn files(of: &[Group]) -> Vec<FileRef> {
    of.iter().flat_map(|g| g.files.iter().cloned()).collect()
}

fn sum(of: &[Group]) -> u64 {
    of.iter().map(|g| g.bytes).fold(0, u64::saturating_add)
}

/// Bytes that may stay of a stretch with `here` bytes: its share of the base level's target.
fn may_stay(view: &View, here: u64) -> u64 {
    let target = u128::from(view.options.level_base_bytes) * u128::from(STAYS) / 100;
    let share = target * u128::from(here) / u128::from(view.version.bytes(0).max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// How many of the oldest `groups` go down: of what moves the fewest bytes the fewest.
///
/// One group more that goes is moved itself, as it was if it stayed and is to be merged in place, and may take more along. So
/// the fewest that may go are the cheapest, or the fewest that leave so little that nothing is to be merged in place.
fn cheapest(view: &View, groups: &[Group]) -> usize {
    let (all, trigger) = (groups.len(), view.options.l0_trigger().max(1) as usize);
    let most = may_stay(view, sum(groups));
    let mut left = sum(groups);
    let fewest = (0..all).find(|&down| {
        let fits = left <= most;
        left = left.saturating_sub(groups[all - 1 - down].bytes);
        fits
    });
    // What is merged in place becomes one run, which is too many if one is.
    let fewest = fewest.filter(|_| trigger > 1).unwrap_or(all);
    let none_too_many = (all + 1).saturating_sub(trigger).max(fewest);
    let cost = |down: usize| {
        let (stay, go) = groups.split_at(all - down);
        let merged = if stay.len() >= trigger { sum(stay) } else { 0 };
        bytes(&close(view.version, &files(go), Pos::base(view.targets.base))).saturating_add(merged)
    };
    match fewest < none_too_many && cost(none_too_many) >= cost(fewest) {
        true => fewest,
        false => none_too_many,
    }
}

/// The cheapest way to rest for the runs that cover one stretch. Adds the files whose locks it looks at.
pub(crate) fn way(
    view: &View,
    interval: &Interval,
    covering: Vec<FileRef>,
    looked_at: &mut Vec<FileId>,
) -> Gathered {
    let groups = groups(view, covering);
    let trigger = view.options.l0_trigger() as usize;
    let down = cheapest(view, &groups);
    let (stay, go) = groups.split_at(groups.len() - down);
    let free = |of: &[Group]| of.iter().all(|g| g.idle);
    let in_place = (down == 0 && stay.len() >= trigger && free(stay)).then(|| files(stay));
    Gathered {
        interval: interval.clone(),
        down: (down > 0 && free(go)).then(|| best_way(view, &files(go), looked_at)).flatten(),
        lot: None,
        in_place,
    }
}
