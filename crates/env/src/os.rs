//! The real world: the only place that names the operating system.
//!
//! `std::fs`, the clocks, thread creation and raw memory are banned elsewhere; here they are
//! wrapped into the seams of this crate. All `unsafe` code of the crate is in `pages`, `bytes`, `heap` and `mapped`.

#![allow(clippy::disallowed_methods, reason = "this module is what the others are told to use")]

pub(crate) mod bytes;
mod folder;
mod fork;
pub(crate) mod heap;
pub mod holders;
mod lane;
mod lock;
mod memory;
/// Where a failed page of a mapping would end the process, files are not mapped.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod mapped {
    pub(super) enum Mapping {}

    impl Mapping {
        pub(super) fn of(
            _file: std::os::fd::BorrowedFd<'_>,
            _len: u64,
            _most: u64,
        ) -> Option<Mapping> {
            None
        }
        pub(super) fn read(&self, _buf: &mut [u8], _offset: u64) -> bool {
            match *self {}
        }
    }

    pub(super) struct Growing;

    impl Growing {
        pub(super) fn new(_file: std::os::fd::BorrowedFd<'_>) -> Growing {
            Growing
        }
        pub(super) fn write(
            &mut self,
            _file: std::os::fd::BorrowedFd<'_>,
            _bytes: &[u8],
            _offset: u64,
        ) -> bool {
            false
        }
        pub(super) fn resized(&mut self) {}
    }
}
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod mapped;
pub(crate) mod pages;
pub mod posix;
mod processors;
pub mod rt;

pub use processors::processors;
