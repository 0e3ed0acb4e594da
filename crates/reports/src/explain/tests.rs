//! What is said of moments that were made by hand: no line contradicts another.

use super::*;

fn wish(kind: &str, inputs: &[u64]) -> Wish {
    Wish {
        kind: kind.to_owned(),
        why: "it is due".to_owned(),
        because: String::new(),
        waits_for: Vec::new(),
        bytes: 7,
        inputs: inputs.to_vec(),
    }
}

/// A tree whose level 0 is deep enough to slow writers, with two jobs due.
fn deep(live: bool) -> Explanation {
    let cause = Cause::L0Files.name();
    let bound = Bound {
        cause,
        what: "runs of level 0 over one key",
        in_bytes: false,
        now: 20,
        slows_at: Some(20),
        stops_at: Some(36),
    };
    let need =
        |level, need| LevelNeed { level, depth: 1, files: 1, bytes: 7, target_bytes: None, need };
    Explanation {
        writes: Writes::Slowed { cause, bytes_per_second: None },
        lasts: None,
        flush_trouble: None,
        compaction_trouble: None,
        engine_trouble: Vec::new(),
        hanging: Vec::new(),
        prepared: 0,
        bounds: vec![bound],
        levels: vec![need(0, 5000), need(6, 0)],
        jobs: Vec::new(),
        blocked: Vec::new(),
        due: vec![wish("L0Bucket to L5", &[3, 4]), wish("Down to L6", &[8])],
        running: 0,
        slots_now: 2,
        price: 0.0,
        slots: 2,
        live,
        automatic: true,
    }
}

#[test]
fn a_tree_at_rest_is_told_by_what_would_be() {
    let text = deep(false).to_string();
    assert!(text.starts_with("Writes would be slowed: 20 runs of level 0"), "{text}");
    assert!(text.contains("\nDue, once the database is opened for writing:\n  L0B"), "{text}");
    assert!(!text.contains("slots"), "no handle runs compactions: {text}");
}

/// Beside the handle that writes: no verdict, as only that one knows, and no job that it is busy with.
#[test]
fn beside_a_writer_nothing_is_said_that_only_it_knows() {
    let told = deep(false).beside(&[4, 5]);
    assert_eq!(told.writes, Writes::Unknown);
    let text = told.to_string();
    assert!(!text.contains("would be") && !text.contains("opened for writing"), "{text}");
    assert!(!text.contains("slots") && !text.contains("L0Bucket"), "{text}");
    assert!(text.contains("\nDue by the files as they are now, unless"), "{text}");
    assert!(text.contains("\n  Down to L6"), "{text}");
}

#[test]
fn what_is_due_is_not_denied() {
    let text = deep(true).to_string();
    assert!(!text.contains("nothing to start"), "{text}");
    let told = Explanation { due: Vec::new(), ..deep(true) };
    assert!(told.to_string().contains("nothing to start"), "{told}");
}

#[test]
fn without_automatic_compaction_nothing_is_due() {
    let told =
        Explanation { automatic: false, writes: Writes::Free, due: Vec::new(), ..deep(false) };
    let text = told.to_string();
    assert!(text.contains("\nAutomatic compaction is off (auto_compaction)"), "{text}");
    assert!(!text.contains("5.00  due"), "{text}");
    assert!(deep(false).to_string().contains("5.00  due"));
}
