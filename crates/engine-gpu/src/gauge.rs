//! What the stages of sets take, by the device's own clock.
//!
//! Keeps: one link up and one link down carry one copy at a time, so the time of a copy is its own. Kernels of several
//! sets share the device: time in which they run side by side counts once, for the set that is looked at first. So does all that lies before
//! what was looked at last: kernels of a set that ran while another waited for its carry may not count at all, and what is
//! told of kernels is then too little, never too much. A set by itself says little, so a few that are alike are taken
//! together.
//! Leaves to others: what follows from it (`lithify_engine::tune`).

use lithify_base::Result;

use crate::device::{Device, Event};

/// Sets that are taken together, and by how much their sizes may differ from the first one's.
const GROUP: f64 = 3.0;
const ALIKE: f64 = 0.25;

/// Where a stage of a set began and ended.
pub(crate) type Span = (Event, Event);

/// Where a set was: on its way up, in kernels that need no carry, in those that do, on its way down.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {
    pub(crate) up: Option<Span>,
    pub(crate) front: Option<Span>,
    pub(crate) back: Option<Span>,
    pub(crate) down: Option<Span>,
}

/// Sets that are alike: on average so many bytes, and so many nanoseconds for link up, kernels, link down.
pub(crate) struct Alike {
    pub(crate) bytes: u64,
    pub(crate) ns: [f64; 3],
}

/// The gauge of a device.
#[derive(Default)]
pub(crate) struct Gauge {
    /// The last end of kernels that was seen.
    through: Option<Event>,
    /// How many sets, the bytes of the first, and sums.
    sets: f64,
    first: f64,
    bytes: f64,
    ns: [f64; 3],
}

impl Gauge {
    /// A set of so many bytes came through. A group is told when it is complete, or the next set is not alike.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn take(
        &mut self,
        device: &mut dyn Device,
        bytes: u64,
        spans: &Spans,
    ) -> Result<Option<Alike>> {
        let Spans { up: Some(up), front: Some(front), back: Some(back), down: Some(down) } = *spans
        else {
            return Ok(None);
        };
        let kernels = self.kernels(device, front)?.zip(self.kernels(device, back)?);
        let links = device.between(up.0, up.1)?.zip(device.between(down.0, down.1)?);
        let Some(((front, back), (up, down))) = kernels.zip(links) else { return Ok(None) };
        let bytes = bytes as f64;
        let is_alike = (bytes - self.first).abs() <= ALIKE * self.first;
        let told = if is_alike { None } else { self.told() };
        if self.sets == 0.0 {
            self.first = bytes;
        }
        self.sets += 1.0;
        self.bytes += bytes;
        for (sum, ns) in self.ns.iter_mut().zip([up, front + back, down]) {
            *sum += ns;
        }
        Ok(if self.sets < GROUP { told } else { self.told() })
    }

    /// The group so far, if there is one; the next begins.
    fn told(&mut self) -> Option<Alike> {
        let sets = self.sets;
        let told = Alike { bytes: (self.bytes / sets) as u64, ns: self.ns.map(|ns| ns / sets) };
        *self = Gauge { through: self.through, ..Gauge::default() };
        (sets > 0.0).then_some(told)
    }

    /// The time of kernels that has not counted yet.
    fn kernels(&mut self, device: &mut dyn Device, (from, to): Span) -> Result<Option<f64>> {
        let Some(all) = device.between(from, to)? else { return Ok(None) };
        let new = match self.through {
            Some(through) => device.between(through, to)?.unwrap_or(all),
            None => all,
        };
        if new > 0.0 {
            self.through = Some(to);
        }
        Ok(Some(new.clamp(0.0, all.max(0.0))))
    }
}
