//! What becomes of files that are right: variants, replicas, services, load.

use std::time::Duration;

use insta::assert_snapshot;
use narrows_model::load::{Connections, DataValues, LoadModel, Pick, Segment, StageShape};

use super::*;

fn bindings(ports: &[(&str, u32, u16)]) -> Bindings {
    Bindings {
        ports: ports.iter().map(|(name, replica, port)| ((*name).to_owned(), *replica, *port)).collect(),
        otlp_endpoint: "http://127.0.0.1:4318".into(),
        trial_dir: "/tmp/trial".into(),
        seed: 7,
        time_scale: 0.5,
    }
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
    let expected = [("db", 0, Some(5432)), ("orders", 0, None), ("orders", 1, None)];
    assert_eq!(replicas, expected.map(|(name, replica, port)| (name.to_owned(), replica, port)));
}

#[test]
fn services_are_bound() {
    let trial = bound(0);
    assert_eq!(trial.services.len(), 3);
    assert_eq!(trial.services[0].ready, Ready::Tcp);
    assert_eq!(trial.services[0].ready_timeout, Duration::from_secs(30));
    assert_snapshot!(format!("{:#?}", trial.services[2]).replace(LAB, "/lab"), @r#"
    BoundService {
        name: "orders",
        replica: 1,
        port: 9002,
        command: [
            "/lab/src/.venv/bin/uvicorn",
            "orders:app",
            "--port",
            "9002",
            "--db",
            "127.0.0.1:5432",
        ],
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
        ready: Http {
            method: "GET",
            path: "/health",
        },
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
    assert_eq!((web.command[0].as_str(), web.cwd.to_str().unwrap()), (&*format!("{LAB}/bin/web"), LAB));
    let web = trial(&source.replace("run:", "cwd: ./src/..\n      run:")).services.remove(0);
    assert_eq!(web.command[0], format!("{LAB}/src/../bin/web"));
}

#[test]
fn the_load_is_bound_and_only_its_lengths_are_scaled() {
    let load = bound(0).load;
    assert_eq!(load.targets.iter().map(|t| t.port()).collect::<Vec<_>>(), [9001, 9002]);
    assert_eq!((load.threads, load.connections, load.seed), (1, Connections::PerRequest, 7));
    assert_eq!(load.tracing.unwrap().sample, 0.1);
    assert_eq!((load.timeout, load.drain), (Duration::from_secs(30), Duration::from_secs(30)));
    let [list, create, climb, exact] = &load.scenarios[..] else { panic!("expected four scenarios") };
    assert_eq!(list.model, LoadModel::ConstantVus { vus: 8, duration: Duration::from_secs(10) });
    assert_eq!((list.warmup, list.think_time), (Duration::from_millis(2500), Duration::from_millis(10)));
    assert_eq!(list.pace, Some(Duration::from_millis(100)));
    assert_eq!(
        list.request.path.segments,
        [Segment::Text("/orders?limit=".into()), Segment::Field { source: 0, column: 0 }]
    );
    assert_eq!(list.request.host, "127.0.0.1:9001");
    assert_snapshot!(format!("{:#?}", create.request), @r#"
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
    assert_eq!(exact.request.body.as_ref().unwrap().segments, [Segment::Text("seed {{7}}".into())]);
    assert_eq!(exact.request.method, "GET");
    let DataValues::Rows { rows, pick: Pick::Sequential, .. } = &load.data[1].values else { panic!("{:?}", load.data) };
    assert_eq!(rows.concat(), ["a", "b", "3"]);
}

#[test]
fn a_url_is_left_to_be_resolved() {
    let source = with("target: web", "target: http://10.0.0.1:8080/");
    let experiment = parsed(&source).unwrap();
    let trial = experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap();
    assert!(trial.load.targets.is_empty());
    assert_eq!(trial.load.scenarios[0].request.host, "10.0.0.1:8080");
    assert!(trial.load.threads >= 1);
}

#[test]
fn a_replica_without_a_port_is_told() {
    let experiment = parsed(WHOLE).unwrap();
    let mistakes = experiment.bind(&experiment.variants[0], &bindings(&[("db", 0, 1), ("orders", 0, 2)])).unwrap_err();
    assert_eq!(mistakes[0].to_string(), "e.yaml:2:1: system.services: replica 1 of `orders` was handed no port");
}

#[test]
fn csv_columns_are_found_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("users.csv"), "id,full name\n1,Ada\n2,Bob\n").unwrap();
    let file = dir.path().join("experiment.yaml");
    let request = "request: GET /{{user.full name}}/{{user.id}}\n  data: { user: { csv: users.csv } }";
    std::fs::write(&file, with("request: GET /", request)).unwrap();
    let experiment = read(&file).unwrap();
    let trial = experiment.bind(&experiment.variants[0], &bindings(&[("web", 0, 1)])).unwrap();
    let fields = trial.load.scenarios[0].request.path.segments.iter().filter_map(|segment| match segment {
        Segment::Field { source, column } => Some((*source, *column)),
        Segment::Text(_) => None,
    });
    assert_eq!(fields.collect::<Vec<_>>(), [(0, 1), (0, 0)]);
    std::fs::write(&file, with("request: GET /", &request.replace(".full name", "").replace(".id", ".ids"))).unwrap();
    let messages = read(&file).unwrap_err().to_string().replace(&*dir.path().to_string_lossy(), "DIR");
    assert_snapshot!(messages, @"
    DIR/experiment.yaml:14:16: load.scenarios.main.request: `{{user}}` has several columns: `id`, `full name`
    DIR/experiment.yaml:14:16: load.scenarios.main.request: unknown column of `user`: `ids`
    ");
}

#[test]
fn the_template_is_an_experiment() {
    assert_eq!(told(template()), "");
}

#[test]
fn the_reference_begins_with_an_experiment() {
    let reference = include_str!("../../../../../docs/reference/experiment.md");
    let example = reference.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(told(example), "");
}

#[test]
fn objectives_are_read_without_the_rest() {
    let objectives = objectives("load: broken\nobjectives: [p95 < 1s, nonsense, {}]\n");
    assert_eq!(objectives.len(), 1);
    assert_eq!(super::objectives("[").len(), 0);
}
