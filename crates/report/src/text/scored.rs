//! Predicted beside measured, for each change that a later variant made to an earlier one.

use narrows_model::comparison::Outcome;
use narrows_model::prediction::{Estimate, Scored};
use narrows_model::units;

use super::paint::{Paint, clean};
use super::prediction::names;
use super::table::{Align, render};
use crate::figures::{plural, ratio};

/// Changes shown at most; the page has more.
const ROWS_MAX: usize = 12;

/// The table; empty when no variant made a change that was predicted.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    table(&outcome.scored.iter().collect::<Vec<_>>(), paint, width)
}

/// The same of each variant and the one right after it, which is how a series of fixes is read.
pub(super) fn steps(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let variants = &outcome.comparison.variants;
    let place = |name: &str| variants.iter().position(|variant| variant.variant == name);
    let is_step = |scored: &&Scored| place(&scored.before).map(|at| at + 1) == place(&scored.after);
    table(&outcome.scored.iter().filter(is_step).collect::<Vec<_>>(), paint, width)
}

fn table(scored: &[&Scored], paint: Paint, width: usize) -> String {
    if scored.is_empty() {
        return String::new();
    }
    let names = ["predicted → measured", "change", "rate", "error", "mean", "error", "90 %"];
    let align = |at: usize| if at < 2 || at == names.len() - 1 { Align::Left } else { Align::Right };
    let header: Vec<(String, Align)> =
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), align(at))).collect();
    let rows: Vec<Vec<String>> = scored.iter().take(ROWS_MAX).filter_map(|one| row(one)).collect();
    let mut out = render(&header, &rows, paint, width);
    if let Some(more) = scored.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("{}\n", paint.dim(&format!("{} in the page", plural(more, "more", "more"))));
    }
    out
}

fn row(scored: &Scored) -> Option<Vec<String>> {
    let prediction = &scored.prediction;
    let measured = &prediction.measured.as_ref()?.figures;
    let (rate, mean) = (prediction.after.rate, prediction.after.mean_ns);
    let beside = |estimate: Estimate, measured: f64, shown: fn(f64) -> String| {
        format!("{} → {}", shown(estimate.value), shown(measured))
    };
    Some(vec![
        clean(&format!("{} → {}", scored.before, scored.after)),
        changes(scored),
        beside(rate, measured.rate, units::rate),
        ratio(rate.error(measured.rate)),
        beside(mean, measured.mean_ns, units::duration),
        ratio(mean.error(measured.mean_ns)),
        held(rate.holds(measured.rate) && mean.holds(measured.mean_ns)).to_owned(),
    ])
}

/// Whether the 90 % intervals hold what was measured.
fn held(is_held: bool) -> &'static str {
    if is_held { "✓" } else { "✗" }
}

/// The names of the changes, and whether the model should be trusted.
pub(crate) fn changes(scored: &Scored) -> String {
    let prediction = &scored.prediction;
    let trust = if prediction.is_trusted() { "" } else { " (not to be trusted)" };
    format!("{}{trust}", names(prediction))
}

#[cfg(test)]
mod tests {
    use super::super::Color;
    use super::*;
    use crate::fixture;

    #[test]
    fn what_was_predicted_stands_beside_what_was_measured() {
        let mut outcome = fixture::outcome();
        assert_eq!(all(&outcome, Paint(Color::Never), 120), "");
        outcome.scored = vec![fixture::scored("as-is", "fixed")];
        insta::assert_snapshot!(all(&outcome, Paint(Color::Never), 120), @r"
        predicted → measured  change                 rate   error               mean  error  90 %
        ─────────────────────────────────────────────────────────────────────────────────────────
        as-is → fixed         join-queries  700/s → 720/s  −2.8 %  9.00 ms → 12.0 ms  −25 %  ✗
        ");
        outcome.scored = vec![fixture::scored("as-is", "fixed"); ROWS_MAX + 2];
        let text = all(&outcome, Paint(Color::Never), 120);
        assert!(text.ends_with("2 more in the page\n"), "{text}");
    }

    #[test]
    fn steps_are_of_variants_that_follow_each_other() {
        let mut outcome = fixture::outcome();
        let names: Vec<String> = outcome.comparison.variants.iter().map(|variant| variant.variant.clone()).collect();
        outcome.scored = vec![fixture::scored(&names[0], &names[1]), fixture::scored(&names[1], &names[0])];
        let text = steps(&outcome, Paint(Color::Never), 120);
        assert!(text.contains(&format!("{} → {}", names[0], names[1])), "{text}");
        assert!(!text.contains(&format!("{} → {}", names[1], names[0])), "{text}");
    }
}
