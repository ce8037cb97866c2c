//! Figures of a Redis server: its clients, its commands and their time on its one thread, what they found, its memory.
//!
//! Names are those of OpenTelemetry's `redisreceiver`; values are fields of `INFO` and of `INFO commandstats` (Redis
//! documentation, *INFO*). Counters count up from the server's start. The slow log adds the longest call of each command,
//! without its arguments, which may hold anything. This connection counts as a client, and what it asks as commands.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::series::servers::{REDIS_CALLS, REDIS_COMMAND, REDIS_SLOWEST, REDIS_TIME};

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::redis::client::{Client, Response};
use crate::experiment::ServerUrl;

/// Commands that are told of a server at most.
const COMMANDS_MAX: usize = 20;
/// Entries of the slow log that are read at once.
const SLOW_CALLS_MAX: &str = "64";
/// The label that says which part of the CPU time it is.
const CPU_STATE: &str = "state";

/// A field of `INFO`, with the metric's name and unit.
struct Field {
    field: &'static str,
    name: &'static str,
    unit: &'static str,
    state: Option<&'static str>,
}

const fn field(field: &'static str, name: &'static str, unit: &'static str) -> Field {
    Field { field, name, unit, state: None }
}

const fn cpu(field: &'static str, state: &'static str) -> Field {
    Field { field, name: "redis.cpu.time", unit: "s", state: Some(state) }
}

static FIELDS: [Field; 15] = [
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
    cpu("used_cpu_user_main_thread", "user_main_thread"),
    cpu("used_cpu_sys_main_thread", "sys_main_thread"),
];

/// Reads the `INFO` and the slow log of one server over a connection of its own.
#[derive(Debug)]
pub(in crate::components) struct Info {
    client: Client,
    /// The commands told so far.
    told: BTreeSet<String>,
    /// The number of the newest call of the slow log that was read.
    newest_slow_call: Option<i64>,
}

impl Info {
    /// Of a server.
    pub(in crate::components) fn new(url: ServerUrl) -> Self {
        Self { client: Client::new(url), told: BTreeSet::new(), newest_slow_call: None }
    }

    /// The longest calls since the last reading, by command. Calls before the first reading are passed over.
    fn slow_calls(&mut self) -> Result<Vec<Gauge>, String> {
        let log = match self.client.call(&["SLOWLOG", "GET", SLOW_CALLS_MAX], TIMEOUT)? {
            Response::Array(log) => log,
            Response::Error(_) => return Ok(Vec::new()),
            other => return Err(format!("SLOWLOG: expected an array, found {other:?}")),
        };
        let calls: Vec<SlowCall> = log.iter().filter_map(SlowCall::of).collect();
        let newest = calls.iter().map(|call| call.number).max();
        let before = self.newest_slow_call.replace(newest.unwrap_or(-1));
        Ok(before.map(|before| longest(&calls, before)).unwrap_or_default())
    }
}

impl Gauges for Info {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let info = self.client.text(&["INFO"], TIMEOUT).map_err(|error| format!("INFO: {error}"))?;
        let mut gauges = gauges(&info);
        if gauges.is_empty() {
            return Err("INFO: the response has none of its fields".to_owned());
        }
        let commands = self.client.text(&["INFO", "commandstats"], TIMEOUT);
        gauges.extend(commands_of(&commands.map_err(|error| format!("INFO commandstats: {error}"))?, &mut self.told));
        gauges.extend(self.slow_calls()?);
        Ok(gauges)
    }
}

/// The gauges of a response: lines `field:value`, and headings that begin with `#`.
fn gauges(response: &str) -> Vec<Gauge> {
    let gauge = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let told = FIELDS.iter().find(|told| told.field == name)?;
        let value = value.trim().parse().ok().filter(|value: &f64| value.is_finite())?;
        let gauge = Gauge::new(told.name, told.unit, value);
        Some(told.state.iter().fold(gauge, |gauge, state| gauge.with(CPU_STATE, state)))
    };
    response.lines().filter_map(gauge).collect()
}

/// The commands that took most of the thread's time so far, from lines `cmdstat_NAME:calls=N,usec=N,…`. A subcommand is
/// `NAME|SUB`. Once so many were told, only those are reported on.
fn commands_of(response: &str, told: &mut BTreeSet<String>) -> Vec<Gauge> {
    let command = |line: &str| {
        let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let field = |name: &str| {
            let value = fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
            value?.parse::<f64>().ok().filter(|value| value.is_finite())
        };
        Some((name.to_uppercase(), field("calls")?, field("usec")?))
    };
    let mut commands: Vec<(String, f64, f64)> = response.lines().filter_map(command).collect();
    commands.sort_by(|a, b| b.2.total_cmp(&a.2));
    let mut gauges = Vec::new();
    for (name, calls, microseconds) in commands {
        if !told.contains(&name) && told.len() >= COMMANDS_MAX {
            continue;
        }
        gauges.push(Gauge::new(REDIS_CALLS, "{call}", calls).with(REDIS_COMMAND, &name));
        gauges.push(Gauge::new(REDIS_TIME, "us", microseconds).with(REDIS_COMMAND, &name));
        told.insert(name);
    }
    gauges
}

/// A call that the slow log has.
#[derive(Debug, Clone, PartialEq)]
struct SlowCall {
    /// Rises with each call.
    number: i64,
    command: String,
    seconds: f64,
}

impl SlowCall {
    /// From an entry: number, time, microseconds, arguments, client.
    fn of(entry: &Response) -> Option<Self> {
        let Response::Array(parts) = entry else { return None };
        let [Response::Integer(number), _, Response::Integer(microseconds), Response::Array(arguments), ..] =
            &parts[..]
        else {
            return None;
        };
        let Some(Response::Text(command)) = arguments.first() else { return None };
        Some(Self { number: *number, command: command.to_uppercase(), seconds: *microseconds as f64 / 1e6 })
    }
}

/// The longest of the calls after the one with this number, by command.
fn longest(calls: &[SlowCall], after: i64) -> Vec<Gauge> {
    let mut longest: BTreeMap<&str, f64> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.number > after) {
        let known = longest.entry(&call.command).or_default();
        *known = known.max(call.seconds);
    }
    let gauge = |(command, seconds)| Gauge::new(REDIS_SLOWEST, "s", seconds).with(REDIS_COMMAND, command);
    longest.into_iter().take(COMMANDS_MAX).map(gauge).collect()
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
    #[test]
    fn commands_are_told_by_their_time_and_only_so_many() {
        let response = "# Commandstats\r\ncmdstat_get:calls=900,usec=1800,usec_per_call=2.00,rejected_calls=0,failed_calls=0\r\n\
                        cmdstat_keys:calls=2,usec=80000,usec_per_call=40000.00\r\ncmdstat_config|get:calls=1,usec=9\r\n\
                        cmdstat_bad:calls=x,usec=1\r\n";
        let mut told = BTreeSet::new();
        let shown: Vec<String> = commands_of(response, &mut told)
            .iter()
            .map(|gauge| format!("{} {} {}", gauge.labels[REDIS_COMMAND], gauge.name, gauge.value))
            .collect();
        assert_eq!(shown[..2], ["KEYS redis.cmd.calls 2", "KEYS redis.cmd.usec 80000"]);
        assert_eq!((shown.len(), shown[4].as_str()), (6, "CONFIG|GET redis.cmd.calls 1"));
        let many: String = (0..100).map(|n| format!("cmdstat_c{n}:calls=1,usec={n}\n")).collect();
        assert_eq!(commands_of(&many, &mut told).len(), 2 * (COMMANDS_MAX - 3));
    }

    #[test]
    fn the_slow_log_gives_the_longest_new_call_without_its_arguments() {
        let entry = |number, microseconds, command: &str| {
            let text = |text: &str| Response::Text(text.to_owned());
            let arguments = Response::Array(vec![text(command), text("session:secret")]);
            let start = Response::Integer(1_700_000_000);
            Response::Array(vec![
                Response::Integer(number),
                start,
                Response::Integer(microseconds),
                arguments,
                text(""),
            ])
        };
        let log = [entry(9, 41_000, "keys"), entry(8, 38_000, "KEYS"), entry(7, 90_000, "KEYS"), Response::Nothing];
        let calls: Vec<SlowCall> = log.iter().filter_map(SlowCall::of).collect();
        let gauges = longest(&calls, 7);
        assert_eq!(gauges, [Gauge::new(REDIS_SLOWEST, "s", 0.041).with(REDIS_COMMAND, "KEYS")]);
    }
}
