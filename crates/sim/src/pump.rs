//! A runtime without threads: a caller that waits steps the jobs, one at a time, in an order that is
//! chosen.
//!
//! Keeps: one step at a time; a job that waits for a ticket is not stepped before it is complete;
//! jobs of a class start in the order in which they came. Time stands still but for a little with
//! each step, and jumps to the next deadline when nothing else can go on.
//! Leaves to others: how many threads a class has: any order is possible here that any number of
//! threads would allow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lithify_env::random::derive_seed;
use lithify_env::sync::Mutex;
use lithify_env::{Class, Job, Mono, Rt, Step, Ticket, Wake, panic_message};

use crate::choices::Dice;
use crate::crew::{self, Crew};

/// Virtual time that a step takes.
const STEP: Duration = Duration::from_micros(20);
/// Virtual time after which a wait is taken for a hang.
const HANG: Duration = Duration::from_secs(600);

/// Who decides which job goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The dice.
    Chosen,
    /// The first that can, compactions last.
    Calm,
    /// The last that can.
    Latest,
}

/// A pump.
pub struct Pump {
    state: Mutex<State>,
    dice: Dice,
    seed: u64,
}

struct State {
    now: Mono,
    /// When the client began what it does.
    call_began: Mono,
    /// Seconds by which the clock on the wall is wrong.
    wrong_by: i64,
    order: Order,
    jobs: Vec<Slot>,
    next: u64,
    steps: u64,
    panics: Vec<String>,
}

impl State {
    fn wall(&self) -> u64 {
        let right = 1_700_000_000 + self.now.nanos() / 1_000_000_000;
        right.saturating_add_signed(self.wrong_by)
    }
}

struct Slot {
    id: u64,
    class: Class,
    /// `None` while it is being stepped.
    job: Option<Box<dyn Job>>,
    wait: Wait,
    started: bool,
}

enum Wait {
    Ready,
    Ticket(Ticket),
    Until(Ticket, Mono),
}

impl Wait {
    fn is_over(&self, now: Mono) -> bool {
        match self {
            Wait::Ready => true,
            Wait::Ticket(ticket) => ticket.is_done(),
            Wait::Until(ticket, at) => ticket.is_done() || *at <= now,
        }
    }
}

impl Pump {
    /// A pump at time zero.
    pub fn new(dice: Dice, seed: u64, order: Order) -> Pump {
        let state = State {
            now: Mono(1_000_000),
            call_began: Mono(1_000_000),
            wrong_by: 0,
            order,
            jobs: Vec::new(),
            next: 0,
            steps: 0,
            panics: Vec::new(),
        };
        Pump { state: Mutex::new(state), dice, seed }
    }

    /// Who decides from now on.
    pub fn set_order(&self, order: Order) {
        self.state.lock().order = order;
    }

    /// The clock on the wall jumps: it is wrong by this many seconds from now on.
    pub fn set_wall_wrong_by(&self, seconds: i64) {
        self.state.lock().wrong_by = seconds;
    }

    /// The clock on the wall shows `second` now.
    pub fn set_wall(&self, second: u64) {
        let mut state = self.state.lock();
        state.wrong_by = 0;
        let right = state.wall();
        state.wrong_by = second as i64 - right as i64;
    }

    /// This much time passes at once, and no job goes on meanwhile.
    pub fn pass(&self, length: Duration) {
        let mut state = self.state.lock();
        state.now = state.now + length;
    }

    /// Messages of jobs that panicked.
    pub fn panics(&self) -> Vec<String> {
        self.state.lock().panics.clone()
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// The client begins something that ends in time.
    pub fn begin_call(&self) {
        let mut state = self.state.lock();
        state.call_began = state.now;
    }

    /// Steps one job, if one can go on.
    pub fn step(&self) -> bool {
        let Some((id, mut job)) = self.take_one() else { return false };
        let stepped = catch_unwind(AssertUnwindSafe(|| job.step()));
        let wait = match stepped {
            Ok(Step::More) => Wait::Ready,
            Ok(Step::Wait(ticket)) => Wait::Ticket(ticket),
            Ok(Step::WaitUntil(ticket, at)) => Wait::Until(ticket, at),
            Ok(Step::Done) => {
                self.state.lock().jobs.retain(|slot| slot.id != id);
                return true;
            }
            Err(payload) => {
                let message = panic_message(&*payload);
                {
                    let mut state = self.state.lock();
                    state.jobs.retain(|slot| slot.id != id);
                    state.panics.push(message.clone());
                }
                job.panicked(message);
                return true;
            }
        };
        let mut state = self.state.lock();
        let slot = state.jobs.iter_mut().find(|slot| slot.id == id);
        let slot = slot.expect("a job that goes on has a slot");
        slot.job = Some(job);
        slot.wait = wait;
        true
    }

    /// Takes a job that can go on out of its slot.
    fn take_one(&self) -> Option<(u64, Box<dyn Job>)> {
        let mut state = self.state.lock();
        let now = state.now;
        let mut blocked = [false; Class::ALL.len()];
        let mut ready: Vec<usize> = Vec::new();
        for (i, slot) in state.jobs.iter().enumerate() {
            let class = slot.class.index();
            let first = slot.started || !std::mem::replace(&mut blocked[class], true);
            if first && slot.job.is_some() && slot.wait.is_over(now) {
                ready.push(i);
            }
        }
        let at = match state.order {
            _ if ready.is_empty() => return None,
            Order::Calm => {
                let rank = |&i: &usize| (state.jobs[i].class == Class::Compact, i);
                ready.iter().copied().min_by_key(rank)?
            }
            Order::Latest => *ready.last()?,
            Order::Chosen => {
                let dice = self.dice.clone();
                *dice.pick(&ready, "job")
            }
        };
        state.now = now + STEP;
        state.steps += 1;
        let slot = &mut state.jobs[at];
        slot.started = true;
        Some((slot.id, slot.job.take()?))
    }

    /// Steps clients and jobs until the clients are through.
    ///
    /// # Panics
    /// If nothing can go on: the database hangs.
    pub fn attend(&self, crew: &Crew) {
        let began = self.now();
        let mut last = 0;
        while !crew.is_over() {
            let ready = crew.ready(self.now());
            let order = self.state.lock().order;
            let next = match order {
                Order::Chosen => {
                    // One more: a job.
                    let at = self.dice.choose(ready.len() as u32 + 1, "client");
                    ready.get(at as usize).copied()
                }
                Order::Calm => ready.iter().copied().find(|i| *i > last).or(ready.first().copied()),
                Order::Latest => ready.last().copied(),
            };
            if let Some(client) = next {
                last = client;
                crew.step(client);
                continue;
            }
            let stuck = self.now().since(began) > HANG;
            let goes_on = self.step() || !ready.is_empty() || self.skip(crew.next_deadline());
            if stuck || !goes_on {
                crew.give_up();
                panic!("clients wait for ever: a hang");
            }
        }
    }

    /// Lets this much time pass, with all that goes on meanwhile.
    pub fn rest(&self, length: Duration) {
        let until = self.now() + length;
        self.park(&Ticket::new(), Some(until));
    }

    /// Moves time to the next deadline, `limit` at the latest; false if none is waited for.
    fn skip(&self, limit: Option<Mono>) -> bool {
        let mut state = self.state.lock();
        let due = state.jobs.iter().filter_map(|slot| match &slot.wait {
            Wait::Until(_, at) if slot.job.is_some() => Some(*at),
            _ => None,
        });
        let Some(next) = due.chain(limit).min() else { return false };
        state.now = state.now.max(next);
        true
    }
}

impl Rt for Pump {
    fn now(&self) -> Mono {
        self.state.lock().now
    }

    fn wall_seconds(&self) -> u64 {
        self.state.lock().wall()
    }

    fn seed(&self, who: &str) -> u64 {
        derive_seed(self.seed, who)
    }

    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.jobs.push(Slot { id, class, job: Some(job), wait: Wait::Ready, started: false });
    }

    /// # Panics
    /// If nothing can complete the ticket: the database hangs.
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        if let Some(wake) = crew::park(ticket, deadline, || self.now()) {
            return wake;
        }
        let began = self.now();
        loop {
            if ticket.is_done() {
                return Wake::Done;
            }
            let now = self.now();
            if deadline.is_some_and(|at| at <= now) {
                return Wake::TimedOut;
            }
            // Also where it is woken again and again, for nothing.
            let stuck =
                now.since(began) > HANG || now.since(self.state.lock().call_began) > 10 * HANG;
            assert!(!stuck && (self.step() || self.skip(deadline)), "a wait never ends: a hang");
        }
    }

    fn breathe(&self) {
        crew::breathe();
    }

    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }

    fn threads(&self, _class: Class) -> usize {
        4
    }
}
