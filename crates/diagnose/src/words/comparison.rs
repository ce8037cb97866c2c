//! Texts of limits of a comparison.

use narrows_model::caveat::ComparisonCaveat::{
    self, BaselineOfOtherExperiment, BaselineOfOtherMachine, ClocksDiffer, ClosedLoad, DifferentErrors,
    DifferentExperiments, DifferentMachines, DifferentRuns, DifferentUsers, DoubtfulTrials, MeasuredInTurn,
    MeasuredOnce, NoFinishedTrial, NotInBaseline, NotInterleaved, TooRareNow,
};
use narrows_model::caveat::Skew;
use narrows_model::proof::Quantity;
use narrows_model::units;

use crate::baseline::shown;

/// Maximum number of trials or operations that a caveat names.
const NAMED_MAX: usize = 3;

/// Text of a limit: one whole sentence or two.
pub fn comparison_caveat(caveat: &ComparisonCaveat) -> String {
    match caveat {
        MeasuredOnce { sides, deviation, is_observed } => {
            let repeat = if *is_observed { "" } else { "; with `--repeat 5`, smaller changes are seen" };
            format!(
                "Measured once: {}. The intervals assume a standard deviation of {} between trials{repeat}.",
                sides.join(" and "),
                units::percent(*deviation)
            )
        }
        NoFinishedTrial { side } => format!("{side} has no finished trial, so nothing of it can be compared."),
        DifferentRuns => {
            "The two are of different runs: what else differed between them, such as other programs on the \
                          machine, is not told apart from what was changed."
                .into()
        }
        DifferentMachines => "The two ran on different machines, so times cannot be compared.".into(),
        DifferentExperiments { before, after } => {
            format!("The two are of different experiments, {before} and {after}.")
        }
        MeasuredInTurn { before, after } => format!(
            "{before} and {after} were always measured in the same order, so a machine that grows steadily slower or faster \
             adds to the difference. `narrows run --compare` randomises the order."
        ),
        NotInterleaved { before, after } => format!(
            "The trials of {before} and {after} were not interleaved: whatever else changed between them is part of the \
             difference. `narrows run --compare` interleaves them."
        ),
        ClosedLoad { before: (before, before_rate), after: (after, after_rate) } => format!(
            "The load is closed, so the rates are not equal: {before} completed {}, {after} {}. Latency at an equal rate \
             needs an open load.",
            Quantity::Rate.shown(*before_rate),
            Quantity::Rate.shown(*after_rate)
        ),
        DifferentUsers { before, after } => format!("The loads differ: {before} users before, {after} after."),
        DifferentErrors { before: (before, before_share), after: (after, after_share) } => format!(
            "Of the requests of {before} {} failed, of {after} {}: latencies are those of successful responses only.",
            units::percent(*before_share),
            units::percent(*after_share)
        ),
        DoubtfulTrials { trials, reason } => format!(
            "The figures of {} are doubtful; {}: {reason}",
            few(trials),
            trials.first().map_or("", String::as_str)
        ),
        BaselineOfOtherExperiment => {
            "The baseline is of another experiment, so a difference may come from the test itself.".into()
        }
        BaselineOfOtherMachine { before, after } => format!(
            "The baseline is of another machine ({}; now {}), so times cannot be compared.",
            shown(before),
            shown(after)
        ),
        NotInBaseline { variants } => format!("Not in the baseline, and not checked: {}.", variants.join(", ")),
        ClocksDiffer { side, clocks } => {
            let mut named: Vec<String> = clocks.iter().take(NAMED_MAX).map(of_clock).collect();
            if clocks.len() > NAMED_MAX {
                named.push(format!("and so on for {} more pairs of services", clocks.len() - NAMED_MAX));
            }
            format!(
                "Clocks differ in {side}: {}. The ranking of services is corrected for it: spans are moved into the calls \
                 that they handle.",
                named.join("; ")
            )
        }
        TooRareNow { operations } => {
            format!("In the baseline, but too rare now to be checked: {}.", few(operations))
        }
    }
}

fn of_clock(skew: &Skew) -> String {
    let direction = if skew.ahead_ns > 0.0 { "ahead of" } else { "behind" };
    let apart = units::duration(skew.ahead_ns.abs());
    format!("that of {} is {apart} {direction} that of {}", skew.callee, skew.caller)
}

/// The first names, and the number of others.
fn few(names: &[String]) -> String {
    let (named, others) = names.split_at(names.len().min(NAMED_MAX));
    match others.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trials_are_named_and_the_others_counted() {
        let doubtful = |names: &[&str]| {
            let trials = names.iter().map(|name| (*name).to_owned()).collect();
            comparison_caveat(&DoubtfulTrials { trials, reason: "It was late.".into() })
        };
        assert_eq!(doubtful(&["a"]), "The figures of a are doubtful; a: It was late.");
        assert_eq!(doubtful(&["a", "b", "c", "d"]), "The figures of a, b, c and 1 more are doubtful; a: It was late.");
    }
}
