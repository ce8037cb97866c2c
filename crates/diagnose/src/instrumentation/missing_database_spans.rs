//! `missing-database-spans`: requests that seem to wait for a database that no span shows.
//!
//! An instrumentation that does not support the installed version of its library switches itself off with one line in a
//! log (one for SQLAlchemy 2.0 does that under 2.1). What is left is a gap: time of a request in which nothing is under
//! way. A gap alone proves nothing, so three things must come together: most of the median request is gap, the
//! service's processor time does not explain it, and something else says that there is a database: the service reports
//! metrics of a database client, or its other operations have database spans. The confidence is low all the same, and
//! the text says so: a sleep, a lock or a call by an uninstrumented client look alike.

use narrows_model::caveat::{TrialCaveat, UnseenDatabaseCalls};
use narrows_model::trace::Trace;
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text};
use crate::detectors::instrumentation_gap::{CLIENT_METRICS, is_gap_of, speaks};
use crate::read::calls::Handled;
use crate::read::requests::Request;
use crate::read::unexplained_time::{cpu_ns_per_request, unexplained_ns};
use crate::stats::weighted_median;

/// See the module.
pub(super) struct MissingDatabaseSpans;

impl Trap for MissingDatabaseSpans {
    fn id(&self) -> &'static str {
        "missing-database-spans"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut services: Vec<&str> = scene.reading.operations.keys().map(|(service, _)| *service).collect();
        services.dedup();
        services.retain(|service| !scene.findings.iter().any(|finding| is_gap_of(finding, service)));
        services.into_iter().filter_map(|service| describe(scene, service)).collect()
    }
}

/// The worst operation of a service, if any waits without a span.
fn describe(scene: &Scene<'_>, service: &str) -> Option<TrialCaveat> {
    let operations = || scene.reading.operations.iter().filter(|((of, _), _)| *of == service);
    let speaking = operations().find(|(_, requests)| speaks(requests)).map(|((_, name), _)| name.as_str());
    let metric = scene.trial.series.iter().find(|s| s.key.service == service && s.key.name.starts_with(CLIENT_METRICS));
    if speaking.is_none() && metric.is_none() {
        return None;
    }
    let cpu_ns = cpu_ns_per_request(scene.reading, service, (service, None));
    let is_explained = |gap_ns: f64| match cpu_ns {
        Some(cpu_ns) => cpu_ns > scene.thresholds.gap_cpu_share * gap_ns,
        None => speaking.is_some(),
    };
    let silent = operations().filter(|(_, requests)| !speaks(requests));
    let gaps = silent.filter_map(|((_, name), requests)| Some((name, Gap::new(scene, requests)?)));
    let worst = gaps.filter(|(_, gap)| !is_explained(gap.gap_ns)).max_by(|a, b| a.1.gap_ns.total_cmp(&b.1.gap_ns))?;
    let (operation, Gap { requests, gap_ns, latency_ns, example: (trace, request) }) = worst;
    Some(TrialCaveat::UnseenDatabaseCalls(UnseenDatabaseCalls {
        service: service.to_owned(),
        operation: operation.clone(),
        other_operation: speaking.map(str::to_owned),
        metric: metric.map(|series| series.key.name.clone()),
        requests,
        latency_ns,
        gap_ns,
        cpu_ns,
        example: example(trace, &[request.entry]),
    }))
}

/// The unexplained time of an operation's requests, medians.
struct Gap<'a> {
    requests: usize,
    gap_ns: f64,
    latency_ns: f64,
    example: (&'a Trace, &'a Request<'a>),
}

impl<'a> Gap<'a> {
    /// `None` if it is too short or there are too few requests.
    fn new(scene: &Scene<'_>, requests: &'a [Handled<'a>]) -> Option<Self> {
        let median = |value: &dyn Fn(&Request<'_>) -> f64| {
            weighted_median(requests.iter().map(|handled| (value(handled.request), handled.weight())).collect())
        };
        let gap_ns = median(&|request| unexplained_ns(request));
        let latency_ns = median(&|request| request.entry.duration_ns() as f64);
        let thresholds = scene.thresholds;
        let is_long = gap_ns >= thresholds.gap_ns && gap_ns >= thresholds.gap_share * latency_ns;
        let first = requests.first().filter(|_| is_long && requests.len() >= thresholds.gap_requests)?.request;
        Some(Self { requests: requests.len(), gap_ns, latency_ns, example: (first.trace, first) })
    }
}

/// Text of the caveat.
pub(crate) fn text(calls: &UnseenDatabaseCalls) -> String {
    let sign = match (&calls.other_operation, &calls.metric) {
        (Some(other), _) => format!("its operation {other} has database spans"),
        (None, metric) => format!("it reports {}", metric.as_deref().unwrap_or_default()),
    };
    let cpu = match calls.cpu_ns {
        Some(ns) => format!("of which processor time explains {} at most", units::duration(ns)),
        None => "and its processor time is not known".to_owned(),
    };
    format!(
        "{} of {} may query a database that its spans do not show (low confidence): of {} (median of {} requests) {} is \
         under no span, {cpu}, and {sign}. Look in the service's log for an instrumentation that did not start, most often \
         because the database library is newer than it supports; a sleep, a lock or a call by an uninstrumented client \
         would look the same. {}",
        calls.operation,
        calls.service,
        units::duration(calls.latency_ns),
        units::count(calls.requests as u64),
        units::duration(calls.gap_ns),
        example_text(&calls.example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::operations::operation;
    use narrows_testkit::spans::{SpanBuilder, client, query, server};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::scene::tests::{assert_one, caveats_of, traces};
    use super::*;

    fn trial(root: &SpanBuilder, cores: f64) -> TrialBuilder {
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 10.0, latency_ms: 40.0 });
        let trial = trial.operation(operation("shop", "GET /orders", 10, 10.0, 40.0));
        trial.service("shop", None).cpu("shop", 0, move |_| cores).traces(traces(root))
    }

    fn orders() -> SpanBuilder {
        server("shop", "GET /orders").at(0.0, 40.0)
    }

    fn with_pool(trial: TrialBuilder) -> TrialBuilder {
        trial.series("db.client.connection.count", "shop", 0, |_| 3.0)
    }

    #[test]
    fn a_wait_beside_metrics_of_a_database_client_is_reported() {
        let said = caveats_of(&MissingDatabaseSpans, with_pool(trial(&orders(), 0.02)));
        let words = [
            "GET /orders of shop may query a database",
            "low confidence",
            "of 40.0 ms (median of 30 requests) 40.0 ms",
        ];
        assert_one(&said, &words);
        assert_one(&said, &["processor time explains 2.00 ms at most", "it reports db.client.connection.count"]);
    }

    #[test]
    fn a_wait_beside_operations_that_show_their_database_is_reported() {
        let other = server("shop", "GET /carts").at(0.0, 9.0).child(query("SELECT a FROM t"));
        let both = trial(&orders(), 0.02).traces((201..230).map(|number| other.clone().trace(number)));
        assert_one(
            &caveats_of(&MissingDatabaseSpans, both),
            &["GET /orders of shop", "its operation GET /carts has database spans"],
        );
    }

    #[test]
    fn without_a_sign_of_a_database_nothing_is_said() {
        assert_eq!(caveats_of(&MissingDatabaseSpans, trial(&orders(), 0.02)), [""; 0]);
    }

    #[test]
    fn work_calls_and_queries_explain_the_time() {
        let busy = with_pool(trial(&orders(), 0.35));
        assert_eq!(caveats_of(&MissingDatabaseSpans, busy), [""; 0], "35 ms of processor time in 40 ms");
        let calling = with_pool(trial(&orders().child(client("GET").at(2.0, 36.0)), 0.02));
        assert_eq!(caveats_of(&MissingDatabaseSpans, calling), [""; 0]);
        let asking = with_pool(trial(&orders().child(query("SELECT a FROM t").at(2.0, 3.0)), 0.02));
        assert_eq!(caveats_of(&MissingDatabaseSpans, asking), [""; 0]);
        let quick = with_pool(trial(&server("shop", "GET /orders").at(0.0, 2.0), 0.001));
        assert_eq!(caveats_of(&MissingDatabaseSpans, quick), [""; 0]);
    }
}
