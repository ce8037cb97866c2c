//! Compose files: which services have published ports, and a first experiment for their system.
//!
//! The image says what a service is: a database is asked about itself (`observe`), and the load goes to the first
//! other one with a published port that no service depends on. What is guessed says so in a comment. Only names, images,
//! ports and dependencies are read.
//!
//! Source: the Compose Specification, "ports", "depends_on", "Interpolation" and its schema of 2025, whose keys are all that are
//! known.

use super::bound::WrittenLimits;
use super::document::tree::{self, Form, Node, Origin};
use super::error::{FileError, Problem, Report};
use super::observe::ServerKind;

/// Larger files are refused, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Parts of the names of images that are neither databases that can be asked nor services with HTTP.
const NEITHER: [&str; 10] =
    ["rabbitmq", "kafka", "nats", "mongo", "memcached", "elasticsearch", "opensearch", "zookeeper", "etcd", "otel"];

/// Keys of a Compose file, apart from those that begin with `x-`.
const FILE_KEYS: [&str; 9] =
    ["configs", "include", "models", "name", "networks", "secrets", "services", "version", "volumes"];

/// Keys of a service.
#[rustfmt::skip]
const SERVICE_KEYS: &[&str] = &[
    "annotations", "attach", "blkio_config", "build", "cap_add", "cap_drop", "cgroup", "cgroup_parent", "command", "configs",
    "container_name", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpu_rt_period", "cpu_rt_runtime", "cpu_shares",
    "cpus", "cpuset", "credential_spec", "depends_on", "deploy", "develop", "device_cgroup_rules", "devices", "dns", "dns_opt",
    "dns_search", "domainname", "entrypoint", "env_file", "environment", "expose", "extends", "external_links", "extra_hosts",
    "gpus", "group_add", "healthcheck", "hostname", "image", "init", "ipc", "isolation", "label_file", "labels", "links",
    "logging", "mac_address", "mem_limit", "mem_reservation", "mem_swappiness", "memswap_limit", "models", "network_mode",
    "networks", "oom_kill_disable", "oom_score_adj", "pid", "pids_limit", "platform", "ports", "post_start", "pre_stop",
    "privileged", "profiles", "provider", "pull_policy", "pull_refresh_after", "read_only", "restart", "runtime", "scale",
    "secrets", "security_opt", "shm_size", "stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs",
    "tty", "ulimits", "use_api_socket", "user", "userns_mode", "uts", "volumes", "volumes_from", "working_dir",
];

/// A service with a published port.
struct Published<'a> {
    name: &'a str,
    /// `HOST:PORT`, of the first.
    address: String,
    kind: Option<ServerKind>,
}

/// The text of an experiment for the system that the Compose file `source` describes. `file` is how errors and the text
/// name the file, `folder` the name of its folder, after which Compose calls a system without a name.
///
/// # Errors
/// With all errors: when it is no YAML, has no services, or publishes no port of a service that load could go to.
pub fn experiment_of(source: &str, file: &str, folder: &str) -> Result<String, Vec<FileError>> {
    let mut report = Report::new(file);
    let text = read(source, file, folder, &mut report);
    text.filter(|_| report.is_empty()).ok_or_else(|| report.into_errors())
}

/// The services of a Compose file, each with the address at which it is published, if it is.
pub(crate) fn addresses(source: &str, file: &str) -> Result<Vec<(String, Option<String>)>, Vec<FileError>> {
    let mut report = Report::new(file);
    let root = parse(source, &mut report);
    let services = root.as_ref().and_then(|root| root.get("services"));
    let found = services.map(|services| services.entries().iter().map(|one| (one.key.clone(), address(&one.value))));
    let found: Vec<_> = found.into_iter().flatten().collect();
    if report.is_empty() { Ok(found) } else { Err(report.into_errors()) }
}

/// How a Compose file writes the limits of a service.
pub(crate) fn written_limits(source: &str, service: &str) -> WrittenLimits {
    let root = tree::parse(source, &mut Report::new(""));
    let Some(service) = root.as_ref().and_then(|root| root.get("services")?.get(service)) else {
        return WrittenLimits::default();
    };
    let deployed = || service.get("deploy")?.get("resources")?.get("limits")?.get("cpus");
    let is_number = |node: &Node| match &node.form {
        Form::Scalar(scalar) => matches!(scalar.origin, Origin::Integer | Origin::Number),
        _ => false,
    };
    WrittenLimits {
        has_cpus: service.get("cpus").is_some(),
        has_mem_limit: service.get("mem_limit").is_some(),
        has_number_in_deploy: deployed().is_some_and(is_number),
    }
}

/// The document; `None` with an error for each unknown key, which some programs that start Compose files ignore.
fn parse(source: &str, report: &mut Report) -> Option<Node> {
    let root = tree::parse(source, report)?;
    check_keys(&root, "", &FILE_KEYS, report);
    for service in root.get("services").map_or(&[][..], Node::entries) {
        check_keys(&service.value, &format!("services.{}", service.key), SERVICE_KEYS, report);
    }
    report.is_empty().then_some(root)
}

fn check_keys(node: &Node, path: &str, known: &[&str], report: &mut Report) {
    for entry in node.entries().iter().filter(|entry| !entry.key.starts_with("x-") && entry.key != "<<") {
        if !known.contains(&entry.key.as_str()) {
            let problem = Problem::unknown("key", &entry.key, known.iter().copied());
            report.add(entry.key_place, path.to_owned(), problem);
        }
    }
}

fn read(source: &str, file: &str, folder: &str, report: &mut Report) -> Option<String> {
    if source.len() > FILE_BYTES_MAX {
        report.add((1, 1), String::new(), Problem::new(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
        return None;
    }
    let root = parse(source, report)?;
    let Some(services) = root.get("services").filter(|services| !services.entries().is_empty()) else {
        let problem = Problem::new("`services` is missing or empty, expected a Compose file");
        report.add(root.place, String::new(), problem);
        return None;
    };
    let published: Vec<Published<'_>> = services
        .entries()
        .iter()
        .filter_map(|entry| {
            let image = entry.value.get("image").and_then(Node::text).unwrap_or_default();
            let is_neither = NEITHER.iter().any(|other| entry.key.contains(other) || image.contains(other));
            let published = Published { name: &entry.key, address: address(&entry.value)?, kind: kind_of(image) };
            (published.kind.is_some() || !is_neither).then_some(published)
        })
        .collect();
    let (databases, others): (Vec<_>, Vec<_>) = published.into_iter().partition(|one| one.kind.is_some());
    let needed: Vec<&str> = services.entries().iter().flat_map(|entry| dependencies(&entry.value)).collect();
    let is_entry = |one: &&Published<'_>| !needed.contains(&one.name);
    let Some(target) = others.iter().find(is_entry).or(others.first()) else {
        let problem = Problem::new("no service publishes a port that load could go to");
        report.add(services.place, "services".to_owned(), problem.hint("publish one: `ports: [\"8080:8080\"]`"));
        return None;
    };
    let name = root.get("name").and_then(Node::text).unwrap_or(folder);
    Some(text(file, name, target.name, &others, &databases))
}

/// The services that a service depends on.
fn dependencies(service: &Node) -> Vec<&str> {
    match service.get("depends_on").map(|node| &node.form) {
        Some(Form::List(names)) => names.iter().filter_map(Node::text).collect(),
        Some(Form::Map(entries)) => entries.iter().map(|entry| entry.key.as_str()).collect(),
        _ => Vec::new(),
    }
}

fn text(file: &str, name: &str, target: &str, services: &[Published<'_>], databases: &[Published<'_>]) -> String {
    let file = file.replace(char::is_control, " ");
    let listed: Vec<String> = services.iter().map(|one| format!("{} at {}", one.name, one.address)).collect();
    let observed: String = databases
        .iter()
        .filter_map(|one| Some(format!("  {}: {}://{}\n", one.name, one.kind?.scheme(), one.address)))
        .collect();
    let has_users = databases.iter().any(|one| one.kind.is_some_and(|kind| kind != ServerKind::Redis));
    let user = if has_users { " Put a user before the host (`postgres://user@host…`)." } else { "" };
    let observe = match observed.as_str() {
        "" => String::new(),
        servers => format!(
            "\n# Databases are asked what their sessions wait for.{user}\n\
             # A password comes from PGPASSWORD, MYSQL_PWD or REDISCLI_AUTH.\nobserve:\n{servers}"
        ),
    };
    format!(
        r#"# An experiment for the system of {file}, made by `narrows init --compose`.
#
#   narrows run experiment.yaml
#
# All keys: `narrows docs experiment`; services that others start: `narrows docs other-machines`

experiment: {name}

system:
  # Started for each trial and taken down after it, volumes included. These services publish a port:
  # {listed}.
  # `services: {{ {target}: {{ address: "…", ready: "GET /health" }} }}` says more about one of them.
  compose: {file}
{observe}
# Containers send traces here, with the token in the variable NARROWS_OTLP_TOKEN; they are given both.
# telemetry: {{ listen: "0.0.0.0:4318" }}

load:
  # A guess: it publishes a port, and no other service depends on it.
  target: {target}
  warmup: 5s
  scenarios:
    browse:
      model: ramping-vus
      levels: {{ from: 1, add: 4, every: 15s, to: 17 }}
      # The request to measure.
      request: "GET /"

objectives:
  - p95 < 300ms
  - error_rate == 0
"#,
        file = quoted(&file),
        listed = listed.join(", "),
        name = experiment_name(name),
    )
}

/// A path as YAML, without quotes where it needs none.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { serde_json::Value::from(path).to_string() }
}

fn experiment_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).take(64).collect();
    if name.is_empty() { "compose".to_owned() } else { name }
}

/// The kind of the database in an image, if it can be asked about itself.
fn kind_of(image: &str) -> Option<ServerKind> {
    let name = image.rsplit('/').next()?.split([':', '@']).next()?;
    [
        ("postgres", ServerKind::Postgres),
        ("postgis", ServerKind::Postgres),
        ("mariadb", ServerKind::Mysql),
        ("mysql", ServerKind::Mysql),
        ("redis", ServerKind::Redis),
        ("valkey", ServerKind::Redis),
    ]
    .into_iter()
    .find(|(part, _)| name.contains(part))
    .map(|(_, kind)| kind)
}

/// The address of the first port that a service publishes; `None` if it publishes none, or only ports that Docker chooses.
fn address(service: &Node) -> Option<String> {
    let Form::List(ports) = &service.get("ports")?.form else { return None };
    ports.iter().find_map(|port| {
        let (host, port) = match port.text() {
            Some(text) => short(&interpolated(text)?)?,
            None => {
                let value = |key| port.get(key).and_then(Node::text).and_then(interpolated);
                (value("host_ip"), value("published")?)
            }
        };
        let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
        let host = host.filter(|host| !matches!(host.as_str(), "" | "0.0.0.0" | "::" | "[::]"));
        Some(format!("{}:{port}", host.unwrap_or_else(|| "127.0.0.1".to_owned())))
    })
}

/// The host and the published port of `[HOST:]PUBLISHED:TARGET[/PROTOCOL]`, TCP only.
fn short(text: &str) -> Option<(Option<String>, String)> {
    let (text, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let (rest, _target) = text.rsplit_once(':')?;
    let (host, published) = rest.rsplit_once(':').map_or((None, rest), |(host, port)| (Some(host.to_owned()), port));
    (protocol == "tcp").then(|| (host, published.to_owned()))
}

/// A text with the defaults of its variables, `${NAME:-DEFAULT}`; `None` if a variable has none.
fn interpolated(text: &str) -> Option<String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let (variable, behind) = after.strip_prefix('{')?.split_once('}')?;
        let (_, default) = variable.split_once('-')?;
        whole += before;
        whole += default;
        rest = behind;
    }
    Some(whole + rest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SHOP: &str = r#"
name: My_Shop
services:
  web:
    build: .
    ports: ["${WEB_PORT:-8080}:80"]
    depends_on: [db]
  api:
    image: registry.example:5000/shop/api:1.2
    ports:
      - { target: 9000, published: "9001", host_ip: 127.0.0.2 }
  db:
    image: docker.io/library/postgres:16
    ports: ["127.0.0.1:5433:5432"]
  worker: { image: shop/worker }
  kafka: { image: apache/kafka, ports: ["9092:9092"] }
"#;

    #[test]
    fn published_services_become_an_experiment_that_is_valid() {
        let text = experiment_of(SHOP, "compose.yaml", "folder").unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("compose.yaml"), SHOP).unwrap();
        let experiment = crate::language().parse(&text, "experiment.yaml", folder.path()).unwrap();
        assert_eq!(experiment.name, "my-shop");
        assert_eq!(experiment.services, ["web", "api", "db", "kafka"]);
        assert_eq!(experiment.load.target.as_deref(), Some("web"));
        assert!(text.contains("# web at 127.0.0.1:8080, api at 127.0.0.2:9001.\n"), "{text}");
        assert!(text.contains("observe:\n  db: postgres://127.0.0.1:5433\n"), "{text}");
        assert!(!text.contains("kafka") && !text.contains("worker"), "no load goes there: {text}");
    }

    #[test]
    fn the_reference_systems_have_compose_files() {
        for name in ["customer-360", "drone-delivery", "hello-cities", "micron"] {
            let folder = format!("{}/../../deploy/compose", env!("CARGO_MANIFEST_DIR"));
            let source = std::fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap();
            let text = experiment_of(&source, &format!("{name}.yaml"), "folder").unwrap();
            let experiment = crate::language().parse(&text, "experiment.yaml", Path::new(&folder)).unwrap();
            assert_eq!((experiment.name.as_str(), experiment.services.len()), (name, 1), "{text}");
            assert!(text.contains("at 127.0.0.1:8080.\n"), "only one is published: {text}");
        }
    }

    #[test]
    fn the_load_goes_to_a_service_that_no_other_depends_on() {
        let written = |gateway: &str| {
            let shop = "services:\n  web: { ports: [\"81:80\"] }\n  cache: { image: redis, ports: [\"82:6379\"] }\n";
            experiment_of(&format!("{shop}  gateway: {gateway}\n"), "c.yaml", "My Shop").unwrap()
        };
        for depends_on in ["[web]", "{ web: { condition: service_started } }"] {
            let text = written(&format!("{{ ports: [\"80:80\"], depends_on: {depends_on} }}"));
            assert!(text.contains("\n  target: gateway\n") && text.contains("\nexperiment: my-shop\n"), "{text}");
            assert!(!text.contains("Put a user"), "Redis needs none: {text}");
        }
        assert!(written("{ depends_on: [web] }").contains("\n  target: web\n"), "no other publishes a port");
    }

    #[test]
    fn limits_are_found_where_they_are_written() {
        let of = |service: &str| written_limits(&format!("services:\n  web: {service}\n"), "web");
        let none = WrittenLimits::default();
        let plain = WrittenLimits { has_cpus: true, has_mem_limit: true, ..none };
        let deployed = |cpus: &str| of(&format!("{{ deploy: {{ resources: {{ limits: {{ cpus: {cpus} }} }} }} }}"));
        assert_eq!(of("{ cpus: 1, mem_limit: 64m }"), plain);
        assert_eq!(deployed("0.5"), WrittenLimits { has_number_in_deploy: true, ..none });
        assert_eq!((deployed("'0.5'"), of("{ image: web }")), (none, none));
    }

    #[test]
    fn ports_that_cannot_be_known_are_none() {
        let of = |ports: &str| {
            let root = tree::parse(&format!("ports: {ports}"), &mut Report::new("")).unwrap();
            address(&root)
        };
        let cases = [
            ("[\"80\"]", None),
            ("[\"8000-8010:80\"]", None),
            ("[\"$PORT:80\"]", None),
            ("[\"${PORT}:80\"]", None),
            ("[\"53:53/udp\"]", None),
            ("[\"0:80\"]", None),
            ("[{ target: 80 }]", None),
            ("[\"53:53/udp\", \"${PORT-81}:80\"]", Some("127.0.0.1:81")),
            ("[\"0.0.0.0:82:80/tcp\"]", Some("127.0.0.1:82")),
            ("[{ target: 80, published: 83 }]", Some("127.0.0.1:83")),
        ];
        for (ports, expected) in cases {
            assert_eq!(of(ports).as_deref(), expected, "{ports}");
        }
    }

    #[test]
    fn a_file_without_anything_to_measure_is_refused_with_its_place() {
        let said = |source: &str| experiment_of(source, "c.yaml", "").unwrap_err()[0].to_string();
        assert!(said("version: 1\n").contains("c.yaml:1:1: `services` is missing or empty"));
        assert!(
            said("services:\n  db: { image: postgres, ports: [\"5432:5432\"] }\n").contains("no service publishes")
        );
        assert!(said("services: [\n").contains("not YAML"));
        let said = said("x-all: {}\nservices:\n  web: { image: web, prots: [\"80:80\"] }\n");
        assert!(said.contains("c.yaml:3:22: services.web: unknown key `prots`"), "{said}");
    }
}
