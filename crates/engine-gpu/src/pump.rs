//! The pump: makes all calls of a device, and moves its units on.
//!
//! Where there is a runtime it is a job on a thread of its own: what the device takes costs that thread, and a call
//! that never returns does, too, but no compaction. Without one, for devices that are simulated, sessions
//! turn it themselves.
//!
//! Keeps: after an error of the device no call is made of it. While it may still read or write what a unit has,
//! the unit has it.
//! Leaves to others: which set comes next (`line`).

use std::time::Duration;

use lithify_base::{Error, ErrorKind};
use lithify_env::sync::Arc;
use lithify_env::{Mono, RtRef, Step, Ticket};

use crate::Shared;
use crate::device::Device;
use crate::gauge::Gauge;
use crate::line::SetNo;
use crate::unit::{Job, Limits, News, OnDevice, Trouble, Unit};

/// How often a device at work is looked at.
const LOOK: Duration = Duration::from_micros(20);
/// How long units keep memory of the device without sessions: to take it and to give it back costs milliseconds, and a
/// compaction seldom comes alone.
const KEEP: Duration = Duration::from_secs(2);

/// A device and its units.
pub(crate) struct Pump {
    device: Box<dyn Device>,
    units: Vec<Station>,
    gauge: Gauge,
    lost: Option<Error>,
}

/// A unit, and what it works on: a set and its session.
struct Station {
    unit: Unit,
    work: Option<(SetNo, u64)>,
}

impl Pump {
    pub(crate) fn new(device: Box<dyn Device>, units: u8, limits: &Limits) -> Pump {
        let unit = |no| Station { unit: Unit::new(no, limits.clone()), work: None };
        let units = (0..units).map(unit).collect();
        Pump { device, units, gauge: Gauge::default(), lost: None }
    }

    /// Moves everything on that can; says whether something did.
    pub(crate) fn turn(&mut self, shared: &Shared) -> bool {
        if self.lost.is_none() {
            self.lost = shared.lost();
        }
        self.device.look();
        let mut moved = self.stock_up(shared);
        for no in 0..self.units.len() {
            if self.lost.is_some() {
                break;
            }
            match self.turn_unit(no, shared) {
                Ok(some) => moved |= some,
                Err(trouble) => {
                    moved = true;
                    self.fail(no, shared, trouble);
                }
            }
        }
        if let Some(why) = &self.lost {
            shared.line.lock().stop_all(why);
        }
        moved
    }

    /// Gives back what memory units have that no session needs; says whether there was some.
    pub(crate) fn close(&mut self, shared: &Shared) -> bool {
        if self.lost.is_some() || shared.line.lock().sessions() > 0 {
            return false;
        }
        let idle = self.units.iter_mut().filter(|of| of.unit.is_idle());
        idle.fold(false, |had, Station { unit, .. }| unit.close(&mut *self.device) | had)
    }

    /// Takes memory for an input, if it was wished for.
    fn stock_up(&mut self, shared: &Shared) -> bool {
        if self.lost.is_some() {
            shared.stock.close();
            return false;
        }
        let (Some(bytes), gone) = shared.stock.wished() else { return false };
        drop(gone);
        let device = &mut *self.device;
        let lent = device.arena(bytes).and_then(|arena| {
            let takes = device.takes(&arena, bytes);
            Ok((device.lend(arena)?, takes))
        });
        match lent {
            Ok((lent, takes)) => shared.stock.add(lent, takes),
            // There is none now: inputs are copied, as they would be without it.
            Err(e) if e.kind() == ErrorKind::LimitExceeded => shared.stock.close(),
            Err(e) => {
                shared.failed(&Trouble::Device(e.clone()));
                self.lost = Some(e);
            }
        }
        true
    }

    /// Whether the device is at work.
    fn is_busy(&self) -> bool {
        self.lost.is_none() && self.units.iter().any(|of| !of.unit.is_idle())
    }

    fn turn_unit(&mut self, no: usize, shared: &Shared) -> Result<bool, Trouble> {
        let free = self.units.iter().filter(|of| of.work.is_none()).count();
        let short = self.units.iter().any(|of| of.unit.is_short());
        let units = self.units.len();
        let Station { unit, work } = &mut self.units[no];
        let device = &mut *self.device;
        let Some((set, session)) = *work else {
            // What comes back goes before what goes up.
            if short || !unit.is_idle() {
                return Ok(unit.turn(device)?.is_some());
            }
            let mut line = shared.line.lock();
            let fits = |job: &Job| unit.has_room(job.staged.copied);
            let Some((set, job)) = line.take_job(free, units, fits) else { return Ok(false) };
            let session = line.session_of(set).unwrap_or_default();
            drop(line);
            *work = Some((set, session));
            unit.start(device, job)?;
            return Ok(true);
        };
        let mut line = shared.line.lock();
        if !line.is_wanted(set) {
            line.give_back(session);
            drop(line);
            *work = None;
            unit.abandon(device)?;
            return Ok(true);
        }
        let carry = if unit.wants_carry() { line.take_carry(set) } else { None };
        drop(line);
        if let Some(carry) = carry {
            unit.go_on(device, &carry)?;
            return Ok(true);
        }
        let Some(news) = unit.turn(device)? else { return Ok(false) };
        if matches!(news, News::Blocks(_))
            && let (bytes, spans) = unit.spans()
            && let Some(ns) = self.gauge.take(device, &spans).on_device()?
        {
            shared.learn(bytes, ns);
        }
        let mut line = shared.line.lock();
        if matches!(news, News::Blocks(_)) {
            *work = None;
            line.give_back(session);
        }
        line.tell(set, news);
        Ok(true)
    }

    /// A unit's set is stopped, or the device is lost.
    fn fail(&mut self, no: usize, shared: &Shared, trouble: Trouble) {
        let work = self.units[no].work.take();
        if let Trouble::Device(why) = &trouble {
            self.lost = Some(why.clone());
            shared.failed(&trouble);
        }
        let mut line = shared.line.lock();
        if let Some((set, session)) = work {
            line.stop(set, trouble);
            line.give_back(session);
        }
        drop(line);
        if self.lost.is_none()
            && let Err(trouble) = self.units[no].unit.abandon(&mut *self.device)
        {
            self.fail(no, shared, trouble);
        }
    }
}

/// The pump as a job. Its last field tells that all others are gone: a runtime whose last owner is one of its own
/// jobs would wait for itself.
pub(crate) struct PumpJob {
    pump: Pump,
    shared: Arc<Shared>,
    rt: RtRef,
    /// Since when there has been nothing to do, unless units have no memory any more.
    idle: Option<Mono>,
    #[expect(dead_code, reason = "tells when it is dropped")]
    over: Over,
}

struct Over(Ticket);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.complete();
    }
}

impl PumpJob {
    /// The job, and what completes once it is gone.
    pub(crate) fn new(pump: Pump, shared: Arc<Shared>, rt: RtRef) -> (PumpJob, Ticket) {
        let over = Ticket::new();
        (PumpJob { pump, shared, rt, idle: None, over: Over(over.clone()) }, over)
    }
}

impl lithify_env::Job for PumpJob {
    fn step(&mut self) -> Step {
        let wake = self.shared.line.lock().wake();
        if self.pump.turn(&self.shared) {
            self.idle = Some(self.rt.now());
            return Step::More;
        }
        // What waits for room in the arenas is not told when the host gives some back.
        if self.pump.is_busy() || self.shared.line.lock().has_waiting() {
            return Step::WaitUntil(wake, self.rt.now() + LOOK);
        }
        if self.shared.line.lock().is_over() {
            return Step::Done;
        }
        match self.idle.map(|since| since + KEEP) {
            Some(end) if self.rt.now() < end => Step::WaitUntil(wake, end),
            // A session may be at the end of its input; it wakes the pump when it leaves.
            Some(_) if self.shared.line.lock().sessions() > 0 => Step::Wait(wake),
            Some(_) => {
                self.pump.close(&self.shared);
                self.idle = None;
                Step::Wait(wake)
            }
            None => Step::Wait(wake),
        }
    }

    fn panicked(&mut self, message: String) {
        let error = Error::new(ErrorKind::Internal, message);
        self.shared.failed(&Trouble::Device(error.clone()));
        self.shared.line.lock().stop_all(&error);
    }
}
