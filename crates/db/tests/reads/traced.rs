//! A database tells `tracing` what happens in it: names, levels, fields and a line.

use std::fmt::Debug;

use lithify::{Builder, Settings};
use lithify_env::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What was told, as `LEVEL field=value ..`.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Heard {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.target() == "lithify"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn what_happens_is_told_to_tracing() {
    let heard = Heard::default();
    // Listeners are called by a thread of the database.
    tracing::subscriber::set_global_default(heard.clone()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let db = Builder::new(Settings::default()).tracing().open(scratch.path().join("db")).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let heard = heard.0.lock().clone();
    let line = |of: &str| {
        heard.iter().find(|line| line.contains(of)).unwrap_or_else(|| panic!("{heard:?}"))
    };
    let flush = line("event=\"flush_end\"");
    assert!(flush.starts_with(&Level::INFO.to_string()), "{flush}");
    assert!(flush.contains(" job=") && flush.contains(" bytes=") && flush.contains(" micros="));
    assert!(flush.contains("message=flush_end job="), "{flush}");
    assert!(line("event=\"table_created\"").starts_with(&Level::DEBUG.to_string()));
}
