use lithify_base::CfId;

use super::*;

fn writes() -> BatchBuilder {
    let mut writes = BatchBuilder::new();
    writes.put(CfId(0), b"k", b"v");
    writes
}

#[test]
fn a_log_stays_until_what_ended_its_sections_is_in_tables() {
    let prepared = Prepared::default();
    assert_eq!((prepared.first_log(5), prepared.kept_from(5)), (0, 5));
    prepared.begin(b"pay", 5, writes());
    prepared.begin(b"ship", 6, writes());
    assert!(prepared.check_free(b"pay").is_err() && prepared.check_free(b"bill").is_ok());
    // Families flushed past both.
    assert_eq!((prepared.first_log(8), prepared.kept_from(8)), (5, 5));
    prepared.end(b"pay", 8);
    assert_eq!(prepared.first_log(8), 5, "log 8 may be lost");
    assert_eq!(prepared.first_log(9), 6);
    prepared.end(b"ship", 9);
    assert_eq!(prepared.first_log(10), 0);
    assert!(prepared.is_empty() && prepared.check_free(b"pay").is_ok());
}

#[test]
fn a_log_goes_only_once_the_manifest_says_so() {
    let prepared = Prepared::default();
    prepared.begin(b"pay", 5, writes());
    prepared.tell(5);
    prepared.end(b"pay", 6);
    assert_eq!((prepared.first_log(7), prepared.kept_from(7)), (0, 5));
    prepared.tell(0);
    assert_eq!(prepared.kept_from(7), 7);
}
