//! From load steps to windows, seconds and traces that agree with one another.
//!
//! Little's law ties users, rate and latency together: of the three a step says what it wants, and the rest follows from
//! its traces. Where it says all, they are checked. What a user waits for is the root span and a little network.

use std::collections::BTreeMap;

use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorKind, LoadSecond};
use narrows_model::run::{Window, WindowKind};
use narrows_model::trace::{SpanKind, Trace};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::random::Random;

use super::case::{Case, Step};
use super::grow::{Grown, Soil, grow};
use super::tree::{Node, parse};

/// Between a user and the root span.
const NETWORK_MS: f64 = 0.3;
const SECOND_NS: i64 = 1_000_000_000;
const WARM_UP_SECONDS: u32 = 3;
const SECONDS: u32 = 20;
/// Maximum deviation of a step's latency from that of its traces, as a share.
const TOLERANCE: f64 = 0.15;
/// Number of rounds to find the length of `fill`.
const ROUNDS: usize = 6;

/// A step as it happened.
pub(crate) struct Phase {
    pub(crate) window: Window,
    /// Requests of the load that ended, per second of the window, successful or not.
    pub(crate) rates: Vec<f64>,
    /// By request.
    pub(crate) samples: Vec<Sample>,
}

/// The traces of one request of a step.
pub(crate) struct Sample {
    /// Of the step's requests.
    pub(crate) share: f64,
    pub(crate) name: String,
    pub(crate) traces: Vec<Trace>,
}

/// All steps and the seconds of the generator, a warm-up before the first.
///
/// # Errors
/// Fault of the case.
pub(crate) fn load_of(case: &Case, ports: &BTreeMap<String, u16>) -> Result<(Vec<Phase>, Vec<LoadSecond>), String> {
    let trees: Vec<Vec<Node>> = case.requests.iter().map(|request| parse(&request.traces)).collect::<Result<_, _>>()?;
    let mut random = Random::of_name(&case.case);
    let (mut phases, mut rows) = (Vec::new(), Vec::new());
    let mut start_ns = TRIAL_START_NS;
    let first = case.load.first().map(|step| Step {
        seconds: Some(WARM_UP_SECONDS),
        kind: Some("warmup".into()),
        label: Some("warm-up".into()),
        profile: Vec::new(),
        ..step.clone()
    });
    for (index, step) in first.iter().chain(&case.load).enumerate() {
        let told = |why: String| format!("step {index} (0 is the warm-up): {why}");
        let field = Field { case, step, trees: &trees, ports };
        let samples = field.samples(&mut random).map_err(told)?;
        let pace = field.pace(&samples).map_err(told)?;
        let window = field.window(index as u32, start_ns, pace)?;
        let phase = field.phase(window, pace, samples, &mut random);
        start_ns = phase.window.end_ns;
        field.seconds(&phase, pace, &mut rows)?;
        phases.push(phase);
    }
    Ok((phases, rows))
}

/// One load step, whose traces are generated.
struct Field<'a> {
    case: &'a Case,
    step: &'a Step,
    trees: &'a [Vec<Node>],
    ports: &'a BTreeMap<String, u16>,
}

/// A step's mean rate, and users at work.
#[derive(Clone, Copy)]
struct Pace {
    rate: f64,
    users: f64,
}

type Grove = Vec<(f64, Vec<Grown>)>;

impl Field<'_> {
    /// Traces of all requests whose mean is the step's latency, if it says one.
    fn samples(&self, random: &mut Random) -> Result<Grove, String> {
        let seed = random.bits();
        let (mut fill_ms, wanted) = (0.0, self.wanted_ms());
        for _ in 0..ROUNDS {
            let grove = self.grove(fill_ms, &mut Random::new(seed))?;
            let fills = mean_of(&grove, |grown| f64::from(grown.fills));
            let missing = wanted.map_or(0.0, |wanted| wanted - self.outside_ms() - mean_ms(&grove));
            if fills == 0.0 || missing.abs() < 0.01 {
                return Ok(grove);
            }
            fill_ms = (fill_ms + missing / fills).max(0.0);
        }
        self.grove(fill_ms, &mut Random::new(seed))
    }

    /// The step's latency, where it says one or what makes one.
    fn wanted_ms(&self) -> Option<f64> {
        let (users, rate) = (self.step.users, self.step.rate);
        self.step.latency.or_else(|| Some(users? / rate? * 1000.0 - self.case.think))
    }

    /// Time that a user waits beyond the root span, milliseconds.
    fn outside_ms(&self) -> f64 {
        NETWORK_MS + self.step.outside
    }

    fn grove(&self, fill_ms: f64, random: &mut Random) -> Result<Grove, String> {
        let (variables, jitter) = (&self.step.set, self.case.jitter);
        let soil = Soil { variables, ports: self.ports, jitter, fill_ms };
        let shares: f64 = self.case.requests.iter().map(|request| request.share).sum();
        let mut grove = Vec::new();
        for (request, tree) in self.case.requests.iter().zip(self.trees) {
            let share = request.share / shares;
            let count = ((f64::from(self.case.sample) * share).ceil() as u32).max(3);
            let traces: Result<Vec<Grown>, String> =
                (0..count).map(|number| grow(tree, &soil, random, number)).collect();
            grove.push((share, traces?));
        }
        Ok(grove)
    }

    fn pace(&self, grove: &Grove) -> Result<Pace, String> {
        let latency_ms = mean_ms(grove) + self.outside_ms();
        if let Some(wanted) = self.wanted_ms().filter(|wanted| (wanted - latency_ms).abs() > TOLERANCE * latency_ms) {
            let why = "Little's law does not hold";
            return Err(format!("{why}: its traces take {latency_ms:.1} ms on average, its load says {wanted:.1} ms"));
        }
        let cycle_s = (latency_ms + self.case.think) / 1000.0;
        match (self.step.users, self.step.rate.or(self.step.offered)) {
            (Some(users), rate) => Ok(Pace { rate: rate.unwrap_or(users / cycle_s), users }),
            (None, Some(rate)) => Ok(Pace { rate, users: rate * latency_ms / 1000.0 }),
            (None, None) => Err("needs `users` or `rate`".into()),
        }
    }

    /// The rate that an open model offers.
    fn offered(&self, pace: Pace) -> Option<f64> {
        self.step.offered.or(self.step.users.is_none().then_some(pace.rate))
    }

    fn window(&self, index: u32, start_ns: i64, pace: Pace) -> Result<Window, String> {
        let kind = match self.step.kind.as_deref() {
            None | Some("steady") => WindowKind::Steady,
            Some("ramp") => WindowKind::Ramp,
            Some("warmup") => WindowKind::Warmup,
            Some(other) => return Err(format!("`{other}` is no kind of window")),
        };
        let rate = self.offered(pace);
        let label = self.step.label.clone().unwrap_or(match rate {
            Some(rate) => narrows_model::units::rate(rate),
            None => format!("{} users", pace.users),
        });
        let end_ns = start_ns + i64::from(self.step.seconds.unwrap_or(SECONDS)) * SECOND_NS;
        let vus = if rate.is_some() { 0 } else { pace.users as u32 };
        Ok(Window { index, kind, label, start_ns, end_ns, drained_ns: None, vus, rate })
    }

    fn phase(&self, window: Window, pace: Pace, grove: Grove, random: &mut Random) -> Phase {
        let seconds = ((window.end_ns - window.start_ns) / SECOND_NS) as usize;
        let profile = &self.step.profile;
        let wobble = |random: &mut Random| random.around(1.0, 0.02);
        let rates: Vec<f64> = (0..seconds)
            .map(|s| pace.rate * if profile.is_empty() { wobble(random) } else { profile[s % profile.len()] })
            .collect();
        let mut samples = Vec::new();
        for (share, growns) in grove {
            let end_ns = window.end_ns.max(window.start_ns + 1);
            let weight = (rates.iter().sum::<f64>() * share / growns.len() as f64).max(1.0);
            let mut traces: Vec<Trace> = Vec::new();
            for grown in growns {
                let number = random.bits() as u32;
                let start = random.between(window.start_ns as f64, end_ns as f64 - 1.0);
                let trace = grown.root.trace_from(number, start as i64);
                traces.push(Trace { weight, ..trace });
            }
            let name = traces.first().and_then(Trace::root).map(|root| root.name.clone()).unwrap_or_default();
            samples.push(Sample { share, name, traces });
        }
        Phase { window, rates, samples }
    }

    /// The generator's counts, one row for each request of the load.
    fn seconds(&self, phase: &Phase, pace: Pace, rows: &mut Vec<LoadSecond>) -> Result<(), String> {
        let offered = self.offered(pace);
        let mut carried = vec![0.0; phase.samples.len()];
        for (s, rate) in phase.rates.iter().enumerate() {
            let start_ns = phase.window.start_ns + s as i64 * SECOND_NS;
            for (position, sample) in phase.samples.iter().enumerate() {
                carried[position] += rate * sample.share;
                let ended = carried[position].floor();
                carried[position] -= ended;
                let interval = if self.step.profile.is_empty() { 1.0 } else { (pace.rate / rate.max(0.01)).max(1.0) };
                let mut row = self.row(sample, ended as u64, interval, s);
                row.start_ns = start_ns;
                if phase.samples.len() == 1 {
                    row.request = String::new();
                }
                if position == 0 {
                    row.vus = pace.users.ceil() as u32;
                    row.due = offered.map_or(0, |offered| offered.round() as u64);
                    (row.late, row.dropped) = (self.step.late, self.step.dropped);
                    self.add_errors(&mut row)?;
                }
                rows.push(row);
            }
        }
        Ok(())
    }

    fn row(&self, sample: &Sample, ended: u64, interval: f64, second: usize) -> LoadSecond {
        let mut row = LoadSecond { scenario: "main".into(), request: sample.name.clone(), ..LoadSecond::default() };
        let (mut latency, traces) = (Histogram::new(), sample.traces.len());
        for k in 0..ended as usize {
            let Some(root) = sample.traces[(second * 7 + k) % traces].root() else { continue };
            match root.facts.http_status {
                Some(status) if status >= SpanKind::Client.failed_from() => row.errors.status += 1,
                _ => {
                    row.succeeded += 1;
                    latency.record((root.duration_ns() as f64 * interval + self.outside_ms() * 1e6) as u64);
                }
            }
        }
        row.sent = ended;
        row.bytes = ended * 400;
        row.lateness.record_n((self.case.generator.lateness_ms * 1e6) as u64, ended);
        (row.latency, row.service) = (latency.clone(), latency);
        row
    }

    fn add_errors(&self, row: &mut LoadSecond) -> Result<(), String> {
        for (name, count) in &self.step.errors {
            let kind = ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == name);
            let kind = kind.ok_or(format!("`{name}` is no kind of error"))?;
            *row.errors.of_mut(kind) += count.round() as u64;
            row.sent += count.round() as u64;
        }
        Ok(())
    }
}

fn mean_of(grove: &Grove, value: impl Fn(&Grown) -> f64) -> f64 {
    let mean = |growns: &[Grown]| growns.iter().map(&value).sum::<f64>() / growns.len() as f64;
    grove.iter().map(|(share, growns)| share * mean(growns)).sum()
}

fn mean_ms(grove: &Grove) -> f64 {
    mean_of(grove, |grown| grown.length_ms)
}
