//! A predicted change that was made in an experiment, and what was measured with it.

use serde::{Deserialize, Serialize};

use super::{Figures, Measured, Prediction};

/// A predicted change that was made in an experiment, beside the system without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The run file with both variants.
    pub run: String,
    /// How the change was made.
    pub made: MadeChange,
    /// The variant without the change.
    pub before: Measured,
    /// The prediction, with what was measured in the variant with the change.
    pub prediction: Prediction,
    /// Meaning in one sentence.
    pub sentence: String,
}

/// Value of an experiment by which a change was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeChange {
    /// The service that it is a value of.
    pub service: String,
    /// Key, environment variable, flag or parameter.
    pub name: String,
    /// The value without the change.
    pub from: String,
    /// The value with it.
    pub to: String,
    /// Whether the experiment has the variant, so that none was added.
    pub is_listed: bool,
}

impl Prediction {
    /// Whether measured throughput and mean latency over all levels lie in their 90 % intervals; `None` if nothing was measured.
    pub fn is_held(&self) -> Option<bool> {
        let Figures { rate, mean_ns, .. } = self.measured.as_ref()?.figures;
        Some(self.after.rate.holds(rate) && self.after.mean_ns.holds(mean_ns))
    }
}
