//! `narrows completions SHELL`: the script by which a shell gets its proposals from this program.

use clap_complete::env::Shells;

use crate::Outcome;
use crate::complete::VARIABLE;
use crate::exit::Failure;

/// Bash ends a word at a colon, and `RUN:VARIANT` has one.
const BASH_WORDS: &str = "# A colon belongs to a word, as in RUN:VARIANT.\nCOMP_WORDBREAKS=${COMP_WORDBREAKS//:/}\n";
const NAME: &str = "narrows";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let shells = Shells::builtins();
    let shell = arguments.shell.to_string();
    let known = shells.completer(&shell).ok_or_else(|| Failure::new(format!("no completions for {shell}")))?;
    let mut script = Vec::new();
    let written = known.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
    written.map_err(|error| Failure::new(format!("cannot write the completions for {shell}: {error}")))?;
    let words = if arguments.shell == clap_complete::Shell::Bash { BASH_WORDS } else { "" };
    super::print(&format!("{}{words}", String::from_utf8_lossy(&script)))
}
