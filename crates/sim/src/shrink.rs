//! Making a plan that fails as small as it gets while it still fails.
//!
//! Operations are cut out in ever smaller pieces (delta debugging, Zeller and Hildebrandt 2002),
//! then the numbers of what is left are made smaller. A crash is told by its distance from the
//! last operation, so cutting out earlier ones leaves it in its place.

use crate::crash::Kind;
use crate::explore::replay;
use crate::plan::Plan;
use crate::world::Violation;

/// A smaller plan that fails as well, and how. Goes on until nothing more helps or `more` says
/// no; `None` if `plan` does not fail.
pub fn shrink(plan: &Plan, more: &mut dyn FnMut() -> bool) -> Option<(Plan, Violation)> {
    let violation = replay(plan).err()?;
    let mut search = Search { plan: plan.clone(), violation, more };
    loop {
        let before = search.plan.clone();
        search.drop_lives();
        search.cut_operations();
        search.simplify_crashes();
        search.lower_numbers();
        if search.plan == before || !(search.more)() {
            let mut plan = search.plan;
            plan.about = vec![search.violation.to_string().lines().next()?.to_owned()];
            return Some((plan, search.violation));
        }
    }
}

struct Search<'a> {
    plan: Plan,
    violation: Violation,
    more: &'a mut dyn FnMut() -> bool,
}

impl Search<'_> {
    /// Takes over what `change` makes of the plan, if that fails, too.
    fn attempt(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut smaller = self.plan.clone();
        change(&mut smaller);
        if smaller == self.plan || !(self.more)() {
            return false;
        }
        match replay(&smaller) {
            Ok(()) => false,
            Err(violation) => {
                self.plan = smaller;
                self.violation = violation;
                true
            }
        }
    }

    /// Leaves out whole lives: the last first.
    fn drop_lives(&mut self) {
        for at in (0..self.plan.levels.len()).rev() {
            if self.plan.levels.len() > 1 {
                self.attempt(|plan| drop(plan.levels.remove(at)));
            }
        }
    }

    /// Leaves out operations, many at a time and then fewer.
    fn cut_operations(&mut self) {
        for level in 0..self.plan.levels.len() {
            let mut size = self.plan.levels[level].ops.len() / 2;
            while size > 0 {
                let mut end = self.plan.levels[level].ops.len();
                while end > size {
                    // The first line is the opening.
                    let from = (end - size).max(1);
                    self.attempt(|plan| drop(plan.levels[level].ops.drain(from..end)));
                    end = from.min(self.plan.levels[level].ops.len());
                }
                size /= 2;
            }
        }
    }

    fn simplify_crashes(&mut self) {
        for level in 0..self.plan.levels.len() {
            let Some(crash) = self.plan.levels[level].crash.clone() else { continue };
            for kind in Kind::ALL.into_iter().take_while(|k| *k < crash.kind) {
                let simple = self.attempt(|plan| {
                    if let Some(crash) = &mut plan.levels[level].crash {
                        crash.kind = kind;
                        crash.choices.clear();
                    }
                });
                if simple {
                    break;
                }
            }
            for at in 0..crash.at {
                let earlier = self.attempt(|plan| {
                    if let Some(crash) = &mut plan.levels[level].crash {
                        crash.at = at;
                    }
                });
                if earlier {
                    break;
                }
            }
        }
    }

    /// Makes numbers 0, or half of what they are, list by list.
    fn lower_numbers(&mut self) {
        for list in 0..self.lists() {
            self.attempt(|plan| list_of(plan, list).clear());
            let len = list_of(&mut self.plan, list).len();
            for at in (0..len).rev() {
                let is_last = at + 1 == list_of(&mut self.plan, list).len();
                if is_last && self.attempt(|plan| list_of(plan, list).truncate(at)) {
                    continue;
                }
                if self.attempt(|plan| list_of(plan, list)[at] = 0) {
                    continue;
                }
                while self.attempt(|plan| list_of(plan, list)[at] /= 2) {}
            }
        }
    }

    fn lists(&self) -> usize {
        1 + self
            .plan
            .levels
            .iter()
            .map(|l| l.ops.len() + usize::from(l.crash.is_some()))
            .sum::<usize>()
    }
}

/// A list of choices of a plan, by number: the settings, then each life's operations and crash.
fn list_of(plan: &mut Plan, mut number: usize) -> &mut Vec<u32> {
    if number == 0 {
        return &mut plan.settings;
    }
    number -= 1;
    for level in &mut plan.levels {
        if number < level.ops.len() {
            return &mut level.ops[number];
        }
        number -= level.ops.len();
        if let Some(crash) = &mut level.crash {
            if number == 0 {
                return &mut crash.choices;
            }
            number -= 1;
        }
    }
    panic!("a plan has no list of that number")
}
