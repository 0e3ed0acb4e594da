//! What comes back from the card: transfers that have ended, and the output of a set step by step.

use lithify_base::{Error, ErrorKind};

use crate::card::Completion;
use crate::control::Sample;
use crate::memory::Buffer;
use crate::returned::{Output, Tail};
use crate::stream::{Code, ENDING, Record};

use super::slots::{Cargo, Hold, Slot, SlotNo, Stage, Trouble};
use super::{GRACE_CYCLES, Sched};

impl Sched {
    /// A transfer has ended.
    pub(super) fn complete(&mut self, completion: Completion) {
        let Completion { id, buffer, arrived } = completion;
        let buffer = Buffer::back(buffer, self.buffers.away.remove(&id).unwrap_or_default());
        let awaits =
            |slot: &Slot| slot.work.as_ref().is_some_and(|w| w.under_way.contains_key(&id));
        let Some(no) = self.slots.iter().position(awaits) else {
            // Late, twice, or of a set that was given up.
            self.counters.stale += 1;
            return;
        };
        let deadline = self.deadline(0);
        let slot = &mut self.slots[no];
        let Some(work) = &mut slot.work else { return };
        let Some(cargo) = work.under_way.remove(&id) else { return };
        work.deadline = work.deadline.max(deadline);
        match cargo {
            Cargo::Areas => slot.areas = buffer,
            Cargo::Head => {}
            Cargo::Ending => work.ending = buffer,
            Cargo::Records => work.records = buffer,
            Cargo::Open => work.open = buffer,
            Cargo::Payloads => work.payloads = buffer,
        }
        if !arrived {
            let error = Error::new(ErrorKind::Io, "a transfer failed");
            return self.end(SlotNo(no), Err(Trouble::Damaged(error)));
        }
        if let (Cargo::Open, Stage::Fetching(tail)) = (cargo, &work.stage)
            && let Err(error) = tail.check_open(work.open.bytes())
        {
            return self.end(SlotNo(no), Err(Trouble::Damaged(error)));
        }
        if self.slots[no].work.as_ref().is_some_and(|work| work.under_way.is_empty()) {
            self.arrived(SlotNo(no));
        }
    }

    /// All transfers of a set have ended.
    fn arrived(&mut self, slot: SlotNo) {
        let Some(work) = &mut self.slots[slot.0].work else { return };
        match &work.stage {
            Stage::Heading => {
                work.stage = Stage::Queued;
                self.queue.push_back(slot);
            }
            Stage::Returning => {
                let tail = Tail::read(work.ending.bytes(), work.tag, self.size.output);
                self.fetch_rest(slot, tail);
            }
            Stage::Fetching(tail) => {
                let output = Output::read(tail, work.records.bytes(), work.ending.bytes());
                let checked =
                    output.and_then(|output| output.check(work.payloads.bytes()).map(|()| output));
                self.end(slot, checked.map_err(Trouble::Damaged));
            }
            Stage::Loaded | Stage::Queued | Stage::Running { .. } | Stage::Ended => {}
        }
    }

    /// The open block of a set that is on its way back, and its record, once they are here. No sum of the set covers the
    /// record yet: who goes on from it compares later.
    pub(crate) fn open_of(&self, hold: Hold) -> Option<(&Record, &[u8])> {
        let work = self.held_work(hold)?;
        let comes = || work.under_way.values().any(|&cargo| cargo == Cargo::Open);
        let record = match (&work.stage, &work.ended) {
            (Stage::Fetching(tail), _) if !comes() => &tail.open,
            (_, Some(Ok(output))) => &output.open,
            _ => return None,
        };
        Some((record, work.open.bytes().get(..record.bytes as usize)?))
    }

    /// The last records are here: fetches what else there is.
    fn fetch_rest(&mut self, slot: SlotNo, tail: Result<Tail, Error>) {
        let mut tail = match tail {
            Err(e) => return self.end(slot, Err(Trouble::Damaged(e))),
            Ok(tail) if tail.status.code != Code::Ok => {
                return self.end(slot, Err(Trouble::Code(tail.status.code)));
            }
            Ok(tail) => tail,
        };
        if let Some(work) = &self.slots[slot.0].work {
            // No sum covers this figure, and later than that the set would have been missed.
            let most = work.predicted.saturating_mul(10).saturating_add(GRACE_CYCLES);
            tail.status.cycles = tail.status.cycles.min(most);
        }
        let output = self.size.output;
        let (open_at, payloads) = (tail.open.at as usize, tail.status.payload_bytes as usize);
        let records = (tail.records_at(output), tail.records_len());
        let (open_len, rest_len) = (payloads - open_at, records.1 + open_at);
        let ready = self.slots[slot.0].work.as_ref().map_or(0.0, |work| work.ready_at);
        let unit_ns = tail.status.cycles as f64 * self.shape.cycle_ns;
        let ran = self.times.run(ready, unit_ns);
        // Where the open block is is known by the last records. The next set waits for that block and no more.
        let ended = self.times.receive_first(ENDING, ran);
        let known_at = self.times.receive_first(open_len, ended);
        let back_at = self.times.receive(rest_len, known_at);
        self.learn(slot, unit_ns, [ENDING, open_len, rest_len]);
        if let Some(work) = &mut self.slots[slot.0].work {
            (work.known_at, work.back_at) = (known_at, back_at);
            work.stage = Stage::Fetching(Box::new(tail));
        }
        self.fetch(slot, Cargo::Open, open_at, open_len);
        self.fetch(slot, Cargo::Records, records.0, records.1);
        self.fetch(slot, Cargo::Payloads, 0, open_at);
    }

    /// Tells the controller of a set that took so long on a unit, and whose output came in three operations of so
    /// many bytes.
    fn learn(&mut self, slot: SlotNo, unit_ns: f64, back: [usize; 3]) {
        let (link, parts) = (*self.times.link(), self.parts());
        let Some(work) = &self.slots[slot.0].work else { return };
        let [ending, open, rest] = back.map(|bytes| link.out_ns(bytes));
        self.control.learn(&Sample {
            unit_ns: work.sample.unit_ns + unit_ns + ending + open,
            from_card_ns: ending + open + rest,
            parts,
            ..work.sample
        });
    }

    /// A set is over.
    pub(super) fn end(&mut self, slot: SlotNo, how: Result<Output, Trouble>) {
        self.queue.retain(|&queued| queued != slot);
        let s = &mut self.slots[slot.0];
        let Some(work) = &mut s.work else { return };
        if let Ok(output) = &how {
            self.counters.sets += 1;
            let cycles = &mut self.counters.cycles;
            *cycles = cycles.saturating_add(output.status.cycles);
            for (all, n) in self.counters.stalls.iter_mut().zip(output.status.stalls) {
                *all += u64::from(n);
            }
        }
        work.under_way.clear();
        work.stage = Stage::Ended;
        work.ended = Some(how);
        if s.owner.is_none() {
            s.work = None;
        }
    }
}
