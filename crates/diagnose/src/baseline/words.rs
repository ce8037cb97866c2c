//! Result of a check in a sentence.

use narrows_model::baseline::{Check, FigureCheck, Grade, Measure, VariantCheck};
use narrows_model::diff::Fate;
use narrows_model::units;

/// Figures and findings that the sentence names.
const NAMED_MAX: usize = 3;

pub(super) fn sentence(check: &Check) -> String {
    let worse = each(check).filter(|(_, figure)| figure.grade == Grade::Worse);
    let worse: Vec<String> = worse.map(|(variant, figure)| clause_of(variant, figure)).collect();
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

/// A worse figure as a clause.
fn clause_of(variant: &VariantCheck, figure: &FigureCheck) -> String {
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
