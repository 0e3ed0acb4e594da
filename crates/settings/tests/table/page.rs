//! `docs/settings.md` is what the table says. `REWRITE=1 cargo test -p lithify-settings --test table page`
//! writes it anew.

use std::fmt::Write;

use lithify_settings::{Group, ROWS, Row, Scope};

const HEAD: &str = "\
# Settings

Every setting has a default that is right for most. Three budgets say what a database may take of its machine:
`memory_budget`, `compaction_threads` and `disk_budget`. What is not set follows from them. `lithify settings --explain [DIR]`
prints the values in force, each with its reason.

In a program they are fields of `Settings`, or `Settings::set(name, value)`; on the command line `--set NAME=VALUE`. A *live*
setting can change while the database is open (`Db::set_settings`); one of a *family* can differ between the column
families of a database. Sizes take `KiB` to `TiB` (powers of 1024) and `KB` to `TB` (of 1000). `cargo doc -p lithify --open` says more about each.
One thing has no name and is in no file: the directories for tables (`Settings::table_dirs`, `--table-dir`), which each open names anew.

This page is made from the table in `crates/settings/src/table.rs`, and a test compares them.
";

const SECOND: &str = "
## For RocksDB's sake

Programs and directories that come from RocksDB find here what they had there, and few others need it.
`lithify settings --all` prints them too. The codecs `zlib` and `bzip2` of the compression settings above belong here as well.
";

fn line(row: &Row) -> String {
    let unit = match (row.unit.name(), row.range()) {
        ("bytes", _) | (_, None) => String::new(),
        (unit, _) => format!(" {unit}").trim_end().to_owned(),
    };
    let kind = match (row.live, row.scope) {
        (true, Scope::Family) => "live, family",
        (true, Scope::Database) => "live",
        (false, Scope::Family) => "family",
        (false, Scope::Database) => "",
    };
    let rocksdb = row.rocksdb().map_or(String::new(), |name| format!("`{name}`"));
    let cells = [
        &format!("`{}`", row.name),
        &row.sentence(),
        &format!("{}{unit}", row.takes()),
        row.default,
        kind,
        &rocksdb,
    ];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn table(page: &mut String, group: Group) {
    page.push_str(
        "\n| setting | what it is | takes | default | | RocksDB |\n|---|---|---|---|---|---|\n",
    );
    for row in ROWS.iter().filter(|row| row.group == group) {
        let _ = writeln!(page, "{}", line(row)); // writing to a String cannot fail
    }
}

#[test]
fn the_page_of_settings_is_that_of_the_table() {
    let mut page = HEAD.to_owned();
    table(&mut page, Group::First);
    page.push_str(SECOND);
    table(&mut page, Group::RocksDb);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == page, "docs/settings.md is not what the table says; REWRITE=1 writes it anew");
}
