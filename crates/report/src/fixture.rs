//! A run as the tests see it: an order service in two variants, `as-is` with an N+1 query and `fixed` without.
//!
//! All numbers follow from a fixed sequence, so that renderings can be compared to the letter.

mod checks;
pub(crate) mod drones;

pub(crate) use checks::{check, proof};

use std::collections::BTreeMap;

use narrows_model::breakdown::{OwnPart, OwnTime, ServiceThreads, ThreadsBy};
use narrows_model::caveat::TrialCaveat;
use narrows_model::comparison::{
    Basis, Change, Comparison, Difference, Interval, Kept, Meaning, ObjectiveResult, Outcome, Subject, VariantSummary,
};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::evidence::Counts;
use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::cpu::LoadPoint;
use narrows_model::finding::evidence::cpu_saturation::CpuSaturation;
use narrows_model::finding::evidence::database_saturation::{DatabaseSaturation, SaturationSign, SlowedQueries};
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::finding::evidence::n_plus_one::{NPlusOne, Statement};
use narrows_model::finding::{Confidence, Exemplar, Finding, FindingKind, Mechanism, Period, Relation, Role};
use narrows_model::histogram::Histogram;
use narrows_model::limit::{LevelSummary, Limit, LimitSign, LimitVerdict, MachineCpu, ServiceCpu, WaitingPlace};
use narrows_model::load::{ErrorCounts, LoadSecond};
use narrows_model::prediction::{
    self, ChangeKind, Estimate, Figures, Forecast, Measured, Prediction, RuleFigures, Scored,
};
use narrows_model::run::{
    Environment, Machine, Run, RunState, ServiceInstance, Trial, TrialState, Validity, Verdict, Window, WindowKind,
};
use narrows_model::series::{Point, Series, SeriesKey, names};
use narrows_model::trace::{Span, SpanFacts, SpanKind, SpanStatus, Trace, hex};
use serde_json::Map;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_763_728_200 * SECOND;
const WARMUP_S: i64 = 10;
const LENGTH_S: i64 = 70;

/// The characteristics of one variant.
struct Shape {
    id: i64,
    variant: &'static str,
    start_ns: i64,
    median_ms: f64,
    rate: f64,
    orders_cores: f64,
    database_cores: f64,
    queries: usize,
    errors_every: i64,
}

pub(crate) fn outcome() -> Outcome {
    let as_is = Shape {
        id: 1,
        variant: "as-is",
        start_ns: START,
        median_ms: 31.0,
        rate: 245.0,
        orders_cores: 0.92,
        database_cores: 0.71,
        queries: 25,
        errors_every: 17,
    };
    let fixed = Shape {
        id: 2,
        variant: "fixed",
        start_ns: START + 90 * SECOND,
        median_ms: 7.6,
        rate: 1020.0,
        orders_cores: 0.98,
        database_cores: 0.33,
        queries: 1,
        errors_every: LENGTH_S + 1,
    };
    let trials = vec![trial(&as_is), trial(&fixed)];
    let findings = vec![vec![n_plus_one(&trials[0].traces[0]), bursts()], Vec::new()];
    Outcome {
        evidence: RunEvidence { run: run(), trials },
        findings,
        limits: Vec::new(),
        breakdowns: Vec::new(),
        call_graphs: Vec::new(),
        comparison: comparison(),
        objectives: vec![
            vec![objective("p95 < 20ms", "54.2 ms", Kept::No), objective("error_rate == 0", "0.1 %", Kept::No)],
            vec![objective("p95 < 20ms", "13.9 ms", Kept::Yes), objective("error_rate == 0", "0 %", Kept::Yes)],
        ],
        scored: Vec::new(),
        ladders: Vec::new(),
        notes: Default::default(),
        beside: Vec::new(),
        costs: Vec::new(),
        sentence:
            "One joined query instead of 25 makes fixed handle 4.2 times as many requests as as-is, at a quarter \
                   of the latency."
                .to_owned(),
    }
}

fn run() -> Run {
    Run {
        id: "00112233aabbccdd".to_owned(),
        experiment: "orders".to_owned(),
        narrows_version: "0.1.0".to_owned(),
        started_ns: START,
        ended_ns: Some(START + 170 * SECOND),
        state: RunState::Complete,
        seed: 42,
        time_scale: 0.1,
        repetitions: 1,
        experiment_source:
            "experiment: orders\nparameters: { joined: false }\nsystem:\n  services:\n    gateway: { run: \
                            [python3, gateway.py, --port, \"${port}\"], ready: \"GET /\" }\nload:\n  target: \
                            gateway\nvariants:\n  - { name: as-is }\n  - { name: fixed, joined: true }\n"
                .to_owned(),
        environment: Environment {
            kernel: "Linux 6.1.0".to_owned(),
            cpu_model: "AMD EPYC 7B13".to_owned(),
            cores: 2,
            memory_bytes: 8 << 30,
        },
    }
}

fn trial(shape: &Shape) -> TrialEvidence {
    let parameters =
        [("joined", if shape.queries == 1 { "true" } else { "false" }), ("pool_size", "10"), ("workers", "2")];
    let end_ns = shape.start_ns + LENGTH_S * SECOND;
    let warm_ns = shape.start_ns + WARMUP_S * SECOND;
    TrialEvidence {
        client_addresses: None,
        arrivals: None,
        trial: Trial {
            id: shape.id,
            variant: shape.variant.to_owned(),
            repetition: 1,
            state: TrialState::Done,
            started_ns: Some(shape.start_ns - 3 * SECOND),
            ended_ns: Some(end_ns + 2 * SECOND),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            validity: validity(shape),
            error: None,
            caveats: if shape.id == 1 { vec![no_caps()] } else { Vec::new() },
            load_program: None,
        },
        windows: vec![
            window(0, WindowKind::Warmup, "warm-up", shape.start_ns, warm_ns),
            window(1, WindowKind::Steady, "8 users", warm_ns, end_ns),
        ],
        services: vec![service("gateway", 0, Some(0.5)), service("orders", 0, Some(1.0)), service("postgres", 0, None)],
        seconds: (0..LENGTH_S).map(|second| load_second(shape, second)).collect(),
        series: series(shape),
        operations: Vec::new(),
        traces: (0..3).map(|n| trace(shape, n)).collect(),
        spans_total: 48_210,
        stalls: Default::default(),
        messages: Default::default(),
        spans_refused: 0,
        spans_thinned: 0,
        cores: 2,
    }
}

fn validity(shape: &Shape) -> Validity {
    if shape.id == 1 {
        return Validity::default();
    }
    let reason = "The generator sent 3.1 % of the requests more than 1 ms late.".to_owned();
    Validity { verdict: Verdict::Doubtful, reasons: vec![reason] }
}

fn window(index: u32, kind: WindowKind, label: &str, start_ns: i64, end_ns: i64) -> Window {
    Window { index, kind, label: label.to_owned(), start_ns, end_ns, drained_ns: None, vus: 8, rate: None }
}

fn service(name: &str, replica: u32, cpu_limit_cores: Option<f64>) -> ServiceInstance {
    ServiceInstance {
        service: name.to_owned(),
        replica,
        pid: 4000 + replica,
        port: 8080,
        command: vec!["python3".to_owned(), format!("{name}.py")],
        cpu_limit_cores,
        memory_limit_bytes: (name == "orders").then_some(256 << 20),
        stand_in_ports: Vec::new(),
        machine: Machine::Here,
    }
}

/// A fixed sequence in place of chance, 0 to 1.
fn wobble(n: i64) -> f64 {
    let mut x = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66;
    x ^= x >> 29;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((x >> 40) as f64) / f64::from(1 << 24)
}

fn load_second(shape: &Shape, second: i64) -> LoadSecond {
    let slow = if second < 4 { 2.5 } else { 1.0 };
    let succeeded = (shape.rate / slow * (0.95 + 0.1 * wobble(second))) as u64;
    let status = u64::from(second % shape.errors_every == shape.errors_every - 1 && second > WARMUP_S) * 2;
    let mut row = LoadSecond {
        scenario: "shoppers".to_owned(),
        request: String::new(),
        start_ns: shape.start_ns + second * SECOND,
        length_ns: 1_000_000_000,
        vus: 8,
        due: 0,
        late: 0,
        dropped: 0,
        sent: succeeded + status,
        repeated: 0,
        cut: 0,
        succeeded,
        errors: ErrorCounts { status, ..ErrorCounts::default() },
        bytes: succeeded * 2_400,
        latency: Histogram::new(),
        service: Histogram::new(),
        lateness: Histogram::new(),
    };
    for n in 0..succeeded as i64 {
        let tail = wobble(second * 10_000 + n);
        let latency = shape.median_ms * slow * (0.8 + 0.4 * tail + 1.6 * tail.powi(12) + 2.0 * tail.powi(80));
        row.latency.record((latency * 1e6) as u64);
        row.service.record((latency * 0.99 * 1e6) as u64);
        row.lateness.record(20_000);
    }
    row
}

/// One query in place of many, predicted from one variant and measured in another.
pub(crate) fn scored(before: &str, after: &str) -> Scored {
    let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
    let now = Figures { rate: 240.0, mean_ns: 33e6, p95_ns: 54.2e6 };
    let prediction = Prediction {
        because: Some(FindingKind::NPlusOne),
        measured: Some(Measured {
            trial: after.into(),
            figures: Figures { rate: 720.0, mean_ns: 12e6, p95_ns: 13.9e6 },
            levels: Vec::new(),
        }),
        ..Prediction::new(
            prediction::Change { kind: ChangeKind::JoinQueries, target: "shop GET /orders".into(), amount: None },
            now,
            Forecast { rate: estimate(700.0), mean_ns: estimate(9e6), p95_ns: estimate(15e6) },
        )
    };
    let rule = |rate, mean_ns| Some(RuleFigures { rate, mean_ns });
    Scored {
        earlier_run: None,
        before: before.into(),
        after: after.into(),
        prediction,
        share_removed: rule(900.0, 3e6),
        amdahl: rule(850.0, 5e6),
    }
}

/// The same run under an open load of two steps, of which the second fails a check now and then.
/// The run with levels of its load and a verdict for each trial.
pub(crate) fn stepped_outcome() -> Outcome {
    let threads = |users: f64, on_cpu: f64| ServiceThreads {
        service: "orders".to_owned(),
        requests: Some(users),
        own: vec![
            OwnPart { what: OwnTime::OnCpu, requests: on_cpu },
            OwnPart { what: OwnTime::Lock, requests: users - on_cpu },
        ],
        threads: ThreadsBy { on_cpu, lock: users - 1.0, disk: 0.2, idle: 3.0, ..ThreadsBy::default() },
    };
    let level = |users: u32, rate: f64, mean_ms: f64, cores: f64| LevelSummary {
        label: if users == 1 { "“1 user”".to_owned() } else { format!("“{users} users”") },
        load: LoadLevel { users, arrivals: None },
        is_steady: true,
        seconds: 20.0,
        rate,
        mean_ns: mean_ms * 1e6,
        p50_ns: 0.9 * mean_ms * 1e6,
        p95_ns: 1.6 * mean_ms * 1e6,
        error_rate: if users > 8 { 0.004 } else { 0.0 },
        threads: vec![threads(f64::from(users), cores)],
        services: vec![ServiceCpu { service: "orders".to_owned(), cores, busy_share: cores }],
        machine: Some(MachineCpu { all: 2.0, services: cores, narrows: 0.2, others: 0.3, stolen: 0.0 }),
    };
    let levels = vec![level(1, 176.0, 5.7, 0.1), level(4, 177.0, 22.6, 0.1), level(16, 176.0, 91.0, 0.11)];
    let limit = |levels, verdict| Limit { levels, knee: Some(0), verdict };
    let point = |users, rate, request_ns| LoadPoint { level: LoadLevel { users, arrivals: None }, rate, request_ns };
    let (lighter, heavier) = (point(1, 176.0, 5.7e6), point(16, 176.0, 91e6));
    let place = WaitingPlace { name: "orders".to_owned(), category: None, share: None, cores: Some(0.11), waits: None };
    let sign = LimitSign::FlatThroughput { lighter, heavier };
    let lock = limit(levels, LimitVerdict::NotCpu { sign, place: Some(place) });
    let levels = vec![level(8, 1020.0, 7.8, 0.98)];
    let machine = MachineCpu { all: 2.0, services: 0.98, narrows: 0.2, others: 0.0, stolen: 0.0 };
    let service = Some("orders".to_owned());
    let cpu =
        limit(levels, LimitVerdict::Cpu { service, mostly: None, share: 0.98, waiting: None, machine: Some(machine) });
    Outcome { limits: vec![lock, cpu], ..outcome() }
}

pub(crate) fn open_outcome() -> Outcome {
    let mut outcome = outcome();
    for evidence in &mut outcome.evidence.trials {
        let window = &mut evidence.windows[1];
        (window.vus, window.rate, window.label) = (0, Some(1100.0), "1,100/s".to_owned());
        let mut rows = Vec::new();
        for mut row in std::mem::take(&mut evidence.seconds) {
            let mut pay = LoadSecond { request: "pay".to_owned(), vus: 0, ..row.clone() };
            pay.errors = ErrorCounts { check: pay.succeeded / 100, ..ErrorCounts::default() };
            pay.sent = pay.succeeded + pay.errors.check;
            row.request = "list".to_owned();
            (row.due, row.late) = (1100, 3);
            row.dropped = 1100_u64.saturating_sub(row.sent);
            rows.extend([row, pay]);
        }
        evidence.seconds = rows;
    }
    outcome
}

fn series(shape: &Shape) -> Vec<Series> {
    let cpu =
        [("gateway", 0.21), ("orders", shape.orders_cores), ("postgres", shape.database_cores), ("narrows", 0.06)];
    let memory = [("gateway", 48.0), ("orders", 131.0), ("postgres", 96.0), ("narrows", 11.0)];
    let line = |name: &str, unit: &str, service: &str, value: &dyn Fn(i64) -> f64| Series {
        key: SeriesKey {
            name: name.to_owned(),
            unit: unit.to_owned(),
            service: service.to_owned(),
            replica: 0,
            labels: BTreeMap::new(),
        },
        points: (-6..LENGTH_S * 2 + 4)
            .map(|n| Point { time_ns: shape.start_ns + n * SECOND / 2, value: value(n) })
            .collect(),
    };
    let mut all = Vec::new();
    for (row, (service, cores)) in cpu.into_iter().enumerate() {
        let busy = move |n: i64| if n < 0 { 0.01 } else { cores * (0.9 + 0.12 * wobble(n + 1000 * row as i64)) };
        all.push(line(names::CPU_CORES, "{cores}", service, &busy));
    }
    for (service, mib) in memory {
        let grown = move |n: i64| (mib + 0.08 * n.max(0) as f64) * 1_048_576.0;
        all.push(line(names::MEMORY_BYTES, "By", service, &grown));
    }
    all
}

/// `GET /orders`: gateway → orders → one query for the orders, then one for each customer unless joined.
pub(crate) fn n_plus_one_trace(queries: usize) -> Trace {
    let shape = Shape {
        id: 9,
        variant: "any",
        start_ns: START,
        median_ms: 31.0,
        rate: 1.0,
        orders_cores: 1.0,
        database_cores: 1.0,
        queries,
        errors_every: 1,
    };
    trace(&shape, 0)
}

fn trace(shape: &Shape, n: u8) -> Trace {
    let mut id = [0x4b; 16];
    id[0] = shape.id as u8;
    id[15] = n;
    let start_ns = shape.start_ns + (20 + i64::from(n)) * SECOND;
    let length_ns = (shape.median_ms * (1.0 + 0.1 * f64::from(n)) * 1e6) as i64;
    let mut spans = Vec::new();
    let mut add = |parent: Option<usize>, service: &str, name: &str, kind, from: f64, to: f64, facts: SpanFacts| {
        let at = |share: f64| start_ns + (share * length_ns as f64) as i64;
        let mut span_id = [n + 1; 8];
        span_id[7] = spans.len() as u8 + 1;
        let parent_id = parent.map(|index: usize| spans_id(n, index));
        spans.push(Span {
            trace_id: id,
            span_id,
            parent_id,
            service: service.to_owned(),
            scope: "opentelemetry.instrumentation".to_owned(),
            name: name.to_owned(),
            kind,
            start_ns: at(from),
            end_ns: at(to),
            status: SpanStatus::Unset,
            status_message: String::new(),
            facts,
            attributes: Map::new(),
            weight: 1.0,
        });
        spans.len() - 1
    };
    let root = add(None, "gateway", "GET /orders", SpanKind::Server, 0.0, 1.0, http(200));
    let call = add(Some(root), "gateway", "GET", SpanKind::Client, 0.03, 0.97, http(200));
    let server = add(Some(call), "orders", "GET /orders", SpanKind::Server, 0.05, 0.95, http(200));
    let list = "SELECT id, customer_id, total FROM orders WHERE day = $1 ORDER BY id LIMIT 25";
    add(Some(server), "orders", "SELECT shop.orders", SpanKind::Client, 0.07, 0.16, query(list));
    let step = 0.70 / shape.queries.max(1) as f64;
    for index in 0..shape.queries.saturating_sub(1) {
        let from = 0.18 + step * index as f64;
        let each = query("SELECT name, tier FROM customers WHERE id = $1");
        add(Some(server), "orders", "SELECT shop.customers", SpanKind::Client, from, from + step * 0.8, each);
    }
    add(Some(server), "orders", "render", SpanKind::Internal, 0.89, 0.94, SpanFacts::default());
    Trace { id, spans, weight: 40.0 }
}

fn spans_id(n: u8, index: usize) -> [u8; 8] {
    let mut id = [n + 1; 8];
    id[7] = index as u8 + 1;
    id
}

fn http(status: u16) -> SpanFacts {
    SpanFacts {
        http_method: Some("GET".to_owned()),
        http_route: Some("/orders".to_owned()),
        http_status: Some(status),
        url: Some("/orders?day=2025-11-21".to_owned()),
        ..SpanFacts::default()
    }
}

fn query(text: &str) -> SpanFacts {
    SpanFacts {
        db_system: Some("postgresql".to_owned()),
        db_namespace: Some("shop".to_owned()),
        db_query: Some(text.to_owned()),
        ..SpanFacts::default()
    }
}

fn n_plus_one(trace: &Trace) -> Finding {
    let text = "SELECT name, tier FROM customers WHERE id = $1";
    let evidence = NPlusOne {
        traces: 120,
        trace_share: 1.0,
        query_share: 0.9,
        queries: Counts { median: 24, least: 3, most: 40 },
        latency_ns: 31e6,
        busy_ns: 19.2e6,
        cost_ns: 20.8e6,
        statement: Statement { shape: text.replace("$1", "?"), sent: Some(text.to_owned()), ..Statement::default() },
        spans_per_query: 1.0,
        ..NPlusOne::default()
    };
    Finding {
        resource: "orders".to_owned(),
        operation: Some("GET /orders".to_owned()),
        cost_share: 0.67,
        confidence: Confidence::High,
        exemplars: vec![Exemplar {
            trace_id: hex(&trace.id),
            span_ids: trace.spans.iter().skip(4).take(3).map(|span| hex(&span.span_id)).collect(),
        }],
        caveats: vec![narrows_model::finding::Caveat::RowsNotShown],
        effects: vec![full_database()],
        role: Role::NarrowPlace,
        ..Finding::new(evidence, 1)
    }
}

fn full_database() -> Finding {
    let slowed = SlowedQueries {
        light: LoadLevel { users: 1, arrivals: None },
        heavy: LoadLevel { users: 8, arrivals: None },
        factor: 3.2,
        ..SlowedQueries::default()
    };
    let sign = SaturationSign::Queries { slowed, cpu_share: None, is_connected_first: false };
    Finding {
        number: 1,
        resource: "postgres".to_owned(),
        cost_share: 0.71,
        confidence: Confidence::Medium,
        relations: vec![Relation::EffectOf { number: 0, why: Mechanism::WorkOfCalls }],
        ..Finding::new(DatabaseSaturation { sign, ..DatabaseSaturation::default() }, 1)
    }
}

/// A processor that was used up in one window.
fn bursts() -> Finding {
    let start_ns = START + WARMUP_S * SECOND;
    let period = Period { label: "“8 users”".to_owned(), start_ns, end_ns: START + LENGTH_S * SECOND };
    Finding { period: Some(period), ..saturated() }
}

fn saturated() -> Finding {
    let evidence = CpuSaturation {
        limit: CpuLimit::Cap { cores: 1.0 },
        level: 0.92,
        hot_replicas: 1,
        replicas: 1,
        interval: "“8 users”".to_owned(),
        load: LoadLevel { users: 8, arrivals: None },
        rate: 120.0,
        latency_ns: 66e6,
        cores: Some(0.92),
        generator_cores: Some(0.06),
        ..CpuSaturation::default()
    };
    Finding {
        number: 2,
        resource: "orders".to_owned(),
        cost_share: 0.12,
        confidence: Confidence::Medium,
        ..Finding::new(evidence, 1)
    }
}

fn objective(text: &str, measured: &str, kept: Kept) -> ObjectiveResult {
    ObjectiveResult { text: text.to_owned(), subject: Subject::Latency, measured: measured.to_owned(), kept }
}

fn comparison() -> Comparison {
    let as_is = VariantSummary {
        variant: "as-is".to_owned(),
        repetitions: 1,
        rate: Some(245.2),
        mean_ns: Some(32.1e6),
        p50_ns: Some(31.0e6),
        p95_ns: Some(54.2e6),
        p99_ns: Some(88.0e6),
        requests: 14_720,
        errors: 8,
        error_rate: 0.0005,
        cpu_seconds_per_request: Some(0.00743),
        services: Vec::new(),
        sidecars: None,
        operations: Vec::new(),
        against_first: None,
    };
    let rate = Change { ratio: 3.16, low: 2.98, high: 3.34, meaning: Meaning::Higher };
    let mean = Change { ratio: -0.754, low: -0.77, high: -0.738, meaning: Meaning::Lower };
    let fixed = VariantSummary {
        variant: "fixed".to_owned(),
        rate: Some(1020.4),
        mean_ns: Some(7.89e6),
        p50_ns: Some(7.6e6),
        p95_ns: Some(13.9e6),
        p99_ns: Some(21.6e6),
        requests: 61_224,
        errors: 0,
        error_rate: 0.0,
        cpu_seconds_per_request: Some(0.00149),
        against_first: Some(Difference {
            rate,
            mean,
            basis: Basis::MeasuredOnce,
            rate_within: Interval { low: rate.low, high: rate.high },
        }),
        ..as_is.clone()
    };
    Comparison { variants: vec![as_is, fixed], noise: None }
}

fn no_caps() -> TrialCaveat {
    TrialCaveat::WithoutCaps { service: "orders".to_owned(), reason: "cgroups are not delegated".to_owned() }
}
