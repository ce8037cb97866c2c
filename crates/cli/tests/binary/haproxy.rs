//! The real HAProxy as a component: how it spreads requests, keeps clients where they are, looks after its upstreams,
//! reports about itself, and fails.
//!
//! They need HAProxy (Debian package haproxy) and Python; without them they are skipped.

use crate::common::nothing_is_left;
use crate::proxy::{self, asked, number, ran};

const HAPROXY: &str = "haproxy";

#[test]
fn requests_are_spread_as_asked() {
    proxy::requests_are_spread_as_asked(HAPROXY);
}

#[test]
fn a_client_stays_at_its_instance_over_two_pods() {
    proxy::a_client_stays_at_its_instance_over_two_pods(HAPROXY);
}

#[test]
fn an_instance_that_dies_is_left_out_and_comes_back() {
    let health = ", health: { request: \"GET /health\", interval: 200ms }";
    proxy::an_instance_that_dies_is_left_out_and_comes_back(HAPROXY, health, "9s");
}

#[test]
fn a_proxy_can_have_faults() {
    proxy::a_proxy_can_have_faults(HAPROXY);
}

#[test]
fn what_it_refuses_is_reported_in_its_words() {
    proxy::what_the_proxy_refuses_is_reported_in_its_words(HAPROXY, "[zz]");
}

#[test]
fn a_port_that_is_taken_ends_the_run() {
    proxy::a_port_that_is_taken_ends_the_run(HAPROXY);
}

#[test]
fn a_cookie_of_its_own_keeps_clients_that_were_spread_by_least_connections() {
    if !proxy::is_there(HAPROXY) {
        return;
    }
    let bench = ran(r#"
experiment: sticky
system:
  services:
    instance: { run: [python3, instance.py, "${port}", "0.02"], replicas: 3 }
    pods:
      haproxy: { upstreams: { all: "${instance.urls}" }, to: all, balance: least_conn, sticky: at }
      replicas: 2
    gateway:
      haproxy: { upstreams: { pods: "${pods.urls}" }, to: pods }
load:
  target: gateway
  client_addresses: [127.0.0.11-127.0.0.18]
  scenarios:
    ask: { model: per-vu-iterations, vus: 8, iterations: 10, think_time: 5ms, cookies: per-user, request: "GET /" }
"#);
    let run = bench.path("run.narrows");
    let of_clients = asked("select max(n) from (select count(distinct replica) as n from asked group by client)");
    assert_eq!(number(&run, &of_clients), 1);
    assert_eq!(number(&run, &asked("select count(distinct client) from asked")), 8);
    assert!(number(&run, &asked("select count(distinct replica) from asked")) > 1);
    nothing_is_left(&bench, &run);
}

#[test]
fn it_tells_who_is_connected_who_waits_and_which_upstreams_are_there() {
    if !proxy::is_there(HAPROXY) {
        return;
    }
    let bench = ran(r#"
experiment: told
system:
  services:
    instance: { run: [python3, instance.py, "${port}", "0.2"], replicas: 2 }
    front:
      haproxy: { upstreams: { all: "${instance.urls}" }, to: all, max_connections: 1, health: { interval: 200ms } }
load:
  target: front
  timeout: 20s
  scenarios: { ask: { model: constant-vus, vus: 6, duration: 8s, request: "GET /" } }
faults: [{ at: 2s, kill: instance-2 }]
"#);
    let run = bench.path("run.narrows");
    let told = |name: &str, whose: &str, figure: &str| {
        let label = "json_extract(labels, '$.\"haproxy.service_name\"')";
        let points =
            format!("from metrics where service = 'front' and name = 'haproxy.{name}' and {label} like '{whose}'");
        number(&run, &format!("select cast(coalesce({figure}, -1) as integer) {points}"))
    };
    assert!(told("sessions.count", "FRONTEND", "max(value)") >= 6);
    assert!(told("requests.queued", "%", "max(value)") > 0, "of six users, four wait");
    assert!(told("requests.total", "FRONTEND", "max(value)") > 0);
    assert_eq!(told("active", "BACKEND", "max(value)"), 2);
    assert_eq!(told("active", "BACKEND", "min(value)"), 1);
    assert_eq!(told("up", "127.0.0.1:%", "min(value)"), 0);
    for name in ["connections.errors", "responses.errors", "connections.retries", "requests.redispatched"] {
        assert!(told(name, "BACKEND", "count(value)") > 0, "{name}");
    }
    nothing_is_left(&bench, &run);
}
