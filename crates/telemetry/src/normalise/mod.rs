//! Meaning of a span's attributes, whichever generation of OpenTelemetry's semantic conventions they follow.
//!
//! Both generations arrive mixed, even inside one process (a Java agent sends HTTP by the stable names and JDBC by the
//! old ones), so names are never looked at one generation at a time: for each fact the stable name is tried first, then
//! the names it replaced, in the order of [`RENAMED`]. This is the only place of Narrows that knows attribute names.
//! Metrics are renamed in the same way, see [`series_name`].
//!
//! It does not rewrite attributes and does not interpret queries: grouping statements that differ in their literals is
//! diagnosis. Secrets are the run file's business, whose door nothing gets past.

mod grid;
mod names;
mod requests;
mod rpc;
mod series;
mod series_names;
mod usage;
mod values;

use std::sync::LazyLock;

use narrows_model::trace::SpanFacts;
use serde_json::{Map, Value};

pub use names::{DB_SYSTEMS_RENAMED, MESSAGING_OPERATIONS_RENAMED, RENAMED, RPC_SYSTEMS_RENAMED, Renaming};
pub(crate) use requests::{Part, Requests, Role, SERVICE, STATUS, Source, add_requests, known, service_of};
pub use series::{SeriesName, normalise_series, series_name};
pub use series_names::{LABELS_RENAMED, LabelRenamed, METRICS_RENAMED, MetricRenamed, ORIGINAL_NAME};
pub use usage::INSTANCE;
pub(crate) use usage::{add_replicas, is_usage};
use values::{as_charge, as_count, as_number, as_text, authority, one_of_header, split_port};

/// Attributes that only a server span of the old conventions carries. Its `net.peer.*` are the caller's address and
/// ephemeral port, not the server's.
const SERVER_SIDE: &[&str] = &["net.host.name", "net.host.port", "net.host.ip", "http.server_name", "client.address"];

/// The longest wait that a response can request, in nanoseconds: a year. A longer one counts as absent.
const WAIT_NS_MAX: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Reads the facts off a span's attributes. A number may come as a string and the other way round; a value of any
/// other type, or a number out of its range, counts as absent.
pub fn facts(attributes: &Map<String, Value>) -> SpanFacts {
    let seen = Attributes::new(attributes);
    let url = seen.url();
    let given = || seen.text("server.address").map(split_port);
    // Libraries of the old conventions give a call's address in its URL alone; a server's URL holds its own.
    let of_url =
        || url.as_deref().filter(|_| !seen.is_server).and_then(authority).map(|(host, port)| (host.to_owned(), port));
    let (server_address, port_beside) = given().or_else(of_url).unzip();
    let (rpc_service, rpc_method) = rpc::service_and_method(seen.text("rpc.service"), seen.text("rpc.method"));
    SpanFacts {
        http_method: seen.text("http.request.method"),
        http_route: seen.text("http.route"),
        http_status: seen.number("http.response.status_code"),
        url,
        db_system: seen.text("db.system.name").map(|name| stable(DB_SYSTEMS_RENAMED, name)),
        db_namespace: seen.text("db.namespace"),
        db_query: seen.text("db.query.text"),
        db_operation: seen.text("db.operation.name"),
        db_status: seen.text("db.response.status_code"),
        db_rows: seen.first("db.response.returned_rows", as_count),
        db_charge: seen.first("azure.cosmosdb.operation.request_charge", as_charge),
        db_sub_status: seen.count("azure.cosmosdb.response.sub_status_code"),
        db_partition: seen.text("db.partition.id"),
        retry_after_ns: seen.retry_after_ns(),
        resend_count: seen.count("http.request.resend_count"),
        server_address,
        server_port: seen.number("server.port").or(port_beside.flatten()),
        error_type: seen.error_type(),
        rpc_system: seen.text("rpc.system.name").map(|name| stable(RPC_SYSTEMS_RENAMED, name)),
        rpc_service,
        rpc_method,
        rpc_status: seen.rpc_status(),
        messaging_system: seen.text("messaging.system"),
        messaging_destination: seen.text("messaging.destination.name"),
        messaging_operation: seen
            .text("messaging.operation.type")
            .map(|name| stable(MESSAGING_OPERATIONS_RENAMED, name)),
        batch_size: seen.count("messaging.batch.message_count").or_else(|| seen.count("db.operation.batch.size")),
        db_collection: seen.text("db.collection.name"),
        peer_service: seen.text("service.peer.name"),
        url_template: seen.text("url.template"),
    }
}

struct Attributes<'a> {
    map: &'a Map<String, Value>,
    is_server: bool,
    /// Whether a name is there that was replaced: most spans have none, and need no look at the names that were.
    has_old: bool,
    /// The marks of all names, as bits: most names that are looked up are not there, and need no look at the map.
    marks: u64,
}

/// Every name that was replaced, by its mark.
static OLD_NAMES: LazyLock<[Vec<&str>; MARKS]> = LazyLock::new(|| {
    let mut names = [const { Vec::new() }; MARKS];
    RENAMED.iter().for_each(|renamed| names[mark(renamed.old)].push(renamed.old));
    names
});

/// Different [`mark`]s.
const MARKS: usize = 64;

/// A number below [`MARKS`] that differs for most names: made of their length and the letters that differ most.
#[inline(always)]
fn mark(name: &str) -> usize {
    let bytes = name.as_bytes();
    let [first, .., last] = *bytes else { return 0 };
    let middle = bytes[bytes.len() / 2];
    (bytes.len() + 5 * usize::from(first) + 7 * usize::from(middle) + 11 * usize::from(last)) % MARKS
}

impl<'a> Attributes<'a> {
    fn new(map: &'a Map<String, Value>) -> Self {
        let (mut marks, mut has_old) = (0, false);
        let old_names = &*OLD_NAMES;
        for name in map.keys() {
            let mark = mark(name);
            marks |= 1 << mark;
            has_old |= old_names[mark].contains(&name.as_str());
        }
        let mut seen = Self { map, is_server: false, has_old, marks };
        seen.is_server = SERVER_SIDE.iter().any(|name| seen.get(name).is_some());
        seen
    }
}

impl Attributes<'_> {
    /// The value under exactly this name, whose mark is known when this is compiled.
    #[inline(always)]
    fn get(&self, name: &str) -> Option<&Value> {
        if self.marks & (1 << mark(name)) == 0 { None } else { self.map.get(name) }
    }

    /// The first of the stable name and those it replaced whose value `read` accepts.
    #[inline(always)]
    fn first<T>(&self, new: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let stable = self.get(new).and_then(&read);
        if stable.is_some() || !self.has_old { stable } else { self.first_old(new, read) }
    }

    fn first_old<T>(&self, new: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        RENAMED
            .iter()
            .filter(|renamed| renamed.new == new)
            .map(|renamed| renamed.old)
            .filter(|name| !(self.is_server && name.starts_with("net.peer.")))
            .find_map(|name| self.get(name).and_then(&read))
    }

    #[inline(always)]
    fn text(&self, new: &str) -> Option<String> {
        self.first(new, as_text)
    }

    fn number(&self, new: &str) -> Option<u16> {
        self.first(new, as_number)
    }

    fn count(&self, new: &str) -> Option<u32> {
        self.first(new, |value| u32::try_from(as_count(value)?).ok())
    }

    /// Azure's header, which is finer, before HTTP's own. That one may be a date instead of seconds (RFC 9110, section
    /// 10.2.3); a date says nothing without the clock of who sent it, and counts as absent.
    fn retry_after_ns(&self) -> Option<u64> {
        let length = |value: &Value, unit_ns: u64| {
            let ns = as_count(one_of_header(value))?.checked_mul(unit_ns)?;
            (ns <= WAIT_NS_MAX).then_some(ns)
        };
        self.first("http.response.header.x-ms-retry-after-ms", |value| length(value, 1_000_000))
            .or_else(|| self.first("http.response.header.retry-after", |value| length(value, 1_000_000_000)))
    }

    /// `error.type` and what it replaced; without them `_OTHER`, the conventions' word for an error of no known type,
    /// when the span says by OpenTracing's `error` or the bridges' `otel.status_code` that it failed.
    fn error_type(&self) -> Option<String> {
        let says = |name: &str, word: &str| match self.get(name) {
            Some(Value::String(text)) => text.eq_ignore_ascii_case(word),
            Some(Value::Bool(flag)) => *flag && word == "true",
            _ => false,
        };
        let failed = || says("otel.status_code", "error") || says("error", "true");
        self.text("error.type").or_else(|| failed().then(|| "_OTHER".to_owned()))
    }

    /// The status of a remote call; gRPC's numbers of old as the words that replaced them.
    fn rpc_status(&self) -> Option<String> {
        let grpc = || as_text(self.get("rpc.grpc.status_code")?).map(rpc::grpc_status);
        self.get("rpc.response.status_code")
            .and_then(as_text)
            .or_else(grpc)
            .or_else(|| self.text("rpc.response.status_code"))
    }

    /// The whole URL, else path and query of a server span.
    fn url(&self) -> Option<String> {
        let target = || {
            let path = self.text("url.path")?;
            Some(match self.text("url.query") {
                Some(query) => format!("{path}?{query}"),
                None => path,
            })
        };
        self.text("url.full").or_else(target).or_else(|| as_text(self.get("http.target")?))
    }
}

/// Present name of a value.
fn stable(renamed: &[Renaming], name: String) -> String {
    match renamed.iter().find(|renamed| renamed.old == name) {
        Some(renamed) => renamed.new.to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests;
