//! Which parts of a compaction are free, at work or built, and who ends it.
//!
//! ```text
//!            claim               finish
//!   Free ------------> Claimed ----------> Built       all built: the main worker ends the compaction
//!    ^                  |     \
//!    +---- give back ---+      fail                    then none is claimed any more, and the last at
//!                                                      work ends it with the first error
//! ```
//!
//! The *main worker* is the compaction itself. As long as nothing has failed it has a part or waits for
//! one, so a part that a co-worker gives back is always done. Co-workers come and go.
//!
//! Keeps: the end comes out once, with all that was built. The tests walk through every order of
//! transitions. Leaves to others: threads, files, waking the main worker, the report (`parts`).

use lithify_base::Error;

/// How often co-workers may give a part back. After that it is the main worker's.
pub(crate) const MOST_RETURNS: u8 = 2;

/// Where a part is; `T` is what was built.
#[derive(Clone, Debug)]
pub(crate) enum Place<T> {
    /// No worker has it; co-workers gave it back so often.
    Free { returns: u8 },
    /// A worker has it.
    Claimed { returns: u8 },
    /// Its files are built.
    Built(T),
}

/// Where the main worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Main {
    /// It has a part, or is about to claim one.
    Busy,
    /// It is to be woken.
    Waits,
    /// It failed.
    Gone,
}

/// Which worker makes a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    /// The compaction itself.
    Main,
    /// A worker beside it, which may give a part back.
    CoWorker,
}

/// What a worker gets.
#[derive(Debug)]
pub(crate) enum Claim<T> {
    /// The part of this number.
    Part(usize),
    /// Nothing now: others have what is left. Only the main worker is told so; it claims again when
    /// it is woken.
    Wait,
    /// Nothing any more.
    Nothing,
    /// All is over, and this worker reports it.
    Over(End<T>),
}

/// What a worker has to do after a transition.
#[derive(Debug)]
pub(crate) enum Then<T> {
    /// Nothing.
    Nothing,
    /// To wake the main worker: a part is free, or all is over.
    Wake,
    /// To report: all is over.
    Over(End<T>),
}

/// How a compaction ended.
#[derive(Debug)]
pub(crate) enum End<T> {
    /// Every part is built; all of them, in key order.
    Built(Vec<T>),
    /// The first error, and what was built all the same.
    Failed(Error, Vec<T>),
}

/// The parts of one compaction.
#[derive(Clone, Debug)]
pub(crate) enum State<T> {
    /// No part has failed.
    Going { parts: Vec<Place<T>>, main: Main },
    /// One has. `at_work` parts are still claimed.
    Failing { error: Error, at_work: usize, built: Vec<T>, main: Main },
    /// The end came out.
    Over,
}

impl<T> State<T> {
    /// `parts` parts, all of them free.
    pub(crate) fn new(parts: usize) -> State<T> {
        let parts = (0..parts).map(|_| Place::Free { returns: 0 }).collect();
        State::Going { parts, main: Main::Busy }
    }

    /// True if a part has failed: the others are of no use any more.
    pub(crate) fn is_failing(&self) -> bool {
        !matches!(self, State::Going { .. })
    }

    /// A worker wants a part.
    pub(crate) fn claim(&mut self, hand: Hand) -> Claim<T> {
        let (parts, main) = match self {
            State::Going { parts, main } => (parts, main),
            State::Failing { at_work, main, .. } if hand == Hand::Main => {
                *main = Main::Gone;
                return match at_work {
                    0 => Claim::Over(self.end()),
                    _ => Claim::Nothing,
                };
            }
            State::Failing { .. } | State::Over => return Claim::Nothing,
        };
        let most = if hand == Hand::Main { u8::MAX } else { MOST_RETURNS - 1 };
        for (no, place) in parts.iter_mut().enumerate() {
            if let Place::Free { returns } = *place
                && returns <= most
            {
                *place = Place::Claimed { returns };
                if hand == Hand::Main {
                    *main = Main::Busy;
                }
                return Claim::Part(no);
            }
        }
        if hand == Hand::CoWorker {
            return Claim::Nothing;
        }
        if parts.iter().all(|place| matches!(place, Place::Built(_))) {
            return Claim::Over(self.end());
        }
        *main = Main::Waits;
        Claim::Wait
    }

    /// A worker has built the part it claimed.
    pub(crate) fn finish(&mut self, no: usize, made: T) -> Then<T> {
        match self {
            State::Going { parts, main } => {
                parts[no] = Place::Built(made);
                let all = parts.iter().all(|place| matches!(place, Place::Built(_)));
                if all && *main == Main::Waits { Then::Wake } else { Then::Nothing }
            }
            State::Failing { built, .. } => {
                built.push(made);
                self.put_down()
            }
            State::Over => unreachable!("a part was claimed, so nothing is over"),
        }
    }

    /// A co-worker has left the part it claimed, and nothing of it: another worker begins anew.
    pub(crate) fn give_back(&mut self, no: usize) -> Then<T> {
        match self {
            State::Going { parts, main } => {
                if let Place::Claimed { returns } = parts[no] {
                    parts[no] = Place::Free { returns: returns.saturating_add(1) };
                }
                if *main == Main::Waits { Then::Wake } else { Then::Nothing }
            }
            State::Failing { .. } => self.put_down(),
            State::Over => unreachable!("a part was claimed, so nothing is over"),
        }
    }

    /// A worker fails, with the part it claimed if it has one. The main worker claims no more after it.
    pub(crate) fn fail(&mut self, hand: Hand, no: Option<usize>, error: Error) -> Then<T> {
        if let State::Going { parts, main } = self {
            let (parts, main) = (std::mem::take(parts), *main);
            let claimed = |place: &&Place<T>| matches!(place, Place::Claimed { .. });
            let at_work = parts.iter().filter(claimed).count();
            let built = parts.into_iter().filter_map(|place| match place {
                Place::Built(made) => Some(made),
                Place::Free { .. } | Place::Claimed { .. } => None,
            });
            *self = State::Failing { error, at_work, built: built.collect(), main };
        }
        if let (State::Failing { main, .. }, Hand::Main) = (&mut *self, hand) {
            *main = Main::Gone;
        }
        match (no, &self) {
            (Some(_), _) => self.put_down(),
            (None, State::Failing { at_work: 0, main: Main::Gone, .. }) => Then::Over(self.end()),
            (None, _) => Then::Nothing,
        }
    }

    /// One part less is at work, of a compaction that fails.
    fn put_down(&mut self) -> Then<T> {
        let State::Failing { at_work, main, .. } = self else { return Then::Nothing };
        *at_work -= 1;
        match (*at_work, *main) {
            (0, Main::Gone) => Then::Over(self.end()),
            (0, Main::Waits) => Then::Wake,
            // It claims no part any more, but finds the end when it tries.
            (0, Main::Busy) | (1.., _) => Then::Nothing,
        }
    }

    fn end(&mut self) -> End<T> {
        match std::mem::replace(self, State::Over) {
            State::Going { parts, .. } => {
                let made = parts.into_iter().filter_map(|place| match place {
                    Place::Built(made) => Some(made),
                    Place::Free { .. } | Place::Claimed { .. } => None,
                });
                End::Built(made.collect())
            }
            State::Failing { error, built, .. } => End::Failed(error, built),
            State::Over => unreachable!("the end comes out once"),
        }
    }
}

#[cfg(test)]
mod tests;
