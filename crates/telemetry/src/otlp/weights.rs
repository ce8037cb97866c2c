//! How many traces a sampled one stands for.
//!
//! The generator decides which requests are traced and marks their trace ids with the trial's tag, so the rate it
//! sampled with is known here. Other traces say it themselves in `tracestate` (OpenTelemetry's consistent probability
//! sampling) or are taken as complete.

use std::sync::{Arc, PoisonError, RwLock};

use narrows_model::load::Tracing;
use narrows_model::trace::TraceId;

/// OpenTelemetry's thresholds are 56 bits wide.
const THRESHOLD_DIGITS: usize = 14;
const THRESHOLD_END: u64 = 1 << (4 * THRESHOLD_DIGITS);

/// The rule by which spans are weighed, shared by whoever starts trials and the receiver.
#[derive(Debug, Clone, Default)]
pub struct Weights(Arc<RwLock<Option<Tracing>>>);

impl Weights {
    /// Without a tag: only `tracestate` counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on traces whose id begins with `tracing.tag` weigh 1 ÷ `tracing.sample`. With none, no tag is known.
    pub fn set(&self, tracing: Option<Tracing>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tracing;
    }

    /// Weight of a trace by the rule as it is now: 1 or more, and finite.
    pub(crate) fn weigh(&self, trace_id: &TraceId, trace_state: &str) -> f64 {
        self.rule().weigh(trace_id, trace_state)
    }

    /// The rule as it is now.
    pub(super) fn rule(&self) -> Rule {
        Rule(*self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rule(Option<Tracing>);

impl Rule {
    /// 1 or more, and finite.
    pub(super) fn weigh(self, trace_id: &TraceId, trace_state: &str) -> f64 {
        let tagged = self.0.filter(|tracing| trace_id.starts_with(&tracing.tag));
        let sampled_with = match tagged {
            Some(tracing) => Some(tracing.sample),
            None => probability(trace_state),
        };
        let weight = sampled_with.map_or(1.0, |share| 1.0 / share);
        if weight.is_finite() { weight.max(1.0) } else { 1.0 }
    }
}

/// The probability that `tracestate` says its trace was sampled with: `ot=th:T` means (2^56 − T) ÷ 2^56, where T is
/// written without trailing zeros. OpenTelemetry specification, "TraceState: Probability Sampling".
fn probability(trace_state: &str) -> Option<f64> {
    let ours = trace_state.split(',').find_map(|member| member.trim().strip_prefix("ot="))?;
    let digits = ours.split(';').find_map(|field| field.strip_prefix("th:"))?;
    let is_valid = (1..=THRESHOLD_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let leading = is_valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    let threshold = leading << (4 * (THRESHOLD_DIGITS - digits.len()));
    Some((THRESHOLD_END - threshold) as f64 / THRESHOLD_END as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tag_goes_before_tracestate_and_both_before_one() {
        let weights = Weights::new();
        let mut tagged = [7; 16];
        tagged[..4].copy_from_slice(b"narr");
        assert_eq!(weights.rule().weigh(&tagged, "ot=th:8"), 2.0);
        weights.set(Some(Tracing { sample: 0.05, tag: *b"narr" }));
        assert_eq!(weights.rule().weigh(&tagged, "ot=th:8"), 20.0);
        assert_eq!(weights.rule().weigh(&[7; 16], "ot=th:8"), 2.0);
        assert_eq!(weights.rule().weigh(&[7; 16], ""), 1.0);
        weights.set(Some(Tracing { sample: 0.0, tag: *b"narr" }));
        assert_eq!(weights.rule().weigh(&tagged, ""), 1.0);
    }

    #[test]
    fn thresholds_read_as_the_specification_says() {
        let cases = [
            ("ot=th:0", Some(1.0)),
            ("ot=th:8", Some(0.5)),
            ("ot=th:c", Some(0.25)),
            ("ot=th:fd70a3d70a3d71", Some(0.01)),
            ("vendor=1, ot=rv:0123456789abcd;th:c", Some(0.25)),
            ("ot=th:", None),
            ("ot=th:123456789abcdef", None),
            ("ot=th:+8", None),
            ("ot=th:é", None),
            ("xot=th:8", None),
            ("", None),
        ];
        for (trace_state, expected) in cases {
            match (probability(trace_state), expected) {
                (Some(got), Some(expected)) => assert!((got - expected).abs() < 1e-9, "{trace_state}: {got}"),
                (got, expected) => assert_eq!(got, expected, "{trace_state}"),
            }
        }
    }

    proptest! {
        #[test]
        fn a_weight_is_finite_and_at_least_one(trace_state in "ot=th:[0-9a-fx]{0,16}", sample in prop::num::f64::ANY) {
            for tracing in [None, Some(Tracing { sample, tag: [0; 4] })] {
                let weight = Rule(tracing).weigh(&[0; 16], &trace_state);
                prop_assert!(weight >= 1.0 && weight.is_finite());
            }
        }
    }
}
