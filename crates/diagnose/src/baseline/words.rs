//! A check in sentences: what is worse, and what limits it.

use narrows_model::baseline::{Baseline, Check, FigureCheck, Grade, Measure, VariantCheck};
use narrows_model::diff::Fate;
use narrows_model::units;

use super::{Summary, refusal};

/// Figures and findings that the sentence names.
const NAMED_MAX: usize = 3;

pub(super) fn sentence(check: &Check) -> String {
    let worse: Vec<String> = each(check).filter(|(_, figure)| figure.grade == Grade::Worse).map(worse).collect();
    let unclear = each(check).filter(|(_, figure)| figure.grade == Grade::Unclear).count();
    let margin = units::percent(check.margin);
    if worse.is_empty() {
        let clear = format!("No figure of {} is worse than its baseline beyond noise and {margin}", check.experiment);
        return match unclear {
            0 => format!("{clear}."),
            1 => format!("{clear}; noise could hide a change of one figure."),
            n => format!("{clear}; noise could hide a change of {n} figures."),
        };
    }
    let appeared = check.variants.iter().flat_map(|variant| &variant.findings);
    let appeared: Vec<String> = appeared
        .filter(|finding| finding.fate == Fate::Appeared)
        .map(|finding| format!("{} of {} is new", finding.finding.kind, finding.finding.resource))
        .collect();
    let parts: Vec<String> = [few(worse), few(appeared)].into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} is worse than its baseline: {}.", check.experiment, parts.join("; "))
}

fn each(check: &Check) -> impl Iterator<Item = (&VariantCheck, &FigureCheck)> {
    check.variants.iter().flat_map(|variant| variant.figures.iter().map(move |figure| (variant, figure)))
}

fn worse((variant, figure): (&VariantCheck, &FigureCheck)) -> String {
    let name = match &figure.measure {
        Measure::Load { quantity } => quantity.words().to_owned(),
        Measure::Errors => {
            let (before, after) = (units::percent(figure.before), units::percent(figure.after));
            return format!("{} of the requests of {} fail instead of {before}", after, variant.variant);
        }
        Measure::Operation { operation, .. } => operation.clone(),
    };
    let ratio = figure.ratio();
    let sign = if ratio < 0.0 { "−" } else { "+" };
    format!("{name} of {} {sign}{}", variant.variant, units::percent(ratio.abs()))
}

/// The first of them, and how many more there are.
fn few(mut texts: Vec<String>) -> String {
    let more = texts.len().saturating_sub(NAMED_MAX);
    texts.truncate(NAMED_MAX);
    match more {
        0 => texts.join(", "),
        _ => format!("{} and {more} more", texts.join(", ")),
    }
}

pub(super) fn caveats(before: &Baseline, now: &Summary) -> Vec<String> {
    let after = &now.baseline;
    [
        other_experiment(before, after),
        other_machine(before, after),
        once(before, after, now.assumed),
        new_variants(before, after),
        gone(before, after),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn other_experiment(before: &Baseline, after: &Baseline) -> Option<String> {
    let is_same = (&before.experiment, &before.experiment_digest) == (&after.experiment, &after.experiment_digest);
    (!is_same)
        .then(|| "The baseline is of another experiment, so a difference may come from the test itself.".to_owned())
}

fn other_machine(before: &Baseline, after: &Baseline) -> Option<String> {
    (before.machine != after.machine).then(|| {
        let (before, after) = (refusal::shown(&before.machine), refusal::shown(&after.machine));
        format!("The baseline is of another machine ({before}; now {after}), so times cannot be compared.")
    })
}

fn once(before: &Baseline, after: &Baseline, assumed: f64) -> Option<String> {
    let is_once = |baseline: &Baseline| baseline.variants.iter().any(|variant| variant.trials < 2);
    let sides = [(is_once(before), "the baseline"), (is_once(after), "the run")];
    let sides: Vec<&str> = sides.into_iter().filter(|(is_once, _)| *is_once).map(|(_, side)| side).collect();
    (!sides.is_empty()).then(|| {
        format!(
            "Measured once: {}. The intervals assume a standard deviation of {} between trials; with `--repeat 5`, smaller \
             changes are seen.",
            sides.join(" and "),
            units::percent(assumed)
        )
    })
}

fn new_variants(before: &Baseline, after: &Baseline) -> Option<String> {
    let is_new = |name: &&str| !before.variants.iter().any(|variant| variant.variant == *name);
    let new: Vec<&str> = after.variants.iter().map(|variant| variant.variant.as_str()).filter(is_new).collect();
    (!new.is_empty()).then(|| format!("Not in the baseline, and not checked: {}.", new.join(", ")))
}

/// Operations that the run no longer has.
fn gone(before: &Baseline, after: &Baseline) -> Option<String> {
    let mut gone: Vec<&str> = Vec::new();
    for old in &before.variants {
        let Some(new) = after.variants.iter().find(|variant| variant.variant == old.variant) else { continue };
        let has = |service: &str, operation: &str| {
            new.operations.iter().any(|one| one.service == service && one.operation == operation)
        };
        let missing = old.operations.iter().filter(|one| !has(&one.service, &one.operation));
        gone.extend(missing.map(|one| one.operation.as_str()));
    }
    gone.sort_unstable();
    gone.dedup();
    (!gone.is_empty()).then(|| {
        let names = few(gone.iter().map(|name| (*name).to_owned()).collect());
        format!("In the baseline, but too rare now to be checked: {names}.")
    })
}
