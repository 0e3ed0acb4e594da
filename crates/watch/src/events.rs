//! What the event log of a running process tells: which jobs it has begun and not ended, whether its writes are held
//! back and were, and how fast its jobs went so far.
//!
//! Keeps: every byte of the log is read once, also over its rotation. The log may end in half a line, lack lines that
//! were dropped, or be damaged: what can't be read is passed over, and what is kept of it is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::Result;
use lithify_base::shown;
use lithify_env::{FileRef, OpenOpts, read_full_at};
use lithify_files::Dir;
use lithify_files::dir::OrTyped as _;
use lithify_journal::files::FileName;
use lithify_lsm::picture::readable;
use serde_json::Value;

/// Most bytes of a log's end that are read: the whole of it, unless its rotation changes.
const READ_MAX: u64 = 64 << 20;
/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// A line that is longer was not written here.
const LINE_MAX: usize = 64 << 10;
/// Jobs in flight, causes, engines and files of a job that are kept: more than a database that lives has.
const KEPT_MAX: usize = 1000;
/// Stalls that are kept after their end, the latest.
const STALLS_MAX: usize = 50;

/// What happened since the database was last opened, or since the first line that is left of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// The policy that plans compactions.
    pub policy: String,
    /// Seconds since 1970 at the opening, 0 if unknown, and the log's clock then: no two openings have the same.
    opened: (u64, u64),
    /// The same at the last line that says so.
    clock: (u64, u64),
    /// The log's clock at its last line.
    pub(crate) last: u64,
    /// Jobs begun and not ended, by the family's name (empty for the default one) and their number in it.
    pub jobs: BTreeMap<(String, u64), Job>,
    /// What holds writes of a family back now, by its name.
    pub stalls: BTreeMap<String, Stall>,
    /// Stalls that ended, the latest last.
    pub past: VecDeque<Past>,
    /// By cause, how often writes were held back and for how many microseconds, of stalls that ended.
    pub stalled: BTreeMap<String, (u64, u64)>,
    /// Microseconds of ended stops and of ended slow-downs.
    held: [u64; 2],
    /// By engine, how often the CPU went on with a part, and why it last did.
    pub replaced: BTreeMap<String, (u64, String)>,
    /// Jobs that failed, and why the last one did.
    pub failed: (u64, String),
    /// What flushes did.
    pub flushes: Done,
    /// What compactions did.
    pub compactions: Done,
}

/// Sums over jobs of a kind that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many.
    pub jobs: u64,
    /// Bytes that they had before them when they began.
    pub bytes: u64,
    /// Bytes that they wrote.
    pub written: u64,
    /// Microseconds that they took.
    pub micros: u64,
}

/// A job in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its number, unique in its family.
    pub job: u64,
    /// The family's name, empty for the default one.
    pub family: String,
    /// What it does, in words.
    pub what: String,
    /// Bytes that it reads.
    pub bytes: u64,
    /// The log's clock at its begin, microseconds.
    pub began: u64,
    /// Files that it takes, by number, as far as the log says so.
    pub inputs: Vec<u64>,
    is_flush: bool,
}

/// A stall that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// What holds writes back.
    pub cause: String,
    /// `stop` or `delay`.
    pub kind: String,
    /// The log's clock at its begin, microseconds.
    pub began: u64,
}

/// A stall that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// What held writes back, and how.
    pub stall: Stall,
    /// How long, microseconds.
    pub micros: u64,
}

/// A log that is being followed.
#[derive(Default)]
pub struct EventLog {
    /// The file that was read last, and up to where.
    file: Option<(u64, u64)>,
    at: u64,
    line: Vec<u8>,
    session: Session,
}

impl EventLog {
    /// Reads what is new in the log of the database in `dir`; what it tells of the last opening, or `None` without a
    /// log.
    ///
    /// # Errors
    /// If the log can't be read.
    pub fn catch_up(&mut self, dir: &Dir) -> Result<Option<&Session>> {
        if dir.len_of(FileName::Events)?.is_none() {
            *self = EventLog::default();
            return Ok(None);
        }
        let file = dir.open_file(FileName::Events, OpenOpts::read())?;
        if file.identity() != self.file || file.len().or_typed()? < self.at {
            self.end_of_the_one_before(dir)?;
            self.file = file.identity();
            self.at = 0;
        }
        self.read(&file)?;
        Ok(Some(&self.session))
    }

    /// The log that was set aside: what was not read of it, or all of it where none was read.
    fn end_of_the_one_before(&mut self, dir: &Dir) -> Result<()> {
        if dir.len_of(FileName::OldEvents)?.is_some() {
            let old = dir.open_file(FileName::OldEvents, OpenOpts::read())?;
            if self.file != old.identity() {
                (self.at, self.session) = (0, Session::default());
            }
            self.read(&old)?;
        } else {
            self.session = Session::default();
        }
        self.line.clear();
        Ok(())
    }

    fn read(&mut self, file: &FileRef) -> Result<()> {
        let len = file.len().or_typed()?;
        if len <= self.at {
            return Ok(());
        }
        self.at = self.at.max(len.saturating_sub(READ_MAX));
        let mut chunk = vec![0; CHUNK.min((len - self.at) as usize)];
        while self.at < len {
            let count = read_full_at(&**file, &mut chunk, self.at).or_typed()?;
            self.at += count as u64;
            self.take_bytes(&chunk[..count]);
            if count < chunk.len() {
                break;
            }
        }
        Ok(())
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Of one that is too long so much is kept that it makes no sense.
            let room = LINE_MAX.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..room]);
            if part.ends_with(b"\n") {
                self.session.take_line(&self.line);
                self.line.clear();
            }
        }
    }
}

/// Foreign text, fit for people.
fn plain(text: &str) -> String {
    shown(text).short().to_string()
}

impl Session {
    /// A line of the log; one that says nothing is passed over.
    fn take_line(&mut self, line: &[u8]) {
        if let Ok(event @ Value::Object(_)) = serde_json::from_slice(line) {
            self.take(&event);
        }
    }

    fn take(&mut self, event: &Value) {
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        let text = |name: &str| plain(event[name].as_str().unwrap_or(""));
        let at = number("at_us");
        let of = (text("family"), number("job"));
        match event["event"].as_str().unwrap_or("") {
            "opened" => {
                let opened = (number("unix_seconds"), at);
                let policy = text("policy");
                *self = Session { policy, opened, clock: opened, ..Session::default() };
            }
            // The log was begun anew, and what the opening told may be gone.
            "goes_on" => (self.policy, self.clock) = (text("policy"), (number("unix_seconds"), at)),
            "flush_start" | "compaction_start" if self.jobs.len() < KEPT_MAX => {
                let job = Job::begun(event, of.clone(), at);
                self.jobs.insert(of, job);
            }
            "flush_end" | "compaction_end" => self.ended(&of, event),
            "job_failed" | "job_stopped" => {
                self.jobs.remove(&of);
                if event["event"] == "job_failed" {
                    self.failed = (self.failed.0 + 1, text("cause"));
                }
            }
            "stall_begin" if self.stalls.len() < KEPT_MAX => {
                let stall = Stall { cause: text("cause"), kind: text("kind"), began: at };
                self.stalls.insert(of.0, stall);
            }
            "stall_end" => self.stall_ended(&of.0, number("micros")),
            "engine_replaced" if self.replaced.len() < KEPT_MAX => {
                let engine = self.replaced.entry(text("engine")).or_default();
                *engine = (engine.0.saturating_add(1), text("why"));
            }
            _ => {}
        }
        self.last = self.last.max(at);
    }

    fn ended(&mut self, of: &(String, u64), event: &Value) {
        let Some(job) = self.jobs.remove(of) else { return };
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        let (sum, written) = match job.is_flush {
            true => (&mut self.flushes, "bytes"),
            false => (&mut self.compactions, "written"),
        };
        sum.jobs += 1;
        sum.bytes = sum.bytes.saturating_add(job.bytes);
        sum.written = sum.written.saturating_add(number(written));
        sum.micros = sum.micros.saturating_add(number("micros"));
    }

    fn stall_ended(&mut self, family: &str, micros: u64) {
        let Some(stall) = self.stalls.remove(family) else { return };
        let held = &mut self.held[usize::from(stall.kind != "stop")];
        *held = held.saturating_add(micros);
        if self.stalled.len() < KEPT_MAX {
            let sum = self.stalled.entry(stall.cause.clone()).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(micros));
        }
        if self.past.len() == STALLS_MAX {
            self.past.pop_front();
        }
        self.past.push_back(Past { stall, micros });
    }

    /// The log's clock, microseconds, when the world's says `unix`, or up to two seconds less. The log has the world's in whole
    /// seconds, of which the next was about to begin for all we know: time that may not have passed would have to be
    /// taken back once the log tells how long a stall was.
    pub fn now(&self, unix: Duration) -> u64 {
        let (seconds, at) = self.clock;
        let since = unix.saturating_sub(Duration::from_secs(seconds.saturating_add(1))).as_micros();
        match seconds {
            0 => self.last,
            _ => at.saturating_add(u64::try_from(since).unwrap_or(0)).max(self.last),
        }
    }

    /// Whether both tell of the same opening.
    pub(crate) fn is_of_the_opening_of(&self, other: &Session) -> bool {
        self.opened == other.opened
    }

    /// The process is gone: nothing that it began goes on after `now`.
    pub(crate) fn end(&mut self, now: u64) {
        self.jobs.clear();
        let stalls: Vec<_> =
            self.stalls.iter().map(|(of, stall)| (of.clone(), stall.began)).collect();
        stalls.iter().for_each(|(of, began)| self.stall_ended(of, now.saturating_sub(*began)));
    }

    /// Microseconds that `job` will take from `now` on, at the pace of those before it; `None` if there was none.
    pub fn left(&self, job: &Job, now: u64) -> Option<u64> {
        let done = if job.is_flush { self.flushes } else { self.compactions };
        if done.bytes == 0 {
            return None;
        }
        let whole = u128::from(job.bytes) * u128::from(done.micros) / u128::from(done.bytes);
        let spent = now.saturating_sub(job.began);
        Some(u64::try_from(whole).unwrap_or(u64::MAX).saturating_sub(spent))
    }

    /// Microseconds that writes have been stopped and slowed up to `now`, over all families.
    pub fn held_back(&self, now: u64) -> [u64; 2] {
        let mut held = self.held;
        for stall in self.stalls.values() {
            let kind = &mut held[usize::from(stall.kind != "stop")];
            *kind = kind.saturating_add(now.saturating_sub(stall.began));
        }
        held
    }

    /// Bytes written to tables for each byte that was flushed; `None` before the first flush.
    pub fn write_amplification(&self) -> Option<f64> {
        let (flushed, merged) = (self.flushes.written, self.compactions.written);
        (flushed > 0).then(|| (flushed as f64 + merged as f64) / flushed as f64)
    }

    /// Bytes that flushes wrote, and all jobs.
    pub fn written(&self) -> [u64; 2] {
        let flushed = self.flushes.written;
        [flushed, flushed.saturating_add(self.compactions.written)]
    }

    /// The files that jobs in flight take, in order.
    pub fn busy(&self) -> Vec<u64> {
        let mut busy: Vec<u64> =
            self.jobs.values().flat_map(|job| job.inputs.iter().copied()).collect();
        busy.sort_unstable();
        busy
    }
}

impl Job {
    fn begun(event: &Value, (family, job): (String, u64), began: u64) -> Job {
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        let text = |name: &str| plain(event[name].as_str().unwrap_or(""));
        let bytes = number("bytes");
        let is_flush = event["event"] == "flush_start";
        let what = match is_flush {
            true => format!("Flush of {}", readable(bytes)),
            false => format!(
                "{} L{} -> L{} of {}: {}",
                text("kind"),
                number("from"),
                number("to"),
                readable(bytes),
                text("why"),
            ),
        };
        let inputs = event["inputs"].as_str().unwrap_or("");
        let inputs = inputs.split(' ').filter_map(|n| n.parse().ok()).take(KEPT_MAX).collect();
        Job { job, family, what, bytes, began, inputs, is_flush }
    }
}

#[cfg(test)]
mod tests;
