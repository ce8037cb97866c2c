//! `narrows orchestrations terminate|suspend|resume HUB ID…`: one change to each orchestration named.

use narrows_durable::{Change, ChangeResults, InstanceId};

use super::store::{StorePath, unknown};
use super::{HubArgument, instance};
use crate::Outcome;
use crate::commands::{plural, print};
use crate::exit::Exit;
use crate::stderr;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgument,
    /// Which orchestrations
    #[arg(value_name = "ID", required = true, value_parser = instance)]
    ids: Vec<InstanceId>,
    /// The reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "requested on the command line")]
    reason: String,
}

/// Change of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Terminate,
    Suspend,
    Resume,
}

impl Sort {
    fn change(self, id: InstanceId, reason: String) -> Change {
        match self {
            Self::Terminate => Change::Terminate { id, reason },
            Self::Suspend => Change::Suspend { id, reason },
            Self::Resume => Change::Resume { id, reason },
        }
    }
}

pub(super) fn execute(arguments: &Arguments, sort: Sort) -> Outcome {
    let found = StorePath::at(&arguments.hub.hub)?;
    check_known(&found, &arguments.ids)?;
    let changes = arguments.ids.iter().map(|id| sort.change(id.clone(), arguments.reason.clone()));
    let applied = found.change(|hub| hub.apply(changes))?;
    print(&report(sort, &applied))?;
    Ok(refused(&applied))
}

/// A mistaken name changes nothing at all.
pub(super) fn check_known(found: &StorePath, ids: &[InstanceId]) -> Result<(), crate::exit::Failure> {
    let missing = found.read(|reader| {
        for id in ids {
            if reader.get(id)?.is_none() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    })?;
    missing.map_or(Ok(()), |id| Err(unknown(found, id)))
}

/// Reports which changes could not be made.
pub(super) fn refused(applied: &ChangeResults) -> Exit {
    let errors: Vec<String> =
        applied.each.iter().filter_map(|each| each.as_ref().err()).map(ToString::to_string).collect();
    errors.iter().for_each(|error| stderr::say(&format!("error: {error}")));
    if errors.is_empty() { Exit::Fine } else { Exit::VerdictFailed }
}

fn report(sort: Sort, applied: &ChangeResults) -> String {
    let made = applied.each.iter().filter(|each| each.is_ok()).count();
    let below = usize::try_from(applied.instances).unwrap_or(usize::MAX).saturating_sub(made);
    let orchestrations = plural(made, "orchestration");
    match sort {
        _ if made == 0 => String::new(),
        Sort::Terminate if below > 0 => {
            format!("terminated {orchestrations} and {} below\n", plural(below, "sub-orchestration"))
        }
        Sort::Terminate => format!("terminated {orchestrations}\n"),
        Sort::Suspend => format!("suspended {orchestrations}\n"),
        Sort::Resume => {
            let verb = if made == 1 { "goes" } else { "go" };
            format!("{orchestrations} {verb} on when the program next opens the hub\n")
        }
    }
}
