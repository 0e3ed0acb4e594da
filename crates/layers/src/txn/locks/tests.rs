use lithify_env::sync::atomic::AtomicBool;
use lithify_env::{OsRt, RtOptions};

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn key(n: u8) -> FamilyKey {
    FamilyKey::new(CfId(0), &[n], &lithify_base::bytewise())
}

struct Scene {
    locks: Locks,
    rt: OsRt,
}

impl Scene {
    fn new() -> Scene {
        Scene { locks: Locks::default(), rt: OsRt::new(RtOptions::default()) }
    }
    fn lock(&self, who: TxnId, n: u8, limit: Duration) -> Result<()> {
        self.locks.lock(who, &key(n), limit, &self.rt)
    }
    fn unlock(&self, who: TxnId, n: u8) {
        self.locks.unlock(who, &key(n));
    }
    /// Waits until so many wait for a lock.
    fn until_waiting(&self, count: usize) {
        while self.locks.in_use().1 < count {
            self.rt.park(&Ticket::new(), Some(self.rt.now() + Duration::from_millis(1)));
        }
    }
}

/// Locked in turn, a key goes to those who wait in the order in which they came.
#[test]
fn a_key_goes_to_who_waited_longest() {
    let scene = Scene::new();
    scene.lock(1, 7, LONG).unwrap();
    let order = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for who in 2..6 {
            let (scene, order) = (&scene, &order);
            s.spawn(move || {
                scene.lock(who, 7, LONG).unwrap();
                order.lock().push(who);
                scene.unlock(who, 7);
            });
            scene.until_waiting(who as usize - 1);
        }
        assert!(order.lock().is_empty(), "another has the lock beside its holder");
        scene.unlock(1, 7);
    });
    assert_eq!(*order.lock(), [2, 3, 4, 5]);
    assert_eq!(scene.locks.in_use(), (0, 0));
}

/// The one that closes a circle is told, with the circle; the others go on once it gives way.
#[test]
fn who_closes_a_circle_is_refused() {
    for length in 2..6u8 {
        let scene = Scene::new();
        for who in 0..length {
            scene.lock(who.into(), who, LONG).unwrap();
        }
        std::thread::scope(|s| {
            // Each but the last waits for the next one's key.
            for who in 0..length - 1 {
                let scene = &scene;
                s.spawn(move || {
                    scene.lock(who.into(), who + 1, LONG).unwrap();
                    scene.unlock(who.into(), who + 1);
                    scene.unlock(who.into(), who);
                });
            }
            scene.until_waiting(length as usize - 1);
            let last = length - 1;
            let refused = scene.lock(last.into(), 0, LONG).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Deadlock);
            let circle = format!("transactions {last} -> 0 -> ");
            assert!(refused.to_string().starts_with(&circle), "{refused}");
            scene.unlock(last.into(), last);
        });
        assert_eq!(scene.locks.in_use(), (0, 0));
    }
}

/// A circle that arises through a hand-over: who waited behind another waits for that one now.
#[test]
fn edges_follow_a_key_that_changes_hands() {
    let scene = Scene::new();
    scene.lock(1, 0, LONG).unwrap();
    scene.lock(3, 9, LONG).unwrap();
    std::thread::scope(|s| {
        let scene = &scene;
        let second = s.spawn(move || scene.lock(2, 0, LONG));
        scene.until_waiting(1);
        let third = s.spawn(move || scene.lock(3, 0, LONG));
        scene.until_waiting(2);
        scene.unlock(1, 0);
        second.join().unwrap().unwrap();
        // 3 waits for 2 now, no longer for 1.
        assert_eq!(scene.lock(2, 9, LONG).unwrap_err().kind(), ErrorKind::Deadlock);
        assert_eq!(scene.lock(1, 9, Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
        scene.unlock(2, 0);
        third.join().unwrap().unwrap();
        scene.unlock(3, 0);
        scene.unlock(3, 9);
    });
    assert_eq!(scene.locks.in_use(), (0, 0));
}

/// Who gave up waiting is not given the key, and does not count as waiting.
#[test]
fn who_gave_up_is_passed_over() {
    let scene = Scene::new();
    scene.lock(1, 0, LONG).unwrap();
    scene.lock(2, 1, LONG).unwrap();
    let refused = scene.lock(2, 0, Duration::from_millis(5)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    assert!(refused.to_string().starts_with("transaction 1 held"), "{refused}");
    assert_eq!(scene.locks.in_use(), (2, 0));
    // No circle: 2 waits no more.
    let refused = scene.lock(1, 1, Duration::from_millis(5)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    scene.unlock(1, 0);
    scene.unlock(2, 1);
    assert_eq!(scene.locks.in_use(), (0, 0));
}

/// Many threads over few keys, some impatient: no key has two holders, and nothing is left.
#[test]
fn a_key_has_one_holder() {
    let scene = Scene::new();
    let taken: [AtomicBool; 6] = Default::default();
    let refusals = AtomicU64::new(0);
    std::thread::scope(|s| {
        for thread in 0..4 {
            let (scene, taken, refusals) = (&scene, &taken, &refusals);
            s.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread);
                for _ in 0..400 {
                    let who = scene.locks.enrol();
                    let mut held = Vec::new();
                    for _ in 0..3 {
                        let n = rng.u8(0..6);
                        let limit = Duration::from_micros([0, 50, 1_000_000][rng.usize(0..3)]);
                        if held.contains(&n) {
                            continue;
                        }
                        match scene.lock(who, n, limit) {
                            Ok(()) => {
                                let before = taken[n as usize].swap(true, Ordering::SeqCst);
                                assert!(!before, "a key with two holders");
                                held.push(n);
                            }
                            Err(_) => {
                                refusals.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                        }
                        std::thread::yield_now();
                    }
                    for n in held {
                        taken[n as usize].store(false, Ordering::SeqCst);
                        scene.unlock(who, n);
                    }
                }
            });
        }
    });
    assert!(refusals.into_inner() > 0, "none was in another's way");
    assert_eq!(scene.locks.in_use(), (0, 0));
}
