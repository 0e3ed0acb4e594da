//! Admission of writes: the core's verdict, applied by the holder of the write turn. It asks before a write is made, and
//! tells the bytes once it is to be made, so a write that fails its check costs nothing. Free flow
//! costs one atomic load and a count of bytes; a slow-down spaces writes out at a rate; a stop waits. Every
//! stall has a cause, a begin and an end in the event log, and its waiting time is counted by cause.

use std::time::Duration;

use lithify_base::{Error, ErrorKind, Result};
use lithify_control::{Pacer, Pressure};
use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lithify_env::{Mono, Rt, Ticket};
use lithify_plan::Cause;
use lithify_reports::explain::GateReport;

use lithify_reports::events::Events;
use lithify_reports::field::Field;
use lithify_reports::metrics::Metrics;

/// The gate in front of the log.
pub struct Gate {
    /// False while there is anything to look at in `state`.
    free: AtomicBool,
    state: Mutex<State>,
    /// Bytes of all writes. Only the holder of the turn changes this and the next two.
    written: AtomicU64,
    /// What `written` was when [`take_passed`](Gate::take_passed) was last called.
    taken: AtomicU64,
    /// Bytes of all writes that later ones wait for at a rate.
    owed: AtomicU64,
    /// Nanoseconds writers waited, by cause.
    waited: [AtomicU64; Cause::ALL.len()],
    /// The column family, where notes are to name one.
    family: Option<String>,
}

/// Why a write may not pass yet, and what to wait for.
pub struct Wait {
    /// What holds the write back.
    pub cause: Cause,
    /// When the rate of now lets it pass; `None` while writes are stopped.
    pub until: Option<Mono>,
    changed: Ticket,
}

impl Wait {
    /// For memory of memtables, until `freed` is complete or it is `until`.
    pub fn for_memory(freed: Ticket, until: Mono) -> Wait {
        Wait { cause: Cause::MemtableLimit, until: Some(until), changed: freed }
    }
}

#[derive(Default)]
struct State {
    pressure: Pressure,
    /// Writes fail with this.
    refused: Option<Error>,
    /// Why flushes fail at present: a stop may last, so writes fail instead of waiting for it.
    trouble: Option<Error>,
    /// Why compactions get nowhere at present: the same for stops that wait for them.
    stuck: Option<Error>,
    /// The database is closing: while anything holds writes back they fail with this instead of waiting, because
    /// a writer that waits holds the turn that the close needs.
    closing: Option<Error>,
    /// No write comes any more, so that nothing holds one back.
    over: bool,
    /// Completed and replaced at every change.
    changed: Ticket,
    /// When the stall now on began.
    since: Mono,
    /// When the next write may pass.
    pacer: Pacer,
    /// What the pacer knows of `owed`.
    charged: u64,
}

impl Gate {
    /// The gate of a column family; notes name it if it is given.
    pub fn new(family: Option<String>) -> Gate {
        Gate {
            family,
            free: AtomicBool::new(true),
            state: Mutex::new(State::default()),
            written: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            waited: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn note(&self, now: Mono, events: &Events, event: &str, fields: &[(&str, Field)]) {
        let family = self.family.iter().map(|name| ("family", name.as_str().into()));
        let fields: Vec<_> = family.chain(fields.iter().cloned()).collect();
        events.note(now, event, &fields);
    }

    /// The core's new verdict.
    pub fn press(&self, pressure: Pressure, now: Mono, events: &Events) {
        let mut state = self.state.lock();
        let pressure = if state.over { Pressure::default() } else { pressure };
        let (old, new) = (state.pressure.cause(), pressure.cause());
        if old != new || state.pressure.stop.is_some() != pressure.stop.is_some() {
            if let Some(cause) = old {
                let length = now.since(state.since).as_nanos() as u64;
                self.note(
                    now,
                    events,
                    "stall_end",
                    &[("cause", cause.name().into()), ("micros", (length / 1000).into())],
                );
            }
            if let Some(cause) = new {
                let kind = if pressure.stop.is_some() { "stop" } else { "delay" };
                let rate = pressure.delay.map_or(0, |d| d.0);
                self.note(
                    now,
                    events,
                    "stall_begin",
                    &[
                        ("cause", cause.name().into()),
                        ("kind", kind.into()),
                        ("bytes_per_second", rate.into()),
                    ],
                );
                state.since = now;
            }
        }
        let rate = pressure.rate(self.passed(), now.0).map(|(rate, _)| rate);
        self.tell_pacer(&mut state);
        state.pacer.press(rate, now.0);
        state.pressure = pressure;
        self.changed(&mut state);
    }

    /// No write comes any more: a stall that is on ends, and none begins. Else the log would end within it, and be read as if
    /// it went on.
    pub fn end(&self, now: Mono, events: &Events) {
        self.state.lock().over = true;
        self.press(Pressure::default(), now, events);
    }

    /// Writes fail with `error` from now on. The first cause stays.
    pub fn refuse(&self, error: Error) {
        let mut state = self.state.lock();
        state.refused.get_or_insert(error);
        self.changed(&mut state);
    }

    /// No writer waits any more: one that would have to fails with `error`.
    pub fn hurry(&self, error: Error) {
        let mut state = self.state.lock();
        state.closing = Some(error);
        self.changed(&mut state);
    }

    /// Flushes fail with `error`, or work again.
    pub fn trouble(&self, error: Option<Error>) {
        let mut state = self.state.lock();
        state.trouble = error;
        self.changed(&mut state);
    }

    /// Compactions get nowhere because of `error`, or work again.
    pub fn stuck(&self, error: Option<Error>, now: Mono, events: &Events) {
        match &error {
            Some(e) => {
                let cause = [("cause", e.to_string().into())];
                self.note(now, events, "compactions_stuck", &cause);
            }
            None => self.note(now, events, "compactions_work_again", &[]),
        }
        let mut state = self.state.lock();
        state.stuck = error;
        self.changed(&mut state);
    }

    fn changed(&self, state: &mut State) {
        let free = state.refused.is_none() && state.pressure == Pressure::default();
        self.free.store(free, Ordering::Release);
        std::mem::take(&mut state.changed).complete();
    }

    /// The error that writes fail with, if any.
    #[inline]
    pub fn refused(&self) -> Option<Error> {
        if self.free.load(Ordering::Acquire) {
            return None;
        }
        self.state.lock().refused.clone()
    }

    /// For a write that can't be taken before a flush has succeeded.
    ///
    /// # Errors
    /// What writes are refused with; why flushes fail; `Stalled` for `no_wait` if nothing is known to
    /// keep them from succeeding.
    pub fn check_flushes(&self, no_wait: bool) -> Result<()> {
        let state = self.state.lock();
        if let Some(error) = state.refused.as_ref().or(state.closing.as_ref()) {
            return Err(error.clone());
        }
        match &state.trouble {
            Some(cause) => Err(held_up("be flushed", cause)),
            None if no_wait => Err(stalled(Cause::MemtableLimit)),
            None => Ok(()),
        }
    }

    /// For a writer that would rather fail than wait, before it queues. Whether the rate of a delay lets it
    /// pass at once is asked when it is its turn.
    ///
    /// # Errors
    /// What writes are refused with; `Stalled` while they are stopped.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.free.load(Ordering::Acquire) {
            return Ok(());
        }
        let state = self.state.lock();
        if let Some(error) = &state.refused {
            return Err(error.clone());
        }
        state.pressure.stop.map_or(Ok(()), |cause| Err(stalled(cause)))
    }

    /// True while nothing holds writes back.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.free.load(Ordering::Acquire)
    }

    /// True if no stall is on, and a write would not have to wait for a rate either.
    pub fn flows(&self, now: impl FnOnce() -> Mono) -> bool {
        if self.is_free() {
            return true;
        }
        let mut state = self.state.lock();
        self.tell_pacer(&mut state);
        let open = state.refused.is_none() && state.closing.is_none();
        open && state.pressure.cause().is_none() && state.pacer.is_due(now().0)
    }

    /// True while writes have to wait however few they are.
    pub fn is_stopped(&self) -> bool {
        self.stop().is_some()
    }

    /// Why writes have to wait however few they are, if they do.
    #[inline]
    pub fn stop(&self) -> Option<Cause> {
        if self.is_free() { None } else { self.state.lock().pressure.stop }
    }

    /// Bytes of writes since they were last taken.
    pub fn passed(&self) -> u64 {
        // Another thread than the holder may see them of different moments.
        let taken = self.taken.load(Ordering::Relaxed);
        self.written.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// The same, and none have passed since then. For the holder of the turn.
    pub fn take_passed(&self) -> u64 {
        let passed = self.passed();
        self.taken.store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
        passed
    }

    /// Counts `bytes` of a write that is made; those after it wait for them at the rate of now. For the holder of the turn.
    #[inline]
    pub fn charge(&self, bytes: u64) {
        add(&self.owed, bytes);
        add(&self.written, bytes);
    }

    /// The same for a write with `no_wait`: others wait for its bytes only while a stall is on, which slows such writes down as
    /// well.
    #[inline]
    pub fn count(&self, bytes: u64) {
        match self.is_free() || self.state.lock().pressure.cause().is_none() {
            true => add(&self.written, bytes),
            false => self.charge(bytes),
        }
    }

    /// Tells the pacer of the bytes that were charged since it was last told.
    fn tell_pacer(&self, state: &mut State) {
        let owed = self.owed.load(Ordering::Relaxed);
        state.pacer.charge(owed - state.charged);
        state.charged = owed;
    }

    /// Says what a write has to wait for, if anything. What time it is is asked only where a rate is on. A writer
    /// with `no_wait`, which fails where it is told to wait, is told so for stalls alone, and not for a rate that makes room last.
    ///
    /// # Errors
    /// What writes are refused with, or why it is no use to wait.
    #[inline]
    pub fn ask(&self, no_wait: bool, now: impl FnOnce() -> Mono) -> Result<Option<Wait>> {
        if self.is_free() {
            return Ok(None);
        }
        let mut state = self.state.lock();
        if let Some(error) = state.refused.as_ref().or(state.closing.as_ref()) {
            return Err(error.clone());
        }
        if let Some(cause) = state.pressure.stop {
            let flush = state.trouble.as_ref().map(|error| held_up("be flushed", error));
            let compaction = state.stuck.as_ref().map(|e| held_up("be compacted", e));
            let error = match cause {
                Cause::MemtableLimit => flush,
                _ => compaction.or(flush),
            };
            return match error {
                Some(error) => Err(error),
                None => Ok(Some(Wait { cause, changed: state.changed.clone(), until: None })),
            };
        }
        if no_wait && state.pressure.cause().is_none() {
            return Ok(None);
        }
        let now = now();
        let Some((rate, cause)) = state.pressure.rate(self.passed(), now.0) else {
            return Ok(None);
        };
        self.tell_pacer(&mut state);
        let until = state.pacer.ask(rate, now.0);
        Ok(until.map(|at| Wait { cause, changed: state.changed.clone(), until: Some(Mono(at)) }))
    }

    /// Sleeps until the verdict changes or the rate allows.
    pub fn sit_out(&self, wait: &Wait, rt: &dyn Rt, metrics: &Metrics) {
        let began = rt.now();
        rt.park(&wait.changed, wait.until);
        let waited = rt.now().since(began).as_nanos() as u64;
        self.waited[wait.cause as usize].fetch_add(waited, Ordering::Relaxed);
        metrics.stall.record(waited);
    }

    /// What is on now.
    pub fn report(&self) -> GateReport {
        let state = self.state.lock();
        GateReport {
            pressure: state.pressure.clone(),
            passed: self.passed(),
            refused: state.refused.clone(),
            trouble: state.trouble.clone(),
            stuck: state.stuck.clone(),
            since: state.since,
        }
    }

    /// Time writers waited, by cause.
    pub fn waited(&self) -> Vec<(&'static str, Duration)> {
        Cause::ALL
            .iter()
            .map(|c| {
                let nanos = self.waited[*c as usize].load(Ordering::Relaxed);
                (c.name(), Duration::from_nanos(nanos))
            })
            .collect()
    }
}

/// Adds to a sum that no other thread changes.
#[inline]
fn add(sum: &AtomicU64, bytes: u64) {
    sum.store(sum.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

/// The error of a write that would have to wait and was asked not to.
pub fn stalled(cause: Cause) -> Error {
    let what = format!("writes are held back ({}); nothing was written", cause.name());
    Error::new(ErrorKind::Stalled, what)
}

/// The error of a write that would have to wait until what is full can `go`, which fails.
fn held_up(go: &str, cause: &Error) -> Error {
    let (kind, what) = match cause.kind() {
        ErrorKind::NoSpace => (
            ErrorKind::NoSpace,
            format!(
                "what was written before can't {go} because the disk is full, or its budget used \
                 up; nothing was written; free space and writes go on by themselves"
            ),
        ),
        _ => (
            ErrorKind::NotCommitted,
            format!(
                "what was written before can't {go}; nothing was written; it is tried again, and \
                 writes go on by themselves once it works"
            ),
        ),
    };
    Error::new(kind, what).caused_by(cause.clone())
}

#[cfg(all(test, shuttle))]
mod schedules;
