//! A change that was made in an experiment: how, predicted beside measured at each level and over all, the sentence.

use narrows_model::prediction::{Estimate, Figures, Forecast, MadeChange, Tried};
use narrows_model::units;

use super::paint::Paint;
use super::{Style, WIDTH_MIN, sections};
use crate::figures::ratio;
use crate::section::{Block, Column, Line, Phrase, Row, Section, Table, Tone};

/// The text of `narrows predict --try`. Ends with a line feed.
pub fn tried(tried: &Tried, style: Style) -> String {
    let lines = vec![Line::new("tried", "", format!("{}: {}", tried.prediction.change, made(&tried.made)))];
    let blocks = [
        Block::Lines(lines),
        Block::Table(table(tried)),
        Block::Paragraph(Phrase::from(&tried.sentence), Tone::Strong),
    ];
    let all: Vec<Section> = blocks.into_iter().map(|block| Section::untitled(vec![block])).collect();
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

/// How a change was made, such as `POOL of web 2 → 8`.
pub fn made(made: &MadeChange) -> String {
    let MadeChange { service, name, from, to, is_listed } = made;
    let value = |value: &str| if value.is_empty() { "“”".to_owned() } else { value.to_owned() };
    let listed = if *is_listed { ", as a variant of the experiment has it" } else { "" };
    format!("{name} of {service} {} → {}{listed}", value(from), value(to))
}

/// A figure before the change, predicted and measured.
struct TriedFigure {
    name: &'static str,
    before: f64,
    predicted: Estimate,
    measured: f64,
    written: fn(f64) -> String,
}

fn table(tried: &Tried) -> Table {
    let mut columns = vec![Column::left("load"), Column::left("")];
    columns.extend(["before", "predicted", "90 %", "measured", "error"].map(Column::right));
    columns.push(Column::left("in 90 %"));
    let Some(after) = &tried.prediction.measured else { return Table::default() };
    let levels = tried.prediction.levels.iter().zip(&tried.before.levels).zip(&after.levels);
    let of_levels =
        levels.flat_map(|((level, before), after)| rows(&level.label, before, &level.after, after).into_iter().take(2));
    let overall = rows("all levels", &tried.before.figures, &tried.prediction.after, &after.figures);
    Table::new(columns, of_levels.chain(overall).collect())
}

/// Throughput, mean and 95 % latency.
fn rows(label: &str, before: &Figures, predicted: &Forecast, after: &Figures) -> [Row; 3] {
    let row = |label: &str, name, before, predicted, measured, written| {
        TriedFigure { name, before, predicted, measured, written }.row(label)
    };
    [
        row(label, "rate", before.rate, predicted.rate, after.rate, units::rate),
        row("", "mean", before.mean_ns, predicted.mean_ns, after.mean_ns, units::duration),
        row("", "p95", before.p95_ns, predicted.p95_ns, after.p95_ns, units::duration),
    ]
}

impl TriedFigure {
    fn row(self, label: &str) -> Row {
        let (written, predicted) = (self.written, self.predicted);
        Row::new([
            label.to_owned(),
            self.name.to_owned(),
            written(self.before),
            written(predicted.value),
            format!("{} to {}", written(predicted.low), written(predicted.high)),
            written(self.measured),
            ratio(predicted.error(self.measured)),
            if predicted.holds(self.measured) { "✓" } else { "✗" }.to_owned(),
        ])
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::evidence::load::LoadLevel;
    use narrows_model::prediction::{Change, ChangeKind, LevelForecast, Measured, Prediction};

    use super::super::Color;
    use super::*;

    #[test]
    fn predicted_stands_beside_measured_at_each_level_and_over_all() {
        let figures = |rate: f64| Figures { rate, mean_ns: 8e9 / rate, p95_ns: 9e9 / rate };
        let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
        let forecast =
            |rate: f64| Forecast { rate: estimate(rate), mean_ns: estimate(8e9 / rate), p95_ns: estimate(9e9 / rate) };
        let measured =
            |trial: &str, rate| Measured { trial: trial.into(), figures: figures(rate), levels: vec![figures(rate)] };
        let load = LoadLevel { users: 8, arrivals: None };
        let level = LevelForecast { label: "8 users".into(), load, now: Some(figures(50.0)), after: forecast(200.0) };
        let prediction = Prediction {
            levels: vec![level],
            measured: Some(measured("main-resize-pool", 150.0)),
            ..Prediction::new(
                Change { kind: ChangeKind::ResizePool, target: "web".into(), amount: Some(8.0) },
                figures(50.0),
                forecast(200.0),
            )
        };
        let made = MadeChange {
            service: "web".into(),
            name: "POOL".into(),
            from: "2".into(),
            to: "8".into(),
            is_listed: false,
        };
        let one = Tried {
            run: "runs/shop.narrows".into(),
            made,
            before: measured("main", 50.0),
            prediction,
            sentence: "More was predicted than was measured.".into(),
        };
        assert_eq!(one.prediction.is_held(), Some(false));
        insta::assert_snapshot!(tried(&one, Style { width: 100, color: Color::Never }), @r"
        tried       resize-pool=web,8: POOL of web 2 → 8

        load              before  predicted                90 %  measured  error  in 90 %
        ─────────────────────────────────────────────────────────────────────────────────
        8 users     rate  50.0/s      200/s      180/s to 220/s     150/s  +33 %  ✗
                    mean  160 ms    40.0 ms  36.0 ms to 44.0 ms   53.3 ms  −25 %  ✗
        all levels  rate  50.0/s      200/s      180/s to 220/s     150/s  +33 %  ✗
                    mean  160 ms    40.0 ms  36.0 ms to 44.0 ms   53.3 ms  −25 %  ✗
                    p95   180 ms    45.0 ms  40.5 ms to 49.5 ms   60.0 ms  −25 %  ✗

        More was predicted than was measured.
        ");
    }
}
