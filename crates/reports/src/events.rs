//! The event log: what the database did and why, one JSON object a line, in `EVENTS`.
//!
//! Notes are queued in memory and written by the upkeep job, so that no writer or worker ever
//! waits for the log, and a log that can't be written never harms the data.

use std::fmt::Write as _;

use lithify_base::foreign::{escape_json, is_hidden};
use lithify_env::Mono;
use lithify_env::sync::Mutex;

use crate::field::Field;
use crate::listener::Listeners;

/// Notes kept until the upkeep job writes them; those beyond are dropped and counted.
const QUEUE_MAX: usize = 4096;

/// The queue of lines not yet written.
#[derive(Default)]
pub struct Events {
    enabled: bool,
    listeners: Listeners,
    lines: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    text: String,
    count: usize,
    dropped: u64,
    /// Time of the first line that is queued, and of the last one, queued or not.
    first: Mono,
    last: Mono,
}

impl Events {
    /// A queue; its lines are to be written if `enabled`.
    pub fn new(enabled: bool) -> Events {
        Events { enabled, ..Events::default() }
    }

    /// Listeners hear what is noted, whether it is written or not.
    pub fn with_listeners(self, listeners: Listeners) -> Events {
        Events { listeners, ..self }
    }
    /// Those who hear what is noted.
    #[inline]
    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Adds a line. `at` is the database's monotonic clock.
    pub fn note(&self, at: Mono, event: &str, fields: &[(&str, Field)]) {
        self.listeners.push(at, event, fields);
        if !self.enabled {
            return;
        }
        let mut q = self.lines.lock();
        if q.count >= QUEUE_MAX {
            q.dropped += 1;
            return;
        }
        q.count += 1;
        // The thread that looked at the clock first may come second: lines stand in the order of time.
        let at = at.max(q.last);
        q.last = at;
        if q.count == 1 {
            q.first = at;
        }
        line(&mut q.text, at, event, fields);
    }

    /// Takes what is queued, to be written; and the time of its first line.
    pub fn drain(&self) -> (String, Mono) {
        let mut q = self.lines.lock();
        let last = q.last;
        let q = std::mem::replace(&mut *q, Queue { last, ..Queue::default() });
        let mut text = q.text;
        if q.dropped > 0 {
            let _ = writeln!(text, "{{\"event\":\"events_dropped\",\"count\":{}}}", q.dropped);
        }
        (text, q.first)
    }
}

/// Appends a line of the log.
pub fn line(out: &mut String, at: Mono, event: &str, fields: &[(&str, Field)]) {
    let _ = write!(out, "{{\"at_us\":{},\"event\":\"{event}\"", at.0 / 1000);
    for (name, value) in fields {
        let _ = write!(out, ",\"{name}\":");
        let _ = match value {
            Field::Number(n) => write!(out, "{n}"),
            Field::Text(s) => {
                quote(out, s);
                Ok(())
            }
        };
    }
    out.push_str("}\n");
}

/// Appends `s` as a JSON string that is fit for a terminal.
fn quote(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if is_hidden(c) => escape_json(c, out),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_of_json() {
        let events = Events::new(true);
        events.note(
            Mono(5_000_000),
            "stall_begin",
            &[("cause", "l0 \"runs\"\n\u{1b}\u{7f}\u{202e}".into()), ("runs", 36.into())],
        );
        assert_eq!(
            events.drain().0,
            "{\"at_us\":5000,\"event\":\"stall_begin\",\"cause\":\"l0 \\\"runs\\\"\\n\\u001b\\u007f\\u202e\",\
             \"runs\":36}\n"
        );
        assert_eq!(events.drain().0, "");
    }

    #[test]
    fn time_runs_forward() {
        let events = Events::new(true);
        events.note(Mono(9000), "late", &[]);
        let first = events.drain().0;
        events.note(Mono(5000), "early", &[]);
        events.note(Mono(11_000), "later", &[]);
        assert_eq!(first, "{\"at_us\":9,\"event\":\"late\"}\n");
        let rest = "{\"at_us\":9,\"event\":\"early\"}\n{\"at_us\":11,\"event\":\"later\"}\n";
        assert_eq!(events.drain(), (rest.to_owned(), Mono(9000)));
    }

    #[test]
    fn a_full_queue_counts_what_it_drops() {
        let events = Events::new(true);
        for _ in 0..QUEUE_MAX + 3 {
            events.note(Mono(0), "x", &[]);
        }
        assert!(events.drain().0.ends_with("{\"event\":\"events_dropped\",\"count\":3}\n"));
    }
}
