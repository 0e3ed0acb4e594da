//! Every state of a core's life: which event leads where, and what each state lets happen.

use super::*;
use crate::event::Outside;
use crate::life::Life;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Paused,
    Closing,
    Sealed,
    Halted,
}

use State::{Closing, Halted, Open, Paused, Sealed};

const ALL: [State; 5] = [Open, Paused, Closing, Sealed, Halted];

fn state(w: &World) -> State {
    match w.core.life {
        Life::Open { .. } => Open,
        Life::Paused { .. } => Paused,
        Life::Closing { .. } => Closing,
        Life::Sealed => Sealed,
        Life::Halted => Halted,
    }
}

/// What may happen to a core.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pause,
    Resume,
    Close,
    /// The edits being written may or may not be durable.
    FateUnknown,
    /// The edits being written found no space.
    NoSpace,
    Panic,
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Pause => self.on(Event::Paused { on: true }),
            Step::Resume => self.on(Event::Paused { on: false }),
            Step::Close => self.on(Event::Closing),
            Step::FateUnknown => {
                self.on(Event::EditFailed { error: Error::new(ErrorKind::Io, "fsync failed") });
            }
            Step::NoSpace => {
                self.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
            }
            Step::Panic => {
                let commands = self.core.halt(Error::new(ErrorKind::Internal, "a panic"));
                self.log.extend(commands);
            }
        }
    }

    /// A world in `wanted`: a flush is being written to the manifest, as far as the state has that, and
    /// another one is at work.
    fn in_state(wanted: State) -> World {
        let mut w = World::new(1);
        w.freeze(1);
        w.freeze(2);
        let (first, _, out) = w.flush_job().unwrap();
        w.built(first, out, "a", "m");
        assert!(w.commit().is_some());
        match wanted {
            Open => {}
            Paused => w.step(Step::Pause),
            Closing => w.step(Step::Close),
            Sealed => w.step(Step::FateUnknown),
            Halted => w.step(Step::Panic),
        }
        assert_eq!(state(&w), wanted);
        w
    }
}

/// The table in the head of `life`, line by line.
#[test]
fn every_transition_is_as_the_table_says() {
    let table = [
        (Step::Pause, [Paused, Paused, Closing, Sealed, Halted]),
        (Step::Resume, [Open, Open, Closing, Sealed, Halted]),
        (Step::Close, [Closing, Closing, Closing, Sealed, Halted]),
        (Step::FateUnknown, [Sealed, Sealed, Sealed, Sealed, Halted]),
        (Step::NoSpace, [Open, Paused, Sealed, Sealed, Halted]),
        (Step::Panic, [Halted; 5]),
    ];
    for (step, results) in table {
        for (from, to) in ALL.into_iter().zip(results) {
            let mut w = World::in_state(from);
            w.step(step);
            assert_eq!(state(&w), to, "{step:?} in {from:?}");
        }
    }
}

/// What each state lets happen: a flush starts, what is built commits, a request is taken.
#[test]
fn each_state_lets_happen_what_the_table_says() {
    let table = [
        (Open, true, true, true),
        (Paused, false, true, true),
        (Closing, false, true, false),
        (Sealed, false, false, false),
        (Halted, false, false, false),
    ];
    for (state, starts, commits, takes) in table {
        let mut w = World::in_state(state);
        let (second, _, out) = w.flush_job().expect("it was at work before");
        w.on(Event::EditSynced);
        w.freeze(3);
        assert_eq!(w.flush_job().is_some(), starts, "a flush starts in {state:?}");
        w.built(second, out, "a", "m");
        assert_eq!(w.commit().is_some(), commits, "an edit commits in {state:?}");
        let files = vec![w.file(Pos::new(0, 0), "x", "y")];
        w.on(Event::Outside { id: 1, request: Outside::Ingest { files } });
        let refused = |c: &Command| match c {
            Command::RequestDone { id: 1, result } => result.as_ref().err().map(|e| e.kind()),
            _ => None,
        };
        let expected = match state {
            Open | Paused => None,
            Closing => Some(ErrorKind::ShuttingDown),
            Sealed | Halted => Some(ErrorKind::ReadOnly),
        };
        assert_eq!((w.take(refused), takes), (expected, expected.is_none()), "in {state:?}");
        assert_eq!(w.core.is_content(), state != Paused, "what is held back may have work");
    }
}

/// A full disk makes an open core wait before it hands the same edit out again, and seals a closing one.
#[test]
fn only_an_open_core_waits_for_space() {
    for state in [Open, Paused, Closing] {
        let mut w = World::in_state(state);
        w.step(Step::NoSpace);
        assert!(w.commit().is_none(), "not at once");
        w.now += crate::retry::LONGEST;
        w.on(Event::Tick);
        assert_eq!(w.commit().is_some(), state != Closing, "{state:?}");
    }
}
