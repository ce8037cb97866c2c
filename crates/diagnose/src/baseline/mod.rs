//! A run summarised for a repository, and a later run beside it.
//!
//! A baseline holds each figure with its spread between trials, and what identifies each finding; nothing that changes
//! when only the clock did. The later run is summarised alike and the two are compared (`check.rs`).
//!
//! Not here: files (the command line reads and writes them), and whether two versions differ at the same time on the same
//! machine, which `proof` finds out with less noise.

mod caveats;
mod check;
mod digest;
mod refusal;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use narrows_model::baseline::{
    Baseline, FORMAT, KnownFinding, LoadFigure, Machine, OperationFigure, ServiceTime, VariantBaseline,
};
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Finding;
use narrows_model::proof::Quantity;
use narrows_model::run::{Environment, Verdict};

pub use check::{Accepted, check};
pub use refusal::Refusal;
pub(crate) use refusal::shown;

use crate::compare::between::assumed;
use crate::culprit;
use crate::proof::{self, Measured};
use crate::stats::mean_and_variance;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Operations of a variant that are kept: those with most time.
const OPERATIONS_MAX: usize = 30;
/// Requests that an operation must have completed in each trial.
const OPERATION_REQUESTS_MIN: f64 = 20.0;
/// Services of a critical path that are kept: those with most time.
const SERVICES_MAX: usize = 30;
/// Significant digits of figures and of shares.
const DIGITS: i32 = 4;
const SHARE_DIGITS: i32 = 2;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Part of it that is kept.
    pub baseline: Baseline,
    /// For each variant in turn, what was found in more than half of its trials, with its title. What is seen once may be
    /// gone the next time, so that only this counts as new.
    recurring: Vec<BTreeMap<KnownFinding, String>>,
    /// The standard deviation to assume between trials.
    assumed: f64,
}

/// Summarises a run.
///
/// # Errors
/// When it has no finished trial, no load, or a trial whose figures are invalid.
pub fn summary(outcome: &Outcome, thresholds: &Thresholds) -> Result<Summary, Refusal> {
    let run = &outcome.evidence.run;
    let mut names: Vec<&str> = outcome.evidence.trials.iter().map(|trial| trial.trial.variant.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let variants = names.into_iter().map(|name| Trials::of(outcome, name)).filter(|trials| !trials.measured.is_empty());
    let variants: Vec<Trials<'_>> = variants.collect();
    if variants.is_empty() {
        return Err(proof::Refusal::NoTrial { label: run.experiment.clone() }.into());
    }
    variants.iter().try_for_each(Trials::refuse)?;
    let all: Vec<&[&TrialEvidence]> = variants.iter().map(|trials| &trials.evidence[..]).collect();
    Ok(Summary {
        recurring: variants.iter().map(Trials::recurring).collect(),
        assumed: assumed(all, thresholds),
        baseline: Baseline {
            format: FORMAT.to_owned(),
            experiment: run.experiment.clone(),
            experiment_digest: digest::of(&run.experiment_source, run.time_scale),
            machine: machine(&run.environment),
            variants: variants.iter().map(|trials| trials.summed_up(thresholds)).collect(),
        },
    })
}

fn machine(environment: &Environment) -> Machine {
    const GIB: u64 = 1 << 30;
    Machine {
        cpu_model: environment.cpu_model.clone(),
        cores: environment.cores,
        memory_gib: (environment.memory_bytes + GIB / 2) / GIB,
    }
}

/// The finished trials of a variant.
struct Trials<'a> {
    variant: &'a str,
    evidence: Vec<&'a TrialEvidence>,
    measured: Vec<Measured>,
    findings: Vec<&'a [Finding]>,
}

impl<'a> Trials<'a> {
    fn of(outcome: &'a Outcome, variant: &'a str) -> Self {
        let mut trials = Self { variant, evidence: Vec::new(), measured: Vec::new(), findings: Vec::new() };
        for (evidence, findings) in outcome.evidence.trials.iter().zip(&outcome.findings) {
            let Some(measured) = Measured::of(evidence).filter(|_| evidence.trial.variant == variant) else { continue };
            trials.evidence.push(evidence);
            trials.measured.push(measured);
            trials.findings.push(findings);
        }
        trials
    }

    fn refuse(&self) -> Result<(), Refusal> {
        if self.measured.iter().all(|trial| trial.requests == 0) {
            return Err(proof::Refusal::NoLoad { label: self.variant.to_owned() }.into());
        }
        let invalid = self.measured.iter().find_map(|trial| match &trial.doubt {
            Some((Verdict::Invalid, reason)) => Some((trial, reason)),
            _ => None,
        });
        match invalid {
            Some((trial, reason)) => {
                Err(proof::Refusal::Invalid { trial: trial.label.clone(), reason: reason.clone() }.into())
            }
            None => Ok(()),
        }
    }

    fn summed_up(&self, thresholds: &Thresholds) -> VariantBaseline {
        let figures = Quantity::ALL.iter().filter_map(|quantity| {
            let values: Option<Vec<f64>> = self.measured.iter().map(|trial| trial.value(*quantity)).collect();
            let (value, spread) = over_trials(&values?)?;
            Some(LoadFigure { quantity: *quantity, value, spread })
        });
        let sum = |of: fn(&Measured) -> u64| self.measured.iter().map(of).sum();
        let mut findings: Vec<KnownFinding> =
            self.findings.iter().copied().flatten().flat_map(with_effects).map(known).collect();
        findings.sort();
        findings.dedup();
        VariantBaseline {
            variant: self.variant.to_owned(),
            trials: self.measured.len() as u32,
            figures: figures.collect(),
            requests: sum(|trial| trial.requests),
            failed: sum(|trial| trial.failed),
            operations: self.operations(),
            findings,
            critical_path: self.services(thresholds),
        }
    }

    fn operations(&self) -> Vec<OperationFigure> {
        let mut means: BTreeMap<(&str, &str), (f64, Vec<f64>)> = BTreeMap::new();
        for operation in self.evidence.iter().flat_map(|trial| &trial.operations) {
            let mean_ns = operation.duration.mean_ns();
            if operation.completed >= OPERATION_REQUESTS_MIN && mean_ns > 0.0 {
                let (time, all) = means.entry((&operation.service, &operation.name)).or_default();
                *time += mean_ns * operation.completed;
                all.push(mean_ns);
            }
        }
        let mut busiest: Vec<_> = means.into_iter().collect();
        busiest.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
        busiest.truncate(OPERATIONS_MAX);
        busiest.sort_by_key(|(name, _)| *name);
        let figure = |((service, name), (_, values)): ((&str, &str), (f64, Vec<f64>))| {
            let (mean_ns, spread) = over_trials(&values)?;
            let trials = values.len() as u32;
            Some(OperationFigure { service: service.into(), operation: name.into(), mean_ns, spread, trials })
        };
        busiest.into_iter().filter_map(figure).collect()
    }

    fn services(&self, thresholds: &Thresholds) -> Vec<ServiceTime> {
        let times = culprit::times(&self.evidence, thresholds).into_iter();
        let mut times: Vec<ServiceTime> = times
            .map(|(service, (mean_ns, share))| ServiceTime {
                service,
                share: rounded(share, SHARE_DIGITS),
                mean_ns: rounded(mean_ns, DIGITS),
            })
            .collect();
        times.sort_by(|a, b| b.mean_ns.total_cmp(&a.mean_ns));
        times.truncate(SERVICES_MAX);
        times.sort_by(|a, b| a.service.cmp(&b.service));
        times
    }

    fn recurring(&self) -> BTreeMap<KnownFinding, String> {
        let mut seen: BTreeMap<KnownFinding, (usize, String)> = BTreeMap::new();
        for of_trial in &self.findings {
            let mut here: BTreeMap<KnownFinding, String> = BTreeMap::new();
            for finding in of_trial.iter().flat_map(with_effects) {
                here.entry(known(finding)).or_insert_with(|| finding.title());
            }
            for (finding, title) in here {
                seen.entry(finding).or_insert_with(|| (0, title)).0 += 1;
            }
        }
        let is_recurring = |count: usize| 2 * count > self.findings.len();
        seen.into_iter().filter(|(_, (count, _))| is_recurring(*count)).map(|(key, (_, title))| (key, title)).collect()
    }
}

fn with_effects(finding: &Finding) -> impl Iterator<Item = &Finding> {
    std::iter::once(finding).chain(&finding.effects)
}

fn known(finding: &Finding) -> KnownFinding {
    KnownFinding {
        kind: finding.kind().id().to_owned(),
        resource: finding.resource.clone(),
        operation: finding.operation.clone(),
    }
}

/// Geometric mean and standard deviation of the logarithm, rounded; none without values.
fn over_trials(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (mean, variance) = mean_and_variance(&logarithms)?;
    Some((rounded(mean.exp(), DIGITS), (values.len() > 1).then(|| rounded(variance.sqrt(), SHARE_DIGITS))))
}

/// To so many significant digits.
fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = digits - 1 - value.abs().log10().floor() as i32;
    // Dividing by a whole power of ten gives the nearest number that is written with so many digits.
    if exponent >= 0 {
        let power = 10.0_f64.powi(exponent);
        (value * power).round() / power
    } else {
        let power = 10.0_f64.powi(-exponent);
        (value / power).round() * power
    }
}
