//! What is begun, and what is told, where there is little room on the disk or in its budget.

use super::*;

use crate::resources::Taken;

const MIB: u64 = 1 << 20;

/// What was said last of why compactions get nowhere.
fn stuck(w: &mut World) -> Option<Option<ErrorKind>> {
    w.take(|c| match c {
        Command::CompactionsFail(error) => Some(error.as_ref().map(Error::kind)),
        _ => None,
    })
}

/// Why writes are stopped, if that was said: what was said last.
fn stopped(w: &mut World) -> Option<Option<Cause>> {
    let mut last = None;
    while let Some(said) = w.take(|c| match c {
        Command::Stall(pressure) => Some(pressure.stop),
        _ => None,
    }) {
        last = Some(said);
    }
    last
}

/// A world with memtables of 1 MiB whose tree has `files` files of 1 MiB over each other, in level 0.
fn full_of(files: u32) -> World {
    let runs: Vec<(Pos, &str, &str)> = (1..=files).map(|s| (Pos::new(0, s), "a", "z")).collect();
    let mut w = World::with_tree(2, &runs);
    let mut options = w.core.options.clone();
    (options.plan.memtable_bytes, options.plan.file_bytes) = (MIB, MIB);
    options.plan.l0_trigger = 100;
    (options.plan.l0_slowdown, options.plan.l0_stop) = (100, 100);
    w.on(Event::Options(Box::new(options)));
    w
}

/// Ends the job over two files, of which `bytes` are left.
fn end(w: &mut World, job: JobId, spec: &JobSpec, bytes: u64) {
    let mut f = w.file(spec.out, "a", "z");
    f.bytes = bytes;
    w.on(Event::Built { job, adds: vec![f], flow: None });
    w.commit().unwrap();
    w.on(Event::EditSynced);
}

/// What a caller asks for and fits is done, even where the next memtable would not fit beside it; what
/// doesn't fit is refused, and no caller waits for ever.
#[test]
fn what_is_asked_for_may_take_the_room_of_the_next_memtable() {
    for (room, fits) in [(4 * MIB, true), (MIB / 2, false)] {
        let mut w = World::with_tree(1, &[(Pos::base(1), "a", "z")]);
        w.on(Event::DiskFree { bytes: room, disk: room });
        let anew =
            ManualRequest { rewrite_before: Some(FileId(1 << 20)), ..ManualRequest::new(None) };
        w.on(Event::Manual { id: 7, request: anew });
        let refused = w.take(|c| match c {
            Command::RequestDone { id: 7, result } => Some(result.as_ref().unwrap_err().kind()),
            _ => None,
        });
        assert_eq!(refused, (!fits).then_some(ErrorKind::NoSpace));
        assert_eq!(w.compaction().is_some(), fits);
    }
}

/// A compaction that may not fit on the disk is not begun; a caller that waits for it is told.
#[test]
fn nothing_is_begun_that_the_disk_has_no_room_for() {
    let mut w = World::new(1);
    w.on(Event::DiskFree { bytes: (2 << 20) - 1, disk: (2 << 20) - 1 });
    w.flush(1, "a", "m");
    assert!(stuck(&mut w).is_none());
    w.flush(2, "c", "z");
    assert!(w.compaction().is_none(), "it would write 2 MiB");
    assert_eq!(stuck(&mut w), Some(Some(ErrorKind::NoSpace)));
    assert!(w.core.is_idle(), "no caller waits for what can't happen");
    w.on(Event::Tick);
    assert!(stuck(&mut w).is_none(), "once is enough");
    w.on(Event::Manual { id: 7, request: ManualRequest::new(None) });
    let told = w.take(|c| match c {
        Command::RequestDone { id: 7, result } => Some(result.as_ref().unwrap_err().kind()),
        _ => None,
    });
    assert_eq!(told, Some(ErrorKind::NoSpace));
    // Beside the memtable that is being filled.
    w.on(Event::DiskFree { bytes: 70 << 20, disk: 70 << 20 });
    let (job, _) = w.compaction().expect("it fits");
    w.built(job, Pos::base(1), "a", "z");
    w.commit().unwrap();
    w.on(Event::EditSynced);
    assert_eq!(stuck(&mut w), Some(None));
}

/// Writers are stopped while there still is room for a job that frees some, which no policy would wish
/// for; they go on once it has.
#[test]
fn writers_stop_before_the_last_room_is_gone() {
    let mut w = full_of(6);
    w.on(Event::DiskFree { bytes: 4 * MIB, disk: u64::MAX });
    assert!(stopped(&mut w).is_none() && w.compaction().is_none(), "there is room");
    w.on(Event::DiskFree { bytes: 3 * MIB / 2, disk: u64::MAX });
    assert_eq!(stopped(&mut w), Some(Some(Cause::DiskSpace)));
    let (job, spec) = w.compaction().expect("a narrow job");
    assert_eq!((spec.inputs.len(), spec.out.level), (2, 0));
    assert!(w.compaction().is_none(), "one at a time");
    assert!(stuck(&mut w).is_none(), "writers wait for it");
    end(&mut w, job, &spec, MIB / 4);
    w.on(Event::DiskFree { bytes: 4 * MIB, disk: u64::MAX });
    assert_eq!(stopped(&mut w), Some(None));
}

/// A budget that is used up is exceeded by one job at a time, and what is left in the end is not
/// reported before the room was looked up again.
#[test]
fn a_database_over_its_budget_comes_back_below() {
    let mut w = full_of(4);
    w.on(Event::DiskFree { bytes: 0, disk: u64::MAX - 1 });
    assert_eq!(stopped(&mut w), Some(Some(Cause::DiskSpace)));
    for runs in (1..4).rev() {
        let (job, spec) = w.compaction().expect("a narrow job");
        end(&mut w, job, &spec, MIB);
        assert_eq!(w.core.version().level(0).runs().len(), runs);
    }
    assert!(w.compaction().is_none() && w.core.is_idle(), "nothing lies over anything");
    assert!(stuck(&mut w).is_none(), "the room is not known yet");
    w.on(Event::DiskFree { bytes: 0, disk: u64::MAX - 1 });
    assert_eq!(stuck(&mut w), Some(Some(ErrorKind::NoSpace)));
    w.on(Event::DiskFree { bytes: 2 * MIB, disk: u64::MAX - 1 });
    assert_eq!((stuck(&mut w), stopped(&mut w)), (Some(None), Some(None)));
}

/// A file that was to be cut and came out whole is not written anew for ever.
#[test]
fn what_can_not_be_cut_is_tried_once() {
    let mut w = full_of(2);
    // For one of them, and for a manifest.
    let bytes = MIB + (20 << 10);
    let room = |w: &mut World| w.on(Event::DiskFree { bytes, disk: bytes });
    room(&mut w);
    let mut cuts = 0;
    while let Some((job, spec)) = w.compaction() {
        if spec.inputs.len() == 2 {
            // Tried as a last resort.
            assert_eq!(cuts, 2, "each file was tried");
            w.on(Event::Failed { job, error: Error::new(ErrorKind::NoSpace, "full") });
            assert!(w.compaction().is_none(), "not at once");
            return;
        }
        cuts += 1;
        end(&mut w, job, &spec, MIB);
        room(&mut w);
    }
    panic!("nothing was tried after {cuts} cuts");
}

/// A world with one file of 1 MiB and so much room in its budget.
fn with_room(bytes: u64) -> World {
    let mut w = World::with_tree(1, &[(Pos::base(1), "a", "z")]);
    let mut options = w.core.options.clone();
    (options.plan.memtable_bytes, options.plan.file_bytes) = (MIB / 8, MIB);
    w.on(Event::Options(Box::new(options)));
    w.on(Event::Awaited { by: 0 });
    w.on(Event::DiskFree { bytes, disk: u64::MAX - 1 });
    w
}

/// Tells a world an event that shares its disk with others.
fn beside(w: &mut World, all: &mut Taken, event: Event) {
    w.core.know_taken(all);
    w.on(event);
    w.core.tell_taken(all);
}

fn anew() -> Event {
    let request =
        ManualRequest { rewrite_before: Some(FileId(1 << 20)), ..ManualRequest::new(None) };
    Event::Manual { id: 7, request }
}

fn answer(w: &mut World) -> Option<Option<ErrorKind>> {
    w.take(|c| match c {
        Command::RequestDone { id: 7, result } => Some(result.as_ref().err().map(Error::kind)),
        _ => None,
    })
}

/// Two cores over one disk with room for one compaction, and what they took of it.
fn two_over_a_disk() -> (Taken, World, World) {
    let mut all = Taken::default();
    let mut cores = [(); 2].map(|()| with_room(3 * MIB / 2));
    cores.iter_mut().for_each(|w| beside(w, &mut all, Event::Tick));
    let [one, two] = cores;
    (all, one, two)
}

/// What one core promised to a compaction no other over the same disk promises again; it waits, without an error, and
/// what was written meanwhile is not there for it either.
#[test]
fn room_is_promised_once_for_all_cores_over_a_disk() {
    let (mut all, mut one, mut two) = two_over_a_disk();
    beside(&mut one, &mut all, anew());
    let (job, spec) = one.compaction().expect("there is room for one");
    assert_eq!(all, Taken { promised: MIB, made: 0, running: 1, busy: 1 });
    beside(&mut two, &mut all, anew());
    assert!(two.compaction().is_none(), "there is no room for another");
    assert!(stuck(&mut two).is_none() && answer(&mut two).is_none() && !two.core.is_idle());

    let adds = vec![one.file(spec.out, "a", "z")];
    beside(&mut one, &mut all, Event::Built { job, adds, flow: None });
    one.commit().unwrap();
    beside(&mut one, &mut all, Event::EditSynced);
    assert_eq!(all, Taken { promised: 0, made: MIB, running: 0, busy: 0 });
    beside(&mut two, &mut all, Event::Tick);
    assert!(two.compaction().is_none(), "the budget has what was made");
    assert!(answer(&mut two).is_none() && !two.core.is_idle(), "what was replaced may be gone");
    beside(&mut two, &mut all, Event::DiskFree { bytes: 3 * MIB / 2, disk: u64::MAX - 1 });
    assert!(two.compaction().is_some());
    assert_eq!(all, Taken { promised: MIB, made: MIB, running: 1, busy: 1 });
}

/// A caller does not wait for others if there is no room without them either.
#[test]
fn what_never_fits_is_told_beside_others_at_work() {
    let mut all = Taken { promised: MIB, made: 0, ..Taken::default() };
    let mut w = with_room(MIB / 2);
    beside(&mut w, &mut all, anew());
    assert_eq!(answer(&mut w), Some(Some(ErrorKind::NoSpace)));
}

/// A family with nothing to compact does not say that there is no room while a compaction of another may free some.
#[test]
fn what_others_have_at_work_may_free_room() {
    let mut all = Taken { promised: MIB, made: 0, running: 1, busy: 1 };
    let mut w = with_room(MIB);
    beside(&mut w, &mut all, Event::Tick);
    beside(&mut w, &mut all, Event::DiskFree { bytes: MIB / 16, disk: u64::MAX - 1 });
    assert!(w.core.is_short(), "there is no room for a memtable");
    assert_eq!(stuck(&mut w), None);
    (all.running, all.busy, all.promised) = (0, 0, 0);
    beside(&mut w, &mut all, Event::Tick);
    beside(&mut w, &mut all, Event::DiskFree { bytes: MIB / 16, disk: u64::MAX - 1 });
    assert_eq!(stuck(&mut w), Some(Some(ErrorKind::NoSpace)));
}

/// A column family is dropped while a compaction of it is at work: what that took others may take again.
#[test]
fn the_core_of_a_dropped_family_gives_back_what_it_took() {
    let (mut all, mut one, mut two) = two_over_a_disk();
    beside(&mut one, &mut all, anew());
    let (job, _) = one.compaction().expect("there is room for one");
    beside(&mut one, &mut all, Event::Closing);
    let mut halted = Core::new(one.core.options.clone(), Version::empty(bytewise()), 1);
    halted.halt(Error::new(ErrorKind::NotFound, "dropped"));
    halted.take_place_of(&one.core);
    halted.tell_taken(&mut all);
    one.core = halted;
    assert_eq!(all, Taken::default());
    let error = Error::new(ErrorKind::ShuttingDown, "closing");
    beside(&mut one, &mut all, Event::Failed { job, error });
    assert_eq!(all, Taken::default());
    beside(&mut two, &mut all, anew());
    beside(&mut two, &mut all, Event::DiskFree { bytes: 3 * MIB / 2, disk: u64::MAX - 1 });
    assert!(two.compaction().is_some());
}
