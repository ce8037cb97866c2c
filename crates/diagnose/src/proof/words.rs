//! Verdict of a comparison in sentences.

use narrows_model::proof::{Order, Proof, Quantity, REPEATS_MAX, Ruling};
use narrows_model::units;

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

/// Next step that would make it clear.
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
