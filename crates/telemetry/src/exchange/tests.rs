//! Files in and out as a whole: what is exported is imported again, what arrives at a receiver is what was sent, and
//! damage costs what is damaged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use narrows_model::evidence::TrialEvidence;
use narrows_model::load::{LatencyFigures, LoadProgram, LoadSecond, ReportedLoad};
use narrows_model::run::{Environment, Run, RunState, Trial, TrialState, Validity};
use narrows_model::series::{LogLine, LogStream, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind, SpanStatus, Trace};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::http::Url;
use crate::otlp::{Receiver, Weights};
use crate::run_file::{Reader, Recorder, RunFile};
use crate::{KeptCounts, Receipt, Store, normalise};

/// Remembers everything.
#[derive(Debug, Default, Clone)]
pub(super) struct Memory(Arc<Mutex<Telemetry>>);

#[derive(Debug, Default, Clone, PartialEq)]
struct Telemetry {
    spans: Vec<Span>,
    points: Vec<(SeriesKey, Point)>,
    logs: Vec<LogLine>,
}

impl Memory {
    fn keep(&self, records: usize, add: impl FnOnce(&mut Telemetry)) -> Receipt {
        add(&mut self.0.lock().unwrap());
        let (tell, receipt) = tokio::sync::oneshot::channel();
        let _ = tell.send(Ok(KeptCounts { kept: records as u64, ..KeptCounts::default() }));
        receipt
    }

    pub(super) fn points(&self) -> Vec<(SeriesKey, Point)> {
        self.held().points
    }

    /// Spans by id, the rest in order.
    fn held(&self) -> Telemetry {
        let mut held = self.0.lock().unwrap().clone();
        held.spans.sort_by_key(|span| (span.trace_id, span.span_id));
        held
    }
}

impl Store for Memory {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        self.keep(spans.len(), |held| held.spans.extend(spans))
    }
    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        self.keep(points.len(), |held| held.points.extend(points))
    }
    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        self.keep(lines.len(), |held| held.logs.extend(lines))
    }
}

const START_NS: i64 = 1_700_000_000_000_000_000;

fn span(trace: u8, id: u8, parent: Option<u8>, attributes: Value) -> Span {
    let Value::Object(attributes) = attributes else { unreachable!() };
    Span {
        trace_id: [trace; 16],
        span_id: [id; 8],
        parent_id: parent.map(|parent| [parent; 8]),
        service: if id.is_multiple_of(2) { "store" } else { "web" }.to_owned(),
        scope: if id == 1 { "lib.http".to_owned() } else { String::new() },
        name: format!("GET /{id}"),
        kind: if parent.is_none() { SpanKind::Server } else { SpanKind::Client },
        start_ns: START_NS + i64::from(id) * 1_000_000,
        end_ns: START_NS + i64::from(id) * 1_000_000 + 5_000,
        status: if id == 3 { SpanStatus::Error } else { SpanStatus::Unset },
        status_message: if id == 3 { "boom \"x\"".to_owned() } else { String::new() },
        facts: normalise::facts(&attributes),
        attributes,
        weight: if trace == 2 { 4.0 } else { 1.0 },
    }
}

/// Enough for more than one batch.
fn held() -> Telemetry {
    let mut spans = vec![
        span(1, 1, None, json!({ "http.request.method": "GET", "http.response.status_code": 200, "ratio": 0.5 })),
        span(1, 2, Some(1), json!({ "db.system.name": "postgresql", "flag": true })),
        span(1, 3, Some(1), json!({ "é": "line\nfeed, \"quotes\"", "big": i64::MIN })),
        span(2, 1, None, json!({})),
    ];
    for number in 0..1_200_u64 {
        let id = (number + 1).to_be_bytes();
        spans.push(Span { trace_id: [3; 16], span_id: id, ..span(3, 4, Some(9), json!({ "n": number })) });
    }
    let label = |value: &str| [("state".to_owned(), value.to_owned())].into();
    let key =
        SeriesKey { name: "queue".into(), unit: "1".into(), service: "web".into(), replica: 0, labels: label("a") };
    let other = SeriesKey { replica: 2, labels: label("b"), ..key.clone() };
    let point = |at: i64, value| Point { time_ns: START_NS + at, value };
    let line = |text: &str, trace_id| LogLine {
        time_ns: START_NS,
        service: "web".into(),
        replica: 1,
        stream: LogStream::Otlp,
        severity: "WARN".into(),
        text: text.to_owned(),
        trace_id,
    };
    spans.sort_by_key(|span| (span.trace_id, span.span_id));
    Telemetry {
        spans,
        points: vec![(key.clone(), point(0, 1.5)), (key, point(1, -2.0)), (other, point(0, 3.0))],
        logs: vec![line("all is \"well\"", None), line("", Some([7; 16]))],
    }
}

/// A run file that holds this, in a folder of its own.
fn run_file(held: &Telemetry) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.narrows");
    let (file, recorder) = started(&path);
    for receipt in
        [recorder.spans(held.spans.clone()), recorder.points(held.points.clone()), recorder.logs(held.logs.clone())]
    {
        receipt.blocking_recv().unwrap().unwrap();
    }
    file.finish(RunState::Complete).unwrap();
    (folder, path)
}

/// A run file with a running trial.
fn started(path: &Path) -> (RunFile, Recorder) {
    let run = Run {
        id: "00000000000000aa".into(),
        experiment: "exchange".into(),
        narrows_version: "0".into(),
        started_ns: START_NS,
        ended_ns: None,
        state: RunState::Running,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        experiment_source: String::new(),
        environment: Environment::default(),
    };
    let file = RunFile::create(path, &run).unwrap();
    let recorder = file.recorder();
    let trial = Trial {
        id: 1,
        variant: "observed".into(),
        repetition: 1,
        state: TrialState::Running,
        started_ns: Some(START_NS),
        ended_ns: None,
        parameters: Default::default(),
        validity: Validity::default(),
        error: None,
        caveats: Vec::new(),
        load_program: None,
    };
    recorder.put_trial(&trial).unwrap();
    recorder.set_trial(Some(1));
    (file, recorder)
}

fn import_all(path: &Path) -> (Telemetry, ImportCounts) {
    let (memory, mut imported) = (Memory::default(), ImportCounts::default());
    import(path, &Mapping::default(), &memory, &mut imported).unwrap();
    (memory.held(), imported)
}

const SIGNALS: [Signal; 3] = [Signal::Spans, Signal::Metrics, Signal::Logs];

fn assert_same_spans(got: &[Span], expected: &[Span]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got.weight - expected.weight).abs() < 1e-6);
        assert_eq!(&Span { weight: expected.weight, ..got.clone() }, expected);
    }
}

#[test]
fn what_is_exported_as_otlp_is_imported_as_the_same() {
    let expected = held();
    let (folder, path) = run_file(&expected);
    let reader = Reader::open(&path).unwrap();
    let mut out = Vec::new();
    let written = SIGNALS.map(|signal| write_otlp(&reader, 1, "observed", signal, &mut out).unwrap().records);
    assert_eq!(written, [expected.spans.len() as u64, 3, 2]);
    let file = folder.path().join("out.jsonl");
    std::fs::write(&file, &out).unwrap();
    let (got, imported) = import_all(&file);
    assert_same_spans(&got.spans, &expected.spans);
    assert_eq!((&got.points, &got.logs), (&expected.points, &expected.logs));
    assert_eq!((imported.spans, imported.malformed), (expected.spans.len() as u64, 0));
    // The same as one gzip file, and as one object over many lines.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&out).unwrap();
    std::fs::write(&file, gzip.finish().unwrap()).unwrap();
    assert_eq!(import_all(&file).0, got);
    let lines: Vec<Value> =
        out.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let all: Vec<&Value> = lines.iter().filter_map(|line| line["resourceSpans"].as_array()).flatten().collect();
    std::fs::write(&file, format!("{:#}", json!({ "resourceSpans": all }))).unwrap();
    assert_same_spans(&import_all(&file).0.spans, &expected.spans);
}

#[test]
fn what_is_exported_as_jaegers_is_imported_as_the_same() {
    let expected = held();
    let (folder, path) = run_file(&expected);
    let reader = Reader::open(&path).unwrap();
    let mut out = Vec::new();
    let written = write_jaeger(&reader, &[(1, "observed".to_owned())], &mut out).unwrap();
    assert_eq!(written, ExportCounts { records: expected.spans.len() as u64, left_out: 0 });
    let traces: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(traces["data"].as_array().unwrap().len(), 3, "each trace once");
    assert_eq!(traces["data"][0]["processes"]["p1"]["serviceName"], "store");
    let file = folder.path().join("out.json");
    std::fs::write(&file, &out).unwrap();
    assert_same_spans(&import_all(&file).0.spans, &expected.spans);
}

#[test]
fn what_is_sent_to_a_receiver_arrives_as_the_same() {
    let expected = held();
    let (_folder, path) = run_file(&expected);
    let memory = Memory::default();
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let receiver = Receiver::start(&[address], Arc::new(memory.clone()), Weights::new()).unwrap();
    let base = Url::parse(&format!("http://{}", receiver.local_addr())).unwrap();
    let reader = Reader::open(&path).unwrap();
    let sent = SIGNALS.map(|signal| send(&reader, 1, "observed", signal, &base).unwrap().accepted);
    assert_eq!(sent, [expected.spans.len() as u64, 3, 2]);
    assert_eq!(receiver.stop().batches, 3 + 1 + 1);
    let got = memory.held();
    assert_same_spans(&got.spans, &expected.spans);
    assert_eq!((got.points, got.logs), (expected.points, expected.logs));
}

/// Responds to each request with the next of these.
fn server(responses: Vec<&'static str>) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/base/", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        let mut responses = responses.into_iter();
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink()).unwrap();
                    let Some(response) = responses.next() else { return };
                    stream.get_mut().write_all(response.as_bytes()).unwrap();
                }
                line.clear();
            }
        }
    });
    url
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LATER: &str = "HTTP/1.1 503 Later\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_busy_receiver_is_asked_again_and_another_refusal_is_said() {
    let (_folder, path) = run_file(&held());
    let reader = Reader::open(&path).unwrap();
    let sent = send(&reader, 1, "a", Signal::Logs, &server(vec![LATER, LATER, OK])).unwrap();
    assert_eq!((sent.accepted, sent.repeated), (2, 2));
    let busy = server(vec![LATER; 9]);
    let error = send(&reader, 1, "a", Signal::Logs, &busy).unwrap_err().to_string();
    assert!(error.contains("/base/v1/logs: it returned 503 Service Unavailable, for the 6th time"), "{error}");
    let gone = server(vec![OK, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"]);
    let error = send(&reader, 1, "a", Signal::Spans, &gone).unwrap_err().to_string();
    assert!(error.contains("it returned 404 Not Found; 512 records were accepted before"), "{error}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Url::parse(&format!("http://{nobody}")).unwrap();
    let error = send(&reader, 1, "a", Signal::Logs, &nobody).unwrap_err().to_string();
    assert!(error.contains("cannot connect"), "{error}");
}

#[test]
fn rows_of_views_are_written() {
    let (_folder, path) = run_file(&held());
    let reader = Reader::open(&path).unwrap();
    let rows = |view, format| {
        let mut out = Vec::new();
        write_rows(&reader, view, &[1], format, &mut out)
            .map(|written| (written.records, String::from_utf8(out).unwrap()))
    };
    let (records, csv) = rows("logs", RowFormat::Csv).unwrap();
    assert_eq!(records, 2);
    assert!(csv.starts_with("trial,time_ns,service,replica,stream,severity,text,trace_id\r\n1,"), "{csv}");
    assert!(csv.contains(",\"all is \"\"well\"\"\",\r\n"), "{csv}");
    let (_, json) = rows("spans", RowFormat::JsonLines).unwrap();
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((json.lines().count(), first["trial"].as_i64()), (held().spans.len(), Some(1)));
    assert!(rows("strings", RowFormat::Csv).is_err(), "only views for people");
}

#[test]
fn evidence_that_is_written_reads_back_the_same() {
    let held = held();
    let (_folder, path) = run_file(&held);
    let mut evidence = Reader::open(&path).unwrap().evidence(EVIDENCE_TRACES).unwrap();
    let trial = &mut evidence.trials[0];
    trial.traces.push(Trace { id: [1; 16], spans: held.spans[..3].to_vec(), weight: 2.5 });
    let no_number = Point { time_ns: START_NS + 1, value: f64::NAN };
    let points = &mut trial.series[0].points;
    points.insert(1, no_number);
    let mut bytes = Vec::new();
    let written = write_evidence(evidence.clone(), &mut bytes).unwrap();
    evidence.trials[0].series[0].points.remove(1);
    let points: usize = evidence.trials[0].series.iter().map(|series| series.points.len()).sum();
    assert_eq!(written.records, points as u64 + 3);
    let file = path.with_extension("json.gz");
    std::fs::write(&file, bytes).unwrap();
    assert!(is_evidence(&file) && !is_evidence(&path));
    assert_eq!(read_evidence(&file).unwrap(), evidence);
}

#[test]
fn evidence_that_cannot_be_computed_with_is_refused() {
    let held = held();
    let (_folder, path) = run_file(&held);
    let evidence = Reader::open(&path).unwrap().evidence(EVIDENCE_TRACES).unwrap();
    let file = path.with_extension("json.gz");
    let refused = |change: &dyn Fn(&mut TrialEvidence)| {
        let mut evidence = evidence.clone();
        change(&mut evidence.trials[0]);
        let mut bytes = Vec::new();
        write_evidence(evidence, &mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        read_evidence(&file).unwrap_err().to_string()
    };
    let second = |sent| LoadSecond { sent, ..LoadSecond::default() };
    let trace = |weight| Trace { id: [1; 16], spans: held.spans[..1].to_vec(), weight };
    assert!(refused(&|trial| trial.series[0].points[0].time_ns = -1).ends_with("holds an instant out of range"));
    assert!(refused(&|trial| trial.seconds.push(second(u64::MAX))).ends_with("holds a count of requests out of range"));
    let reported = |failed| {
        let latency = LatencyFigures::default();
        let load = ReportedLoad { seconds: 1.0, requests: 1, failed, due: 0, dropped: 0, latency };
        Some(LoadProgram { name: "k6".into(), thresholds: Vec::new(), reported: Some(load) })
    };
    assert!(
        refused(&|trial| trial.trial.load_program = reported(u64::MAX)).ends_with("a count of requests out of range")
    );
    assert!(refused(&|trial| trial.traces.push(trace(0.0))).ends_with("holds the weight of a trace out of range"));
    std::fs::write(&file, "no gzip").unwrap();
    assert_eq!(read_evidence(&file).unwrap_err().to_string(), "cannot read the evidence");
}

#[test]
fn files_of_which_nothing_can_be_used_are_errors_that_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let cases: [(&[u8], &str); 15] = [
        (b"", "it is empty"),
        (b" \n ", "it is empty"),
        (b"hello", "it is not JSON: line 1, column 1"),
        (b"\xff\xfe{\0", "it is UTF-16 text"),
        (b"SQLite format 3\0", "it is an SQLite file"),
        (b"\n<html>", "it is a web page"),
        (b"{\"traceEvents\":[]}", "it is a trace of Chrome's trace viewer"),
        (b"{\"data\":null,\"errors\":[{\"code\":404,\"msg\":\"trace not found\"}]}", "an error: 404 trace not found"),
        (
            b"[{\"traceId\":\"1\",\"id\":\"2\",\"binaryAnnotations\":[]}]",
            "used: [0]: it is a span of Zipkin's JSON, version 1",
        ),
        (b"{\"data\":[", "line 1, column 9: EOF while parsing a list"),
        (b"{\"a\":1,\"b\":{}}", "it is an object with a, b"),
        (b"{}", "an object without members"),
        (b"{\"data\":[]}", "holds no span"),
        (b"{\"data\":[{\"spans\":[{}]}]}", "used: line 1: data[0].spans[0]: its traceID is not a text"),
        (
            b"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"}]}]}]}",
            "its trace id is not sixteen bytes",
        ),
    ];
    for (text, expected) in cases {
        std::fs::write(&path, text).unwrap();
        let error = import(&path, &Mapping::default(), &Memory::default(), &mut ImportCounts::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{}: {error}", String::from_utf8_lossy(text));
    }
    let nowhere =
        import(&folder.path().join("none"), &Mapping::default(), &Memory::default(), &mut ImportCounts::default());
    assert!(matches!(nowhere, Err(ImportError::Read { .. })));
    let hint = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        import(&path, &Mapping::default(), &Memory::default(), &mut ImportCounts::default())
            .unwrap_err()
            .hint()
            .unwrap()
    };
    assert_eq!(hint(&[0x28, 0xb5, 0x2f, 0xfd, 0]), "decompress it with `zstd -d`");
    let formats = "`narrows import` reads JSON of OTLP, Tempo, Jaeger, Zipkin v2 and Go's stdouttrace, and metrics as \
                   Prometheus' text or JSON or as CSV";
    assert_eq!([hint(b"hello"), hint(b"{}"), hint(b"")], [formats; 3]);
}

#[test]
fn spans_without_a_kind_get_one_when_their_traces_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let span = |id: &str, parent: Option<&str>, service: &str| {
        json!({ "traceId": "1", "id": id, "parentId": parent, "timestamp": 5, "duration": 7,
            "localEndpoint": { "serviceName": service } })
    };
    let spans = [span("3", Some("2"), "store"), span("2", Some("1"), "web"), span("1", None, "web")];
    std::fs::write(&path, json!(spans).to_string()).unwrap();
    let (got, imported) = import_all(&path);
    let kinds: Vec<SpanKind> = got.spans.iter().map(|span| span.kind).collect();
    assert_eq!(kinds, [SpanKind::Server, SpanKind::Client, SpanKind::Server]);
    assert_eq!((imported.spans, imported.without_kind), (3, 3));
}

#[test]
fn a_span_that_comes_twice_is_counted_once() {
    let (folder, path) = run_file(&Telemetry::default());
    let file = folder.path().join("x.json");
    let span = json!({ "traceId": "1", "id": "1", "kind": "SERVER", "timestamp": 5, "duration": 7 });
    std::fs::write(&file, json!([span, span]).to_string()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (run, recorder) = started(&path);
    let mut imported = ImportCounts::default();
    import(&file, &Mapping::default(), &recorder, &mut imported).unwrap();
    import(&file, &Mapping::default(), &recorder, &mut imported).unwrap();
    run.finish(RunState::Complete).unwrap();
    assert_eq!((imported.spans, imported.repeated), (1, 3));
}

#[test]
fn a_damaged_line_costs_that_line_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let otlp = |name: &str| {
        let span =
            json!({ "traceId": "01".repeat(16), "spanId": "02".repeat(8), "name": name, "startTimeUnixNano": "5" });
        json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] }).to_string()
    };
    let lines =
        [otlp("a"), "{\"resourceSpans\":[{\"scopeSpans\":[".into(), "{\"resourceSpans\":[5]}".into(), otlp("b")];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let (got, imported) = import_all(&path);
    assert_eq!(got.spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(imported.malformed, 2);
    let place = |line: u32| format!("{}: line {line}: ", path.display());
    assert!(imported.complaints[0].starts_with(&place(2)), "{:?}", imported.complaints);
    assert!(imported.complaints[1].starts_with(&place(3)), "{:?}", imported.complaints);
}

fn jaeger_document() -> Vec<u8> {
    let tag = |key: &str, kind: &str, value: Value| json!({ "key": key, "type": kind, "value": value });
    let span = |id: &str, references: Value| {
        json!({ "traceID": "abc", "spanID": id, "operationName": "GET /", "references": references,
            "startTime": 1_700_000_000_000_000_i64, "duration": 1500, "processID": "p1",
            "tags": [tag("span.kind", "string", json!("server")), tag("http.status_code", "int64", json!(200))],
            "logs": [{ "timestamp": 5, "fields": [tag("exception.type", "string", json!("E"))] }] })
    };
    let child = json!([{ "refType": "CHILD_OF", "traceID": "abc", "spanID": "1" }]);
    let trace = json!({ "traceID": "abc", "spans": [span("1", json!([])), span("2", child)],
        "processes": { "p1": { "serviceName": "web", "tags": [] } } });
    json!({ "data": [trace, trace], "total": 0 }).to_string().into_bytes()
}

fn otlp_document() -> Vec<u8> {
    let (folder, path) = run_file(&Telemetry { spans: held().spans[..4].to_vec(), ..held() });
    let reader = Reader::open(&path).unwrap();
    let mut out = Vec::new();
    for signal in SIGNALS {
        write_otlp(&reader, 1, "observed", signal, &mut out).unwrap();
    }
    drop(folder);
    out
}

fn damaged(mut bytes: Vec<u8>, cuts: Vec<(prop::sample::Index, u8, u8)>) -> Vec<u8> {
    const MARKS: &[u8] = b"{}[]\",:0-9nullet\n\\ \xff";
    for (index, byte, how) in cuts {
        if bytes.is_empty() {
            break;
        }
        let at = index.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes[at] = MARKS[usize::from(byte) % MARKS.len()],
            2 => bytes.insert(at, MARKS[usize::from(byte) % MARKS.len()]),
            3 => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            _ => {
                let piece = bytes[at..bytes.len().min(at + usize::from(byte))].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Imports bytes and says what was wrong, if anything.
fn imports(bytes: &[u8]) -> (Telemetry, ImportCounts, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    let (memory, mut imported) = (Memory::default(), ImportCounts::default());
    let error = import(&path, &Mapping::default(), &memory, &mut imported).err().map(|error| error.to_string());
    (memory.held(), imported, error)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_damage_to_a_file_is_survived_and_said(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..6_u8), 1..6),
        is_jaeger in any::<bool>(),
    ) {
        static DOCUMENTS: std::sync::LazyLock<[Vec<u8>; 2]> = std::sync::LazyLock::new(|| [otlp_document(), jaeger_document()]);
        let whole = &DOCUMENTS[usize::from(is_jaeger)];
        let (held, imported, error) = imports(&damaged(whole.clone(), cuts));
        let records = (held.spans.len() + held.points.len() + held.logs.len()) as u64;
        prop_assert_eq!(imported.records(), records);
        prop_assert_eq!(error.is_some(), records == 0, "{:?}", error);
        prop_assert_eq!(imported.complaints.is_empty(), imported.malformed == 0);
        prop_assert!(held.spans.iter().all(|span| span.start_ns > 0 && span.weight >= 1.0 && span.trace_id != [0; 16]));
    }
}
