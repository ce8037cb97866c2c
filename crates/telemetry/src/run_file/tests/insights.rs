//! The views under the names of Application Insights: what they say of spans, logs and points.

use narrows_model::table::Cell as TableCell;

use super::query::{ask, finished, first};
use super::*;

/// A trace of everything that has a type of its own: `(facts, attributes, kind, expected type | target | resultCode)`.
fn calls() -> Vec<(SpanFacts, serde_json::Value, SpanKind, &'static str)> {
    let text = |text: &str| Some(text.to_owned());
    let database = |system: &str, port| SpanFacts {
        db_system: text(system),
        db_namespace: text("shop"),
        server_address: text("db"),
        server_port: port,
        ..SpanFacts::default()
    };
    let none = SpanFacts::default;
    let http = SpanFacts {
        http_method: text("GET"),
        http_status: Some(503),
        url: text("http://cart:8080/items/7?x=/1"),
        server_address: text("cart"),
        server_port: Some(8080),
        ..none()
    };
    let messaging = |system: &str| json!({ "messaging.system": system });
    vec![
        (database("azure.cosmosdb", Some(443)), json!({}), SpanKind::Client, "call|Azure DocumentDB|db | shop|"),
        (database("microsoft.sql_server", Some(1433)), json!({}), SpanKind::Client, "call|SQL|db | shop|"),
        (database("sqlite", None), json!({}), SpanKind::Client, "call|SQL|db | shop|"),
        (database("postgresql", Some(5433)), json!({}), SpanKind::Client, "call|postgresql|db:5433 | shop|"),
        (database("mysql", Some(3306)), json!({}), SpanKind::Internal, "call|InProc|db | shop|"),
        (http, json!({}), SpanKind::Client, "GET /items/7|HTTP|cart:8080|503"),
        (none(), messaging("servicebus"), SpanKind::Client, "call|Azure Service Bus||0"),
        (none(), messaging("eventhubs"), SpanKind::Producer, "call|Queue Message | Azure Event Hubs||0"),
        (none(), messaging("kafka"), SpanKind::Producer, "call|Queue Message | kafka||0"),
        (none(), json!({ "rpc.system": "grpc" }), SpanKind::Client, "call|grpc||0"),
        (none(), json!({}), SpanKind::Client, "call|||0"),
    ]
}

#[test]
fn dependencies_have_the_words_of_application_insights() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let template = trace(1, T0).spans.remove(1);
    let spans = (0..).zip(calls()).map(|(number, (facts, given, kind, _))| {
        let attributes = attributes(given);
        let SpanFacts { messaging_system, rpc_system, .. } = crate::normalise::facts(&attributes);
        Span {
            span_id: [number + 1; 8],
            name: "call".into(),
            status: SpanStatus::Unset,
            facts: SpanFacts { messaging_system, rpc_system, ..facts },
            kind,
            attributes,
            ..template.clone()
        }
    });
    let count = calls().len() as u64;
    assert_eq!(wait(recorder.spans(spans.collect())), kept(count));
    file.finish(RunState::Complete).unwrap();
    for (number, (.., expected)) in (1..).zip(calls()) {
        let sql = format!(
            "SELECT name, type, target, resultCode FROM dependencies WHERE id = '{}'",
            format!("{number:02x}").repeat(8)
        );
        assert_eq!(first(&place, &sql), expected, "{number}");
    }
    assert_eq!(first(&place, "SELECT count(*), sum(success) FROM dependencies"), format!("{count}|{}", count - 1));
}

#[test]
fn requests_are_named_as_the_product_names_them() {
    let cases = [
        ("GET /orders", Some("GET"), Some("/orders/{id}"), None, json!({}), "GET /orders"),
        ("GET", Some("GET"), Some("/orders/{id}"), None, json!({}), "GET /orders/{id}"),
        ("orders", Some("GET"), None, Some("/orders/7?x=1"), json!({}), "GET /orders/7"),
        ("orders", Some("GET"), None, None, json!({}), "orders"),
        ("GETTER", Some("GET"), None, None, json!({}), "GETTER"),
        ("work", None, Some("/x"), None, json!({}), "work"),
        ("GET /a", Some("GET"), None, None, json!({ "microsoft.request.name": "GET Orders/List" }), "GET Orders/List"),
    ];
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let template = trace(1, T0).spans.remove(0);
    let spans = (0..).zip(&cases).map(|(number, (name, method, route, url, given, _))| {
        let owned = |text: &Option<&str>| text.map(str::to_owned);
        let facts = SpanFacts {
            http_method: owned(method),
            http_route: owned(route),
            url: owned(url),
            http_status: Some(404),
            ..SpanFacts::default()
        };
        let name = (*name).to_owned();
        Span { span_id: [number + 1; 8], name, facts, attributes: attributes(given.clone()), ..template.clone() }
    });
    assert_eq!(wait(recorder.spans(spans.collect())), kept(cases.len() as u64));
    file.finish(RunState::Complete).unwrap();
    for (number, (.., expected)) in (1..).zip(&cases) {
        let id = format!("{number:02x}").repeat(8);
        let sql =
            format!("SELECT name, operation_Name, success, resultCode, itemCount FROM requests WHERE id = '{id}'");
        assert_eq!(first(&place, &sql), format!("{expected}|{expected}|0|404|4"));
    }
}

#[test]
fn a_call_belongs_to_the_nearest_request_above_it() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let template = trace(1, T0).spans.remove(1);
    let at = |id: u8, parent: u8, name: &str, kind| Span {
        span_id: [id; 8],
        parent_id: (parent > 0).then_some([parent; 8]),
        name: name.into(),
        kind,
        ..template.clone()
    };
    let (server, client, inner) = (SpanKind::Server, SpanKind::Client, SpanKind::Internal);
    let spans = vec![
        at(1, 0, "GET /gateway", server),
        at(2, 1, "GET", client),
        at(3, 2, "GET /orders", server),
        at(4, 3, "work", inner),
        at(5, 4, "SELECT", client),
        at(6, 99, "SELECT alone", client),
    ];
    assert_eq!(wait(recorder.spans(spans)), kept(6));
    file.finish(RunState::Complete).unwrap();
    let of = |id: u8| {
        first(
            &place,
            &format!("SELECT operation_Name FROM dependencies WHERE id = '{}'", format!("{id:02x}").repeat(8)),
        )
    };
    assert_eq!([of(2), of(4), of(5), of(6)], ["GET /gateway", "GET /orders", "GET /orders", ""]);
    let exceptions = "SELECT problemId, message, operation_Name FROM exceptions WHERE problemId LIKE '%GET /orders'";
    assert_eq!(first(&place, exceptions), "429 at GET /orders|too many requests|GET /orders");
}

#[test]
fn exceptions_come_from_spans_and_from_log_records() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let mut spans = trace(1, T0).spans;
    spans[1].attributes = attributes(json!({ "narrows.exceptions": [
        { "time_ns": T0 + 5, "type": "Overload", "message": "too much", "stacktrace": "at a\nat b" },
        { "time_ns": 0, "type": "Late", "message": "", "stacktrace": "" },
    ] }));
    assert_eq!(wait(recorder.spans(spans)), kept(2));
    let said = "cannot sell\nexception.type=SoldOut\nexception.message=none left\nexception.stacktrace=at x\nat y";
    let record = LogLine { stream: LogStream::Otlp, trace_id: Some([1; 16]), ..line(said) };
    let printed = LogLine { trace_id: Some([1; 16]), ..line("hello\nexception.type=only printed") };
    assert_eq!(wait(recorder.logs(vec![record, printed])), kept(2));
    file.finish(RunState::Complete).unwrap();
    let end = spans_end();
    for (kind, expected) in [
        ("Overload", format!("Overload at SELECT invoices|too much|at a\nat b|{}|GET /api/invoices", T0 + 5)),
        ("Late", format!("Late at SELECT invoices|||{end}|GET /api/invoices")),
        ("SoldOut", format!("SoldOut|none left|at x\nat y|{T0}|GET /api/invoices")),
    ] {
        let sql = format!(
            "SELECT problemId, message, details, timestamp_ns, operation_Name FROM exceptions WHERE type = '{kind}'"
        );
        assert_eq!(first(&place, &sql), expected);
    }
    assert_eq!(first(&place, "SELECT count(*) FROM exceptions"), "3", "the span's own failure is one of them already");
    assert_eq!(first(&place, "SELECT count(*), min(substr(message, 1, 5)) FROM traces"), "1|hello");
}

/// When the database span of [`trace`] at [`T0`] ends.
fn spans_end() -> i64 {
    trace(1, T0).spans[1].end_ns
}

#[test]
fn the_other_views_have_their_columns() {
    let place = finished();
    for (sql, expected) in [
        (
            "SELECT timestamp, timestamp_ns, duration, performanceBucket, success, itemType, variant FROM requests \
             ORDER BY timestamp LIMIT 1",
            "2026-11-21T12:00:00.0000000Z|1795262400000000000|20.0|<250ms|1|request|test-1",
        ),
        (
            "SELECT timestamp, name, type, target, data, success, resultCode, charge, itemCount, operation_Name, \
             operation_ParentId, cloud_RoleName FROM dependencies ORDER BY timestamp LIMIT 1",
            "2026-11-21T12:00:00.0010000Z|SELECT invoices|Azure DocumentDB|invoices|SELECT * FROM c WHERE c.token = \
             'kept'|0|429|2.5|4|GET /api/invoices|0303030303030303|gateway",
        ),
        (
            "SELECT count(*), sum(itemCount), min(type), min(operation_Name) FROM exceptions",
            "3|12|429|GET /api/invoices",
        ),
        (
            "SELECT category, counter, instance, value, unit FROM performanceCounters WHERE instance = 'docstore#1'",
            "Process|% Processor Time|docstore#1|100.0|%",
        ),
        ("SELECT count(*) FROM customMetrics", "0"),
        (
            "SELECT timestamp, message, severityLevel, operation_Id, operation_Name, cloud_RoleInstance FROM traces \
             WHERE message = 'world'",
            "2026-11-21T12:00:00.0000000Z|world|NULL|07070707070707070707070707070707||0",
        ),
        ("SELECT percentile(duration, 50), stdev(duration) FROM dependencies", "12.5|0.0"),
        ("SELECT count(*) FROM (SELECT * FROM requests UNION ALL SELECT * FROM dependencies)", "6"),
    ] {
        assert_eq!(first(&place, sql), expected, "{sql}");
    }
}

#[test]
fn what_narrows_samples_is_a_performance_counter_and_nothing_else_is() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let point = |name: &str, unit: &str| {
        let key = SeriesKey { name: name.into(), unit: unit.into(), ..key("gateway") };
        (key, Point { time_ns: T0, value: 0.5 })
    };
    let sampled: Vec<_> = names::SAMPLED.iter().map(|(name, unit)| point(name, unit)).collect();
    let reported = vec![point("process.cpu.time", "s"), point("queue.length", "")];
    let (sampled_count, reported_count) = (sampled.len() as u64, reported.len() as u64);
    assert_eq!(wait(recorder.points(sampled)), kept(sampled_count));
    assert_eq!(wait(recorder.points(reported)), kept(reported_count));
    file.finish(RunState::Complete).unwrap();
    assert_eq!(first(&place, "SELECT count(*) FROM performanceCounters"), sampled_count.to_string());
    let metrics = "SELECT name, value, valueCount, valueSum, valueMin, valueMax, customDimensions FROM customMetrics \
                   WHERE name = 'queue.length'";
    assert_eq!(first(&place, "SELECT count(*) FROM customMetrics"), reported_count.to_string());
    assert_eq!(first(&place, metrics), "queue.length|0.5|1|0.5|0.5|0.5|{\"state\":\"user\"}");
}

/// The counts that Application Insights' queries add up equal the weights used everywhere else.
#[test]
fn items_add_up_to_the_weight() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    for (number, weight) in (0_u16..600).map(|number| (number, [1.0, 1.4, 3.0, 13.71][usize::from(number % 4)])) {
        let mut trace = trace(1, T0);
        let [high, low] = number.to_be_bytes();
        for (position, span) in (0..).zip(&mut trace.spans) {
            span.trace_id[..2].copy_from_slice(&[high, low]);
            span.span_id = [high, low, position, 1, 1, 1, 1, 1];
            span.weight = weight;
        }
        assert_eq!(wait(recorder.spans(trace.spans)), kept(2));
    }
    file.finish(RunState::Complete).unwrap();
    let parts = ["1", "weight = 1.4", "weight > 10", "weight IN (1, 3)"];
    for part in parts {
        let sql = format!(
            "SELECT sum(r.itemCount) - sum(s.weight) FROM requests AS r JOIN spans AS s ON s.trial = r.trial \
             AND s.trace_id = r.operation_Id AND s.span_id = r.id WHERE {part}"
        );
        let apart: f64 = first(&place, &sql).parse().unwrap();
        assert!(apart.abs() <= 5.0, "{part}: {apart}");
    }
    let unlike = "SELECT count(*) FROM requests AS r JOIN dependencies AS d ON d.trial = r.trial AND \
                  d.operation_Id = r.operation_Id WHERE d.itemCount <> r.itemCount";
    assert_eq!(first(&place, unlike), "0", "a trace has one count");
    let near = "SELECT count(*) FROM requests WHERE itemCount NOT IN (1, 2, 3, 13, 14)";
    assert_eq!(first(&place, near), "0", "a count is next to the weight");
}

#[test]
fn views_are_dissolved_in_the_query_around_them() {
    let place = finished();
    let plan = |sql: &str| {
        let table = ask(&place, &format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let detail = |row: Vec<TableCell>| match row.into_iter().next_back() {
            Some(TableCell::Text(detail)) => detail,
            other => panic!("{other:?}"),
        };
        table.rows.into_iter().map(detail).collect::<Vec<_>>().join("\n")
    };
    for sql in [
        "SELECT name, success FROM requests WHERE timestamp_ns > 0",
        "SELECT sum(itemCount) FROM dependencies WHERE type = 'HTTP'",
        "SELECT message FROM traces",
        "SELECT value FROM customMetrics",
        "SELECT value FROM performanceCounters WHERE trial = 1",
    ] {
        let plan = plan(sql);
        let is_apart =
            ["MATERIALIZE", "CO-ROUTINE", "SCAN requests", "SCAN dependencies"].iter().any(|word| plan.contains(word));
        assert!(!is_apart, "{sql}:\n{plan}");
    }
    // Columns that are not selected are not looked up: these have no part of the plan, whatever the view computes.
    assert!(!plan("SELECT itemCount FROM dependencies").contains("RECURSIVE"));
    let joined = plan(
        "SELECT d.id FROM requests AS r JOIN dependencies AS d ON d.trial = r.trial AND d.operation_Id = r.operation_Id",
    );
    assert!(joined.contains("trace_hex=?") || joined.contains("trace=?"), "{joined}");
}
