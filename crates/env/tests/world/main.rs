//! The file system, the runtime and transfers, real and simulated, by the same tests.

mod access_times;
mod beneath;
mod conformance;
mod growing;
mod locks;
mod mapped;
mod paths;
mod runtime;
mod transfers;
