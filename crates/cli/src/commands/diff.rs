//! `narrows diff RUN:A RUN:B`: what differs between two variants, of one run or of two.

use narrows_lab::conclude;

use crate::{Outcome, complete, run_address};

#[derive(Debug, clap::Args)]
#[command(after_help = "Without a run before the colon, as in `narrows diff :as-is :fixed`, the newest run is meant.")]
pub(crate) struct Arguments {
    /// What to compare with: a run file or its name, and a variant
    #[arg(value_name = "RUN:VARIANT", add = complete::addresses())]
    before: String,
    /// What to compare
    #[arg(value_name = "RUN:VARIANT", add = complete::addresses())]
    after: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let before = run_address::find(Some(&arguments.before))?;
    let after = run_address::find(Some(&arguments.after))?;
    let diff = conclude::diff(before.part(&before.label), after.part(&after.label))?;
    if arguments.json {
        return super::print_json(narrows_report::json::diff(&diff));
    }
    super::print_painted(&narrows_report::text::diff(&diff, super::style()))
}
