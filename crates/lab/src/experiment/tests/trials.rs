//! Trials of files without errors: variants, replicas, services, load.

use std::time::Duration;

use insta::assert_snapshot;
use narrows_model::load::{
    Arrivals, Check, Connections, Cookies, DataValues, Iterations, LoadModel, LoadPlan, Pick, Place, Protocol,
    RequestTemplate, Retry, Scenario, Segment, StageShape, Trust,
};

use super::*;

fn allotted(service: &str, replica: u32, port: u16, further: &[u16]) -> ReplicaPorts {
    let (service, host) = (service.to_owned(), Host::loopback());
    ReplicaPorts { service, replica, host, port, further: further.to_vec() }
}

/// The command of a service with `run`.
fn command(service: &BoundService) -> &[String] {
    match &service.start {
        Start::Run { command, .. } => command,
        start => panic!("{start:?}"),
    }
}

fn bindings(ports: &[(&str, u32, u16)]) -> Bindings {
    Bindings {
        ports: ports.iter().map(|(name, replica, port)| allotted(name, *replica, *port, &[])).collect(),
        otlp_endpoint: "http://127.0.0.1:4318".into(),
        trial_dir: "/tmp/trial".into(),
        seed: 7,
        time_scale: 0.5,
    }
}

/// The plan of a trial whose load Narrows makes.
fn plan(trial: BoundTrial) -> LoadPlan {
    match trial.load {
        BoundLoad::Plan(plan) => plan,
        BoundLoad::Command(command) => panic!("{command:?}"),
    }
}

/// The plan of a small file with one line changed.
fn plan_with(line: &str, replacement: &str) -> LoadPlan {
    let source = with(line, replacement);
    assert_eq!(errors(&source), "", "{source}");
    let experiment = parsed(&source).unwrap();
    plan(experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 9001)])).unwrap())
}

fn only_request(scenario: &Scenario) -> &RequestTemplate {
    assert_eq!((scenario.flows.len(), scenario.flows[0].steps.len()), (1, 1));
    &scenario.flows[0].steps[0].request
}

fn bound(variant: usize) -> BoundTrial {
    let experiment = parsed(WHOLE).unwrap();
    let ports = [("db", 0, 5432), ("orders", 0, 9001), ("orders", 1, 9002)];
    experiment.bind(&experiment.variants[variant], &bindings(&ports)).unwrap()
}

#[test]
fn variants_inherit_parameters() {
    let experiment = parsed(WHOLE).unwrap();
    let shown: Vec<String> = experiment.variants.iter().map(|v| format!("{}: {:?}", v.name, v.parameters)).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    as-is: {"cap": "0.25", "eager": "0", "path": "/orders?limit={{limit}}", "vus": "8"}
    fixed: {"cap": "0.25", "eager": "1", "path": "/orders?limit={{limit}}", "vus": "8"}
    wide: {"cap": "2", "eager": "1", "path": "/orders?limit={{limit}}", "vus": "16"}
    "#);
    let single = parsed(&with("vus: 1", "vus: 1")).unwrap();
    assert_eq!(single.variants[0].name, "baseline");
    assert_eq!((experiment.seed, single.seed), (7, 1));
}

#[test]
fn replicas_come_in_the_order_they_are_started() {
    let experiment = parsed(WHOLE).unwrap();
    let replicas = experiment.replicas(&experiment.variants[0]).unwrap();
    let shown: Vec<_> = replicas.iter().map(|one| (&*one.service, one.replica, one.port, one.further)).collect();
    assert_eq!(shown, [("db", 0, Some(5432), 0), ("orders", 0, None, 0), ("orders", 1, None, 0)]);
}

#[test]
fn services_are_bound() {
    let trial = bound(0);
    assert_eq!(trial.services.len(), 3);
    assert!(matches!(&trial.services[0].start, Start::Run { ready: Ready::Tcp, .. }));
    assert_eq!(trial.services[0].ready_timeout, Duration::from_secs(30));
    assert_snapshot!(format!("{:#?}", trial.services[2]).replace(LAB, "/lab"), @r#"
    BoundService {
        name: "orders",
        replica: 1,
        port: 9002,
        start: Run {
            command: [
                "/lab/src/.venv/bin/uvicorn",
                "orders:app",
                "--port",
                "9002",
                "--db",
                "127.0.0.1:5432",
            ],
            ready: Http {
                method: "GET",
                path: "/health",
            },
        },
        cwd: "/lab/src",
        env: [
            (
                "EAGER",
                "0",
            ),
            (
                "PRICE",
                "$5",
            ),
            (
                "WHO",
                "1@/tmp/trial",
            ),
            (
                "OTLP",
                "http://127.0.0.1:4318",
            ),
            (
                "N",
                "3",
            ),
        ],
        setup: [
            [
                "python3",
                "-m",
                "venv",
                ".venv",
            ],
            [
                "/lab/src/.venv/bin/pip",
                "install",
                "-r",
                "requirements.txt",
            ],
        ],
        setup_timeout: 600s,
        ready_timeout: 60s,
        cpus: Some(
            0.25,
        ),
        memory_bytes: Some(
            268435456,
        ),
        stop_signal: "Signal::INT",
        stop_timeout: 10s,
        restart: Never,
        image: None,
        sidecar: None,
        stand_in_ports: [],
    }
    "#);
    assert_eq!(bound(2).services[1].cpus, Some(2.0));
}

#[test]
fn paths_have_no_dots_that_mean_nothing() {
    let source = with("run: [web,", "run: [./bin/web,");
    let trial = |source: &str| {
        let experiment = parsed(source).unwrap();
        experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap()
    };
    let web = trial(&source).services.remove(0);
    assert_eq!((command(&web)[0].as_str(), web.cwd.to_str().unwrap()), (&*format!("{LAB}/bin/web"), LAB));
    let web = trial(&source.replace("run:", "cwd: ./src/..\n      run:")).services.remove(0);
    assert_eq!(command(&web)[0], format!("{LAB}/src/../bin/web"));
}

#[test]
fn the_load_is_bound_and_only_its_lengths_are_scaled() {
    let load = plan(bound(0));
    assert_eq!(load.targets.iter().map(|t| t.port()).collect::<Vec<_>>(), [9001, 9002]);
    assert_eq!((load.threads, load.connections, load.seed), (1, Connections::PerRequest, 7));
    assert_eq!(load.tracing.unwrap().sample, 0.1);
    assert_eq!((load.timeout, load.drain), (Duration::from_secs(30), Duration::from_secs(30)));
    assert_eq!(load.retry, Retry::Idempotent);
    let [list, create, climb, exact, _, mixed] = &load.scenarios[..] else { panic!("expected six scenarios") };
    assert_eq!(list.model, LoadModel::ConstantVus { vus: 8, duration: Duration::from_secs(10) });
    assert_eq!((list.warmup, list.think_time), (Duration::from_millis(2500), Duration::from_millis(10).into()));
    assert_eq!(list.pace, Some(Duration::from_millis(100)));
    assert_eq!(
        only_request(list).path.segments,
        [Segment::Text("/orders?limit=".into()), Segment::Field { source: 0, column: 0 }]
    );
    assert_eq!(only_request(list).host, "127.0.0.1:9001");
    assert_snapshot!(format!("{:#?}", only_request(create)), @r#"
    RequestTemplate {
        method: "POST",
        path: Template {
            segments: [
                Text(
                    "/orders",
                ),
            ],
        },
        headers: [
            (
                "X-Peers",
                Template {
                    segments: [
                        Text(
                            "http://127.0.0.1:9001,http://127.0.0.1:9002",
                        ),
                    ],
                },
            ),
            (
                "Content-Type",
                Template {
                    segments: [
                        Text(
                            "application/json",
                        ),
                    ],
                },
            ),
        ],
        body: Some(
            Template {
                segments: [
                    Text(
                        "{\"owner\":\"",
                    ),
                    Field {
                        source: 1,
                        column: 0,
                    },
                    Text(
                        "\",\"n\":3,\"tags\":[\"a\",true,null,1.5]}",
                    ),
                ],
            },
        ),
        host: "127.0.0.1:9001",
    }
    "#);
    let LoadModel::RampingVus { start_vus: 1, stages } = &climb.model else { panic!("{:?}", climb.model) };
    assert_eq!(stages.iter().map(|stage| stage.target).collect::<Vec<_>>(), [1, 5, 9, 10]);
    assert!(stages.iter().all(|s| s.duration == Duration::from_secs(5) && s.shape == StageShape::Step));
    assert_eq!(only_request(exact).body.as_ref().unwrap().segments, [Segment::Text("seed {{7}}".into())]);
    assert_eq!(only_request(exact).method, "GET");
    assert_eq!(mixed.cookies, Cookies::PerUser);
    let DataValues::Rows { rows, pick: Pick::Sequential, .. } = &load.data[1].values else { panic!("{:?}", load.data) };
    assert_eq!(rows.concat(), ["a", "b", "3"]);
}

#[test]
fn responses_are_waited_for_as_long_as_the_timeout_says_unless_drain_is_given() {
    let cases = [
        ("timeout: 60s", (60, 60, Retry::Idempotent)),
        ("timeout: 60s\n  drain: 5s", (60, 5, Retry::Idempotent)),
        ("timeout: 20s\n  drain: 40s\n  retry: never", (20, 40, Retry::Never)),
    ];
    for (keys, expected) in cases {
        let load = plan_with("target: web", &format!("target: web\n  {keys}"));
        assert_eq!((load.timeout.as_secs(), load.drain.as_secs(), load.retry), expected, "{keys}");
    }
}

#[test]
fn a_url_is_left_to_be_resolved() {
    let source = with("target: web", "target: http://10.0.0.1:8080/");
    let experiment = parsed(&source).unwrap();
    let trial = experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap();
    let load = plan(trial);
    assert!(load.targets.is_empty());
    assert_eq!(only_request(&load.scenarios[0]).host, "10.0.0.1:8080");
    assert_eq!(experiment.load.authority().as_deref(), Some("10.0.0.1:8080"));
    assert!(load.threads >= 1);
    assert_eq!(parsed(WHOLE).unwrap().load.authority(), None);
}

#[test]
fn a_replica_without_a_port_is_reported() {
    let experiment = parsed(WHOLE).unwrap();
    let errors = experiment.bind(&experiment.variants[0], &bindings(&[("db", 0, 1), ("orders", 0, 2)])).unwrap_err();
    assert_eq!(errors[0].to_string(), "e.yaml:2:1: system.services: replica 1 of `orders` was assigned too few ports");
}

#[test]
fn csv_columns_are_found_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("users.csv"), "id,full name\n1,Ada\n2,Bob\n").unwrap();
    let file = dir.path().join("experiment.yaml");
    let request = "request: GET /{{user.full name}}/{{user.id}}\n  data: { user: { csv: users.csv } }";
    std::fs::write(&file, with("request: GET /", request)).unwrap();
    let experiment = crate::language().read(&file).unwrap();
    let trial = experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap();
    let load = plan(trial);
    let fields = only_request(&load.scenarios[0]).path.segments.iter().filter_map(|segment| match segment {
        Segment::Field { source, column } => Some((*source, *column)),
        Segment::Text(_) | Segment::Variable(_) => None,
    });
    assert_eq!(fields.collect::<Vec<_>>(), [(0, 1), (0, 0)]);
    std::fs::write(&file, with("request: GET /", &request.replace(".full name", "").replace(".id", ".ids"))).unwrap();
    let messages =
        crate::language().read(&file).unwrap_err().to_string().replace(&*dir.path().to_string_lossy(), "DIR");
    assert_snapshot!(messages, @"
    DIR/experiment.yaml:14:16: load.scenarios.main.request: `{{user}}` has several columns: `id`, `full name`
    DIR/experiment.yaml:14:16: load.scenarios.main.request: unknown column of `user`: `ids`
    ");
}

const MODEL: &str = "model: constant-vus\n      vus: 1\n      duration: 1s";

#[test]
fn every_model_is_bound() {
    let model = |text: &str| plan_with(MODEL, text).scenarios.remove(0).model;
    let second = Duration::from_secs(1);
    assert_eq!(
        model("model: per-vu-iterations\n      vus: 3\n      iterations: 20\n      max_duration: 2s"),
        LoadModel::Iterations { vus: 3, iterations: Iterations::PerVu(20), max_duration: Some(2 * second) }
    );
    assert_eq!(
        model("model: constant-arrival-rate\n      rate: 30/min\n      duration: 2s"),
        LoadModel::ConstantArrivalRate { rate: 0.5, duration: second, vus_max: 1000, arrivals: Arrivals::Uniform }
    );
    let bursts =
        model("model: constant-arrival-rate\n      rate: 500/s\n      duration: 2s\n      arrivals: bursts of 82");
    assert!(matches!(bursts, LoadModel::ConstantArrivalRate { arrivals: Arrivals::Bursts(82), .. }), "{bursts:?}");
    let ticks =
        model("model: constant-arrival-rate\n      rate: 500/s\n      duration: 2s\n      arrivals: bursts every 8ms");
    assert!(
        matches!(ticks, LoadModel::ConstantArrivalRate { arrivals: Arrivals::BurstsEvery(8_000_000), .. }),
        "{ticks:?}"
    );
    let ramp = "model: ramping-arrival-rate\n      max_vus: 7\n      arrivals: poisson\n      ";
    let shown = |model| match model {
        LoadModel::RampingArrivalRate { start_rate, stages, vus_max: 7, arrivals: Arrivals::Poisson } => {
            let stages = stages.iter().map(|stage| (stage.duration, stage.target, stage.shape)).collect::<Vec<_>>();
            (start_rate, stages)
        }
        other => panic!("{other:?}"),
    };
    let stages = format!("{ramp}stages: [{{ duration: 2s, target: 10/s }}, {{ duration: 2s, target: 0 }}]");
    assert_eq!(shown(model(&stages)), (0.0, [10.0, 0.0].map(|t| (second, t, StageShape::Linear)).to_vec()));
    for key in ["steps", "levels"] {
        let levels = format!("{ramp}{key}: {{ from: 0.1, add: 0.1, every: 2s, to: 0.3 }}");
        let (start, levels) = shown(model(&levels));
        assert_eq!((start, levels.len()), (0.1, 3));
        assert_eq!(levels[2], (second, 0.3, StageShape::Step));
    }
    let levels = model("model: ramping-vus\n      levels: { from: 2, add: 2, every: 2s, to: 5 }");
    let LoadModel::RampingVus { start_vus: 2, stages } = levels else { panic!("{levels:?}") };
    assert_eq!(stages.iter().map(|stage| stage.target).collect::<Vec<_>>(), [2, 4, 5]);
}

#[test]
fn a_session_is_bound() {
    let steps = r#"steps:
        - name: login
          request: { method: POST, path: /login, json: { user: "{{user}}" } }
          check: { status: [200, 3xx], header: { Location: , X-Kind: "${n}" } }
          extract: { token: { json: /token }, id: { header: Location } }
          redirects: 2
        - name: list
          request: { path: "/orders/{{id}}", headers: { Authorization: "Bearer {{token}}" } }
          check: [{ json: { /items/0/id: 7, /total: , "": {} } }, { body_contains: items }]
          think_time: 2s
          extract: { csrf: { regex: 'csrf" value="([^"]+)"$' } }
  data: { user: { values: [a, b], pick: once } }"#;
    let load = plan_with("request: GET /", steps);
    let scenario = &load.scenarios[0];
    assert_eq!(scenario.cookies, Cookies::PerIteration);
    let [login, list] = &scenario.flows[0].steps[..] else { panic!("{scenario:?}") };
    assert_eq!((login.name.as_str(), login.redirects_max, login.think_time), ("login", 2, None));
    assert_eq!((list.name.as_str(), list.redirects_max), ("list", 0));
    assert_eq!(list.think_time, Some(Duration::from_secs(2).into()));
    let header = |name: &str, value: Option<&str>| Check::Header { name: name.into(), value: value.map(str::to_owned) };
    assert_eq!(
        login.checks,
        [Check::Status(vec![(200, 200), (300, 399)]), header("Location", None), header("X-Kind", Some("1"))]
    );
    let json = |pointer: &str, value| Check::Json { pointer: pointer.into(), value };
    let seven = json("/items/0/id", Some(serde_json::json!(7)));
    let all = json("", Some(serde_json::json!({})));
    assert_eq!(list.checks, [seven, json("/total", None), all, Check::BodyContains("items".into())]);
    let extracted: Vec<_> =
        login.extract.iter().chain(&list.extract).map(|e| (e.variable, &*e.name, &e.from)).collect();
    let (token, id) = (Place::Json("/token".into()), Place::Header("Location".into()));
    let csrf = Place::Regex(r#"csrf" value="([^"]+)"$"#.into());
    assert_eq!(extracted, [(0, "token", &token), (1, "id", &id), (2, "csrf", &csrf)]);
    assert_eq!(list.request.path.segments[1], Segment::Variable(1));
    assert_eq!(list.request.headers[0].1.segments[1], Segment::Variable(0));
    assert_eq!(login.request.body.as_ref().unwrap().segments[1], Segment::Field { source: 0, column: 0 });
    let DataValues::Rows { pick: Pick::Once, .. } = &load.data[0].values else { panic!("{:?}", load.data) };
}

#[test]
fn a_mix_is_bound_and_a_single_request_has_checks_beside_it() {
    let mix = "cookies: none\n      mix:\n        browse: { weight: 3, request: GET /, check: { status: 2xx }, redirects: 1 }\n        \
               buy: { steps: [{ name: cart, request: GET /cart }, { name: pay, request: POST /pay }] }";
    let load = plan_with("request: GET /", mix);
    let [browse, buy] = &load.scenarios[0].flows[..] else { panic!("{load:?}") };
    assert_eq!((browse.name.as_str(), browse.weight, buy.name.as_str(), buy.weight), ("browse", 3.0, "buy", 1.0));
    assert_eq!((browse.steps[0].name.as_str(), browse.steps[0].redirects_max), ("", 1));
    assert_eq!(browse.steps[0].checks, [Check::Status(vec![(200, 299)])]);
    assert_eq!(buy.steps[1].name, "pay");
    assert_eq!(load.scenarios[0].cookies, Cookies::Ignored);
    let single =
        plan_with("request: GET /", "request: GET /\n      check: { body_contains: ok }\n      think_time: 1s");
    let scenario = &single.scenarios[0];
    assert_eq!((scenario.cookies, scenario.think_time), (Cookies::Ignored, Duration::from_secs(1).into()));
    assert_eq!(scenario.flows[0].steps[0].checks, [Check::BodyContains("ok".into())]);
    assert_eq!((scenario.flows[0].weight, scenario.flows[0].steps[0].think_time), (1.0, None));
}

#[test]
fn targets_say_how_they_are_reached() {
    let plain = plan_with("target: web", "target: web\n  protocol: http2");
    assert_eq!((plain.tls, plain.protocol), (None, Protocol::Http2));
    let of = |text: &str| plan_with("target: web", text).tls.map(|tls| (tls.server_name, tls.trust));
    assert_eq!(of("target: https://shop.example:8443"), Some(("shop.example".into(), Trust::System)));
    assert_eq!(of("target: https://[::1]\n  tls: { insecure: true }"), Some(("::1".into(), Trust::Anything)));
    assert_eq!(
        of("target: web\n  tls: { insecure: false, server_name: web.test }"),
        Some(("web.test".into(), Trust::System))
    );
    let experiment = parsed(&with("target: web", "target: https://shop.example")).unwrap();
    assert_eq!(experiment.load.authority().as_deref(), Some("shop.example:443"));
    let list = "target: web\n  client_addresses: [127.0.0.2, 127.0.0.10-127.0.0.12, 127.1.0.0/30]";
    let addresses: Vec<String> =
        plan_with("target: web", list).client_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(
        addresses.join(" "),
        "127.0.0.2 127.0.0.10 127.0.0.11 127.0.0.12 127.1.0.0 127.1.0.1 127.1.0.2 127.1.0.3"
    );
}

#[test]
fn authorities_and_json_rows_are_read_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("experiment.yaml");
    let target = "target: web\n  tls: { ca: ca.pem }\n  data: { user: { json: users.json } }";
    let source = with("target: web", target).replace("GET /", "GET /{{user.id}}");
    std::fs::write(&file, source).unwrap();
    std::fs::write(dir.path().join("ca.pem"), "hello").unwrap();
    std::fs::write(dir.path().join("users.json"), r#"[{"id":7}"#).unwrap();
    let messages =
        crate::language().read(&file).unwrap_err().to_string().replace(&*dir.path().to_string_lossy(), "DIR");
    assert_snapshot!(messages, @r#"
    DIR/experiment.yaml:9:14: load.tls.ca: DIR/ca.pem has no certificate, expected PEM with at least one
    DIR/experiment.yaml:10:25: load.data.user.json: data file DIR/users.json, line 1: EOF while parsing a list
    "#);
    let pem = "-----BEGIN CERTIFICATE-----\n";
    std::fs::write(dir.path().join("ca.pem"), pem).unwrap();
    std::fs::write(dir.path().join("users.json"), r#"[{"name":"a","id":7}]"#).unwrap();
    let experiment = crate::language().read(&file).unwrap();
    let load = plan(experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap());
    assert_eq!(load.tls.unwrap().trust, Trust::Authorities(pem.into()));
    assert_eq!(only_request(&load.scenarios[0]).path.segments[1], Segment::Field { source: 0, column: 1 });
}

#[test]
fn a_command_makes_the_load_instead() {
    let source = with("n: 1", "n: 1");
    let load = source.find("load:").unwrap();
    let bound = |text: &str| {
        let source = format!("{}load:\n{text}", &source[..load]);
        assert_eq!(errors(&source), "", "{source}");
        let experiment = parsed(&source).unwrap();
        match experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 9001)])).unwrap().load {
            BoundLoad::Command(command) => command,
            BoundLoad::Plan(plan) => panic!("{plan:?}"),
        }
    };
    let command =
        bound("  command: [k6, run, script.js, -e, \"URL=${web.url}\"]\n  env: { N: \"${n}\" }\n  duration: 1m\n");
    assert_eq!(command.command, ["k6", "run", "script.js", "-e", "URL=http://127.0.0.1:9001"]);
    assert_eq!((command.results, command.limit), (Results::K6Summary, Some(Duration::from_secs(60))));
    assert_eq!((command.env, command.cwd), (vec![("N".into(), "1".into())], PathBuf::from(LAB)));
    let command = bound("  target: web\n  command: [./wrk]\n  cwd: tools\n");
    assert_eq!(command.command, [format!("{LAB}/tools/wrk")]);
    assert_eq!((command.results, command.limit), (Results::TraceRoots, None));
    let command = bound("  command: [/opt/k6]\n  results: trace-roots\n");
    assert_eq!(command.results, Results::TraceRoots);
}

#[test]
fn the_template_is_an_experiment() {
    assert_eq!(errors(template()), "");
}

#[test]
fn the_reference_begins_with_an_experiment() {
    let reference = include_str!("../../../../../docs/reference/experiment.md");
    let example = reference.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(errors(example), "");
}

#[test]
fn the_whole_examples_of_the_reference_are_experiments() {
    let reference = include_str!("../../../../../docs/reference/experiment.md");
    let examples = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = examples.filter(|example| example.starts_with("experiment:")).collect();
    assert!(whole.len() > 1);
    whole.into_iter().for_each(|example| assert_eq!(errors(example), "", "{example}"));
}

#[test]
fn objectives_are_read_without_the_rest() {
    let RecordedExperiment { objectives, .. } = RecordedExperiment::read(
        "load: broken\nobjectives: [p95 < 1s, nonsense, {}, { objective: rate > 1, scenario: a, request: b, abort: true }, \"a: p50 < 1s\"]\n",
    );
    let shown: Vec<_> = objectives.iter().map(|o| (o.text.as_str(), o.abort)).collect();
    assert_eq!(shown, [("p95 < 1s", Abort::Never), ("a/b: rate > 1", Abort::WhenLost), ("a: p50 < 1s", Abort::Never)]);
    assert_eq!(RecordedExperiment::read("[").objectives.len(), 0);
}

#[test]
fn the_parameters_of_requests_are_those_that_they_are_written_with() {
    let read = |load: &str| {
        let names = RecordedExperiment::read(&format!("load: {load}\n")).request_parameters;
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    let scenario =
        |inside: &str| format!("{{ target: \"${{front}}\", scenarios: {{ a: {{ vus: \"${{users}}\", {inside} }} }} }}");
    assert_eq!(read(&scenario("request: \"GET /a?n=${n}&m=${m}&k={{key}}\"")), "m n");
    assert_eq!(
        read(&scenario("mix: { x: { weight: \"${w}\", request: { path: /a, body: \"$${no} ${yes}\" } } }")),
        "yes"
    );
    assert_eq!(read(&scenario("flow: [{ request: \"GET /${first}\" }, { request: GET /b }]")), "first");
    assert_eq!(read("broken"), "");
}

#[test]
fn services_elsewhere_are_reached_at_their_addresses() {
    let source = with(
        "run: [web, --port, \"${port}\"]",
        "address: [web-1.internal:80, \"[fd00::7]:81\"]\n      token: not-shown\n    near:\n      run: [near, \"${web.urls}\", \"${web.host}:${web.port}\"]",
    );
    assert_eq!(errors(&source), "");
    let experiment = parsed(&source).unwrap();
    let variant = &experiment.variants[0];
    let replicas = experiment.replicas(variant).unwrap();
    let places: Vec<_> = replicas.iter().map(|one| one.elsewhere.as_ref().map(ToString::to_string)).collect();
    assert_eq!(places, [Some("web-1.internal:80".to_owned()), Some("[fd00::7]:81".to_owned()), None]);
    let mut bindings = bindings(&[("web", 0, 80), ("web", 1, 81), ("near", 0, 9001)]);
    bindings.ports[0].host = Host { name: "web-1.internal".into(), address: [10, 0, 0, 7].into() };
    bindings.ports[1].host = Host { name: "fd00::7".into(), address: "fd00::7".parse().unwrap() };
    let trial = experiment.bind(variant, &bindings).unwrap();
    assert_eq!(command(&trial.services[2])[1..], ["http://web-1.internal:80,http://[fd00::7]:81", "web-1.internal:80"]);
    assert!(matches!(&trial.services[0].start, Start::Elsewhere { token: Some(_), ready: Ready::Tcp, .. }));
    let plan = plan(trial);
    assert_eq!(plan.targets, ["10.0.0.7:80".parse().unwrap(), "[fd00::7]:81".parse().unwrap()]);
    assert_eq!(only_request(&plan.scenarios[0]).host, "web-1.internal:80");
    assert!(!experiment.redacted_source().contains("not-shown"));
}

#[test]
fn telemetry_is_listened_for_where_the_file_says() {
    let source = with(
        "load:",
        "telemetry: { listen: \"127.0.0.2:4318\", token: not-shown, metrics: [\"web=http://a:1/m\"] }\nload:",
    );
    let experiment = parsed(&source).unwrap();
    let listen = experiment.telemetry.listen().unwrap().unwrap();
    assert_eq!((listen.address().to_string().as_str(), listen.token().is_some()), ("127.0.0.2:4318", true));
    assert_eq!(
        (experiment.telemetry.settle, &*experiment.telemetry.pages[0].service),
        (Duration::from_millis(5500), "web")
    );
    assert!(!experiment.redacted_source().contains("not-shown"));
    let faulty = "telemetry: { listen: here, metrics: [\"ftp://a\"], settle: 1 }\nload:";
    assert_snapshot!(errors(&with("load:", faulty)), @r#"
    e.yaml:7:22: telemetry.listen: expected an address and a port such as `0.0.0.0:4318`, found "here"
    e.yaml:7:38: telemetry.metrics[0]: cannot read metrics there: `ftp://a` is not a URL, expected such as http://127.0.0.1:9100/metrics
    e.yaml:7:58: telemetry.settle: expected a length of time such as `30s` or `1m30s`, found 1
      hint: add a unit: `1s`, `1ms`
    "#);
    assert_snapshot!(errors(&with("load:", "telemetry: { token: not-shown }\nload:")), @"
    e.yaml:7:14: telemetry: `token` is allowed only with `listen`
    ");
}
