//! Merging and user cursors over plain sorted vectors, against sorting everything at once.

use std::ops::ControlFlow;

use lithify_base::{Error, Kind, MAX_SEQ, Result, Seq, Tag, bytewise};

use super::Cursor;
use super::merging::Merging;
use super::tombstones::Tombstones;
use super::user::User;

type Entry = (Vec<u8>, Tag, Vec<u8>);

/// A cursor over a sorted vector that fails at an entry if told to.
struct Plain {
    entries: Vec<Entry>,
    at: Option<usize>,
    fails_at: Option<usize>,
}

impl Plain {
    fn new(mut entries: Vec<Entry>) -> Plain {
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        Plain { entries, at: None, fails_at: None }
    }
    fn before(e: &Entry, user: &[u8], tag: Tag) -> bool {
        e.0.as_slice().cmp(user).then(tag.cmp(&e.1)).is_lt()
    }
    fn broken(&self) -> bool {
        self.at.is_some() && self.at == self.fails_at
    }
}

impl Cursor for Plain {
    fn narrow(&mut self, _prefix: Option<&[u8]>) {}
    fn seek(&mut self, user: &[u8], tag: Tag) {
        let i = self.entries.partition_point(|e| Plain::before(e, user, tag));
        self.at = (i < self.entries.len()).then_some(i);
    }
    fn seek_for_prev(&mut self, user: &[u8], tag: Tag) {
        let past =
            |e: &Entry| Plain::before(e, user, tag) || (e.0.as_slice() == user && e.1 == tag);
        self.at = self.entries.partition_point(past).checked_sub(1);
    }
    fn seek_to_first(&mut self) {
        self.at = (!self.entries.is_empty()).then_some(0);
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().checked_sub(1);
    }
    fn next(&mut self) {
        self.at = self.at.map(|i| i + 1).filter(|i| *i < self.entries.len());
    }
    fn prev(&mut self) {
        self.at = self.at.and_then(|i| i.checked_sub(1));
    }
    fn valid(&self) -> bool {
        self.at.is_some() && !self.broken()
    }
    fn user_key(&self) -> &[u8] {
        &self.entries[self.at.unwrap()].0
    }
    fn tag(&self) -> Tag {
        self.entries[self.at.unwrap()].1
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at.unwrap()].2
    }
    fn status(&self) -> Result<()> {
        if self.broken() { Err(Error::corruption("told to fail")) } else { Ok(()) }
    }
}

fn random_runs(rng: &mut fastrand::Rng) -> (Vec<Vec<Entry>>, Vec<Entry>) {
    let mut seq = 0;
    let mut runs: Vec<Vec<Entry>> = vec![Vec::new(); rng.usize(1..6)];
    for _ in 0..rng.usize(0..120) {
        seq += 1;
        let key = vec![b'a' + rng.u8(0..8); rng.usize(1..12)];
        let kind = if rng.u8(0..4) == 0 { Kind::Delete } else { Kind::Value };
        let run = rng.usize(0..runs.len());
        runs[run].push((key, Tag::new(seq, kind), seq.to_string().into_bytes()));
    }
    let all = Plain::new(runs.concat()).entries;
    (runs, all)
}

fn merged(runs: &[Vec<Entry>]) -> Merging<Plain> {
    Merging::new(bytewise(), runs.iter().cloned().map(Plain::new).collect())
}

#[test]
fn a_merge_is_one_sorted_sequence_in_every_direction() {
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let (runs, all) = random_runs(&mut rng);
        let mut m = merged(&runs);
        let mut at: Option<usize> = None;
        for _ in 0..200 {
            match rng.u8(0..8) {
                0 => {
                    m.seek_to_first();
                    at = (!all.is_empty()).then_some(0);
                }
                1 => {
                    m.seek_to_last();
                    at = all.len().checked_sub(1);
                }
                2 => {
                    let (user, tag) = (vec![b'a' + rng.u8(0..9); 3], Tag::seek(rng.u64(0..130)));
                    m.seek(&user, tag);
                    let i = all.partition_point(|e| Plain::before(e, &user, tag));
                    at = (i < all.len()).then_some(i);
                }
                3 if at.is_some() => {
                    let before = at.map(|i| &all[i].0);
                    at = at.map(|i| i + 1).filter(|i| *i < all.len());
                    let same = at.is_some() && at.map(|i| &all[i].0) == before;
                    assert_eq!(m.next_of_same(), same);
                }
                4..6 if at.is_some() => {
                    m.next();
                    at = at.map(|i| i + 1).filter(|i| *i < all.len());
                }
                _ if at.is_some() => {
                    m.prev();
                    at = at.and_then(|i| i.checked_sub(1));
                }
                _ => {}
            }
            assert_eq!(m.valid(), at.is_some());
            if let Some(i) = at {
                assert_eq!(
                    (m.user_key(), m.tag(), m.value()),
                    (&all[i].0[..], all[i].1, &all[i].2[..])
                );
            }
        }
    }
}

/// A child that fails takes the whole merge with it: what is left could be wrong (P4).
#[test]
fn a_failed_child_ends_the_merge_with_its_error() {
    let mut rng = fastrand::Rng::with_seed(8);
    for _ in 0..100 {
        let (runs, all) = random_runs(&mut rng);
        let mut cursors: Vec<Plain> = runs.into_iter().map(Plain::new).collect();
        let bad = rng.usize(0..cursors.len());
        if cursors[bad].entries.is_empty() {
            continue;
        }
        cursors[bad].fails_at = Some(rng.usize(0..cursors[bad].entries.len()));
        let mut m = Merging::new(bytewise(), cursors);
        m.seek_to_first();
        let mut seen = 0;
        while m.valid() {
            assert_eq!(m.tag(), all[seen].1, "right until it fails");
            seen += 1;
            m.next();
        }
        assert!(m.status().is_err() && seen < all.len());
    }
}

#[test]
fn a_walk_ends_where_a_child_fails() {
    let mut rng = fastrand::Rng::with_seed(10);
    for _ in 0..200 {
        let (runs, _) = random_runs(&mut rng);
        let whole = {
            let mut user = seen(merged(&runs), MAX_SEQ);
            user.seek_to_first();
            taken(&mut user)
        };
        let mut cursors: Vec<Plain> = runs.into_iter().map(Plain::new).collect();
        let bad = rng.usize(0..cursors.len());
        if cursors[bad].entries.is_empty() {
            continue;
        }
        cursors[bad].fails_at = Some(rng.usize(0..cursors[bad].entries.len()));
        let mut user = seen(Merging::new(bytewise(), cursors), MAX_SEQ);
        user.seek_to_first();
        let before = taken(&mut user);
        assert!(!user.valid() && user.status().is_err());
        assert_eq!(before, whole[..before.len()], "right until it fails");
    }
}

fn seen(merged: Merging<Plain>, at: Seq) -> User<Merging<Plain>> {
    let tombstones = Tombstones::new(bytewise(), MAX_SEQ);
    User::new(merged, bytewise(), at, tombstones, (None, None), None, None)
}

/// All that a walk gives.
fn taken(user: &mut User<Merging<Plain>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut given = Vec::new();
    user.walk(&mut |key, value| {
        given.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    given
}

#[test]
fn a_user_sees_the_newest_visible_value_of_each_key() {
    let mut rng = fastrand::Rng::with_seed(9);
    for _ in 0..300 {
        let (runs, all) = random_runs(&mut rng);
        let at: Seq = rng.u64(0..130);
        let mut visible: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut decided: Option<Vec<u8>> = None;
        for (key, tag, value) in all.iter().filter(|e| e.1.seq() <= at) {
            if decided.as_ref() == Some(key) {
                continue;
            }
            decided = Some(key.clone());
            if tag.kind() == Some(Kind::Value) {
                visible.push((key.clone(), value.clone()));
            }
        }
        let mut user = seen(merged(&runs), at);
        let mut i: Option<usize> = None;
        for _ in 0..100 {
            match rng.u8(0..8) {
                0 => {
                    user.seek_to_first();
                    i = (!visible.is_empty()).then_some(0);
                }
                1 => {
                    user.seek_to_last();
                    i = visible.len().checked_sub(1);
                }
                2 if i.is_some() => {
                    let (from, most) = (i.unwrap(), rng.usize(0..12));
                    let mut given = Vec::new();
                    user.walk(&mut |key, value| {
                        if given.len() == most {
                            return ControlFlow::Break(());
                        }
                        given.push((key.to_vec(), value.to_vec()));
                        ControlFlow::Continue(())
                    });
                    assert_eq!(given, visible[from..visible.len().min(from + most)]);
                    i = i.map(|i| i + most).filter(|i| *i < visible.len());
                }
                3..5 if i.is_some() => {
                    user.next();
                    i = i.map(|i| i + 1).filter(|i| *i < visible.len());
                }
                _ if i.is_some() => {
                    user.prev();
                    i = i.and_then(|i| i.checked_sub(1));
                }
                _ => {}
            }
            assert_eq!(user.valid(), i.is_some());
            if let Some(i) = i {
                assert_eq!((user.key(), user.value()), (&visible[i].0[..], &visible[i].1[..]));
            }
        }
    }
}
