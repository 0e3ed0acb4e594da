//! How fast the gate lets writers pass, at times that the test makes up.

use std::time::Duration;

use lithify_control::Pressure;
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

/// How long a write waits at `now`.
fn wait(gate: &Gate, now: Mono) -> Duration {
    let until = gate.ask(0, || now).unwrap().and_then(|wait| wait.until);
    until.map_or(Duration::ZERO, |until| until.since(now))
}

#[test]
fn what_has_passed_is_waited_for_at_the_rate_of_now() {
    let (gate, start) = (Gate::new(None), Mono(5));
    press(&gate, Some(MIB), start);
    assert!(gate.ask(MIB, || start).unwrap().is_none());
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
    assert!(gate.ask(1, || unreachable!("free flow needs no clock")).unwrap().is_none());
    press(&gate, Some(MIB), now);
    assert!(gate.ask(MIB, || now).unwrap().is_none());
    assert!(gate.ask(MIB, || now).unwrap().is_some(), "it has to wait, and has not passed");
    gate.charge(100);
    assert_eq!(gate.take_passed(), 111 + MIB);
    assert_eq!(gate.take_passed(), 0);
}
