//! The modelled disk, by the rules of `env`'s throttled file system: channels that each serve one
//! operation at a time in order of arrival, a fixed latency per operation, and bytes per second
//! that all share. Which transfer comes when is for [`crate::pool`] to say.
//!
//! Keeps: the moment at which an operation is served is known when it is asked for, and is a
//! function of the order of the questions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Unused bytes of this many nanoseconds are kept and may be used at once later.
const BURST: u64 = 500_000;

/// What the disk can do.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Bytes per second that reads and writes share; 0 for no limit.
    pub bandwidth: u64,
    /// Nanoseconds each operation takes besides its bytes.
    pub latency: u64,
    /// Operations under way at once; 0 for no limit.
    pub channels: u32,
}

/// A disk with its future as promised so far.
#[derive(Debug)]
pub struct Device {
    options: DeviceOptions,
    paid: u64,
    channels: BinaryHeap<Reverse<u64>>,
    /// Bytes moved so far.
    pub moved: u64,
    /// Operations so far.
    pub operations: u64,
}

impl Device {
    /// An idle disk.
    pub fn new(options: DeviceOptions) -> Device {
        let channels = (0..options.channels).map(|_| Reverse(0)).collect();
        Device { channels, options, paid: 0, moved: 0, operations: 0 }
    }

    /// From now on so many bytes per second; what was promised before is kept.
    pub fn set_bandwidth(&mut self, bandwidth: u64) {
        self.options.bandwidth = bandwidth;
    }

    /// An operation that arrives now; when it is served.
    pub fn serve(&mut self, now: u64, bytes: u64) -> u64 {
        self.operations += 1;
        let free = self.channels.pop().map_or(0, |f| f.0);
        let start = now.max(free);
        let moved = self.transfer(start, bytes);
        let served = moved.max(start + self.options.latency);
        if self.options.channels > 0 {
            self.channels.push(Reverse(served));
        }
        served
    }

    fn transfer(&mut self, now: u64, bytes: u64) -> u64 {
        self.moved += bytes;
        if self.options.bandwidth == 0 || bytes == 0 {
            return now;
        }
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(self.options.bandwidth);
        self.paid = self.paid.max(now.saturating_sub(BURST)) + cost as u64;
        self.paid.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(channels: u32) -> Device {
        Device::new(DeviceOptions { bandwidth: 10_000_000, latency: 100_000, channels })
    }

    #[test]
    fn one_channel_serves_in_order() {
        // The example of env's throttled file system, behind a burst that is spent first.
        let mut d = device(1);
        let at = 1_000_000_000;
        d.serve(at, 5_000);
        let base = d.serve(at, 0);
        assert_eq!(base, at + 200_000);
        assert_eq!(d.serve(at, 9_000), at + 900_000, "bytes go while others wait for latency");
        assert_eq!(d.moved, 14_000);
    }

    #[test]
    fn channels_share_bytes_and_not_latency() {
        let mut d = device(2);
        let at = 1_000_000_000;
        assert_eq!([d.serve(at, 0), d.serve(at, 0)], [at + 100_000; 2]);
        assert_eq!(d.serve(at, 0), at + 200_000);
    }
}
