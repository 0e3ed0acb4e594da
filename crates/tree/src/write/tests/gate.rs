//! How fast the gate lets writers pass, at times that the test makes up.

use std::time::Duration;

use lithify_control::{Pressure, Room};
use lithify_env::Mono;
use lithify_plan::Cause;
use lithify_reports::events::Events;
use lithify_writes::gate::Gate;

const MIB: u64 = 1 << 20;
const MS: Duration = Duration::from_millis(1);

fn press(gate: &Gate, pace: Option<u64>, now: Mono) {
    let pace = pace.map(|rate| (rate, Cause::L0Files));
    gate.press(Pressure { pace, ..Pressure::default() }, now, &Events::new(false));
}

/// Makes a write of `bytes` at `now`, if it may pass.
fn write(gate: &Gate, bytes: u64, now: Mono) -> bool {
    let passes = gate.ask(false, || now).unwrap().is_none();
    if passes {
        gate.charge(bytes);
    }
    passes
}

/// How long a write waits at `now`.
fn wait(gate: &Gate, now: Mono) -> Duration {
    let until = gate.ask(false, || now).unwrap().and_then(|wait| wait.until);
    until.map_or(Duration::ZERO, |until| until.since(now))
}

#[test]
fn what_has_passed_is_waited_for_at_the_rate_of_now() {
    let (gate, start) = (Gate::new(None), Mono(5));
    press(&gate, Some(MIB), start);
    assert!(write(&gate, MIB, start));
    assert_eq!(wait(&gate, start), 1000 * MS);
    press(&gate, Some(100 * MIB), start + 500 * MS);
    assert_eq!(wait(&gate, start + 500 * MS), 5 * MS, "half of it is still to be waited for");
    press(&gate, Some(10 * MIB), start + 500 * MS);
    assert_eq!(wait(&gate, start + 500 * MS), 5 * MS, "no longer than before");
    press(&gate, None, start + 500 * MS);
    press(&gate, Some(MIB), start + 501 * MS);
    assert_eq!(wait(&gate, start + 501 * MS), Duration::ZERO, "free flow forgets");
}

#[test]
fn a_pace_is_no_stall() {
    let gate = Gate::new(None);
    press(&gate, Some(MIB), Mono(7));
    assert!(!gate.is_free() && !gate.is_stopped());
    gate.check_open().unwrap();
    assert_eq!(gate.report().since, Mono::ZERO, "no stall has begun");
}

#[test]
fn what_passes_is_counted_in_free_flow_and_at_a_rate() {
    let (gate, now) = (Gate::new(None), Mono(5));
    gate.charge(10);
    assert!(gate.ask(false, || unreachable!("free flow needs no clock")).unwrap().is_none());
    press(&gate, Some(MIB), now);
    assert!(write(&gate, MIB, now), "what passed in free flow is not waited for");
    assert!(!write(&gate, MIB, now));
    gate.count(1);
    assert_eq!(wait(&gate, now), 1000 * MS, "of what waits for no rate none is owed");
    gate.charge(MIB);
    assert_eq!(wait(&gate, now), 2000 * MS);
    assert_eq!(gate.take_passed(), 11 + 2 * MIB);
    assert_eq!((gate.passed(), gate.take_passed()), (0, 0));
    gate.charge(7);
    assert_eq!(gate.passed(), 7);
}

#[test]
fn what_is_left_of_memtables_lasts_however_long_a_flush_takes() {
    const FLUSH: u64 = 100;
    let (gate, start) = (Gate::new(None), Mono(5));
    let until = (start + FLUSH as u32 * MS).0;
    let memory = Some(Room { bytes: 4 * MIB, began: start.0, until, least: MIB });
    gate.press(Pressure { memory, ..Pressure::default() }, start, &Events::new(false));
    // Writes of a KiB, one after the other, of a writer that does a GiB each second.
    let (mut now, mut longest, mut after) = (start, Duration::ZERO, Vec::new());
    for tenth in 1..=3 * FLUSH / 10 {
        while now < start + tenth as u32 * 10 * MS {
            match gate.ask(false, || now).unwrap() {
                None => {
                    gate.charge(1024);
                    now = now + Duration::from_micros(1);
                }
                Some(wait) => {
                    assert_eq!(wait.cause, Cause::MemtableLimit);
                    let until = wait.until.expect("no stop");
                    longest = longest.max(until.since(now));
                    now = until;
                }
            }
        }
        after.push(gate.passed() * 100 / (4 * MIB));
    }
    assert!(longest < 5 * MS, "{longest:?}");
    let [half, due, late] = [4, 9, 29].map(|at| after[at]);
    assert!((45..=55).contains(&half) && (85..=92).contains(&due), "percent: {after:?}");
    assert!((95..100).contains(&late), "percent: {after:?}");
    press(&gate, None, now);
    assert!(gate.is_free());
}

#[test]
fn who_does_not_wait_is_held_back_by_stalls_alone() {
    let (gate, now) = (Gate::new(None), Mono(5));
    let memory = Some(Room { bytes: MIB, began: 5, until: 5 + 1_000_000_000, least: 1 });
    gate.press(Pressure { memory, ..Pressure::default() }, now, &Events::new(false));
    assert!(gate.flows(|| now), "nothing has passed yet");
    assert!(write(&gate, MIB / 2, now));
    assert!(!gate.flows(|| now) && !write(&gate, 1, now));
    assert!(gate.ask(true, || now).unwrap().is_none());
    let delay = Some((MIB, Cause::L0Files));
    gate.press(Pressure { delay, memory, ..Pressure::default() }, now, &Events::new(false));
    assert!(gate.ask(true, || now).unwrap().is_some() && !gate.flows(|| now));
}

/// Writers that would rather fail than wait do not outrun a slow-down.
#[test]
fn who_does_not_wait_is_slowed_down_by_a_delay() {
    let (gate, now) = (Gate::new(None), Mono(5));
    let delay = Some((MIB, Cause::L0Files));
    gate.press(Pressure { delay, ..Pressure::default() }, now, &Events::new(false));
    let write = |now| {
        let passes = gate.ask(true, || now).unwrap().is_none();
        gate.count(if passes { MIB } else { 0 });
        passes
    };
    assert!(write(now) && !write(now));
    let next = now + Duration::from_secs(1);
    assert!(write(next) && !write(next));
    assert_eq!(gate.take_passed(), 2 * MIB);
}
