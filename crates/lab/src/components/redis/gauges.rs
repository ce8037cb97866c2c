//! Figures of a Redis server: its clients, its commands, what they found, its memory.
//!
//! Names are those of OpenTelemetry's `redisreceiver`; values are fields of `INFO` (Redis documentation, *INFO*). Counters
//! count up from the server's start. This connection counts as a client, and each `INFO` as a command.

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::redis::client::Client;

/// A field of `INFO`, with the metric's name and unit.
struct Field {
    field: &'static str,
    name: &'static str,
    unit: &'static str,
}

const fn field(field: &'static str, name: &'static str, unit: &'static str) -> Field {
    Field { field, name, unit }
}

static FIELDS: [Field; 13] = [
    field("connected_clients", "redis.clients.connected", "{client}"),
    field("blocked_clients", "redis.clients.blocked", "{client}"),
    field("total_connections_received", "redis.connections.received", "{connection}"),
    field("rejected_connections", "redis.connections.rejected", "{connection}"),
    field("instantaneous_ops_per_sec", "redis.commands", "{ops}/s"),
    field("total_commands_processed", "redis.commands.processed", "{command}"),
    field("keyspace_hits", "redis.keyspace.hits", "{hit}"),
    field("keyspace_misses", "redis.keyspace.misses", "{miss}"),
    field("evicted_keys", "redis.keys.evicted", "{key}"),
    field("expired_keys", "redis.keys.expired", "{event}"),
    field("used_memory", "redis.memory.used", "By"),
    field("used_memory_rss", "redis.memory.rss", "By"),
    field("maxmemory", "redis.maxmemory", "By"),
];

/// Reads the `INFO` of one server over a connection of its own.
#[derive(Debug)]
pub(super) struct Info {
    client: Client,
}

impl Info {
    /// Of the server at a port.
    pub(super) fn new(port: u16) -> Self {
        Self { client: Client::new(port) }
    }
}

impl Gauges for Info {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let response = self.client.call("INFO", TIMEOUT).map_err(|error| format!("INFO: {error}"))?;
        let gauges = gauges(&response);
        if gauges.is_empty() { Err("INFO: the response has none of its fields".to_owned()) } else { Ok(gauges) }
    }
}

/// The gauges of a response: lines `field:value`, and headings that begin with `#`.
fn gauges(response: &str) -> Vec<Gauge> {
    let gauge = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let told = FIELDS.iter().find(|told| told.field == name)?;
        let value = value.trim().parse().ok().filter(|value: &f64| value.is_finite())?;
        Some(Gauge::new(told.name, told.unit, value))
    };
    response.lines().filter_map(gauge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_info_become_metrics() {
        let response = "# Clients\r\nconnected_clients:3\r\nmaxclients:10000\r\nblocked_clients:1\r\n\r\n# Memory\r\n\
                        used_memory:1048576\r\nused_memory_human:1.00M\r\n# Stats\r\nkeyspace_hits:7\r\n\
                        instantaneous_ops_per_sec:12\r\n";
        let shown: Vec<String> =
            gauges(response).iter().map(|gauge| format!("{} {} {}", gauge.name, gauge.value, gauge.unit)).collect();
        let expected = [
            "redis.clients.connected 3 {client}",
            "redis.clients.blocked 1 {client}",
            "redis.memory.used 1048576 By",
            "redis.keyspace.hits 7 {hit}",
            "redis.commands 12 {ops}/s",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn lines_without_a_number_are_left_out() {
        for response in ["", "connected_clients", "connected_clients:", "connected_clients:NaN", ":3", "\u{1}:\u{2}"] {
            assert!(gauges(response).is_empty(), "{response:?}");
        }
    }
}
