//! `narrows orchestrations purge HUB`: forgets orchestrations that have ended, by identifier or by a filter.
//!
//! A filter may take more than one thinks, and nothing brings them back: it needs `--yes`, and `--dry-run` shows them.

use std::time::Duration;

use narrows_durable::{Change, InstanceId, InstanceView, Status, Time};
use narrows_report::table;

use super::change::{check_known, refused};
use super::list::{Selection, as_table};
use super::moment::{age, before};
use super::store::StorePath;
use super::{HubArgument, instance, table_style};
use crate::Outcome;
use crate::commands::{plural, print};
use crate::exit::Failure;

/// Orchestrations that `--dry-run` lists.
const LISTED_MAX: usize = 50;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgument,
    /// The orchestrations to purge, instead of a filter
    #[arg(value_name = "ID", value_parser = instance,
          conflicts_with_all = ["status", "name", "prefix", "created_after", "created_before", "older_than"])]
    ids: Vec<InstanceId>,
    #[command(flatten)]
    selection: Selection,
    /// Only those that ended at least this long ago, such as 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// List the matches and their number, and purge none
    #[arg(long)]
    dry_run: bool,
    /// Purge all matches, however many
    #[arg(long)]
    yes: bool,
}

impl Arguments {
    fn has_filter(&self) -> bool {
        let Selection { status, name, prefix, created_after, created_before } = &self.selection;
        let moments = created_after.is_some() || created_before.is_some() || self.older_than.is_some();
        !status.is_empty() || name.is_some() || !prefix.is_empty() || moments
    }
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let unended = arguments.selection.status.iter().find(|word| !word.status().is_ended());
    if let Some(word) = unended {
        let what = format!("--status {} cannot be purged: it has not ended", word.status().as_str());
        return Err(Failure::new(what).hint("completed, failed and terminated can; `terminate` ends one"));
    }
    if arguments.ids.is_empty() && !arguments.has_filter() {
        return Err(Failure::new("no orchestrations selected")
            .hint("give identifiers, or a filter such as `--status completed --older-than 7d`"));
    }
    let found = StorePath::at(&arguments.hub.hub)?;
    check_known(&found, &arguments.ids)?;
    let chosen = chosen(&found, arguments)?;
    if arguments.dry_run {
        return print(&preview(&chosen));
    }
    let count = chosen.len();
    if arguments.ids.is_empty() && count > 0 && !arguments.yes {
        let what = format!("{} would be deleted permanently", plural(count, "orchestration"));
        return Err(Failure::new(what).hint("`--dry-run` shows them, `--yes` purges them"));
    }
    purge(&found, chosen)
}

/// All instances given by name, so that those that cannot be purged are reported; else those that have ended and pass.
fn chosen(found: &StorePath, arguments: &Arguments) -> Result<Vec<InstanceView>, Failure> {
    if !arguments.ids.is_empty() {
        return found.read(|reader| {
            let views = arguments.ids.iter().map(|id| reader.get(id));
            views.filter_map(Result::transpose).collect()
        });
    }
    let mut filter = arguments.selection.filter();
    if filter.statuses.is_empty() {
        filter.statuses = vec![Status::Completed, Status::Failed, Status::Terminated];
    }
    let bound = arguments.older_than.map_or(Time(u64::MAX), |age| before(jiff::Timestamp::now(), age));
    let takes = |view: &InstanceView| arguments.selection.takes(view) && view.updated <= bound;
    found.read(|reader| reader.newest(&filter, usize::MAX, None, takes))
}

fn preview(chosen: &[InstanceView]) -> String {
    let shown = &chosen[..chosen.len().min(LISTED_MAX)];
    let listed = table::text(&as_table(shown, shown.len() < chosen.len()), table_style());
    format!("{listed}{} would be purged, with their sub-orchestrations\n", plural(chosen.len(), "orchestration"))
}

fn purge(found: &StorePath, chosen: Vec<InstanceView>) -> Outcome {
    if chosen.is_empty() {
        return print("purged nothing: no orchestration matches\n");
    }
    // One may have gone with the one above it.
    let ids: Vec<InstanceId> = chosen.into_iter().map(|view| view.id).collect();
    let mut applied = found.change(|hub| hub.apply(ids.into_iter().map(|id| Change::Purge { id })))?;
    applied.each.retain(|each| !matches!(each, Err(narrows_durable::Error::NotFound(_))));
    print(&format!("purged {}\n", plural(usize::try_from(applied.instances).unwrap_or(usize::MAX), "instance")))?;
    Ok(refused(&applied))
}
