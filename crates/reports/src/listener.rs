//! Telling others what happens: the notes of the event log, as values, to listeners of the user's.
//!
//! Notes are queued where they are made, often under a lock, and delivered by a job of their own, in
//! order, one at a time; so a listener may take its time and may ask the database anything.
//!
//! Keeps: a listener is never called under a lock of the store, nor on a thread that flushes, compacts
//! or commits. One that panics is not called again.
//! Leaves to others: what is noted.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lithify_env::Mono;
use lithify_env::sync::atomic::{AtomicBool, Ordering};
use lithify_env::sync::{Arc, Mutex};

use crate::exclusive::Exclusive;
use crate::field::Field;
use crate::reentry::Mark;

/// Events that wait to be delivered; those beyond are dropped, and their number is told instead.
const QUEUE_MAX: usize = 4096;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A flush begins: `job`, `to` (level), `bytes` of memtable.
    FlushBegun,
    /// A flush has written and synced its tables: `job`, `files`, `bytes`, `micros`.
    FlushDone,
    /// A compaction begins: `job`, `kind`, `from` and `to` (levels), `what`, `why`, `bytes`.
    CompactionBegun,
    /// A compaction has written its tables: `job`, `files`, `read`, `written`, `entries`, `dropped`,
    /// `micros`, `cpu_micros`.
    CompactionDone,
    /// Writes are held back: `cause`, `kind` (delay or stop), `bytes_per_second`.
    StallBegun,
    /// They are no longer: `cause`, `micros`.
    StallEnded,
    /// A table was made: `file` (number), `level`, `bytes`, `job`.
    TableCreated,
    /// A table was deleted: `file`.
    TableDeleted,
    /// Something failed in the background: `cause`. Writes may go on or not; the next one tells.
    BackgroundError,
    /// Tables were taken in from outside: `files` (how many), `bytes`, `sequence`.
    Ingested,
    /// A setting was changed: `name`, `value`.
    SettingsChanged,
    /// Listeners were too slow, and this many events are missing before this one: `count`.
    EventsDropped,
    /// Anything else; see [`DbEvent::name`].
    Other,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct DbEvent {
    at: Duration,
    name: String,
    fields: Vec<(String, Field)>,
}

impl DbEvent {
    fn new(at: Mono, name: &str, fields: &[(&str, Field)]) -> DbEvent {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        DbEvent { at: Duration::from_nanos(at.0), name: name.to_owned(), fields: fields.collect() }
    }
    /// When, on the clock of the event log.
    pub fn at(&self) -> Duration {
        self.at
    }
    /// Its name in the event log.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// What it is about.
    pub fn kind(&self) -> EventKind {
        match self.name.as_str() {
            "flush_start" => EventKind::FlushBegun,
            "flush_end" => EventKind::FlushDone,
            "compaction_start" => EventKind::CompactionBegun,
            "compaction_end" => EventKind::CompactionDone,
            "stall_begin" => EventKind::StallBegun,
            "stall_end" => EventKind::StallEnded,
            "table_created" => EventKind::TableCreated,
            "table_deleted" => EventKind::TableDeleted,
            "ingested" => EventKind::Ingested,
            "setting_changed" => EventKind::SettingsChanged,
            "events_dropped" => EventKind::EventsDropped,
            "job_failed" | "commit_failed" | "read_only" | "compactions_stuck" | "log_lost"
            | "delete_failed" => EventKind::BackgroundError,
            _ => EventKind::Other,
        }
    }
    /// A field that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        match self.field(field)? {
            Field::Number(n) => Some(*n),
            Field::Text(_) => None,
        }
    }
    /// A field that is text.
    pub fn text(&self, field: &str) -> Option<&str> {
        match self.field(field)? {
            Field::Text(text) => Some(text),
            Field::Number(_) => None,
        }
    }
    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

/// Its name and its fields, as `flush_end job=3 files=1`, fit for a terminal.
impl std::fmt::Display for DbEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        self.fields.iter().try_for_each(|(name, value)| match value {
            Field::Number(n) => write!(f, " {name}={n}"),
            Field::Text(text) => write!(f, " {name}=\"{}\"", lithify_base::shown(text)),
        })
    }
}

/// Hears what happens in a database; given to its `Builder`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use lithify::{Builder, DbEvent, EventKind, EventListener, Settings};
///
/// #[derive(Default)]
/// struct Flushes(AtomicU64);
/// impl EventListener for Flushes {
///     fn on_event(&self, event: &DbEvent) {
///         if event.kind() == EventKind::FlushDone {
///             self.0.fetch_add(event.number("bytes").unwrap_or(0), Ordering::Relaxed);
///         }
///     }
/// }
/// # fn main() -> lithify::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("lithify-listener-{}", std::process::id()));
/// let flushes = Arc::new(Flushes::default());
/// let db = Builder::new(Settings::default()).listener(flushes.clone()).open(&dir)?;
/// db.put(b"a", b"1")?;
/// db.flush()?;
/// db.close()?; // delivers what is left
/// assert!(flushes.0.load(Ordering::Relaxed) > 0);
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
pub trait EventListener: Send + Sync {
    /// Something happened, in the order in which it did, a moment ago. What happened in another column
    /// family than the default one has its name in the field `family`. Called by one thread at a
    /// time, and without any lock: it may read, write and wait. It cannot close
    /// the database: that is refused as `InvalidArgument`, and if it drops the last handle, the database is
    /// closed a moment later by another thread.
    fn on_event(&self, event: &DbEvent);
}

/// The listeners of one database and what they have not heard yet.
#[derive(Default)]
pub struct Listeners {
    all: Vec<Listener>,
    queue: Mutex<Queue>,
    /// A thread delivers.
    pub busy: Exclusive,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<DbEvent>,
    dropped: u64,
    /// When the last one was dropped.
    dropped_at: Mono,
}

impl Queue {
    /// The next event; behind them all, how many were dropped.
    fn next(&mut self) -> Option<DbEvent> {
        self.events.pop_front().or_else(|| self.missing())
    }

    /// How many were dropped since this was told last, if any.
    fn missing(&mut self) -> Option<DbEvent> {
        let count = std::mem::take(&mut self.dropped);
        let told = || DbEvent::new(self.dropped_at, "events_dropped", &[("count", count.into())]);
        (count > 0).then(told)
    }
}

struct Listener {
    who: Arc<dyn EventListener>,
    panicked: AtomicBool,
}

impl Listeners {
    /// With nothing to hear yet.
    pub fn new(all: Vec<Arc<dyn EventListener>>) -> Listeners {
        let listener = |who| Listener { who, panicked: AtomicBool::new(false) };
        Listeners { all: all.into_iter().map(listener).collect(), ..Listeners::default() }
    }

    /// True if there are no listeners.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// True if they have heard everything.
    pub fn have_heard_all(&self) -> bool {
        let queue = self.queue.lock();
        queue.events.is_empty() && queue.dropped == 0
    }

    /// Queues an event for them, without waiting.
    pub fn push(&self, at: Mono, name: &str, fields: &[(&str, Field)]) {
        if self.all.is_empty() {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.events.len() >= QUEUE_MAX {
            queue.dropped += 1;
            queue.dropped_at = at;
            return;
        }
        // Told where they are missing: the queue may have one more than its most.
        let missing = queue.missing();
        queue.events.extend(missing);
        queue.events.push_back(DbEvent::new(at, name, fields));
    }

    /// Delivers the next event; false if there is none.
    pub fn deliver_one(&self, mark: Mark) -> bool {
        let Some(event) = self.queue.lock().next() else { return false };
        for listener in &self.all {
            if listener.panicked.load(Ordering::Relaxed) {
                continue;
            }
            let _at = mark.set();
            let heard = catch_unwind(AssertUnwindSafe(|| listener.who.on_event(&event)));
            if heard.is_err() {
                listener.panicked.store(true, Ordering::Relaxed);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Last(Mutex<Vec<DbEvent>>);

    impl EventListener for Last {
        fn on_event(&self, event: &DbEvent) {
            self.0.lock().push(event.clone());
        }
    }

    #[test]
    fn who_is_too_slow_is_told_how_much_is_missing() {
        let heard = Arc::new(Last(Mutex::default()));
        let listeners = Listeners::new(vec![heard.clone()]);
        for n in 0..QUEUE_MAX as u64 + 3 {
            listeners.push(Mono(n), "flush_end", &[("bytes", n.into())]);
        }
        while listeners.deliver_one(Mark::fresh()) {}
        listeners.push(Mono(9000), "ingested", &[]);
        while listeners.deliver_one(Mark::fresh()) {}
        let heard = heard.0.lock();
        let kinds = |kind| heard.iter().filter(move |event| event.kind() == kind).count();
        assert_eq!((kinds(EventKind::FlushDone), kinds(EventKind::EventsDropped)), (QUEUE_MAX, 1));
        let told = &heard[QUEUE_MAX];
        assert_eq!((told.kind(), told.number("count")), (EventKind::EventsDropped, Some(3)));
        assert_eq!(told.at(), Duration::from_nanos(QUEUE_MAX as u64 + 2));
        assert_eq!(heard.last().map(DbEvent::kind), Some(EventKind::Ingested));
    }

    /// Otherwise a listener that never hears all there is would not hear of it at all.
    #[test]
    fn what_is_missing_is_told_where_it_is_missing() {
        let heard = Arc::new(Last(Mutex::default()));
        let listeners = Listeners::new(vec![heard.clone()]);
        for n in 0..QUEUE_MAX as u64 + 3 {
            listeners.push(Mono(n), "flush_end", &[("bytes", n.into())]);
        }
        assert!(listeners.deliver_one(Mark::fresh()));
        listeners.push(Mono(9000), "ingested", &[]);
        while listeners.deliver_one(Mark::fresh()) {}
        assert!(listeners.have_heard_all());
        let heard = heard.0.lock();
        let end: Vec<&str> = heard[QUEUE_MAX - 1..].iter().map(DbEvent::name).collect();
        assert_eq!(end, ["flush_end", "events_dropped", "ingested"]);
        assert_eq!(heard[QUEUE_MAX].number("count"), Some(3));
    }
}
