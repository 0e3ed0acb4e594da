//! Which of the tests has to find which bug.
//!
//! The crash simulation unless a bug is no matter of a crash, an order of jobs or failing storage;
//! a sweep where a crash or a failure has to come at one moment, which chance meets too rarely: it
//! finds the same on every machine.

use std::fmt;

use lithify_base::zoo::Bug;

/// A test that finds bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finder {
    /// The simulation, from seed 1 on, with these flags.
    Sim(&'static [&'static str]),
    /// The canonical workload of this name, with a crash at each position and a failure at each call.
    Sweep(&'static str),
    /// The tests of one program whose names contain `test`.
    Test {
        /// The package.
        package: &'static str,
        /// The test program.
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
            Finder::Sweep(workload) => write!(f, "sweep {workload}"),
            Finder::Test { package, target, test } => {
                let room = package.trim_start_matches("lithify-");
                write!(f, "{} {target} {test}", if room == "lithify" { "db" } else { room })
            }
        }
    }
}

impl Finder {
    /// The package and the test program that it needs besides the simulation.
    pub(super) fn program(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Finder::Sim(_) | Finder::Sweep(_) => None,
            Finder::Test { package, target, .. } => Some((package, target)),
        }
    }
}

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
        Bug::CommitInFinishOrder | Bug::FollowersStay => {
            test("lithify-control", "every_order", "every_order_of_events_reads_right")
        }
        Bug::PlacedBlindly => test("lithify-plan", "planner", "admission::the_whole_rule_is_sound"),
        Bug::CommitUnchecked => {
            test("lithify-plan", "planner", "admission::validation_alone_keeps_recency")
        }
        Bug::ReserveEaten | Bug::SharedOutput => test("lithify-plan", "planner", "pictures::"),
        Bug::EngineBelieved => test("lithify-hostile", "corpus", "every_seed_passes"),
        Bug::PromiseIgnored => {
            test("lithify", "faults", "damage::random_damage_is_told_or_harmless")
        }
        Bug::ForeignDeleted => {
            test("lithify", "faults", "damage::foreign_files_stay_and_do_no_harm")
        }
        Bug::SumsUnplaced => test("lithify", "faults", "damage::swapped_blocks_are_told"),
        Bug::PanicUntold => test("lithify", "faults", "closing::a_flush_that_panics_is_told"),
        Bug::ResumedTooSoon => {
            test("lithify", "faults", "failing_storage::a_lost_log_on_a_full_disk_heals")
        }
        Bug::LockOverSync => {
            test("lithify", "processes", "bad_conditions::a_call_that_hangs_holds_up_only")
        }
        Bug::LockMadeAnew => {
            test("lithify", "faults", "failing_storage::a_database_in_use_is_locked")
        }
        Bug::RegisteredLate | Bug::PinnedLate => {
            test("lithify", "stress", "every_read_of_every_policy_shows_what_was_written")
        }
        Bug::TablesUnasked => {
            test("lithify", "reads", "transactions::a_conflict_is_found_wherever_the_write_went")
        }
        Bug::CheckedOnce | Bug::UnlockedEarly => {
            test("lithify", "reads", "transactions::reads_for_update_make_histories_serializable")
        }
        Bug::PreparedLogGone => {
            test("lithify-sim", "lives", "prepared::what_is_synced_survives_a_power_loss")
        }
        Bug::EndForgotten => {
            test("lithify-sim", "lives", "prepared::a_lost_end_leaves_it_prepared")
        }
        Bug::NothingNarrower => {
            test("lithify-sim", "lives", "shortage::a_budget_full_of_garbage_takes_writes")
        }
        Bug::ProvenByFigures => {
            test("lithify-engine", "lies", "a_wrong_byte_under_a_right_checksum_is_found")
        }
        Bug::FirstSetProven => {
            test("lithify-engine", "lies", "one_in_64_finds_a_lie_within_the_predicted")
        }
        Bug::WeighedByLength => {
            test("lithify-engine", "lies", "another_value_in_any_block_is_found")
        }
        Bug::UnprovenKept => {
            test("lithify-compact", "relay", "bad_engines::a_liar_that_is_caught_late")
        }
        Bug::FirstCarryKept => {
            test("lithify-compact", "relay", "a_break_at_any_poll_ends_in_the_cpus_files")
        }
        Bug::InputsUnweighed => {
            test("lithify-compact", "relay", "a_lie_about_the_input_has_all_parts_done_again")
        }
        Bug::LiarRouted => test("lithify-compact", "relay", "parts_are_routed_one_by_one"),
        Bug::AppendAfterFailure => Finder::Sweep("flush"),
        Bug::RetryIsNewer => Finder::Sweep("flush-again"),
        Bug::SyncAgain | Bug::RefusedStays => Finder::Sweep("put-sync"),
        Bug::ReplayPastHole | Bug::LowMarkTooHigh => Finder::Sweep("log-roll"),
        Bug::FlushInTwoEdits => Finder::Sweep("checkpoint"),
        Bug::LogOfOthersGone => Finder::Sweep("family-keeps-log"),
        Bug::BatchTorn => {
            test("lithify", "families", "lives::a_flush_is_not_committed_before_its_log_is_durable")
        }
        Bug::FamilyNumberAgain => Finder::Sweep("family-drop"),
        // Jobs that overtake each other are what this policy is about.
        Bug::FlightsForgotten => Finder::Sim(&["--variants", "0", "--policy", "df-leveled"]),
        Bug::DeeperLevelsOnly => Finder::Sim(&["--variants", "0", "--policy", "tiered"]),
        Bug::OtherBucketForgotten
        | Bug::ReadErrorIsEnd
        | Bug::ZeroedOverOlder
        | Bug::InputMissed
        | Bug::KeySplit
        | Bug::TombstoneUnclipped
        | Bug::AddressInOutput
        | Bug::ZeroedUnderTombstone
        | Bug::SealInsideRecord
        | Bug::PrefixOfBound
        | Bug::MergedIsOld
        | Bug::LifetimeOfDefault
        | Bug::DictionaryOnce
        | Bug::DroppedEarly
        | Bug::InputUnclamped => LIVES,
        Bug::InclusiveEndLost => test(
            "lithify",
            "files",
            "foreign_bounds::an_inclusive_end_bounds_deletions_in_reverse_order",
        ),
        _ => Finder::Sim(&[]),
    }
}

/// Lives without crashes: many more of them in a minute.
const LIVES: Finder = Finder::Sim(&["--variants", "0"]);

const fn test(package: &'static str, target: &'static str, test: &'static str) -> Finder {
    Finder::Test { package, target, test }
}
