//! `cargo xtask`: the project's own chores.

mod peers;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((chore, rest)) if chore == "peers" => peers::run(rest),
        Some((chore, _)) => bail!("there is no chore `{chore}`; there is: peers"),
        None => bail!("name a chore: peers"),
    }
}
