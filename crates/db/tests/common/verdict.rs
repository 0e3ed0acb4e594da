//! What may be found after a crash, and whether it was.
//!
//! A writer's *journal* says which of its operations were begun and which acknowledged; an
//! operation is noted as begun before it is called and as acknowledged after it returned, so
//! whatever the database did lies between the two. What is found must be the state after some
//! prefix of the writer's operations, up to and including number R, where
//!
//! - R is at or after the last operation acknowledged at `Os` or `Sync` (or the last flush): a
//!   kill keeps what the operating system was handed;
//! - R is at or after every operation of which something is visible: no holes;
//! - R is at or after every operation that was acknowledged before an operation of *any* writer
//!   began that is known to have survived: one log, one order;
//! - R is at or before the last operation that was begun.
//!
//! Writes without a log are the exception the user asked for: each may be missing until a flush
//! was acknowledged, but what follows it in the log counts all the same. So a key may show the
//! last logged change at or before R, or any unlogged one after that change.
//!
//! ```text
//!   put k=1 Os   put k=2 NoWal   put k=3 NoWal   put j=4 Buffered      R = the last:
//!                                                                      k in {1, 2, 3}, j = 4
//! ```

use std::collections::{BTreeMap, BTreeSet};

use lithify::Durability;

use super::Content;
use super::load::{Op, index_of, op, prefix};

/// What is known of one round.
pub struct Journal {
    pub round: u64,
    /// Begun and acknowledged operations in the order in which they were noted.
    pub notes: Vec<Note>,
}

/// One line of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub writer: u8,
    pub index: u32,
    pub what: What,
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It may have happened.
    Begun,
    /// It happened, and had travelled as far as it asked to.
    Acknowledged,
    /// The database says it never happened and never will.
    Refused,
}

impl Note {
    /// Bytes of a note in a file.
    pub const LEN: usize = 8;

    pub fn encode(self) -> [u8; Note::LEN] {
        let [a, b, c, d] = self.index.to_le_bytes();
        [self.writer, self.what as u8, a, b, c, d, 0xa5, 0x5a]
    }
    pub fn decode(bytes: &[u8]) -> Note {
        let &[writer, what, a, b, c, d, 0xa5, 0x5a] = bytes else {
            panic!("the journal holds a torn note: {bytes:?}");
        };
        let what = match what {
            0 => What::Begun,
            1 => What::Acknowledged,
            _ => What::Refused,
        };
        Note { writer, what, index: u32::from_le_bytes([a, b, c, d]) }
    }
}

/// What one writer's operations did.
struct Story {
    writer: u8,
    ops: Vec<Op>,
    /// Position of each operation's first note.
    begun_at: Vec<usize>,
    /// Position of each operation's acknowledgement.
    acknowledged_at: Vec<Option<usize>>,
    /// Operations that must have left no trace.
    refused: BTreeSet<usize>,
    /// Operations below this number must have survived, as far as they were logged.
    least: usize,
    /// Something of this operation is visible.
    seen: Option<usize>,
}

/// What a key may show.
#[derive(Default)]
struct May {
    logged: Option<Vec<u8>>,
    unlogged: Vec<Option<Vec<u8>>>,
}

impl May {
    fn show(&self, found: Option<&Vec<u8>>) -> bool {
        self.logged.as_ref() == found || self.unlogged.iter().any(|v| v.as_ref() == found)
    }
}

/// How much of each writer's story was found: operations begun and the number kept.
pub type Kept = BTreeMap<u8, (usize, usize)>;

/// Whether `found` may be there after `before` and the operations of the journal.
///
/// # Errors
/// What should not be, for people.
pub fn judge(before: &Content, journal: &Journal, found: &Content) -> Result<Kept, String> {
    let mut stories = stories(journal, found);
    spread(&mut stories);
    let mut prefixes: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut kept = Kept::new();
    for story in &stories {
        let mine = of(found, story.writer);
        let r = story.match_prefix(of(before, story.writer), &mine)?;
        kept.insert(story.writer, (story.ops.len(), r));
        prefixes.insert(prefix(story.writer));
    }
    // A writer that wrote nothing has what was there before.
    for (key, value) in found {
        let owned = prefixes.iter().any(|p| key.starts_with(p));
        if !owned && before.get(key) != Some(value) {
            return Err(format!("{} was never written", key.escape_ascii()));
        }
    }
    let lost = before
        .keys()
        .find(|k| !found.contains_key(*k) && !prefixes.iter().any(|p| k.starts_with(p)));
    match lost {
        Some(key) => Err(format!("{} is gone, and no writer touched it", key.escape_ascii())),
        None => Ok(kept),
    }
}

fn of(content: &Content, writer: u8) -> Content {
    let prefix = prefix(writer);
    let range = content.range(prefix.clone()..).take_while(|(k, _)| k.starts_with(&prefix));
    range.map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn stories(journal: &Journal, found: &Content) -> Vec<Story> {
    let mut stories: BTreeMap<u8, Story> = BTreeMap::new();
    for (at, note) in journal.notes.iter().enumerate() {
        let story = stories.entry(note.writer).or_insert_with(|| Story {
            writer: note.writer,
            ops: Vec::new(),
            begun_at: Vec::new(),
            acknowledged_at: Vec::new(),
            refused: BTreeSet::new(),
            least: 0,
            seen: None,
        });
        let index = note.index as usize;
        match note.what {
            What::Begun => {
                assert_eq!(index, story.ops.len(), "a writer works in order");
                story.ops.push(op(journal.round, note.writer, note.index));
                story.begun_at.push(at);
                story.acknowledged_at.push(None);
            }
            What::Acknowledged => {
                story.acknowledged_at[index] = Some(at);
                if story.ops[index].keeps_on_kill() {
                    story.least = index + 1;
                }
            }
            What::Refused => drop(story.refused.insert(index)),
        }
    }
    let mut stories: Vec<Story> = stories.into_values().collect();
    for story in &mut stories {
        let values = of(found, story.writer);
        story.seen =
            values.values().filter_map(|v| index_of(v, journal.round)).map(|i| i as usize).max();
        story.least = story.least.max(story.seen.map_or(0, |i| i + 1));
    }
    stories
}

/// What must have survived because something later did, of any writer.
fn spread(stories: &mut [Story]) {
    loop {
        let latest = stories.iter().filter_map(Story::surely_began).max();
        let Some(latest) = latest else { return };
        let mut changed = false;
        for story in &mut *stories {
            let earlier = |at: &Option<usize>| at.is_some_and(|at| at < latest);
            let count = story.acknowledged_at.iter().rposition(earlier).map_or(0, |i| i + 1);
            if count > story.least {
                story.least = count;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

impl Story {
    /// When the last operation began that certainly survived.
    fn surely_began(&self) -> Option<usize> {
        let logged = |i: &usize| {
            !self.refused.contains(i)
                && self.ops[*i].durability().is_some_and(|d| d > Durability::NoWal)
        };
        let last = (0..self.least).rev().find(logged).max(self.seen);
        last.map(|i| self.begun_at[i])
    }

    /// The number of operations after which `found` may be there.
    fn match_prefix(&self, before: Content, found: &Content) -> Result<usize, String> {
        let mut may: BTreeMap<Vec<u8>, May> = before
            .into_iter()
            .map(|(k, v)| (k, May { logged: Some(v), unlogged: Vec::new() }))
            .collect();
        for key in found.keys() {
            may.entry(key.clone()).or_default();
        }
        let wrong = |may: &BTreeMap<Vec<u8>, May>| {
            may.iter().filter(|(k, m)| !m.show(found.get(*k))).map(|(k, _)| k.clone()).next()
        };
        let mut first_wrong = None;
        for count in 0..=self.ops.len() {
            if count > 0 {
                self.apply(count - 1, &mut may);
            }
            if count < self.least {
                continue;
            }
            match wrong(&may) {
                None => return Ok(count),
                Some(key) => first_wrong.get_or_insert(key),
            };
        }
        let key = first_wrong.unwrap_or_default();
        Err(format!(
            "writer {} began {} operations, {} of which must be there; no such prefix explains \
             {} = {:?}; its changes: {}",
            self.writer,
            self.ops.len(),
            self.least,
            key.escape_ascii(),
            found.get(&key).map(|v| v.escape_ascii().to_string()),
            self.changes_of(&key)
        ))
    }

    fn apply(&self, index: usize, may: &mut BTreeMap<Vec<u8>, May>) {
        if self.refused.contains(&index) {
            return;
        }
        match &self.ops[index] {
            Op::Write { changes, durability } => {
                for (key, value) in changes {
                    let of_key = may.entry(key.clone()).or_default();
                    if *durability == Durability::NoWal {
                        of_key.unlogged.push(value.clone());
                    } else {
                        *of_key = May { logged: value.clone(), unlogged: Vec::new() };
                    }
                }
            }
            Op::DeleteRange { from, to, .. } => {
                for (_, of_key) in may.range_mut(from.clone()..to.clone()) {
                    *of_key = May::default();
                }
            }
            // An acknowledged flush made the unlogged writes before it safe, too.
            Op::Flush | Op::Compact if self.acknowledged_at[index].is_some() => {
                for of_key in may.values_mut() {
                    if let Some(last) = of_key.unlogged.pop() {
                        *of_key = May { logged: last, unlogged: Vec::new() };
                    }
                }
            }
            Op::Flush | Op::Compact => {}
        }
    }

    fn changes_of(&self, key: &[u8]) -> String {
        let mut text = String::new();
        for (i, op) in self.ops.iter().enumerate() {
            let what = match op {
                Op::Write { changes, durability } => changes
                    .iter()
                    .filter(|(k, _)| k == key)
                    .map(|(_, v)| {
                        let verb = if v.is_some() { "put" } else { "delete" };
                        format!("{verb} {durability:?}")
                    })
                    .collect::<Vec<_>>()
                    .join("+"),
                Op::DeleteRange { from, to, durability } if key >= &from[..] && key < &to[..] => {
                    format!("delete_range {durability:?}")
                }
                Op::Flush => "flush".to_owned(),
                Op::Compact => "compact".to_owned(),
                Op::DeleteRange { .. } => String::new(),
            };
            if !what.is_empty() {
                let known = match self.acknowledged_at[i] {
                    Some(_) => "",
                    None if self.refused.contains(&i) => " refused",
                    None => "?",
                };
                text.push_str(&format!(" {i}:{what}{known}"));
            }
        }
        text
    }
}
