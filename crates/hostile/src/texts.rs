//! Files of text and names of files.

use lithify_journal::files::{FileName, current_content, parse_current};
use lithify_journal::options::{OptionsFile, check_sum};

pub(super) fn options(bytes: &[u8]) {
    let _ = check_sum(bytes);
    let Ok(file) = OptionsFile::parse(bytes) else { return };
    assert_eq!(file.families.first().map(|f| f.name.as_str()), Some("default"));
    for family in &file.families {
        let _ = (family.comparator(), family.merge_operator(), family.prefix_extractor());
    }
}

pub(super) fn names(bytes: &[u8]) {
    if let Ok(number) = parse_current(bytes) {
        assert_eq!(current_content(number).as_bytes(), bytes, "one spelling only");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(file) = FileName::parse(text) {
        assert_eq!(file.to_string(), text, "one spelling only");
    }
}
