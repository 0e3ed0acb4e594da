use super::*;
use crate::dump::Line;

fn choice(key: &[&str], value: Option<&str>) -> Choice {
    Choice {
        key: key.iter().map(|&k| k.to_owned()).collect(),
        value: value.map(str::to_owned),
        join: b"/".to_vec(),
        header: true,
    }
}

/// All rows, as `key=value` or `!reason`.
fn rows(format: Format, choice: Choice, text: &[u8]) -> Result<Vec<String>> {
    let mut rows = choice.rows(format, Source::from_bytes(text))?;
    let mut entry = Entry::default();
    let mut found = Vec::new();
    loop {
        found.push(match rows.next(&mut entry)? {
            Row::End => return Ok(found),
            Row::Skipped(reason) => format!("!{reason}"),
            Row::Family { name, order } => format!("[{name} {order:?}]"),
            Row::Entry => format!(
                "{}={}",
                String::from_utf8_lossy(&entry.key),
                String::from_utf8_lossy(&entry.value)
            ),
        });
    }
}

#[test]
fn columns_by_name_and_by_number() {
    let tsv = b"name\tcolour\napple\tred\npear\n\"q\tx\n";
    assert_eq!(
        rows(Format::Tsv, choice(&[], None), tsv).unwrap(),
        ["apple=apple\tred", "pear=pear", "\"q=\"q\tx"]
    );
    assert_eq!(
        rows(Format::Tsv, choice(&["colour", "1"], Some("name")), tsv).unwrap(),
        ["red/apple=apple", "!too few columns for the key", "x/\"q=\"q"]
    );
    let error = rows(Format::Tsv, choice(&["taste"], None), tsv).unwrap_err();
    assert!(error.to_string().contains("there are name, colour"), "{error}");
}

#[test]
fn quoted_rows_come_back_quoted() {
    let csv = b"a,b\n\"x,1\",\"say \"\"hi\"\"\"\n";
    assert_eq!(
        rows(Format::Csv, choice(&["a"], None), csv).unwrap(),
        ["x,1=\"x,1\",\"say \"\"hi\"\"\""]
    );
    let mut plain = choice(&["2"], Some("1"));
    plain.header = false;
    assert_eq!(rows(Format::Csv, plain, b"1,2\n").unwrap(), ["2=1"]);
}

#[test]
fn json_lines_keep_their_text() {
    let text = b"{\"id\": 7, \"x\":  1}\n\nnonsense\n{\"id\":null}\n{\"id\":\"a\",\"x\":[1, 2]}";
    assert_eq!(
        rows(Format::Jsonl, choice(&["id"], None), text).unwrap(),
        [
            "7={\"id\": 7, \"x\":  1}",
            "!empty line",
            "!not a JSON object",
            "!a field of the key is missing, null or not plain",
            "a={\"id\":\"a\",\"x\":[1, 2]}"
        ]
    );
    let text = b"{\"id\":123456789012345678901,\"x\":1.10}\n{\"id\":1e3, \"x\": {\"b\": 1,\"b\":2}}\n\
                 {\"\\u0069d\":\"\\u00e4\",\"x\":\"\\n\"}\n{\"id\":true,\"x\":null}\n{\"id\":[1],\"x\":0}";
    assert_eq!(
        rows(Format::Jsonl, choice(&["id"], Some("x")), text).unwrap(),
        [
            "123456789012345678901=1.10",
            "1e3={\"b\": 1,\"b\":2}",
            "\u{e4}=\n",
            "true=null",
            "!a field of the key is missing, null or not plain"
        ]
    );
    assert!(rows(Format::Jsonl, choice(&[], None), text).is_err());
}

#[test]
fn paragraphs_end_at_blank_lines() {
    let text = b"\n\nPackage: a\nVersion: 1\nDescription: x\n more\n  and more\nTag: t\n\n\
                 Package: b\n\nPackage: c\nVersion: 2";
    let key = ["package", "Version"];
    assert_eq!(
        rows(Format::Deb822, choice(&key, None), text).unwrap(),
        [
            "a/1=Package: a\nVersion: 1\nDescription: x\n more\n  and more\nTag: t",
            "!a field of the key is missing",
            "c/2=Package: c\nVersion: 2"
        ]
    );
    assert_eq!(
        rows(Format::Deb822, choice(&["Package"], Some("Description")), text).unwrap()[0],
        "a=x\n more\n  and more"
    );
}

fn binary(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in entries {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
    out
}

#[test]
fn binary_entries_and_every_truncation() {
    let bytes = binary(&[(b"a", b"1"), (b"bb", b"")]);
    assert_eq!(rows(Format::Binary, choice(&[], None), &bytes).unwrap(), ["a=1", "bb="]);
    let whole = [0, 10, bytes.len()];
    for cut in 0..=bytes.len() {
        let result = rows(Format::Binary, choice(&[], None), &bytes[..cut]);
        assert_eq!(result.is_ok(), whole.contains(&cut), "cut at {cut}");
    }
}

#[test]
fn lengths_that_cannot_be_are_refused_before_memory_is_taken() {
    let error = rows(Format::Binary, choice(&[], None), &[0xff; 64]).unwrap_err();
    assert!(error.to_string().contains("length-prefixed"), "{error}");
    let padded = [binary(&[(b"a", b"1")]), vec![0; 24]].concat();
    let error = rows(Format::Binary, choice(&[], None), &padded).unwrap_err();
    assert!(
        error.to_string().contains("byte 10") && error.to_string().contains("zeros"),
        "{error}"
    );
}

/// What reading `text` as CSV gives until its error, and the error.
fn broken(text: &[u8]) -> (Vec<String>, String) {
    let mut found = Vec::new();
    let mut plain = choice(&[], Some("2"));
    plain.header = false;
    let mut rows = plain.rows(Format::Csv, Source::from_bytes(text)).unwrap();
    let mut entry = Entry::default();
    loop {
        match rows.next(&mut entry) {
            Ok(Row::Entry) => found.push(String::from_utf8_lossy(&entry.value).into_owned()),
            Ok(Row::Skipped(reason)) => found.push(format!("!{reason}")),
            Ok(_) => return (found, String::new()),
            Err(error) => return (found, error.to_string()),
        }
    }
}

#[test]
fn a_quote_that_is_not_closed_is_refused_with_its_line() {
    let (rows, error) = broken(b"a,1\nb,\"x\ny\"\nc,\"never\nd,4\ne,5\n");
    assert_eq!(rows, ["1", "x\ny"]);
    assert!(error.starts_with("line 4: ") && error.contains("never closed"), "{error}");
    // The next quote would close it.
    let (rows, error) = broken(b"a,1\nb,\"not closed\nc,\"3\"\nd,4\n");
    assert_eq!(rows, ["1"]);
    assert!(error.starts_with("line 2: ") && error.contains("not closed before"), "{error}");
    // It closes it, and the field that it was to open begins with a separator, or with a line's end.
    let (rows, error) = broken(b"a,1\nb,\"not closed\nc,\",x\"\nd,4\n");
    assert_eq!(rows, ["1"]);
    assert!(error.starts_with("line 3: ") && error.contains("before it is not closed"), "{error}");
    let (rows, error) = broken(b"a,1\nb,\"not closed\nc,\"\nx\"\nd,4\n");
    assert_eq!(rows[..2], ["1".to_owned(), "not closed\nc,".to_owned()], "a field like any other");
    assert!(error.starts_with("line 4: "), "{error}");
    let (rows, error) = broken(b"a,b\"c\n");
    assert!(rows.is_empty() && error.contains("in the middle of a field"), "{error}");
    let (rows, error) = broken(b"a,\"x\" \nb,2\n");
    assert!(rows.is_empty() && error.starts_with("line 1: "), "{error}");
    let (rows, error) = broken(b"\"");
    assert!(rows.is_empty() && error.starts_with("line 1: "), "{error}");
    // In TSV quotes are letters.
    let tsv = rows_of_tsv(b"k\tv\na\t\"1\nb\t2\n");
    assert_eq!(tsv, ["a=\"1", "b=2"]);
}

fn rows_of_tsv(text: &[u8]) -> Vec<String> {
    rows(Format::Tsv, choice(&[], Some("v")), text).unwrap()
}

#[test]
fn rows_end_as_files_end_them() {
    assert_eq!(broken(b"\xef\xbb\xbfa,1\r\nb,2\r\nc,3\r").0, ["1", "2", "3"]);
    let (found, error) = broken(b"a,1\nb,2\rc,3");
    assert_eq!(found, ["1"]);
    assert!(error.starts_with("line 2: ") && error.contains("carriage return"), "{error}");
    assert_eq!(broken(b"\xef\xbb\xbf\"a\",1").0, ["1"]);
    assert_eq!(broken(b"\n\na,1\n\r\n\nb,2\n\n").0, ["1", "2"]);
    assert_eq!(broken(b"a,\n,\nb\n").0, ["", "", "!too few columns for the value"]);
    let more = "!not as many columns as the first row has";
    assert_eq!(broken(b"a,1\nb,2, and more\nc,3\n").0, ["1", more, "3"]);
    assert_eq!(rows_of_tsv(b"k\tv\na\t1\t2\nb\t3\n"), [more, "b=3"]);
    let whole = rows(Format::Tsv, choice(&[], None), b"k\tv\na\t1\t2\n").unwrap();
    assert_eq!(whole, ["a=a\t1\t2"], "nothing of it is lost");
    assert_eq!(broken(b"a,\"\"\n\"b\",\"x\r\n,\"\"\"\n").0, ["", "x\r\n,\""]);
    assert_eq!(broken(b"").0, [""; 0]);
}

/// Rows that are written as text and read again are the same, whatever is in them.
#[test]
fn rows_of_any_bytes_come_back() {
    let mut rng = fastrand::Rng::with_seed(5);
    for separator in [b',', b'\t'] {
        let quotes = separator == b',';
        for _ in 0..2000 {
            let fields: Vec<Vec<u8>> = (0..rng.usize(1..5))
                .map(|_| {
                    let letters =
                        if quotes { &b"ab,\"\n\r\t \xff"[..] } else { &b"ab,\" \xff"[..] };
                    (0..rng.usize(0..6)).map(|_| letters[rng.usize(..letters.len())]).collect()
                })
                .collect();
            if !quotes && fields.len() == 1 && fields[0].is_empty() {
                continue; // An empty line is no row.
            }
            let text = separated::text_of(&fields, separator);
            let read = separated::fields_of(&text, separator).unwrap();
            assert!(read == [fields], "{}", text.escape_ascii());
        }
    }
}

/// A source that never ends, in parts that are no multiple of anything.
struct Endless(&'static [u8], std::rc::Rc<std::cell::Cell<usize>>);

impl std::io::Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let count = buf.len().min(10_007) / self.0.len() * self.0.len();
        buf[..count].chunks_mut(self.0.len()).for_each(|part| part.copy_from_slice(self.0));
        self.1.set(self.1.get() + count);
        Ok(count)
    }
}

/// After three rows, one that goes on for ever.
#[test]
fn a_row_without_end_is_refused_before_it_is_in_memory() {
    use std::io::Read;
    type Make = Box<dyn Fn(Source) -> Result<Box<dyn Rows>>>;
    let of = |format: Format, key: &'static [&'static str]| -> Make {
        Box::new(move |source| choice(key, None).rows(format, source))
    };
    let escaped =
        |style| -> Make { Box::new(move |s| Ok(Box::new(dumped::Dumped::new(s, style)))) };
    type Case = (&'static str, Make, &'static [u8], &'static [u8], &'static str);
    let cases: [Case; 9] = [
        ("tsv", of(Format::Tsv, &[]), b"k\tv\na\tb\nc\td\n", b"x", "line 4: "),
        ("csv", of(Format::Csv, &[]), b"k,v\na,b\nc,d\n", b"x", "line 4: "),
        ("csv, columns", of(Format::Csv, &[]), b"k,v\na,b\nc,d\n", b",", "line 4: "),
        ("csv, quoted", of(Format::Csv, &[]), b"k,v\na,b\nc,d\ne,\"", b"x\n", "line 4: "),
        ("jsonl", of(Format::Jsonl, &["k"]), b"\n{\"k\":1}\n{\"k\":2}\n", b" ", "line 4: "),
        ("deb822", of(Format::Deb822, &["k"]), b"k: a\n\nk: b\n\n", b"k: c\n", "line "),
        ("escaped key", escaped(Style::Text), b"a\tb\nc\td\n", b"x", "line 3: the key"),
        ("escaped value", escaped(Style::Text), b"a\tb\nc\td\ne\t", b"\\x00", "line 3: the value"),
        (
            "escaped json",
            escaped(Style::Json),
            b"{\"key\":\"a\",\"value\":\"\"}\n",
            b" ",
            "line 2: ",
        ),
    ];
    for (what, make, start, endless, line) in cases {
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let source = std::io::Cursor::new(start).chain(Endless(endless, count.clone()));
        let mut rows = make(Source::from_reader(source)).unwrap();
        let (mut entry, mut found) = (Entry::default(), 0);
        let error = loop {
            match rows.next(&mut entry) {
                Ok(Row::End) => panic!("{what}: the end of what has none"),
                Ok(Row::Entry) => found += 1,
                Ok(_) => {}
                Err(error) => break format!("{error:#}"),
            }
        };
        assert_eq!(found, if what == "escaped json" { 1 } else { 2 }, "{what}");
        assert!(error.starts_with(line) && error.contains("longer than"), "{what}: {error}");
        // Escapes are resolved as they are read: four letters are one byte.
        let most = (endless.len() * lines::ROW_MAX).max(crate::dump::LINE_MAX) + (512 << 10);
        assert!(count.get() <= most, "{what}: {} bytes were read", count.get());
    }
}

/// Family, key and value.
type Of = (String, Vec<u8>, Vec<u8>);

/// What a dump reads as, if it is accepted.
fn entries(style: Style, text: &[u8]) -> Option<Vec<Of>> {
    let mut rows = dumped::Dumped::new(Source::from_bytes(text), style);
    let (mut entry, mut family, mut found) = (Entry::default(), String::new(), Vec::new());
    loop {
        match rows.next(&mut entry).ok()? {
            Row::End => return Some(found),
            Row::Family { name, .. } => family = name,
            Row::Entry => found.push((family.clone(), entry.key.clone(), entry.value.clone())),
            Row::Skipped(reason) => panic!("a line of a dump was skipped: {reason}"),
        }
    }
}

/// A dump with one byte taken out, put in or changed is refused, or has as many entries as before.
#[test]
fn changed_dumps_lose_no_entry_and_read_without_panic() {
    let written: [(&str, &[u8], &[u8]); 5] = [
        ("default", b"apple", b"red"),
        ("default", b"a\tb\n", b"\xff\x00\\"),
        ("trees", b"\0", b""),
        ("trees", b"end 2", b"family x"),
        ("trees", "\u{fc}".as_bytes(), b"\"quoted\""),
    ];
    let mut rng = fastrand::Rng::with_seed(3);
    for style in [Style::Text, Style::Json] {
        let mut text = Vec::new();
        style.write(Line::Begin, &mut text);
        for (i, (family, key, value)) in written.into_iter().enumerate() {
            if i == 0 || written[i - 1].0 != family {
                style.write(Line::Family { name: family, order: Order::Bytewise }, &mut text);
            }
            style.write(Line::Entry { key, value }, &mut text);
        }
        style.write(Line::End(written.len() as u64), &mut text);
        let whole = entries(style, &text).expect("it is whole");
        assert!(whole.iter().map(|(f, k, v)| (&**f, &**k, &**v)).eq(written));
        let mut refused = 0;
        for _ in 0..20_000 {
            let (mut changed, at) = (text.clone(), rng.usize(..text.len()));
            match rng.u8(0..3) {
                0 => changed[at] = rng.u8(..),
                1 => drop(changed.remove(at)),
                _ => changed.insert(at, rng.u8(..)),
            }
            match entries(style, &changed) {
                Some(found) => assert_eq!(found.len(), 5, "{}", changed.escape_ascii()),
                None => refused += 1,
            }
        }
        assert!(refused > 4_000, "{style:?}: {refused}");
    }
}
