//! A job has told its outcome a moment before its thread lets go of it. What it holds then, functions of the user's
//! among it, must not outlive the close and the handles: what made them may be gone.
#![allow(clippy::disallowed_methods, reason = "the threads of the test are slow")]

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use lithify::{Builder, Comparator, Db};
use lithify_env::{Class, Env, Job, MemFs, Mono, OsRt, Rt, RtOptions, Step, Ticket, Urgency, Wake};

use crate::common::tiny;

/// Threads that are slow to let go of a job.
struct Late(OsRt);

struct LateJob(Option<Box<dyn Job>>);

impl LateJob {
    fn job(&mut self) -> &mut dyn Job {
        &mut **self.0.as_mut().expect("until it is dropped")
    }
}

impl Drop for LateJob {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(30));
        self.0.take();
    }
}

impl Job for LateJob {
    fn step(&mut self) -> Step {
        self.job().step()
    }
    fn urgency(&self) -> Urgency {
        self.0.as_ref().expect("until it is dropped").urgency()
    }
    fn panicked(&mut self, message: String) {
        self.job().panicked(message);
    }
}

impl Rt for Late {
    fn now(&self) -> Mono {
        self.0.now()
    }
    fn wall_seconds(&self) -> u64 {
        self.0.wall_seconds()
    }
    fn seed(&self, who: &str) -> u64 {
        self.0.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.0.spawn(class, Box::new(LateJob(Some(job))));
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.0.park(ticket, deadline)
    }
    fn thread_cpu(&self) -> Duration {
        self.0.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.0.threads(class)
    }
}

struct Own;

impl Comparator for Own {
    fn name(&self) -> &str {
        "own"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

fn work(db: &Db) {
    for round in 0..3u8 {
        for key in 0..200u32 {
            db.put(key.to_be_bytes(), [round; 1000]).unwrap();
        }
        db.flush().unwrap();
    }
}

#[test]
fn functions_of_the_user_end_with_the_handles() {
    let real = OsRt::new(RtOptions { compact_threads: 2, ..RtOptions::default() });
    let env = Env { fs: Arc::new(MemFs::new()), rt: Arc::new(Late(real)) };
    for _ in 0..3 {
        let order = Arc::new(Own);
        let db =
            Builder::new(tiny()).env(env.clone()).comparator(order.clone()).open("/db").unwrap();
        work(&db);
        db.close().unwrap();
        assert_eq!(Arc::strong_count(&order), 1, "nothing has it any more");
    }
}
