//! The zoo: mistakes that stores like this one have made, each behind a switch, to measure whether
//! the tests would find them.
//!
//! A build for use has none of them: without the feature `zoo`, [`on`] is a constant `false`, and
//! what it guards is not compiled. With the feature, which only `cargo xtask zoo` asks for, the
//! environment variable `LITHIFY_ZOO` names the one bug that the whole process has (`Z1`).
//!
//! Keeps: one line or two of product code for each bug, at one place (`cargo xtask tidy` counts).
//! Leaves to others: which test has to find a bug (`xtask/src/zoo`).

macro_rules! bugs {
    ($($(#[$doc:meta])* $number:literal $name:ident,)*) => {
        /// A mistake, and where it was made.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$doc])* $name = $number,)*
        }

        impl Bug {
            /// All of them, by number.
            pub const ALL: &[Bug] = &[$(Bug::$name,)*];
        }
    };
}

bugs! {
    /// A synced write is acknowledged before its log is synced.
    1 AckBeforeFsync,
    /// The name of a new log is not made durable: the log may be gone with its writes (RocksDB
    /// 7.6).
    2 NoDirSync,
    /// Jobs commit as they finish, not after those that must go first.
    12 CommitInFinishOrder,
}

impl Bug {
    /// Its number in the list.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The bug that is called `name`: `Z1`.
    pub fn from_name(name: &str) -> Option<Bug> {
        let number = name.strip_prefix('Z')?.parse().ok()?;
        Bug::ALL.iter().copied().find(|bug| bug.number() == number)
    }
}

impl std::fmt::Display for Bug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Z{}", self.number())
    }
}

/// Whether this process has the bug: never, in a build for use.
#[cfg(not(feature = "zoo"))]
#[inline(always)]
pub const fn on(_bug: Bug) -> bool {
    false
}

/// Whether this process has the bug.
#[cfg(feature = "zoo")]
pub fn on(bug: Bug) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<Bug>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("LITHIFY_ZOO").ok()?;
        Some(Bug::from_name(&name).unwrap_or_else(|| panic!("the zoo has no bug {name:?}")))
    });
    *chosen == Some(bug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bug_has_a_number_of_its_own() {
        assert!(Bug::ALL.is_sorted_by(|a, b| a.number() < b.number()));
        for &bug in Bug::ALL {
            assert_eq!(Bug::from_name(&bug.to_string()), Some(bug));
        }
        assert_eq!(Bug::from_name("Z0"), None);
        assert_eq!(Bug::from_name("1"), None);
    }

    /// Without the feature the answer is known when a build is made, so nothing of a bug is in it.
    #[test]
    #[cfg(not(feature = "zoo"))]
    fn a_build_for_use_has_no_bug() {
        const { assert!(!on(Bug::AckBeforeFsync)) };
    }
}
