//! What a span's attributes mean, whichever generation of OpenTelemetry's semantic conventions they follow.
//!
//! Both generations arrive mixed, even inside one process (a Java agent sends HTTP by the stable names and JDBC by the
//! old ones), so names are never looked at one generation at a time: for each fact the stable name is tried first, then
//! the names it replaced, in the order of [`RENAMED`]. This is the only place of Narrows that knows attribute names.
//!
//! It does not rewrite attributes and does not interpret queries: grouping statements that differ in their literals is
//! diagnosis. Secrets are the run file's business, whose door nothing gets past.

mod names;

use narrows_model::trace::SpanFacts;
use serde_json::{Map, Value};

pub use names::{DB_SYSTEMS_RENAMED, RENAMED, Renamed};

/// Attributes that only a server span of the old conventions carries. Its `net.peer.*` are the caller's address and
/// ephemeral port, not the server's.
const SERVER_SIDE: &[&str] = &["net.host.name", "net.host.port", "net.host.ip", "http.server_name", "client.address"];

/// The longest wait that an answer can ask for, in nanoseconds: a year. A longer one counts as absent.
const WAIT_NS_MAX: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Reads the facts off a span's attributes. A number may come as a string and the other way round; a value of any
/// other type, or a number out of its range, counts as absent.
pub fn facts(attributes: &Map<String, Value>) -> SpanFacts {
    let seen = Attributes { map: attributes, is_server: SERVER_SIDE.iter().any(|name| attributes.contains_key(*name)) };
    let (server_address, port_beside) = seen.text("server.address").map(split_port).unzip();
    SpanFacts {
        http_method: seen.text("http.request.method"),
        http_route: seen.text("http.route"),
        http_status: seen.number("http.response.status_code"),
        url: seen.url(),
        db_system: seen.text("db.system.name").map(stable_system),
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
        error_type: seen.text("error.type"),
    }
}

struct Attributes<'a> {
    map: &'a Map<String, Value>,
    is_server: bool,
}

impl Attributes<'_> {
    /// The first of the stable name and those it replaced whose value `read` accepts.
    fn first<T>(&self, new: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let old = RENAMED.iter().filter(|renamed| renamed.new == new).map(|renamed| renamed.old);
        std::iter::once(new)
            .chain(old)
            .filter(|name| !(self.is_server && name.starts_with("net.peer.")))
            .find_map(|name| self.map.get(name).and_then(&read))
    }

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

    /// The whole URL, else path and query of a server span.
    fn url(&self) -> Option<String> {
        let target = || {
            let path = self.text("url.path")?;
            Some(match self.text("url.query") {
                Some(query) => format!("{path}?{query}"),
                None => path,
            })
        };
        self.text("url.full").or_else(target).or_else(|| as_text(self.map.get("http.target")?))
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn as_number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}

/// A whole number that may be 0.
fn as_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A number of request units: finite and not negative.
fn as_charge(value: &Value) -> Option<f64> {
    let charge = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (charge.is_finite() && charge >= 0.0).then_some(charge)
}

/// The value of a header, which comes as a list since a header may be repeated. One that is repeated stays a list.
fn one_of_header(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => value,
    }
}

/// Parts `127.0.0.1:8000` and `[::1]:8000`, which Python's ASGI instrumentation sends as an address, at the port.
fn split_port(address: String) -> (String, Option<u16>) {
    let Some((host, port)) = address.rsplit_once(':') else { return (address, None) };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_plain = !host.is_empty() && !host.contains(':');
    match (bracketed.or(is_plain.then_some(host)), port.parse()) {
        (Some(host), Ok(port)) if port > 0 => (host.to_owned(), Some(port)),
        _ => (address, None),
    }
}

fn stable_system(name: String) -> String {
    match DB_SYSTEMS_RENAMED.iter().find(|renamed| renamed.old == name) {
        Some(renamed) => renamed.new.to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests;
