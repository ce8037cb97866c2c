//! The limits of each trial, as rows for the text and the page.

use narrows_model::comparison::Outcome;
use narrows_model::limit::{LevelSummary, Limit, MachineCpu};
use narrows_model::units;

/// A trial's limit.
#[derive(Debug)]
pub(crate) struct TrialLimit<'a> {
    pub(crate) label: String,
    pub(crate) limit: &'a Limit,
}

/// The limits of all trials that have a level of load, in order.
pub(crate) fn limits(outcome: &Outcome) -> Vec<TrialLimit<'_>> {
    let all = outcome.evidence.trials.iter().zip(&outcome.limits);
    all.map(|(evidence, limit)| TrialLimit { label: evidence.trial.label(), limit })
        .filter(|one| !one.limit.levels.is_empty())
        .collect()
}

/// The limit of a trial, as the rest of a sentence after "is".
pub(crate) fn sentence(limit: &Limit) -> String {
    let advice = &limit.advice;
    let advice: String = advice
        .chars()
        .next()
        .map_or_else(String::new, |first| format!(" {}{}.", first.to_uppercase(), &advice[first.len_utf8()..]));
    let reason = if limit.reason.is_empty() { String::new() } else { format!(": {}", limit.reason) };
    format!("{}{reason}.{advice}", limit.headline)
}

/// The cells of a level: load, throughput, mean, p50, p95, errors, busiest service, machine.
pub(crate) const COLUMNS: [&str; 8] =
    ["load", "throughput", "mean", "p50", "p95", "errors", "busiest service", "machine"];

/// The cells of a level in the order of [`COLUMNS`].
pub(crate) fn cells(level: &LevelSummary) -> [String; COLUMNS.len()] {
    let time = |ns: f64| if ns > 0.0 { units::duration(ns) } else { "–".to_owned() };
    let errors = if level.error_rate > 0.0 { units::percent(level.error_rate) } else { "0".to_owned() };
    [
        level.label.trim_matches(['“', '”']).to_owned(),
        // A dash stands for successes without a rate: they came too close together, or after the load.
        if level.rate > 0.0 || level.mean_ns <= 0.0 { units::rate(level.rate) } else { "–".to_owned() },
        time(level.mean_ns),
        time(level.p50_ns),
        time(level.p95_ns),
        errors,
        busiest(level),
        level.machine.map_or_else(|| "–".to_owned(), |machine| units::percent(machine.used_share())),
    ]
}

/// The service that uses the largest share of its CPU, with its cores.
fn busiest(level: &LevelSummary) -> String {
    let busiest = level.services.iter().max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
    busiest.map_or_else(|| "–".to_owned(), |one| format!("{} {:.2} cores", one.service, one.cores))
}

/// A part of the machine's CPU: who had it, cores, and its CSS class.
pub(crate) fn parts(machine: &MachineCpu) -> [(&'static str, f64, &'static str); 4] {
    [
        ("services", machine.services, "services"),
        ("Narrows", machine.narrows, "narrows"),
        ("other programs", machine.others, "others"),
        ("hypervisor", machine.stolen, "stolen"),
    ]
}
