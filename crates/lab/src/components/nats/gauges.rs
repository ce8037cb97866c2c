//! Figures of a NATS server: its clients, its messages, what JetStream keeps.
//!
//! Values are fields of the pages `/varz` and `/jsz` (NATS documentation, *Monitoring*); OpenTelemetry has no names for
//! them. Counters count up from the server's start. Messages of the other servers of its cluster count too.

use serde_json::Value;

use crate::components::gauges::{Gauge, Gauges};
use crate::components::nats::monitoring;

/// A field of a page by its JSON Pointer, with the metric's name and unit.
struct Field {
    pointer: &'static str,
    name: &'static str,
    unit: &'static str,
}

const fn field(pointer: &'static str, name: &'static str, unit: &'static str) -> Field {
    Field { pointer, name, unit }
}

/// Of the server.
const VARZ: &str = "/varz";
static OF_VARZ: [Field; 9] = [
    field("/connections", "nats.connections", "{connection}"),
    field("/total_connections", "nats.connections.accepted", "{connection}"),
    field("/routes", "nats.routes", "{connection}"),
    field("/subscriptions", "nats.subscriptions", "{subscription}"),
    field("/in_msgs", "nats.messages.in", "{message}"),
    field("/out_msgs", "nats.messages.out", "{message}"),
    field("/in_bytes", "nats.bytes.in", "By"),
    field("/out_bytes", "nats.bytes.out", "By"),
    field("/slow_consumers", "nats.slow_consumers", "{event}"),
];

/// Of JetStream.
const JSZ: &str = "/jsz";
static OF_JSZ: [Field; 10] = [
    field("/streams", "nats.jetstream.streams", "{stream}"),
    field("/consumers", "nats.jetstream.consumers", "{consumer}"),
    field("/messages", "nats.jetstream.messages", "{message}"),
    field("/bytes", "nats.jetstream.bytes", "By"),
    field("/memory", "nats.jetstream.memory.used", "By"),
    field("/config/max_memory", "nats.jetstream.memory.limit", "By"),
    field("/storage", "nats.jetstream.file.used", "By"),
    field("/config/max_storage", "nats.jetstream.file.limit", "By"),
    field("/api/total", "nats.jetstream.api.requests", "{request}"),
    field("/api/errors", "nats.jetstream.api.errors", "{error}"),
];

/// Reads the pages of one server.
#[derive(Debug)]
pub(super) struct Monitoring {
    port: u16,
}

impl Monitoring {
    /// Of the server whose monitoring listens at a port.
    pub(super) fn new(port: u16) -> Self {
        Self { port }
    }
}

impl Gauges for Monitoring {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let mut all = gauges(&monitoring::page(self.port, VARZ)?, &OF_VARZ);
        all.extend(gauges(&monitoring::page(self.port, JSZ)?, &OF_JSZ));
        if all.is_empty() { Err(format!("{VARZ}, {JSZ}: the responses have none of their fields")) } else { Ok(all) }
    }
}

/// The fields of a page that are numbers.
fn gauges(page: &Value, fields: &[Field]) -> Vec<Gauge> {
    let gauge = |field: &Field| Some(Gauge::new(field.name, field.unit, page.pointer(field.pointer)?.as_f64()?));
    fields.iter().filter_map(gauge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of NATS 2.9.10, of one of three servers after a few hundred messages.
    const VARZ_PAGE: &str = include_str!("varz.json");
    const JSZ_PAGE: &str = include_str!("jsz.json");

    fn shown(page: &str, fields: &[Field]) -> Vec<String> {
        let page = serde_json::from_str(page).unwrap();
        gauges(&page, fields).iter().map(|gauge| format!("{} {} {}", gauge.name, gauge.value, gauge.unit)).collect()
    }

    #[test]
    fn fields_of_the_pages_become_metrics() {
        let expected = [
            "nats.connections 1 {connection}",
            "nats.connections.accepted 1 {connection}",
            "nats.routes 2 {connection}",
            "nats.subscriptions 189 {subscription}",
            "nats.messages.in 669 {message}",
            "nats.messages.out 683 {message}",
            "nats.bytes.in 39642 By",
            "nats.bytes.out 62908 By",
            "nats.slow_consumers 0 {event}",
        ];
        assert_eq!(shown(VARZ_PAGE, &OF_VARZ), expected);
        let expected = [
            "nats.jetstream.streams 2 {stream}",
            "nats.jetstream.consumers 1 {consumer}",
            "nats.jetstream.messages 200 {message}",
            "nats.jetstream.bytes 6980 By",
            "nats.jetstream.memory.used 2790 By",
            "nats.jetstream.memory.limit 268435456 By",
            "nats.jetstream.file.used 4190 By",
            "nats.jetstream.file.limit 4294967296 By",
            "nats.jetstream.api.requests 2 {request}",
            "nats.jetstream.api.errors 0 {error}",
        ];
        assert_eq!(shown(JSZ_PAGE, &OF_JSZ), expected);
    }

    #[test]
    fn fields_that_are_no_numbers_are_left_out() {
        for page in ["{}", "[]", r#"{"connections": "3", "routes": null}"#, r#"{"connections": {}}"#] {
            assert!(shown(page, &OF_VARZ).is_empty(), "{page}");
        }
    }
}
