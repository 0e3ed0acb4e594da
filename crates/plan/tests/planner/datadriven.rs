//! The form of the files of pictures.

use lithify_testkit::datadriven::parse;

const FILE: &str = "# why\nadd x=1 y=2 now\nbody\n----\n3\n\nadd\n----\n\nadd x=5\n----\n5\n";

#[test]
fn cases_have_words_pairs_body_and_answer() {
    let cases = parse(FILE);
    let c = &cases[0];
    assert_eq!((c.line, &*c.command, c.lines()), (2, "add", vec!["body"]));
    assert_eq!((c.value("y"), c.value("z"), &*c.words), (Some("2"), None, &["now".into()][..]));
    let answers: Vec<&str> = cases.iter().map(|c| &*c.expected).collect();
    assert_eq!(answers, ["3\n", "", "5\n"]);
    let all: String = cases.iter().map(|c| format!("{}{}\n", c.source, c.expected)).collect();
    assert_eq!(all.trim_end(), FILE.trim_end(), "a rewrite of right answers changes nothing");
}

#[test]
#[should_panic(expected = "line 1: no `----` follows")]
fn an_open_case_is_named() {
    parse("add\n1\n");
}
