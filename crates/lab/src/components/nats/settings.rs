//! `nats:`: the settings of a NATS server, or of each server of a cluster.

use crate::components::server_settings;
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::{Key, parameter};
use crate::experiment::grammar::kind::{self, Whole};
use crate::experiment::grammar::shape::{Field, Map, Shape};

/// A cluster of more would need a machine of more.
const NODES_MAX: u64 = 9;

/// The settings of each server in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nats {
    /// The most that its streams in memory may take.
    pub(super) max_memory_bytes: u64,
    /// The most that its streams in files may take.
    pub(super) max_file_bytes: u64,
    /// Settings of `nats.conf` beside those that Narrows gives.
    pub(super) settings: Vec<(String, String)>,
}

/// Settings that Narrows gives, and those that would hide the server from it, open it to others or take it into another
/// cluster.
const NOT_FREE: [&str; 38] = [
    "accounts",
    "authorization",
    "client_advertise",
    "cluster",
    "gateway",
    "host",
    "http",
    "http_base_path",
    "http_port",
    "https",
    "https_port",
    "include",
    "jetstream",
    "leaf",
    "leafnodes",
    "listen",
    "log_file",
    "logfile",
    "monitor_port",
    "mqtt",
    "net",
    "no_sys_acc",
    "no_system_account",
    "operator",
    "operators",
    "pid_file",
    "pidfile",
    "port",
    "ports_file_dir",
    "prof_port",
    "remote_syslog",
    "server_name",
    "store_dir",
    "storedir",
    "syslog",
    "system_account",
    "tls",
    "websocket",
];

pub(super) const NODES: Key<u32> = Key::default(
    "nodes",
    parameter(&Whole::new(1, NODES_MAX)),
    "1",
    "How many servers there are, instead of `replicas`. Several form one cluster; they are the replicas of the service.",
);

const MAX_MEMORY: Key<u64> = Key::default(
    "max_memory",
    parameter(&kind::MEMORY),
    "256MiB",
    "The most memory that a server's streams in memory may use (`max_memory_store`).",
);

const MAX_FILE: Key<u64> = Key::default(
    "max_file",
    parameter(&kind::MEMORY),
    "4GiB",
    "The most disk space that a server's streams in files may use (`max_file_store`).",
);

const SETTINGS: Field =
    server_settings::settings("Settings of `nats.conf` of every server, such as `max_payload: 2MB`.");

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&[NODES.field, MAX_MEMORY.field, MAX_FILE.field, SETTINGS]));

/// The settings of each server; `None` if an error was reported.
pub(super) fn from_file(at: At<'_>, report: &mut Report) -> Option<Nats> {
    let settings = server_settings::read(at, &SETTINGS, |name| !NOT_FREE.contains(&name), report)?;
    Some(Nats { max_memory_bytes: at.read(&MAX_MEMORY)?, max_file_bytes: at.read(&MAX_FILE)?, settings })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::experiment::tests::components::{component, errors, service};

    #[test]
    fn defaults_are_one_server_with_bounds_on_its_streams() {
        let expected = Nats { max_memory_bytes: 256 << 20, max_file_bytes: 4 << 30, settings: Vec::new() };
        assert_eq!(component("nats: {}").settings_as::<Nats>(), &expected);
        assert_eq!(service("nats: {}").ready_timeout.as_secs(), 30);
    }

    #[test]
    fn settings_are_read_in_order() {
        let bound = component(
            "nats: { nodes: 1, max_memory: 1MiB, max_file: 1GiB, settings: { write_deadline: 2s, max_payload: 2MB } }",
        );
        let nats: &Nats = bound.settings_as();
        assert_eq!((nats.max_memory_bytes, nats.max_file_bytes), (1 << 20, 1 << 30));
        let settings = [("write_deadline", "2s"), ("max_payload", "2MB")];
        assert_eq!(nats.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn errors_are_reported_at_their_places() {
        let cases = [
            "nats: { nodes: 10, max_memory: 0, max_file: much }",
            "nats: { settings: { Port: 1, cluster: c, max_payload: 1MB, store_dir: / } }",
            "nats: { settings: { max_payload: \"1MB\\nport: 1\" } }",
            "nats: {}\n      ready: GET /",
            "nats: {}\n      replicas: 3",
        ];
        let shown: Vec<String> = cases.iter().map(|case| format!("--- {case}\n{}", errors(case))).collect();
        assert_snapshot!(shown.concat(), @r#"
        --- nats: { nodes: 10, max_memory: 0, max_file: much }
        e.yaml:6:22: system.services.web.nats.nodes: expected a whole number from 1 to 9, found 10
        e.yaml:6:38: system.services.web.nats.max_memory: expected an amount of memory such as `256MiB`, found 0
        e.yaml:6:51: system.services.web.nats.max_file: expected an amount of memory such as `256MiB`, found "much"
        --- nats: { settings: { Port: 1, cluster: c, max_payload: 1MB, store_dir: / } }
        e.yaml:6:27: system.services.web.nats.settings: `Port` is set by Narrows, so that the server is private to the trial
        e.yaml:6:36: system.services.web.nats.settings: `cluster` is set by Narrows, so that the server is private to the trial
        e.yaml:6:66: system.services.web.nats.settings: `store_dir` is set by Narrows, so that the server is private to the trial
        --- nats: { settings: { max_payload: "1MB\nport: 1" } }
        e.yaml:6:40: system.services.web.nats.settings.max_payload: expected one line, found a line break or another control character
        --- nats: {}
              ready: GET /
        e.yaml:7:14: system.services.web.ready: `nats` allows no readiness check
          hint: set only `timeout`: `{ timeout: 2m }`
        --- nats: {}
              replicas: 3
        e.yaml:7:7: system.services.web: `nats` allows no `replicas`
          hint: set `nodes` instead
        "#);
    }
}
