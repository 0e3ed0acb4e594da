//! What the store must answer: the last version written of every key number.
//!
//! Keeps: every key has at most one writing thread at a time (writers share out the keys by
//! remainder), so "last" is well defined without locks; a version is stored after its write was
//! acknowledged. A reader beside a writer therefore accepts that version or a newer one; a reader
//! alone accepts exactly that one.

use std::sync::atomic::{AtomicU32, Ordering};

/// Version of a key that was never written, or was deleted.
pub(crate) const ABSENT: u32 = 0;

/// Last versions by key number; or nothing at all when the store was filled by another run.
pub(crate) struct Model {
    versions: Option<Vec<AtomicU32>>,
}

/// How exactly a read is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing is known about this key.
    Unknown,
    /// Exactly this version (or absence).
    Exactly(u32),
    /// This version or a newer one, because a writer is at work.
    AtLeast(u32),
}

impl Model {
    /// A model of an empty store with keys `0..n`.
    pub(crate) fn empty(n: u64) -> Model {
        Model { versions: Some((0..n).map(|_| AtomicU32::new(ABSENT)).collect()) }
    }

    /// No knowledge: values must only be consistent in themselves.
    pub(crate) fn unknown() -> Model {
        Model { versions: None }
    }

    /// True if the model knows the last versions.
    pub(crate) fn knows(&self) -> bool {
        self.versions.is_some()
    }

    /// Notes that `version` of `key` was acknowledged.
    #[inline]
    pub(crate) fn set(&self, key: u64, version: u32) {
        if let Some(slot) = self.slot(key) {
            slot.store(version, Ordering::Release);
        }
    }

    /// What a read of `key` that starts now must see.
    #[inline]
    pub(crate) fn due(&self, key: u64, beside_writer: bool) -> Due {
        match self.slot(key).map(|slot| slot.load(Ordering::Acquire)) {
            None => Due::Unknown,
            Some(version) if beside_writer => Due::AtLeast(version),
            Some(version) => Due::Exactly(version),
        }
    }

    /// How many keys are present.
    pub(crate) fn present(&self) -> Option<u64> {
        let versions = self.versions.as_ref()?;
        let present = versions.iter().filter(|v| v.load(Ordering::Relaxed) != ABSENT).count();
        Some(present as u64)
    }

    fn slot(&self, key: u64) -> Option<&AtomicU32> {
        self.versions.as_ref()?.get(usize::try_from(key).ok()?)
    }
}

impl Due {
    /// True if a found value of `version` (0 when it carries none) is right.
    pub(crate) fn accepts(self, version: u32) -> bool {
        match self {
            Due::Unknown => true,
            Due::Exactly(due) => due != ABSENT && (version == due || version == 0),
            Due::AtLeast(due) => version >= due || version == 0,
        }
    }

    /// True if finding nothing is right.
    pub(crate) fn accepts_absence(self) -> bool {
        matches!(self, Due::Unknown | Due::Exactly(ABSENT) | Due::AtLeast(ABSENT))
    }

    /// The version meant, for messages.
    pub(crate) fn version(self) -> u32 {
        match self {
            Due::Unknown => ABSENT,
            Due::Exactly(due) | Due::AtLeast(due) => due,
        }
    }
}
