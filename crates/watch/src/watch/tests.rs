//! What one look after another makes of a log, by clocks and owners that are made up.

use super::*;

const OPENED: &str = r#"{"at_us":10,"event":"opened","policy":"bucket","unix_seconds":1000}
{"at_us":20,"event":"compaction_start","job":3,"kind":"Down","from":0,"to":2,"bytes":9,"why":"x"}
{"at_us":1000000,"event":"stall_begin","cause":"l0_files","kind":"stop","bytes_per_second":0}
"#;
const ENDED: &str = "{\"at_us\":3000000,\"event\":\"stall_end\",\"micros\":2000000}\n";

fn session(log: &str) -> Option<Session> {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("EVENTS"), log).unwrap();
    EventLog::default().catch_up(&dir_of(scratch.path()).unwrap()).unwrap().cloned()
}

/// A look `seconds` after 1001 s, where the log's clock stands as near as can be told.
fn look(before: &Look, seconds: u64, owner: Option<u32>, log: &str) -> Look {
    let (at, unix) = (Duration::from_secs(seconds), Duration::from_secs(1001 + seconds));
    before.next(at, owner, session(log), unix)
}

fn seconds(micros: [u64; 2]) -> [u64; 2] {
    micros.map(|micros| micros.div_ceil(1_000_000))
}

/// Before, a machine that slept an hour during a stall of 2 s took that hour back when the stall ended, and a counter that
/// falls is added whole once more by Prometheus.
#[test]
fn what_was_told_of_an_opening_is_not_taken_back() {
    let on = look(&Look::default(), 3600, Some(7), OPENED);
    assert_eq!(seconds(on.held), [3600, 0]);
    let over = look(&on, 3601, Some(7), &(OPENED.to_owned() + ENDED));
    assert_eq!((over.held, over.held_since(&on)), (on.held, [0, 0]));
    let next = r#"{"at_us":9,"event":"opened","policy":"bucket","unix_seconds":4700}"#;
    let next = look(&over, 3800, Some(8), next);
    assert_eq!((next.held, next.held_since(&over)), ([0, 0], [0, 0]), "another opening");
}

/// Before, writes of a process that was killed in a stall were held back for ever.
#[test]
fn nothing_of_a_process_that_is_gone_goes_on() {
    let on = look(&Look::default(), 11, Some(7), OPENED);
    assert_eq!((seconds(on.held), on.session.as_ref().unwrap().jobs.len()), ([11, 0], 1));
    let gone = look(&on, 12, None, OPENED);
    let ended = |look: &Look| {
        let session = look.session.as_ref().unwrap();
        session.stalls.is_empty() && session.jobs.is_empty() && session.stalled["l0_files"].0 == 1
    };
    assert!(ended(&gone) && gone.held == on.held);
    // Another one reads the logs first, for as long as that takes.
    let opening = look(&gone, 500, Some(8), OPENED);
    let opening_on = look(&opening, 600, Some(8), OPENED);
    assert!(ended(&opening) && ended(&opening_on) && opening_on.held == on.held);
    // It may have come between two looks.
    let at_once = look(&on, 12, Some(8), OPENED);
    assert!(ended(&at_once) && at_once.held == on.held);
    // A first look knows only what the log says.
    let first = look(&Look::default(), 500, None, OPENED);
    assert!(ended(&first) && first.held == [0, 0]);
    // The lock was not seen for a moment: what the log goes on to say is believed.
    let back = look(&gone, 13, Some(7), &(OPENED.to_owned() + ENDED));
    assert_eq!((back.held, back.gone), (on.held, None));
}
