//! Predicted beside measured, for each change that a later variant made to an earlier one.

use narrows_model::comparison::Outcome;
use narrows_model::prediction::{Estimate, Scored};
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::figures::ratio;
use crate::text::scored_changes;

/// Rows at most.
const ROWS_MAX: usize = 100;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 200;

/// The section; empty when no variant made a change that was predicted.
pub(super) fn section(outcome: &Outcome) -> String {
    let rows: String = outcome.scored.iter().take(ROWS_MAX).filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"predicted\"><h2>Predicted and measured</h2><p class=\"note\"><i>Predicted</i> from the first variant \
         alone, with its 90 % interval. <b>Measured</b>: the second variant, which made the change.</p><div class=\"scroll\">\
         <table class=\"wide beside\"><thead><tr><th>variants</th><th>change</th><th colspan=\"3\" class=\"n\">throughput</th>\
         <th colspan=\"3\" class=\"n\">mean latency</th></tr></thead><tbody>{rows}</tbody></table></div></section>\n"
    )
}

fn row(scored: &Scored) -> Option<String> {
    let prediction = &scored.prediction;
    let measured = &prediction.measured.as_ref()?.figures;
    Some(format!(
        "<tr><th scope=\"row\">{} → {}</th><td>{}</td>{}{}</tr>",
        Esc(cut(&scored.before, NAME_CHARS_MAX)),
        Esc(cut(&scored.after, NAME_CHARS_MAX)),
        Esc(scored_changes(scored)),
        cells(prediction.after.rate, measured.rate, units::rate),
        cells(prediction.after.mean_ns, measured.mean_ns, units::duration)
    ))
}

fn cells(predicted: Estimate, measured: f64, shown: fn(f64) -> String) -> String {
    let held = if predicted.holds(measured) { "✓" } else { "✗" };
    format!(
        "<td class=\"n\"><i>{}</i><small>{} to {}</small></td><td class=\"n\"><b>{}</b></td><td class=\"n\">{} {held}</td>",
        Esc(shown(predicted.value)),
        Esc(shown(predicted.low)),
        Esc(shown(predicted.high)),
        Esc(shown(measured)),
        Esc(ratio(predicted.error(measured)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn rows_have_both_and_names_stay_text() {
        let mut outcome = fixture::outcome();
        assert_eq!(section(&outcome), "");
        outcome.scored = vec![fixture::scored("<img src=x>", "fixed")];
        let page = section(&outcome);
        assert!(page.contains("&lt;img src=x> → fixed") || page.contains("&lt;img src=x&gt; → fixed"), "{page}");
        assert!(page.contains("<td>join-queries</td>") && !page.contains("<img"), "{page}");
        assert_eq!(page.matches("<small>").count(), 2, "{page}");
    }
}
