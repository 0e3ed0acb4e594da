//! Dictionaries: what small blocks have in common, kept once per table.
//!
//! Keeps: the dictionary is a pure function of the samples and the size (R9). A decoder's form of one is
//! made once per table and shared by all threads.
//! Leaves to others: which blocks are samples.

use std::sync::Arc;

#[cfg(feature = "zstd")]
use lithify_base::Error;
use lithify_base::Result;

/// Trains a dictionary of at most `most` bytes from `samples`, blocks as they are before compression.
/// `None` if they are too few to gain anything, or the trainer fails.
///
/// # Errors
/// `Unsupported` without the cargo feature `zstd`.
#[cfg(feature = "zstd")]
pub fn train(samples: &[Vec<u8>], most: usize) -> Result<Option<Arc<[u8]>>> {
    let trained = super::wall::walled(|| zstd::dict::from_samples(samples, most).ok());
    // The library says no more than that it did not work out; a table without is as good.
    Ok(trained.ok().flatten().filter(|d| !d.is_empty()).map(Arc::from))
}

/// The same in a build without Zstandard.
///
/// # Errors
/// Always `Unsupported`.
#[cfg(not(feature = "zstd"))]
pub fn train(_samples: &[Vec<u8>], _most: usize) -> Result<Option<Arc<[u8]>>> {
    Err(super::encode::zstd_is_off())
}

/// A table's dictionary, ready for every codec.
#[derive(Clone, Default)]
pub(super) struct Dictionary {
    bytes: Arc<[u8]>,
    #[cfg(feature = "zstd")]
    prepared: Option<Arc<zstd::zstd_safe::DDict<'static>>>,
}

impl Dictionary {
    #[cfg(feature = "zstd")]
    pub(super) fn new(bytes: &[u8]) -> Dictionary {
        let prepared = match bytes {
            [] => None,
            bytes => {
                super::wall::walled(|| zstd::zstd_safe::DDict::try_create(bytes)).ok().flatten()
            }
        };
        let prepared = prepared.map(Arc::new);
        Dictionary { bytes: bytes.into(), prepared }
    }
    #[cfg(not(feature = "zstd"))]
    pub(super) fn new(bytes: &[u8]) -> Dictionary {
        Dictionary { bytes: bytes.into() }
    }
    /// Resident bytes of all forms.
    pub(super) fn memory(&self) -> usize {
        #[cfg(feature = "zstd")]
        let prepared = self.prepared.as_ref().map_or(0, |d| d.sizeof());
        #[cfg(not(feature = "zstd"))]
        let prepared = 0;
        self.bytes.len() + prepared
    }
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// For Zstandard; `None` if there is none.
    ///
    /// # Errors
    /// Corruption if it is damaged.
    #[cfg(feature = "zstd")]
    pub(super) fn prepared(&self) -> Result<Option<&zstd::zstd_safe::DDict<'static>>> {
        match &self.prepared {
            None if !self.bytes.is_empty() => {
                Err(Error::corruption("the dictionary of the table is damaged"))
            }
            prepared => Ok(prepared.as_deref()),
        }
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({} bytes)", self.bytes.len())
    }
}
