//! `load` without its scenarios.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_load_are_reported_with_their_place() {
    let cases = [
        ("target: web", "target: ftp://example"),
        ("target: web", "target: web\n  tracing: { sample: 2 }\n  connections: close\n  threads: 0\n  drain: soon"),
        ("  target: web\n", ""),
        ("target: web", "target: http://example\n  tls: { insecure: true, ca: a.pem }\n  protocol: http3"),
        ("target: web", "target: web\n  tls: { ca: none.pem, server_name: a b }"),
        ("target: web", "target: web\n  client_addresses: [localhost, \"::1\", 127.0.0.1-127.0.0.0, 10.0.0.0/8]"),
        ("target: web", "target: web\n  client_addresses: [127.1.0.0/16, 127.0.0.1]"),
        ("target: web", "target: web\n  command: [k6, run]\n  env: { A: [1] }"),
        ("target: web", "target: web\n  results: k6\n  cwd: ."),
        ("  scenarios:", "  command: [k6]\n  drain: 1s\n  scenario:"),
        ("  scenarios:", "  scenario:"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- target: ftp://example
    e.yaml:8:11: load.target: expected `http://host:port`, found "ftp://example"
    --- target: web
      tracing: { sample: 2 }
      connections: close
      threads: 0
      drain: soon
    e.yaml:9:22: load.tracing.sample: expected a number from 0 to 1, found 2
    e.yaml:10:16: load.connections: expected one of `keep-alive`, `per-request`, found "close"
    e.yaml:11:12: load.threads: expected a whole number from 1 to 1024, found 0
    e.yaml:12:10: load.drain: expected a length of time such as `30s` or `1m30s`, found "soon"
    --- 
    e.yaml:7:1: load: `target` is missing
    --- target: http://example
      tls: { insecure: true, ca: a.pem }
      protocol: http3
    e.yaml:9:3: load.tls: `insecure`, `ca` cannot be combined
    e.yaml:9:3: load.tls: `tls` is set, but the target does not use TLS
      hint: write the target with `https://`
    e.yaml:10:13: load.protocol: expected one of `http1`, `http2`, found "http3"
    --- target: web
      tls: { ca: none.pem, server_name: a b }
    e.yaml:9:14: load.tls.ca: cannot read /lab/none.pem: No such file or directory (os error 2)
    e.yaml:9:37: load.tls.server_name: expected a DNS name or an address, found "a b"
    --- target: web
      client_addresses: [localhost, "::1", 127.0.0.1-127.0.0.0, 10.0.0.0/8]
    e.yaml:9:22: load.client_addresses[0]: expected an address, `FIRST-LAST` or `ADDRESS/BITS`, found "localhost"
    e.yaml:9:33: load.client_addresses[1]: ::1 cannot be used beside 127.0.0.1
      hint: an address connects to others of its own family only
    e.yaml:9:40: load.client_addresses[2]: expected an address, `FIRST-LAST` or `ADDRESS/BITS`, found "127.0.0.1-127.0.0.0"
      hint: put the lower address first; both must be of one family
    e.yaml:9:61: load.client_addresses[3]: expected at most 65536 addresses, found 16777216
    --- target: web
      client_addresses: [127.1.0.0/16, 127.0.0.1]
    e.yaml:9:3: load.client_addresses: expected at most 65536 addresses, found 65537
    --- target: web
      command: [k6, run]
      env: { A: [1] }
    e.yaml:7:1: load: `scenarios`, `command` cannot be combined
    e.yaml:10:13: load.env.A: expected a text, found a list
    --- target: web
      results: k6
      cwd: .
    e.yaml:9:3: load: `results` is allowed only with `command`
    e.yaml:9:12: load.results: expected one of `k6-summary`, `trace-roots`, found "k6"
    e.yaml:10:3: load: `cwd` is allowed only with `command`
    ---   command: [k6]
      drain: 1s
      scenario:
    e.yaml:10:3: load: `drain` is allowed only with `scenarios`
    e.yaml:11:3: load: unknown key `scenario`
      hint: did you mean `scenarios`?
    ---   scenario:
    e.yaml:9:3: load: unknown key `scenario`
      hint: did you mean `scenarios`?
    "#);
}
