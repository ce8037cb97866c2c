//! `narrows diagnose RUN`: the run's table, findings and sentence, concluded anew from what the file recorded.

use crate::Outcome;
use crate::args::RunArgument;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = crate::runs_folder::find(arguments.run.run.as_deref())?;
    let outcome = narrows_lab::conclude::outcome(&path)?;
    if arguments.json {
        return super::print(&format!("{:#}\n", narrows_report::json::outcome(&outcome)));
    }
    super::print(&narrows_report::text::outcome(&outcome, super::style()))
}
