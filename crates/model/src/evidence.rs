//! Content of a run file about one trial, gathered once, for detectors and reports to read.
//!
//! Everything that needs counting over the raw rows is counted here or by the reader that fills it; detectors judge,
//! reports draw, neither re-reads the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counting::{self, Phase};
use crate::histogram::{Histogram, Quantiles};
use crate::load::{Arrivals, ErrorCounts, LatencyFigures, LoadSecond, ReportedLoad, add_counts};
use crate::messages::MessageEvidence;
use crate::operation::OperationEvidence;
use crate::run::{Run, ServiceInstance, Trial, Window, sidecar_of};
use crate::series::{Point, Series, names};
use crate::stalls::Stalls;
use crate::trace::Trace;

/// All evidence of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The run.
    pub run: Run,
    /// Its trials in order.
    pub trials: Vec<TrialEvidence>,
}

/// All evidence of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialEvidence {
    /// The trial.
    pub trial: Trial,
    /// Its windows in order.
    pub windows: Vec<Window>,
    /// The replicas that ran.
    pub services: Vec<ServiceInstance>,
    /// The load, second by second, scenarios side by side.
    pub seconds: Vec<LoadSecond>,
    /// Times in which no response came, found in the sampled requests of counted windows.
    #[serde(default)]
    pub stalls: Stalls,
    /// Series of the sampler and the services.
    pub series: Vec<Series>,
    /// The operations of its services, over all spans that began in counted windows; by service and name.
    pub operations: Vec<OperationEvidence>,
    /// A bounded sample of the traces that began in counted windows.
    pub traces: Vec<Trace>,
    /// Messages that services logged in counted windows.
    #[serde(default)]
    pub messages: MessageEvidence,
    /// Spans in the file for this trial, all windows.
    pub spans_total: u64,
    /// Spans that arrived and were refused because a limit was reached.
    pub spans_refused: u64,
    /// Spans that arrived and that others stand for, because the file neared its limit of size.
    pub spans_thinned: u64,
    /// Logical processors of the machine.
    pub cores: u32,
    /// Different addresses that the load connects from; `None` if it is unknown.
    pub client_addresses: Option<u32>,
    /// How its iterations arrive; `None` in a closed model, where open ones differ, and if it is unknown.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
}

/// Totals of a load over some time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadTotals {
    /// Time for which load was sent, in seconds; 0 if unknown.
    pub seconds: f64,
    /// See [`LoadSecond::due`].
    pub due: u64,
    /// See [`LoadSecond::late`].
    pub late: u64,
    /// See [`LoadSecond::dropped`].
    pub dropped: u64,
    /// See [`LoadSecond::sent`].
    pub sent: u64,
    /// See [`LoadSecond::repeated`].
    pub repeated: u64,
    /// See [`LoadSecond::cut`].
    pub cut: u64,
    /// Responses that counted as a success.
    pub succeeded: u64,
    /// Number of successes outside the time in `seconds`: after the end of the load, or in a row without a length.
    pub untimed: u64,
    /// Requests that failed, by kind.
    pub errors: ErrorCounts,
    /// Bytes of the responses.
    pub bytes: u64,
    /// From intended send, successes only.
    pub latency: Histogram,
    /// From actual send, successes only.
    pub service: Histogram,
    /// The generator's own delay, every request.
    pub lateness: Histogram,
}

impl LoadTotals {
    /// Successful responses per second of the time in which load was sent; 0 if [`Self::known_rate`] is `None`.
    pub fn rate(&self) -> f64 {
        self.known_rate().unwrap_or(0.0)
    }

    /// Successful responses per second of the time in which load was sent; `None` if that time is unknown or all
    /// responses arrived after it.
    pub fn known_rate(&self) -> Option<f64> {
        let in_time = self.succeeded.saturating_sub(self.untimed);
        (self.seconds > 0.0 && (in_time > 0 || self.untimed == 0)).then(|| in_time as f64 / self.seconds)
    }

    /// Number of requests that ended, successful or not.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.errors.total()
    }

    /// Failed requests ÷ all that ended; 0 when none ended.
    pub fn error_rate(&self) -> f64 {
        let ended = self.ended();
        if ended > 0 { self.errors.total() as f64 / ended as f64 } else { 0.0 }
    }

    /// Iterations of open models that were due per second; 0 when no time passed.
    pub fn offered(&self) -> f64 {
        if self.seconds > 0.0 { self.due as f64 / self.seconds } else { 0.0 }
    }

    /// Of those offered, the iterations per second that were not dropped.
    pub fn achieved(&self) -> f64 {
        if self.seconds > 0.0 { self.due.saturating_sub(self.dropped) as f64 / self.seconds } else { 0.0 }
    }

    /// Latency from intended send.
    pub fn latency(&self) -> Quantiles {
        self.latency.quantiles()
    }

    /// Adds the requests of one row. Does not touch `seconds`: [`counting::Tally`] does.
    pub fn add(&mut self, row: &LoadSecond, phase: Phase) {
        if phase == Phase::Draining || row.length_ns == 0 {
            self.untimed += row.succeeded;
        }
        add_counts!(self, row);
    }

    /// Adds the counts and the time of another load.
    pub fn merge(&mut self, other: &LoadTotals) {
        self.seconds += other.seconds;
        self.untimed += other.untimed;
        add_counts!(self, other);
    }
}

/// Figures of a trial's load as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadFigures {
    /// Number of requests that ended, successful or not.
    pub requests: u64,
    /// Number of these that failed.
    pub failed: u64,
    /// Successful responses per second, if known.
    pub rate: Option<f64>,
    /// Latency of the successful requests.
    pub latency: LatencyFigures,
}

impl From<&ReportedLoad> for LoadFigures {
    fn from(load: &ReportedLoad) -> Self {
        Self { requests: load.requests, failed: load.failed, rate: load.known_rate(), latency: load.latency }
    }
}

impl From<&LoadTotals> for LoadFigures {
    fn from(load: &LoadTotals) -> Self {
        let failed = load.errors.total();
        Self { requests: load.ended(), failed, rate: load.known_rate(), latency: (&load.latency).into() }
    }
}

/// Figures of one request of the load: a step of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestOfLoad {
    /// See [`LoadSecond::scenario`].
    pub scenario: String,
    /// See [`LoadSecond::request`].
    pub request: String,
    /// Figures; `seconds` are those of the whole load, so that rates add up.
    pub totals: LoadTotals,
}

impl RequestOfLoad {
    /// Adds a row to its request, which is appended if it is new. Does not change `seconds` of the totals.
    pub fn add_to(requests: &mut Vec<RequestOfLoad>, row: &LoadSecond, phase: Phase) {
        let is_same = |known: &RequestOfLoad| known.scenario == row.scenario && known.request == row.request;
        let at = requests.iter().position(is_same).unwrap_or_else(|| {
            let (scenario, request) = (row.scenario.clone(), row.request.clone());
            requests.push(RequestOfLoad { scenario, request, totals: LoadTotals::default() });
            requests.len() - 1
        });
        requests[at].totals.add(row, phase);
    }
}

/// How much of something was used over the counted windows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Arithmetic mean of the points.
    pub mean: f64,
    /// Median of the points.
    pub p50: f64,
    /// Largest point.
    pub max: f64,
    /// How many points.
    pub points: usize,
}

impl Usage {
    /// Over these values; all zero when there are none.
    pub fn from_values(mut values: Vec<f64>) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        values.sort_by(f64::total_cmp);
        let points = values.len();
        Self {
            mean: values.iter().sum::<f64>() / points as f64,
            p50: values[(points - 1) / 2],
            max: values[points - 1],
            points,
        }
    }
}

/// Spending of one physical partition of a store with provisioned throughput.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionThroughput {
    /// The service that reported it.
    pub service: String,
    /// The partition.
    pub partition: String,
    /// Units that it may spend each second; `None` if the store does not report it.
    pub provisioned: Option<f64>,
    /// Units that it spent each second, in order of time, all windows.
    pub consumed: Vec<Point>,
}

impl TrialEvidence {
    /// The physical partitions of the stores of this trial that report their throughput, in order of their series.
    pub fn throughput(&self) -> Vec<PartitionThroughput> {
        let of_name = |name: &'static str| self.series.iter().filter(move |series| series.key.name == name);
        of_name(names::THROUGHPUT_CONSUMED)
            .map(|consumed| {
                let is_same = |other: &&Series| {
                    (&other.key.service, other.key.replica, &other.key.labels)
                        == (&consumed.key.service, consumed.key.replica, &consumed.key.labels)
                };
                let provisioned = of_name(names::THROUGHPUT_PROVISIONED).find(is_same);
                PartitionThroughput {
                    service: consumed.key.service.clone(),
                    partition: consumed.key.labels.get(names::PARTITION).cloned().unwrap_or_default(),
                    provisioned: provisioned.and_then(|series| series.points.last()).map(|point| point.value),
                    consumed: consumed.rates(),
                }
            })
            .collect()
    }

    /// The windows that count: all but warm-up.
    pub fn counted_windows(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|window| window.is_counted())
    }

    /// Whether an instant lies in a counted window.
    pub fn is_counted(&self, time_ns: i64) -> bool {
        self.counted_windows().any(|window| (window.start_ns..window.end_ns).contains(&time_ns))
    }

    /// The counted rows of the load, in order; [`counting`] decides which count.
    pub fn counted_rows(&self) -> impl Iterator<Item = (&LoadSecond, Phase)> {
        self.seconds.iter().filter_map(|row| Some((row, counting::counts(&self.windows, row)?)))
    }

    /// The load of all counted windows together.
    pub fn counted_load(&self) -> LoadTotals {
        counting::totals(self.counted_rows(), |_| true)
    }

    /// The report of the program that sent the load; `None` if Narrows sent the load, or the program reports nothing.
    pub fn reported_load(&self) -> Option<&ReportedLoad> {
        self.trial.load_program.as_ref()?.reported.as_ref()
    }

    /// The whole load: as its program reports it, else as Narrows counted it.
    pub fn load_figures(&self) -> LoadFigures {
        match self.reported_load() {
            Some(load) => load.into(),
            None => (&self.counted_load()).into(),
        }
    }

    /// The load of one window.
    pub fn window_load(&self, window: &Window) -> LoadTotals {
        let rows = self.seconds.iter().filter_map(|row| Some((row, window.holds(row)?)));
        counting::totals(rows, |_| true)
    }

    /// The load from the first instant up to the second.
    pub fn load_between(&self, start_ns: i64, end_ns: i64) -> LoadTotals {
        let rows = self.seconds.iter().filter(|row| (start_ns..end_ns).contains(&row.middle_ns()));
        counting::totals(rows.map(|row| (row, Phase::Sending)), |_| true)
    }

    /// The load of all counted windows by scenario and request, in the order they first appear.
    pub fn requests_of_load(&self) -> Vec<RequestOfLoad> {
        let seconds = self.counted_load().seconds;
        let mut requests: Vec<RequestOfLoad> = Vec::new();
        for (row, phase) in self.counted_rows() {
            RequestOfLoad::add_to(&mut requests, row, phase);
        }
        requests.iter_mut().for_each(|request| request.totals.seconds = seconds);
        requests
    }

    /// The points of a series in counted windows, summed over a service's replicas at each instant.
    pub fn counted_usage(&self, name: &str, service: &str) -> Usage {
        let mut at: BTreeMap<i64, f64> = BTreeMap::new();
        for series in self.series.iter().filter(|s| s.key.name == name && s.key.service == service) {
            for point in series.points.iter().filter(|point| self.is_counted(point.time_ns)) {
                *at.entry(point.time_ns).or_default() += point.value;
            }
        }
        Usage::from_values(at.into_values().collect())
    }

    /// The replica that is called at a port: not a sidecar where it stands in for one. `None` if no replica of the trial
    /// listens there.
    pub fn reached_at(&self, port: Option<u16>) -> Option<&ServiceInstance> {
        let port = port?;
        let mut found = self.services.iter().filter(|instance| instance.is_reached_at(port));
        let first = found.clone().next();
        found.find(|instance| sidecar_of(&instance.service).is_none()).or(first)
    }

    /// The names of the services, each once, in the order they were started.
    pub fn service_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for instance in &self.services {
            if !names.contains(&instance.service.as_str()) {
                names.push(&instance.service);
            }
        }
        names
    }
}
