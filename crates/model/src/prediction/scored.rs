//! A prediction beside what a later trial measured with the change made, and beside what two simple rules say.

use serde::{Deserialize, Serialize};

use super::{Estimate, Prediction};

/// Changes that one trial made to another, predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// The run that it is predicted from; `None` for the run of `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_run: Option<String>,
    /// The trial that it is predicted from.
    pub before: String,
    /// The trial in which the changes were made.
    pub after: String,
    /// Prediction and measurement.
    pub prediction: Prediction,
    /// Result of the rule that a fix removes its share of the latency; `None` if the share is unknown.
    pub share_removed: Option<RuleFigures>,
    /// Result of Amdahl's law; `None` if the share or the factor is unknown.
    pub amdahl: Option<RuleFigures>,
}

/// Result of a simple rule.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RuleFigures {
    /// Successful responses per second.
    pub rate: f64,
    /// Mean latency, nanoseconds.
    pub mean_ns: f64,
}

/// How far predictions were off, over all that were scored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Accuracy {
    /// How many were scored.
    pub count: usize,
    /// Median of |predicted ÷ measured − 1| of throughput.
    pub rate_error: f64,
    /// The same of mean latency.
    pub mean_error: f64,
    /// Share of the measured figures, throughput and mean latency, that lie in their 90 % interval; `None` for a rule
    /// without intervals.
    pub held: Option<f64>,
}

/// How far predicted throughput is off at the levels of the load, over all levels of all pairs of trials that were scored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelAccuracy {
    /// Pairs of trials with measured levels.
    pub pairs: usize,
    /// Their levels.
    pub levels: usize,
    /// Share of the levels at which predicted ÷ measured is within 10 % of 1; 0 without levels, as the others are.
    pub within_10: f64,
    /// Share within 25 %.
    pub within_25: f64,
    /// Median of |predicted ÷ measured − 1|.
    pub rate_error: f64,
    /// Share of the levels at which the 90 % interval holds what was measured.
    pub held: f64,
}

impl LevelAccuracy {
    /// Over the levels of these predictions; those without measured levels are left out.
    pub fn of<'s>(scored: impl IntoIterator<Item = &'s Scored>) -> Self {
        let mut levels: Vec<RateLevel> = Vec::new();
        let mut pairs = 0;
        for scored in scored {
            let of_pair = RateLevel::all(&scored.prediction);
            pairs += usize::from(!of_pair.is_empty());
            levels.extend(of_pair);
        }
        let share = |is_meant: &dyn Fn(&RateLevel) -> bool| {
            let count = levels.iter().filter(|level| is_meant(level)).count();
            if levels.is_empty() { 0.0 } else { count as f64 / levels.len() as f64 }
        };
        Self {
            pairs,
            levels: levels.len(),
            within_10: share(&|level| level.error().abs() <= 0.10),
            within_25: share(&|level| level.error().abs() <= 0.25),
            rate_error: median(levels.iter().map(RateLevel::error).collect()),
            held: share(&|level| level.predicted.holds(level.measured)),
        }
    }
}

/// Throughput at a level, predicted and measured.
struct RateLevel {
    predicted: Estimate,
    measured: f64,
}

impl RateLevel {
    fn all(prediction: &Prediction) -> Vec<Self> {
        let measured = prediction.measured.as_ref().map_or(&[][..], |measured| &measured.levels);
        let levels = prediction.levels.iter().zip(measured);
        levels.map(|(level, measured)| Self { predicted: level.after.rate, measured: measured.rate }).collect()
    }

    fn error(&self) -> f64 {
        self.predicted.error(self.measured)
    }
}

/// The accuracy of the model and of the rules, each over the predictions that all of them can make.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ScoreCard {
    /// Of all predictions.
    pub all: Accuracy,
    /// Of those without a serious doubt.
    pub trusted: Accuracy,
    /// Of those that the rules can make too.
    pub comparable: Accuracy,
    /// Of the rule that a fix removes its share of the latency.
    pub share_removed: Accuracy,
    /// Of Amdahl's law.
    pub amdahl: Accuracy,
}

impl ScoreCard {
    /// Over these predictions; those that nothing was measured for are left out.
    pub fn of(scored: &[Scored]) -> Self {
        let measured: Vec<&Scored> = scored.iter().filter(|one| one.prediction.measured.is_some()).collect();
        let only = |keep: fn(&Scored) -> bool| measured.iter().copied().filter(|one| keep(one)).collect::<Vec<_>>();
        let comparable = only(|one| one.share_removed.is_some() && one.amdahl.is_some());
        Self {
            all: of_model(&measured),
            trusted: of_model(&only(|one| one.prediction.is_trusted())),
            comparable: of_model(&comparable),
            share_removed: of_rule(&comparable, |one| one.share_removed),
            amdahl: of_rule(&comparable, |one| one.amdahl),
        }
    }
}

fn of_model(scored: &[&Scored]) -> Accuracy {
    let pairs =
        |of: fn(&Prediction) -> (Estimate, f64)| scored.iter().map(|one| of(&one.prediction)).collect::<Vec<_>>();
    let rates = pairs(|one| (one.after.rate, one.measured.as_ref().map_or(0.0, |one| one.figures.rate)));
    let means = pairs(|one| (one.after.mean_ns, one.measured.as_ref().map_or(0.0, |one| one.figures.mean_ns)));
    let held = rates.iter().chain(&means).filter(|(estimate, measured)| estimate.holds(*measured)).count();
    let errors =
        |pairs: &[(Estimate, f64)]| pairs.iter().map(|(estimate, measured)| estimate.error(*measured)).collect();
    Accuracy {
        count: scored.len(),
        rate_error: median(errors(&rates)),
        mean_error: median(errors(&means)),
        held: (!scored.is_empty()).then(|| held as f64 / (2 * scored.len()) as f64),
    }
}

fn of_rule(scored: &[&Scored], rule: fn(&Scored) -> Option<RuleFigures>) -> Accuracy {
    let pairs: Vec<_> =
        scored.iter().filter_map(|one| Some((rule(one)?, one.prediction.measured.as_ref()?.figures))).collect();
    Accuracy {
        count: pairs.len(),
        rate_error: median(pairs.iter().map(|(rule, measured)| rule.rate / measured.rate - 1.0).collect()),
        mean_error: median(pairs.iter().map(|(rule, measured)| rule.mean_ns / measured.mean_ns - 1.0).collect()),
        held: None,
    }
}

/// The median of the sizes of errors; 0 without any.
fn median(errors: Vec<f64>) -> f64 {
    let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    match sizes.len() {
        0 => 0.0,
        count if count % 2 == 1 => sizes[count / 2],
        count => (sizes[count / 2 - 1] + sizes[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Change, ChangeKind, Doubt, Figures, Forecast, LevelForecast, Measured};
    use super::*;
    use crate::finding::FindingKind;
    use crate::finding::evidence::load::LoadLevel;

    fn scored(rate: f64, mean_ns: f64, rule: Option<RuleFigures>) -> Scored {
        let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
        let figures = Figures { rate: 100.0, mean_ns: 10e6, p95_ns: 20e6 };
        let prediction = Prediction {
            measured: Some(Measured { trial: "b".into(), figures, levels: Vec::new() }),
            ..Prediction::new(
                Change { kind: ChangeKind::Parallelize, target: "GET /a".into(), amount: None },
                figures,
                Forecast { rate: estimate(rate), mean_ns: estimate(mean_ns), p95_ns: estimate(20e6) },
            )
        };
        Scored {
            earlier_run: None,
            before: "a".into(),
            after: "b".into(),
            prediction,
            share_removed: rule,
            amdahl: rule,
        }
    }

    #[test]
    fn errors_are_medians_and_rules_are_compared_on_the_same_cases() {
        let rule = RuleFigures { rate: 150.0, mean_ns: 5e6 };
        let mut doubted = scored(100.0, 40e6, None);
        doubted.prediction.doubts = vec![Doubt::Invalid { finding: FindingKind::NotSteady }];
        let card = ScoreCard::of(&[scored(104.0, 11.5e6, Some(rule)), scored(98.0, 10.5e6, None), doubted]);
        assert_eq!((card.all.count, card.trusted.count, card.comparable.count), (3, 2, 1));
        assert!((card.all.rate_error - 0.02).abs() < 1e-9 && (card.all.mean_error - 0.15).abs() < 1e-9, "{card:?}");
        assert_eq!(card.all.held, Some(4.0 / 6.0), "{card:?}");
        assert_eq!((card.amdahl.rate_error, card.share_removed.mean_error), (0.5, 0.5));
        let mut open = scored(1.0, 1.0, None);
        open.prediction.measured = None;
        assert_eq!(ScoreCard::of(&[open]), ScoreCard::default());
    }

    #[test]
    fn levels_are_counted_by_how_far_throughput_is_off() {
        let mut one = scored(100.0, 10e6, None);
        let forecast = |rate: f64| LevelForecast {
            label: "8 users".into(),
            load: LoadLevel { users: 8, arrivals: None },
            now: None,
            after: Forecast {
                rate: Estimate { value: rate, low: 0.9 * rate, high: 1.1 * rate },
                ..Forecast::default()
            },
        };
        one.prediction.levels = [100.0, 104.0, 120.0, 200.0].map(forecast).to_vec();
        let measured = one.prediction.measured.as_mut().expect("it is measured");
        measured.levels = vec![measured.figures; 4];
        let found = LevelAccuracy::of([&one, &scored(1.0, 1.0, None)]);
        let expected =
            LevelAccuracy { pairs: 1, levels: 4, within_10: 0.5, within_25: 0.75, rate_error: 0.12, held: 0.5 };
        assert!((found.rate_error - expected.rate_error).abs() < 1e-9, "{found:?}");
        assert_eq!(LevelAccuracy { rate_error: expected.rate_error, ..found }, expected);
        assert_eq!(LevelAccuracy::of([]), LevelAccuracy::default());
    }
}
