use super::*;
use lithify_base::Bytewise;
use proptest::prelude::*;

fn fences(ends: &[u8]) -> Vec<BlockFence> {
    ends.iter().map(|&k| BlockFence { last_key: [k][..].into(), bytes: 10 }).collect()
}

fn all_sets(runs: &[Vec<BlockFence>], budget: u64) -> Vec<CutSet> {
    let mut cut = CleanCut::new(runs.iter().map(Vec::as_slice).collect(), &Bytewise);
    std::iter::from_fn(|| cut.next_set(budget)).collect()
}

#[test]
fn a_straddling_block_is_sent_twice() {
    let runs = [fences(b"cfk"), fences(b"eh")];
    let sets = all_sets(&runs, 40);
    assert_eq!(sets[0].keys.hi.as_deref(), Some(&b"c"[..]));
    assert_eq!(sets[0].blocks, [0..2, 0..1]);
    assert_eq!(sets[1].blocks, [1..3, 0..2]);
    assert_eq!(sets[1].keys, CleanRange { lo: Some(b"c"[..].into()), hi: None });
}

#[test]
fn a_small_rest_is_split_evenly() {
    let runs = [fences(&(0..14).collect::<Vec<u8>>())];
    let bytes: Vec<u64> = all_sets(&runs, 100).iter().map(|s| s.bytes).collect();
    assert_eq!(bytes, [70, 80], "140 bytes are two halves and the block between them");
}

#[test]
fn one_giant_key_does_not_stop_the_cut() {
    let runs = [fences(&[5; 30]), fences(&[1, 5, 9])];
    let sets = all_sets(&runs, 20);
    assert!(sets.iter().any(|s| s.bytes > 300), "all versions of the key lie in one set");
    assert_eq!(sets.last().map(|s| s.keys.hi.clone()), Some(None));
}

#[test]
fn a_giant_block_is_not_sent_again_with_each_small_one() {
    let giant = vec![BlockFence { last_key: b"\xff"[..].into(), bytes: 5000 }];
    let small = fences(&(0..200).collect::<Vec<u8>>());
    let sets = all_sets(&[giant, small], 40);
    let sent: u64 = sets.iter().map(|s| s.bytes).sum();
    assert!(sent <= 2 * (5000 + 2000), "{sent} bytes in {} sets", sets.len());
}

proptest! {
    /// Every block is sent to every set whose keys it may hold, and sets cover all keys once.
    #[test]
    fn sets_cover_all_keys_in_order(
        mut runs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
        budget in 1u64..600,
    ) {
        runs.iter_mut().for_each(|r| r.sort_unstable());
        let runs: Vec<Vec<BlockFence>> = runs.iter().map(|r| fences(r)).collect();
        let sets = all_sets(&runs, budget);
        prop_assert_eq!(sets.is_empty(), runs.iter().all(Vec::is_empty));
        let mut lo: Option<Key> = None;
        for (no, set) in sets.iter().enumerate() {
            prop_assert_eq!(set.no as usize, no);
            prop_assert_eq!(&set.keys.lo, &lo);
            prop_assert!(set.keys.hi.is_none() || set.keys.hi > lo);
            for (run, sent) in runs.iter().zip(&set.blocks) {
                for (i, f) in run.iter().enumerate() {
                    // Block i may hold keys from the fence before it up to its own.
                    let starts_in = set.keys.hi.is_none()
                        || i == 0
                        || run[i - 1].last_key <= *set.keys.hi.as_ref().unwrap();
                    let ends_in = lo.as_ref().is_none_or(|lo| f.last_key > *lo);
                    prop_assert_eq!(sent.contains(&i), starts_in && ends_in, "set {} block {}", no, i);
                }
            }
            lo = set.keys.hi.clone();
        }
        prop_assert!(lo.is_none(), "the last set is open");
    }
}
