//! What an engine hands back: changed blocks, lost, doubled and swapped ones, changed figures.
//! Whatever is certified is the right answer.

use std::sync::OnceLock;

use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::ledger::Ledger;
use lithify_merge::products::{Item, Products};
use lithify_merge::workload::Case;
use lithify_merge::{Kernel, Work};

/// A job and its right answer.
struct Job {
    case: Case,
    products: Products,
    ledger: Ledger,
}

/// Each four bytes are one lie: where, what, by how much.
pub(super) fn reply(bytes: &[u8]) {
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
