//! A/A: one system against itself is no difference and no finding.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod common;

use common::{Bench, ask, has_python, text};

/// A healthy service: every answer takes 20 ms, none of it on the CPU.
const HEALTHY: &str = r#"
experiment: healthy
system:
  services:
    web:
      run: [python3, server.py, "${port}"]
      ready: "GET /"
load:
  target: web
  scenarios:
    browse:
      model: constant-vus
      vus: 3
      duration: 8s
      think_time: 20ms
      request: "GET /"
variants:
  - { name: one }
  - { name: other, from: one }
"#;

const SERVER: &str = r#"
import http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        time.sleep(0.02)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn the_same_variant_twice_is_no_difference_and_no_finding() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(HEALTHY);
    std::fs::write(bench.path("server.py"), SERVER).unwrap();
    let run = bench.run(&["run", "--repeat", "2", "--out", "run.narrows"]);
    let said = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(said.contains("noise floor"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(*) from trials where state = 'done'"), "4");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(*) from findings"), "0", "{said}");
    let json = bench.run(&["diagnose", "run.narrows", "--json"]);
    let outcome: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let second = &outcome["comparison"]["variants"][1]["against_first"];
    for quantity in ["rate", "mean"] {
        // That noise is told from change is tested on recorded noise; here the machine may be anyone's.
        let change = &second[quantity];
        let is_small = change["ratio"].as_f64().unwrap().abs() < 0.2;
        assert!(change["meaning"] == "same" || is_small, "{quantity}: {change}");
    }
}
