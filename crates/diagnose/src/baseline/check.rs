//! A run beside a baseline: which figures are worse beyond noise.
//!
//! Between a baseline and a check lie days, so the spread of a few trials right after one another is not all the noise
//! there is. As between variants that were measured once (`compare::between`), the spread that is assumed between trials
//! is weighed with the repetitions of both sides. All figures together fail a run in which nothing changed as seldom as
//! stated: each has its share of the error (Bonferroni).
//!
//! Only figures fail. Findings and services say where to look.

use std::collections::BTreeMap;

use narrows_model::baseline::{
    Baseline, Check, FigureCheck, FindingCheck, Grade, KnownFinding, Measure, ServiceCheck, VariantBaseline,
    VariantCheck,
};
use narrows_model::comparison::{Change, Interval, Meaning};
use narrows_model::diff::Fate;
use narrows_model::proof::Quantity;

use super::{Refusal, Summary, caveats, words};
use crate::compare::between::Spread;
use crate::proof::ERROR_RATE;
use crate::stats::blocks::change;
use crate::stats::student::two_sided;

/// The smallest rise of the share of failed requests that fails.
const ERRORS_MIN: f64 = 0.01;
/// Degrees of freedom of a count of many requests.
const MANY: f64 = 1e6;
/// Services of a variant that are shown.
const SERVICES_MAX: usize = 20;

/// Differences between runs that a comparison accepts, although figures may differ because of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Another experiment, or another version of it.
    pub experiment: bool,
    /// Another machine.
    pub machine: bool,
}

/// Checks a run against a baseline. `margin` is the smallest relative change that fails, above 0; `run` what the run is
/// called.
///
/// # Errors
/// When the two cannot be compared.
pub fn check(
    before: &Baseline,
    now: &Summary,
    (run, margin): (&str, f64),
    accepted: Accepted,
) -> Result<Check, Refusal> {
    refuse(before, &now.baseline, accepted)?;
    let mut pairs = Vec::new();
    for old in &before.variants {
        pairs.push((old, find(now, old)?));
    }
    let figures = |(old, (new, _)): &(&VariantBaseline, Found<'_>)| Pair::all(old, new);
    let pairs_of: Vec<Vec<Pair>> = pairs.iter().map(figures).collect();
    let tests: usize = pairs_of.iter().map(|figures| figures.len() + 1).sum();
    let judge = Judge { level: ERROR_RATE / tests.max(1) as f64, margin, assumed: now.assumed };
    let variants = pairs.iter().zip(&pairs_of).map(|((old, (new, recurring)), figures)| VariantCheck {
        variant: old.variant.clone(),
        trials: (old.trials, new.trials),
        figures: figures.iter().map(|pair| judge.figure(pair)).chain([judge.errors(old, new)]).collect(),
        findings: findings(old, new, recurring),
        services: services(old, new),
    });
    let mut check = Check {
        experiment: now.baseline.experiment.clone(),
        run: run.to_owned(),
        margin,
        error_rate: ERROR_RATE,
        variants: variants.collect(),
        caveats: caveats::caveats(before, now),
        sentence: String::new(),
    };
    check.sentence = words::sentence(&check);
    Ok(check)
}

fn refuse(before: &Baseline, now: &Baseline, accepted: Accepted) -> Result<(), Refusal> {
    let is_same = (&before.experiment, &before.experiment_digest) == (&now.experiment, &now.experiment_digest);
    if !is_same && !accepted.experiment {
        let (before, after) = (before.experiment.clone(), now.experiment.clone());
        return Err(Refusal::OtherExperiment { before, after });
    }
    if before.machine != now.machine && !accepted.machine {
        return Err(Refusal::OtherMachine { before: before.machine.clone(), after: now.machine.clone() });
    }
    Ok(())
}

/// A variant of the run, and its recurring findings.
type Found<'a> = (&'a VariantBaseline, &'a BTreeMap<KnownFinding, String>);

fn find<'a>(now: &'a Summary, old: &VariantBaseline) -> Result<Found<'a>, Refusal> {
    let mut all = now.baseline.variants.iter().zip(&now.recurring);
    all.find(|(new, _)| new.variant == old.variant).ok_or_else(|| Refusal::NoVariant {
        variant: old.variant.clone(),
        known: now.baseline.variants.iter().map(|variant| variant.variant.clone()).collect(),
    })
}

/// One figure on both sides: value, spread and number of trials.
struct Pair {
    measure: Measure,
    before: (f64, Option<f64>, u32),
    after: (f64, Option<f64>, u32),
}

impl Pair {
    /// Figures that were measured on both sides.
    fn all(old: &VariantBaseline, new: &VariantBaseline) -> Vec<Pair> {
        let of_load = old.figures.iter().filter_map(|before| {
            let after = new.figures.iter().find(|after| after.quantity == before.quantity)?;
            Some(Pair {
                measure: Measure::Load { quantity: before.quantity },
                before: (before.value, before.spread, old.trials),
                after: (after.value, after.spread, new.trials),
            })
        });
        let of_operations = old.operations.iter().filter_map(|before| {
            let is_it = |after: &&narrows_model::baseline::OperationFigure| {
                (&after.service, &after.operation) == (&before.service, &before.operation)
            };
            let after = new.operations.iter().find(is_it)?;
            Some(Pair {
                measure: Measure::Operation { service: before.service.clone(), operation: before.operation.clone() },
                before: (before.mean_ns, before.spread, before.trials),
                after: (after.mean_ns, after.spread, after.trials),
            })
        });
        of_load.chain(of_operations).collect()
    }
}

/// By what figures are judged.
struct Judge {
    /// The error of each figure.
    level: f64,
    margin: f64,
    assumed: f64,
}

impl Judge {
    fn figure(&self, pair: &Pair) -> FigureCheck {
        let seen = |(_, spread, trials): (f64, Option<f64>, u32)| {
            spread.filter(|_| trials > 1).map(|spread| (spread.powi(2), f64::from(trials) - 1.0))
        };
        let spread = Spread::of_variances(self.assumed, [pair.before, pair.after].into_iter().filter_map(seen));
        let half_width = spread.half_width_at(self.level, pair.before.2 as usize, pair.after.2 as usize);
        let change = change(pair.before.0, pair.after.0, half_width, 0.0, self.margin);
        let is_better_higher = pair.measure == Measure::Load { quantity: Quantity::Rate };
        FigureCheck {
            measure: pair.measure.clone(),
            before: pair.before.0,
            after: pair.after.0,
            interval: change.map(|change| Interval { low: change.low, high: change.high }),
            grade: change.map_or(Grade::Unclear, |change| grade(&change, is_better_higher)),
        }
    }

    /// The share of requests that failed: a count, whose error follows from the number of requests.
    fn errors(&self, old: &VariantBaseline, new: &VariantBaseline) -> FigureCheck {
        let share = |side: &VariantBaseline| side.failed as f64 / (side.requests.max(1)) as f64;
        let squared_error = |side: &VariantBaseline| share(side) * (1.0 - share(side)) / (side.requests.max(1)) as f64;
        let (before, after) = (share(old), share(new));
        let difference = after - before;
        let half_width = two_sided(MANY, self.level) * (squared_error(old) + squared_error(new)).sqrt();
        let grade = match difference {
            rise if rise >= ERRORS_MIN && rise > half_width => Grade::Worse,
            fall if -fall >= ERRORS_MIN && -fall > half_width => Grade::Better,
            _ => Grade::Same,
        };
        let interval = Some(Interval { low: difference - half_width, high: difference + half_width });
        FigureCheck { measure: Measure::Errors, before, after, interval, grade }
    }
}

fn grade(change: &Change, is_better_higher: bool) -> Grade {
    match change.meaning {
        Meaning::Same => Grade::Same,
        Meaning::Unclear => Grade::Unclear,
        Meaning::Higher if is_better_higher => Grade::Better,
        Meaning::Lower if !is_better_higher => Grade::Better,
        Meaning::Higher | Meaning::Lower => Grade::Worse,
    }
}

/// Findings that recur now and were in no trial before, and findings that are in no trial any more.
fn findings(
    old: &VariantBaseline,
    new: &VariantBaseline,
    recurring: &BTreeMap<KnownFinding, String>,
) -> Vec<FindingCheck> {
    let appeared = recurring.iter().filter(|(finding, _)| !old.findings.contains(finding));
    let appeared = appeared.map(|(finding, title)| (Fate::Appeared, finding, Some(title.clone())));
    let vanished = old.findings.iter().filter(|finding| !new.findings.contains(finding));
    let vanished = vanished.map(|finding| (Fate::Vanished, finding, None));
    appeared
        .chain(vanished)
        .map(|(fate, finding, title)| FindingCheck { fate, finding: finding.clone(), title })
        .collect()
}

/// The services whose part of a request changed, the largest change first.
fn services(old: &VariantBaseline, new: &VariantBaseline) -> Vec<ServiceCheck> {
    let mut parts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    old.critical_path.iter().for_each(|part| parts.entry(&part.service).or_default().0 = part.mean_ns);
    new.critical_path.iter().for_each(|part| parts.entry(&part.service).or_default().1 = part.mean_ns);
    let part = |(service, (before_ns, after_ns)): (&str, (f64, f64))| ServiceCheck {
        service: service.to_owned(),
        before_ns,
        after_ns,
    };
    let mut services: Vec<ServiceCheck> = parts.into_iter().map(part).collect();
    let change = |service: &ServiceCheck| (service.after_ns - service.before_ns).abs();
    services.sort_by(|a, b| change(b).total_cmp(&change(a)));
    services.truncate(SERVICES_MAX);
    services
}
