//! Parameters that follow what other variants of the same run were measured to do: rates that they failed to reach, CPU
//! that a service used.
//!
//! Only the first repetition decides, so that all repetitions of a variant are given the same. It is read from the run
//! file, so a run that goes on decides as the run did that was interrupted.

use std::path::Path;

use narrows_model::caveat::TrialCaveat;
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{Trial, TrialState};
use narrows_model::series::names;
use narrows_telemetry::run_file::{Reader, TraceLimit};

use crate::Error;
use crate::experiment::{Experiment, Fallback, UsedCpu, Variant};

/// Whether a trial is run before all others, because a parameter of theirs is measured in it.
pub(crate) fn is_first(experiment: &Experiment, trial: &Trial) -> bool {
    trial.repetition == 1 && experiment.used.iter().any(|used| used.by == trial.variant)
}

/// Changes the parameters of `variant`, whose trial is about to begin, to what variants that are done did. Says so as
/// caveats of the trial.
pub(crate) fn adapt(
    experiment: &Experiment,
    path: &Path,
    variant: &mut Variant,
    trial: &mut Trial,
) -> Result<(), Error> {
    let held = |held: &&Fallback| !held.by.contains(&variant.name);
    let held: Vec<&Fallback> = experiment.fallbacks.iter().filter(held).collect();
    let used: Vec<&UsedCpu> = experiment.used.iter().filter(|used| used.is_of(variant, experiment)).collect();
    if held.is_empty() && used.is_empty() {
        return Ok(());
    }
    let no_traces = TraceLimit { traces: 0, spans: 0 };
    let evidence = Reader::open(path)?.evidence(no_traces)?;
    for held in held {
        let reached = |name: &String| {
            let first = first_repetition(&evidence.trials, name)?;
            Some((first.trial.variant.as_str(), first.counted_load().rate()))
        };
        let reached: Vec<(&str, f64)> = held.by.iter().filter_map(reached).collect();
        let Some(wanted) = variant.parameters.get(&held.parameter).cloned() else { continue };
        let (value, caveat) = decided(held, &wanted, &reached);
        variant.parameters.insert(held.parameter.clone(), value);
        trial.caveats.push(caveat);
    }
    for used in used {
        let Some(wanted) = variant.parameters.get(&used.parameter).cloned() else { continue };
        let (value, caveat) = by_use(used, &wanted, &evidence.trials);
        variant.parameters.insert(used.parameter.clone(), value);
        trial.caveats.push(caveat);
    }
    trial.parameters = experiment.shown_parameters(variant);
    Ok(())
}

/// The parameter's value by the CPU that its service used, and the caveat that says why.
fn by_use(used: &UsedCpu, wanted: &str, trials: &[TrialEvidence]) -> (String, TrialCaveat) {
    let cores = first_repetition(trials, &used.by).and_then(|first| cores_of_replica(first, used));
    let value = cores.map_or_else(|| wanted.to_owned(), |cores| used.value(cores).to_string());
    let caveat = TrialCaveat::ParameterByUsedCpu {
        parameter: used.parameter.clone(),
        value: value.clone(),
        times: used.times,
        service: used.service.clone(),
        variant: used.by.clone(),
        cores,
    };
    (value, caveat)
}

/// Cores that a replica of the service used in the mean of the counted windows; `None` if they were not sampled.
fn cores_of_replica(evidence: &TrialEvidence, used: &UsedCpu) -> Option<f64> {
    let replicas = evidence.services.iter().filter(|instance| instance.service == used.service).count();
    let usage = evidence.counted_usage(names::CPU_CORES, &used.service);
    (usage.points > 0 && replicas > 0).then(|| usage.mean / replicas as f64)
}

/// The first repetition of a variant, if it is done.
fn first_repetition<'a>(trials: &'a [TrialEvidence], name: &str) -> Option<&'a TrialEvidence> {
    trials.iter().find(|evidence| {
        let trial = &evidence.trial;
        trial.variant == name && trial.repetition == 1 && trial.state == TrialState::Done
    })
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
    use narrows_testkit::trial::{Load, TrialBuilder};

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

    #[test]
    fn a_value_follows_the_cpu_that_replicas_of_a_service_used() {
        let free = TrialBuilder::new("free").service("shop", None).service("shop", None);
        let free = free.steady(10, Load { vus: 1, rate: 10.0, latency_ms: 5.0 });
        let free = free.cpu("shop", 0, |_| 0.2).cpu("shop", 1, |_| 0.4).build();
        let used = UsedCpu { parameter: "cap".into(), by: "free".into(), service: "shop".into(), times: 0.5 };
        for (trials, value, said) in [
            (&[free][..], "0.15", "cap is 0.15, 0.5 times the 0.30 cores that each replica of shop used in free."),
            (&[], "0.9", "cap is 0.9, as written: what shop uses in free is not known, as it did not run before."),
        ] {
            let (decided, caveat) = by_use(&used, "0.9", trials);
            assert_eq!((decided.as_str(), trial_caveat(&caveat).as_str()), (value, said));
        }
    }
}
