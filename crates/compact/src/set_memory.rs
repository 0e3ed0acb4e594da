//! Memory for the sets of engines other than the CPU.
//!
//! A part has a fixed amount of buffers for its inputs, which suits the CPU. A device wants sets of 16 to 64 MiB
//! and several of them at once. What the setting `buffer_bytes` leaves beside the buffers of all jobs that may
//! run at once is shared by the parts that devices merge: each gets what it wants, and where that is too much
//! for all, those that want most get equally much.
//!
//! Keeps: all shares together stay within that memory. A share shrinks only as far as the buffers of
//! its sets are released, by the host and by the machine: one that hangs and does not let go of its sets takes
//! their memory from later ones, and not from anything else.
//! Leaves to others: how large a set is then (`feed`).
//!
//! Worked example: 600 MiB, and three parts that want 50, 400 and 400. The first gets 50, the others 275 each.

use std::collections::BTreeMap;

use lithify_env::sync::{Arc, Mutex};

/// What the parts of a database share.
pub(crate) struct SetMemory {
    bytes: u64,
    claims: Mutex<Claims>,
}

#[derive(Default)]
struct Claims {
    next: u64,
    all: BTreeMap<u64, Claim>,
}

/// Of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    wish: u64,
    /// Its share.
    has: u64,
    /// Bytes of buffers of sets that were cut for its engine and are not released.
    held: u64,
    /// The engine is through with the part, or has lost it.
    over: bool,
}

impl SetMemory {
    /// Shares of these bytes.
    pub(crate) fn new(bytes: u64) -> Arc<SetMemory> {
        Arc::new(SetMemory { bytes, claims: Mutex::default() })
    }

    /// For one more part, which has nothing yet.
    pub(crate) fn share(self: &Arc<SetMemory>) -> Arc<Share> {
        let mut claims = self.claims.lock();
        let no = claims.next;
        claims.next += 1;
        claims.all.insert(no, Claim::default());
        Arc::new(Share { of: self.clone(), no })
    }
}

/// What one part has of it.
pub(crate) struct Share {
    of: Arc<SetMemory>,
    no: u64,
}

impl Share {
    /// Wants `wish` bytes from now on; how many there are. What it had shrinks to `floor` at most.
    pub(crate) fn resize(&self, wish: u64, floor: u64) -> u64 {
        let mut claims = self.of.claims.lock();
        let Some(claim) = claims.all.get_mut(&self.no) else { return 0 };
        claim.wish = wish;
        let had = claim.has;
        let taken: u64 = claims.all.values().map(|claim| claim.has).sum();
        let lost: u64 = claims.all.values().filter(|c| c.over).map(|c| c.has).sum();
        let wishes = claims.all.values().filter(|c| !c.over).map(|c| c.wish).collect();
        let fair = wish.min(level(wishes, self.of.bytes.saturating_sub(lost)));
        let has = match fair >= had {
            true => fair.min(had + self.of.bytes.saturating_sub(taken)),
            false => fair.max(had.min(floor)),
        };
        self.change(&mut claims, |claim| claim.has = has);
        has
    }

    /// Bytes of buffers that are not released.
    pub(crate) fn held(&self) -> u64 {
        self.of.claims.lock().all.get(&self.no).map_or(0, |claim| claim.held)
    }

    /// Counts a buffer of so many bytes until the value is dropped.
    pub(crate) fn hold(self: &Arc<Share>, bytes: u64) -> Held {
        self.change(&mut self.of.claims.lock(), |claim| claim.held += bytes);
        Held { share: self.clone(), bytes }
    }

    /// No more sets are cut for the engine.
    pub(crate) fn end(&self) {
        self.change(&mut self.of.claims.lock(), |claim| {
            (claim.over, claim.has) = (true, claim.has.min(claim.held));
        });
    }

    fn change(&self, claims: &mut Claims, change: impl FnOnce(&mut Claim)) {
        if let Some(claim) = claims.all.get_mut(&self.no) {
            change(claim);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.claims.lock().all.remove(&self.no);
    }
}

/// A buffer that counts.
pub(crate) struct Held {
    share: Arc<Share>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let share = &self.share;
        share.change(&mut share.of.claims.lock(), |claim| {
            claim.held -= self.bytes;
            if claim.over {
                claim.has = claim.has.min(claim.held);
            }
        });
    }
}

/// The most that each of `wishes` may have, so that all together have `bytes` at most.
fn level(mut wishes: Vec<u64>, bytes: u64) -> u64 {
    wishes.sort_unstable();
    let (mut left, mut others) = (bytes, wishes.len() as u64);
    for wish in wishes {
        let even = left / others;
        if wish >= even {
            return even;
        }
        (left, others) = (left - wish, others - 1);
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_little_for_all_is_shared_evenly_by_those_that_want_most() {
        for (wishes, bytes, most) in [
            (vec![], 600, u64::MAX),
            (vec![50, 400, 400], 600, 275),
            (vec![50, 100, 400], 600, u64::MAX),
            (vec![700], 600, 600),
            (vec![1, 1], 0, 0),
        ] {
            assert_eq!(level(wishes.clone(), bytes), most, "{wishes:?}");
        }
    }

    /// Parts come and go, want more and less, and hold on to buffers: never is more given than there is.
    #[test]
    fn shares_stay_within_the_memory_and_above_what_is_held() {
        let mut dice = lithify_merge::workload::Choices::new(7);
        let memory = SetMemory::new(1000);
        let mut parts: Vec<(Arc<Share>, u64)> = Vec::new();
        let mut buffers: Vec<Held> = Vec::new();
        let mut full = 0;
        for _ in 0..20_000 {
            match dice.below(8) {
                0 if parts.len() < 6 => parts.push((memory.share(), 0)),
                1 if !parts.is_empty() => {
                    let (share, _) = parts.swap_remove(dice.below(parts.len()));
                    share.end();
                }
                2 | 3 if !buffers.is_empty() => {
                    buffers.swap_remove(dice.below(buffers.len()));
                }
                _ if !parts.is_empty() => {
                    let no = dice.below(parts.len());
                    let (share, has) = &mut parts[no];
                    *has = share.resize(dice.below(800) as u64, share.held());
                    assert!(*has >= share.held(), "what is held is its own");
                    let more = dice.below(100) as u64;
                    if share.held() + more <= *has {
                        buffers.push(share.hold(more));
                    }
                }
                _ => {}
            }
            let claims = memory.claims.lock();
            let given: u64 = claims.all.values().map(|claim| claim.has).sum();
            let held: u64 = claims.all.values().map(|claim| claim.held).sum();
            assert!(held <= given && given <= 1000, "{held} of {given}");
            full += u32::from(given > 900);
        }
        assert!(full > 1000, "all of it is given: {full}");
        parts.clear();
        buffers.clear();
        assert!(memory.claims.lock().all.is_empty());
    }

    /// One that comes later gets its half as the first lets go.
    #[test]
    fn a_second_part_gets_its_half() {
        let memory = SetMemory::new(1000);
        let (one, two) = (memory.share(), memory.share());
        assert_eq!(one.resize(2000, 0), 1000, "all of it while no other wants any");
        let buffer = one.hold(800);
        assert_eq!(two.resize(2000, 0), 0);
        assert_eq!(one.resize(2000, one.held()), 800);
        assert_eq!(two.resize(2000, 0), 200);
        drop(buffer);
        assert_eq!((one.resize(2000, one.held()), two.resize(2000, 0)), (500, 500));
        one.end();
        assert_eq!(two.resize(2000, 0), 1000);
    }
}
