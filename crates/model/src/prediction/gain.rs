//! Gain of the fix of one finding, in brief. It stays beside the finding; a [`Prediction`] holds all it rests on.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Change, Doubt, Figures, Forecast, Measure, Prediction, Resource};
use crate::units;

/// A difference of throughput below this share is not mentioned.
const RATE_NOTABLE: f64 = 0.01;
/// From this factor on, a figure of the model is given as a multiple of the measured one.
const MANY_TIMES: f64 = 3.0;

/// Gain of the change that a finding suggests. It reads as a clause without a full stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The change.
    pub change: Change,
    /// Expected result.
    #[serde(flatten)]
    pub outcome: GainOutcome,
}

/// Result of a change, or the reason why it cannot be said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainOutcome {
    /// The figures.
    Predicted(Box<Gained>),
    /// Why nothing is predicted: a clause without a full stop.
    NotPredicted(String),
}

/// The figures of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gained {
    /// Figures measured over all levels of the load.
    pub now: Figures,
    /// The same with the change.
    pub after: Forecast,
    /// First limit of throughput with the change; `None` if nothing is known to.
    pub limit_after: Option<Resource>,
}

impl From<&Prediction> for Gain {
    /// Figures that should not be used are left out, with the reason in their place.
    fn from(prediction: &Prediction) -> Self {
        let outcome = match prediction.doubts.iter().find(|doubt| doubt.is_serious()) {
            Some(doubt) => GainOutcome::NotPredicted(in_brief(doubt)),
            None => GainOutcome::Predicted(Box::new(Gained {
                now: prediction.now,
                after: prediction.after,
                limit_after: prediction.limit_after.clone(),
            })),
        };
        Self { change: prediction.change.clone(), outcome }
    }
}

/// A doubt in few words.
fn in_brief(doubt: &Doubt) -> String {
    match doubt {
        Doubt::BaselineMissed { label, measure, measured, model } => {
            let figure = match measure {
                Measure::Rate => "throughput",
                Measure::Mean => "mean latency",
            };
            let times = model / measured;
            if times >= MANY_TIMES {
                return format!("the model has {times:.0} times the measured {figure} at {label}");
            }
            let off = units::percent((times - 1.0).abs());
            format!("the model misses the measured {figure} at {label} by {off}")
        }
        Doubt::Invalid { finding } => format!("the figures of the trial are invalid ({finding})"),
        Doubt::OutsideTraces { share } => {
            format!("traces show only {} of a request's time outside queues", units::percent(*share))
        }
        other => other.to_string().trim_end_matches('.').to_owned(),
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.change.kind.name();
        match &self.outcome {
            GainOutcome::NotPredicted(because) => write!(f, "{name}: not predicted, because {because}"),
            GainOutcome::Predicted(gained) => write!(f, "{name}: {gained}"),
        }
    }
}

impl fmt::Display for Gained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, mean, rate) = (&self.now, self.after.mean_ns, self.after.rate);
        let duration = units::duration;
        write!(f, "mean {} → {}", duration(now.mean_ns), duration(mean.value))?;
        write!(f, " ({} to {}), ", duration(mean.low), duration(mean.high))?;
        if (rate.value / now.rate - 1.0).abs() < RATE_NOTABLE {
            write!(f, "throughput unchanged at {}", units::rate(now.rate))?;
        } else {
            write!(f, "throughput {} → {}", units::rate(now.rate), units::rate(rate.value))?;
        }
        match &self.limit_after {
            Some(limit) => write!(f, "; next limit: {limit} at {}", units::rate(limit.rate_max)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChangeKind, Estimate, ResourceKind};
    use super::*;

    fn prediction(doubts: Vec<Doubt>) -> Prediction {
        let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
        let limit = |rate_max| Resource { kind: ResourceKind::Machine, name: String::new(), used_share: 0.3, rate_max };
        Prediction {
            change: Change { kind: ChangeKind::RouteQuery, target: "GET /a".into(), amount: None },
            with: Vec::new(),
            because: None,
            now: Figures { rate: 27.3, mean_ns: 531e6, p95_ns: 700e6 },
            after: Forecast { rate: estimate(52.8), mean_ns: estimate(171e6), p95_ns: estimate(300e6) },
            levels: Vec::new(),
            limit_now: None,
            limit_after: Some(limit(91.6)),
            assumptions: Vec::new(),
            doubts,
            measured: None,
        }
    }

    #[test]
    fn a_gain_is_one_line() {
        let gain = Gain::from(&prediction(vec![Doubt::OneLevel]));
        assert_eq!(
            gain.to_string(),
            "route-query: mean 531 ms → 171 ms (154 ms to 188 ms), throughput 27.3/s → 52.8/s; next limit: the machine's CPU at 91.6/s"
        );
        let json = serde_json::to_value(&gain).unwrap();
        assert_eq!(json["change"]["kind"], "route-query");
        assert_eq!(json["predicted"]["after"]["rate"]["value"], 52.8);
        assert_eq!(serde_json::from_value::<Gain>(json).unwrap(), gain);
    }

    #[test]
    fn figures_that_should_not_be_used_are_left_out() {
        let missed =
            Doubt::BaselineMissed { label: "40 users".into(), measure: Measure::Mean, measured: 4e6, model: 3e6 };
        let gain = Gain::from(&prediction(vec![Doubt::OneLevel, missed]));
        let because = "the model misses the measured mean latency at 40 users by 25 %";
        assert_eq!(gain.to_string(), format!("route-query: not predicted, because {because}"));
        assert_eq!(serde_json::to_value(&gain).unwrap()["not-predicted"], because);
        let far = Doubt::BaselineMissed { label: "4/s".into(), measure: Measure::Mean, measured: 3e8, model: 2.5e11 };
        let because = "the model has 833 times the measured mean latency at 4/s";
        assert!(Gain::from(&prediction(vec![far])).to_string().ends_with(because));
    }
}
