//! `sampled-traces`: the traces are a part of the requests.
//!
//! Two cases. Either the rate is known, from the generator's `tracing: { sample: … }` or from `tracestate` (`ot=th:…`,
//! "TraceState: Probability Sampling" of the OpenTelemetry specification): then every count is scaled by it, and only
//! rarity suffers. Or there are clearly fewer requests among the spans than the load sent, with nothing that says so: a
//! service samples on its own, or spans are lost, and counts over spans are too small by a factor that nobody knows.

use std::collections::BTreeSet;

use narrows_model::caveat::{SampledTraces as Sample, TrialCaveat};
use narrows_model::operation::OperationEvidence;
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, root};
use crate::read::requests::operation_of;
use crate::stats::median;

/// See the module.
pub(super) struct SampledTraces;

impl Trap for SampledTraces {
    fn id(&self) -> &'static str {
        "sampled-traces"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        scaled(scene).into_iter().chain(unsaid(scene)).collect()
    }
}

/// Traces that say how many they stand for.
fn scaled(scene: &Scene<'_>) -> Option<TrialCaveat> {
    let weights: Vec<f64> = scene.forests.iter().filter_map(|forest| Some(root(forest)?.weight)).collect();
    let (least, most) = (weights.iter().copied().reduce(f64::min)?, weights.iter().copied().reduce(f64::max)?);
    let usual = median(weights).filter(|usual| *usual >= scene.thresholds.sampled_weight)?;
    let thinned = scene.trial.spans_thinned;
    // Traces that the file leaves out last keep the weight with which they came.
    let is_sampler = thinned == 0 || least >= scene.thresholds.sampled_weight;
    Some(TrialCaveat::SampledTraces(Sample { least, usual, most, thinned, is_sampler }))
}

/// Text of the caveat on traces that say how many they stand for.
pub(crate) fn text(sample: &Sample) -> String {
    let Sample { least, usual, most, thinned, is_sampler } = *sample;
    let stands_for = if most > least * 1.01 {
        format!(
            "between {} and {} requests, mostly {}",
            units::number(least),
            units::number(most),
            units::number(usual)
        )
    } else {
        format!("{} requests", units::number(usual))
    };
    let mut text = format!(
        "Traces are a sample: each stands for {stands_for} ({} of them are there). Counts are scaled up accordingly \
         and shares stay correct; rare requests may be in no trace.",
        units::percent(1.0 / usual)
    );
    if thinned > 0 {
        text.push_str(&format!(
            " The run file neared its limit of size, so {} spans were left out. To keep more, make trials shorter or put \
             fewer of them into one file.",
            units::count(thinned)
        ));
    }
    if is_sampler {
        text.push_str(
            " For rare cases trace all of them: `tracing: { sample: 1 }`, or the services' OTEL_TRACES_SAMPLER_ARG.",
        );
    }
    text
}

/// Fewer requests among the spans than were sent.
fn unsaid(scene: &Scene<'_>) -> Option<TrialCaveat> {
    let load = scene.trial.counted_load();
    let responses = load.succeeded + load.errors.status;
    let seen = seen_at_the_front(scene)?;
    let share = seen / responses as f64;
    let is_clear = scene.trial.spans_refused == 0
        && responses >= scene.thresholds.unsampled_requests
        && share < scene.thresholds.unsampled_share;
    is_clear.then_some(TrialCaveat::UnmarkedSample { seen: seen.round() as u64, responses })
}

/// Text of the caveat on spans that show only some of the requests.
pub(crate) fn unmarked_text(seen: u64, responses: u64) -> String {
    format!(
        "Spans show {} requests, but the load received {} responses ({}), and nothing marks them as a sample. \
         Counts of spans are too small by that factor, and the missing ones may be the slow part. Look for a \
         sampler in the services (OTEL_TRACES_SAMPLER should be parentbased_always_on, as the load decides what \
         is traced), for an exporter that drops spans, and for instances that are not instrumented.",
        units::count(seen),
        units::count(responses),
        units::percent(seen as f64 / responses as f64)
    )
}

/// How often the operations that begin traces were completed or failed, over all spans; `None` if they are not counted.
fn seen_at_the_front(scene: &Scene<'_>) -> Option<f64> {
    let roots = scene.forests.iter().filter_map(root);
    let front: BTreeSet<(&str, &str, String)> =
        roots.map(|root| (root.service.as_str(), root.name.as_str(), operation_of(root))).collect();
    let counted = |(service, name, operation): &(&str, &str, String)| {
        let is_it = |o: &&OperationEvidence| o.service == *service && (o.name == *name || o.name == *operation);
        scene.trial.operations.iter().find(is_it)
    };
    let operations: Vec<&OperationEvidence> = front.iter().map(counted).collect::<Option<_>>()?;
    let mut operations: Vec<_> = operations.iter().map(|o| (&o.service, &o.name, o.completed + o.failed)).collect();
    operations.dedup_by(|a, b| (a.0, a.1) == (b.0, b.1));
    operations.into_iter().map(|(_, _, seen)| seen).reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::operations::operation;
    use narrows_testkit::spans::server;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::scene::tests::{assert_one, caveats, caveats_of, traces};
    use super::*;

    fn weighing(weight: impl Fn(u32) -> f64) -> Vec<Trace> {
        (1..=30).map(|number| server("shop", "GET /").weighted_trace(number, weight(number))).collect()
    }

    /// A load of 1,000 responses of which spans show so many a second.
    fn shown(rate: f64) -> Vec<String> {
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 100.0, latency_ms: 5.0 });
        let trial = trial.operation(operation("shop", "GET /", 10, rate, 5.0));
        caveats_of(&SampledTraces, trial.traces(traces(&server("shop", "GET /"))))
    }

    #[test]
    fn a_known_rate_is_reported() {
        assert_one(
            &caveats(&SampledTraces, weighing(|_| 20.0)),
            &["each stands for 20 requests (5.0 % of them", "`tracing: { sample: 1 }`"],
        );
        let mixed = caveats(&SampledTraces, weighing(|number| if number < 10 { 2.0 } else { 10.0 }));
        assert_one(&mixed, &["between 2 and 10 requests, mostly 10"]);
    }

    #[test]
    fn what_the_file_left_out_is_not_the_samplers_doing() {
        let of_file = |least: f64| {
            let weighed = weighing(|number| least * if number < 4 { 1.0 } else { 4.0 });
            let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 100.0, latency_ms: 5.0 });
            caveats_of(&SampledTraces, trial.traces(weighed).spans_thinned(12_345))
        };
        let kept_all = of_file(1.0);
        assert_one(&kept_all, &["between 1 and 4 requests", "12,345 spans were left out", "make trials shorter"]);
        assert!(!kept_all[0].contains("tracing:"), "{}", kept_all[0]);
        assert_one(&of_file(20.0), &["mostly 80", "make trials shorter", "`tracing: { sample: 1 }`"]);
    }

    #[test]
    fn all_traces_are_no_sample_even_if_only_some_were_read() {
        assert_eq!(caveats(&SampledTraces, weighing(|_| 1.0)), [""; 0]);
        let mut some_read = weighing(|_| 1.0);
        some_read.iter_mut().for_each(|trace| trace.weight = 40.0);
        assert_eq!(caveats(&SampledTraces, some_read), [""; 0]);
    }

    #[test]
    fn requests_that_no_span_shows_are_reported() {
        assert_one(&shown(12.0), &["Spans show 120 requests, but the load received 1,000 responses (12 %)"]);
    }

    #[test]
    fn spans_that_were_refused_are_reported_elsewhere() {
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 100.0, latency_ms: 5.0 });
        let trial = trial.operation(operation("shop", "GET /", 10, 12.0, 5.0)).spans_refused(880);
        assert_eq!(caveats_of(&SampledTraces, trial.traces(traces(&server("shop", "GET /")))), [""; 0]);
    }

    #[test]
    fn most_requests_in_spans_are_in_order_and_uncounted_ones_say_nothing() {
        assert_eq!(shown(97.0), [""; 0]);
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 100.0, latency_ms: 5.0 });
        let trial = trial.operation(operation("stock", "GET /stock", 10, 3.0, 5.0));
        assert_eq!(caveats_of(&SampledTraces, trial.traces(traces(&server("shop", "GET /")))), [""; 0]);
    }
}
