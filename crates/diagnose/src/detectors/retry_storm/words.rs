//! Texts of `retry-storm` findings.

use narrows_model::finding::evidence::retry_storm::RetryStorm;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for RetryStorm {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "{} calls {} {} per request while it fails, and {} otherwise",
            finding.resource,
            self.callee,
            units::times(self.amplification()),
            units::times(self.calm.per_call)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        format!("of the attempts at {} in that time", self.callee)
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of {} makes {} attempts for each of these calls, {} in the calm part of the trial ({} and {} calls in \
             the traces).",
            operation(finding),
            finding.resource,
            units::number(self.storm.per_call),
            units::number(self.calm.per_call),
            units::count(self.storm.calls as u64),
            units::count(self.calm.calls as u64)
        )];
        reasons.extend(layers(self));
        reasons
            .extend(self.failed_share.map(|share| {
                format!("Over all spans, {} of the attempts failed in that time.", units::percent(share))
            }));
        reasons.extend(lengths(self));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("attempts per call, while it fails", self.storm.per_call, ""),
            Figure::new("attempts per call, otherwise", self.calm.per_call, ""),
            Figure::new("attempts per call, all layers", self.amplification(), ""),
            Figure::new("calls in these traces", self.storm.calls as f64, ""),
            Figure::new("failed attempt, median", self.failed_ns, "ns"),
        ];
        figures.extend(self.failed_share.map(|share| Figure::new("attempts that failed", share * 100.0, "%")));
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.text.clone()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![
            "Hedged calls: each attempt began after the one before it had failed.".into(),
            "Polling: attempts that succeeded, or failed because of the caller, do not count.".into(),
            "Throttling with back-off: attempts that were rejected and then waited do not count.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "With retries switched off in {}, {} receives as many requests in that time as before.",
            finding.resource, self.callee
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        if self.is_of_conflicts() {
            return format!(
                "Transactions conflict: lock rows in one order everywhere, keep the transactions behind {} of {} \
                 short, with nothing slow between their statements, and lock less (a finer key, a lower isolation \
                 level, an update that adds instead of writing back a value that was read). Wait a random time before \
                 a transaction is retried.",
                operation(finding),
                finding.resource
            );
        }
        let one_layer = match &self.layers[..] {
            [] => "",
            _ => "Retry in one layer only, the one closest to the failing service. ",
        };
        format!(
            "{one_layer}In {}, give retries of calls to {callee} a budget (such as one retry per ten calls), wait \
             between them with exponential back-off and jitter, and stop calling for a while when most attempts fail \
             (a circuit breaker). Do not retry once the caller above has timed out. Then find out why {callee} fails: \
             retries only make it worse.",
            finding.resource,
            callee = self.callee
        )
    }
}

fn layers(evidence: &RetryStorm) -> Option<String> {
    let each =
        evidence.layers.iter().map(|layer| format!("{} {}", layer.service, units::times(layer.attempts_per_call)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "Services below it retry as well ({}): the last of them is called {} for one call.",
            each.join(", "),
            units::times(evidence.amplification())
        )
    })
}

fn lengths(evidence: &RetryStorm) -> Option<String> {
    let succeeded_ns = evidence.succeeded_ns.filter(|_| evidence.failed_ns > 0.0)?;
    Some(format!(
        "A failed attempt occupies {} and its caller for {} (median), one in the calm part for {}.",
        evidence.callee,
        units::duration(evidence.failed_ns),
        units::duration(succeeded_ns)
    ))
}
