//! How accurate predictions are, over many runs, as a Markdown page: what `narrows predict --score` prints, and what
//! `docs/benchmarks/predictions.md` holds.

use narrows_model::prediction::{Accuracy, Estimate, ScoreCard, Scored};
use narrows_model::printable::is_obeyed;
use narrows_model::units;

use crate::figures::{plural, ratio};
use crate::text::scored_changes;

/// Every prediction beside what was measured, each with the name of its run, and the accuracy of all. Ends with a line feed.
pub fn score(scored: &[(String, Scored)]) -> String {
    let all: Vec<Scored> = scored.iter().map(|(_, one)| one.clone()).collect();
    let card = ScoreCard::of(&all);
    let rows: String = scored.iter().filter_map(|(run, one)| row(run, one)).collect();
    format!(
        "| run | change | throughput, predicted → measured | error | mean latency, predicted → measured | error |\n\
         |---|---|---:|---:|---:|---:|\n{rows}\n{}",
        summary(&card)
    )
}

fn row(run: &str, scored: &Scored) -> Option<String> {
    let prediction = &scored.prediction;
    let measured = &prediction.measured.as_ref()?.figures;
    let (rate, mean) = (
        cells(prediction.after.rate, measured.rate, units::rate),
        cells(prediction.after.mean_ns, measured.mean_ns, units::duration),
    );
    let name = format!("{run} {} → {}", scored.before, scored.after);
    Some(format!("| {} | {} | {rate} | {mean} |\n", escaped(&name), escaped(&scored_changes(scored))))
}

/// A value outside of the 90 % interval is marked.
fn cells(predicted: Estimate, measured: f64, shown: fn(f64) -> String) -> String {
    let mark = if predicted.holds(measured) { "" } else { " ✗" };
    format!("{} → {} | {}{mark}", shown(predicted.value), shown(measured), ratio(predicted.error(measured)))
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(is_obeyed, " ")
}

fn summary(card: &ScoreCard) -> String {
    let held = card.all.held.map_or_else(|| "–".to_owned(), units::percent);
    format!(
        "{}. ✗ marks a figure outside of its 90 % interval; the intervals hold {held} of them.\n\n\
         | over | predictions | median error of throughput | median error of mean latency |\n|---|---:|---:|---:|\n{}{}{}{}{}",
        plural(card.all.count, "prediction", "predictions"),
        line("all", card.all),
        line("those to be trusted", card.trusted),
        line("those that simple rules make too: Narrows", card.comparable),
        line("– the rule “a fix removes its share of the latency”", card.share_removed),
        line("– Amdahl's law", card.amdahl)
    )
}

fn line(name: &str, accuracy: Accuracy) -> String {
    if accuracy.count == 0 {
        return format!("| {name} | 0 | – | – |\n");
    }
    let (rate, mean) = (units::percent(accuracy.rate_error), units::percent(accuracy.mean_error));
    format!("| {name} | {} | {rate} | {mean} |\n", accuracy.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_score_is_a_table_with_its_summary() {
        let scored = [("shop".to_owned(), fixture::scored("as-is", "fixed"))];
        insta::assert_snapshot!(score(&scored), @r"
        | run | change | throughput, predicted → measured | error | mean latency, predicted → measured | error |
        |---|---|---:|---:|---:|---:|
        | shop as-is → fixed | join-queries | 700/s → 720/s | −2.8 % | 9.00 ms → 12.0 ms | −25 % ✗ |

        1 prediction. ✗ marks a figure outside of its 90 % interval; the intervals hold 50 % of them.

        | over | predictions | median error of throughput | median error of mean latency |
        |---|---:|---:|---:|
        | all | 1 | 2.8 % | 25 % |
        | those to be trusted | 1 | 2.8 % | 25 % |
        | those that simple rules make too: Narrows | 1 | 2.8 % | 25 % |
        | – the rule “a fix removes its share of the latency” | 1 | 25 % | 75 % |
        | – Amdahl's law | 1 | 18 % | 58 % |
        ");
        assert!(score(&[]).contains("| all | 0 | – | – |"));
    }
}
