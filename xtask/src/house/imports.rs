//! Which modules of a crate need each other: an arrow for every path from one module to an item
//! that another declares, re-exports followed to the place of the declaration.
//!
//! Keeps: `mod child;` alone is no arrow; naming something of the child is. A name that its module
//! only re-exports leads on to where it comes from, so a crate's root, which re-exports everything,
//! ties nothing together by that.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo::Source;

/// A path of names, `crate` resolved: `["policy", "leveled"]`.
type Path = Vec<String>;

/// A file as a module.
#[derive(Default)]
struct Module {
    /// What it calls other things: name -> where it says that they are.
    names: BTreeMap<String, Path>,
    /// Every path to something of the crate that its code has.
    paths: Vec<Path>,
    /// Names that it has from other crates, and passes on.
    foreign: BTreeSet<String>,
    /// Modules from which it takes all names in.
    globs: Vec<Path>,
}

/// The modules of the largest cycle of imports, none if no two need each other.
pub(crate) fn largest_cycle(sources: &[&Source]) -> Vec<String> {
    let named: Vec<(Path, &Source)> = sources.iter().map(|s| (module_of(s), *s)).collect();
    let all: BTreeSet<Path> = named.iter().map(|(path, _)| path.clone()).collect();
    let modules: BTreeMap<Path, Module> =
        named.iter().map(|(path, source)| (path.clone(), read(path, source, &all))).collect();
    let mut arrows: BTreeMap<&Path, BTreeSet<Path>> = BTreeMap::new();
    for (at, module) in &modules {
        let to = module.paths.iter().filter_map(|path| home(path, &modules, 0));
        arrows.insert(at, to.filter(|to| to != at).collect());
    }
    let mut largest: Vec<String> = Vec::new();
    for &start in arrows.keys() {
        let reached = reach(start, &arrows);
        let cycle: Vec<String> = reached
            .iter()
            .filter(|to| reach(to, &arrows).contains(start))
            .map(|to| to.join("::"))
            .collect();
        if cycle.len() > largest.len() && cycle.len() > 1 {
            largest = cycle;
        }
    }
    largest
}

/// What can be reached from `start`, itself only if an arrow leads back.
fn reach(start: &Path, arrows: &BTreeMap<&Path, BTreeSet<Path>>) -> BTreeSet<Path> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start.clone()];
    while let Some(at) = open.pop() {
        for to in arrows.get(&at).into_iter().flatten() {
            if seen.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    seen
}

/// The module of a file: `src/policy/leveled.rs` is `policy::leveled`, and the root has no name.
fn module_of(source: &Source) -> Path {
    let inside = source.path.rsplit_once("/src/").map_or("", |(_, inside)| inside);
    let mut parts: Path = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The module where the item of `path` is declared; none if that is another crate.
fn home(path: &Path, modules: &BTreeMap<Path, Module>, depth: usize) -> Option<Path> {
    let mut length = path.len();
    while !modules.contains_key(&path[..length]) {
        length -= 1;
    }
    let at = path[..length].to_vec();
    let Some(name) = path.get(length) else { return Some(at) };
    let module = &modules[&at];
    if module.foreign.contains(name) {
        return None;
    }
    if depth < 8 {
        if let Some(target) = module.names.get(name) {
            let rest = path[length + 1..].iter().cloned();
            let further: Path = target.iter().cloned().chain(rest).collect();
            return home(&further, modules, depth + 1);
        }
        for glob in &module.globs {
            let rest = path[length..].iter().cloned();
            let further: Path = glob.iter().cloned().chain(rest).collect();
            let there = home(&further, modules, depth + 1);
            if there.as_ref() != Some(glob) || declares(modules, glob, name) {
                return there;
            }
        }
    }
    Some(at)
}

/// Not known from paths alone; a name taken in by a glob is searched for where the glob leads.
fn declares(modules: &BTreeMap<Path, Module>, at: &Path, name: &str) -> bool {
    modules.get(at).is_some_and(|m| m.names.contains_key(name))
}

/// Reads the paths of one file.
fn read(at: &Path, source: &Source, all: &BTreeSet<Path>) -> Module {
    let lines: Vec<&str> = source.product_lines().map(|(_, line)| line).collect();
    let code = lines.join("\n");
    let mut module = Module::default();
    let mut rest = String::with_capacity(code.len());
    let mut left = &code[..];
    // Uses are taken out first: what they name is known to the code below by its last part.
    while let Some((before, keyword)) = next_use(left) {
        rest.push_str(before);
        let end = keyword.find(';').unwrap_or(keyword.len());
        for (path, name) in branches(&keyword[..end]) {
            let Some(path) = resolve(&path, at, all, &module) else {
                module.foreign.insert(name);
                continue;
            };
            if name == "*" {
                module.globs.push(path);
            } else {
                module.paths.push(path.clone());
                module.names.insert(name, path);
            }
        }
        left = &keyword[end..];
    }
    rest.push_str(left);
    for path in paths(&rest) {
        if let Some(path) = resolve(&path, at, all, &module) {
            module.paths.push(path);
        }
    }
    module
}

/// The text before the next `use`, and the text after the word.
fn next_use(code: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    while let Some(found) = code[from..].find("use ") {
        let at = from + found;
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')')) {
            return Some((&code[..at], &code[at + 4..]));
        }
        from = at + 4;
    }
    None
}

/// Each path of a tree of uses, with the name it gets.
fn branches(tree: &str) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    grow(tree.trim(), &mut Vec::new(), &mut found);
    found
}

fn grow(tree: &str, before: &mut Path, found: &mut Vec<(Path, String)>) {
    let length = before.len();
    if let Some(open) = tree.find('{') {
        before.extend(parts(&tree[..open]));
        let inner = tree[open + 1..].trim_end().trim_end_matches('}');
        for branch in split(inner) {
            grow(branch.trim(), before, found);
        }
    } else if !tree.is_empty() {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        before.extend(parts(path));
        if before.last().is_some_and(|last| last == "self") {
            before.pop();
        }
        let own = before.last().cloned().unwrap_or_default();
        let name = if name.is_empty() { own.clone() } else { name.trim().to_owned() };
        let end = before.len() - usize::from(own == "*");
        found.push((before[..end].to_vec(), name));
    }
    before.truncate(length);
}

/// Splits at commas outside of braces.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    found
}

fn parts(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned)
}

/// Every `a::b` in code.
fn paths(code: &str) -> Vec<Path> {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let runs = code.split(|c: char| !word(c)).filter(|run| run.contains("::"));
    runs.map(|run| parts(run.trim_matches(':')).collect()).collect()
}

/// `path` from the crate's root, if it leads into this crate.
fn resolve(path: &Path, at: &Path, all: &BTreeSet<Path>, module: &Module) -> Option<Path> {
    let mut base = at.clone();
    let mut rest = &path[..];
    match path.first()?.as_str() {
        "crate" => (base, rest) = (Path::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let child: Path = at.iter().cloned().chain([first.to_owned()]).collect();
            if !all.contains(&child) {
                let named = module.names.get(first)?;
                base = named.clone();
                rest = &path[1..];
            }
        }
    }
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(format!("crates/a/src/{path}.rs"), *text))
            .collect();
        largest_cycle(&sources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn modules_that_need_each_other_are_a_cycle() {
        let one = ("one", "use crate::two::Two;\npub struct One;");
        assert!(cycle(&[("lib", "mod one; mod two;"), one, ("two", "struct Two;")]).is_empty());
        let two = ("two", "fn f() { crate::three::g() }");
        let three = ("three", "use super::{one::One, two as other};");
        assert_eq!(cycle(&[("lib", ""), one, two, three]), ["one", "three", "two"]);
    }

    #[test]
    fn a_name_that_the_root_re_exports_leads_to_its_home() {
        let root = ("lib", "mod one;\nmod two;\npub use one::One;\npub use two::{Two, more as m};");
        let one = ("one", "use crate::Two;");
        assert!(cycle(&[root, one, ("two", "pub struct Two;")]).is_empty());
        assert_eq!(cycle(&[root, one, ("two", "use crate::One;")]), ["one", "two"]);
    }

    #[test]
    fn what_the_root_has_from_another_crate_is_not_its_own() {
        let root = ("lib", "mod one;\npub use one::One;\npub use elsewhere::Thing;");
        assert!(cycle(&[root, ("one", "use crate::Thing;\npub struct One;")]).is_empty());
    }

    #[test]
    fn a_child_that_uses_its_parent_is_tied_to_it_only_if_the_parent_uses_the_child() {
        let child = ("one/child", "use super::Limit;");
        assert!(cycle(&[("one", "mod child;\nstruct Limit;"), child]).is_empty());
        let parent = ("one", "mod child;\nuse child::Child;\nstruct Limit(Child);");
        assert_eq!(cycle(&[parent, child]), ["one", "one::child"]);
    }
}
