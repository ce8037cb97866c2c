//! From OTLP's messages to the model's nouns.
//!
//! A request that is not written in its format is refused as a whole, with the place of the mistake. A record that is
//! well written but makes no sense (a span without a valid id) is left out and counted, so that one bad instrumentation
//! does not cost the records beside it. Names that are repeated in every record are cut to a fixed length, so that a
//! short request cannot become a long one in memory. Secrets pass: whoever keeps records blanks them.
//!
//! Of a span's events only exceptions are kept ([`EXCEPTIONS`]). Links, exemplars and buckets are not.

mod exceptions;
mod logs;
mod metrics;
mod packed;
mod plain;
mod spans;
mod values;

pub use exceptions::{EXCEPTIONS, EXCEPTIONS_LEFT_OUT};
pub use logs::logs;
pub use metrics::{LABELS_MAX, points};
pub(crate) use packed::unpack;
pub use packed::{NotPacked, PackedSpans};
pub(crate) use spans::spans_to_keep;
pub use spans::{ATTRIBUTES_MAX, spans};

use narrows_model::trace::{EBPF_INSTRUMENTATIONS, OWN_PARENT, SpanId};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::{Map, Value};

use super::json::FromJson;
use super::request::Record;
use crate::ranges::INSTANT_NS_MAX;

/// The most records taken from one request; SDKs send 512 spans, the Collector 8,192.
pub const RECORDS_MAX: usize = 100_000;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 512;

const UNKNOWN_SERVICE: &str = "unknown_service";

/// Attributes that name a service, in order of precedence: agents that watch containers do not know `service.name`
/// (OpenTelemetry's "Specify resource attributes using Kubernetes annotations" has this order).
const SERVICES: [&str; 8] = [
    "service.name",
    "k8s.deployment.name",
    "k8s.statefulset.name",
    "k8s.daemonset.name",
    "k8s.cronjob.name",
    "k8s.job.name",
    "container.name",
    "k8s.pod.name",
];
/// Attributes that tell instances of a service apart outside of pods, the first of these.
const INSTANCES: [&str; 3] = ["service.instance.id", "container.id", "host.name"];
/// Attributes that name the instrumentation of a resource.
const INSTRUMENTATIONS: [&str; 2] = ["telemetry.distro.name", "telemetry.sdk.name"];

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion<T> {
    /// At most [`RECORDS_MAX`].
    pub records: Vec<T>,
    /// Records left out because they make no sense.
    pub malformed: u64,
    /// Records left out because there are more than [`RECORDS_MAX`].
    pub over_limit: u64,
    /// Fault of the first malformed record.
    pub complaint: Option<String>,
    /// Part cut off the first record that was kept in part.
    pub warning: Option<String>,
    /// Positions of the spans without a kind, which OTLP treats as internal.
    pub(crate) without_kind: Vec<usize>,
    /// Records of the request that are kept in another way.
    elsewhere: usize,
}

impl<T> Conversion<T> {
    fn new() -> Self {
        Self {
            records: Vec::new(),
            malformed: 0,
            over_limit: 0,
            complaint: None,
            warning: None,
            without_kind: Vec::new(),
            elsewhere: 0,
        }
    }

    fn push(&mut self, record: T) {
        if self.records.len() + self.elsewhere < RECORDS_MAX {
            self.records.push(record);
        } else {
            self.over_limit += 1;
        }
    }

    fn leave_out(&mut self, complaint: impl FnOnce() -> String) {
        self.malformed += 1;
        self.complaint.get_or_insert_with(complaint);
    }

    /// Whether another record is looked at.
    fn has_room(&self) -> bool {
        (self.records.len() + self.elsewhere) as u64 + self.malformed < RECORDS_MAX as u64
    }

    /// Decodes a record; `None` if it is too large, which counts as malformed, or beyond the limit of records.
    fn decode<M: prost::Message + Default + FromJson>(&mut self, record: Record<'_>) -> Result<Option<M>, String> {
        if !self.has_room() {
            self.over_limit += 1;
            return Ok(None);
        }
        if let Some(excess) = record.excess() {
            self.leave_out(|| excess);
            return Ok(None);
        }
        record.decode().map(Some)
    }
}

/// Who sent a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) service: String,
    pub(super) replica: u32,
    /// The replica, where the resource says one.
    pub(super) stated_replica: Option<u32>,
    /// Which of several instances of the service it is, where the resource says that and no replica.
    pub(super) instance: Option<String>,
    pub(super) scope: String,
    /// The eBPF instrumentation that the resource names: the scope of records without one.
    ebpf_scope: Option<&'static str>,
}

impl Origin {
    /// `service.name` and `narrows.replica` of a resource, or what names its service and instance otherwise.
    pub(super) fn of_resource(resource: Resource) -> Self {
        let attributes = values::object(resource.attributes);
        let text = |key: &str| attributes.get(key).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let service = SERVICES.iter().find_map(|key| text(key));
        let container = text("k8s.container.name").map_or_else(String::new, |name| format!("/{name}"));
        let instance = text("k8s.pod.name").map(|pod| format!("{pod}{container}"));
        let instance = instance.or_else(|| INSTANCES.iter().find_map(|key| text(key)).map(str::to_owned));
        let replica = attributes.get("narrows.replica").and_then(|value| match value {
            serde_json::Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        });
        let replica = replica.and_then(|replica| u32::try_from(replica).ok());
        let instrumentations = || INSTRUMENTATIONS.iter().filter_map(|key| text(key));
        let is_named = |ebpf: &&&str| instrumentations().any(|name| name == **ebpf);
        Self {
            ebpf_scope: EBPF_INSTRUMENTATIONS.iter().find(is_named).copied(),
            service: shortened(service.unwrap_or(UNKNOWN_SERVICE).to_owned()),
            replica: replica.unwrap_or(0),
            stated_replica: replica,
            instance: instance.filter(|_| replica.is_none()).map(shortened),
            scope: String::new(),
        }
    }

    pub(super) fn set_scope(&mut self, name: String) {
        self.scope = match self.ebpf_scope {
            Some(scope) if name.is_empty() => scope.to_owned(),
            _ => shortened(name),
        };
    }
}

/// Cut to [`NAME_BYTES_MAX`], between characters.
fn shortened(name: String) -> String {
    cut(name, NAME_BYTES_MAX)
}

/// Cut to `bytes_max`, between characters.
pub(crate) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}

/// A trace id; `None` if it is not sixteen bytes or all zero. Also for span ids of eight.
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok().filter(|id| *id != [0; N])
}

/// Nanoseconds since the epoch; `None` for 0, which OTLP defines as unknown, and for times after [`INSTANT_NS_MAX`].
fn instant(unix_nano: u64) -> Option<i64> {
    i64::try_from(unix_nano).ok().filter(|ns| (1..=INSTANT_NS_MAX).contains(ns))
}

/// The parent of a span. If that is the span itself, it is recorded as an attribute instead.
pub(crate) fn without_own_parent(
    parent: Option<SpanId>,
    span_id: &SpanId,
    attributes: &mut Map<String, Value>,
) -> Option<SpanId> {
    if parent.as_ref() == Some(span_id) {
        attributes.insert(OWN_PARENT.to_owned(), Value::Bool(true));
        return None;
    }
    parent
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
