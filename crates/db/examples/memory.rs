//! Resident memory against `memory_budget`, with the system's allocator, which the command has as well:
//! `memory [DIR] [THREADS] [BUDGET IN MiB[xTIMES] ..]`; two threads unless told, and four times as much data as
//! memory. Each budget is a process of its own; a line is the peak of a phase. `NAME=VALUE` among the
//! budgets is a setting for those behind it.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "an example is a program")]

#[path = "../tests/common/budget.rs"]
mod budget;

use std::path::PathBuf;
use std::process::Command;

const CHILD: &str = "LITHIFY_MEMORY_LIFE";

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let threads: u32 = args.next().map_or(2, |n| n.parse().expect("threads, a number"));
    let mut budgets: Vec<String> = args.collect();
    if budgets.is_empty() {
        budgets = vec!["64".to_owned(), "128".to_owned()];
    }
    let mut set = Vec::new();
    for told in budgets {
        if told.contains('=') {
            set.push(told);
            continue;
        }
        let (mib, times) = told.split_once('x').unwrap_or((&told, "4"));
        let bytes = mib.parse::<u64>().expect("MiB, a number") << 20;
        if std::env::var_os(CHILD).is_some() {
            let times: u64 = times.parse().expect("a number of times");
            let mut settings = budget::settings(bytes, threads);
            for line in &set {
                let (name, value) = line.split_once('=').expect("a name and a value");
                settings.set(name, value).expect("a setting");
            }
            let phases = budget::live(&dir, settings, budget::entries(times * bytes));
            print!("{}", budget::table(bytes, &phases));
            return;
        }
        let place = dir.join(format!("lithify-memory-{}", std::process::id()));
        let program = std::env::current_exe().expect("a program has a path");
        let args: Vec<&str> = set.iter().map(String::as_str).chain([told.as_str()]).collect();
        let done = Command::new(program)
            .arg(&place)
            .arg(threads.to_string())
            .args(args)
            .env(CHILD, "1")
            .status();
        let _ = std::fs::remove_dir_all(&place);
        assert!(done.expect("it starts").success(), "the life under {told} MiB ended early");
    }
}
