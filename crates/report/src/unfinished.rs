//! Measurements of a trial that did not come to its end. They are no result and are never compared, but they often
//! explain the end.

use narrows_model::counting::{self, Phase};
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::TrialState;
use narrows_model::units;

use crate::figures::{known, plural};

/// All that the load measured until the trial's end, warm-up included, in a sentence; none of a trial that is done or whose
/// load had not begun.
pub(crate) fn until_then(evidence: &TrialEvidence) -> Option<String> {
    let is_begun = !matches!(evidence.trial.state, TrialState::Done | TrialState::Planned);
    if !is_begun || evidence.seconds.is_empty() {
        return None;
    }
    let totals = counting::totals(evidence.seconds.iter().map(|row| (row, Phase::Sending)), |_| true);
    let responses = match totals.succeeded {
        1 => "1 response".to_owned(),
        n => format!("{} responses", units::count(n)),
    };
    let mut text = format!(
        "until then {responses} in {} ({}), {}",
        units::duration(totals.seconds * 1e9),
        known(totals.known_rate(), units::rate),
        plural(usize::try_from(totals.errors.total()).unwrap_or(usize::MAX), "error", "errors")
    );
    if totals.succeeded > 0 {
        let latency = totals.latency();
        let [mean, p95] = [latency.mean_ns, latency.p95_ns as f64].map(units::duration);
        text += &format!(", mean {mean}, p95 {p95}");
    }
    Some(text + "; warm-up included")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_was_measured_before_the_end_is_summed_up() {
        let mut trial = fixture::outcome().evidence.trials.remove(0);
        assert_eq!(until_then(&trial), None, "it is done");
        trial.trial.state = TrialState::Failed;
        trial.windows.clear();
        trial.seconds.truncate(20);
        insta::assert_snapshot!(
            until_then(&trial).unwrap(),
            @"until then 4,304 responses in 20.0 s (215/s), 2 errors, mean 40.1 ms, p95 83.4 ms; warm-up included"
        );
        trial.seconds.truncate(1);
        trial.seconds[0].succeeded = 0;
        assert_eq!(until_then(&trial).unwrap(), "until then 0 responses in 1.00 s (0/s), 0 errors; warm-up included");
        trial.seconds.clear();
        assert_eq!(until_then(&trial), None, "its load had not begun");
    }
}
