//! Stored traces are thinned out once there are many: failed and slow ones last, with sums that stay what they were.

use super::*;
use narrows_model::caveat::TrialCaveat;

const TRACES: u64 = 12_000;
const SPANS: u64 = 5;
const MS: i64 = 1_000_000;
/// Between two traces.
const STEP: i64 = SECOND / 2;

fn length_ns(number: u64) -> i64 {
    let usual = 10 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as i64 % 10;
    MS * if is_slow(number) { 500 + number as i64 % 50 } else { usual }
}

fn is_slow(number: u64) -> bool {
    number % 100 == 17
}

fn has_failed(number: u64) -> bool {
    number % 200 == 33
}

/// A request to one of two operations, and what it does below.
fn request(number: u64) -> Vec<Span> {
    let start_ns = T0 + number as i64 * STEP;
    let span = |at: u64| {
        let is_root = at == 0;
        Span {
            trace_id: (u128::from(number) + 1).to_be_bytes(),
            span_id: (at + 1).to_be_bytes(),
            parent_id: (!is_root).then(|| 1_u64.to_be_bytes()),
            name: if is_root { format!("GET /{}", number % 2) } else { format!("work {at}") },
            kind: if is_root { SpanKind::Server } else { SpanKind::Internal },
            start_ns: start_ns + at as i64,
            end_ns: start_ns + if is_root { length_ns(number) } else { MS },
            status: if is_root && has_failed(number) { SpanStatus::Error } else { SpanStatus::Unset },
            attributes: attributes(json!({ "n": number, "user": format!("user {}", number * at) })),
            weight: 1.0,
            ..trace(1, T0).spans.remove(0)
        }
    };
    (0..SPANS).map(span).collect()
}

fn send(recorder: &Recorder, numbers: std::ops::Range<u64>) {
    for first in numbers.clone().step_by(60) {
        let spans: Vec<Span> = (first..(first + 60).min(numbers.end)).flat_map(request).collect();
        let count = spans.len() as u64;
        assert_eq!(wait(recorder.spans(spans)), kept(count), "a sender is told that all is well");
    }
}

fn number(place: &Place, sql: &str) -> f64 {
    row(&place.path(), sql).parse().unwrap_or_else(|_| panic!("{sql}: {}", row(&place.path(), sql)))
}

#[test]
fn what_is_left_of_many_traces_says_what_they_said_and_the_slow_and_failed_ones_are_there() {
    let place = Place::new();
    let bytes = 2 << 20;
    let (file, recorder) = started(&place.path(), Limits { bytes, ..Limits::default() });
    send(&recorder, 0..TRACES);
    let size = number(&place, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    assert!(size <= 0.75 * bytes as f64, "freed pages are used again: {size}");
    file.finish(RunState::Complete).unwrap();

    let total = TRACES * SPANS;
    let counts = Reader::open(&place.path()).unwrap().counts(1).unwrap();
    assert_eq!((counts.spans.stored + counts.thinned, counts.spans.refused), (total, 0));
    let decided = "SELECT spans_one_in, spans_thinned_one_in > 4, spans_thinned_before_ns IS NOT NULL FROM trials";
    assert_eq!(row(&place.path(), decided), "1|1|1", "no trace was refused when it began");
    let exact = "SELECT sum(arrived), sum(weight), sum(kept) = (SELECT count(*) FROM spans), \
                 (SELECT arrived FROM span_counts WHERE status = 'error') FROM span_counts";
    assert_eq!(row(&place.path(), exact), format!("{total}|{total}.0|1|{}", TRACES / 200));
    let by_kind = "SELECT count(*) FROM span_counts AS c WHERE kept <> (SELECT count(*) FROM spans AS s \
                   WHERE s.service = c.service AND s.name = c.name AND s.kind = c.kind AND s.status = c.status)";
    assert_eq!(row(&place.path(), by_kind), "0");
    let parts = "SELECT count(*) FROM (SELECT 1 FROM spans GROUP BY trace_id HAVING count(*) <> 5 OR \
                 count(DISTINCT weight) <> 1)";
    assert_eq!(row(&place.path(), parts), "0", "traces are whole");

    let all = 0..TRACES;
    let of_roots = |what: &str| number(&place, &format!("SELECT {what} FROM spans WHERE kind = 'server'"));
    let near = |got: f64, expected: f64, by: f64| (got / expected - 1.0).abs() < by;
    let weighed = number(&place, "SELECT sum(weight) FROM spans");
    assert!(near(weighed, total as f64, 0.05), "{weighed} of {total}");
    let mean_ms = all.clone().map(length_ns).sum::<i64>() as f64 / TRACES as f64 / MS as f64;
    let got_ms = of_roots("sum(weight * duration_ms) / sum(weight)");
    assert!(near(got_ms, mean_ms, 0.05), "{got_ms} for {mean_ms}");
    let rate = of_roots("sum(weight * (status = 'error')) / sum(weight)");
    assert!(near(rate, 1.0 / 200.0, 0.2), "{rate}");
    let requests = number(&place, "SELECT sum(itemCount) FROM requests");
    assert!(near(requests, TRACES as f64, 0.05), "{requests}");
    let slow = of_roots("avg(duration_ms >= 500)");
    assert!(slow > 0.03, "three times as many as were sent: {slow}");
    assert!(of_roots("avg(status = 'error')") > 0.02);
    let latest = format!("sum(weight = 1), count(*), min(start_ns) >= {}", T0 + (TRACES as i64 - 30) * STEP);
    let latest =
        format!("SELECT {latest} FROM (SELECT * FROM spans WHERE kind = 'server' ORDER BY start_ns DESC LIMIT 30)");
    assert_eq!(row(&place.path(), &latest), "30|30|1", "what may still grow stays");
    let caveats = Reader::open(&place.path()).unwrap().trials().unwrap().remove(0).caveats;
    assert!(matches!(caveats[1], TrialCaveat::SpansThinned { is_slow_preferred: true, .. }), "{caveats:?}");
}

#[test]
fn what_comes_late_goes_with_its_trace() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 2 << 20, ..Limits::default() });
    send(&recorder, 0..4_000);
    let is_there = |number: u64| {
        let id = narrows_model::trace::hex(&(u128::from(number) + 1).to_be_bytes());
        row(&place.path(), &format!("SELECT count(*) FROM spans WHERE trace_id = '{id}'")) == "5"
    };
    let there = (0..500).find(|number| is_there(*number) && number % 100 != 17 && number % 200 != 33).unwrap();
    let gone = (0..500).find(|number| !is_there(*number)).unwrap();
    let late = |number: u64| {
        let span = request(number).remove(1);
        Span { span_id: [9; 8], name: "late".into(), end_ns: span.end_ns + SECOND, ..span }
    };
    let before = Reader::open(&place.path()).unwrap().counts(1).unwrap();
    assert_eq!(wait(recorder.spans(vec![late(there), late(gone)])), kept(2));
    let counts = Reader::open(&place.path()).unwrap().counts(1).unwrap();
    assert_eq!((counts.spans.stored + counts.thinned) - (before.spans.stored + before.thinned), 2);
    let sql = "SELECT arrived, kept, weight, (SELECT count(*) FROM spans WHERE name = 'late') FROM span_counts \
               WHERE name = 'late'";
    assert_eq!(row(&place.path(), sql), "2|1|2.0|1");

    // Traces that began long ago and were never seen have the chance of their time.
    let unseen: Vec<Span> = (0..400_u64)
        .map(|number| Span {
            trace_id: (u128::from(number) + 1_000_000).to_be_bytes(),
            name: "unseen".into(),
            ..request(10).remove(0)
        })
        .collect();
    assert_eq!(wait(recorder.spans(unseen)), kept(400));
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT arrived = 400 AND kept BETWEEN 1 AND 200 FROM span_counts WHERE name = 'unseen'";
    assert_eq!(row(&place.path(), sql), "1");
    let weights = "SELECT min(weight) = (SELECT spans_thinned_one_in FROM trials) FROM spans WHERE name = 'unseen'";
    assert_eq!(row(&place.path(), weights), "1");
}

#[test]
fn the_evidence_of_a_thinned_trial_counts_what_happened() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 2 << 20, ..Limits::default() });
    let window = |index: u32| Window {
        start_ns: T0 + i64::from(index) * 2_000 * STEP,
        end_ns: T0 + i64::from(index + 1) * 2_000 * STEP,
        drained_ns: None,
        index,
        ..windows().remove(1)
    };
    recorder.put_windows(1, &[window(0), window(1)]).unwrap();
    send(&recorder, 0..4_000);
    file.finish(RunState::Complete).unwrap();
    let reader = Reader::open(&place.path()).unwrap();
    for traces in [100_000, 400] {
        let trial = reader.evidence(TraceLimit { traces, spans: 200_000 }).unwrap().trials.remove(0);
        let completed: f64 = trial.operations.iter().map(|operation| operation.completed + operation.failed).sum();
        assert!((completed / 4_000.0 - 1.0).abs() < 0.1, "{completed}");
        let stood_for: f64 = trial.traces.iter().map(|trace| trace.weight).sum();
        assert!((stood_for / completed - 1.0).abs() < 1e-6, "{stood_for} for {completed}");
        let slow: f64 =
            trial.traces.iter().filter(|trace| trace.spans[0].duration_ns() > 400_000_000).map(|t| t.weight).sum();
        assert!((5.0..120.0).contains(&slow), "{traces}: {slow} of about 40");
    }
}
