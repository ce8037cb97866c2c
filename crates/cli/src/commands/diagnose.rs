//! `narrows diagnose RUN`: the run's table, findings and sentence, concluded anew from what the file recorded.
//! `--explain ID` prints the reference page of a finding, `--thresholds` the table of what detectors compare with.

use narrows_diagnose::pages;
use narrows_diagnose::thresholds::{Row, Thresholds};

use crate::exit::Failure;
use crate::{Outcome, complete, run_address};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run file or its name in the runs folder, perhaps with `:VARIANT` or `:VARIANT#REPETITION` [default: the newest]
    #[arg(value_name = "RUN[:VARIANT]", add = complete::addresses())]
    run: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print what a finding or a caveat means, such as `n-plus-one`
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "json", "thresholds"], add = complete::findings())]
    explain: Option<String>,
    /// Print the table of thresholds, any of which an experiment can set
    #[arg(long, conflicts_with_all = ["run", "json"])]
    thresholds: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    if let Some(id) = &arguments.explain {
        return explain(id);
    }
    if arguments.thresholds {
        return super::print_painted(&narrows_report::text::thresholds(&rows(), super::style()));
    }
    let address = run_address::find(arguments.run.as_deref())?;
    let outcome = narrows_lab::conclude::outcome_of(&address.path, &address.selection)?;
    if arguments.json {
        return super::print_json(narrows_report::json::outcome(&outcome));
    }
    super::print_painted(&narrows_report::text::outcome(&outcome, super::style()))
}

fn explain(id: &str) -> Outcome {
    match pages::page(id) {
        Some(page) => super::print(&format!("{}\n", page.trim_end())),
        None => {
            let known = pages::ids();
            let hint = match narrows_lab::experiment::nearest(id, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            Err(Failure::new(format!("no finding or caveat is called `{id}`")).hint(hint))
        }
    }
}

/// Name, value and meaning.
fn rows() -> Vec<[String; 3]> {
    let rows = Thresholds::default().rows();
    let meaning = |row: &Row| format!("{}: {}", row.read_by, row.meaning());
    rows.iter().map(|row| [row.name.to_owned(), row.value.to_string(), meaning(row)]).collect()
}
