//! `narrows completions SHELL`.

use clap::CommandFactory;

use crate::Outcome;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::args::Args::command(), "narrows", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
