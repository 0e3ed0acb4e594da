//! Sudden changes: the disk becomes slower or faster, processors go, or a load that filled begins to
//! overwrite, in the middle of a life; and how long a policy takes until it does what it would do if
//! the world had always been so.
//!
//! Keeps: a life that changes after half of its writes is held against one through the same writes
//! that has the new condition from the start, each over its second half. It is *back* from the first
//! moment behind the change from which on both the next [`WINDOW`] of steps and all the rest have 0.95
//! of the other's mean rate. With `--tries` several lives that differ a little go through each, and
//! each that changes is held against the median of the others: a single one may have a large job
//! more in its second half.
//!
//! ```text
//!   rate  ----------.          .-------------   0.95 of the other life's mean
//!                    \        /
//!                     '------'
//!                    ^ change ^ back: so many seconds
//! ```

use anyhow::{Context, Result};
use lithify_bench::fold::to_columns;

use crate::command::show::table;
use crate::grid::varied;
use crate::setup::{Change, Setup};
use crate::tally::{STEP, Step, sum};
use crate::world::{Life, live};

/// Steps over which a rate is a mean: five seconds.
const WINDOW: usize = 50;
/// Steps over which the number of active jobs is a mean before its spread is taken: one second.
const SECOND: usize = 10;
/// Share of the other life's rate at which a life is back.
const BACK: f64 = 0.95;

/// The changes that a setup allows, with their names. The first is none: how long a life takes that has
/// nothing to take says how far the others are to be believed.
pub(crate) fn changes(setup: &Setup) -> Vec<(&'static str, Change)> {
    let mut all = vec![("none", Change::Cores(setup.cores))];
    let disk = setup.device.bandwidth;
    if disk > 1 {
        all.push(("disk halved", Change::Bandwidth(disk / 2)));
        all.push(("disk doubled", Change::Bandwidth(disk * 2)));
    }
    all.push(("cores halved", Change::Cores(setup.cores / 2.0)));
    if !setup.load.is_unique() {
        all.push(("overwrites a tenth", Change::Keys((setup.keys / 10).max(1))));
    }
    all
}

/// How a policy took a change. What is of several lives is their median.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// User bytes per second in the ten seconds before it, behind it, and of lives that had it from
    /// the start.
    before: f64,
    behind: f64,
    reference: f64,
    /// Seconds until each life was back, the soonest first; infinite if it never was.
    backs: Vec<f64>,
    /// Mean and spread of the active compactions behind the change, and of the other lives.
    active: (f64, f64),
    reference_active: (f64, f64),
}

impl Outcome {
    /// Seconds until half of the lives were back, and the soonest and the last where there are several.
    fn back(&self) -> String {
        let said = |s: f64| if s.is_finite() { format!("{s:.1}") } else { "never".to_owned() };
        let half = said(self.backs[(self.backs.len() - 1) / 2]);
        match self.backs.as_slice() {
            [first, .., last] => format!("{half} ({} to {})", said(*first), said(*last)),
            _ => half,
        }
    }
}

/// Lives through `change` after half of the writes of `setup`, `tries` times.
///
/// # Errors
/// A life that broke an invariant.
pub(crate) fn sudden(setup: &Setup, change: Change, tries: u32) -> Result<Outcome> {
    let (mut rates, mut spreads) = (Vec::new(), Vec::new());
    for other in varied(&change.from_start(setup), tries) {
        let other = live(&other)?;
        let there = second_half(loaded(&other), other.user_bytes);
        rates.push(rate(there));
        spreads.push(spread(there));
    }
    let reference = middle(rates);
    let (mut before, mut behind, mut backs, mut active) = (vec![], vec![], vec![], vec![]);
    for own in varied(setup, tries) {
        let life = live(&Setup { change: Some((own.num / 2, change)), ..own })?;
        let from = life.changed.map_or(0, |at| (at * 1e9) as u64).div_ceil(STEP) as usize;
        let own = loaded(&life);
        let (until, since) = own.split_at(from.min(own.len()));
        before.push(rate(&until[until.len().saturating_sub(2 * WINDOW)..]));
        behind.push(rate(since));
        backs.push(back(since, BACK * reference).unwrap_or(f64::INFINITY));
        active.push(spread(since));
    }
    backs.sort_by(f64::total_cmp);
    let both = |of: Vec<(f64, f64)>| {
        let (means, spreads) = of.into_iter().unzip();
        (middle(means), middle(spreads))
    };
    Ok(Outcome {
        before: middle(before),
        behind: middle(behind),
        reference,
        backs,
        active: both(active),
        reference_active: both(spreads),
    })
}

/// The median; the upper one of an even number.
pub(crate) fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The steps under load.
pub(crate) fn loaded(life: &Life) -> &[Step] {
    let steps = (life.load.seconds * 1e9) as u64 / STEP;
    &life.steps[..(steps as usize).min(life.steps.len())]
}

/// The steps behind half of the bytes.
pub(crate) fn second_half(steps: &[Step], bytes: f64) -> &[Step] {
    let mut sum = 0.0;
    let first = steps.iter().position(|s| {
        sum += s.bytes;
        sum >= bytes / 2.0
    });
    &steps[first.unwrap_or(0)..]
}

/// User bytes per second.
pub(crate) fn rate(steps: &[Step]) -> f64 {
    let bytes = sum(steps.iter().map(|s| s.bytes));
    bytes * 1e9 / (STEP as f64 * steps.len().max(1) as f64)
}

/// Seconds until a window, and all that is left from its beginning on, have at least `least` bytes per
/// second. What is left is two windows at least, or a lucky end would do.
fn back(steps: &[Step], least: f64) -> Option<f64> {
    let starts = 0..=steps.len().checked_sub(2 * WINDOW)?;
    let good = |&at: &usize| rate(&steps[at..at + WINDOW]) >= least && rate(&steps[at..]) >= least;
    starts.into_iter().find(good).map(|at| at as f64 * STEP as f64 / 1e9)
}

/// Mean and standard deviation of the active compactions.
fn spread(steps: &[Step]) -> (f64, f64) {
    let all = |s: &Step| sum(s.active.values().copied());
    let means = steps.chunks(SECOND).map(|c| sum(c.iter().map(all)) / c.len() as f64);
    let means: Vec<f64> = means.collect();
    let n = means.len().max(1) as f64;
    let mean = sum(means.iter().copied()) / n;
    (mean, (sum(means.iter().map(|m| (m - mean).powi(2))) / n).sqrt())
}

/// Every change for each of `setups`, as a table that is folded where it takes more than so many columns.
///
/// # Errors
/// A life that broke an invariant.
pub(crate) fn report(setups: &[Setup], tries: u32, columns: Option<usize>) -> Result<String> {
    let head =
        ["policy", "T", "change", "before", "behind", "always so", "back s", "active", "always so"];
    let mut t = table(head.map(str::to_owned).to_vec());
    for setup in setups {
        let policy = setup.plan.policy.name();
        for (name, change) in changes(setup) {
            let o = sudden(setup, change, tries).with_context(|| format!("{policy}, {name}"))?;
            let mb = |rate: f64| format!("{:.1}", rate / 1e6);
            let active = |(mean, sd): (f64, f64)| format!("{mean:.2} \u{b1} {sd:.2}");
            t.add_row([
                policy.to_owned(),
                setup.threads.to_string(),
                name.to_owned(),
                mb(o.before),
                mb(o.behind),
                mb(o.reference),
                o.back(),
                active(o.active),
                active(o.reference_active),
            ]);
        }
    }
    Ok(to_columns(&t.to_string(), 3, columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_plan::PolicyKind;

    fn steps(bytes: &[(usize, f64)]) -> Vec<Step> {
        let some = |&(n, bytes): &(usize, f64)| vec![Step { bytes, ..Step::default() }; n];
        bytes.iter().flat_map(some).collect()
    }

    #[test]
    fn back_is_when_five_seconds_have_the_rate() {
        let there = steps(&[(30, 10.0), (200, 100.0)]);
        assert_eq!(back(&there, 1000.0), Some(3.0));
        assert_eq!(back(&there, 950.0), Some(2.8), "a window may have some of the dip");
        assert_eq!(back(&there, 1001.0), None);
    }

    #[test]
    fn a_good_beginning_does_not_count_if_the_rest_is_slow() {
        let there = steps(&[(60, 100.0), (200, 80.0), (100, 100.0)]);
        assert_eq!(back(&there, 950.0), Some(24.8));
        assert_eq!(back(&steps(&[(60, 100.0), (300, 80.0)]), 950.0), None);
        assert_eq!(back(&steps(&[(90, 100.0)]), 950.0), None, "too short to tell");
    }

    #[test]
    fn what_is_of_no_step_is_nothing_and_not_minus_nothing() {
        let (mean, deviation) = spread(&[]);
        assert_eq!(format!("{:.1} {mean:.1} {deviation:.1}", rate(&[])), "0.0 0.0 0.0");
    }

    #[test]
    fn the_second_half_is_by_bytes() {
        let there = steps(&[(10, 30.0), (30, 10.0)]);
        assert_eq!(second_half(&there, 600.0).len(), 31);
    }

    fn setup() -> Setup {
        let mut s = Setup::new(PolicyKind::Hybrid, 4, 1024);
        (s.plan.memtable_bytes, s.plan.file_bytes) = (1 << 20, 1 << 20);
        s.plan.level_base_bytes = 4 << 20;
        (s.device.bandwidth, s.device.latency, s.device.channels) = (20 << 20, 1_000_000, 16);
        (s.num, s.keys, s.cells) = (60_000, 60_000, 128);
        s
    }

    #[test]
    fn a_change_from_the_start_is_a_setup_with_it() {
        let mut slow = setup();
        slow.device.bandwidth = 10 << 20;
        let few = Setup { cores: 1.0, ..setup() };
        for (change, always) in [(Change::Bandwidth(10 << 20), slow), (Change::Cores(1.0), few)] {
            let changed = live(&change.from_start(&setup())).unwrap();
            assert_eq!(changed.changed, Some(0.0));
            let always = live(&always).unwrap();
            assert!(Life { changed: None, ..changed } == always, "{change:?} from the start");
        }
    }

    #[test]
    fn half_a_disk_is_slower_and_four_times_a_disk_faster() {
        let o = sudden(&setup(), Change::Bandwidth(10 << 20), 1).unwrap();
        assert!(o.behind < 0.8 * o.before, "{o:?}");
        let o = sudden(&setup(), Change::Bandwidth(80 << 20), 3).unwrap();
        assert!(o.behind > 1.1 * o.before, "{o:?}");
    }

    #[test]
    fn several_lives_say_when_half_of_them_were_back_and_the_first_and_the_last() {
        let of = |backs: &[f64]| {
            let both = (1.0, 0.0);
            let (rates, backs) = (1.0, backs.to_vec());
            let (before, behind, reference) = (rates, rates, rates);
            Outcome { before, behind, reference, backs, active: both, reference_active: both }
        };
        assert_eq!(of(&[3.0]).back(), "3.0");
        assert_eq!(of(&[f64::INFINITY]).back(), "never");
        assert_eq!(of(&[0.0, 1.5, f64::INFINITY]).back(), "1.5 (0.0 to never)");
    }

    #[test]
    fn overwrites_stay_in_their_tenth() {
        let mut s = setup();
        s.device.bandwidth = 0;
        s.change = Some((30_000, Change::Keys(6_000)));
        let life = live(&s).unwrap();
        // Half of the writes meet all keys, half a tenth of them.
        let entries = life.at_end.bytes.iter().sum::<u64>() as f64 / s.bytes.disk;
        assert!((22_000.0..28_500.0).contains(&entries), "{entries}");
    }
}
