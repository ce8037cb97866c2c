//! Open models, iterations and flows against a real server on loopback: what is due begins or is counted as dropped, and
//! latency counts from the moment at which an iteration was due.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::server::{ReceivedRequest, Reply, Server, ok};
use narrows_load::{Clock, LoadOutcome, run};
use narrows_model::load::{
    Arrivals, Connections, Cookies, DataSource, DataValues, Flow, Iterations, LoadBatch, LoadModel, LoadPlan,
    LoadSecond, Pick, Protocol, RequestTemplate, Retry, Sample, Scenario, Segment, Step, Template, ThinkTime,
};

const MS: i64 = 1_000_000;

struct LoadRun {
    outcome: LoadOutcome,
    seconds: Vec<LoadSecond>,
    samples: Vec<Sample>,
}

fn request(path: &str) -> RequestTemplate {
    RequestTemplate {
        method: "GET".into(),
        path: Template::text(path),
        headers: Vec::new(),
        body: None,
        host: "test".into(),
    }
}

fn step(name: &str) -> Step {
    Step { name: name.into(), ..Step::new(request(&format!("/{name}"))) }
}

fn plan(server: &Server, model: LoadModel) -> LoadPlan {
    let scenario = Scenario {
        name: "a".into(),
        model,
        warmup: Duration::ZERO,
        flows: vec![Flow::single(request("/"))],
        cookies: Cookies::Ignored,
        think_time: ThinkTime::default(),
        pace: None,
    };
    LoadPlan {
        targets: vec![server.address],
        client_addresses: Vec::new(),
        protocol: Protocol::Http1,
        tls: None,
        scenarios: vec![scenario],
        data: Vec::new(),
        tracing: None,
        timeout: Duration::from_secs(20),
        drain: Duration::from_secs(20),
        retry: Retry::Idempotent,
        seed: 1,
        threads: 1,
        connections: Connections::KeepAlive,
    }
}

fn arriving(rate: f64, ms: u64, vus_max: u32, arrivals: Arrivals) -> LoadModel {
    LoadModel::ConstantArrivalRate { rate, duration: Duration::from_millis(ms), vus_max, arrivals }
}

/// Runs a plan and checks what holds for every load with one request per iteration.
fn run_single(plan: &LoadPlan) -> LoadRun {
    let ran = run_any(plan);
    let totals = &ran.outcome.totals;
    let begun = totals.succeeded + totals.errors.total();
    assert_eq!(totals.due, begun + totals.dropped, "nothing vanishes");
    assert!(totals.late <= totals.due);
    ran
}

fn run_any(plan: &LoadPlan) -> LoadRun {
    let (out, batches) = sync_channel::<LoadBatch>(1);
    let ran = std::thread::scope(|scope| {
        let reader = scope.spawn(move || batches.into_iter().collect::<Vec<_>>());
        let outcome = run(plan, Clock::new(), &AtomicBool::new(false), &out).unwrap();
        drop(out);
        let batches = reader.join().unwrap();
        let seconds = batches.iter().flat_map(|batch| batch.seconds.clone()).collect();
        let samples = batches.into_iter().flat_map(|batch| batch.samples).collect();
        LoadRun { outcome, seconds, samples }
    });
    let sum = |of: fn(&LoadSecond) -> u64| ran.seconds.iter().map(of).sum::<u64>();
    let totals = &ran.outcome.totals;
    assert_eq!((sum(|s| s.due), sum(|s| s.late), sum(|s| s.dropped)), (totals.due, totals.late, totals.dropped));
    ran
}

#[test]
fn exactly_what_was_planned_is_due_each_in_its_own_second() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(40.0, 1_500, 30, Arrivals::Uniform));
    plan.threads = 3;
    let ran = run_single(&plan);
    let due: Vec<u64> = ran.seconds.iter().map(|second| second.due).collect();
    assert_eq!(due[..2], [40, 20]);
    let start_ns = ran.outcome.started_ns;
    for sample in &ran.samples {
        let since_ns = sample.intended_ns - start_ns;
        assert_eq!((since_ns - 12_500_000) % (25 * MS), 0, "even arrivals, half an interval after the start");
    }
    let arrivals = ran.outcome.arrivals.unwrap();
    assert_eq!((arrivals.due, arrivals.seconds, arrivals.offered()), (60, 1.5, 40.0));
    assert_eq!(ran.outcome.client_addresses, 1);
}

#[test]
fn the_warm_up_comes_on_top_of_the_arrivals() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(200.0, 100, 20, Arrivals::Uniform));
    plan.scenarios[0].warmup = Duration::from_millis(52);
    let outcome = run_single(&plan).outcome;
    assert_eq!((outcome.totals.due, outcome.counted.due), (10 + 20, 20), "the generator is judged by what counts");
}

#[test]
fn arrivals_that_find_every_user_busy_are_late_and_dropped_when_the_load_ends() {
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, arriving(30.0, 1_000, 2, Arrivals::Uniform));
    plan.drain = Duration::from_millis(10);
    let ran = run_single(&plan);
    let totals = &ran.outcome.totals;
    assert_eq!((totals.due, totals.late, totals.dropped, totals.sent), (30, 28, 28, 2));
    assert_eq!(totals.errors.timeout, 2);
    assert_eq!((ran.seconds[0].vus, server.asked().len()), (2, 2));
    let reasons = ran.outcome.validity.reasons.join("\n");
    assert!(
        !reasons.contains("max_vus") && !reasons.contains("began"),
        "users were busy because of the server: {reasons}"
    );
}

#[test]
fn what_is_given_up_when_the_time_is_over_counts_in_the_second_that_it_was_over() {
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, arriving(50.0, 1_000, 2, Arrivals::Uniform));
    plan.drain = Duration::from_millis(10);
    plan.threads = 2;
    let ran = run_any(&plan);
    let rows: Vec<(u64, u64)> = ran.seconds.iter().map(|row| (row.due, row.dropped)).collect();
    assert_eq!(rows[0], (50, 48), "{rows:?}");
    assert!(rows[1..].iter().all(|row| *row == (0, 0)), "{rows:?}");
}

#[test]
fn latency_counts_from_the_moment_at_which_an_iteration_was_due() {
    let server = Server::start(|asked| {
        if asked.position == 0 {
            std::thread::sleep(Duration::from_millis(200));
        }
        Reply::Keep(ok(""))
    });
    let ran = run_single(&plan(&server, arriving(50.0, 400, 1, Arrivals::Uniform)));
    let totals = &ran.outcome.totals;
    assert!(totals.due == 20 && totals.late >= 9, "those due while the first was in progress: {totals:?}");
    assert_eq!(ran.samples.len() as u64, totals.sent, "so few that every one is in the sample");
    for sample in ran.samples.iter().filter(|sample| sample.intended_ns > ran.outcome.started_ns + 10 * MS) {
        let stalled_ns = ran.outcome.started_ns + 210 * MS - sample.intended_ns;
        assert!(sample.sent_ns - sample.intended_ns >= stalled_ns, "{sample:?}");
    }
    let longest_ns = ran.samples.iter().map(|sample| sample.done_ns - sample.intended_ns).max().unwrap();
    assert!(totals.latency.quantile_ns(1.0) as f64 >= 0.9 * longest_ns as f64, "the histogram counts alike");
}

#[test]
fn random_arrivals_repeat_with_their_seed_and_have_their_mean() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(2_000.0, 250, 100, Arrivals::Poisson));
    plan.threads = 3;
    let due = |plan: &LoadPlan| run_single(plan).outcome.totals.due;
    let first = due(&plan);
    // 500 and four times its root.
    assert!((410..590).contains(&first), "{first}");
    assert_eq!(due(&plan), first);
    plan.seed = 2;
    assert_ne!(due(&plan), first);
}

#[test]
fn refused_connections_do_not_hold_arrivals_up() {
    let address = Server::start(|_| Reply::Silence).address;
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, arriving(500.0, 100, 3, Arrivals::Uniform));
    plan.targets = vec![address];
    let totals = run_single(&plan).outcome.totals;
    assert_eq!((totals.due, totals.errors.connect + totals.dropped, totals.sent), (50, 50, 0));
}

#[test]
fn connections_that_are_not_kept_carry_one_arrival_each() {
    let server = Server::start(|_| Reply::Close(ok("")));
    let mut plan = plan(&server, arriving(500.0, 100, 5, Arrivals::Uniform));
    plan.connections = Connections::PerRequest;
    let ran = run_single(&plan);
    assert_eq!(ran.outcome.phases.connect.count, ran.outcome.totals.succeeded);
    assert!(server.asked().iter().all(|asked| asked.position == 0));
}

#[test]
fn data_that_is_used_up_ends_an_open_load() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(500.0, 3_600_000, 4, Arrivals::Uniform));
    plan.threads = 2;
    let rows = (0..20).map(|row| vec![row.to_string()]).collect();
    plan.data = vec![DataSource {
        name: "id".into(),
        values: DataValues::Rows { columns: Vec::new(), rows, pick: Pick::Once },
    }];
    let path = &mut plan.scenarios[0].flows[0].steps[0].request.path;
    path.segments.push(Segment::Field { source: 0, column: 0 });
    let totals = run_single(&plan).outcome.totals;
    assert!(totals.succeeded == 20 && totals.dropped >= 1, "{totals:?}");
}

#[test]
fn each_user_does_its_own_iterations_and_every_one_has_all_its_steps() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan =
        plan(&server, LoadModel::Iterations { vus: 5, iterations: Iterations::PerVu(7), max_duration: None });
    plan.threads = 3;
    plan.scenarios[0].flows[0].steps = vec![step("login"), step("list")];
    plan.scenarios[0].flows[0].steps[0].think_time = Some(Duration::from_millis(3).into());
    let ran = run_any(&plan);
    assert_eq!(ran.outcome.totals.succeeded, 70);
    let mut of_connection: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for asked in server.asked() {
        of_connection.entry(asked.connection).or_default().push(asked.line);
    }
    let expected = ["GET /login HTTP/1.1", "GET /list HTTP/1.1"].repeat(7);
    assert_eq!(of_connection.into_values().collect::<Vec<_>>(), vec![expected; 5]);
    let sent: Vec<(&str, u64)> = ran.seconds[..2].iter().map(|row| (row.request.as_str(), row.sent)).collect();
    assert_eq!(sent, [("login", 35), ("list", 35)]);
}

#[test]
fn shared_iterations_that_have_begun_are_walked_to_their_end() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan =
        plan(&server, LoadModel::Iterations { vus: 2, iterations: Iterations::Shared(3), max_duration: None });
    plan.scenarios[0].flows[0].steps = vec![step("a"), step("b"), step("c")];
    plan.scenarios[0].think_time = Duration::from_millis(30).into();
    assert_eq!(run_any(&plan).outcome.totals.succeeded, 9);
}

#[test]
fn no_step_begins_after_the_time_is_up() {
    let slow = |_: &ReceivedRequest| {
        std::thread::sleep(Duration::from_secs(1));
        Reply::Keep(ok(""))
    };
    for model in [
        LoadModel::ConstantVus { vus: 1, duration: Duration::from_millis(500) },
        arriving(100.0, 500, 1, Arrivals::Uniform),
    ] {
        let server = Server::start(slow);
        let mut plan = plan(&server, model);
        plan.scenarios[0].flows[0].steps = vec![step("a"), step("b")];
        let totals = run_any(&plan).outcome.totals;
        assert_eq!((totals.succeeded, server.asked().len()), (1, 1));
    }
}

#[test]
fn an_arrival_walks_all_steps_and_is_one_iteration() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(100.0, 300, 30, Arrivals::Uniform));
    plan.scenarios[0].flows[0].steps = vec![step("a"), step("b")];
    plan.threads = 2;
    let totals = run_any(&plan).outcome.totals;
    let begun = totals.due - totals.dropped;
    assert_eq!(totals.due, 30);
    // The last may be cut short by the end.
    assert!((begun..=2 * begun).contains(&totals.succeeded), "{totals:?}");
    let first = |path: &str| server.asked().iter().filter(|asked| asked.line.contains(path)).count() as u64;
    assert_eq!((first("/a"), first("/a") + first("/b")), (begun, totals.succeeded));
}

#[test]
fn as_many_client_addresses_are_counted_as_connections_came_from() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan =
        plan(&server, LoadModel::Iterations { vus: 2, iterations: Iterations::PerVu(3), max_duration: None });
    plan.threads = 2;
    plan.client_addresses = (2..6).map(|last| [127, 0, 0, last].into()).collect();
    assert_eq!(run_any(&plan).outcome.client_addresses, 2);
}

#[test]
fn a_load_of_both_models_counts_arrivals_where_they_belong() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, arriving(200.0, 100, 9, Arrivals::Uniform));
    plan.threads = 2;
    let mut closed = plan.scenarios[0].clone();
    closed.name = "b".into();
    closed.model = LoadModel::Iterations { vus: 3, iterations: Iterations::Shared(40), max_duration: None };
    plan.scenarios.insert(0, closed);
    let ran = run_any(&plan);
    let of =
        |name: &str| ran.seconds.iter().filter(|second| second.scenario == name).map(|second| second.due).sum::<u64>();
    assert_eq!((of("a"), of("b"), ran.outcome.arrivals.unwrap().due), (20, 0, 20));
    assert_eq!(ran.outcome.totals.sent, 60 - ran.outcome.totals.dropped);
}

#[test]
fn flows_are_drawn_by_weight() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan =
        plan(&server, LoadModel::Iterations { vus: 4, iterations: Iterations::Shared(2_000), max_duration: None });
    plan.threads = 2;
    let flow = |name: &str, weight, steps| Flow { name: name.into(), weight, steps };
    plan.scenarios[0].flows =
        vec![flow("browse", 1.0, vec![step("home")]), flow("buy", 3.0, vec![step("cart"), step("pay")])];
    let ran = run_any(&plan);
    let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
    for second in &ran.seconds {
        *sent.entry(&second.request).or_default() += second.sent;
    }
    assert_eq!(sent["browse/home"] + sent["buy/cart"], 2_000);
    assert_eq!(sent["buy/cart"], sent["buy/pay"]);
    assert!((420..580).contains(&sent["browse/home"]), "{sent:?}");
}

#[test]
fn responses_of_every_length_and_end_come_whole_while_arrivals_go_on() {
    let long = "x".repeat(300_000);
    let server = Server::start(move |asked| match asked.line.split(' ').nth(1) {
        Some("/long") => Reply::Keep(ok(&long)),
        Some("/cut") => Reply::Close(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()),
        Some("/away") => Reply::Keep(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => Reply::Keep(ok("short")),
    });
    for path in ["/", "/long", "/cut", "/away"] {
        let mut plan = plan(&server, arriving(1_000.0, 300, 20, Arrivals::Poisson));
        plan.scenarios[0].flows = vec![Flow::single(request(path))];
        plan.scenarios[0].flows[0].steps[0].redirects_max = 5;
        let ran = run_single(&plan);
        let totals = &ran.outcome.totals;
        // A machine that stands still at the end drops what is due then; all that began is completed.
        assert_eq!((totals.succeeded, totals.errors.total()), (totals.due - totals.dropped, 0), "{path}");
        let is_in_order = |s: &Sample| s.intended_ns <= s.sent_ns && s.sent_ns <= s.done_ns;
        assert!(!ran.samples.is_empty() && ran.samples.iter().all(is_in_order), "{path}");
    }
}
