//! A round of offers: the rule is asked about each wish once, the first that passes ends the round, and
//! what was refused is told with its reason.

use std::ops::ControlFlow::{self, Continue};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lithify_base::{CfId, FileId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_plan::{
    Blocked, Candidate, Guard, JobSpec, Kind, Limits, MemState, Offers, PlanOptions, Policy,
    PolicyKind, Reason, Refusal, Rejection, Score, View, passed_over, plan,
};

/// L1 has a, b and c, L2 has b; each file one key, 100 bytes.
fn tree() -> Version {
    let mut edit = Edit::new(CfId(0));
    for (id, level, key) in [(1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (4, 2, "b")] {
        let range = KeyRange::incl(key.as_bytes(), key.as_bytes());
        let mut f = FileMeta::new(FileId(id), Pos::base(level), range);
        f.bytes = 100;
        edit.adds.push(f);
    }
    Version::empty(bytewise()).apply(&edit).unwrap()
}

fn down(view: &View, ids: &[u64]) -> Candidate {
    let files: Vec<FileRef> =
        ids.iter().map(|&id| view.version.file(FileId(id)).unwrap().clone()).collect();
    Candidate::merge(Kind::Down, files, Pos::base(2), Reason::Said(format!("{ids:?}")))
}

/// What one round says, and the jobs that come of it.
fn round(
    propose: impl Fn(&View, &mut Offers) -> ControlFlow<()> + Send + Sync + 'static,
    limits: Limits,
) -> (Vec<Blocked>, Vec<JobSpec>) {
    struct Said<F>(F);
    impl<F: Fn(&View, &mut Offers) -> ControlFlow<()> + Send + Sync> Policy for Said<F> {
        fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
            (self.0)(view, offers)
        }
    }
    let (version, mem) = (tree(), MemState::default());
    let options = PlanOptions::preset(PolicyKind::Leveled);
    let view = View::new(&version, &[], &mem, &options, limits);
    let policies: [Box<dyn Policy>; 1] = [Box::new(Said(propose))];
    (passed_over(&view, &policies), plan(&view, &policies))
}

#[test]
fn the_first_wish_that_passes_ends_the_round() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let (told, specs) = round(
        move |view, offers| {
            for ids in [&[2][..], &[1], &[3]] {
                seen.fetch_add(1, Ordering::Relaxed);
                offers.offer(down(view, ids))?;
            }
            Continue(())
        },
        Limits::default(),
    );
    let why: Vec<_> = told.iter().map(|b| (&b.reason, &b.why)).collect();
    let in_the_way =
        Refusal::Rejected(Rejection::InTheWay { file: FileId(4), pos: Pos::base(2), by: None });
    assert_eq!(why, [(&Reason::Said("[2]".into()), &in_the_way)]);
    assert_eq!(specs.len(), 1);
    assert_eq!(specs[0].inputs, [FileId(1)]);
    assert_eq!(asked.load(Ordering::Relaxed), 4, "two rounds of two offers");
}

#[test]
fn alternatives_are_not_told_and_held_back_wishes_are_not_asked_about() {
    let (told, specs) = round(
        |view, offers| {
            offers.attempt(down(view, &[2]))?;
            offers.hold_back(down(view, &[1]), Guard::Calm { need: Score::ONE });
            Continue(())
        },
        Limits::default(),
    );
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].why, Refusal::Guard(Guard::Calm { need: Score::ONE }));
    assert!(specs.is_empty());
}

#[test]
fn a_policy_may_refuse_what_the_rule_admits() {
    let guard = || Guard::Waiting { jobs: 1, bytes: 2 };
    let (told, specs) = round(
        move |view, offers| {
            offers.offer_if(down(view, &[1]), |_, admitted| {
                assert!(admitted.after.is_empty());
                Err(Some(guard()))
            })?;
            offers.offer_if(down(view, &[2]), |_, _| panic!("the rule does not admit it"))?;
            offers.offer_if(down(view, &[3]), |_, _| Err(None))
        },
        Limits::default(),
    );
    assert!(specs.is_empty());
    assert_eq!(told.len(), 2, "one without a word");
    assert_eq!(told[0].why, Refusal::Guard(guard()));
    assert!(matches!(told[1].why, Refusal::Rejected(Rejection::InTheWay { .. })));
}

#[test]
fn a_wish_without_room_is_told_with_what_it_needs() {
    let limits = Limits { disk_free: 150, ..Limits::default() };
    let (told, specs) = round(
        |view, offers| {
            offers.offer(down(view, &[2, 4]))?;
            offers.offer(down(view, &[3]))
        },
        limits,
    );
    assert_eq!(told[0].why, Refusal::Disk { needed: 200 });
    assert_eq!(specs.len(), 1, "the next one fits");
}
