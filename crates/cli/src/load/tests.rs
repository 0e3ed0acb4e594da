use super::*;

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
}

#[test]
fn a_line_without_end_is_refused() {
    use std::io::Read;
    let mut endless = Source::from_reader(std::io::repeat(0));
    let mut buf = vec![0; 64 << 10];
    let mut read = 0u64;
    let error = loop {
        match endless.read(&mut buf) {
            Ok(n) => read += n as u64,
            Err(error) => break error,
        }
        assert!(read <= source::LINE_MAX, "nothing stops an endless line");
    };
    assert!(error.to_string().contains("text file"), "{error}");
    assert!(Source::from_reader(std::io::repeat(0)).without_lines().read(&mut buf).is_ok());
}
