//! Whether one variant is faster than another, by whole trials.
//!
//! A trial is one value of each figure: its seconds are not independent, and what differs from start to start shows
//! between trials only. Trials that were made in pairs are compared in pairs, by the logarithm of new ÷ old with
//! Student's t, so that slow drift of the machine cancels; others by Welch's interval. One figure decides the verdict, so
//! that looking at six of them does not claim falsely six times as often; the others share an error as large.
//!
//! `looks.rs` says how large t must be when the trials are looked at as they come, `measured.rs` what is taken from a
//! trial, `refusal.rs` what cannot be compared, `wanted.rs` how many trials would be enough, `words.rs` the sentences.
//!
//! Not here: the variants of a run beside its first (`compare`), which assumes a spread where nothing was repeated.

mod caveats;
mod looks;
mod measured;
mod refusal;
#[cfg(test)]
mod tests;
mod wanted;
mod words;

use narrows_model::comparison::Interval;
use narrows_model::proof::{Design, LoadShape, Order, Proof, Quantity, QuantityChange, Ruling};
use narrows_model::run::Verdict;

pub use measured::{Level, Measured};
pub use refusal::Refusal;

use crate::stats::mean_and_variance;
use crate::stats::student::two_sided;
use looks::Looks;

/// The largest share of comparisons of equal variants that may claim a difference.
pub const ERROR_RATE: f64 = 0.05;
/// The smallest difference that matters, unless another is named.
pub const MARGIN: f64 = 0.05;
/// The error of each figure but the one that decides: these share one [`ERROR_RATE`].
const ERROR_RATE_OF_OTHERS: f64 = ERROR_RATE / (Quantity::ALL.len() - 1) as f64;
/// Rates of arrivals that differ by less, as a share, are the same.
const RATES_SAME: f64 = 1e-6;

/// The bounds of a comparison that may end early: at most so many pairs are planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    planned: u32,
    verdict: Looks,
    others: Looks,
}

impl Rules {
    /// For so many pairs at most, which are 2 or more. Simulates, which takes up to a few tenths of a second.
    pub fn new(planned: u32) -> Self {
        let looks = |error_rate| Looks::new(planned, error_rate);
        Self { planned, verdict: looks(ERROR_RATE), others: looks(ERROR_RATE_OF_OTHERS) }
    }

    /// True if there is a look right after so many pairs.
    pub fn is_look(&self, pairs: u32) -> bool {
        self.verdict.is_look(pairs)
    }
}

/// Plan of the trials.
#[derive(Debug, Clone, Copy)]
pub enum Plan<'a> {
    /// In pairs of randomised order, looked at as they came.
    Sequential {
        /// The seed of the order.
        seed: u64,
        /// When there was a look, and what claims there.
        rules: &'a Rules,
    },
    /// In pairs of the same order, of a number that was fixed before.
    InTurn,
    /// One variant after the other, or in two runs.
    Apart,
}

/// One side.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its name.
    pub label: &'a str,
    /// Its finished trials.
    pub trials: &'a [Measured],
}

/// The question that the trials decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The figure that decides.
    pub by: Quantity,
    /// The smallest relative difference that matters, above 0.
    pub margin: f64,
}

/// Compares `after` with `before`.
///
/// # Errors
/// When the two cannot be compared.
pub fn prove(before: Side<'_>, after: Side<'_>, plan: Plan<'_>, question: Question) -> Result<Proof, Refusal> {
    refuse(before, after, question.by)?;
    let (old, new) = trials_of(before, after, plan)?;
    let sample = |quantity: Quantity| Sample::new(&old, &new, plan, quantity);
    let changes = Quantity::ALL.iter().filter_map(|quantity| sample(*quantity)?.change(plan, question.by));
    let quantities: Vec<QuantityChange> = changes.collect();
    let deciding = quantities.iter().find(|change| change.quantity == question.by);
    let verdict = deciding.map_or(Ruling::CannotTell, |change| ruling(change, question.margin));
    let repeats_wanted = match verdict {
        Ruling::CannotTell => sample(question.by).and_then(|sample| wanted::repeats(&sample, question.margin)),
        _ => None,
    };
    let mut proof = Proof {
        before: before.label.to_owned(),
        after: after.label.to_owned(),
        by: question.by,
        margin: question.margin,
        error_rate: ERROR_RATE,
        verdict,
        design: design(plan, &old, &new),
        quantities,
        errors: (error_rate(&old), error_rate(&new)),
        repeats_wanted,
        caveats: Vec::new(),
        sentence: String::new(),
    };
    proof.caveats = caveats::caveats(&proof, &old, &new);
    proof.sentence = words::sentence(&proof);
    Ok(proof)
}

type Trials<'a> = [&'a Measured];

/// Why these cannot be compared, before any statistics.
fn refuse(before: Side<'_>, after: Side<'_>, by: Quantity) -> Result<(), Refusal> {
    let label = |side: Side<'_>| side.label.to_owned();
    if before.label == after.label {
        return Err(Refusal::Same { label: label(before) });
    }
    for side in [before, after] {
        if side.trials.is_empty() {
            return Err(Refusal::NoTrial { label: label(side) });
        }
        if side.trials.iter().all(|trial| trial.requests == 0) {
            return Err(Refusal::NoLoad { label: label(side) });
        }
    }
    check(before, after, by)?;
    match [before, after].into_iter().find(|side| side.trials.len() < 2) {
        Some(side) => Err(Refusal::OneTrial { label: label(side) }),
        None => Ok(()),
    }
}

/// Rejects unusable trials as soon as they are there, to avoid making more.
///
/// # Errors
/// When a trial is invalid or did not measure the deciding figure, and when the rates of arrivals differ.
pub fn check(before: Side<'_>, after: Side<'_>, by: Quantity) -> Result<(), Refusal> {
    for trial in before.trials.iter().chain(after.trials) {
        if let Some((Verdict::Invalid, reason)) = &trial.doubt {
            return Err(Refusal::Invalid { trial: trial.label.clone(), reason: reason.clone() });
        }
        if trial.value(by).is_none() {
            return Err(Refusal::NotMeasured { quantity: by, trial: trial.label.clone() });
        }
    }
    let Some(first) = before.trials.first() else { return Ok(()) };
    match before.trials.iter().chain(after.trials).find(|trial| !have_same_rates(first, trial)) {
        Some(other) => {
            let side = |trial: &Measured| {
                (trial.label.clone(), trial.levels.iter().map(|level| level.rate).collect::<Vec<_>>())
            };
            Err(Refusal::UnequalRates { sides: [side(first), side(other)] })
        }
        None => Ok(()),
    }
}

fn have_same_rates(one: &Measured, other: &Measured) -> bool {
    if one.shape() == LoadShape::Closed && other.shape() == LoadShape::Closed {
        return true;
    }
    let is_same = |(one, other): (&Level, &Level)| match (one.rate, other.rate) {
        (Some(one), Some(other)) => (one - other).abs() <= RATES_SAME * one.max(other),
        (one, other) => one == other,
    };
    one.levels.len() == other.levels.len() && one.levels.iter().zip(&other.levels).all(is_same)
}

/// The trials that count: of pairs, those of complete ones up to the last look.
fn trials_of<'a>(
    before: Side<'a>,
    after: Side<'a>,
    plan: Plan<'_>,
) -> Result<(Vec<&'a Measured>, Vec<&'a Measured>), Refusal> {
    if let Plan::Apart = plan {
        return Ok((before.trials.iter().collect(), after.trials.iter().collect()));
    }
    let pair_of = |old: &'a Measured| Some((old, after.trials.iter().find(|new| new.repetition == old.repetition)?));
    let mut pairs: Vec<(&Measured, &Measured)> = before.trials.iter().filter_map(pair_of).collect();
    if let Plan::Sequential { rules, .. } = plan {
        let seen = rules.verdict.last(pairs.len() as u32).map_or(pairs.len(), |(seen, _)| seen as usize);
        pairs.truncate(seen);
    }
    if pairs.len() < 2 { Err(Refusal::OnePair) } else { Ok(pairs.into_iter().unzip()) }
}

/// The mean logarithm of new ÷ old of one figure, with its standard error.
#[derive(Debug, Clone, Copy)]
struct Sample {
    quantity: Quantity,
    /// Geometric means.
    sides: (f64, f64),
    logarithm: f64,
    error: f64,
    degrees: f64,
    /// Trials of each, or of the side with fewer.
    trials: u32,
}

impl Sample {
    /// `None` if a trial did not measure it.
    fn new(old: &Trials<'_>, new: &Trials<'_>, plan: Plan<'_>, quantity: Quantity) -> Option<Self> {
        let logarithms = |trials: &Trials<'_>| -> Option<Vec<f64>> {
            trials.iter().map(|trial| trial.value(quantity).map(f64::ln)).collect()
        };
        let (old, new) = (logarithms(old)?, logarithms(new)?);
        let (of_old, of_new) = (mean_and_variance(&old)?, mean_and_variance(&new)?);
        let (error, degrees) = match plan {
            Plan::Apart => welch((of_old.1, old.len()), (of_new.1, new.len())),
            _ => {
                let differences: Vec<f64> = old.iter().zip(&new).map(|(old, new)| new - old).collect();
                let n = differences.len() as f64;
                ((mean_and_variance(&differences)?.1 / n).sqrt(), n - 1.0)
            }
        };
        let sides = (of_old.0.exp(), of_new.0.exp());
        let trials = old.len().min(new.len()) as u32;
        Some(Self { quantity, sides, logarithm: of_new.0 - of_old.0, error, degrees, trials })
    }

    fn change(&self, plan: Plan<'_>, by: Quantity) -> Option<QuantityChange> {
        let decides = self.quantity == by;
        let bound = match plan {
            Plan::Sequential { rules, .. } => {
                let looks = if decides { &rules.verdict } else { &rules.others };
                looks.last(self.trials).map_or(f64::INFINITY, |(_, bound)| bound)
            }
            _ => two_sided(self.degrees, if decides { ERROR_RATE } else { ERROR_RATE_OF_OTHERS }),
        };
        let half_width = if self.error > 0.0 { bound * self.error } else { 0.0 };
        let half_width = half_width.max(exactness(self.quantity));
        let at = |end: f64| (self.logarithm + end * half_width).exp_m1();
        Some(QuantityChange {
            quantity: self.quantity,
            before: self.sides.0,
            after: self.sides.1,
            ratio: self.logarithm.exp_m1(),
            interval: half_width.is_finite().then(|| Interval { low: at(-1.0), high: at(1.0) }),
        })
    }
}

/// How far apart two equal values may be read, as a logarithm: percentiles are read from buckets that are up to 0.8 % off,
/// so that several trials may agree to the last digit.
fn exactness(quantity: Quantity) -> f64 {
    const BUCKET: f64 = 0.008;
    match quantity {
        Quantity::P50 | Quantity::P95 | Quantity::P99 => 2.0 * BUCKET,
        Quantity::Rate | Quantity::Mean | Quantity::Cpu => 0.0,
    }
}

/// The standard error of a difference of two means, and its degrees of freedom after Satterthwaite.
fn welch(old: (f64, usize), new: (f64, usize)) -> (f64, f64) {
    let part = |(variance, n): (f64, usize)| variance / n as f64;
    let squares: f64 = [old, new].map(|side| part(side).powi(2) / (side.1 as f64 - 1.0).max(1.0)).iter().sum();
    let sum = part(old) + part(new);
    (sum.sqrt(), if squares > 0.0 { sum.powi(2) / squares } else { f64::MAX })
}

fn ruling(change: &QuantityChange, margin: f64) -> Ruling {
    let Some(interval) = change.interval else { return Ruling::CannotTell };
    let margin = margin.ln_1p();
    if interval.low.ln_1p() >= -margin && interval.high.ln_1p() <= margin {
        return Ruling::NoDifference;
    }
    match (change.is_change(), change.is_better()) {
        (false, _) => Ruling::CannotTell,
        (true, true) => Ruling::Faster,
        (true, false) => Ruling::Slower,
    }
}

fn design(plan: Plan<'_>, old: &Trials<'_>, new: &Trials<'_>) -> Design {
    let (order, planned) = match plan {
        Plan::Sequential { seed, rules } => (Order::Randomised { seed }, Some(rules.planned)),
        Plan::InTurn => (Order::InTurn, None),
        Plan::Apart => (Order::Apart, None),
    };
    let load = old.first().map_or(LoadShape::Closed, |trial| trial.shape());
    Design { order, trials: (old.len() as u32, new.len() as u32), planned, load }
}

fn error_rate(trials: &Trials<'_>) -> f64 {
    let sum = |of: fn(&Measured) -> u64| trials.iter().map(|trial| of(trial)).sum::<u64>() as f64;
    sum(|trial| trial.failed) / sum(|trial| trial.requests).max(1.0)
}
