//! A file system behind a slow device, for experiments on small machines.
//!
//! [`ThrottledFs`] passes every call to another [`Fs`] and returns no sooner than a modelled
//! device would: channels that each serve one operation at a time in order of arrival, a fixed
//! latency per operation, and buckets for bytes and operations per second that all channels share.
//! A fast real disk with this in front behaves like a slower one with a deeper queue, so that
//! many background threads wait for the device instead of competing for two cores.
//!
//! Keeps: the result of every call is the inner file system's; the calling thread sleeps through
//! the runtime and never spins; with a clock that only moves while everybody sleeps, the moments at
//! which calls return are a function of the order of the calls.
//! Leaves to others: names and lengths, which a real file system changes in memory and brings to
//! the device with a sync, so that only the sync is paid for; a page cache. Buffered transfers pay
//! like direct ones, so a log that is written once per put costs one operation per put.
//!
//! Worked example, 1 channel, 100 us latency, 10 MB/s, an idle device at time 0:
//!
//! ```text
//! read of 1000 B arrives at   0 us: channel free at 0, +100 us latency = bytes 0..100 us -> 100 us
//! read of 9000 B arrives at  10 us: channel free at 100, +100 us = 200, bytes 100..1000 -> 1000 us
//! read of 9000 B arrives at 950 us: channel free at 1000, bytes 1000..1900              -> 1900 us
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    Advice, DirEnt, File, FileRef, Fs, FsRef, IoResult, LockGuard, Mono, OpenOpts, RtRef, Ticket,
};

/// How fast bytes go through a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bandwidth {
    /// As fast as the inner file system.
    #[default]
    Unlimited,
    /// Bytes per second that reads and writes share.
    Shared(u64),
    /// Bytes per second for each direction by itself.
    Split {
        /// Of reads.
        read: u64,
        /// Of writes.
        write: u64,
    },
}

/// What the modelled device can do. The default is no limit at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second.
    pub bandwidth: Bandwidth,
    /// Time every operation takes besides its bytes; operations on one channel take it one after
    /// the other, those on different channels at the same time.
    pub latency: Duration,
    /// Time a sync takes, instead of `latency`.
    pub sync_latency: Duration,
    /// Operations per second, all channels together; 0 for no limit.
    pub ops_per_second: u64,
    /// Operations under way at the same time; 0 for no limit.
    pub channels: u32,
}

/// Unused bytes and operations of this much time are kept and may be used at once later: a
/// device has a small buffer, and a sleeping thread wakes up a little late.
const BURST: Duration = Duration::from_micros(500);

/// A token bucket, kept as the time at which it will be full again.
#[derive(Debug, Default)]
struct Bucket {
    /// Tokens per second; 0 for no limit.
    rate: u64,
    /// When all tokens taken so far are paid for.
    paid: Mono,
}

impl Bucket {
    fn new(rate: u64) -> Self {
        Self { rate, paid: Mono::ZERO }
    }

    /// Takes `tokens` at `now`; the moment at which the last of them is there.
    fn take(&mut self, now: Mono, tokens: u64) -> Mono {
        if self.rate == 0 || tokens == 0 {
            return now;
        }
        let earliest = Mono(now.0.saturating_sub(BURST.as_nanos() as u64));
        let nanos = u128::from(tokens) * 1_000_000_000 / u128::from(self.rate);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.paid = self.paid.max(earliest) + cost;
        self.paid.max(now)
    }
}

/// What an operation needs of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Read(u64),
    Write(u64),
    Sync,
}

/// The device's future as promised so far.
#[derive(Debug)]
struct Device {
    throttle: Throttle,
    read: Bucket,
    write: Bucket,
    operations: Bucket,
    /// When each channel will have served what it was given.
    channels: Vec<Mono>,
}

impl Device {
    fn new(throttle: Throttle) -> Self {
        let (read, write) = match throttle.bandwidth {
            Bandwidth::Unlimited => (0, 0),
            // The bucket of reads serves both.
            Bandwidth::Shared(rate) => (rate, 0),
            Bandwidth::Split { read, write } => (read, write),
        };
        Self {
            throttle,
            read: Bucket::new(read),
            write: Bucket::new(write),
            operations: Bucket::new(throttle.ops_per_second),
            channels: vec![Mono::ZERO; throttle.channels as usize],
        }
    }

    /// Queues an operation that arrives at `now`; the moment at which it is served.
    fn serve(&mut self, now: Mono, demand: Demand) -> Mono {
        // The channel that is free first, the lowest of equals: order is part of the result.
        let channel = self.channels.iter_mut().min();
        let start = channel.as_deref().map_or(now, |free| now.max(*free));
        let start = self.operations.take(start, 1);
        let shared = matches!(self.throttle.bandwidth, Bandwidth::Shared(_));
        let moved = match demand {
            Demand::Read(bytes) => self.read.take(start, bytes),
            Demand::Write(bytes) if shared => self.read.take(start, bytes),
            Demand::Write(bytes) => self.write.take(start, bytes),
            Demand::Sync => start,
        };
        let latency = match demand {
            Demand::Sync => self.throttle.sync_latency,
            _ => self.throttle.latency,
        };
        let served = moved.max(start + latency);
        if let Some(free) = channel {
            *free = served;
        }
        served
    }
}

/// A device that threads wait for.
struct Turnstile {
    rt: RtRef,
    device: Mutex<Device>,
}

impl Turnstile {
    /// Runs `call` and returns when the device would have, or later if the call takes longer.
    fn pass<T>(&self, demand: Demand, call: impl FnOnce() -> IoResult<T>) -> IoResult<T> {
        let served = self.device.lock().serve(self.rt.now(), demand);
        let result = call();
        if self.rt.now() < served {
            self.rt.park(&Ticket::new(), Some(served));
        }
        result
    }
}

/// An [`Fs`] that takes its time.
///
/// ```
/// use lithify_env::{Env, Fs, OpenOpts, RtOptions};
/// use lithify_slow::{Bandwidth, Throttle, ThrottledFs};
/// use std::{path::Path, time::Duration};
///
/// let world = Env::in_memory(RtOptions::default());
/// let throttle = Throttle {
///     bandwidth: Bandwidth::Shared(10_000_000),
///     latency: Duration::from_micros(100),
///     ..Throttle::default()
/// };
/// let fs = ThrottledFs::new(world.fs, world.rt.clone(), throttle);
/// let began = world.rt.now();
/// let file = fs.create(Path::new("f"), OpenOpts::write())?;
/// assert_eq!(file.write_at(&[7; 100_000], 0)?, 100_000);
/// assert!(world.rt.now().since(began) >= Duration::from_millis(9));
/// # Ok::<(), lithify_env::IoError>(())
/// ```
pub struct ThrottledFs {
    inner: FsRef,
    gate: Arc<Turnstile>,
}

impl ThrottledFs {
    /// Puts a device of `throttle` in front of `inner`; `rt` keeps its time.
    pub fn new(inner: FsRef, rt: RtRef, throttle: Throttle) -> Self {
        let device = Mutex::new(Device::new(throttle));
        Self { inner, gate: Arc::new(Turnstile { rt, device }) }
    }

    fn wrap(&self, inner: FileRef) -> FileRef {
        Arc::new(ThrottledFile { inner, gate: Arc::clone(&self.gate) })
    }
}

impl Fs for ThrottledFs {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        let inner = self.inner.beneath(dir, denied)?;
        Ok(Arc::new(Self { inner, gate: Arc::clone(&self.gate) }))
    }

    fn permissions(&self, path: &Path) -> IoResult<u32> {
        self.inner.permissions(path)
    }

    // Names, space and locks are the system's memory; a sync is what brings them to the device.
    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        Ok(self.wrap(self.inner.create(path, opts)?))
    }

    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        Ok(self.wrap(self.inner.open(path, opts)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.inner.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.inner.unlink(path)
    }

    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.inner.link(from, to)
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.inner.list(dir)
    }

    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.inner.len(path)
    }

    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.gate.pass(Demand::Sync, || self.inner.sync_dir(dir))
    }

    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.inner.free_space(dir)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner.resolve(path)
    }

    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.inner.lock(path)
    }
}

struct ThrottledFile {
    inner: FileRef,
    gate: Arc<Turnstile>,
}

impl File for ThrottledFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        self.gate.pass(Demand::Read(buf.len() as u64), || self.inner.read_at(buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        self.gate.pass(Demand::Write(bytes.len() as u64), || self.inner.write_at(bytes, offset))
    }

    fn sync_data(&self) -> IoResult<()> {
        self.gate.pass(Demand::Sync, || self.inner.sync_data())
    }

    fn sync_all(&self) -> IoResult<()> {
        self.gate.pass(Demand::Sync, || self.inner.sync_all())
    }

    // Like names: what an open file's length and hints change is memory until the next sync.
    fn set_len(&self, len: u64) -> IoResult<()> {
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> IoResult<()> {
        self.inner.allocate(offset, len)
    }

    fn len(&self) -> IoResult<u64> {
        self.inner.len()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.inner.advise(offset, len, advice);
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn links(&self) -> IoResult<u64> {
        self.inner.links()
    }

    fn identity(&self) -> Option<(u64, u64)> {
        self.inner.identity()
    }
    fn next_data(&self, from: u64) -> IoResult<Option<Range<u64>>> {
        self.inner.next_data(from)
    }
}

#[cfg(test)]
mod tests;
