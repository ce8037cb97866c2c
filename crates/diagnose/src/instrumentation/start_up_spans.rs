//! `start-up-spans`: most spans of the trial were made before the load or beside it.
//!
//! A service that creates its tables when it starts, each statement a trace of its own, can send more spans than all
//! requests do. They are in the run file and in what queries over it count, though not among the traces that detectors
//! read. How many there are follows from the traces of counted windows, which stand for a known number of traces in the
//! file; warm-up is taken to make as many spans for a request as the rest.

use narrows_model::caveat::TrialCaveat;
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, root};

/// See the module.
pub(super) struct StartUpSpans;

impl Trap for StartUpSpans {
    fn id(&self) -> &'static str {
        "start-up-spans"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let all = scene.trial.spans_total as f64;
        let outside = spans_outside(scene).unwrap_or(0.0);
        let is_most =
            outside >= scene.thresholds.start_up_share * all && outside >= scene.thresholds.start_up_spans as f64;
        let caveat = TrialCaveat::StartUpSpans { outside: outside.round() as u64, spans: scene.trial.spans_total };
        if is_most { vec![caveat] } else { Vec::new() }
    }
}

/// Spans in the file that belong to no request of the load, as an estimate; `None` if there is nothing to estimate
/// from.
fn spans_outside(scene: &Scene<'_>) -> Option<f64> {
    let trial = scene.trial;
    let in_file = scene.forests.iter().filter_map(|forest| {
        let kept = forest.trace().weight / root(forest)?.weight;
        Some(kept * forest.spans().len() as f64)
    });
    let counted_spans = in_file.reduce(|a, b| a + b)?;
    let sent_in_all: u64 = trial.seconds.iter().map(|second| second.sent).sum();
    let sent_counted = trial.counted_load().sent;
    (sent_counted > 0).then(|| trial.spans_total as f64 - counted_spans * sent_in_all as f64 / sent_counted as f64)
}

/// Text of the caveat.
pub(crate) fn text(outside: u64, spans: u64) -> String {
    format!(
        "About {} of the trial's {} spans ({}) belong to no request of the load: they were made before it, while \
         services started, or after it. They use up part of the limit on spans, and queries over all spans count \
         them; give such queries a time range. To avoid them, switch the instrumentation on after start-up, or \
         create schema and test data in a step before the trial.",
        units::count(outside),
        units::count(spans),
        units::percent(outside as f64 / spans as f64)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{query, server};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::scene::tests::{assert_one, caveats_of_built, traces};
    use super::*;

    const LOAD: Load = Load { vus: 1, rate: 3.0, latency_ms: 5.0 };

    /// Thirty requests of two spans each, after twice as many in the warm-up, and so many spans in the file.
    fn caveats_with(spans_total: u64) -> Vec<String> {
        let root = server("shop", "GET /").child(query("SELECT a FROM t"));
        let trial = TrialBuilder::new("a").warmup(20, LOAD).steady(10, LOAD).traces(traces(&root));
        let mut trial = trial.build();
        trial.spans_total = spans_total;
        caveats_of_built(&StartUpSpans, &trial)
    }

    #[test]
    fn a_start_that_makes_most_of_the_spans_is_reported() {
        assert_one(&caveats_with(2000), &["About 1,820 of the trial's 2,000 spans (91 %)", "before the trial"]);
    }

    #[test]
    fn warm_up_and_a_small_start_are_in_order() {
        assert_eq!(caveats_with(180), [""; 0]);
        assert_eq!(caveats_with(700), [""; 0], "few, though most");
    }

    #[test]
    fn many_spans_that_are_not_most_are_in_order() {
        let mut trial = TrialBuilder::new("a").steady(10, LOAD).traces(traces(&server("shop", "GET /"))).build();
        for trace in &mut trial.traces {
            trace.weight = 100.0;
        }
        trial.spans_total = 4500;
        assert_eq!(caveats_of_built(&StartUpSpans, &trial), [""; 0]);
    }

    #[test]
    fn without_a_load_nothing_is_said() {
        let mut trial = TrialBuilder::new("a").traces(traces(&server("shop", "GET /"))).build();
        trial.spans_total = 90_000;
        assert_eq!(caveats_of_built(&StartUpSpans, &trial), [""; 0]);
    }
}
