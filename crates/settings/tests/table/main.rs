//! The table of settings is complete and true: a row for each field, text that reads back, ranges that
//! are held, defaults that are what they say.

#![allow(clippy::disallowed_methods, reason = "a page of the docs, and files of another program")]

mod options;
mod page;

use lithify_settings::{Budget, Group, ROWS, Row, Scope, Settings, Unit, row};

/// Settings that no user sees, for tests and measurements; and the directories of tables, which have no text.
const HIDDEN: [&str; 5] = ["plan", "unchecked", "as_rocksdb", "derived_from", "table_dirs"];

fn in_group(group: Group) -> Vec<&'static str> {
    ROWS.iter().filter(|row| row.group == group).map(|row| row.name).collect()
}

/// The debug form names the fields of a struct.
#[test]
fn every_field_has_one_row() {
    let text = format!("{:#?}", Settings::default());
    let name = |line: &str| Some(line.strip_prefix("    ")?.split_once(':')?.0.to_owned());
    let fields = text.lines().filter_map(name).filter(|name| !name.starts_with(' '));
    let mut fields: Vec<String> = fields.collect();
    fields.retain(|field| !HIDDEN.contains(&&**field));
    let rows: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(fields, rows);
    let mut sorted = rows.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), rows.len(), "a name stands for one setting");
}

/// What a user sees first stays small enough to be read.
#[test]
fn the_first_group_has_at_most_forty() {
    let (first, rest) = (in_group(Group::First), in_group(Group::RocksDb));
    assert!(first.len() <= 40, "{} settings: {first:?}", first.len());
    assert_eq!(first.len() + rest.len(), ROWS.len());
    let odd =
        |name: &&&str| ["universal_", "fifo_", "deletion_"].iter().any(|p| name.starts_with(p));
    assert_eq!(first.iter().filter(odd).count(), 0, "{first:?}");
}

/// The ends of a row's range, and one step beyond them.
fn ends(row: &Row) -> (Vec<u64>, Vec<u64>) {
    let Some(range) = row.range() else { return Default::default() };
    // The largest number of the field's type has no next one.
    let open_ended = range.most == u64::MAX || range.most == u32::MAX.into();
    let most = (!open_ended).then(|| range.most + 1);
    let least = range.least.checked_sub(1).filter(|n| !range.holds(*n));
    let mut inside = vec![range.least, range.most];
    inside.extend(range.zero.then_some(0));
    (inside, least.into_iter().chain(most).collect())
}

/// The values of a row that takes names: levels of codecs at both ends.
fn names(row: &Row) -> Vec<String> {
    let takes = row.takes();
    takes.split(", ").flat_map(|part| part.split(" to ")).map(str::to_owned).collect()
}

#[test]
fn every_row_reads_what_it_shows_at_both_ends() {
    for row in ROWS {
        let mut values = match row.unit {
            Unit::Choice => names(row),
            _ => ends(row).0.iter().map(u64::to_string).collect(),
        };
        if row.takes().ends_with("auto") && row.unit != Unit::Choice {
            values.push("auto".to_owned());
        }
        assert!(values.len() >= 2, "{}: {values:?}", row.name);
        for value in &values {
            let mut s = Settings::default();
            s.set(row.name, value).unwrap();
            let shown = (row.show)(&s);
            let mut again = Settings::default();
            again.set(row.name, &shown).unwrap();
            assert_eq!(again, s, "{} = {value}, shown as {shown}", row.name);
            assert_eq!(s.get(row.name).unwrap(), shown);
            if row.unit == Unit::Choice {
                assert_eq!(&shown, value, "{}", row.name);
            }
            // Each value has a text of its own.
            let others = values.iter().filter(|other| *other != value);
            for other in others {
                let mut differs = Settings::default();
                differs.set(row.name, other).unwrap();
                assert_ne!((row.show)(&differs), shown, "{}: {value} and {other}", row.name);
            }
        }
    }
}

#[test]
fn one_step_beyond_a_range_is_refused_by_name() {
    let mut refused = 0;
    for row in ROWS {
        for value in ends(row).1 {
            let mut s = Settings::default();
            s.set(row.name, &value.to_string()).unwrap();
            let what = s.check().unwrap_err().to_string();
            let told = format!("{} = {} is not in {}", row.name, (row.show)(&s), row.takes());
            assert!(what.contains(&told), "{what}");
            refused += 1;
        }
        // The ends themselves may break a rule between settings, but not the range.
        for value in ends(row).0 {
            let mut s = Settings::default();
            s.set(row.name, &value.to_string()).unwrap();
            let what = s.check().err().map(|e| e.to_string()).unwrap_or_default();
            assert!(
                !what.contains(&format!("{} = {} is not in", row.name, (row.show)(&s))),
                "{what}"
            );
        }
    }
    assert!(refused > 40, "only {refused} ends were looked at");
}

/// A default that is a value is what [`Settings::default`] has.
#[test]
fn defaults_are_what_the_table_says() {
    let s = Settings::for_budget(Budget { threads: 4, ..Budget::default() });
    let mut values = 0;
    for row in ROWS {
        let mut said = s.clone();
        // A rule in words is no value.
        if said.set(row.name, row.default).is_ok() {
            assert_eq!((row.show)(&said), (row.show)(&s), "{}", row.name);
            values += 1;
        }
    }
    assert!(values > 40, "{values}");
    assert!(s.explain().iter().all(|told| told.derived || told.name == "compaction_threads"));
}

/// What is written down can be read by people: one sentence, not too long.
#[test]
fn every_row_has_one_plain_sentence() {
    for row in ROWS {
        let text = row.sentence();
        assert!(text.ends_with('.') && text.len() <= 200, "{}: {text}", row.name);
        assert!(!text.trim_end_matches('.').contains(". "), "{}: {text}", row.name);
        let coined = [concat!("no", "body"), concat!("who", "ever"), concat!("some", "body")];
        assert!(coined.iter().all(|word| !row.sentence().to_lowercase().contains(word)), "{text}");
    }
}

#[test]
fn a_live_change_and_one_of_the_database_are_told_from_others() {
    assert!(row("l0_trigger").unwrap().live && !row("block_bytes").unwrap().live);
    assert_eq!(row("durability").unwrap().scope, Scope::Database);
    assert_eq!(row("bloom-bits").unwrap().scope, Scope::Family);
}

#[test]
fn sizes_take_units_however_they_are_shown() {
    let mut s = Settings::default();
    s.set("partition_bytes", "4KiB").unwrap();
    s.set("max_dict_bytes", "16KiB").unwrap();
    assert_eq!((s.partition_bytes, s.max_dict_bytes), (Some(4096), 16 << 10));
    assert_eq!(s.get("partition_bytes").unwrap(), "4096");
}
