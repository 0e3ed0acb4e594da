//! Traps of planning that show only in long lives ([`life`]): writers stopped while nothing can be
//! done, and a level whose turn never comes.

use lithify_base::{CfId, JobId, Pos};
use lithify_lsm::Edit;
use lithify_plan::{
    CompactionPri, DfWhen, Limits, Load, MemState, PolicyKind, Verdict, View, plan, score, stall,
};

use crate::life::{Life, options};

/// Writers come to the stop again and again, jobs fail all the time, and whenever writers are
/// stopped something is in flight or planned: [`Life::start_jobs`] asserts it at every step.
#[test]
fn stall_deadlock() {
    for policy in PolicyKind::EVERY {
        let mut stops = 0;
        for seed in 0..12 {
            let mut options = options(policy, seed % 2 == 0, CompactionPri::default());
            (options.l0_slowdown, options.l0_stop) = (4, 5);
            if seed >= 8 {
                // Writers are stopped by fewer runs than a tier has.
                options.tiered_runs = 7;
                (options.l0_trigger, options.l0_slowdown, options.l0_stop) = match seed {
                    11 => (1, 1, 1),
                    _ => (1, 2, 3),
                };
            }
            (options.soft_debt, options.hard_debt) = (1 << 10, 1 << 11);
            if seed % 3 == 0 {
                options.df_when = DfWhen::Always;
                options.max_waiting_jobs = 1;
            }
            let mut life = Life::new(seed, options);
            for _ in 0..400 {
                // Flushes already under way come even when writers are stopped.
                let mem = MemState::default();
                let stopped = stall(&life.version, &mem, &life.options).verdict == Verdict::Stop;
                stops += usize::from(stopped);
                if !stopped || life.random.u8(..20) == 0 {
                    life.flush();
                }
                life.start_jobs(3);
                if !life.flight.is_empty() && life.random.bool() {
                    let at = life.random.usize(..life.flight.len());
                    match life.random.u8(..3) {
                        0 => life.fail(at),
                        _ => life.finish(at),
                    }
                }
                life.start_jobs(3);
            }
            life.rest();
        }
        // A store that forgets stops no writer.
        let forgets = policy == PolicyKind::Fifo;
        assert!(
            (stops > 50) != forgets,
            "writers of {} hardly ever waited: {stops}",
            policy.name()
        );
    }
}

/// Jobs are begun and one of them ends; true if writers are not stopped then.
fn takes_writes_after_a_job(life: &mut Life) -> bool {
    life.start_jobs(2);
    if !life.flight.is_empty() {
        let at = life.random.usize(..life.flight.len());
        life.finish(at);
    }
    stall(&life.version, &MemState::default(), &life.options).verdict != Verdict::Stop
}

/// Memtables are small beside the base level, and hardly overlap: level 0 is never deep, and its bytes stop writers, or the
/// number of its runs.
#[test]
fn level_0_that_is_not_deep_stops_no_writer_for_good() {
    for (policy, in_order) in PolicyKind::EVERY.into_iter().flat_map(|p| [(p, true), (p, false)]) {
        let mut options = options(policy, false, CompactionPri::default());
        options.level_base_bytes = 1 << 20;
        (options.soft_debt, options.hard_debt) = (0, 0);
        let mut life = Life::new(1, options);
        let flush = |life: &mut Life, n: u16| {
            let at = if in_order { n } else { life.random.u16(..2000) };
            life.flush_over(30 * at, 30 * at + 29);
        };
        // Only runs in order come to be so many without being deep.
        let many = if policy.is_tiered() && in_order { 1985 } else { 0 };
        (0..many).for_each(|n| flush(&mut life, n));
        let steps = if many > 0 { 30 } else { 200 };
        for n in many..many + steps {
            if takes_writes_after_a_job(&mut life) {
                flush(&mut life, n);
            }
        }
        let flushes = life.stratum - u32::from(many);
        assert!(flushes > u32::from(steps) / 2, "{} took {flushes}", policy.name());
    }
}

/// Keys are overwritten in their order over a last level that has them all: level 0 is one run deep, nothing of it can be
/// moved, and debt stops writers.
#[test]
fn debt_of_level_0_that_is_not_deep_stops_no_writer_for_good() {
    for (policy, written) in PolicyKind::EVERY.into_iter().flat_map(|p| [(p, true), (p, false)]) {
        let mut options = options(policy, false, CompactionPri::default());
        options.level_base_bytes = 1 << 10;
        let last = options.last_level();
        // Between what level 0 is due from and twice that.
        (options.soft_debt, options.hard_debt) = (3 << 8, 5 << 8);
        let mut life = Life::new(1, options);
        life.load.written = written;
        let old: Vec<_> =
            (0..60).map(|n| life.file(Pos::base(last), 1000 * n, 1000 * n + 999, 64)).collect();
        let edit = Edit { job: Some(JobId(0)), adds: old, ..Edit::new(CfId(0)) };
        life.version = life.version.apply(&edit).unwrap();
        for n in 0..600 {
            if takes_writes_after_a_job(&mut life) {
                life.flush_over(100 * n, 100 * n + 99);
            }
        }
        assert!(life.stratum > 300, "{} took {}", policy.name(), life.stratum);
    }
}

/// Writers never pause, for ten times as long: the levels below must get their turns, so their
/// debt in the last tenth of the life is hardly larger than it ever was in the first six.
#[test]
fn starvation_of_deeper_levels() {
    const STEPS: usize = 2500;
    for policy in PolicyKind::ALL {
        let mut options = options(policy, false, CompactionPri::default());
        // Nothing but the depth of L0 slows writers down.
        (options.soft_debt, options.hard_debt) = (0, 0);
        (options.l0_slowdown, options.l0_stop) = (20, 36);
        let mut life = Life::new(7, options);
        let (mut worst, mut longest, mut hungry) = ([0u64; 10], 0, [0usize; 7]);
        for step in 0..STEPS {
            let mem = MemState::default();
            if stall(&life.version, &mem, &life.options).verdict != Verdict::Stop {
                life.flush();
            }
            life.start_jobs(4);
            for _ in 0..3 {
                if !life.flight.is_empty() {
                    let at = life.random.usize(..life.flight.len());
                    life.finish(at);
                }
                life.start_jobs(4);
            }
            let tenth = &mut worst[step * 10 / STEPS];
            *tenth = (*tenth).max(score::debt(&life.version, &life.options));
            let view =
                View::new(&life.version, &life.flight, &mem, &life.options, Limits::default());
            let due: Vec<u8> = score::by_rank(&view).iter().map(|l| l.0).collect();
            for level in 1..5u8 {
                let served = view.flights().iter().any(|k| k.from() == level);
                let waits = due.contains(&level) && !served;
                let hungry = &mut hungry[usize::from(level)];
                *hungry = if waits { *hungry + 1 } else { 0 };
                longest = longest.max(*hungry);
            }
        }
        println!("{}: debt {worst:?}, longest wait of a level {longest}", policy.name());
        life.rest();
        let early = worst[..6].iter().max().unwrap();
        assert!(worst[9] <= early * 3 / 2 + 1024, "{}: {worst:?}", policy.name());
        assert!(longest < STEPS / 10, "{}: a level waited {longest} steps", policy.name());
    }
}

/// Level 0 is one run deep and has as many runs as are allowed, over a level that is much larger: writers go on, whatever a byte
/// costs.
#[test]
fn many_shallow_runs_stop_no_writer_for_good_at_any_price() {
    for price in [0, 1, 55, 700] {
        let mut options = options(PolicyKind::Adaptive, false, CompactionPri::default());
        (options.soft_debt, options.hard_debt) = (0, 0);
        (options.l0_slowdown, options.l0_stop) = (1000, 1000);
        options.level_base_bytes = 1 << 23;
        let mut life = Life::new(1, options);
        let below = (0..60).map(|n| life.file(Pos::base(1), 1000 * n, 1000 * n + 999, 100_000));
        let adds = below.collect();
        let edit = Edit { job: Some(JobId(0)), adds, ..Edit::new(CfId(0)) };
        life.version = life.version.apply(&edit).unwrap();
        (0..2000).for_each(|n| life.flush_over(29 * n, 29 * n + 28));
        life.load = Load { price, useful: 1, written: true };
        assert!((0..50).any(|_| takes_writes_after_a_job(&mut life)), "price {price}");
    }
}

/// Of a level far over its target the first files by the priority in use are not worth their bytes; others lie over nothing.
#[test]
fn files_that_are_not_worth_their_bytes_hide_none_that_are() {
    for pri in CompactionPri::ALL {
        let mut options = options(PolicyKind::Adaptive, false, pri);
        (options.soft_debt, options.hard_debt, options.multiplier) = (0, 0, 100_000);
        let mut life = Life::new(1, options);
        let adds = (0..120u16).map(|n| {
            let mut file = life.file(Pos::base(1), 100 * n, 100 * n + 99, 64);
            file.seqs = (u64::from(n) * 10 + 1, u64::from(n) * 10 + 2);
            file
        });
        let mut adds: Vec<_> = adds.collect();
        adds.extend((0..60).map(|n| life.file(Pos::base(2), 100 * n, 100 * n + 99, 6400)));
        adds.iter_mut().for_each(|file| file.deletes = 0);
        let edit = Edit { job: Some(JobId(0)), adds, ..Edit::new(CfId(0)) };
        life.version = life.version.apply(&edit).unwrap();
        let mem = MemState::default();
        let limits = Limits { slots_free: 4, ..Limits::default() };
        let view = View::new(&life.version, &[], &mem, &life.options, limits);
        let view = view.under(Load { price: 700, useful: 1, written: true });
        assert!(!plan(&view, &life.policies).is_empty(), "{}", pri.name());
    }
}
