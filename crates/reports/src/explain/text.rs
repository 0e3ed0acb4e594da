//! An explanation for people: the verdict in one sentence, what would help in another, then the
//! figures and the jobs.

use std::fmt::{self, Write as _};
use std::time::Duration;

use lithify_base::{shown, shown_path};
use lithify_compact::PartStage;
use lithify_lsm::picture::readable;
use lithify_plan::Cause;

use super::{Bound, Explanation, JobReport, JobStage, PartReport, Wish, Writes};

/// Entries printed of each list.
const SHOWN: usize = 8;
/// Bytes printed of a key.
const KEY_MAX: usize = 24;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(headline) = self.headline() {
            writeln!(f, "{headline}")?;
        }
        if !self.automatic {
            let until = "nothing is compacted until a call asks for it";
            writeln!(f, "Automatic compaction is off (auto_compaction): {until}.")?;
        }
        for line in self.advice() {
            writeln!(f, "{line}")?;
        }
        for why in &self.engine_trouble {
            writeln!(f, "Engine {why}.")?;
        }
        if self.prepared > 0 {
            let are = if self.prepared == 1 { "transaction is" } else { "transactions are" };
            let until = "logs stay until they are committed or rolled back";
            writeln!(f, "{} {are} prepared: {until} (`lithify prepared list`).", self.prepared)?;
        }
        self.figures(f)?;
        self.tree(f)?;
        let title = match self.jobs.len() {
            0 => String::new(),
            n => format!("{n} at work, {} of {} compaction slots in use", self.running, self.slots),
        };
        list(f, &title, &self.jobs, job)?;
        list(f, "Wanted, and in the way of another", &self.blocked, |w| {
            format!("{}: {}; {}", w.kind, w.why, w.because)
        })?;
        list(f, self.due_title(), &self.due, due)?;
        self.price(f)
    }
}

impl Explanation {
    fn due_title(&self) -> &'static str {
        let few = self.running >= self.slots_now && self.slots_now < self.slots;
        match (&self.writes, self.live) {
            (Writes::Unknown, _) => {
                "Due by the files as they are now, unless a job takes them already"
            }
            (_, false) => "Due, once the database is opened for writing",
            (_, true) if few && self.slots_now == 1 => {
                "Due, and not pressing: one at a time is enough"
            }
            (_, true) if few => "Due, and no more at once are of use",
            (_, true) => "Due, and waiting for a slot",
        }
    }

    /// How writes fare, in a sentence; none where that is unknown.
    fn headline(&self) -> Option<String> {
        let bound = |cause: &str| {
            let bound = self.bounds.iter().find(|b| b.cause == cause);
            bound.map_or_else(|| cause.to_owned(), standing)
        };
        let lasts = self.lasts.map_or(String::new(), |d| format!(" for {}", time(d)));
        let are = if self.live { "are" } else { "would be" };
        Some(match &self.writes {
            Writes::Unknown => return None,
            Writes::Free if self.live => "Nothing holds writes back.".to_owned(),
            Writes::Free => "Nothing would hold writes back.".to_owned(),
            Writes::Paced { bytes_per_second } => format!(
                "Writes go at up to {}/s, which is what flushes and compactions sustain.",
                readable(*bytes_per_second)
            ),
            Writes::Slowed { cause, bytes_per_second } => {
                let rate =
                    bytes_per_second.map_or(String::new(), |r| format!(" to {}/s", readable(r)));
                format!("Writes {are} slowed{rate}{lasts}: {}.", bound(cause))
            }
            Writes::Stopped { cause } => format!("Writes {are} stopped{lasts}: {}.", bound(cause)),
            Writes::Refused { why } => format!("Writes fail: {why}"),
        })
    }

    /// What would help, and what fails at present.
    fn advice(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let trouble =
            [("Flushes fail", &self.flush_trouble), ("Compactions fail", &self.compaction_trouble)];
        for (what, why) in trouble {
            lines.extend(why.as_ref().map(|why| format!("{what}: {why}")));
        }
        for c in &self.hanging {
            let (call, file, lasts) = (c.call, shown_path(&c.path), time(c.lasts));
            lines.push(format!("The disk hangs: {call} of {file} has not come back for {lasts}."));
        }
        if !lines.is_empty() {
            return lines;
        }
        let (Writes::Slowed { cause, .. } | Writes::Stopped { cause }) = &self.writes else {
            return lines;
        };
        let of = |c: Cause| c.name() == *cause;
        let advice = if of(Cause::MemtableLimit) {
            "Flushes are slower than writes: a faster disk, more or larger memtables."
        } else if of(Cause::DiskSpace) {
            "What room is left is kept for compactions that free more: free space, or raise \
             disk_budget."
        } else if of(Cause::ReadAmp) {
            "Reads would look at too many runs: more compaction threads, or a slower writer."
        } else if self.live {
            self.advice_of_slots()
        } else {
            return lines;
        };
        lines.push(advice.to_owned());
        lines
    }

    /// What would help where compactions are what writers wait for.
    fn advice_of_slots(&self) -> &'static str {
        if self.running >= self.slots {
            "Every compaction slot is taken: more compaction threads, a faster disk, or a slower \
             writer."
        } else if self.price > 0.0 && self.running >= self.slots_now {
            "As many compactions run as are of use: a faster disk, or a slower writer."
        } else if self.blocked.iter().any(|w| !w.waits_for.is_empty()) {
            "Slots are free and jobs in the way: a policy whose jobs overlap (bucket, df-leveled) \
             would use them."
        } else if !self.due.is_empty() {
            "Compaction has slots left, and starts what is due below."
        } else if !self.blocked.is_empty() {
            "Slots are free, and what is wanted is held back, as told below."
        } else {
            "Compaction has slots left and nothing to start: the next commit will show."
        }
    }

    /// Why slots may stay empty on purpose.
    fn price(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.price == 0.0 {
            return Ok(());
        }
        let (price, now, all) = (self.price, self.slots_now, self.slots);
        writeln!(
            f,
            "\nA compaction starts once it brings {price:.2} bytes one level down for each byte that it \
             reads or writes;\n{now} of {all} slots are of use, as more compactions at once would move \
             no more bytes per second."
        )
    }

    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<36} {:>10} {:>10} {:>10}", "", "now", "slowed at", "stopped at")?;
        for b in &self.bounds {
            let figure = |n: Option<u64>| match n {
                Some(n) if b.in_bytes => readable(n),
                Some(n) => n.to_string(),
                None => "-".to_owned(),
            };
            let (now, slow, stop) = (figure(Some(b.now)), figure(b.slows_at), figure(b.stops_at));
            writeln!(f, "{:<36} {now:>10} {slow:>10} {stop:>10}", b.what)?;
        }
        Ok(())
    }

    fn tree(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.levels.is_empty() {
            return writeln!(f, "\nThe tree is empty.");
        }
        writeln!(f, "\nlevel  depth  files       bytes      target   need")?;
        for l in &self.levels {
            let target = l.target_bytes.map_or("-".to_owned(), readable);
            let need = format!("{}.{:02}", l.need / 1000, l.need % 1000 / 10);
            let due = if l.need >= 1000 && self.automatic { "  due" } else { "" };
            let (name, bytes) = (format!("L{}", l.level), readable(l.bytes));
            writeln!(
                f,
                "{name:<6} {:>5} {:>6} {bytes:>11} {target:>11} {need:>6}{due}",
                l.depth, l.files
            )?;
        }
        Ok(())
    }
}

/// A titled list, cut to what anyone reads.
fn list<T>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    all: &[T],
    line: impl Fn(&T) -> String,
) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}:")?;
    for one in all.iter().take(SHOWN) {
        writeln!(f, "  {}", line(one))?;
    }
    match all.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more"),
    }
}

/// Where a bound stands, in words.
fn standing(b: &Bound) -> String {
    let figure = |n: u64| if b.in_bytes { readable(n) } else { n.to_string() };
    let what = if b.in_bytes { b.what.trim_start_matches("bytes ") } else { b.what };
    let mut text = format!("{} {what}", figure(b.now));
    let at = |n: Option<u64>, what: &str| n.map(|n| format!("{what} at {}", figure(n)));
    let ends: Vec<String> =
        [at(b.slows_at, "slowed"), at(b.stops_at, "stopped")].into_iter().flatten().collect();
    if !ends.is_empty() {
        let _ = write!(text, " ({})", ends.join(", "));
    }
    text
}

fn job(j: &JobReport) -> String {
    let mut text = format!("job {}  {}", j.job, j.kind);
    let _ = match j.from {
        Some(from) => write!(text, " L{from} -> L{}", j.to),
        None => write!(text, " -> L{}", j.to),
    };
    if let Some((lo, hi)) = &j.keys {
        let _ = write!(text, ", {} to {}", key(lo), key(hi));
    }
    let _ = write!(text, ", {}", readable(j.bytes));
    let _ = match &j.stage {
        JobStage::Working if j.done >= j.bytes => write!(text, ", merged, syncing its files"),
        JobStage::Working => write!(text, ", {}%", j.percent()),
        JobStage::WaitsFor(jobs) => write!(text, ", built, commits after job {}", numbers(jobs)),
        JobStage::Committing => write!(text, ", built, commits"),
    };
    text.push_str(&parts(&j.parts));
    if let Some(running) = j.running {
        let _ = write!(text, " after {}", time(running));
    }
    if let Some(left) = j.left.filter(|l| !l.is_zero()) {
        let _ = write!(text, ", about {} left", time(left));
    }
    match j.holds_up {
        0 => {}
        1 => text.push_str("; a wish waits for it"),
        n => {
            let _ = write!(text, "; {n} wishes wait for it");
        }
    }
    text
}

/// How far each part is.
fn parts(parts: &[PartReport]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let stage = |p: &PartReport| match p.stage {
        PartStage::Waits => "waits".to_owned(),
        PartStage::Working => format!("{}%", p.percent()),
        PartStage::Built => "built".to_owned(),
    };
    format!(
        " in {} parts ({})",
        parts.len(),
        parts.iter().map(stage).collect::<Vec<_>>().join(", ")
    )
}

fn due(w: &Wish) -> String {
    let bytes = if w.bytes > 0 { format!(", {}", readable(w.bytes)) } else { String::new() };
    format!("{}{bytes}: {}", w.kind, w.why)
}

fn numbers(jobs: &[u64]) -> String {
    jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// A key in printable characters, not all of a long one.
fn key(key: &[u8]) -> String {
    match key.get(..KEY_MAX) {
        Some(front) if key.len() > KEY_MAX => format!("{}..", shown(front)),
        _ => shown(key).to_string(),
    }
}

/// A duration as people say it.
fn time(d: Duration) -> String {
    match d.as_secs() {
        0 => format!("{} ms", d.as_millis()),
        1..60 => format!("{:.1} s", d.as_secs_f64()),
        s => format!("{} min {:02} s", s / 60, s % 60),
    }
}
