//! Resident memory against `memory_budget`, with the system's allocator, which the command has as well:
//! `memory [DIR] [THREADS] [BUDGET IN MiB ..]`; two threads unless told. Each budget is a process of its
//! own; a line is the peak of a phase.
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
    let mut budgets: Vec<u64> = args.map(|mib| mib.parse().expect("MiB, a number")).collect();
    if budgets.is_empty() {
        budgets = vec![64, 128];
    }
    for mib in budgets {
        let bytes = mib << 20;
        if std::env::var_os(CHILD).is_some() {
            let phases = budget::live(&dir, (bytes, threads), budget::entries(bytes));
            print!("{}", budget::table(bytes, &phases));
            return;
        }
        let place = dir.join(format!("lithify-memory-{}", std::process::id()));
        let program = std::env::current_exe().expect("a program has a path");
        let args = [threads.to_string(), mib.to_string()];
        let done = Command::new(program).arg(&place).args(args).env(CHILD, "1").status();
        let _ = std::fs::remove_dir_all(&place);
        assert!(done.expect("it starts").success(), "the life under {mib} MiB ended early");
    }
}
