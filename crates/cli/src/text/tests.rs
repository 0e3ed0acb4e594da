use super::*;

fn parse(form: Form, text: &str) -> Option<Vec<u8>> {
    form.parse(OsStr::new(text)).ok()
}

#[test]
fn every_byte_survives_each_form() {
    let all: Vec<u8> = (0..=255).chain("grün ✓ \\x".bytes()).collect();
    for form in [Form::Escaped, Form::Hex, Form::Raw] {
        let mut text = Vec::new();
        form.write(&all, &mut text);
        assert_eq!(form.parse(OsStr::from_bytes(&text)).unwrap(), all, "{form:?}");
    }
    assert_eq!(parse(Form::Escaped, &Form::Escaped.json(&all)), Some(all.clone()));
    assert_eq!(parse(Form::Hex, &Form::Hex.json(&all)), Some(all));
}

#[test]
fn escaped_text_stays_on_one_line_and_in_one_column() {
    assert_eq!(escape(b"a\tb\nc\\\x00\xff"), "a\\tb\\nc\\\\\\x00\\xff");
    assert_eq!(escape("grün".as_bytes()), "grün");
}

#[test]
fn what_is_no_text_of_bytes_is_refused() {
    for bad in ["\\q", "\\x1", "\\x1g", "\\"] {
        assert_eq!(parse(Form::Escaped, bad), None, "{bad}");
    }
    for bad in ["0", "0g", "zz", "é"] {
        assert_eq!(parse(Form::Hex, bad), None, "{bad}");
    }
}
