//! Spans are read as they were written, however they were taken apart; and traces are thinned out honestly.

use super::*;
use crate::normalise::facts;
use narrows_model::caveat::TrialCaveat;

/// A span whose attributes differ in every way they can, by its number.
fn odd_span(number: u64) -> Span {
    let texts = ["", "plain", "100 %s", "a\"b\\c", "é\u{1}\n", "17", "017"];
    let text = texts[(number % 7) as usize];
    let path = if number.is_multiple_of(11) { "/a\"b".to_owned() } else { format!("/orders/{number}") };
    let values = [json!(number), json!(null), json!(0.1), json!([text, number]), json!({ "deep": [null, text] })];
    let mut all = json!({
        "fixed": "50 % of \"all\"",
        "few": number % 3,
        "text": text,
        "typed": values[(number % 5) as usize],
        "url.path": path,
        "user": format!("u{number}"),
    });
    match number % 4 {
        0 => all["url.query"] = json!(format!("page={}&x=%41", number % 100)),
        1 => all["url.full"] = json!(format!("http://shop/{text}{number}")),
        2 => (0..12).for_each(|key| all[format!("many.{key:02}")] = json!(format!("{text}{}", number * key))),
        _ => all["db.statement"] = json!(format!("SELECT {} '{text}'", number % 20)),
    }
    let all = attributes(all);
    let mut span = Span { facts: facts(&all), attributes: all, ..trace(1, T0 + 11 * SECOND).spans.remove(0) };
    span.span_id = (number + 1).to_be_bytes();
    span.start_ns += number as i64;
    span.end_ns = span.start_ns + [20, 0, -5][(number % 3) as usize];
    if number.is_multiple_of(5) {
        span.facts.url = Some(format!("own %d {text}{number}"));
        span.facts.db_query = Some(format!("own \"{number}\" %%"));
        span.status_message = format!("{text}{number} 100 %");
    }
    if number.is_multiple_of(13) {
        (span.facts.url, span.facts.db_query) = (None, None);
    }
    span.name = format!("name {}", number % 2);
    span.weight = 1.0;
    span
}

#[test]
fn every_span_is_read_as_it_was_written() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let written: Vec<Span> = (0..3_000).map(odd_span).collect();
    for call in written.chunks(100) {
        assert_eq!(wait(recorder.spans(call.to_vec())), kept(100));
    }
    let read = || evidence(&place.path()).trials.remove(0).traces.remove(0).spans;
    for (written, read) in written.iter().zip(read()) {
        assert_eq!(*written, read, "while the run lasts");
    }
    file.finish(RunState::Complete).unwrap();
    assert_eq!(read(), written);

    let connection = Connection::open(place.path()).unwrap();
    let sql = "SELECT status_message, url, db_query, attributes, end_ns FROM spans ORDER BY start_ns";
    let mut spans = connection.prepare(sql).unwrap();
    let mut spans = spans.query([]).unwrap();
    for written in &written {
        let row = spans.next().unwrap().unwrap();
        let text = |at| row.get::<_, Option<String>>(at).unwrap();
        assert_eq!(text(0).as_ref(), Some(&written.status_message));
        assert_eq!((text(1), text(2)), (written.facts.url.clone(), written.facts.db_query.clone()));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text(3).unwrap()).unwrap(), json!(written.attributes));
        assert_eq!(row.get::<_, i64>(4).unwrap(), written.end_ns);
    }
    let shapes = row(&place.path(), "SELECT count(*) < 1000 FROM span_shape_rows");
    assert_eq!(shapes, "1", "far fewer than spans");
}

#[test]
fn facts_are_read_from_columns_whatever_attributes_say() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let text = |text: &str, number: u8| Some(format!("{text} %s {}", number % 3));
    let span = |number: u8| {
        let plain = trace(1, T0 + 11 * SECOND).spans.remove(0);
        let facts = SpanFacts {
            rpc_system: text("system", number),
            rpc_service: text("service", number),
            rpc_method: text("method", number),
            rpc_status: text("status", number),
            messaging_system: text("messages", number),
            messaging_destination: Some(format!("queue {number} 100 %")),
            messaging_operation: text("operation", number),
            batch_size: number.is_multiple_of(2).then(|| u32::from(number) * 1_000),
            db_collection: text("collection", number),
            peer_service: text("peer", number),
            url_template: text("/template", number),
            ..plain.facts.clone()
        };
        let said = if number.is_multiple_of(2) { "messaging.destination.name" } else { "other" };
        let attributes = attributes(json!({ said: format!("queue {number} 100 %"), "url.template": "another" }));
        Span { span_id: [number + 1; 8], start_ns: plain.start_ns + i64::from(number), facts, attributes, ..plain }
    };
    let written: Vec<Span> = (0..60).map(span).collect();
    assert_eq!(wait(recorder.spans(written.clone())), kept(60));
    file.finish(RunState::Complete).unwrap();
    assert_eq!(evidence(&place.path()).trials.remove(0).traces.remove(0).spans, written);
    let sql = "SELECT rpc_system, rpc_service, rpc_method, rpc_status, messaging_system, messaging_destination, \
               messaging_operation, batch_size, db_collection, peer_service, url_template, request_name FROM spans \
               WHERE messaging_destination = 'queue 4 100 %'";
    let said = "system %s 1|service %s 1|method %s 1|status %s 1|messages %s 1|queue 4 100 %|operation %s 1|4000|\
                collection %s 1|peer %s 1|/template %s 1|GET /api/invoices";
    assert_eq!(row(&place.path(), sql), said);
}

#[test]
fn attributes_however_deep_are_kept_so_that_they_can_be_read() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let deep = |levels: usize| (0..levels).fold(json!("core"), |inner, _| json!({ "in": [inner] }));
    let spans = [3, 20, 60, 300].map(|levels| {
        let span = trace(1, T0 + 11 * SECOND).spans.remove(0);
        let attributes = attributes(json!({ "deep": deep(levels), "beside": levels }));
        Span { span_id: (levels as u64).to_be_bytes(), start_ns: span.start_ns + levels as i64, attributes, ..span }
    });
    assert_eq!(wait(recorder.spans(spans.to_vec())), kept(4));
    file.finish(RunState::Complete).unwrap();
    let read = evidence(&place.path()).trials.remove(0).traces.remove(0).spans;
    assert_eq!(read[..2], spans[..2]);
    for (read, levels) in read[2..].iter().zip([60, 300]) {
        assert_eq!(read.attributes["beside"], json!(levels));
        let text = read.attributes["deep"].to_string();
        assert!(text.contains("(nested too deeply)") && !text.contains("core"), "{text}");
    }
    let sql = "SELECT count(*) FROM spans WHERE json_extract(attributes, '$.beside') = 300";
    assert_eq!(row(&place.path(), sql), "1");
}

#[test]
fn what_repeats_is_written_once() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let spans: Vec<Span> =
        (0..100).map(|number| Span { span_id: [number + 1; 8], ..trace(1, T0).spans.remove(0) }).collect();
    assert_eq!(wait(recorder.spans(spans)), kept(100));
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT (SELECT count(*) FROM span_shape_rows), (SELECT count(*) FROM trace_rows), \
               (SELECT count(a1) FROM span_rows), count(*), count(DISTINCT attributes) FROM spans";
    assert_eq!(row(&place.path(), sql), "1|1|0|100|1");
}

/// Spans of a trace that one of two services sends.
fn half(number: u64, service: &str) -> Vec<Span> {
    let trace_id = (u128::from(number) + 1).to_be_bytes();
    let span = |at: u8| Span {
        trace_id,
        span_id: [service.len() as u8, at, 1, 1, 1, 1, 1, 1],
        service: service.into(),
        status: if number.is_multiple_of(50) { SpanStatus::Error } else { SpanStatus::Unset },
        weight: 2.0,
        ..trace(1, T0).spans.remove(0)
    };
    (0..5).map(span).collect()
}

#[test]
fn near_the_ceiling_whole_traces_stand_for_others_and_everything_is_counted() {
    const TRACES: u64 = 6_000;
    let place = Place::new();
    let bytes = 1 << 20;
    let (file, recorder) = started(&place.path(), Limits { bytes, ..Limits::default() });
    for first in (0..TRACES).step_by(50) {
        for service in ["gateway", "orders"] {
            let spans: Vec<Span> = (first..first + 50).flat_map(|number| half(number, service)).collect();
            assert_eq!(wait(recorder.spans(spans)), kept(250), "a sender is told that all is well");
        }
    }
    let size = row(&place.path(), "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    assert!(size.parse::<u64>().unwrap() <= bytes, "{size}");
    file.finish(RunState::Complete).unwrap();

    let reader = Reader::open(&place.path()).unwrap();
    let counts = reader.counts(1).unwrap();
    assert_eq!((counts.spans.stored + counts.thinned, counts.spans.refused), (10 * TRACES, 0));
    assert!(counts.thinned > counts.spans.stored, "{counts:?}");
    let exact = "SELECT sum(arrived), sum(weight), sum(kept), \
                 (SELECT sum(arrived) FROM span_counts WHERE status = 'error' AND service = 'orders') FROM span_counts";
    assert_eq!(row(&place.path(), exact), format!("60000|120000.0|{}|600", counts.spans.stored));
    let halves = "SELECT count(*) FROM (SELECT 1 FROM spans GROUP BY trace_id HAVING count(*) <> 10 OR \
                  count(DISTINCT weight) <> 1)";
    assert_eq!(row(&place.path(), halves), "0", "traces are whole");
    let stood_for: f64 = row(&place.path(), "SELECT sum(weight) FROM spans").parse().unwrap();
    assert!((stood_for / 120_000.0 - 1.0).abs() < 0.2, "{stood_for}");
    let caveats = reader.trials().unwrap().remove(0).caveats;
    assert!(matches!(caveats[1], TrialCaveat::SpansThinned { spans, .. } if spans == counts.thinned), "{caveats:?}");
}

#[test]
fn a_file_that_is_full_takes_no_more_spans_and_counts_them() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 1, ..Limits::default() });
    for number in 0..10 {
        let KeptCounts { kept, over_limit, .. } = wait(recorder.spans(half(number, "gateway"))).unwrap();
        assert_eq!((kept + over_limit, kept), (5, u64::from(number == 0)), "a look at the size follows the first");
    }
    file.finish(RunState::Complete).unwrap();
    let counts =
        "SELECT spans_stored, spans_refused, spans_thinned, (SELECT sum(arrived) FROM span_counts) FROM trials";
    assert_eq!(row(&place.path(), counts), "1|49|0|50");
}

#[test]
fn names_without_end_do_not_make_a_full_file_grow() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 1, ..Limits::default() });
    for call in 0..24 {
        let named = |number: u64| {
            let number = call * 500 + number;
            Span { name: format!("GET /{number}"), ..half(number, "gateway").remove(0) }
        };
        wait(recorder.spans((0..500).map(named).collect())).unwrap();
    }
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT sum(arrived), (SELECT sum(arrived) FROM span_counts WHERE name = '(other names)'), \
               (SELECT count(*) FROM strings WHERE text GLOB 'GET /[0-9]*') FROM span_counts";
    assert_eq!(row(&place.path(), sql), "12000|2000|10000");
}

#[test]
fn a_trace_that_has_begun_is_kept_whole_also_when_it_was_forgotten() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 1 << 20, ..Limits::default() });
    recorder.put_trial(&trial(2)).unwrap();
    let first = |numbers: std::ops::Range<u64>| numbers.map(|number| half(number, "gateway").remove(0)).collect();
    assert_eq!(wait(recorder.spans(first(0..100))), kept(100));
    assert_eq!(wait(recorder.spans(first(100..20_000))), kept(19_900));
    recorder.set_trial(Some(2));
    assert_eq!(wait(recorder.spans(first(0..1))), kept(1), "another trial's traces take the place of these");
    recorder.set_trial(Some(1));
    let late: Vec<Span> =
        (0..100).map(|number| Span { name: "late".into(), ..half(number, "orders").remove(0) }).collect();
    assert_eq!(wait(recorder.spans(late)), kept(100));
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT (SELECT spans_one_in > 1 FROM trials WHERE id = 1), sum(arrived), sum(kept) \
               FROM span_counts WHERE name = 'late'";
    assert_eq!(row(&place.path(), sql), "1|100|100");
}

#[test]
fn names_without_end_are_kept_and_counted_together() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    for call in 0..24 {
        let named = |number: u64| {
            let number = call * 500 + number;
            Span { span_id: (number + 1).to_be_bytes(), name: format!("GET /{number}"), ..odd_span(number % 4) }
        };
        assert_eq!(wait(recorder.spans((0..500).map(named).collect())), kept(500));
    }
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT (SELECT count(DISTINCT name) FROM spans), count(*), sum(arrived), \
               (SELECT arrived FROM span_counts WHERE name = '(other names)') FROM span_counts";
    assert_eq!(row(&place.path(), sql), "12000|10001|12000|2000");
}

/// Two traces of calls by RPC, messaging and HTTP templates, some of whose attributes differ from span to span.
fn remote_calls() -> Vec<Span> {
    let span = |number: u8| {
        let given = match number % 3 {
            0 => json!({ "rpc.system": "grpc", "rpc.service": "Cart", "rpc.method": "Add", "rpc.grpc.status_code": 4 }),
            1 => json!({
                "messaging.system": "kafka", "messaging.operation": "publish", "messaging.batch.message_count": number,
                "messaging.destination.name": format!("replies {number} 100 %"),
            }),
            _ => {
                json!({ "url.template": "/a/{id}", "peer.service": "b", "db.collection.name": "c", "http.method": "GET",
                "url.path": format!("/a/{number}") })
            }
        };
        let given = attributes(given);
        let facts = facts(&given);
        let span = trace(1 + number % 2, T0 + 11 * SECOND + i64::from(number)).spans.remove(0);
        Span { span_id: [number + 1; 8], facts, attributes: given, name: "work".into(), ..span }
    };
    (0..30).map(span).collect()
}

#[test]
fn every_fact_of_a_remote_call_has_a_column_and_stays_when_the_run_is_resumed() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    assert_eq!(wait(recorder.spans(remote_calls())), kept(30));
    file.finish(RunState::Interrupted).unwrap();
    let expected = evidence(&place.path());
    let names = "SELECT group_concat(name, ' ') FROM (SELECT name FROM requests ORDER BY timestamp_ns)";
    let columns = "SELECT json_group_array(json_array(rpc_system, rpc_service, rpc_method, rpc_status, messaging_system, \
                   messaging_destination, messaging_operation, batch_size, db_collection, peer_service, url_template, \
                   request_name)) FROM (SELECT * FROM spans ORDER BY start_ns)";
    let (named, said) = (row(&place.path(), names), row(&place.path(), columns));
    assert!(named.starts_with("work work GET /a/2 work work GET /a/5"), "{named}");
    assert!(said.contains("\"replies 4 100 %\",\"send\",4,"), "{said}");
    assert_eq!(row(&place.path(), "SELECT count(*) > 5 AND count(*) < 30 FROM span_shape_rows"), "1");

    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    file.finish(RunState::Interrupted).unwrap();
    assert_eq!(evidence(&place.path()), expected);
    assert_eq!((row(&place.path(), names), row(&place.path(), columns)), (named, said));
}
