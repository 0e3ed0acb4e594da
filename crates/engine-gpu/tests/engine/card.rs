//! A GPU over a driver that tests play: each step of opening one fails as it should, and what is decided about copies,
//! events and memory holds. The driver's own interface (`cuda`) is not in it: that takes a GPU.

use lithify_engine_gpu::card::Card;
use lithify_engine_gpu::choose::NoGpu;
use lithify_engine_gpu::device::{Device, Kernel, Queue};
use lithify_engine_gpu::driver::Code;
use lithify_engine_gpu::image::{ImageFile, image};
use lithify_merge::Bytes;

use crate::played::{Driven, Plan};

/// What the image would say that fits this version: threads, items, those in scans, sizes.
fn shape(threads: u64, items: u64) -> Vec<u64> {
    // As `kernels/layout.cuh` has them; a wrong one fails every test of this file.
    [&[threads, items, items][..], &lithify_engine_gpu::image::LAYOUT].concat()
}

fn plan() -> Plan {
    let shape = shape(64, 2);
    Plan { is_there: true, version: 13_000, cards: 1, capability: 90, shape, grain: 1, fails: None }
}

fn open(plan: Plan) -> Result<Card<Driven>, NoGpu> {
    Card::open(Driven::new(plan), 0, || Ok(b""), 1 << 20)
}

fn why(plan: Plan) -> NoGpu {
    match open(plan) {
        Ok(_) => panic!("it opened"),
        Err(why) => why,
    }
}

#[test]
fn each_step_of_opening_says_what_failed() {
    assert_eq!(why(Plan { is_there: false, ..plan() }), NoGpu::NoLibrary);
    assert_eq!(why(Plan { version: 12_090, ..plan() }), NoGpu::OldDriver(12_090));
    assert_eq!(why(Plan { cards: 0, ..plan() }), NoGpu::NoCard { no: 0, there: 0 });
    let old = why(Plan { capability: 75, ..plan() });
    assert!(matches!(old, NoGpu::OldCard { capability: 75, .. }), "{old}");
    let other = why(Plan { shape: shape(64, 2)[..10].to_vec(), ..plan() });
    assert!(matches!(&other, NoGpu::BadImage(what) if what.contains("another version")), "{other}");
    for threads in [0, 31, 1025, 1 << 40] {
        let wrong = why(Plan { shape: shape(threads, 2), ..plan() });
        assert!(matches!(wrong, NoGpu::BadImage(_)), "{threads}: {wrong}");
    }
    for call in ["version", "count", "take", "facts", "load", "kernels", "words"] {
        let failed = why(Plan { fails: Some((call, 1, Code(999))), ..plan() });
        assert!(matches!(&failed, NoGpu::Failed(what) if what.contains("999")), "{call}: {failed}");
    }
    for call in ["take", "load"] {
        let short = why(Plan { fails: Some((call, 1, Code(2))), ..plan() });
        assert!(matches!(short, NoGpu::NoMemory(_)), "{call}: {short}");
    }
    let binary = why(Plan { fails: Some(("load", 1, Code(209))), ..plan() });
    assert!(binary.to_string().contains("no code for this GPU"), "{binary}");
    assert!(open(plan()).is_ok());
}

/// A GPU that was taken and is not used is given back, unless an answer of the driver was its last.
#[test]
fn what_does_not_open_is_closed() {
    for (plan, closed) in [
        (Plan { cards: 0, ..plan() }, 0),
        (Plan { capability: 75, ..plan() }, 1),
        (Plan { shape: shape(31, 2), ..plan() }, 1),
        (Plan { fails: Some(("take", 1, Code(2))), ..plan() }, 0),
        (Plan { fails: Some(("load", 1, Code(2))), ..plan() }, 1),
        (Plan { fails: Some(("load", 1, Code(209))), ..plan() }, 0),
        (Plan { fails: Some(("words", 1, Code(999))), ..plan() }, 0),
    ] {
        let driver = Driven::new(plan);
        let said = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).err().expect("it fails");
        let state = driver.state.lock();
        let calls = state.calls.get("close").copied().unwrap_or_default();
        assert_eq!((calls, state.late), (closed, 0), "{said}");
    }
    let driver = Driven::new(plan());
    let none = Card::open(driver.clone(), 0, || Err(NoGpu::NoImage), 1 << 20);
    assert_eq!(none.err(), Some(NoGpu::NoImage));
    assert_eq!(driver.state.lock().calls["close"], 1);
}

#[test]
fn every_reason_has_an_advice_and_a_sentence() {
    let all = [
        NoGpu::NoLibrary,
        NoGpu::OldDriver(12_090),
        NoGpu::NoCard { no: 3, there: 2 },
        NoGpu::OldCard { name: "T4".to_owned(), capability: 75 },
        NoGpu::NoImage,
        NoGpu::BadImage("x".to_owned()),
        NoGpu::NoMemory("x".to_owned()),
        NoGpu::Failed("x".to_owned()),
    ];
    for why in &all {
        assert!(!why.is_usage() && why.advice().contains("--engine cpu"), "{why}");
    }
    let told: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert!(told[1].contains("CUDA 12.9") && told[1].contains("need 13.0"), "{}", told[1]);
    assert!(told[2].contains("GPU 3") && told[2].contains("sees 2"), "{}", told[2]);
    assert!(told[3].contains("7.5"), "{}", told[3]);
}

/// An image comes to the driver only if its header and its length agree.
#[test]
fn bytes_that_are_no_image_reach_no_driver() {
    let of = |bytes: Vec<u8>| ImageFile { name: "a.fatbin".to_owned(), bytes: bytes.into() };
    let mut whole = vec![0; 16 + 100];
    whole[..4].copy_from_slice(&0xba55_ed50u32.to_le_bytes());
    whole[8] = 100;
    assert!(image(Some(&of(whole.clone()))).is_ok());
    for len in 0..whole.len() {
        let file = of(whole[..len].to_vec());
        let cut = image(Some(&file));
        assert!(matches!(&cut, Err(NoGpu::BadImage(what)) if what.contains("a.fatbin")), "{len}");
    }
    whole[15] = 0x80;
    assert!(image(Some(&of(whole.clone()))).is_err(), "a length above all memory");
    (whole[15], whole[0]) = (0, 0);
    assert!(image(Some(&of(whole))).is_err(), "another magic");
}

/// An arena shows its bytes once an event behind its copies has happened, whichever queue tells.
#[test]
fn arenas_are_shown_when_their_copies_are_through() {
    let driver = Driven::new(plan());
    let mut card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
    let memory = card.alloc(1 << 16).unwrap();
    for round in 0..50u8 {
        let (up, down) = (card.arena(3000).unwrap(), card.arena(3000).unwrap());
        card.bytes(&up).unwrap().fill(round);
        card.upload(Queue::Up, &up, 0..3000, memory.address + 64).unwrap();
        let sent = card.record(Queue::Up).unwrap();
        card.after(Queue::Work(1), sent).unwrap();
        let worked = card.record(Queue::Work(1)).unwrap();
        card.after(Queue::Down, worked).unwrap();
        card.download(Queue::Down, memory.address + 64, &down, 0..3000).unwrap();
        let back = card.record(Queue::Down).unwrap();
        assert!(card.bytes(&down).is_err() && card.bytes(&up).is_err());
        while !card.ready(back).unwrap() {
            assert!(card.bytes(&down).is_err(), "round {round}");
        }
        // What the copy down waited for has happened, too.
        assert!(card.bytes(&up).is_ok());
        let lent = card.lend(down).unwrap();
        assert!(lent.bytes() == [round; 3000]);
        card.drop_arena(up);
        assert!(
            card.ready(sent).unwrap() && card.ready(worked).unwrap() && card.ready(back).unwrap()
        );
    }
    // Arenas are used again.
    assert!(driver.state.lock().calls["pin"] <= 3, "{:?}", driver.state.lock().calls);
    card.free(memory);
    drop(card);
    let state = driver.state.lock();
    assert_eq!((state.pinned, state.memory.len(), state.late), (0, 0, 0));
    assert_eq!(state.calls["close"], 1);
}

/// A card closes its driver once nothing of it is out; one that is lost, or may still be at work, never does.
#[test]
fn a_card_is_closed_last() {
    let opened = || {
        let driver = Driven::new(plan());
        let card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
        let closed = move || driver.state.lock().calls.get("close").copied().unwrap_or_default();
        (card, closed)
    };
    let (mut card, closed) = opened();
    let arena = card.arena(10).unwrap();
    let lent = card.lend(arena).unwrap();
    drop(card);
    assert_eq!(closed(), 0, "the host has an arena");
    drop(lent);
    assert_eq!(closed(), 1);

    let (mut card, closed) = opened();
    let (memory, arena) = (card.alloc(64).unwrap(), card.arena(64).unwrap());
    card.upload(Queue::Up, &arena, 0..64, memory.address).unwrap();
    drop(card);
    assert_eq!(closed(), 0, "a copy may be under way");
}

/// Once a device looks, a queue is asked for its first event alone: others behind it wait for the next look.
#[test]
fn a_queue_is_asked_once_a_look() {
    let driver = Driven::new(plan());
    let mut card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
    let memory = card.alloc(64).unwrap();
    let arena = card.arena(64).unwrap();
    let mut asked_often = false;
    for _ in 0..50 {
        let events: Vec<_> = (0..8)
            .map(|_| {
                card.upload(Queue::Up, &arena, 0..64, memory.address).unwrap();
                card.record(Queue::Up).unwrap()
            })
            .collect();
        let asked = || driver.state.lock().calls.get("query").copied().unwrap_or_default();
        loop {
            card.look();
            let before = asked();
            let happened = events.iter().filter(|event| card.ready(**event).unwrap()).count();
            // One answer for each that has happened, if it was not known, and one no for all others.
            assert!(asked() - before <= 1 + happened as u64);
            asked_often |= happened + 2 < events.len();
            if happened == events.len() {
                break;
            }
        }
    }
    assert!(asked_often, "some waited behind others");
    card.drop_arena(arena);
    card.free(memory);
}

/// The time between two events is known once both have happened, and for a while.
#[test]
fn events_have_times() {
    let mut card = open(plan()).unwrap();
    let memory = card.alloc(64).unwrap();
    let arena = card.arena(64).unwrap();
    let began = card.record(Queue::Up).unwrap();
    card.upload(Queue::Up, &arena, 0..64, memory.address).unwrap();
    let ended = card.record(Queue::Up).unwrap();
    let took = loop {
        if let Some(took) = card.between(began, ended).unwrap() {
            break took;
        }
    };
    // A copy and the second event, by the clock of the driver that is played, which refuses to tell it early.
    assert_eq!(took, 2.0);
    for _ in 0..300 {
        let event = card.record(Queue::Down).unwrap();
        while !card.ready(event).unwrap() {}
    }
    assert_eq!(card.between(began, ended).unwrap(), None, "its signal serves others now");
    card.drop_arena(arena);
    card.free(memory);
}

#[test]
fn copies_stay_inside() {
    let mut card = open(plan()).unwrap();
    let memory = card.alloc(1000).unwrap();
    let arena = card.arena(500).unwrap();
    let at = memory.address;
    for (part, to) in [
        (0..501, at),
        (0..500, at + 501),
        (0..1, at + 1000),
        (0..1, at - 1),
        (0..0, 7),
        (0..500, u64::MAX - 3),
    ] {
        assert!(card.upload(Queue::Up, &arena, part.clone(), to).is_err(), "{part:?} {to}");
        assert!(card.download(Queue::Down, to, &arena, part.clone()).is_err(), "{part:?} {to}");
    }
    card.upload(Queue::Up, &arena, 0..500, at + 500).unwrap();
    assert!(card.launch(Queue::Work(0), Kernel::Pack, 1, &[1, 2]).is_err(), "other parameters");
}

/// A lack of memory is no loss; any other answer is the last one.
#[test]
fn a_card_that_is_lost_is_not_called_again() {
    for (call, code, is_lost) in [
        ("alloc", 2, false),
        ("pin", 2, false),
        ("alloc", 700, true),
        ("pin", 719, true),
        ("copy", 700, true),
        ("record", 400, true),
        ("query", 700, true),
        ("wait", 1, true),
        ("elapsed", 700, true),
    ] {
        let driver = Driven::new(Plan { fails: Some((call, 1, Code(code))), ..plan() });
        let mut card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
        let mut work = || -> lithify_base::Result<()> {
            let memory = card.alloc(4096)?;
            let arena = card.arena(100)?;
            let began = card.record(Queue::Up)?;
            card.upload(Queue::Up, &arena, 0..100, memory.address)?;
            card.send(Queue::Up, Bytes::from(vec![7; 8]), memory.address)?;
            let event = card.record(Queue::Up)?;
            card.after(Queue::Down, event)?;
            while !card.ready(event)? {}
            card.between(began, event)?;
            card.drop_arena(arena);
            Ok(())
        };
        let error = work().unwrap_err();
        assert!(error.to_string().contains(&code.to_string()), "{call}: {error}");
        assert_eq!(work().is_err(), is_lost, "{call} {code}");
        drop(card);
        let state = driver.state.lock();
        assert_eq!(state.late, 0, "{call} {code}: {:?}", state.calls);
        assert_eq!(state.calls.contains_key("close"), !is_lost, "{call} {code}");
    }
}

/// Copies of a queue are asked for in one call, which the driver makes in an order of its own; where order matters, in more.
#[test]
fn copies_are_asked_for_together() {
    let driver = Driven::new(plan());
    let mut card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
    let calls = || driver.state.lock().calls.get("copy").copied().unwrap_or_default();
    let memory = card.alloc(4096).unwrap();
    let (up, down) = (card.arena(100).unwrap(), card.arena(100).unwrap());
    card.bytes(&up).unwrap().iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
    card.upload(Queue::Up, &up, 0..50, memory.address).unwrap();
    card.send(Queue::Up, Bytes::from(vec![7; 8]), memory.address + 50).unwrap();
    card.upload(Queue::Up, &up, 60..60, memory.address + 60).unwrap();
    card.upload(Queue::Up, &up, 58..100, memory.address + 58).unwrap();
    assert!(card.bytes(&up).is_err(), "the copies are still to be made");
    assert_eq!(calls(), 0);
    let first = card.record(Queue::Up).unwrap();
    assert_eq!((calls(), driver.state.lock().together), (1, 3));
    // The second one writes where the first one does.
    card.send(Queue::Up, Bytes::from(vec![8; 8]), memory.address + 20).unwrap();
    card.send(Queue::Up, Bytes::from(vec![9; 8]), memory.address + 24).unwrap();
    // An arena that is given back, and memory, are still there for copies that wait.
    card.drop_arena(up);
    let second = card.record(Queue::Up).unwrap();
    assert_eq!(calls(), 3);
    card.after(Queue::Down, second).unwrap();
    // In one queue both ways.
    card.download(Queue::Down, memory.address + 40, &down, 40..100).unwrap();
    card.download(Queue::Down, memory.address, &down, 0..40).unwrap();
    card.send(Queue::Down, Bytes::from(vec![1; 8]), memory.address).unwrap();
    let third = card.record(Queue::Down).unwrap();
    assert_eq!(calls(), 5);
    while !(card.ready(first).unwrap() && card.ready(third).unwrap()) {}
    let mut wanted: Vec<u8> = (0..100).collect();
    wanted[50..58].fill(7);
    wanted[20..24].fill(8);
    wanted[24..32].fill(9);
    assert_eq!(card.bytes(&down).unwrap(), wanted);
    assert_eq!(driver.state.lock().memory[&memory.address][..8], [1; 8]);
    card.upload(Queue::Up, &down, 0..100, memory.address).unwrap();
    card.drop_arena(down);
    assert_eq!(calls(), 6, "before the arena is out of sight");
    card.send(Queue::Up, Bytes::from(vec![1; 8]), memory.address).unwrap();
    card.free(memory);
    assert_eq!(calls(), 7, "before the memory is");
}

/// What is sent from where it was read is held until the copy has been made, and for good if the GPU is lost.
#[test]
fn what_is_sent_is_held() {
    for is_lost in [false, true] {
        let driver = Driven::new(plan());
        let mut card = Card::open(driver.clone(), 0, || Ok(b""), 1 << 20).unwrap();
        let memory = card.alloc(4096).unwrap();
        let owner = std::sync::Arc::new(vec![7u8; 100]);
        let (bytes, left) = (Bytes::new(owner.clone()), std::sync::Arc::downgrade(&owner));
        drop(owner);
        let beyond = card.send(Queue::Up, bytes.clone(), memory.address + 4000).unwrap_err();
        assert!(beyond.to_string().contains("out of its memory"), "{beyond}");
        card.send(Queue::Up, bytes, memory.address + 10).unwrap();
        assert!(left.upgrade().is_some(), "it is let go of before the copy");
        let event = card.record(Queue::Up).unwrap();
        if is_lost {
            drop(card);
            assert!(left.upgrade().is_some(), "the GPU may still read it");
            continue;
        }
        while !card.ready(event).unwrap() {}
        assert!(left.upgrade().is_none(), "it is held after the copy");
        assert_eq!(driver.state.lock().memory[&memory.address][10..110], [7; 100]);
        let arena = card.arena(1).unwrap();
        card.drop_arena(arena);
    }
}

/// Through the whole engine: kernels by the emulator, everything else late.
#[cfg(feature = "emu")]
mod late {
    use lithify_engine::Engine;
    use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
    use lithify_merge::naive;
    use lithify_merge::workload::{Case, Features};

    use super::*;
    use crate::common::*;
    use crate::relay::part;

    fn engine(plan: Plan, seed: u64) -> (GpuEngine, Driven) {
        let driver = Driven::over(plan, Emu::new(seed), seed);
        let card = Card::open(driver.clone(), 0, || Ok(b""), 8 << 20).unwrap();
        // With times, which are calls, too.
        let tuned = Some((4 << 10, 4 << 20));
        let options = GpuOptions { tuned, inputs: 4 << 20, ..GpuOptions::default() };
        let engine = GpuEngine::new(Box::new(card), options).unwrap();
        (engine, driver)
    }

    #[test]
    fn what_comes_late_is_the_bytes_of_the_cpu() {
        for seed in 0..seeds(40) {
            let (engine, driver) = engine(plan(), seed);
            let case = Case::with(seed, SMALL, Features::Device).unwrap();
            let done = part(&engine, &case, case.sets(4000));
            let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
            assert!(done.output == output && done.ledger == ledger, "seed {seed}");
            assert!(!done.gave_up && done.disproved.is_none(), "{:?}", engine.evidence());
            drop(engine);
            drop(done);
            let state = driver.state.lock();
            assert_eq!((state.pinned, state.memory.len()), (0, 0), "seed {seed}: all given back");
            assert_eq!(state.calls["close"], 1, "seed {seed}");
        }
    }

    /// Memory of the host counts with what the driver takes for it, whatever was asked for.
    #[test]
    fn arenas_count_as_the_driver_makes_them() {
        let grain = 128 << 10;
        let (engine, driver) = engine(Plan { grain, ..plan() }, 5);
        let case = Case::with(5, SMALL, Features::Device).unwrap();
        let done = part(&engine, &case, case.sets(4000));
        assert!(!done.gave_up && done.here > 0, "{:?}", engine.evidence());
        let most = driver.state.lock().pinned_most;
        assert!(most >= 3 * grain && engine.arenas_most() == most as u64, "{most}");
        let before = driver.state.lock().pinned;
        assert!(engine.input_buffer(8 * grain).is_none(), "the pump has not turned yet");
        drop(engine.open(case.recipe.clone()));
        let taken = driver.state.lock().pinned - before;
        assert!(taken > 8 * grain && figure(&engine, "input_bytes") == taken as u64, "{taken}");
        assert!(engine.input_buffer(8 * grain).is_some());
    }

    /// Each call of the driver fails once: the CPU's bytes, and no call after it.
    #[test]
    fn a_driver_that_fails_costs_time_only() {
        let case = Case::with(3, SMALL, Features::Device).unwrap();
        let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        let (whole, driver) = engine(plan(), 3);
        part(&whole, &case, case.sets(4000));
        let calls = driver.state.lock().calls.clone();
        let opening = ["version", "count", "take", "facts", "load", "kernels", "words"];
        let mut failed = 0;
        for (call, n) in calls.into_iter().filter(|(call, _)| !opening.contains(call)) {
            let every = (n / 12).max(1);
            for at in (1..=n).step_by(every as usize) {
                for code in [Code(2), Code(700)] {
                    let (engine, driver) =
                        engine(Plan { fails: Some((call, at, code)), ..plan() }, 3);
                    let done = part(&engine, &case, case.sets(4000));
                    assert!(done.output == output && done.ledger == ledger, "{call} {at}");
                    assert!(done.disproved.is_none(), "{call} {at} {code:?}");
                    drop(engine);
                    assert_eq!(driver.state.lock().late, 0, "{call} {at} {code:?}");
                    failed += 1;
                }
            }
        }
        println!("{failed} failing calls of a driver: 0 differences");
    }
}
