//! The list of exported functions: `class prototype`, one a line, without names of parameters. Read, made
//! into a header, and held against the declarations in Rust, type by type.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) class: String,
    /// The type of the result.
    pub(super) result: String,
    pub(super) name: String,
    /// The types of the parameters.
    pub(super) params: Vec<String>,
}

/// The lines, sorted by name.
///
/// # Errors
/// If a line is none, a class is not known, or the lines are not in order.
pub(super) fn parse(text: &str) -> Result<Vec<Symbol>> {
    let symbols: Vec<Symbol> = text
        .lines()
        .map(|line| symbol(line).with_context(|| format!("symbols.txt: `{line}`")))
        .collect::<Result<_>>()?;
    if let Some(pair) = symbols.windows(2).find(|pair| pair[0].name >= pair[1].name) {
        bail!("symbols.txt: {} does not come after {}", pair[1].name, pair[0].name);
    }
    Ok(symbols)
}

fn symbol(line: &str) -> Result<Symbol> {
    let (class, prototype) = line.split_once(' ').context("no class")?;
    if !["exact", "noted", "refused"].contains(&class) {
        bail!("there is no class `{class}`");
    }
    let (head, params) = prototype.split_once('(').context("no parameters")?;
    let params = params.strip_suffix(')').context("no end")?;
    let (result, name) = head.rsplit_once(' ').context("no result")?;
    let params = split(params).into_iter().filter(|param| param != "void").collect();
    Ok(Symbol { class: class.into(), result: result.into(), name: name.into(), params })
}

/// Parts between commas that stand in no parentheses and no angle brackets.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from("(<".contains(c)) - i32::from(")>".contains(c));
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A header that is made of the list.
pub(super) struct Header {
    /// Where it stands in the room.
    pub(super) path: &'static str,
    /// What its functions begin with.
    prefix: &'static str,
    guard: &'static str,
    says: &'static str,
}

/// That with RocksDB's functions, and that with our own.
pub(super) const HEADERS: [Header; 2] = [
    Header {
        path: "include/lithify_rocksdb.h",
        prefix: "rocksdb_",
        guard: "LITHIFY_ROCKSDB_H",
        says: "RocksDB's C interface as Lithify exports it.\n   \
               What the functions do: RocksDB's own header, and docs/c.md for what differs.",
    },
    Header {
        path: "include/lithify.h",
        prefix: "lithify_",
        guard: "LITHIFY_H",
        says: "what Lithify has beyond RocksDB's C interface,\n   \
               over the same handles. Stands beside RocksDB's header or lithify_rocksdb.h; docs/c.md says what the\n   \
               functions do.",
    },
];

/// The text of a header.
pub(super) fn header(of: &Header, symbols: &[Symbol]) -> String {
    let symbols: Vec<&Symbol> = symbols.iter().filter(|s| s.name.starts_with(of.prefix)).collect();
    let mut types = BTreeSet::new();
    for text in symbols.iter().flat_map(|s| s.params.iter().chain([&s.result])) {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        types.extend(words.filter(|word| word.starts_with("rocksdb_")));
    }
    let mut out = format!(
        "/* Made by `cargo xtask capi header` of symbols.txt: {}\u{20}*/\n\
         #ifndef {guard}\n#define {guard}\n\n\
         #include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        of.says,
        guard = of.guard,
    );
    for name in types {
        let _ = writeln!(out, "typedef struct {name} {name};");
    }
    out.push('\n');
    for s in symbols {
        let params = if s.params.is_empty() { "void".to_owned() } else { s.params.join(", ") };
        let note = if s.class == "exact" { String::new() } else { format!(" /* {} */", s.class) };
        let _ = writeln!(out, "{} {}({params});{note}", s.result, s.name);
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// How a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Nothing,
    Pointer,
    Flag,
    Byte,
    Int(bool, u32),
    Real,
}

fn pass_of_c(text: &str) -> Result<Pass> {
    if text.ends_with('*') || text.contains("(*)") {
        return Ok(Pass::Pointer);
    }
    Ok(match text.trim_start_matches("const ") {
        "void" => Pass::Nothing,
        "bool" => Pass::Flag,
        "unsigned char" | "char" => Pass::Byte,
        "int" | "int32_t" => Pass::Int(true, 32),
        "unsigned int" | "uint32_t" => Pass::Int(false, 32),
        "int64_t" => Pass::Int(true, 64),
        "size_t" | "uint64_t" => Pass::Int(false, 64),
        "double" => Pass::Real,
        other => bail!("the type `{other}`"),
    })
}

fn pass_of_rust(text: &str) -> Result<Pass> {
    if text.starts_with('*') || text.starts_with("Option<") {
        return Ok(Pass::Pointer);
    }
    Ok(match text {
        "()" => Pass::Nothing,
        "bool" => Pass::Flag,
        "u8" => Pass::Byte,
        "i32" => Pass::Int(true, 32),
        "u32" => Pass::Int(false, 32),
        "i64" => Pass::Int(true, 64),
        "u64" | "usize" => Pass::Int(false, 64),
        "f64" => Pass::Real,
        other => bail!("the type `{other}`"),
    })
}

/// A function as the sources declare it.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    class: Option<String>,
    name: String,
    result: Pass,
    params: Vec<Pass>,
}

/// Every function of the list is declared with the types of the list, and no other is. The class of a row of
/// options is that of the list.
///
/// # Errors
/// Naming the first that differs.
pub(super) fn check_sources(symbols: &[Symbol], sources: &Path) -> Result<()> {
    let mut declared = Vec::new();
    for entry in fs::read_dir(sources)? {
        declared.extend(declarations(&fs::read_to_string(entry?.path())?)?);
    }
    declared.sort_by(|a, b| a.name.cmp(&b.name));
    for of in &declared {
        let Ok(at) = symbols.binary_search_by(|symbol| symbol.name.cmp(&of.name)) else {
            bail!("{} is not in symbols.txt", of.name);
        };
        let symbol = &symbols[at];
        let params: Vec<Pass> =
            symbol.params.iter().map(|p| pass_of_c(p)).collect::<Result<_>>()?;
        if params != of.params || pass_of_c(&symbol.result)? != of.result {
            bail!("{}: declared as {of:?}, and listed as {symbol:?}", of.name);
        }
        if of.class.as_ref().is_some_and(|class| *class != symbol.class) {
            bail!("{}: its row and symbols.txt disagree about its class", of.name);
        }
    }
    match symbols.iter().find(|s| declared.binary_search_by(|d| d.name.cmp(&s.name)).is_err()) {
        Some(symbol) => bail!("symbols.txt has {}, and no source declares it", symbol.name),
        None => Ok(()),
    }
}

/// What `export!` and `rows!` declare in a source.
fn declarations(source: &str) -> Result<Vec<Declared>> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join(" ");
    let mut declared = Vec::new();
    let of = |prefix| {
        code.split(&format!("    fn {prefix}"))
            .skip(1)
            .map(move |part| (prefix, part))
            .collect::<Vec<_>>()
    };
    for (prefix, part) in [of("rocksdb_"), of("lithify_")].concat() {
        let name = format!("{prefix}{}", part.split('(').next().unwrap_or_default());
        let inside = part.split_once('(').map_or("", |(_, rest)| rest);
        let end = closing(inside).with_context(|| name.clone())?;
        let result = inside[end + 1..].split('{').next().unwrap_or_default();
        let result = result.split_once("->").map_or("()", |(_, result)| result.trim());
        let params = params(&inside[..end]).with_context(|| name.clone())?;
        declared.push(Declared { class: None, name, result: pass_of_rust(result)?, params });
    }
    for class in ["exact", "noted", "refused"] {
        for part in code.split(&format!("    {class} rocksdb_")).skip(1) {
            declared.extend(row(class, part)?);
        }
    }
    Ok(declared)
}

/// Setter and getter of a row, which begins after `rocksdb_`.
fn row(class: &str, text: &str) -> Result<Vec<Declared>> {
    let (names, rest) = text.split_once(':').context("a row without a type")?;
    let value = pass_of_rust(rest.split('=').next().unwrap_or_default().trim())?;
    let mut names = names.split_whitespace();
    let set = format!("rocksdb_{}", names.next().unwrap_or_default());
    let params = vec![Pass::Pointer, value];
    let class = Some(class.to_owned());
    let mut both = vec![Declared { class, name: set, result: Pass::Nothing, params }];
    if let Some(get) = names.next().filter(|get| *get != "_") {
        let (class, params) = (Some("exact".to_owned()), vec![Pass::Pointer]);
        both.push(Declared { class, name: get.to_owned(), result: value, params });
    }
    Ok(both)
}

/// Where the parenthesis closes that was open at the start.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(at)
    })
}

fn params(text: &str) -> Result<Vec<Pass>> {
    let mut out = Vec::new();
    for param in split(text) {
        let Some((_, kind)) = param.rsplit_once(": ").filter(|_| param != "errptr") else {
            out.push(Pass::Pointer);
            continue;
        };
        let points = ["&", "maybe ", "own ", "out ", "outs ", "many "];
        match kind {
            "bytes" | "bound" => out.extend([Pass::Pointer, Pass::Int(false, 64)]),
            "text" | "path" => out.push(Pass::Pointer),
            _ if points.iter().any(|start| kind.starts_with(start)) => out.push(Pass::Pointer),
            _ => out.push(pass_of_rust(kind)?),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_class_and_a_prototype() {
        let text = "exact char* rocksdb_a(rocksdb_t*, void (*)(void*, size_t), size_t)\n\
                    noted void rocksdb_b(void)\n";
        let symbols = parse(text).unwrap();
        assert_eq!(symbols[0].params, ["rocksdb_t*", "void (*)(void*, size_t)", "size_t"]);
        assert!(symbols[1].params.is_empty());
        assert!(header(&HEADERS[0], &symbols).contains("\nvoid rocksdb_b(void); /* noted */\n"));
        assert!(header(&HEADERS[0], &symbols).contains("\ntypedef struct rocksdb_t rocksdb_t;\n"));
        assert!(parse("good void rocksdb_b(void)").is_err());
        assert!(parse("exact void rocksdb_b(void)\nexact void rocksdb_a(void)").is_err());
    }

    #[test]
    fn declarations_are_read_with_their_types() {
        let source = "export! {\n    fn rocksdb_a(\n        db: &Db, (key, len): bytes, n: u8, errptr\n    ) -> \
                      *mut T {\n        Ok(1)\n    }\n}\nrows! { O;\n    noted rocksdb_set rocksdb_get: i32 = 1;\n    \
                      exact rocksdb_only _: f64 = 1.0, |o, v| 0;\n}\n";
        let declared = declarations(source).unwrap();
        let names: Vec<&str> = declared.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["rocksdb_a", "rocksdb_only", "rocksdb_set", "rocksdb_get"]);
        let size = Pass::Int(false, 64);
        let params = [Pass::Pointer, Pass::Pointer, size, Pass::Byte, Pass::Pointer];
        assert_eq!((declared[0].result, &declared[0].params[..]), (Pass::Pointer, &params[..]));
        assert_eq!(declared[1].params, [Pass::Pointer, Pass::Real]);
        assert_eq!(declared[3].result, Pass::Int(true, 32));
    }
}
