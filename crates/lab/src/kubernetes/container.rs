//! The main container of a pod: program, arguments, environment, limits and probes.

use serde_json::{Value, json};

use super::workload::Workload;
use super::{FOLDER, ManifestError, Secret, dns};
use crate::components::container::Container;
use crate::experiment::{BoundService, Ready, Start};

/// Image of services that are part of Narrows.
pub(super) const NARROWS_IMAGE: &str = "localhost/narrows:1";
const NARROWS: &str = "narrows";
/// Cores reserved for a replica that has no limit.
const RESERVED_CORES: f64 = 0.05;
/// Of a limit, this share is reserved: pods of a test share their node, and are not always busy together.
const RESERVED_SHARE: f64 = 0.1;
const RESERVED_MEMORY: &str = "32Mi";

/// Program and arguments of a container, and the Secrets that its texts need.
pub(super) struct Words {
    command: Vec<String>,
    args: Vec<String>,
    pub(super) env: Vec<Value>,
    pub(super) secrets: Vec<Secret>,
}

/// The container of a service with `run`.
pub(super) fn of_run(workload: &Workload<'_>, words: Words) -> Result<Value, ManifestError> {
    let service = workload.service;
    let is_ours = words.command.is_empty();
    let program = || words.command.first().cloned().unwrap_or_default();
    let image = match &service.image {
        Some(image) => image.as_str(),
        None if is_ours => NARROWS_IMAGE,
        None => return Err(ManifestError::NoImage { service: service.name.clone(), program: program() }),
    };
    let mut container = base(service, image);
    put(&mut container, "command", words.command);
    put(&mut container, "args", words.args);
    put(&mut container, "env", words.env);
    container["readinessProbe"] = probe(service);
    let mut mounts = Vec::new();
    if is_ours {
        container["securityContext"] = locked(true);
        mounts.push(json!({ "name": "tmp", "mountPath": "/tmp" }));
    }
    if workload.keeps_files() {
        mounts.push(json!({ "name": "data", "mountPath": FOLDER }));
    }
    put(&mut container, "volumeMounts", mounts);
    Ok(container)
}

/// The container of a component's server.
pub(super) fn of_server(service: &BoundService, server: &Container) -> Value {
    let mut container = base(service, service.image.as_deref().unwrap_or(server.image));
    let plain = server.env.iter().map(|(name, value)| json!({ "name": name, "value": escaped(value) }));
    let password = secret_variable(server.password, &dns(&service.name), "password");
    put(&mut container, "env", std::iter::once(password).chain(plain).collect());
    put(&mut container, "args", server.args.iter().map(|word| escaped(word)).collect());
    container["readinessProbe"] = json!({ "exec": { "command": server.ready }, "periodSeconds": 1 });
    container["securityContext"] = locked(false);
    let named = |(index, folder): (usize, &&str)| json!({ "name": folder_name(index), "mountPath": folder });
    let mut mounts: Vec<Value> = server.folders.iter().enumerate().map(named).collect();
    if !server.sql.is_empty() {
        mounts.push(json!({ "name": "sql", "mountPath": "/docker-entrypoint-initdb.d", "readOnly": true }));
    }
    put(&mut container, "volumeMounts", mounts);
    container
}

/// The volume for a folder of a server.
pub(super) fn folder_name(index: usize) -> String {
    if index == 0 { "data".to_owned() } else { format!("data-{index}") }
}

fn base(service: &BoundService, image: &str) -> Value {
    json!({
        "name": dns(&service.name),
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{ "containerPort": service.port }],
        "resources": resources(service.cpus, service.memory_bytes),
    })
}

/// Requests and limits of a container.
pub(super) fn resources(cpus: Option<f64>, memory_bytes: Option<u64>) -> Value {
    let reserved = cpus.map_or(RESERVED_CORES, |cpus| cpus * RESERVED_SHARE);
    let memory = memory_bytes.map_or_else(|| RESERVED_MEMORY.to_owned(), |bytes| bytes.to_string());
    let mut resources = json!({ "requests": { "cpu": cores(reserved), "memory": memory } });
    if let Some(cpus) = cpus {
        resources["limits"]["cpu"] = cores(cpus).into();
    }
    if let Some(bytes) = memory_bytes {
        resources["limits"]["memory"] = bytes.to_string().into();
    }
    resources
}

/// Cores in thousandths, at least one of these.
fn cores(cores: f64) -> String {
    format!("{}m", ((cores * 1000.0).round() as u64).max(1))
}

/// Restrictions of a container, which leave it all that a server needs.
pub(super) fn locked(is_read_only: bool) -> Value {
    let mut context = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    if is_read_only {
        context["readOnlyRootFilesystem"] = true.into();
        context["runAsNonRoot"] = true.into();
    }
    context
}

/// A text in which the cluster replaces nothing.
fn escaped(word: &str) -> String {
    word.replace("$(", "$$(")
}

/// Sign that a pod gets requests. The kubelet calls it at the port that others know.
fn probe(service: &BoundService) -> Value {
    let port = service.advertised_port();
    match &service.start {
        Start::Run { ready: Ready::Http { method, path }, .. } if method == "GET" => {
            json!({ "httpGet": { "path": path, "port": port }, "periodSeconds": 1 })
        }
        _ => json!({ "tcpSocket": { "port": port }, "periodSeconds": 1 }),
    }
}

/// An environment variable with a value of a Secret.
pub(super) fn secret_variable(name: &str, secret: &str, key: &str) -> Value {
    json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } })
}

/// An environment variable with a fact about the pod.
fn fact_variable(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
}

fn put<T: Into<Value>>(container: &mut Value, key: &str, list: Vec<T>) {
    if !list.is_empty() {
        container[key] = list.into_iter().map(Into::into).collect::<Vec<Value>>().into();
    }
}

impl Words {
    /// Program, arguments and environment of a service, as the cluster has to be given them.
    pub(super) fn of(workload: &Workload<'_>, command: &[String]) -> Self {
        let service = workload.service;
        let mut texts = Texts { workload, env: Vec::new(), secrets: Vec::new() };
        let second = workload.second_texts();
        let mut rewritten = |index: usize, text: &str| {
            texts.rewrite(text, second.as_ref().and_then(|second| second.get(index)).map_or(text, String::as_str))
        };
        let mut words: Vec<String> = command.iter().enumerate().map(|(index, word)| rewritten(index, word)).collect();
        let given: Vec<Value> = service
            .env
            .iter()
            .enumerate()
            .map(|(index, (name, value))| json!({ "name": name, "value": rewritten(command.len() + index, value) }))
            .collect();
        let program = words.remove(0);
        let program = program
            .strip_prefix(&format!("{}/", service.cwd.display()))
            .map_or(program.clone(), |rest| format!("./{rest}"));
        let is_ours = program == NARROWS;
        // A service behind a sidecar stays on loopback.
        if is_ours
            && service.sidecar.is_none()
            && matches!(words.first().map(String::as_str), Some("system" | "engine"))
        {
            words.extend(["--listen", "0.0.0.0", "--insecure"].map(str::to_owned));
        }
        let Texts { mut env, mut secrets, .. } = texts;
        env.extend(telemetry(workload, &service.name, &mut secrets));
        env.push(json!({ "name": "PORT", "value": service.port.to_string() }));
        if workload.is_numbered() {
            env.insert(0, fact_variable("REPLICA", "metadata.labels['apps.kubernetes.io/pod-index']"));
        }
        // The experiment's own values win, and Kubernetes takes the last of a name.
        env.extend(given);
        let command = if is_ours { Vec::new() } else { vec![program] };
        Self { command, args: words, env, secrets }
    }
}

/// Where telemetry goes and who is speaking, if there is somewhere for it to go.
pub(super) fn telemetry(workload: &Workload<'_>, name: &str, secrets: &mut Vec<Secret>) -> Vec<Value> {
    let Some(endpoint) = &workload.plan.wanted.otlp else { return Vec::new() };
    secrets.push(Secret {
        name: "telemetry".to_owned(),
        keys: vec!["token"],
        purpose: "the token for sending traces and metrics".to_owned(),
    });
    let value = |name: &str, value: &str| json!({ "name": name, "value": value });
    vec![
        fact_variable("POD_NAME", "metadata.name"),
        fact_variable("POD_NAMESPACE", "metadata.namespace"),
        fact_variable("NODE_NAME", "spec.nodeName"),
        secret_variable("OTLP_TOKEN", "telemetry", "token"),
        value("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        value("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20$(OTLP_TOKEN)"),
        value("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        value("OTEL_SERVICE_NAME", name),
        value(
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.instance.id=$(POD_NAME),k8s.pod.name=$(POD_NAME),k8s.namespace.name=$(POD_NAMESPACE),\
             k8s.node.name=$(NODE_NAME)",
        ),
        value("OTEL_TRACES_EXPORTER", "otlp"),
        value("OTEL_METRICS_EXPORTER", "otlp"),
        value("OTEL_LOGS_EXPORTER", "otlp"),
    ]
}

/// Texts of a service in which passwords and the number of the replica become variables.
struct Texts<'a, 'b> {
    workload: &'a Workload<'b>,
    env: Vec<Value>,
    secrets: Vec<Secret>,
}

impl Texts<'_, '_> {
    /// A text of the first replica, beside the same of the second.
    fn rewrite(&mut self, first: &str, second: &str) -> String {
        let mut text = with_number(&escaped(first), &escaped(second));
        for (service, url, place) in self.workload.databases() {
            let bare = format!("{url}@{place}");
            if !text.contains(&bare) {
                continue;
            }
            let variable = format!("{}_PASSWORD", service.to_ascii_uppercase().replace('-', "_"));
            text = text.replace(&bare, &format!("{url}:$({variable})@{place}"));
            let entry = secret_variable(&variable, &dns(service), "password");
            if !self.env.contains(&entry) {
                self.env.push(entry);
                self.secrets.push(password_of(service));
            }
        }
        text
    }
}

/// The Secret with the password of a database.
pub(super) fn password_of(service: &str) -> Secret {
    Secret { name: dns(service), keys: vec!["password"], purpose: format!("the password of {service}") }
}

/// A text with the number of the replica as a variable: where the texts of replicas 0 and 1 differ.
fn with_number(first: &str, second: &str) -> String {
    if first.len() != second.len() {
        return first.to_owned();
    }
    let merged = first.chars().zip(second.chars());
    merged.map(|(a, b)| if a == b { a.to_string() } else { "$(REPLICA)".to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_variables_and_reservations_are_a_tenth() {
        assert_eq!(with_number("a-0/0", "a-1/1"), "a-$(REPLICA)/$(REPLICA)");
        assert_eq!(with_number("0", "0"), "0");
        assert_eq!(escaped("$(x) ${y}"), "$$(x) ${y}");
        let limited = resources(Some(0.24), Some(64 << 20));
        assert_eq!(limited["requests"]["cpu"], "24m");
        assert_eq!((&limited["limits"]["cpu"], &limited["limits"]["memory"]), (&json!("240m"), &json!("67108864")));
        assert_eq!(resources(None, None), json!({ "requests": { "cpu": "50m", "memory": "32Mi" } }));
    }
}
