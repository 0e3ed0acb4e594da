//! The writer of the modelled world: it passes the gate, fills memtables, and waits.
//!
//! Leaves to others: which keys it writes and what the gate says (`client`).

use lithify_control::{Event, MemId};

use super::{ClientState, Happening, LONG, Task, World};
use crate::client::Verdict;
use crate::memtable::MemTable;
use crate::setup::Change;

impl World<'_> {
    /// The writer is at the gate, or at the end.
    pub(super) fn client_goes_on(&mut self) {
        let left = self.setup.num - self.written;
        if left == 0 {
            self.client = ClientState::Over;
            return;
        }
        let writes = self.quantum.min(left);
        if let Some(until) = self.rest().or_else(|| self.not_due(writes)) {
            self.client = ClientState::Resting;
            self.rested += until - self.now;
            self.wait += 1;
            return self.queue_at(until, Happening::ClientWakes(self.wait));
        }
        if self.mem_is_full() {
            // The verdict on this very freeze may be to stop.
            self.freeze();
        }
        match self.gate.ask(self.mem_written(), self.now) {
            Verdict::Pass => self.gate.charge(writes as f64 * self.setup.bytes.user),
            wait => return self.client_waits(wait),
        }
        self.client = ClientState::Computing;
        let work = writes as f64 * self.setup.client_ns;
        self.cores.start(self.now, work, Task::Client);
    }

    /// The world changes, once.
    pub(super) fn change(&mut self) {
        let Some((_, change)) = self.setup.change.filter(|_| self.changed.is_none()) else {
            return;
        };
        self.changed = Some(self.now);
        match change {
            Change::Bandwidth(bandwidth) => self.device.set_bandwidth(bandwidth),
            Change::Cores(cores) => {
                self.cores.set_cores(self.now, cores);
                self.copy();
            }
            Change::Keys(keys) => self.keys.narrow(keys),
        }
    }

    /// Until when the client rests between two bursts.
    fn rest(&self) -> Option<u64> {
        let (on, off) = self.setup.bursts?;
        let since = self.now % (on + off).max(1);
        (since >= on && off > 0).then(|| self.now - since + on + off)
    }

    /// When the next writes are due, if they are not: the last of them.
    fn not_due(&self, writes: u64) -> Option<u64> {
        let due = ((self.written + writes) as f64 * 1e9 / self.setup.offered?) as u64;
        (due > self.now).then_some(due)
    }

    fn mem_is_full(&self) -> bool {
        let bytes = self.mem.count as f64 * self.setup.bytes.memory;
        bytes >= self.setup.plan.memtable_bytes as f64 && !self.gate.is_stopped()
    }

    pub(super) fn client_wrote(&mut self) {
        let writes = self.quantum.min(self.setup.num - self.written);
        self.keys.write(self.written, writes, self.setup.num, &mut self.mem);
        self.written += writes;
        if let Some(rate) = self.setup.offered {
            self.late.push((self.now as f64 / 1e9 - self.written as f64 / rate).max(0.0));
        }
        if self.setup.change.is_some_and(|(after, _)| self.written >= after) {
            self.change();
        }
        self.tally.step.bytes += writes as f64 * self.setup.bytes.user;
        self.client_goes_on();
    }

    /// Bytes of writes in the active memtable.
    pub(super) fn mem_written(&self) -> u64 {
        self.user_bytes(self.mem.count)
    }

    fn user_bytes(&self, entries: u64) -> u64 {
        (entries as f64 * self.setup.bytes.user) as u64
    }

    fn freeze(&mut self) {
        let next = MemTable::new(self.space.cells, self.written);
        let full = std::mem::replace(&mut self.mem, next);
        let bytes = (full.count as f64 * self.setup.bytes.memory) as u64;
        let written = self.user_bytes(full.count);
        let mem = MemId(self.mem_id);
        self.mem_id += 1;
        self.frozen.insert(mem, full);
        self.tell(Event::Frozen { mem, bytes, written, log_number: self.mem_id });
    }

    fn client_waits(&mut self, verdict: Verdict) {
        let Verdict::Wait(cause, until) = verdict else { unreachable!("it may pass") };
        self.client = ClientState::Waiting { cause, stop: until.is_none(), since: self.now };
        self.tally.stalled = true;
        self.wait += 1;
        if let Some(at) = until {
            self.queue_at(at, Happening::ClientWakes(self.wait));
        }
    }

    pub(super) fn client_wakes(&mut self) {
        let ClientState::Waiting { cause, stop, since } = self.client else {
            if self.client == ClientState::Resting {
                self.client_goes_on();
            }
            return;
        };
        if stop && self.now - since > LONG {
            self.long_waits += self.now - since;
        }
        let seconds = (self.now - since) as f64 / 1e9;
        let waited = self.tally.span.waited.entry(cause).or_default();
        match stop {
            true => waited.1 += seconds,
            false => waited.0 += seconds,
        }
        self.tally.stalled = false;
        self.wait += 1;
        self.client = ClientState::Computing;
        self.client_goes_on();
    }
}
