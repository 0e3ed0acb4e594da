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

use lithify_base::Pos;
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::measures::stall;
use crate::nouns::files::bytes;
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::steps::gather::{Gathered, best_way};

/// What stays of a stretch has at most this share of what may stay, percent: stretches are not equally full, and
/// all of them together must not be over it.
const STAYS: u64 = 95;

/// True while writers rest and level 0 is neither crowded nor in the way of room that must be freed.
pub(crate) fn is_resting(view: &View) -> bool {
    !view.load.written && !view.limits.short && !stall::is_crowded(view.version)
}

/// Files of one stretch that count as one run.
struct Group {
    files: Vec<FileRef>,
    bytes: u64,
    idle: bool,
}

/// The runs of a stretch, newest first; those that one job holds are one.
fn groups(view: &View, files: impl Iterator<Item = FileRef>) -> Vec<Group> {
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

/// The cheapest way to rest for the runs over one stretch.
pub(crate) fn way(view: &View, interval: &Interval) -> Gathered {
    let runs = view.version.level(0).runs();
    let groups = groups(view, interval.covering(runs, view.order()).cloned());
    let (most, trigger) = (may_stay(view, sum(&groups)), view.options.l0_trigger() as usize);
    let cost = |down: usize| {
        let (stay, go) = groups.split_at(groups.len() - down);
        let (bytes_left, many) = (sum(stay), stay.len() >= trigger);
        // Merged in place it is one run.
        if !stay.is_empty() && (bytes_left > most || many && trigger < 2) {
            return None;
        }
        let go = close(view.version, &files(go), Pos::base(view.targets.base));
        Some(bytes(&go).saturating_add(if many { bytes_left } else { 0 }))
    };
    // All of it may always go, so there is a cheapest; of equal ones that which takes the fewest.
    let costs = (0..=groups.len()).filter_map(|down| Some((cost(down)?, down)));
    let down = costs.min().map_or(0, |(_, down)| down);
    let (stay, go) = groups.split_at(groups.len() - down);
    let free = |of: &[Group]| of.iter().all(|g| g.idle);
    let in_place = (down == 0 && stay.len() >= trigger && free(stay)).then(|| files(stay));
    Gathered {
        interval: interval.clone(),
        down: (down > 0 && free(go)).then(|| best_way(view, &files(go))).flatten(),
        lot: None,
        in_place,
    }
}
