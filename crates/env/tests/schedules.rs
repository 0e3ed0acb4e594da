//! The runtime under chosen schedules: tickets, lanes, transfers, memory. Run by `cargo xtask
//! shuttle`; without the checker there is nothing here.
#![cfg(shuttle)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::time::Duration;

use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    CappedFs, Class, Fs, IoBuf, Job, MemFs, OpenOpts, OsRt, PendingIo, RegionPool, Rt, RtOptions,
    SharedUrgency, Step, Ticket, Urgency, Wake, oneshot, spawn_read, spawn_write, write_all_at,
};
use lithify_testkit::schedules::{explore, thread};

fn rt(threads: usize) -> OsRt {
    OsRt::new(RtOptions {
        flush_threads: threads,
        compact_threads: threads,
        io_threads: threads,
        upkeep_threads: threads,
        background_nice: 0,
        seed: Some(7),
    })
}

/// A job made of a closure, which counts its end.
struct Scripted<F> {
    script: F,
    urgency: Urgency,
    busy: AtomicBool,
    over: Ticket,
    ended: Arc<AtomicU64>,
}

impl<F: FnMut() -> Step + Send> Job for Scripted<F> {
    fn step(&mut self) -> Step {
        assert!(!self.busy.swap(true, SeqCst), "two threads step one job");
        assert!(!self.over.is_done(), "a step after the end");
        let step = (self.script)();
        self.busy.store(false, SeqCst);
        step
    }
    fn urgency(&self) -> Urgency {
        self.urgency
    }
    fn panicked(&mut self, message: String) {
        panic!("{message}");
    }
}

impl<F> Drop for Scripted<F> {
    fn drop(&mut self) {
        self.ended.fetch_add(1, SeqCst);
        self.over.complete();
    }
}

fn spawn(
    rt: &OsRt,
    class: Class,
    urgency: Urgency,
    ended: &Arc<AtomicU64>,
    script: impl FnMut() -> Step + Send + 'static,
) -> Ticket {
    let over = Ticket::new();
    let busy = AtomicBool::new(false);
    let job = Scripted { script, urgency, busy, over: over.clone(), ended: ended.clone() };
    rt.spawn(class, Box::new(job));
    over
}

/// A thread that waits for a ticket wakes, and sees what was written before it was completed.
#[test]
fn a_ticket_wakes_everyone() {
    explore("a ticket wakes everyone", || {
        let rt = Arc::new(rt(1));
        let (ticket, written) = (Ticket::new(), Arc::new(AtomicU64::new(0)));
        let early = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let (rt, ticket) = (rt.clone(), ticket.clone());
                let (written, early) = (written.clone(), early.clone());
                thread::spawn(move || {
                    early.fetch_add(usize::from(!ticket.is_done()), Plain::Relaxed);
                    assert_eq!(rt.park(&ticket, None), Wake::Done);
                    assert_eq!(written.load(SeqCst), 1, "woken before what was waited for");
                })
            })
            .collect();
        let again = {
            let ticket = ticket.clone();
            let written = written.clone();
            thread::spawn(move || {
                written.store(1, SeqCst);
                ticket.complete();
            })
        };
        waiters.into_iter().for_each(|w| w.join().unwrap());
        again.join().unwrap();
        ticket.complete();
        early.load(Plain::Relaxed)
    });
}

/// A deadline and a completion at once: either is told, and nothing is lost.
#[test]
fn a_deadline_meets_a_completion() {
    explore("a deadline meets a completion", || {
        let rt = Arc::new(rt(1));
        let ticket = Ticket::new();
        let waiter = {
            let (rt, ticket) = (rt.clone(), ticket.clone());
            thread::spawn(move || {
                let at = rt.now() + Duration::from_millis(1);
                match rt.park(&ticket, Some(at)) {
                    Wake::Done => assert!(ticket.is_done()),
                    Wake::TimedOut => {
                        assert!(rt.now() >= at, "too early");
                        assert_eq!(rt.park(&ticket, None), Wake::Done);
                        return 1;
                    }
                }
                0
            })
        };
        for _ in 0..6 {
            thread::yield_now();
        }
        ticket.complete();
        waiter.join().unwrap()
    });
}

/// Jobs that wait for each other over two threads all come to their end, each stepped by one
/// thread at a time.
#[test]
fn jobs_wait_for_each_other() {
    explore("jobs wait for each other", || {
        let rt = rt(2);
        let ended = Arc::new(AtomicU64::new(0));
        let gates: Vec<Ticket> = (0..4).map(|_| Ticket::new()).collect();
        let (order, waited) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
        let jobs: Vec<Ticket> = (0..4)
            .map(|n| {
                let (gates, order, waited) = (gates.clone(), order.clone(), waited.clone());
                let mut step = 0;
                let urgency = if n == 2 { Urgency::FIRST } else { Urgency(n as u8) };
                spawn(&rt, Class::Compact, urgency, &ended, move || {
                    step += 1;
                    match step {
                        1 => Step::More,
                        // A ring: the last waits for none.
                        2 if n < 3 => {
                            waited.fetch_add(u64::from(!gates[n + 1].is_done()), SeqCst);
                            Step::Wait(gates[n + 1].clone())
                        }
                        2 => Step::More,
                        _ => {
                            assert!(n == 3 || gates[n + 1].is_done(), "stepped too early");
                            order.lock().push(n);
                            gates[n].complete();
                            Step::Done
                        }
                    }
                })
            })
            .collect();
        for job in &jobs {
            assert_eq!(rt.park(job, None), Wake::Done);
        }
        drop(rt);
        assert_eq!((ended.load(SeqCst), &*order.lock()), (4, &vec![3, 2, 1, 0]));
        waited.load(SeqCst)
    });
}

/// A job with a deadline is stepped again when the ticket is complete or the time has come, and
/// not twice for both.
#[test]
fn an_alarm_and_a_deadline_wake_a_job_once() {
    explore("an alarm and a deadline wake a job once", || {
        let rt = Arc::new(rt(1));
        let (ended, ticket) = (Arc::new(AtomicU64::new(0)), Ticket::new());
        let timed_out = Arc::new(AtomicBool::new(false));
        let (inner, gate, late) = (rt.clone(), ticket.clone(), timed_out.clone());
        let mut until = None;
        let job = spawn(&rt, Class::Upkeep, Urgency::default(), &ended, move || match until {
            None => {
                let at = inner.now() + Duration::from_millis(1);
                until = Some(at);
                Step::WaitUntil(gate.clone(), at)
            }
            Some(at) => {
                late.store(!gate.is_done(), SeqCst);
                assert!(gate.is_done() || inner.now() >= at, "stepped for no reason");
                Step::Done
            }
        });
        for _ in 0..30 {
            thread::yield_now();
        }
        ticket.complete();
        rt.park(&job, None);
        timed_out.load(SeqCst)
    });
}

/// A runtime that goes lets steps end, drops every job once and starts none.
#[test]
fn a_runtime_goes_while_jobs_are_everywhere() {
    explore("a runtime goes while jobs are everywhere", || {
        let rt = rt(2);
        let ended = Arc::new(AtomicU64::new(0));
        let (never, soon) = (Ticket::new(), Ticket::new());
        let steps = Arc::new(AtomicU64::new(0));
        let waits = {
            let never = never.clone();
            spawn(&rt, Class::Flush, Urgency::default(), &ended, move || Step::Wait(never.clone()))
        };
        let woken = {
            let soon = soon.clone();
            let mut before = false;
            spawn(&rt, Class::Flush, Urgency::default(), &ended, move || {
                match std::mem::replace(&mut before, true) {
                    false => Step::Wait(soon.clone()),
                    true => Step::Done,
                }
            })
        };
        let endless = {
            let steps = steps.clone();
            spawn(&rt, Class::Flush, Urgency::default(), &ended, move || {
                steps.fetch_add(1, SeqCst);
                // PCT lets a thread that goes on without end go on.
                thread::yield_now();
                Step::More
            })
        };
        let bell = thread::spawn(move || soon.complete());
        drop(rt);
        let after = steps.load(SeqCst);
        bell.join().unwrap();
        for over in [&waits, &woken, &endless] {
            assert!(over.is_done(), "a job outlives its runtime");
        }
        assert_eq!((ended.load(SeqCst), steps.load(SeqCst)), (3, after));
        after.min(3)
    });
}

/// Jobs of the first urgency go first, and no other starves beside them.
#[test]
fn no_job_starves_beside_first_jobs() {
    explore("no job starves beside first jobs", || {
        let rt = rt(2);
        let ended = Arc::new(AtomicU64::new(0));
        let order = Arc::new(Mutex::new(Vec::new()));
        let jobs: Vec<Ticket> = (0..5u8)
            .map(|n| {
                let order = order.clone();
                let urgency = if n % 2 == 0 { Urgency::FIRST } else { Urgency(n) };
                spawn(&rt, Class::Io, urgency, &ended, move || {
                    order.lock().push(n);
                    Step::Done
                })
            })
            .collect();
        for job in &jobs {
            rt.park(job, None);
        }
        drop(rt);
        let order = order.lock().clone();
        assert_eq!(order.len(), 5);
        order
    });
}

/// A value arrives, or the news that there will be none, however the sender goes.
#[test]
fn a_value_arrives_or_never_will() {
    explore("a value arrives or never will", || {
        let rt = Arc::new(rt(1));
        let (sender, receiver) = oneshot();
        let ended = Arc::new(AtomicU64::new(0));
        let tries = Arc::new(AtomicU64::new(0));
        let n = tries.clone();
        spawn(&rt, Class::Io, Urgency::default(), &ended, move || {
            // The second step gives the value, unless the runtime is gone before.
            if n.fetch_add(1, SeqCst) == 1 {
                sender.send(7);
                return Step::Done;
            }
            thread::yield_now();
            Step::More
        });
        let waiter = {
            let ticket = receiver.ticket().clone();
            thread::spawn(move || {
                while !ticket.is_done() {
                    thread::yield_now();
                }
                receiver.take()
            })
        };
        for _ in 0..6 {
            thread::yield_now();
        }
        drop(rt);
        let value = waiter.join().unwrap();
        assert_eq!(
            value.is_some(),
            tries.load(SeqCst) == 2,
            "a value came out of nothing, or went"
        );
        value
    });
}

/// A transfer's ticket completes and its buffer comes back, whenever the runtime goes.
#[test]
fn a_transfer_always_comes_back() {
    explore("a transfer always comes back", || {
        let fs = MemFs::new();
        let file = fs.open(Path::new("/f"), OpenOpts::write().or_create()).unwrap();
        write_all_at(&*file, &[7; 64], 0).unwrap();
        let rt = rt(1);
        let urgency = SharedUrgency::default();
        let read = spawn_read(&rt, &urgency, file.clone(), IoBuf::default(), 0, 64);
        let mut wanted = IoBuf::default();
        wanted.reserve(8);
        wanted.set_len(8);
        let write = spawn_write(&rt, &urgency, file, wanted, 64);
        let waiter = thread::spawn(move || {
            while !read.is_done() {
                thread::yield_now();
            }
            ended(read)
        });
        drop(rt);
        assert!(write.is_done(), "a transfer is left behind");
        (waiter.join().unwrap(), ended(write))
    });
}

fn ended(pending: PendingIo) -> bool {
    let (buf, result) = pending.take();
    match result {
        Ok(n) => {
            assert_eq!(n, buf.as_slice().len());
            true
        }
        Err(_) => false,
    }
}

/// Files that are closed under their readers and opened again show what they showed; after the end
/// only what is held is read.
#[test]
fn closed_files_are_opened_again() {
    explore("closed files are opened again", || {
        let inner = MemFs::new();
        let paths = ["/0.sst", "/1.sst", "/2.sst"].map(Path::new);
        for (n, path) in (0..).zip(paths) {
            let file = inner.create(path, OpenOpts::write()).unwrap();
            write_all_at(&*file, &[n; 8], 0).unwrap();
        }
        let fs = CappedFs::new(Arc::new(inner), 1, |_| true);
        let files = paths.map(|path| fs.open(path, OpenOpts::read()).unwrap());
        let files = Arc::new(files);
        let readers: Vec<_> = (0..2)
            .map(|first: usize| {
                let files = files.clone();
                thread::spawn(move || {
                    let mut read = 0;
                    for n in [first, 2, first] {
                        let mut buf = [9; 8];
                        if let Ok(len) = files[n].read_at(&mut buf, 0) {
                            assert_eq!((len, buf), (8, [n as u8; 8]));
                            read += 1;
                        } else {
                            assert!(n != 2, "a held file is closed");
                        }
                    }
                    read
                })
            })
            .collect();
        fs.hold(|path| path == Path::new("/2.sst"));
        let read: Vec<u32> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        assert!(fs.open_files() <= 3, "{} files are open", fs.open_files());
        drop(files);
        assert_eq!(fs.open_files(), 0, "a descriptor is counted that is closed");
        (read, fs.reopened().min(4))
    });
}

/// What is taken and given by several threads adds up, and the budget holds for what is idle.
#[test]
fn memory_in_use_adds_up() {
    explore("memory in use adds up", || {
        const REGION: usize = 2 << 20;
        let pool = RegionPool::new(2 * REGION);
        let most = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (pool, most) = (pool.clone(), most.clone());
                thread::spawn(move || {
                    let region = pool.get(REGION).unwrap();
                    let (used, idle) = (pool.in_use(), pool.idle());
                    assert!((REGION..=3 * REGION).contains(&used), "{used} bytes in use");
                    assert!(idle <= 2 * REGION, "{idle} bytes idle");
                    most.fetch_max(used / REGION, Plain::Relaxed);
                    drop(region);
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(pool.in_use(), 0);
        assert!(pool.idle() <= 2 * REGION, "the budget is broken");
        most.load(Plain::Relaxed)
    });
}
