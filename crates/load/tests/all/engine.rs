//! The engine against a real server on loopback: everything the plan requires is sent and accounted for.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::server::{Reply, Server, ok};
use narrows_load::{Clock, Error, LoadOutcome, run};
use narrows_model::load::{
    Connections, Cookies, DataSource, DataValues, ErrorCounts, ErrorKind, Flow, Iterations, LoadBatch, LoadModel,
    LoadPlan, LoadSecond, Pick, Protocol, RequestTemplate, Retry, Sample, Scenario, Segment, Stage, StageShape,
    Template, ThinkTime, Tracing,
};

struct LoadRun {
    outcome: LoadOutcome,
    seconds: Vec<LoadSecond>,
    samples: Vec<Sample>,
}

fn plan(server: &Server, model: LoadModel) -> LoadPlan {
    let request = RequestTemplate {
        method: "GET".into(),
        path: Template::text("/"),
        headers: Vec::new(),
        body: None,
        host: "test".into(),
    };
    let scenario = Scenario {
        name: "a".into(),
        model,
        warmup: Duration::ZERO,
        flows: vec![Flow::single(request)],
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

fn iterations(vus: u32, iterations: u64) -> LoadModel {
    LoadModel::Iterations { vus, iterations: Iterations::Shared(iterations), max_duration: None }
}

fn run_with(plan: &LoadPlan, stop: &AtomicBool) -> LoadRun {
    let (out, batches) = sync_channel::<LoadBatch>(1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || batches.into_iter().collect::<Vec<_>>());
        let outcome = run(plan, Clock::new(), stop, &out).unwrap();
        drop(out);
        let batches = reader.join().unwrap();
        let seconds = batches.iter().flat_map(|batch| batch.seconds.clone()).collect();
        let samples = batches.into_iter().flat_map(|batch| batch.samples).collect();
        LoadRun { outcome, seconds, samples }
    })
}

/// Runs a plan and checks what holds for every load.
fn run_whole(plan: &LoadPlan) -> LoadRun {
    let ran = run_with(plan, &AtomicBool::new(false));
    assert_consistent(plan, &ran);
    ran
}

fn assert_consistent(plan: &LoadPlan, ran: &LoadRun) {
    let totals = &ran.outcome.totals;
    let ended = totals.succeeded + totals.errors.total();
    let sum = |of: fn(&LoadSecond) -> u64| ran.seconds.iter().map(of).sum::<u64>();
    assert_eq!(sum(|s| s.sent), totals.sent);
    assert_eq!(sum(|s| s.succeeded + s.errors.total()), ended);
    assert_eq!(sum(|s| s.latency.count()), totals.succeeded);
    assert_eq!(totals.service.count(), totals.succeeded);
    assert_eq!(totals.lateness.count(), totals.sent);
    let completed = totals.succeeded + totals.errors.status;
    assert_eq!(ran.outcome.statuses.values().sum::<u64>(), completed);
    assert_eq!(ran.outcome.causes.iter().map(|cause| cause.count).sum::<u64>(), ended - completed);
    let start_ns = ran.outcome.started_ns;
    let mut begins_ns = start_ns;
    for rows in ran.seconds.chunks(plan.scenarios.len()) {
        let names = plan.scenarios.iter().map(|scenario| scenario.name.as_str());
        let expected: Vec<(i64, &str)> = names.map(|name| (begins_ns, name)).collect();
        assert_eq!(rows.iter().map(|row| (row.start_ns, row.scenario.as_str())).collect::<Vec<_>>(), expected);
        assert!(rows.iter().all(|row| row.length_ns <= 1_000_000_000 && row.end_ns() == rows[0].end_ns()), "{rows:?}");
        begins_ns = rows[0].end_ns();
    }
    for second in &ran.seconds {
        // The very last response arrived at the end of the last row.
        let end_ns = if second.end_ns() == begins_ns { i64::MAX } else { second.end_ns() };
        let of_second = |s: &&Sample| s.scenario == second.scenario && (second.start_ns..end_ns).contains(&s.done_ns);
        let weight: f64 = ran.samples.iter().filter(of_second).map(|s| s.weight).sum();
        assert!((weight - (second.succeeded + second.errors.total()) as f64).abs() < 1e-6, "{weight}: {second:?}");
    }
    for sample in &ran.samples {
        assert!(
            start_ns <= sample.intended_ns && sample.intended_ns <= sample.sent_ns && sample.sent_ns <= sample.done_ns
        );
    }
}

#[test]
fn exactly_the_iterations_asked_for_are_sent_over_one_connection_per_user() {
    let server = Server::start(|_| Reply::Keep(ok("hello")));
    let mut plan = plan(&server, iterations(8, 1_000));
    plan.threads = 3;
    let ran = run_whole(&plan);
    let totals = &ran.outcome.totals;
    assert_eq!((totals.sent, totals.succeeded, totals.errors), (1_000, 1_000, ErrorCounts::default()));
    assert_eq!(totals.bytes, 1_000 * ok("hello").len() as u64);
    assert_eq!((ran.outcome.body_bytes, ran.outcome.totals.repeated, ran.outcome.threads.len()), (5_000, 0, 3));
    assert_eq!(ran.outcome.statuses.into_iter().collect::<Vec<_>>(), [(200, 1_000)]);
    assert_eq!((server.asked().len(), ran.seconds[0].vus), (1_000, 8));
    assert_eq!(ran.outcome.phases.connect.count, 8);
}

/// The time from sending to the complete response, over all requests of a load so small that all are in the sample.
fn service_ns(ran: &LoadRun) -> u64 {
    assert_eq!(ran.samples.len() as u64, ran.outcome.totals.succeeded);
    ran.samples.iter().map(|sample| (sample.done_ns - sample.sent_ns) as u64).sum()
}

fn phases_ns(ran: &LoadRun) -> u64 {
    let phases = &ran.outcome.phases;
    phases.write.sum_ns + phases.wait.sum_ns + phases.read.sum_ns
}

#[test]
fn every_request_is_measured_and_its_phases_add_up() {
    let server = Server::start(|_| Reply::Keep(ok(&"x".repeat(1_000_000))));
    let ran = run_whole(&plan(&server, iterations(2, 20)));
    let phases = &ran.outcome.phases;
    assert_eq!((phases.write.count, phases.wait.count, phases.read.count), (20, 20, 20));
    assert_eq!(phases_ns(&ran), service_ns(&ran));
    let slowest_ns = ran.samples.iter().map(|sample| sample.done_ns - sample.intended_ns).max().unwrap() as u64;
    assert!(phases.wait.min_ns > 0 && phases.wait.max_ns <= slowest_ns, "{phases:?}");
}

#[test]
fn connections_that_are_not_kept_are_as_many_as_requests() {
    let server = Server::start(|_| Reply::Close(ok("")));
    let mut plan = plan(&server, iterations(4, 100));
    plan.connections = Connections::PerRequest;
    let ran = run_whole(&plan);
    assert_eq!((ran.outcome.totals.succeeded, ran.outcome.phases.connect.count), (100, 100));
    assert!(ran.outcome.phases.connect.min_ns > 0, "{:?}", ran.outcome.phases);
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.position == 0 && asked.header("connection") == Some("close")));
}

#[test]
fn every_form_of_response_is_read_to_its_end() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n".to_vec();
    let continued = [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), ok("abc")].concat();
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nabc".to_vec();
    let large = ok(&"x".repeat(3_000_000));
    let cases = [(chunked, 3), (continued, 3), (until_close, 3), (large, 3_000_000)];
    for (bytes, body_bytes) in cases {
        let closes = !bytes.windows(6).any(|w| w.eq_ignore_ascii_case(b"length") || w.eq_ignore_ascii_case(b"chunke"));
        let reply = bytes.clone();
        let server =
            Server::start(move |_| if closes { Reply::Close(reply.clone()) } else { Reply::Keep(reply.clone()) });
        let ran = run_whole(&plan(&server, iterations(2, 10)));
        assert_eq!(ran.outcome.totals.succeeded, 10, "{}", bytes[..40.min(bytes.len())].escape_ascii());
        assert_eq!((ran.outcome.body_bytes, ran.outcome.totals.bytes), (10 * body_bytes, 10 * bytes.len() as u64));
    }
}

#[test]
fn every_failure_is_counted_by_its_kind_and_every_iteration_ends() {
    let cases: [(&'static [u8], ErrorKind); 4] = [
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", ErrorKind::Status),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::Protocol),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", ErrorKind::Reset),
        (b"", ErrorKind::Reset),
    ];
    for (bytes, kind) in cases {
        let server = Server::start(move |_| Reply::Close(bytes.to_vec()));
        let mut plan = plan(&server, iterations(3, 30));
        plan.threads = 2;
        let ran = run_whole(&plan);
        assert_eq!(ran.outcome.totals.errors.of(kind), 30, "{kind:?}: {:?}", ran.outcome.causes);
        assert_eq!((ran.outcome.totals.errors.total(), ran.outcome.totals.succeeded), (30, 0));
        // A busy machine may still delay the generator; the failed requests are not its fault.
        assert!(ran.outcome.validity.reasons.iter().all(|reason| reason.contains("busiest thread")));
        assert!(ran.samples.iter().all(|sample| sample.error == Some(kind)));
    }
}

#[test]
fn a_get_whose_kept_connection_breaks_is_sent_again_and_counts_as_repeated() {
    let server =
        Server::start(|asked| if asked.position == 0 { Reply::Keep(ok("")) } else { Reply::Close(Vec::new()) });
    let ran = run_whole(&plan(&server, iterations(1, 10)));
    assert_eq!((ran.outcome.totals.succeeded, ran.outcome.totals.sent, ran.outcome.totals.repeated), (10, 10, 9));
    assert_eq!(server.asked().len(), 19);
    assert_eq!((ran.outcome.phases.connect.count, ran.outcome.phases.write.count), (10, 10));
    assert!(phases_ns(&ran) < service_ns(&ran), "the phases are those of the attempt that got a response");
}

#[test]
fn a_post_that_the_server_received_is_never_sent_twice() {
    let server =
        Server::start(|asked| if asked.position == 0 { Reply::Keep(ok("")) } else { Reply::Close(Vec::new()) });
    let mut plan = plan(&server, iterations(1, 10));
    plan.scenarios[0].flows[0].steps[0].request.method = "POST".into();
    plan.scenarios[0].flows[0].steps[0].request.body = Some(Template::text("order=1"));
    let ran = run_whole(&plan);
    assert_eq!(server.asked().len(), 10);
    assert_eq!((ran.outcome.totals.succeeded, ran.outcome.totals.errors.reset), (5, 5));
    assert_eq!((ran.outcome.totals.sent, ran.outcome.totals.repeated), (10, 0));
}

#[test]
fn a_refused_connection_is_an_error_of_its_own() {
    let address = Server::start(|_| Reply::Silence).address;
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, iterations(2, 6));
    plan.targets = vec![address];
    let ran = run_whole(&plan);
    assert_eq!((ran.outcome.totals.errors.connect, ran.outcome.totals.sent), (6, 0));
    assert_eq!(ran.outcome.causes[0].text, "Connection refused (os error 111)");
}

#[test]
fn a_response_that_does_not_come_times_out() {
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, iterations(3, 6));
    plan.timeout = Duration::from_millis(500);
    let ran = run_whole(&plan);
    assert_eq!((ran.outcome.totals.errors.timeout, ran.outcome.totals.sent), (6, 6));
    assert!(ran.samples.iter().all(|s| s.done_ns - s.intended_ns >= 500_000_000));
}

#[test]
fn what_is_outstanding_when_the_drain_ends_has_timed_out() {
    let server = Server::start(|_| Reply::Silence);
    let mut plan = plan(&server, LoadModel::ConstantVus { vus: 5, duration: Duration::from_secs(1) });
    plan.drain = Duration::from_millis(10);
    let ran = run_whole(&plan);
    assert_eq!((ran.outcome.totals.errors.timeout, ran.outcome.undrained, ran.outcome.totals.cut), (5, 5, 0));
}

/// Runs a load that is stopped during its first request, which gets no response.
fn stopped(stop: &'static AtomicBool, drain: Duration) -> LoadOutcome {
    let server = Server::start(|_| {
        stop.store(true, Ordering::Relaxed);
        Reply::Silence
    });
    let mut plan = plan(&server, LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(3_600) });
    plan.drain = drain;
    run_with(&plan, stop).outcome
}

#[test]
fn a_wish_to_stop_ends_the_load_and_cuts_what_is_outstanding() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let outcome = stopped(&STOP, Duration::from_secs(3_600));
    assert_eq!((outcome.totals.cut, outcome.totals.sent, outcome.totals.errors.total()), (1, 1, 0));
}

#[test]
fn a_request_that_waited_for_the_drain_time_has_timed_out_when_the_load_is_stopped() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let outcome = stopped(&STOP, Duration::from_millis(10));
    assert_eq!((outcome.totals.cut, outcome.totals.errors.timeout, outcome.undrained), (0, 1, 1));
}

#[test]
fn a_load_that_nobody_listens_to_stops_and_is_added_up() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let plan = plan(&server, LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(3_600) });
    let (out, batches) = sync_channel(1);
    drop(batches);
    let outcome = run(&plan, Clock::new(), &AtomicBool::new(false), &out).unwrap();
    assert!(outcome.totals.succeeded > 0);
}

#[test]
fn every_second_has_a_row_for_every_scenario_even_if_nothing_happened() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, LoadModel::ConstantVus { vus: 2, duration: Duration::from_millis(1_200) });
    plan.scenarios[0].pace = Some(Duration::from_millis(20));
    let mut idle = plan.scenarios[0].clone();
    idle.name = "b".into();
    idle.pace = Some(Duration::from_secs(1_000_000));
    plan.scenarios.push(idle);
    plan.threads = 2;
    let ran = run_whole(&plan);
    assert_eq!(
        ran.seconds[..4].iter().map(|s| (s.scenario.as_str(), s.vus)).collect::<Vec<_>>(),
        [("a", 2), ("b", 2), ("a", 2), ("b", 2)]
    );
    assert!(ran.seconds[0].sent > 0);
}

#[test]
fn a_pace_is_never_exceeded_and_missed_ticks_are_counted() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut paced = plan(&server, LoadModel::ConstantVus { vus: 1, duration: Duration::from_millis(500) });
    paced.scenarios[0].pace = Some(Duration::from_millis(10));
    let ran = run_whole(&paced);
    assert!((1..=50).contains(&ran.outcome.totals.sent), "{}", ran.outcome.totals.sent);

    let slow = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(35));
        Reply::Keep(ok(""))
    });
    let mut late = plan(&slow, iterations(1, 3));
    late.scenarios[0].pace = Some(Duration::from_millis(10));
    let ran = run_whole(&late);
    assert_eq!(ran.outcome.totals.succeeded, 3);
    assert!(ran.outcome.ticks_missed >= 4, "{}", ran.outcome.ticks_missed);
}

#[test]
fn users_come_and_go_with_the_stages() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let stage = |ms, target, shape| Stage { duration: Duration::from_millis(ms), target, shape };
    let stages =
        vec![stage(200, 2, StageShape::Step), stage(600, 6, StageShape::Linear), stage(1_200, 1, StageShape::Step)];
    let mut plan = plan(&server, LoadModel::RampingVus { start_vus: 0, stages });
    plan.scenarios[0].think_time = Duration::from_millis(5).into();
    plan.threads = 2;
    let ran = run_whole(&plan);
    let vus: Vec<u32> = ran.seconds.iter().map(|row| row.vus).collect();
    assert_eq!(vus[..3], [2, 6, 1], "at the ends of the first two stages and of the first second");
    let connections: BTreeSet<usize> = server.asked().iter().map(|asked| asked.connection).collect();
    assert!((3..=6).contains(&connections.len()), "{connections:?}");
    let late = ran.samples.iter().filter(|s| s.intended_ns > ran.outcome.started_ns + 850_000_000);
    assert!(late.clone().count() > 0 && late.clone().all(|s| s.vu == 0));
}

#[test]
fn users_are_spread_over_the_targets() {
    let servers: Vec<Server> = (0..2).map(|_| Server::start(|_| Reply::Keep(ok("")))).collect();
    let mut plan =
        plan(&servers[0], LoadModel::Iterations { vus: 4, iterations: Iterations::PerVu(3), max_duration: None });
    plan.targets = servers.iter().map(|server| server.address).collect();
    run_whole(&plan);
    for server in &servers {
        let connections: BTreeSet<usize> = server.asked().iter().map(|asked| asked.connection).collect();
        assert_eq!(connections.len(), 2);
    }
}

#[test]
fn data_is_bound_per_request_and_a_large_body_is_sent_whole() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, iterations(3, 40));
    plan.threads = 2;
    plan.data = vec![DataSource {
        name: "owner".into(),
        values: DataValues::Rows {
            columns: vec!["id".into(), "name".into()],
            rows: (0..40).map(|i| vec![format!("o {i}"), "x".repeat(200_000 + i)]).collect(),
            pick: Pick::Sequential,
        },
    }];
    let request = &mut plan.scenarios[0].flows[0].steps[0].request;
    request.method = "POST".into();
    request.path.segments = vec![Segment::Text("/".into()), Segment::Field { source: 0, column: 0 }];
    request.body = Some(Template { segments: vec![Segment::Field { source: 0, column: 1 }; 10] });
    assert_eq!(run_whole(&plan).outcome.totals.succeeded, 40);
    let mut asked: Vec<(String, usize)> = server.asked().into_iter().map(|a| (a.line, a.body.len())).collect();
    asked.sort_by_key(|(_, length)| *length);
    let expected: Vec<(String, usize)> =
        (0..40).map(|i| (format!("POST /o%20{i} HTTP/1.1"), 10 * (200_000 + i))).collect();
    assert_eq!(asked, expected);
}

#[test]
fn every_request_carries_a_trace_and_samples_name_the_sampled_ones() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, iterations(4, 400));
    plan.tracing = Some(Tracing { sample: 0.5, tag: [0xca, 0xfe, 0xba, 0xbe] });
    let ran = run_whole(&plan);
    let asked = server.asked();
    let traces: Vec<&str> = asked.iter().map(|asked| asked.header("traceparent").unwrap()).collect();
    assert!(traces.iter().all(|trace| trace.starts_with("00-cafebabe") && trace.len() == 55));
    let flagged: BTreeSet<&str> = traces.iter().filter(|t| t.ends_with("-01")).map(|t| &t[3..35]).collect();
    assert!((120..280).contains(&flagged.len()), "{}", flagged.len());
    assert_eq!(traces.iter().collect::<BTreeSet<_>>().len(), 400);
    for sample in ran.samples {
        assert!(sample.trace_id.is_none_or(|id| flagged.contains(narrows_model::trace::hex(&id).as_str())));
    }
}

#[test]
fn the_warm_up_comes_on_top_of_the_iterations() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, iterations(1, 20));
    plan.scenarios[0].warmup = Duration::from_millis(400);
    // So few requests that every one of them is in the sample, and none is due close to the end of the warm-up.
    plan.scenarios[0].think_time = Duration::from_millis(90).into();
    let ran = run_whole(&plan);
    let warm_until_ns = ran.outcome.started_ns + 400_000_000;
    let counted = ran.samples.iter().filter(|s| s.sent_ns >= warm_until_ns).count();
    assert_eq!((counted, ran.samples.len()), (20, server.asked().len()));
    assert!((21..=25).contains(&server.asked().len()), "{}", server.asked().len());
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_before_anything_is_sent() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut plan = plan(&server, iterations(1, 1));
    plan.scenarios[0].flows[0].steps[0].request.path = Template::text("no slash");
    let (out, _batches) = sync_channel(1);
    let error = run(&plan, Clock::new(), &AtomicBool::new(false), &out).unwrap_err();
    assert!(matches!(error, Error::Plan { .. }), "{error}");
    assert!(server.asked().is_empty());
}
