//! Units that merge something else than they were sent, and say the truth of that: what the host knows of the set
//! finds them out. And cards that stand still, or write where they should not.

use lithify_engine::conformance::run;
use lithify_engine::{Engine, Offer, Progress};
use lithify_engine_fpga::card::{Card, Completion, Shape, Transfer};
use lithify_engine_fpga::stream::*;
use lithify_engine_fpga::{FpgaOptions, ModelCard, ModelOptions};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_format::varint;
use lithify_merge::workload::Case;
use lithify_merge::{BlockSet, Item, Products, naive};

use crate::common::*;

/// A card whose units find another input slot than was sent, with sums that are right.
struct Liar {
    inner: ModelCard,
    ring: Vec<u32>,
    held: Vec<Completion>,
    spoil: fn(&mut [u8]) -> bool,
    /// Sets that were spoilt, and how many there are to be.
    spoilt: Arc<AtomicU64>,
    most: u64,
}

impl Liar {
    /// Moves bytes at once: a model does at its next poll.
    fn poll_now(&mut self, id: u64) -> Vec<u8> {
        let mut ended = Vec::new();
        self.inner.poll(0, &mut ended);
        let at = ended.iter().position(|completion| completion.id == id).expect("it is done");
        let buffer = ended.swap_remove(at).buffer;
        self.held.extend(ended);
        buffer
    }

    fn lie(&mut self, command: Command) {
        if self.spoilt.load(Ordering::Relaxed) >= self.most {
            return;
        }
        let (id, at) = (u64::MAX, command.input);
        self.inner.fetch(Transfer { id, at, buffer: vec![0; command.in_bytes as usize] });
        let mut slot = self.poll_now(id);
        if (self.spoil)(&mut slot) {
            reseal(&mut slot);
            self.spoilt.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.send(Transfer { id, at, buffer: slot });
        self.poll_now(id);
    }
}

/// Makes the sums of an input slot right.
fn reseal(slot: &mut [u8]) {
    let n = u32::from_le_bytes(slot[28..32].try_into().unwrap()) as usize;
    for no in 0..n {
        let d = Descriptor::read(slot, no);
        let sum = F64::of(&slot[d.at as usize..][..beats(d.bytes as usize)]);
        Descriptor { sum, ..d }.put(slot, no);
    }
    slot[48..64].fill(0);
    let sum = F64::of(&slot[..beats(DESCRIPTORS_AT + DESCRIPTOR * n)]).to_bytes();
    slot[48..64].copy_from_slice(&sum);
}

impl Card for Liar {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }
    fn read(&mut self, unit: usize, at: u32) -> u32 {
        self.inner.read(unit, at)
    }
    fn write(&mut self, unit: usize, at: u32, value: u32) {
        if let Some(word) = at.checked_sub(register::COMMANDS) {
            self.ring[word as usize / 4] = value;
        }
        if at == register::DOORBELL {
            let word = (Command::register(value.wrapping_sub(1)) - register::COMMANDS) / 4;
            self.lie(Command::read(&self.ring[word as usize..]));
        }
        self.inner.write(unit, at, value);
    }
    fn send(&mut self, transfer: Transfer) {
        self.inner.send(transfer);
    }
    fn fetch(&mut self, transfer: Transfer) {
        self.inner.fetch(transfer);
    }
    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        ended.append(&mut self.held);
        self.inner.poll(cycles, ended);
    }
    fn now(&self) -> u64 {
        self.inner.now()
    }
}

/// Where the lengths of an entry lie in an area, and where its key does: of the last one taken.
struct Place {
    shared: usize,
    key: usize,
}

/// The last entry taken of an area, and how many are taken.
fn last_taken(area: &[u8], d: &Descriptor) -> Option<(Place, u32)> {
    let (mut at, mut no, mut last) = (0, 0, None);
    while at < area.len() && (d.take == TAKE_ALL || no < d.skip + d.take) {
        let (shared, rest) = varint::get_u32(&area[at..])?;
        let (unshared, rest) = varint::get_u32(rest)?;
        let (value, rest) = varint::get_u32(rest)?;
        let key = area.len() - rest.len();
        last = Some(Place { shared: shared as usize, key });
        at = key + (unshared + value) as usize;
        no += 1;
    }
    last.filter(|_| no > d.skip).map(|place| (place, no - d.skip))
}

/// The last area of each data way that is used: number of its descriptor.
fn last_areas(slot: &[u8]) -> Vec<usize> {
    let ways = (0..WAYS_MAX).filter_map(|no| Way::read(slot, no));
    ways.filter(|way| way.count > 0).map(|way| (way.first + way.count - 1) as usize).collect()
}

/// The last key of some way becomes larger than all keys of the set.
fn larger_key(slot: &mut [u8]) -> bool {
    for no in last_areas(slot) {
        let d = Descriptor::read(slot, no);
        let at = d.at as usize;
        if let Some((Place { shared: 0, key }, _)) =
            last_taken(&slot[at..at + d.bytes as usize], &d)
        {
            slot[at + key] = 0xff;
            return true;
        }
    }
    false
}

/// The last entry of some way is left out.
fn lost_entry(slot: &mut [u8]) -> bool {
    for no in last_areas(slot) {
        let d = Descriptor::read(slot, no);
        let at = d.at as usize;
        if let Some((_, taken @ 2..)) = last_taken(&slot[at..at + d.bytes as usize], &d) {
            Descriptor { take: taken - 1, expected: 0, ..d }.put(slot, no);
            return true;
        }
    }
    false
}

/// A case whose blocks don't say how many entries they have, as those of other stores don't.
fn uncounted() -> (Case, Vec<BlockSet>) {
    let case = Case::uniform(9, 4, 900, 16, 60).unwrap();
    let mut sets = case.sets(16 << 10);
    for run in sets.iter_mut().flat_map(|set| &mut set.runs) {
        let mut blocks = run.blocks.to_vec();
        blocks.iter_mut().for_each(|block| (block.entries, block.key_bytes) = (0, 0));
        run.blocks = blocks.into();
    }
    (case, sets)
}

#[test]
fn a_unit_that_merges_other_entries_than_it_was_sent_is_found_out() {
    let (case, sets) = uncounted();
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    for spoil in [larger_key, lost_entry] as [fn(&mut [u8]) -> bool; 2] {
        let spoilt = Arc::new(AtomicU64::new(0));
        let inner = ModelCard::new(model(1, 8, 32));
        let (ring, told) = (vec![0; 256], spoilt.clone());
        let card = Liar { inner, ring, held: Vec::new(), spoil, spoilt: told, most: 1 };
        let engine = over(Box::new(card), options());
        let ran = run(&engine, &FixedRt, &case.recipe, sets.clone(), true).unwrap();
        assert_eq!((ran.output, ran.ledger), expected);
        assert_eq!(spoilt.load(Ordering::Relaxed), 1);
        assert_eq!(figure(&engine, "cpu_wrong"), 1);
        assert_eq!(figure(&engine, "unit_sets"), sets.len() as u64 - 1);
    }
}

/// A card that can still be looked at, and stands still after some polls.
struct Watched {
    inner: Arc<Mutex<ModelCard>>,
    /// Polls until its clock stands and nothing ends any more.
    runs: u64,
}

impl Card for Watched {
    fn shape(&self) -> Shape {
        self.inner.lock().shape()
    }
    fn read(&mut self, unit: usize, at: u32) -> u32 {
        self.inner.lock().read(unit, at)
    }
    fn write(&mut self, unit: usize, at: u32, value: u32) {
        self.inner.lock().write(unit, at, value);
    }
    fn send(&mut self, transfer: Transfer) {
        self.inner.lock().send(transfer);
    }
    fn fetch(&mut self, transfer: Transfer) {
        self.inner.lock().fetch(transfer);
    }
    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        if self.runs > 0 {
            self.runs -= 1;
            self.inner.lock().poll(cycles, ended);
        }
    }
    fn now(&self) -> u64 {
        self.inner.lock().now()
    }
}

/// Nothing is late by a clock that stands: the set ends in an error all the same, and the CPU goes on.
#[test]
fn a_card_whose_clock_stands_is_given_up() {
    let (case, sets) = uncounted();
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    for runs in [1, 2, 5, 9, 14] {
        let inner = Arc::new(Mutex::new(ModelCard::new(model(1, 8, 32))));
        let engine = over(Box::new(Watched { inner, runs }), options());
        let ran = run(&engine, &FixedRt, &case.recipe, sets.clone(), true).unwrap();
        assert_eq!((ran.output, ran.ledger), expected);
        assert_eq!((figure(&engine, "quarantine"), figure(&engine, "hangs")), (1, 1), "{runs}");
        let why = refusal(engine.open(case.recipe.clone()));
        assert!(why.contains("its clock stands"), "{why}");
        let trouble = engine.trouble().unwrap();
        assert!(trouble.contains("its clock stands") && trouble.contains("Open"), "{trouble}");
    }
}

/// Memory behind the slots, which belongs to someone else.
#[test]
fn nothing_is_written_outside_of_the_slots() {
    let (case, sets) = uncounted();
    let options = FpgaOptions { set_bytes: 64 << 10, ..FpgaOptions::default() };
    let used = options.card_bytes(2);
    let memory = used + (256 << 10);
    let card = ModelOptions { units: 2, memory, ..ModelOptions::default() };
    let inner = Arc::new(Mutex::new(ModelCard::new(card)));
    inner.lock().send(Transfer { id: 0, at: 0, buffer: vec![0xa5; memory] });
    inner.lock().poll(0, &mut Vec::new());
    let card = Watched { inner: inner.clone(), runs: u64::MAX };
    let engine = over(Box::new(card), options);
    run(&engine, &FixedRt, &case.recipe, sets.clone(), true).unwrap();
    assert_eq!(figure(&engine, "unit_sets"), sets.len() as u64);
    let inner = inner.lock();
    let (slots, rest) = inner.memory().split_at(used);
    assert!(rest.iter().all(|&byte| byte == 0xa5), "something was written behind the slots");
    assert!(slots.iter().any(|&byte| byte != 0xa5));
    // The end of an input slot, and the middle of an output slot, of which no set needs all.
    let slot = used / (2 * options.slots);
    let untouched = slots.chunks(slot).filter(|slot| {
        let (input, output) = (128 << 10, slot.len());
        slot[input - 64..input] == [0xa5; 64] && slot[output / 2 + input / 2] == 0xa5
    });
    assert_eq!(untouched.count(), 2 * options.slots);
}

/// One counter sees every buffer: the one that a set is staged in, what came back, and what is handed out.
#[test]
fn every_buffer_of_the_host_is_counted() {
    let set = 64 << 10;
    let options = FpgaOptions { set_bytes: set, ..FpgaOptions::default() };
    let (case, sets) = uncounted();
    let engine = engine(ModelOptions { memory: options.card_bytes(2), ..model(2, 8, 32) }, options);
    let now = || figure(&engine, "host_bytes");
    assert_eq!((now(), figure(&engine, "host_bytes_most")), (0, 0));
    let mut session = engine.open(case.recipe.clone()).unwrap();
    let mut products = Products::default();
    let mut handed_out = 0;
    let mut left = sets.clone().into_iter();
    let mut next = left.next();
    loop {
        match next.take() {
            None => session.seal(),
            Some(set) => match session.offer(set) {
                Offer::Taken => next = left.next(),
                Offer::Full(set) => next = Some(set),
            },
        }
        let staged = figure(&engine, "slots_free") < 6;
        let progress = session.poll(&mut products);
        assert!(!staged || now() >= 2 * set, "{} bytes, and a set is staged", now());
        if products.items().iter().any(|item| matches!(item, Item::SetDone(_))) {
            let (before, arena) = (now(), products.arena().len() as u64);
            products.clear();
            assert!(before - now() >= arena, "{before} bytes, of which {arena} are handed out");
            handed_out += arena;
        }
        match progress {
            Progress::Done(_) => break,
            Progress::Failed(fault) => panic!("{}", fault.error()),
            _ => {}
        }
    }
    assert!(handed_out > 40_000, "{handed_out}");
    drop((session, products));
    // What stays are the buffers of slots that were in use, for sets to come.
    assert!(now() <= 6 * 2 * set && now().is_multiple_of(2 * set), "{}", now());
    let bound = options.card_bytes(2) as u64 + 2 * set + set / 2 + (64 << 10);
    let most = figure(&engine, "host_bytes_most");
    assert!(most > now() && most <= bound, "{most} of {bound}");
}
