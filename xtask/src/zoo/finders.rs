//! Which of the tests has to find which bug.
//!
//! The crash simulation unless a bug is no matter of a crash, an order of jobs or failing storage.

use std::fmt;

use lithify_base::zoo::Bug;

/// A test that finds bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finder {
    /// The simulation, from seed 1 on, with these flags.
    Sim(&'static [&'static str]),
    /// The tests of one program whose names contain `test`.
    Test {
        /// The package.
        package: &'static str,
        /// The test program; `lib` for those inside the package.
        target: &'static str,
        /// What the names contain.
        test: &'static str,
    },
}

impl fmt::Display for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finder::Sim([]) => f.write_str("sim"),
            Finder::Sim(flags) => write!(f, "sim {}", flags.join(" ")),
            Finder::Test { package, target, test } => {
                let room = package.trim_start_matches("lithify-");
                write!(f, "{} {target} {test}", if room == "lithify" { "db" } else { room })
            }
        }
    }
}

/// Packages and test programs that are built.
pub(super) const TESTS: &[(&str, &str)] = &[("lithify-control", "every_order")];

/// The folder of a package, below `crates`.
pub(super) fn folder(package: &str) -> &str {
    match package {
        "lithify" => "db",
        name => name.trim_start_matches("lithify-"),
    }
}

/// What has to find `bug`.
pub(super) fn finder(bug: Bug) -> Finder {
    match bug {
        Bug::CommitInFinishOrder => {
            test("lithify-control", "every_order", "every_order_of_events_reads_right")
        }
        _ => Finder::Sim(&[]),
    }
}

const fn test(package: &'static str, target: &'static str, test: &'static str) -> Finder {
    Finder::Test { package, target, test }
}
