//! Reading gives back what was written, through the reader and through the views; ceilings hold, secrets stay out.

use narrows_model::call_graph::{CallEdge, CallFigures, CallGraph, CallLevel};
use narrows_model::time_range::TimeRange;

use super::*;

fn call_graph() -> CallGraph {
    let all = CallFigures { outstanding: 4.0, rate: 400.0, connections: 8.0, ..CallFigures::default() };
    let levels = vec![CallLevel { all, ..CallLevel::default() }];
    let edge = CallEdge { caller: "narrows".to_owned(), callee: "shop".to_owned(), levels };
    CallGraph { nodes: Vec::new(), edges: vec![edge] }
}

#[test]
fn what_was_written_is_what_is_read() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let mut expected = write_all(&recorder);
    assert_eq!(evidence(&place.path()), expected, "while the run lasts");

    let findings = vec![finding("throttling"), finding("n-plus-one")];
    recorder.put_findings(1, &findings[..1]).unwrap();
    recorder.put_findings(1, &findings).unwrap();
    recorder.put_call_graph(1, &call_graph(), vec!["“8 users”".to_owned()]).unwrap();
    recorder.put_conclusion("sentence", &json!("it was the store")).unwrap();
    let done = Trial { state: TrialState::Done, ended_ns: Some(T0 + 20 * SECOND), ..trial(1) };
    recorder.put_trial(&done).unwrap();
    recorder.put_trial(&trial(2)).unwrap();
    file.finish(RunState::Complete).unwrap();

    let reader = Reader::open(&place.path()).unwrap();
    let read = reader.evidence(TraceLimit::default()).unwrap();
    let bodies = row(&place.path(), "SELECT json_group_array(json(body)) FROM (SELECT * FROM findings ORDER BY rank)");
    let data: Vec<Finding> = findings.into_iter().map(|(finding, _)| finding).collect();
    assert_eq!(serde_json::from_str::<Vec<Finding>>(&bodies).unwrap(), data);
    let conclusions = row(&place.path(), "SELECT group_concat(key || ' ' || value) FROM conclusions");
    assert_eq!(conclusions, "sentence \"it was the store\"");
    let calls = "SELECT group_concat(label || ': ' || caller || ' > ' || callee || ' ' || wait_low_ms) FROM call_graph";
    assert_eq!(row(&place.path(), calls), "“8 users”: narrows > shop 10.0");
    let of_warmup = "SELECT count(*) FROM spans WHERE trace_id = '03030303030303030303030303030303'";
    assert_eq!(row(&place.path(), of_warmup), "2", "traces of the warm-up are kept as well");
    assert!(read.run.ended_ns.is_some());
    expected.run = Run { state: RunState::Complete, ended_ns: read.run.ended_ns, ..run() };
    expected.trials[0].trial = done;
    assert_eq!(read.trials[1].trial, Trial { state: TrialState::Interrupted, ..trial(2) });
    assert_eq!(read.trials[0], expected.trials[0]);
    assert_eq!(read.run, expected.run);

    assert_eq!(reader.conclusion("sentence").unwrap(), Some(json!("it was the store")));
    assert_eq!(reader.conclusion("capacity").unwrap(), None);
    let load = TrialEvidence { operations: Vec::new(), traces: Vec::new(), ..expected.trials[0].clone() };
    assert_eq!(reader.load_of(1).unwrap().as_ref(), Some(&load));
    assert_eq!(reader.load_of(9).unwrap(), None);
    assert_eq!(reader.loads_within(&TimeRange::default()).unwrap().trials[0], load);
}

#[test]
fn a_receipt_means_that_another_connection_sees_it() {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    for number in 1..=20 {
        assert_eq!(wait(recorder.spans(trace(number, T0).spans)), kept(2));
        let seen = row(&place.path(), "SELECT count(*), (SELECT spans_stored FROM trials) FROM span_rows");
        assert_eq!(seen, format!("{0}|{0}", 2 * u32::from(number)));
    }
}

#[test]
fn ceilings_hold_and_counts_are_exact() {
    let place = Place::new();
    let limits = Limits { spans: 5, points: 4, series: 2, logs: 1, samples: 3, ..Limits::default() };
    let (file, recorder) = started(&place.path(), limits);
    let spans = (1..=4).flat_map(|number| trace(number, T0).spans).collect();
    assert_eq!(wait(recorder.spans(spans)), Ok(KeptCounts { kept: 5, over_limit: 3, ..KeptCounts::default() }));
    assert_eq!(wait(recorder.spans(trace(9, T0).spans)), Ok(KeptCounts { over_limit: 2, ..KeptCounts::default() }));
    let points = |service: &str, count: i64| -> Vec<(SeriesKey, Point)> {
        (0..count).map(|at| (key(service), Point { time_ns: T0 + at, value: 1.0 })).collect()
    };
    assert_eq!(wait(recorder.points(points("a", 1))), kept(1));
    assert_eq!(wait(recorder.points(points("b", 1))), kept(1));
    assert_eq!(
        wait(recorder.points(points("c", 7))),
        Ok(KeptCounts { over_limit: 7, ..KeptCounts::default() }),
        "a third series"
    );
    assert_eq!(
        wait(recorder.points(points("a", 3))),
        Ok(KeptCounts { kept: 2, over_limit: 1, ..KeptCounts::default() })
    );
    assert_eq!(
        wait(recorder.logs(vec![line("a"), line("b")])),
        Ok(KeptCounts { kept: 1, over_limit: 1, ..KeptCounts::default() })
    );
    let batch = LoadBatch { seconds: vec![second(0)], samples: (0..5).map(sample).collect() };
    assert_eq!(recorder.put_load(1, batch).unwrap(), KeptCounts { kept: 3, over_limit: 2, ..KeptCounts::default() });

    recorder.set_trial(None);
    assert_eq!(
        wait(recorder.logs(vec![line("a"), line("b")])),
        Ok(KeptCounts { over_limit: 2, ..KeptCounts::default() })
    );
    recorder.put_trial(&trial(2)).unwrap();
    recorder.set_trial(Some(2));
    assert_eq!(wait(recorder.spans(trace(1, T0).spans)), kept(2), "each trial has its own ceiling");
    recorder.set_trial(Some(1));
    assert_eq!(
        wait(recorder.spans(trace(8, T0).spans)),
        Ok(KeptCounts { over_limit: 2, ..KeptCounts::default() }),
        "and keeps its count"
    );
    file.finish(RunState::Interrupted).unwrap();

    let reader = Reader::open(&place.path()).unwrap();
    let count = |stored, refused| Count { stored, refused };
    let expected =
        Counts { spans: count(5, 7), points: count(4, 8), logs: count(1, 1), samples: count(3, 2), thinned: 0 };
    assert_eq!(reader.counts(1).unwrap(), expected);
    assert_eq!(reader.counts(2).unwrap().spans, count(2, 0));
    let rows = "SELECT (SELECT count(*) FROM spans WHERE trial = 1), (SELECT count(*) FROM metrics), \
                (SELECT count(*) FROM logs), (SELECT count(*) FROM samples)";
    assert_eq!(row(&place.path(), rows), "5|4|1|3");
}

/// Holds the writer up until the sender is dropped; returns once it does.
fn hold_up(recorder: &Recorder) -> (std::sync::mpsc::SyncSender<()>, std::thread::JoinHandle<()>) {
    let (release, released) = std::sync::mpsc::sync_channel::<()>(0);
    let (reach, reached) = std::sync::mpsc::sync_channel(0);
    let recorder = recorder.clone();
    let held = std::thread::spawn(move || {
        let wait = move |_: &mut rows::Rows| {
            reach.send(()).unwrap();
            let _ = released.recv();
            Ok(())
        };
        recorder.call(1, wait).unwrap();
    });
    reached.recv().unwrap();
    (release, held)
}

#[test]
fn what_finds_the_queue_full_is_counted_unless_it_comes_again() {
    let place = Place::new();
    let limits = Limits { queued: queue::Size { records: 3, bytes: usize::MAX }, ..Limits::default() };
    let (file, recorder) = started(&place.path(), limits);
    recorder.put_trial(&trial(2)).unwrap();
    let by_otlp = LogLine { stream: LogStream::Otlp, ..line("sent again") };
    let point = Point { time_ns: T0, value: 1.0 };
    let reported = SeriesKey { name: "jvm.memory.used".into(), ..key("a") };

    let (release, held) = hold_up(&recorder);
    let queued = recorder.logs(vec![line("a"), line("b"), line("c")]);
    for _ in 0..2 {
        assert_eq!(wait(recorder.logs(vec![line("d"), line("e")])), Err(StoreError::Busy));
    }
    assert_eq!(wait(recorder.logs(vec![by_otlp])), Err(StoreError::Busy));
    assert_eq!(wait(recorder.spans(trace(1, T0).spans)), Err(StoreError::Busy));
    assert_eq!(wait(recorder.points(vec![(key("a"), point), (reported, point)])), Err(StoreError::Busy));
    recorder.set_trial(Some(2));
    assert_eq!(wait(recorder.logs(vec![line("f")])), Err(StoreError::Busy));
    drop(release);
    held.join().unwrap();
    assert_eq!(wait(queued), kept(3));

    let done = Trial { state: TrialState::Done, ..trial(1) };
    recorder.put_trial(&done).unwrap();
    let counts = "SELECT logs_stored, logs_refused, points_refused, spans_refused FROM trials WHERE id = ";
    assert_eq!(row(&place.path(), &format!("{counts}1")), "3|4|1|0", "with the next commit");
    file.finish(RunState::Complete).unwrap();
    assert_eq!(row(&place.path(), &format!("{counts}2")), "0|1|0|0");
}

#[test]
fn a_queue_is_full_of_few_long_lines_once_they_are_cut() {
    let place = Place::new();
    let limits = Limits { queued: queue::Size { records: 1000, bytes: 100 << 10 }, ..Limits::default() };
    let (_file, recorder) = started(&place.path(), limits);
    let (release, held) = hold_up(&recorder);
    let long = "x".repeat(1 << 20);
    let receipts: Vec<Receipt> = (0..10).map(|_| recorder.logs(vec![line(&long)])).collect();
    drop(release);
    held.join().unwrap();
    let kept = receipts.into_iter().map(wait).filter(|outcome| outcome.is_ok()).count();
    assert_eq!(kept, 6, "sixteen kibibytes each, and a little");
    assert_eq!(row(&place.path(), "SELECT max(length(text)) FROM logs"), "16384");
}

#[test]
fn a_batch_that_is_sent_again_is_kept_once() {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    for repeated in [0, 2] {
        let expected = KeptCounts { kept: 2, repeated, ..KeptCounts::default() };
        assert_eq!(wait(recorder.spans(trace(1, T0).spans)), Ok(expected));
    }
    assert_eq!(row(&place.path(), "SELECT count(*), (SELECT spans_stored FROM trials) FROM spans"), "2|2");
}

#[test]
fn an_unknown_trial_or_a_number_without_end_fails_alone() {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    recorder.set_trial(Some(7));
    assert_eq!(
        wait(recorder.spans(trace(1, T0).spans)),
        Err(StoreError::Broken("trial 7 is not in the run file".into()))
    );
    assert!(matches!(recorder.put_windows(7, &windows()), Err(Error::UnknownTrial(7))));
    let mut endless = finding("n-plus-one");
    endless.0.cost_share = f64::NAN;
    let error = recorder.put_findings(1, &[endless]).unwrap_err();
    assert_eq!(error.to_string(), "cannot keep finding n-plus-one in the run file: its cost is not finite");

    recorder.set_trial(Some(1));
    let mut odd = trace(1, T0).spans;
    odd[0].weight = f64::NAN;
    assert_eq!(wait(recorder.spans(odd)), kept(2));
    assert_eq!(wait(recorder.points(vec![(key("a"), Point { time_ns: T0, value: f64::NAN })])), kept(1));
    let read = evidence(&place.path());
    assert!(read.trials[0].series[0].points[0].value.is_nan());
    assert_eq!(row(&place.path(), "SELECT weight FROM spans WHERE kind = 'server'"), "1.0");
}

#[test]
fn a_failed_write_is_reported_and_leaves_nothing_half() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    // A trigger stands in for a disk that fills up.
    let other = Connection::open(place.path()).unwrap();
    other
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON log_rows BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
        .unwrap();
    drop(other);
    let refused = wait(recorder.logs(vec![line("lost")])).unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    assert_eq!(wait(recorder.spans(trace(1, T0).spans)), kept(2), "the next one has its chance");
    file.finish(RunState::Failed).unwrap();
    Connection::open(place.path()).unwrap().execute_batch("DROP TRIGGER full").unwrap();
    let read = Reader::open(&place.path()).unwrap().counts(1).unwrap();
    assert_eq!((read.logs, read.spans), (Count::default(), Count { stored: 2, refused: 0 }));
}

#[test]
fn views_show_names_units_and_hexadecimal_ids() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    file.finish(RunState::Complete).unwrap();
    let cases = [
        (
            "SELECT * FROM samples WHERE vu = 1",
            "1|invoices|shop/list|1|north|1795262400000000000|1795262400001000000|1795262400051500000|51.5|50.5|200|check|99|\
             abababababababababababababababab|2.5",
        ),
        (
            "SELECT trial, trace_id, span_id, parent_span_id, service, scope, name, kind, duration_ms, status, \
             status_message, http_method, http_route, http_status, url, db_system, db_namespace, db_query, \
             db_operation, db_status, db_rows, db_charge, db_sub_status, db_partition, server_address, server_port, \
             error_type, retry_after_ns, resend_count, attributes, weight \
             FROM spans WHERE trace_id = '01010101010101010101010101010101' AND kind = 'client'",
            "1|01010101010101010101010101010101|0101000000000000|0101010101010101|gateway|db|SELECT invoices|client|\
             12.5|error|too many requests|||||azure.cosmosdb|invoices|SELECT * FROM c WHERE c.token = 'kept'|query|\
             429|0|2.5|3200|7|||429|250000000|1|{\"db.response.status_code\":\"429\"}|4.0",
        ),
        ("SELECT json_extract(attributes, '$.\"http.route\"') FROM spans WHERE kind = 'server'", "/api/invoices"),
        (
            "SELECT * FROM metrics WHERE service = 'docstore'",
            "1|process.cpu.cores|{cpu}|docstore|1|{\"state\":\"user\"}|1795262400000000001|1.0",
        ),
        (
            "SELECT * FROM logs WHERE text = 'world'",
            "1|1795262400000000000|gateway|0|stderr||world|07070707070707070707070707070707",
        ),
        (
            "SELECT sum(due), sum(late), sum(dropped), sum(errors_check), request FROM load_seconds",
            "220|18|10|2|shop/list",
        ),
        (
            "SELECT sum(sent), sum(succeeded), sum(errors_timeout), max(latency_max_ns), sum(lateness_sum_ns), \
             count(DISTINCT scenario) FROM load_seconds",
            "204|200|2|106000000|9900000600|1",
        ),
        (
            "SELECT scenario, request, measure, sum(count), min(lower_ns) <= 7000000 AND min(upper_ns) > 7000000 \
             FROM load_latency WHERE measure = 'latency' GROUP BY 1, 2, 3",
            "invoices|shop/list|latency|200|1",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(row(&place.path(), sql), expected, "{sql}");
    }
}

#[test]
fn secrets_never_reach_the_disk() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let mut span = trace(1, T0).spans.remove(0);
    span.facts.url = Some("/login?password=hunter2&user=ada".into());
    span.attributes = attributes(json!({
        "http.request.header.authorization": ["Bearer hunter2"],
        "url.full": "https://ada:hunter2@shop/login?api_key=hunter2",
        "db.connection_string": "Password=hunter2",
        "app.db_password": "hunter2",
        "aws_secret_access_key": "hunter2",
        "http.request.header.x-csrf-token": ["hunter2"],
        "http.response.header.location": ["/next?user_token=hunter2"],
    }));
    span.name = "GET /login?token=hunter2".into();
    span.status_message = "cannot reach https://ada:hunter2@shop/?sig=hunter2".into();
    span.facts.db_query = Some("ALTER USER ada IDENTIFIED BY 'hunter2'".into());
    span.attributes.insert("db.query.text".into(), json!("AUTH hunter2"));
    span.attributes.insert("db.query.parameter.password".into(), json!("hunter2"));
    assert_eq!(wait(recorder.spans(vec![span])), kept(1));
    let lines = ["Authorization: Bearer hunter2", "login password=hunter2", "{\"user\":{\"api_key\":\"hunter2\"}}"];
    assert_eq!(wait(recorder.logs(lines.map(line).to_vec())), kept(3));
    let mut key = key("gateway");
    key.labels.insert("user_token".into(), "hunter2".into());
    assert_eq!(wait(recorder.points(vec![(key, Point { time_ns: T0, value: 1.0 })])), kept(1));
    for name in place.names() {
        let bytes = std::fs::read(place.folder.path().join(&name)).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{name}");
    }
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT url, (SELECT labels FROM series) FROM spans";
    assert_eq!(
        row(&place.path(), sql),
        "/login?password=REDACTED&user=ada|{\"state\":\"user\",\"user_token\":\"REDACTED\"}"
    );
}

#[test]
fn a_trace_limit_bounds_traces_and_spans() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let spans = (0..100).flat_map(|number| trace(number, T0 + 10 * SECOND + i64::from(number)).spans).collect();
    assert_eq!(wait(recorder.spans(spans)), kept(200));
    file.finish(RunState::Complete).unwrap();
    let reader = Reader::open(&place.path()).unwrap();
    for (limit, expected) in [
        (TraceLimit { traces: 10, spans: 200 }, 10),
        (TraceLimit { traces: 100, spans: 31 }, 15),
        (TraceLimit { traces: 0, spans: 200 }, 0),
        (TraceLimit::default(), 100),
    ] {
        let traces = reader.evidence(limit).unwrap().trials.remove(0).traces;
        assert_eq!(traces.len(), expected, "{limit:?}");
        assert!(traces.iter().all(|trace| trace.spans.len() == 2), "traces are whole");
        let stood_for: f64 = traces.iter().map(|trace| trace.weight).sum();
        assert!(traces.is_empty() || (stood_for - 400.0).abs() < 1e-6, "{stood_for}");
    }
}

#[test]
fn messages_are_counted_by_service_level_and_kind() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let at = |second: i64, severity: &str, text: &str| LogLine {
        time_ns: T0 + second * SECOND,
        severity: severity.into(),
        trace_id: None,
        ..line(text)
    };
    let mut lines: Vec<LogLine> = (0..7).map(|n| at(11, "ERROR", &format!("no stock of part {n}"))).collect();
    lines.extend([at(12, "", "10:00:00 ERROR disk 3 is full"), at(12, "INFO", "part 5"), at(5, "ERROR", "warming up")]);
    let many = (0..200).map(|n| at(13, "ERROR", &format!("kind {}", "x".repeat(n % 130 + 1))));
    lines.extend(many.map(|line| LogLine { service: "stock".into(), ..line }));
    assert_eq!(wait(recorder.logs(lines)), kept(210));
    file.finish(RunState::Complete).unwrap();
    let messages = evidence(&place.path()).trials.remove(0).messages;
    let of = |service: &str| messages.counts.iter().filter(|one| one.service == service).collect::<Vec<_>>();
    let gateway = of("gateway").into_iter().map(|one| (one.template.as_str(), one.is_error, one.lines));
    let expected = [("* ERROR disk * is full", true, 1), ("no stock of part *", true, 7), ("part *", false, 1)];
    assert_eq!(gateway.collect::<Vec<_>>(), expected);
    let stock = of("stock");
    assert_eq!((stock.iter().map(|one| one.lines).sum::<u64>(), stock.len()), (200, 65));
    let others = stock.iter().find(|one| one.template == MessageCount::OTHERS).unwrap();
    assert_eq!(others.lines, 72, "of 70 kinds with two lines and 60 with one, 64 are told apart");
}

#[test]
fn messages_of_a_trace_count_for_the_calls_that_wrote_them() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let begin_ns = T0 + 11 * SECOND;
    let span = |id: u8, parent: u8, service: &str, name: &str, ms: [i64; 2]| Span {
        name: name.into(),
        start_ns: begin_ns + ms[0] * 1_000_000,
        end_ns: begin_ns + ms[1] * 1_000_000,
        ..crate::testing::span(id, parent, service, SpanKind::Server)
    };
    let spans = vec![
        span(1, 0, "shop", "GET /", [0, 90]),
        span(2, 1, "cart", "POST /add", [10, 30]),
        span(3, 1, "cart", "GET /list", [40, 60]),
    ];
    let trace_id = spans[0].trace_id;
    assert_eq!(wait(recorder.spans(spans)), kept(3));
    let at = |service: &str, ms: i64, text: &str, trace_id: [u8; 16]| LogLine {
        time_ns: begin_ns + ms * 1_000_000,
        service: service.into(),
        trace_id: Some(trace_id),
        ..line(text)
    };
    let lines = vec![
        at("shop", 1, "begin", trace_id),
        at("shop", 80, "end", trace_id),
        at("cart", 12, "item 1", trace_id),
        at("cart", 14, "item 2", trace_id),
        at("cart", 41, "item 3", trace_id),
        at("cart", 70, "between calls", trace_id),
        at("cart", 70, "item 4", [9; 16]),
    ];
    assert_eq!(wait(recorder.logs(lines)), kept(7));
    file.finish(RunState::Complete).unwrap();
    let messages = evidence(&place.path()).trials.remove(0).messages;
    let of_cart = messages.counts.iter().filter(|one| one.service == "cart");
    let counted = of_cart.map(|one| (one.template.as_str(), one.operation.as_deref(), one.lines, one.calls));
    let expected = [
        ("between calls", None, 1, 1),
        ("item *", None, 1, 1),
        ("item *", Some("GET /list"), 1, 1),
        ("item *", Some("POST /add"), 2, 1),
    ];
    assert_eq!(counted.collect::<Vec<_>>(), expected);
    assert_eq!(messages.traces, [("cart".to_owned(), 2), ("shop".to_owned(), 1)]);
    let [pair] = &messages.pairs[..] else { panic!("{:?}", messages.pairs) };
    assert_eq!((pair.one.as_str(), pair.other.as_str()), ("shop", "cart"));
    assert_eq!((pair.traces, pair.around, pair.within, pair.earlier, pair.failed), (1, 1, 0, 1, 0));
}

#[test]
fn a_trace_counts_by_its_root_when_another_clock_is_seconds_behind() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let skewed = |number: u8| {
        let mut trace = trace(number, T0 + 12 * SECOND + i64::from(number));
        trace.spans[0].parent_id = None;
        (trace.spans[1].start_ns, trace.spans[1].end_ns) = (T0 + SECOND, T0 + SECOND + 5);
        trace.spans
    };
    assert_eq!(wait(recorder.spans((1..=20).flat_map(skewed).collect())), kept(40));
    file.finish(RunState::Complete).unwrap();
    let reader = Reader::open(&place.path()).unwrap();
    assert_eq!(reader.evidence(TraceLimit::default()).unwrap().trials.remove(0).traces.len(), 20);
}

#[test]
fn a_trace_is_found_through_the_views_by_index() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    file.finish(RunState::Complete).unwrap();
    let connection = Connection::open(place.path()).unwrap();
    let cases = [
        ("SELECT name FROM spans WHERE trial = 1 AND trace_id = 'aa'", "trace_rows_by_hex (trace_hex=?"),
        ("SELECT name FROM requests WHERE trial = 1 AND operation_Id = 'aa'", "trace_rows_by_hex (trace_hex=?"),
        (
            "SELECT d.id FROM requests AS r JOIN dependencies AS d ON d.trial = r.trial \
             AND d.operation_Id = r.operation_Id WHERE r.operation_Id = 'aa'",
            "trace_rows_by_hex (trace_hex=?",
        ),
        (
            "SELECT sum(weight) FROM spans WHERE kind = 'client' AND db_system = 'redis' AND start_ns BETWEEN 1 AND 2",
            "COVERING INDEX span_rows_by_shape (shape=? AND start_ns>? AND start_ns<?)",
        ),
    ];
    for (sql, expected) in cases {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map([], |row| row.get::<_, String>("detail")).unwrap();
        let plan = steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
        assert!(plan.contains(expected), "{sql}: {plan}");
    }
}

#[test]
fn every_column_is_on_its_reference_page() {
    /// Described with the queries that are made for them.
    const INSIGHTS_VIEWS: [&str; 6] =
        ["requests", "dependencies", "exceptions", "traces", "customMetrics", "performanceCounters"];
    let page = include_str!("../../../../../docs/reference/run-file.md");
    let queries = include_str!("../../../../../docs/reference/query.md");
    let place = Place::new();
    drop(RunFile::create(&place.path(), &run()).unwrap());
    let connection = Connection::open(place.path()).unwrap();
    let sql = "SELECT o.name, c.name FROM sqlite_schema AS o, pragma_table_info(o.name) AS c WHERE o.type IN ('table', \
               'view') AND o.name NOT LIKE '%\\_rows' ESCAPE '\\' AND o.name NOT IN ('strings', 'series', 'points') \
               AND o.name NOT LIKE 'sqlite%'";
    let mut statement = connection.prepare(sql).unwrap();
    let columns: Vec<(String, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    assert!(columns.len() > 100, "the schema has that many columns");
    for (name, column) in columns {
        let is_insights = INSIGHTS_VIEWS.contains(&name.as_str());
        let (page, heading) = if is_insights { (queries, "Tables") } else { (page, name.as_str()) };
        let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
        let section = section.split("\n## ").next().unwrap();
        assert!(section.contains(&format!("`{column}`")), "{name}.{column} is not described");
    }
}

#[test]
fn ports_of_sidecars_are_kept() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let beside = ServiceInstance { stand_in_ports: vec![9001, 9002], ..service(0) };
    recorder.put_service(1, &beside).unwrap();
    file.finish(RunState::Complete).unwrap();
    assert_eq!(Reader::open(&place.path()).unwrap().services(1).unwrap(), [beside]);
}
