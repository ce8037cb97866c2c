//! Parts of an export request, whichever way it is written.
//!
//! The requests of the three signals have one shape: resources, each with scopes, each with records. Both formats are
//! walked record by record ([`super::wire`], [`super::json`]) and never decoded as a whole: a request of two-byte records
//! would make thousands of times its size of it. Walking also knows the place of a mistake.

use prost::Message;

use super::convert::{Origin, cut};
use super::json::{self, FromJson};
use super::wire;

/// The largest record, resource or scope, in bytes as written.
pub(super) const RECORD_BYTES_MAX: usize = 4 << 20;
/// The most resources and scopes of one request.
pub(super) const GROUPS_MAX: usize = 100_000;

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Protobuf's wire format.
    Protobuf,
    /// OTLP's JSON: protobuf's JSON mapping with ids in hexadecimal.
    Json,
}

/// Why a request was not understood, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct MalformedRequest {
    /// Such as `resource_spans[0].scope_spans[2].spans[17]`, or `resourceSpans[0]…` in JSON.
    pub place: String,
    /// Fault.
    pub what: String,
}

/// The names of a level in JSON: the current one, then those of older OTLP versions.
pub(super) type Names = &'static [&'static str];

/// The names of the three levels of a kind of request: in protobuf, for the place of a mistake, and in JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    pub(super) protobuf: [&'static str; 3],
    pub(super) json: [Names; 3],
}

pub(super) const TRACES: Levels = Levels {
    protobuf: ["resource_spans", "scope_spans", "spans"],
    json: [&["resourceSpans"], &["scopeSpans", "instrumentationLibrarySpans"], &["spans"]],
};
pub(super) const METRICS: Levels = Levels {
    protobuf: ["resource_metrics", "scope_metrics", "metrics"],
    json: [&["resourceMetrics"], &["scopeMetrics", "instrumentationLibraryMetrics"], &["metrics"]],
};
pub(super) const LOGS: Levels = Levels {
    protobuf: ["resource_logs", "scope_logs", "log_records"],
    json: [&["resourceLogs"], &["scopeLogs", "instrumentationLibraryLogs"], &["logRecords", "logs"]],
};

/// One record as it was written, not decoded yet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Record<'a> {
    Protobuf(&'a [u8]),
    Json(&'a str),
}

impl Record<'_> {
    /// Why it is not decoded, when it is too large.
    pub(super) fn excess(self) -> Option<String> {
        let bytes = match self {
            Record::Protobuf(bytes) => bytes.len(),
            Record::Json(text) => text.len(),
        };
        if bytes > RECORD_BYTES_MAX {
            return Some(format!("a record of {bytes} bytes, more than {RECORD_BYTES_MAX}"));
        }
        match self {
            Record::Json(text) if json::has_too_many_objects(text) => {
                Some(format!("a record of more than {} objects", json::OBJECTS_MAX))
            }
            _ => None,
        }
    }

    pub(super) fn decode<M: Message + Default + FromJson>(self) -> Result<M, String> {
        match self {
            Record::Protobuf(bytes) => M::decode(bytes).map_err(|error| brief(error.to_string())),
            Record::Json(text) => json::message(text),
        }
    }
}

/// The beginning and the reason of what `prost` says, which between them names every message it was in.
fn brief(said: String) -> String {
    const BYTES_MAX: usize = 300;
    match said.rsplit_once(": ") {
        Some((path, reason)) if said.len() > BYTES_MAX => format!("{}…: {reason}", cut(path.to_owned(), BYTES_MAX / 2)),
        _ => said,
    }
}

/// Calls `visit` for each record with where it comes from; what `visit` complains of ends the walk.
pub(super) fn each_record(
    levels: Levels,
    format: Format,
    request: &[u8],
    visit: impl FnMut(&Origin, Record<'_>) -> Result<(), String>,
) -> Result<(), MalformedRequest> {
    match format {
        Format::Protobuf => wire::each_record(levels, request, visit),
        Format::Json => json::each_record(levels, request, visit),
    }
}

/// A level of a request under the names by which its writer knows it.
#[derive(Debug, Clone)]
pub(super) struct RecordPath(String);

impl RecordPath {
    pub(super) fn root() -> Self {
        Self(String::new())
    }

    pub(super) fn at(&self, level: &str, index: usize) -> RecordPath {
        let dot = if self.0.is_empty() { "" } else { "." };
        RecordPath(format!("{}{dot}{level}[{index}]", self.0))
    }

    pub(super) fn malformed(&self, what: impl Into<String>) -> MalformedRequest {
        let place = if self.0.is_empty() { "request".to_owned() } else { self.0.clone() };
        MalformedRequest { place, what: what.into() }
    }

    /// One more than `groups`, within [`GROUPS_MAX`].
    pub(super) fn counted(&self, groups: usize) -> Result<usize, MalformedRequest> {
        if groups < GROUPS_MAX {
            Ok(groups + 1)
        } else {
            Err(self.malformed(format!("more than {GROUPS_MAX} resources and scopes")))
        }
    }
}
