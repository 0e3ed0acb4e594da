//! The open loop: writes come at a rate of their own, whether or not the store keeps up, and how late each
//! of them is.
//!
//! Keeps: a policy is asked for a share of what it sustains itself: the same life, as fast as it will take writes,
//! is lived first, and the rate is that of its second half, when the tree has its size (Luo and Carey, "On performance
//! stability in LSM-based storage systems", VLDB 2020). A write is late by the time from the moment it was
//! due until it is in the memtable. Only the second half of a life counts.

use anyhow::{Context, Result, ensure};
use lithify_bench::fold::to_columns;

use crate::command::show::table;
use crate::grid::varied;
use crate::setup::Setup;
use crate::sudden::{loaded, middle, rate, second_half};
use crate::world::live;

/// Steps of the second half, at least: with fewer, one more or less makes more than a tenth of the rate.
const LEAST: usize = 10;

/// How late the writes of a life were, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Late {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl Late {
    /// Of equally many writes each.
    fn of(late: &[f64]) -> Late {
        let mut all = late.to_vec();
        all.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let last = all.len().saturating_sub(1);
            all.get((part * last as f64).ceil() as usize).copied().unwrap_or(0.0)
        };
        Late { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }
}

/// What a policy sustains, writes per second, and how late writes are at `share` of it.
///
/// # Errors
/// A life that broke an invariant, or that is over before there is a rate.
pub(crate) fn offered(setup: &Setup, share: f64) -> Result<(f64, Late)> {
    let life = live(setup)?;
    let counted = second_half(loaded(&life), life.user_bytes);
    ensure!(counted.len() >= LEAST, "the life is too short; give more writes");
    let rate = rate(counted) / setup.bytes.user;
    let life = live(&Setup { offered: Some(share * rate), ..setup.clone() })?;
    Ok((rate, Late::of(&life.late[life.late.len() / 2..])))
}

/// How late writes are at `share` of what each of `setups` sustains, the medians of `tries` lives, as a table that is folded
/// where it takes more than so many columns.
///
/// # Errors
/// As of [`offered`].
pub(crate) fn report(
    setups: &[Setup],
    share: f64,
    tries: u32,
    columns: Option<usize>,
) -> Result<String> {
    let head = ["policy", "T", "sustained MB/s", "offered", "late p50 ms", "p99", "p99.9", "worst"];
    let mut t = table(head.map(str::to_owned).to_vec());
    for setup in setups {
        let policy = setup.plan.policy.name();
        let all: Result<Vec<_>> =
            varied(setup, tries).map(|setup| offered(&setup, share)).collect();
        let all = all.with_context(|| format!("{policy}, {} threads", setup.threads))?;
        let middle = |of: fn(&(f64, Late)) -> f64| middle(all.iter().map(of).collect());
        let rate = middle(|one| one.0) * setup.bytes.user / 1e6;
        let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
        t.add_row([
            policy.to_owned(),
            setup.threads.to_string(),
            format!("{rate:.1}"),
            format!("{:.1}", share * rate),
            ms(middle(|one| one.1.p50)),
            ms(middle(|one| one.1.p99)),
            ms(middle(|one| one.1.p999)),
            ms(middle(|one| one.1.max)),
        ]);
    }
    Ok(to_columns(&t.to_string(), 2, columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_plan::PolicyKind;

    fn setup() -> Setup {
        let mut s = Setup::new(PolicyKind::Hybrid, 2, 1024);
        (s.plan.memtable_bytes, s.plan.file_bytes) = (1 << 20, 1 << 20);
        s.plan.level_base_bytes = 4 << 20;
        (s.device.bandwidth, s.device.latency, s.device.channels) = (50 << 20, 1_000_000, 16);
        (s.num, s.keys, s.cells) = (60_000, 60_000, 128);
        s
    }

    #[test]
    fn a_store_that_is_asked_for_little_is_never_late_for_long() {
        let (rate, late) = offered(&setup(), 0.1).unwrap();
        assert!(rate > 1_000.0, "{rate}");
        assert!(late.max < 0.005, "{late:?}");
    }

    #[test]
    fn a_life_without_a_rate_is_refused() {
        for num in [1, 10_000] {
            let short = Setup { num, keys: num, ..setup() };
            let told = offered(&short, 0.95).unwrap_err().to_string();
            assert_eq!(told, "the life is too short; give more writes");
        }
    }

    #[test]
    fn one_that_is_asked_for_too_much_is_later_and_later() {
        let (_, late) = offered(&setup(), 2.0).unwrap();
        assert!(late.p50 > 0.1 && late.max > late.p50, "{late:?}");
    }

    #[test]
    fn offered_writes_take_as_long_as_they_are_offered() {
        let life = live(&Setup { offered: Some(2_000.0), ..setup() }).unwrap();
        assert!((29.9..30.2).contains(&life.load.seconds), "{}", life.load.seconds);
        assert!(life.rested > 20.0, "{}", life.rested);
    }

    #[test]
    fn quantiles_are_of_the_sorted() {
        let late: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        assert_eq!(Late::of(&late), Late { p50: 500.0, p99: 990.0, p999: 999.0, max: 1000.0 });
        assert_eq!(Late::of(&[]), Late { p50: 0.0, p99: 0.0, p999: 0.0, max: 0.0 });
    }
}
