//! A modelled card that merges compactions: units and links that do one thing at a time, beside the processors.
//!
//! Keeps: the moment at which a slice of a job is through is known when it is asked for, and is a function of
//! the order of the questions.
//! Leaves to others: what sets cost besides their bytes; a rate here has that in it, as `lithify bench engines`
//! says it for a size of sets.
//!
//! A job keeps all three stages busy at once, each with another of its sets, so a slice takes what the slowest of
//! them takes, behind what other jobs have there. That a job's first set goes through one stage after the other
//! is left out.

/// What a card can do.
#[derive(Clone, Debug, PartialEq)]
pub struct CardOptions {
    /// Units: compactions at once.
    pub units: usize,
    /// Input bytes of a unit a second.
    pub rate: f64,
    /// Bytes a second to the card, and from it.
    pub link: (f64, f64),
    /// Processor time of the host for each input byte, nanoseconds: staging, decoding, certifying.
    pub host_ns: f64,
}

/// A card with its future as promised so far: when each stage is free, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Card {
    options: CardOptions,
    units: Vec<f64>,
    to_card: f64,
    from_card: f64,
}

impl Card {
    /// An idle card.
    pub fn new(options: CardOptions) -> Card {
        Card { units: vec![0.0; options.units.max(1)], to_card: 0.0, from_card: 0.0, options }
    }

    /// Processor time of the host for each input byte, nanoseconds.
    pub fn host_ns(&self) -> f64 {
        self.options.host_ns
    }

    /// A slice of a job that arrives now, with so many bytes in and out; when it is through.
    pub fn serve(&mut self, now: u64, bytes_in: f64, bytes_out: f64) -> u64 {
        let from = now as f64;
        let mut end = from;
        let mut reserve = |free: &mut f64, bytes: f64, rate: f64| {
            *free = free.max(from) + bytes * 1e9 / rate;
            end = end.max(*free);
        };
        reserve(&mut self.to_card, bytes_in, self.options.link.0);
        reserve(&mut self.from_card, bytes_out, self.options.link.1);
        if let Some(unit) = self.units.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            reserve(unit, bytes_in, self.options.rate);
        }
        end.ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(units: usize) -> Card {
        Card::new(CardOptions { units, rate: 4e9, link: (8e9, 10e9), host_ns: 0.5 })
    }

    #[test]
    fn the_slowest_stage_decides() {
        let mut c = card(1);
        assert_eq!(c.serve(1000, 4000.0, 4000.0), 2000, "the unit");
        assert_eq!(c.serve(1000, 4000.0, 4000.0), 3000, "behind the first");
        assert_eq!(c.serve(9000, 400.0, 100_000.0), 19_000, "the way back");
    }

    #[test]
    fn units_share_the_links() {
        let mut c = card(4);
        // Four units would take 4 x 4 GB/s; the link brings 8.
        let ends = [0; 4].map(|now| c.serve(now, 8000.0, 8000.0));
        assert_eq!(ends, [2000, 2000, 3000, 4000]);
    }
}
