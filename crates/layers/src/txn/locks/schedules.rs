//! The lock table under chosen schedules (`cargo xtask shuttle`).

use lithify_env::sync::atomic::AtomicBool;
use lithify_env::sync::atomic::Ordering::SeqCst;
use lithify_env::{OsRt, RtOptions};
use lithify_testkit::schedules::{explore, thread};

use super::*;

/// Waits so long end by being woken, or the checker finds a deadlock.
const FOR_EVER: Duration = Duration::MAX;
/// The checker may let it pass at any moment.
const SOME_TIME: Duration = Duration::from_secs(1);

fn key(n: usize) -> FamilyKey {
    FamilyKey::new(CfId(0), &[n as u8], &lithify_base::bytewise())
}

struct Scene {
    locks: Locks,
    rt: OsRt,
    held: [AtomicBool; 3],
}

impl Scene {
    fn new() -> Arc<Scene> {
        let rt = OsRt::new(RtOptions::default());
        Arc::new(Scene { locks: Locks::default(), rt, held: Default::default() })
    }

    /// Locks `keys` in turn and unlocks what it got; false if it did not get all.
    fn visit(&self, who: TxnId, keys: &[usize], limit: Duration) -> bool {
        let mut got = Vec::new();
        for &n in keys {
            match self.locks.lock(who, &key(n), limit, &self.rt) {
                Ok(()) => {
                    assert!(!self.held[n].swap(true, SeqCst), "a key has two holders");
                    got.push(n);
                }
                Err(e) => {
                    let out_of_time = limit < FOR_EVER && e.kind() == ErrorKind::TimedOut;
                    assert!(out_of_time || e.kind() == ErrorKind::Deadlock, "{e}");
                    break;
                }
            }
        }
        for &n in &got {
            self.held[n].store(false, SeqCst);
            self.locks.unlock(who, &key(n));
        }
        got.len() == keys.len()
    }
}

/// Three that lock three keys in a circle: none waits for ever, at most two give way.
#[test]
fn no_circle_waits_for_ever() {
    explore("no circle of locks waits for ever", || {
        let scene = Scene::new();
        let visitors: Vec<_> = [[0, 1], [1, 2], [2, 0]]
            .into_iter()
            .zip(1..)
            .map(|(keys, who)| {
                let scene = scene.clone();
                thread::spawn(move || scene.visit(who, &keys, FOR_EVER))
            })
            .collect();
        let ends: Vec<bool> = visitors.into_iter().map(|v| v.join().unwrap()).collect();
        let through = ends.into_iter().filter(|all| *all).count();
        assert!(through >= 1, "all gave way");
        assert_eq!(scene.locks.in_use(), (0, 0));
        through
    });
}

/// Many that want one key get it one after the other.
#[test]
fn a_key_is_handed_on() {
    explore("a key is handed on", || {
        let scene = Scene::new();
        let order = Arc::new(Mutex::new(Vec::new()));
        let visitors: Vec<_> = (1..4)
            .map(|who| {
                let (scene, order) = (scene.clone(), order.clone());
                thread::spawn(move || {
                    assert!((0..2).all(|_| scene.visit(who, &[0], FOR_EVER)));
                    order.lock().push(who);
                })
            })
            .collect();
        visitors.into_iter().for_each(|v| v.join().unwrap());
        assert_eq!(scene.locks.in_use(), (0, 0));
        let order = order.lock().clone();
        order
    });
}

/// A hand-over to one who gives up just then: the key is its or the next one's, never lost.
#[test]
fn a_key_is_not_lost_with_who_gives_up() {
    explore("a key is not lost with who gives up", || {
        let scene = Scene::new();
        let visitors: Vec<_> = [FOR_EVER, SOME_TIME, FOR_EVER]
            .into_iter()
            .zip(1..)
            .map(|(limit, who)| {
                let scene = scene.clone();
                thread::spawn(move || scene.visit(who, &[0], limit))
            })
            .collect();
        let ends: Vec<bool> = visitors.into_iter().map(|v| v.join().unwrap()).collect();
        assert!(ends[0] && ends[2], "who waits for ever gets it");
        assert_eq!(scene.locks.in_use(), (0, 0));
        ends[1]
    });
}
