//! Services that are components, and the proxies beside services: what can be written, and what becomes of it.

use insta::assert_snapshot;

use super::*;

const RUN: &str = "run: [web, --port, \"${port}\"]";

const CHAIN: &str = r#"
experiment: chain
parameters: { proxy: narrows, base: customers }
system:
  services:
    db:
      postgres: { database: "${base}", settings: { shared_buffers: 64MB, max_connections: 100 } }
      cpus: 0.5
      sidecar: { proxy: "${proxy}", tls: true }
    name:
      run: [name, --port, "${port}", "${db.url}", "${name.url}"]
      replicas: 2
      sidecar: { proxy: "${proxy}", tls: true, access_log: true, cpus: 0.2, memory: 64MiB }
    web:
      run: [web, --port, "${port}", "${name.urls}", "${db.port}"]
      sidecar: { proxy: "${proxy}" }
    plain:
      run: [plain, "${name.urls}", "${db.url}"]
load:
  target: name
  scenarios:
    main: { model: constant-vus, vus: 1, duration: 1s, request: { path: /, body: "${name.urls}" } }
variants:
  - { name: sidecars }
  - { name: bare, proxy: none }
"#;

fn bound(variant: usize) -> (Vec<Replica>, BoundTrial) {
    bound_from(CHAIN, variant)
}

fn bound_from(source: &str, variant: usize) -> (Vec<Replica>, BoundTrial) {
    let experiment = parsed(source).unwrap();
    let replicas = experiment.replicas(&experiment.variants[variant]).unwrap();
    let ports = replicas.iter().zip(1..).map(|(one, nth): (_, u16)| ReplicaPorts {
        service: one.service.clone(),
        replica: one.replica,
        host: Host::loopback(),
        port: nth * 100,
        further: (0..one.further as u16).map(|further| nth * 100 + 1 + further).collect(),
    });
    let bindings = Bindings {
        ports: ports.collect(),
        otlp_endpoint: "http://127.0.0.1:4318".into(),
        trial_dir: "/tmp/trial".into(),
        seed: 7,
        time_scale: 1.0,
    };
    let trial = experiment.bind(&experiment.variants[variant], &bindings).unwrap();
    (replicas, trial)
}

fn run_of(service: &BoundService) -> String {
    match &service.start {
        Start::Run { command, .. } => command[1..].join(" "),
        Start::Component { settings, .. } => format!("{settings:?}"),
        Start::Elsewhere { place, .. } => place.to_string(),
    }
}

/// The one service of a small file, bound.
pub(crate) fn service(written: &str) -> BoundService {
    bound_from(&with(RUN, written), 0).1.services.remove(0)
}

/// The component of that service.
pub(crate) fn component(written: &str) -> Settings {
    match service(written).start {
        Start::Component { settings, .. } => settings,
        Start::Run { .. } | Start::Elsewhere { .. } => panic!("a component"),
    }
}

/// The errors in what is written about that service.
pub(crate) fn errors(written: &str) -> String {
    super::errors(&with(RUN, written))
}

#[test]
fn without_sidecars_everyone_is_told_the_same_ports() {
    let (replicas, trial) = bound(1);
    assert!(replicas.iter().all(|replica| replica.further == 0), "{replicas:?}");
    let shown: Vec<String> = trial.services.iter().map(run_of).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    Postgres { database: "customers", sql: [], settings: [("shared_buffers", "64MB"), ("max_connections", "100")] }
    --port 200 postgres://postgres@127.0.0.1:100/customers http://127.0.0.1:200
    --port 300 postgres://postgres@127.0.0.1:100/customers http://127.0.0.1:200
    --port 400 http://127.0.0.1:200,http://127.0.0.1:300 100
    http://127.0.0.1:200,http://127.0.0.1:300 postgres://postgres@127.0.0.1:100/customers
    "#);
    assert!(trial.services.iter().all(|service| service.sidecar.is_none() && service.stand_in_ports.is_empty()));
    assert_eq!(trial.services[0].stop_signal, rustix::process::Signal::INT);
    assert_eq!(trial.services[1].stop_signal, rustix::process::Signal::TERM);
}

#[test]
fn with_sidecars_everyone_is_told_its_own_proxys_listeners() {
    let (replicas, trial) = bound(0);
    // db: private, TLS, and listeners for two names, web and plain; name: for db, web, plain; web: no TLS.
    let further: Vec<usize> = replicas.iter().map(|replica| replica.further).collect();
    assert_eq!(further, [6, 5, 5, 5, 0]);
    let shown: Vec<String> = trial.services[1..].iter().map(run_of).collect();
    assert_snapshot!(shown.join("\n"), @r"
    --port 201 postgres://postgres@127.0.0.1:203/customers http://127.0.0.1:200
    --port 301 postgres://postgres@127.0.0.1:303/customers http://127.0.0.1:200
    --port 401 http://127.0.0.1:403,http://127.0.0.1:404 402
    http://127.0.0.1:200,http://127.0.0.1:300 postgres://postgres@127.0.0.1:100/customers
    ");
    assert_eq!((trial.services[0].port, trial.services[0].advertised_port()), (101, 100));
    assert_eq!(trial.services[0].stand_in_ports, [100, 102, 203, 303, 402], "its own two, then its callers'");
    let BoundLoad::Plan(plan) = &trial.load else { panic!("a plan") };
    assert_eq!(plan.targets.iter().map(std::net::SocketAddr::port).collect::<Vec<_>>(), [200, 300]);
}

#[test]
fn sidecars_speak_tls_where_both_ends_do() {
    let (_, trial) = bound(0);
    let sidecar = trial.services[2].sidecar.as_ref().unwrap();
    assert_eq!((sidecar.proxy.as_str(), sidecar.port, sidecar.tls_port), ("narrows", 300, Some(302)));
    assert_eq!((sidecar.protocol, sidecar.has_access_log), (Protocol::Http, true));
    assert_eq!((sidecar.cpus, sidecar.memory_bytes), (Some(0.2), Some(64 << 20)));
    let shown = |sidecar: &BoundSidecar| {
        let hops = sidecar.outbound.iter().map(|hop| {
            format!("{} {} {} {} {:?}", hop.service, hop.listen, hop.upstream.port(), hop.is_secure, hop.protocol)
        });
        hops.collect::<Vec<_>>()
    };
    assert_eq!(shown(sidecar), ["db 303 102 true Tcp", "web 304 400 false Http", "plain 305 500 false Http"]);
    let web = trial.services[3].sidecar.as_ref().unwrap();
    assert_eq!(shown(web)[..2], ["db 402 100 false Tcp", "name 403 200 false Http"]);
    assert_eq!(trial.services[0].sidecar.as_ref().unwrap().protocol, Protocol::Tcp);
}

#[test]
fn errors_about_components_are_reported_at_their_places() {
    let cases = [
        "postgress: {}",
        "postgres: {}\n      run: [web]",
        "postgres: yes",
        "postgres: { database: \"a b\", sql: schema.sql, setings: {} }",
        "postgres: { settings: { port: 1, \"a b\": 1, work_mem: [1], Listen_Addresses: \"*\" } }",
        "postgres: { sql: [no-such.sql, \"${nobody}.sql\"] }",
        "postgres: {}\n      cwd: .\n      setup: [[make]]",
        "postgres: {}\n      ready: GET /",
        "postgres: {}\n      ready: { log: up, timeout: 2m }",
        "galera: {}\n      replicas: 2",
        "run: [web]\n      sidecar: {}",
        "run: [web]\n      sidecar: { proxy: none, tls: perhaps }",
    ];
    let shown: Vec<String> = cases.iter().map(|case| format!("--- {case}\n{}", errors(case))).collect();
    assert!(errors("cpus: 1").contains("system.services.web: one of `run`, `postgres`"));
    assert_snapshot!(shown.concat(), @r#"
    --- postgress: {}
    e.yaml:6:7: system.services.web: unknown key `postgress`
      hint: did you mean `postgres`?
    --- postgres: {}
          run: [web]
    e.yaml:5:5: system.services.web: `run`, `postgres` cannot be combined
    --- postgres: yes
    e.yaml:6:17: system.services.web.postgres: expected a map, found "yes"
      hint: its keys are `database`, `sql`, `settings`
    --- postgres: { database: "a b", sql: schema.sql, setings: {} }
    e.yaml:6:29: system.services.web.postgres.database: expected a name of letters, digits, `_` and `-`, found "a b"
    e.yaml:6:41: system.services.web.postgres.sql: expected a list, found "schema.sql"
    e.yaml:6:53: system.services.web.postgres: unknown key `setings`
      hint: did you mean `settings`?
    --- postgres: { settings: { port: 1, "a b": 1, work_mem: [1], Listen_Addresses: "*" } }
    e.yaml:6:31: system.services.web.postgres.settings: `port` is set by Narrows, so that the server is private to the trial
    e.yaml:6:40: system.services.web.postgres.settings: expected the name of a setting: letters, digits, `_`, `-` and `.`, found "a b"
    e.yaml:6:60: system.services.web.postgres.settings.work_mem: expected a text, found a list
    e.yaml:6:65: system.services.web.postgres.settings: `Listen_Addresses` is set by Narrows, so that the server is private to the trial
    --- postgres: { sql: [no-such.sql, "${nobody}.sql"] }
    e.yaml:6:25: system.services.web.postgres.sql[0]: expected a file, found none at /lab/no-such.sql
      hint: it is relative to the experiment file's folder
    e.yaml:6:38: system.services.web.postgres.sql[1]: unknown name in `${nobody}`
      hint: known: `n`
    --- postgres: {}
          cwd: .
          setup: [[make]]
    e.yaml:7:7: system.services.web: `cwd` is allowed only with `run`
    e.yaml:8:7: system.services.web: `setup` is allowed only with `run`
    --- postgres: {}
          ready: GET /
    e.yaml:7:14: system.services.web.ready: `postgres` allows no readiness check
      hint: set only `timeout`: `{ timeout: 2m }`
    --- postgres: {}
          ready: { log: up, timeout: 2m }
    e.yaml:7:14: system.services.web.ready: `postgres` allows no readiness check
      hint: set only `timeout`: `{ timeout: 2m }`
    --- galera: {}
          replicas: 2
    e.yaml:7:7: system.services.web: `galera` allows no `replicas`
      hint: set `nodes` instead
    --- run: [web]
          sidecar: {}
    e.yaml:7:7: system.services.web.sidecar: `proxy` is missing
    --- run: [web]
          sidecar: { proxy: none, tls: perhaps }
    e.yaml:7:36: system.services.web.sidecar.tls: expected `true` or `false`, found "perhaps"
    "#);
    let unknown = errors("run: [web]\n      sidecar: { proxy: squid }");
    assert!(unknown.contains("expected one of `none`, `narrows`, "), "{unknown}");
    assert_eq!(errors("postgres: {}\n      ready: { timeout: 2m }\n      replicas: 2\n      env: { TZ: UTC }"), "");
}

/// A chain whose load lasts ten seconds, with faults.
fn with_faults(faults: &str) -> String {
    CHAIN.replace("duration: 1s", "duration: 10s") + "faults: " + faults + "\n"
}

#[test]
fn faults_name_replicas_in_three_ways_and_happen_in_the_variants_that_they_name() {
    let source = with_faults(
        "[{ at: 6s, kill: \"name[1]\" }, { at: 2s, pause: name-2, for: 1s }, { at: 8s, restart: db, variants: [bare] }]",
    );
    let experiment = parsed(&source).unwrap();
    let of_variant = |variant: usize| {
        let variant = &experiment.variants[variant];
        let replicas = experiment.replicas(variant).unwrap();
        let ports = replicas.into_iter().map(|one| {
            let further = vec![1; one.further];
            let (host, port) = (Host::loopback(), 1);
            ReplicaPorts { service: one.service, replica: one.replica, host, port, further }
        });
        let bindings = Bindings {
            ports: ports.collect(),
            otlp_endpoint: String::new(),
            trial_dir: "/tmp/trial".into(),
            seed: 7,
            time_scale: 0.5,
        };
        let faults = experiment.bind(variant, &bindings).unwrap().faults;
        let shown = faults.iter().map(|one| format!("{:?} {:?} {} {}", one.at, one.deed, one.service, one.replica));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(of_variant(0), ["1s Pause(500ms) name 1", "3s Kill name 1"]);
    assert_eq!(of_variant(1)[2..], ["4s Restart db 0"]);
}

#[test]
fn errors_about_faults_are_reported_at_their_places() {
    let cases = [
        "[{ at: 1s }]",
        "[{ at: 1s, kill: db, restart: db }]",
        "[{ at: 1s, pause: db }]",
        "[{ at: 1s, kill: db, for: 1s }]",
        "[{ kill: bd }]",
        "[{ at: 1s, kill: \"name[2]\" }, { at: 1s, kill: name-3 }, { at: 1s, kill: name-0 }]",
        "[{ at: 1s, kill: db, variants: [bar] }]",
        "[{ at: 10s, kill: db }]",
    ];
    let shown: Vec<String> =
        cases.iter().map(|case| format!("--- {case}\n{}", super::errors(&with_faults(case)))).collect();
    assert_snapshot!(shown.concat(), @r#"
    --- [{ at: 1s }]
    e.yaml:26:10: faults[0]: one of `kill`, `pause`, `restart` is missing
    --- [{ at: 1s, kill: db, restart: db }]
    e.yaml:26:10: faults[0]: `kill`, `restart` cannot be combined
    --- [{ at: 1s, pause: db }]
    e.yaml:26:10: faults[0]: `for` is missing
    --- [{ at: 1s, kill: db, for: 1s }]
    e.yaml:26:30: faults[0]: `for` is allowed only with `pause`
    --- [{ kill: bd }]
    e.yaml:26:10: faults[0]: `at` is missing
    e.yaml:26:18: faults[0].kill: unknown replica `bd`
      hint: did you mean `db`?
    --- [{ at: 1s, kill: "name[2]" }, { at: 1s, kill: name-3 }, { at: 1s, kill: name-0 }]
    e.yaml:26:26: faults[0].kill: `name` has no replica `name[2]`; it has `name[0]` to `name[1]`
    e.yaml:26:55: faults[1].kill: `name` has no replica `name-3`; it has `name[0]` to `name[1]`
    e.yaml:26:81: faults[2].kill: unknown replica `name-0`
      hint: did you mean `name`?
    --- [{ at: 1s, kill: db, variants: [bar] }]
    e.yaml:26:41: faults[0].variants[0]: unknown variant `bar`
      hint: did you mean `bare`?
    --- [{ at: 10s, kill: db }]
    e.yaml:26:16: faults[0].at: the load ends after 10.0 s, before this fault
    "#);
    let by_command = "experiment: e\nload: { command: [wrk] }\nfaults: [{ at: 1s, kill: db }]\n";
    assert_snapshot!(super::errors(by_command), @r"
    e.yaml:3:1: faults: faults need a load of `scenarios`: Narrows cannot follow another program's load second by second
    e.yaml:3:26: faults[0].kill: unknown replica `db`
    ");
}

#[test]
fn a_setting_of_a_server_is_one_line() {
    for server in ["galera", "mariadb", "nats", "postgres", "redis"] {
        let reported = errors(&format!("{server}: {{ settings: {{ a: \"1\\nb = 2\" }} }}"));
        let expected = format!("web.{server}.settings.a: expected one line, found a line break or another control");
        assert!(reported.contains(&expected), "{reported}");
    }
}
