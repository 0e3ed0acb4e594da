//! The device's arithmetic, and the file system over a clock that moves only while one sleeps.

use std::io;

use super::*;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Class, FaultFs, Job, MemFs, OsRt, Rt, RtOptions, Wake};

const fn us(n: u64) -> Mono {
    Mono(n * 1000)
}

/// Serves `demands`, each with its arrival, and returns the moments in microseconds.
fn served(throttle: Throttle, demands: &[(u64, Demand)]) -> Vec<u64> {
    let mut device = Device::new(throttle);
    demands.iter().map(|&(at, demand)| device.serve(us(at), demand).0 / 1000).collect()
}

#[test]
fn a_channel_serves_in_order_of_arrival() {
    let throttle = Throttle {
        bandwidth: Bandwidth::Shared(10_000_000),
        latency: Duration::from_micros(100),
        sync_latency: Duration::from_micros(70),
        channels: 1,
        ..Throttle::default()
    };
    // Far from the origin, so that the burst is there: 500 us of unused bytes, then 0.1 us each.
    let demands = [
        (10_000, Demand::Read(1_000)),
        (10_010, Demand::Read(19_000)),
        (10_020, Demand::Write(1_000)),
        (30_000, Demand::Sync),
    ];
    // 1000 B are in the burst: latency alone. 19000 B more end at 9500 + 2000 us.
    assert_eq!(served(throttle, &demands), [10_100, 11_500, 11_600, 30_070]);
}

#[test]
fn latencies_overlap_on_channels_and_bytes_do_not() {
    let throttle = Throttle { latency: Duration::from_micros(100), channels: 2, ..bytes(0) };
    let reads = [(0, Demand::Read(1)); 4];
    assert_eq!(served(throttle, &reads), [100, 100, 200, 200]);
    let endless = Throttle { channels: 0, ..throttle };
    assert_eq!(served(endless, &reads), [100; 4]);
    let slow = Throttle { channels: 2, ..bytes(1_000_000) };
    assert_eq!(served(slow, &[(0, Demand::Read(1_000)); 4]), [1_000, 2_000, 3_000, 4_000]);
}

fn bytes(rate: u64) -> Throttle {
    let bandwidth = if rate == 0 { Bandwidth::Unlimited } else { Bandwidth::Shared(rate) };
    Throttle { bandwidth, ..Throttle::default() }
}

#[test]
fn directions_share_their_bytes_or_not() {
    let demands = [(0, Demand::Read(2_000)), (0, Demand::Write(2_000))];
    assert_eq!(served(bytes(1_000_000), &demands), [2_000, 4_000]);
    let bandwidth = Bandwidth::Split { read: 1_000_000, write: 500_000 };
    assert_eq!(served(Throttle { bandwidth, ..Throttle::default() }, &demands), [2_000, 4_000]);
    let demands = [(0, Demand::Write(2_000)), (0, Demand::Read(2_000))];
    assert_eq!(served(Throttle { bandwidth, ..Throttle::default() }, &demands), [4_000, 2_000]);
}

#[test]
fn operations_and_syncs_have_their_own_cost() {
    let throttle = Throttle {
        ops_per_second: 1_000,
        sync_latency: Duration::from_millis(5),
        ..Throttle::default()
    };
    let demands = [(0, Demand::Write(1)), (0, Demand::Read(9)), (0, Demand::Sync)];
    assert_eq!(served(throttle, &demands), [1_000, 2_000, 8_000]);
}

#[test]
fn an_idle_device_saves_no_more_than_the_burst() {
    let demands = [(1_000_000, Demand::Read(1_500)), (1_000_000, Demand::Read(1_000))];
    assert_eq!(served(bytes(1_000_000), &demands), [1_001_000, 1_002_000]);
}

/// Time that passes only while a thread sleeps.
#[derive(Default)]
struct Sleeper {
    now: AtomicU64,
    sleeps: AtomicU64,
}

impl Rt for Sleeper {
    fn now(&self) -> Mono {
        Mono(self.now.load(Ordering::Relaxed))
    }
    fn wall_seconds(&self) -> u64 {
        0
    }
    fn seed(&self, _: &str) -> u64 {
        0
    }
    fn spawn(&self, _: Class, _: Box<dyn Job>) {}
    fn park(&self, _: &Ticket, deadline: Option<Mono>) -> Wake {
        self.now.store(deadline.expect("a sleep ends").0, Ordering::Relaxed);
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        Wake::TimedOut
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _: Class) -> usize {
        1
    }
}

#[test]
fn every_call_pays_its_price_once_and_keeps_its_result() {
    let rt = Arc::new(Sleeper::default());
    let throttle = Throttle {
        bandwidth: Bandwidth::Split { read: 1_000_000, write: 2_000_000 },
        latency: Duration::from_micros(10),
        sync_latency: Duration::from_micros(300),
        channels: 1,
        ..Throttle::default()
    };
    let fs = ThrottledFs::new(Arc::new(MemFs::new()), rt.clone(), throttle);
    let path = Path::new("f");
    let mut told = Vec::new();
    let mut last = 0;
    let mut took = |what: &'static str| {
        let now = rt.now().0 / 1000;
        told.push((what, now - last));
        last = now;
    };
    let file = fs.create(path, OpenOpts::write()).expect("a new file");
    took("create");
    assert_eq!(file.write_at(&[7; 4_000], 0).expect("room"), 4_000);
    took("write");
    let mut buf = [0; 3_000];
    assert_eq!(file.read_at(&mut buf, 0).expect("there"), 3_000);
    assert_eq!(buf, [7; 3_000]);
    took("read");
    file.sync_data().expect("memory");
    took("sync");
    file.set_len(10).expect("memory");
    took("set_len");
    assert_eq!((file.len().expect("open"), file.alignment()), (10, 1));
    took("file_len");
    fs.rename(path, Path::new("g")).expect("there");
    took("rename");
    assert_eq!(fs.len(Path::new("g")).expect("there"), Some(10));
    took("len");
    fs.sync_dir(Path::new("")).expect("the root");
    took("sync_dir");
    let want = [
        ("create", 0),
        ("write", 2_000), // 2000 us of bytes from the origin on, where no burst is saved up yet
        ("read", 2_500),  // 3000 us of bytes less the burst
        ("sync", 300),
        ("set_len", 0),
        ("file_len", 0),
        ("rename", 0),
        ("len", 0),
        ("sync_dir", 300),
    ];
    assert_eq!(told, want);
    assert_eq!(rt.sleeps.load(Ordering::Relaxed), 4, "one sleep for each call that costs");
}

#[test]
fn an_error_takes_its_time_too() {
    let rt = Arc::new(Sleeper::default());
    let broken = FaultFs::new(Arc::new(MemFs::new()), |op| {
        (op.name == "sync_dir").then(|| io::Error::from(io::ErrorKind::PermissionDenied).into())
    });
    let throttle = Throttle { sync_latency: Duration::from_millis(3), ..Throttle::default() };
    let fs = ThrottledFs::new(Arc::new(broken), rt.clone(), throttle);
    let error = fs.sync_dir(Path::new("")).expect_err("refused");
    assert_eq!((error.op, error.kind()), ("sync_dir", io::ErrorKind::PermissionDenied));
    assert_eq!(rt.now(), us(3_000));
}

#[test]
fn no_limit_never_sleeps() {
    let rt = Arc::new(Sleeper::default());
    let fs = ThrottledFs::new(Arc::new(MemFs::new()), rt.clone(), Throttle::default());
    let file = fs.create(Path::new("f"), OpenOpts::write()).expect("a new file");
    file.write_at(&[1; 1 << 20], 0).expect("room");
    file.sync_all().expect("memory");
    assert_eq!((rt.now(), rt.sleeps.load(Ordering::Relaxed)), (Mono::ZERO, 0));
}

#[test]
fn real_threads_share_the_bytes() {
    let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
    let fs = ThrottledFs::new(Arc::new(MemFs::new()), rt.clone(), bytes(20_000_000));
    let file = fs.create(Path::new("f"), OpenOpts::write()).expect("a new file");
    let began = rt.now();
    let spent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (file, rt, spent) = (&file, &rt, &spent);
            scope.spawn(move || {
                for i in 0..10 {
                    let at = (thread * 10 + i) * 50_000;
                    file.write_at(&[1; 50_000], at).expect("room");
                }
                spent.fetch_add(rt.thread_cpu().as_nanos() as u64, Ordering::Relaxed);
            });
        }
    });
    // 2 MB at 20 MB/s are 100 ms, by any writer; waking up late costs a busy machine more.
    let took = rt.now().since(began);
    let bounds = Duration::from_millis(99)..Duration::from_secs(5);
    assert!(bounds.contains(&took), "2 MB took {took:?}");
    let spent = Duration::from_nanos(spent.into_inner());
    assert!(spent < took, "four threads that wait used {spent:?} of CPU in {took:?}");
}
