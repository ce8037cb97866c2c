//! From OTLP's messages to the model's nouns.
//!
//! A request whose bytes are not protobuf is refused as a whole, with the place of the mistake. A record that is
//! protobuf but makes no sense (a span without a valid id) is left out and counted, so that one bad instrumentation
//! does not cost the records beside it. Names that are repeated in every record are cut to a fixed length, so that a
//! short request cannot become a long one in memory. Secrets pass: whoever keeps records blanks them.
//!
//! Events, links and exemplars are not kept.

mod logs;
mod metrics;
mod spans;
mod values;

pub use logs::logs;
pub use metrics::{LABELS_MAX, points};
pub use spans::spans;

use opentelemetry_proto::tonic::resource::v1::Resource;

use super::wire::RECORD_BYTES_MAX;

/// The most records taken from one request; SDKs send 512 spans, the Collector 8,192.
pub const RECORDS_MAX: usize = 100_000;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 512;

const UNKNOWN_SERVICE: &str = "unknown_service";

/// What a request came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted<T> {
    /// At most [`RECORDS_MAX`].
    pub records: Vec<T>,
    /// Records left out because they make no sense.
    pub malformed: u64,
    /// Records left out because there are more than [`RECORDS_MAX`].
    pub over_limit: u64,
    /// What is wrong with the first malformed record.
    pub complaint: Option<String>,
}

impl<T> Converted<T> {
    fn new() -> Self {
        Self { records: Vec::new(), malformed: 0, over_limit: 0, complaint: None }
    }

    fn push(&mut self, record: T) {
        if self.records.len() < RECORDS_MAX {
            self.records.push(record);
        } else {
            self.over_limit += 1;
        }
    }

    fn leave_out(&mut self, complaint: impl FnOnce() -> String) {
        self.malformed += 1;
        self.complaint.get_or_insert_with(complaint);
    }

    /// Decodes a record. None when it is too large, which counts as malformed.
    fn decode<M: prost::Message + Default>(&mut self, bytes: &[u8]) -> Result<Option<M>, String> {
        if bytes.len() > RECORD_BYTES_MAX {
            self.leave_out(|| format!("a record of {} bytes, more than {RECORD_BYTES_MAX}", bytes.len()));
            return Ok(None);
        }
        M::decode(bytes).map(Some).map_err(|error| error.to_string())
    }
}

/// Who sent a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) service: String,
    pub(super) replica: u32,
    pub(super) scope: String,
}

impl Origin {
    /// `service.name` and `narrows.replica` of a resource.
    pub(super) fn of_resource(resource: Resource) -> Self {
        let attributes = values::object(resource.attributes);
        let service = attributes.get("service.name").and_then(|value| value.as_str()).filter(|name| !name.is_empty());
        let replica = attributes.get("narrows.replica").and_then(|value| match value {
            serde_json::Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        });
        Self {
            service: shortened(service.unwrap_or(UNKNOWN_SERVICE).to_owned()),
            replica: replica.and_then(|replica| u32::try_from(replica).ok()).unwrap_or(0),
            scope: String::new(),
        }
    }

    pub(super) fn set_scope(&mut self, name: String) {
        self.scope = shortened(name);
    }
}

/// Cut to [`NAME_BYTES_MAX`], between characters.
fn shortened(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name.truncate(end);
        name.shrink_to_fit();
    }
    name
}

/// A trace id; none when it is not sixteen bytes or all zero. Also for span ids of eight.
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok().filter(|id| *id != [0; N])
}

/// Nanoseconds since the epoch; none for 0, which OTLP calls unknown, and beyond the year 2262.
fn instant(unix_nano: u64) -> Option<i64> {
    i64::try_from(unix_nano).ok().filter(|ns| *ns > 0)
}

#[cfg(test)]
mod tests;
