//! `narrows orchestrations history HUB ID`: the events of an orchestration's present execution, in order.

use narrows_durable::{Event, EventKind, Failure, InstanceId, InstanceView, Name, Payload, Status};
use narrows_model::table::{Cell, Column, ColumnType, Table};
use narrows_report::table;
use serde_json::{Value, json};

use super::list::view_json;
use super::moment::{nanoseconds, rfc3339};
use super::store::{StorePath, unknown};
use super::{HubArgument, instance, table_style};
use crate::Outcome;
use crate::commands::{print_json, print_painted};

const PREVIEW_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgument,
    /// Which orchestration
    #[arg(value_name = "ID", value_parser = instance)]
    id: InstanceId,
    /// Show at most this many bytes of each value
    #[arg(long, value_name = "BYTES", default_value_t = 80,
          value_parser = clap::value_parser!(u64).range(0..=PREVIEW_BYTES_MAX))]
    preview: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let found = StorePath::at(&arguments.hub.hub)?;
    let id = &arguments.id;
    let read = found.read(|reader| Ok((reader.get(id)?, reader.history(id)?)))?;
    let (Some(view), events) = read else { return Err(unknown(&found, id)) };
    let Some(events) = events else {
        return Err(crate::exit::Failure::new(format!("{id} is an entity, and entities keep no history")));
    };
    found.note_holder();
    let preview = usize::try_from(arguments.preview).unwrap_or(usize::MAX);
    if arguments.json {
        return print_json(as_json(&view, &events, preview));
    }
    print_painted(&as_text(&view, &events, preview))
}

/// Content of an event, beside its kind and time.
#[derive(Default)]
struct EventContent {
    /// The number of the decision.
    id: Option<u32>,
    /// Activity, orchestration, event, operation or entity.
    name: Option<String>,
    value: Option<String>,
    bytes: Option<usize>,
}

impl EventContent {
    fn new(kind: &EventKind, preview: usize) -> Self {
        use EventKind as E;
        let said = Self::default();
        match kind {
            E::Started { name, input, .. } => said.name(name).payload(input, preview),
            E::TaskScheduled { id, name, input } => said.id(*id).name(name).payload(input, preview),
            E::TaskCompleted { id, result } | E::SubCompleted { id, result } | E::OperationCompleted { id, result } => {
                said.id(*id).payload(result, preview)
            }
            E::TaskFailed { id, failure } | E::SubFailed { id, failure } | E::OperationFailed { id, failure } => {
                said.id(*id).failure(failure, preview)
            }
            E::TimerCreated { id, at } => said.id(*id).text(&rfc3339(*at), usize::MAX),
            E::TimerFired { id } | E::TimerCancelled { id } | E::LockGranted { id } => said.id(*id),
            E::SubScheduled { id, name, instance, input, .. } => {
                said.id(*id).name(&Name::from(format!("{name} {instance}").as_str())).payload(input, preview)
            }
            E::EventRaised { name, data } => said.name(name).payload(data, preview),
            E::EventSent { id, instance, name, data } => {
                said.id(*id).name(&Name::from(format!("{name} {instance}").as_str())).payload(data, preview)
            }
            E::EntityCalled { id, entity, operation, input }
            | E::EntitySignalled { id, entity, operation, input, .. } => {
                said.id(*id).name(&Name::from(format!("{operation} {entity}").as_str())).payload(input, preview)
            }
            E::LockRequested { id, entities } | E::LockReleased { id, entities } => {
                let names: Vec<String> = entities.iter().map(ToString::to_string).collect();
                said.id(*id).text(&names.join(" "), preview)
            }
            E::Suspended { reason } | E::Resumed { reason } | E::Terminated { reason } => said.text(reason, preview),
            E::StatusSet { status } => said.payload(status, preview),
            E::Completed { output } => said.payload(output, preview),
            E::ContinuedAsNew { input, .. } => said.payload(input, preview),
            E::Failed { failure } => said.failure(failure, preview),
            _ => said,
        }
    }

    fn id(self, id: u32) -> Self {
        Self { id: Some(id), ..self }
    }

    fn name(self, name: &Name) -> Self {
        Self { name: Some(name.to_string()), ..self }
    }

    fn payload(self, payload: &Payload, preview: usize) -> Self {
        let shown = shortened(payload.as_bytes(), preview);
        Self { value: Some(shown), bytes: Some(payload.len()), ..self }
    }

    fn failure(self, failure: &Failure, preview: usize) -> Self {
        self.text(&format!("{}: {}", failure.kind.as_str(), failure.message), preview)
    }

    fn text(self, text: &str, preview: usize) -> Self {
        Self { value: Some(shortened(text.as_bytes(), preview)), ..self }
    }
}

/// The first bytes as text, cut at a character; what is no text shows as `�`.
fn shortened(bytes: &[u8], most: usize) -> String {
    if bytes.len() <= most {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let is_boundary = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let end = (most.saturating_sub(3)..=most).rev().find(is_boundary).unwrap_or(most);
    format!("{}… ({} bytes)", String::from_utf8_lossy(&bytes[..end]), bytes.len())
}

fn as_text(view: &InstanceView, events: &[Event], preview: usize) -> String {
    let below = match view.status {
        Status::Pending => "it has not started".to_owned(),
        Status::Parked => format!("parked: {}", view.parked.as_deref().unwrap_or("its code does not fit")),
        _ if view.generation > 0 => format!("{}, generation {}", view.status.as_str(), view.generation),
        status => status.as_str().to_owned(),
    };
    let parent = view.parent.as_ref().map_or_else(String::new, |parent| format!(", awaited by {}", parent.instance));
    let heading = format!("{} ({}): {below}{parent}\n\n", view.id, view.name);
    heading + &table::text(&as_table(events, preview), table_style())
}

fn row(number: i64, event: &Event, preview: usize) -> Vec<Cell> {
    let text = |text: Option<String>| text.map_or(Cell::Null, Cell::Text);
    let content = EventContent::new(&event.kind, preview);
    vec![
        Cell::Integer(number),
        Cell::Instant(nanoseconds(event.time)),
        Cell::Text(event.kind.name().to_owned()),
        content.id.map_or(Cell::Null, |id| Cell::Integer(i64::from(id))),
        text(content.name),
        text(content.value),
    ]
}

fn as_table(events: &[Event], preview: usize) -> Table {
    let columns = [
        ("#", ColumnType::Integer),
        ("time", ColumnType::Instant),
        ("event", ColumnType::Text),
        ("id", ColumnType::Integer),
        ("name", ColumnType::Text),
        ("value", ColumnType::Text),
    ];
    Table {
        columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).into(),
        rows: (0..).zip(events).map(|(number, event)| row(number, event, preview)).collect(),
        is_cut: false,
        chart: None,
    }
}

fn event_json(event: &Event, preview: usize) -> Value {
    let content = EventContent::new(&event.kind, preview);
    json!({
        "time": rfc3339(event.time),
        "event": event.kind.name(),
        "id": content.id,
        "name": content.name,
        "value": content.value,
        "bytes": content.bytes,
    })
}

fn as_json(view: &InstanceView, events: &[Event], preview: usize) -> Value {
    let mut whole = view_json(view);
    whole["events"] = events.iter().map(|event| event_json(event, preview)).collect();
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_at_a_character_and_say_how_long_they_are() {
        assert_eq!(shortened(b"\"ab\"", 4), "\"ab\"");
        assert_eq!(shortened(b"\"abc\"", 4), "\"abc… (5 bytes)");
        assert_eq!(shortened("aéé".as_bytes(), 2), "a… (5 bytes)");
        assert_eq!(shortened(b"", 0), "");
        assert_eq!(shortened(b"x", 0), "… (1 bytes)");
        assert_eq!(shortened(&[0xff, 0xfe], 2), "\u{fffd}\u{fffd}");
        assert_eq!(shortened(&[0x80; 10], 5), "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}… (10 bytes)");
    }
}
