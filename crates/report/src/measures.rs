//! Formats published figures and their measured counterparts, the same in text and page.

use narrows_model::comparison::Outcome;
use narrows_model::published::{Beside, BesideCell, Measure, Standing};
use narrows_model::units;

use crate::figures::number;

/// Name of a row.
pub(crate) fn name(row: &Beside) -> String {
    let whole = row.metric.as_deref().unwrap_or_else(|| word(row.measure));
    match &row.part {
        None => whole.to_owned(),
        Some(part) => format!("{} of {}", whole.trim_end_matches(" of all services"), part.name()),
    }
}

fn word(measure: Measure) -> &'static str {
    match measure {
        Measure::Rate => "throughput",
        Measure::Requests => "requests",
        Measure::Failed => "failed requests",
        Measure::ErrorRate => "share that failed",
        Measure::Mean => "mean duration",
        Measure::P50 => "median duration",
        Measure::P95 => "95 % duration",
        Measure::P99 => "99 % duration",
        Measure::Cpu => "CPU of all services",
        Measure::Memory => "memory of all services",
        Measure::CpuShare => "CPU of the busiest replica",
        Measure::RequestShare => "requests of the busiest replica",
        Measure::Completed => "completed",
        Measure::Throttled => "throttled",
        Measure::CallsPerOperation => "calls per operation",
        Measure::AttemptsPerOperation => "attempts per operation",
        Measure::ChargePerOperation => "RU per operation",
        Measure::Metric => "metric",
    }
}

/// A value in the measure's unit; a dash when there is none.
pub(crate) fn value(measure: Measure, value: Option<f64>) -> String {
    match (value, measure) {
        (Some(value), _) if !value.is_finite() => "unknown".to_owned(),
        (Some(value), Measure::Rate) => units::rate(value),
        (Some(value), Measure::ErrorRate | Measure::CpuShare | Measure::RequestShare) => share(value),
        (Some(value), measure) if measure.is_duration() => units::duration(value),
        (Some(value), Measure::Requests | Measure::Failed | Measure::Completed | Measure::Throttled) => {
            units::count(value.max(0.0).round() as u64)
        }
        (Some(value), Measure::Cpu) => units::cores(value),
        (Some(value), Measure::Memory) => units::bytes(value),
        // Metrics have every unit, so what is below one keeps its digits.
        (Some(value), Measure::Metric) if value.abs() < 1.0 => format!("{value:.3}"),
        (Some(value), _) => number(value),
        (None, _) => "–".to_owned(),
    }
}

/// A share in per cent; one that would be written as nothing keeps two digits: `0.0017 %`.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent <= 0.0 || percent >= 0.05 {
        return units::percent(value);
    }
    let decimals = (-percent.log10()).ceil() as usize + 1;
    format!("{percent:.decimals$} %")
}

/// Word for the standing of a measured figure and its reason; `None` for a free figure.
pub(crate) fn standing(standing: &Standing) -> Option<(&'static str, &str)> {
    match standing {
        Standing::Free => None,
        Standing::Fitted(by) => Some(("fitted", by)),
        Standing::Given(by) => Some(("given", by)),
        Standing::Restated(name) => Some(("same as", name)),
    }
}

/// True if its ratio is shown beside the value.
pub(crate) fn has_ratio(measure: Measure) -> bool {
    matches!(measure, Measure::Rate | Measure::Mean | Measure::Cpu | Measure::Memory | Measure::Metric)
}

/// The cell that a cell's ratio is to: the one it names, or else the first; `None` where that is itself or not there.
pub(crate) fn base(row: &Beside, index: usize) -> Option<&BesideCell> {
    row.cells.get(base_at(row, index)?)
}

/// The position of [`base`].
pub(crate) fn base_at(row: &Beside, index: usize) -> Option<usize> {
    let base = match &row.cells.get(index)?.ratio_to {
        Some(variant) => row.cells.iter().position(|cell| cell.variant == *variant)?,
        None => 0,
    };
    (base != index).then_some(base)
}

/// The value ÷ that of [`base`], such as `×2.21`; `None` if one of them is missing.
pub(crate) fn ratio(row: &Beside, index: usize, of: fn(&BesideCell) -> Option<f64>) -> Option<String> {
    let base = of(base(row, index)?).filter(|base| *base > 0.0)?;
    let ratio = of(row.cells.get(index)?)? / base;
    ratio.is_finite().then(|| format!("×{}", units::three(ratio)))
}

/// A sentence naming the variants with ratios to a variant other than the first; `None` if no variant has them.
pub(crate) fn bases(rows: &[Beside]) -> Option<String> {
    let cells = rows.first().map_or(&[][..], |row| &row.cells);
    let named = |cell: &BesideCell| {
        let base = cell.ratio_to.as_ref().filter(|base| **base != cell.variant)?;
        Some(format!("{} to {base}", cell.variant))
    };
    let named: Vec<String> = cells.iter().filter_map(named).collect();
    (!named.is_empty()).then(|| format!("Ratios are to the first variant, of {}.", named.join(", of ")))
}

/// Meaning of durations if the experiment names no operation.
pub(crate) const OF_CLIENTS: &str = "Durations are those that clients saw.";

/// Source of the published figures; empty if the experiment does not state it.
pub(crate) fn source(outcome: &Outcome) -> &str {
    outcome.notes.published.as_ref().map_or("", |published| published.source.as_str())
}

/// The operation that durations and calls are of, such as `orders GET /orders`; `None` if it is not given.
pub(crate) fn operation(outcome: &Outcome) -> Option<String> {
    let published = outcome.notes.published.as_ref()?;
    let name = published.operation.as_deref()?;
    Some(published.service.as_deref().map_or_else(|| name.to_owned(), |service| format!("{service} {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn values_follow_their_measure() {
        let cases = [
            (Measure::Rate, Some(19.0), "19.0/s"),
            (Measure::Mean, Some(669e6), "669 ms"),
            (Measure::Completed, Some(9800.4), "9,800"),
            (Measure::Throttled, Some(-1.0), "0"),
            (Measure::ErrorRate, Some(0.000_017), "0.0017 %"),
            (Measure::CpuShare, Some(0.87), "87 %"),
            (Measure::ChargePerOperation, Some(3.39), "3.39"),
            (Measure::CallsPerOperation, None, "–"),
            (Measure::Metric, Some(0.0136), "0.014"),
            (Measure::Metric, Some(445.0), "445"),
            (Measure::P99, Some(f64::NAN), "unknown"),
        ];
        for (measure, given, expected) in cases {
            assert_eq!(value(measure, given), expected, "{measure:?}");
        }
    }

    #[test]
    fn ratios_are_to_the_first_variant() {
        let mut row = drones::outcome().beside[0].clone();
        let published = |row: &Beside, index| ratio(row, index, |cell| cell.published);
        assert_eq!((published(&row, 0), published(&row, 2).as_deref()), (None, Some("×2.21")));
        assert_eq!(published(&row, 9), None);
        assert_eq!(name(&row), "throughput");
        assert_eq!(bases(std::slice::from_ref(&row)), None);
        let [second, third] = [1, 2].map(|at| row.cells[at].variant.clone());
        row.cells[2].ratio_to = Some(second.clone());
        assert_eq!(published(&row, 2).as_deref(), Some("×1.83"));
        let sentence = format!("Ratios are to the first variant, of {third} to {second}.");
        assert_eq!(bases(std::slice::from_ref(&row)), Some(sentence));
        row.cells[2].ratio_to = Some(third);
        assert_eq!((published(&row, 2), bases(std::slice::from_ref(&row))), (None, None));
        row.cells[2].ratio_to = None;
        row.metric = Some("queue.length".to_owned());
        assert_eq!(name(&row), "queue.length");
        row.cells[0].published = Some(0.0);
        assert_eq!(published(&row, 2), None);
        row.cells.clear();
        assert_eq!(published(&row, 0), None);
    }
}
