//! Monotonic time as a plain number.
//!
//! [`Mono`] carries no clock: it is read from [`crate::Rt::now`] and passed along as an argument,
//! which is what makes decisions replayable. Arithmetic saturates, so a deadline "far in the
//! future" never wraps into the past.

use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant in nanoseconds since an arbitrary origin fixed by the runtime.
///
/// Instants of different runtimes are not comparable, and none relates to wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a runtime reports.
    pub const MAX: Self = Self(u64::MAX);

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    /// Saturates at [`Mono::MAX`].
    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Mono {
    type Output = Duration;

    /// The same as [`Mono::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let t = Mono(5);
        assert_eq!(t + Duration::from_nanos(7), Mono(12));
        assert_eq!(t + Duration::MAX, Mono::MAX);
        assert_eq!(Mono(12) - t, Duration::from_nanos(7));
        assert_eq!(t - Mono(12), Duration::ZERO);
    }
}
