//! Metrics that say how many requests a service had, how long they took, and what CPU and memory it used.
//!
//! Names are those of OTLP where a convention has one, as scraped metrics are renamed too (`scrape/names.rs`), else
//! those of Prometheus. A distribution is named without `_sum`, `_count` and `_bucket`.
//!
//! Source: OpenTelemetry's semantic conventions 1.41 for HTTP and RPC; the documentation of Istio's standard metrics,
//! Envoy's statistics, Linkerd's proxy metrics, Traefik, ingress-nginx, grpc-prometheus, Micrometer, cAdvisor, the
//! Collector's span metrics connector and Tempo's metrics generator.

use narrows_model::series::services;

/// Meaning of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A distribution of latencies: requests, and the seconds that they took.
    Durations,
    /// A counter of requests.
    Requests,
    /// A counter of failed requests.
    Errors,
    /// A counter of seconds of CPU time.
    Cpu,
    /// Bytes in use.
    Memory,
}

impl Role {
    /// All, with the words of a mapping.
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("duration", Self::Durations),
        ("requests", Self::Requests),
        ("errors", Self::Errors),
        ("cpu", Self::Cpu),
        ("memory", Self::Memory),
    ];
}

/// One metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Factor to seconds or bytes.
    pub(crate) factor: f64,
    /// Labels that name the service, the first that a series has; in addition to those of all metrics.
    pub(crate) service: Vec<String>,
    /// Labels that name the callee, where the caller counts.
    pub(crate) peer: Vec<String>,
    /// A label and a value that series must have to be of this source.
    pub(crate) only: Option<(&'static str, &'static str)>,
}

/// A row of the table.
struct Known {
    name: &'static str,
    role: Role,
    factor: f64,
    service: &'static [&'static str],
    peer: &'static [&'static str],
    only: Option<(&'static str, &'static str)>,
}

const fn server(name: &'static str, role: Role, factor: f64) -> Known {
    Known { name, role, factor, service: &[], peer: &[], only: None }
}

const fn client(name: &'static str, role: Role, factor: f64, peer: &'static [&'static str]) -> Known {
    Known { name, role, factor, service: &[], peer, only: None }
}

impl Known {
    const fn of(self, service: &'static [&'static str]) -> Self {
        Self { service, ..self }
    }

    const fn only(self, label: &'static str, value: &'static str) -> Self {
        Self { only: Some((label, value)), ..self }
    }
}

use Role::{Cpu, Durations, Errors, Memory, Requests};

const MILLISECOND: f64 = 1e-3;
const HTTP_PEER: &[&str] = &["peer.service", "service.peer.name", "server.address", "client_name", "client.name"];
const RPC_PEER: &[&str] = &["peer.service", "service.peer.name", "server.address", "rpc.service"];
const SPAN_SERVICE: &[&str] = &["service_name", "service.name", "service"];
const ISTIO_SOURCE: &[&str] = &["source_canonical_service", "source_workload", "source_app"];
const ISTIO_DESTINATION: &[&str] =
    &["destination_canonical_service", "destination_service_name", "destination_workload", "destination_app"];
const LINKERD: &[&str] = &["deployment", "statefulset", "daemonset"];
const LINKERD_PEER: &[&str] = &["dst_deployment", "dst_statefulset", "dst_service"];
/// The labels that name the service of a container, on pages of cAdvisor and the kubelet.
pub(super) const POD: &[&str] = &["pod", "container_label_com_docker_compose_service", "container", "name"];

/// The labels that name the service of any metric of Prometheus, those that are preferred first.
pub(crate) const SERVICE: &[&str] = &[
    "service_name",
    "service.name",
    "service",
    "app_kubernetes_io_name",
    "app",
    "application",
    "exported_service",
    "exported_job",
    "job",
    "pod",
];

/// Labels that say how a request ended.
pub(crate) const STATUS: &[&str] = &[
    "http.response.status_code",
    "http_response_status_code",
    "http_status_code",
    "rpc.response.status_code",
    "rpc.grpc.status_code",
    "rpc_grpc_status_code",
    "grpc_response_status",
    "grpc_status",
    "grpc_code",
    "error.type",
    "error_type",
    "envoy_response_code_class",
    "response_code",
    "status_code",
    "status.code",
    "status",
    "code",
    "outcome",
    "classification",
];

const KNOWN: &[Known] = &[
    // Counters that a mapping has named.
    server(services::DURATION, Durations, 1.0),
    server(services::REQUESTS, Requests, 1.0),
    server(services::ERRORS, Errors, 1.0),
    // OpenTelemetry.
    server("http.server.request.duration", Durations, 1.0),
    client("http.client.request.duration", Durations, 1.0, HTTP_PEER),
    server("rpc.server.call.duration", Durations, 1.0),
    client("rpc.client.call.duration", Durations, 1.0, RPC_PEER),
    client("db.client.operation.duration", Durations, 1.0, &["server.address", "db.system.name", "db.system"]),
    client("db_client_operation_duration_seconds", Durations, 1.0, &["server_address", "db_system_name", "db_system"]),
    // Span metrics: the Collector's connector, and Tempo's generator with its service graph.
    server("traces.span.metrics.duration", Durations, MILLISECOND)
        .only("span.kind", "SPAN_KIND_SERVER")
        .of(SPAN_SERVICE),
    server("traces_span_metrics_duration_milliseconds", Durations, MILLISECOND)
        .only("span_kind", "SPAN_KIND_SERVER")
        .of(SPAN_SERVICE),
    server("traces_span_metrics_duration_seconds", Durations, 1.0)
        .only("span_kind", "SPAN_KIND_SERVER")
        .of(SPAN_SERVICE),
    server("duration_milliseconds", Durations, MILLISECOND).only("span_kind", "SPAN_KIND_SERVER").of(SPAN_SERVICE),
    server("traces_spanmetrics_latency", Durations, 1.0).only("span_kind", "SPAN_KIND_SERVER").of(SPAN_SERVICE),
    client("traces_service_graph_request_client_seconds", Durations, 1.0, &["server"]).of(&["client"]),
    server("traces_service_graph_request_server_seconds", Durations, 1.0).of(&["server"]),
    client("traces_service_graph_request_failed_total", Errors, 1.0, &["server"]).of(&["client"]),
    // Meshes and proxies.
    server("istio_request_duration_milliseconds", Durations, MILLISECOND)
        .only("reporter", "destination")
        .of(ISTIO_DESTINATION),
    client("istio_request_duration_milliseconds", Durations, MILLISECOND, ISTIO_DESTINATION)
        .only("reporter", "source")
        .of(ISTIO_SOURCE),
    server("response_latency_ms", Durations, MILLISECOND).only("direction", "inbound").of(LINKERD),
    client("response_latency_ms", Durations, MILLISECOND, LINKERD_PEER).only("direction", "outbound").of(LINKERD),
    server("response_total", Requests, 1.0).only("direction", "inbound").of(LINKERD),
    client("response_total", Requests, 1.0, LINKERD_PEER).only("direction", "outbound").of(LINKERD),
    server("envoy_http_downstream_rq_time", Durations, MILLISECOND),
    server("envoy_http_downstream_rq_xx", Requests, 1.0),
    client("envoy_cluster_upstream_rq_time", Durations, MILLISECOND, &["envoy_cluster_name"]),
    client("envoy_cluster_upstream_rq_xx", Requests, 1.0, &["envoy_cluster_name"]),
    client("nginx_ingress_controller_request_duration_seconds", Durations, 1.0, &["exported_service", "service"])
        .of(&["controller_class", "job"]),
    client("traefik_service_request_duration_seconds", Durations, 1.0, &["exported_service", "service"]).of(&["job"]),
    // Libraries and frameworks.
    server("http_server_requests_seconds", Durations, 1.0),
    client("http_client_requests_seconds", Durations, 1.0, &["client_name", "clientName"]),
    server("http_request_duration_seconds", Durations, 1.0),
    server("http_requests_duration_seconds", Durations, 1.0),
    server("http_request_duration_milliseconds", Durations, MILLISECOND),
    server("http_server_requests_duration_seconds", Durations, 1.0),
    server("http_request_duration_highr_seconds", Durations, 1.0),
    server("flask_http_request_duration_seconds", Durations, 1.0),
    server("request_duration_seconds", Durations, 1.0),
    server("http_requests_total", Requests, 1.0),
    server("http_server_requests_total", Requests, 1.0),
    server("http_request_count_total", Requests, 1.0),
    server("requests_total", Requests, 1.0),
    server("grpc_server_handling_seconds", Durations, 1.0),
    server("grpc_server_handled_total", Requests, 1.0),
    client("grpc_client_handling_seconds", Durations, 1.0, &["grpc_service"]),
    client("grpc_client_handled_total", Requests, 1.0, &["grpc_service"]),
    // CPU and memory; a pod or container before the process.
    server("container_cpu_usage_seconds_total", Cpu, 1.0).of(POD),
    server("container_memory_working_set_bytes", Memory, 1.0).of(POD),
    server("process.cpu.time", Cpu, 1.0),
    server("process_cpu_time_seconds_total", Cpu, 1.0),
    server("process.memory.usage", Memory, 1.0),
];

/// All known metrics.
pub(crate) fn known() -> Vec<Source> {
    let texts = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    let source = |known: &Known| Source {
        name: known.name.to_owned(),
        role: known.role,
        factor: known.factor,
        service: texts(known.service),
        peer: texts(known.peer),
        only: known.only,
    };
    KNOWN.iter().map(source).collect()
}

/// Which part of a source a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The counter or gauge itself, or the count of a distribution.
    Count,
    /// The sum of a distribution.
    Sum,
}

impl Source {
    /// The part of this source that a metric of this name is.
    pub(crate) fn part(&self, name: &str) -> Option<Part> {
        let ending = name.strip_prefix(self.name.as_str())?;
        match (self.role, ending) {
            (Role::Durations, "_count" | ".count") => Some(Part::Count),
            (Role::Durations, "_sum" | ".sum") => Some(Part::Sum),
            (Role::Durations, _) => None,
            (_, "") => Some(Part::Count),
            _ => None,
        }
    }
}

/// Whether a label says that a request failed; `None` if it is no label of a status.
pub(crate) fn has_failed(label: &str, value: &str) -> Option<bool> {
    if !STATUS.contains(&label) {
        return None;
    }
    let is_grpc = label.contains("grpc");
    if let Ok(code) = value.parse::<u32>() {
        return Some(match label {
            "envoy_response_code_class" => code == 5,
            _ if is_grpc => matches!(code, 2 | 4 | 12..=15),
            // A proxy that got no response says 0.
            _ => code >= 500 || (code == 0 && label == "response_code"),
        });
    }
    let word: String = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if label.starts_with("error") {
        return Some(!word.is_empty());
    }
    const FAILED: [&str; 12] = [
        "5xx",
        "error",
        "statuscodeerror",
        "servererror",
        "failure",
        "unknown",
        "deadlineexceeded",
        "unimplemented",
        "internal",
        "unavailable",
        "dataloss",
        "exception",
    ];
    Some(FAILED.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_a_request_failed() {
        for (label, value, expected) in [
            ("code", "200", Some(false)),
            ("http.response.status_code", "503", Some(true)),
            ("status", "5xx", Some(true)),
            ("status", "404", Some(false)),
            ("grpc_code", "Unavailable", Some(true)),
            ("grpc_code", "NotFound", Some(false)),
            ("rpc.grpc.status_code", "14", Some(true)),
            ("status_code", "STATUS_CODE_UNSET", Some(false)),
            ("status_code", "STATUS_CODE_ERROR", Some(true)),
            ("response_code", "0", Some(true)),
            ("envoy_response_code_class", "5", Some(true)),
            ("error.type", "timeout", Some(true)),
            ("outcome", "SERVER_ERROR", Some(true)),
            ("method", "500", None),
        ] {
            assert_eq!(has_failed(label, value), expected, "{label}={value}");
        }
    }

    #[test]
    fn a_part_is_told_by_its_ending() {
        let sources = known();
        let part = |name: &str| sources.iter().find_map(|source| Some((source.role, source.part(name)?)));
        assert_eq!(part("http_request_duration_seconds_sum"), Some((Role::Durations, Part::Sum)));
        assert_eq!(part("http.server.request.duration.count"), Some((Role::Durations, Part::Count)));
        assert_eq!(part("http_requests_total"), Some((Role::Requests, Part::Count)));
        assert_eq!(part("http_request_duration_seconds_bucket"), None);
    }
}
