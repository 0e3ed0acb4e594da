//! The event log as the bench's history: who worked when, and when writers were held back.
//!
//! Keeps: only the last opening counts, because each one starts the log's clock anew; lines that
//! are no event, or events without a moment, are passed over. Nothing is told where the log is off, or so long that its
//! beginning is gone: half of a history would look like a whole one.

use std::path::Path;

use anyhow::{Context, Result};
use lithify_bench::{Happening, Moment};
use lithify_env::{Fs, OpenOpts, PosixFs, read_full_at};
use lithify_journal::files::FileName;
use serde_json::Value;

/// The history of the closed store in `dir`; `None` if its log does not have it all.
pub(super) fn read(dir: &Path) -> Result<Option<Vec<Moment>>> {
    let mut log = String::new();
    for name in [FileName::OldEvents, FileName::Events] {
        let file = match PosixFs::new().open(&dir.join(name.to_string()), OpenOpts::read()) {
            Ok(file) => file,
            Err(e) if e.source.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e.into()),
        };
        let mut part = vec![0; usize::try_from(file.len()?).context("the event log is too long")?];
        let length = read_full_at(&*file, &mut part, 0)?;
        log.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    Ok(moments(&log))
}

/// The moments of the last opening in `log`; `None` if it is not in there.
fn moments(log: &str) -> Option<Vec<Moment>> {
    let mut moments = None;
    for line in log.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["event"] == "opened" {
            moments = Some(Vec::new());
        }
        if let (Some(moments), Some(at), Some(what)) =
            (&mut moments, event["at_us"].as_u64(), happening(&event))
        {
            moments.push(Moment { seconds: at as f64 / 1e6, what });
        }
    }
    moments
}

fn happening(event: &Value) -> Option<Happening> {
    let level = |name: &str| u8::try_from(event[name].as_u64()?).ok();
    let job = event["job"].as_u64();
    Some(match event["event"].as_str()? {
        "flush_start" => Happening::FlushBegan { job: job? },
        "compaction_start" => {
            Happening::CompactionBegan { job: job?, from: level("from")?, to: level("to")? }
        }
        "part_start" => Happening::PartBegan { job: job? },
        // Its worker is through with it, well or not.
        "part_end" | "part_back" => Happening::PartEnded { job: job? },
        "flush_end" | "compaction_end" | "job_failed" | "job_stopped" => {
            Happening::JobEnded { job: job? }
        }
        "stall_begin" => Happening::StallBegan {
            cause: event["cause"].as_str()?.to_owned(),
            stop: event["kind"] == "stop",
        },
        "stall_end" => Happening::StallEnded,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_opening_counts() {
        let log = r#"{"at_us":1,"event":"opened"}
{"at_us":900,"event":"flush_start","job":1}
{"at_us":10,"event":"opened","policy":"hybrid"}
{"at_us":1000000,"event":"flush_start","job":1,"to":0,"bytes":5}
{"at_us":1200000,"event":"compaction_start","job":2,"kind":"Down","from":0,"to":1}
{"at_us":1210000,"event":"part_start","job":2,"part":1,"of":2,"bytes":7}
{"at_us":1220000,"event":"part_end","job":2,"part":1}
{"at_us":1300000,"event":"stall_begin","cause":"l0 runs","kind":"stop","bytes_per_second":0}
{"at_us":1400000,"event":"stall_end","cause":"l0 runs","micros":100000}
{"at_us":1500000,"event":"flush_end","job":1}
{"event":"events_dropped","count":3}
{"at_us":1600000,"event":"job_failed","job":2,"cause":"x"}
{"at_us":17"#;
        let told = moments(log).expect("it was opened");
        let what: Vec<_> = told.into_iter().map(|m| (m.seconds, m.what)).collect();
        let want = vec![
            (1.0, Happening::FlushBegan { job: 1 }),
            (1.2, Happening::CompactionBegan { job: 2, from: 0, to: 1 }),
            (1.21, Happening::PartBegan { job: 2 }),
            (1.22, Happening::PartEnded { job: 2 }),
            (1.3, Happening::StallBegan { cause: "l0 runs".into(), stop: true }),
            (1.4, Happening::StallEnded),
            (1.5, Happening::JobEnded { job: 1 }),
            (1.6, Happening::JobEnded { job: 2 }),
        ];
        assert_eq!(what, want);
    }
    #[test]
    fn without_its_opening_nothing_is_told() {
        assert!(moments("{\"at_us\":900,\"event\":\"flush_start\",\"job\":1}").is_none());
        assert!(moments("").is_none());
    }
}
