//! What time and contents ask for, over whole lives ([`life`]): no old or marked file stays above the
//! bottom, every file is made anew in time, the bound on space holds, and the work ends.

use lithify_base::{CfId, Pos};
use lithify_lsm::Edit;
use lithify_plan::{CompactionPri, Kind, MemState, PolicyKind, Verdict, stall};

use crate::life::{Life, options};

/// The newest run of L0 is marked, as a flush with many deletions marks its file.
fn mark_newest(life: &mut Life) {
    let Some(run) = life.version.level(0).runs().first() else { return };
    if run.pos != Pos::new(0, life.stratum) || life.flight.iter().any(|j| j.spec.out == run.pos) {
        return;
    }
    let mut edit = Edit::new(CfId(0));
    for f in run.files() {
        let held = life.flight.iter().any(|j| j.spec.inputs.contains(&f.id));
        if !held && !f.marked {
            let mut marked = f.moved(f.pos);
            marked.marked = true;
            edit.deletes.push((f.pos, f.id));
            edit.adds.push(marked);
        }
    }
    life.version = life.version.apply(&edit).unwrap();
}

#[test]
fn old_and_marked_files_reach_the_bottom() {
    const TTL: u64 = 400;
    const PERIOD: u64 = 900;
    for policy in PolicyKind::ALL {
        let mut upkeep = 0;
        for seed in 0..8 {
            let mut options = options(policy, seed % 2 == 0, CompactionPri::default());
            options.ttl_seconds = if seed % 3 > 0 { TTL } else { 0 };
            options.periodic_seconds = if seed % 4 > 1 { PERIOD } else { 0 };
            options.max_space_amp_percent = if seed % 5 == 4 { 30 } else { 0 };
            let mut life = Life::new(seed, options);
            for _ in 0..150 {
                life.now += 10;
                let mem = MemState::default();
                if stall(&life.version, &mem, &life.options).verdict != Verdict::Stop {
                    life.flush();
                    if life.random.u8(..6) == 0 {
                        mark_newest(&mut life);
                    }
                }
                life.start_jobs(4);
                if !life.flight.is_empty() {
                    let at = life.random.usize(..life.flight.len());
                    life.finish(at);
                }
            }
            life.now += 10;
            life.rest();
            upkeep += life.kinds.iter().filter(|k| **k == Kind::Upkeep).count();
            is_kept_up(&life, policy, seed);
        }
        assert!(upkeep > 20, "{}: only {upkeep} jobs", policy.name());
    }
}

fn is_kept_up(life: &Life, policy: PolicyKind, seed: u64) {
    let name = policy.name();
    let Some(oldest) = (0..5).rev().flat_map(|l| life.version.level(l).runs().last()).next() else {
        return;
    };
    let (mut newer, now) = (0, life.now);
    for f in life.version.files() {
        let old = |since: u64, seconds: u64| seconds > 0 && since + seconds <= now;
        let due = old(f.created, life.options.periodic_seconds);
        assert!(!due, "{name} {seed}: {} at {} was made at {}", f.id, f.pos, f.created);
        if f.pos != oldest.pos {
            let due = old(f.oldest_ancestor, life.options.ttl_seconds);
            assert!(!due && !f.marked, "{name} {seed}: {} stays at {}", f.id, f.pos);
            newer += f.bytes;
        }
    }
    let limit = life.options.max_space_amp_percent;
    let percent = newer * 100 / oldest.bytes();
    assert!(limit == 0 || percent <= limit.into(), "{name} {seed}: {percent}%");
}
