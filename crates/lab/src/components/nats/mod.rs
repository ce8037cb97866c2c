//! `nats:`: a private NATS server with JetStream, or a cluster of them.
//!
//! It keeps its streams in the replica's folder and listens on 127.0.0.1 without a password. Its streams are bounded, so
//! a load that fills them reaches JetStream's limits before the machine's. Every other setting is NATS's own unless the
//! experiment sets it. Several servers form one cluster in which each knows the routes to all.
//! Root starts it under the account that its package made.

mod gauges;
mod monitoring;
mod settings;

use rustix::process::Signal;
use serde_json::Value;

use crate::Error;
use crate::components::gauges::Gauges;
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready, Url};
use crate::programs::Program;
use settings::Nats;

/// Ports of a server beside that of its clients: that of the routes between servers, and that of its monitoring.
const FURTHER_PORTS: usize = 2;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "nats",
        doc: "A NATS server with JetStream of the service's own, or a cluster of them, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Tcp,
        stop_signal: Signal::TERM,
        ready_timeout: READY_TIMEOUT,
        further_ports: FURTHER_PORTS,
        replicas: |at| at.read(&settings::NODES),
        url: |_| Url { before: "nats://".to_owned(), after: String::new() },
        check_files: |_, _, _| {},
        read: |at, _, report| Some(ENTRY.settings(settings::from_file(at, report)?)),
    },
    programs: &[&PROGRAM],
    sidecar: None,
};

/// The server's program.
pub(crate) static PROGRAM: Program = Program {
    name: "NATS",
    used_for: "`nats:`",
    binary: "nats-server",
    tools: &[],
    folders: &["/usr/sbin", "/usr/bin"],
    install: "apt-get install nats-server",
};

/// The account that Debian's package makes.
const ACCOUNT: &str = "nats";
/// Output of a server once it takes clients. To connect until then would count as clients.
const READY: &str = "Server is ready";

impl Component for Nats {
    fn prepare(&self, place: &Place<'_>, _: &mut Workshop<'_>) -> Result<Launch, Error> {
        let program = place.find(&PROGRAM)?.path;
        let account = place.account(ACCOUNT)?;
        place.make_folder(account)?;
        let file = place.folder.join("nats.conf");
        place.write(&file, &self.configuration(&Cluster::of(place)), account)?;
        let command = vec![program.display().to_string(), "--config".to_owned(), file.display().to_string()];
        let ready = Ready::Log { text: READY.to_owned() };
        Ok(Launch { command, cwd: place.folder.clone(), env: Vec::new(), account, ready })
    }

    /// Whether JetStream can be used. In a cluster it needs a leader for that, elected by a majority of the servers; the
    /// first servers do not wait for it.
    fn is_usable(&self, place: &Place<'_>) -> Result<(), String> {
        let cluster = Cluster::of(place);
        monitoring::jetstream(cluster.own.monitoring)?;
        let running: Vec<Value> =
            cluster.servers.iter().filter_map(|server| monitoring::jetstream(server.monitoring).ok()).collect();
        let can_elect = cluster.has_several() && running.len() > cluster.servers.len() / 2;
        if can_elect && !running.iter().all(|server| has_leader(server, running.len())) {
            return Err(format!("JetStream has no leader that all {} running servers know", running.len()));
        }
        Ok(())
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        Some(Box::new(gauges::Monitoring::new(Cluster::of(place).own.monitoring)))
    }
}

/// The ports of a server.
#[derive(Debug, Clone, Copy)]
struct Ports {
    clients: u16,
    routes: u16,
    monitoring: u16,
}

/// A server and those that it forms a cluster with, itself included.
#[derive(Debug)]
struct Cluster<'a> {
    service: &'a str,
    replica: u32,
    own: Ports,
    servers: Vec<Ports>,
}

impl<'a> Cluster<'a> {
    fn of(place: &'a Place<'_>) -> Self {
        let servers = place.siblings.iter().map(|server| ports(server.port, &server.further)).collect();
        let own = ports(place.service.port, place.further_ports());
        Self { service: &place.service.name, replica: place.service.replica, own, servers }
    }

    fn has_several(&self) -> bool {
        self.servers.len() > 1
    }
}

fn ports(clients: u16, further: &[u16]) -> Ports {
    let [routes, monitoring] = match *further {
        [routes, monitoring] => [routes, monitoring],
        // The entry asks for as many.
        _ => [0; FURTHER_PORTS],
    };
    Ports { clients, routes, monitoring }
}

/// Whether a server of a cluster knows JetStream's leader and that there are at least so many servers.
fn has_leader(server: &Value, servers: usize) -> bool {
    let cluster = &server["meta_cluster"];
    cluster["leader"].is_string() && cluster["cluster_size"].as_u64() >= Some(servers as u64)
}

impl Nats {
    /// The whole of `nats.conf`. Paths start from the folder that the server works in.
    fn configuration(&self, cluster: &Cluster<'_>) -> String {
        let Cluster { service, replica, own, servers } = cluster;
        let mut lines = vec![
            format!("server_name: \"{service}-{}\"", replica + 1),
            format!("listen: \"127.0.0.1:{}\"", own.clients),
            format!("http: \"127.0.0.1:{}\"", own.monitoring),
            "jetstream {".to_owned(),
            "  store_dir: \"data\"".to_owned(),
            format!("  max_memory_store: {}", self.max_memory_bytes),
            format!("  max_file_store: {}", self.max_file_bytes),
            "}".to_owned(),
        ];
        if cluster.has_several() {
            let routes = servers.iter().map(|server| format!("\"nats://127.0.0.1:{}\"", server.routes));
            lines.extend([
                "cluster {".to_owned(),
                format!("  name: \"{service}\""),
                format!("  listen: \"127.0.0.1:{}\"", own.routes),
                format!("  routes: [{}]", routes.collect::<Vec<_>>().join(", ")),
                "}".to_owned(),
            ]);
        }
        lines.extend(self.settings.iter().map(|(name, value)| format!("{name}: {}", written(value))));
        lines.join("\n") + "\n"
    }
}

/// A value of `nats.conf`: as it is where it can be a number, a switch or a duration, else in quotes, so that nothing in
/// it can begin another setting.
fn written(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(replica: u32, servers: u16) -> Cluster<'static> {
        let servers: Vec<Ports> = (1..=servers).map(|nth| ports(nth * 100, &[nth * 100 + 1, nth * 100 + 2])).collect();
        Cluster { service: "bus", replica, own: servers[replica as usize], servers }
    }

    fn nats(settings: &[(&str, &str)]) -> Nats {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Nats { max_memory_bytes: 1 << 20, max_file_bytes: 1 << 30, settings }
    }

    #[test]
    fn one_server_is_private_and_bounded_and_the_experiments_settings_come_last() {
        let nats = nats(&[("max_payload", "2MB"), ("write_deadline", "10s"), ("server_tags", "a; port: 1")]);
        let expected = r#"server_name: "bus-1"
listen: "127.0.0.1:100"
http: "127.0.0.1:102"
jetstream {
  store_dir: "data"
  max_memory_store: 1048576
  max_file_store: 1073741824
}
max_payload: 2MB
write_deadline: 10s
server_tags: "a; port: 1"
"#;
        assert_eq!(nats.configuration(&cluster(0, 1)), expected);
    }

    #[test]
    fn each_server_of_a_cluster_has_the_routes_to_all() {
        let text = nats(&[]).configuration(&cluster(1, 3));
        let expected = r#"
cluster {
  name: "bus"
  listen: "127.0.0.1:201"
  routes: ["nats://127.0.0.1:101", "nats://127.0.0.1:201", "nats://127.0.0.1:301"]
}
"#;
        assert!(text.starts_with("server_name: \"bus-2\"\nlisten: \"127.0.0.1:200\"\n"), "{text}");
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn values_that_could_begin_another_setting_are_quoted() {
        for plain in ["2MB", "10s", "true", "-1", "1.5", "a_b-c"] {
            assert_eq!(written(plain), plain);
        }
        for (value, quoted) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("1; port: 2", r#""1; port: 2""#),
            (r#"a"\b"#, r#""a\"\\b""#),
            ("$HOME", r#""$HOME""#),
        ] {
            assert_eq!(written(value), quoted);
        }
    }

    #[test]
    fn a_cluster_is_there_once_a_leader_and_all_running_servers_are_known() {
        let server = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let known = server(r#"{"meta_cluster": {"name": "bus", "leader": "bus-1", "peer": "x", "cluster_size": 2}}"#);
        assert!(has_leader(&known, 2) && !has_leader(&known, 3));
        let electing = server(r#"{"meta_cluster": {"name": "bus", "peer": "fqA4S4SK", "cluster_size": 3}}"#);
        assert!(!has_leader(&electing, 3) && !has_leader(&server("{}"), 0));
    }
}
