//! Floors: no dependency points up, sideways without a drawn edge, or to what a room must not
//! know. The table is `floors.toml`; the truth it is held against is `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use crate::repo;
use crate::run::at_root;

const RULE: &str = "floors";
const TABLE: &str = "floors.toml";

/// Who may depend on whom.
#[derive(Debug, Default)]
struct Floors {
    /// Floor number of each room, 0 = ground.
    floor: BTreeMap<String, usize>,
    /// Edges within a floor.
    edges: BTreeSet<(String, String)>,
    /// Rooms that may look anywhere and are seen by none.
    yard: BTreeSet<String>,
    /// All that a room may name, where that is less than its floor allows.
    only: BTreeMap<String, BTreeSet<String>>,
    /// The room whose names the examples in the docs of other rooms use, as its users do.
    examples: Option<String>,
}

/// A dependency between rooms of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    for_tests: bool,
}

/// The rooms that ship: those on a floor.
pub(crate) fn product_rooms() -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(repo::root().join(TABLE))?;
    let floors = Floors::parse(&text).with_context(|| format!("reading {TABLE}"))?;
    Ok(floors.floor.into_keys().collect())
}

/// Checks the workspace.
pub(crate) fn check() -> Result<Vec<Finding>> {
    let text = std::fs::read_to_string(repo::root().join(TABLE))?;
    let floors = Floors::parse(&text).with_context(|| format!("reading {TABLE}"))?;
    let args = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let output = at_root("cargo", &args).output().context("starting cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let (rooms, edges) = read(&metadata);
    Ok(judge(&floors, &rooms, &edges))
}

impl Floors {
    fn parse(text: &str) -> Result<Floors> {
        let table: toml::Table = text.parse()?;
        let examples = table.get("examples").and_then(|v| v.as_str()).map(str::to_owned);
        let mut floors = Floors { examples, ..Floors::default() };
        let list = table.get("floor").and_then(|v| v.as_array()).context("no [[floor]]")?;
        for (number, floor) in list.iter().enumerate() {
            for room in names(floor.get("rooms"))? {
                floors.floor.insert(room, number);
            }
            floors.draw(floor.get("edges"))?;
        }
        let yard = table.get("yard");
        floors.yard = names(yard.and_then(|y| y.get("rooms")))?.into_iter().collect();
        if let Some(edges) = yard.and_then(|y| y.get("edges")) {
            floors.draw(Some(edges))?;
        }
        for (room, list) in table.get("only").and_then(|v| v.as_table()).into_iter().flatten() {
            floors.only.insert(room.clone(), names(Some(list))?.into_iter().collect());
        }
        Ok(floors)
    }

    fn draw(&mut self, edges: Option<&toml::Value>) -> Result<()> {
        for edge in names(edges)? {
            let (from, to) = edge.split_once(" -> ").context("an edge reads `a -> b`")?;
            self.edges.insert((from.to_owned(), to.to_owned()));
        }
        Ok(())
    }

    /// Why `edge` must not be, if so.
    fn objection(&self, edge: &Edge) -> Option<String> {
        let (from, to) = (&edge.from, &edge.to);
        let seen_by_tests = self.yard.contains(to) || self.examples.as_ref() == Some(to);
        // A room asks itself for what only its tests use.
        let itself = from == to;
        if self.yard.contains(from) || (edge.for_tests && (seen_by_tests || itself)) {
            return None;
        }
        let drawn = self.edges.contains(&(from.clone(), to.clone()));
        if self.yard.contains(to) {
            let why = format!("{to} is in the yard; only tests may use it, or a room with an edge");
            return (!drawn).then_some(why);
        }
        let (above, below) = (self.floor.get(from)?, self.floor.get(to)?);
        if above < below {
            return Some(format!(
                "{to} is on a higher floor; move what is needed down, or pass it in as a value"
            ));
        }
        if above == below && !drawn {
            return Some(format!(
                "{from} and {to} share a floor and no edge is drawn; let a room above join them"
            ));
        }
        let only = self.only.get(from)?;
        (!edge.for_tests && !only.contains(to))
            .then(|| format!("{from} must not know {to}; see `only` in {TABLE}"))
    }
}

/// The strings of a list.
pub(super) fn names(value: Option<&toml::Value>) -> Result<Vec<String>> {
    let list = value.and_then(|v| v.as_array()).context("a list of names is missing")?;
    list.iter().map(|v| v.as_str().map(str::to_owned).context("a name is a string")).collect()
}

/// A package's room: its name without the family prefix; the facade is `db`.
fn room(package: &str) -> String {
    match package {
        "lithify" => "db".to_owned(),
        other => other.strip_prefix("lithify-").unwrap_or(other).to_owned(),
    }
}

/// Rooms and their dependencies on each other, as cargo tells them.
fn read(metadata: &Value) -> (BTreeSet<String>, Vec<Edge>) {
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let name = |v: &Value| v["name"].as_str().unwrap_or_default().to_owned();
    let members: BTreeSet<String> = packages().map(name).collect();
    let mut edges = Vec::new();
    for package in packages() {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if members.contains(&name(dependency)) {
                edges.push(Edge {
                    from: room(&name(package)),
                    to: room(&name(dependency)),
                    for_tests: dependency["kind"].as_str() == Some("dev"),
                });
            }
        }
    }
    (members.iter().map(|m| room(m)).collect(), edges)
}

fn judge(floors: &Floors, rooms: &BTreeSet<String>, edges: &[Edge]) -> Vec<Finding> {
    let known = |r: &String| floors.floor.contains_key(r) || floors.yard.contains(r);
    let homeless = rooms
        .iter()
        .filter(|r| !known(r))
        .map(|room| Finding::new(TABLE, 0, RULE, format!("{room} has no floor; give it one")));
    let wrong = edges.iter().filter_map(|edge| {
        let what = floors.objection(edge)?;
        let path = match edge.from.as_str() {
            yard if floors.yard.contains(yard) => format!("{yard}/Cargo.toml"),
            room => format!("crates/{room}/Cargo.toml"),
        };
        Some(Finding::new(&path, 0, RULE, what))
    });
    homeless.chain(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        examples = "facade"
        [[floor]]
        name = "ground"
        rooms = ["base", "format"]
        edges = ["format -> base"]
        [[floor]]
        name = "mind"
        rooms = ["lsm"]
        edges = []
        [[floor]]
        name = "facade"
        rooms = ["facade"]
        edges = []
        [yard]
        rooms = ["testkit", "model"]
        edges = ["facade -> model"]
        [only]
        lsm = ["base"]
    "#;

    fn objection(from: &str, to: &str, for_tests: bool) -> Option<String> {
        let edge = Edge { from: from.into(), to: to.into(), for_tests };
        Floors::parse(SMALL).unwrap().objection(&edge)
    }

    #[test]
    fn dependencies_point_down_or_along_drawn_edges() {
        assert_eq!(objection("lsm", "base", false), None);
        assert_eq!(objection("format", "base", false), None);
        assert!(objection("base", "format", false).unwrap().contains("share a floor"));
        assert!(objection("base", "lsm", false).unwrap().contains("higher floor"));
        assert!(objection("lsm", "format", false).unwrap().contains("must not know"));
    }

    #[test]
    fn tests_may_use_the_yard_and_nothing_else_may() {
        assert_eq!(objection("lsm", "testkit", true), None);
        assert_eq!(objection("testkit", "lsm", false), None);
        assert!(objection("lsm", "testkit", false).unwrap().contains("yard"));
        assert_eq!(objection("facade", "model", false), None, "an edge is drawn");
        assert!(objection("lsm", "model", false).unwrap().contains("yard"));
    }

    #[test]
    fn examples_in_docs_may_name_the_facade_and_nothing_else_may() {
        assert_eq!(objection("lsm", "facade", true), None);
        assert!(objection("lsm", "facade", false).unwrap().contains("higher floor"));
    }

    #[test]
    fn a_room_may_name_itself_for_its_tests() {
        assert_eq!(objection("base", "base", true), None);
        assert!(objection("base", "base", false).is_some());
    }

    #[test]
    fn a_room_without_a_floor_is_found() {
        let floors = Floors::parse(SMALL).unwrap();
        let rooms = BTreeSet::from(["attic".to_owned()]);
        assert!(judge(&floors, &rooms, &[])[0].what.contains("attic has no floor"));
    }
}
