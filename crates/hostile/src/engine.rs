//! What an engine hands back: changed blocks, lost, doubled and swapped ones, changed figures, of the right
//! recipe or of a falsified one. What is certified is the right answer where only the output was changed, and
//! what is proven is the right answer whatever was changed.

use std::sync::OnceLock;

use lithify::engine::mock::{FaultPlan, Lie, MockEngine};
use lithify::engine::{Carry, Engine, Offer, Progress};
use lithify_base::{Error, ErrorKind, Result};
use lithify_format::checksum::raw_sum;
use lithify_format::compress::Decoder;
use lithify_format::limits::plain_max;
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::ledger::Ledger;
use lithify_merge::products::{FileCut, Item, Products, TRAILER};
use lithify_merge::prove::{self, Claim};
use lithify_merge::workload::{Case, Size};
use lithify_merge::{Kernel, Recipe, Work};

/// A job and its right answer.
struct Job {
    case: Case,
    products: Products,
    ledger: Ledger,
}

/// Three bytes that are left over by lies of four choose a plan of the mock, a mode and a case; without them
/// the job is a fixed one, of the true recipe.
pub(super) fn reply(bytes: &[u8]) {
    let (lies, left_over) = bytes.split_at(bytes.len() / 4 * 4);
    match *left_over {
        [plan, mode, seed] => proven(plan, mode, seed, lies),
        _ => certified(lies),
    }
}

/// Each four bytes are one lie: where, what, by how much.
fn certified(bytes: &[u8]) {
    let Job { case, products, ledger } = job();
    let (mut reply, mut told) = (products.clone(), ledger.clone());
    for lie in bytes.chunks_exact(4) {
        let (at, what, by) = (u16::from_le_bytes([lie[0], lie[1]]), lie[2], lie[3]);
        tell(&mut reply, &mut told, usize::from(at), what, by);
    }
    let mut certifier = Certifier::new(Mode::Full);
    let read = certifier.read(&case.recipe, &reply);
    if read.and_then(|()| certifier.finish(&told)).is_ok() {
        assert!(same(&reply, products), "a wrong answer was certified");
    }
}

/// Most entries of a run, and bytes of a value, so that a second is enough for many inputs.
const SIZE: Size = Size { entries: 30, value: 60 };

/// A random case by an engine that follows `plan`, with `lies` told of its batches besides. Each set is certified
/// and proven.
fn proven(plan: u8, mode: u8, seed: u8, lies: &[u8]) {
    let case = Case::generate(u64::from(seed), SIZE).expect("a case");
    let budget = 1 + u64::from(mode >> 2) * 64;
    let job = Asked {
        case: &case,
        mode: if mode & 1 == 0 { Mode::Full } else { Mode::Sums },
        sums_fit: mode & 2 != 0,
        budget,
    };
    let truth = job.ask(FaultPlan::None, &[]).expect("the truth is accepted");
    let plan = match usize::from(plan) % (Lie::RECIPES.len() + 2) {
        0 => FaultPlan::None,
        1 => FaultPlan::Falsified(Lie::OtherValue(u64::from(plan >> 4))),
        n => FaultPlan::Falsified(Lie::RECIPES[n - 2]),
    };
    if let Ok(answer) = job.ask(plan, lies) {
        assert!(answer == truth, "a wrong answer was proven");
    }
}

/// A job for an engine, and how its answer is looked at.
struct Asked<'a> {
    case: &'a Case,
    mode: Mode,
    /// Checksums are made to fit what they are to guard: no fuzzer would get past them.
    sums_fit: bool,
    /// Input bytes of a set.
    budget: u64,
}

/// What an accepted answer consists of.
#[derive(PartialEq)]
enum Part {
    Block { entries: Vec<u8>, hashes: Vec<u64> },
    File(FileCut),
    Counts(Ledger),
}

impl Asked<'_> {
    /// The answer of an engine that follows `plan`, if it is accepted.
    fn ask(&self, plan: FaultPlan, lies: &[u8]) -> Result<Vec<Part>> {
        let recipe = &self.case.recipe;
        let refused = |_| Error::new(ErrorKind::Internal, "refused");
        let mut session = MockEngine { plan }.open(recipe.clone()).map_err(refused)?;
        let mut certifier = Certifier::new(self.mode);
        let (mut answer, mut reply) = (Vec::new(), Products::default());
        let mut carry: Option<Carry> = None;
        for (no, set) in self.case.sets(self.budget).into_iter().enumerate() {
            let Offer::Taken = session.offer(set.clone()) else { panic!("it has nothing to do") };
            // The mock hands out whole sets: one a poll.
            if let Progress::Failed(fault) = session.poll(&mut reply) {
                return Err(fault.error().clone());
            }
            self.change(&mut reply, &mut Ledger::default(), no, lies);
            certifier.read(recipe, &reply)?;
            prove::set(recipe, carry.as_ref(), set, &[Claim::from(&reply)])?;
            self.take(&reply, &mut answer)?;
            let Some(Item::SetDone(done)) = reply.items().last() else { panic!("it was proven") };
            carry = Some((*done.carry).clone());
        }
        session.seal();
        let mut ledger = match session.poll(&mut reply) {
            Progress::Done(ledger) => ledger,
            Progress::Failed(fault) => return Err(fault.error().clone()),
            other => panic!("it was sealed: {other:?}"),
        };
        self.change(&mut reply, &mut ledger, LAST, lies);
        certifier.read(recipe, &reply)?;
        certifier.finish(&ledger)?;
        prove::end(recipe, carry.as_ref(), &[Claim::from(&reply)], &ledger)?;
        self.take(&reply, &mut answer)?;
        answer.push(Part::Counts(*ledger));
        Ok(answer)
    }

    /// Tells the lies of batch `no`, which the upper bits of a lie's place name.
    fn change(&self, reply: &mut Products, ledger: &mut Ledger, no: usize, lies: &[u8]) {
        let mut changed = false;
        for lie in lies.chunks_exact(4) {
            let at = u16::from_le_bytes([lie[0], lie[1]]);
            if usize::from(at >> 13) == no {
                tell(reply, ledger, usize::from(at & 0x1fff), lie[2], lie[3]);
                changed = true;
            }
        }
        if !(changed && self.sums_fit) {
            return;
        }
        for item in reply.items().to_vec() {
            let Item::Block(block) = item else { continue };
            let stored = reply.block_mut(&block);
            if let Some((payload, trailer)) = stored.split_last_chunk_mut::<TRAILER>() {
                let sum = raw_sum(self.case.recipe.checksum, payload, trailer[0]);
                trailer[1..].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }

    /// Adds a batch that was accepted. Blocks are compared without their compression, of which nothing is
    /// proven.
    fn take(&self, reply: &Products, answer: &mut Vec<Part>) -> Result<()> {
        for item in reply.items() {
            match item {
                Item::Block(block) => answer.push(Part::Block {
                    entries: plain(&self.case.recipe, reply.block(block))?,
                    hashes: reply.hashes(block).to_vec(),
                }),
                Item::FileCut(cut) => answer.push(Part::File(cut.clone())),
                Item::SetDone(_) => {}
            }
        }
        Ok(())
    }
}

/// The number of the batch behind the last set, in lies.
const LAST: usize = 7;

/// The entries of a stored block.
fn plain(recipe: &Recipe, stored: &[u8]) -> Result<Vec<u8>> {
    let (payload, trailer) = stored.split_last_chunk::<TRAILER>().expect("it was proven");
    if trailer[0] == 0 {
        return Ok(payload.to_vec());
    }
    let dictionary = recipe.dictionary.as_deref().unwrap_or_default();
    let decoder = Decoder::rocksdb().with_dictionary(dictionary);
    decoder.decode(trailer[0], payload, plain_max(payload.len()))
}

fn tell(reply: &mut Products, ledger: &mut Ledger, at: usize, what: u8, by: u8) {
    let mut items = reply.items().to_vec();
    if items.is_empty() {
        return;
    }
    let i = at % items.len();
    match what % 12 {
        0..=3 => {
            let (arena, _) = reply.parts_mut();
            if let Some(byte) = arena.get_mut(at) {
                *byte ^= by;
            }
            return;
        }
        4 => drop(items.remove(i)),
        5 => items.insert(i, items[i].clone()),
        6 => {
            let j = usize::from(by) % items.len();
            items.swap(i, j);
        }
        7 => ledger.entries_out = ledger.entries_out.wrapping_add(u64::from(by)),
        8 => ledger.entries_in = ledger.entries_in.wrapping_add(u64::from(by)),
        _ => {
            if let Item::Block(b) = &mut items[i] {
                match by % 8 {
                    0 => b.entries = b.entries.wrapping_add(1),
                    1 => b.raw_key_bytes = b.raw_key_bytes.wrapping_sub(9),
                    2 => b.raw_value_bytes = u64::MAX,
                    3 => b.min_seq = u64::MAX,
                    4 => b.max_seq = 0,
                    5 => b.values = u32::MAX,
                    6 => b.deletes = b.deletes.wrapping_add(7),
                    _ => b.continues_key = !b.continues_key,
                }
            }
        }
    }
    reply.set_items(items);
}

/// Whether two answers are the same bytes, cut at the same places.
fn same(a: &Products, b: &Products) -> bool {
    let shape = |p: &Products| -> Vec<Option<Vec<u8>>> {
        let step = |item: &Item| match item {
            Item::Block(block) => Some(Some(p.block(block).to_vec())),
            Item::FileCut(_) => Some(None),
            Item::SetDone(_) => None,
        };
        p.items().iter().filter_map(step).collect()
    };
    shape(a) == shape(b)
}

fn job() -> &'static Job {
    static JOB: OnceLock<Job> = OnceLock::new();
    JOB.get_or_init(|| {
        let case = Case::uniform(9, 2, 300, 16, 32).expect("a case");
        let mut kernel = Kernel::new(case.recipe.clone()).expect("a kernel");
        for set in case.sets(u64::MAX) {
            kernel.begin(set).expect("a set");
            while kernel.work(u64::MAX).expect("sound input") == Work::More {}
        }
        let ledger = kernel.finish().expect("the end");
        let mut products = Products::default();
        kernel.drain(&mut products);
        Job { case, products, ledger }
    })
}
