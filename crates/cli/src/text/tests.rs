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
}

#[test]
fn strings_in_json_stand_for_themselves_and_stay_short() {
    let of = |form: Form, bytes: &[u8]| {
        let mut object = Map::new();
        form.put_json("key", bytes, &mut object);
        crate::output::json_line(&Value::Object(object))
    };
    assert_eq!(of(Form::Escaped, b"a\tb\\x00"), r#"{"key":"a\tb\\x00"}"#);
    assert_eq!(of(Form::Raw, "grün".as_bytes()), r#"{"key":"grün"}"#);
    assert_eq!(of(Form::Escaped, b""), r#"{"key":""}"#);
    assert_eq!(of(Form::Escaped, b"\xff"), r#"{"key_hex":"ff"}"#);
    assert_eq!(of(Form::Escaped, b"\x00\x01"), r#"{"key_hex":"0001"}"#);
    assert_eq!(of(Form::Hex, b"a"), r#"{"key_hex":"61"}"#);
    for byte in 0..0x80u8 {
        let text = char::from(byte).to_string();
        assert_eq!(
            json_len(&text),
            crate::output::json_line(&Value::from(&*text)).len() - 2,
            "{byte}"
        );
        assert!(of(Form::Escaped, &[byte; 1000]).len() <= 2000 + 20, "{byte}");
    }
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
