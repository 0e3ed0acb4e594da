//! Lengths of functions: from the line of `fn` to the line of the closing brace.

use crate::repo::Source;

/// Length and name of each function with a body. An inner function counts by itself, and its lines
/// count for the outer one as well.
pub(crate) fn lengths(source: &Source) -> Vec<(usize, String)> {
    let lines: Vec<&str> = source.product_lines().map(|(_, line)| line).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = declared(line)
            && let Some(end) = closing(&lines[at..])
        {
            found.push((end + 1, name.to_owned()));
        }
    }
    found
}

/// The name of the function that `line` declares.
fn declared(line: &str) -> Option<&str> {
    let modifiers = ["pub", "const", "async", "unsafe", "extern", "default"];
    let mut words = line.split_whitespace().skip_while(|word| {
        let plain = word.split('(').next().unwrap_or(word);
        modifiers.contains(&plain) || (word.ends_with(')') && !word.contains("fn"))
    });
    if words.next()? != "fn" {
        return None;
    }
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    words.next()?.split(end).next().filter(|name| !name.is_empty())
}

/// How many lines below the first the body ends; none if there is no body.
fn closing(lines: &[&str]) -> Option<usize> {
    let (mut braces, mut others, mut begun) = (0, 0, false);
    for (at, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' => (braces, begun) = (braces + 1, true),
                '}' => braces -= 1,
                '(' | '[' => others += 1,
                ')' | ']' => others -= 1,
                ';' if !begun && others == 0 => return None,
                _ => {}
            }
            if begun && braces == 0 {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_with_its_brace() {
        let text = "pub(crate) const fn a() -> [u8; 2] {\n    if x {\n    }\n}\n\
                    trait T {\n    fn none(&self);\n    fn b(&self) {}\n}\n// fn c() {}\n";
        let found = lengths(&Source::new("crates/a/src/a.rs", text));
        assert_eq!(found, [(4, "a".to_owned()), (1, "b".to_owned())]);
    }
}
