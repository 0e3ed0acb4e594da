//! What the stages of sets take, by the device's own clock.
//!
//! Keeps: one link up and one link down carry one copy at a time, so the time of a copy is its own. Kernels of several
//! sets share the device: an instant in which they run side by side counts once, for the set that is looked at first,
//! and every instant counts, in whichever order sets are looked at. So the sum over sets is the time in which kernels
//! were at work.
//! Leaves to others: what follows from it (`lithify_engine::tune`).

use lithify_base::Result;

use crate::device::{Device, Event};

/// Stretches of kernels that are remembered. Those of sets in flight are few, and grow together.
const STRETCHES: usize = 64;

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

/// The gauge of a device.
#[derive(Default)]
pub(crate) struct Gauge {
    /// What `counted` counts from.
    zero: Option<Event>,
    /// Stretches of time in which kernels ran that have counted: nanoseconds from `zero`, none overlap.
    counted: Vec<(f64, f64)>,
}

impl Gauge {
    /// Nanoseconds that a set took for link up, kernels, link down; none if the device does not know.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn take(&mut self, device: &mut dyn Device, of: &Spans) -> Result<Option<[f64; 3]>> {
        let Spans { up: Some(up), front: Some(front), back: Some(back), down: Some(down) } = *of
        else {
            return Ok(None);
        };
        let kernels = self.kernels(device, front)?.zip(self.kernels(device, back)?);
        let links = device.between(up.0, up.1)?.zip(device.between(down.0, down.1)?);
        Ok(kernels.zip(links).map(|((front, back), (up, down))| [up, front + back, down]))
    }

    /// The time of kernels that has not counted yet.
    fn kernels(&mut self, device: &mut dyn Device, (from, to): Span) -> Result<Option<f64>> {
        let Some(all) = device.between(from, to)? else { return Ok(None) };
        let all = all.max(0.0);
        match self.zero.map(|zero| device.between(zero, from)).transpose()?.flatten() {
            Some(later) => {
                self.counted.iter_mut().for_each(|of| *of = (of.0 - later, of.1 - later))
            }
            // What was long ago has nothing in common with this.
            None => self.counted.clear(),
        }
        self.zero = Some(from);
        let (mut new, mut stretch) = (all, (0.0_f64, all));
        self.counted.retain(|&(from, to)| {
            let is_apart = to < 0.0 || from > all;
            if !is_apart {
                new -= to.min(all) - from.max(0.0);
                stretch = (stretch.0.min(from), stretch.1.max(to));
            }
            is_apart
        });
        self.counted.push(stretch);
        if self.counted.len() > STRETCHES {
            self.counted.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.counted.remove(0);
        }
        Ok(Some(new.max(0.0)))
    }
}
