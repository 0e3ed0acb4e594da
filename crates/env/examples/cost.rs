//! What the seams cost, as ratios: recycled against fresh buffers, tickets against allocations,
//! appending to a buffer against appending to a vector.

use std::hint::black_box;
use std::time::Duration;

use lithify_env::{BufPool, Class, IoBuf, Job, OsRt, Rt, RtOptions, Step, Ticket};

/// Completes its ticket at the first step.
struct Once(Ticket);

impl Job for Once {
    fn step(&mut self) -> Step {
        self.0.complete();
        Step::Done
    }
}

fn main() {
    let rt = OsRt::new(RtOptions::default());
    let best = |rounds: u32, mut work: Box<dyn FnMut() + '_>| {
        let once = |work: &mut Box<dyn FnMut() + '_>| {
            let start = rt.now();
            (0..rounds).for_each(|_| work());
            rt.now().since(start) / rounds
        };
        (0..5).map(|_| once(&mut work)).min().unwrap_or_default()
    };
    let report = |what: &str, ours: Duration, other: Duration| {
        let ratio = ours.as_secs_f64() / other.as_secs_f64();
        println!("{what:<44} {ours:>10.1?} / {other:>10.1?} = {ratio:.3}");
    };
    let pool = BufPool::new(64 << 20);
    for len in [64 << 10, 1 << 20, 4 << 20] {
        let fill = |buf: &mut IoBuf| {
            buf.set_len(len);
            buf.as_mut_slice().fill(1);
            black_box(&buf);
        };
        let recycled = best(50, Box::new(|| fill(&mut pool.get(len))));
        let fresh = best(50, Box::new(|| fill(&mut IoBuf::with_capacity(len))));
        report(&format!("fill {} KiB: recycled / fresh", len >> 10), recycled, fresh);
    }
    let get = best(10_000, Box::new(|| drop(black_box(pool.get(4096)))));
    let boxed = best(10_000, Box::new(|| drop(black_box(Box::new([0u8; 56])))));
    report("pool get + drop / one small Box", get, boxed);
    let ticket = best(10_000, Box::new(|| black_box(Ticket::new()).complete()));
    report("ticket new + complete + drop / one small Box", ticket, boxed);
    let round = best(
        2000,
        Box::new(|| {
            let ticket = Ticket::new();
            rt.spawn(Class::Io, Box::new(Once(ticket.clone())));
            rt.park(&ticket, None);
        }),
    );
    report("job round trip / ticket", round, ticket);
    let (mut buf, mut vec) = (IoBuf::with_capacity(1 << 20), Vec::with_capacity(1 << 20));
    let entry = [7u8; 116];
    let ours = best(
        100,
        Box::new(|| {
            buf.clear();
            (0..9000).for_each(|_| buf.extend_from_slice(black_box(&entry)));
        }),
    );
    let other = best(
        100,
        Box::new(|| {
            vec.clear();
            (0..9000).for_each(|_| vec.extend_from_slice(black_box(&entry)));
        }),
    );
    report("9000 appends of 116 B: IoBuf / Vec", ours, other);
}
