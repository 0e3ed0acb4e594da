//! The states of a core: what it may start, and whether edits reach the manifest. Each state holds the
//! facts that only it has, so a sealed core has no edit under way and only an open one can be out of
//! work.
//!
//! ```text
//!              starts jobs   commits edits                takes in
//!   Open       yes           yes, unless a full disk      everything
//!                            makes them wait
//!   Paused     no            the same                     everything
//!   Closing    no            yes, without waiting         everything; requests are refused
//!   Sealed     no            no: what the manifest holds  everything; requests are refused
//!                            shows at the next open
//!   Halted     no            no                           ends of jobs; requests are refused
//! ```
//!
//! Transitions; where there is none, the state stays:
//!
//! ```text
//!              Paused{on}   Paused{off}   Closing    an edit's fate     a panic
//!                                                    is not known
//!   Open       Paused       -             Closing    Sealed             Halted
//!   Paused     -            Open          Closing    Sealed             Halted
//!   Closing    -            -             -          Sealed (also: no   Halted
//!                                                    space for an edit)
//!   Sealed     -            -             -          -                  Halted
//!   Halted     -            -             -          -                  -
//! ```
//!
//! Whether writes are taken at all is not a state of life but of health (`health`): a core whose
//! writes were stopped still flushes and commits.

use lithify_base::{Error, JobId};
use lithify_lsm::{Edit, Version};

/// How the edits that were handed out ended.
pub(crate) enum Settled {
    /// In the manifest for good.
    Durable,
    /// The disk is full: they are not durable yet, and are handed out again later.
    Postponed(Error),
    /// Whether the manifest has them shows at the next open.
    Unknown(Error),
}

/// The edits being written, in their order, and the tree with all of them.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    pub(crate) edits: Vec<(JobId, Edit)>,
    pub(crate) next: Version,
}

/// The edits on their way into the manifest.
#[derive(Clone, Debug)]
pub(crate) enum Manifest {
    /// None is being written. The next may be handed out from this instant on: after a full disk it
    /// waits.
    Free { from: u64 },
    /// These are being written.
    Writing(Box<Writing>),
}

/// What a core may do.
#[derive(Clone, Debug)]
pub(crate) enum Life {
    /// Jobs start and commit.
    Open {
        manifest: Manifest,
        /// The last planning found nothing to do.
        content: bool,
    },
    /// No job starts; those at work end and commit.
    Paused { manifest: Manifest },
    /// No job starts any more; what is built commits at once or never.
    Closing { manifest: Manifest },
    /// No edit is handed out any more: the manifest may or may not have the last ones.
    Sealed,
    /// The core, or the shell while it carried out a command, panicked: what took effect is not known.
    Halted,
}

impl Life {
    /// A core that has just begun.
    pub(crate) fn new() -> Life {
        Life::Open { manifest: Manifest::Free { from: 0 }, content: false }
    }

    /// Jobs are held back, or no longer.
    pub(crate) fn pause(&mut self, on: bool) {
        *self = match (self.take(), on) {
            (Life::Open { manifest, .. }, true) => Life::Paused { manifest },
            (Life::Paused { manifest }, false) => Life::Open { manifest, content: false },
            (life, _) => life,
        };
    }

    /// The database is being closed.
    pub(crate) fn close(&mut self) {
        *self = match self.take() {
            Life::Open { manifest, .. } | Life::Paused { manifest } => Life::Closing { manifest },
            life => life,
        };
    }

    /// The fate of an edit is not known.
    pub(crate) fn seal(&mut self) {
        if !matches!(self, Life::Halted) {
            *self = Life::Sealed;
        }
    }

    /// After a panic.
    pub(crate) fn halt(&mut self) {
        *self = Life::Halted;
    }

    /// Moves the state out. What is left in its place is overwritten by the caller.
    fn take(&mut self) -> Life {
        std::mem::replace(self, Life::Halted)
    }

    /// Jobs may start.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Life::Open { .. })
    }

    /// It will never start a job again.
    pub(crate) fn is_ending(&self) -> bool {
        !matches!(self, Life::Open { .. } | Life::Paused { .. })
    }

    /// What is built commits without waiting for space.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self, Life::Closing { .. })
    }

    /// No edit is handed out any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.manifest().is_none()
    }

    /// True after a panic.
    pub(crate) fn is_halted(&self) -> bool {
        matches!(self, Life::Halted)
    }

    /// An edit may be handed out now.
    pub(crate) fn may_commit(&self, now: u64) -> bool {
        match self.manifest() {
            Some(Manifest::Free { from }) => self.is_closing() || now >= *from,
            Some(Manifest::Writing(_)) | None => false,
        }
    }

    /// These edits are handed out.
    pub(crate) fn hand_out(&mut self, edits: Writing) {
        match self.manifest_mut() {
            Some(manifest @ Manifest::Free { .. }) => {
                *manifest = Manifest::Writing(Box::new(edits))
            }
            other => unreachable!("edits are handed out one batch at a time, not over {other:?}"),
        }
    }

    /// The edits that were handed out are settled, `now`.
    pub(crate) fn settled(&mut self, now: u64) -> Option<Writing> {
        let manifest = self.manifest_mut()?;
        match std::mem::replace(manifest, Manifest::Free { from: now }) {
            Manifest::Writing(edits) => Some(*edits),
            free => {
                *manifest = free;
                None
            }
        }
    }

    /// The next edits wait until this instant, unless the core is closing.
    pub(crate) fn wait_until(&mut self, instant: u64) {
        if let Some(Manifest::Free { from }) = self.manifest_mut() {
            *from = instant;
        }
    }

    /// The edits being written.
    pub(crate) fn writing_mut(&mut self) -> Option<&mut Writing> {
        match self.manifest_mut()? {
            Manifest::Writing(edits) => Some(edits),
            Manifest::Free { .. } => None,
        }
    }

    fn manifest(&self) -> Option<&Manifest> {
        match self {
            Life::Open { manifest, .. }
            | Life::Paused { manifest }
            | Life::Closing { manifest } => Some(manifest),
            Life::Sealed | Life::Halted => None,
        }
    }

    fn manifest_mut(&mut self) -> Option<&mut Manifest> {
        match self {
            Life::Open { manifest, .. }
            | Life::Paused { manifest }
            | Life::Closing { manifest } => Some(manifest),
            Life::Sealed | Life::Halted => None,
        }
    }
}
