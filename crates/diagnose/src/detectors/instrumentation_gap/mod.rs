//! `instrumentation-gap`: an operation's time cannot be broken down, because something that it waits for sends no
//! spans.
//!
//! This finding is about the experiment: no cause can be named without more data. Time under no span proves nothing
//! alone, because a program may sleep on purpose. There must be a sign of something hidden: a database or a busy
//! service is known to exist and no span shows it, the service's sockets show that its requests wait for a peer, or exactly
//! this time grows with the load, as a wait in a queue does.
//! A call explains the time in it, unless a service of this trial handles the call without any span below it: because
//! the service sends no spans, or because it begins separate traces.
//!
//! If another finding explains the operation's time, the ranking drops this one.

use narrows_model::finding::evidence::instrumentation_gap::{self as evidence, GapSign};
use narrows_model::finding::{Confidence, Evidence, Finding, FindingKind, Role};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, Times};
use crate::read::intervals::{Interval, heaviest_steady};
use crate::read::machine::is_crowded_out;
use crate::read::periods::period_of;
use crate::read::requests::Request;
use crate::read::silent_services::{Callers, silent_services, unseen_databases};
use crate::read::unexplained_time::{cpu_ns_per_request, cpu_wait_ns_per_request, unexplained_ns};
use crate::read::unseen_calls::{UnseenCalls, unseen_calls};
use crate::stats::{finite, weighted_median};
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Requests of the operation under the lightest load, and under the heaviest.
    gap_growth_requests: usize = 10;
    /// CPU time per request from which a service counts that no span shows a call to, nanoseconds.
    gap_busy_ns: f64 = 1e6;
    /// Requests that wait for a peer without a span that shows it, as a share of those in the service and of those that its
    /// sockets show waiting for that peer.
    gap_unseen_share: f64 = 0.25;
}

/// Prefix of the metrics that a database client reports. All generations of names are renamed to the newest.
pub(crate) const CLIENT_METRICS: &str = "db.client.";

/// See the module.
#[derive(Debug)]
pub struct InstrumentationGap;

impl Detector for InstrumentationGap {
    fn kind(&self) -> FindingKind {
        FindingKind::InstrumentationGap
    }

    fn version(&self) -> u32 {
        2
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::LimitsReading
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let scene = Scene::new(reading);
        let services = || reading.trial.service_names().into_iter();
        let mut gaps: Vec<Gap<'_>> = services().filter_map(|service| scene.within(service)).collect();
        gaps.extend(services().filter_map(|service| scene.behind(service)));
        gaps.into_iter().map(|gap| scene.finding(self, gap)).collect()
    }
}

/// CPU work per request, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// Time on a processor.
    cpu_ns: f64,
    /// Time waiting for a processor.
    wait_ns: f64,
}

/// A sign that something is hidden.
struct Hint<'a> {
    sign: GapSign,
    /// The only interval whose requests count; `None` if all requests count.
    interval: Option<&'a Interval>,
}

impl From<GapSign> for Hint<'_> {
    fn from(sign: GapSign) -> Self {
        Self { sign, interval: None }
    }
}

/// Time of an operation that no span shows, as medians.
struct Gap<'a> {
    evidence: evidence::InstrumentationGap,
    operation: &'a str,
    /// The only interval whose requests count; `None` if all requests count.
    interval: Option<&'a Interval>,
    examples: Vec<&'a Request<'a>>,
}

struct Scene<'r, 'a> {
    reading: &'r Reading<'a>,
    callers: Callers<'a>,
    /// Services without spans (`silent`), and databases that no span shows (`unseen`).
    silent: Vec<&'a str>,
    unseen: Vec<&'a str>,
}

/// Function for the part of a request that counts, nanoseconds.
type Part<'p> = &'p dyn Fn(&Request<'_>) -> f64;

/// The requests of one operation.
struct OfOperation<'a> {
    service: &'a str,
    operation: &'a str,
    requests: &'a [Handled<'a>],
}

impl<'r, 'a> Scene<'r, 'a> {
    fn new(reading: &'r Reading<'a>) -> Self {
        let (silent, unseen) = (silent_services(reading), unseen_databases(reading));
        Self { reading, callers: Callers::new(reading), silent, unseen }
    }

    fn operations(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a [Handled<'a>])> {
        self.reading.operations.iter().map(|((service, name), requests)| (*service, name.as_str(), &requests[..]))
    }

    /// The service's longest gap: time within the service that no span shows.
    fn within(&self, service: &'a str) -> Option<Gap<'a>> {
        let operations = || self.operations().filter(|(of, _, _)| *of == service);
        let speaking = operations().find(|(_, _, requests)| speaks(requests)).map(|(_, name, _)| name);
        let metrics = self.reading.trial.series.iter().map(|series| &series.key);
        let mut metrics = metrics.filter(|key| key.service == service && key.name.starts_with(CLIENT_METRICS));
        let metric = metrics.next().map(|key| key.name.as_str());
        let sign = || {
            let name = |name: &str| name.to_owned();
            let other = speaking.map(|other| GapSign::OtherOperation { name: name(other) });
            let metric = || metric.map(|metric| GapSign::ClientMetric { name: name(metric) });
            let database = || self.unseen.first().map(|unseen| GapSign::Database { service: name(unseen) });
            other.or_else(metric).or_else(database).map(Hint::from)
        };
        let part = |request: &Request<'_>| unexplained_ns(request);
        let gaps = operations().filter_map(|(_, operation, requests)| {
            let hidden = (!speaks(requests)).then(sign).flatten();
            let hint = hidden.or_else(|| self.waiting(service)).or_else(|| self.grown(requests, &part));
            let hint = hint.or_else(|| self.busy(service, operation))?;
            let work = self.work(service, (service, None))?;
            self.gap(OfOperation { service, operation, requests }, None, hint, work, &part)
        });
        longest(gaps)
    }

    /// A peer that requests wait for, as the service's sockets show it.
    fn waiting(&self, service: &str) -> Option<Hint<'a>> {
        let UnseenCalls { peer, unseen, waiting } = unseen_calls(self.reading, service)?;
        let at = heaviest_steady(self.reading.intervals)?;
        let sign = GapSign::Sockets { peer, unseen: finite(unseen), waiting: finite(waiting) };
        Some(Hint { sign, interval: Some(&self.reading.intervals[at]) })
    }

    /// A busy service that no span calls: it works while requests complete.
    fn busy(&self, service: &str, operation: &str) -> Option<Hint<'a>> {
        let uncalled = self.silent.iter().copied().filter(|silent| !self.callers.have_called(silent));
        let used = uncalled
            .filter_map(|silent| Some((silent, cpu_ns_per_request(self.reading, silent, (service, Some(operation)))?)));
        let (service, cpu_ns) = used.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_busy = cpu_ns >= self.reading.thresholds.instrumentation_gap.gap_busy_ns;
        is_busy.then(|| GapSign::BusyService { service: service.to_owned(), cpu_ns: finite(cpu_ns) }.into())
    }

    /// The callee's longest gap: time in calls to a service whose work no span shows.
    fn behind(&self, callee: &'a str) -> Option<Gap<'a>> {
        let is_silent = self.silent.contains(&callee);
        if !is_silent && !self.callers.are_torn_from(callee, self.reading.thresholds.regular_trace_share) {
            return None;
        }
        let part = |request: &Request<'_>| {
            let calls = request.other_calls.iter().filter(|call| self.callers.goes_to(call, callee));
            Times::union_of(calls.map(|call| (call.start_ns, call.end_ns))).length_ns()
        };
        let gaps = self.operations().filter_map(|(service, operation, requests)| {
            let sign = if is_silent { GapSign::SilentCallee } else { GapSign::SeparateTraces };
            let work = self.work(callee, (service, Some(operation)))?;
            self.gap(OfOperation { service, operation, requests }, Some(callee), sign.into(), work, &part)
        });
        longest(gaps)
    }

    /// CPU work of a service per request of its caller; `None` if its CPU was not sampled.
    fn work(&self, service: &str, caller: (&str, Option<&str>)) -> Option<Work> {
        let cpu_ns = cpu_ns_per_request(self.reading, service, caller)?;
        Some(Work { cpu_ns, wait_ns: cpu_wait_ns_per_request(self.reading, service, caller) })
    }

    /// Returns `None` if the time is too short, the processor explains it, or there are too few requests. If the time
    /// grew with the load, only requests under the heaviest load count.
    fn gap(
        &self,
        of: OfOperation<'a>,
        callee: Option<&'a str>,
        hint: Hint<'a>,
        work: Work,
        part: Part<'_>,
    ) -> Option<Gap<'a>> {
        let OfOperation { service, operation, requests } = of;
        let thresholds = self.reading.thresholds;
        let counted = hint.interval.map_or_else(|| requests.iter().collect(), |interval| under(requests, interval));
        let (time_ns, latency_ns) = (median(&counted, part), median(&counted, &whole));
        let is_long = time_ns >= thresholds.gap_ns && time_ns >= thresholds.gap_share * latency_ns;
        let is_work = work.cpu_ns + work.wait_ns > thresholds.gap_cpu_share * time_ns;
        let is_enough = requests.len() >= thresholds.gap_requests;
        (is_long && is_enough && !is_work).then(|| Gap {
            evidence: evidence::InstrumentationGap {
                service: service.to_owned(),
                callee: callee.map(str::to_owned),
                sign: hint.sign,
                requests: counted.len(),
                time_ns: finite(time_ns),
                latency_ns: finite(latency_ns),
                cpu_ns: finite(work.cpu_ns),
            },
            operation,
            interval: hint.interval,
            examples: counted.iter().take(EXEMPLARS_MAX).map(|handled| handled.request).collect(),
        })
    }

    /// A sign if this part of the requests grows with the load, as a wait in a queue does.
    fn grown(&self, requests: &[Handled<'_>], part: Part<'_>) -> Option<Hint<'a>> {
        let thresholds = self.reading.thresholds;
        let steady = || self.reading.intervals.iter().enumerate().filter(|(_, interval)| interval.is_steady);
        let (at, heavy) = steady().max_by(|(_, a), (_, b)| a.by_demand(b))?;
        let (_, light) = steady().min_by(|(_, a), (_, b)| a.by_demand(b))?;
        // If other programs fill the machine, everything takes longer.
        if light.by_demand(heavy).is_ge() || is_crowded_out(self.reading, at) {
            return None;
        }
        let (few, many) = (under(requests, light), under(requests, heavy));
        if few.len().min(many.len()) < thresholds.instrumentation_gap.gap_growth_requests {
            return None;
        }
        let (from_ns, to_ns) = (median(&few, part), median(&many, part));
        let has_grown = to_ns >= thresholds.cpu_saturation.queueing_latency_factor * from_ns
            && to_ns - from_ns >= thresholds.gap_ns;
        let (light, interval) = (light.load_level(), Some(heavy));
        let sign = || GapSign::Grown { from_ns: finite(from_ns), light, heavy: heavy.load_level() };
        has_grown.then(|| Hint { sign: sign(), interval })
    }

    fn finding(&self, detector: &InstrumentationGap, gap: Gap<'_>) -> Finding {
        let evidence = gap.evidence;
        let period = gap.interval.and_then(|at| period_of(self.reading.trial, at.start_ns, at.end_ns));
        Finding {
            resource: evidence.callee.as_ref().unwrap_or(&evidence.service).clone(),
            operation: Some(gap.operation.into()),
            cost_share: (evidence.time_ns / evidence.latency_ns.max(1.0)).min(1.0),
            confidence: Confidence::Medium,
            exemplars: gap.examples.iter().map(|request| exemplar(request.trace, [request.entry])).collect(),
            period,
            ..Finding::new(evidence, detector.version())
        }
    }
}

fn longest<'a>(gaps: impl Iterator<Item = Gap<'a>>) -> Option<Gap<'a>> {
    gaps.max_by(|a, b| a.evidence.time_ns.total_cmp(&b.evidence.time_ns))
}

/// Whether a finding reports that this service's time, or the time in calls to it, cannot be broken down.
pub(crate) fn is_gap_of(finding: &Finding, service: &str) -> bool {
    finding.kind() == FindingKind::InstrumentationGap && finding.resource == service
}

/// Whether such a finding names this service as existing but hidden.
pub(crate) fn is_missed_by(finding: &Finding, service: &str) -> bool {
    let Evidence::InstrumentationGap(evidence) = &finding.evidence else { return false };
    finding.resource == service || evidence.names_unseen(service)
}

/// Whether any of these requests has spans of its database.
pub(crate) fn speaks(requests: &[Handled<'_>]) -> bool {
    requests.iter().any(|handled| !handled.request.queries.is_empty() || !handled.request.housekeeping.is_empty())
}

/// The requests that began in an interval.
fn under<'h, 'a>(requests: &'h [Handled<'a>], interval: &Interval) -> Vec<&'h Handled<'a>> {
    requests.iter().filter(|handled| interval.contains(handled.request.entry.start_ns)).collect()
}

fn median(requests: &[&Handled<'_>], part: Part<'_>) -> f64 {
    weighted_median(requests.iter().map(|handled| (part(handled.request), handled.weight())).collect())
}

fn whole(request: &Request<'_>) -> f64 {
    request.entry.duration_ns() as f64
}

#[cfg(test)]
mod tests;
