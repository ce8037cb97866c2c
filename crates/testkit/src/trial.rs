//! The evidence of a trial from loads, windows and CPU curves.
//!
//! Windows follow one another from the trial's start. Within a second of load every request takes the same time, so
//! that quantiles in a test can be read off its text. Series have one point in the middle of each second.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use narrows_model::call_graph::CallFigures;
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::load::LoadSecond;
use narrows_model::operation::OperationEvidence;
use narrows_model::run::{
    Environment, Machine, Run, RunState, ServiceInstance, Trial, TrialState, Validity, Verdict, Window, WindowKind,
};
use narrows_model::series::{Point, Series, SeriesKey, ThreadState, names};
use narrows_model::trace::Trace;
use narrows_model::units;

use crate::TRIAL_START_NS;

const SECOND_NS: i64 = 1_000_000_000;
/// The port of the first service added; the next has the next.
pub const FIRST_PORT: u16 = 9000;

/// A constant load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Virtual users.
    pub vus: u32,
    /// Successful responses per second.
    pub rate: f64,
    /// Latency of each request, milliseconds.
    pub latency_ms: f64,
}

/// Builds a [`TrialEvidence`]; starts as a finished, valid trial without windows on a machine of four cores.
pub struct TrialBuilder {
    evidence: TrialEvidence,
    curves: Vec<(SeriesKey, Curve)>,
    lateness_ms: f64,
}

type Curve = Box<dyn Fn(u32) -> f64>;

/// Series of connections, and their value in figures of calls.
type CallSeries = (&'static str, fn(&CallFigures) -> f64);
const CALL_SERIES: [CallSeries; 8] = [
    (names::CONNECTIONS, |calls| calls.connections),
    (names::CONNECTIONS_ONE_WAY, |calls| calls.one_way),
    (names::CONNECTIONS_OPENED, |calls| calls.opened),
    (names::REQUESTS_OUTSTANDING, |calls| calls.outstanding),
    (names::REQUESTS_UNDECIDED, |calls| calls.undecided),
    (names::RESPONSES_UNREAD, |calls| calls.unread),
    (names::REQUEST_RATE, |calls| calls.rate),
    (names::CONNECTION_BUSY, |calls| calls.busy),
];

impl fmt::Debug for TrialBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrialBuilder").field("evidence", &self.evidence).finish_non_exhaustive()
    }
}

impl TrialBuilder {
    /// A trial of this variant.
    pub fn new(variant: &str) -> Self {
        let trial = Trial {
            id: 1,
            variant: variant.into(),
            repetition: 1,
            state: TrialState::Done,
            started_ns: Some(TRIAL_START_NS),
            ended_ns: None,
            parameters: BTreeMap::new(),
            validity: Validity::default(),
            error: None,
            caveats: Vec::new(),
            load_program: None,
        };
        let evidence = TrialEvidence {
            client_addresses: None,
            arrivals: None,
            trial,
            windows: Vec::new(),
            services: Vec::new(),
            seconds: Vec::new(),
            series: Vec::new(),
            operations: Vec::new(),
            traces: Vec::new(),
            spans_total: 0,
            stalls: Default::default(),
            messages: Default::default(),
            spans_refused: 0,
            spans_thinned: 0,
            cores: 4,
        };
        Self { evidence, curves: Vec::new(), lateness_ms: 0.01 }
    }

    /// Sets the number of the repetition, from 1.
    pub fn repetition(mut self, repetition: u32) -> Self {
        self.evidence.trial.repetition = repetition;
        self
    }

    /// Sets the state that the trial reached.
    pub fn state(mut self, state: TrialState) -> Self {
        self.evidence.trial.state = state;
        self
    }

    /// The generator's verdict and its reason.
    pub fn verdict(mut self, verdict: Verdict, reason: &str) -> Self {
        self.evidence.trial.validity = Validity { verdict, reasons: vec![reason.into()] };
        self
    }

    /// The machine's processors.
    pub fn cores(mut self, cores: u32) -> Self {
        self.evidence.cores = cores;
        self
    }

    /// Another replica of a service, with its CPU cap in cores.
    pub fn service(mut self, service: &str, cpu_limit_cores: Option<f64>) -> Self {
        let position = self.evidence.services.len() as u16;
        let replica = self.evidence.services.iter().filter(|other| other.service == service).count() as u32;
        self.evidence.services.push(ServiceInstance {
            service: service.into(),
            replica,
            pid: 1000 + u32::from(position),
            port: FIRST_PORT + position,
            command: vec![service.into()],
            cpu_limit_cores,
            memory_limit_bytes: None,
            stand_in_ports: Vec::new(),
            machine: Machine::Here,
        });
        self
    }

    /// A port at which a sidecar stands in for the service added last.
    pub fn stand_in_port(mut self, port: u16) -> Self {
        self.evidence.services.iter_mut().next_back().into_iter().for_each(|last| last.stand_in_ports.push(port));
        self
    }

    /// A window that does not count.
    pub fn warmup(self, seconds: usize, load: Load) -> Self {
        self.window(WindowKind::Warmup, load.vus, constant(seconds, load))
    }

    /// A window under constant load.
    pub fn steady(self, seconds: usize, load: Load) -> Self {
        self.window(WindowKind::Steady, load.vus, constant(seconds, load))
    }

    /// A window of any kind with the rate (per second) and the latency (milliseconds) of each of its seconds.
    pub fn window(mut self, kind: WindowKind, vus: u32, seconds: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let start_ns = self.end_ns();
        let mut end_ns = start_ns;
        for (rate, latency_ms) in seconds {
            self.evidence.seconds.push(second(end_ns, vus, rate, latency_ms));
            end_ns += SECOND_NS;
        }
        let index = self.evidence.windows.len() as u32;
        let label = format!("{vus} users");
        self.evidence.windows.push(Window { index, kind, label, start_ns, end_ns, drained_ns: None, vus, rate: None });
        self
    }

    /// A window of an open model: `offered` iterations are due each second, `load.vus` users are at work.
    pub fn arrivals(self, seconds: usize, offered: f64, load: Load) -> Self {
        let from = self.evidence.seconds.len();
        let mut trial = self.window(WindowKind::Steady, load.vus, constant(seconds, load));
        for row in &mut trial.evidence.seconds[from..] {
            row.due = offered.round().max(0.0) as u64;
            row.sent = row.due;
        }
        if let Some(window) = trial.evidence.windows.last_mut() {
            (window.vus, window.rate, window.label) = (0, Some(offered), units::rate(offered));
        }
        trial
    }

    /// In each second of the last window so many iterations that were due found every user busy, and so many never
    /// began.
    pub fn held_back(mut self, late: u64, dropped: u64) -> Self {
        let start_ns = self.evidence.windows.last().map_or(TRIAL_START_NS, |window| window.start_ns);
        for row in self.evidence.seconds.iter_mut().filter(|row| row.start_ns >= start_ns) {
            (row.late, row.dropped) = (late, dropped);
            row.sent = row.due.saturating_sub(dropped);
        }
        self
    }

    /// Adds a second step to the scenario, which takes `latency_ms`: one more request for each one there is.
    pub fn second_step(mut self, request: &str, latency_ms: f64) -> Self {
        let steps = self.evidence.seconds.iter().map(|row| LoadSecond {
            request: request.into(),
            ..second(row.start_ns, 0, row.succeeded as f64, latency_ms)
        });
        let steps: Vec<LoadSecond> = steps.collect();
        self.evidence.seconds.extend(steps);
        self.evidence.seconds.sort_by_key(|row| row.start_ns);
        self
    }

    /// The generator's own delay before each send.
    pub fn lateness_ms(mut self, lateness_ms: f64) -> Self {
        self.lateness_ms = lateness_ms;
        self
    }

    /// The CPU of a replica in cores, for each second from the trial's start.
    pub fn cpu(self, service: &str, replica: u32, cores: impl Fn(u32) -> f64 + 'static) -> Self {
        self.series(names::CPU_CORES, service, replica, cores)
    }

    /// The CPU of a replica's busiest thread in cores, for each second from the trial's start.
    pub fn busiest_thread(self, service: &str, replica: u32, cores: impl Fn(u32) -> f64 + 'static) -> Self {
        self.series(names::BUSIEST_THREAD_CORES, service, replica, cores)
    }

    /// Seconds per second that a replica's busiest thread waited for a processor, for each second from the trial's start.
    pub fn busiest_thread_wait(self, service: &str, replica: u32, share: impl Fn(u32) -> f64 + 'static) -> Self {
        self.series(names::BUSIEST_THREAD_WAIT, service, replica, share)
    }

    /// The share of the host's CPU that was not idle, for each second from the trial's start.
    pub fn host_cpu(self, share: impl Fn(u32) -> f64 + 'static) -> Self {
        self.series(names::HOST_CPU_UTILIZATION, "", 0, share)
    }

    /// Any series, for each second from the trial's start.
    pub fn series(mut self, name: &str, service: &str, replica: u32, value: impl Fn(u32) -> f64 + 'static) -> Self {
        let key = SeriesKey { name: name.into(), service: service.into(), replica, ..SeriesKey::default() };
        self.curves.push((key, Box::new(value)));
        self
    }

    /// The same with labels.
    pub fn labelled_series(
        mut self,
        name: &str,
        (service, replica): (&str, u32),
        labels: &[(&str, &str)],
        value: impl Fn(u32) -> f64 + 'static,
    ) -> Self {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        let key = SeriesKey { name: name.into(), service: service.into(), replica, labels, ..SeriesKey::default() };
        self.curves.push((key, Box::new(value)));
        self
    }

    /// Threads of a service by what they do, in all seconds: state, peer or nothing, and how many. Other states have none.
    pub fn threads(mut self, service: &str, replica: u32, states: &[(ThreadState, &str, f64)]) -> Self {
        let mut add = |state: ThreadState, peer: &str, threads: f64| {
            let mut labels = BTreeMap::from([(names::THREAD_STATE.to_owned(), state.as_str().to_owned())]);
            if !peer.is_empty() {
                labels.insert(names::NETWORK_PEER.to_owned(), peer.to_owned());
            }
            let name = names::THREAD_STATES.to_owned();
            let key = SeriesKey { name, service: service.to_owned(), replica, labels, ..SeriesKey::default() };
            self.curves.push((key, Box::new(move |_| threads)));
        };
        states.iter().for_each(|(state, peer, threads)| add(*state, peer, *threads));
        if states.iter().all(|(state, _, _)| *state != ThreadState::Running) {
            add(ThreadState::Running, "", 0.0);
        }
        self
    }

    /// Connections of a replica to a peer, address and port, and the calls over them, for each second from the trial's
    /// start.
    pub fn calls(
        mut self,
        service: &str,
        replica: u32,
        peer: &str,
        figures: impl Fn(u32) -> CallFigures + 'static,
    ) -> Self {
        let figures = Rc::new(figures);
        for (name, value) in CALL_SERIES {
            let figures = Rc::clone(&figures);
            let peer = [(names::NETWORK_PEER, peer)];
            self = self.labelled_series(name, (service, replica), &peer, move |second| value(&figures(second)));
        }
        self
    }

    /// Sets the throughput that one partition of a store spends each second of the trial, and its limit.
    pub fn throughput(
        mut self,
        store: &str,
        partition: &str,
        provisioned: f64,
        spent: impl Fn(u32) -> f64 + 'static,
    ) -> Self {
        let labels = BTreeMap::from([(names::PARTITION.to_owned(), partition.to_owned())]);
        let key = |name: &str| SeriesKey {
            name: name.into(),
            service: store.into(),
            labels: labels.clone(),
            ..SeriesKey::default()
        };
        self.curves.push((key(names::THROUGHPUT_PROVISIONED), Box::new(move |_| provisioned)));
        self.curves.push((key(names::THROUGHPUT_CONSUMED), Box::new(move |s| (0..=s).map(&spent).sum())));
        self
    }

    /// An operation, counted over all spans.
    pub fn operation(mut self, operation: OperationEvidence) -> Self {
        self.evidence.operations.push(operation);
        self
    }

    /// The traces.
    pub fn traces(mut self, traces: impl IntoIterator<Item = Trace>) -> Self {
        self.evidence.traces.extend(traces);
        self
    }

    /// Spans that came too many.
    pub fn spans_refused(mut self, spans: u64) -> Self {
        self.evidence.spans_refused = spans;
        self
    }

    /// Spans that others stand for.
    pub fn spans_thinned(mut self, spans: u64) -> Self {
        self.evidence.spans_thinned = spans;
        self
    }

    /// The evidence.
    pub fn build(mut self) -> TrialEvidence {
        let end_ns = self.end_ns();
        let seconds = ((end_ns - TRIAL_START_NS) / SECOND_NS) as u32;
        for row in &mut self.evidence.seconds {
            row.lateness.record_n((self.lateness_ms * 1e6) as u64, row.sent);
        }
        for (key, curve) in &self.curves {
            let points = (0..seconds)
                .map(|s| Point { time_ns: TRIAL_START_NS + i64::from(s) * SECOND_NS + SECOND_NS / 2, value: curve(s) })
                .collect();
            self.evidence.series.push(Series { key: key.clone(), points });
        }
        self.evidence.spans_total = self.evidence.traces.iter().map(|trace| trace.spans.len() as u64).sum();
        self.evidence.trial.ended_ns = Some(end_ns);
        self.evidence
    }

    fn end_ns(&self) -> i64 {
        self.evidence.windows.last().map_or(TRIAL_START_NS, |window| window.end_ns)
    }
}

/// A complete run of these trials.
pub fn run_of_trials(trials: impl IntoIterator<Item = TrialEvidence>) -> RunEvidence {
    let mut trials: Vec<TrialEvidence> = trials.into_iter().collect();
    for (position, evidence) in trials.iter_mut().enumerate() {
        evidence.trial.id = position as i64 + 1;
    }
    let run = Run {
        id: "00000000000000aa".into(),
        experiment: "test".into(),
        narrows_version: "0.0.0".into(),
        started_ns: TRIAL_START_NS,
        ended_ns: Some(TRIAL_START_NS),
        state: RunState::Complete,
        seed: 1,
        time_scale: 1.0,
        repetitions: trials.iter().map(|evidence| evidence.trial.repetition).max().unwrap_or(1),
        experiment_source: "experiment: test\n".into(),
        environment: Environment { cores: 4, ..Environment::default() },
    };
    RunEvidence { run, trials }
}

fn constant(seconds: usize, load: Load) -> impl Iterator<Item = (f64, f64)> {
    std::iter::repeat_n((load.rate, load.latency_ms), seconds)
}

fn second(start_ns: i64, vus: u32, rate: f64, latency_ms: f64) -> LoadSecond {
    let succeeded = rate.round().max(0.0) as u64;
    let mut row =
        LoadSecond { scenario: "main".into(), start_ns, vus, sent: succeeded, succeeded, ..Default::default() };
    row.bytes = succeeded * 200;
    row.latency.record_n((latency_ms * 1e6) as u64, succeeded);
    row.service.record_n((latency_ms * 1e6) as u64, succeeded);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_does_not_count_and_load_reads_as_written() {
        let trial = TrialBuilder::new("a")
            .service("shop", Some(0.5))
            .warmup(3, Load { vus: 4, rate: 1.0, latency_ms: 900.0 })
            .steady(10, Load { vus: 4, rate: 40.0, latency_ms: 100.0 })
            .cpu("shop", 0, |second| if second < 3 { 9.0 } else { 0.25 })
            .build();
        let load = trial.counted_load();
        assert_eq!(load.rate(), 40.0);
        assert_eq!(load.latency().max_ns, 100_000_000);
        assert_eq!(load.lateness.count(), 400);
        let cpu = trial.counted_usage(names::CPU_CORES, "shop");
        assert_eq!((cpu.points, cpu.max), (10, 0.25));
    }

    #[test]
    fn requests_of_a_load_add_up_to_the_whole() {
        let load = Load { vus: 3, rate: 40.0, latency_ms: 10.0 };
        let trial = TrialBuilder::new("a").warmup(3, load).arrivals(10, 50.0, load).held_back(7, 5);
        let trial = trial.second_step("pay", 30.0).build();
        let whole = trial.counted_load();
        let requests = trial.requests_of_load();
        let told: Vec<_> = requests.iter().map(|r| (r.request.as_str(), r.totals.rate())).collect();
        assert_eq!(told, [("", 40.0), ("pay", 40.0)]);
        assert_eq!((whole.rate(), whole.offered(), whole.achieved(), whole.late), (80.0, 50.0, 45.0, 70));
        assert_eq!((requests[0].totals.due, requests[1].totals.due), (500, 0));
        assert_eq!(requests[1].totals.latency().max_ns, 30_000_000);
    }
}
