//! What happens in a database as events of the `tracing` crate: a listener like any other.
//!
//! Keeps: levels follow what a person on duty wants to know. What failed is a warning, what holds writes back and what
//! flushes and compactions do is information, what becomes of single tables and all else is detail.

use lithify_tree::{DbEvent, EventKind, EventListener};

/// Tells `tracing`.
pub(crate) struct Traced;

impl EventListener for Traced {
    fn on_event(&self, event: &DbEvent) {
        match event.kind() {
            EventKind::BackgroundError | EventKind::EventsDropped => {
                tell!(tracing::Level::WARN, event);
            }
            EventKind::FlushBegun
            | EventKind::FlushDone
            | EventKind::CompactionBegun
            | EventKind::CompactionDone
            | EventKind::StallBegun
            | EventKind::StallEnded
            | EventKind::Ingested
            | EventKind::SettingsChanged => tell!(tracing::Level::INFO, event),
            _ => tell!(tracing::Level::DEBUG, event),
        }
    }
}

/// An event of a level that is known when it is compiled; fields that it lacks are left out.
macro_rules! tell {
    ($level:expr, $event:ident) => {
        tracing::event!(
            target: "lithify",
            $level,
            event = $event.name(),
            job = $event.number("job"),
            bytes = $event.number("bytes"),
            micros = $event.number("micros"),
            cause = $event.text("cause"),
            family = $event.text("family"),
            "{}",
            $event
        )
    };
}
use tell;
