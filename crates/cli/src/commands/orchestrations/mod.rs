//! `narrows orchestrations`: looks into the store of a durable hub, and changes single orchestrations in it.
//!
//! No code of the orchestrations is there, so nothing is run: `list` and `history` read, also beside the process that
//! has the hub open; the others write their change into the log and leave the rest as it is. `repair` is for a hub that is
//! damaged and does not open. `nodes` is for a hub on a server that several processes share.

mod change;
mod history;
mod list;
mod moment;
mod nodes;
mod purge;
mod repair;
mod store;

use std::path::PathBuf;

use narrows_durable::InstanceId;
use narrows_report::text::Style;

use crate::Outcome;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// List orchestrations, newest first, and how many there are in each state
    List(list::Arguments),
    /// Show what happened to an orchestration, and when
    History(history::Arguments),
    /// Show the nodes of a hub that several processes share: which partitions each has, and how much they have to do
    Nodes(nodes::Arguments),
    /// End orchestrations and the sub-orchestrations they wait for
    Terminate(change::Arguments),
    /// Hold back events of orchestrations until they are resumed
    Suspend(change::Arguments),
    /// Deliver events to suspended orchestrations again, once their program runs
    Resume(change::Arguments),
    /// Delete orchestrations that have ended, with their histories and sub-orchestrations
    Purge(purge::Arguments),
    /// Report the lost data of a damaged hub, and open the hub without it
    Repair(repair::Arguments),
}

/// `HUB`: which hub a command is about.
#[derive(Debug, clap::Args)]
struct HubArgument {
    /// The folder of a hub; of one in SQLite, its folder or `hub.db` itself
    #[arg(value_name = "HUB")]
    hub: PathBuf,
}

fn instance(text: &str) -> Result<InstanceId, String> {
    InstanceId::parse(text).map_err(|error| error.to_string())
}

/// As wide as the terminal; elsewhere nothing is shortened.
fn table_style() -> Style {
    Style { width: super::stdout_width().unwrap_or(usize::MAX), ..super::style() }
}

pub(crate) fn execute(action: &Action) -> Outcome {
    match action {
        Action::List(arguments) => list::execute(arguments),
        Action::History(arguments) => history::execute(arguments),
        Action::Nodes(arguments) => nodes::execute(arguments),
        Action::Terminate(arguments) => change::execute(arguments, change::Sort::Terminate),
        Action::Suspend(arguments) => change::execute(arguments, change::Sort::Suspend),
        Action::Resume(arguments) => change::execute(arguments, change::Sort::Resume),
        Action::Purge(arguments) => purge::execute(arguments),
        Action::Repair(arguments) => repair::execute(arguments),
    }
}
