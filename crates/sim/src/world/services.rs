//! What is asked of a database beside reads and writes: to hold still, to change its settings while it
//! works, to be followed.
//!
//! Keeps: no table comes or goes while the database holds still; a follower shows states that its
//! primary had, one after the other and never an earlier one.

use std::path::Path;

use lithify::{Error, Follower};
use lithify_env::Fs;

use super::families::everything_in;
use super::timed::Opened;
use super::{HOME, Violation, World};
use crate::model::Seen;

/// A follower, and the write that it was seen at last.
pub(super) struct Following {
    follower: Follower,
    state: usize,
}

impl World {
    /// No flush and no compaction for a while.
    pub(super) fn still(&mut self) -> Result<(), Violation> {
        let pause = match self.db().pause_background() {
            Ok(pause) => pause,
            Err(e) => return self.excuse("a pause", &e),
        };
        let before = self.tables();
        // Only reads: a write may have to wait for a flush.
        let (family, key) = (self.any_family(), self.any_key());
        let get = |world: &World| world.get(&family, &key, &world.model.map_of(&family), None);
        let seen = self.scan().and_then(|()| get(self));
        self.background();
        let after = self.tables();
        drop(pause);
        if let (Some(before), Some(after)) = (before, after)
            && before != after
        {
            return Violation::new(format!("tables {before:?} became {after:?} in a pause"));
        }
        seen
    }

    /// Names of the tables; `None` if the disk does not say.
    fn tables(&self) -> Option<Vec<String>> {
        let listed = self.fs.list(Path::new(HOME)).ok()?;
        Some(listed.into_iter().map(|e| e.name).filter(|name| name.ends_with(".sst")).collect())
    }

    /// Changes one thing or a few that fit each other.
    pub(super) fn change_settings(&mut self) -> Result<(), Violation> {
        let lists: [&[(&str, &str)]; 12] = [
            &[("l0_trigger", "1"), ("l0_slowdown", "3"), ("l0_stop", "5")],
            &[("l0_trigger", "4"), ("l0_slowdown", "8"), ("l0_stop", "12")],
            &[("max_subcompactions", "4")],
            &[("level_base_bytes", "256KiB"), ("level_multiplier", "4")],
            &[("level_base_bytes", "64KiB"), ("level_multiplier", "2")],
            &[("file_bytes", "16KiB")],
            &[("dynamic_levels", "false")],
            &[("dynamic_levels", "true")],
            &[("background_rate", "16MiB")],
            &[("max_space_amp_percent", "30")],
            &[("memtable_bytes", "128KiB"), ("memtable_count", "3")],
            &[("memtable_bytes", "64KiB"), ("memtable_count", "2")],
        ];
        let change = *self.dice.pick(&lists, "settings");
        if let Err(e) = self.db().set_settings(change) {
            return self.excuse("a change of settings", &e);
        }
        let now = self.db().settings();
        match (change[0].0, now.l0_trigger, now.max_subcompactions) {
            ("l0_trigger", n, _) if n.to_string() != change[0].1 => {
                Violation::new("settings that were changed are as before")
            }
            ("max_subcompactions", _, n) if n != 4 => Violation::new("a change was not taken"),
            _ => Ok(()),
        }
    }

    /// A follower is opened, or catches up; now and then it goes.
    pub(super) fn follow(&mut self) -> Result<(), Violation> {
        // What is readable of a disk that fails may be gone later, which a follower can't know.
        if self.shaken {
            self.following = None;
            return Ok(());
        }
        let Some(following) = self.following.take() else {
            let follower = self.builder().open_follower(HOME);
            return match follower {
                Ok(follower) => self.followed(Following { follower, state: 0 }),
                Err(e) => follower_fails(&e),
            };
        };
        if let Err(e) = following.follower.catch_up() {
            return follower_fails(&e);
        }
        match self.dice.choose(6, "unfollow") {
            5 => Ok(()),
            _ => self.followed(following),
        }
    }

    fn followed(&mut self, following: Following) -> Result<(), Violation> {
        let view = Opened::Plain(following.follower.view());
        let model = everything_in(&view, &self.shape.lifetimes)?;
        let seen = Seen { sum: model.sums().at(0), second: 0 };
        let Some(state) = self.journal.find_since(following.state, seen) else {
            return Violation::new(format!(
                "a follower that was at write {} shows the state after write {:?} of {}",
                following.state,
                self.journal.find_anywhere(seen),
                self.journal.writes()
            ));
        };
        self.following = Some(Following { state, ..following });
        Ok(())
    }
}

fn follower_fails(error: &Error) -> Result<(), Violation> {
    Violation::new(format!("a follower fails: {error:?}"))
}
