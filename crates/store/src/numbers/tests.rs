use std::path::Path;

use lithify_base::CfId;
use lithify_env::OpenOpts;
use lithify_files::testing::mem_dir;
use lithify_journal::manifest::{FamilyState, WireFile};

use super::*;

fn dir_of(names: &[&str]) -> Dir {
    let dir = mem_dir();
    for name in names {
        dir.fs().create(&dir.path().join(name), OpenOpts::write()).unwrap();
    }
    dir
}

#[test]
fn numbers_go_on_above_every_file_of_ours() {
    assert_eq!(next_number(&mem_dir(), 0).unwrap(), 1);
    assert_eq!(next_number(&mem_dir(), 9).unwrap(), 9);
    let dir = dir_of(&["000005.log", "MANIFEST-000031", "000040.txt"]);
    assert_eq!(next_number(&dir, 9).unwrap(), 32);
    assert_eq!(next_number(&dir, 90).unwrap(), 90);
    let missing = Dir::new(dir.fs().clone(), Path::new("/nowhere"));
    assert!(next_number(&missing, 0).is_err());
}

#[test]
fn far_numbers_are_not_ours() {
    let last = AHEAD_MAX + 8;
    let ours = format!("{last}.sst");
    assert_eq!(next_number(&dir_of(&[&ours]), 9).unwrap(), last + 1);
    for n in [last + 1, NUMBER_MAX, u64::MAX - 1, u64::MAX] {
        for name in [format!("{n}.log"), format!("{n}.sst"), format!("MANIFEST-{n}")] {
            assert_eq!(next_number(&dir_of(&["000011.log", &name]), 9).unwrap(), 12, "{name}");
        }
    }
    let top = format!("{}.log", u64::MAX - 1);
    assert_eq!(next_number(&dir_of(&[&top]), u64::MAX - 1).unwrap(), u64::MAX);
}

#[test]
fn whatever_a_manifest_names_is_known() {
    let state = |change: &dyn Fn(&mut ManifestState, &mut FamilyState)| {
        let mut state = ManifestState { next_file: 20, ..ManifestState::default() };
        let mut family = state.families.remove(&CfId(0)).unwrap();
        change(&mut state, &mut family);
        state.families.insert(CfId(0), family);
        state
    };
    let file = |number, backing| WireFile { number, backing, ..WireFile::default() };
    let add =
        |family: &mut FamilyState, file: WireFile| drop(family.files.insert(file.number, file));
    assert_eq!(known(&state(&|_, _| {})), 20);
    for (n, next) in [(19, 20), (20, 21), (NUMBER_MAX, NUMBER_MAX + 1), (u64::MAX, u64::MAX)] {
        let states = [
            state(&|_, f| add(f, file(n, None))),
            state(&|_, f| add(f, file(5, Some(n)))),
            state(&|_, f| f.log_number = n),
            state(&|s, _| s.min_log_to_keep = n),
            state(&|s, _| s.wals.extend([(n, None)])),
        ];
        for state in states {
            assert_eq!(known(&state), next, "{state:?}");
        }
    }
}

#[test]
fn counters_near_their_ends_are_refused() {
    let room = |next_file, last_seq| {
        check_room(&ManifestState { next_file, last_seq, ..ManifestState::default() })
    };
    room(NUMBER_MAX, MAX_SEQ - SEQS_LEFT).unwrap();
    for (next_file, last_seq) in
        [(NUMBER_MAX + 1, 0), (u64::MAX, 0), (1, MAX_SEQ - SEQS_LEFT + 1), (1, u64::MAX)]
    {
        let error = room(next_file, last_seq).unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("salvage"), "{error}");
    }
    assert!(fits_memtable(MAX_SEQ - SEQS_OF_MEMTABLE) && !fits_memtable(MAX_SEQ));
}
