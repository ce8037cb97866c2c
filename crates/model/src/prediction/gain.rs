//! Gain of the fix of one finding, in brief. It stays beside the finding; a [`Prediction`](super::Prediction) holds all it rests on.

use serde::{Deserialize, Serialize};

use super::{Change, Figures, Forecast, Resource};

/// Gain of the change that a finding suggests.
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
    Predicted(Box<PredictedGain>),
    /// Why nothing is predicted: a clause without a full stop.
    NotPredicted(String),
}

/// The figures of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedGain {
    /// Figures measured over all levels of the load.
    pub now: Figures,
    /// The same with the change.
    pub after: Forecast,
    /// First limit of throughput with the change; `None` if nothing is known to.
    pub limit_after: Option<Resource>,
}
