//! Generated loads with any number, spacing and results of requests, in the rows that the load engine would write.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::load::LoadSecond;
use narrows_model::run::{Environment, Run, RunState, Trial, TrialState, Validity, Window, WindowKind};
use proptest::prelude::*;

const SECOND_NS: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// Start time of every load here.
pub(super) const START_NS: i64 = 1_790_000_000_123_456_789;

/// The objectives of every run.
pub(super) const OBJECTIVES: &str = "objectives: [\"error_rate == 0\", \"max < 100ms\", \"rate >= 5/s\"]\n";

/// A request as its client observed it. Times are nanoseconds since the load's start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) sent_ns: i64,
    pub(super) done_ns: i64,
    pub(super) has_failed: bool,
    /// Index of the request in the load, 0 or 1.
    pub(super) step: usize,
}

/// A load: the lengths of its windows, and its requests.
#[derive(Debug, Clone)]
pub(super) struct Load {
    warmup_ns: i64,
    /// Length of each window, and of the settling time before it.
    windows_ns: Vec<(i64, i64)>,
    pub(super) requests: Vec<Request>,
}

/// The client's own counts after the warm-up, without the settling time between two levels.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    /// Number of successes while load was still being sent.
    pub(super) in_time: u64,
    pub(super) slowest_ns: i64,
}

impl Count {
    pub(super) fn ended(&self) -> u64 {
        self.succeeded + self.failed
    }
}

/// Any load of up to a few dozen requests, often with many of them at its very end.
pub(super) fn any_load() -> impl Strategy<Value = Load> {
    let length = || prop_oneof![MS..900 * MS, 900 * MS..1_100 * MS, 1_100 * MS..4_000 * MS, Just(SECOND_NS)];
    let settling = prop_oneof![Just(0), MS..700 * MS];
    let windows = proptest::collection::vec((length(), settling), 1..4);
    let warmup = prop_oneof![Just(0), length()];
    let request = (0.0..1.15f64, prop_oneof![0..2_000_000i64, 0..200 * MS, 0..3_000 * MS], any::<bool>(), 0..2usize);
    let requests = proptest::collection::vec(request, 0..40);
    (warmup, windows, requests, any::<bool>()).prop_map(|(warmup_ns, windows_ns, requests, is_whole)| {
        let mut load = Load { warmup_ns, windows_ns, requests: Vec::new() };
        let end_ns = load.end_ns();
        let requests = requests.into_iter().map(|(at, took_ns, has_failed, step)| {
            let sent_ns = ((end_ns as f64 * at) as i64).min(end_ns - 1);
            Request { sent_ns, done_ns: sent_ns + took_ns, has_failed: has_failed && !is_whole, step }
        });
        load.requests = requests.collect();
        load
    })
}

impl Load {
    fn end_ns(&self) -> i64 {
        self.warmup_ns + self.windows_ns.iter().map(|(length, settling)| length + settling).sum::<i64>()
    }

    /// Time of the last response.
    fn drained_ns(&self) -> i64 {
        self.requests.iter().map(|request| request.done_ns).fold(self.end_ns(), i64::max)
    }

    pub(super) fn windows(&self) -> Vec<Window> {
        let window = |index: usize, kind, start_ns: i64, end_ns: i64| Window {
            index: index as u32,
            kind,
            label: format!("{index} users"),
            start_ns: START_NS + start_ns,
            end_ns: START_NS + end_ns,
            drained_ns: None,
            vus: index as u32,
            rate: None,
        };
        let mut windows = Vec::new();
        if self.warmup_ns > 0 {
            windows.push(window(0, WindowKind::Warmup, 0, self.warmup_ns));
        }
        let mut at_ns = self.warmup_ns;
        for (length_ns, settling_ns) in &self.windows_ns {
            at_ns += settling_ns;
            windows.push(window(windows.len(), WindowKind::Steady, at_ns, at_ns + length_ns));
            at_ns += length_ns;
        }
        windows.last_mut().unwrap().drained_ns = Some(START_NS + self.drained_ns());
        windows
    }

    /// The seconds of the counted windows.
    pub(super) fn counted_s(&self) -> f64 {
        self.windows_ns.iter().map(|(length, _)| *length).sum::<i64>() as f64 / 1e9
    }

    /// The client's counts for one request of the load, or for both if `None`.
    pub(super) fn count(&self, step: Option<usize>) -> Count {
        let windows = self.windows();
        let mut count = Count::default();
        for request in self.requests.iter().filter(|request| step.is_none_or(|step| step == request.step)) {
            let done_ns = START_NS + request.done_ns;
            let is_within = |window: &&Window| window.kind == WindowKind::Steady && window.start_ns <= done_ns;
            let Some(window) = windows.iter().rfind(is_within) else { continue };
            let is_in_time = done_ns < window.end_ns;
            if !is_in_time && window.drained_ns.is_none() {
                continue;
            }
            match request.has_failed {
                true => count.failed += 1,
                false => {
                    count.succeeded += 1;
                    count.in_time += u64::from(is_in_time);
                    count.slowest_ns = count.slowest_ns.max(request.done_ns - request.sent_ns);
                }
            }
        }
        count
    }

    /// The rows: one per second and request, cut at window boundaries and at the end.
    pub(super) fn rows(&self) -> Vec<LoadSecond> {
        let ended_ns = START_NS + self.drained_ns();
        let seconds = (0..).map(|second| START_NS + second * SECOND_NS).take_while(|start_ns| *start_ns <= ended_ns);
        let of_windows = self.windows().into_iter().flat_map(|window| [window.start_ns, window.end_ns]);
        let starts: BTreeSet<i64> = seconds.chain(of_windows).collect();
        let ends = starts.iter().skip(1).copied().chain([ended_ns]);
        let mut rows: BTreeMap<(i64, usize), LoadSecond> = BTreeMap::new();
        for (start_ns, end_ns) in starts.iter().copied().zip(ends) {
            for step in 0..2 {
                let (scenario, request) = ("shop".to_owned(), ["list", "pay"][step].to_owned());
                let length_ns = end_ns - start_ns;
                let row = LoadSecond { scenario, request, start_ns, length_ns, vus: 1, ..LoadSecond::default() };
                rows.insert((start_ns, step), row);
            }
        }
        let mut of = |at_ns: i64, step: usize, change: &dyn Fn(&mut LoadSecond)| {
            let start_ns = *starts.range(..=START_NS + at_ns).next_back().unwrap();
            change(rows.get_mut(&(start_ns, step)).unwrap());
        };
        for request in &self.requests {
            of(request.sent_ns, request.step, &|row| row.sent += 1);
            of(request.done_ns, request.step, &|row| match request.has_failed {
                true => row.errors.status += 1,
                false => {
                    let took_ns = (request.done_ns - request.sent_ns).unsigned_abs();
                    row.succeeded += 1;
                    row.latency.record(took_ns);
                    row.service.record(took_ns);
                }
            });
        }
        rows.into_values().collect()
    }

    /// Everything that a run file would contain about this load.
    pub(super) fn evidence(&self) -> RunEvidence {
        let trial = TrialEvidence {
            trial: trial(),
            windows: self.windows(),
            services: Vec::new(),
            seconds: self.rows(),
            series: Vec::new(),
            operations: Vec::new(),
            traces: Vec::new(),
            stalls: Default::default(),
            messages: Default::default(),
            spans_total: 0,
            spans_refused: 0,
            spans_thinned: 0,
            cores: 2,
            client_addresses: None,
            arrivals: None,
        };
        RunEvidence { run: run(), trials: vec![trial] }
    }
}

pub(super) fn trial() -> Trial {
    Trial {
        id: 1,
        variant: "only".to_owned(),
        repetition: 1,
        state: TrialState::Done,
        started_ns: Some(START_NS),
        ended_ns: Some(START_NS + 60 * SECOND_NS),
        parameters: BTreeMap::default(),
        validity: Validity::default(),
        error: None,
        caveats: Vec::new(),
        load_program: None,
    }
}

pub(super) fn run() -> Run {
    Run {
        id: "0123456789abcdef".to_owned(),
        experiment: "counts".to_owned(),
        narrows_version: "0".to_owned(),
        started_ns: START_NS,
        ended_ns: Some(START_NS + 60 * SECOND_NS),
        state: RunState::Complete,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        experiment_source: OBJECTIVES.to_owned(),
        environment: Environment { cores: 2, ..Environment::default() },
    }
}
