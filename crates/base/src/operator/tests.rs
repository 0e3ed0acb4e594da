use super::*;

const NUMBERS: [&[u8]; 4] =
    [&[1, 0, 0, 0, 0, 0, 0, 0], &[255; 8], &[0, 0, 0, 0, 0, 0, 0, 1], &[7, 1, 0, 0, 0, 0, 0, 0]];

/// Combining neighbours first, in any grouping, changes nothing.
#[test]
fn partial_merges_do_what_the_operands_would_do() {
    let ours: [MergeOperatorRef; 3] = [Arc::new(Add), Arc::new(Append::new("; ")), Arc::new(Max)];
    for op in ours {
        for existing in [None, Some(NUMBERS[3]), Some(NUMBERS[1])] {
            let plain = full_merge(&*op, b"k", existing, &NUMBERS).unwrap();
            for at in 0..3 {
                let pair = partial_merge(&*op, b"k", NUMBERS[at], NUMBERS[at + 1]).unwrap();
                let mut fewer = NUMBERS.to_vec();
                fewer.splice(at..at + 2, [&pair[..]]);
                assert_eq!(
                    full_merge(&*op, b"k", existing, &fewer).unwrap(),
                    plain,
                    "{}",
                    op.name()
                );
            }
        }
        assert_eq!(built_in(op.name()).unwrap().name(), op.name());
    }
    assert!(built_in("nullptr").is_none());
}

#[test]
fn the_ones_of_ours_by_example() {
    let n = |n: u64| n.to_le_bytes();
    let add =
        |existing: Option<&[u8]>, operands: &[&[u8]]| Add.full_merge(b"k", existing, operands);
    assert_eq!(add(None, &[&n(3)]).unwrap(), n(3));
    assert_eq!(add(Some(&n(5)), &[&n(3), &n(u64::MAX)]).unwrap(), n(7), "it wraps around");
    let list = Append::default();
    assert_eq!(list.full_merge(b"k", None, &[b"a"]).unwrap(), b"a");
    assert_eq!(list.full_merge(b"k", Some(b""), &[b"a", b"b"]).unwrap(), b",a,b");
    assert_eq!(Max.full_merge(b"k", Some(b"b"), &[b"a", b"ab"]).unwrap(), b"b");
    assert_eq!(Max.full_merge(b"k", None, &[b"a", b"ab"]).unwrap(), b"ab");
}

struct Panics;
impl MergeOperator for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>> {
        panic!("told to")
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        panic!("told to")
    }
}

#[test]
fn a_failure_is_an_error_that_names_operator_and_key() {
    for (op, what) in [(&Add as &dyn MergeOperator, "8 bytes"), (&Panics, "panicked")] {
        let error = full_merge(op, b"the key", None, &[b"odd"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MergeFailed);
        let text = error.to_string();
        for part in [op.name(), "the key", what] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(partial_merge(op, b"k", b"odd", b"odd"), None);
    }
}
