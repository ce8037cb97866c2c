//! Simulated traces and series of a system in a window of time, with a fault in one service.

use narrows_model::evidence::RunEvidence;
use narrows_model::series::names;
use narrows_model::trace::Trace;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::random::Random;
use narrows_testkit::spans::{SpanBuilder, client, internal, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::systems::{NAMES, System};

/// Fault of a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Each request takes so many milliseconds more.
    Delay(f64),
    /// Its own time is that many times as long.
    Burn(f64),
    /// One request in three waits for the rest of a period of 100 ms.
    Quota,
    /// This share of its requests fails at once.
    Exceptions(f64),
    /// As every other service, it fails one request in two hundred.
    Sporadic,
    /// It returns after so many of its calls.
    EarlyReturn(usize),
    /// It makes each of its calls four times.
    RepeatedCalls,
    /// It calls another service in place of its last callee.
    OtherCallee,
    /// Its internal span is gone.
    SpanVanishes,
    /// It has one internal span more.
    SpanAppears,
    /// Each of its calls begins so many milliseconds late, and its response waits as long.
    Starved(f64),
    /// It takes that many times the CPU, and 10 % more time.
    Cpu(f64),
    /// It takes that many times the memory.
    Memory(f64),
}

/// Healthy changes of all latencies in the course of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Weather {
    Calm,
    /// Everything takes three times as long for 15 seconds.
    Burst,
    /// Latencies wander, those of each service and those of all together, with a correlation time of 20 seconds.
    Drift,
}

/// Where requests enter: of three kinds of requests, the shares. Each kind makes some of the first service's calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paths {
    pub(crate) shares: [f64; 3],
    /// Whether each kind has a name of its own.
    pub(crate) are_named: bool,
}

/// Duration of a burst, seconds.
const BURST_S: f64 = 15.0;
/// Correlation time of the drift, seconds.
const DRIFT_S: f64 = 20.0;

/// A system in a window of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'s> {
    pub(crate) system: &'s System,
    /// The service with the fault.
    pub(crate) service: usize,
    pub(crate) fault: Fault,
    pub(crate) requests: u32,
    pub(crate) seconds: f64,
    /// Share of the calls to the service with the fault that are made.
    pub(crate) reach: f64,
    pub(crate) weather: Weather,
    pub(crate) paths: Option<Paths>,
    pub(crate) has_internal_spans: bool,
    /// Whether CPU and memory were sampled.
    pub(crate) is_sampled: bool,
}

impl<'s> Window<'s> {
    /// Eighty requests in four seconds.
    pub(crate) fn of(system: &'s System) -> Self {
        Self {
            system,
            service: 0,
            fault: Fault::None,
            requests: 80,
            seconds: 4.0,
            reach: 1.0,
            weather: Weather::Calm,
            paths: None,
            has_internal_spans: false,
            is_sampled: false,
        }
    }

    /// The same with this fault.
    pub(crate) fn with(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// Recorded traces and series.
    pub(crate) fn run(self, seed: u64) -> RunEvidence {
        let mut course = Course::new(self, Random::new(seed));
        let rate = f64::from(self.requests) / self.seconds;
        let traces: Vec<Trace> = (0..self.requests)
            .map(|number| {
                let at_s = f64::from(number) / rate;
                course.go_on_to(at_s);
                let start_ns = TRIAL_START_NS + (at_s * 1e9) as i64;
                course.request().trace_from(number, start_ns)
            })
            .collect();
        let load = Load { vus: 4, rate, latency_ms: 60.0 };
        let mut trial = TrialBuilder::new("a").steady(self.seconds.ceil() as usize, load).traces(traces);
        for service in 0..NAMES.len() {
            if self.is_sampled {
                trial = course.sampled(trial, service, rate);
            }
        }
        run_of_trials([trial.build()])
    }
}

/// Eighty requests of a system with a fault.
pub(crate) fn side(system: &System, service: usize, fault: Fault, seed: u64) -> RunEvidence {
    Window { service, fault, ..Window::of(system) }.run(seed)
}

/// Course of a window.
struct Course<'s> {
    window: Window<'s>,
    random: Random,
    now_s: f64,
    burst_from_s: f64,
    /// Logarithms of how many times as long each service takes; the last counts for all.
    drift: [f64; NAMES.len() + 1],
}

/// One handled call.
struct Handled {
    span: SpanBuilder,
    length_ms: f64,
    has_failed: bool,
}

impl<'s> Course<'s> {
    fn new(window: Window<'s>, mut random: Random) -> Self {
        let burst_from_s =
            if window.weather == Weather::Burst { random.between(0.0, window.seconds - BURST_S) } else { 0.0 };
        let mut course = Self { window, random, now_s: 0.0, burst_from_s, drift: [0.0; NAMES.len() + 1] };
        if window.weather == Weather::Drift {
            course.drift = std::array::from_fn(|_| 0.15 * course.normal());
        }
        course
    }

    /// A number from the standard normal distribution.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0
    }

    fn go_on_to(&mut self, at_s: f64) {
        if self.window.weather == Weather::Drift {
            let kept = (-(at_s - self.now_s) / DRIFT_S).exp();
            for service in 0..self.drift.len() {
                self.drift[service] = kept * self.drift[service] + 0.15 * (1.0 - kept * kept).sqrt() * self.normal();
            }
        }
        self.now_s = at_s;
    }

    /// How many times as long a service takes now.
    fn pace(&self, service: usize) -> f64 {
        let is_burst = self.window.weather == Weather::Burst
            && (self.burst_from_s..self.burst_from_s + BURST_S).contains(&self.now_s);
        let times = if is_burst { 3.0 } else { 1.0 };
        times * (self.drift[service] + self.drift[NAMES.len()]).exp()
    }

    /// One request.
    fn request(&mut self) -> SpanBuilder {
        let all = self.window.system.calls[0];
        let Some(paths) = self.window.paths else { return self.handled(0, 0.0, all).span };
        let chosen = self.random.unit();
        let kind = usize::from(chosen >= paths.shares[0]) + usize::from(chosen >= paths.shares[0] + paths.shares[1]);
        let span = self.handled(0, 0.0, [&all[..1], &all[1..], all][kind]).span;
        let route = ["/first", "/others", "/all"][kind];
        if paths.are_named { span.facts(|facts| facts.http_route = Some(route.into())) } else { span }
    }

    /// The handling of a request by a service from an instant on.
    fn handled(&mut self, service: usize, start_ms: f64, callees: &[usize]) -> Handled {
        let Window { system, .. } = self.window;
        let fault = if service == self.window.service { self.window.fault } else { Fault::None };
        let pace = self.pace(service);
        let mut own_ms = self.random.around(2.0 + service as f64 / 3.0, 0.2) + self.random.exponential(0.7);
        own_ms *= pace;
        match fault {
            Fault::Delay(more_ms) => own_ms += more_ms,
            Fault::Burn(times) => own_ms *= times,
            Fault::Cpu(_) => own_ms *= 1.1,
            Fault::Quota if self.random.unit() < 0.33 => own_ms += self.random.between(10.0, 90.0),
            _ => {}
        }
        let mut has_failed = match fault {
            Fault::Exceptions(share) => self.random.unit() < share,
            _ if self.window.fault == Fault::Sporadic => self.random.unit() < 0.005,
            _ => false,
        };
        let mut callees = callees.to_vec();
        match fault {
            Fault::EarlyReturn(calls) => callees.truncate(calls),
            Fault::OtherCallee => {
                callees.pop();
                callees.push(system.leaf_beside(service));
            }
            Fault::RepeatedCalls => callees = callees.iter().flat_map(|callee| [*callee; 4]).collect(),
            _ => {}
        }
        let mut children = self.internal_spans(fault, start_ms, own_ms);
        let (mut now_ms, mut end_ms) = (start_ms + own_ms / 2.0, start_ms + own_ms / 2.0);
        for callee in callees {
            if has_failed {
                break;
            }
            if callee == self.window.service && self.random.unit() >= self.window.reach {
                continue;
            }
            let mut way_ms = self.random.between(0.1, 0.3) * pace;
            if let Fault::Starved(late_ms) = fault {
                way_ms += self.random.between(0.5, 1.5) * late_ms;
            }
            let below = self.handled(callee, now_ms + way_ms, system.calls[callee]);
            let length_ms = below.length_ms + 2.0 * way_ms;
            let call = client("GET").service(NAMES[service]).at(now_ms, length_ms).child(below.span);
            children.push(if below.has_failed { call.failed() } else { call });
            end_ms = end_ms.max(now_ms + length_ms);
            if !system.is_parallel[service] {
                now_ms = end_ms;
            }
            has_failed |= below.has_failed;
        }
        let length_ms = end_ms + own_ms / 2.0 - start_ms;
        let span = server(NAMES[service], &format!("GET /{}", NAMES[service])).at(start_ms, length_ms);
        let span = span.children(children);
        Handled { span: if has_failed { span.failed() } else { span }, length_ms, has_failed }
    }

    /// Internal spans of a service before its calls.
    fn internal_spans(&self, fault: Fault, start_ms: f64, own_ms: f64) -> Vec<SpanBuilder> {
        if !self.window.has_internal_spans {
            return Vec::new();
        }
        let load = (fault != Fault::SpanVanishes).then(|| internal("load").at(start_ms, 0.3 * own_ms));
        let check = (fault == Fault::SpanAppears).then(|| internal("check").at(start_ms + 0.3 * own_ms, 0.1 * own_ms));
        load.into_iter().chain(check).collect()
    }

    /// The CPU and the memory of a service.
    fn sampled(&mut self, trial: TrialBuilder, service: usize, rate: f64) -> TrialBuilder {
        let fault = if service == self.window.service { self.window.fault } else { Fault::None };
        let mut cores = self.random.around(rate * (0.001 + service as f64 / 3_000.0), 0.15);
        let mut bytes = self.random.around(1e8 + 2e7 * service as f64, 0.1);
        match fault {
            Fault::Cpu(times) => cores *= times,
            Fault::Memory(times) => bytes *= times,
            _ => {}
        }
        trial.cpu(NAMES[service], 0, move |_| cores).series(names::MEMORY_BYTES, NAMES[service], 0, move |_| bytes)
    }
}
