//! Spans that wait for their rows: kept packed, and read as if they never had waited.

use proptest::prelude::*;

use narrows_model::caveat::TrialCaveat;

use super::super::packed_requests;
use super::*;
use crate::otlp::convert::{PackedSpans, spans_to_keep};
use crate::otlp::{Format, Weights, encode};
use crate::run_file::redaction::Record;
use crate::secrets::KnownSecrets;

/// These spans as an exporter sends them and the receiver packs them.
pub(super) fn packed(spans: Vec<Span>) -> PackedSpans {
    let count = spans.len();
    let (packed, others) = spans_to_keep(&encode::spans(spans, "1"), Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!((packed.spans(), others.records.len()), (count, 0));
    packed
}

/// As a receiver makes them: the facts are those of the attributes.
fn span(number: u64) -> Span {
    let all = attributes(json!({
        "http.request.method": "GET", "url.path": format!("/a/{number}"), "db.query.text": "SELECT 'a'", "n": number % 7
    }));
    Span {
        trace_id: (u128::from(number / 4) + 1).to_be_bytes(),
        span_id: (number + 1).to_be_bytes(),
        parent_id: None,
        facts: crate::normalise::facts(&all),
        attributes: all,
        start_ns: T0 + 11 * SECOND + number as i64,
        end_ns: T0 + 11 * SECOND + number as i64 + 5,
        weight: 1.0,
        ..trace(1, T0).spans.remove(0)
    }
}

pub(super) fn spans(numbers: std::ops::Range<u64>) -> Vec<Span> {
    numbers.map(span).collect()
}

fn send(recorder: &Recorder, numbers: std::ops::Range<u64>) {
    let (all, first) = (numbers.end - numbers.start, numbers.start);
    let calls = (0..all / 100).map(|call| spans(first + call * 100..first + call * 100 + 100));
    for call in calls {
        assert_eq!(wait(recorder.packed(packed(call), vec![])), kept(100));
    }
}

fn waiting(path: &Path) -> u64 {
    Reader::open_as_it_is(path).unwrap().waiting().unwrap()
}

fn with_windows(place: &Place, limits: Limits) -> (RunFile, Recorder) {
    let (file, recorder) = started(&place.path(), limits);
    recorder.put_windows(1, &windows()).unwrap();
    (file, recorder)
}

#[test]
fn they_get_the_rows_that_they_would_have_had_once_their_trial_ends() {
    let (waited, direct) = (Place::new(), Place::new());
    let (file, recorder) = with_windows(&waited, Limits::default());
    let kept_at_once = span(1_000);
    assert_eq!(wait(recorder.packed(packed(spans(0..400)), vec![kept_at_once.clone()])), kept(401));
    assert_eq!(wait(recorder.packed(packed(spans(300..500)), vec![])), kept(200), "half of them for the second time");
    let rows = "SELECT (SELECT count(*) FROM span_rows), (SELECT sum(spans) FROM inbox_rows)";
    assert_eq!(row(&waited.path(), rows), "1|600");
    recorder.put_trial(&Trial { state: TrialState::Done, ..trial(1) }).unwrap();
    assert_eq!(row(&waited.path(), rows), "501|");
    file.finish(RunState::Complete).unwrap();

    let (file, recorder) = with_windows(&direct, Limits::default());
    let all: Vec<Span> = [kept_at_once].into_iter().chain(spans(0..500)).collect();
    assert_eq!(wait(recorder.spans(all)), kept(501));
    recorder.put_trial(&Trial { state: TrialState::Done, ..trial(1) }).unwrap();
    file.finish(RunState::Complete).unwrap();
    let (got, expected) = (evidence(&waited.path()).trials, evidence(&direct.path()).trials);
    assert_eq!((got[0].traces.len(), got[0].spans_total), (126, 501));
    assert_eq!(got, expected);
    let counts =
        "SELECT spans_stored, (SELECT sum(arrived) FROM span_counts), (SELECT sum(kept) FROM span_counts) FROM trials";
    assert_eq!(row(&waited.path(), counts), "501|501|501");
}

#[test]
fn while_a_trial_lasts_a_reader_sees_how_many_wait() {
    let place = Place::new();
    let (file, recorder) = with_windows(&place, Limits::default());
    send(&recorder, 0..300);
    let reader = Reader::open(&place.path()).unwrap();
    assert_eq!((reader.waiting().unwrap(), reader.counts(1).unwrap().spans.stored), (300, 0));
    assert_eq!(reader.trials().unwrap()[0].caveats[1], TrialCaveat::SpansWaiting { spans: 300 });
    drop(reader);
    file.finish(RunState::Interrupted).unwrap();
    let reader = Reader::open(&place.path()).unwrap();
    assert_eq!((reader.waiting().unwrap(), reader.counts(1).unwrap().spans.stored), (0, 300));
    assert_eq!(reader.trials().unwrap()[0].caveats.len(), 1);
}

#[test]
fn what_a_killed_process_left_is_there_for_whoever_opens_the_file() {
    let place = Place::new();
    let (_file, recorder) = with_windows(&place, Limits::default());
    send(&recorder, 0..500);
    let killed = place.copy_as_killed();
    assert_eq!(super::query::first(&killed, "SELECT count(*) FROM spans"), "500");
    assert_eq!(evidence(&killed.path()).trials[0].spans_total, 500);
    assert_eq!(waiting(&killed.path()), 0);

    let resumed = place.copy_as_killed();
    let (file, ..) = RunFile::resume(&resumed.path()).unwrap();
    assert_eq!(row(&resumed.path(), "SELECT spans_stored FROM trials"), "500");
    file.recorder().set_trial(Some(1));
    send(&file.recorder(), 500..600);
    file.restart_trial(1).unwrap();
    assert_eq!(waiting(&resumed.path()), 0);
    file.finish(RunState::Interrupted).unwrap();
    assert_eq!(row(&resumed.path(), "SELECT count(*) FROM span_rows"), "0");
    assert_eq!(row(&resumed.path(), "PRAGMA integrity_check"), "ok");
}

#[test]
fn no_more_wait_than_a_limit_allows() {
    let bytes = packed(spans(0..100)).bytes().len() as u64;
    for max in [
        packed_requests::Size { spans: 1_000, bytes: u64::MAX },
        packed_requests::Size { spans: u64::MAX, bytes: 10 * bytes },
    ] {
        let place = Place::new();
        let (file, recorder) = with_windows(&place, Limits { waiting: max, ..Limits::default() });
        let mut most = 0;
        for call in 0..35 {
            send(&recorder, call * 100..call * 100 + 100);
            most = most.max(waiting(&place.path()));
        }
        assert!((800..=1_000).contains(&most), "{most}");
        file.finish(RunState::Complete).unwrap();
        let counts =
            "SELECT spans_stored, (SELECT count(*) FROM span_rows), (SELECT count(*) FROM inbox_rows) FROM trials";
        assert_eq!(row(&place.path(), counts), "3500|3500|0");
    }
}

#[test]
fn a_file_is_no_larger_for_what_waited() {
    let (waited, direct) = (Place::new(), Place::new());
    for (place, waits) in [(&waited, 1_000_000), (&direct, 0)] {
        let max = packed_requests::Size { spans: waits, bytes: u64::MAX };
        let (file, recorder) = with_windows(place, Limits { waiting: max, ..Limits::default() });
        send(&recorder, 0..20_000);
        file.finish(RunState::Complete).unwrap();
    }
    let [waited, direct] = [waited, direct].map(|place| std::fs::metadata(place.path()).unwrap().len());
    assert!(waited < direct + direct / 8, "{waited} for {direct}");
}

#[test]
fn what_is_refused_is_said_before_it_waits() {
    let place = Place::new();
    let (file, recorder) = with_windows(&place, Limits { spans: 250, ..Limits::default() });
    send(&recorder, 0..200);
    assert_eq!(waiting(&place.path()), 200);
    let receipt = recorder.packed(packed(spans(200..300)), vec![]);
    assert_eq!(wait(receipt), Ok(KeptCounts { kept: 50, over_limit: 50, ..KeptCounts::default() }));
    file.finish(RunState::Complete).unwrap();
    let counts = "SELECT spans_stored, spans_refused, (SELECT sum(arrived) FROM span_counts) FROM trials";
    assert_eq!(row(&place.path(), counts), "250|50|300");
    assert_eq!(
        wait(recorder.packed(packed(spans(0..1)), vec![])),
        Err(StoreError::Broken("the run file is closed".into()))
    );
}

#[test]
fn a_file_that_nears_its_limit_is_thinned_out_all_the_same() {
    const BYTES: u64 = 2 << 20;
    let place = Place::new();
    let (file, recorder) = with_windows(&place, Limits { bytes: BYTES, ..Limits::default() });
    for call in 0..300 {
        let later =
            |span: Span| Span { start_ns: span.start_ns + call * SECOND, end_ns: span.end_ns + call * SECOND, ..span };
        let spans = spans(call as u64 * 100..call as u64 * 100 + 100).into_iter().map(later).collect();
        assert_eq!(wait(recorder.packed(packed(spans), vec![])), kept(100));
    }
    file.finish(RunState::Complete).unwrap();
    let counts = "SELECT spans_stored + spans_thinned, spans_refused, spans_thinned > 5000, \
                  (SELECT count(*) FROM spans) = spans_stored, (SELECT sum(arrived) FROM span_counts) FROM trials";
    assert_eq!(row(&place.path(), counts), "30000|0|1|1|30000");
    assert!(std::fs::metadata(place.path()).unwrap().len() < 2 * BYTES);
}

#[test]
fn what_cannot_be_unpacked_is_named_and_nothing_panics() {
    let place = Place::new();
    let (_file, recorder) = with_windows(&place, Limits::default());
    send(&recorder, 0..200);
    let changed = |sql: &str| {
        let killed = place.copy_as_killed();
        Connection::open(killed.path()).unwrap().execute_batch(sql).unwrap();
        let message = |error: Error| error.to_string().split_once("narrows ").unwrap().1.to_owned();
        let opened = Reader::open(&killed.path()).map(drop).unwrap_err();
        let resumed = RunFile::resume(&killed.path()).map(drop).unwrap_err();
        assert!(matches!(opened, Error::Damaged { .. }), "{opened}");
        let opened = message(opened);
        assert_eq!(opened, message(resumed));
        opened
    };
    let cannot = "is damaged: spans that wait for their rows cannot be read (inbox_rows, id 2): ";
    let cases = [
        ("X'07'", "packed in a form that is not known at or after byte 1 of 1"),
        ("X'01'", "0 spans, expected 100"),
        ("substr(packed, 1, 1000)", "something is cut short at or after byte "),
        ("substr(packed, 1, 1000) || zeroblob(500)", " at or after byte "),
    ];
    for (blob, expected) in cases {
        let said = changed(&format!("UPDATE inbox_rows SET packed = CAST({blob} AS BLOB) WHERE id = 2"));
        assert!(said.starts_with(cannot) && said.contains(expected), "{said}");
    }
    changed("PRAGMA ignore_check_constraints = 1; UPDATE inbox_rows SET spans = -1 WHERE id = 2");
    let whole = packed(spans(0..3));
    for at in 0..whole.bytes().len() {
        let mut bytes = whole.bytes().to_vec();
        bytes[at] ^= 0xff;
        // It is spans, other ones perhaps, or it is a mistake.
        let _ = crate::otlp::convert::unpack(&bytes, |span| assert!(!span.service.is_empty() || at < 10));
    }
}

proptest! {
    #[test]
    fn whatever_is_packed_needs_no_redaction(
        key in "(url.full|url.query|http.target|db.statement|message|peer.service|a.token|note|k)",
        value in "(a|://|@|[?]|#|=|&|token|sig|'|password |Cookie: | ){0,9}",
        name in "(GET |://|@|[?]|=|token|:){0,5}",
    ) {
        let attributes = attributes(json!({ key: value }));
        let sent = Span { status: SpanStatus::Error, status_message: name.clone(), name, attributes, ..span(0) };
        let bytes = encode::spans(vec![sent], "1");
        let (packed, _) = spans_to_keep(&bytes, Format::Protobuf, &Weights::new()).unwrap();
        for span in packed.unpack().unwrap() {
            let mut cleaned = span.clone();
            cleaned.clean(&KnownSecrets::default());
            prop_assert_eq!(cleaned.attributes, span.attributes);
            prop_assert_eq!((cleaned.name, cleaned.status_message), (span.name, span.status_message));
        }
    }
}
