//! The binding to NVIDIA's driver over a library of these tests with the same interface, found as that is, by its name: which
//! calls a [`Card`] comes to, and whose memory is when. What a GPU makes of the calls is not in it.
//!
//! A library is loaded once in a process, so each kind of it has a process of its own: this program again, with the library in
//! `LD_LIBRARY_PATH` and one of the tests below that are left out otherwise.

#![allow(clippy::disallowed_methods, reason = "makes a library, and processes that have it")]

use std::path::Path;
use std::process::Command;

use lithify_engine_gpu::card::Card;
use lithify_engine_gpu::cuda::Cuda;
use lithify_engine_gpu::device::{Device, Kernel, Queue};
use lithify_engine_gpu::driver::{CardFacts, Driver, Transfer};
use lithify_engine_gpu::image::LAYOUT;
use lithify_merge::Bytes;

/// Memory of the host from here on is the program's own.
const HUGE: usize = 2 << 20;
/// What a thing that is no memory counts for.
const THING: u64 = 1 << 30;

/// Runs a test of this file over the library that behaves so.
fn over(how: &str, test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/cuda_stub.c");
    let words: Vec<String> = [64, 2, 2].iter().chain(&LAYOUT).map(u64::to_string).collect();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-std=c11", "-Wall", "-Werror"]);
    compiler.arg(format!("-DHOW=\"{how}\"")).arg(format!("-DWORDS={}", words.join(",")));
    let done = compiler.arg("-o").arg(folder.path().join("libcuda.so")).arg(source).status();
    assert!(done.expect("the feature emu needs a compiler").success());
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.env("LD_LIBRARY_PATH", folder.path()).args(["--exact", "--ignored"]);
    program.arg(format!("cuda::{test}"));
    let ran = program.output().unwrap();
    let text = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(ran.status.success() && text[0].contains("1 passed"), "{how}: {}", text.concat());
}

#[test]
fn the_library_is_called_as_it_asks_for() {
    over("usual", "copies_go_both_ways_and_all_is_given_back");
    over("refuses", "copies_go_both_ways_and_all_is_given_back");
}

#[test]
fn what_the_library_knows_of_stays_where_it_is() {
    over("usual", "a_driver_that_is_let_go_of_keeps_its_memory");
    over("keeps", "what_can_not_be_taken_back_stays");
    over("usual", "a_card_that_is_closed_takes_no_call");
}

/// The driver, with its GPU taken.
fn driver() -> Cuda {
    let driver = Cuda::default();
    assert!(driver.is_there());
    assert_eq!((driver.version(), driver.count()), (Ok(13_000), Ok(1)));
    driver.take(0).unwrap();
    driver
}

/// What the library holds: bytes, and streams, events, modules and contexts.
fn held() -> (u64, u64) {
    let driver = driver();
    let CardFacts { memory, free, .. } = driver.facts().unwrap();
    assert_eq!(driver.close(), Ok(()));
    ((memory - free) % THING, (memory - free) / THING)
}

/// Whether the program has memory at an address.
fn is_mapped(at: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ranges = maps.lines().filter_map(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| usize::from_str_radix(text, 16).unwrap();
    ranges.into_iter().any(|(from, to)| (number(from)..number(to)).contains(&at))
}

#[test]
#[ignore = "over a library"]
fn copies_go_both_ways_and_all_is_given_back() {
    let mut card = Card::open(Cuda::default(), 0, || Ok(b"image"), 64 << 20).unwrap();
    let facts = card.facts().clone();
    assert_eq!((facts.name.as_str(), facts.capability), ("a stub", 90));
    assert_eq!((facts.processors, facts.copiers, facts.driver), (3, 2, 13_000));
    let memory = card.alloc(8 << 20).unwrap();
    for (round, n) in [1000, HUGE, HUGE + 1, 3 * HUGE].into_iter().enumerate() {
        let of = |i: usize| (i * i / 7 + i + round) as u8;
        let (up, down) = (card.arena(n).unwrap(), card.arena(n + 8).unwrap());
        card.bytes(&up).unwrap().iter_mut().enumerate().for_each(|(i, byte)| *byte = of(i));
        let began = card.record(Queue::Up).unwrap();
        // Two copies of one call, or one.
        let cut = [n, n / 3, 1 + n / 2, 2 * HUGE][round];
        card.upload(Queue::Up, &up, 1..cut, memory.address + 65).unwrap();
        card.upload(Queue::Up, &up, cut..n, memory.address + 64 + cut as u64).unwrap();
        let up_at = card.record(Queue::Up).unwrap();
        card.after(Queue::Work(0), up_at).unwrap();
        let params = vec![0; 8 * 200];
        let fits = (1..200)
            .find(|words| card.launch(Queue::Work(0), Kernel::Pack, 5, &params[..*words]).is_ok());
        assert!(fits.is_some(), "no number of parameters suits");
        card.download(Queue::Down, memory.address + 65, &down, 8..cut + 7).unwrap();
        card.download(Queue::Down, memory.address + 64 + cut as u64, &down, cut + 7..n + 7)
            .unwrap();
        let back = card.record(Queue::Down).unwrap();
        while !(card.ready(back).unwrap() && card.ready(up_at).unwrap()) {}
        assert_eq!(card.between(began, up_at).unwrap(), Some(1.5e6));
        let lent = card.lend(down).unwrap();
        assert!(lent.bytes()[8..n + 7].iter().enumerate().all(|(i, byte)| *byte == of(i + 1)));
        // Memory that was lent is sent from where it lies; no other is known to the library.
        let of_it = Bytes::new(std::sync::Arc::new(Holder(lent)));
        card.send(Queue::Up, of_it, memory.address).unwrap();
        card.drop_arena(up);
        let over = card.record(Queue::Work(0)).unwrap();
        let sent = card.record(Queue::Up).unwrap();
        while !(card.ready(sent).unwrap() && card.ready(over).unwrap()) {}
    }
    card.free(memory);
    assert!(held().0 > 0, "memory of the host stays for the next set");
    // Two of one GPU: each gives back what is its own.
    let other = Card::open(Cuda::default(), 0, || Ok(b"image"), 64 << 20).unwrap();
    drop(card);
    assert_eq!(held(), (0, 2), "the other's module and context");
    drop(other);
    assert_eq!(held(), (0, 0));
}

#[test]
#[ignore = "over a library"]
fn a_card_that_is_closed_takes_no_call() {
    let driver = driver();
    let stream = driver.stream().unwrap();
    driver.signal().unwrap();
    assert_eq!(driver.close(), Ok(()));
    assert_eq!(held(), (0, 0));
    let signal = driver.signal();
    assert!(signal.is_err() && driver.alloc(64).is_err() && driver.close().is_err());
    assert!(driver.copy(stream, &[Transfer::Send(&[1], 64)]).is_err());
}

/// Bytes of memory that a card lends.
struct Holder(Box<dyn lithify_merge::Lent>);

impl AsRef<[u8]> for Holder {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// As after a GPU is lost, which may still copy to it.
#[test]
#[ignore = "over a library"]
fn a_driver_that_is_let_go_of_keeps_its_memory() {
    let driver = driver();
    let [kept, back] = [(); 2].map(|()| driver.pin(HUGE + 1).unwrap());
    let [kept_at, back_at] = [&kept, &back].map(|pinned| pinned.at().addr().get());
    assert!(is_mapped(kept_at) && is_mapped(back_at));
    driver.unpin(back).unwrap();
    assert!(!is_mapped(back_at), "what is given back goes back to the system");
    drop(driver);
    assert!(held().0 > HUGE as u64, "the library knows of it");
    assert!(is_mapped(kept_at), "what it knows of is not the program's to give away");
}

#[test]
#[ignore = "over a library"]
fn what_can_not_be_taken_back_stays() {
    let driver = driver();
    let pinned = driver.pin(HUGE).unwrap();
    let at = pinned.at().addr().get();
    assert!(driver.unpin(pinned).is_err());
    assert!(is_mapped(at));
    drop(driver);
    assert!(held().0 == HUGE as u64 && is_mapped(at));
}
