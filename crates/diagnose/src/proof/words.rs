//! A comparison in sentences: the verdict, and what limits it.

use narrows_model::proof::{LoadShape, Order, Proof, Quantity, QuantityChange, REPEATS_MAX, Ruling};
use narrows_model::run::Verdict;
use narrows_model::units;

use super::Trials;

/// Shares of failed requests that differ by this much are worth a caveat.
const ERRORS_APART: f64 = 0.01;
/// Trials that a caveat names.
const NAMED_MAX: usize = 3;

pub(super) fn sentence(proof: &Proof) -> String {
    let (before, after) = (&proof.before, &proof.after);
    let margin = units::percent(proof.margin);
    let seen = seen(proof);
    match proof.verdict {
        Ruling::Faster if proof.by == Quantity::Cpu => format!("{after} uses less CPU than {before}: {seen}."),
        Ruling::Slower if proof.by == Quantity::Cpu => format!("{after} uses more CPU than {before}: {seen}."),
        Ruling::Faster => format!("{after} is faster than {before}: {seen}."),
        Ruling::Slower => format!("{after} is slower than {before}: {seen}."),
        Ruling::NoDifference => {
            format!("No difference larger than {margin} between {before} and {after}: {seen}.")
        }
        Ruling::CannotTell => {
            format!("Cannot tell whether {after} is slower or faster than {before}: {seen}. {}", next(proof))
        }
    }
}

/// `mean latency +7.3 % (95 % interval +3.1 to +12 %), 6 pairs of trials`.
fn seen(proof: &Proof) -> String {
    let change = proof.quantities.iter().find(|change| change.quantity == proof.by);
    let level = units::percent(1.0 - proof.error_rate);
    let figure = change.map_or_else(
        || proof.by.words().to_owned(),
        |change| match change.interval {
            Some(interval) => {
                let (low, high) = (signed(interval.low), signed(interval.high));
                let low = low.trim_end_matches(" %");
                format!("{} {} ({level} interval {low} to {high})", proof.by.words(), signed(change.ratio))
            }
            None => format!("{} {}", proof.by.words(), signed(change.ratio)),
        },
    );
    format!("{figure}, {}", trials(proof))
}

fn trials(proof: &Proof) -> String {
    let (before, after) = proof.design.trials;
    match (proof.design.order, proof.design.planned) {
        (Order::Apart, _) if before == after => format!("{before} trials each"),
        (Order::Apart, _) => format!("{before} trials and {after} trials"),
        (_, Some(planned)) if planned > before => format!("{before} of {planned} planned pairs of trials"),
        _ => format!("{before} pairs of trials"),
    }
}

/// What would make it clear.
fn next(proof: &Proof) -> String {
    let margin = units::percent(proof.margin);
    match proof.repeats_wanted {
        Some(repeats) => format!("{repeats} trials of each would show a difference of {margin}."),
        None => format!(
            "More than {REPEATS_MAX} trials of each would be needed to show a difference of {margin}: make the trials longer, or keep \
             other programs off the machine."
        ),
    }
}

fn signed(ratio: f64) -> String {
    let sign = if ratio < 0.0 { "−" } else { "+" };
    format!("{sign}{}", units::percent(ratio.abs()))
}

pub(super) fn caveats(proof: &Proof, (old, new): (&Trials<'_>, &Trials<'_>)) -> Vec<String> {
    [order(proof), closed(proof), users((old, new)), failed(proof), doubtful((old, new))]
        .into_iter()
        .flatten()
        .collect()
}

fn order(proof: &Proof) -> Option<String> {
    let (before, after) = (&proof.before, &proof.after);
    match proof.design.order {
        Order::Randomised { .. } => None,
        Order::InTurn => Some(format!(
            "{before} and {after} were always measured in the same order, so a machine that grows steadily slower or faster \
             adds to the difference. `narrows run --compare` randomises the order."
        )),
        Order::Apart => Some(format!(
            "The trials of {before} and {after} were not interleaved: whatever else changed between them is part of the \
             difference. `narrows run --compare` interleaves them."
        )),
    }
}

fn closed(proof: &Proof) -> Option<String> {
    if proof.design.load == LoadShape::Open {
        return None;
    }
    let rate: &QuantityChange = proof.quantities.iter().find(|change| change.quantity == Quantity::Rate)?;
    let shown = |value: f64| Quantity::Rate.shown(value);
    Some(format!(
        "The load is closed, so the rates are not equal: {} completed {}, {} {}. Latency at an equal rate needs an open load.",
        proof.before,
        shown(rate.before),
        proof.after,
        shown(rate.after)
    ))
}

/// Of closed loads with different numbers of users.
fn users((old, new): (&Trials<'_>, &Trials<'_>)) -> Option<String> {
    let most = |trials: &Trials<'_>| trials.iter().flat_map(|trial| &trial.levels).map(|level| level.vus).max();
    let (old, new) = (most(old)?, most(new)?);
    (old != new).then(|| format!("The loads differ: {old} users before, {new} after."))
}

fn failed(proof: &Proof) -> Option<String> {
    let (before, after) = proof.errors;
    ((before - after).abs() >= ERRORS_APART).then(|| {
        format!(
            "Of the requests of {} {} failed, of {} {}: latencies are those of successful responses only.",
            proof.before,
            units::percent(before),
            proof.after,
            units::percent(after)
        )
    })
}

fn doubtful((old, new): (&Trials<'_>, &Trials<'_>)) -> Option<String> {
    let doubts = || old.iter().chain(new).filter_map(|trial| Some((trial, trial.doubt.as_ref()?)));
    let doubts = || doubts().filter(|(_, (verdict, _))| *verdict == Verdict::Doubtful);
    let (first, (_, reason)) = doubts().next()?;
    let names: Vec<&str> = doubts().map(|(trial, _)| trial.label.as_str()).take(NAMED_MAX).collect();
    let more = doubts().count() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("The figures of {}{more} are doubtful; {}: {reason}", names.join(", "), first.label))
}
