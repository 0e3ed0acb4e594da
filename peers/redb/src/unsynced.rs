//! redb's file without its syncs: writes reach the system, and a crash of the process loses none.

use std::fs::File;

use anyhow::Result;
use redb::StorageBackend;
use redb::backends::FileBackend;

/// The file.
#[derive(Debug)]
pub(crate) struct Unsynced(FileBackend);

impl Unsynced {
    pub(crate) fn new(file: File) -> Result<Unsynced> {
        Ok(Unsynced(FileBackend::new(file)?))
    }
}

impl StorageBackend for Unsynced {
    fn len(&self) -> Result<u64, std::io::Error> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> Result<(), std::io::Error> {
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
        self.0.write(offset, data)
    }
    fn close(&self) -> Result<(), std::io::Error> {
        self.0.close()
    }
}
