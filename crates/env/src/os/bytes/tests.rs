use super::*;
use crate::random::Random;

/// Sizes on both sides of each way to get memory.
const SIZES: [usize; 9] = [
    0,
    1,
    SLOT_MIN - HEAD,
    SLOT_MIN - HEAD + 1,
    4200,
    MAPPED - HEAD - 1,
    MAPPED - HEAD,
    crate::slots::SLOT_MAX - HEAD,
    crate::slots::SLOT_MAX - HEAD + 1,
];

#[test]
fn bytes_are_writable_until_they_are_shared() {
    let pool = SlotPool::new(1 << 20);
    for len in SIZES {
        for mut bytes in [SharedBytes::zeroed(len).unwrap(), pool.get(len).unwrap()] {
            assert_eq!((bytes.len(), bytes.as_ptr().addr() % HEAD), (len, 0));
            assert!(bytes.memory() >= len + HEAD);
            bytes.get_mut().unwrap().fill(9);
            let other = bytes.clone();
            assert!(bytes.get_mut().is_none(), "two owners");
            assert!(other.iter().all(|&byte| byte == 9));
            drop(bytes);
            let mut last = other;
            assert_eq!(last.get_mut().unwrap().len(), len);
        }
    }
    assert!(SharedBytes::zeroed(1 << 32).is_err() && pool.get(1 << 32).is_err());
    assert!(SharedBytes::zeroed(usize::MAX).is_err());
}

#[test]
fn memory_outside_a_pool_is_zero() {
    for len in SIZES {
        assert!(SharedBytes::zeroed(len).unwrap().iter().all(|&byte| byte == 0));
    }
}

#[test]
fn what_is_free_beyond_the_limit_goes_back() {
    let pool = SlotPool::new(0);
    let held: Vec<SharedBytes> = (0..1000).map(|_| pool.get(4200).unwrap()).collect();
    let all = held.iter().map(SharedBytes::memory).sum::<usize>();
    assert!(pool.resident() >= all && pool.resident() < all + all / 50);
    drop(held);
    assert_eq!(pool.resident(), 0);
    pool.set_idle_max(1 << 20);
    drop((0..1000).map(|_| pool.get(4200).unwrap()).collect::<Vec<SharedBytes>>());
    let kept = pool.resident();
    assert!(kept > 900 << 10 && kept < 1100 << 10, "{kept}");
    let before = pool.get(4200).unwrap().as_ptr();
    assert_eq!(pool.get(4200).unwrap().as_ptr(), before, "the warmest is taken first");
}

/// What was in use once does not hold the memory of what is.
#[test]
fn the_size_in_use_keeps_its_memory() {
    let pool = SlotPool::new(64 << 10);
    let large: Vec<SharedBytes> = (0..3).map(|i| pool.get((20 + i) << 10).unwrap()).collect();
    drop(large);
    let held: Vec<SharedBytes> = (0..8).map(|_| pool.get(4200).unwrap()).collect();
    drop(held);
    let kept = pool.resident();
    assert!(kept <= (64 << 10) + 8 * PAGE, "{kept}");
    let free = pool.idle.load(Ordering::Relaxed);
    let taken = pool.get(4200).unwrap();
    assert_eq!(free - pool.idle.load(Ordering::Relaxed), taken.memory(), "it was warm");
    assert_eq!(pool.resident(), kept, "no page comes and goes");
    drop(taken);
    assert_eq!((pool.resident(), pool.idle.load(Ordering::Relaxed)), (kept, free));
}

/// Threads that take, fill, share, check and drop pieces: no two ever own the same memory, and it all
/// goes back.
#[test]
fn pieces_of_many_threads_never_meet() {
    let pool = SlotPool::new(64 << 10);
    let given: Mutex<Vec<(u8, SharedBytes)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for who in 1..=4_u8 {
            let (pool, given) = (&pool, &given);
            scope.spawn(move || {
                let mut random = Random::from_seed(u64::from(who));
                for round in 0..2000_u64 {
                    let mark = who ^ (round as u8) << 3;
                    let mut bytes = pool.get(2000 + random.below(9000) as usize).unwrap();
                    bytes.get_mut().unwrap().fill(mark);
                    given.lock().push((mark, bytes.clone()));
                    let taken = {
                        let mut given = given.lock();
                        let at = random.below(given.len() as u64) as usize;
                        if given.len() > 50 { Some(given.swap_remove(at)) } else { None }
                    };
                    if let Some((mark, bytes)) = taken {
                        assert!(bytes.iter().all(|&byte| byte == mark));
                    }
                    assert!(bytes.iter().all(|&byte| byte == mark));
                }
            });
        }
    });
    drop(given);
    assert!(pool.resident() <= (64 << 10) + 64 * 2 * PAGE, "{}", pool.resident());
}
