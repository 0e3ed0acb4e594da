//! How the files of a database grow, by looks at their sizes: logs as writes come, tables as flushes and compactions
//! write.
//!
//! Keeps: a file that goes takes nothing away, so what grew is what was written. Files that came and went between two
//! looks are not seen, nor are tables in other directories; where the event log tells of more bytes than files grew by,
//! those count. So how many tables there are is not asked here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use lithify_base::FileId;
use lithify_files::Dir;
use lithify_files::wal::end_of_log;
use lithify_journal::files::FileName;
use lithify_lsm::picture::readable;

/// Sizes of logs and of tables, by number.
type Sizes = [BTreeMap<u64, u64>; 2];

/// How many files there are, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was seen of growing files.
#[derive(Default)]
pub struct Growth {
    /// When the first and the last look were.
    looks: Option<(Duration, Duration)>,
    sizes: Sizes,
    /// What was added since the look before, and in how long.
    now: [u64; 2],
    span: Duration,
    /// What was added since the first look.
    all: [u64; 2],
}

impl Growth {
    /// A look at `now`, counted from any moment on. Since the look before, jobs told that so many bytes came in by
    /// flushes, and so many were written to tables.
    ///
    /// # Errors
    /// If the directory can't be listed.
    pub fn look(&mut self, dir: &Dir, told: [u64; 2], now: Duration) -> Result<()> {
        self.take(sizes(dir)?, told, now);
        Ok(())
    }

    fn take(&mut self, sizes: Sizes, told: [u64; 2], now: Duration) {
        let (first, last) = self.looks.unwrap_or((now, now));
        let is_first = self.looks.is_none();
        self.looks = Some((first, now));
        self.span = now.saturating_sub(last);
        for (kind, now) in sizes.iter().enumerate() {
            // What is there already was not written now.
            let added = added(&self.sizes[kind], now).max(told[kind]);
            let added = if is_first { 0 } else { added };
            self.now[kind] = added;
            self.all[kind] += added;
        }
        self.sizes = sizes;
    }

    /// Bytes of logs and of tables that were added between the last two looks.
    pub fn added(&self) -> [u64; 2] {
        self.now
    }
    /// The same since the first look.
    pub fn total(&self) -> [u64; 2] {
        self.all
    }
    /// The time between the last two looks.
    pub fn span(&self) -> Duration {
        self.span
    }
    /// The logs that there are.
    pub fn logs(&self) -> Amount {
        Amount { files: self.sizes[0].len() as u64, bytes: self.sizes[0].values().sum() }
    }
    /// Bytes that tables grew by for each that logs did, since the first look; `None` as long as no log grew.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.all[0] > 0).then(|| self.all[1] as f64 / self.all[0] as f64)
    }

    /// All of it as text, where there are these tables.
    pub fn told(&self, tables: Amount) -> String {
        let mut text = String::new();
        let (first, last) = self.looks.unwrap_or_default();
        for (kind, (name, there)) in [("logs", self.logs()), ("tables", tables)].iter().enumerate()
        {
            let rate = self.now[kind] as f64 / self.span.as_secs_f64().max(1e-3);
            let plural = if there.files == 1 { "" } else { "s" };
            let _ = writeln!(
                text,
                "{name:7} {} file{plural}, {}; growing {}/s, {} in {:.0} s",
                there.files,
                readable(there.bytes),
                readable(rate as u64),
                readable(self.all[kind]),
                (last - first).as_secs_f64(),
            );
        }
        if let Some(amplification) = self.write_amplification() {
            let _ = writeln!(text, "write amplification {amplification:.1}");
        }
        text
    }
}

/// Bytes that files have in `now` beyond what they had in `before`. One that is gone takes nothing away.
fn added(before: &BTreeMap<u64, u64>, now: &BTreeMap<u64, u64>) -> u64 {
    let more = |(number, size): (&u64, &u64)| {
        size.saturating_sub(before.get(number).copied().unwrap_or(0))
    };
    now.iter().map(more).sum()
}

fn sizes(dir: &Dir) -> Result<Sizes> {
    let mut sizes = Sizes::default();
    for entry in dir.list_if_there()?.unwrap_or_default() {
        match entry.file {
            // A log may be longer than what was written to it.
            Some(FileName::Wal(number)) => {
                sizes[0].insert(number, end_of_log(dir, FileId(number))?);
            }
            Some(FileName::Table(number)) => drop(sizes[1].insert(number, entry.len)),
            _ => {}
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(u64, u64)]) -> BTreeMap<u64, u64> {
        list.iter().copied().collect()
    }

    #[test]
    fn growth_is_what_came_and_not_what_went() {
        let before = files(&[(1, 100), (2, 50)]);
        assert_eq!(added(&before, &files(&[(2, 80), (3, 7)])), 37);
        assert_eq!(added(&before, &before), 0);
        assert_eq!(added(&files(&[]), &before), 150);
    }

    #[test]
    fn what_was_there_before_the_first_look_did_not_grow() {
        let mut growth = Growth::default();
        let at = Duration::from_secs;
        growth.take([files(&[(1, 100)]), files(&[(2, 1000)])], [7, 7], at(5));
        assert_eq!((growth.total(), growth.write_amplification()), ([0, 0], None));
        growth.take([files(&[(1, 150)]), files(&[(3, 100)])], [0, 99], at(7));
        assert_eq!((growth.added(), growth.span()), ([50, 100], at(2)));
        growth.take([files(&[(4, 10)]), files(&[(3, 100)])], [0, 0], at(8));
        assert_eq!((growth.added(), growth.total()), ([10, 0], [60, 100]));
        let told = growth.told(Amount { files: 2, bytes: 700 });
        assert!(told.starts_with("logs    1 file, 10 B; growing 10 B/s, 60 B in 3 s\n"), "{told}");
        assert!(told.contains("\ntables  2 files, 700 B; growing 0 B/s, 100 B in 3 s\n"), "{told}");
        assert!(told.ends_with("write amplification 1.7\n"), "{told}");
        // Logs and tables that came and went in between.
        growth.take([files(&[(4, 10)]), files(&[(3, 100)])], [500, 900], at(9));
        assert_eq!(growth.total(), [560, 1000]);
    }
}
