//! Spans are read as they were written, however they were taken apart; and traces are thinned out honestly.

use super::*;
use crate::normalise::facts;

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
    assert!(caveats[1].contains(&format!("{} spans were counted but not kept", counts.thinned)), "{caveats:?}");
}

#[test]
fn a_file_that_is_full_takes_no_more_spans_and_counts_them() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 1, ..Limits::default() });
    for number in 0..10 {
        let Kept { kept, over_limit } = wait(recorder.spans(half(number, "gateway"))).unwrap();
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
