//! A run file from the outside. Here: one of everything to write, and ways to look at a file.

mod content;
mod folding;
mod hostile;
mod insights;
mod kills;
mod life;
mod operations;
mod packed_requests;
mod query;
mod redaction;
mod spans;
mod tail;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use narrows_model::caveat::TrialCaveat;
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::{Confidence, Exemplar, Figure, Finding, Wording};
use narrows_model::histogram::Histogram;
use narrows_model::load::{
    ErrorCounts, ErrorKind, LatencyFigures, LoadBatch, LoadProgram, LoadSecond, ReportedLoad, Sample, Threshold,
};
use narrows_model::messages::{MessageCount, MessageTally};
use narrows_model::operation::{CallEvidence, CallSecond, OperationEvidence, OperationSecond};
use narrows_model::run::{
    Environment, Machine, Run, RunState, ServiceInstance, Trial, TrialState, Validity, Verdict, Window, WindowKind,
};
use narrows_model::series::{LogLine, LogStream, Point, Series, SeriesKey, names};
use narrows_model::trace::{Span, SpanFacts, SpanKind, SpanStatus, Trace};
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::json;

use super::*;
use crate::{KeptCounts, Receipt, Store, StoreError};

/// 2026-11-21T12:00:00Z.
const T0: i64 = 1_795_262_400_000_000_000;
const SECOND: i64 = 1_000_000_000;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("checkout 100%?.narrows")
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A copy as another process would find it if the writer were killed now.
    fn copy_as_killed(&self) -> Self {
        let copy = Self::new();
        for name in self.names().iter().filter(|name| !name.ends_with("-shm")) {
            std::fs::copy(self.folder.path().join(name), copy.folder.path().join(name)).unwrap();
        }
        let connection = Connection::open(copy.path()).unwrap();
        connection.execute("UPDATE run SET writer_start_ticks = writer_start_ticks + 1", []).unwrap();
        copy
    }
}

fn run() -> Run {
    Run {
        id: "00112233445566ff".into(),
        experiment: "drone-delivery".into(),
        narrows_version: "0.1.0".into(),
        started_ns: T0,
        ended_ns: None,
        state: RunState::Running,
        seed: u64::MAX,
        time_scale: 0.1,
        repetitions: 2,
        experiment_source: "experiment: drone-delivery\n# ünï\n".into(),
        environment: Environment {
            kernel: "Linux 6.1".into(),
            cpu_model: "a CPU".into(),
            cores: 2,
            memory_bytes: 8 << 30,
        },
    }
}

fn trial(id: i64) -> Trial {
    Trial {
        id,
        variant: format!("test-{id}"),
        repetition: 1,
        state: TrialState::Running,
        started_ns: Some(T0),
        ended_ns: None,
        parameters: BTreeMap::from([("throughput".into(), "900".into())]),
        validity: Validity { verdict: Verdict::Doubtful, reasons: vec!["The CPU was shared.".into()] },
        error: None,
        caveats: vec![TrialCaveat::WithoutCaps { service: "orders".into(), reason: "no memory cap".into() }],
        load_program: Some(LoadProgram {
            name: "k6".into(),
            thresholds: vec![Threshold { text: "http_req_failed: rate<0.01".into(), is_crossed: true }],
            reported: Some(ReportedLoad {
                seconds: 2.5,
                requests: 200,
                failed: 20,
                due: 0,
                dropped: 0,
                latency: LatencyFigures { p95_ns: Some(30.25e6), ..LatencyFigures::default() },
            }),
        }),
    }
}

fn windows() -> Vec<Window> {
    let window = |index: u32, kind, label: &str| Window {
        index,
        kind,
        label: label.into(),
        start_ns: T0 + i64::from(index) * 10 * SECOND,
        end_ns: T0 + i64::from(index + 1) * 10 * SECOND,
        drained_ns: None,
        vus: 4 * index,
        rate: (index == 1).then_some(12.5),
    };
    vec![window(0, WindowKind::Warmup, "warm-up"), window(1, WindowKind::Steady, "4 users")]
}

fn service(replica: u32) -> ServiceInstance {
    ServiceInstance {
        service: "gateway".into(),
        replica,
        pid: 4242 + replica,
        port: 8080,
        command: vec!["gateway".into(), "--port".into(), "8080".into()],
        cpu_limit_cores: Some(0.25),
        memory_limit_bytes: Some(256 << 20),
        stand_in_ports: Vec::new(),
        machine: Machine::Here,
    }
}

fn second(at: i64) -> LoadSecond {
    let histogram = |from: u64| {
        let mut histogram = Histogram::new();
        (0..100).for_each(|i| histogram.record(from + i * 1_000_000));
        histogram
    };
    LoadSecond {
        scenario: "invoices".into(),
        request: "shop/list".into(),
        start_ns: T0 + at * SECOND,
        length_ns: 1_000_000_000,
        vus: 4,
        due: 110,
        late: 9,
        dropped: 5,
        sent: 102,
        repeated: 6,
        cut: 7,
        succeeded: 100,
        errors: ErrorCounts { timeout: 1, check: 1, ..ErrorCounts::default() },
        bytes: 12_345,
        latency: histogram(7_000_000),
        service: histogram(6_000_000),
        lateness: histogram(3),
    }
}

fn sample(vu: u32) -> Sample {
    Sample {
        scenario: "invoices".into(),
        request: "shop/list".into(),
        vu,
        agent: (vu % 2 == 1).then(|| "north".into()),
        intended_ns: T0,
        sent_ns: T0 + 1_000_000,
        done_ns: T0 + 51_500_000,
        status: 200,
        error: Some(ErrorKind::Check),
        bytes: 99,
        trace_id: Some([0xab; 16]),
        weight: 2.5,
    }
}

/// A trace of a server span and its database span; the root's parent is the load generator, which sends no span.
fn trace(number: u8, start_ns: i64) -> Trace {
    let id = [number; 16];
    let server = Span {
        trace_id: id,
        span_id: [number; 8],
        parent_id: Some([0xee; 8]),
        service: "gateway".into(),
        scope: "http".into(),
        name: "GET /api/invoices".into(),
        kind: SpanKind::Server,
        start_ns,
        end_ns: start_ns + 20_000_000,
        status: SpanStatus::Unset,
        status_message: String::new(),
        facts: SpanFacts {
            http_method: Some("GET".into()),
            http_route: Some("/api/invoices".into()),
            http_status: Some(200),
            url: Some("/api/invoices?ownerId=7".into()),
            server_address: Some("127.0.0.1".into()),
            server_port: Some(8080),
            ..SpanFacts::default()
        },
        attributes: attributes(json!({ "http.route": "/api/invoices", "n": 0.1, "deep": { "list": [1, true, null] } })),
        weight: 4.0,
    };
    let database = Span {
        span_id: [number, 1, 0, 0, 0, 0, 0, 0],
        parent_id: Some(server.span_id),
        scope: "db".into(),
        name: "SELECT invoices".into(),
        kind: SpanKind::Client,
        start_ns: start_ns + 1_000_000,
        end_ns: start_ns + 13_500_000,
        status: SpanStatus::Error,
        status_message: "too many requests".into(),
        facts: SpanFacts {
            db_system: Some("azure.cosmosdb".into()),
            db_namespace: Some("invoices".into()),
            db_query: Some("SELECT * FROM c WHERE c.token = 'kept'".into()),
            db_operation: Some("query".into()),
            db_status: Some("429".into()),
            db_rows: Some(0),
            db_charge: Some(2.5),
            db_sub_status: Some(3200),
            db_partition: Some("7".into()),
            retry_after_ns: Some(250_000_000),
            resend_count: Some(1),
            error_type: Some("429".into()),
            ..SpanFacts::default()
        },
        attributes: attributes(json!({ "db.response.status_code": "429" })),
        ..server.clone()
    };
    Trace { id, spans: vec![server, database], weight: 4.0 }
}

fn attributes(value: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().unwrap().clone()
}

fn key(service: &str) -> SeriesKey {
    SeriesKey {
        name: names::CPU_CORES.into(),
        unit: "{cpu}".into(),
        service: service.into(),
        replica: 1,
        labels: BTreeMap::from([("state".into(), "user".into())]),
    }
}

fn line(text: &str) -> LogLine {
    LogLine {
        time_ns: T0,
        service: "gateway".into(),
        replica: 0,
        stream: LogStream::Stderr,
        severity: String::new(),
        text: text.into(),
        trace_id: Some([7; 16]),
    }
}

fn finding(detector: &str) -> (Finding, Wording) {
    let finding = Finding {
        version: 2,
        resource: "docstore".into(),
        operation: Some("GET /api/invoices".into()),
        cost_share: 0.1 + 0.2,
        confidence: Confidence::High,
        exemplars: vec![Exemplar { trace_id: "ab".repeat(16), span_ids: vec!["cd".repeat(8)] }],
        ..Finding::new(detector.parse::<narrows_model::finding::FindingKind>().unwrap(), 1)
    };
    let wording = Wording {
        title: "the store refuses requests".into(),
        reasons: vec!["It says so.".into()],
        numbers: vec![Figure::new("refused", 17.0, "")],
        ..Wording::default()
    };
    (finding, wording)
}

fn wait(receipt: Receipt) -> std::result::Result<KeptCounts, StoreError> {
    receipt.blocking_recv().expect("the writer responds to every call")
}

fn kept(kept: u64) -> std::result::Result<KeptCounts, StoreError> {
    Ok(KeptCounts { kept, ..KeptCounts::default() })
}

/// A file with one running trial.
fn started(path: &Path, limits: Limits) -> (RunFile, Recorder) {
    let file = RunFile::create_with(path, &run(), limits).unwrap();
    let recorder = file.recorder();
    recorder.put_trial(&trial(1)).unwrap();
    recorder.set_trial(Some(1));
    (file, recorder)
}

/// Writes one of everything, and says what evidence it should make.
fn write_all(recorder: &Recorder) -> RunEvidence {
    let (series, other) = (key("gateway"), key("docstore"));
    let point = |at: i64, value: f64| Point { time_ns: T0 + at, value };
    let traces = vec![trace(1, T0 + 11 * SECOND), trace(2, T0 + 12 * SECOND)];
    let seconds = vec![second(10), second(11)];

    recorder.put_windows(1, &windows()).unwrap();
    recorder.put_service(1, &service(0)).unwrap();
    recorder.put_service(1, &service(1)).unwrap();
    let batch = LoadBatch { seconds: seconds.clone(), samples: vec![sample(0), sample(1)] };
    assert_eq!(recorder.put_load(1, batch).unwrap(), KeptCounts { kept: 2, ..KeptCounts::default() });
    for trace in traces.iter().chain([&trace(3, T0)]) {
        assert_eq!(wait(recorder.spans(trace.spans.clone())), kept(2));
    }
    let points = vec![(series.clone(), point(2, 0.5)), (other.clone(), point(1, 1.0)), (series.clone(), point(1, 0.1))];
    assert_eq!(wait(recorder.points(points)), kept(3));
    assert_eq!(wait(recorder.logs(vec![line("hello"), line("world")])), kept(2));

    let trial = TrialEvidence {
        client_addresses: None,
        arrivals: None,
        trial: trial(1),
        windows: windows(),
        services: vec![service(0), service(1)],
        seconds,
        series: vec![
            Series { key: series, points: vec![point(1, 0.1), point(2, 0.5)] },
            Series { key: other, points: vec![point(1, 1.0)] },
        ],
        operations: vec![operation(&[11, 12])],
        traces,
        spans_total: 6,
        stalls: Default::default(),
        messages: Default::default(),
        spans_refused: 0,
        spans_thinned: 0,
        cores: 2,
    };
    RunEvidence { run: run(), trials: vec![trial] }
}

/// The operation of traces of [`trace`] that begin at these seconds, one each.
fn operation(seconds: &[i64]) -> OperationEvidence {
    let mut duration = Histogram::new();
    duration.record_n(20_000_000, 4 * seconds.len() as u64);
    let start = |at: &i64| T0 + at * SECOND;
    let second = |at| OperationSecond { start_ns: start(at), completed: 4.0, duration_sum_ns: 80e6 };
    let call_second = |at| CallSecond { start_ns: start(at), throttled: 4.0, charge: 10.0, ..CallSecond::default() };
    let weight = 4.0 * seconds.len() as f64;
    OperationEvidence {
        service: "gateway".into(),
        name: "GET /api/invoices".into(),
        completed: weight,
        failed: 0.0,
        duration,
        seconds: seconds.iter().map(second).collect(),
        calls: vec![CallEvidence {
            target: "azure.cosmosdb".into(),
            name: "SELECT invoices".into(),
            is_database: true,
            throttled: weight,
            charge: Some(2.5 * weight),
            seconds: seconds.iter().map(call_second).collect(),
            ..CallEvidence::default()
        }],
        spans_left_out: 0,
    }
}

fn evidence(path: &Path) -> RunEvidence {
    Reader::open(path).unwrap().evidence(TraceLimit::default()).unwrap()
}

/// All cells of the first row of a query, as SQLite's command line would print them, separated by `|`.
fn row(path: &Path, sql: &str) -> String {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let print = |cell: Cell| match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => format!("{number:?}"),
        Cell::Text(text) => text,
        Cell::Blob(blob) => narrows_model::trace::hex(&blob),
    };
    statement
        .query_row([], |row| (0..columns).map(|at| row.get(at).map(print)).collect::<rusqlite::Result<Vec<_>>>())
        .unwrap()
        .join("|")
}
