//! The part of a trial that a rule saw its cause in, named by the windows it lies in.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Period;

/// From one instant to another. The label names the counted windows that it touches, the first and the last of them;
/// `None` if there is nothing in between, or when it touches all of the trial's windows and so says nothing.
pub(crate) fn period_of(trial: &TrialEvidence, start_ns: i64, end_ns: i64) -> Option<Period> {
    let is_touched = |from_ns: i64, to_ns: i64| from_ns < end_ns && to_ns > start_ns;
    let counted: Vec<_> = trial.counted_windows().collect();
    let touched: Vec<_> = counted.iter().filter(|window| is_touched(window.start_ns, window.end_ns)).collect();
    let (first, last) = (touched.first()?, touched.last()?);
    let is_all = touched.len() == counted.len() && start_ns <= first.start_ns && end_ns >= last.end_ns;
    let label = if first.label == last.label {
        format!("“{}”", first.label)
    } else {
        format!("“{}” to “{}”", first.label, last.label)
    };
    (start_ns < end_ns && !is_all).then_some(Period { label, start_ns, end_ns })
}

#[cfg(test)]
mod tests {
    use narrows_testkit::TRIAL_START_NS;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    #[test]
    fn a_period_is_named_by_its_windows() {
        let load = |vus| Load { vus, rate: 10.0, latency_ms: 5.0 };
        let trial = TrialBuilder::new("a").warmup(2, load(1)).steady(5, load(1)).steady(5, load(8)).build();
        let label = |from: i64, to: i64| {
            let at = |second: i64| TRIAL_START_NS + second * 1_000_000_000;
            period_of(&trial, at(from), at(to)).map(|period| period.label)
        };
        assert_eq!(label(8, 9).as_deref(), Some("“8 users”"));
        assert_eq!(label(3, 9).as_deref(), Some("“1 users” to “8 users”"));
        assert_eq!(label(2, 12), None, "all of it");
        assert_eq!(label(0, 1), None, "nothing that counts");
    }
}
