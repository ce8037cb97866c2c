//! Replaces parameters by rates that earlier variants of the same run failed to reach.
//!
//! Only the first repetition decides, so that all repetitions of a variant are given the same. It is read from the run
//! file, so a run that goes on decides as the run did that was interrupted.

use std::path::Path;

use narrows_model::caveat::TrialCaveat;
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{Trial, TrialState};
use narrows_telemetry::run_file::{Reader, TraceLimit};

use crate::Error;
use crate::experiment::{Experiment, Fallback, Variant};

/// Changes the parameters of `variant`, whose trial is about to begin, where variants that are done did not reach what
/// they were to. Says so as a caveat of the trial.
pub(crate) fn adapt(
    experiment: &Experiment,
    path: &Path,
    variant: &mut Variant,
    trial: &mut Trial,
) -> Result<(), Error> {
    let concerned: Vec<&Fallback> =
        experiment.fallbacks.iter().filter(|held| !held.by.contains(&variant.name)).collect();
    if concerned.is_empty() {
        return Ok(());
    }
    let no_traces = TraceLimit { traces: 0, spans: 0 };
    let evidence = Reader::open(path)?.evidence(no_traces)?;
    for held in concerned {
        let reached: Vec<(&str, f64)> = held.by.iter().filter_map(|name| reached(&evidence.trials, name)).collect();
        let Some(wanted) = variant.parameters.get(&held.parameter).cloned() else { continue };
        let (value, caveat) = decided(held, &wanted, &reached);
        variant.parameters.insert(held.parameter.clone(), value);
        trial.caveats.push(caveat);
    }
    trial.parameters = experiment.shown_parameters(variant);
    Ok(())
}

/// Rate of a variant's first repetition, if it is done.
fn reached<'a>(trials: &'a [TrialEvidence], name: &str) -> Option<(&'a str, f64)> {
    let is_it = |evidence: &&TrialEvidence| {
        let trial = &evidence.trial;
        trial.variant == name && trial.repetition == 1 && trial.state == TrialState::Done
    };
    let evidence = trials.iter().find(is_it)?;
    Some((&evidence.trial.variant, evidence.counted_load().rate()))
}

/// The parameter's value and the caveat that says why.
fn decided(held: &Fallback, wanted: &str, reached: &[(&str, f64)]) -> (String, TrialCaveat) {
    let Fallback { parameter, by, otherwise } = held;
    let missing = by.iter().filter(|name| !reached.iter().any(|(done, _)| done == name)).cloned().collect();
    let rates: Vec<f64> = reached.iter().map(|(_, rate)| *rate).collect();
    let slowest = reached.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (value, reduced_to) = match (held.instead(wanted, &rates), slowest) {
        (Some(instead), Some((name, rate))) => (instead.to_string(), Some((*otherwise, (*name).to_owned(), *rate))),
        _ => (wanted.to_owned(), None),
    };
    let caveat = TrialCaveat::ParameterByEarlierRates {
        parameter: parameter.clone(),
        value: value.clone(),
        wanted: wanted.to_owned(),
        reduced_to,
        is_known: slowest.is_some(),
        missing,
    };
    (value, caveat)
}

#[cfg(test)]
mod tests {
    use narrows_diagnose::words::trial_caveat;

    use super::*;

    #[test]
    fn the_sentence_says_which_rate_it_is_and_why() {
        let held = Fallback { parameter: "rate".into(), by: vec!["plain".into(), "sidecar".into()], otherwise: 0.6 };
        for (reached, value, said) in [
            (
                &[("plain", 12_000.0), ("sidecar", 7_500.0)][..],
                "4500",
                "rate is 4500, 60 % of the 7,500/s that sidecar reached, which is less than 10660.",
            ),
            (
                &[("plain", 12_000.0), ("sidecar", 11_000.0)],
                "10660",
                "rate is 10660, as wanted: each of the variants that must hold it reached it.",
            ),
            (
                &[("plain", 12_000.0)],
                "10660",
                "rate is 10660, as wanted: each of the variants that must hold it reached it; whether sidecar could hold it is not known, as it did not run before.",
            ),
            (
                &[],
                "10660",
                "rate is 10660, as wanted; whether plain and sidecar could hold it is not known, as it did not run before.",
            ),
        ] {
            let (decided, caveat) = decided(&held, "10660", reached);
            assert_eq!((decided.as_str(), trial_caveat(&caveat).as_str()), (value, said));
        }
    }
}
