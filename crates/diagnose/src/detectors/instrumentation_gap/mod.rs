//! `instrumentation-gap`: an operation whose time cannot be told apart, because what it waits for sends no spans.
//!
//! A finding on the experiment: no cause can be named before more is seen. Time under no span proves nothing by itself,
//! for a program may sleep and be in order. So something must say that there is a thing to see: a database or a busy
//! service is known to be there and no span shows it; or just this time grows with the load, as a wait in a queue does.
//! Time in a call is explained by the call, unless a service of this very trial answers it and no span of that service
//! is below: because it sends none, or because it begins traces of its own.
//!
//! Where another finding explains the operation's time, the ranking drops this one.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind, Period};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Handled, Times};
use crate::dark::{Dark, cpu_ns_per_request};
use crate::intervals::Interval;
use crate::periods::period_of;
use crate::reading::Reading;
use crate::requests::Request;
use crate::silence::{Callers, silent_services, unseen_databases};
use crate::stats::weighted_median;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// How the names of metrics begin that a database client reports, all generations being renamed to the newest.
pub(crate) const CLIENT_METRICS: &str = "db.client.";

/// See the module.
#[derive(Debug)]
pub struct InstrumentationGap;

impl Detector for InstrumentationGap {
    fn kind(&self) -> FindingKind {
        FindingKind::InstrumentationGap
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let scene = Scene::of(reading);
        let services = || reading.trial.service_names().into_iter();
        let mut gaps: Vec<Gap<'_>> = services().filter_map(|service| scene.within(service)).collect();
        gaps.extend(services().filter_map(|service| scene.behind(service)));
        gaps.into_iter().map(|gap| scene.finding(self, &gap)).collect()
    }
}

/// Why there is something to see.
enum Sign<'a> {
    /// The service reports this metric of a database client.
    Metric(&'a str),
    /// Another operation of the service has database spans.
    Other(&'a str),
    /// This database ran, and nobody shows a call to one.
    Database(&'a str),
    /// This service used so much processor time for each request, nanoseconds, and nobody shows a call to it.
    Busy { service: &'a str, cpu_ns: f64 },
    /// The service that is called sends no span.
    Silent,
    /// The service that is called begins traces of its own.
    Torn,
    /// The time grew from so many nanoseconds under the lightest load.
    Grown { from_ns: f64, light: &'a Interval, heavy: &'a Interval },
}

/// An operation's time that is not to be seen into, medians.
struct Gap<'a> {
    service: &'a str,
    operation: &'a str,
    /// The service that keeps silent; none when the time passes in the operation's own.
    callee: Option<&'a str>,
    sign: Sign<'a>,
    requests: usize,
    time_ns: f64,
    latency_ns: f64,
    cpu_ns: f64,
    examples: Vec<&'a Request<'a>>,
}

struct Scene<'r, 'a> {
    reading: &'r Reading<'a>,
    dark: Dark<'a>,
    callers: Callers<'a>,
    /// Services without spans, and databases that nobody shows.
    silent: Vec<&'a str>,
    unseen: Vec<&'a str>,
}

/// What of a request counts, nanoseconds.
type Part<'p> = &'p dyn Fn(&Request<'_>) -> f64;

impl<'r, 'a> Scene<'r, 'a> {
    fn of(reading: &'r Reading<'a>) -> Self {
        let (silent, unseen) = (silent_services(reading), unseen_databases(reading));
        Self { reading, dark: Dark::of(reading), callers: Callers::of(reading), silent, unseen }
    }

    fn operations(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a [Handled<'a>])> {
        self.reading.operations.iter().map(|((service, name), requests)| (*service, name.as_str(), &requests[..]))
    }

    /// The longest time of an operation of this service that passes in itself and is not to be seen.
    fn within(&self, service: &'a str) -> Option<Gap<'a>> {
        let operations = || self.operations().filter(|(of, _, _)| *of == service);
        let speaking = operations().find(|(_, _, requests)| speaks(requests)).map(|(_, name, _)| name);
        let metrics = self.reading.trial.series.iter().map(|series| &series.key);
        let mut metrics = metrics.filter(|key| key.service == service && key.name.starts_with(CLIENT_METRICS));
        let metric = metrics.next().map(|key| key.name.as_str());
        let database = || self.unseen.first().copied().map(Sign::Database);
        let sign = || speaking.map(Sign::Other).or(metric.map(Sign::Metric)).or_else(database);
        let part = |request: &Request<'_>| self.dark.time_ns(request);
        let gaps = operations().filter_map(|(_, operation, requests)| {
            let hidden = (!speaks(requests)).then(sign).flatten();
            let sign = hidden.or_else(|| self.grown(requests, &part)).or_else(|| self.busy((service, operation)))?;
            let cpu_ns = cpu_ns_per_request(self.reading, service, (service, None))?;
            self.gap((service, operation, requests), None, (sign, cpu_ns), &part)
        });
        gaps.max_by(|a, b| a.time_ns.total_cmp(&b.time_ns))
    }

    /// A service that nobody calls as far as spans show, and that works all the same while requests are answered.
    fn busy(&self, (service, operation): (&str, &str)) -> Option<Sign<'a>> {
        let uncalled = self.silent.iter().copied().filter(|silent| !self.callers.have_called(silent));
        let used = uncalled
            .filter_map(|silent| Some((silent, cpu_ns_per_request(self.reading, silent, (service, Some(operation)))?)));
        let (service, cpu_ns) = used.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (cpu_ns >= self.reading.thresholds.gap_busy_ns).then_some(Sign::Busy { service, cpu_ns })
    }

    /// The longest time that an operation spends in calls to a service of which no span tells what it did.
    fn behind(&self, callee: &'a str) -> Option<Gap<'a>> {
        let is_silent = self.silent.contains(&callee);
        if !is_silent && !self.callers.are_torn_from(callee, self.reading.thresholds.regular_trace_share) {
            return None;
        }
        let part = |request: &Request<'_>| {
            let calls = request.other_calls.iter().filter(|call| self.callers.goes_to(call, callee));
            Times::of(calls.map(|call| (call.start_ns, call.end_ns))).length_ns()
        };
        let gaps = self.operations().filter_map(|(service, operation, requests)| {
            let sign = if is_silent { Sign::Silent } else { Sign::Torn };
            let cpu_ns = cpu_ns_per_request(self.reading, callee, (service, Some(operation)))?;
            self.gap((service, operation, requests), Some(callee), (sign, cpu_ns), &part)
        });
        gaps.max_by(|a, b| a.time_ns.total_cmp(&b.time_ns))
    }

    /// None when the time is too short, is explained by the processor, or there are too few requests to tell. Where it
    /// grew, the requests under the heaviest load count.
    fn gap(
        &self,
        (service, operation, requests): (&'a str, &'a str, &'a [Handled<'a>]),
        callee: Option<&'a str>,
        (sign, cpu_ns): (Sign<'a>, f64),
        part: Part<'_>,
    ) -> Option<Gap<'a>> {
        let thresholds = self.reading.thresholds;
        let counted = match &sign {
            Sign::Grown { heavy, .. } => under(requests, heavy),
            _ => requests.iter().collect(),
        };
        let (time_ns, latency_ns) = (median(&counted, part), median(&counted, &whole));
        let is_long = time_ns >= thresholds.gap_ns && time_ns >= thresholds.gap_share * latency_ns;
        let is_work = cpu_ns > thresholds.gap_cpu_share * time_ns;
        let is_enough = requests.len() >= thresholds.gap_requests;
        (is_long && is_enough && !is_work).then(|| Gap {
            service,
            operation,
            callee,
            sign,
            requests: counted.len(),
            time_ns,
            latency_ns,
            cpu_ns,
            examples: counted.iter().take(EXEMPLARS_MAX).map(|handled| handled.request).collect(),
        })
    }

    /// Whether this part of the requests grows with the load, as what waits in a queue does.
    fn grown(&self, requests: &[Handled<'_>], part: Part<'_>) -> Option<Sign<'a>> {
        let thresholds = self.reading.thresholds;
        let steady = || self.reading.intervals.iter().filter(|interval| interval.is_steady);
        let heavy = steady().max_by(|a, b| a.by_demand(b))?;
        let light = steady().min_by(|a, b| a.by_demand(b)).filter(|light| light.by_demand(heavy).is_lt())?;
        let (few, many) = (under(requests, light), under(requests, heavy));
        if few.len().min(many.len()) < thresholds.gap_growth_requests {
            return None;
        }
        let (from_ns, to_ns) = (median(&few, part), median(&many, part));
        let has_grown = to_ns >= thresholds.queueing_latency_factor * from_ns && to_ns - from_ns >= thresholds.gap_ns;
        has_grown.then_some(Sign::Grown { from_ns, light, heavy })
    }

    fn finding(&self, detector: &InstrumentationGap, gap: &Gap<'_>) -> Finding {
        let share = (gap.time_ns / gap.latency_ns.max(1.0)).min(1.0);
        Finding {
            title: gap.title(share),
            resource: gap.callee.unwrap_or(gap.service).into(),
            operation: Some(gap.operation.into()),
            cost_share: share,
            cost_of: format!("of the latency of {}", gap.operation),
            confidence: Confidence::Medium,
            reasons: gap.reasons(),
            numbers: gap.numbers(),
            exemplars: gap.examples.iter().map(|request| exemplar(request.trace, [request.entry])).collect(),
            ruled_out: gap.ruled_out(),
            falsified_by:
                "With spans around its parts, the time is that of calls that are seen already, or a pause that \
                           the program makes on purpose."
                    .into(),
            advice: gap.advice(),
            period: gap.period(self.reading.trial),
            ..detector.finding()
        }
    }
}

/// Whether a finding says that this service's time, or the time in its calls, is not to be seen into.
pub(crate) fn is_gap_of(finding: &Finding, service: &str) -> bool {
    finding.kind() == FindingKind::InstrumentationGap && finding.resource == service
}

/// Whether such a finding names this service as what is there and not to be seen.
pub(crate) fn is_missed_by(finding: &Finding, service: &str) -> bool {
    let names = |reason: &String| reason.strip_prefix(service).is_some_and(|rest| rest.starts_with(" ran"));
    finding.kind() == FindingKind::InstrumentationGap
        && (finding.resource == service || finding.reasons.iter().any(names))
}

/// Whether any of these requests shows its database.
pub(crate) fn speaks(requests: &[Handled<'_>]) -> bool {
    requests.iter().any(|handled| !handled.request.queries.is_empty() || handled.request.housekeeping > 0)
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

impl Gap<'_> {
    fn title(&self, share: f64) -> String {
        let (operation, share) = (self.operation, units::percent(share));
        match self.callee {
            Some(callee) => match self.sign {
                Sign::Torn => format!(
                    "{operation} spends {share} of its time in {callee}, whose spans are in traces of their own"
                ),
                _ => format!("{operation} spends {share} of its time in {callee}, which sends no spans"),
            },
            None => {
                format!("{operation} of {} spends {share} of its time where no span shows what it does", self.service)
            }
        }
    }

    fn reasons(&self) -> Vec<String> {
        let whose = match self.callee {
            Some(callee) => format!("pass in calls to {callee} that no span answers"),
            None => "are under no call and no span of its parts".to_owned(),
        };
        let measured = format!(
            "Of {} (median of {} requests) {} {whose}.",
            units::duration(self.latency_ns),
            units::count(self.requests as u64),
            units::duration(self.time_ns)
        );
        let service = self.service;
        let sign = match &self.sign {
            Sign::Metric(name) => format!("{service} reports {name}, so it uses a database, and no span shows that."),
            Sign::Other(name) => format!("{name} of {service} has database spans, this operation has none."),
            Sign::Database(name) => format!("{name} ran, and no service sent a database span."),
            Sign::Busy { service, cpu_ns } => format!(
                "{service} ran and used {} of processor time for each of these requests, and no span shows a call to it.",
                units::duration(*cpu_ns)
            ),
            Sign::Silent => "This experiment started it, and no trace has a span of it.".into(),
            Sign::Torn => "It sends spans, but they start new traces instead of joining those of its callers.".into(),
            Sign::Grown { from_ns, light, heavy } => format!(
                "It grows with the load, as a wait in a queue does: {} with {}, {} with {}.",
                units::duration(*from_ns),
                light.demand(),
                units::duration(self.time_ns),
                heavy.demand()
            ),
        };
        vec![measured, sign]
    }

    fn numbers(&self) -> Vec<Figure> {
        vec![
            Figure::new("time without a span, median", self.time_ns, "ns"),
            Figure::new("latency, median", self.latency_ns, "ns"),
            Figure::new("processor time per request", self.cpu_ns, "ns"),
            Figure::new("requests looked at", self.requests as f64, ""),
        ]
    }

    fn ruled_out(&self) -> Vec<String> {
        let cpu = units::duration(self.cpu_ns);
        let work = match self.callee {
            Some(callee) => format!("Work of {callee}: its processor time is {cpu} for each of these requests."),
            None => format!("Work: processor time explains {cpu} of each request at most."),
        };
        vec![work, "Another finding: no other finding explains what this operation waits for.".into()]
    }

    fn advice(&self) -> String {
        match (&self.sign, self.callee) {
            (Sign::Torn, Some(callee)) => format!(
                "Forward the trace context (the header traceparent) to {callee}: check proxies in between, at clients \
                 that are not instrumented, and at the propagators that both sides are set to. Then run this again."
            ),
            (Sign::Busy { service, .. }, None) => format!(
                "Instrument what {} calls {service} with, or look at the start of its log for an instrumentation that did \
                 not start, mostly because the library is newer than it supports. Then run this again.",
                self.service
            ),
            (_, Some(callee)) => format!(
                "Instrument {callee}: it was started with OTEL_EXPORTER_OTLP_ENDPOINT, so its SDK need only be loaded, and \
                 must read the trace context (traceparent) of its callers. Then run this again."
            ),
            (Sign::Grown { .. }, None) => format!(
                "Put spans around what {} of {} may wait for: a connection of a pool, a lock, a queue, calls of clients \
                 without instrumentation. Then run this again.",
                self.operation, self.service
            ),
            _ => format!(
                "Look at the start of {}'s log for an instrumentation of its database client that did not start, mostly \
                 because the library is newer than it supports; pin the library or update the instrumentation, and run \
                 this again.",
                self.service
            ),
        }
    }

    fn period(&self, trial: &TrialEvidence) -> Option<Period> {
        match &self.sign {
            Sign::Grown { heavy, .. } => period_of(trial, heavy.start_ns, heavy.end_ns),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
