//! Every order of claiming, finishing, giving back and failing, for a few parts and workers.

use std::collections::BTreeSet;

use lithify_base::ErrorKind;

use super::*;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It may claim: it just came, or is through with a part.
    Idle,
    Has(usize),
    /// The main worker, and whether it was woken.
    Waits {
        woken: bool,
    },
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Claim,
    Finish,
    GiveBack,
    Fail,
    /// It comes no more. Only co-workers do that, and the main worker after it failed.
    Leave,
}

#[derive(Clone, Debug)]
struct Life {
    state: State<usize>,
    /// The first is the main worker.
    workers: Vec<Doing>,
    /// How it ended, at most once: what was built, and whether well.
    ends: Vec<(Vec<usize>, bool)>,
    failed: bool,
    /// By part, how often it was given back.
    returns: Vec<u8>,
}

impl Life {
    fn hand(worker: usize) -> Hand {
        if worker == 0 { Hand::Main } else { Hand::CoWorker }
    }

    fn actions(&self) -> Vec<(usize, Action)> {
        let mut all = Vec::new();
        for (worker, doing) in self.workers.iter().enumerate() {
            let main = worker == 0;
            let of: &[Action] = match doing {
                // A panic between two parts.
                Doing::Idle if main => &[Action::Claim, Action::Fail],
                Doing::Idle => &[Action::Claim, Action::Leave],
                Doing::Has(_) if main => &[Action::Finish, Action::Fail],
                Doing::Has(_) => &[Action::Finish, Action::Fail, Action::GiveBack],
                Doing::Waits { woken: true } => &[Action::Claim],
                Doing::Waits { woken: false } | Doing::Done => &[],
            };
            all.extend(of.iter().map(|&action| (worker, action)));
        }
        all
    }

    fn act(&mut self, worker: usize, action: Action) {
        let (hand, doing) = (Life::hand(worker), self.workers[worker]);
        let part = if let Doing::Has(no) = doing { Some(no) } else { None };
        let then = match (action, part) {
            (Action::Claim, None) => return self.claim(worker),
            (Action::Leave, None) => {
                self.workers[worker] = Doing::Done;
                return;
            }
            (Action::Finish, Some(no)) => {
                self.workers[worker] = Doing::Idle;
                self.state.finish(no, no)
            }
            (Action::GiveBack, Some(no)) => {
                self.workers[worker] = Doing::Idle;
                self.returns[no] += 1;
                self.state.give_back(no)
            }
            (Action::Fail, no) => {
                self.workers[worker] = Doing::Done;
                self.failed = true;
                self.state.fail(hand, no, Error::new(ErrorKind::Io, "a part failed"))
            }
            _ => unreachable!("{action:?} while {doing:?}"),
        };
        match then {
            Then::Nothing => {}
            Then::Wake => match &mut self.workers[0] {
                Doing::Waits { woken } => *woken = true,
                other => panic!("the main worker is woken while it is {other:?}"),
            },
            Then::Over(end) => self.over(end),
        }
    }

    fn claim(&mut self, worker: usize) {
        self.workers[worker] = match self.state.claim(Life::hand(worker)) {
            Claim::Part(no) => {
                assert!(!self.failed, "a part is claimed after one has failed");
                assert!(!self.workers.contains(&Doing::Has(no)), "part {no} has two workers");
                let tired = worker > 0 && self.returns[no] >= MOST_RETURNS;
                assert!(!tired, "co-workers gave part {no} back too often");
                Doing::Has(no)
            }
            Claim::Wait => {
                assert_eq!(worker, 0, "a co-worker is told to wait");
                Doing::Waits { woken: false }
            }
            Claim::Nothing => Doing::Done,
            Claim::Over(end) => {
                self.over(end);
                Doing::Done
            }
        };
    }

    fn over(&mut self, end: End<usize>) {
        let busy = self.workers.iter().any(|doing| matches!(doing, Doing::Has(_)));
        assert!(!busy, "it is over while a part is at work");
        self.ends.push(match end {
            End::Built(all) => (all, true),
            End::Failed(error, built) => {
                assert_eq!(error.kind(), ErrorKind::Io);
                (built, false)
            }
        });
        assert_eq!(self.ends.len(), 1, "it ends twice");
    }

    fn check_end(&self) {
        let [(built, well)] = &self.ends[..] else { panic!("it never ended: {self:?}") };
        assert_eq!(*well, !self.failed);
        let all: Vec<usize> = (0..self.returns.len()).collect();
        assert!(!well || *built == all, "in key order, each once: {built:?}");
        let waits = self.workers.iter().any(|doing| matches!(doing, Doing::Waits { .. }));
        assert!(!waits || self.failed, "the main worker waits for ever: {self:?}");
    }
}

/// Number of states and of ends.
fn walk(parts: usize, co_workers: usize) -> (usize, usize) {
    let workers = vec![Doing::Idle; 1 + co_workers];
    let state = State::new(parts);
    let first = Life { state, workers, ends: Vec::new(), failed: false, returns: vec![0; parts] };
    let (mut open, mut seen, mut ends) = (vec![first], BTreeSet::new(), 0);
    while let Some(life) = open.pop() {
        if !seen.insert(format!("{life:?}")) {
            continue;
        }
        let actions = life.actions();
        if actions.is_empty() {
            life.check_end();
            ends += 1;
        }
        for (worker, action) in actions {
            let mut next = life.clone();
            next.act(worker, action);
            open.push(next);
        }
    }
    (seen.len(), ends)
}

#[test]
fn every_order_ends_once_and_with_all_parts() {
    for (parts, co_workers) in [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)] {
        let (states, ends) = walk(parts, co_workers);
        assert!(ends > 1, "{parts} parts, {co_workers} co-workers: {states} states, {ends} ends");
    }
}

#[test]
fn the_main_worker_does_what_is_given_back_when_nothing_else_is_left() {
    let mut state = State::new(2);
    assert!(matches!(state.claim(Hand::Main), Claim::Part(0)));
    assert!(matches!(state.claim(Hand::CoWorker), Claim::Part(1)));
    assert!(matches!(state.finish(0, 'a'), Then::Nothing));
    assert!(matches!(state.claim(Hand::Main), Claim::Wait));
    assert!(matches!(state.give_back(1), Then::Wake));
    assert!(matches!(state.claim(Hand::Main), Claim::Part(1)));
    assert!(matches!(state.finish(1, 'b'), Then::Nothing));
    let Claim::Over(End::Built(all)) = state.claim(Hand::Main) else { panic!("it is built") };
    assert_eq!(all, ['a', 'b']);
}

#[test]
fn a_part_that_was_given_back_often_is_the_main_workers() {
    let mut state: State<()> = State::new(1);
    for _ in 0..MOST_RETURNS {
        assert!(matches!(state.claim(Hand::CoWorker), Claim::Part(0)));
        state.give_back(0);
    }
    assert!(matches!(state.claim(Hand::CoWorker), Claim::Nothing));
    assert!(matches!(state.claim(Hand::Main), Claim::Part(0)));
}
