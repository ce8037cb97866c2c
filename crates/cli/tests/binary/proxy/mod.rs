//! Tests that `nginx:` and `haproxy:` must both pass, over instances that print their clients.

use std::net::TcpListener;
use std::path::Path;

use crate::common::{Bench, OTHER_LISTENER, ask, free_port, nothing_is_left, text};
use narrows_testing::has_programs;

/// An instance: responds after a pause, and prints the client, the client's cookie, and its own identity.
const INSTANCE: &str = r#"
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Instance(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        client, route = self.headers.get("X-Forwarded-For"), self.headers.get("X-Sticky-Route")
        # In one write: lines of two threads must not run into each other.
        os.write(1, f"asked {client} {route} {os.getpid()}\n".encode())
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def log_message(self, *_):
        pass

ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Instance).serve_forever()
"#;

/// Whether the proxy and Python are installed; the test is skipped where one is missing.
pub(crate) fn is_there(proxy: &str) -> bool {
    has_programs(&[proxy, "python3"])
}

/// A folder with an experiment and the program of its instances.
pub(crate) fn bench(experiment: &str) -> Bench {
    let bench = Bench::new(experiment);
    std::fs::write(bench.path("instance.py"), INSTANCE).unwrap();
    bench
}

/// A run that must go well.
pub(crate) fn ran(experiment: &str) -> Bench {
    let bench = bench(experiment);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    bench
}

pub(crate) fn number(run: &Path, sql: &str) -> i64 {
    let result = ask(run, sql);
    result.parse().unwrap_or_else(|_| panic!("{sql}: {result}"))
}

/// The requests that instances served, as `asked(trial, service, replica, client, route, pid)`.
pub(crate) fn asked(select: &str) -> String {
    let word = |nth: usize| format!("json_extract(words, '$[{nth}]')");
    format!(
        "with lines as (select trial, service, replica, '[\"' || replace(text, ' ', '\",\"') || '\"]' as words from logs \
         where text like 'asked %'), asked as (select trial, service, replica, {} as client, {} as route, {} as pid \
         from lines) {select}",
        word(1),
        word(2),
        word(3)
    )
}

/// Each in turn, and the one with the fewest requests under way.
pub(crate) fn requests_are_spread_as_asked(proxy: &str) {
    if !is_there(proxy) {
        return;
    }
    let bench = ran(&format!(
        r#"
experiment: spread
parameters: {{ balance: round_robin }}
system:
  services:
    slow: {{ run: [python3, instance.py, "${{port}}", "0.2"] }}
    fast: {{ run: [python3, instance.py, "${{port}}", "0"] }}
    front:
      {proxy}: {{ upstreams: {{ both: "${{slow.url}},${{fast.url}}" }}, to: both, balance: "${{balance}}" }}
      cpus: 1
      memory: 256MiB
load:
  target: front
  scenarios: {{ ask: {{ model: constant-vus, vus: 4, duration: 3s, think_time: 5ms, request: "GET /" }} }}
variants: [{{ name: in-turn }}, {{ name: fewest, balance: least_conn }}]
"#
    ));
    let run = bench.path("run.narrows");
    let count = |trial: u32, service: &str| {
        number(&run, &asked(&format!("select count(*) from asked where trial = {trial} and service = '{service}'")))
    };
    let (slow, fast) = (count(1, "slow"), count(1, "fast"));
    assert!(slow > 0 && (slow - fast).abs() <= 1, "in turn: {slow} slow, {fast} fast");
    let (slow, fast) = (count(2, "slow"), count(2, "fast"));
    assert!(slow > 0 && fast > 2 * slow, "fewest: {slow} slow, {fast} fast");
    let sampled = "select count(*) from metrics where service = 'front' and name = 'process.memory.rss' and value > 0";
    assert!(number(&run, sampled) > 0, "it is not sampled");
    nothing_is_left(&bench, &run);
}

/// A gateway gives each request of a client to another of two pods; both send it to the same instance.
pub(crate) fn a_client_stays_at_its_instance_over_two_pods(proxy: &str) {
    if !is_there(proxy) {
        return;
    }
    let bench = ran(&format!(
        r#"
experiment: sticky
parameters: {{ key: cookie }}
system:
  services:
    instance: {{ run: [python3, instance.py, "${{port}}", "0"], replicas: 3 }}
    pods:
      {proxy}: {{ upstreams: {{ all: "${{instance.urls}}" }}, to: all, balance: hash, key: ["${{key}}"], cookie: route }}
      replicas: 2
    gateway:
      {proxy}: {{ upstreams: {{ pods: "${{pods.urls}}" }}, to: pods }}
load:
  target: gateway
  client_addresses: [127.0.0.11-127.0.0.18]
  scenarios:
    ask: {{ model: per-vu-iterations, vus: 16, iterations: 10, think_time: 5ms, cookies: per-user, request: "GET /" }}
variants: [{{ name: by-cookie }}, {{ name: by-address, key: client_address }}]
"#
    ));
    let run = bench.path("run.narrows");
    let instances_of = |trial: u32, who: &str, figure: &str| {
        let each = format!("select count(distinct replica) as n from asked where trial = {trial} group by {who}");
        number(&run, &asked(&format!("select {figure} from ({each})")))
    };
    for (trial, who, clients) in [(1, "route", 16), (2, "client", 8)] {
        assert_eq!(instances_of(trial, who, "count(*)"), clients, "clients by {who}");
        assert_eq!(instances_of(trial, who, "max(n)"), 1, "instances of a client by {who}");
        assert!(instances_of(trial, "trial", "n") > 1, "all clients are at one instance by {who}");
        assert_eq!(number(&run, &asked(&format!("select count(*) from asked where trial = {trial}"))), 160);
    }
    // Only the cookie distinguishes clients at one address.
    assert!(instances_of(1, "client", "max(n)") > 1);
    nothing_is_left(&bench, &run);
}

/// One of three instances is down for a while. `duration` is enough for the proxy to take it back.
pub(crate) fn an_instance_that_dies_is_left_out_and_comes_back(proxy: &str, settings: &str, duration: &str) {
    if !is_there(proxy) {
        return;
    }
    let bench = ran(&format!(
        r#"
experiment: leaving
system:
  services:
    instance: {{ run: [python3, instance.py, "${{port}}", "0.01"], replicas: 3 }}
    front: {{ {proxy}: {{ upstreams: {{ all: "${{instance.urls}}" }}, to: all {settings} }} }}
load:
  target: front
  scenarios: {{ ask: {{ model: constant-vus, vus: 3, duration: {duration}, think_time: 20ms, request: "GET /" }} }}
faults: [{{ at: 2s, kill: instance-2 }}, {{ at: 4s, restart: instance-2 }}]
"#
    ));
    let run = bench.path("run.narrows");
    let failed = "errors_connect + errors_reset + errors_timeout + errors_protocol + errors_status";
    assert_eq!(number(&run, &format!("select sum({failed}) from load_seconds")), 0, "a GET goes to another instance");
    for (replica, processes) in [(0, 1), (1, 2), (2, 1)] {
        let pids = asked(&format!("select count(distinct pid) from asked where replica = {replica}"));
        assert_eq!(number(&run, &pids), processes, "processes of instance {replica} that were asked");
    }
    nothing_is_left(&bench, &run);
}

/// The proxy itself is killed, made to stand still and restarted.
pub(crate) fn a_proxy_can_have_faults(proxy: &str) {
    if !is_there(proxy) {
        return;
    }
    let bench = ran(&format!(
        r#"
experiment: faulty
system:
  services:
    instance: {{ run: [python3, instance.py, "${{port}}", "0"] }}
    front:
      {proxy}: {{ upstreams: {{ all: "${{instance.url}}" }}, to: all }}
      replicas: 2
      restart: always
load:
  target: front
  timeout: 5s
  scenarios: {{ ask: {{ model: constant-vus, vus: 4, duration: 9s, think_time: 10ms, request: "GET /" }} }}
faults: [{{ at: 3s, kill: front-2 }}, {{ at: 5s, pause: front-1, for: 700ms }}, {{ at: 7s, restart: front-2 }}]
"#
    ));
    let run = bench.path("run.narrows");
    let told = ask(&run, "select caveats from trials");
    for what in
        ["front[1] was killed 3.", "front was paused for 700 ms 5.", "front[1] was stopped to be started again 7."]
    {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert!(number(&run, "select sum(errors_connect + errors_reset) from load_seconds") > 0);
    assert!(number(&run, "select count(*) from samples where latency_ms > 300") > 0);
    let last = "select sum(succeeded) from load_seconds where start_ns = (select max(start_ns) from load_seconds where succeeded > 0)";
    assert!(number(&run, last) > 0);
    nothing_is_left(&bench, &run);
}

/// A proxy behind an instance, with what is given beside its key.
fn one_front(proxy: &str, upstream: &str, beside: &str) -> String {
    format!(
        r#"
experiment: bad
system:
  services:
    instance: {{ run: [python3, instance.py, "${{port}}", "0"] }}
    front:
      {proxy}: {{ upstreams: {{ all: "{upstream}" }}, to: all }}
      {beside}
load:
  target: front
  scenarios: {{ ask: {{ model: constant-vus, vus: 1, duration: 1s, request: "GET /" }} }}
"#
    )
}

/// A run that must end with this error.
fn refused(experiment: &str, expected: &[&str]) {
    let bench = bench(experiment);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in expected {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

/// The proxy is given a place that it cannot read.
pub(crate) fn what_the_proxy_refuses_is_reported_in_its_words(proxy: &str, words: &str) {
    if !is_there(proxy) {
        return;
    }
    let experiment = one_front(proxy, "http://[zz]:80", "cpus: 1");
    refused(&experiment, &["error: front: its configuration is refused: `", "it printed last:", words]);
}

/// Before the run, and by a service that is started before the proxy.
pub(crate) fn a_port_that_is_taken_ends_the_run(proxy: &str) {
    if !is_there(proxy) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let experiment = one_front(proxy, "${instance.url}", &format!("port: {port}"));
    refused(&experiment, &[&format!("error: front: port {port} on 127.0.0.1 is taken by another process")]);
    drop(listener);

    let port = free_port();
    let other = OTHER_LISTENER.replace("PORT", &port.to_string());
    let experiment = one_front(proxy, "${instance.url}", &format!("port: {port}"))
        .replace("    front:\n", &format!("{other}    front:\n"));
    refused(
        &experiment,
        &[
            "error: front: exited with code 1 before it was ready; it printed last:",
            "Address already in use",
            "hint: another process listens at its port",
        ],
    );
}
