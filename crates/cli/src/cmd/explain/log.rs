//! What the event log of a running process tells: which jobs it has begun and not ended, whether its
//! writes are held back, and how fast its jobs went so far.
//!
//! The log may end in half a line, lack lines that were dropped, or be damaged: what can't be read is
//! passed over.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use lithify_env::{OpenOpts, read_full_at};
use lithify_files::Dir;
use lithify_files::dir::OrTyped as _;
use lithify_journal::files::FileName;
use serde_json::Value;

use crate::text::escape;

/// Most bytes of the log's end that are read: the whole of it, unless its rotation changes.
const READ_MAX: u64 = 64 << 20;
/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// A line that is longer was not written here.
const LINE_MAX: usize = 64 << 10;

/// What happened since the database was last opened.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Session {
    pub(crate) policy: String,
    /// Seconds since 1970 at the opening, 0 if unknown, and the log's clock then.
    opened: (u64, u64),
    /// The log's clock at its last line.
    last: u64,
    /// Jobs begun and not ended, by number.
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) stall: Option<Stall>,
    /// By engine, how often the CPU went on with a part, and why it last did.
    pub(crate) replaced: BTreeMap<String, (u64, String)>,
    /// Bytes and microseconds of flushes and of compactions that ended.
    flushes: (u64, u64),
    compactions: (u64, u64),
}

/// A job in flight.
#[derive(Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) job: u64,
    pub(crate) what: String,
    pub(crate) bytes: u64,
    /// The log's clock at its begin, microseconds.
    pub(crate) began: u64,
    is_flush: bool,
}

/// A stall that has not ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Stall {
    pub(crate) cause: String,
    pub(crate) kind: String,
}

/// The last session in the log of the database in `dir`; `None` without a log.
pub(crate) fn read(dir: &Dir) -> Result<Option<Session>> {
    if dir.len_of(FileName::Events)?.is_none() {
        return Ok(None);
    }
    let file = dir.open_file(FileName::Events, OpenOpts::read())?;
    let mut at = file.len().or_typed()?.saturating_sub(READ_MAX);
    let mut session = Session::default();
    let (mut chunk, mut line) = (vec![0; CHUNK], Vec::new());
    loop {
        let count = read_full_at(&*file, &mut chunk, at).or_typed()?;
        at += count as u64;
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            // Of one that is too long so much is kept that it makes no sense.
            let room = LINE_MAX.saturating_sub(line.len()).min(part.len());
            line.extend_from_slice(&part[..room]);
            if part.ends_with(b"\n") {
                session.take_line(&line);
                line.clear();
            }
        }
        if count < chunk.len() {
            session.take_line(&line);
            return Ok(Some(session));
        }
    }
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
        let text = |name: &str| escape(event[name].as_str().unwrap_or("").as_bytes());
        let at = number("at_us");
        let job = number("job");
        match event["event"].as_str().unwrap_or("") {
            "opened" => {
                let opened = (number("unix_seconds"), at);
                *self = Session { policy: text("policy"), opened, ..Session::default() };
            }
            "flush_start" => {
                let bytes = number("bytes");
                let what = format!("Flush of {}", lithify_lsm::picture::readable(bytes));
                self.jobs.insert(job, Job { job, what, bytes, began: at, is_flush: true });
            }
            "compaction_start" => {
                let bytes = number("bytes");
                let what = format!(
                    "{} L{} -> L{} of {}: {}",
                    text("kind"),
                    number("from"),
                    number("to"),
                    lithify_lsm::picture::readable(bytes),
                    text("why"),
                );
                self.jobs.insert(job, Job { job, what, bytes, began: at, is_flush: false });
            }
            "flush_end" | "compaction_end" => {
                let Some(job) = self.jobs.remove(&job) else { return };
                let sum = if job.is_flush { &mut self.flushes } else { &mut self.compactions };
                *sum = (sum.0 + job.bytes, sum.1 + number("micros"));
            }
            "job_failed" | "job_stopped" => {
                self.jobs.remove(&job);
            }
            "stall_begin" => {
                self.stall = Some(Stall { cause: text("cause"), kind: text("kind") });
            }
            "stall_end" => self.stall = None,
            "engine_replaced" => {
                let engine = self.replaced.entry(text("engine")).or_default();
                *engine = (engine.0 + 1, text("why"));
            }
            _ => {}
        }
        self.last = self.last.max(at);
    }

    /// The log's clock, microseconds, when the world's says `unix`.
    pub(crate) fn now(&self, unix: Duration) -> u64 {
        let (seconds, at) = self.opened;
        let since = unix.saturating_sub(Duration::from_secs(seconds)).as_micros();
        match seconds {
            0 => self.last,
            _ => at.saturating_add(u64::try_from(since).unwrap_or(0)).max(self.last),
        }
    }

    /// Microseconds that `job` will take from `now` on, at the pace of those before it; `None` if
    /// there was none.
    pub(crate) fn left(&self, job: &Job, now: u64) -> Option<u64> {
        let (bytes, micros) = if job.is_flush { self.flushes } else { self.compactions };
        if bytes == 0 {
            return None;
        }
        let whole = u128::from(job.bytes) * u128::from(micros) / u128::from(bytes);
        let spent = now.saturating_sub(job.began);
        Some(u64::try_from(whole).unwrap_or(u64::MAX).saturating_sub(spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_of(log: &str) -> Session {
        let mut session = Session::default();
        log.lines().for_each(|line| session.take_line(line.as_bytes()));
        session
    }

    const LOG: &str = r#"{"at_us":5,"event":"opened","policy":"tiered","unix_seconds":1}
{"at_us":9,"event":"flush_start","job":1,"to":0,"bytes":7}
{"at_us":10,"event":"opened","policy":"bucket","unix_seconds":1000}
{"at_us":20,"event":"flush_start","job":1,"to":0,"bytes":1048576}
{"at_us":520,"event":"flush_end","job":1,"files":1,"bytes":1000,"micros":500}
{"at_us":600,"event":"flush_start","job":2,"to":0,"bytes":2097152}
{"at_us":700,"event":"compaction_start","job":3,"kind":"Down","from":0,"to":2,"bytes":1024,"why":"L0 \u001b is full"}
{"at_us":800,"event":"stall_begin","cause":"l0_files","kind":"stop","bytes_per_second":0}
not a line
{"at_us":850,"event":"job_failed","job":9,"cause":"unknown"}
{"at_us":900,"event":"flush_sta"#;

    #[test]
    fn the_last_session_tells_what_is_in_flight() {
        let s = session_of(LOG);
        assert_eq!((s.policy.as_str(), s.jobs.len(), s.last), ("bucket", 2, 850));
        assert_eq!(s.jobs[&2].what, "Flush of 2.0 MiB");
        assert_eq!(s.jobs[&3].what, "Down L0 -> L2 of 1.0 KiB: L0 \\x1b is full");
        assert_eq!(s.stall.as_ref().map(|s| s.cause.as_str()), Some("l0_files"));
        // Opened at 1000 s when the log's clock said 10 us.
        assert_eq!(s.now(Duration::from_millis(1_000_001)), 1010);
        assert_eq!(s.now(Duration::ZERO), 850, "a clock that was set back");
        // Twice the bytes take twice as long as the one before: 1000 us, of which 250 are over.
        assert_eq!(s.left(&s.jobs[&2], 850), Some(750));
        assert_eq!(s.left(&s.jobs[&2], 5000), Some(0));
        assert_eq!(s.left(&s.jobs[&3], 850), None, "no compaction has ended");
    }

    #[test]
    fn an_engine_that_was_replaced_is_told_with_why() {
        let of = |engine: &str, why: &str| {
            format!(
                "\n{{\"at_us\":910,\"event\":\"engine_replaced\",\"engine\":\"{engine}\",\"why\":\"{why}\"}}"
            )
        };
        let s = session_of(
            &(LOG.to_owned() + &of("a", "hangs") + &of("b", "") + &of("a", "failed: x")),
        );
        assert_eq!(s.replaced["a"], (2, "failed: x".to_owned()));
        assert_eq!(s.replaced.len(), 2);
        assert!(session_of(LOG).replaced.is_empty());
    }

    #[test]
    fn ends_end_what_began() {
        let more = "\n{\"at_us\":900,\"event\":\"stall_end\",\"cause\":\"l0_files\"}\n\
                    {\"at_us\":901,\"event\":\"job_stopped\",\"job\":3}\n[]\n7\n";
        let s = session_of(&(LOG.to_owned() + more));
        assert_eq!((s.jobs.len(), s.stall), (1, None));
        assert_eq!(session_of(""), Session::default());
    }
}
