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
    /// CURRENT names a new manifest before its bytes are durable.
    3 PointerBeforeSync,
    /// A sync that failed is tried again, and believed: the pages are clean by then and were
    /// never written (PostgreSQL until 2018).
    4 SyncAgain,
    /// The inputs of a compaction are deleted before the edit that makes them obsolete is durable
    /// (RocksDB, issue 5379).
    5 InputsGoFirst,
    /// A manifest is appended to after an append that failed (RocksDB, issue 6316).
    6 AppendAfterFailure,
    /// An open counts on from the number the manifest knows, and gives numbers out again that
    /// files have which no edit names (Pebble, issue 984).
    7 NumbersAgain,
    /// A log is cut at the first bad record, although later ones promise that it was synced.
    8 PromiseIgnored,
    /// Replay goes on with the next log behind one that is torn.
    9 ReplayPastHole,
    /// A flush gives up the logs of memtables that are not flushed yet.
    10 LowMarkTooHigh,
    /// A flush that is tried again counts as newer than the memtables frozen meanwhile (RocksDB
    /// 7.9).
    11 RetryIsNewer,
    /// Jobs commit as they finish, not after those that must go first.
    12 CommitInFinishOrder,
    /// A deletion is dropped although an older job at work has the value it hides.
    13 FlightsForgotten,
    /// Of the older files under a deletion, only the first of each run is looked at.
    14 OtherBucketForgotten,
    /// A sequence number becomes zero although an older value of the key lies elsewhere (RocksDB
    /// 7.10).
    15 ZeroedOverOlder,
    /// A compaction leaves out one of its inputs (RocksDB 11.1).
    16 InputMissed,
    /// Two jobs at work may write to the same place (Pebble, issue 875).
    17 SharedOutput,
    /// The versions of a key are cut over two files (LevelDB, issue 184).
    18 KeySplit,
    /// A file gets range deletions beyond its end (CockroachDB, issue 31752).
    19 TombstoneUnclipped,
    /// An edit is installed without a look at the tree it meets (lsm-tree, issue 320).
    20 CommitUnchecked,
    /// A compaction takes a read error at the front of an input for its end (RocksDB 8.7).
    21 ReadErrorIsEnd,
    /// A snapshot reads its number and is registered a moment later.
    22 RegisteredLate,
    /// An iterator reads its number and pins the tree a moment later.
    23 PinnedLate,
    /// The files of one flush are committed in two edits.
    25 FlushInTwoEdits,
    /// A write whose sync failed is refused, and its log stays: a later open finds the write.
    26 RefusedStays,
    /// Tables that are not needed are deleted by their names, those of other databases included
    /// (RocksDB 10.6).
    27 ForeignDeleted,
    /// Compactions begin although the disk has no room for what they write.
    28 ReserveEaten,
    /// A block's sum says nothing of its place, so that blocks may change places.
    29 SumsUnplaced,
    /// What an engine counts is believed, so that it may lose entries.
    30 EngineBelieved,
    /// Writes go on behind a lost log before what it held is safe: resumed while still broken (RocksDB,
    /// issue 11447).
    31 ResumedTooSoon,
    /// A flush that panics says nothing, and callers that wait for it wait for ever.
    32 PanicUntold,
    /// The lock over the tree is held while the manifest is synced.
    33 LockOverSync,
    /// Something that differs between equal runs decides what is written: an address, or the order
    /// of a hash map.
    34 AddressInOutput,
    /// An open deletes the lock file and makes its own, so that two succeed.
    35 LockMadeAnew,
    /// A job that must follow another commits although that one failed.
    37 FollowersStay,
    /// Unsynced blocks that arrived out of order are called corruption.
    38 TornTailIsRot,
    /// A log that is full is closed without a sync, though synced writes came before.
    39 ClosedUnsynced,
    /// A sequence number becomes zero under a range deletion that stays, and hides the value.
    40 ZeroedUnderTombstone,
    /// A seal is written between the parts of a record.
    41 SealInsideRecord,
    /// Before a deletion goes, only deeper levels are searched for older values: the rule of
    /// stores with one run a level.
    42 DeeperLevelsOnly,
    /// Files from outside are placed where a job at work will write.
    43 PlacedBlindly,
    /// A flush gives up logs that other column families, which did not flush, still need.
    44 LogOfOthersGone,
    /// A flush takes its part of a batch over several column families before the log that has the
    /// whole batch is durable.
    45 BatchTorn,
    /// The number of a column family that was dropped is given out again: what logs hold of it comes to
    /// life in the new one.
    46 FamilyNumberAgain,
    /// A transaction that commits looks for newer writes of its keys in memtables only.
    47 TablesUnasked,
    /// The look for conflicts is not repeated where no write can come in between any more.
    48 CheckedOnce,
    /// The locks of a transaction end before its writes can be seen.
    49 UnlockedEarly,
    /// A merged value is as old as the value that it began with, not as its newest operand.
    50 MergedIsOld,
    /// The values of a column family expire after the default family's time to live.
    51 LifetimeOfDefault,
    /// Filters are asked for the prefix that a scan begins with, although its end has another.
    52 PrefixOfBound,
    /// Of the tables that a compaction writes only the first has the dictionary that the blocks of all
    /// were compressed with.
    53 DictionaryOnce,
    /// A compaction drops a value in the last second of its time to live.
    54 DroppedEarly,
    /// A compaction takes the range deletions of an input whole, beyond the bounds of the table.
    55 InputUnclamped,
    /// Bounds that include their last key do not bound the range deletions of the table.
    56 InclusiveEndLost,
    /// Where no compaction that the policy wants fits on the disk, no narrower one is looked for.
    57 NothingNarrower,
    /// A set that is merged again is compared by what is said of its blocks, not by their entries.
    58 ProvenByFigures,
    /// Of the sets of a compaction always the first is proven.
    59 FirstSetProven,
    /// The weight of an entry covers the length of its value, not the bytes.
    60 WeighedByLength,
    /// What was taken of an engine before it was caught at a lie stays, although not all of it was proven.
    61 UnprovenKept,
    /// The CPU goes on from the carry of the first set that it took of an engine, not from that of the last.
    62 FirstCarryKept,
    /// What the engines' ledgers say was read is not held against what the inputs weigh.
    63 InputsUnweighed,
    /// An engine that was disproved is given further parts.
    64 LiarRouted,
    /// A flush lets go of the log that holds what a transaction prepared.
    65 PreparedLogGone,
    /// The log that holds what a transaction prepared goes as soon as the transaction is over, though a crash may
    /// take away how it ended.
    66 EndForgotten,
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
