//! The threaded runtime: order, waiting, deadlines, panics, shutdown.

use std::thread;
use std::time::Duration;

use lithify_env::sync::atomic::{AtomicU32, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    Class, Job, Mono, OsRt, Rt, RtOptions, SharedUrgency, Step, Ticket, Urgency, Wake,
};

fn rt(threads: usize) -> OsRt {
    OsRt::new(RtOptions {
        flush_threads: threads,
        compact_threads: threads,
        io_threads: threads,
        upkeep_threads: threads,
        background_nice: 19,
        seed: Some(7),
    })
}

/// A job made of a closure; completes `over` when it is dropped.
struct Scripted<F> {
    script: F,
    over: Ticket,
    panics: Arc<Mutex<Vec<String>>>,
    urgency: SharedUrgency,
}

impl<F: FnMut() -> Step + Send> Job for Scripted<F> {
    fn step(&mut self) -> Step {
        (self.script)()
    }

    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }

    fn panicked(&mut self, message: String) {
        self.panics.lock().push(message);
    }
}

impl<F> Drop for Scripted<F> {
    fn drop(&mut self) {
        self.over.complete();
    }
}

/// The nice value of the thread that asks, as the system has it.
fn own_nice() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // Behind the name, which is in brackets and may hold anything.
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()
}

#[test]
fn all_threads_give_way_to_the_program_and_those_of_flushes_by_half() {
    let rt = Arc::new(OsRt::new(RtOptions { background_nice: 10, ..RtOptions::default() }));
    let own = own_nice();
    let wanted = |class| (own + if class == Class::Flush { 5 } else { 10 }).min(19);
    let found = Arc::new(Mutex::new(Vec::new()));
    // Each class starts the thread of the next one. That of flushes comes first: a thread may not take back what the one that
    // starts it gave up.
    let mut chain: Box<dyn FnOnce() + Send> = Box::new(|| {});
    let over = Ticket::new();
    for class in Class::ALL.into_iter().rev() {
        let (seen, rt, over) = (found.clone(), Arc::downgrade(&rt), over.clone());
        let mut rest = Some(chain);
        chain = Box::new(move || {
            let Some(rt) = rt.upgrade() else { return };
            spawn(&rt, class, move || {
                seen.lock().push((class, own_nice()));
                rest.take().expect("one step")();
                if seen.lock().len() == Class::ALL.len() {
                    over.complete();
                }
                Step::Done
            });
        });
    }
    chain();
    rt.park(&over, None);
    let found = found.lock().clone();
    assert_eq!(found.len(), Class::ALL.len());
    assert!(found.iter().all(|(class, nice)| *nice == wanted(*class)), "{found:?} over {own}");
}

fn spawn(rt: &OsRt, class: Class, script: impl FnMut() -> Step + Send + 'static) -> Ticket {
    spawn_at(rt, class, &SharedUrgency::default(), script)
}

fn spawn_at(
    rt: &OsRt,
    class: Class,
    urgency: &SharedUrgency,
    script: impl FnMut() -> Step + Send + 'static,
) -> Ticket {
    let over = Ticket::new();
    let urgency = urgency.clone();
    let job = Scripted { script, over: over.clone(), panics: Arc::default(), urgency };
    rt.spawn(class, Box::new(job));
    over
}

/// Waits for `ticket`, but not for ever.
fn expect(rt: &OsRt, ticket: &Ticket) {
    let late = rt.now() + Duration::from_secs(20);
    assert_eq!(rt.park(ticket, Some(late)), Wake::Done, "stuck");
}

#[test]
fn a_single_thread_runs_jobs_in_order() {
    let rt = rt(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let tickets: Vec<Ticket> = (0..100)
        .map(|n| {
            let (order, mut steps) = (Arc::clone(&order), 0);
            spawn(&rt, Class::Compact, move || {
                steps += 1;
                if steps < 3 {
                    return Step::More;
                }
                order.lock().push(n);
                Step::Done
            })
        })
        .collect();
    tickets.iter().for_each(|ticket| expect(&rt, ticket));
    assert_eq!(*order.lock(), (0..100).collect::<Vec<_>>());
}

#[test]
fn classes_and_threads_run_beside_each_other() {
    // Every job waits (in its step) for all others: fewer threads than promised would hang.
    let rt = Arc::new(rt(3));
    let (arrived, all) = (Arc::new(AtomicU32::new(0)), Ticket::new());
    let mut tickets = Vec::new();
    for class in Class::ALL {
        assert_eq!(rt.threads(class), 3);
        for _ in 0..3 {
            let (rt, arrived, all) = (Arc::clone(&rt), Arc::clone(&arrived), all.clone());
            let inner = Arc::clone(&rt);
            tickets.push(spawn(&rt, class, move || {
                if arrived.fetch_add(1, Ordering::SeqCst) == 11 {
                    all.complete();
                }
                expect(&inner, &all);
                Step::Done
            }));
        }
    }
    tickets.iter().for_each(|ticket| expect(&rt, ticket));
}

#[test]
fn a_waiting_job_holds_no_thread_and_is_not_stepped_early() {
    let rt = rt(1);
    let gates: Vec<Ticket> = (0..50).map(|_| Ticket::new()).collect();
    let jobs: Vec<Ticket> = gates
        .iter()
        .map(|gate| {
            let (gate, mut waited) = (gate.clone(), false);
            spawn(&rt, Class::Flush, move || {
                if waited {
                    assert!(gate.is_done(), "stepped before its ticket");
                    return Step::Done;
                }
                waited = true;
                Step::Wait(gate.clone())
            })
        })
        .collect();
    for (gate, job) in gates.iter().zip(&jobs).rev() {
        assert!(!job.is_done());
        gate.complete();
        expect(&rt, job);
    }
}

#[test]
fn an_old_ticket_does_not_end_a_new_wait() {
    let rt = rt(1);
    let (first, second) = (Ticket::new(), Ticket::new());
    let (a, b, mut step) = (first.clone(), second.clone(), 0);
    let job = spawn(&rt, Class::Io, move || {
        step += 1;
        match step {
            1 => Step::WaitUntil(a.clone(), Mono::ZERO),
            2 => Step::Wait(b.clone()),
            _ => {
                assert!(b.is_done(), "woken by the first ticket");
                Step::Done
            }
        }
    });
    let pause = rt.now() + Duration::from_millis(20);
    assert_eq!(rt.park(&job, Some(pause)), Wake::TimedOut);
    first.complete();
    let pause = rt.now() + Duration::from_millis(20);
    assert_eq!(rt.park(&job, Some(pause)), Wake::TimedOut);
    second.complete();
    expect(&rt, &job);
}

/// A job that waits for an instant is stepped then, also if the only thread there was has taken up
/// something long meanwhile: another is started for it.
#[test]
fn a_long_step_does_not_stop_the_clock() {
    let rt = Arc::new(rt(2));
    let (ticks, clock) = (Arc::new(AtomicU32::new(0)), Arc::clone(&rt));
    let count = Arc::clone(&ticks);
    let ticking = spawn(&rt, Class::Upkeep, move || match count.fetch_add(1, Ordering::Relaxed) {
        0..100 => Step::WaitUntil(Ticket::new(), clock.now() + Duration::from_millis(5)),
        _ => Step::Done,
    });
    let pause = |rt: &OsRt, millis: u64| {
        rt.park(&Ticket::new(), Some(rt.now() + Duration::from_millis(millis)));
    };
    while ticks.load(Ordering::Relaxed) < 3 {
        pause(&rt, 1);
    }
    let (seen, met) = (Arc::clone(&ticks), Arc::new(AtomicU32::new(0)));
    let (told, clock) = (Arc::clone(&met), Arc::clone(&rt));
    let long = spawn(&rt, Class::Upkeep, move || {
        let before = seen.load(Ordering::Relaxed);
        // In steps, which pass only while this process is not stopped.
        for _ in 0..1000 {
            if seen.load(Ordering::Relaxed) > before + 2 {
                told.store(1, Ordering::Relaxed);
                break;
            }
            pause(&clock, 10);
        }
        Step::Done
    });
    expect(&rt, &long);
    assert_eq!(met.load(Ordering::Relaxed), 1, "the clock stands still");
    expect(&rt, &ticking);
}

#[test]
fn deadlines_end_waits_in_their_order() {
    let rt = Arc::new(rt(1));
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = rt.now();
    let jobs: Vec<Ticket> = [30, 10, 20]
        .map(|millis| {
            let at = start + Duration::from_millis(millis);
            let (order, clock, mut waited) = (Arc::clone(&order), Arc::clone(&rt), false);
            spawn(&rt, Class::Upkeep, move || {
                if waited {
                    assert!(clock.now() >= at, "stepped before its deadline");
                    order.lock().push(millis);
                    return Step::Done;
                }
                waited = true;
                Step::WaitUntil(Ticket::new(), at)
            })
        })
        .into();
    jobs.iter().for_each(|job| expect(&rt, job));
    assert_eq!(*order.lock(), [10, 20, 30]);
}

#[test]
fn a_panic_reaches_the_job_and_spares_the_thread() {
    let rt = rt(1);
    let panics = Arc::new(Mutex::new(Vec::new()));
    for round in 0..3 {
        let over = Ticket::new();
        let script = move || panic!("round {round}");
        rt.spawn(
            Class::Compact,
            Box::new(Scripted {
                script,
                over: over.clone(),
                panics: Arc::clone(&panics),
                urgency: SharedUrgency::default(),
            }),
        );
        expect(&rt, &over);
    }
    expect(&rt, &spawn(&rt, Class::Compact, || Step::Done));
    assert_eq!(*panics.lock(), ["round 0", "round 1", "round 2"]);
}

#[test]
fn dropping_the_runtime_drops_every_job_and_joins() {
    let rt = rt(2);
    let running = Ticket::new();
    let started = running.clone();
    let mut jobs = vec![spawn(&rt, Class::Io, move || {
        started.complete();
        Step::More
    })];
    jobs.push(spawn(&rt, Class::Io, || Step::Wait(Ticket::new())));
    jobs.extend((0..20).map(|_| spawn(&rt, Class::Io, || Step::More)));
    expect(&rt, &running);
    drop(rt);
    assert!(jobs.iter().all(Ticket::is_done));
}

#[test]
fn a_job_may_own_the_last_reference_to_its_runtime() {
    let rt = Arc::new(rt(1));
    let gate = Ticket::new();
    let (owned, wait) = (Mutex::new(Some(Arc::clone(&rt))), gate.clone());
    let over = spawn(&rt, Class::Io, move || {
        if !wait.is_done() {
            return Step::Wait(wait.clone());
        }
        drop(owned.lock().take());
        Step::Done
    });
    drop(rt);
    gate.complete();
    let watcher = self::rt(1);
    expect(&watcher, &over);
}

#[test]
fn parking_ends_with_the_ticket_or_the_deadline() {
    let rt = rt(1);
    assert_eq!(rt.park(&Ticket::completed(), Some(Mono::ZERO)), Wake::Done);
    assert_eq!(rt.park(&Ticket::new(), Some(Mono::ZERO)), Wake::TimedOut);
    let at = rt.now() + Duration::from_millis(5);
    assert_eq!(rt.park(&Ticket::new(), Some(at)), Wake::TimedOut);
    assert!(rt.now() >= at);
    for deadline in [None, Some(Mono::MAX)] {
        let ticket = Ticket::new();
        let waker = spawn(&rt, Class::Io, {
            let ticket = ticket.clone();
            move || {
                ticket.complete();
                ticket.complete();
                Step::Done
            }
        });
        assert_eq!(rt.park(&ticket, deadline), Wake::Done);
        expect(&rt, &waker);
    }
}

#[test]
fn no_wake_up_is_lost_between_many_threads() {
    let rt = rt(2);
    for _ in 0..2000 {
        let (ping, pong) = (Ticket::new(), Ticket::new());
        thread::scope(|scope| {
            if ping.same(&pong) {
                return;
            }
            let (there, back) = (ping.clone(), pong.clone());
            let job = spawn(&rt, Class::Io, move || {
                if !there.is_done() {
                    return Step::Wait(there.clone());
                }
                back.complete();
                Step::Done
            });
            scope.spawn(|| ping.complete());
            expect(&rt, &pong);
            expect(&rt, &job);
        });
    }
}

#[test]
fn time_and_seeds_behave() {
    let rt = rt(1);
    let times: Vec<Mono> = (0..1000).map(|_| rt.now()).collect();
    assert!(times.is_sorted());
    assert!(rt.wall_seconds() > 1_700_000_000);
    assert_eq!(rt.seed("a"), rt.seed("a"));
    assert_eq!(rt.seed("a"), self::rt(2).seed("a"), "the root seed decides");
    assert_ne!(rt.seed("a"), rt.seed("b"));
    let entropy = || OsRt::new(RtOptions::default()).seed("a");
    assert_ne!(entropy(), entropy());
    let before = rt.thread_cpu();
    let mut sum = 0u64;
    while rt.thread_cpu() <= before {
        sum = std::hint::black_box(sum + 1);
    }
}

/// Keeps a thread of `rt` busy until the second ticket is complete; the first says that it is.
fn occupy(rt: &OsRt, class: Class, urgency: Urgency) -> (Ticket, Ticket) {
    let (busy, leave) = (Ticket::new(), Ticket::new());
    let (on, off) = (busy.clone(), leave.clone());
    spawn_at(rt, class, &SharedUrgency::new(urgency), move || {
        on.complete();
        while !off.is_done() {
            thread::yield_now();
        }
        Step::Done
    });
    expect(rt, &busy);
    (busy, leave)
}

/// Jobs that note their name when they run.
struct Roll<'a> {
    rt: &'a OsRt,
    order: Arc<Mutex<Vec<usize>>>,
}

impl Roll<'_> {
    fn call(&self, name: usize, urgency: &SharedUrgency) -> Ticket {
        let order = Arc::clone(&self.order);
        spawn_at(self.rt, Class::Io, urgency, move || {
            order.lock().push(name);
            Step::Done
        })
    }
}

#[test]
fn the_most_urgent_runs_first_also_if_it_became_so_in_the_queue() {
    let rt = rt(1);
    let roll = Roll { rt: &rt, order: Arc::default() };
    let (_, leave) = occupy(&rt, Class::Io, Urgency(0));
    let urgencies: Vec<SharedUrgency> =
        [1, 3, 0, 3, 0].map(|n| SharedUrgency::new(Urgency(n))).into();
    let over: Vec<Ticket> = urgencies.iter().enumerate().map(|(n, u)| roll.call(n, u)).collect();
    urgencies[4].set(Urgency(2));
    leave.complete();
    over.iter().for_each(|ticket| expect(&rt, ticket));
    assert_eq!(*roll.order.lock(), [1, 3, 4, 0, 2]);
}

#[test]
fn no_job_is_passed_over_for_ever() {
    let rt = rt(1);
    let roll = Roll { rt: &rt, order: Arc::default() };
    let (_, leave) = occupy(&rt, Class::Io, Urgency(0));
    let over = roll.call(1000, &SharedUrgency::default());
    let urgent = SharedUrgency::new(Urgency::FIRST);
    let others: Vec<Ticket> = (0..200).map(|n| roll.call(n, &urgent)).collect();
    leave.complete();
    expect(&rt, &over);
    others.iter().for_each(|ticket| expect(&rt, ticket));
    assert_eq!(roll.order.lock().iter().position(|&name| name == 1000), Some(64));
}

#[test]
fn who_is_passed_over_holds_back_no_first_job() {
    let rt = rt(4);
    let roll = Roll { rt: &rt, order: Arc::default() };
    // With a first job running, one thread in four may have another: the next one waits.
    let (_, first_leave) = occupy(&rt, Class::Io, Urgency::FIRST);
    let (_, other_leave) = occupy(&rt, Class::Io, Urgency(0));
    let waiting = roll.call(1000, &SharedUrgency::default());
    let urgent = SharedUrgency::new(Urgency::FIRST);
    (0..200).for_each(|n| expect(&rt, &roll.call(n, &urgent)));
    assert!(!waiting.is_done());
    other_leave.complete();
    expect(&rt, &waiting);
    first_leave.complete();
}

#[test]
fn a_job_that_goes_on_gives_way_to_a_more_urgent_one() {
    let rt = rt(1);
    let (begun, urgent_ran) = (Ticket::new(), Ticket::new());
    let (on, seen, mut patience) = (begun.clone(), urgent_ran.clone(), 20_000_000u64);
    let long = spawn(&rt, Class::Compact, move || {
        on.complete();
        patience -= 1;
        if seen.is_done() {
            Step::Done
        } else {
            assert!(patience > 0, "never");
            Step::More
        }
    });
    expect(&rt, &begun);
    let ran = urgent_ran.clone();
    let urgency = SharedUrgency::new(Urgency(1));
    spawn_at(&rt, Class::Compact, &urgency, move || {
        ran.complete();
        Step::Done
    });
    expect(&rt, &urgent_ran);
    expect(&rt, &long);
}

#[test]
fn first_jobs_keep_threads_free_of_others() {
    let rt = rt(8);
    let (_, leave) = occupy(&rt, Class::Io, Urgency::FIRST);
    let running = Arc::new(AtomicU32::new(0));
    let gate = Ticket::new();
    let over: Vec<Ticket> = (0..7)
        .map(|_| {
            let (running, gate) = (Arc::clone(&running), gate.clone());
            spawn(&rt, Class::Io, move || {
                running.fetch_add(1, Ordering::SeqCst);
                while !gate.is_done() {
                    thread::yield_now();
                }
                Step::Done
            })
        })
        .collect();
    let wait_for = |n: u32| {
        let late = rt.now() + Duration::from_secs(20);
        while running.load(Ordering::SeqCst) < n && rt.now() < late {
            thread::yield_now();
        }
    };
    wait_for(2);
    rt.park(&Ticket::new(), Some(rt.now() + Duration::from_millis(20)));
    assert_eq!(running.load(Ordering::SeqCst), 2, "a quarter of the threads");
    leave.complete();
    wait_for(7);
    assert_eq!(running.load(Ordering::SeqCst), 7, "nothing holds them back any more");
    gate.complete();
    over.iter().for_each(|ticket| expect(&rt, ticket));
}
