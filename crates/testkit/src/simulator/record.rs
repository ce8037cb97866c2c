//! Records a simulation as the evidence that a run file's reader would return.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::load::LoadSecond;
use narrows_model::run::WindowKind;
use narrows_model::series::{Point, Series, SeriesKey, names};
use narrows_model::trace::Trace;

use super::{STORE, System, WEB};
use crate::TRIAL_START_NS;
use crate::spans::SpanBuilder;
use crate::tally::Tally;
use crate::trial::TrialBuilder;

const SECOND_NS: i64 = 1_000_000_000;
const WARM_UP_SECONDS: u32 = 3;
/// Traces that are kept.
const SAMPLE: usize = 300;
/// The machine that everything is on.
const HOST_CORES: u32 = 16;
/// CPU of the generator for each request, milliseconds.
const GENERATOR_MS: f64 = 0.02;
const THREADS: f64 = 4.0;

/// A request of the load; times in nanoseconds from its start.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) user: u32,
    pub(super) start_ns: u64,
    /// `None` if the load was over first.
    pub(super) end_ns: Option<u64>,
    /// Parent, span, start, end.
    pub(super) spans: Vec<(Option<usize>, SpanBuilder, u64, u64)>,
}

/// All that happened.
#[derive(Debug)]
pub(super) struct History {
    pub(super) requests: Vec<Request>,
    /// Busy nanoseconds of each station by second.
    pub(super) busy: Vec<Vec<f64>>,
    /// Throughput spent by each partition, by second.
    pub(super) spent: BTreeMap<(usize, u64), f64>,
    /// Connections in use and tasks that wait for one, on average in each second.
    pub(super) pool: [Vec<f64>; 2],
}

pub(super) fn evidence(variant: &str, stations: &[(&str, u32)], system: &System, history: History) -> TrialEvidence {
    let mut builder = TrialBuilder::new(variant).cores(HOST_CORES);
    for (service, cores) in stations {
        builder = builder.service(service, Some(f64::from(*cores)));
    }
    builder = windows(builder, &system.steps);
    let seconds = load_seconds(system, &history.requests);
    builder = usage(builder, stations, &history, &seconds);
    builder = throughput(builder, system, history.spent);
    let pool_series =
        if system.has_pool_metrics { pool_series(system, history.pool, seconds.len()) } else { Vec::new() };
    let mut evidence = builder.build();
    evidence.series.extend(pool_series);
    let (mut tally, mut traces) = (Tally::default(), Vec::new());
    for (number, request) in history.requests.into_iter().enumerate() {
        let start_ns = TRIAL_START_NS + request.start_ns as i64;
        if request.end_ns.is_some() && evidence.is_counted(start_ns) {
            let trace = trace_of(request, number as u32);
            tally.add(&trace, &[(start_ns - start_ns.rem_euclid(SECOND_NS), 1.0)]);
            traces.push(trace);
        }
    }
    evidence.spans_total = traces.iter().map(|trace| trace.spans.len() as u64).sum();
    let every = traces.len().div_ceil(SAMPLE).max(1);
    let weight = every as f64;
    evidence.traces = traces.into_iter().step_by(every).map(|trace| Trace { weight, ..trace }).collect();
    evidence.operations = tally.into_operations();
    evidence.seconds = seconds;
    evidence
}

fn windows(builder: TrialBuilder, steps: &[(u32, u32)]) -> TrialBuilder {
    let still = |seconds: u32| std::iter::repeat_n((0.0, 0.0), seconds as usize);
    let mut builder = builder;
    for (position, (users, seconds)) in steps.iter().enumerate() {
        let warm_up = if position == 0 { WARM_UP_SECONDS.min(*seconds) } else { 0 };
        if warm_up > 0 {
            builder = builder.window(WindowKind::Warmup, *users, still(warm_up));
        }
        builder = builder.window(WindowKind::Steady, *users, still(seconds - warm_up));
    }
    builder
}

fn load_seconds(system: &System, requests: &[Request]) -> Vec<LoadSecond> {
    let mut rows: Vec<LoadSecond> = Vec::new();
    for (users, seconds) in &system.steps {
        for _ in 0..*seconds {
            let start_ns = TRIAL_START_NS + rows.len() as i64 * SECOND_NS;
            rows.push(LoadSecond { scenario: "main".into(), start_ns, vus: *users, ..LoadSecond::default() });
        }
    }
    for request in requests {
        let Some(end_ns) = request.end_ns else { continue };
        let Some(row) = rows.get_mut((end_ns / SECOND_NS as u64) as usize) else { continue };
        row.sent += 1;
        row.succeeded += 1;
        row.bytes += 400;
        row.latency.record(end_ns - request.start_ns);
        row.service.record(end_ns - request.start_ns);
        row.lateness.record(20_000);
    }
    rows
}

fn usage(builder: TrialBuilder, stations: &[(&str, u32)], history: &History, load: &[LoadSecond]) -> TrialBuilder {
    let seconds = load.len();
    let mut curves: Vec<(String, Vec<f64>)> = Vec::new();
    for ((service, _), busy) in stations.iter().zip(&history.busy) {
        let cores = |s: usize| busy.get(s).copied().unwrap_or(0.0) / SECOND_NS as f64;
        curves.push(((*service).to_owned(), (0..seconds).map(cores).collect()));
    }
    let generator = |row: &LoadSecond| 0.01 + row.sent as f64 * GENERATOR_MS / 1000.0;
    curves.push((names::GENERATOR.to_owned(), load.iter().map(generator).collect()));
    let host: Vec<f64> = (0..seconds)
        .map(|s| curves.iter().map(|(_, cores)| cores[s]).sum::<f64>() / f64::from(HOST_CORES) + 0.02)
        .collect();
    let mut builder = builder.host_cpu(move |s| host[s as usize]);
    for (service, cores) in curves {
        let thread: Vec<f64> = cores.iter().map(|cores| (cores / THREADS * 1.2).min(1.0)).collect();
        builder = builder.busiest_thread(&service, 0, move |s| thread[s as usize]);
        builder = builder.cpu(&service, 0, move |s| cores[s as usize]);
    }
    builder
}

fn throughput(builder: TrialBuilder, system: &System, spent: BTreeMap<(usize, u64), f64>) -> TrialBuilder {
    (0..system.partitions as usize).fold(builder, |builder, partition| {
        let here: BTreeMap<u64, f64> =
            spent.iter().filter(|((p, _), _)| *p == partition).map(|((_, s), charge)| (*s, *charge)).collect();
        let curve = move |s: u32| here.get(&u64::from(s)).copied().unwrap_or(0.0);
        builder.throughput(STORE, &partition.to_string(), system.provisioned, curve)
    })
}

/// The metrics of a pool as OpenTelemetry names them.
fn pool_series(system: &System, [used, pending]: [Vec<f64>; 2], seconds: usize) -> Vec<Series> {
    let series = |name: &str, unit: &str, state: Option<&str>, value: &dyn Fn(usize) -> f64| {
        let mut labels = BTreeMap::from([("db.client.connection.pool.name".to_owned(), "main".to_owned())]);
        labels.extend(state.map(|state| ("db.client.connection.state".to_owned(), state.to_owned())));
        let key = SeriesKey { name: name.into(), unit: unit.into(), service: WEB.into(), replica: 0, labels };
        let at = |s: usize| TRIAL_START_NS + s as i64 * SECOND_NS + SECOND_NS / 2;
        let points = (0..seconds).map(|s| Point { time_ns: at(s), value: value(s) }).collect();
        Series { key, points }
    };
    let max = f64::from(system.pool);
    let of = |values: &[f64], s: usize| values.get(s).copied().unwrap_or(0.0).round();
    vec![
        series("db.client.connection.max", "{connection}", None, &|_| max),
        series("db.client.connection.count", "{connection}", Some("used"), &|s| of(&used, s)),
        series("db.client.connection.count", "{connection}", Some("idle"), &|s| max - of(&used, s)),
        series("db.client.connection.pending_requests", "{request}", None, &|s| of(&pending, s)),
    ]
}

fn trace_of(request: Request, number: u32) -> Trace {
    let start_ns = request.start_ns;
    let ms = |ns: u64| (ns - start_ns) as f64 / 1e6;
    let mut below: Vec<Vec<SpanBuilder>> = request.spans.iter().map(|_| Vec::new()).collect();
    let mut root = SpanBuilder::of_kind(narrows_model::trace::SpanKind::Internal, "empty");
    for (position, (parent, span, start, end)) in request.spans.into_iter().enumerate().rev() {
        let mut children = std::mem::take(&mut below[position]);
        children.reverse();
        let span = span.at(ms(start), (end - start) as f64 / 1e6).children(children);
        match parent {
            Some(parent) => below[parent].push(span),
            None => root = span,
        }
    }
    root.trace_from(number, TRIAL_START_NS + start_ns as i64)
}
