//! Generated streams: what they say of themselves, however they are cut.

use lithify_base::Kind;
use lithify_engine::stream::{Stream, StreamShape};
use lithify_merge::view::View;

/// All entries of a stream, cut into sets of so many bytes: number of each run, deletes, and those whose
/// key a newer run has.
#[test]
fn a_stream_is_what_it_says() {
    let shape = StreamShape { runs: 8, key: 16, value: 100, bytes: 2 << 20, seed: 7 };
    let mut all = Vec::new();
    for budget in [64 << 10, 300 << 10] {
        let mut stream = Stream::new(shape);
        let recipe = stream.recipe.clone();
        let (mut entries, bytes) = (Vec::new(), stream.bytes());
        assert!((bytes as f64 / shape.bytes as f64 - 1.0).abs() < 0.01, "{bytes} bytes");
        let mut counted = 0;
        while let Some(set) = stream.next_set(budget, u16::MAX).unwrap() {
            assert!(set.bytes() < 2 * budget);
            for run in &set.runs {
                for block in &*run.blocks {
                    let mut view = View::default();
                    view.load(block, &[]).unwrap();
                    let of_set = view.trim(&set.keys, &recipe.range, &[], &*recipe.order).unwrap();
                    for i in of_set {
                        counted += view.key(i).len() + 8 + view.entry(i, view.values()).value.len();
                        entries.push((view.key(i).to_vec(), run.run, view.tag(i)));
                    }
                }
            }
        }
        assert_eq!(counted as u64, bytes);
        entries.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        all.push(entries);
    }
    assert_eq!(all[0], all[1], "however it is cut");
    let entries = &all[0];
    let n = entries.len() as f64;
    let hidden = entries.windows(2).filter(|w| w[0].0 == w[1].0).count() as f64;
    assert!((0.08..0.12).contains(&(hidden / n)), "{hidden} of {n} are hidden");
    let deletes = entries.iter().filter(|e| e.2.kind() == Some(Kind::Delete)).count() as f64;
    assert!((0.04..0.06).contains(&(deletes / n)), "{deletes} of {n} are deletes");
    assert!(entries.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 > w[1].2), "newer runs first");
}
