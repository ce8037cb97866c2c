//! `narrows orchestrations list HUB`: orchestrations, newest first, page by page.

use narrows_durable::{Error, Filter, HubReader, InstanceId, InstanceView, Status, StoppedPartition, Time};
use narrows_model::table::{Cell, Column, ColumnType, Table};
use narrows_model::units;
use narrows_report::table;
use serde_json::{Value, json};

use super::moment::{moment, nanoseconds, rfc3339};
use super::store::{StorePath, unknown};
use super::{HubArgument, instance, table_style};
use crate::Outcome;
use crate::commands::{print_json, print_painted};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgument,
    #[command(flatten)]
    selection: Selection,
    /// List at most this many
    #[arg(long, value_name = "ROWS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    limit: u64,
    /// Continue after this one, the last of the previous page
    #[arg(long, value_name = "ID", value_parser = instance)]
    after: Option<InstanceId>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which orchestrations are meant.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Only those in one of these states [default: all but entities]
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    pub(super) status: Vec<Word>,
    /// Only those that run this code
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Only those whose identifier starts with this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) prefix: String,
    /// Only those accepted at or after this moment: an instant, or how long ago (`2h`)
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub(super) created_after: Option<Time>,
    /// Only those accepted before this moment
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub(super) created_before: Option<Time>,
}

/// A state on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Word {
    Pending,
    Running,
    Suspended,
    Completed,
    Failed,
    Terminated,
    Entity,
    Parked,
}

impl Word {
    pub(super) fn status(self) -> Status {
        Status::ALL[self as usize]
    }
}

impl Selection {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            statuses: self.status.iter().map(|word| word.status()).collect(),
            prefix: self.prefix.clone(),
            created_from: self.created_after,
            created_to: self.created_before,
        }
    }

    /// Conditions that the hub's filter does not know.
    pub(super) fn takes(&self, view: &InstanceView) -> bool {
        self.name.as_ref().is_none_or(|name| view.name.as_str() == name)
    }
}

/// A page, whether there are more, and how many there are in each state.
struct Listing {
    views: Vec<InstanceView>,
    has_more: bool,
    counts: Vec<(Status, u64)>,
    stopped: Vec<StoppedPartition>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let found = StorePath::at(&arguments.hub.hub)?;
    let listing = found.read(|reader| match listing(reader, arguments) {
        Err(Error::NotFound(after)) => Ok(Err(after)),
        listing => listing.map(Ok),
    })?;
    let listing = listing.map_err(|after| unknown(&found, &after))?;
    found.note_holder();
    if arguments.json {
        return print_json(as_json(&listing));
    }
    print_painted(&as_text(listing))
}

fn listing(reader: &HubReader, arguments: &Arguments) -> Result<Listing, Error> {
    let (selection, filter) = (&arguments.selection, arguments.selection.filter());
    let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
    let takes = |view: &InstanceView| selection.takes(view);
    let mut views = reader.newest(&filter, limit.saturating_add(1), arguments.after.as_ref(), takes)?;
    let has_more = views.len() > limit;
    views.truncate(limit);
    let mut counts = Status::ALL.map(|status| (status, 0));
    reader.each(&filter, |view| counts[view.status as usize].1 += u64::from(takes(&view)))?;
    let counts = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    Ok(Listing { views, has_more, counts, stopped: reader.stopped().to_vec() })
}

fn as_text(listing: Listing) -> String {
    let Listing { views, has_more, counts, stopped } = listing;
    let counts: Vec<String> =
        counts.iter().map(|(status, count)| format!("{} {}", units::count(*count), status.as_str())).collect();
    let counts = if counts.is_empty() { "none pass".to_owned() } else { counts.join(", ") };
    let last = views.last().filter(|_| has_more).map(|view| view.id.clone());
    let more = last.map_or_else(String::new, |id| format!("the next page: --after '{id}'\n"));
    let stopped: String = stopped.iter().map(|stopped| stopped_line(stopped) + "\n").collect();
    format!("{}in all: {counts}\n{more}{stopped}", table::text(&as_table(&views, has_more), table_style()))
}

/// A stopped partition, and why it stopped.
pub(super) fn stopped_line(stopped: &StoppedPartition) -> String {
    format!("partition {} stopped at {}: {}", stopped.partition, rfc3339(Time(stopped.at_us)), stopped.reason)
}

fn row(view: &InstanceView) -> Vec<Cell> {
    vec![
        Cell::Text(view.id.to_string()),
        Cell::Text(view.name.to_string()),
        Cell::Text(view.status.as_str().to_owned()),
        Cell::Instant(nanoseconds(view.created)),
        Cell::Instant(nanoseconds(view.updated)),
    ]
}

pub(super) fn as_table(views: &[InstanceView], is_cut: bool) -> Table {
    let column = |name: &str, kind| Column { name: name.to_owned(), kind };
    Table {
        columns: vec![
            column("id", ColumnType::Text),
            column("name", ColumnType::Text),
            column("status", ColumnType::Text),
            column("created", ColumnType::Instant),
            column("updated", ColumnType::Instant),
        ],
        rows: views.iter().map(row).collect(),
        is_cut,
        chart: None,
    }
}

fn as_json(listing: &Listing) -> Value {
    let instances: Vec<Value> = listing.views.iter().map(view_json).collect();
    let counts: serde_json::Map<String, Value> =
        listing.counts.iter().map(|(status, count)| (status.as_str().to_owned(), json!(count))).collect();
    let next = listing.views.last().filter(|_| listing.has_more).map(|view| view.id.as_str());
    let stopped: Vec<Value> = listing.stopped.iter().map(stopped_json).collect();
    json!({ "instances": instances, "next": next, "counts": counts, "stopped": stopped })
}

pub(super) fn stopped_json(stopped: &StoppedPartition) -> Value {
    json!({ "partition": stopped.partition, "at": rfc3339(Time(stopped.at_us)), "reason": stopped.reason })
}

pub(super) fn view_json(view: &InstanceView) -> Value {
    json!({
        "id": view.id.as_str(),
        "name": view.name.as_str(),
        "version": view.version,
        "generation": view.generation,
        "status": view.status.as_str(),
        "created": rfc3339(view.created),
        "updated": rfc3339(view.updated),
        "parked": view.parked,
        "parent": view.parent.as_ref().map(|parent| parent.instance.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn words_are_states() {
        assert_eq!(Word::value_variants().len(), Status::ALL.len());
        for word in Word::value_variants() {
            let text = word.to_possible_value().unwrap().get_name().to_owned();
            assert_eq!(text, word.status().as_str());
        }
    }
}
