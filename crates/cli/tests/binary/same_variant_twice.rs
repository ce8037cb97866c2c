//! A/A: one system against itself is no difference and no finding.

use crate::common::{Bench, ask, has_python, text};
use narrows_testing::measure;

/// A healthy service: every response takes 20 ms, none of it on the CPU.
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
    measure(|| {
        let (bench, said) = run();
        let odd = odd(&bench);
        assert!(odd.is_none(), "{odd:?}\n{said}");
    });
}

/// Runs both variants to the end and returns the output.
fn run() -> (Bench, String) {
    let bench = Bench::new(HEALTHY);
    std::fs::write(bench.path("server.py"), SERVER).unwrap();
    let run = bench.run(&["run", "--repeat", "2", "--out", "run.narrows"]);
    let said = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(said.contains("noise floor"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select count(*) from trials where state = 'done'"), "4");
    (bench, said)
}

/// A finding or a difference where there should be none.
fn odd(bench: &Bench) -> Option<String> {
    let found = ask(&bench.path("run.narrows"), "select coalesce(group_concat(detector, ' '), '') from findings");
    if !found.is_empty() {
        return Some(found);
    }
    let json = bench.run(&["diagnose", "run.narrows", "--json"]);
    let outcome: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let second = &outcome["comparison"]["variants"][1]["against_first"];
    // A test on recorded noise checks that noise and change are distinguished; this machine may be anyone's.
    let is_large = |change: &serde_json::Value| change["ratio"].as_f64().unwrap().abs() >= 0.2;
    let changes = ["rate", "mean"].map(|quantity| &second[quantity]);
    changes.into_iter().find(|change| change["meaning"] != "same" && is_large(change)).map(ToString::to_string)
}
