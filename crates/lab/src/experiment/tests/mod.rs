//! The experiment file as a whole; its parts are tested where they are.

use super::*;

pub(crate) mod components;
mod errors;
mod trials;

/// A file in which every section is present.
const WHOLE: &str = r#"
experiment: fastapi-orders
parameters: { eager: "0", vus: 8, cap: 0.25, path: "/orders?limit={{limit}}" }
system:
  services:
    db:
      run: [postgres, -p, "${port}"]
      port: 5432
    orders:
      setup: [[python3, -m, venv, .venv], [.venv/bin/pip, install, -r, requirements.txt]]
      run: [.venv/bin/uvicorn, "orders:app", --port, "${port}", --db, "${db.host}:${db.port}"]
      cwd: ./src
      env: { EAGER: "${eager}", PRICE: "$$5", WHO: "${replica}@${trial.dir}", OTLP: "${otlp.endpoint}", N: 3 }
      ready: { http: "GET /health", timeout: 1m }
      replicas: 2
      cpus: "${cap}"
      memory: 256MiB
      stop: { signal: INT }
load:
  target: orders
  warmup: 5s
  tracing: { sample: 0.1 }
  connections: per-request
  threads: 1
  scenarios:
    list:
      model: constant-vus
      vus: "${vus}"
      duration: 20s
      think_time: 10ms
      pace: 100ms
      request: "GET ${path}"
    create:
      model: ramping-vus
      stages: [{ duration: 8m, target: 40 }]
      request:
        method: POST
        path: /orders
        headers: { X-Peers: "${orders.urls}" }
        json: { owner: "{{owner}}", n: 3, tags: [a, true, null, 1.5] }
    climb:
      model: ramping-vus
      steps: { from: 1, add: 4, every: 10s, to: 10 }
      request: "DELETE /orders/{{owner}}"
    exact:
      model: shared-iterations
      vus: 2
      iterations: 1000
      request: { path: /, body: "seed {{{{${seed}}}" }
    shop:
      model: ramping-arrival-rate
      levels: { from: 1/s, add: 30/min, every: 10s, to: 2 }
      steps:
        - name: login
          request: "POST /login"
          check: { status: 2xx, header: { ETag: } }
          extract: { token: { json: /token } }
        - name: list
          request: { path: /orders, headers: { Authorization: "Bearer {{token}}" } }
          think_time: 1s
    mixed:
      model: constant-arrival-rate
      rate: 5
      duration: 10s
      cookies: per-user
      mix:
        browse: { weight: 3, request: GET /, redirects: 2 }
        buy: { steps: [{ name: cart, request: GET /cart }, { name: pay, request: POST /pay }] }
  data:
    limit: { integers: { from: 10, to: 50 } }
    owner: { values: [a, b, 3], pick: sequential }
objectives: ["p95 < 300ms", "error_rate == 0", "rate >= 100/s", { objective: p99 < 1s, scenario: mixed, request: buy/pay }]
variants:
  - { name: as-is }
  - { name: fixed, from: as-is, eager: "1" }
  - { name: wide, from: fixed, cap: 2, vus: 16 }
seed: 7
"#;

/// A folder that exists; texts that are compared call it `/lab`.
const LAB: &str = env!("CARGO_MANIFEST_DIR");

fn parsed(source: &str) -> Result<Experiment, Vec<FileError>> {
    crate::language().parse(source, "e.yaml", Path::new(LAB))
}

/// The errors of a file as `narrows check` prints them.
fn errors(source: &str) -> String {
    let errors = parsed(source).err().unwrap_or_default();
    let lines = errors.iter().map(|error| match &error.hint {
        Some(hint) => format!("{error}\n  hint: {hint}\n"),
        None => format!("{error}\n"),
    });
    lines.collect::<String>().replace(LAB, "/lab")
}

/// A small good file with one line changed.
fn with(line: &str, replacement: &str) -> String {
    const SMALL: &str = "\
experiment: small
parameters: { n: 1 }
system:
  services:
    web:
      run: [web, --port, \"${port}\"]
load:
  target: web
  scenarios:
    main:
      model: constant-vus
      vus: 1
      duration: 1s
      request: GET /
";
    assert!(SMALL.contains(line), "{line}");
    SMALL.replacen(line, replacement, 1)
}
