//! Gains of changes, as text: a table of the changes, what they rest on, what speaks against them, the sentence.

use narrows_diagnose::words::{assumption, doubt};
use narrows_model::prediction::{
    BaselineLevel, Estimate, Figures, Ladder, LevelForecast, Prediction, Predictions, Resource,
};
use narrows_model::units;

use crate::figures::ratio;

use super::paint::Paint;
use super::{Style, WIDTH_MIN, sections};
use crate::section::{Block, Column, Line, Phrase, Row, Section, Table, Tone};
use crate::sections::names;

/// Said in place of a limit that is not known.
const NONE: &str = "–";

/// The text of `narrows predict` for one trial. Ends with a line feed.
pub fn predictions(predictions: &Predictions, style: Style) -> String {
    let all = &predictions.predictions;
    let tables = [changes(all), levels(all), measured(all), ladder(&predictions.ladder, all)];
    let mut blocks = vec![vec![Block::Heading(Phrase::from(&predictions.trial))]];
    blocks.extend(tables.into_iter().map(|table| vec![Block::Table(table)]));
    blocks.push(vec![Block::Lines(notes(predictions))]);
    let sentences = [&predictions.sentence, &predictions.ladder.sentence].map(String::as_str).join(" ");
    blocks.push(vec![Block::Paragraph(Phrase::from(sentences.trim_end()), Tone::Strong)]);
    let all: Vec<Section> = blocks.into_iter().map(Section::untitled).collect();
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

/// The changes beside the system as it is.
fn changes(predictions: &[Prediction]) -> Table {
    let Some(first) = predictions.first() else { return Table::default() };
    let mut columns = vec![Column::left("change")];
    columns.extend(["rate", "90 %", "mean", "90 %", "p95"].map(Column::right));
    columns.push(Column::left("then limited by"));
    let as_it_is = Row::new([
        "as it is".to_owned(),
        units::rate(first.now.rate),
        String::new(),
        units::duration(first.now.mean_ns),
        String::new(),
        units::duration(first.now.p95_ns),
        limit(first.limit_now.as_ref()),
    ]);
    let row = |at: usize, one: &Prediction| {
        let trust = if one.is_trusted() { "" } else { " (not to be trusted)" };
        Row::new([
            format!("{}{}{trust}", number(at, predictions.len()), names(one)),
            units::rate(one.after.rate.value),
            interval(one.after.rate, units::rate),
            units::duration(one.after.mean_ns.value),
            interval(one.after.mean_ns, units::duration),
            units::duration(one.after.p95_ns.value),
            limit(one.limit_after.as_ref()),
        ])
    };
    let rows = predictions.iter().enumerate().map(|(at, one)| row(at, one));
    Table::new(columns, std::iter::once(as_it_is).chain(rows).collect())
}

/// The levels of the load; only of a single change, for which there is room. Once it was measured, its throughput and mean
/// latency stand beside those that were predicted.
fn levels(predictions: &[Prediction]) -> Table {
    let [one] = predictions else { return Table::default() };
    let measured = one.measured.as_ref().map(|measured| &measured.levels[..]).filter(|levels| !levels.is_empty());
    let figures: &[&str] = match measured {
        Some(_) => &["rate", "predicted", "measured", "mean", "predicted", "measured"],
        None => &["rate", "predicted", "mean", "predicted", "p95", "predicted"],
    };
    let columns = std::iter::once(Column::left("load")).chain(figures.iter().copied().map(Column::right)).collect();
    let rows = match measured {
        Some(measured) => {
            one.levels.iter().zip(measured).map(|(level, measured)| measured_row(level, measured)).collect()
        }
        None => one.levels.iter().map(predicted_row).collect(),
    };
    Table::new(columns, rows)
}

fn predicted_row(level: &LevelForecast) -> Row {
    let [rate, mean, p95] = written(level.now.as_ref());
    let after = &level.after;
    Row::new([
        level.label.clone(),
        rate,
        units::rate(after.rate.value),
        mean,
        units::duration(after.mean_ns.value),
        p95,
        units::duration(after.p95_ns.value),
    ])
}

fn measured_row(level: &LevelForecast, measured: &Figures) -> Row {
    let [rate, mean, _] = written(level.now.as_ref());
    let [rate_measured, mean_measured, _] = written(Some(measured));
    Row::new([
        level.label.clone(),
        rate,
        units::rate(level.after.rate.value),
        rate_measured,
        mean,
        units::duration(level.after.mean_ns.value),
        mean_measured,
    ])
}

/// Throughput, mean and 95 % latency of a level.
fn written(figures: Option<&Figures>) -> [String; 3] {
    match figures {
        Some(figures) => [units::rate(figures.rate), units::duration(figures.mean_ns), units::duration(figures.p95_ns)],
        None => [NONE, NONE, NONE].map(str::to_owned),
    }
}

/// The changes in the order in which they gain most, each together with those before it.
fn ladder(ladder: &Ladder, singles: &[Prediction]) -> Table {
    if ladder.is_empty() {
        return Table::default();
    }
    let mut columns = vec![Column::left("in this order")];
    columns.extend(["rate", "90 %", "mean", "90 %"].map(Column::right));
    columns.push(Column::left("then limited by"));
    let row = |(at, step): (usize, &Prediction)| {
        let newest = step.changes().last().unwrap_or(&step.change);
        let single = singles.iter().position(|single| single.change == *newest);
        let name = match single {
            Some(at) => format!("{}{}", number(at, singles.len()), newest.kind.name()),
            None => newest.to_string(),
        };
        Row::new([
            format!("{} {name}", if at == 0 { "first" } else { "then" }),
            units::rate(step.after.rate.value),
            interval(step.after.rate, units::rate),
            units::duration(step.after.mean_ns.value),
            interval(step.after.mean_ns, units::duration),
            limit(step.limit_after.as_ref()),
        ])
    };
    Table::new(columns, ladder.steps.iter().enumerate().map(row).collect())
}

/// A figure, predicted and measured.
struct MeasuredFigure {
    name: String,
    figure: &'static str,
    predicted: Estimate,
    measured: f64,
    written: fn(f64) -> String,
}

/// Measured and predicted effects of each change.
fn measured(predictions: &[Prediction]) -> Table {
    let compared = predictions.iter().enumerate().filter_map(|(at, one)| Some((at, one, one.measured.as_ref()?)));
    let rows = compared.flat_map(|(at, one, measured)| {
        let name = format!("{}{}", number(at, predictions.len()), measured.trial);
        let (after, figures) = (&one.after, &measured.figures);
        let figure = |name: String, figure, predicted, measured, written| {
            MeasuredFigure { name, figure, predicted, measured, written }.row()
        };
        [
            figure(name, "rate", after.rate, figures.rate, units::rate),
            figure(String::new(), "mean", after.mean_ns, figures.mean_ns, units::duration),
            figure(String::new(), "p95", after.p95_ns, figures.p95_ns, units::duration),
        ]
    });
    let mut columns = vec![Column::left("then measured in")];
    columns.extend(["", "predicted", "90 %", "measured", "error"].map(Column::right));
    columns.push(Column::left("in 90 %"));
    Table::new(columns, rows.collect())
}

impl MeasuredFigure {
    fn row(self) -> Row {
        let written = self.written;
        Row::new([
            self.name,
            self.figure.to_owned(),
            written(self.predicted.value),
            interval(self.predicted, written),
            written(self.measured),
            ratio(self.predicted.error(self.measured)),
            if self.predicted.holds(self.measured) { "✓" } else { "✗" }.to_owned(),
        ])
    }
}

fn interval(estimate: Estimate, shown: fn(f64) -> String) -> String {
    format!("{} to {}", shown(estimate.low), shown(estimate.high))
}

fn limit(resource: Option<&Resource>) -> String {
    resource.map_or_else(|| NONE.to_owned(), |one| format!("{one} at {}", units::rate(one.rate_max)))
}

/// Notes on how well the model holds, on doubts, on assumptions, and on effects that are not predicted.
fn notes(predictions: &Predictions) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut note = |label: &str, text: &str| lines.push(Line::new(label, "", text));
    for (at, one) in predictions.predictions.iter().enumerate() {
        let because = one.because.map_or_else(String::new, |finding| format!(", suggested by {finding}"));
        let with: String = one.with.iter().map(|other| format!(" with {other}")).collect();
        note("change", &format!("{}{}{with}{because}", number(at, predictions.predictions.len()), one.change));
    }
    if predictions.baseline.len() > 1 {
        note("model", &reproduced(&predictions.baseline));
    }
    for (numbers, text) in shared(&predictions.predictions, |one| one.doubts.iter().map(doubt).collect()) {
        note("doubt", &said_of(&numbers, &text, predictions.predictions.len()));
    }
    let assumptions = |one: &Prediction| one.assumptions.iter().map(assumption).collect();
    for (numbers, text) in shared(&predictions.predictions, assumptions) {
        note("assumes", &said_of(&numbers, &text, predictions.predictions.len()));
    }
    for one in &predictions.not_predicted {
        note("left out", &format!("{}: {}", one.finding, one.because));
    }
    lines
}

/// Accuracy with which the model reproduces the run.
fn reproduced(baseline: &[BaselineLevel]) -> String {
    let off = |level: &BaselineLevel| (level.model_mean_ns / level.measured.mean_ns - 1.0).abs();
    let Some(worst) = baseline.iter().max_by(|a, b| off(a).total_cmp(&off(b))) else { return String::new() };
    format!(
        "It reproduces the mean latency at {} levels of the load within {}; furthest off at {}: {}, measured {}.",
        baseline.len(),
        units::percent(off(worst)),
        worst.label,
        units::duration(worst.model_mean_ns),
        units::duration(worst.measured.mean_ns)
    )
}

/// The number of a change before it; nothing before the only one.
fn number(at: usize, all: usize) -> String {
    if all > 1 { format!("{} ", at + 1) } else { String::new() }
}

/// Each sentence once, with the numbers of the changes that it is said of.
fn shared(predictions: &[Prediction], sentences: impl Fn(&Prediction) -> Vec<String>) -> Vec<(Vec<String>, String)> {
    let mut all: Vec<(Vec<String>, String)> = Vec::new();
    for (at, one) in predictions.iter().enumerate() {
        for sentence in sentences(one) {
            let number = (at + 1).to_string();
            match all.iter_mut().find(|(_, known)| *known == sentence) {
                Some((numbers, _)) if numbers.last() == Some(&number) => {}
                Some((numbers, _)) => numbers.push(number),
                None => all.push((vec![number], sentence)),
            }
        }
    }
    all
}

/// A sentence with the changes that it is said of, unless these are all.
fn said_of(numbers: &[String], sentence: &str, all: usize) -> String {
    if numbers.len() == all { sentence.to_owned() } else { format!("{}: {sentence}", numbers.join(", ")) }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::FindingKind;
    use narrows_model::finding::evidence::load::LoadLevel;
    use narrows_model::prediction::{
        Assumption, Change, ChangeKind, Doubt, Forecast, Measured, NotPredicted, ResourceKind,
    };

    use super::super::Color;
    use super::*;

    fn estimate(value: f64) -> Estimate {
        Estimate { value, low: 0.9 * value, high: 1.1 * value }
    }

    fn prediction(kind: ChangeKind, doubts: Vec<Doubt>) -> Prediction {
        let now = Figures { rate: 26.7, mean_ns: 549e6, p95_ns: 675e6 };
        let after = Forecast { rate: estimate(45.0), mean_ns: estimate(240e6), p95_ns: estimate(410e6) };
        let load = LoadLevel { users: 40, arrivals: None };
        let limit = |rate_max| {
            Some(Resource { kind: ResourceKind::RequestUnits, name: "docstore".into(), used_share: 0.5, rate_max })
        };
        Prediction {
            change: Change { kind, target: "scheduler GET /utilization".into(), amount: None },
            with: Vec::new(),
            because: Some(FindingKind::SerialFanOut),
            now,
            after,
            levels: vec![LevelForecast { label: "40 users".into(), load, now: Some(now), after }],
            limit_now: limit(86.0),
            limit_after: limit(86.0),
            assumptions: vec![Assumption::SameUsers { think_ns: 200e6 }],
            doubts,
            measured: None,
        }
    }

    fn all(of: Vec<Prediction>) -> Predictions {
        let load = LoadLevel { users: 40, arrivals: None };
        let measured = Figures { rate: 26.7, mean_ns: 549e6, p95_ns: 675e6 };
        let level = BaselineLevel {
            label: "40 users".into(),
            load,
            requests: 900,
            measured,
            model_rate: 26.0,
            model_mean_ns: 560e6,
        };
        let because = "which transactions touch the same rows is not recorded".into();
        Predictions {
            trial: "test-2".into(),
            baseline: vec![level.clone(), level],
            predictions: of,
            ladder: Ladder::default(),
            not_predicted: vec![NotPredicted { finding: FindingKind::ConflictRetry, because }],
            sentence: "In test-2, more is gained.".into(),
        }
    }

    #[test]
    fn changes_are_a_table_and_what_they_rest_on_is_said_once() {
        let doubted = vec![Doubt::BeyondTested { factor: 1.7 }];
        let text =
            all(vec![prediction(ChangeKind::Parallelize, Vec::new()), prediction(ChangeKind::RouteQuery, doubted)]);
        insta::assert_snapshot!(predictions(&text, Style { width: 120, color: Color::Never }), @r"
        test-2

        change           rate              90 %    mean              90 %     p95  then limited by
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        as it is       26.7/s                    549 ms                    675 ms  the request units of docstore at 86.0/s
        1 parallelize  45.0/s  40.5/s to 49.5/s  240 ms  216 ms to 264 ms  410 ms  the request units of docstore at 86.0/s
        2 route-query  45.0/s  40.5/s to 49.5/s  240 ms  216 ms to 264 ms  410 ms  the request units of docstore at 86.0/s

        change      1 parallelize=scheduler GET /utilization, suggested by serial-fan-out
        change      2 route-query=scheduler GET /utilization, suggested by serial-fan-out
        model       It reproduces the mean latency at 2 levels of the load within 2.0 %; furthest off at 40 users: 560 ms,
                    measured 549 ms.
        doubt       2: It goes up to 1.70 times what was tested, where something that was not seen may limit it.
        assumes     The same users think for 200 ms between requests.
        left out    conflict-retry: which transactions touch the same rows is not recorded

        In test-2, more is gained.
        ");
    }

    #[test]
    fn changes_that_gain_most_together_stand_in_their_order() {
        let first = prediction(ChangeKind::Parallelize, Vec::new());
        let second = Prediction { with: vec![Change::new(ChangeKind::AddCpu, "web")], ..first.clone() };
        let mut text = all(vec![first.clone()]);
        text.ladder = Ladder { steps: vec![first, second], sentence: "First one; then the other.".into() };
        let said = predictions(&text, Style { width: 120, color: Color::Never });
        let rows: Vec<&str> =
            said.lines().filter(|line| line.starts_with("first ") || line.starts_with("then ")).collect();
        assert!(rows[0].starts_with("first parallelize  45.0/s"), "{said}");
        assert!(rows[1].starts_with("then add-cpu=web "), "{said}");
        assert!(said.ends_with("In test-2, more is gained. First one; then the other.\n"), "{said}");
    }

    #[test]
    fn a_single_change_is_shown_at_each_level() {
        let text = predictions(
            &all(vec![prediction(ChangeKind::Parallelize, Vec::new())]),
            Style { width: 100, color: Color::Never },
        );
        assert!(text.contains("load"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_change_that_was_measured_is_shown_beside_it_at_each_level() {
        let mut one = prediction(ChangeKind::Parallelize, Vec::new());
        let figures = Figures { rate: 46.2, mean_ns: 234e6, p95_ns: 390e6 };
        one.measured = Some(Measured { trial: "test-3".into(), figures, levels: vec![figures] });
        let text = predictions(&all(vec![one]), Style { width: 100, color: Color::Never });
        let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("load")).take(3).collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        load        rate  predicted  measured    mean  predicted  measured
        ──────────────────────────────────────────────────────────────────
        40 users  26.7/s     45.0/s    46.2/s  549 ms     240 ms    234 ms
        ");
    }
}
