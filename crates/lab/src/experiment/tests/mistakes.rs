//! What is said about files that are wrong.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

#[test]
fn five_mistakes_are_five_lines() {
    let source = "\
experiment: orders
system:
  services:
    web:
      run: node server.js
      env: { LEVEL: \"${levl}\" }
parameters: { level: 1 }
load:
  target: wbe
  scenarios:
    main:
      model: constant-vus
      vus: many
      duration: 10
      request: GET /
";
    assert_snapshot!(told(source), @r#"
    e.yaml:5:12: system.services.web.run: expected a list of a program and its arguments, found "node server.js"
      hint: commands do not run in a shell; write [node, server.js]
    e.yaml:6:21: system.services.web.env.LEVEL: unknown name in `${levl}`
      hint: did you mean `level`?
    e.yaml:9:11: load.target: unknown service `wbe`
      hint: did you mean `web`?
    e.yaml:13:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "many"
    e.yaml:14:17: load.scenarios.main.duration: expected a length of time above 0 such as `30s` or `1m30s`, found 10
      hint: add a unit: `10s`, `10ms`
    "#);
}

#[test]
fn each_section_says_what_is_wrong_with_it() {
    let cases = [
        ("experiment: small", "experiment: Small test"),
        ("experiment: small", "exp: small"),
        ("parameters: { n: 1 }", "parameters: [n]"),
        ("parameters: { n: 1 }", "parameters: { n: ~, m: [1], port: 2, \"a.b\": 3, o: \"${n}\" }"),
        ("  services:", "  service:"),
        ("    web:", "    otlp:"),
        ("run: [web, --port, \"${port}\"]", "run: []"),
        ("run: [web, --port, \"${port}\"]", "run: [\"\", [1], ~]"),
        ("run: [web, --port, \"${port}\"]", "run: web --port ${port}"),
        (
            "run: [web, --port, \"${port}\"]",
            "run: [web]\n      setup: make all\n      replicas: 0\n      cpus: 0\n      memory: 1G",
        ),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      setup: [[echo, \"${n}\"]]\n      port: \"${port}\""),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      port: 80\n      replicas: 2"),
        ("run: [web, --port, \"${port}\"]", "run: [web, \"${prot}\", \"${web.prot}\", \"${n\"]"),
        (
            "run: [web, --port, \"${port}\"]",
            "run: [web]\n      ready: { http: GET /, log: up }\n      stop: { signal: KIL }\n      restart: sometimes",
        ),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      ready: [tcp]\n      stop: now"),
        ("target: web", "target: ftp://example"),
        ("target: web", "target: web\n  tracing: { sample: 2 }\n  connections: close\n  threads: 0\n  drain: soon"),
        ("    main:", "    main one:"),
        ("model: constant-vus", "model: constant-vu"),
        ("model: constant-vus", "mode: constant-vus"),
        ("model: constant-vus", "model: ramping-vus"),
        ("      vus: 1\n", "      vus: \"1\"\n      vus: 2\n"),
        ("      duration: 1s\n", ""),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      start_vus: 0\n      stages: [{ duration: 1s, target: 0 }]",
        ),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      start_vus: 1\n      steps: { from: 5, add: 1, every: 1s, to: 2 }",
        ),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      steps: { from: 1, add: 1, every: 1s, to: 2000 }",
        ),
        ("request: GET /", "request: GET /{{who}}"),
        (
            "request: GET /",
            "request: { method: get, path: x, body: a, json: {}, headers: { \"a b\": 1, Content-Length: 3 } }",
        ),
        (
            "request: GET /",
            "request: GET /{{d}}/{{d.x}}\n  data: { d: { integers: { from: 3, to: 1 }, pick: random } }",
        ),
        ("request: GET /", "request: GET /{{d}}\n  data: { d: { values: [], csv: a.csv } }"),
        ("request: GET /", "request: GET /{{d}}\n  data: { d: { csv: none.csv } }"),
        ("request: GET /", "request: { path: /, json: [\"{{d}}\"] }\n  data: { d: { values: [fine, 'say \"hi\"'] } }"),
        ("request: GET /", "request: GET /\nobjectives: [p95 < 300, eror_rate == 0, fast]"),
        (
            "request: GET /",
            "request: GET /\nvariants: [{ name: a, from: b }, { name: b, m: 1 }, { name: a }, { n: 2 }, { name: c, from: x y }]",
        ),
        ("request: GET /", "request: GET /\nvariants: []\nseed: -1"),
    ];
    let all: String = cases.iter().map(|(line, other)| format!("--- {other}\n{}", told(&with(line, other)))).collect();
    assert_snapshot!(all, @r#"
    --- experiment: Small test
    e.yaml:1:13: experiment: expected a name of lower-case letters, digits and hyphens, found "Small test"
    --- exp: small
    e.yaml:1:1: unknown key `exp`
      hint: known: `experiment`, `parameters`, `system`, `load`, `faults`, `objectives`, `variants`, `published`, `thresholds`, `seed`
    e.yaml:1:1: `experiment` is missing
    --- parameters: [n]
    e.yaml:2:13: parameters: expected a map, found a list
      hint: write `name: …` for each parameter
    --- parameters: { n: ~, m: [1], port: 2, "a.b": 3, o: "${n}" }
    e.yaml:2:18: parameters.n: expected a text, found nothing
    e.yaml:2:24: parameters.m: expected a text, or a map, found a list
    e.yaml:2:29: parameters: a parameter cannot be named `port`, which is reserved
      hint: give it a longer name
    e.yaml:2:38: parameters: expected a name of letters, digits, `_` and `-`, found "a.b"
    e.yaml:2:51: parameters.o: `${…}` is not replaced here
      hint: write the value itself
    ---   service:
    e.yaml:4:3: system: unknown key `service`
      hint: did you mean `services`?
    ---     otlp:
    e.yaml:5:5: system.services: a service cannot be named `otlp`, which is reserved in `${…}`
    e.yaml:8:11: load.target: unknown service `web`
      hint: known: `otlp`
    --- run: []
    e.yaml:6:12: system.services.web.run: expected a program and its arguments, found an empty list
    --- run: ["", [1], ~]
    e.yaml:6:13: system.services.web.run[0]: expected a program, found ""
    e.yaml:6:17: system.services.web.run[1]: expected a text, found a list
    e.yaml:6:22: system.services.web.run[2]: expected a text, found nothing
    --- run: web --port ${port}
    e.yaml:6:12: system.services.web.run: expected a list of a program and its arguments, found "web --port ${port}"
      hint: commands do not run in a shell; write [web, --port, "${port}"]
    --- run: [web]
          setup: make all
          replicas: 0
          cpus: 0
          memory: 1G
    e.yaml:7:14: system.services.web.setup: expected a list, found "make all"
    e.yaml:8:17: system.services.web.replicas: expected a whole number from 1 to 100, found 0
    e.yaml:9:13: system.services.web.cpus: expected a number of cores above 0, found 0
    e.yaml:10:15: system.services.web.memory: expected an amount of memory such as `256MiB`, found "1G"
    --- run: [web]
          setup: [[echo, "${n}"]]
          port: "${port}"
    e.yaml:7:22: system.services.web.setup[0][1]: `${…}` is not replaced here
      hint: write the value itself
    e.yaml:8:13: system.services.web.port: `${port}` is not known here
      hint: it can be used in a service's own run, cwd, env and ready
    --- run: [web]
          port: 80
          replicas: 2
    e.yaml:7:13: system.services.web.port: a fixed port allows one replica, found 2 replicas
      hint: without `port`, each replica gets its own
    --- run: [web, "${prot}", "${web.prot}", "${n"]
    e.yaml:6:18: system.services.web.run[1]: unknown name in `${prot}`
      hint: did you mean `port`?
    e.yaml:6:29: system.services.web.run[2]: unknown name in `${web.prot}`
      hint: did you mean `web.port`?
    e.yaml:6:44: system.services.web.run[3]: `${` without `}` in "${n"
      hint: `$$` is a plain `$`
    --- run: [web]
          ready: { http: GET /, log: up }
          stop: { signal: KIL }
          restart: sometimes
    e.yaml:7:7: system.services.web.ready: `http`, `log` cannot be combined
    e.yaml:8:23: system.services.web.stop.signal: expected one of `TERM`, `INT`, `QUIT`, `HUP`, `KILL`, found "KIL"
      hint: did you mean `KILL`?
    e.yaml:9:16: system.services.web.restart: expected one of `never`, `always`, found "sometimes"
    --- run: [web]
          ready: [tcp]
          stop: now
    e.yaml:7:14: system.services.web.ready: expected `tcp` or a request such as `GET /health`, or a map, found a list
    e.yaml:8:13: system.services.web.stop: expected a map, found "now"
      hint: its keys are `signal`, `timeout`
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
    ---     main one:
    e.yaml:10:5: load.scenarios: expected a name of letters, digits, `_` and `-`, found "main one"
    --- model: constant-vu
    e.yaml:11:14: load.scenarios.main.model: expected one of `constant-vus`, `ramping-vus`, `shared-iterations`, `per-vu-iterations`, `constant-arrival-rate`, `ramping-arrival-rate`, found "constant-vu"
      hint: did you mean `constant-vus`?
    --- mode: constant-vus
    e.yaml:11:7: load.scenarios.main: unknown key `mode`
      hint: did you mean `model`?
    --- model: ramping-vus
    e.yaml:10:5: load.scenarios.main: one of `stages`, `levels`, `steps` (a map) is missing
    e.yaml:12:7: load.scenarios.main: unknown key `vus`
      hint: it goes with `model` `constant-vus`, `shared-iterations`, `per-vu-iterations`, not with `ramping-vus`
    e.yaml:13:7: load.scenarios.main: unknown key `duration`
      hint: it goes with `model` `constant-vus`, `constant-arrival-rate`, not with `ramping-vus`
    ---       vus: "1"
          vus: 2

    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "1"
      hint: write it without quotes
    e.yaml:13:7: load.scenarios.main: `vus` is given twice, first on line 12
    --- 
    e.yaml:10:5: load.scenarios.main: `duration` is missing
    --- model: ramping-vus
          start_vus: 0
          stages: [{ duration: 1s, target: 0 }]
    e.yaml:13:7: load.scenarios.main.stages: expected a target above 0 in at least one stage
    --- model: ramping-vus
          start_vus: 1
          steps: { from: 5, add: 1, every: 1s, to: 2 }
    e.yaml:12:7: load.scenarios.main: `start_vus` is allowed only with `stages`
    e.yaml:13:7: load.scenarios.main.steps: expected `from` to be `to` or less, found 5 and 2
    --- model: ramping-vus
          steps: { from: 1, add: 1, every: 1s, to: 2000 }
    e.yaml:12:7: load.scenarios.main.steps: expected at most 1000 levels, found 2000
    --- request: GET /{{who}}
    e.yaml:14:16: load.scenarios.main.request: unknown data `who`
      hint: describe it under `load.data`
    --- request: { method: get, path: x, body: a, json: {}, headers: { "a b": 1, Content-Length: 3 } }
    e.yaml:14:7: load.scenarios.main.request: `body`, `json` cannot be combined
    e.yaml:14:26: load.scenarios.main.request.method: expected one of `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`, `OPTIONS`, found "get"
    e.yaml:14:37: load.scenarios.main.request.path: expected a path that begins with `/`, found "x"
    e.yaml:14:70: load.scenarios.main.request.headers: expected the name of a header, found "a b"
    e.yaml:14:80: load.scenarios.main.request.headers: the header `Content-Length` is set by Narrows from the body
      hint: leave it out
    --- request: GET /{{d}}/{{d.x}}
      data: { d: { integers: { from: 3, to: 1 }, pick: random } }
    e.yaml:14:16: load.scenarios.main.request: `d` has no columns, so `d.x` does not exist
      hint: write `{{d}}`
    e.yaml:15:16: load.data.d.integers: expected `from` to be `to` or less, found 3 and 1
    e.yaml:15:46: load.data.d: `pick` is allowed only with `values`, `csv`, `json`
    --- request: GET /{{d}}
      data: { d: { values: [], csv: a.csv } }
    e.yaml:15:11: load.data.d: `values`, `csv` cannot be combined
    e.yaml:15:24: load.data.d.values: expected at least 1 item, found none
    --- request: GET /{{d}}
      data: { d: { csv: none.csv } }
    e.yaml:15:21: load.data.d.csv: cannot read data file /lab/none.csv: No such file or directory (os error 2)
    --- request: { path: /, json: ["{{d}}"] }
      data: { d: { values: [fine, 'say "hi"'] } }
    e.yaml:14:33: load.scenarios.main.request.json: the value "say \"hi\"" of `d` would break the JSON it is put into
      hint: values for `json` must not hold quotes, backslashes or control characters
    --- request: GET /
    objectives: [p95 < 300, eror_rate == 0, fast]
    e.yaml:15:14: objectives[0]: expected a length of time such as `300ms` as the bound, found "300"
    e.yaml:15:25: objectives[1]: unknown metric `eror_rate`
      hint: did you mean `error_rate`?
    e.yaml:15:41: objectives[2]: expected an objective such as `p95 < 300ms`, found "fast"
      hint: a metric, `<`, `<=`, `>`, `>=` or `==`, and a bound
    --- request: GET /
    variants: [{ name: a, from: b }, { name: b, m: 1 }, { name: a }, { n: 2 }, { name: c, from: x y }]
    e.yaml:15:29: variants[0].from: `b` is not listed before this variant
      hint: a variant starts from an earlier one
    e.yaml:15:45: variants[1]: unknown parameter `m`
      hint: known: `n`
    e.yaml:15:61: variants[2].name: `a` is the name of two variants, the first on line 15
    e.yaml:15:66: variants[3]: `name` is missing
    e.yaml:15:93: variants[4].from: expected a name of letters, digits, `_`, `-`, `.` and `+`, found "x y"
    --- request: GET /
    variants: []
    seed: -1
    e.yaml:15:11: variants: expected at least 1 item, found none
    e.yaml:16:7: seed: expected a whole number of 0 or more, found -1
    "#);
}

#[test]
fn the_parts_of_a_load_say_what_is_wrong_with_them() {
    let model = "model: constant-vus\n      vus: 1\n      duration: 1s";
    let request = "request: GET /";
    let steps = |text: &str| format!("steps:\n{text}");
    let cases = [
        ("  target: web\n", "".to_owned()),
        ("target: web", "target: http://example\n  tls: { insecure: true, ca: a.pem }\n  protocol: http3".to_owned()),
        ("target: web", "target: web\n  tls: { ca: none.pem, server_name: a b }".to_owned()),
        ("target: web", "target: web\n  client_addresses: [localhost, \"::1\", 127.0.0.1-127.0.0.0, 10.0.0.0/8]".to_owned()),
        ("target: web", "target: web\n  client_addresses: [127.1.0.0/16, 127.0.0.1]".to_owned()),
        ("target: web", "target: web\n  command: [k6, run]\n  env: { A: [1] }".to_owned()),
        ("target: web", "target: web\n  results: k6\n  cwd: .".to_owned()),
        ("  scenarios:", "  command: [k6]\n  drain: 1s\n  scenario:".to_owned()),
        ("  scenarios:", "  scenario:".to_owned()),
        (model, "model: constant-arrival-rate\n      rate: 30/m\n      duration: 1s\n      pace: 1s".to_owned()),
        (model, "model: constant-arrival-rate\n      rate: 0\n      duration: 1s\n      arrivals: random\n      max_vus: 0".to_owned()),
        (model, "model: ramping-arrival-rate\n      stages: [{ duration: 1s, target: 0 }]".to_owned()),
        (model, "model: ramping-arrival-rate\n      start_rate: fast\n      levels: { from: 5, add: 0, every: 1s, to: 2 }".to_owned()),
        (model, "model: ramping-vus\n      levels: { from: 1, add: 1, every: 1s, to: 2 }\n      steps: { from: 1 }".to_owned()),
        (request, "steps: { from: 1 }".to_owned()),
        (request, "extract: { a: { json: a } }".to_owned()),
        (request, "request: GET /\n      steps: [{ name: a, request: GET / }]".to_owned()),
        (request, "steps: [{ name: a, request: GET / }]\n      check: { status: 200 }\n      redirects: 21".to_owned()),
        (request, "request: GET /\n      check: { status: [600, 2x], header: { a b: }, json: { a: 1 }, body: x }".to_owned()),
        (
            request,
            "request: GET /\n      check: { body_contains: \"a {{id}} {{{{b\", header: { ETag: \"{{x.y}}\" }, json: { /a: \"{{\", /b: [{ c: \"{{d}}\" }] } }\n  \
             data: { id: { values: [1] } }"
                .to_owned(),
        ),
        (request, "request: GET /\n      check: 200\n      cookies: some\n      redirects: 21".to_owned()),
        (request, "mix: { a: { weight: 0, request: GET /, steps: [] }, b: { } }".to_owned()),
        (
            request,
            steps(
                "        - { name: a, request: \"GET /{{token}}{{tokn}}{{token.x}}\", extract: { token: { json: /t } } }\n        \
                 - { name: a, request: \"GET /{{token}}{{later}}{{d}}\", extract: { d: { header: X } } }\n        \
                 - { request: GET /, extract: { later: { regex: (a }, both: { json: /a, header: b }, none: {} } }\n  \
                 data: { d: { values: [1] } }",
            ),
        ),
        (
            request,
            "mix: { a: { steps: [{ name: b, request: GET /, extract: { t: { json: /t } } }] }, b: { request: \"GET /{{t}}\" } }"
                .to_owned(),
        ),
        (request, "request: GET /\n  data: { d: { json: a.json, csv: a.csv }, e: { json: none.json, pick: never } }".to_owned()),
    ];
    let all: String = cases.iter().map(|(line, other)| format!("--- {other}\n{}", told(&with(line, other)))).collect();
    assert_snapshot!(all, @r#"
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
    --- model: constant-arrival-rate
          rate: 30/m
          duration: 1s
          pace: 1s
    e.yaml:12:13: load.scenarios.main.rate: expected a rate above 0 such as 500 or `30/min`, found "30/m"
      hint: use `/s`, `/min` or `/h`
    e.yaml:14:7: load.scenarios.main: unknown key `pace`
      hint: it goes with `model` `constant-vus`, `ramping-vus`, `shared-iterations`, `per-vu-iterations`, not with `constant-arrival-rate`
    --- model: constant-arrival-rate
          rate: 0
          duration: 1s
          arrivals: random
          max_vus: 0
    e.yaml:12:13: load.scenarios.main.rate: expected a rate above 0 such as 500 or `30/min`, found 0
    e.yaml:14:17: load.scenarios.main.arrivals: expected one of `uniform`, `poisson`, found "random"
    e.yaml:15:16: load.scenarios.main.max_vus: expected a whole number from 1 to 100000, found 0
    --- model: ramping-arrival-rate
          stages: [{ duration: 1s, target: 0 }]
    e.yaml:12:7: load.scenarios.main.stages: expected a target above 0 in at least one stage
    --- model: ramping-arrival-rate
          start_rate: fast
          levels: { from: 5, add: 0, every: 1s, to: 2 }
    e.yaml:12:7: load.scenarios.main: `start_rate` is allowed only with `stages`
    e.yaml:12:19: load.scenarios.main.start_rate: expected a rate such as 500 or `30/min`, found "fast"
    e.yaml:13:7: load.scenarios.main.levels: expected `from` to be `to` or less, found 5 and 2
    e.yaml:13:31: load.scenarios.main.levels.add: expected a rate above 0 such as 500 or `30/min`, found 0
    --- model: ramping-vus
          levels: { from: 1, add: 1, every: 1s, to: 2 }
          steps: { from: 1 }
    e.yaml:10:5: load.scenarios.main: `levels`, `steps` (a map) cannot be combined
    e.yaml:13:7: load.scenarios.main.steps: `add` is missing
    e.yaml:13:7: load.scenarios.main.steps: `every` is missing
    e.yaml:13:7: load.scenarios.main.steps: `to` is missing
    --- steps: { from: 1 }
    e.yaml:10:5: load.scenarios.main: one of `request`, `steps` (a list), `mix` is missing
    e.yaml:14:14: load.scenarios.main.steps: expected a list, found a map
    --- extract: { a: { json: a } }
    e.yaml:10:5: load.scenarios.main: one of `request`, `steps` (a list), `mix` is missing
    e.yaml:14:7: load.scenarios.main: unknown key `extract`
      hint: known: `request`, `check`, `redirects`, `mix`, `cookies`, `think_time`, `when`, `vus`, `duration`, `pace`, `steps`, `model`
    --- request: GET /
          steps: [{ name: a, request: GET / }]
    e.yaml:10:5: load.scenarios.main: `request`, `steps` (a list) cannot be combined
    --- steps: [{ name: a, request: GET / }]
          check: { status: 200 }
          redirects: 21
    e.yaml:15:7: load.scenarios.main: `check` is allowed only with `request`
    e.yaml:16:7: load.scenarios.main: `redirects` is allowed only with `request`
    e.yaml:16:18: load.scenarios.main.redirects: expected a whole number from 0 to 20, found 21
    --- request: GET /
          check: { status: [600, 2x], header: { a b: }, json: { a: 1 }, body: x }
    e.yaml:15:25: load.scenarios.main.check.status[0]: expected a status such as 200, `2xx` or `200-299`, found 600
    e.yaml:15:30: load.scenarios.main.check.status[1]: expected a status such as 200, `2xx` or `200-299`, found "2x"
    e.yaml:15:45: load.scenarios.main.check.header: expected the name of a header, found "a b"
    e.yaml:15:61: load.scenarios.main.check.json: expected a JSON pointer such as `/items/0/id`, found "a"
      hint: write `/a`
    e.yaml:15:69: load.scenarios.main.check: unknown key `body`
      hint: known: `status`, `body_contains`, `header`, `json`
    --- request: GET /
          check: { body_contains: "a {{id}} {{{{b", header: { ETag: "{{x.y}}" }, json: { /a: "{{", /b: [{ c: "{{d}}" }] } }
      data: { id: { values: [1] } }
    e.yaml:15:31: load.scenarios.main.check.body_contains: a check cannot contain `{{id}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    e.yaml:15:65: load.scenarios.main.check.header.ETag: a check cannot contain `{{x.y}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    e.yaml:15:90: load.scenarios.main.check.json./a: `{{` without `}}` in "{{"
      hint: `{{{{` is a plain `{{`
    e.yaml:15:100: load.scenarios.main.check.json./b: a check cannot contain `{{d}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    --- request: GET /
          check: 200
          cookies: some
          redirects: 21
    e.yaml:15:14: load.scenarios.main.check: expected a map, or a list, found 200
    e.yaml:16:16: load.scenarios.main.cookies: expected one of `none`, `per-iteration`, `per-user`, found "some"
      hint: did you mean `none`?
    e.yaml:17:18: load.scenarios.main.redirects: expected a whole number from 0 to 20, found 21
    --- mix: { a: { weight: 0, request: GET /, steps: [] }, b: { } }
    e.yaml:14:14: load.scenarios.main.mix.a: `request`, `steps` cannot be combined
    e.yaml:14:27: load.scenarios.main.mix.a.weight: expected a number above 0, found 0
    e.yaml:14:53: load.scenarios.main.mix.a.steps: expected at least 1 item, found none
    e.yaml:14:59: load.scenarios.main.mix.b: one of `request`, `steps` is missing
    --- steps:
            - { name: a, request: "GET /{{token}}{{tokn}}{{token.x}}", extract: { token: { json: /t } } }
            - { name: a, request: "GET /{{token}}{{later}}{{d}}", extract: { d: { header: X } } }
            - { request: GET /, extract: { later: { regex: (a }, both: { json: /a, header: b }, none: {} } }
      data: { d: { values: [1] } }
    e.yaml:15:31: load.scenarios.main.steps[0].request: `token` is used before it is extracted
      hint: a step can use only values that earlier steps of its flow extracted
    e.yaml:15:31: load.scenarios.main.steps[0].request: unknown data or variable `tokn`
      hint: did you mean `token`?
    e.yaml:15:31: load.scenarios.main.steps[0].request: `token` is extracted and has no columns, so `token.x` does not exist
      hint: write `{{token}}`
    e.yaml:16:19: load.scenarios.main.steps[1]: `a` is the name of two steps, the first on line 15
      hint: steps of all flows of a scenario need different names
    e.yaml:16:31: load.scenarios.main.steps[1].request: `later` is used before it is extracted
      hint: a step can use only values that earlier steps of its flow extracted
    e.yaml:16:74: load.scenarios.main.steps[1].extract.d: `d` is the name of data as well
      hint: give one of them another name
    e.yaml:17:11: load.scenarios.main.steps[2]: `name` is missing
    e.yaml:17:56: load.scenarios.main.steps[2].extract.later.regex: expected a regular expression, found "(a": unclosed group
    e.yaml:17:62: load.scenarios.main.steps[2].extract.both: `json`, `header` cannot be combined
    e.yaml:17:93: load.scenarios.main.steps[2].extract.none: one of `json`, `header`, `regex` is missing
    --- mix: { a: { steps: [{ name: b, request: GET /, extract: { t: { json: /t } } }] }, b: { request: "GET /{{t}}" } }
    e.yaml:14:89: load.scenarios.main.mix.b: `b` is the name of two steps, the first on line 14
      hint: steps of all flows of a scenario need different names
    e.yaml:14:103: load.scenarios.main.mix.b.request: `t` is extracted in another flow only
      hint: a step can use only values that earlier steps of its flow extracted
    --- request: GET /
      data: { d: { json: a.json, csv: a.csv }, e: { json: none.json, pick: never } }
    e.yaml:15:11: load.data.d: `csv`, `json` cannot be combined
    e.yaml:15:35: load.data.d.csv: cannot read data file /lab/a.csv: No such file or directory (os error 2)
    e.yaml:15:55: load.data.e.json: cannot read data file /lab/none.json: No such file or directory (os error 2)
    e.yaml:15:72: load.data.e.pick: expected one of `random`, `sequential`, `once`, found "never"
    "#);
}

#[test]
fn objectives_about_a_part_are_judged() {
    let objectives = r#"
objectives:
  - "shop/login: p95 < 1s"
  - "shopp: p95 < 1s"
  - "shop/loginn: p95 < 1s"
  - "main/x: p95 < 1s"
  - "shop/login: dropped_rate == 0"
  - "a b: p95 < 1s"
  - { objective: "shop: p95 < 1s" }
  - { objective: p95 < 1s, request: login }
  - { objective: p95 < 1s, scenario: none, abort: yes }
  - { objective: rate > 1, abort: true }
  - { objective: p95 < 1s, scenario: shop, request: list, abort: true }
"#;
    let shop = "  scenarios:\n    shop: { model: constant-vus, vus: 1, duration: 1s, steps: [{ name: login, request: GET / }, \
                { name: list, request: GET / }] }";
    let source = with("  scenarios:", shop) + objectives;
    assert_snapshot!(told(&source), @r#"
    e.yaml:19:5: objectives[1]: unknown scenario `shopp`
      hint: did you mean `shop`?
    e.yaml:20:5: objectives[2]: unknown request of `shop`: `loginn`
      hint: did you mean `login`?
    e.yaml:21:5: objectives[3]: unknown request of `main`: `x`
      hint: it has only one request; name only the scenario
    e.yaml:22:5: objectives[4]: `dropped_rate` is about a scenario, not about one of its requests
      hint: an iteration is dropped before its first request
    e.yaml:23:5: objectives[5]: expected `scenario` or `scenario/request` before the colon, found "a b"
    e.yaml:24:18: objectives[6].objective: unknown metric `shop: p95`
      hint: known: `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `max`, `error_rate`, `dropped_rate`, `rate`
    e.yaml:25:28: objectives[7]: `request` is allowed only with `scenario`
    e.yaml:26:38: objectives[8].scenario: unknown scenario `none`
      hint: known: `shop`, `main`
    e.yaml:26:51: objectives[8].abort: expected `true` or `false`, found "yes"
    e.yaml:27:35: objectives[9].abort: `rate > 1` cannot end a trial early
      hint: upper limits of latencies and shares can
    "#);
    let command = format!("experiment: a\nload: {{ command: [k6] }}{objectives}");
    assert!(!told(&command).contains("unknown scenario"), "another program has names of its own");
}

#[test]
fn notes_for_readers_are_judged() {
    let published = "\
published:
  source: A Guide
  operation: webb GET /
  figures:
    - { measure: mean, values: { baseline: 669, other: 1ms } }
    - { measure: rates, values: { baseline: 1 } }
    - { measure: p95, values: { baseline: 1s }, remark: [slow] }
    - { measure: p95, values: { baseline: 1s }, note: x }
    - { measure: rate, values: { baseline: 3ms } }
    - { measure: metric, metric: queue.length, values: { baseline: 3 } }
    - { measure: metric, metric: queue.length, values: { baseline: 3 } }
    - { measure: metric, values: { baseline: 3 } }
";
    let source =
        with("parameters: { n: 1 }", "parameters: { n: { value: 1 }, m: { value: ~, reason: x } }") + published;
    assert_snapshot!(told(&source), @r#"
    e.yaml:2:15: parameters.n: `reason` is missing
    e.yaml:2:44: parameters.m.value: expected a text, found nothing
    e.yaml:17:14: published.operation: unknown service `webb`
      hint: did you mean `web`?
    e.yaml:19:44: published.figures[0].values.baseline: expected a length of time above 0 such as `30s` or `1m30s`, found 669
      hint: add a unit: `669s`, `669ms`
    e.yaml:19:49: published.figures[0].values: unknown variant `other`
      hint: known: `baseline`
    e.yaml:20:18: published.figures[1].measure: expected one of `rate`, `requests`, `failed`, `error_rate`, `mean`, `p50`, `p95`, `p99`, `completed`, `throttled`, `calls_per_operation`, `attempts_per_operation`, `charge_per_operation`, `metric`, found "rates"
      hint: did you mean `rate`?
    e.yaml:21:57: published.figures[2].remark: expected a text, found a list
    e.yaml:22:18: published.figures[3].measure: `p95` is given twice, first on line 21
    e.yaml:22:49: published.figures[3]: unknown key `note`
      hint: known: `remark`, `values`, `measure`
    e.yaml:23:44: published.figures[4].values.baseline: expected a number of 0 or more, found "3ms"
    e.yaml:25:34: published.figures[6].metric: `queue.length` is given twice, first on line 24
    e.yaml:26:7: published.figures[7]: `metric` is missing
    "#);
    let bare = with("request: GET /", "request: GET /\nvariants: [{ name: a }, { nam: b }]") + published;
    assert!(!told(&bare).contains("unknown variant"), "a variant whose name is misspelt may be meant");
    let of_clients = "\
published:
  source: A Guide
  figures: [{ measure: p95, values: { baseline: 1s } }, { measure: throttled, values: { baseline: 1 } }]
";
    let told = told(&(with("n: 1", "n: 1") + of_clients));
    let expected = "published.figures[1].measure: `throttled` needs `operation`, which `published` does not set";
    assert!(told.contains(expected) && !told.contains("figures[0]"), "{told}");
}

#[test]
fn a_parameter_with_a_reason_is_one_like_any_other() {
    let reason = with("parameters: { n: 1 }", "parameters: { n: { value: many, reason: so } }");
    let bound = reason.replace("vus: 1", "vus: \"${n}\"");
    assert_snapshot!(told(&bound), @r#"e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "many""#);
    let experiment = parsed(&(reason + "variants: [{ name: a }, { name: b, n: few }]\n")).unwrap();
    assert_eq!(experiment.parameters["n"], "many");
    let values: Vec<&str> = experiment.variants.iter().map(|variant| variant.parameters["n"].as_str()).collect();
    assert_eq!(values, ["many", "few"]);
}

#[test]
fn a_file_that_is_no_map_is_told() {
    assert_snapshot!(told("just text"), @r#"
    e.yaml:1:1: expected a map, found "just text"
      hint: its keys are `experiment`, `parameters`, `system`, `load`, `faults`, `objectives`, `variants`, `published`, `thresholds`, `seed`
    "#);
    assert_snapshot!(told("a: [1\n"), @"e.yaml:2:1: not YAML: while parsing a flow sequence, expected ',' or ']'");
}

#[test]
fn a_value_that_is_wrong_in_one_variant_names_it() {
    let source = with("vus: 1", "vus: \"${n}\"") + "variants: [{ name: one }, { name: none, n: none }]\n";
    assert_snapshot!(told(&source), @r#"e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "none" (in variant `none`)"#);
    let source = source.replace("n: 1", "n: some").replace(", n: none", "");
    assert_snapshot!(told(&source), @r#"
    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "some"
    e.yaml:13:17: load.scenarios.main.duration: expected a length of time above 0 such as `30s` or `1m30s`, found "somes"
    "#);
}

#[test]
fn all_faults_of_a_request_are_told() {
    let data = "\n  data: { item: { integers: { from: 1, to: 9 } }, user: { values: [a] }, x.y: { values: [b] } }";
    let line = "request: GET /{{itme}}/{{}}/{{x.y}}/{{item}}/{{usr}} HTTP/1.1";
    let map = "request: { path: [], headers: { A: \"{{itme}}{{usr}}\" }, body: \"{{a}}-{{\" }";
    let told = [line, map].map(|request| told(&with("request: GET /", &format!("{request}{data}"))));
    assert_snapshot!(told.join("---\n"), @r#"
    e.yaml:14:16: load.scenarios.main.request: a blank in the path "/{{itme}}/{{}}/{{x.y}}/{{item}}/{{usr}} HTTP/1.1"
      hint: leave out the protocol version
    e.yaml:14:16: load.scenarios.main.request: unknown data `itme`
      hint: did you mean `item`?
    e.yaml:14:16: load.scenarios.main.request: this `{{…}}` has no name
      hint: known: `item`, `user`, `x.y`
    e.yaml:14:16: load.scenarios.main.request: unknown data `usr`
      hint: did you mean `user`?
    e.yaml:15:74: load.data: expected a name of letters, digits, `_` and `-`, found "x.y"
    ---
    e.yaml:14:24: load.scenarios.main.request.path: expected a path such as `/orders`, found a list
    e.yaml:14:42: load.scenarios.main.request.headers.A: unknown data `itme`
      hint: did you mean `item`?
    e.yaml:14:42: load.scenarios.main.request.headers.A: unknown data `usr`
      hint: did you mean `user`?
    e.yaml:14:69: load.scenarios.main.request.body: `{{` without `}}` in "{{"
      hint: `{{{{` is a plain `{{`
    e.yaml:14:69: load.scenarios.main.request.body: unknown data `a`
      hint: known: `item`, `user`, `x.y`
    e.yaml:15:74: load.data: expected a name of letters, digits, `_` and `-`, found "x.y"
    "#);
}

#[test]
fn braces_without_quotes_are_told_beside_other_mistakes() {
    let source =
        with("request: GET /", "request: { path: /, json: { id: {{u}}, n: \"{{v}}\" } }").replace("vus: 1", "vus: x");
    assert_snapshot!(told(&source), @r#"
    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "x"
    e.yaml:14:33: load.scenarios.main.request.json: unknown data `v`
      hint: describe it under `load.data`
    e.yaml:14:39: load.scenarios.main.request.json.id: a key that is a list or a map, expected a text
      hint: put the value in quotes, such as `"{{u}}"`
    "#);
    assert_snapshot!(told(&with("request: GET /", "request: {{x}}")), @r#"
    e.yaml:14:16: load.scenarios.main.request: a key that is a list or a map, expected a text
      hint: put the value in quotes, such as `"{{x}}"`
    "#);
    assert_snapshot!(told(&with("request: GET /", "request: { path: /{{x}} }")), @"
    e.yaml:14:25: not YAML: while parsing a flow mapping, did not find expected ',' or '}'
      hint: a value with `{{…}}` or `${…}` in it needs quotes
    ");
}

#[test]
fn a_variant_without_a_name_is_looked_into() {
    let variants = "variants: [{ from: c, d: 3s }, { nam: b, n: 2 }, { name: c }, { name: d, from: 7 }]";
    assert_snapshot!(told(&with("request: GET /", &format!("request: GET /\n{variants}"))), @r#"
    e.yaml:15:12: variants[0]: `name` is missing
    e.yaml:15:20: variants[0].from: `c` is not listed before this variant
      hint: a variant starts from an earlier one
    e.yaml:15:23: variants[0]: unknown parameter `d`
      hint: known: `n`
    e.yaml:15:32: variants[1]: `name` is missing
    e.yaml:15:34: variants[1]: unknown parameter `nam`
      hint: did you mean `name`?
    e.yaml:15:80: variants[3].from: expected a name of letters, digits, `_`, `-`, `.` and `+`, found 7
      hint: put it in quotes: `"7"`
    "#);
}

#[test]
fn a_fault_is_told_once() {
    assert_snapshot!(told(&with("target: web", "target: 7")), @r#"
    e.yaml:8:11: load.target: expected the name of a service or `http://host:port`, found 7
      hint: put it in quotes: `"7"`
    "#);
    let dots = with("    web:", "    a.b:").replace("run: [web,", "run: [web, \"${a.b.url}\", \"${c.d}\", \"${c.e}\",");
    assert_snapshot!(told(&dots.replace("{ n: 1 }", "{ c.d: 1 }")), @r#"
    e.yaml:2:15: parameters: expected a name of letters, digits, `_` and `-`, found "c.d"
    e.yaml:5:5: system.services: expected a name of letters, digits, `_` and `-`, found "a.b"
    e.yaml:6:42: system.services.a.b.run[3]: unknown name in `${c.e}`
      hint: did you mean `c.d`?
    e.yaml:8:11: load.target: unknown service `web`
      hint: did you mean `a.b`?
    "#);
}

#[test]
fn a_folder_that_is_not_there_is_told_if_nothing_can_make_it() {
    let web = |lines: &str| told(&with("      run: [web,", &format!("{lines}\n      run: [web,")));
    assert_snapshot!(web("      cwd: nowhere"), @"
    e.yaml:6:12: system.services.web.cwd: expected a folder, found none at /lab/nowhere
      hint: it is relative to the experiment file's folder
    ");
    assert_snapshot!(web("      cwd: \"src/${n}\""), @"
    e.yaml:6:12: system.services.web.cwd: expected a folder, found none at /lab/src/1
      hint: it is relative to the experiment file's folder
    ");
    for cwd in ["src", "./src/experiment", "/", "${trial.dir}/data", "node-${port}", "${web.port}"] {
        assert_eq!(web(&format!("      cwd: \"{cwd}\"")), "", "{cwd}");
    }
    let made_by_setup = "      setup: [[mkdir, made]]\n      run: [a]\n    second:\n      cwd: made";
    assert_eq!(web(made_by_setup), "");
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("e.yaml");
    assert!(matches!(read(&file).unwrap_err(), ExperimentError::Io { .. }));
    std::fs::write(&file, b"experiment: a\nx: \xff\n").unwrap();
    let ExperimentError::Mistakes(mistakes) = read(&file).unwrap_err() else { panic!("expected mistakes") };
    assert_eq!((mistakes[0].line, mistakes[0].column), (2, 4));
    std::fs::write(&file, "#".repeat(FILE_BYTES_MAX + 1)).unwrap();
    assert!(read(&file).unwrap_err().to_string().ends_with("the file is larger than 1048576 bytes"));
}

proptest! {
    #[test]
    fn no_text_panics(source in "\\PC{0,200}") {
        let _ = parsed(&source);
    }

    /// Lines of a good file lost, doubled, indented or swapped for each other's.
    #[test]
    fn no_mangled_file_panics_or_repeats_itself(edits in prop::collection::vec((0..110usize, 0..110usize, 0..5u8), 1..6)) {
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
        for (at, other, how) in edits {
            let (at, other) = (at % lines.len(), other % lines.len());
            match how {
                0 => { lines.remove(at); }
                1 => lines.insert(at, lines[other].clone()),
                2 => lines[at].insert_str(0, "  "),
                3 => lines[at] = lines[at].replacen(char::is_alphanumeric, "", 1),
                _ => lines.swap(at, other),
            }
        }
        if let Err(mistakes) = parsed(&lines.join("\n")) {
            prop_assert!(!mistakes.is_empty());
            let mut seen: Vec<_> = mistakes.iter().map(|m| (m.line, m.column, &m.message)).collect();
            seen.sort();
            seen.dedup();
            prop_assert_eq!(seen.len(), mistakes.len());
        }
    }
}
