//! Every request counts: whatever the number, spacing and results of a load's requests, the table, the objectives, the
//! text, the JSON and queries show what the client itself counted.

mod load;

use std::path::Path;

use narrows_lab::attach::{ImportOptions, import};
use narrows_lab::conclude;
use narrows_model::comparison::{Kept, Outcome};
use narrows_model::load::LoadBatch;
use narrows_model::run::RunState;
use narrows_model::table::Cell;
use narrows_report::text::{Color, Style};
use narrows_report::{json, text};
use narrows_telemetry::exchange::write_evidence;
use narrows_telemetry::run_file::{Reader, RunFile};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use self::load::{Count, Load, any_load};

type Checked = Result<(), TestCaseError>;

/// Compares everything that is shown of a run with the client's own counts.
fn shows(outcome: &Outcome, load: &Load) -> Checked {
    let count = load.count(None);
    let rate = known_rate(&count, load.counted_s());
    in_the_comparison(outcome, &count, rate)?;
    in_the_objectives(outcome, &count, rate)?;
    in_the_json(outcome, load, &count, rate)?;
    in_the_text(outcome, &count, rate)
}

/// `None` if all successes came after the load.
fn known_rate(count: &Count, seconds: f64) -> Option<f64> {
    (count.in_time > 0 || count.succeeded == 0).then(|| count.in_time as f64 / seconds)
}

fn is_same(shown: Option<f64>, expected: Option<f64>) -> bool {
    match (shown, expected) {
        (Some(shown), Some(expected)) => (shown - expected).abs() <= 1e-9 * expected.max(1.0),
        (shown, expected) => shown == expected,
    }
}

fn in_the_comparison(outcome: &Outcome, count: &Count, rate: Option<f64>) -> Checked {
    let shown = &outcome.comparison.variants[0];
    prop_assert_eq!((shown.requests, shown.errors), (count.ended(), count.failed));
    prop_assert!(is_same(shown.rate, rate), "{:?} {rate:?}", shown.rate);
    prop_assert_eq!(shown.mean_ns.is_some(), count.succeeded > 0);
    Ok(())
}

fn in_the_objectives(outcome: &Outcome, count: &Count, rate: Option<f64>) -> Checked {
    let kept = |is_kept: bool| if is_kept { Kept::Yes } else { Kept::No };
    let expected = [
        if count.ended() > 0 { kept(count.failed == 0) } else { Kept::Unknown },
        if count.succeeded > 0 { kept(count.slowest_ns < 100_000_000) } else { Kept::Unknown },
        rate.map_or(Kept::Unknown, |rate| kept(rate >= 5.0)),
    ];
    let shown: Vec<Kept> = outcome.objectives[0].iter().map(|objective| objective.kept).collect();
    prop_assert_eq!(shown, expected);
    Ok(())
}

fn in_the_json(outcome: &Outcome, load: &Load, count: &Count, rate: Option<f64>) -> Checked {
    let value = json::outcome(outcome);
    let shown = &value["trials"][0]["load"];
    prop_assert_eq!(counts_of(shown), (count.succeeded, count.failed));
    prop_assert!(is_same(shown["rate"].as_f64(), rate), "{shown} {rate:?}");
    prop_assert!((shown["seconds"].as_f64().unwrap() - load.counted_s()).abs() < 1e-9, "{shown}");
    let slowest = shown["latency"]["max_ns"].as_i64();
    prop_assert_eq!(slowest, (count.succeeded > 0).then_some(count.slowest_ns));
    for (step, name) in ["list", "pay"].into_iter().enumerate() {
        let requests = value["trials"][0]["requests"].as_array().unwrap();
        let request = requests.iter().find(|request| request["request"] == name).unwrap();
        let count = load.count(Some(step));
        prop_assert_eq!(counts_of(request), (count.succeeded, count.failed));
    }
    Ok(())
}

/// Successes and failures in the JSON of a load.
fn counts_of(value: &Value) -> (u64, u64) {
    let errors = value["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    (value["succeeded"].as_u64().unwrap(), errors)
}

fn in_the_text(outcome: &Outcome, count: &Count, rate: Option<f64>) -> Checked {
    let shown = text::outcome(outcome, Style { width: 120, color: Color::Never });
    let row = shown.lines().find(|line| line.starts_with("only ")).unwrap_or_default();
    let errors = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty() && *cell != "–").last();
    prop_assert_eq!(errors.map(str::to_owned), Some(count.failed.to_string()), "{}", row);
    prop_assert_eq!(row.contains("/s"), rate.is_some(), "{}", row);
    prop_assert!(!shown.contains("NaN") && !shown.contains("inf/s"), "{shown}");
    prop_assert!(count.succeeded > 0 || !shown.contains(" 0 ns"), "{shown}");
    prop_assert!(count.ended() == 0 || !shown.contains("no load"), "{shown}");
    Ok(())
}

/// The number that an SQL statement returns.
fn number(path: &Path, sql: &str) -> i64 {
    let table = Reader::open(path).unwrap().sql(sql, &Default::default()).unwrap();
    match table.rows[0][0] {
        Cell::Integer(number) => number,
        Cell::Null => 0,
        ref other => panic!("{other:?}"),
    }
}

/// The requests of the counted windows, as docs/reference/run-file.md asks for them.
const COUNTED: &str = "SELECT sum(s.succeeded + s.errors_connect + s.errors_reset + s.errors_timeout + s.errors_protocol \
     + s.errors_status + s.errors_check) FROM windows AS w JOIN load_seconds AS s ON s.trial = w.trial AND \
     s.start_ns >= w.start_ns AND (s.start_ns < w.end_ns OR s.start_ns <= w.drained_ns) WHERE w.kind <> 'warmup'";

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn evidence_shows_what_the_client_counted(load in any_load()) {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_evidence(load.evidence(), &mut file.as_file()).unwrap();
        shows(&conclude::outcome(file.path()).unwrap(), &load)?;
    }
}

/// Few cases, since each one writes files, unless `PROPTEST_CASES` asks for more.
fn with_files() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(24, |cases| cases.parse().unwrap());
    ProptestConfig { cases, max_shrink_iters: 50, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(with_files())]

    #[test]
    fn run_files_and_queries_show_what_the_client_counted(load in any_load()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.narrows");
        let file = RunFile::create(&path, &load::run()).unwrap();
        let recorder = file.recorder();
        recorder.put_trial(&load::trial()).unwrap();
        recorder.put_windows(1, &load.windows()).unwrap();
        recorder.put_load(1, LoadBatch { seconds: load.rows(), samples: Vec::new() }).unwrap();
        file.finish(RunState::Complete).unwrap();
        shows(&conclude::outcome(&path).unwrap(), &load)?;
        prop_assert_eq!(number(&path, COUNTED), load.count(None).ended() as i64);
    }

    #[test]
    fn imports_show_what_the_spans_say(
        requests in proptest::collection::vec(any_received(), 1..40),
        step_us in prop_oneof![Just(1), 1..20i64, Just(1000)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (traces, path) = (folder.path().join("traces.json"), folder.path().join("a.narrows"));
        std::fs::write(&traces, otlp(&requests, step_us).to_string()).unwrap();
        let options = ImportOptions {
            files: vec![traces],
            prometheus: None,
            mapping: None,
            graph: None,
            name: "a".to_owned(),
            path: path.clone(),
            target: None,
        };
        import(&options).unwrap();
        let outcome = conclude::outcome(&path).unwrap();
        let failed = requests.iter().filter(|request| request.ending.has_failed).count() as u64;
        let shown = &outcome.comparison.variants[0];
        // Only the 50 fullest of the separate intervals are counted; there are fewer here.
        prop_assert_eq!((shown.requests, shown.errors), (requests.len() as u64, failed));
        let load = &json::outcome(&outcome)["trials"][0]["load"];
        prop_assert_eq!(counts_of(load), (requests.len() as u64 - failed, failed));
        let successes = requests.iter().filter(|request| !request.ending.has_failed);
        let slowest = successes.map(|request| request.took_ms * 1_000_000).max();
        prop_assert_eq!(load["latency"]["max_ns"].as_i64(), slowest);
        let trial = &outcome.evidence.trials[0];
        let operation = &trial.operations[0];
        let succeeded = requests.len() as f64 - failed as f64;
        prop_assert_eq!((trial.operations.len(), operation.completed, operation.failed), (1, succeeded, failed as f64));
        prop_assert_eq!(&operation.duration, &trial.counted_load().latency, "all percentiles are the same");
        prop_assert_eq!(number(&path, "SELECT sum(itemCount) FROM requests"), requests.len() as i64);
        prop_assert_eq!(number(&path, COUNTED), requests.len() as i64);
        let shown = text::outcome(&outcome, Style { width: 120, color: Color::Never });
        prop_assert!(!shown.contains("recorded no load") && !shown.contains("NaN"), "{shown}");
        prop_assert!(slowest.is_some() || !shown.contains(" 0 ns"), "{shown}");
    }
}

/// How a server span ended.
#[derive(Debug, Clone, Copy)]
struct Ending {
    /// 0 for `unset`, 2 for `error`.
    status: i64,
    http_status: Option<i64>,
    has_failed: bool,
}

const ENDINGS: [Ending; 8] = [
    Ending { status: 0, http_status: None, has_failed: false },
    Ending { status: 0, http_status: Some(200), has_failed: false },
    Ending { status: 0, http_status: Some(404), has_failed: false },
    Ending { status: 0, http_status: Some(429), has_failed: false },
    Ending { status: 0, http_status: Some(500), has_failed: true },
    Ending { status: 2, http_status: Some(503), has_failed: true },
    Ending { status: 2, http_status: Some(404), has_failed: true },
    Ending { status: 2, http_status: None, has_failed: true },
];

/// A request as its server recorded it.
#[derive(Debug, Clone, Copy)]
struct RequestRecord {
    /// Steps since the start.
    began: i64,
    took_ms: i64,
    ending: Ending,
}

fn any_received() -> impl Strategy<Value = RequestRecord> {
    let received = |(began, took_ms, ending)| RequestRecord { began, took_ms, ending };
    (0..200_000i64, 0..1_500i64, proptest::sample::select(&ENDINGS[..])).prop_map(received)
}

/// Server spans in OTLP/JSON that began at multiples of `step_us`.
fn otlp(requests: &[RequestRecord], step_us: i64) -> Value {
    let spans = requests.iter().enumerate().map(|(at, request)| {
        let RequestRecord { began, took_ms, ending } = *request;
        let start_ns = load::START_NS + began * step_us * 1_000;
        let http = |status: i64| json!({ "key": "http.response.status_code", "value": { "intValue": status } });
        json!({
            "traceId": format!("{:032x}", at + 1),
            "spanId": format!("{:016x}", at + 1),
            "name": "GET /a",
            "kind": 2,
            "startTimeUnixNano": start_ns.to_string(),
            "endTimeUnixNano": (start_ns + took_ms * 1_000_000).to_string(),
            "status": { "code": ending.status },
            "attributes": ending.http_status.map(http).into_iter().collect::<Vec<_>>(),
        })
    });
    let service = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "web" } }] });
    json!({ "resourceSpans": [{ "resource": service, "scopeSpans": [{ "spans": spans.collect::<Vec<_>>() }] }] })
}
