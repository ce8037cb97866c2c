//! Operations and their calls, counted over all spans of a trial.

use super::super::operations::operations_within;
use super::*;

/// The first counted window begins here.
const COUNTED: i64 = T0 + 10 * SECOND;
const MS: i64 = 1_000_000;

/// A span of 10 ms; see [`testing::span`](crate::testing::span).
fn span(id: u8, parent: u8, service: &str, name: &str, kind: SpanKind, start_ns: i64) -> Span {
    let name = name.to_owned();
    Span { name, start_ns, end_ns: start_ns + 10 * MS, ..crate::testing::span(id, parent, service, kind) }
}

fn server(id: u8, parent: u8, service: &str, start_ns: i64) -> Span {
    span(id, parent, service, &format!("GET /{service}"), SpanKind::Server, start_ns)
}

fn call(id: u8, parent: u8, service: &str, name: &str, facts: SpanFacts) -> Span {
    Span { facts, ..span(id, parent, service, name, SpanKind::Client, COUNTED + i64::from(id)) }
}

fn database(status: &str, charge: Option<f64>) -> SpanFacts {
    SpanFacts {
        db_system: Some("azure.cosmosdb".into()),
        db_status: Some(status.into()),
        db_charge: charge,
        server_address: Some("docstore".into()),
        server_port: Some(8081),
        ..SpanFacts::default()
    }
}

fn http(status: Option<u16>) -> SpanFacts {
    SpanFacts {
        http_status: status,
        server_address: Some("orders".into()),
        server_port: Some(8080),
        ..SpanFacts::default()
    }
}

fn in_trace(number: u8, spans: Vec<Span>) -> Vec<Span> {
    spans.into_iter().map(|span| Span { trace_id: [number; 16], ..span }).collect()
}

/// Writes spans into a file and reads the operations of its trial.
fn operations(spans: Vec<Span>) -> Vec<OperationEvidence> {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let count = spans.len() as u64;
    assert_eq!(wait(recorder.spans(spans)), kept(count));
    file.finish(RunState::Complete).unwrap();
    evidence(&place.path()).trials.remove(0).operations
}

fn names(operations: &[OperationEvidence]) -> Vec<String> {
    operations.iter().map(|operation| format!("{} {}", operation.service, operation.name)).collect()
}

/// Succeeded, throttled and failed.
fn outcomes(call: &CallEvidence) -> (f64, f64, f64) {
    (call.succeeded, call.throttled, call.failed)
}

#[test]
fn every_attempt_counts_under_the_operation_whose_code_made_it() {
    let found = operations(vec![
        server(1, 99, "gateway", COUNTED),
        call(2, 1, "gateway", "GET", http(Some(200))),
        server(3, 2, "orders", COUNTED + MS),
        span(4, 3, "orders", "handle", SpanKind::Internal, COUNTED + MS),
        call(5, 4, "orders", "query", database("429", Some(1.0))),
        call(6, 4, "orders", "query", database("429", Some(1.0))),
        call(7, 4, "orders", "query", database("200", Some(2.5))),
        call(8, 3, "orders", "read", database("404", None)),
        call(9, 99, "orders", "query", database("200", Some(100.0))),
        call(10, 2, "billing", "query", database("200", Some(100.0))),
    ]);
    assert_eq!(names(&found), ["gateway GET /gateway", "orders GET /orders"]);
    let [gateway, orders] = [&found[0].calls, &found[1].calls];
    assert_eq!(gateway.iter().map(|call| call.target.as_str()).collect::<Vec<_>>(), ["orders:8080"]);
    assert_eq!((outcomes(&gateway[0]), gateway[0].charge, gateway[0].is_database), ((1.0, 0.0, 0.0), None, false));
    assert_eq!(orders.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["query", "read"]);
    assert_eq!((outcomes(&orders[0]), orders[0].charge), ((1.0, 2.0, 0.0), Some(4.5)));
    assert_eq!((orders[0].target.as_str(), orders[0].is_database), ("azure.cosmosdb", true));
    assert_eq!((outcomes(&orders[1]), orders[1].charge), ((0.0, 0.0, 1.0), None));
    assert_eq!((found[1].completed, orders[0].attempts()), (1.0, 3.0));
}

#[test]
fn an_operation_counts_when_it_began_in_a_counted_window_and_its_calls_with_it() {
    let late = |id, parent| Span {
        end_ns: T0 + 19 * SECOND + 500 * MS,
        ..call(id, parent, "gateway", "query", database("200", None))
    };
    let mut spans = in_trace(1, vec![server(1, 0, "gateway", COUNTED - 1), late(2, 1)]);
    spans.extend(in_trace(2, vec![server(1, 0, "gateway", COUNTED), late(2, 1)]));
    let last = T0 + 20 * SECOND - 1;
    let after = Span { end_ns: last + SECOND, ..call(2, 1, "gateway", "query", database("200", None)) };
    spans.extend(in_trace(3, vec![server(1, 0, "gateway", last), after]));
    spans.extend(in_trace(4, vec![server(1, 0, "gateway", last + 1), late(2, 1)]));
    let found = operations(spans);
    let second = |at: i64| OperationSecond { start_ns: T0 + at * SECOND, completed: 1.0, duration_sum_ns: 10e6 };
    assert_eq!((found[0].completed, &found[0].seconds[..]), (2.0, &[second(10), second(19)][..]));
    let call = &found[0].calls[0];
    assert_eq!(call.succeeded, 2.0, "also the one that ended after the trial's last window");
    assert_eq!(call.seconds, [CallSecond { start_ns: T0 + 19 * SECOND, succeeded: 1.0, ..CallSecond::default() }]);
}

#[test]
fn weights_multiply_counts_durations_and_charges() {
    let weighed = |weight: f64, spans: Vec<Span>| spans.into_iter().map(move |span| Span { weight, ..span });
    let trace = || {
        let backwards = Span { end_ns: COUNTED - 1, ..server(3, 0, "gateway", COUNTED) };
        vec![server(1, 0, "gateway", COUNTED), call(2, 1, "gateway", "query", database("200", Some(2.0))), backwards]
    };
    let mut spans: Vec<Span> = weighed(2.75, in_trace(1, trace())).collect();
    spans.extend(weighed(0.25, in_trace(2, trace())));
    let found = operations(spans).remove(0);
    let mut duration = Histogram::new();
    duration.record_n(0, 4);
    duration.record_n(10 * MS as u64, 4);
    assert_eq!(found.duration, duration, "rounded, and at least once each");
    assert_eq!((found.completed, found.seconds[0].completed, found.seconds[0].duration_sum_ns), (6.0, 6.0, 30e6));
    let call = &found.calls[0];
    assert_eq!((call.succeeded, call.charge, call.seconds[0].charge), (3.0, Some(6.0), 6.0));
}

#[test]
fn how_a_call_ended() {
    let (ok, error) = (SpanStatus::Unset, SpanStatus::Error);
    let error_type = |name: &str| SpanFacts { error_type: Some(name.into()), ..http(None) };
    let (fine, throttled, failed) = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0));
    let cases = [
        (http(Some(200)), ok, fine),
        (http(Some(399)), ok, fine),
        (http(None), ok, fine),
        (http(None), error, failed),
        (http(Some(200)), error, failed),
        (http(Some(400)), ok, failed),
        (http(Some(503)), error, failed),
        (http(Some(429)), ok, throttled),
        (http(Some(429)), error, throttled),
        (database("200", None), ok, fine),
        (database("00000", None), ok, fine),
        (database("412", None), ok, failed),
        (database("429", None), ok, throttled),
        (database("4290", None), ok, fine),
        (error_type("429"), error, throttled),
        (error_type("ThrottlingException"), error, throttled),
        (error_type("ProvisionedThroughputExceededException"), error, throttled),
        (error_type("RESOURCE_EXHAUSTED"), error, throttled),
        (error_type("throttled"), error, failed),
        (error_type("timeout"), error, failed),
    ];
    let mut spans = vec![server(200, 0, "gateway", COUNTED)];
    for (id, (facts, status, _)) in (1..).zip(&cases) {
        spans.push(Span { status: *status, ..call(id, 200, "gateway", &format!("{id:03}"), facts.clone()) });
    }
    let calls = operations(spans).remove(0).calls;
    assert_eq!(calls.len(), cases.len());
    let mut ended: Vec<_> = calls.iter().map(|call| (call.name.clone(), outcomes(call))).collect();
    ended.sort_by(|one, other| one.0.cmp(&other.0));
    for ((_, got), (facts, status, expected)) in ended.into_iter().zip(cases) {
        assert_eq!(got, expected, "{facts:?} {status:?}");
    }
}

#[test]
fn an_operation_fails_by_its_status_or_from_500_on() {
    let cases = [(Some(200), false), (Some(429), false), (Some(499), false), (Some(500), true), (None, false)];
    let mut spans = Vec::new();
    for (number, (http_status, _)) in (1..).zip(cases) {
        let request = Span { facts: http(http_status), ..server(number, 0, "gateway", COUNTED) };
        spans.push(Span { name: format!("{number}"), ..request.clone() });
        let name = format!("{number} with an error");
        spans.push(Span { name, span_id: [number, 9, 0, 0, 0, 0, 0, 0], status: SpanStatus::Error, ..request });
    }
    let found = operations(spans);
    for (number, (http_status, is_failed)) in (1..).zip(cases) {
        let of = |name: String| found.iter().find(|operation| operation.name == name).map(|o| (o.completed, o.failed));
        let expected = if is_failed { (0.0, 1.0) } else { (1.0, 0.0) };
        assert_eq!(of(format!("{number}")), Some(expected), "{http_status:?}");
        assert_eq!(of(format!("{number} with an error")), Some((0.0, 1.0)), "{http_status:?}");
    }
}

#[test]
fn targets_are_a_system_else_an_address_and_most_attempts_come_first() {
    let no_port = SpanFacts { server_port: None, ..http(None) };
    let found = operations(vec![
        server(1, 0, "gateway", COUNTED),
        call(2, 1, "gateway", "GET", SpanFacts::default()),
        call(3, 1, "gateway", "GET", no_port),
        call(4, 1, "gateway", "GET", http(None)),
        call(5, 1, "gateway", "GET", http(None)),
        call(6, 1, "gateway", "GET", database("200", None)),
    ]);
    let targets: Vec<&str> = found[0].calls.iter().map(|call| call.target.as_str()).collect();
    assert_eq!(targets, ["orders:8080", "", "azure.cosmosdb", "orders"]);
}

#[test]
fn names_that_sort_last_are_left_out_beyond_the_limits() {
    let mut spans = Vec::new();
    for number in (0..700_u32).rev() {
        let bytes = number.to_be_bytes();
        let trace_id = [[9; 4], bytes, bytes, bytes].concat().try_into().unwrap();
        let name = format!("GET /{number:03}");
        spans.push(Span { trace_id, name, ..server(1, 0, "gateway", COUNTED) });
        if number == 123 {
            let call = |id: u8| call(id, 1, "gateway", &format!("query {id:02}"), database("200", None));
            spans.extend((2..=61).map(|id| Span { trace_id, ..call(id) }));
        }
    }
    let found = operations(spans);
    assert_eq!(found.len(), 500);
    assert!((0..).zip(&found).all(|(number, operation)| operation.name == format!("GET /{number:03}")));
    let calls: Vec<&str> = found[123].calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!((calls.len(), calls[0], calls[49]), (50, "query 02", "query 51"));
}

#[test]
fn spans_of_a_trace_beyond_the_limit_are_not_counted_but_their_number_is_known() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let calls = (2..=21).map(|id| call(id, 1, "gateway", "query", database("200", None)));
    let spans: Vec<Span> = [server(1, 0, "gateway", COUNTED)].into_iter().chain(calls).collect();
    let spans = [in_trace(1, spans.clone()), in_trace(2, spans[..6].to_vec())].concat();
    assert_eq!(wait(recorder.spans(spans)), kept(27));
    file.finish(RunState::Complete).unwrap();
    let trial = evidence(&place.path()).trials.remove(0);
    let reader = Reader::open(&place.path()).unwrap();
    for (spans_max, expected) in [(1_000, (25.0, 0)), (10, (14.0, 11)), (6, (10.0, 15))] {
        let found = reader.query(|connection| {
            operations_within(connection, &trial, &mut MessageTally::new(&trial), spans_max, |_| {})
        });
        let found = found.unwrap();
        assert_eq!((found[0].calls[0].attempts(), found[0].spans_left_out), expected, "{spans_max} of each trace");
    }
}

#[test]
fn numbers_at_the_edge_of_what_a_file_holds_never_panic() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    file.finish(RunState::Complete).unwrap();
    let edges = [i64::MIN, -1, 0, i64::MAX];
    for (start_ns, end_ns) in edges.into_iter().flat_map(|start| edges.map(|end| (start, end))) {
        for weight in ["9e999", "-9e999", "0.0", "1e300", "1e-300"] {
            let length = end_ns.saturating_sub(start_ns);
            let change = format!(
                "UPDATE windows SET start_ns = 0, end_ns = {}; \
                 UPDATE span_rows SET start_ns = {start_ns}, length_ns = {length}, db_charge = {weight}; \
                 UPDATE span_shape_rows SET weight = {weight}, http_status = {end_ns}",
                1_i64 << 62
            );
            Connection::open(place.path()).unwrap().execute_batch(&change).unwrap();
            let reader = Reader::open(&place.path()).unwrap();
            // The status fits no HTTP status at the edges, which the sample of traces may refuse; no trace is read here.
            let read = reader.evidence(TraceLimit { traces: 0, spans: 0 }).unwrap().trials.remove(0);
            let attempts: f64 = read.operations.iter().flat_map(|o| &o.calls).map(CallEvidence::attempts).sum();
            assert!(
                attempts.is_finite() && (attempts > 0.0) == (start_ns < i64::MAX),
                "{start_ns} {end_ns} {weight}: {attempts}"
            );
        }
    }
}
