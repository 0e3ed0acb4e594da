//! A run as a list of choices, in a file: it does the same each time, on every machine.
//!
//! ```text
//! # what went wrong, for people
//! settings 6 0 2 1          the choices that set the database
//! level                     a life: from an empty disk, or from the image before
//! op                        its opening, then one line for each operation
//! op 0 3 1 12
//! crash 3 C4 0 1 1          ended so many entries of the log after its last line began, in this way
//! level
//! op
//! ```
//! The last level has no crash: it is opened, checked, and its operations are done.

use std::fmt::Write as _;

use crate::crash::Kind;

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What it is about.
    pub about: Vec<String>,
    /// Choices of the settings.
    pub settings: Vec<u32>,
    /// Lives, one after the other.
    pub levels: Vec<Level>,
}

/// One life of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Choices of its opening and its operations.
    pub ops: Vec<Vec<u32>>,
    /// How it ended; `None` for the last.
    pub crash: Option<Crash>,
}

/// The end of a life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Entries of the log between the beginning of the last operation and the crash. More than
    /// there are means after the last of them.
    pub at: usize,
    /// What was done to those on their way.
    pub kind: Kind,
    /// Its choices.
    pub choices: Vec<u32>,
}

impl Plan {
    /// As text.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let _ = writeln!(out, "# {line}");
        }
        line(&mut out, "settings", &self.settings);
        for level in &self.levels {
            out.push_str("level\n");
            level.ops.iter().for_each(|op| line(&mut out, "op", op));
            if let Some(crash) = &level.crash {
                let what = format!("crash {} {}", crash.at, crash.kind.name());
                line(&mut out, &what, &crash.choices);
            }
        }
        out
    }

    /// From text.
    ///
    /// # Errors
    /// Says which line is wrong, and how.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let mut plan = Plan::default();
        for (i, line) in text.lines().enumerate() {
            plan.take(line.trim()).map_err(|what| format!("line {}: {what}", i + 1))?;
        }
        if plan.levels.is_empty() {
            return Err("no line says `level`: there is nothing to do".to_owned());
        }
        Ok(plan)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(about) = line.strip_prefix('#') {
            self.about.push(about.trim().to_owned());
            return Ok(());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let level = self.levels.last_mut().ok_or("this line comes after a line `level`");
        match word {
            "" => {}
            "settings" => self.settings = numbers(rest)?,
            "level" => self.levels.push(Level::default()),
            "op" => level?.ops.push(numbers(rest)?),
            "crash" => {
                let mut words = rest.split_whitespace();
                let at = words.next().and_then(|w| w.parse().ok()).ok_or("crash needs a place")?;
                let kind = words.next().and_then(Kind::from_name);
                let kind = kind.ok_or("crash needs a kind, C0 to C10")?;
                let choices = numbers(&words.collect::<Vec<_>>().join(" "))?;
                level?.crash = Some(Crash { at, kind, choices });
            }
            other => return Err(format!("`{other}` is none of settings, level, op, crash")),
        }
        Ok(())
    }

    /// A plan from any bytes: what a fuzzer feeds. Each choice is a byte; 255 ends a line.
    pub fn from_bytes(bytes: &[u8]) -> Plan {
        let mut lines = bytes.split(|b| *b == 255);
        let list = |line: &[u8]| line.iter().map(|b| u32::from(*b)).collect::<Vec<u32>>();
        let settings = lines.next().map_or_else(Vec::new, list);
        let mut level = Level { ops: vec![Vec::new()], crash: None };
        let mut levels = Vec::new();
        for line in lines {
            match line {
                // A line that begins with 254 is a crash.
                [254, kind, place @ .., a, b] => {
                    let kind = Kind::ALL[usize::from(*kind) % Kind::ALL.len()];
                    let at = usize::from(u16::from_le_bytes([*a, *b]));
                    level.crash = Some(Crash { at, kind, choices: list(place) });
                    let next = Level { ops: vec![Vec::new()], crash: None };
                    levels.push(std::mem::replace(&mut level, next));
                }
                op => level.ops.push(list(op)),
            }
        }
        levels.push(level);
        Plan { about: Vec::new(), settings, levels }
    }
}

fn line(out: &mut String, word: &str, numbers: &[u32]) {
    out.push_str(word);
    for n in numbers {
        let _ = write!(out, " {n}");
    }
    out.push('\n');
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let parse = |word: &str| word.parse().map_err(|_| format!("`{word}` is no number"));
    text.split_whitespace().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_as_it_was_written() {
        let crash = Some(Crash { at: 17, kind: Kind::Recycled, choices: vec![4, 0, 2] });
        let plan = Plan {
            about: vec!["a lost write".to_owned()],
            settings: vec![6, 0, 1],
            levels: vec![
                Level { ops: vec![vec![], vec![3, 1]], crash },
                Level { ops: vec![vec![]], crash: None },
            ],
        };
        assert_eq!(Plan::parse(&plan.print()), Ok(plan));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| Plan::parse(text).unwrap_err();
        assert!(wrong("level\nop 1 x\n").starts_with("line 2: `x`"));
        assert!(wrong("op 1\n").contains("after a line `level`"));
        assert!(wrong("level\ncrash 3 C11\n").contains("C0 to C10"));
        assert!(wrong("").contains("nothing to do"));
    }

    #[test]
    fn any_bytes_are_a_plan() {
        let bytes = [1, 2, 255, 0, 9, 255, 254, 4, 7, 30, 0, 255, 5];
        let plan = Plan::from_bytes(&bytes);
        assert_eq!(plan.settings, [1, 2]);
        assert_eq!(plan.levels.len(), 2);
        let crash = plan.levels[0].crash.clone().unwrap();
        assert_eq!((crash.at, crash.kind, crash.choices), (30, Kind::Pages, vec![7]));
        assert_eq!(plan.levels[1].ops, [vec![], vec![5]]);
    }
}
