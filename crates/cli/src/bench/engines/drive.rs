//! Streams through an engine: what the bench does in place of a store, with the time of each share.
//!
//! Keeps: only the engine and the certifier are timed, by processor time of the thread that calls them, so other
//! work on the machine does not count. What comes out is hashed, outside of the time.

use std::sync::Arc;

use anyhow::{Result, bail};
use lithify_bench::Ran;
use lithify_engine::stream::Stream;
use lithify_engine::{Engine, Item, Offer, Products, Progress, Session};
use lithify_env::{OsRt, Rt, RtOptions};
use lithify_format::xxph3::xxph3_64;
use lithify_merge::BlockSet;
use lithify_merge::certify::Certifier;

/// Processor time.
#[derive(Clone)]
pub(super) struct Clock(Arc<OsRt>);

impl Clock {
    pub(super) fn new() -> Clock {
        Clock(Arc::new(OsRt::new(RtOptions::default())))
    }
    /// Nanoseconds of the calling thread.
    pub(super) fn ns(&self) -> u64 {
        self.0.thread_cpu().as_nanos() as u64
    }
}

/// A stream on its way through a session.
struct Part {
    stream: Stream,
    session: Box<dyn Session>,
    certifier: Certifier,
    /// Cut, and not taken yet.
    set: Option<BlockSet>,
    hash: u64,
    is_sealed: bool,
    is_over: bool,
}

/// Merges streams side by side on one thread, a poll of each in turn. `told` is called now and then with the share
/// of all bytes that are on their way.
pub(super) fn together(
    engine: &dyn Engine,
    streams: Vec<Stream>,
    clock: &Clock,
    told: &dyn Fn(u64, u64),
) -> Result<Ran> {
    let mut ran = Ran::default();
    let mut parts = Vec::new();
    for stream in streams {
        ran.bytes += stream.bytes();
        let session = match engine.open(stream.recipe.clone()) {
            Ok(session) => session,
            Err(refusal) => bail!("{} refuses the bench's jobs: {refusal}", engine.caps().name),
        };
        let certifier = Certifier::new(engine.caps().certify);
        parts.push(Part {
            stream,
            session,
            certifier,
            set: None,
            hash: 0,
            is_sealed: false,
            is_over: false,
        });
    }
    let mut products = Products::default();
    while parts.iter().any(|part| !part.is_over) {
        for part in parts.iter_mut().filter(|part| !part.is_over) {
            feed(part, engine, clock, &mut ran)?;
            step(part, clock, &mut products, &mut ran)?;
        }
        let progress = parts.iter().map(|part| part.stream.progress());
        let (done, all) = progress.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        told(done, all);
    }
    ran.hashes = parts.iter().map(|part| part.hash).collect();
    ran.slowest_ns = ran.engine_ns + ran.certify_ns;
    Ok(ran)
}

/// Offers sets until there is no room.
fn feed(part: &mut Part, engine: &dyn Engine, clock: &Clock, ran: &mut Ran) -> Result<()> {
    while !part.is_sealed {
        if part.set.is_none() {
            let caps = engine.caps();
            part.set =
                part.stream.next_set(caps.next_bytes(part.stream.bytes_left()), caps.ways)?;
            if let Some(set) = &part.set {
                ran.stored += set.bytes();
                ran.sets += 1;
            }
        }
        let start = clock.ns();
        let is_full = match part.set.take() {
            None => {
                part.session.seal();
                part.is_sealed = true;
                false
            }
            Some(set) => match part.session.offer(set) {
                Offer::Taken => false,
                Offer::Full(set) => {
                    part.set = Some(set);
                    true
                }
            },
        };
        ran.engine_ns += clock.ns() - start;
        if is_full {
            break;
        }
    }
    Ok(())
}

fn step(part: &mut Part, clock: &Clock, products: &mut Products, ran: &mut Ran) -> Result<()> {
    let start = clock.ns();
    let progress = part.session.poll(products);
    let polled = clock.ns();
    part.certifier.read(&part.stream.recipe, products)?;
    ran.engine_ns += polled - start;
    ran.certify_ns += clock.ns() - polled;
    for item in products.items() {
        let next = match item {
            Item::Block(block) => xxph3_64(products.block(block)),
            Item::FileCut(_) => 1,
            // Where sets end is each engine's own.
            Item::SetDone(_) => continue,
        };
        part.hash = (part.hash ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    match progress {
        Progress::Failed(fault) => bail!("a job of the bench failed: {}", fault.error()),
        Progress::Done(ledger) => {
            let certifier = part.certifier.clone();
            certifier.finish(&ledger)?;
            ran.entries += ledger.entries_in;
            part.is_over = true;
        }
        Progress::More | Progress::Starved | Progress::Pending(_) => {}
    }
    Ok(())
}

/// Merges each stream on a thread of its own.
pub(super) fn side_by_side(
    engine: &dyn Engine,
    streams: Vec<Stream>,
    clock: &Clock,
) -> Result<Ran> {
    let all: Vec<Result<Ran>> = std::thread::scope(|scope| {
        let one = |stream| scope.spawn(move || together(engine, vec![stream], clock, &|_, _| {}));
        let threads: Vec<_> = streams.into_iter().map(one).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Ran>>| match thread.join() {
            Ok(ran) => ran,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    let mut ran = Ran::default();
    for one in all {
        let one = one?;
        ran.engine_ns += one.engine_ns;
        ran.certify_ns += one.certify_ns;
        ran.slowest_ns = ran.slowest_ns.max(one.slowest_ns);
        ran.entries += one.entries;
        ran.bytes += one.bytes;
        ran.stored += one.stored;
        ran.sets += one.sets;
        ran.hashes.extend(one.hashes);
    }
    Ok(ran)
}
