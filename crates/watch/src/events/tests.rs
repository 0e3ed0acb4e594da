//! What a log tells, from lines that were written by hand, in files that grow and are set aside.

use super::*;
use crate::tree::dir_of;

fn session_of(log: &str) -> Session {
    let mut session = Session::default();
    log.lines().for_each(|line| session.take_line(line.as_bytes()));
    session
}

fn of(job: u64) -> (String, u64) {
    (String::new(), job)
}

const LOG: &str = r#"{"at_us":5,"event":"opened","policy":"tiered","unix_seconds":1}
{"at_us":9,"event":"flush_start","job":1,"to":0,"bytes":7}
{"at_us":10,"event":"opened","policy":"bucket","unix_seconds":1000}
{"at_us":20,"event":"flush_start","job":1,"to":0,"bytes":1048576}
{"at_us":520,"event":"flush_end","job":1,"files":1,"bytes":1000,"micros":500}
{"at_us":600,"event":"flush_start","job":2,"to":0,"bytes":2097152}
{"at_us":700,"event":"compaction_start","job":3,"kind":"Down","from":0,"to":2,"bytes":1024,"why":"L0 \u001b is full","inputs":"8 5"}
{"at_us":800,"event":"stall_begin","cause":"l0_files","kind":"stop","bytes_per_second":0}
not a line
{"at_us":850,"event":"job_failed","job":9,"cause":"unknown"}
{"at_us":900,"event":"flush_sta"#;

#[test]
fn the_last_session_tells_what_is_in_flight() {
    let s = session_of(LOG);
    assert_eq!((s.policy.as_str(), s.jobs.len(), s.last), ("bucket", 2, 850));
    assert_eq!(s.jobs[&of(2)].what, "Flush of 2.0 MiB");
    assert_eq!(s.jobs[&of(3)].what, "Down L0 -> L2 of 1.0 KiB: L0 \\x1b is full");
    assert_eq!(s.busy(), [5, 8]);
    assert_eq!(s.stalls[""].cause, "l0_files");
    assert_eq!(s.failed, (1, "unknown".to_owned()));
    // Opened before 1001 s when the log's clock said 10 us.
    assert_eq!(s.now(Duration::from_millis(1_001_001)), 1010);
    assert_eq!(s.now(Duration::ZERO), 850, "a clock that was set back");
    // Twice the bytes take twice as long as the one before: 1000 us, of which 250 are over.
    assert_eq!(s.left(&s.jobs[&of(2)], 850), Some(750));
    assert_eq!(s.left(&s.jobs[&of(2)], 5000), Some(0));
    assert_eq!(s.left(&s.jobs[&of(3)], 850), None, "no compaction has ended");
    assert_eq!(s.held_back(850), [50, 0]);
}

/// Numbers of jobs are a family's own: before, one of another family ended or hid it.
#[test]
fn jobs_and_stalls_of_families_are_told_apart() {
    let more = r#"
{"at_us":860,"event":"compaction_start","family":"trees","job":3,"kind":"Down","from":1,"to":2,"bytes":9,"why":"x"}
{"at_us":870,"event":"stall_begin","family":"trees","cause":"debt","kind":"delay","bytes_per_second":7}
{"at_us":900,"event":"compaction_end","family":"trees","job":3,"written":9,"micros":40}
{"at_us":950,"event":"stall_end","cause":"l0_files","micros":150}"#;
    let s = session_of(&(LOG.to_owned() + more));
    assert_eq!(s.jobs.len(), 2, "{:?}", s.jobs);
    assert!(s.jobs.contains_key(&of(3)));
    assert_eq!(s.stalls.keys().collect::<Vec<_>>(), ["trees"]);
    assert_eq!(s.stalled["l0_files"], (1, 150));
    assert_eq!((s.past.len(), s.past[0].micros, &*s.past[0].stall.kind), (1, 150, "stop"));
    assert_eq!(s.held_back(970), [150, 100]);
    assert_eq!(s.write_amplification(), Some(1.009));
}

/// The log has the opening in whole seconds: before, one at 1000.9 s made every stall that was on 0.9 s longer than it was, and
/// the counter fell when it ended.
#[test]
fn a_stall_is_never_told_longer_than_it_was() {
    let opened = r#"{"at_us":10,"event":"opened","policy":"bucket","unix_seconds":1000}
{"at_us":100010,"event":"stall_begin","cause":"l0_files","kind":"stop","bytes_per_second":0}
"#;
    let on = session_of(opened);
    // Really opened at 1000.9 s, so that the stall began at 1001 s.
    let held =
        |s: &Session, unix_millis: u64| s.held_back(s.now(Duration::from_millis(unix_millis)));
    assert!(held(&on, 1_001_050)[0] <= 50_000, "{:?}", held(&on, 1_001_050));
    let hour = 3_600_000;
    assert!((3_598_000_000..=3_600_000_000).contains(&held(&on, 1_001_000 + hour)[0]));
    let end = r#"{"at_us":200010,"event":"stall_end","cause":"l0_files","micros":100000}"#;
    let over = session_of(&(opened.to_owned() + end));
    assert!(held(&over, 1_001_110)[0] >= held(&on, 1_001_099)[0]);
}

#[test]
fn an_engine_that_was_replaced_is_told_with_why() {
    let of = |engine: &str, why: &str| {
        format!(
            "\n{{\"at_us\":910,\"event\":\"engine_replaced\",\"engine\":\"{engine}\",\"why\":\"{why}\"}}"
        )
    };
    let s =
        session_of(&(LOG.to_owned() + &of("a", "hangs") + &of("b", "") + &of("a", "failed: x")));
    assert_eq!(s.replaced["a"], (2, "failed: x".to_owned()));
    assert_eq!(s.replaced.len(), 2);
    assert!(session_of(LOG).replaced.is_empty());
}

#[test]
fn ends_end_what_began() {
    let more = "\n{\"at_us\":900,\"event\":\"stall_end\",\"cause\":\"l0_files\"}\n\
                {\"at_us\":901,\"event\":\"job_stopped\",\"job\":3}\n[]\n7\n";
    let s = session_of(&(LOG.to_owned() + more));
    assert_eq!((s.jobs.len(), s.stalls.len()), (1, 0));
    assert_eq!(session_of(""), Session::default());
}

#[test]
fn a_log_is_read_once_also_over_its_rotation() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = dir_of(scratch.path()).unwrap();
    let events = scratch.path().join("EVENTS");
    let mut log = EventLog::default();
    assert!(log.catch_up(&dir).unwrap().is_none());
    let (first, rest) = LOG.split_at(300);
    std::fs::write(&events, first).unwrap();
    log.catch_up(&dir).unwrap();
    let more = |text: &str| {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().append(true).open(&events).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    more(rest);
    assert_eq!(log.catch_up(&dir).unwrap(), Some(&session_of(LOG)));
    let read = log.at;
    assert_eq!(log.catch_up(&dir).unwrap().unwrap().last, 850);
    assert_eq!(log.at, read);
    // What came before the rotation and was not looked at is not lost.
    more("rt\"}\n{\"at_us\":910,\"event\":\"job_stopped\",\"job\":2}\n");
    std::fs::rename(&events, scratch.path().join("EVENTS.old")).unwrap();
    std::fs::write(&events, "{\"at_us\":920,\"event\":\"job_stopped\",\"job\":3}\n").unwrap();
    let session = log.catch_up(&dir).unwrap().unwrap();
    assert_eq!((session.last, &*session.policy), (920, "bucket"));
    // The line that was half there has become whole, and begun a job.
    assert_eq!(session.jobs.keys().collect::<Vec<_>>(), [&of(0)]);
    // A first look reads both.
    let mut other = EventLog::default();
    assert_eq!(other.catch_up(&dir).unwrap(), log.catch_up(&dir).unwrap());
    // After another rotation no file has the opening. The second log says what is to be known of it, and takes
    // nothing away from one who knows more.
    std::fs::rename(&events, scratch.path().join("EVENTS.old")).unwrap();
    let next = r#"{"at_us":2000000,"event":"goes_on","policy":"bucket","unix_seconds":1002}
{"at_us":2000001,"event":"stall_begin","cause":"debt","kind":"stop","bytes_per_second":0}
"#;
    std::fs::write(&events, next).unwrap();
    let before = log.session.clone();
    let session = log.catch_up(&dir).unwrap().unwrap();
    assert!(session.is_of_the_opening_of(&before) && session.flushes == before.flushes);
    let mut newcomer = EventLog::default();
    let session = newcomer.catch_up(&dir).unwrap().unwrap();
    assert_eq!(session.policy, "bucket");
    let held = |unix| session.held_back(session.now(Duration::from_secs(unix)));
    assert_eq!((held(1013), held(1023)), ([9_999_999, 0], [19_999_999, 0]));
}

/// Bytes of any kind make no line, and no memory beyond a line's.
#[test]
fn garbage_is_passed_over() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut log = EventLog::default();
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..random.usize(..9000)).map(|_| random.u8(..)).collect();
        log.take_bytes(&bytes);
        log.take_bytes(
            b"{\"at_us\":18446744073709551615,\"event\":\"stall_begin\",\"job\":-1}\n\"",
        );
    }
    log.take_bytes(&vec![b'x'; 1 << 20]);
    assert!(log.line.len() <= LINE_MAX);
    assert!(log.session.jobs.is_empty());
}
