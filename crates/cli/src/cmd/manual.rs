//! `completions` and `man`: what shells and readers of manuals know of the command line, made from its
//! definitions.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use clap_complete::Shell;
use lithify_base::shown_path;

use crate::failure::usage;
use crate::{command, output};

const NAME: &str = "lithify";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  lithify completions bash > ~/.local/share/bash-completion/completions/lithify
  lithify completions zsh > ~/.zfunc/_lithify              a directory of $fpath
  lithify completions fish > ~/.config/fish/completions/lithify.fish";

/// `lithify completions`.
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: KnownShell,
}

/// The shells that are known.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum KnownShell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> Result<()> {
        let shell = match self.shell {
            KnownShell::Bash => Shell::Bash,
            KnownShell::Zsh => Shell::Zsh,
            KnownShell::Fish => Shell::Fish,
        };
        // Into memory: it would panic where the reader of our output has seen enough.
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command(), NAME, &mut text);
        output::line(String::from_utf8(text)?.trim_end())
    }
}

const MAN_EXAMPLES: &str = "\
Examples:
  lithify man scan | man -l -
  lithify man backup create | man -l -
  lithify man --to ~/.local/share/man/man1";

/// `lithify man`.
#[derive(clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct Man {
    /// The command; without, `lithify` itself
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory, which must exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    to: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(dir) = &self.to {
            let told = || format!("writing pages into {}", shown_path(dir));
            return clap_mangen::generate_to(command(), dir).with_context(told);
        }
        let mut all = command();
        // So that each command knows its whole name.
        all.build();
        let mut found = &all;
        for name in &self.command {
            let Some(sub) = found.find_subcommand(name) else {
                return usage(format!("there is no command `{name}`; `lithify help` lists them"));
            };
            found = sub;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(found.clone()).render(&mut page)?;
        output::line(String::from_utf8(page)?.trim_end())
    }
}
